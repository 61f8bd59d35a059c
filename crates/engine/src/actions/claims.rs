//! First claims on what is free, before any new work:
//!
//! 1. jobs that others had to leave for, or a gang would take back what it was evicted from;
//! 2. gangs that lost a part (a failed bind, a crash, a lost node or pod): what is left of them holds resources in vain;
//!    and gangs that had their room and lost all of it to failed binds.
//!
//! A broken gang that has no room to be completed now holds what room there is for its missing members until the cycle
//! closes: nobody else gets it, in this cycle or any other, until the gang is whole. Those that can be completed are
//! completed before others hold: of two broken gangs, one that runs again frees its resources some day.

use super::allocate::{Worksheet, place, place_job, worksheet};
use super::choose;
use crate::explain::{FitError, JobReport};
use crate::ids::{ClassId, JobId, TaskId};
use crate::model::Model;
use crate::model::job::{Job, Role, at_least};
use crate::model::status::Status;
use crate::placer::Candidates;
use crate::session::Session;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Goes before new work.
pub(super) fn has_first_claim(ssn: &Session<'_>, job: JobId) -> bool {
    is_broken(ssn, job) || has_nominated(ssn.m, job) || lost_binds(ssn, job)
}

/// Some of its gang has a place and some has lost it.
pub(super) fn is_broken(ssn: &Session<'_>, job: JobId) -> bool {
    ssn.m.job(job).counts.placed() > 0 && !ssn.plugins.job_ready(ssn.m, job)
}

/// Room was made for one of its tasks, in an earlier cycle and at the cost of others.
fn has_nominated(m: &Model, job: JobId) -> bool {
    let mut pending = m.job(job).tasks.iter().map(|&task| m.task(task));
    pending.any(|task| task.status == Status::Pending && task.nominated.is_some())
}

/// It had its room, and its binds failed.
fn lost_binds(ssn: &Session<'_>, job: JobId) -> bool {
    let mut tasks = ssn.m.job(job).tasks.iter().map(|&task| ssn.m.task(task));
    tasks.any(|task| task.status == Status::Pending && task.bind_failed) && !ssn.plugins.job_ready(ssn.m, job)
}

/// Places the jobs that have a first claim, then lets broken gangs hold what room there is for them. Returns what is left
/// to place of gangs that are whole again: the rest of their members has no claim.
pub(super) fn place_first_claims(ssn: &mut Session<'_>, jobs: Vec<JobId>) -> Vec<Worksheet> {
    let (mut made_for, mut lost): (Vec<JobId>, Vec<JobId>) =
        jobs.into_iter().partition(|&job| has_nominated(ssn.m, job));
    for jobs in [&mut made_for, &mut lost] {
        jobs.sort_by(|&a, &b| ssn.plugins.job_order(ssn.m, a, b));
    }
    let mut rest = Vec::new();
    for &job in &made_for {
        rest.extend(place_made_for(ssn, job));
    }
    for &job in &lost {
        let sheet = worksheet(ssn, job);
        if !sheet.parts.is_empty() {
            rest.extend(place_job(ssn, sheet).unwrap_or(None));
        }
    }
    for job in made_for.into_iter().chain(lost) {
        if is_broken(ssn, job) && !ssn.plugins.job_pipelined(ssn.m, job) {
            hold_places(ssn, job);
        }
    }
    rest
}

