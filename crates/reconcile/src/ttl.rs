//! Deletes Jobs some time after they have finished (`gc-controller`).

use thiserror::Error;
use volcano_api::batch::{Job, JobPhase};
use volcano_api::time::{GoDuration, Time};

use crate::write::{Plan, Target, Write};

/// Why it cannot be told when a Job is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unable to find the time when the Job {0} finished")]
pub struct NoFinishTime(String);

/// Deletes the Job if its time has come, or says when to look again. What depends on the Job goes first.
///
/// Deleting cannot be taken back, and the time may have been changed since the Job was last seen: whoever carries the
/// plan out reads the Job, and asks again with what it has read.
///
/// # Errors
/// When the Job does not say when it finished.
pub fn plan(job: &Job, now: Time) -> Result<Plan, NoFinishTime> {
    let Some(at) = delete_at(job)? else {
        return Ok(Plan::default());
    };
    let mut plan = Plan::default();
    if now < at {
        plan.wake(at);
    } else {
        plan.then(vec![Write::Delete {
            target: Target::of(job),
            foreground: true,
        }]);
    }
    Ok(plan)
}

/// When the Job is to be deleted; never, when it is not finished, says nothing about it, or is being deleted.
fn delete_at(job: &Job) -> Result<Option<Time>, NoFinishTime> {
    let Some(seconds) = job.spec.ttl_seconds_after_finished else {
        return Ok(None);
    };
    let state = &job.status.state;
    if job.metadata.deletion_timestamp.is_some() || !is_finished(&state.phase) {
        return Ok(None);
    }
    let finished = state
        .last_transition_time
        .ok_or_else(|| NoFinishTime(job.metadata.key()))?;
    let wait = GoDuration::from_seconds(seconds.max(0).into());
    Ok(Some(finished.saturating_add(wait)))
}

/// Whether a Job in this phase never runs again.
fn is_finished(phase: &JobPhase) -> bool {
    matches!(
        phase,
        JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use volcano_api::names::kinds;

    use super::*;

    const NOW: &str = "2026-01-01T00:10:00Z";

    fn job(ttl: Value, phase: &str, finished: Value, deleted: Value) -> Job {
        serde_json::from_value(json!({
            "metadata": {"namespace": "ml", "name": "train", "uid": "u-1", "deletionTimestamp": deleted},
            "spec": {"ttlSecondsAfterFinished": ttl},
            "status": {"state": {"phase": phase, "lastTransitionTime": finished}},
        }))
        .expect("readable")
    }

    fn time(text: &str) -> Time {
        Time::parse(text).expect("a time")
    }

    #[test]
    fn a_finished_job_is_deleted_when_its_time_has_come() {
        let none = Value::Null;
        let at = |text: &str| Value::from(text);
        let midnight = "2026-01-01T00:00:00Z";
        // The Job, whether it is deleted, and when to look again.
        let cases = [
            (
                "no time is set",
                job(none.clone(), "Completed", at(midnight), none.clone()),
                false,
                None,
            ),
            (
                "it runs",
                job(json!(0), "Running", at(midnight), none.clone()),
                false,
                None,
            ),
            (
                "it can be resumed",
                job(json!(0), "Aborted", at(midnight), none.clone()),
                false,
                None,
            ),
            (
                "it is being completed",
                job(json!(0), "Completing", at(midnight), none.clone()),
                false,
                None,
            ),
            (
                "it is being deleted",
                job(json!(0), "Completed", at(midnight), at(NOW)),
                false,
                None,
            ),
            (
                "completed, at once",
                job(json!(0), "Completed", at(NOW), none.clone()),
                true,
                None,
            ),
            (
                "failed, in time",
                job(json!(600), "Failed", at(midnight), none.clone()),
                true,
                None,
            ),
            (
                "terminated, a second early",
                job(json!(601), "Terminated", at(midnight), none.clone()),
                false,
                Some(time("2026-01-01T00:10:01Z")),
            ),
            (
                "the longest time does not overflow",
                job(
                    json!(i32::MAX),
                    "Failed",
                    at("9999-01-01T00:00:00Z"),
                    none.clone(),
                ),
                false,
                Some(time("9999-01-01T00:00:00Z").saturating_add(GoDuration::from_seconds(i32::MAX.into()))),
            ),
            (
                "a time below zero is none",
                job(json!(-5), "Failed", at(NOW), none.clone()),
                true,
                None,
            ),
        ];
        for (name, job, deleted, again_at) in cases {
            let plan = plan(&job, time(NOW)).expect("it says when it finished");
            let delete = Write::Delete {
                target: Target {
                    kind: kinds::JOB,
                    namespace: "ml".to_owned(),
                    name: "train".to_owned(),
                    uid: "u-1".to_owned(),
                },
                foreground: true,
            };
            let steps = if deleted { vec![vec![delete]] } else { Vec::new() };
            assert_eq!(plan, Plan { steps, again_at }, "{name}");
        }
    }

    #[test]
    fn a_finished_job_without_a_time_is_an_error() {
        let job = job(json!(1), "Completed", Value::Null, Value::Null);
        let error = plan(&job, time(NOW)).expect_err("no time");
        assert_eq!(
            error.to_string(),
            "unable to find the time when the Job ml/train finished"
        );
    }
}
