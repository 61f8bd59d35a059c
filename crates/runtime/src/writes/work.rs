//! What the queue hands out to be sent, and what came of it.

use super::events::EventWrite;
use super::order::{GroupStatus, JobKey, PodCondition, PodRef, QueueStatus, ShardStatus, VolumeStep};
use std::sync::Arc;
use std::time::Duration;

/// UID of an object.
pub type Uid = Arc<str>;
/// One claim of one pod to be prepared.
pub type StepId = u64;

/// One write: a request, with the reads that it needs.
#[derive(Clone, Debug)]
pub enum Work {
    /// Bind a pod.
    Bind { pod: PodRef, node: Arc<str> },
    /// Look what became of binding a pod: nobody answered in time.
    LookAtPod { pod: PodRef, node: Arc<str> },
    /// Prepare a claim for a pod's node.
    Prepare { step: VolumeStep, node: Arc<str> },
    /// Take that back.
    TakeBack { step: VolumeStep, node: Arc<str> },
    /// Tell in a pod's conditions that it is evicted.
    Mark { pod: PodRef, reason: &'static str },
    /// Delete a pod.
    Delete { pod: PodRef },
    /// Write the status of a PodGroup.
    Group(Arc<GroupStatus>),
    /// Write why a pod waits; `first` when it is not known to have had the condition before.
    Condition { value: Arc<PodCondition>, first: bool },
    /// Write what a queue uses.
    Queue(Arc<QueueStatus>),
    /// Write which nodes this scheduler uses.
    Shard(Arc<ShardStatus>),
    /// Remove the queue-allocation gate of a pod.
    OpenGate(Arc<PodRef>),
    /// Write an event.
    Event(EventWrite),
}

/// Which write an answer belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ticket {
    Bind(Uid),
    Step(StepId),
    Evict(Uid),
    Group(JobKey),
    Condition(Uid),
    Queue(Arc<str>),
    Shard(Arc<str>),
    Gate(Uid),
    Event(u64),
}

/// What writes have in common that fail together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bind,
    Step,
    Evict,
    Group,
    Condition,
    Queue,
    Shard,
    Gate,
    Event,
}

impl Kind {
    pub const COUNT: usize = 9;
}

impl Ticket {
    pub fn kind(&self) -> Kind {
        match self {
            Ticket::Bind(_) => Kind::Bind,
            Ticket::Step(_) => Kind::Step,
            Ticket::Evict(_) => Kind::Evict,
            Ticket::Group(_) => Kind::Group,
            Ticket::Condition(_) => Kind::Condition,
            Ticket::Queue(_) => Kind::Queue,
            Ticket::Shard(_) => Kind::Shard,
            Ticket::Gate(_) => Kind::Gate,
            Ticket::Event(_) => Kind::Event,
        }
    }
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Written, or there was nothing left to write. The object's version where it was asked for.
    Done { version: Option<String> },
    /// The object is gone, or another one has its name.
    Gone,
    /// Somebody else has it: a pod is bound to another node, a volume belongs to another claim.
    Taken { why: String },
    /// It may succeed later.
    Later {
        why: String,
        retry_after: Option<Duration>,
    },
    /// It will not succeed as it is.
    Refused { why: String, forbidden: bool },
    /// Not sent: the lease is lost.
    Fenced,
}

impl Answer {
    pub const DONE: Answer = Answer::Done { version: None };
}
