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

/// What became of a pod that is to be bound.
enum Found {
    /// It is on that node.
    Here,
    /// It is on another.
    Elsewhere,
    /// It has a gate.
    HeldBack,
    /// It can be bound.
    Unbound,
    /// It is going, or another one has its name.
    Gone,
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
        let why = conflict.to_string();
        match self.find(pod, node).await {
            Ok(Found::Here) => Answer::DONE,
            Ok(Found::Elsewhere) => Answer::Taken { why },
            Ok(Found::HeldBack) => Answer::Refused {
                why,
                forbidden: false,
            },
            Ok(Found::Unbound) => Answer::Later {
                why,
                retry_after: None,
            },
            Ok(Found::Gone) => Answer::Gone,
            Err(error) if error.is_forbidden() => Answer::Refused {
                why: format!("{conflict}; and the pod cannot be read: {error}"),
                forbidden: true,
            },
            Err(error) => cannot_look(error),
        }
    }

    /// No attempt to bind a pod was answered for long. One may have got through all the same, so the pod is looked at
    /// before its bind is undone.
    pub(super) async fn look_after_silence(&self, pod: &PodRef, node: &str) -> Answer {
        match self.find(pod, node).await {
            Ok(Found::Here) => Answer::DONE,
            Ok(Found::Elsewhere) => Answer::Taken {
                why: "it is bound to another node".to_owned(),
            },
            Ok(Found::HeldBack | Found::Unbound) => Answer::Refused {
                why: "it is not bound".to_owned(),
                forbidden: false,
            },
            Ok(Found::Gone) => Answer::Gone,
            Err(error) => cannot_look(error),
        }
    }

    /// What became of a pod that is to be on a node.
    async fn find(&self, pod: &PodRef, node: &str) -> Result<Found, CallError> {
        let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
        let found: Pod = self.client.get(&path).await?;
        if *found.metadata.uid != *pod.uid || found.metadata.deletion_timestamp.is_some() {
            return Ok(Found::Gone);
        }
        Ok(match found.spec.node_name.as_str() {
            bound if bound == node => Found::Here,
            "" if !found.spec.scheduling_gates.is_empty() => Found::HeldBack,
            "" => Found::Unbound,
            _ => Found::Elsewhere,
        })
    }
}

fn cannot_look(error: CallError) -> Answer {
    if error.is_conflict() {
        // Reading does not conflict with anything: it is the server that is in trouble.
        return Answer::Later {
            why: error.to_string(),
            retry_after: None,
        };
    }
    error.into()
}
