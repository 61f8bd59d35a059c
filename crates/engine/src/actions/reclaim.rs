//! `reclaim`: makes room for starving jobs by evicting tasks of queues that use more than they should.

use super::allocate::needs_unavailable_topology;
use super::eviction::{fits_on, make_room, victims};
use super::{ByQueue, admitted_valid_jobs, pending_tasks};
use crate::ids::{ClassId, JobId, NodeId, QueueId, TaskId};
use crate::model::status::Status;
use crate::plugin::EvictionKind;
use crate::session::Session;
use std::collections::VecDeque;

const KIND: EvictionKind = EvictionKind::Reclaim;

/// Nodes still worth trying for a class within one plan.
struct Order {
    class: ClassId,
    nodes: Vec<NodeId>,
}

/// Makes room, one plan per starving job; after each the order of queues is looked at again.
pub fn run(ssn: &mut Session<'_>) {
    let jobs: Vec<JobId> = admitted_valid_jobs(ssn)
        .into_iter()
        .filter(|&job| ssn.plugins.job_starving(ssn.m, job) && !needs_unavailable_topology(ssn.m, job))
        .collect();
    let mut queues: Vec<(QueueId, VecDeque<JobId>)> = ByQueue::new(ssn, jobs)
        .queues
        .into_iter()
        .map(|(queue, jobs)| (queue, jobs.into()))
        .collect();
    loop {
        let first =
            (0..queues.len()).min_by(|&a, &b| ssn.plugins.queue_order(ssn.m, queues[a].0, queues[b].0));
        let Some(at) = first else { return };
        let (queue, jobs) = &mut queues[at];
        match jobs.pop_front() {
            Some(job) if !ssn.plugins.overused(ssn.m, *queue) => reclaim_for_job(ssn, *queue, job),
            _ => {
                queues.swap_remove(at);
            }
        }
    }
}

fn reclaim_for_job(ssn: &mut Session<'_>, queue: QueueId, job: JobId) {
    let checkpoint = ssn.checkpoint();
    let mut tasks = pending_tasks(ssn, job, |t| !ssn.m.task(t).gated());
    let mut order = None;
    while ssn.plugins.job_starving(ssn.m, job) {
        let Some(task) = tasks.pop() else { break };
        if !ssn.m.task(task).never_preempts
            && ssn.plugins.preemptive(ssn.m, queue, &[task])
            && ssn.plugins.pre_predicate(ssn.m, task).is_ok()
        {
            reclaim_for_task(ssn, queue, task, &mut order);
        }
    }
    if ssn.changed_since(checkpoint) && ssn.plugins.job_pipelined(ssn.m, job) {
        ssn.commit(checkpoint);
    } else {
        ssn.rollback(checkpoint);
    }
}

/// The first node, by name, where evictions make room for the task.
fn reclaim_for_task(ssn: &mut Session<'_>, queue: QueueId, task: TaskId, order: &mut Option<Order>) {
    let class = ssn.m.task(task).class;
    if order.as_ref().is_none_or(|o| o.class != class) {
        *order = Some(Order {
            class,
            nodes: ssn.placer.nodes_for_eviction(ssn.m, ssn.plugins, task),
        });
    }
    let nodes = &mut order.as_mut().expect("made above").nodes;
    for at in 0..nodes.len() {
        let node = nodes[at];
        let victims = victims(ssn, task, node, KIND, |ssn, t| {
            let victim = ssn.m.task(t);
            let Some(job) = victim.job.filter(|&job| ssn.m.in_session(job)) else {
                return false;
            };
            let owner = ssn.m.job(job).queue;
            victim.status == Status::Running && owner != queue && ssn.m.queue(owner).reclaimable
        });
        // Where nobody has to go, allocate places the task: it may come after this.
        if victims.is_empty() {
            continue;
        }
        // What allocate will ask once the victims are gone: a queue above may be full whoever leaves.
        let fits = |ssn: &Session<'_>| {
            ssn.plugins.allocatable(ssn.m, queue, task).is_ok() && fits_on(ssn, task, node)
        };
        if let Some(evicted) = make_room(ssn, task, node, KIND, &victims, fits) {
            ssn.pipeline(task, node, !evicted.is_empty());
            nodes.drain(..at);
            return;
        }
    }
    nodes.clear();
}
