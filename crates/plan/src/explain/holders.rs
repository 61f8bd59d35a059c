//! Who holds what a job needs: the running jobs with the most of it.

use super::reason::{QueueLimit, Reason};
use super::world::{Trial, World};
use serde::Serialize;
use std::collections::BTreeMap;
use volcano_api::quantity::Quantity;
use volcano_engine::ids::{DimId, QueueId};
use volcano_engine::model::Model;
use volcano_engine::resource::{PODS, Resource, share};

/// Holders that are named.
const NAMED: usize = 5;

/// A job that holds what another needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// `namespace/name` of the Job; of the PodGroup, if no Job has made it; empty for pods that have none, taken together.
    pub job: String,
    /// `namespace/name` of its PodGroup.
    pub pod_group: Option<String>,
    /// Its queue; empty for pods that have none.
    pub queue: String,
    /// Its priority.
    pub priority: i32,
    /// Pods that hold something.
    pub pods: u32,
    /// What they hold of what is short.
    pub holds: BTreeMap<String, Quantity>,
}

/// The largest holders of what the first reason says is short; those of the queue if that is what is full.
pub(super) fn holders(world: &World<'_>, trial: &Trial, reasons: &[Reason]) -> Vec<Holder> {
    let (m, own) = (trial.engine.model(), trial.id());
    let Some((queue, resources)) = reasons.iter().find_map(wanted) else {
        return Vec::new();
    };
    let dims: Vec<DimId> = resources.iter().filter_map(|name| m.dims.get(name)).collect();
    let queue = queue.and_then(|name| m.find_queue(name));
    let mut found: Vec<(f64, Holder)> = Vec::new();
    for id in m.jobs_by_name().into_iter().filter(|&id| Some(id) != own) {
        let job = m.job(id);
        if queue.is_some_and(|queue| !is_below(m, job.queue, queue)) {
            continue;
        }
        let pods = job.counts.allocated();
        let group = job.id.to_string();
        let holder = |holds| Holder {
            job: world.owners.job_of(&group),
            pod_group: Some(group),
            queue: m.text(m.queue(job.queue).name).to_owned(),
            priority: job.priority,
            pods,
            holds,
        };
        found.extend(held(m, &dims, &job.charged, holder));
    }
    if queue.is_none() {
        found.extend(without_group(m, &dims));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.job.cmp(&b.1.job)));
    found.truncate(NAMED);
    found.into_iter().map(|(_, holder)| holder).collect()
}

/// What is short by a reason, and in which queue.
fn wanted(reason: &Reason) -> Option<(Option<&str>, Vec<&str>)> {
    match reason {
        Reason::QueueFull { queue, limit, short } => {
            let names = short.iter().map(|amount| amount.resource.as_str()).collect();
            Some(((*limit != QueueLimit::Rest).then_some(queue.as_str()), names))
        }
        Reason::Overcommitted { short } => Some((
            None,
            short.iter().map(|amount| amount.resource.as_str()).collect(),
        )),
        Reason::Short { room, .. } | Reason::Fragmented { room, .. } => {
            Some((None, room.iter().map(|room| room.resource.as_str()).collect()))
        }
        _ => None,
    }
}

fn is_below(m: &Model, queue: QueueId, top: QueueId) -> bool {
    let mut at = queue;
    // A chain of parents is as long as there are queues at the most; one that goes in circles ends as well.
    for _ in 0..m.queues.len() {
        if at == top {
            return true;
        }
        let parent = m.queue(at).parent.and_then(|name| m.find_queue(m.text(name)));
        match parent {
            Some(parent) => at = parent,
            None => return false,
        }
    }
    false
}

fn held(
    m: &Model,
    dims: &[DimId],
    amounts: &Resource,
    holder: impl FnOnce(BTreeMap<String, Quantity>) -> Holder,
) -> Option<(f64, Holder)> {
    let held: Vec<(DimId, i64)> = dims
        .iter()
        .map(|&dim| (dim, amounts.get(dim)))
        .filter(|(_, value)| *value > 0)
        .collect();
    let most = held
        .iter()
        .map(|&(dim, value)| share(value, m.nodes.total().get(dim).max(1)));
    let most = most.max_by(f64::total_cmp)?;
    let holds = held
        .iter()
        .map(|&(dim, value)| (m.dims.name(dim).to_owned(), m.dims.quantity(dim, value)))
        .collect();
    Some((most, holder(holds)))
}

/// Pods on nodes that belong to no PodGroup, taken together.
fn without_group(m: &Model, dims: &[DimId]) -> Option<(f64, Holder)> {
    let mut sum = Resource::default();
    let mut pods = 0;
    for id in m.task_ids() {
        let task = m.task(id);
        if task.job.is_none() && task.status.is_allocated() {
            pods += 1;
            sum.add(m.request(id));
        }
    }
    let dims: Vec<DimId> = dims.iter().copied().filter(|&dim| dim != PODS).collect();
    held(m, &dims, &sum, |holds| Holder {
        job: String::new(),
        pod_group: None,
        queue: String::new(),
        priority: 0,
        pods,
        holds,
    })
}
