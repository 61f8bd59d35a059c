//! Which tasks of other queues a queue may have evicted.
//!
//! A victim's queue must keep its guarantee, and must use more than it deserves of what the victim holds; with
//! `ancestorReclaimLevel`, its ancestors up to that level too, unless the reclaimer is below the same one.
//! Victims are taken one after the other: each lowers what its queue and ancestors are still judged by.

use super::Capacity;
use super::tree::{At, Branch, Tree, common_levels};
use crate::ids::{QueueId, TaskId};
use crate::model::Model;
use crate::plugins::quota;
use crate::resource::{Missing, Resource};
use rustc_hash::FxHashMap;

/// What queues would still use once the victims accepted so far are gone.
struct Running<'a> {
    m: &'a Model,
    tree: &'a Tree,
    left: FxHashMap<At, Resource>,
}

impl<'a> Running<'a> {
    fn new(m: &'a Model, tree: &'a Tree) -> Self {
        Running {
            m,
            tree,
            left: FxHashMap::default(),
        }
    }

    fn of(&mut self, at: At, branch: &Branch) -> &mut Resource {
        let (m, tree) = (self.m, self.tree);
        self.left
            .entry(at)
            .or_insert_with(|| tree.charged(m, at, branch).clone())
    }

    fn accept(&mut self, at: At, branch: &Branch, request: &Resource) {
        let tree = self.tree;
        for (at, branch) in tree.up(at, branch) {
            self.of(at, branch).sub_from_sum(request);
        }
    }

    /// The victim's queue and the ancestors that it does not share with the reclaimer keep their guarantees. An
    /// ancestor is only asked about what the victim holds.
    fn guarantees_hold(&mut self, at: At, branch: &Branch, shared: usize, request: &Resource) -> bool {
        let without = self.of(at, branch).minus(request);
        if !branch.guarantee.le(&without, Missing::Zero) {
            return false;
        }
        let tree = self.tree;
        branch.path.iter().skip(shared.max(1)).all(|&above| {
            let Some(ancestor) = tree.get(above) else {
                return true;
            };
            let used = self.of(above, ancestor);
            request.names().all(|dim| {
                let kept = ancestor.guarantee.get(dim);
                kept <= 0 || used.get(dim).saturating_sub(request.get(dim)) >= kept
            })
        })
    }

    /// More is used than deserved, in something that the victim holds.
    fn exceeds(&mut self, at: At, branch: &Branch, request: &Resource) -> bool {
        self.of(at, branch).gt_relevant_in(&branch.deserved, request)
    }
}

/// The queue deserves nothing of what the task holds or wants, its place as a pod included.
fn holds_nothing_deserved(branch: &Branch, request: &Resource) -> bool {
    !request.names().any(|dim| branch.deserved.get(dim) > 0)
}

/// The ancestor `level` steps above a queue (1 is the parent), the root excepted.
fn above(branch: &Branch, level: usize) -> Option<At> {
    let index = branch.path.len().checked_sub(level)?;
    if index == 0 {
        None
    } else {
        branch.path.get(index).copied()
    }
}

impl Capacity {
    /// The queue, or with `ancestorReclaimLevel` an ancestor of it, has a claim on what the tasks request.
    pub(super) fn may_reclaim(&self, m: &Model, queue: QueueId, request: &Resource) -> bool {
        let Ok(branch) = self.usable(m, queue) else {
            return false;
        };
        let future = self.tree.charged(m, queue.index(), branch).plus(request);
        let fits = quota::within(queue, request, |dim| future.get(dim), |dim| branch.limit.get(dim));
        if fits.is_err() {
            return false;
        }
        if future.le_partly_in(&branch.deserved, request) {
            return true;
        }
        (1..=self.reclaim_levels(branch)).any(|level| {
            let ancestor = above(branch, level).and_then(|at| Some((at, self.tree.get(at)?)));
            ancestor.is_some_and(|(at, ancestor)| {
                let future = self.tree.charged(m, at, ancestor).plus(request);
                future.le_partly_in(&ancestor.deserved, request)
            })
        })
    }

    /// How many levels above a queue take part in reclaim.
    fn reclaim_levels(&self, branch: &Branch) -> usize {
        if self.hierarchy {
            self.ancestor_reclaim_level.min(branch.path.len())
        } else {
            0
        }
    }

    /// The candidates that may be evicted for `reclaimer`.
    pub(super) fn victims(&self, m: &Model, reclaimer: TaskId, candidates: &[TaskId]) -> Vec<TaskId> {
        let reclaimer_queue = quota::queue_of(m, reclaimer).and_then(|queue| self.sound(queue));
        let Some((_, reclaimer_branch)) = reclaimer_queue else {
            return Vec::new();
        };
        let wanted = m.request(reclaimer);
        let unclaimed = holds_nothing_deserved(reclaimer_branch, wanted);
        let mut running = Running::new(m, &self.tree);
        let mut victims = Vec::new();
        for &victim in candidates {
            let Some((at, branch)) = quota::queue_of(m, victim).and_then(|queue| self.sound(queue)) else {
                continue;
            };
            let request = m.request(victim);
            let shared = common_levels(branch, reclaimer_branch);
            if !request.shares_dimension(wanted) || !running.guarantees_hold(at, branch, shared, request) {
                continue;
            }
            let eligible = if holds_nothing_deserved(branch, request) {
                !(unclaimed && self.close_relatives(branch, reclaimer_branch))
            } else {
                running.exceeds(at, branch, request)
            };
            if eligible && self.ancestors_agree(&mut running, branch, reclaimer_branch, request) {
                running.accept(at, branch, request);
                victims.push(victim);
            }
        }
        victims
    }

    /// The candidates that a whole-gang reclaim may take: judged by their own queue alone.
    pub(super) fn gang_victims(&self, m: &Model, evictor: QueueId, candidates: &[TaskId]) -> Vec<TaskId> {
        let mut running = Running::new(m, &self.tree);
        let mut victims = Vec::new();
        for &victim in candidates {
            let Some((at, branch)) = quota::queue_of(m, victim).and_then(|queue| self.sound(queue)) else {
                continue;
            };
            let request = m.request(victim);
            let shared = self
                .sound(evictor)
                .map_or(0, |(_, evictor)| common_levels(branch, evictor));
            if running.guarantees_hold(at, branch, shared, request)
                && (holds_nothing_deserved(branch, request) || running.exceeds(at, branch, request))
            {
                running.accept(at, branch, request);
                victims.push(victim);
            }
        }
        victims
    }

    /// Both queues are below one ancestor, other than the root, within the levels that take part.
    fn close_relatives(&self, a: &Branch, b: &Branch) -> bool {
        let ancestors = |branch: &Branch| -> Vec<At> {
            (1..=self.reclaim_levels(branch))
                .filter_map(|level| above(branch, level))
                .collect()
        };
        let of_b = ancestors(b);
        ancestors(a).iter().any(|at| of_b.contains(at))
    }

    /// Every ancestor of the victim's queue that takes part uses more than it deserves, unless the reclaimer has the
    /// same one at that level.
    fn ancestors_agree(
        &self,
        running: &mut Running<'_>,
        victim: &Branch,
        reclaimer: &Branch,
        request: &Resource,
    ) -> bool {
        (1..=self.reclaim_levels(victim)).all(|level| {
            let Some(at) = above(victim, level).filter(|&at| above(reclaimer, level) != Some(at)) else {
                return true;
            };
            let Some(ancestor) = self.tree.get(at) else {
                return true;
            };
            holds_nothing_deserved(ancestor, request) || running.exceeds(at, ancestor, request)
        })
    }
}
