//! Events about pods and the node, written in the background: what runs does not wait for what is told about it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{from_value, json};
use std::collections::HashMap;
use tokio::sync::mpsc;

/// Events that wait; more are dropped.
const WAITING: usize = 1024;
/// Events that are remembered, to be counted when they come again.
const REMEMBERED: usize = 1024;

/// Takes events.
#[derive(Clone)]
pub(crate) struct Recorder(mpsc::Sender<Note>);

struct Note {
    about: ObjectReference,
    is_warning: bool,
    reason: &'static str,
    message: String,
    time: Timestamp,
}

impl Recorder {
    /// The recorder of a node.
    pub fn start(client: kube::Client, node: String) -> Recorder {
        let (sender, receiver) = mpsc::channel(WAITING);
        tokio::spawn(write(client, node, receiver));
        Recorder(sender)
    }

    pub fn pod(&self, pod: &Pod, is_warning: bool, reason: &'static str, message: String) {
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        self.send(about, is_warning, reason, message);
    }

    pub fn node(&self, node: &Node, is_warning: bool, reason: &'static str, message: String) {
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: node.metadata.name.clone(),
            uid: node.metadata.uid.clone(),
            ..ObjectReference::default()
        };
        self.send(about, is_warning, reason, message);
    }

    fn send(&self, about: ObjectReference, is_warning: bool, reason: &'static str, message: String) {
        let note = Note {
            about,
            is_warning,
            reason,
            message,
            time: Timestamp::now(),
        };
        if self.0.try_send(note).is_err() {
            tracing::debug!(reason, "event dropped");
        }
    }
}

async fn write(client: kube::Client, node: String, mut notes: mpsc::Receiver<Note>) {
    let mut known: HashMap<(String, &'static str, String), (String, i32)> = HashMap::new();
    while let Some(note) = notes.recv().await {
        let namespace = note
            .about
            .namespace
            .clone()
            .unwrap_or_else(|| "default".to_owned());
        let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
        let uid = note.about.uid.clone().unwrap_or_default();
        let key = (uid, note.reason, note.message.clone());
        if let Some((name, count)) = known.get_mut(&key) {
            *count += 1;
            let patch = Patch::Merge(json!({"count": *count, "lastTimestamp": Time(note.time)}));
            if events.patch(name, &PatchParams::default(), &patch).await.is_ok() {
                continue;
            }
        }
        let about = note.about.name.as_deref().unwrap_or_default();
        let name = format!("{about}.{:016x}", fastrand::u64(..));
        let event = from_value::<Event>(json!({
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": note.about,
            "type": if note.is_warning { "Warning" } else { "Normal" },
            "reason": note.reason,
            "message": note.message,
            "count": 1,
            "firstTimestamp": Time(note.time),
            "lastTimestamp": Time(note.time),
            "source": {"component": "kubelet", "host": node},
            "reportingComponent": "kubelet",
            "reportingInstance": node,
        }));
        let written = match event {
            Ok(event) => events
                .create(&PostParams::default(), &event)
                .await
                .map(drop)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::debug!(reason = note.reason, %error, "event not written");
            continue;
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, (name, 1));
    }
}
