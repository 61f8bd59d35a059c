//! `allocate`: places gangs on idle resources, whole or not at all.
//!
//! 1. Serve those with a first claim (see `claims`).
//! 2. Take the first queue, unless it uses more than its share.
//! 3. Take its first job.
//! 4. Place its tasks until it is ready.
//! 5. Commit, or hold the place while others leave, or undo.
//! 6. Look at the order of queues again.

use super::claims::{has_first_claim, is_broken, place_first_claims};
use super::{choose, is_valid, pending_tasks};
use crate::explain::{FitError, Invalid};
use crate::ids::{JobId, QueueId, TaskId};
use crate::model::Model;
use crate::model::job::{Phase, at_least};
use crate::model::status::Status;
use crate::model::task::Gate;
use crate::placer::{Candidates, Choice};
use crate::session::Session;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volcano_api::scheduling::NetworkTopologyMode;

/// The tasks of a job that are left to place, by sub-job, next one last.
pub(super) struct Worksheet {
    pub job: JobId,
    pub parts: Vec<(u32, Vec<TaskId>)>,
    /// Sub-jobs that have to become whole for their group's minimum.
    pub required: BTreeSet<u32>,
}

/// What came of an attempt at a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// Its gang has its places.
    Ready,
    /// Its gang has its places once others have left.
    Held,
    /// No places.
    Failed,
}

/// Places what can be placed.
pub fn run(ssn: &mut Session<'_>) {
    let jobs = eligible_jobs(ssn);
    let (first, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|&job| has_first_claim(ssn, job));
    let mut sheets = place_first_claims(ssn, first);
    sheets.extend(others.into_iter().map(|job| worksheet(ssn, job)));
    let mut queues: BTreeMap<QueueId, JobHeap> = BTreeMap::new();
    for sheet in sheets.into_iter().filter(|sheet| !sheet.parts.is_empty()) {
        let queue = ssn.m.job(sheet.job).queue;
        queues.entry(queue).or_default().sheets.push(sheet);
    }
    for heap in queues.values_mut() {
        heap.sort(ssn);
    }
    let mut queues: Vec<(QueueId, JobHeap)> = queues.into_iter().collect();
    while let Some(at) = first_queue(ssn, &queues) {
        let queue = queues[at].0;
        if ssn.plugins.overused(ssn.m, queue) {
            queues.swap_remove(at);
            continue;
        }
        let Some(sheet) = queues[at].1.pop() else {
            queues.swap_remove(at);
            continue;
        };
        match place_job(ssn, sheet) {
            Ok(Some(rest)) => queues[at].1.push(ssn, rest),
            Ok(None) => {}
            Err(()) if ssn.m.queue(queue).fifo => {
                queues.swap_remove(at);
            }
            Err(()) => {}
        }
    }
}

fn first_queue(ssn: &Session<'_>, queues: &[(QueueId, JobHeap)]) -> Option<usize> {
    (0..queues.len()).min_by(|&a, &b| ssn.plugins.queue_order(ssn.m, queues[a].0, queues[b].0))
}

/// Admitted jobs with pending tasks that may be tried. Without `enqueue`, waiting jobs are admitted here.
fn eligible_jobs(ssn: &mut Session<'_>) -> Vec<JobId> {
    let jobs: Vec<JobId> = ssn.m.waiting_jobs().collect();
    let mut eligible = Vec::new();
    for job in jobs {
        if ssn.m.job(job).phase() == Phase::Pending {
            if ssn.admits {
                continue;
            }
            ssn.m.set_phase(job, Phase::Inqueue);
        }
        if !ssn.m.job(job).has_pending() || !is_valid(ssn, job) {
            continue;
        }
        if needs_unavailable_topology(ssn.m, job) {
            ssn.report(job).invalid = Some(Invalid {
                reason: volcano_api::names::reasons::NOT_ENOUGH_RESOURCES,
                message: "hard network topology needs the plugin network-topology-aware".to_owned(),
            });
            continue;
        }
        eligible.push(job);
    }
    eligible
}

/// A hard limit on network distance is never ignored: without the plugin that keeps it, the job waits.
pub(super) fn needs_unavailable_topology(m: &Model, job: JobId) -> bool {
    let Some(group) = &m.job(job).group else {
        return false;
    };
    let parts = group
        .sub_groups
        .iter()
        .filter_map(|s| s.network_topology.as_ref());
    group
        .network_topology
        .iter()
        .chain(parts)
        .any(|t| t.mode != NetworkTopologyMode::Soft)
}

pub(super) fn worksheet(ssn: &Session<'_>, job: JobId) -> Worksheet {
    let tasks = pending_tasks(ssn, job, |t| {
        let task = ssn.m.task(t);
        (!task.best_effort || task.waits_for_queue()) && task.gate != Gate::Foreign
    });
    let mut parts: Vec<(u32, Vec<TaskId>)> = Vec::new();
    for task in tasks {
        let sub_job = ssn.m.task(task).sub_job;
        match parts.iter_mut().find(|(known, _)| *known == sub_job) {
            Some((_, list)) => list.push(task),
            None => parts.push((sub_job, vec![task])),
        }
    }
    let required = order_parts(ssn, job, &mut parts);
    Worksheet { job, parts, required }
}

