//! The actions of a cycle, one file each, and what they share.

pub mod allocate;
pub mod backfill;
mod claims;
pub mod enqueue;
pub mod eviction;
pub mod preempt;
pub mod reclaim;

use crate::config::SchedulerConf;
use crate::explain::FitError;
use crate::ids::{JobId, QueueId, TaskId};
use crate::model::job::Phase;
use crate::model::status::Status;
use crate::placer::{Candidates, Choice, Placer, fits_now};
use crate::session::Session;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs one action. `gangpreempt`, `gangreclaim` and `shuffle` are named in configurations but not in this engine.
pub fn run(ssn: &mut Session<'_>, action: &str, conf: &SchedulerConf) {
    match action {
        "enqueue" => enqueue::run(ssn),
        "allocate" => allocate::run(ssn),
        "backfill" => backfill::run(ssn),
        "preempt" => preempt::run(ssn, &preempt::Settings::read(&conf.action_arguments("preempt"))),
        "reclaim" => reclaim::run(ssn),
        _ => {}
    }
}

/// Actions of this engine.
pub const AVAILABLE: &[&str] = &["allocate", "backfill", "enqueue", "preempt", "reclaim"];

/// Jobs by queue, both best first.
struct ByQueue {
    queues: Vec<(QueueId, Vec<JobId>)>,
}

impl ByQueue {
    /// Sorts jobs into queues; inside a queue best first.
    fn new(ssn: &Session<'_>, jobs: impl IntoIterator<Item = JobId>) -> Self {
        let mut by_queue: BTreeMap<QueueId, Vec<JobId>> = BTreeMap::new();
        for job in jobs {
            by_queue.entry(ssn.m.job(job).queue).or_default().push(job);
        }
        let mut queues: Vec<_> = by_queue.into_iter().collect();
        for (_, jobs) in &mut queues {
            jobs.sort_by(|&a, &b| ssn.plugins.job_order(ssn.m, a, b));
        }
        queues.sort_by(|a, b| ssn.plugins.queue_order(ssn.m, a.0, b.0));
        ByQueue { queues }
    }
}

/// Jobs that are admitted and that the gang rules find complete; others get their report.
fn admitted_valid_jobs(ssn: &mut Session<'_>) -> Vec<JobId> {
    let waiting: Vec<JobId> = ssn
        .m
        .waiting_jobs()
        .filter(|&job| ssn.m.job(job).has_pending())
        .collect();
    waiting
        .into_iter()
        .filter(|&job| ssn.m.job(job).phase() != Phase::Pending && is_valid(ssn, job))
        .collect()
}

fn is_valid(ssn: &mut Session<'_>, job: JobId) -> bool {
    match ssn.plugins.job_valid(ssn.m, job) {
        Ok(()) => true,
        Err(invalid) => {
            ssn.report(job).invalid = Some(invalid);
            false
        }
    }
}

/// Pending tasks of a job in task order, last first, so that `pop` gives the next one.
fn pending_tasks(ssn: &Session<'_>, job: JobId, keep: impl Fn(TaskId) -> bool) -> Vec<TaskId> {
    let tasks = ssn.m.job(job).tasks.iter().copied();
    let mut pending: Vec<TaskId> = tasks
        .filter(|&t| ssn.m.task(t).mine && ssn.m.task(t).status == Status::Pending && keep(t))
        .collect();
    pending.sort_unstable_by(|&a, &b| ssn.plugins.task_order(ssn.m, b, a));
    pending
}

/// The node that an earlier cycle made room on, if it still takes the task; else the best of all.
fn choose(ssn: &mut Session<'_>, task: TaskId, candidates: Candidates<'_>) -> Result<Choice, Arc<FitError>> {
    if let Err(reason) = ssn.plugins.pre_predicate(ssn.m, task) {
        let nodes = match candidates {
            Candidates::All => ssn.m.nodes.present(),
            Candidates::Only(nodes) => nodes.len(),
        };
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        let reasons = BTreeMap::from([(reason, nodes)]);
        return Err(Arc::new(FitError::Nodes {
            nodes,
            reasons,
            hyper_node: None,
        }));
    }
    let nominated = ssn.m.nominated_node(task).filter(|node| match candidates {
        Candidates::All => true,
        Candidates::Only(nodes) => nodes.contains(node),
    });
    if let Some(node) = nominated.filter(|&node| Placer::judge(ssn.m, ssn.plugins, task, node).is_empty()) {
        return Ok(Choice {
            node,
            idle: fits_now(ssn.m, ssn.m.class_of(task), node),
        });
    }
    ssn.placer.choose(ssn.m, ssn.plugins, task, candidates)
}
