//! What phase the pods of an active Job put it in.

use volcano_api::batch::{JobPhase, JobSpec, JobStatus, TaskSpec};
use volcano_api::core::PodPhase;

use super::pods::task_key;

/// Restarts of a Job that names no number; webhooks and the schema say the same.
const DEFAULT_MAX_RETRY: i32 = 3;

/// The phase that follows from a status with fresh counters.
pub fn evaluate(spec: &JobSpec, status: &JobStatus) -> JobPhase {
    match status.state.phase {
        JobPhase::Running => running(spec, status),
        JobPhase::Restarting => restarting(spec, status),
        _ => {
            if spec.min_available <= status.running + status.succeeded + status.failed {
                JobPhase::Running
            } else {
                JobPhase::Pending
            }
        }
    }
}

/// Restarts before the Job has failed.
pub fn max_retry(spec: &JobSpec) -> i32 {
    match spec.max_retry {
        0 => DEFAULT_MAX_RETRY,
        set => set,
    }
}

/// Whether no restart is left.
pub fn is_spent(spec: &JobSpec, status: &JobStatus) -> bool {
    status.retry_count >= max_retry(spec)
}

/// Pods that the Job asks for.
pub fn replicas(spec: &JobSpec) -> i32 {
    total(spec, |task| task.replicas)
}

/// Pods of its tasks that the Job needs to start.
pub fn tasks_min_available(spec: &JobSpec) -> i32 {
    total(spec, |task| task.min_available.unwrap_or(task.replicas))
}

fn total(spec: &JobSpec, of: impl Fn(&TaskSpec) -> i32) -> i32 {
    spec.tasks
        .iter()
        .fold(0, |sum, task| sum.saturating_add(of(task)))
}

fn running(spec: &JobSpec, status: &JobStatus) -> JobPhase {
    let replicas = replicas(spec);
    if replicas == 0 {
        return JobPhase::Running;
    }
    if spec.min_success.is_some_and(|enough| status.succeeded >= enough) {
        return JobPhase::Completed;
    }
    if status.succeeded + status.failed == replicas {
        let failed = is_a_task_short(spec, status) || spec.min_success.is_some();
        return if !failed && status.succeeded >= spec.min_available {
            JobPhase::Completed
        } else {
            JobPhase::Failed
        };
    }
    if status.pending > replicas - spec.min_available {
        return JobPhase::Pending;
    }
    JobPhase::Running
}

/// Whether a task has fewer succeeded pods than it needs, for a Job that needs all of what its tasks need.
fn is_a_task_short(spec: &JobSpec, status: &JobStatus) -> bool {
    let is_short = |task: &TaskSpec| {
        let succeeded = status.task_status_count.get(task_key(task)).map(|counts| {
            counts
                .phase
                .get(PodPhase::Succeeded.as_str())
                .copied()
                .unwrap_or(0)
        });
        matches!((task.min_available, succeeded), (Some(min), Some(succeeded)) if succeeded < min)
    };
    spec.min_available >= tasks_min_available(spec) && spec.tasks.iter().any(is_short)
}

