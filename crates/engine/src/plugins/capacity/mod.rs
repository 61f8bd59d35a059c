//! capacity: each queue has a limit (`capability`), an amount it may claim back (`deserved`) and one that is kept for
//! it (`guarantee`), and borrows what is free beyond what it deserves. With `enableHierarchy` queues form a tree, and
//! all three hold at every level.
//!
//! A queue whose place in the tree is broken takes nothing, nor do those below it; all other queues go on.

mod reclaim;
mod tree;

#[cfg(test)]
mod tests;

use super::quota;
use crate::config::PluginConf;
use crate::explain::AdmissionReason;
use crate::ids::{JobId, QueueId, TaskId};
use crate::model::Model;
use crate::plugin::{Allotment, EvictionKind, Plugin, Point, Vote};
use crate::resource::Resource;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use tree::{At, Branch, Tree, common_levels};

/// How many levels of ancestors take part in reclaim, besides the queue itself.
const ANCESTOR_RECLAIM_LEVEL: &str = "ancestorReclaimLevel";

struct Capacity {
    hierarchy: bool,
    ancestor_reclaim_level: usize,
    tree: Tree,
}

/// Builds the plugin.
pub fn build(conf: &PluginConf) -> Box<dyn Plugin> {
    Box::new(Capacity::new(conf))
}

/// What a queue comes to in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The queue.
    pub queue: QueueId,
    /// What it may claim back, as reclaim reads it.
    pub deserved: Resource,
    /// The most it may use, in the dimensions that are limited or that the cluster has; [`crate::resource::UNLIMITED`]
    /// is no limit.
    pub real_capability: Resource,
    /// Why its jobs are not taken, in words.
    pub quarantined: Option<Arc<str>>,
}

/// Effective amounts of all queues that take part, and which of them are quarantined, ordered by queue id.
pub fn standings(m: &Model, hierarchy: bool) -> Vec<Standing> {
    let tree = if hierarchy {
        Tree::hierarchical(m)
    } else {
        Tree::flat(m)
    };
    let standing = |queue: QueueId| {
        let branch = tree.get(queue.index())?;
        let misplaced = branch.children > 0 && m.queue(queue).jobs > 0;
        let parent_with_jobs = || AdmissionReason::NotALeafQueue(queue).text(m).into();
        Some(Standing {
            queue,
            deserved: branch.deserved.clone(),
            real_capability: branch.limit.amounts.clone(),
            quarantined: branch.broken.clone().or_else(|| misplaced.then(parent_with_jobs)),
        })
    };
    m.queue_ids().filter_map(standing).collect()
}

/// The queues of a hierarchy whose jobs are not taken, each with the reason in words.
pub fn quarantined(m: &Model) -> Vec<(QueueId, Arc<str>)> {
    standings(m, true)
        .into_iter()
        .filter_map(|s| Some((s.queue, s.quarantined?)))
        .collect()
}

impl Capacity {
    fn new(conf: &PluginConf) -> Self {
        // A negative level is none.
        let level = conf.arguments.int(ANCESTOR_RECLAIM_LEVEL, 0);
        Capacity {
            hierarchy: conf.switches.hierarchy,
            ancestor_reclaim_level: usize::try_from(level).unwrap_or(0),
            tree: Tree::default(),
        }
    }

    /// A queue whose place in the tree is in order.
    #[inline]
    fn sound(&self, queue: QueueId) -> Option<(At, &Branch)> {
        let branch = self.tree.get(queue.index())?;
        branch.broken.is_none().then_some((queue.index(), branch))
    }

    /// A queue that takes jobs: in order, a leaf, open.
    #[inline]
    fn usable(&self, m: &Model, queue: QueueId) -> Result<&Branch, AdmissionReason> {
        let Some(branch) = self.tree.get(queue.index()) else {
            return Err(AdmissionReason::InvalidQueue(queue, quota::UNKNOWN_QUEUE.into()));
        };
        if let Some(why) = &branch.broken {
            return Err(AdmissionReason::InvalidQueue(queue, why.clone()));
        }
        if branch.children > 0 {
            return Err(AdmissionReason::NotALeafQueue(queue));
        }
        if !m.queue(queue).is_open() {
            return Err(AdmissionReason::QueueNotOpen(queue));
        }
        Ok(branch)
    }

    /// The queue and all its ancestors may use what a task requests, on top of what they use and what they have set
    /// aside for others.
    fn fits(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        let branch = self.usable(m, queue)?;
        let request = m.request(task);
        // What is set aside for the task itself is there for it to use.
        let is_new = i64::from(!m.task(task).is_promised());
        self.tree.up(queue.index(), branch).try_for_each(|(at, branch)| {
            let charged = self.tree.charged(m, at, branch);
            quota::within(
                QueueId::from_index(at),
                request,
                |dim| {
                    let claimed = charged
                        .get(dim)
                        .saturating_add(self.tree.reserved(m, at, branch, dim));
                    claimed.saturating_add(is_new * request.get(dim))
                },
                |dim| branch.limit.get(dim),
            )
        })
    }

