//! How a pod of a Job is made from its task's template.

use serde_json::{Map, Value, json};
use volcano_api::batch::{Job, TaskSpec};
use volcano_api::names::{annotations, kinds, labels};
use volcano_api::time::Time;

use super::group::group_name;
use super::pods::task_key;
use super::status::to_value;
use super::volumes;
use crate::plugins::{PluginError, Plugins, pod_name};
use crate::write::{Target, Write, controller};

/// What a pod has beyond what its Job and index say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Whether pods of its queue are forwarded to other clusters.
    pub is_forwarded: bool,
    /// When the pod was evicted that it stands in for, if a policy waits for it to run.
    pub evicted_at: Option<Time>,
}

/// Makes a pod.
///
/// # Errors
/// When a plugin cannot do its part.
pub fn create(
    job: &Job,
    task: &TaskSpec,
    index: i32,
    plugins: &Plugins,
    circumstances: Circumstances,
) -> Result<Write, PluginError> {
    Ok(Write::Create {
        target: Target::named(kinds::POD, &job.metadata.namespace, &pod_name(job, task, index)),
        body: body(job, task, index, plugins, circumstances)?,
        fill: None,
    })
}

/// The whole of a pod as it is made.
///
/// # Errors
/// When a plugin cannot do its part.
pub fn body(
    job: &Job,
    task: &TaskSpec,
    index: i32,
    plugins: &Plugins,
    circumstances: Circumstances,
) -> Result<Value, PluginError> {
    let name = pod_name(job, task, index);
    let mut pod = Map::new();
    pod.insert("apiVersion".to_owned(), kinds::POD.api_version().into());
    pod.insert("kind".to_owned(), kinds::POD.kind.into());
    pod.insert(
        "metadata".to_owned(),
        metadata(job, task, index, &name, circumstances),
    );
    pod.insert("spec".to_owned(), spec(job, task, &name).into());
    plugins.on_pod_create(job, task, index, &mut pod)?;
    Ok(Value::Object(pod))
}

/// Metadata of a pod as it is made, before plugins add to it.
pub fn pod_metadata(job: &Job, task: &TaskSpec, index: i32) -> Value {
    let name = pod_name(job, task, index);
    metadata(job, task, index, &name, Circumstances::default())
}

/// The partition of a pod.
pub fn partition(task: &TaskSpec, index: i32) -> Option<String> {
    let size = task.partition_policy.as_ref()?.partition_size;
    Some(
        index
            .checked_div(size)
            .filter(|_| size > 0)
            .unwrap_or(0)
            .to_string(),
    )
}

fn metadata(job: &Job, task: &TaskSpec, index: i32, name: &str, circumstances: Circumstances) -> Value {
    let template = |part: &str| {
        let metadata = task.template.metadata();
        metadata
            .and_then(|metadata| metadata.get(part)?.as_object().cloned())
            .unwrap_or_default()
    };
    let mut annotations = template("annotations");
    annotate(&mut annotations, job, task, index, circumstances);
    let mut labels = template("labels");
    label(&mut labels, job, task, index, circumstances);
    json!({
        "name": name,
        "namespace": job.metadata.namespace,
        "ownerReferences": [to_value(&controller(job))],
        "labels": labels,
        "annotations": annotations,
    })
}

fn annotate(
    annotations: &mut Map<String, Value>,
    job: &Job,
    task: &TaskSpec,
    index: i32,
    circumstances: Circumstances,
) {
    let mut set = |key: &str, value: String| annotations.insert(key.to_owned(), value.into());
    set(annotations::TASK_INDEX, index.to_string());
    set(annotations::TASK_SPEC, task_key(task).to_owned());
    set(annotations::KUBE_GROUP_NAME, group_name(job));
    set(annotations::JOB_NAME, job.metadata.name.clone());
    set(annotations::QUEUE_NAME, job.spec.queue.clone());
    set(annotations::JOB_VERSION, job.status.version.to_string());
    set(
        annotations::TEMPLATE_UID,
        format!("{}-{}", job.metadata.name, task.name),
    );
    set(annotations::JOB_RETRY_COUNT, job.status.retry_count.to_string());
    if !task.topology_policy.is_unset() {
        set(
            annotations::NUMA_TOPOLOGY_POLICY,
            task.topology_policy.to_string(),
        );
    }
    if circumstances.is_forwarded {
        set(annotations::JOB_FORWARDING, true.to_string());
    }
    if let Some(at) = circumstances.evicted_at {
        set(annotations::EVICTED_AT, at.to_string());
    }
    let budgets = [annotations::JDB_MIN_AVAILABLE, annotations::JDB_MAX_UNAVAILABLE];
    let budget = budgets
        .into_iter()
        .find(|key| job.metadata.annotation(key).is_some());
    let passed_on = [
        annotations::PREEMPTABLE,
        annotations::COOLDOWN_TIME,
        annotations::REVOCABLE_ZONE,
    ];
    for key in passed_on.into_iter().chain(budget) {
        if let Some(value) = job.metadata.annotation(key) {
            set(key, value.to_owned());
        }
    }
}

fn label(
    labels: &mut Map<String, Value>,
    job: &Job,
    task: &TaskSpec,
    index: i32,
    circumstances: Circumstances,
) {
    let mut set = |key: &str, value: String| labels.insert(key.to_owned(), value.into());
    set(labels::TASK_INDEX, index.to_string());
    set(labels::JOB_NAME, job.metadata.name.clone());
    set(labels::TASK_SPEC, task_key(task).to_owned());
    set(labels::JOB_NAMESPACE, job.metadata.namespace.clone());
    set(labels::QUEUE_NAME, job.spec.queue.clone());
    for key in [labels::PREEMPTABLE, labels::COOLDOWN_TIME] {
        if let Some(value) = job.metadata.label(key) {
            set(key, value.to_owned());
        }
    }
    if circumstances.is_forwarded {
        set(labels::JOB_FORWARDING, true.to_string());
    }
    if let Some(partition) = partition(task, index) {
        set(labels::PARTITION_ID, partition);
    }
}

fn spec(job: &Job, task: &TaskSpec, name: &str) -> Map<String, Value> {
    let mut spec = task.template.spec().cloned().unwrap_or_default();
    fill_in(&mut spec, "schedulerName", &job.spec.scheduler_name);
    fill_in(&mut spec, "priorityClassName", &job.spec.priority_class_name);
    let (sources, mounts): (Vec<_>, Vec<_>) = volumes::mounts(job, name).into_iter().unzip();
    if sources.is_empty() {
        return spec;
    }
    append(&mut spec, "volumes", &sources);
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        append(container, "volumeMounts", &mounts);
    }
    spec
}

/// Sets a text that is missing or empty, unless there is nothing to set.
fn fill_in(spec: &mut Map<String, Value>, key: &str, value: &str) {
    let is_set = spec
        .get(key)
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty());
    if !is_set && !value.is_empty() {
        spec.insert(key.to_owned(), value.into());
    }
}

/// Adds to a list, which is made if it is missing.
fn append(object: &mut Map<String, Value>, key: &str, values: &[Value]) {
    let list = object.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    if let Value::Array(list) = list {
        list.extend_from_slice(values);
    }
}
