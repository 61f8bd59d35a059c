//! drf: dominant-resource fairness. Between jobs always; between the queues of a tree with `enableHierarchy`.
//!
//! The share of a job is the largest part it has of any resource of the cluster; the job with the smaller share is
//! served first, and a job may take from another as long as it does not end up with the larger share. What jobs
//! have is kept by the model; shares are computed when first asked for and again after a task of the job moved, so
//! that sorting 10,000 jobs divides 10,000 times and not at each comparison.

mod tree;

use crate::config::PluginConf;
use crate::ids::{DimId, JobId, QueueId, TaskId};
use crate::model::Model;
use crate::plugin::{Plugin, Point};
use crate::resource::Resource;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell, RefMut};
use std::cmp::Ordering;
use tree::Tree;

/// Shares closer than this are equal when victims are chosen.
const SHARE_DELTA: f64 = 1e-6;

struct Drf {
    hierarchy: bool,
    /// What the cluster has, without what it has none of.
    total: Vec<(DimId, i64)>,
    /// Shares by job; not a number until asked for.
    shares: Vec<Cell<f64>>,
    /// Made when a queue is first compared in a cycle.
    tree: RefCell<Option<Tree>>,
}

/// Builds the plugin.
pub fn build(conf: &PluginConf) -> Box<dyn Plugin> {
    Box::new(Drf {
        hierarchy: conf.switches.hierarchy,
        total: Vec::new(),
        shares: Vec::new(),
        tree: RefCell::new(None),
    })
}

/// The largest part of any resource in `total`.
fn dominant_share(part: &Resource, total: &[(DimId, i64)]) -> f64 {
    total
        .iter()
        .map(|&(dim, whole)| part.get(dim) as f64 / whole as f64)
        .fold(0.0, f64::max)
}

fn job_of(m: &Model, task: TaskId) -> Option<JobId> {
    m.task(task).job.filter(|&job| m.in_session(job))
}

impl Drf {
    fn share(&self, m: &Model, job: JobId) -> f64 {
        let compute = || dominant_share(&m.job(job).charged, &self.total);
        let Some(cached) = self.shares.get(job.index()) else {
            return compute();
        };
        if cached.get().is_nan() {
            cached.set(compute());
        }
        cached.get()
    }

    fn tree(&self, m: &Model) -> RefMut<'_, Tree> {
        RefMut::map(self.tree.borrow_mut(), |tree| {
            let tree = tree.get_or_insert_with(|| Tree::new(m, &self.total));
            tree.follow(m);
            tree
        })
    }

    fn moved(&mut self, m: &Model, task: TaskId) {
        let Some(job) = m.task(task).job else { return };
        if let Some(share) = self.shares.get_mut(job.index()) {
            share.set(f64::NAN);
        }
        if let Some(tree) = self.tree.get_mut() {
            tree.mark(job);
        }
    }
}

impl Plugin for Drf {
    fn name(&self) -> &'static str {
        "drf"
    }

    fn points(&self) -> &'static [Point] {
        const ALL: &[Point] = &[
            Point::JobOrder,
            Point::Preemptable,
            Point::Events,
            Point::QueueOrder,
            Point::Reclaimable,
        ];
        if self.hierarchy { ALL } else { &ALL[..3] }
    }

    fn open(&mut self, m: &Model, _now: i64) {
        self.total.clear();
        self.total
            .extend(m.nodes.total().iter().filter(|&(_, value)| value > 0));
        self.shares.clear();
        self.shares.resize(m.jobs.len(), Cell::new(f64::NAN));
        *self.tree.get_mut() = None;
    }

    fn job_order(&self, m: &Model, a: JobId, b: JobId) -> Ordering {
        self.share(m, a).total_cmp(&self.share(m, b))
    }

    fn queue_order(&self, m: &Model, a: QueueId, b: QueueId) -> Ordering {
        let mut tree = self.tree(m);
        tree.settle();
        tree.compare(a, b)
    }

    /// Candidates whose job keeps at least the share that the preemptor's job would have. Each candidate counts as
    /// gone for those of its job that follow, accepted or not.
    fn preemptable(&self, m: &Model, preemptor: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        let Some(mine) = job_of(m, preemptor) else {
            return Some(Vec::new());
        };
        let share = dominant_share(&m.job(mine).charged.plus(m.request(preemptor)), &self.total);
        let mut left: FxHashMap<JobId, Resource> = FxHashMap::default();
        let goes = |&victim: &TaskId| {
            let Some(theirs) = job_of(m, victim) else {
                return false;
            };
            let left = left
                .entry(theirs)
                .or_insert_with(|| m.job(theirs).charged.clone());
            left.sub(m.request(victim));
            share - dominant_share(left, &self.total) <= SHARE_DELTA
        };
        Some(candidates.iter().copied().filter(goes).collect())
    }

    /// Candidates whose queue would still come after the reclaimer's queue, each judged alone.
    fn reclaimable(&self, m: &Model, reclaimer: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        let Some(mine) = job_of(m, reclaimer) else {
            return Some(Vec::new());
        };
        let mut tree = self.tree(m);
        tree.put(mine, m.job(mine).charged.plus(m.request(reclaimer)));
        let goes = |&victim: &TaskId| {
            let Some(theirs) = job_of(m, victim) else {
                return false;
            };
            let before = tree.allocated(theirs);
            tree.put(theirs, m.job(theirs).charged.minus(m.request(victim)));
            tree.settle();
            let order = tree.compare(m.job(mine).queue, m.job(theirs).queue);
            tree.put(theirs, before);
            order == Ordering::Less
        };
        let victims = candidates.iter().copied().filter(goes).collect();
        tree.put(mine, m.job(mine).charged.clone());
        Some(victims)
    }

    /// From what the job has now: kept shares are those of the last cycle.
    fn job_share(&self, m: &Model, job: JobId) -> Option<f64> {
        Some(dominant_share(&m.job(job).charged, &self.total))
    }

    fn on_allocate(&mut self, m: &Model, task: TaskId) {
        self.moved(m, task);
    }

    fn on_deallocate(&mut self, m: &Model, task: TaskId) {
        self.moved(m, task);
    }
}

#[cfg(test)]
mod tests;
