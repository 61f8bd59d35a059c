//! The end of a cycle: what it means for PodGroups, pods and queues, as effects. Only what changed is said.

use crate::effect::{Effect, Nomination};
use crate::explain::{Attempt, JobReport, job_text};
use crate::ids::{JobId, QueueId, TaskId};
use crate::model::Model;
use crate::model::job::Phase;
use crate::model::status::Status;
use crate::placer::Placer;
use crate::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volcano_api::meta::ConditionStatus;
use volcano_api::names::{conditions, messages, reasons};
use volcano_api::scheduling::PodGroupCondition;
use volcano_api::time::Time;

/// Users are told again that a job waits after this long: whoever begins to watch later has to hear of it, too.
const REMIND_MICROS: i64 = 30_000_000;
/// As many jobs are told of again in one cycle, at most. The others have their turn in the next ones.
const MOST_REMINDERS: usize = 8;

/// Reports on every job that the cycle looked at or that changed, while placements that wait are still applied.
/// `gang` says whether the plugin that owns the PodGroup conditions is configured.
pub fn report(ssn: &mut Session<'_>, changed: &[JobId], gang: bool, now: Time) {
    let mut jobs: BTreeSet<JobId> = changed.iter().copied().collect();
    jobs.extend(ssn.m.waiting_jobs());
    jobs.extend(ssn.reports.keys().copied());
    jobs.extend(ssn.m.changed_jobs());
    for (task, node, evicted) in ssn.pipelined() {
        if evicted {
            ssn.m.tasks[task.index()].nominated = Some(ssn.m.nodes[node].name);
        }
    }
    let (nothing, mut reminders) = (JobReport::default(), 0);
    jobs.retain(|&job| ssn.m.in_session(job));
    for job in jobs {
        let report = ssn.reports.remove(&job);
        let known = report.as_ref().unwrap_or(&nothing);
        let text: Arc<str> = job_text(ssn.m, job, known).into();
        group_status(ssn, job, known, &text, gang, now, &mut reminders);
        pod_conditions(ssn, job, known, &text);
        ssn.reports.extend(report.map(|report| (job, report)));
    }
    for &(job, _) in &ssn.figures.unschedulable_tasks {
        if ssn.m.job(job).is_ready() {
            ssn.m.unready.remove(&job);
        } else {
            ssn.m.unready.insert(job);
        }
    }
    let (m, unready) = (&*ssn.m, &ssn.m.unready);
    let lacking = unready
        .iter()
        .filter(|&&job| m.in_session(job) && m.job(job).counts.total() > 0);
    ssn.figures.unschedulable_jobs = lacking.count();
}

/// What the cycle means for a PodGroup. `reminders` counts those that are only told again that they wait.
fn group_status(
    ssn: &mut Session<'_>,
    id: JobId,
    report: &JobReport,
    text: &str,
    gang: bool,
    now: Time,
    reminders: &mut usize,
) {
    let job = ssn.m.job(id);
    let Some(group) = &job.group else { return };
    let short = job.min_available().saturating_sub(schedulable(ssn.m, id, report));
    if gang && job.counts.total() > 0 {
        let lacks = if job.is_ready() { 0 } else { short };
        ssn.figures.unschedulable_tasks.push((id, lacks));
    }
    let mut list = group.conditions.clone();
    let mut unschedulable = false;
    if gang && job.counts.total() > 0 {
        if job.is_ready() {
            set_condition(&mut list, conditions::SCHEDULED, reasons::TASKS_READY, "", now);
        } else if !only_waits_for_leaving(ssn.m, id) {
            unschedulable = true;
            let message = format!(
                "{short}/{} tasks in gang unschedulable: {text}",
                job.counts.total()
            );
            set_condition(
                &mut list,
                conditions::UNSCHEDULABLE,
                reasons::NOT_ENOUGH_RESOURCES,
                &message,
                now,
            );
        }
    }
    let phase = next_phase(ssn.m, id, unschedulable);
    let of = |status| job.counts.of(status);
    let counters = [of(Status::Running), of(Status::Succeeded), of(Status::Failed)];
    let is_changed =
        group.phase_written != Some(phase) || group.conditions != list || group.counters != counters;
    let waits = matches!(phase, Phase::Unknown | Phase::Pending | Phase::Inqueue);
    let (told_at, now_micros) = (group.told_at, now.unix_micros());
    let is_due = told_at.is_some_and(|at| now_micros.saturating_sub(at) >= REMIND_MICROS);
    let is_reminder = !is_changed && waits && is_due && *reminders < MOST_REMINDERS;
    if !is_changed && !is_reminder {
        if told_at.is_none() {
            ssn.m.told(id, now_micros);
        }
        return;
    }
    let pending = job.counts.of(Status::Pending);
    let event = if waits {
        let message = format!(
            "{pending}/{} tasks in gang unschedulable: {text}",
            job.counts.total()
        );
        (true, reasons::UNSCHEDULABLE, message)
    } else {
        (false, conditions::SCHEDULED, messages::POD_GROUP_READY.to_owned())
    };
    if is_changed {
        ssn.effects.push(Effect::GroupStatus {
            job: id,
            phase,
            conditions: list.clone(),
            counters,
        });
        ssn.m.set_group_status(id, phase, list, counters);
    }
    ssn.effects.push(Effect::GroupEvent {
        job: id,
        warning: event.0,
        reason: event.1,
        message: event.2,
    });
    *reminders += usize::from(is_reminder);
    ssn.m.told(id, now_micros);
}