fn restarting(spec: &JobSpec, status: &JobStatus) -> JobPhase {
    if is_spent(spec, status) {
        JobPhase::Failed
    } else if replicas(spec) - status.terminating >= status.min_available {
        JobPhase::Pending
    } else {
        JobPhase::Restarting
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use volcano_api::batch::Job;

    use super::*;

    fn phase(spec: Value, status: Value) -> String {
        let job: Job = serde_json::from_value(json!({"spec": spec, "status": status})).expect("readable");
        evaluate(&job.spec, &job.status).to_string()
    }

    /// Two tasks, `a` of three pods and `b` of two.
    fn two_tasks(spec: Value) -> Value {
        let mut whole = json!({"tasks": [{"name": "a", "replicas": 3}, {"name": "b", "replicas": 2}]});
        let fields = whole.as_object_mut().expect("an object");
        fields.extend(spec.as_object().expect("an object").clone());
        whole
    }

    fn in_phase(phase: &str, counters: Value) -> Value {
        let mut whole = json!({"state": {"phase": phase}});
        let fields = whole.as_object_mut().expect("an object");
        fields.extend(counters.as_object().expect("an object").clone());
        whole
    }

    #[test]
    fn a_pending_job_runs_once_enough_pods_have_started() {
        let cases = [
            ("none of four started", json!({"pending": 5}), "Pending"),
            (
                "three of four started",
                json!({"running": 3, "pending": 2}),
                "Pending",
            ),
            ("four started", json!({"running": 4, "pending": 1}), "Running"),
            (
                "those that ended have started",
                json!({"succeeded": 2, "failed": 2}),
                "Running",
            ),
            (
                "those that leave do not count",
                json!({"running": 3, "terminating": 2}),
                "Pending",
            ),
        ];
        for (name, counters, expected) in cases {
            let spec = two_tasks(json!({"minAvailable": 4}));
            assert_eq!(
                phase(spec.clone(), in_phase("Pending", counters.clone())),
                expected,
                "{name}"
            );
            assert_eq!(
                phase(spec, in_phase("Limbo", counters)),
                expected,
                "{name}, unknown phase"
            );
        }
    }

    #[test]
    fn a_running_job_ends_by_the_first_rule_that_applies() {
        let short = json!({"a": {"phase": {"Succeeded": 2, "Failed": 1}}, "b": {"phase": {"Succeeded": 2}}});
        let role_minima = json!({"minAvailable": 5, "tasks": [
            {"name": "a", "replicas": 3, "minAvailable": 3}, {"name": "b", "replicas": 2, "minAvailable": 2}]});
        let cases = [
            (
                "without pods it keeps running",
                json!({"tasks": [], "minAvailable": 0}),
                json!({}),
                "Running",
            ),
            (
                "minSuccess completes it while others run",
                two_tasks(json!({"minAvailable": 5, "minSuccess": 2})),
                json!({"succeeded": 2, "running": 3}),
                "Completed",
            ),
            (
                "minSuccess completes it whatever failed",
                two_tasks(json!({"minAvailable": 5, "minSuccess": 1})),
                json!({"succeeded": 1, "failed": 4}),
                "Completed",
            ),
            (
                "all ended and minSuccess missed",
                two_tasks(json!({"minAvailable": 1, "minSuccess": 3})),
                json!({"succeeded": 2, "failed": 3}),
                "Failed",
            ),
            (
                "all ended and a role is short of its minimum",
                role_minima.clone(),
                json!({"succeeded": 4, "failed": 1, "taskStatusCount": short}),
                "Failed",
            ),
            (
                "role minima do not count when the job needs fewer than their sum",
                json!({"minAvailable": 4, "tasks": role_minima["tasks"]}),
                json!({"succeeded": 4, "failed": 1, "taskStatusCount": short}),
                "Completed",
            ),
            (
                "a role of which nothing was counted is not short",
                role_minima.clone(),
                json!({"succeeded": 5, "taskStatusCount": {"a": {"phase": {"Succeeded": 3}}}}),
                "Completed",
            ),
            (
                "all ended and enough succeeded",
                two_tasks(json!({"minAvailable": 4})),
                json!({"succeeded": 4, "failed": 1}),
                "Completed",
            ),
            (
                "all ended and too few succeeded",
                two_tasks(json!({"minAvailable": 4})),
                json!({"succeeded": 3, "failed": 2}),
                "Failed",
            ),
            (
                "too many wait",
                two_tasks(json!({"minAvailable": 4})),
                json!({"pending": 2, "running": 3}),
                "Pending",
            ),
            (
                "as many wait as may",
                two_tasks(json!({"minAvailable": 4})),
                json!({"pending": 1, "running": 4}),
                "Running",
            ),
            (
                "a missing pod keeps it running",
                two_tasks(json!({"minAvailable": 5})),
                json!({"succeeded": 4}),
                "Running",
            ),
        ];
        for (name, spec, counters, expected) in cases {
            assert_eq!(phase(spec, in_phase("Running", counters)), expected, "{name}");
        }
    }

    #[test]
    fn a_restarting_job_waits_for_its_old_pods() {
        let cases = [
            (
                "the retries are spent",
                3,
                json!({"retryCount": 3, "minAvailable": 5}),
                "Failed",
            ),
            (
                "no number means three",
                0,
                json!({"retryCount": 3, "minAvailable": 5}),
                "Failed",
            ),
            (
                "one retry is left",
                3,
                json!({"retryCount": 2, "minAvailable": 5}),
                "Pending",
            ),
            (
                "a pod that it needs the place of is still there",
                3,
                json!({"retryCount": 1, "minAvailable": 5, "terminating": 1}),
                "Restarting",
            ),
            (
                "enough places are free",
                3,
                json!({"retryCount": 1, "minAvailable": 4, "terminating": 1}),
                "Pending",
            ),
        ];
        for (name, max_retry, counters, expected) in cases {
            let spec = two_tasks(json!({"maxRetry": max_retry, "minAvailable": 5}));
            assert_eq!(phase(spec, in_phase("Restarting", counters)), expected, "{name}");
        }
    }
}
