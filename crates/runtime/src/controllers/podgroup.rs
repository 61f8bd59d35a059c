//! The PodGroup controller: looks at the pods of one owner that have no Job.
//!
//! Owners that are not watched are read for the look: their annotations may have to go to the PodGroup.

use super::core::Look;
use super::store::{Gang, Store};
use serde_json::Value;
use volcano_api::meta::ObjectMeta;
use volcano_api::names::kinds;
use volcano_reconcile::pod_group::{self, Observed, Owner, owners, plan};
use volcano_reconcile::write::{Plan, Target};

/// What is to be done for a PodGroup.
pub fn look(store: &Store, at: &str) -> Look {
    let Some(gang) = store.gang(at) else {
        return Look::Plan(Plan::default());
    };
    let unread = to_read(store, gang, at);
    if unread.is_empty() {
        return Look::Plan(decide(store, at, Vec::new()));
    }
    Look::Read(unread)
}

/// What is to be done, with the owners that were read.
pub fn look_again(store: &Store, at: &str, read: &[(Target, Option<Value>)]) -> Plan {
    let there = read.iter().filter_map(|(target, object)| {
        let owner = owner(target, object.as_ref()?)?;
        // A new one of the same name owns other pods.
        (owner.metadata.uid == target.uid).then_some(owner)
    });
    decide(store, at, there.collect())
}

fn decide(store: &Store, at: &str, mut read: Vec<Owner>) -> Plan {
    let Some(gang) = store.gang(at) else {
        return Plan::default();
    };
    read.extend(gang.workload.clone());
    if let Some(first) = newest(gang) {
        let order: Vec<_> = owners(&first.metadata);
        read.sort_by_key(|owner| order.iter().position(|target| target.uid == owner.metadata.uid));
    }
    let observed = Observed {
        pods: &gang.pods,
        owners: &read,
        group: store.group(at),
    };
    plan(store.options(), &observed)
}

/// Owners that matter now and are not known: only for a PodGroup that is to be made or adapted.
fn to_read(store: &Store, gang: &Gang, at: &str) -> Vec<Target> {
    let options = store.options();
    let waits = gang.pods.iter().any(|pod| options.is_waiting(pod));
    if !options.inherit_owner_annotations || !(waits || store.group(at).is_none()) {
        return Vec::new();
    }
    let known = gang.workload.as_ref().map(|owner| owner.metadata.uid.as_str());
    let wanted = newest(gang).map(|pod| owners(&pod.metadata));
    let mut wanted = wanted.unwrap_or_default();
    wanted.retain(|target| Some(target.uid.as_str()) != known);
    wanted
}

fn newest(gang: &Gang) -> Option<&pod_group::Pod> {
    let by_age = |pod: &&pod_group::Pod| (pod.metadata.creation_timestamp, pod.metadata.name.clone());
    gang.pods.iter().max_by_key(by_age)
}

fn owner(target: &Target, object: &Value) -> Option<Owner> {
    let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone()).ok()?;
    let counts = matches!(target.kind, kinds::REPLICA_SET | kinds::STATEFUL_SET);
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
    Some(Owner {
        kind: target.kind,
        metadata,
        replicas: counts.then(|| i32::try_from(replicas).unwrap_or(i32::MAX)),
    })
}
