//! The Job controller: looks at one Job with everything that belongs to it.

use super::core::Look;
use super::execute::{Failed, Problem};
use super::store::{Store, queue_of};
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::batch::{Job, JobPhase};
use volcano_api::names::events;
use volcano_api::scheduling::{PodGroup, PodGroupPhase};
use volcano_api::time::{GoDuration, Time};
use volcano_reconcile::job::{self, Memory, Observed, discard, objects_of, reconcile};
use volcano_reconcile::plugins;
use volcano_reconcile::write::{Event, Plan, Target, Write};

/// Objects of plugins are not watched: what was read is looked up again after this, if the Job is looked at.
const READ_AGAIN: Duration = Duration::from_secs(300);
/// Watches lag by less than this, most of the time.
const LAG: GoDuration = GoDuration::from_millis(200);
/// How long a Command waits for a Job that is not seen yet.
const COMMAND_PATIENCE: GoDuration = GoDuration::from_seconds(30);

/// What is to be done for a Job.
pub fn look(store: &mut Store, at: &str, is_exhausted: bool, now: Time, moment: Instant) -> Look {
    if store.is_behind(at) {
        return Look::Plan(later(now));
    }
    let Some(mut memory) = store.job_mut(at).map(|entry| std::mem::take(&mut entry.memory)) else {
        return Look::Plan(Plan::default());
    };
    let (look, missing) = decide(store, at, is_exhausted, &mut memory, now, moment);
    store.wait_for_claims(at, missing);
    let may_be_old = !store.is_of_term;
    let Some(entry) = store.job_mut(at) else {
        return look;
    };
    if may_be_old
        && let (Look::Plan(plan), Some(job)) = (&look, entry.job())
        && let Some(ask) = entry.footing.asks(job, plan, &memory)
    {
        return Look::Ask(Target::of(job), ask);
    }
    entry.memory = memory;
    look
}

/// Whether a look at a Job is likely to make pods: it has fewer than it wants, and a PodGroup that is admitted.
pub fn makes_pods(store: &Store, at: &str) -> bool {
    let Some((entry, job)) = store.job(at).and_then(|entry| Some((entry, entry.job()?))) else {
        return false;
    };
    let wanted: i64 = job.spec.tasks.iter().map(|task| i64::from(task.replicas)).sum();
    let is_admitted = |group: &PodGroup| {
        let phase = &group.status.phase;
        !phase.is_unset() && *phase != PodGroupPhase::Pending
    };
    i64::try_from(entry.pods().count()).is_ok_and(|pods| pods < wanted)
        && store.group_of_job(job).is_some_and(is_admitted)
}

/// Nothing now. What is waited for may have changed nothing else here, so that nobody tells when it is there.
pub fn later(now: Time) -> Plan {
    let mut plan = Plan::default();
    plan.wake(now.saturating_add(LAG));
    plan
}

/// What is to be done, and the claims that are waited for.
fn decide(
    store: &Store,
    at: &str,
    is_exhausted: bool,
    memory: &mut Memory,
    now: Time,
    moment: Instant,
) -> (Look, Vec<String>) {
    let Some(entry) = store.job(at) else {
        return (Look::Plan(Plan::default()), Vec::new());
    };
    let Some(job) = entry.job() else {
        return (Look::Plan(strays(entry.commands(), now)), Vec::new());
    };
    let wanted = objects_of(job);
    let is_old = |(read, _): &(Instant, plugins::Observed)| moment.duration_since(*read) > READ_AGAIN;
    if !wanted.is_empty() && entry.objects().is_none_or(is_old) {
        return (Look::Read(wanted), Vec::new());
    }
    let (claims, missing) = store.claims_for(job);
    let pods: Vec<_> = entry.pods().collect();
    let commands: Vec<_> = entry.commands().collect();
    let nothing = plugins::Observed::default();
    let observed = Observed {
        job,
        pods: &pods,
        pod_group: store.group_of_job(job),
        queue: store.queues().queue(queue_of(job)),
        claims: &claims,
        plugin_objects: entry.objects().map_or(&nothing, |(_, objects)| objects),
        commands: &commands,
        priorities: store.priorities(),
        is_exhausted,
    };
    (Look::Plan(reconcile(&observed, memory, now)), missing)
}

/// Commands for a Job that is not there: it may not have been seen yet; later they are of no use to anybody.
fn strays<'a>(commands: impl Iterator<Item = &'a volcano_api::bus::Command>, now: Time) -> Plan {
    let mut plan = Plan::default();
    for command in commands {
        let given = command.metadata.creation_timestamp;
        match given.map(|given| given.saturating_add(COMMAND_PATIENCE)) {
            Some(until) if until > now => plan.wake(until),
            _ => plan.append(discard(command)),
        }
    }
    plan
}

/// The phase that a write puts a Job in.
pub fn phase_written(write: &Write) -> Option<JobPhase> {
    let Write::Patch {
        patch, status: true, ..
    } = write
    else {
        return None;
    };
    Some(JobPhase::from(patch["status"]["state"]["phase"].as_str()?))
}

/// What users are told when the objects of a Job's plugins cannot be read.
pub fn unreadable(job: &Job, problem: &Problem) -> Event {
    let message = format!("Execute plugin when job add failed, err: {}", problem.text);
    Event::warning(Target::of(job), events::PLUGIN_ERROR, message)
}

/// What users are told about writes that failed.
pub fn warnings(job: &Job, failed: &[Failed]) -> Vec<Event> {
    let failed: Vec<_> = failed
        .iter()
        .filter_map(|failed| {
            Some(job::Failed {
                write: failed.write.as_ref()?,
                error: &failed.problem.text,
            })
        })
        .collect();
    job::warnings(job, &failed)
}
