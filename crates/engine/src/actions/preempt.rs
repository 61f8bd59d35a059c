//! `preempt`: makes room for starving jobs by evicting tasks of the same queue.
//!
//! First between jobs, one plan per starving job; then inside each job, more important tasks over less important ones.

use super::eviction::{fits_on, make_room, victims};
use super::{ByQueue, admitted_valid_jobs, pending_tasks};
use crate::config::Arguments;
use crate::ids::{ClassId, JobId, NodeId, QueueId, TaskId};
use crate::model::status::Status;
use crate::placer::Placer;
use crate::plugin::EvictionKind;
use crate::session::Session;
use std::cmp::Reverse;

const KIND: EvictionKind = EvictionKind::Preempt;

/// The arguments of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Compare what preemption would cost on several nodes before choosing one.
    pub compare_nodes: bool,
    /// Nodes to compare: at least this part of all, in percent, …
    pub min_percentage: i64,
    /// … and at least this many, …
    pub min_nodes: i64,
    /// … but no more than this many.
    pub max_nodes: i64,
}

impl Settings {
    /// Reads the arguments. `topologyAwarePreemptWorkerNum` sizes a pool of threads that this engine does not need.
    pub fn read(arguments: &Arguments) -> Self {
        Settings {
            compare_nodes: arguments.bool("enableTopologyAwarePreemption", false),
            min_percentage: arguments.int("minCandidateNodesPercentage", 10),
            min_nodes: arguments.int("minCandidateNodesAbsolute", 1),
            max_nodes: arguments.int("maxCandidateNodesAbsolute", 100),
        }
    }

    fn nodes_to_compare(&self, nodes: usize) -> usize {
        let part = nodes as i64 * self.min_percentage / 100;
        let wanted = part.max(self.min_nodes).min(self.max_nodes).max(1);
        usize::try_from(wanted).unwrap_or(1).min(nodes)
    }
}

/// Whose tasks may be evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// Other jobs of the queue.
    OtherJobs(QueueId, JobId),
    /// The job itself.
    SameJob(JobId),
}

/// Nodes in the order in which they are tried for a class, those that failed taken out: within one plan a node that
/// had no room to make will have none for the next task of the class either.
struct Order {
    class: ClassId,
    nodes: Vec<NodeId>,
}

/// Makes room.
pub fn run(ssn: &mut Session<'_>, settings: &Settings) {
    let jobs: Vec<JobId> = admitted_valid_jobs(ssn)
        .into_iter()
        .filter(|&job| ssn.plugins.job_starving(ssn.m, job) && !ssn.m.job(job).has_network_topology())
        .collect();
    for (queue, jobs) in ByQueue::new(ssn, jobs).queues {
        for &job in &jobs {
            preempt_for_job(ssn, settings, queue, job);
        }
        for &job in &jobs {
            preempt_inside_job(ssn, settings, job);
        }
    }
}

fn preempt_for_job(ssn: &mut Session<'_>, settings: &Settings, queue: QueueId, job: JobId) {
    let checkpoint = ssn.checkpoint();
    let mut tasks = pending_tasks(ssn, job, |t| !ssn.m.task(t).gated());
    let mut order = None;
    while ssn.plugins.job_starving(ssn.m, job) {
        let Some(task) = tasks.pop() else { break };
        preempt_for_task(ssn, settings, task, Scope::OtherJobs(queue, job), &mut order);
    }
    if ssn.changed_since(checkpoint) && ssn.plugins.job_pipelined(ssn.m, job) {
        ssn.commit(checkpoint);
    } else {
        ssn.rollback(checkpoint);
    }
}

fn preempt_inside_job(ssn: &mut Session<'_>, settings: &Settings, job: JobId) {
    let mut tasks = pending_tasks(ssn, job, |t| !ssn.m.task(t).gated());
    while let Some(task) = tasks.pop() {
        let checkpoint = ssn.checkpoint();
        if !preempt_for_task(ssn, settings, task, Scope::SameJob(job), &mut None) {
            ssn.rollback(checkpoint);
            return;
        }
        ssn.commit(checkpoint);
    }
}

