//! What the queue plugins (proportion, capacity) share: the limit of a queue and the comparison of work with it.
//!
//! A comparison asks only about the dimensions that a request names, allocates nothing when it fits, and says by how
//! much it does not.

#[cfg(test)]
pub(super) mod fixture;

use crate::explain::{AdmissionReason, Shortfall};
use crate::ids::{DimId, JobId, QueueId, TaskId};
use crate::model::Model;
use crate::resource::{CPU, MEMORY, Missing, PODS, Resource, UNLIMITED};

/// Why a queue without an object, or without any job, takes nothing.
pub(super) const UNKNOWN_QUEUE: &str = "it does not exist or owns no job";

/// The most that a queue may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limit {
    /// By dimension.
    pub amounts: Resource,
    /// In dimensions that `amounts` does not name.
    pub missing: i64,
    /// Pods, [`UNLIMITED`] unless the queue's own capability names them.
    pub pods: i64,
}

impl Limit {
    /// The limit of a queue among equals: what the cluster has beyond the guarantees of the others, at most its
    /// capability.
    pub fn among_equals(m: &Model, queue: QueueId, guaranteed: &Resource) -> Self {
        let queue = m.queue(queue);
        let mut amounts = m.nodes.total().beyond(guaranteed);
        amounts.add(&queue.guarantee);
        if let Some(capability) = &queue.capability {
            amounts.min_with(&with_open_basics(capability), Missing::Infinity);
        }
        Limit {
            amounts,
            missing: 0,
            pods: pods_limit(queue.capability.as_ref()),
        }
    }

    /// The limit in one dimension. For pods it is the capability alone: the nodes limit their number as they are.
    #[inline]
    pub fn get(&self, dim: DimId) -> i64 {
        if dim == PODS {
            self.pods
        } else {
            self.amounts.find(dim).unwrap_or(self.missing)
        }
    }
}

/// The sum of all guarantees.
pub(super) fn total_guarantee(m: &Model) -> Resource {
    let mut sum = Resource::default();
    m.queue_ids().for_each(|id| sum.add(&m.queue(id).guarantee));
    sum
}

/// A capability whose `cpu` and `memory` are no limit where they are not given.
pub(super) fn with_open_basics(capability: &Resource) -> Resource {
    let mut bounded = capability.clone();
    for dim in [CPU, MEMORY] {
        if bounded.get(dim) <= 0 {
            bounded.set(dim, UNLIMITED);
        }
    }
    bounded
}

/// The pods that a capability allows.
pub(super) fn pods_limit(capability: Option<&Resource>) -> i64 {
    capability.and_then(|c| c.find(PODS)).unwrap_or(UNLIMITED)
}

/// Whether `used` is within `limit` in every dimension that `request` names; else what is short.
#[inline]
pub(super) fn within(
    queue: QueueId,
    request: &Resource,
    used: impl Fn(DimId) -> i64,
    limit: impl Fn(DimId) -> i64,
) -> Result<(), AdmissionReason> {
    let is_short = |&(dim, value): &(DimId, i64)| value > 0 && used(dim) > limit(dim);
    if !request.iter().any(|part| is_short(&part)) {
        return Ok(());
    }
    let short = request
        .iter()
        .filter(is_short)
        .map(|(dim, _)| Shortfall {
            dim,
            needed: used(dim),
            limit: limit(dim),
        })
        .collect();
    Err(AdmissionReason::QueueQuota { queue, short })
}

/// What admitting a job with minimum `minimum` would make of a queue's claims, in one dimension. Work beyond the
/// minimum of its jobs does not count: it gives way.
#[inline]
pub(super) fn claimed(
    dim: DimId,
    minimum: &Resource,
    charged: &Resource,
    inqueue: &Resource,
    elastic: &Resource,
) -> i64 {
    let claimed = minimum.get(dim).saturating_add(charged.get(dim));
    claimed
        .saturating_add(inqueue.get(dim))
        .saturating_sub(elastic.get(dim))
}

/// The sum of the tasks' requests.
pub(super) fn total_request(m: &Model, tasks: &[TaskId]) -> Resource {
    let mut sum = Resource::default();
    tasks.iter().for_each(|&task| sum.add(m.request(task)));
    sum
}

/// The job of a task, if it takes part in the cycle.
#[inline]
pub(super) fn job_of(m: &Model, task: TaskId) -> Option<JobId> {
    m.task(task).job.filter(|&job| m.in_session(job))
}

/// The queue that a task is charged to.
#[inline]
pub(super) fn queue_of(m: &Model, task: TaskId) -> Option<QueueId> {
    job_of(m, task).map(|job| m.job(job).queue)
}

/// The minimum resources of a job, if it gives any.
#[inline]
pub(super) fn minimum_of(m: &Model, job: JobId) -> Option<&Resource> {
    m.job(job)
        .group
        .as_ref()
        .and_then(|group| group.min_resources.as_ref())
}