    /// The queue and all its ancestors may admit a job with this minimum.
    fn admits(&self, m: &Model, queue: QueueId, minimum: Option<&Resource>) -> Result<(), AdmissionReason> {
        let branch = self.usable(m, queue)?;
        let Some(minimum) = minimum else { return Ok(()) };
        self.tree.up(queue.index(), branch).try_for_each(|(at, branch)| {
            let charged = self.tree.charged(m, at, branch);
            quota::within(
                QueueId::from_index(at),
                minimum,
                |dim| quota::claimed(dim, minimum, charged, &branch.inqueue, &branch.elastic),
                |dim| branch.limit.get(dim),
            )
        })
    }
}

impl Plugin for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn points(&self) -> &'static [Point] {
        const TREE: &[Point] = &[
            Point::VictimQueueOrder,
            Point::Events,
            Point::QueueOrder,
            Point::Reclaimable,
            Point::UnifiedEvictable,
            Point::Preemptive,
            Point::Allocatable,
            Point::JobEnqueueable,
            Point::JobEnqueued,
        ];
        if self.hierarchy { TREE } else { &TREE[2..] }
    }

    fn open(&mut self, m: &Model, _now: i64) {
        self.tree = if self.hierarchy {
            Tree::hierarchical(m)
        } else {
            Tree::flat(m)
        };
    }

    fn queue_order(&self, m: &Model, a: QueueId, b: QueueId) -> Ordering {
        let priority = m.queue(b).priority.cmp(&m.queue(a).priority);
        let (Some(in_a), Some(in_b)) = (self.tree.get(a.index()), self.tree.get(b.index())) else {
            return priority;
        };
        let (at_a, at_b) = ((a.index(), in_a), (b.index(), in_b));
        let leaves_first = (in_a.children > 0).cmp(&(in_b.children > 0));
        priority.then(leaves_first).then_with(|| {
            if !self.hierarchy || in_a.children > 0 {
                return self.tree.by_share(m, at_a, at_b);
            }
            let (above_a, above_b) = self.tree.parting(at_a, at_b);
            let priority = |at: At| m.queues.get(at).map_or(0, |queue| queue.priority);
            let by_priority = priority(above_b.0).cmp(&priority(above_a.0));
            by_priority.then_with(|| self.tree.by_share(m, above_a, above_b))
        })
    }

    fn victim_queue_order(&self, _m: &Model, a: QueueId, b: QueueId, preemptor: QueueId) -> Ordering {
        let Some(preemptor) = self.tree.get(preemptor.index()) else {
            return Ordering::Equal;
        };
        let nearness = |queue: QueueId| {
            self.tree
                .get(queue.index())
                .map_or(0, |q| common_levels(q, preemptor))
        };
        nearness(b).cmp(&nearness(a))
    }

    fn allocatable(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        self.fits(m, queue, task)
    }

    fn preemptive(&self, m: &Model, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.may_reclaim(m, queue, &quota::total_request(m, tasks))
    }

    fn reclaimable(&self, m: &Model, reclaimer: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        Some(self.victims(m, reclaimer, candidates))
    }

    fn unified_evictable(
        &self,
        m: &Model,
        kind: EvictionKind,
        evictor: JobId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        Some(match kind {
            EvictionKind::Preempt => candidates.to_vec(),
            EvictionKind::Reclaim => self.gang_victims(m, m.job(evictor).queue, candidates),
        })
    }

    fn job_enqueueable(&self, m: &Model, job: JobId) -> (Vote, Option<AdmissionReason>) {
        match self.admits(m, m.job(job).queue, quota::minimum_of(m, job)) {
            Ok(()) => (Vote::Permit, None),
            Err(reason) => (Vote::Reject, Some(reason)),
        }
    }

    fn job_enqueued(&mut self, m: &Model, job: JobId) {
        let job = m.job(job);
        self.tree
            .admit(job.queue, &job.without_gated(&job.unallocated_minimum()));
    }

    fn invalid_queues(&self, m: &Model) -> Vec<(QueueId, Arc<str>)> {
        if self.hierarchy {
            quarantined(m)
        } else {
            Vec::new()
        }
    }

    /// A queue that takes no part has nothing but its capability.
    fn allotments(&self, m: &Model) -> BTreeMap<QueueId, Allotment> {
        let pending = if self.hierarchy {
            m.queue_sums(|queue| &queue.pending)
        } else {
            m.queues.iter().map(|queue| queue.pending.clone()).collect()
        };
        let allotment = |id: QueueId| {
            let (at, queue) = (id.index(), m.queue(id));
            let branch = self.tree.get(at);
            let allocated = branch.map_or(&queue.charged, |branch| self.tree.charged(m, at, branch));
            let allotment = Allotment {
                allocated: allocated.clone(),
                request: allocated.plus(&pending[at]),
                deserved: branch.map(|b| b.deserved.clone()).unwrap_or_default(),
                capacity: queue.capability.as_ref().map(quota::with_open_basics),
                real_capacity: branch.map(|b| b.limit.amounts.clone()),
                inqueue: branch.map(|b| b.inqueue.clone()).unwrap_or_default(),
                share: branch.map_or(0.0, |branch| self.tree.share(m, at, branch)),
                overused: None,
            };
            (id, allotment)
        };
        m.queue_ids().map(allotment).collect()
    }

    fn on_allocate(&mut self, m: &Model, task: TaskId) {
        if let Some(queue) = quota::queue_of(m, task) {
            self.tree.charge(queue, m.request(task));
        }
    }

    fn on_deallocate(&mut self, m: &Model, task: TaskId) {
        if let Some(queue) = quota::queue_of(m, task) {
            self.tree.discharge(queue, m.request(task));
        }
    }
}
