//! From single objects to changes of the cluster, by kind.

use crate::fault::Fault;
use crate::input::Entry;
use serde::de::DeserializeOwned;
use volcano_api::batch::Job;
use volcano_api::core::{
    CsiDriver, CsiNode, CsiStorageCapacity, Meta, Namespace, Node, PersistentVolume, PersistentVolumeClaim,
    Pod, PodDisruptionBudget, PriorityClass, ResourceQuota, StorageClass,
};
use volcano_api::meta::ObjectMeta;
use volcano_api::names::kinds;
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::shard::NodeShard;
use volcano_api::topology::HyperNode;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;

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
pub fn take(entry: &Entry<'_>) -> Result<Taken, Fault> {
    let Some(kind) = Kind::find(entry.group(), &entry.kind) else {
        return Ok(Taken::Skipped(why_skipped(entry.group(), &entry.kind)));
    };
    let namespaced = kind.is_namespaced();
    Ok(Taken::Object(match kind {
        Kind::Pod => Delta::Pod(Box::new(slim::<Pod>(entry, |o| &mut o.metadata, namespaced)?)),
        Kind::Node => Delta::Node(Box::new(slim::<Node>(entry, |o| &mut o.metadata, namespaced)?)),
        Kind::Namespace => Delta::Namespace(slim::<Namespace>(entry, |o| &mut o.metadata, namespaced)?),
        Kind::PriorityClass => {
            Delta::PriorityClass(slim::<PriorityClass>(entry, |o| &mut o.metadata, namespaced)?)
        }
        Kind::Claim => Delta::Claim(Box::new(slim::<PersistentVolumeClaim>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::Volume => Delta::Volume(Box::new(slim::<PersistentVolume>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::ResourceQuota => Delta::ResourceQuota(Box::new(slim::<ResourceQuota>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::StorageClass => Delta::StorageClass(Box::new(slim::<StorageClass>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::CsiNode => Delta::CsiNode(Box::new(slim::<CsiNode>(entry, |o| &mut o.metadata, namespaced)?)),
        Kind::CsiDriver => Delta::CsiDriver(Box::new(slim::<CsiDriver>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::StorageCapacity => Delta::StorageCapacity(Box::new(slim::<CsiStorageCapacity>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::DisruptionBudget => Delta::DisruptionBudget(Box::new(slim::<PodDisruptionBudget>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::PodGroup => Delta::PodGroup(Box::new(own::<PodGroup>(entry, |o| &mut o.metadata, namespaced)?)),
        Kind::Queue => Delta::Queue(Box::new(own::<Queue>(entry, |o| &mut o.metadata, namespaced)?)),
        Kind::NodeShard => Delta::NodeShard(Box::new(own::<NodeShard>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
        Kind::HyperNode => Delta::HyperNode(Box::new(own::<HyperNode>(
            entry,
            |o| &mut o.metadata,
            namespaced,
        )?)),
    }))
}

/// Whether it is a Job of this project's own kind.
pub fn is_job(entry: &Entry<'_>) -> bool {
    entry.group() == kinds::BATCH && entry.kind == kinds::JOB.kind
}

/// Reads a Job.
///
/// # Errors
/// When it is none, or has no name.
pub fn job(entry: &Entry<'_>) -> Result<Job, Fault> {
    own::<Job>(entry, |job| &mut job.metadata, true)
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
) -> Result<T, Fault> {
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
) -> Result<T, Fault> {
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
) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::new(format!("{}: metadata.name: required", entry.title())));
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

/// The order in which objects enter an empty model: what others refer to comes first, so that nothing is
/// computed twice.
pub fn rank(delta: &Delta) -> Option<usize> {
    let (kind, _, _) = delta.key()?;
    Kind::ALL.iter().position(|other| *other == kind)
}
