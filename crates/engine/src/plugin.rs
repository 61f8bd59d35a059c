//! What a plugin can take part in, and how the answers of several plugins combine.
//!
//! A plugin is one file that implements [`Plugin`] for the points it lists in `points`; the combination rules are in
//! `dispatch`. Two kinds of answer matter for speed:
//!
//! - *node-local* (`filter_static`, `filter_usage`, `node_order`, `norm_scores`): depends on the class and on one
//!   node only, so it is computed once per class and node and again only when that node changed;
//! - *relational* (`relate`): depends on pods of other nodes, and is computed for each task that has such rules.

use crate::explain::{AdmissionReason, FitReason, Invalid, Reasons};
use crate::ids::{JobId, NodeId, QueueId, TaskId};
use crate::model::Model;
use crate::model::class::Class;
use crate::model::delta::Delta;
use crate::plugins::predicates::volumes::binding::{ClaimKey, Source};
use crate::resource::Resource;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// An extension point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Point {
    QueueOrder,
    VictimQueueOrder,
    JobOrder,
    SubJobOrder,
    TaskOrder,
    PrePredicate,
    Predicate,
    NodeOrder,
    BestNode,
    Preemptable,
    Reclaimable,
    UnifiedEvictable,
    Overused,
    Preemptive,
    Allocatable,
    JobReady,
    SubJobReady,
    JobPipelined,
    SubJobPipelined,
    JobStarving,
    JobValid,
    JobEnqueueable,
    JobEnqueued,
    VictimTasks,
    HyperNodeOrder,
    HyperNodeGradient,
    Events,
}

/// Number of extension points.
pub const POINTS: usize = Point::Events as usize + 1;

/// A vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vote {
    /// For.
    Permit,
    /// No opinion.
    Abstain,
    /// Against.
    Reject,
}

/// The highest score of a node before weights.
pub const MAX_NODE_SCORE: i64 = 100;

/// A score that is normalised over the candidate nodes before it is weighted.
#[derive(Clone, Copy)]
pub struct NormScore {
    /// The score can differ between nodes for this class.
    pub applies: fn(&Model, &Class) -> bool,
    /// The score before normalising; depends on the node's description only, not on its usage.
    pub raw: fn(&Model, &Class, NodeId) -> i64,
    /// Small raw scores are good.
    pub reverse: bool,
    /// Its weight.
    pub weight: f64,
}

impl NormScore {
    /// The weighted score of a node whose raw score is `raw` when the best of the candidates has `max`.
    pub fn normalized(&self, raw: i64, max: i64) -> f64 {
        let share = if max > 0 { MAX_NODE_SCORE * raw / max } else { 0 };
        let score = if self.reverse {
            MAX_NODE_SCORE - share
        } else {
            share
        };
        self.weight * score as f64
    }
}

/// Rules of one task that look at pods of other nodes, prepared once and then asked for each node.
pub trait Related {
    /// Why the task cannot go to the node; empty when it can.
    fn filter(&self, m: &Model, node: NodeId) -> Reasons;

    /// Adds the weighted scores of the candidate nodes.
    fn score(&self, _m: &Model, _nodes: &[NodeId], _scores: &mut [f64]) {}
}

/// Why something is evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EvictionKind {
    /// For a task of the same queue.
    Preempt,
    /// For a task of another queue.
    Reclaim,
}

impl EvictionKind {
    /// The reason in events and conditions.
    pub fn name(self) -> &'static str {
        match self {
            EvictionKind::Preempt => "preempt",
            EvictionKind::Reclaim => "reclaim",
        }
    }
}

/// What a plugin that divides the cluster makes of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allotment {
    /// What it uses; in a hierarchy with the queues below it.
    pub allocated: Resource,
    /// What its pods request, waiting ones included; likewise.
    pub request: Resource,
    /// What it deserves.
    pub deserved: Resource,
    /// The most it may use as its spec says, if the plugin goes by that.
    pub capacity: Option<Resource>,
    /// The most it may use in its place, if the plugin goes by that.
    pub real_capacity: Option<Resource>,
    /// What admitted jobs have yet to allocate.
    pub inqueue: Resource,
    /// How much of what it deserves it uses.
    pub share: f64,
    /// It uses more than it should, if the plugin judges that.
    pub overused: Option<bool>,
}

/// A domain of nodes that a job may be placed in, by the name of its hypernode.
pub type Domain = std::sync::Arc<str>;

/// A plugin. Every method has a neutral default; only those of its `points` are called.
#[allow(unused_variables)]
pub trait Plugin: Send {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

    /// The points that it takes part in, once opened.
    fn points(&self) -> &'static [Point];

    /// A cycle begins: computes what its rules need. `now` is in microseconds since 1970.
    fn open(&mut self, m: &Model, now: i64) {}

    /// How the waiting claims of a placed task are to be served, before it is bound.
    fn claim_sources(&self, m: &Model, task: TaskId) -> Vec<(ClaimKey, Source)> {
        Vec::new()
    }

    /// Which queue is served first.
    fn queue_order(&self, m: &Model, a: QueueId, b: QueueId) -> Ordering {
        Ordering::Equal
    }

    /// Which queue loses tasks first to a preemptor's queue.
    fn victim_queue_order(&self, m: &Model, a: QueueId, b: QueueId, preemptor: QueueId) -> Ordering {
        Ordering::Equal
    }

    /// Which job is served first.
    fn job_order(&self, m: &Model, a: JobId, b: JobId) -> Ordering {
        Ordering::Equal
    }

    /// Which sub-job of a job is served first.
    fn sub_job_order(&self, m: &Model, job: JobId, a: u32, b: u32) -> Ordering {
        Ordering::Equal
    }

