//! What a cycle decided, for an executor to carry out. Deciding and doing are different types.

use crate::explain::JobReport;
use crate::figures::CycleFigures;
use crate::ids::{DimId, JobId, NodeId, QueueId, TaskId};
use crate::model::job::Phase;
use crate::plugin::EvictionKind;
use crate::resource::Resource;
use std::collections::BTreeMap;
use std::sync::Arc;
use volcano_api::scheduling::PodGroupCondition;
use volcano_api::shard::NodeShardStatus;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Bind these tasks of one gang, all of them.
    Bind {
        /// The job.
        job: JobId,
        /// Which task to which node.
        binds: Vec<(TaskId, NodeId)>,
    },
    /// Evict a task for another one, which has its place in the same plan.
    Evict {
        /// The victim.
        task: TaskId,
        /// Why.
        kind: EvictionKind,
        /// For whom.
        preemptor: TaskId,
    },
    /// Write the status of a PodGroup.
    GroupStatus {
        /// The job.
        job: JobId,
        /// Phase.
        phase: Phase,
        /// Conditions.
        conditions: Vec<PodGroupCondition>,
        /// Running, succeeded, failed.
        counters: [u32; 3],
    },
    /// Write the `PodScheduled` condition (False) of a pod that was not placed.
    PodCondition {
        /// The task.
        task: TaskId,
        /// Machine-readable cause.
        reason: &'static str,
        /// The cause in words.
        message: Arc<str>,
        /// What to do about `status.nominatedNodeName`.
        nominated: Nomination,
    },
    /// Remove the queue-allocation gate of a pod: its queue has room for it.
    OpenGate {
        /// The task.
        task: TaskId,
    },
    /// Write which nodes this scheduler uses, where several divide them.
    ShardStatus(NodeShardStatus),
    /// Write what a queue uses.
    QueueStatus {
        /// The queue.
        queue: QueueId,
        /// Requests of its tasks in the allocated states, those of the queues below it included.
        allocated: Resource,
        /// What the queue's status last named and `allocated` does not: to be taken out.
        removed: Vec<DimId>,
    },
    /// Tell a PodGroup's users something.
    GroupEvent {
        /// The job.
        job: JobId,
        /// A warning; otherwise normal.
        warning: bool,
        /// Machine-readable cause.
        reason: &'static str,
        /// What to tell.
        message: String,
    },
}

/// What becomes of the node that is written down as being freed for a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nomination {
    /// It stays as it is.
    #[default]
    Keep,
    /// Room is being made on this node.
    Set(NodeId),
    /// The room is gone, or the pod has found another.
    Clear,
}

/// The outcome of a cycle.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// What to do, in order.
    pub effects: Vec<Effect>,
    /// Placements on resources that others are leaving. The next cycle places them anew.
    pub pipelined: Vec<(TaskId, NodeId)>,
    /// What was found out about each job that was looked at.
    pub reports: BTreeMap<JobId, JobReport>,
    /// Numbers for metrics.
    pub figures: CycleFigures,
    /// Queues that take no part because their place in the hierarchy is broken, with the reason.
    pub invalid_queues: Vec<(QueueId, Arc<str>)>,
}

/// A step of a cycle, once it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A plugin has prepared itself; part of [`Step::Open`].
    Plugin(&'a str),
    /// Everything is prepared.
    Open,
    /// An action is done.
    Action(&'a str),
    /// The outcome is put together.
    Close,
}

impl<'a> Step<'a> {
    /// Its name; `None` for what is part of another step.
    pub fn name(self) -> Option<&'a str> {
        match self {
            Step::Plugin(_) => None,
            Step::Open => Some("open"),
            Step::Action(name) => Some(name),
            Step::Close => Some("close"),
        }
    }
}
