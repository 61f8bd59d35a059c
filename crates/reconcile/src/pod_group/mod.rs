//! The PodGroup controller: a gang for pods that did not come from a Job of this project.
//!
//! ```text
//! pods of one owner ─┐
//! their owners ──────┼──> plan ──> create or adapt podgroup-<uid>, then name it in the pods that wait
//! the PodGroup ──────┘
//! ```
//!
//! All pods of one owner share a PodGroup, so whoever calls this works group by group, never two at once for the same
//! name: a ReplicaSet with a thousand pods then costs one create. A PodGroup that has gone although pods in it are
//! still to be placed is made again, so that a deletion at the wrong moment strands nobody.

mod content;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::json;
use volcano_api::core::{PodSpec, PodStatus};
use volcano_api::meta::{ObjectMeta, OwnerReference};
use volcano_api::names::{Kind, annotations, kinds};
use volcano_api::scheduling::PodGroup;
use volcano_api::time::Time;

use crate::write::{Plan, Target, Write};

/// What is set on the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of the schedulers whose pods are looked at.
    pub schedulers: Vec<String>,
    /// Whether a PodGroup takes over annotations of the pods' owners.
    pub inherit_owner_annotations: bool,
}

/// A pod, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Name, labels, annotations and owners.
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: PodSpec,
    /// Where it is in its life.
    pub status: PodStatus,
}

/// An owner of pods that was read, of one of the kinds in [`owners`].
#[derive(Clone, Debug)]
pub struct Owner {
    /// Its kind.
    pub kind: Kind,
    /// Its name, UID and annotations.
    pub metadata: ObjectMeta,
    /// How many pods it should have, for a ReplicaSet or a StatefulSet.
    pub replicas: Option<i32>,
}

/// What is seen of one PodGroup.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The pods that [belong](group_name) to it, in any order.
    pub pods: &'a [Pod],
    /// Their owners that exist, in the order of the pods' references; that of the PodGroup also when it has no pods.
    pub owners: &'a [Owner],
    /// The PodGroup, when there is one.
    pub group: Option<&'a PodGroup>,
}

/// Kinds of owners whose annotations count, and whose pods need their PodGroup adapted.
const OWNERS: [Kind; 4] = [
    kinds::REPLICA_SET,
    kinds::DAEMON_SET,
    kinds::STATEFUL_SET,
    kinds::KUBERNETES_JOB,
];

/// Name of the PodGroup of a pod: by the owner that controls it, or by the pod itself.
pub fn group_name(pod: &ObjectMeta) -> String {
    let uid = pod.controller().map_or(&pod.uid, |owner| &owner.uid);
    group_name_of(uid)
}

/// Name of the PodGroup of the pods that an owner controls.
pub fn group_name_of(uid: &str) -> String {
    format!("podgroup-{uid}")
}

/// The owners of a pod that have to be read for a plan.
pub fn owners(pod: &ObjectMeta) -> Vec<Target> {
    let of = |owner: &OwnerReference| {
        let kind = OWNERS
            .into_iter()
            .find(|kind| kind.kind == owner.kind && kind.api_version() == owner.api_version)?;
        Some(Target {
            uid: owner.uid.clone(),
            ..Target::named(kind, &pod.namespace, &owner.name)
        })
    };
    pod.owner_references.iter().filter_map(of).collect()
}

impl Options {
    /// Whether a pod waits to be put into a PodGroup.
    pub fn is_waiting(&self, pod: &Pod) -> bool {
        self.is_ours(pod) && group_of(pod).is_empty()
    }

    /// Whether a pod is to be placed by one of our schedulers, or runs on behalf of it.
    fn is_ours(&self, pod: &Pod) -> bool {
        let live = pod.metadata.deletion_timestamp.is_none() && !pod.status.phase.is_terminated();
        live && self.schedulers.contains(&pod.spec.scheduler_name)
    }
}

/// The PodGroup that a pod names; empty when it names none.
fn group_of(pod: &Pod) -> &str {
    pod.metadata
        .annotation(annotations::KUBE_GROUP_NAME)
        .unwrap_or_default()
}

/// What is to be done for one PodGroup.
pub fn plan(options: &Options, observed: &Observed<'_>) -> Plan {
    let named = |pod: &&Pod| {
        let group = group_of(pod);
        group.is_empty() || group == group_name(&pod.metadata)
    };
    let members = observed
        .pods
        .iter()
        .filter(|pod| options.is_ours(pod))
        .filter(named);
    // The newest pod tells what the owner's template is now.
    let Some(newest) = members.clone().max_by_key(|pod| age(pod)) else {
        return without_members(observed);
    };
    let waiting: Vec<_> = members.filter(|pod| group_of(pod).is_empty()).collect();
    let group = match observed.group {
        // It is looked at again when it is gone: a new one is made then, for pods that are to name that one.
        Some(group) if group.metadata.deletion_timestamp.is_some() => return Plan::default(),
        None => Some(content::create(options, newest, observed.owners)),
        Some(group) => {
            let newest = waiting.iter().max_by_key(|pod| age(pod));
            newest.and_then(|pod| content::adapt(options, pod, observed.owners, group))
        }
    };
    Plan::of(vec![
        group.into_iter().collect(),
        waiting.into_iter().map(name_group).collect(),
    ])
}

/// Pods by age, then by name, so that the choice does not depend on the order in which they are seen.
fn age(pod: &Pod) -> (Option<Time>, &str) {
    (pod.metadata.creation_timestamp, &pod.metadata.name)
}

/// The PodGroup of an owner that is to have no pods goes. While pods of it are left, they keep it.
fn without_members(observed: &Observed<'_>) -> Plan {
    let Some(group) = observed
        .group
        .filter(|group| group.metadata.deletion_timestamp.is_none())
    else {
        return Plan::default();
    };
    let owner = observed.owners.iter().find(|owner| {
        let name = group_name_of(&owner.metadata.uid);
        name == group.metadata.name && matches!(owner.kind, kinds::REPLICA_SET | kinds::STATEFUL_SET)
    });
    if owner.is_none_or(|owner| owner.replicas != Some(0)) {
        return Plan::default();
    }
    Plan::of(vec![vec![Write::Delete {
        target: Target::of(group),
        foreground: false,
    }]])
}

/// Names the PodGroup in a pod.
fn name_group(pod: &Pod) -> Write {
    let metadata = &pod.metadata;
    let annotations = json!({annotations::KUBE_GROUP_NAME: group_name(metadata)});
    Write::Patch {
        target: Target {
            uid: metadata.uid.clone(),
            ..Target::named(kinds::POD, &metadata.namespace, &metadata.name)
        },
        patch: json!({"metadata": {"annotations": annotations}}),
        status: false,
        resource_version: None,
    }
}
