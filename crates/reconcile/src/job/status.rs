//! A Job's status: how its pods are counted, and how little of it is written.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use volcano_api::batch::{Job, JobCondition, JobPhase, JobStatus, TaskState};
use volcano_api::core::PodPhase;
use volcano_api::names::controlled;
use volcano_api::time::{GoDuration, Time};

use super::pods::{Doom, Members, task_key};
use super::table::is_finished;
use crate::write::{Target, Write};

/// Counters alone are written at most this often.
const SETTLES: GoDuration = GoDuration::from_seconds(1);

/// What is to become of a drafted status.
#[derive(Debug, PartialEq)]
pub enum Draft {
    /// It says what the stored one says.
    Same,
    /// Only counters differ, and they were written a moment ago: at this time they are worth a write.
    Later(Time),
    /// It is worth a write.
    Now(Box<Write>),
}

/// Fills in the counters: what is to go counts as terminating, also before its deletion was asked for. `created` are
/// the tasks (places in the spec) of pods that are made before the status is written.
///
/// What a finished Job has of finished pods stays counted when the pods are cleaned up.
pub fn count(job: &Job, status: &mut JobStatus, members: &Members<'_>, created: &[usize]) {
    let spec = &job.spec;
    let doom = Doom::of(spec, status);
    let mut by_phase = [0i32; 5];
    let mut by_task: BTreeMap<String, TaskState> = BTreeMap::new();
    let mut add = |task: &str, phase: PodPhase| {
        by_phase[phase as usize] += 1;
        let counts = &mut by_task.entry(task.to_owned()).or_default().phase;
        *counts.entry(phase.as_str().to_owned()).or_default() += 1;
    };
    let mut terminating = 0;
    for member in members.iter() {
        if member.is_leaving() || doom.takes(member) {
            terminating += 1;
        } else if member.is_wanted(spec) {
            add(member.task_name, member.phase());
        }
    }
    for task in created {
        add(task_key(&spec.tasks[*task]), PodPhase::Pending);
    }
    let [pending, running, succeeded, failed, unknown] = by_phase;
    status.pending = pending;
    status.running = running;
    status.succeeded = succeeded;
    status.failed = failed;
    status.unknown = unknown;
    status.terminating = terminating;
    status.min_available = spec.min_available;
    status.task_status_count = by_task;
    if is_finished(&job.status.state.phase) {
        status.succeeded = status.succeeded.max(job.status.succeeded);
        status.failed = status.failed.max(job.status.failed);
        keep_finished(&mut status.task_status_count, &job.status.task_status_count);
    }
}

/// Takes over counts of finished pods that were higher before.
fn keep_finished(counts: &mut BTreeMap<String, TaskState>, before: &BTreeMap<String, TaskState>) {
    for (task, state) in before {
        for phase in [PodPhase::Succeeded.as_str(), PodPhase::Failed.as_str()] {
            if let Some(&had) = state.phase.get(phase) {
                let has = counts
                    .entry(task.clone())
                    .or_default()
                    .phase
                    .entry(phase.to_owned())
                    .or_default();
                *has = had.max(*has);
            }
        }
    }
}

/// Whether pods are left that a Job which ends has to wait for.
pub fn is_alive(status: &JobStatus) -> bool {
    status.terminating + status.pending + status.running + status.unknown > 0
}

/// How long a Job has been there, as `runningDuration` says it.
pub fn running_duration(job: &Job, now: Time) -> Option<String> {
    let created = job.metadata.creation_timestamp?;
    Some(whole_seconds(now).since(created).to_string())
}

/// Notes that nothing of the plugins is left.
pub fn forget_plugins(status: &mut JobStatus) {
    status
        .controlled_resources
        .retain(|key, _| !key.starts_with(controlled::PLUGIN_PREFIX));
}

/// Makes a write of a drafted status, if there is something to write. `made` says that pods were made for it, which is
/// then written at once: it is the record that they were there.
pub fn draft(job: &Job, mut next: JobStatus, made: bool, now: Time) -> Draft {
    let stored = &job.status;
    if next == *stored {
        return Draft::Same;
    }
    let is_new_phase = next.state.phase != stored.state.phase;
    if !made && is_only_counters(stored, &next) {
        if is_finished(&next.state.phase) && is_alive(&next) {
            return Draft::Same;
        }
        let settled = stored
            .state
            .last_transition_time
            .map(|time| time.saturating_add(SETTLES));
        if let Some(settled) = settled.filter(|settled| now < *settled) {
            return Draft::Later(settled);
        }
    }
    // The time of its end is what the time to live of a finished Job is counted from.
    if is_new_phase || !is_finished(&next.state.phase) {
        stamp(&mut next, whole_seconds(now));
    }
    Draft::Now(Box::new(write(job, &next)))
}

/// Whether nothing differs but the number of pods.
fn is_only_counters(stored: &JobStatus, next: &JobStatus) -> bool {
    let without = |status: &JobStatus| JobStatus {
        pending: 0,
        running: 0,
        succeeded: 0,
        failed: 0,
        unknown: 0,
        terminating: 0,
        task_status_count: BTreeMap::new(),
        ..status.clone()
    };
    without(stored) == without(next)
}

/// Notes that the status changed now. The phase moves to the end of the conditions.
fn stamp(status: &mut JobStatus, now: Time) {
    status.state.last_transition_time = Some(now);
    let phase = status.state.phase.clone();
    status.conditions.retain(|condition| condition.status != phase);
    status.conditions.push(JobCondition {
        status: phase,
        last_transition_time: Some(now),
        ..JobCondition::default()
    });
}

