//! Volumes: whether a pod's claims can be served on a node.
//!
//! ```text
//! claim ── bound ──────────► its volume: zone, node affinity, attach limit
//!       ── waits for a node ► an available volume that fits, or one that can be made there
//!       ── neither ─────────► the pod cannot be judged yet (pre-predicate)
//! ```

pub mod binding;
mod capacity;
mod limits;
mod score;
mod zone;

pub(super) use limits::Limits;
pub(super) use score::Shape;
pub(super) use zone::Zones;

use crate::ids::{NodeId, TaskId};
use crate::model::Model;
use crate::model::class::label;
use std::sync::Arc;
use volcano_api::core::{NodeSelector, PersistentVolume, PersistentVolumeClaim, StorageClass};
use volcano_api::names::messages;

/// Set on a claim once both sides of its binding are written.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The older way to name the class of a claim.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const WAIT_FOR_FIRST_CONSUMER: &str = "WaitForFirstConsumer";

/// How far a claim is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State<'a> {
    /// It has a volume; `None` when that volume does not exist.
    Bound(Option<&'a PersistentVolume>),
    /// It gets a volume once its pod has a node.
    Delayed(&'a StorageClass),
    /// Somebody else is to give it a volume first.
    Immediate,
}

/// The claims of a task: name, whether it is of an ephemeral volume, and the object if it exists.
pub(super) fn claims_of(
    m: &Model,
    task: TaskId,
) -> impl Iterator<Item = (Box<str>, bool, Option<&PersistentVolumeClaim>)> {
    let owner = m.task(task);
    m.class_of(task).claims.iter().map(move |claim| {
        let name: Box<str> = if claim.ephemeral {
            format!("{}-{}", owner.name, claim.name).into()
        } else {
            claim.name.clone()
        };
        let key = (owner.namespace, name);
        let object = m.cluster.claims.get(&key);
        (key.1, claim.ephemeral, object)
    })
}

/// The class that a claim names; empty for none.
pub(super) fn class_name(claim: &PersistentVolumeClaim) -> &str {
    let annotated = claim.metadata.annotations.get(CLASS_ANNOTATION);
    annotated
        .or(claim.spec.storage_class_name.as_ref())
        .map_or("", String::as_str)
}

/// How far a claim is.
pub(super) fn state<'a>(m: &'a Model, claim: &PersistentVolumeClaim) -> State<'a> {
    let volume = claim.spec.volume_name.as_str();
    let complete = claim.status.phase == "Bound" || claim.metadata.annotations.contains_key(BIND_COMPLETED);
    if !volume.is_empty() {
        return if complete {
            State::Bound(m.cluster.volumes.get(volume))
        } else {
            State::Immediate
        };
    }
    match m.cluster.storage_classes.get(class_name(claim)) {
        Some(class) if class.volume_binding_mode.as_deref() == Some(WAIT_FOR_FIRST_CONSUMER) => {
            State::Delayed(class)
        }
        _ => State::Immediate,
    }
}

/// The task's claims are such that nodes can be judged; otherwise why not.
pub(super) fn check(m: &Model, task: TaskId) -> Result<(), Arc<str>> {
    let mut immediate = false;
    for (name, ephemeral, claim) in claims_of(m, task) {
        let Some(claim) = claim else {
            return Err(if ephemeral {
                let wait = "waiting for ephemeral volume controller to create the persistentvolumeclaim";
                format!("{wait} {name:?}").into()
            } else {
                format!("persistentvolumeclaim {name:?} not found").into()
            });
        };
        if claim.status.phase == "Lost" {
            let volume = &claim.spec.volume_name;
            let text =
                format!("persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}");
            return Err(text.into());
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted").into());
        }
        immediate |= state(m, claim) == State::Immediate;
    }
    if immediate {
        Err(messages::UNBOUND_IMMEDIATE_CLAIMS.into())
    } else {
        Ok(())
    }
}

/// The text of a node's label.
fn node_label<'a>(m: &'a Model, node: NodeId, key: &str) -> Option<&'a str> {
    let value = label(&m.nodes[node].labels, m.strings.get(key)?)?;
    Some(m.text(value))
}

/// A node selector of a storage object holds on a node.
fn selects(m: &Model, selector: &NodeSelector, node: NodeId) -> bool {
    selector.node_selector_terms.iter().any(|term| {
        let name = m.text(m.nodes[node].name);
        !term.is_empty()
            && term
                .match_expressions
                .iter()
                .all(|e| e.matches(node_label(m, node, &e.key)))
            && term
                .match_fields
                .iter()
                .all(|f| f.key == "metadata.name" && f.matches(Some(name)))
    })
}

/// A volume can be reached from a node.
fn reaches(m: &Model, volume: &PersistentVolume, node: NodeId) -> bool {
    let required = volume
        .spec
        .node_affinity
        .as_ref()
        .and_then(|a| a.required.as_ref());
    required.is_none_or(|selector| selects(m, selector, node))
}
