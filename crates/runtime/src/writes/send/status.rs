//! Writes statuses of PodGroups, pods, queues and NodeShards, and removes gates of pods.

use super::change::{GROUPS, PODS_SPEC, PODS_STATUS, QUEUES_STATUS, SHARDS_STATUS, Target};
use super::{Sender, json};
use crate::client::Patch;
use crate::writes::order::{GroupStatus, PodCondition, PodRef, QueueStatus, ShardStatus};
use crate::writes::work::Answer;
use serde::Serialize;
use serde_json::{Value, json as value};
use volcano_api::names::{conditions, gates};
use volcano_api::time::Time;

/// A change of a pod's status.
#[derive(Serialize)]
pub struct PodPatch<'a> {
    metadata: Uid<'a>,
    status: PodStatus<'a>,
}

#[derive(Serialize)]
struct Uid<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus<'a> {
    conditions: &'a [Condition<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    nominated_node_name: Option<&'a str>,
}

/// A condition of a pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition<'a> {
    pub r#type: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

impl<'a> PodPatch<'a> {
    pub fn new(uid: &'a str, conditions: &'a [Condition<'a>], nominated_node_name: Option<&'a str>) -> Self {
        PodPatch {
            metadata: Uid { uid },
            status: PodStatus {
                conditions,
                nominated_node_name,
            },
        }
    }
}

#[derive(Serialize)]
struct GroupPatch<'a> {
    metadata: Uid<'a>,
    status: &'a Value,
}

#[derive(Serialize)]
struct QueuePatch<'a> {
    status: Allocated<'a>,
}

#[derive(Serialize)]
struct Allocated<'a> {
    allocated: &'a Value,
}

impl Sender {
    pub(super) async fn group(&self, status: &GroupStatus) -> Answer {
        let body = json(&GroupPatch {
            metadata: Uid { uid: &status.uid },
            status: &status.status,
        });
        let target = Target {
            what: &GROUPS,
            namespace: &status.namespace,
            name: &status.name,
            uid: Some(&status.uid),
        };
        match self.change(&target, Patch::Merge, body).await {
            Ok(written) => Answer::Done {
                version: written.version(),
            },
            Err(answer) => answer,
        }
    }

    pub(super) async fn condition(&self, condition: &PodCondition, first: bool) -> Answer {
        let PodCondition {
            pod,
            reason,
            message,
            nominated,
        } = condition;
        let conditions = [Condition {
            r#type: conditions::POD_SCHEDULED,
            status: "False",
            reason,
            message,
            // The time of the last change of `status`: a new message does not change it.
            last_transition_time: first.then(|| self.client.clock().now()),
        }];
        let patch = PodPatch::new(&pod.uid, &conditions, nominated.as_deref());
        let target = Target::pod(&PODS_STATUS, pod);
        match self.change(&target, Patch::Strategic, json(&patch)).await {
            Ok(_) => Answer::DONE,
            Err(answer) => answer,
        }
    }

    pub(super) async fn queue(&self, status: &QueueStatus) -> Answer {
        let body = json(&QueuePatch {
            status: Allocated {
                allocated: &status.allocated,
            },
        });
        let target = Target {
            what: &QUEUES_STATUS,
            namespace: "",
            name: &status.name,
            uid: None,
        };
        match self.change(&target, Patch::Merge, body).await {
            Ok(_) => Answer::DONE,
            Err(answer) => answer,
        }
    }

    pub(super) async fn shard(&self, status: &ShardStatus) -> Answer {
        let body = json(&value!({"status": {
            "nodesInUse": status.in_use,
            "nodesToAdd": status.to_add,
            "nodesToRemove": status.to_remove,
            "lastUpdateTime": self.client.clock().now(),
        }}));
        let target = Target {
            what: &SHARDS_STATUS,
            namespace: "",
            name: &status.name,
            uid: None,
        };
        match self.change(&target, Patch::Merge, body).await {
            Ok(_) => Answer::DONE,
            Err(answer) => answer,
        }
    }

    /// Removes this one gate; others, which somebody may have added since, stay.
    pub(super) async fn open_gate(&self, pod: &PodRef) -> Answer {
        let body = json(&value!({
            "metadata": {"uid": &*pod.uid},
            "spec": {"schedulingGates": [{"name": gates::QUEUE_ALLOCATION, "$patch": "delete"}]},
        }));
        match self
            .change(&Target::pod(&PODS_SPEC, pod), Patch::Strategic, body)
            .await
        {
            Ok(_) => Answer::DONE,
            Err(answer) => answer,
        }
    }
}
