//! The Job controller: looks at one Job with everything that belongs to it.

use super::core::Look;
use super::execute::Failed;
use super::store::Store;
use std::time::{Duration, Instant};
use volcano_api::batch::Job;
use volcano_api::time::{GoDuration, Time};
use volcano_reconcile::job::{self, Observed, discard, objects_of, reconcile};
use volcano_reconcile::plugins;
use volcano_reconcile::write::{Event, Plan};

/// Objects of plugins are not watched: what was read is looked up again after this, if the Job is looked at.
const READ_AGAIN: Duration = Duration::from_secs(300);
/// How long a Command waits for a Job that is not seen yet.
const COMMAND_PATIENCE: GoDuration = GoDuration::from_seconds(30);

/// What is to be done for a Job.
pub fn look(store: &mut Store, at: &str, is_exhausted: bool, now: Time, moment: Instant) -> Look {
    let Some(entry) = store.job(at) else {
        return Look::Plan(Plan::default());
    };
    let Some(job) = entry.job().cloned() else {
        return Look::Plan(strays(entry.commands(), now));
    };
    let wanted = objects_of(&job);
    let is_old = |(read, _): &(Instant, plugins::Observed)| moment.duration_since(*read) > READ_AGAIN;
    if !wanted.is_empty() && entry.objects().is_none_or(is_old) {
        return Look::Read(wanted);
    }
    let claims = store.claims_for(&job);
    let mut memory = match store.job_mut(at) {
        Some(entry) => std::mem::take(&mut entry.memory),
        None => return Look::Plan(Plan::default()),
    };
    let nothing = plugins::Observed::default();
    let plan = store.job(at).map(|entry| {
        let pods: Vec<_> = entry.pods().collect();
        let commands: Vec<_> = entry.commands().collect();
        let observed = Observed {
            job: &job,
            pods: &pods,
            pod_group: store.group_of_job(&job),
            queue: store.queues().queue(&job.spec.queue),
            claims: &claims,
            plugin_objects: entry.objects().map_or(&nothing, |(_, objects)| objects),
            commands: &commands,
            priorities: store.priorities(),
            is_exhausted,
        };
        reconcile(&observed, &mut memory, now)
    });
    if let Some(entry) = store.job_mut(at) {
        entry.memory = memory;
    }
    Look::Plan(plan.unwrap_or_default())
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

/// What users are told about writes that failed.
pub fn warnings(job: &Job, failed: &[Failed]) -> Vec<Event> {
    let failed: Vec<_> = failed
        .iter()
        .map(|failed| job::Failed {
            write: &failed.write,
            error: &failed.problem.text,
        })
        .collect();
    job::warnings(job, &failed)
}
