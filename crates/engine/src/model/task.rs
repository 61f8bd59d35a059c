//! A pod, as far as scheduling decisions go.

use super::intake::parse_bool;
use super::status::Status;
use crate::ids::{ClassId, JobId, NodeId, Sym};
use std::sync::Arc;
use volcano_api::core::Labels;
use volcano_api::names::labels;

/// A pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// False for a free entry.
    pub live: bool,
    /// Placed by this scheduler (others only use up their node).
    pub mine: bool,
    /// Pod UID.
    pub uid: Box<str>,
    /// Pod name.
    pub name: Box<str>,
    /// Pod namespace.
    pub namespace: Sym,
    /// Labels, sorted by key.
    pub labels: Box<[(Sym, Sym)]>,
    /// The job that it belongs to, if any.
    pub job: Option<JobId>,
    /// Index of its role in the job's roles; a pod that names none has the role of the empty name.
    pub role: Option<u16>,
    /// Index of its sub-job in the job's sub-jobs.
    pub sub_job: u32,
    /// Position in the job's list of tasks.
    pub position: u32,
    /// All that filters and scores can see of it.
    pub class: ClassId,
    /// Larger goes first.
    pub priority: i32,
    /// The index at the end of a controller-made name (`job-task-3`), the first tie-break of task order.
    pub index: Option<u64>,
    /// Microseconds since 1970.
    pub created: i64,
    /// Where it is in its life.
    pub status: Status,
    /// The same as its object last showed it.
    pub status_seen: Status,
    /// The node that it is on, in whatever state.
    pub node: Option<NodeId>,
    /// Evicted in the running cycle: its place counts as free for filters, not for idle.
    pub evicted_now: bool,
    /// Its eviction was decided and handed to the executor; the pod object may not show it yet.
    pub evicting: bool,
    /// It was given a node and could not be bound to it: its gang had its room, and has a first claim on it.
    pub bind_failed: bool,
    /// Node that an earlier cycle made room on for this pod.
    pub nominated: Option<Sym>,
    /// The same as last written or read.
    pub nominated_written: Option<Sym>,
    /// The same as the pod object last showed it: what is on its way does not show yet.
    pub nominated_seen: Option<Sym>,
    /// May be evicted for others.
    pub preemptable: bool,
    /// Its preemption policy is `Never`.
    pub never_preempts: bool,
    /// Critical to the cluster: never evicted by anything (conformance).
    pub critical: bool,
    /// Requests nothing.
    pub best_effort: bool,
    /// Scheduling gates.
    pub gate: Gate,
    /// It asked to be held back by the queue-allocation gate until its queue has room, and that feature is on.
    pub asks_queue: bool,
    /// Its queue has room for it: the queue-allocation gate is being removed.
    pub gate_opened: bool,
    /// When it started, microseconds since 1970.
    pub started: Option<i64>,
    /// The `PodScheduled` condition that the API server has or is about to have, reason and message: read at first sight,
    /// and written here alone from then on.
    pub condition: Option<(Arc<str>, Arc<str>)>,
}

/// What scheduling gates a pod has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Gate {
    /// None: it may be placed.
    #[default]
    None,
    /// Only the queue-allocation gate of this scheduler.
    QueueAllocation,
    /// Some other gate: somebody else holds it back.
    Foreign,
}

impl Task {
    /// Held back by a scheduling gate.
    pub fn gated(&self) -> bool {
        self.gate != Gate::None
    }

    /// The queue-allocation gate is to be removed once the queue has room.
    pub fn waits_for_queue(&self) -> bool {
        self.gate == Gate::QueueAllocation && self.asks_queue && !self.gate_opened
    }

    /// Its queue has let it through the gate: what it requests is set aside for it until it is placed.
    pub fn is_promised(&self) -> bool {
        self.asks_queue && self.status == Status::Pending && (!self.gated() || self.gate_opened)
    }
}

/// A pod may be evicted for others; an annotation goes before a label, and a word that is no boolean forbids it.
pub fn is_preemptable(annotations: &Labels, labels: &Labels) -> bool {
    either(annotations, labels, labels::PREEMPTABLE).is_none_or(|text| parse_bool(text).unwrap_or(false))
}

/// The role that a pod names, likewise; empty for none.
pub fn role_name<'a>(annotations: &'a Labels, labels: &'a Labels) -> &'a str {
    either(annotations, labels, labels::TASK_SPEC).unwrap_or("")
}

fn either<'a>(first: &'a Labels, second: &'a Labels, key: &str) -> Option<&'a str> {
    first
        .get(key)
        .or_else(|| second.get(key))
        .map(String::as_str)
        .filter(|text| !text.is_empty())
}
