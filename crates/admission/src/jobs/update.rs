//! Rules for a change to a Job: it may be scaled and get another priority; everything else stays. The first fault is
//! told.

use serde_json::to_value;
use volcano_api::batch::{Job, JobSpec, TaskSpec};
use volcano_api::names::admission::messages;

use super::{semantic, tasks};
use crate::Patch;
use crate::review::{Refusal, Verdict};

/// Judges a change from one Job to another.
pub(super) fn check(old: Job, new: Job) -> Verdict {
    if let Some(fault) = scale_fault(&new) {
        return Err(fault);
    }
    if old.spec.tasks.len() != new.spec.tasks.len() {
        return Err(messages::UPDATE_TASKS.into());
    }
    let (old, new) = (fixed(old.spec), fixed(new.spec));
    let (old, new) = (to_value(old), to_value(new));
    let (old, new) = (
        old.expect("a spec is plain JSON"),
        new.expect("a spec is plain JSON"),
    );
    if semantic::equal(&old, &new) {
        Ok(Patch::default())
    } else {
        Err(messages::UPDATE_FIELDS.into())
    }
}

/// What is wrong with the numbers of a Job.
fn scale_fault(job: &Job) -> Option<Refusal> {
    let (name, spec) = (&job.metadata.name, &job.spec);
    if let Some(fault) = spec.tasks.iter().find_map(|task| task_fault(task, name)) {
        return Some(fault.into());
    }
    let message = if i64::from(spec.min_available) > tasks::total_replicas(&spec.tasks) {
        messages::UPDATE_MIN_AVAILABLE
    } else if spec.min_available < 0 {
        messages::UPDATE_MIN_AVAILABLE_NEGATIVE
    } else if tasks::has_both_tiers(spec.network_topology.as_ref()) {
        messages::BOTH_TIERS
    } else {
        return None;
    };
    Some(message.into())
}

fn task_fault(task: &TaskSpec, job: &str) -> Option<String> {
    let minimum = task.min_available;
    let fault = if task.replicas < 0 {
        "'replicas' must be >= 0"
    } else if minimum.is_some_and(|minimum| minimum < 0) {
        "'minAvailable' must be >= 0"
    } else if minimum.is_some_and(|minimum| minimum > task.replicas) {
        "'minAvailable' must be <= 'replicas'"
    } else {
        return tasks::partition_fault(task, job);
    };
    Some(format!("{fault} in task: {}", task.name))
}

/// A spec without what may change.
fn fixed(mut spec: JobSpec) -> JobSpec {
    spec.min_available = 0;
    spec.priority_class_name.clear();
    for task in &mut spec.tasks {
        task.replicas = 0;
        task.min_available = None;
    }
    for volume in &mut spec.volumes {
        // The controller writes down the name of the claim that it made.
        if volume.volume_claim.is_some() {
            volume.volume_claim_name.clear();
        }
    }
    spec
}
