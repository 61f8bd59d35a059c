//! Defaults of a Job.

use serde_json::{Value, to_value};
use volcano_api::batch::{Job, TaskSpec};
use volcano_api::names::{job_plugins as plugins, queues};

use crate::Patch;

/// Restarts of a Job, and container restarts of a task, when it does not say.
const MAX_RETRY: i32 = 3;
/// Frameworks whose pods find each other by name.
const NEEDS_SVC: [&str; 4] = [plugins::TENSORFLOW, plugins::MPI, plugins::PYTORCH, plugins::RAY];

/// The changes that fill in what a Job leaves open. A list of plugins that is there is written anew, an empty one too.
pub(super) fn defaults(job: Job, names_plugins: bool, scheduler: &str) -> Patch {
    let mut spec = job.spec;
    let mut patch = Patch::default();
    if spec.queue.is_empty() {
        patch.add("/spec/queue", queues::DEFAULT);
    }
    if spec.scheduler_name.is_empty() {
        patch.add("/spec/schedulerName", scheduler);
    }
    if spec.max_retry == 0 {
        patch.add("/spec/maxRetry", MAX_RETRY);
    }
    let given = spec.tasks.clone();
    for (index, task) in spec.tasks.iter_mut().enumerate() {
        complete_task(index, task);
    }
    if spec.tasks != given {
        patch.replace(
            "/spec/tasks",
            to_value(&spec.tasks).expect("tasks are plain JSON"),
        );
    }
    if spec.min_available == 0 {
        let minimums = spec.tasks.iter().filter_map(|task| task.min_available);
        patch.add("/spec/minAvailable", minimums.fold(0, i32::saturating_add));
    }
    if names_plugins {
        let has = |name: &str| spec.plugins.contains_key(name);
        let (svc, ssh) = (NEEDS_SVC.iter().any(|name| has(name)), has(plugins::MPI));
        for (name, needed) in [(plugins::SVC, svc), (plugins::SSH, ssh)] {
            if needed {
                spec.plugins.entry(name.to_owned()).or_default();
            }
        }
        patch.replace(
            "/spec/plugins",
            to_value(&spec.plugins).expect("plugins are plain JSON"),
        );
    }
    patch
}

fn complete_task(index: usize, task: &mut TaskSpec) {
    if task.name.is_empty() {
        task.name = format!("{}{index}", volcano_api::names::tasks::DEFAULT);
    }
    let on_host = |key: &str| task.template.spec().and_then(|spec| spec.get(key));
    let no_dns_policy = on_host("dnsPolicy").is_none_or(|policy| policy.is_null() || policy == "");
    if on_host("hostNetwork") == Some(&Value::Bool(true)) && no_dns_policy {
        let policy = "ClusterFirstWithHostNet".into();
        task.template.spec_mut().insert("dnsPolicy".to_owned(), policy);
    }
    if task.min_available.is_none() {
        task.min_available = Some(minimum(task));
    }
    if task.max_retry == 0 {
        task.max_retry = MAX_RETRY;
    }
}

/// What a task needs when it does not say: its partitions, or all its pods.
fn minimum(task: &TaskSpec) -> i32 {
    match &task.partition_policy {
        Some(policy) if policy.min_partitions > 0 => {
            policy.min_partitions.saturating_mul(policy.partition_size)
        }
        _ => task.replicas,
    }
}
