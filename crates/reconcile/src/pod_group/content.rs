//! What is in the PodGroup of a pod.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use volcano_api::core;
use volcano_api::meta::{OwnerReference, Resource as _, ResourceList};
use volcano_api::names::{PREFIX, annotations, kinds, labels};
use volcano_api::scheduling::{NetworkTopology, NetworkTopologyMode, PodGroup, PodGroupPhase, PodGroupSpec};

use super::{Options, Owner, Pod, group_name};
use crate::usage;
use crate::write::{Target, Write};

/// Annotations of a pod that go to its PodGroup. The two budgets exclude each other: see [`budget`].
const COPIED_ANNOTATIONS: [&str; 3] = [
    annotations::PREEMPTABLE,
    annotations::COOLDOWN_TIME,
    annotations::REVOCABLE_ZONE,
];

/// Labels of a pod that go to its PodGroup.
const COPIED_LABELS: [&str; 2] = [labels::PREEMPTABLE, labels::COOLDOWN_TIME];

/// Makes the PodGroup of a pod.
pub fn create(options: &Options, pod: &Pod, owners: &[Owner]) -> Write {
    let mut group = PodGroup::named(&pod.metadata.namespace, &group_name(&pod.metadata));
    group.metadata.owner_references = owner_references(pod);
    group.metadata.annotations = annotations(options, pod, owners);
    group.metadata.labels = copied(&pod.metadata.labels, &COPIED_LABELS);
    group.spec = spec(options, pod, owners);
    group.status.phase = PodGroupPhase::Pending;
    Write::Create {
        target: Target::of(&group),
        body: serde_json::to_value(&group).expect("an object of the API can be written"),
        fill: None,
    }
}

/// Adapts a PodGroup to a new pod of a ReplicaSet or a StatefulSet, whose template may have changed. What others have
/// written there, such as the scheduler's annotations or the queue that a webhook chose, is left alone.
pub fn adapt(options: &Options, pod: &Pod, owners: &[Owner], group: &PodGroup) -> Option<Write> {
    let owner = pod.metadata.controller()?;
    if ![kinds::REPLICA_SET.kind, kinds::STATEFUL_SET.kind].contains(&owner.kind.as_str()) {
        return None;
    }
    let mut patch = Map::new();
    let spec = spec_changes(&spec(options, pod, owners), &group.spec);
    let labels = missing(
        &copied(&pod.metadata.labels, &COPIED_LABELS),
        &group.metadata.labels,
    );
    let annotations = missing(&annotations(options, pod, owners), &group.metadata.annotations);
    let mut metadata = Map::new();
    for (key, changes) in [("labels", labels), ("annotations", annotations)] {
        if !changes.is_empty() {
            metadata.insert(key.to_owned(), changes.into());
        }
    }
    for (key, changes) in [("metadata", metadata), ("spec", spec)] {
        if !changes.is_empty() {
            patch.insert(key.to_owned(), changes.into());
        }
    }
    (!patch.is_empty()).then(|| Write::Patch {
        target: Target::of(group),
        patch: Value::Object(patch),
        status: false,
        resource_version: None,
    })
}

fn spec(options: &Options, pod: &Pod, owners: &[Owner]) -> PodGroupSpec {
    let min_member = if options.inherit_owner_annotations {
        min_member(owners)
    } else {
        1
    };
    let core_pod = core::Pod {
        metadata: core::Meta::default(),
        spec: pod.spec.clone(),
        status: pod.status.clone(),
    };
    let mut min_resources = ResourceList::new();
    usage::add(&mut min_resources, &usage::usage(&core_pod), min_member.into());
    let queue = pod.metadata.annotation(annotations::SCHEDULING_QUEUE_NAME);
    PodGroupSpec {
        min_member,
        queue: queue.unwrap_or_default().to_owned(),
        priority_class_name: pod.spec.priority_class_name.clone(),
        min_resources: Some(min_resources),
        network_topology: network_topology(pod),
        ..PodGroupSpec::default()
    }
}

/// How many pods have to be placed together, as the first owner that speaks of it says; one, when that is no number.
fn min_member(owners: &[Owner]) -> i32 {
    let said = owners
        .iter()
        .find_map(|owner| owner.metadata.annotation(annotations::GROUP_MIN_MEMBER));
    said.and_then(|text| text.parse().ok())
        .filter(|number| *number >= 0)
        .unwrap_or(1)
}

