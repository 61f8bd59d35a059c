//! Writes statuses of PodGroups, pods, queues and NodeShards, and removes gates of pods.

use super::change::{GROUPS, PODS_SPEC, PODS_STATUS, QUEUES_STATUS, SHARDS_STATUS, Target, has_uid, version};
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
    metadata: Version<'a>,
    status: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version<'a> {
    uid: &'a str,
    /// The patch fails if the object is another by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
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
    /// A merge patch replaces the whole list of conditions. Where others have some in it too, the list is read right before,
    /// and the patch holds for what was read only: on a conflict all of this is done again.
    pub(super) async fn group(&self, status: &GroupStatus) -> Answer {
        let target = Target {
            what: &GROUPS,
            namespace: &status.namespace,
            name: &status.name,
            uid: Some(&status.uid),
        };
        let mut merged = None;
        if has_others(&status.status) {
            match self.read(&target).await {
                Ok(Some(found)) if has_uid(&found, &status.uid) => {
                    let mut status = status.status.clone();
                    keep_others(&mut status, &found);
                    merged = Some((status, version(&found)));
                }
                Ok(_) => return Answer::Gone,
                Err(answer) => return answer,
            }
        }
        let (value, version) = match &merged {
            Some((value, version)) => (value, version.as_deref()),
            None => (&status.status, None),
        };
        let body = json(&GroupPatch {
            metadata: Version {
                uid: &status.uid,
                resource_version: version,
            },
            status: value,
        });
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

/// Whether a condition of a PodGroup is the scheduler's own.
fn is_own(condition: &Value) -> bool {
    let own = [conditions::SCHEDULED, conditions::UNSCHEDULABLE];
    own.iter().any(|own| condition["type"] == **own)
}

fn conditions_of(status: &Value) -> &[Value] {
    let list = status["conditions"].as_array();
    list.map_or(&[], Vec::as_slice)
}

fn has_others(status: &Value) -> bool {
    !conditions_of(status).iter().all(is_own)
}

/// The conditions of others become those that the group has now; the scheduler's own stay as decided.
fn keep_others(status: &mut Value, group: &Value) {
    let others = conditions_of(&group["status"]).iter();
    let others = others.filter(|condition| !is_own(condition));
    let own = conditions_of(status).iter().filter(|condition| is_own(condition));
    let both: Vec<Value> = others.chain(own).cloned().collect();
    status["conditions"] = both.into();
}