/// One entry per type; of the two types that belong to the scheduler, the other one no longer holds.
fn set_condition(list: &mut Vec<PodGroupCondition>, kind: &str, reason: &str, message: &str, now: Time) {
    let cycle = format!("{:x}", now.unix_micros());
    // The API keeps whole seconds; what comes back is then what was decided.
    let now = Time::from_unix_seconds(now.unix_seconds());
    let ours = [conditions::SCHEDULED, conditions::UNSCHEDULABLE];
    let others = list
        .iter_mut()
        .filter(|c| c.r#type != kind && ours.contains(&c.r#type.as_str()));
    for other in others.filter(|c| c.status == ConditionStatus::True) {
        other.status = ConditionStatus::False;
        other.last_transition_time = Some(now);
        other.transition_id.clone_from(&cycle);
    }
    let known = list.iter().position(|c| c.r#type == kind);
    let held = known
        .map(|at| &list[at])
        .filter(|c| c.status == ConditionStatus::True);
    let since = held.map_or(Some(now), |c| c.last_transition_time);
    let condition = PodGroupCondition {
        r#type: kind.to_owned(),
        status: ConditionStatus::True,
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: since,
        transition_id: held.map_or(cycle, |c| c.transition_id.clone()),
        ..PodGroupCondition::default()
    };
    match known {
        Some(at) => list[at] = condition,
        None => list.push(condition),
    }
}

/// Members are leaving and nothing waits: the gang is only on its way out.
fn only_waits_for_leaving(m: &Model, id: JobId) -> bool {
    let counts = &m.job(id).counts;
    counts.releasing_on_node > 0
        && counts.of(Status::Pending) == 0
        && counts.waiting() == 0
        && counts.scheduled() >= m.job(id).min_available()
}

fn schedulable(m: &Model, id: JobId, report: &JobReport) -> u32 {
    let pending = |t: &TaskId| m.task(*t).status == Status::Pending;
    let attempts = report
        .attempts
        .iter()
        .filter(|(t, a)| pending(t) && matches!(a, Attempt::Allocated(_)));
    m.job(id).counts.ready() + u32::try_from(attempts.count()).unwrap_or(u32::MAX)
}

fn next_phase(m: &Model, id: JobId, unschedulable: bool) -> Phase {
    let job = m.job(id);
    if job.counts.of(Status::Running) > 0 && unschedulable {
        return Phase::Unknown;
    }
    let scheduled = job.counts.scheduled();
    if scheduled >= job.min_available() && scheduled > 0 {
        let ended = job.counts.of(Status::Succeeded) + job.counts.of(Status::Failed);
        return if scheduled == ended {
            Phase::Completed
        } else {
            Phase::Running
        };
    }
    if job.phase() == Phase::Inqueue {
        Phase::Inqueue
    } else {
        Phase::Pending
    }
}

fn pod_conditions(ssn: &mut Session<'_>, id: JobId, report: &JobReport, job_text: &Arc<str>) {
    let mut shared: BTreeMap<*const crate::explain::FitError, Arc<str>> = BTreeMap::new();
    let incomplete = ssn.m.job(id).counts.total() < ssn.m.job(id).min_available();
    for at in 0..ssn.m.job(id).tasks.len() {
        let id = ssn.m.job(id).tasks[at];
        let task = ssn.m.task(id);
        let waits = matches!(
            task.status,
            Status::Pending | Status::Allocated | Status::Pipelined
        );
        if !waits || task.gated() || !task.mine {
            continue;
        }
        let attempt = match (task.status, task.node) {
            (Status::Allocated, Some(node)) => Some(Attempt::Allocated(ssn.m.nodes[node].name)),
            (Status::Pipelined, Some(node)) => Some(Attempt::Pipelined(ssn.m.nodes[node].name)),
            _ => report.attempts.get(&id).copied(),
        };
        let key = || format!("{}/{}", ssn.m.text(task.namespace), task.name);
        let (reason, message): (&'static str, Arc<str>) = match attempt {
            Some(Attempt::Allocated(node)) => {
                let node = ssn.m.text(node);
                let text = format!(
                    "Pod {} can possibly be assigned to {node}, once minAvailable is satisfied",
                    key()
                );
                (reasons::SCHEDULABLE, text.into())
            }
            Some(Attempt::Pipelined(node)) => {
                let node = ssn.m.text(node);
                let text = format!(
                    "Pod {} can possibly be assigned to {node}, once resource is released and minAvailable is satisfied",
                    key()
                );
                (reasons::UNSCHEDULABLE, text.into())
            }
            None => match report.fit_errors.get(&id) {
                Some(error) => {
                    let text = shared
                        .entry(Arc::as_ptr(error))
                        .or_insert_with(|| error.text(ssn.m, &task.name).into());
                    (reasons::UNSCHEDULABLE, text.clone())
                }
                None => (reasons::UNSCHEDULABLE, job_text.clone()),
            },
        };
        // While pods of the gang are still being made, the numbers in the message change with each: the group tells them.
        let same = |told: &str| told == &*message || (incomplete && Arc::ptr_eq(&message, job_text));
        let known = task
            .condition
            .as_ref()
            .is_some_and(|(told_reason, told)| **told_reason == *reason && same(told));
        let nominated = nomination(ssn, id);
        if !known || nominated != Nomination::Keep {
            let task = &mut ssn.m.tasks[id.index()];
            task.condition = Some((reason.into(), message.clone()));
            task.nominated_written = task.nominated;
            ssn.effects.push(Effect::PodCondition {
                task: id,
                reason,
                message,
                nominated,
            });
        }
    }
}

/// Drops a nomination that makes no sense any more, and says what is to be written.
fn nomination(ssn: &mut Session<'_>, id: TaskId) -> Nomination {
    if ssn.m.task(id).nominated.is_some() && !room_is_there(ssn, id) {
        ssn.m.tasks[id.index()].nominated = None;
    }
    let task = ssn.m.task(id);
    match task.nominated {
        nominated if nominated == task.nominated_written => Nomination::Keep,
        Some(_) => ssn.m.nominated_node(id).map_or(Nomination::Keep, Nomination::Set),
        None => Nomination::Clear,
    }
}

/// The node that was freed for a task still takes it, or may once others have left it; and the task has not found a
/// place elsewhere.
fn room_is_there(ssn: &Session<'_>, id: TaskId) -> bool {
    let Some(node) = ssn.m.nominated_node(id) else {
        return false;
    };
    match ssn.m.task(id).node {
        Some(place) => place == node,
        None => {
            ssn.m.leaving(node).next().is_some() || Placer::judge(ssn.m, ssn.plugins, id, node).is_empty()
        }
    }
}

/// What the queues use, once placements that wait are undone.
pub fn queue_status(m: &mut Model, effects: &mut Vec<Effect>) {
    if !std::mem::take(&mut m.usage_stale) {
        return;
    }
    for (at, allocated) in m.queue_usage().into_iter().enumerate() {
        let queue = &mut m.queues[at];
        if queue.exists && queue.allocated_written.as_ref() != Some(&allocated) {
            let removed = queue.write_allocated(allocated.clone());
            effects.push(Effect::QueueStatus {
                queue: QueueId::from_index(at),
                allocated,
                removed,
            });
        }
    }
}
