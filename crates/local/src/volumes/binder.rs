//! Which claim gets which volume: a pure decision over what there is.
//!
//! ```text
//! claim ─┬─ a volume is set aside for it, or one fits ──> the volume names the claim ──> both are Bound
//!        ├─ its class waits for a node, and has none ──> nothing yet
//!        └─ else ──> a volume is made, set aside for it
//! volume whose claim is gone ──> released
//! ```
//!
//! Every step is decided anew from what the watches tell; a write on something that has changed since is refused.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::core::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use volcano_api::names::annotations::{BOUND_BY_CONTROLLER, SELECTED_NODE};
use volcano_api::quantity::Quantity;

/// Set on a claim once both sides of its binding are written.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The older way to name the class of a claim.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const WAIT_FOR_FIRST_CONSUMER: &str = "WaitForFirstConsumer";
const STORAGE: &str = "storage";
const YES: &str = "yes";
const BOUND: &str = "Bound";

/// Namespace and name.
pub type Key = (String, String);

/// Something to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A change of a volume.
    Volume {
        /// Its name.
        name: String,
        /// Whether it is one of its status.
        status: bool,
        /// The change.
        patch: Value,
    },
    /// A change of a claim.
    Claim {
        /// Which.
        key: Key,
        /// Whether it is one of its status.
        status: bool,
        /// The change.
        patch: Value,
    },
    /// A new volume.
    Make {
        /// Its name.
        name: String,
        /// The class that it is of.
        class: String,
        /// The volume, but for its place.
        object: Value,
    },
    /// The claim of the volume of this name is gone.
    Release(String),
}

/// Claims, volumes and classes as they are known.
#[derive(Debug, Default)]
pub struct Binder {
    /// Claims.
    pub claims: BTreeMap<Key, PersistentVolumeClaim>,
    /// Volumes by name.
    pub volumes: BTreeMap<String, PersistentVolume>,
    /// Classes by name.
    pub classes: BTreeMap<String, StorageClass>,
}

impl Binder {
    /// What is to be written: each list in its order, and only as far as it is not refused.
    pub fn decide(&self) -> Vec<Vec<Write>> {
        let mut given = BTreeSet::new();
        let waiting = self.claims.values().filter(|claim| is_waiting(claim));
        let mut writes: Vec<_> = waiting.map(|claim| self.serve(claim, &mut given)).collect();
        let others = self
            .volumes
            .iter()
            .filter(|(name, _)| !given.contains(name.as_str()));
        writes.extend(others.filter_map(|(_, volume)| Some(vec![self.look_at(volume)?])));
        writes.retain(|writes| !writes.is_empty());
        writes
    }

    fn serve<'a>(&'a self, claim: &PersistentVolumeClaim, given: &mut BTreeSet<&'a str>) -> Vec<Write> {
        let named = claim.spec.volume_name.as_str();
        let volume = if named.is_empty() {
            self.set_aside(claim).or_else(|| self.fitting(claim, given))
        } else {
            let volume = self.volumes.get(named);
            volume.filter(|volume| volume.spec.claim_ref.is_none() || is_for(volume, claim))
        };
        match volume {
            Some(volume) => {
                given.insert(&volume.metadata.name);
                bind(claim, volume)
            }
            None if named.is_empty() && self.can_be_made(claim) => vec![make(claim)],
            None => Vec::new(),
        }
    }

    /// The volume that names the claim already: its owner, the scheduler or an earlier step chose it.
    fn set_aside(&self, claim: &PersistentVolumeClaim) -> Option<&PersistentVolume> {
        let mut volumes = self.volumes.values();
        volumes.find(|volume| is_for(volume, claim) && volume.metadata.deletion_timestamp.is_none())
    }

    /// The smallest volume that fits. Where the class waits for a node, the scheduler chooses.
    fn fitting(&self, claim: &PersistentVolumeClaim, given: &BTreeSet<&str>) -> Option<&PersistentVolume> {
        if self.is_delayed(claim) {
            return None;
        }
        let fits = |volume: &&PersistentVolume| {
            !given.contains(volume.metadata.name.as_str()) && is_free_for(volume, claim)
        };
        let free = self.volumes.values().filter(fits);
        free.min_by_key(|volume| capacity(volume))
    }

    fn class(&self, claim: &PersistentVolumeClaim) -> Option<&StorageClass> {
        self.classes.get(class_name(claim)?)
    }

    fn is_delayed(&self, claim: &PersistentVolumeClaim) -> bool {
        let mode = self
            .class(claim)
            .and_then(|class| class.volume_binding_mode.as_deref());
        mode == Some(WAIT_FOR_FIRST_CONSUMER)
    }

    /// Whether a volume may be made for a claim. There is one place for all of them, so a class that is not there is as good
    /// as any: manifests name the classes of the cluster that they are for.
    fn can_be_made(&self, claim: &PersistentVolumeClaim) -> bool {
        if class_name(claim) == Some("") {
            return false;
        }
        let is_manual = |class: &StorageClass| class.provisioner == NO_PROVISIONER;
        let has_node = claim.metadata.annotations.contains_key(SELECTED_NODE);
        !self.class(claim).is_some_and(is_manual) && (has_node || !self.is_delayed(claim))
    }

    /// What is to be done with a volume that no claim is being given.
    fn look_at(&self, volume: &PersistentVolume) -> Option<Write> {
        if volume.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let phase = volume.status.phase.as_str();
        let claim = match &volume.spec.claim_ref {
            Some(claim) if !claim.uid.is_empty() => claim,
            _ => return (phase != "Available").then(|| volume_phase(volume, "Available")),
        };
        let known = self.claims.get(&(claim.namespace.clone(), claim.name.clone()));
        let is_there = known.is_some_and(|known| known.metadata.uid == claim.uid);
        let name = &volume.metadata.name;
        (!is_there && phase != "Released").then(|| Write::Release(name.clone()))
    }
}