fn network_topology(pod: &Pod) -> Option<NetworkTopology> {
    let mode = pod.metadata.annotation(annotations::NETWORK_TOPOLOGY_MODE);
    let tier = pod
        .metadata
        .annotation(annotations::NETWORK_TOPOLOGY_HIGHEST_TIER);
    if mode.is_none() && tier.is_none() {
        return None;
    }
    let soft = mode.is_some_and(|mode| mode.eq_ignore_ascii_case(NetworkTopologyMode::Soft.as_str()));
    Some(NetworkTopology {
        mode: if soft {
            NetworkTopologyMode::Soft
        } else {
            NetworkTopologyMode::Hard
        },
        highest_tier_allowed: tier.and_then(|tier| tier.parse().ok()).filter(|tier| *tier >= 0),
        ..NetworkTopology::default()
    })
}

/// The owners' annotations of this project, the first owner's before the others', and those of the pod.
fn annotations(options: &Options, pod: &Pod, owners: &[Owner]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for owner in owners.iter().filter(|_| options.inherit_owner_annotations) {
        for (key, value) in &owner.metadata.annotations {
            if key.starts_with(PREFIX) && !all.contains_key(key) {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    all.extend(copied(&pod.metadata.annotations, &COPIED_ANNOTATIONS));
    all.extend(budget(pod));
    all
}

/// How many pods evictions must leave, or how many they may take; the first of the two that the pod says.
fn budget(pod: &Pod) -> Option<(String, String)> {
    let keys = [annotations::JDB_MIN_AVAILABLE, annotations::JDB_MAX_UNAVAILABLE];
    keys.iter().find_map(|key| {
        let value = pod.metadata.annotation(key)?;
        Some(((*key).to_owned(), value.to_owned()))
    })
}

fn copied(from: &BTreeMap<String, String>, keys: &[&str]) -> BTreeMap<String, String> {
    let found = keys.iter().filter_map(|key| from.get_key_value(*key));
    found.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The pod's owners if one of them controls it, otherwise the pod.
fn owner_references(pod: &Pod) -> Vec<OwnerReference> {
    if pod.metadata.controller().is_some() {
        return pod.metadata.owner_references.clone();
    }
    vec![OwnerReference {
        api_version: kinds::POD.api_version(),
        kind: kinds::POD.kind.to_owned(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..OwnerReference::default()
    }]
}

/// The fields of a spec that have to change. A queue that the pod does not name is whatever it is.
fn spec_changes(wanted: &PodGroupSpec, found: &PodGroupSpec) -> Map<String, Value> {
    let mut changes = Map::new();
    let mut change = |key: &str, value: Value| changes.insert(key.to_owned(), value);
    if wanted.min_member != found.min_member {
        change("minMember", wanted.min_member.into());
    }
    if wanted.priority_class_name != found.priority_class_name {
        change("priorityClassName", wanted.priority_class_name.as_str().into());
    }
    if !wanted.queue.is_empty() && wanted.queue != found.queue {
        change("queue", wanted.queue.as_str().into());
    }
    if wanted.min_resources != found.min_resources {
        change("minResources", amounts(wanted, found));
    }
    if let Some(topology) = topology_change(wanted.network_topology.as_ref(), found.network_topology.as_ref())
    {
        change("networkTopology", topology);
    }
    changes
}

/// The fields of the topology that a pod speaks of, if they differ; `null` takes out what is no longer wanted.
fn topology_change(wanted: Option<&NetworkTopology>, found: Option<&NetworkTopology>) -> Option<Value> {
    let fields = |topology: &NetworkTopology| (topology.mode.clone(), topology.highest_tier_allowed);
    if wanted.map(fields) == found.map(fields) {
        return None;
    }
    let patch = wanted.map(|topology| {
        let (mode, tier) = fields(topology);
        json!({"mode": mode, "highestTierAllowed": tier})
    });
    Some(json!(patch))
}

/// The amounts that are wanted, and `null` for those that go.
fn amounts(wanted: &PodGroupSpec, found: &PodGroupSpec) -> Value {
    let mut patch = Map::new();
    for name in found.min_resources.iter().flat_map(ResourceList::keys) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, amount) in wanted.min_resources.iter().flatten() {
        patch.insert(name.clone(), json!(amount));
    }
    Value::Object(patch)
}

/// The entries that are not there with their value.
fn missing(wanted: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> Map<String, Value> {
    let differing = wanted
        .iter()
        .filter(|(key, value)| found.get(*key) != Some(*value));
    differing
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect()
}
