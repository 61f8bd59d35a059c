//! Writes events.

use super::{Needed, Sender, json};
use crate::client::Patch;
use crate::writes::events::EventWrite;
use crate::writes::work::Answer;
use serde::Serialize;
use volcano_api::names::events;
use volcano_api::time::Time;

/// Where events of objects without a namespace are.
const DEFAULT_NAMESPACE: &str = "default";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Meta<'a>,
    involved_object: Involved<'a>,
    r#type: &'a str,
    reason: &'a str,
    message: &'a str,
    count: u32,
    first_timestamp: Time,
    last_timestamp: Time,
    source: Source<'a>,
    reporting_component: &'a str,
}

#[derive(Serialize)]
struct Meta<'a> {
    namespace: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Involved<'a> {
    api_version: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

#[derive(Serialize)]
struct Source<'a> {
    component: &'a str,
}

/// The same thing happened again.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Again {
    count: u32,
    last_timestamp: Time,
}

impl Sender {
    pub(crate) async fn event(&self, write: &EventWrite) -> Answer {
        let object = &write.event.object;
        let namespace = match &*object.namespace {
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        };
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let answer = if write.exists {
            let body = json(&Again {
                count: write.count,
                last_timestamp: self.client.clock().at(write.last),
            });
            let path = format!("{path}/{}", write.name);
            self.client.patch(&path, Patch::Merge, body).await
        } else {
            let body = json(&self.body(write, namespace));
            self.client.post(&path, body).await
        };
        match self.count("event", answer) {
            Ok(_) => Answer::DONE,
            // An earlier attempt got through.
            Err(error) if error.is_conflict() => Answer::DONE,
            Err(error) => {
                self.tell_forbidden(Needed::Event, &error);
                tracing::debug!(%namespace, name = %write.name, %error, "an event was not written");
                error.into()
            }
        }
    }

    fn body<'a>(&'a self, write: &'a EventWrite, namespace: &'a str) -> Event<'a> {
        let event = &write.event;
        let object = &event.object;
        Event {
            api_version: "v1",
            kind: "Event",
            metadata: Meta {
                namespace,
                name: &write.name,
            },
            involved_object: Involved {
                api_version: &object.api_version,
                kind: object.kind,
                namespace: &object.namespace,
                name: &object.name,
                uid: &object.uid,
            },
            r#type: if event.warning {
                events::WARNING
            } else {
                events::NORMAL
            },
            reason: &event.reason,
            message: &event.message,
            count: write.count,
            first_timestamp: self.client.clock().at(write.first),
            last_timestamp: self.client.clock().at(write.last),
            source: Source {
                component: &self.component,
            },
            reporting_component: &self.component,
        }
    }
}