/// Places what room was made for: what the gang needs, and each task that has a nomination. Returns the rest of a gang that
/// is whole: nobody left for it, so it comes after those that lost a part.
fn place_made_for(ssn: &mut Session<'_>, job: JobId) -> Option<Worksheet> {
    let mut sheet = worksheet(ssn, job);
    let m = &*ssn.m;
    for (_, tasks) in &mut sheet.parts {
        tasks.sort_by_key(|&task| m.task(task).nominated.is_some()); // The last one is the next.
    }
    loop {
        if ssn.plugins.job_ready(ssn.m, job) {
            keep_claimed(ssn, &mut sheet);
        }
        if sheet.parts.is_empty() {
            break;
        }
        match place_job(ssn, sheet) {
            Ok(Some(left)) => sheet = left,
            Ok(None) if ssn.plugins.job_ready(ssn.m, job) => break,
            _ => return None,
        }
    }
    let mut rest = worksheet(ssn, job);
    if let Some(report) = ssn.reports.get(&job) {
        let is_tried = |task: &TaskId| report.fit_errors.contains_key(task);
        rest.parts
            .iter_mut()
            .for_each(|(_, tasks)| tasks.retain(|task| !is_tried(task)));
    }
    rest.parts.retain(|(_, tasks)| !tasks.is_empty());
    Some(rest).filter(|rest| !rest.parts.is_empty())
}

/// Leaves the tasks that room was made for; of a sub-group that is not whole yet all, as it is placed whole or not at all.
fn keep_claimed(ssn: &Session<'_>, sheet: &mut Worksheet) {
    let m = &*ssn.m;
    let is_claimed = |task: &TaskId| m.task(*task).nominated.is_some();
    sheet.parts.retain_mut(|(sub_job, tasks)| {
        if ssn.plugins.sub_job_ready(m, sheet.job, *sub_job) {
            tasks.retain(is_claimed);
        }
        tasks.iter().any(is_claimed)
    });
}

/// Gives the missing members of a broken gang what room there is; the cycle's end takes it back. Members beyond what the
/// gang needs hold nothing.
fn hold_places(ssn: &mut Session<'_>, job: JobId) {
    let checkpoint = ssn.checkpoint();
    // Others may have been completed since this one was tried: what was found then need not hold any more.
    *ssn.report(job) = JobReport::default();
    let queue = ssn.m.job(job).queue;
    let sheet = worksheet(ssn, job);
    let mut misfits: FxHashMap<ClassId, Arc<FitError>> = FxHashMap::default();
    let next_last = sheet.parts.into_iter().flat_map(|(_, tasks)| tasks);
    for task in next_last.collect::<Vec<_>>().into_iter().rev() {
        if ssn.m.task(task).gated() || !is_missing(ssn.m, job, &sheet.required, task) {
            continue;
        }
        if let Err(reason) = ssn.plugins.completable(ssn.m, queue, task) {
            ssn.report(job).queue_full = Some(reason);
            continue;
        }
        let class = ssn.m.task(task).class;
        let found = match misfits.get(&class) {
            Some(error) => Err(error.clone()), // Room only becomes less.
            None => choose(ssn, task, Candidates::All),
        };
        match found {
            Ok(choice) => place(ssn, task, choice),
            Err(error) => {
                ssn.report(job).misfit(task, error.clone());
                misfits.insert(class, error);
            }
        }
    }
    if ssn.plugins.job_ready(ssn.m, job) {
        ssn.commit(checkpoint);
    } else {
        ssn.hold(checkpoint);
    }
}

/// The gang needs the task: for its role, for its sub-job, or for their number.
fn is_missing(m: &Model, job: JobId, required: &BTreeSet<u32>, task: TaskId) -> bool {
    let (job, task) = (m.job(job), m.task(task));
    let role_short = |role: &Role| role.counts.short_of(at_least(role.minimum));
    let part_short = |at: u32| {
        let part = &job.sub_jobs[at as usize];
        part.counts.short_of(at_least(part.min_available))
    };
    let roles: &[Role] = if job.roles_bind() { &job.roles } else { &[] };
    let role = task.role.and_then(|at| roles.get(usize::from(at)));
    if role.is_some_and(|role| role_short(role) > 0)
        || (required.contains(&task.sub_job) && part_short(task.sub_job) > 0)
    {
        return true;
    }
    let by_role: u32 = roles.iter().map(role_short).sum();
    let by_part: u32 = required.iter().map(|&at| part_short(at)).sum();
    short(job) > by_role.max(by_part)
}

fn short(job: &Job) -> u32 {
    job.counts.short_of(job.min_available())
}
