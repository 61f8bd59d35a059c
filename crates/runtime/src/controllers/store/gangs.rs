//! Pods that have no Job, by the PodGroup that they share; and the ReplicaSets and StatefulSets that make such pods.

use super::{Key, Place, Store, key};
use crate::controllers::kinds::{Kind, number};
use volcano_api::core::{Meta, Pod, PodSpec, Workload};
use volcano_api::meta::{ObjectMeta, OwnerReference};
use volcano_api::names::kinds;
use volcano_reconcile::pod_group::{self, Owner, group_name_of};

/// Pods that share a PodGroup.
#[derive(Default)]
pub struct Gang {
    /// The pods, in no order.
    pub pods: Vec<pod_group::Pod>,
    /// What makes them, if that is watched.
    pub workload: Option<Owner>,
}

/// Metadata in the form that PodGroups are made from.
pub fn object_meta(meta: &Meta) -> ObjectMeta {
    let owner = |owner: &volcano_api::core::OwnerReference| OwnerReference {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: owner.controller.then_some(true),
        block_owner_deletion: owner.block_owner_deletion.then_some(true),
        ..OwnerReference::default()
    };
    ObjectMeta {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        creation_timestamp: meta.creation_timestamp,
        deletion_timestamp: meta.deletion_timestamp,
        labels: meta.labels.clone(),
        annotations: meta.annotations.clone(),
        owner_references: meta.owner_references.iter().map(owner).collect(),
        ..ObjectMeta::default()
    }
}

/// Name of the PodGroup that a pod without a Job would be in.
pub fn group_of(pod: &Pod) -> String {
    let controller = pod.metadata.controller();
    group_name_of(controller.map_or(&pod.metadata.uid, |owner| &owner.uid))
}

/// The pod without what does not matter for its PodGroup.
fn trimmed(pod: Pod) -> pod_group::Pod {
    let spec = pod.spec;
    let mut status = pod.status;
    status.conditions = Vec::new();
    pod_group::Pod {
        metadata: object_meta(&pod.metadata),
        spec: PodSpec {
            scheduler_name: spec.scheduler_name,
            priority_class_name: spec.priority_class_name,
            containers: spec.containers,
            init_containers: spec.init_containers,
            resources: spec.resources,
            overhead: spec.overhead,
            ..PodSpec::default()
        },
        status,
    }
}

impl Store {
    /// The pods of a PodGroup.
    pub fn gang(&self, at: &str) -> Option<&Gang> {
        self.gangs.get(at)
    }

    pub(super) fn put_gang_pod(&mut self, gang: String, pod: Pod) {
        let at = key(&pod.metadata.namespace, &pod.metadata.name);
        let version = number(&pod.metadata.resource_version);
        let pod = trimmed(pod);
        let pods = &mut self.gangs.entry(gang.clone()).or_default().pods;
        match pods
            .iter_mut()
            .find(|known| known.metadata.name == pod.metadata.name)
        {
            Some(known) if number(&known.metadata.resource_version) >= version => return,
            Some(known) => *known = pod,
            None => pods.push(pod),
        }
        self.places.insert(at, Place::Gang(gang.clone()));
        self.changed.insert(Key::Gang(gang));
    }

    pub(super) fn remove_gang_pod(&mut self, gang: &str, at: &str, name: &str, version: u64) {
        let Some(entry) = self.gangs.get_mut(gang) else {
            return;
        };
        let is_it = |pod: &pod_group::Pod| {
            pod.metadata.name == name && number(&pod.metadata.resource_version) <= version
        };
        let Some(place) = entry.pods.iter().position(is_it) else {
            return;
        };
        entry.pods.swap_remove(place);
        self.places.remove(at);
        self.changed.insert(Key::Gang(gang.to_owned()));
        self.tidy_gang(gang);
    }

    /// A ReplicaSet or StatefulSet is there. Those whose pods are for other schedulers do not matter, and a cluster has
    /// many of them, unless a webhook has given such pods to one of ours: their PodGroup goes when there are to be none.
    /// It may be told of before they are; its status follows its pods, so that it is told of again.
    pub(super) fn put_workload(&mut self, kind: Kind, workload: Workload) {
        let metadata = &workload.metadata;
        let at = key(&metadata.namespace, &metadata.name);
        let gang = key(&metadata.namespace, &group_name_of(&metadata.uid));
        let is_ours = self
            .options
            .schedulers
            .contains(&workload.spec.template.spec.scheduler_name);
        let has_pods = |entry: &Gang| !entry.pods.is_empty();
        if !is_ours && !self.groups.contains_key(&gang) && !self.gangs.get(&gang).is_some_and(has_pods) {
            return self.remove_workload(kind, &at);
        }
        let version = number(&metadata.resource_version);
        let known = self.workloads.insert((kind, at.clone()), (gang.clone(), version));
        if let Some((other, _)) = known.filter(|(known, _)| *known != gang) {
            self.lose_workload(&other);
        }
        let owner = Owner {
            kind: api_kind(kind),
            metadata: object_meta(metadata),
            replicas: Some(workload.spec.replicas.unwrap_or(1)),
        };
        self.gangs.entry(gang.clone()).or_default().workload = Some(owner);
        self.changed.insert(Key::Gang(gang));
    }

    pub(super) fn remove_workload(&mut self, kind: Kind, at: &str) {
        if let Some((gang, _)) = self.workloads.remove(&(kind, at.to_owned())) {
            self.lose_workload(&gang);
        }
    }

    fn lose_workload(&mut self, gang: &str) {
        if let Some(entry) = self.gangs.get_mut(gang) {
            entry.workload = None;
        }
        self.tidy_gang(gang);
    }

    fn tidy_gang(&mut self, gang: &str) {
        let is_empty = |entry: &Gang| entry.pods.is_empty() && entry.workload.is_none();
        if self.gangs.get(gang).is_some_and(is_empty) {
            self.gangs.remove(gang);
        }
    }
}

/// The kind of an owner of pods.
pub fn api_kind(kind: Kind) -> volcano_api::names::Kind {
    match kind {
        Kind::StatefulSet => kinds::STATEFUL_SET,
        _ => kinds::REPLICA_SET,
    }
}
