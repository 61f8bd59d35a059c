//! proportion: queues share the cluster by weight, each between its guarantee and its capability.
//!
//! What a queue deserves is found by filling it up in rounds: what is left is offered to all queues that want more,
//! by weight, until nothing is left or nobody wants any. It is fixed for a cycle; what a queue uses is read from the
//! model, so there are no events to follow and nothing to undo.

use super::quota::{self, Limit};
use crate::config::PluginConf;
use crate::explain::AdmissionReason;
use crate::ids::{DimId, JobId, QueueId, TaskId};
use crate::model::Model;
use crate::plugin::{Allotment, Plugin, Point, Vote};
use crate::resource::{Missing, PODS, Resource, dominant_share};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

#[derive(Default)]
struct Proportion {
    /// By queue id; `None` for queues that own no job.
    queues: Vec<Option<Attributes>>,
}

struct Attributes {
    limit: Limit,
    deserved: Resource,
    /// What admitted jobs have yet to allocate, those admitted in this cycle included.
    inqueue: Resource,
}

/// Builds the plugin.
pub fn build(_conf: &PluginConf) -> Box<dyn Plugin> {
    Box::new(Proportion::default())
}

/// What each queue that owns a job deserves at present, in the order of their ids.
pub fn deserved(m: &Model) -> Vec<(QueueId, Resource)> {
    let mut candidates = candidates(m);
    fill(m, &mut candidates);
    candidates.into_iter().map(|c| (c.queue, c.deserved)).collect()
}

/// A queue while the cluster is being divided.
struct Candidate {
    queue: QueueId,
    weight: i64,
    limit: Limit,
    /// The most that it may and wants to have.
    ceiling: Resource,
    deserved: Resource,
}

impl Candidate {
    fn room(&self, dim: DimId) -> i64 {
        self.ceiling
            .get(dim)
            .saturating_sub(self.deserved.get(dim))
            .max(0)
    }
}

fn candidates(m: &Model) -> Vec<Candidate> {
    let guaranteed = quota::total_guarantee(m);
    let owners = m.queue_ids().filter(|&id| m.queue(id).jobs > 0);
    let candidate = |id: QueueId| {
        let queue = m.queue(id);
        let limit = Limit::among_equals(m, id, &guaranteed);
        let mut ceiling = m.nodes.total().clone();
        ceiling.min_with(&limit.amounts, Missing::Infinity);
        ceiling.min_with(&queue.charged.plus(&queue.pending), Missing::Zero);
        let weight = i64::from(queue.weight.max(1));
        Candidate {
            queue: id,
            weight,
            limit,
            ceiling,
            deserved: Resource::default(),
        }
    };
    owners.map(candidate).collect()
}

/// Divides the cluster. In the first round everything is offered to all queues by weight, and none gets less than
/// its guarantee; in each further round what is left of a dimension goes, by weight, to those that have room for it.
/// Queues of a round all see the same rest, so their order does not matter. Each round fills some queue up or
/// leaves only crumbs (less than one unit for each queue), hence ends.
fn fill(m: &Model, candidates: &mut [Candidate]) {
    let weights: i64 = candidates.iter().map(|c| c.weight).sum();
    let mut rest = m.nodes.total().clone();
    let mut taken = Resource::default();
    for candidate in candidates.iter_mut() {
        candidate.deserved = rest.scaled(candidate.weight, weights);
        candidate.deserved.min_with(&candidate.ceiling, Missing::Infinity);
        candidate.deserved.max_with(&m.queue(candidate.queue).guarantee);
        taken.add(&candidate.deserved);
    }
    rest = rest.beyond(&taken);
    while !rest.is_empty() {
        let before = rest.clone();
        rest.for_each_mut(|dim, left| *left = offer(candidates, dim, *left));
        if rest == before {
            return;
        }
    }
}

/// Offers what is left of a dimension to those that have room, by weight; returns what they leave.
fn offer(candidates: &mut [Candidate], dim: DimId, left: i64) -> i64 {
    let weights: i64 = candidates
        .iter()
        .filter(|c| c.room(dim) > 0)
        .map(|c| c.weight)
        .sum();
    if left <= 0 || weights == 0 {
        return left;
    }
    let mut taken = 0;
    for candidate in candidates.iter_mut() {
        let part = i128::from(left) * i128::from(candidate.weight) / i128::from(weights);
        let part = i64::try_from(part).unwrap_or(i64::MAX).min(candidate.room(dim));
        if part > 0 {
            candidate.deserved.set(dim, candidate.deserved.get(dim) + part);
            taken += part;
        }
    }
    left - taken
}

impl Proportion {
    #[inline]
    fn get(&self, queue: QueueId) -> Option<&Attributes> {
        self.queues.get(queue.index())?.as_ref()
    }

    fn share(&self, m: &Model, queue: QueueId) -> f64 {
        self.get(queue)
            .map_or(0.0, |a| dominant_share(&m.queue(queue).charged, &a.deserved))
    }

    /// The queue may use `request` on top of what it uses, by what it deserves.
    fn fits(&self, m: &Model, id: QueueId, request: &Resource) -> Result<(), AdmissionReason> {
        self.fits_into(m, id, request, |attributes, dim| {
            if dim == PODS {
                attributes.limit.pods
            } else {
                attributes.deserved.get(dim)
            }
        })
    }

