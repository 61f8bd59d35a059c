//! Numbers for metrics: those of a cycle, counted while it ran, and those of queues and jobs, computed when asked for.
//!
//! Amounts are in the units of the metrics: milli-cores, bytes, whole pods, and thousandths of anything else.

use crate::dispatch::Plugins;
use crate::ids::{JobId, QueueId};
use crate::model::Model;
use crate::plugin::Allotment;
use crate::resource::Resource;
pub use crate::resource::UNLIMITED;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Amounts by resource name: `cpu` and `memory` first, then the others as they became known; [`UNLIMITED`] where there is no
/// limit.
pub type Amounts = Vec<(Arc<str>, i64)>;

/// The numbers of one cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleFigures {
    /// For each job with tasks that the cycle looked at: how many its gang lacks; 0 when it is ready. Empty without the
    /// plugin gang.
    pub unschedulable_tasks: Vec<(JobId, u32)>,
    /// Jobs that are not ready, those included that the cycle had no reason to look at.
    pub unschedulable_jobs: usize,
    /// Size of the last list of victims that preempt was offered; `None` when it asked for none.
    pub preemption_victims: Option<usize>,
    /// Nodes on which preempt tried to make room; when it compares nodes, those where it could.
    pub preemption_attempts: u64,
    /// Plans with evictions that were decided on, by action.
    pub eviction_transactions: BTreeMap<&'static str, u64>,
}

/// The numbers of a queue, as of the last cycle. What the configured plugins do not know is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueFigures {
    /// Its name.
    pub queue: Arc<str>,
    /// What it uses; in a hierarchy with the queues below it.
    pub allocated: Amounts,
    /// What its pods request, waiting ones included.
    pub request: Amounts,
    /// What it deserves.
    pub deserved: Option<Amounts>,
    /// The most it may use as its spec says.
    pub capacity: Option<Amounts>,
    /// The most it may use in its place.
    pub real_capacity: Option<Amounts>,
    /// What admitted jobs have yet to allocate.
    pub inqueue: Option<Amounts>,
    /// How much of what it deserves it uses.
    pub share: Option<f64>,
    /// Its weight.
    pub weight: i32,
    /// It uses more than it should.
    pub overused: Option<bool>,
}

/// The numbers of all queues, by name.
pub(crate) fn queues(m: &Model, plugins: &Plugins) -> Vec<QueueFigures> {
    let mut allotments = plugins.allotments(m);
    let mut ids: Vec<QueueId> = m.queue_ids().collect();
    ids.sort_unstable_by_key(|&id| m.text(m.queue(id).name));
    ids.into_iter()
        .map(|id| of_queue(m, id, allotments.remove(&id)))
        .collect()
}

fn of_queue(m: &Model, id: QueueId, allotment: Option<Allotment>) -> QueueFigures {
    let queue = m.queue(id);
    let known = allotment.is_some();
    let allotment = allotment.unwrap_or_else(|| Allotment {
        allocated: queue.charged.clone(),
        request: queue.charged.plus(&queue.pending),
        ..Allotment::default()
    });
    let amounts = |of: &Resource| amounts(m, of);
    QueueFigures {
        queue: m.strings.shared(queue.name),
        allocated: amounts(&allotment.allocated),
        request: amounts(&allotment.request),
        deserved: known.then(|| amounts(&allotment.deserved)),
        capacity: allotment.capacity.as_ref().map(amounts),
        real_capacity: allotment.real_capacity.as_ref().map(amounts),
        inqueue: known.then(|| amounts(&allotment.inqueue)),
        share: known.then_some(allotment.share),
        weight: queue.weight,
        overused: allotment.overused,
    }
}

fn amounts(m: &Model, of: &Resource) -> Amounts {
    of.iter()
        .map(|(dim, value)| (m.dims.shared_name(dim), value))
        .collect()
}
