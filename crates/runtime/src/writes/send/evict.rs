//! Evicts a pod: tells it in its conditions, then deletes it.

use super::change::{PODS_STATUS, Target};
use super::status::{Condition, PodPatch};
use super::{Needed, Sender, json};
use crate::client::Patch;
use crate::writes::order::PodRef;
use crate::writes::queue::evicted_because_of;
use crate::writes::work::Answer;
use serde::Serialize;
use volcano_api::names::{conditions, reasons};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions<'a> {
    api_version: &'a str,
    kind: &'a str,
    preconditions: Preconditions<'a>,
}

#[derive(Serialize)]
struct Preconditions<'a> {
    uid: &'a str,
}

impl Sender {
    pub(super) async fn mark(&self, pod: &PodRef, reason: &str) -> Answer {
        let now = Some(self.client.clock().now());
        let evicted = evicted_because_of(reason);
        let preempted = format!(
            "{}: preempting to accommodate a higher priority pod",
            self.scheduler
        );
        let conditions = [
            Condition {
                r#type: conditions::READY,
                status: "False",
                reason: reasons::EVICT,
                message: &evicted,
                last_transition_time: now,
            },
            Condition {
                r#type: conditions::DISRUPTION_TARGET,
                status: "True",
                reason: reasons::PREEMPTION_BY_SCHEDULER,
                message: &preempted,
                last_transition_time: now,
            },
        ];
        let patch = PodPatch::new(&pod.uid, &conditions, None);
        let target = Target::pod(&PODS_STATUS, pod);
        match self.change(&target, Patch::Strategic, json(&patch)).await {
            Ok(_) => Answer::DONE,
            Err(answer) => answer,
        }
    }

    pub(super) async fn delete(&self, pod: &PodRef) -> Answer {
        let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
        let body = json(&DeleteOptions {
            api_version: "v1",
            kind: "DeleteOptions",
            preconditions: Preconditions { uid: &pod.uid },
        });
        match self.count("pod-delete", self.client.delete(&path, body).await) {
            Ok(_) => Answer::DONE,
            // Another pod of that name.
            Err(error) if error.is_conflict() => Answer::Gone,
            Err(error) => {
                self.tell_forbidden(Needed::Delete, &error);
                error.into()
            }
        }
    }
}