    /// Which task is placed first.
    fn task_order(&self, m: &Model, a: TaskId, b: TaskId) -> Ordering {
        Ordering::Equal
    }

    /// The task can be judged at all.
    fn pre_predicate(&self, m: &Model, task: TaskId) -> Result<(), FitReason> {
        Ok(())
    }

    /// Why a class cannot go to a node, as far as the node's description says.
    fn filter_static(&self, m: &Model, class: &Class, node: NodeId) -> Reasons {
        Reasons::new()
    }

    /// Why a class cannot go to a node, as far as the node's own usage says.
    fn filter_usage(&self, m: &Model, class: &Class, node: NodeId) -> Reasons {
        Reasons::new()
    }

    /// Rules of a task that look at pods of other nodes; `None` when it has none, the usual case.
    fn relate<'a>(&'a self, m: &'a Model, task: TaskId) -> Option<Box<dyn Related + 'a>> {
        None
    }

    /// How good a node is for a class, from the node's own state.
    fn node_order(&self, m: &Model, class: &Class, node: NodeId) -> f64 {
        0.0
    }

    /// Scores that are normalised over the candidates.
    fn norm_scores(&self) -> &[NormScore] {
        &[]
    }

    /// The node to take whatever the scores say.
    fn best_node(&self, m: &Model, task: TaskId, scored: &[(NodeId, f64)]) -> Option<NodeId> {
        None
    }

    /// The candidates that may be evicted for a task of the same queue, in the order given; `None` to abstain.
    /// Candidates come in victim order: those to be evicted first come first.
    fn preemptable(&self, m: &Model, preemptor: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        None
    }

    /// The candidates that may be evicted for a task of another queue, likewise.
    fn reclaimable(&self, m: &Model, reclaimer: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        None
    }

    /// The candidates that a whole-gang eviction may take, likewise.
    fn unified_evictable(
        &self,
        m: &Model,
        kind: EvictionKind,
        evictor: JobId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        None
    }

    /// The queue uses more than it should: it gets nothing in this cycle.
    fn overused(&self, m: &Model, queue: QueueId) -> bool {
        false
    }

    /// The queue may take resources from others for these tasks.
    fn preemptive(&self, m: &Model, queue: QueueId, tasks: &[TaskId]) -> bool {
        true
    }

    /// The queue may use what the task requests.
    fn allocatable(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        Ok(())
    }

    /// The queue may use what a missing member of a gang that lost a part requests. Unless a plugin says otherwise, as
    /// any other task.
    fn completable(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        self.allocatable(m, queue, task)
    }

    /// The job may start.
    fn job_ready(&self, m: &Model, job: JobId) -> bool {
        true
    }

    /// The sub-job is whole.
    fn sub_job_ready(&self, m: &Model, job: JobId, sub_job: u32) -> bool {
        true
    }

    /// The job may start once those that are leaving have left.
    fn job_pipelined(&self, m: &Model, job: JobId) -> Vote {
        Vote::Abstain
    }

    /// The sub-job will be whole once those that are leaving have left.
    fn sub_job_pipelined(&self, m: &Model, job: JobId, sub_job: u32) -> Vote {
        Vote::Abstain
    }

    /// The job lacks what it needs.
    fn job_starving(&self, m: &Model, job: JobId) -> bool {
        true
    }

    /// The job can be tried at all.
    fn job_valid(&self, m: &Model, job: JobId) -> Result<(), Invalid> {
        Ok(())
    }

    /// The job may be admitted.
    fn job_enqueueable(&self, m: &Model, job: JobId) -> (Vote, Option<AdmissionReason>) {
        (Vote::Abstain, None)
    }

    /// The job has been admitted.
    fn job_enqueued(&mut self, m: &Model, job: JobId) {}

    /// Running tasks that should be evicted for their own sake. A plugin that limits evictions
    /// ([`LIMITING`](crate::plugins::LIMITING)) is asked which of those that others proposed may go.
    fn victim_tasks(&self, m: &Model, running: &[TaskId]) -> Vec<TaskId> {
        Vec::new()
    }

    /// Scores of hypernodes for a sub-job.
    fn hyper_node_order(&self, m: &Model, job: JobId, sub_job: u32, domains: &[Domain]) -> Vec<f64> {
        Vec::new()
    }

    /// The domains to try for a job, best group first; `None` leaves it to the next plugin.
    fn hyper_node_gradient(&self, m: &Model, job: JobId, within: &Domain) -> Option<Vec<Vec<Domain>>> {
        None
    }

    /// Queues that it lets take no part because their place in the hierarchy is broken, with the reason.
    fn invalid_queues(&self, m: &Model) -> Vec<(QueueId, std::sync::Arc<str>)> {
        Vec::new()
    }

    /// A snapshot is taken: writes what it has decided and no object shows yet into an object of the snapshot.
    fn show(&self, m: &Model, object: &mut Delta) {}

    /// What it made of the queues in the last cycle, each that exists; none if it does not divide the cluster.
    fn allotments(&self, m: &Model) -> BTreeMap<QueueId, Allotment> {
        BTreeMap::new()
    }

    /// The share of a job, if it compares them.
    fn job_share(&self, m: &Model, job: JobId) -> Option<f64> {
        None
    }

    /// A task was charged to its job and queue (allocated, pipelined, or an eviction undone).
    fn on_allocate(&mut self, m: &Model, task: TaskId) {}

    /// A task is no longer charged to its job and queue.
    fn on_deallocate(&mut self, m: &Model, task: TaskId) {}
}
