//! What the admission webhook makes of a new Job: its defaults, and why it would refuse it.

use super::cluster::Cluster;
use std::collections::BTreeSet;
use volcano_api::batch::{Job, TaskSpec};
use volcano_api::names::queues;
use volcano_api::scheduling::QueueState;

/// Restarts when the Job does not say.
const MAX_RETRY: i32 = 3;

/// Fills in what the Job leaves open.
pub fn mutate(job: &mut Job, scheduler_name: &str) {
    let spec = &mut job.spec;
    if spec.queue.is_empty() {
        spec.queue = queues::DEFAULT.to_owned();
    }
    if spec.scheduler_name.is_empty() {
        spec.scheduler_name = scheduler_name.to_owned();
    }
    if spec.max_retry == 0 {
        spec.max_retry = MAX_RETRY;
    }
    for (index, task) in spec.tasks.iter_mut().enumerate() {
        if task.name.is_empty() {
            task.name = format!("default{index}");
        }
        if task.max_retry == 0 {
            task.max_retry = MAX_RETRY;
        }
        task.min_available = Some(task.min_available.unwrap_or_else(|| task_minimum(task)));
    }
    if spec.min_available == 0 {
        let minimums = spec.tasks.iter().filter_map(|task| task.min_available);
        spec.min_available = minimums.fold(0, i32::saturating_add);
    }
}

/// What a task needs when it does not say: its partitions, or all its pods.
fn task_minimum(task: &TaskSpec) -> i32 {
    match &task.partition_policy {
        Some(policy) if policy.min_partitions > 0 => {
            policy.min_partitions.saturating_mul(policy.partition_size)
        }
        _ => task.replicas,
    }
}

/// Why a Job (with its defaults) would be refused; empty when it would be stored.
pub fn refusals(job: &Job, cluster: &Cluster) -> Vec<String> {
    if job.spec.tasks.is_empty() {
        return vec!["No task specified in job spec".to_owned()];
    }
    let mut reasons = Vec::new();
    check_tasks(job, &mut reasons);
    let replicas: i64 = job.spec.tasks.iter().map(|task| i64::from(task.replicas)).sum();
    if replicas < i64::from(job.spec.min_available) {
        reasons.push("job 'minAvailable' should not be greater than total replicas in tasks".to_owned());
    }
    check_queue(&job.spec.queue, cluster, &mut reasons);
    reasons
}

fn check_tasks(job: &Job, reasons: &mut Vec<String>) {
    let name = &job.metadata.name;
    let mut names = BTreeSet::new();
    for task in &job.spec.tasks {
        let at = format!("in task: {}, job: {name}", task.name);
        if task.replicas < 0 {
            reasons.push(format!("'replicas' < 0 {at}"));
        }
        if task.min_available.is_some_and(|minimum| minimum > task.replicas) {
            reasons.push(format!("'minAvailable' is greater than 'replicas' {at}"));
        }
        if !names.insert(&task.name) {
            reasons.push(format!("duplicated task name {}", task.name));
        }
        check_partitions(task, &at, reasons);
        if let Some(unknown) = unknown_dependency(job, task) {
            reasons.push(format!(
                "task {} depends on task {unknown}, which does not exist",
                task.name
            ));
        }
    }
}

fn check_partitions(task: &TaskSpec, at: &str, reasons: &mut Vec<String>) {
    let Some(policy) = &task.partition_policy else {
        return;
    };
    let (total, size) = (policy.total_partitions, policy.partition_size);
    if total <= 0 {
        reasons.push(format!("'TotalPartitions' must be greater than 0 {at}"));
    } else if size <= 0 {
        reasons.push(format!("'PartitionSize' must be greater than 0 {at}"));
    } else if total.saturating_mul(size) != task.replicas {
        reasons.push(format!(
            "'Replicas' are not equal to TotalPartitions*PartitionSize {at}"
        ));
    } else if policy.min_partitions > 0
        && task.min_available != Some(policy.min_partitions.saturating_mul(size))
    {
        reasons.push(format!(
            "'MinAvailable' is not equal to MinPartitions*PartitionSize {at}"
        ));
    }
}

