//! From single objects to changes of the cluster, by kind.

use super::input::Entry;
use crate::failure::Failure;
use serde::de::DeserializeOwned;
use volcano_api::core::{
    CsiNode, Meta, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PriorityClass, ResourceQuota, StorageClass,
};
use volcano_api::meta::ObjectMeta;
use volcano_api::names::kinds;
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::topology::HyperNode;
use volcano_engine::model::delta::Delta;

/// Where objects without a namespace go that must have one.
pub const DEFAULT_NAMESPACE: &str = "default";

/// What an object is to the plan.
#[expect(clippy::large_enum_variant, reason = "taken apart at once, never kept")]
pub enum Taken {
    /// A part of the cluster.
    Object(Delta),
    /// Not used; the text says why.
    Skipped(&'static str),
}

/// Reads an object of a kind that scheduling uses.
pub fn take(entry: &Entry<'_>) -> Result<Taken, Failure> {
    let delta = match (entry.group(), entry.kind.as_str()) {
        ("", "Pod") => Delta::Pod(Box::new(slim::<Pod>(entry, |o| &mut o.metadata, true)?)),
        ("", "Node") => Delta::Node(Box::new(slim::<Node>(entry, |o| &mut o.metadata, false)?)),
        ("", "Namespace") => Delta::Namespace(slim::<Namespace>(entry, |o| &mut o.metadata, false)?),
        ("", "PersistentVolumeClaim") => Delta::Claim(Box::new(slim::<PersistentVolumeClaim>(
            entry,
            |o| &mut o.metadata,
            true,
        )?)),
        ("", "PersistentVolume") => Delta::Volume(Box::new(slim::<PersistentVolume>(
            entry,
            |o| &mut o.metadata,
            false,
        )?)),
        ("", "ResourceQuota") => {
            Delta::ResourceQuota(Box::new(slim::<ResourceQuota>(entry, |o| &mut o.metadata, true)?))
        }
        ("storage.k8s.io", "StorageClass") => {
            Delta::StorageClass(Box::new(slim::<StorageClass>(entry, |o| &mut o.metadata, false)?))
        }
        ("storage.k8s.io", "CSINode") => {
            Delta::CsiNode(Box::new(slim::<CsiNode>(entry, |o| &mut o.metadata, false)?))
        }
        ("policy", "PodDisruptionBudget") => Delta::DisruptionBudget(Box::new(slim::<PodDisruptionBudget>(
            entry,
            |o| &mut o.metadata,
            true,
        )?)),
        ("scheduling.k8s.io", "PriorityClass") => {
            Delta::PriorityClass(slim::<PriorityClass>(entry, |o| &mut o.metadata, false)?)
        }
        (kinds::SCHEDULING, "PodGroup") => {
            Delta::PodGroup(Box::new(own::<PodGroup>(entry, |o| &mut o.metadata, true)?))
        }
        (kinds::SCHEDULING, "Queue") => {
            Delta::Queue(Box::new(own::<Queue>(entry, |o| &mut o.metadata, false)?))
        }
        (kinds::TOPOLOGY, "HyperNode") => {
            Delta::HyperNode(Box::new(own::<HyperNode>(entry, |o| &mut o.metadata, false)?))
        }
        (group, kind) => return Ok(Taken::Skipped(why_skipped(group, kind))),
    };
    Ok(Taken::Object(delta))
}

fn why_skipped(group: &str, kind: &str) -> &'static str {
    match (group, kind) {
        (kinds::BATCH, "Job") => {
            "its PodGroup and pods are what is scheduled (--submit FILE plans a new Job)"
        }
        ("resource.k8s.io", _) => "dynamic resource allocation is not planned yet",
        _ => "not used by scheduling",
    }
}

/// Reads an object that has slim metadata.
fn slim<T: DeserializeOwned>(
    entry: &Entry<'_>,
    metadata: fn(&mut T) -> &mut Meta,
    namespaced: bool,
) -> Result<T, Failure> {
    let mut object: T = entry.decode()?;
    let meta = metadata(&mut object);
    complete(entry, namespaced, &meta.name, &mut meta.namespace, &mut meta.uid)?;
    Ok(object)
}

/// Reads an object of this project's own kinds.
fn own<T: DeserializeOwned>(
    entry: &Entry<'_>,
    metadata: fn(&mut T) -> &mut ObjectMeta,
    namespaced: bool,
) -> Result<T, Failure> {
    let mut object: T = entry.decode()?;
    let meta = metadata(&mut object);
    complete(entry, namespaced, &meta.name, &mut meta.namespace, &mut meta.uid)?;
    Ok(object)
}

fn complete(
    entry: &Entry<'_>,
    namespaced: bool,
    name: &str,
    namespace: &mut String,
    uid: &mut String,
) -> Result<(), Failure> {
    if name.is_empty() {
        return Err(Failure::new(format!(
            "{}: metadata.name: required",
            entry.title()
        )));
    }
    if namespaced && namespace.is_empty() {
        *namespace = DEFAULT_NAMESPACE.to_owned();
    }
    if uid.is_empty() {
        *uid = made_uid(namespace, name);
    }
    Ok(())
}

/// The uid of an object that has none yet: the same one in every run.
pub fn made_uid(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}-{name}")
    }
}

/// Kind, namespace and name of an object of the plan.
pub fn key(delta: &Delta) -> Option<(&'static str, &str, &str)> {
    Some(match delta {
        Delta::Pod(o) => ("Pod", &o.metadata.namespace, &o.metadata.name),
        Delta::Node(o) => ("Node", "", &o.metadata.name),
        Delta::Namespace(o) => ("Namespace", "", &o.metadata.name),
        Delta::Claim(o) => ("PersistentVolumeClaim", &o.metadata.namespace, &o.metadata.name),
        Delta::Volume(o) => ("PersistentVolume", "", &o.metadata.name),
        Delta::ResourceQuota(o) => ("ResourceQuota", &o.metadata.namespace, &o.metadata.name),
        Delta::StorageClass(o) => ("StorageClass", "", &o.metadata.name),
        Delta::CsiNode(o) => ("CSINode", "", &o.metadata.name),
        Delta::DisruptionBudget(o) => ("PodDisruptionBudget", &o.metadata.namespace, &o.metadata.name),
        Delta::PriorityClass(o) => ("PriorityClass", "", &o.metadata.name),
        Delta::PodGroup(o) => ("PodGroup", &o.metadata.namespace, &o.metadata.name),
        Delta::Queue(o) => ("Queue", "", &o.metadata.name),
        Delta::HyperNode(o) => ("HyperNode", "", &o.metadata.name),
        _ => return None,
    })
}

/// The order in which objects enter an empty model: what others refer to comes first, so that nothing is
/// computed twice.
pub fn rank(delta: &Delta) -> u8 {
    match delta {
        Delta::PriorityClass(_) | Delta::Namespace(_) => 0,
        Delta::Queue(_) | Delta::HyperNode(_) => 1,
        Delta::Node(_) => 2,
        Delta::PodGroup(_) => 4,
        Delta::Pod(_) => 5,
        _ => 3,
    }
}
