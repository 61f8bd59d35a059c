//! Records refused pods as events, one after the other.

use crate::client::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::debug;
use volcano_admission::Event;
use volcano_api::names::{events, kinds};
use volcano_api::time::Time;

/// Who says so.
const COMPONENT: &str = "volcano-admission";
/// Longest message that the API takes.
const LONGEST_MESSAGE: usize = 1024;
/// Longest part of a pod's name in the name of its event.
const LONGEST_NAME: usize = 200;

/// Writes events until there are no more to come.
pub async fn write(client: Client, mut waiting: mpsc::Receiver<Event>) {
    while let Some(event) = waiting.recv().await {
        let namespace = &event.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let body = object(
            &event,
            client.clock().now(),
            &uuid::Uuid::new_v4().simple().to_string(),
        );
        if let Err(error) = client.post(&path, body.to_string().into_bytes()).await {
            debug!(namespace, name = event.name, %error, "an event was not written");
        }
    }
}

fn object(event: &Event, now: Time, suffix: &str) -> Value {
    // A pod that a controller makes gets its name after it was admitted.
    let about = if event.name.is_empty() {
        COMPONENT
    } else {
        &event.name
    };
    let about: String = about.chars().take(LONGEST_NAME).collect();
    let message: String = event.message.chars().take(LONGEST_MESSAGE).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": event.namespace, "name": format!("{}.{suffix}", about.trim_end_matches(['.', '-']))},
        "involvedObject": {
            "apiVersion": kinds::POD.api_version(),
            "kind": kinds::POD.kind,
            "namespace": event.namespace,
            "name": event.name,
        },
        "type": events::WARNING,
        "reason": event.reason,
        "message": message,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_about_the_pod_even_if_it_has_no_name_yet() {
        let mut event = Event {
            namespace: "ns".to_owned(),
            name: "p".to_owned(),
            reason: "Admit",
            message: "é".repeat(2000),
        };
        let written = object(&event, Time::from_unix_seconds(0), "x1");
        assert_eq!(written["metadata"]["name"], "p.x1");
        assert_eq!(written["involvedObject"]["name"], "p");
        assert_eq!(
            written["message"].as_str().unwrap().chars().count(),
            LONGEST_MESSAGE
        );
        event.name.clear();
        let written = object(&event, Time::from_unix_seconds(0), "x1");
        assert_eq!(written["metadata"]["name"], "volcano-admission.x1");
        event.name = "a".repeat(250);
        let written = object(&event, Time::from_unix_seconds(0), "x1");
        assert!(written["metadata"]["name"].as_str().unwrap().len() <= 253);
    }
}