/// Finds a node where evictions make room for the task, and puts it there.
fn preempt_for_task(
    ssn: &mut Session<'_>,
    settings: &Settings,
    task: TaskId,
    scope: Scope,
    order: &mut Option<Order>,
) -> bool {
    if !may_preempt(ssn, task) || ssn.plugins.pre_predicate(ssn.m, task).is_err() {
        return false;
    }
    let class = ssn.m.task(task).class;
    if order.as_ref().is_none_or(|o| o.class != class) {
        *order = Some(Order {
            class,
            nodes: ssn.placer.rank_for_eviction(ssn.m, ssn.plugins, task),
        });
    }
    let order = order.as_mut().expect("made above");
    if settings.compare_nodes {
        return cheapest_node(ssn, settings, task, scope, order);
    }
    let mut at = 0;
    while at < order.nodes.len() {
        let node = order.nodes[at];
        ssn.figures.preemption_attempts += 1;
        // Inside a job only victims make room: allocate has left what is free alone, as the gang is not whole with it.
        let counts = |evicted: &Vec<TaskId>| !evicted.is_empty() || matches!(scope, Scope::OtherJobs(..));
        if let Some(evicted) = make_room_on(ssn, task, node, scope).filter(counts) {
            ssn.pipeline(task, node, !evicted.is_empty());
            order.nodes.drain(..at);
            return true;
        }
        at += 1;
    }
    order.nodes.clear();
    false
}

/// `Never` means never. A pod that has a node waiting for it does not evict again while its victims are leaving, or
/// when it fits there already; a node that somebody else has filled since then does not hold it back.
fn may_preempt(ssn: &Session<'_>, task: TaskId) -> bool {
    if ssn.m.task(task).never_preempts {
        return false;
    }
    let Some(node) = ssn.m.nominated_node(task) else {
        return true;
    };
    if fits_on(ssn, task, node) {
        return false;
    }
    let priority = ssn.m.task(task).priority;
    !ssn.m.leaving(node).any(|t| t.evicting && t.priority < priority)
}

fn make_room_on(ssn: &mut Session<'_>, task: TaskId, node: NodeId, scope: Scope) -> Option<Vec<TaskId>> {
    let best_effort = ssn.m.task(task).best_effort;
    let victims = victims(ssn, task, node, KIND, |ssn, t| {
        let victim = ssn.m.task(t);
        let Some(job) = victim.job.filter(|&job| ssn.m.in_session(job)) else {
            return false;
        };
        let in_scope = match scope {
            Scope::OtherJobs(queue, own) => job != own && ssn.m.job(job).queue == queue,
            Scope::SameJob(own) => job == own,
        };
        in_scope
            && matches!(victim.status, Status::Bound | Status::Running)
            && (victim.best_effort || !best_effort)
    });
    ssn.figures.preemption_victims = Some(victims.len());
    let queue = ssn.m.task(task).job.map(|job| ssn.m.job(job).queue)?;
    make_room(ssn, task, node, KIND, &victims, |ssn| {
        ssn.plugins.allocatable(ssn.m, queue, task).is_ok() && fits_on(ssn, task, node)
    })
}

/// What preemption costs on a node; the smallest is best.
type Cost = (i32, i64, usize, Reverse<i64>);

/// Tries several nodes and takes the one whose victims matter least.
fn cheapest_node(
    ssn: &mut Session<'_>,
    settings: &Settings,
    task: TaskId,
    scope: Scope,
    order: &mut Order,
) -> bool {
    let most = settings.nodes_to_compare(order.nodes.len());
    let mut found: Vec<(Cost, NodeId)> = Vec::new();
    let mut failed = Vec::new();
    for &node in &order.nodes {
        if found.len() >= most {
            break;
        }
        if !ssn.plugins.simulates() && !Placer::judge_related(ssn.m, ssn.plugins, task, node).is_empty() {
            failed.push(node);
            continue;
        }
        let checkpoint = ssn.checkpoint();
        match make_room_on(ssn, task, node, scope).filter(|evicted| !evicted.is_empty()) {
            Some(evicted) => {
                ssn.figures.preemption_attempts += 1;
                found.push((cost(ssn, &evicted), node));
            }
            None => failed.push(node),
        }
        ssn.forget(checkpoint);
    }
    order.nodes.retain(|node| !failed.contains(node));
    let Some(&(_, node)) = found.iter().min_by(|a, b| a.0.cmp(&b.0)) else {
        return false;
    };
    if make_room_on(ssn, task, node, scope).is_none() {
        return false;
    }
    ssn.pipeline(task, node, true);
    true
}

fn cost(ssn: &Session<'_>, evicted: &[TaskId]) -> Cost {
    let priority = |t: &TaskId| ssn.m.task(*t).priority;
    let highest = evicted.iter().map(priority).max().unwrap_or(i32::MIN);
    let sum = evicted.iter().map(|t| i64::from(priority(t)) + (1 << 31)).sum();
    let starts = evicted
        .iter()
        .filter(|t| priority(t) == highest)
        .map(|t| ssn.m.task(*t).started);
    let earliest = starts.map(|s| s.unwrap_or(i64::MAX)).min().unwrap_or(i64::MAX);
    (highest, sum, evicted.len(), Reverse(earliest))
}
