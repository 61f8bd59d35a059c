//! Binds a pod to a node.

use super::{Needed, Sender, json};
use crate::client::CallError;
use crate::writes::order::PodRef;
use crate::writes::work::Answer;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use volcano_api::protobuf;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Meta<'a>,
    target: Target<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Target<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
}

/// What of a pod says whether it is bound, or can be.
#[derive(Deserialize)]
struct Pod {
    metadata: PodMeta,
    #[serde(default)]
    spec: PodSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMeta {
    #[serde(default)]
    uid: String,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
    scheduling_gates: Vec<serde::de::IgnoredAny>,
}

impl Sender {
    pub(super) async fn bind(&self, pod: &PodRef, node: &str) -> Answer {
        let answer = self.post_binding(pod, node).await;
        match self.count("bind", answer) {
            Ok(()) => Answer::DONE,
            Err(conflict) if conflict.is_conflict() => self.look_at_pod(pod, node, &conflict).await,
            Err(error) => {
                self.tell_forbidden(Needed::Bind, &error);
                error.into()
            }
        }
    }

    /// In protobuf, until it turns out that only JSON is read.
    async fn post_binding(&self, pod: &PodRef, node: &str) -> Result<(), CallError> {
        let PodRef { namespace, name, uid } = pod;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
        if !self.json_only.load(Ordering::Relaxed) {
            let body = protobuf::binding(namespace, name, uid, node);
            match self.client.post_protobuf(&path, body).await {
                Err(error) if error.is_unknown_format() => self.json_only.store(true, Ordering::Relaxed),
                answer => return answer,
            }
        }
        let body = json(&Binding {
            api_version: "v1",
            kind: "Binding",
            metadata: Meta { namespace, name, uid },
            target: Target {
                api_version: "v1",
                kind: "Node",
                name: node,
            },
        });
        self.client.post(&path, body).await.map(drop)
    }

    /// A conflict means many things: an earlier attempt whose answer was lost did bind the pod; somebody else did; the
    /// pod is another one, is going, or is held back; or the API server was too busy. The pod knows.
    async fn look_at_pod(&self, pod: &PodRef, node: &str, conflict: &CallError) -> Answer {
        let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
        let found: Pod = match self.client.get(&path).await {
            Ok(found) => found,
            Err(error) if error.is_forbidden() => {
                let why = format!("{conflict}; and the pod cannot be read: {error}");
                let forbidden = true;
                return Answer::Refused { why, forbidden };
            }
            // Reading does not conflict with anything: it is the server that is in trouble.
            Err(error) if error.is_conflict() => {
                return Answer::Later {
                    why: error.to_string(),
                    retry_after: None,
                };
            }
            Err(error) => return error.into(),
        };
        let why = conflict.to_string();
        if *found.metadata.uid != *pod.uid || found.metadata.deletion_timestamp.is_some() {
            return Answer::Gone;
        }
        match found.spec.node_name.as_str() {
            bound if bound == node => Answer::DONE,
            "" if !found.spec.scheduling_gates.is_empty() => {
                let forbidden = false;
                Answer::Refused { why, forbidden }
            }
            "" => Answer::Later {
                why,
                retry_after: None,
            },
            _ => Answer::Taken { why },
        }
    }
}