    fn fits_into(
        &self,
        m: &Model,
        id: QueueId,
        request: &Resource,
        bound: impl Fn(&Attributes, DimId) -> i64,
    ) -> Result<(), AdmissionReason> {
        let queue = m.queue(id);
        let attributes = self.get(id).ok_or_else(|| unknown(id))?;
        if !queue.is_open() {
            return Err(AdmissionReason::QueueNotOpen(id));
        }
        quota::within(
            id,
            request,
            |dim| queue.charged.get(dim).saturating_add(request.get(dim)),
            |dim| bound(attributes, dim),
        )
    }
}

fn unknown(queue: QueueId) -> AdmissionReason {
    AdmissionReason::InvalidQueue(queue, quota::UNKNOWN_QUEUE.into())
}

impl Plugin for Proportion {
    fn name(&self) -> &'static str {
        "proportion"
    }

    fn points(&self) -> &'static [Point] {
        &[
            Point::QueueOrder,
            Point::Reclaimable,
            Point::Overused,
            Point::Allocatable,
            Point::Preemptive,
            Point::JobEnqueueable,
            Point::JobEnqueued,
        ]
    }

    fn open(&mut self, m: &Model, _now: i64) {
        let mut candidates = candidates(m);
        fill(m, &mut candidates);
        self.queues.clear();
        self.queues.resize_with(m.queues.len(), || None);
        for Candidate {
            queue,
            limit,
            deserved,
            ..
        } in candidates
        {
            let inqueue = m.queue(queue).inqueue.clone();
            self.queues[queue.index()] = Some(Attributes {
                limit,
                deserved,
                inqueue,
            });
        }
    }

    fn queue_order(&self, m: &Model, a: QueueId, b: QueueId) -> Ordering {
        let priority = m.queue(b).priority.cmp(&m.queue(a).priority);
        priority.then_with(|| self.share(m, a).total_cmp(&self.share(m, b)))
    }

    fn overused(&self, m: &Model, queue: QueueId) -> bool {
        self.get(queue)
            .is_none_or(|a| a.deserved.le(&m.queue(queue).charged, Missing::Zero))
    }

    fn allocatable(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        self.fits(m, queue, m.request(task))
    }

    /// A queue's share shrinks when others want theirs, and gangs protect their members from reclaim: a gang that lost
    /// a part and may not have it back would keep the rest for nothing. It only has to keep the queue's limit.
    fn completable(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        self.fits_into(m, queue, m.request(task), |attributes, dim| {
            attributes.limit.get(dim)
        })
    }

    fn preemptive(&self, m: &Model, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.fits(m, queue, &quota::total_request(m, tasks)).is_ok()
    }

    fn reclaimable(&self, m: &Model, _reclaimer: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        let mut left: FxHashMap<QueueId, Resource> = FxHashMap::default();
        let mut victims = Vec::new();
        for &victim in candidates {
            let Some(queue) = quota::queue_of(m, victim) else {
                continue;
            };
            let Some(attributes) = self.get(queue) else {
                continue;
            };
            let used = left
                .entry(queue)
                .or_insert_with(|| m.queue(queue).charged.clone());
            if !used.le(&attributes.deserved, Missing::Zero) {
                used.sub_from_sum(m.request(victim));
                victims.push(victim);
            }
        }
        Some(victims)
    }

    fn job_enqueueable(&self, m: &Model, job: JobId) -> (Vote, Option<AdmissionReason>) {
        let id = m.job(job).queue;
        let queue = m.queue(id);
        let Some(attributes) = self.get(id) else {
            return (Vote::Reject, Some(unknown(id)));
        };
        if !queue.is_open() {
            return (Vote::Reject, Some(AdmissionReason::QueueNotOpen(id)));
        }
        let Some(minimum) = quota::minimum_of(m, job) else {
            return (Vote::Permit, None);
        };
        let fits = quota::within(
            id,
            minimum,
            |dim| quota::claimed(dim, minimum, &queue.charged, &attributes.inqueue, &queue.elastic),
            |dim| attributes.limit.get(dim),
        );
        match fits {
            Ok(()) => (Vote::Permit, None),
            Err(reason) => (Vote::Reject, Some(reason)),
        }
    }

    /// A queue that owns no job deserves nothing.
    fn allotments(&self, m: &Model) -> BTreeMap<QueueId, Allotment> {
        let allotment = |id: QueueId| {
            let (queue, attributes) = (m.queue(id), self.get(id));
            let allotment = Allotment {
                allocated: queue.charged.clone(),
                request: queue.charged.plus(&queue.pending),
                deserved: attributes.map(|a| a.deserved.clone()).unwrap_or_default(),
                inqueue: attributes.map(|a| a.inqueue.clone()).unwrap_or_default(),
                share: self.share(m, id),
                overused: Some(attributes.is_some() && self.overused(m, id)),
                ..Allotment::default()
            };
            (id, allotment)
        };
        m.queue_ids().map(allotment).collect()
    }

    fn job_enqueued(&mut self, m: &Model, job: JobId) {
        let job = m.job(job);
        if let Some(Some(attributes)) = self.queues.get_mut(job.queue.index()) {
            attributes
                .inqueue
                .add(&job.without_gated(&job.unallocated_minimum()));
        }
    }
}