fn is_waiting(claim: &PersistentVolumeClaim) -> bool {
    let is_bound = claim.status.phase == BOUND && !claim.spec.volume_name.is_empty();
    !is_bound && claim.metadata.deletion_timestamp.is_none()
}

/// The class that a claim names: an empty one wants a volume without a class, and none made for it.
fn class_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    let annotated = claim.metadata.annotations.get(CLASS_ANNOTATION);
    let named = annotated.or(claim.spec.storage_class_name.as_ref());
    named.map(String::as_str)
}

fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let meta = &claim.metadata;
    volume.spec.claim_ref.as_ref().is_some_and(|one| {
        one.namespace == meta.namespace
            && one.name == meta.name
            && (one.uid.is_empty() || one.uid == meta.uid)
    })
}

fn size(claim: &PersistentVolumeClaim) -> Quantity {
    let requests = &claim.spec.resources.requests;
    requests.get(STORAGE).copied().unwrap_or_default()
}

fn capacity(volume: &PersistentVolume) -> Quantity {
    volume.spec.capacity.get(STORAGE).copied().unwrap_or_default()
}

fn is_free_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let is_block = |mode: &Option<String>| mode.as_deref() == Some("Block");
    let modes = &volume.spec.access_modes;
    let selector = claim.spec.selector.as_ref();
    volume.spec.claim_ref.is_none()
        && volume.metadata.deletion_timestamp.is_none()
        && volume.spec.storage_class_name == class_name(claim).unwrap_or_default()
        && is_block(&volume.spec.volume_mode) == is_block(&claim.spec.volume_mode)
        && size(claim) <= capacity(volume)
        && claim.spec.access_modes.iter().all(|mode| modes.contains(mode))
        && selector.is_none_or(|selector| selector.matches(&volume.metadata.labels))
}

/// The next steps of a binding. The volume names its claim first, so that no other claim gets it.
fn bind(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Vec<Write> {
    let key = (claim.metadata.namespace.clone(), claim.metadata.name.clone());
    let name = &volume.metadata.name;
    let owner = volume.spec.claim_ref.as_ref();
    if owner.is_none_or(|owner| owner.uid != claim.metadata.uid) {
        let mut patch = json!({
            "metadata": {"resourceVersion": volume.metadata.resource_version},
            "spec": {"claimRef": reference(claim)},
        });
        if owner.is_none() {
            patch["metadata"]["annotations"] = json!({BOUND_BY_CONTROLLER: YES});
        }
        let name = name.clone();
        return vec![Write::Volume {
            name,
            status: false,
            patch,
        }];
    }
    let mut writes = Vec::new();
    if claim.spec.volume_name.is_empty() {
        let patch = json!({
            "metadata": {
                "resourceVersion": claim.metadata.resource_version,
                "annotations": {BIND_COMPLETED: YES, BOUND_BY_CONTROLLER: YES},
            },
            "spec": {"volumeName": name},
        });
        let key = key.clone();
        writes.push(Write::Claim {
            key,
            status: false,
            patch,
        });
    }
    if volume.status.phase != BOUND {
        writes.push(volume_phase(volume, BOUND));
    }
    let status = json!({
        "phase": BOUND,
        "accessModes": volume.spec.access_modes,
        "capacity": volume.spec.capacity,
    });
    let patch = json!({"metadata": {"uid": claim.metadata.uid}, "status": status});
    writes.push(Write::Claim {
        key,
        status: true,
        patch,
    });
    writes
}

fn volume_phase(volume: &PersistentVolume, phase: &str) -> Write {
    let uid = &volume.metadata.uid;
    Write::Volume {
        name: volume.metadata.name.clone(),
        status: true,
        patch: json!({"metadata": {"uid": uid}, "status": {"phase": phase}}),
    }
}

fn reference(claim: &PersistentVolumeClaim) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
    })
}

/// A volume for a claim, of the size that it asks for. Its name follows from the claim, so that there is never a second one.
fn make(claim: &PersistentVolumeClaim) -> Write {
    let name = format!("pvc-{}", claim.metadata.uid);
    let class = class_name(claim).unwrap_or_default().to_owned();
    let object = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class,
            "accessModes": claim.spec.access_modes,
            "capacity": {STORAGE: size(claim)},
            "volumeMode": claim.spec.volume_mode,
            "claimRef": reference(claim),
        },
    });
    Write::Make { name, class, object }
}

#[cfg(test)]
mod tests;