fn write(job: &Job, next: &JobStatus) -> Write {
    let changes = changes(&to_value(&job.status), &to_value(next));
    Write::Patch {
        target: Target::of(job),
        patch: Value::Object(Map::from_iter([("status".to_owned(), changes)])),
        status: true,
        resource_version: Some(job.metadata.resource_version.clone()),
    }
}

/// A value of the API as JSON.
pub fn to_value<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("types of the API have text keys and finite numbers")
}

/// The JSON merge patch that makes `new` of `old`.
pub fn changes(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return new.clone();
    };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => {
                patch.insert(key.clone(), changes(before, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    Value::Object(patch)
}

/// A time as the API stores it.
pub fn whole_seconds(time: Time) -> Time {
    Time::from_unix_seconds(time.unix_seconds())
}

/// Enters a phase, for a reason that is kept (`reason`) and told (`message`).
pub fn enter(status: &mut JobStatus, phase: JobPhase, reason: String, message: String) {
    status.state.phase = phase;
    status.state.reason = reason;
    status.state.message = message;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn job(status: Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"name": "j", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 2}]},
            "status": status,
        }))
        .expect("readable")
    }

    fn at(seconds: i64) -> Time {
        Time::parse("2026-01-01T00:00:00Z")
            .expect("a time")
            .saturating_add(GoDuration::from_seconds(seconds))
    }

    fn running(counters: Value) -> Job {
        let mut status = json!({"state": {"phase": "Running", "lastTransitionTime": "2026-01-01T00:00:10Z"}});
        let fields = status.as_object_mut().expect("an object");
        fields.extend(counters.as_object().expect("an object").clone());
        job(status)
    }

    #[test]
    fn a_status_is_written_when_it_says_something_new() {
        let job = running(json!({"running": 1}));
        assert_eq!(draft(&job, job.status.clone(), true, at(60)), Draft::Same);
        let mut counted = job.status.clone();
        counted.running = 2;
        assert_eq!(
            draft(&job, counted.clone(), false, at(10)),
            Draft::Later(at(11)),
            "counters settle"
        );
        assert!(matches!(
            draft(&job, counted.clone(), false, at(11)),
            Draft::Now(_)
        ));
        assert!(
            matches!(draft(&job, counted, true, at(10)), Draft::Now(_)),
            "pods were made for it"
        );
        let mut restarted = job.status.clone();
        restarted.retry_count = 1;
        assert!(
            matches!(draft(&job, restarted, false, at(10)), Draft::Now(_)),
            "more than counters"
        );
    }

    #[test]
    fn a_write_has_what_changed_and_the_version_it_was_decided_on() {
        let job = running(json!({"running": 1, "pending": 1, "conditions": [
            {"status": "Running", "lastTransitionTime": "2026-01-01T00:00:10Z"},
            {"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:05Z"}]}));
        let mut next = job.status.clone();
        next.pending = 0;
        next.running = 2;
        let Draft::Now(write) = draft(&job, next, false, at(20)) else {
            panic!("it changed");
        };
        let Write::Patch {
            patch,
            status: true,
            resource_version,
            ..
        } = *write
        else {
            panic!("a patch of the status");
        };
        let time = "2026-01-01T00:00:20Z";
        let conditions = json!([{"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:05Z"},
            {"status": "Running", "lastTransitionTime": time}]);
        let expected = json!({"status": {"pending": null, "running": 2, "conditions": conditions,
            "state": {"lastTransitionTime": time}}});
        assert_eq!(patch, expected);
        assert_eq!(resource_version.as_deref(), Some("7"));
    }

    #[test]
    fn a_finished_job_keeps_its_time_and_waits_for_its_pods() {
        let job = job(
            json!({"state": {"phase": "Failed", "lastTransitionTime": "2026-01-01T00:00:10Z"},
            "failed": 1, "terminating": 2}),
        );
        let mut next = job.status.clone();
        next.terminating = 1;
        assert_eq!(
            draft(&job, next.clone(), false, at(60)),
            Draft::Same,
            "not while pods are leaving"
        );
        next.terminating = 0;
        let Draft::Now(write) = draft(&job, next, false, at(60)) else {
            panic!("nothing is left");
        };
        let Write::Patch { patch, .. } = *write else {
            panic!("a patch");
        };
        assert_eq!(patch, json!({"status": {"terminating": null}}));
    }

    #[test]
    fn how_long_it_has_been_there() {
        let job = job(json!({}));
        assert_eq!(running_duration(&job, at(3_725)).as_deref(), Some("1h2m5s"));
        assert_eq!(running_duration(&Job::default(), at(1)), None);
    }

    /// Merge patches as the API server applies them.
    fn apply(value: &mut Value, patch: &Value) {
        let Value::Object(fields) = patch else {
            *value = patch.clone();
            return;
        };
        if !value.is_object() {
            *value = json!({});
        }
        let object = value.as_object_mut().expect("it was made one");
        for (key, change) in fields {
            if change.is_null() {
                object.remove(key);
            } else {
                apply(object.entry(key).or_insert(Value::Null), change);
            }
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i8>().prop_map(Value::from),
            "[ab]{0,2}".prop_map(Value::from)
        ];
        let tree = leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-c]", tree, 0..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn changes_make_the_new_of_the_old(old in values(), new in values()) {
            let mut patched = old.clone();
            apply(&mut patched, &changes(&old, &new));
            prop_assert_eq!(patched, new);
        }

        #[test]
        fn nothing_changes_what_is_equal(value in values()) {
            prop_assert_eq!(changes(&value, &value), json!({}));
        }
    }
}