/// Sub-jobs that are needed for the minimum of their group first, then by sub-job order; next one last. Returns those
/// that are needed.
fn order_parts(ssn: &Session<'_>, job: JobId, parts: &mut [(u32, Vec<TaskId>)]) -> BTreeSet<u32> {
    if !ssn.m.job(job).has_sub_groups() {
        return BTreeSet::new();
    }
    let order = |a: u32, b: u32| ssn.plugins.sub_job_order(ssn.m, job, a, b);
    parts.sort_by(|a, b| order(a.0, b.0));
    let required = required_parts(ssn, job, parts);
    parts.sort_by(|a, b| {
        required
            .contains(&a.0)
            .cmp(&required.contains(&b.0))
            .then_with(|| order(b.0, a.0))
    });
    required
}

/// The sub-jobs that have to become whole, in the order given, as many as each group lacks of its minimum.
fn required_parts(ssn: &Session<'_>, job: JobId, parts: &[(u32, Vec<TaskId>)]) -> BTreeSet<u32> {
    let info = ssn.m.job(job);
    let policies = info
        .group
        .as_ref()
        .map(|g| g.sub_groups.as_slice())
        .unwrap_or_default();
    let mut missing: Vec<u32> = policies.iter().map(|p| at_least(p.min_sub_groups)).collect();
    let ready = |at: usize| ssn.plugins.sub_job_ready(ssn.m, job, at as u32);
    for (at, sub_job) in info.sub_jobs.iter().enumerate() {
        if let Some(policy) = sub_job.policy.filter(|_| sub_job.counts.total() > 0 && ready(at)) {
            missing[usize::from(policy)] = missing[usize::from(policy)].saturating_sub(1);
        }
    }
    let mut required: BTreeSet<u32> = BTreeSet::new();
    for (at, _) in parts.iter() {
        let policy = info.sub_jobs[*at as usize].policy;
        if let Some(left) = policy
            .map(|p| &mut missing[usize::from(p)])
            .filter(|left| **left > 0)
            && !ready(*at as usize)
        {
            *left -= 1;
            required.insert(*at);
        }
    }
    required
}

/// Tries a job. `Ok` with what is left to place of it, `Err` when it got nothing.
pub(super) fn place_job(ssn: &mut Session<'_>, mut sheet: Worksheet) -> Result<Option<Worksheet>, ()> {
    let checkpoint = ssn.checkpoint();
    let outcome = if ssn.m.job(sheet.job).has_sub_groups() {
        place_parts(ssn, &mut sheet)
    } else {
        let (sub_job, tasks) = sheet.parts.last_mut().expect("a worksheet is never empty");
        place_tasks(ssn, sheet.job, *sub_job, tasks, Candidates::All)
    };
    sheet.parts.retain(|(_, tasks)| !tasks.is_empty());
    match outcome {
        Outcome::Ready if ssn.plugins.job_ready(ssn.m, sheet.job) => {
            let placed = ssn.changed_since(checkpoint);
            ssn.commit(checkpoint);
            Ok(Some(sheet).filter(|s| placed && !s.parts.is_empty()))
        }
        Outcome::Ready | Outcome::Held => {
            ssn.hold(checkpoint);
            Ok(None)
        }
        Outcome::Failed => {
            ssn.rollback(checkpoint);
            Err(())
        }
    }
}

/// Places sub-job after sub-job until the job is ready. One that fails is left out, the others go on.
fn place_parts(ssn: &mut Session<'_>, sheet: &mut Worksheet) -> Outcome {
    let checkpoint = ssn.checkpoint();
    let mut left_over = Vec::new();
    while let Some((sub_job, mut tasks)) = sheet.parts.pop() {
        let outcome = place_tasks(ssn, sheet.job, sub_job, &mut tasks, Candidates::All);
        if outcome != Outcome::Failed && !tasks.is_empty() {
            left_over.push((sub_job, tasks));
        }
        if ssn.plugins.job_ready(ssn.m, sheet.job) {
            break;
        }
        if sheet.parts.is_empty() {
            sheet.parts.append(&mut left_over); // Each round places a task of a sub-job or drops the sub-job.
        }
    }
    sheet.parts.append(&mut left_over);
    sheet.required = order_parts(ssn, sheet.job, &mut sheet.parts);
    if !ssn.changed_since(checkpoint) {
        Outcome::Failed
    } else if ssn.plugins.job_ready(ssn.m, sheet.job) {
        Outcome::Ready
    } else if ssn.plugins.job_pipelined(ssn.m, sheet.job) {
        Outcome::Held
    } else {
        Outcome::Failed
    }
}

