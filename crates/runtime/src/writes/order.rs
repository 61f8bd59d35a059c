//! What the scheduler wants written, and what came of it. Plain values: the model's ids do not leave its thread.

use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use volcano_api::time::Time;

/// One incarnation of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodRef {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// UID.
    pub uid: Arc<str>,
}

/// A claim by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimRef {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// UID.
    pub uid: Arc<str>,
}

/// `namespace/name` of a PodGroup.
pub type JobKey = Arc<str>;

/// Which pause of a gang: each failed bind of it begins a new one. Only who knows of the latest can end it.
pub type Pause = u64;

/// Something to write.
#[derive(Clone, Debug)]
pub enum Order {
    /// Bind tasks of one gang, all of them.
    Bind(GangBind),
    /// The gang of a failed bind is complete without it: send the rest.
    Resume(JobKey, Pause),
    /// The gang of a failed bind cannot be completed now: give back what was not sent.
    Release(JobKey, Pause),
    /// A pod is gone, or going, by its UID: its bind is given back, unless it was sent.
    PodGone(Arc<str>),
    /// A node is gone: binds to it are given back, unless they were sent.
    NodeGone(Arc<str>),
    /// What the API server says of a claim that binds may wait for.
    Claim(ClaimRef, ClaimState),
    /// Evict a pod.
    Evict(Eviction),
    /// Write the status of a PodGroup; a newer one replaces it while it waits.
    GroupStatus(GroupStatus),
    /// Write why a pod waits; a newer one replaces it while it waits.
    PodCondition(PodCondition),
    /// Write what a queue uses; a newer one replaces it while it waits.
    QueueStatus(QueueStatus),
    /// Remove the queue-allocation gate of a pod.
    OpenGate(PodRef),
    /// Write which nodes this scheduler uses; a newer one replaces it while it waits.
    ShardStatus(ShardStatus),
    /// Tell users.
    Event(Event),
}

/// Binds of one gang.
#[derive(Clone, Debug)]
pub struct GangBind {
    /// The gang.
    pub job: JobKey,
    /// Its members.
    pub binds: Vec<PodBind>,
    /// The pause that these binds end, if one is known.
    pub ends: Option<Pause>,
}

/// One bind.
#[derive(Clone, Debug)]
pub struct PodBind {
    /// The pod.
    pub pod: PodRef,
    /// The node.
    pub node: Arc<str>,
    /// When the pod was made, for metrics.
    pub created: Option<Time>,
    /// What its claims need first.
    pub volumes: Vec<VolumeStep>,
}

/// What a claim needs before its pod is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStep {
    /// The claim.
    pub claim: ClaimRef,
    /// A volume that is there, to be set aside for it (`spec.claimRef`). `None`: the class's driver is to make one
    /// for the pod's node (annotation `volume.kubernetes.io/selected-node`).
    pub volume: Option<Arc<str>>,
}

/// The state of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// It has its volume.
    Bound,
    /// It has none yet; the node that one is being made for, if any.
    Waiting {
        /// Value of `volume.kubernetes.io/selected-node`.
        selected_node: Option<Arc<str>>,
    },
    /// It is gone.
    Gone,
}

/// An eviction.
#[derive(Clone, Debug)]
pub struct Eviction {
    /// The victim.
    pub pod: PodRef,
    /// `preempt`, `reclaim`, …
    pub reason: &'static str,
}

/// Status of a PodGroup, as JSON of its `status`.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// The group.
    pub job: JobKey,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// UID.
    pub uid: Arc<str>,
    /// Which decision this is.
    pub sequence: u64,
    /// How long the first one waits for a newer one to replace it.
    pub settles: Duration,
    /// The fields that belong to the scheduler.
    pub status: Value,
}

/// The `PodScheduled` condition (False) of a pod.
#[derive(Clone, Debug)]
pub struct PodCondition {
    /// The pod.
    pub pod: PodRef,
    /// Machine-readable cause.
    pub reason: &'static str,
    /// The cause in words.
    pub message: Arc<str>,
    /// The node that room is being made on; empty to take an earlier one back, `None` to leave it as it is.
    pub nominated: Option<Arc<str>>,
}

/// Usage of a queue, as JSON of its `status.allocated`; `null` for a resource that is no longer used.
#[derive(Clone, Debug)]
pub struct QueueStatus {
    /// The queue.
    pub name: Arc<str>,
    /// Amounts by resource name.
    pub allocated: Value,
}

/// Nodes of a scheduler, where several divide them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardStatus {
    /// Its NodeShard.
    pub name: Arc<str>,
    /// Nodes that it uses.
    pub in_use: Vec<String>,
    /// Nodes that it waits for.
    pub to_add: Vec<String>,
    /// Nodes that it is to give up.
    pub to_remove: Vec<String>,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Such as `v1`.
    pub api_version: Cow<'static, str>,
    /// Such as `Pod`.
    pub kind: &'static str,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// UID.
    pub uid: Arc<str>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is about.
    pub object: ObjectRef,
    /// A warning; otherwise normal.
    pub warning: bool,
    /// Machine-readable cause.
    pub reason: Cow<'static, str>,
    /// What to tell.
    pub message: Arc<str>,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A pod is bound.
    Bound(PodRef),
    /// A pod could not be bound, or its bind was given back unsent: it waits again.
    BindFailed {
        /// The pod.
        pod: PodRef,
        /// Its gang.
        job: JobKey,
        /// The rest of its gang waits until `Resume` or `Release`, or a new bind of the gang, that ends this pause.
        paused: Option<Pause>,
    },
    /// A pod could not be evicted: it stays.
    EvictFailed(PodRef),
    /// A PodGroup's status is written: the version that the API server gave it; `None` when the group is gone or its
    /// version is not known.
    GroupWritten {
        /// The group.
        job: JobKey,
        /// Which decision was written.
        sequence: u64,
        /// `metadata.resourceVersion` after the write.
        resource_version: Option<String>,
    },
}
