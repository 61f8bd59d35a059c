//! `backfill`: places tasks that request nothing.

use super::{ByQueue, admitted_valid_jobs, choose, pending_tasks};
use crate::ids::JobId;
use crate::placer::{Candidates, Choice};
use crate::session::Session;

/// All jobs of a queue before the next queue; a job's tasks are bound once the job is ready. Tasks that an earlier
/// action only gave a place for later are tried again.
pub fn run(ssn: &mut Session<'_>) {
    ssn.take_back(|m, task| m.task(task).best_effort);
    let jobs = admitted_valid_jobs(ssn);
    for (_, jobs) in ByQueue::new(ssn, jobs).queues {
        for job in jobs {
            backfill_job(ssn, job);
        }
    }
}

fn backfill_job(ssn: &mut Session<'_>, job: JobId) {
    let checkpoint = ssn.checkpoint();
    let queue = ssn.m.job(job).queue;
    let mut tasks = pending_tasks(ssn, job, |t| ssn.m.task(t).best_effort && !ssn.m.task(t).gated());
    while let Some(task) = tasks.pop() {
        if let Err(reason) = ssn.plugins.allocatable(ssn.m, queue, task) {
            ssn.report(job).queue_full = Some(reason);
            continue;
        }
        match choose(ssn, task, Candidates::All) {
            Ok(Choice { node, idle: true }) => ssn.allocate(task, node),
            Ok(Choice { node, idle: false }) => ssn.pipeline(task, node, false),
            Err(error) => ssn.report(job).misfit(task, error),
        }
    }
    if ssn.plugins.job_ready(ssn.m, job) {
        ssn.commit(checkpoint);
    } else if ssn.plugins.job_pipelined(ssn.m, job) {
        ssn.hold(checkpoint);
    } else {
        ssn.rollback(checkpoint);
    }
}