/// Places tasks of a sub-job until it is ready. On failure nothing of it stays.
fn place_tasks(
    ssn: &mut Session<'_>,
    job: JobId,
    sub_job: u32,
    tasks: &mut Vec<TaskId>,
    candidates: Candidates<'_>,
) -> Outcome {
    let checkpoint = ssn.checkpoint();
    let queue = ssn.m.job(job).queue;
    let mut failed_roles = failed_roles(ssn, job, sub_job);
    let broken = is_broken(ssn, job);
    while let Some(task) = tasks.pop() {
        let may_use = if broken {
            ssn.plugins.completable(ssn.m, queue, task)
        } else {
            ssn.plugins.allocatable(ssn.m, queue, task)
        };
        if let Err(reason) = may_use {
            ssn.report(job).queue_full = Some(reason);
            continue;
        }
        if ssn.m.task(task).waits_for_queue() {
            ssn.open_gate(task);
        }
        if ssn.m.task(task).gated() {
            continue;
        }
        if let Some(role) = ssn
            .m
            .role_name(task)
            .filter(|_| has_failed_role(ssn.m, task, &failed_roles))
        {
            ssn.report(job)
                .misfit(task, Arc::new(FitError::RoleFailed { role }));
            continue;
        }
        match choose(ssn, task, candidates) {
            Ok(choice) => place(ssn, task, choice),
            Err(error) => {
                ssn.report(job).misfit(task, error);
                failed_roles.extend(ssn.m.task(task).role);
                if !goes_on(ssn.m, job, sub_job, &failed_roles) {
                    break;
                }
                continue;
            }
        }
        if ssn.plugins.sub_job_ready(ssn.m, job, sub_job) {
            return Outcome::Ready;
        }
    }
    if ssn.plugins.sub_job_ready(ssn.m, job, sub_job) {
        Outcome::Ready
    } else if ssn.plugins.sub_job_pipelined(ssn.m, job, sub_job) {
        Outcome::Held
    } else {
        ssn.rollback(checkpoint);
        Outcome::Failed
    }
}

/// Puts a task where it was found to fit.
pub(super) fn place(ssn: &mut Session<'_>, task: TaskId, choice: Choice) {
    match choice {
        Choice { node, idle: true } => ssn.allocate(task, node),
        Choice { node, idle: false } => ssn.pipeline(task, node, false),
    }
}

fn failed_roles(ssn: &Session<'_>, job: JobId, sub_job: u32) -> FxHashSet<u16> {
    let Some(report) = ssn.reports.get(&job) else {
        return FxHashSet::default();
    };
    let tasks = report.fit_errors.keys().map(|&t| ssn.m.task(t));
    tasks
        .filter(|t| t.sub_job == sub_job)
        .filter_map(|t| t.role)
        .collect()
}

fn has_failed_role(m: &Model, task: TaskId, failed_roles: &FxHashSet<u16>) -> bool {
    m.task(task).role.is_some_and(|role| failed_roles.contains(&role))
}

/// After a task found no node: others may still make the gang ready.
fn goes_on(m: &Model, job: JobId, sub_job: u32, failed_roles: &FxHashSet<u16>) -> bool {
    let info = m.job(job);
    let (total, part) = (info.counts.total(), &info.sub_jobs[sub_job as usize]);
    if info.min_available() == total || at_least(part.min_available) >= part.counts.total() {
        return false;
    }
    if info.has_sub_groups() {
        return true;
    }
    let failed = |at: usize| u16::try_from(at).is_ok_and(|at| failed_roles.contains(&at));
    if info.roles_bind() {
        return info
            .roles
            .iter()
            .enumerate()
            .all(|(at, role)| !failed(at) || role.is_ready());
    }
    let hopeful: u32 = info
        .roles
        .iter()
        .enumerate()
        .filter(|(at, _)| !failed(*at))
        .map(|(_, role)| role.counts.of(Status::Pending))
        .sum();
    info.counts.ready() + hopeful >= info.min_available()
}

/// The jobs of a queue, best one on top. While a job is in here nothing that its order depends on changes.
#[derive(Default)]
struct JobHeap {
    sheets: Vec<Worksheet>,
}

impl JobHeap {
    fn sort(&mut self, ssn: &Session<'_>) {
        self.sheets
            .sort_by(|a, b| ssn.plugins.job_order(ssn.m, b.job, a.job));
    }

    fn pop(&mut self) -> Option<Worksheet> {
        self.sheets.pop()
    }

    /// Puts a job back where it belongs now: a binary search, and a move of those before it.
    fn push(&mut self, ssn: &Session<'_>, sheet: Worksheet) {
        let before =
            |other: &Worksheet| ssn.plugins.job_order(ssn.m, other.job, sheet.job) == Ordering::Greater;
        let at = self.sheets.partition_point(before);
        self.sheets.insert(at, sheet);
    }
}