fn unknown_dependency<'a>(job: &Job, task: &'a TaskSpec) -> Option<&'a str> {
    let names = &task.depends_on.as_ref()?.name;
    names
        .iter()
        .find(|name| !job.spec.tasks.iter().any(|task| task.name == **name))
        .map(String::as_str)
}

fn check_queue(name: &str, cluster: &Cluster, reasons: &mut Vec<String>) {
    let Some(queue) = cluster.queue(name) else {
        reasons.push(format!(
            "unable to find job queue: queue {name} is not in the input"
        ));
        return;
    };
    let state = &queue.status.state;
    if !matches!(state, QueueState::Open | QueueState::Unset) {
        reasons.push(format!(
            "can only submit job to queue with state `Open`, queue `{name}` status is `{state}`"
        ));
    }
    if name == queues::ROOT {
        reasons.push("can not submit job to root queue".to_owned());
        return;
    }
    let children = cluster.queues().filter(|queue| queue.spec.parent == name).count();
    if children > 0 {
        reasons.push(format!(
            "can only submit job to leaf queue, queue `{name}` has {children} child queues"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::source::Source;
    use serde_json::{Value, json};

    fn job(spec: Value) -> Job {
        let mut job: Job = serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": spec})).unwrap();
        mutate(&mut job, "volcano");
        job
    }

    #[test]
    fn what_is_left_open_is_filled_in() {
        let job = job(json!({"tasks": [
            {"replicas": 3},
            {"name": "w", "replicas": 4, "minAvailable": 1},
            {"replicas": 8, "partitionPolicy": {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}},
        ]}));
        assert_eq!(
            (job.spec.queue.as_str(), job.spec.scheduler_name.as_str()),
            ("default", "volcano")
        );
        assert_eq!((job.spec.max_retry, job.spec.min_available), (3, 10));
        let tasks: Vec<_> = job
            .spec
            .tasks
            .iter()
            .map(|t| (t.name.as_str(), t.min_available))
            .collect();
        assert_eq!(
            tasks,
            [("default0", Some(3)), ("w", Some(1)), ("default2", Some(6))]
        );
    }

    #[test]
    fn a_job_that_cannot_be_stored_is_refused() {
        let mut cluster = Cluster::exactly(&Source::from_text(
            "t",
            "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: closed}, status: {state: Closed}}\n---\n\
             {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: child}, spec: {parent: team}}\n---\n\
             {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team}}",
        ))
        .unwrap();
        cluster.complete("default");
        let cases = [
            (json!({}), "No task specified in job spec"),
            (
                json!({"tasks": [{"name": "a", "replicas": 1, "minAvailable": 2}], "minAvailable": 1}),
                "'minAvailable' is greater than 'replicas' in task: a, job: j",
            ),
            (
                json!({"tasks": [{"name": "a", "replicas": 1}, {"name": "a", "replicas": 1}]}),
                "duplicated task name a",
            ),
            (
                json!({"tasks": [{"name": "a", "replicas": 1}], "minAvailable": 2}),
                "job 'minAvailable' should not be greater than total replicas in tasks",
            ),
            (
                json!({"tasks": [{"name": "a", "replicas": 5, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}]}),
                "'Replicas' are not equal to TotalPartitions*PartitionSize in task: a, job: j",
            ),
            (
                json!({"tasks": [{"name": "a", "replicas": 1, "dependsOn": {"name": ["b"]}}]}),
                "task a depends on task b, which does not exist",
            ),
            (
                json!({"queue": "nope", "tasks": [{"replicas": 1}]}),
                "unable to find job queue: queue nope is not in the input",
            ),
            (
                json!({"queue": "root", "tasks": [{"replicas": 1}]}),
                "can not submit job to root queue",
            ),
            (
                json!({"queue": "closed", "tasks": [{"replicas": 1}]}),
                "can only submit job to queue with state `Open`, queue `closed` status is `Closed`",
            ),
            (
                json!({"queue": "team", "tasks": [{"replicas": 1}]}),
                "can only submit job to leaf queue, queue `team` has 1 child queues",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(refusals(&job(spec), &cluster), [expected]);
        }
        assert!(refusals(&job(json!({"tasks": [{"replicas": 1}]})), &cluster).is_empty());
    }
}
