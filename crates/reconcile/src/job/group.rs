//! The PodGroup of a Job: what it asks the scheduler for.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use volcano_api::batch::{Job, JobSpec, JobStatus, TaskSpec};
use volcano_api::core::{Pod, PodSpec};
use volcano_api::meta::{LabelSelector, Resource as _, ResourceList};
use volcano_api::names::{annotations, labels};
use volcano_api::scheduling::{NetworkTopology, PodGroup, PodGroupPhase, PodGroupSpec, SubGroupPolicy};

use super::evaluate::tasks_min_available;
use super::pods::task_key;
use super::status::{changes, to_value};
use super::table::{Stage, stage};
use crate::usage;
use crate::write::{Target, Write, controller};

/// Values of priority classes by name.
pub type Priorities = BTreeMap<String, i32>;

/// Name of the PodGroup of a Job.
pub fn group_name(job: &Job) -> String {
    format!("{}-{}", job.metadata.name, job.metadata.uid)
}

/// Whether the scheduler lets the pods of the PodGroup be made.
pub fn is_admitted(group: Option<&PodGroup>) -> bool {
    group.is_some_and(|group| {
        let phase = &group.status.phase;
        group.metadata.deletion_timestamp.is_none() && !phase.is_unset() && *phase != PodGroupPhase::Pending
    })
}

/// Whether a PodGroup is to go: its Job ends, or it is that of an older version.
pub fn is_doomed(group: &PodGroup, status: &JobStatus) -> bool {
    stage(&status.state.phase) != Stage::Active
        || version(group).is_some_and(|version| version < status.version)
}

/// The Job's version that a PodGroup was made for; PodGroups of older controllers do not say.
pub fn version(group: &PodGroup) -> Option<i32> {
    group.metadata.annotation(annotations::JOB_VERSION)?.parse().ok()
}

/// Makes the PodGroup, or brings it in line with the Job; nothing when it is.
pub fn ensure(job: &Job, group: Option<&PodGroup>, priorities: &Priorities) -> Option<Write> {
    match group {
        None => Some(create(job, priorities)),
        Some(group) if group.metadata.deletion_timestamp.is_some() => None,
        Some(group) => update(job, group, priorities),
    }
}

fn create(job: &Job, priorities: &Priorities) -> Write {
    let group = pod_group(job, priorities);
    Write::Create {
        target: Target::named(PodGroup::KIND, &job.metadata.namespace, &group.metadata.name),
        body: to_value(&group),
        fill: None,
    }
}

/// The PodGroup of a Job as it is made.
pub fn pod_group(job: &Job, priorities: &Priorities) -> PodGroup {
    let mut group = PodGroup::named(&job.metadata.namespace, &group_name(job));
    group.metadata.labels.clone_from(&job.metadata.labels);
    group.metadata.annotations.clone_from(&job.metadata.annotations);
    group.metadata.annotations.insert(
        annotations::JOB_VERSION.to_owned(),
        job.status.version.to_string(),
    );
    group.metadata.owner_references = vec![controller(job)];
    group.spec = desired(job, priorities);
    group
}

/// The spec of a PodGroup with what follows from fields of the Job that may change. The scheduler and others write the
/// rest.
pub fn aligned(job: &Job, group: &PodGroup, priorities: &Priorities) -> PodGroupSpec {
    let desired = desired(job, priorities);
    let mut spec = group.spec.clone();
    spec.priority_class_name = desired.priority_class_name;
    spec.min_member = desired.min_member;
    spec.min_resources = desired.min_resources;
    spec.min_task_member.extend(desired.min_task_member);
    if job.spec.tasks.iter().any(|task| task.partition_policy.is_some()) {
        spec.sub_group_policy = desired.sub_group_policy;
    }
    spec
}

fn update(job: &Job, group: &PodGroup, priorities: &Priorities) -> Option<Write> {
    let spec = aligned(job, group, priorities);
    let mut patch = Map::new();
    let changed = changes(&to_value(&group.spec), &to_value(&spec));
    if changed.as_object().is_some_and(|fields| !fields.is_empty()) {
        patch.insert("spec".to_owned(), changed);
    }
    if version(group).is_none() {
        let version = json!({annotations::JOB_VERSION: job.status.version.to_string()});
        patch.insert("metadata".to_owned(), json!({"annotations": version}));
    }
    (!patch.is_empty()).then(|| Write::Patch {
        target: Target::of(group),
        patch: Value::Object(patch),
        status: false,
        resource_version: None,
    })
}

fn desired(job: &Job, priorities: &Priorities) -> PodGroupSpec {
    let spec = &job.spec;
    PodGroupSpec {
        min_member: spec.min_available,
        min_task_member: spec
            .tasks
            .iter()
            .map(|task| (task_key(task).to_owned(), min_member(task)))
            .collect(),
        queue: spec.queue.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        min_resources: Some(min_resources(spec, priorities)),
        network_topology: spec.network_topology.as_ref().map(topology),
        sub_group_policy: spec.tasks.iter().filter_map(sub_group).collect(),
        ..PodGroupSpec::default()
    }
}

/// Pods of a task that must be placed for any pod of the Job to start.
fn min_member(task: &TaskSpec) -> i32 {
    let of_partitions = || {
        let policy = task.partition_policy.as_ref()?;
        let pods = policy.min_partitions.saturating_mul(policy.partition_size);
        (pods != 0).then_some(pods)
    };
    task.min_available.or_else(of_partitions).unwrap_or(task.replicas)
}

/// The tier by number, or by name where there is no number.
fn topology(of: &NetworkTopology) -> NetworkTopology {
    let mut topology = of.clone();
    if topology.highest_tier_allowed.is_some() {
        topology.highest_tier_name.clear();
    }
    topology
}

fn sub_group(task: &TaskSpec) -> Option<SubGroupPolicy> {
    let policy = task.partition_policy.as_ref()?;
    let of_task = (labels::TASK_SPEC.to_owned(), task_key(task).to_owned());
    Some(SubGroupPolicy {
        name: task.name.clone(),
        network_topology: policy.network_topology.as_ref().map(topology),
        sub_group_size: Some(policy.partition_size),
        min_sub_groups: Some(policy.min_partitions),
        label_selector: Some(LabelSelector {
            match_labels: BTreeMap::from([of_task]),
            ..LabelSelector::default()
        }),
        match_label_keys: vec![labels::PARTITION_ID.to_owned()],
        ..SubGroupPolicy::default()
    })
}

/// What the pods that the gang needs count for, those of higher priority first.
pub fn min_resources(spec: &JobSpec, priorities: &Priorities) -> ResourceList {
    let mut tasks: Vec<_> = spec.tasks.iter().map(|task| (task, pod_of(task))).collect();
    tasks.sort_by_key(|(_, pod)| {
        std::cmp::Reverse(
            priorities
                .get(&pod.spec.priority_class_name)
                .copied()
                .unwrap_or(0),
        )
    });
    let mut left = i64::from(spec.min_available);
    let mut total = ResourceList::new();
    let mut take = |pod: &Pod, most: i64| {
        let taken = most.clamp(0, left.max(0));
        left -= taken;
        if taken > 0 {
            usage::add(&mut total, &usage::usage(pod), taken);
        }
    };
    let is_less_than_tasks_need = spec.min_available < tasks_min_available(spec);
    let minimum = |task: &TaskSpec| i64::from(task.min_available.unwrap_or(0));
    if !is_less_than_tasks_need {
        for (task, pod) in &tasks {
            take(pod, minimum(task));
        }
    }
    for (task, pod) in &tasks {
        let taken = if is_less_than_tasks_need { 0 } else { minimum(task) };
        take(pod, i64::from(task.replicas) - taken);
    }
    total
}

/// The pods of a task, as far as they matter for amounts. What cannot be read asks for nothing: the API server will
/// refuse such a pod and say why.
fn pod_of(task: &TaskSpec) -> Pod {
    let spec = task
        .template
        .0
        .get("spec")
        .and_then(|spec| PodSpec::deserialize(spec).ok());
    Pod {
        spec: spec.unwrap_or_default(),
        ..Pod::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The CPUs that a job counts for. A task is `name priority replicas minAvailable cpu`; `-` is no minimum.
    fn cpus(min_available: i32, tasks: &[&str]) -> i64 {
        let read = |task: &&str| {
            let [name, class, replicas, min, cpu] = task.split(' ').collect::<Vec<_>>()[..] else {
                panic!("five words: {task}");
            };
            let requests = json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}],
                "priorityClassName": class});
            let mut spec = json!({"name": name, "replicas": replicas.parse::<i32>().expect("a number"),
                "template": {"spec": requests}});
            if let Ok(min) = min.parse::<i32>() {
                spec["minAvailable"] = json!(min);
            }
            spec
        };
        let tasks: Vec<_> = tasks.iter().map(read).collect();
        let spec: JobSpec =
            serde_json::from_value(json!({"minAvailable": min_available, "tasks": tasks})).expect("readable");
        let priorities = Priorities::from([("high".to_owned(), 100), ("low".to_owned(), 1)]);
        let amounts = min_resources(&spec, &priorities);
        let pods = amounts.get("pods").copied().unwrap_or_default().value();
        assert!(
            pods <= i64::from(min_available),
            "no more pods than the gang needs"
        );
        amounts.get("cpu").copied().unwrap_or_default().value()
    }

    #[test]
    fn the_gang_counts_for_the_pods_that_it_needs() {
        let cases: [(&str, i32, &[&str], i64); 10] = [
            ("all of one task", 3, &["a none 3 3 2"], 6),
            ("a part of one task", 2, &["a none 3 3 2"], 4),
            ("nothing", 0, &["a none 3 3 2"], 0),
            ("higher priority first", 2, &["a low 2 2 1", "b high 2 2 10"], 20),
            ("then the next", 3, &["a low 2 2 1", "b high 2 2 10"], 21),
            (
                "classes that are not known are zero",
                1,
                &["a odd 1 1 1", "b low 1 1 10"],
                10,
            ),
            (
                "equal priority in the order of the spec",
                1,
                &["a low 1 1 1", "b low 1 1 10"],
                1,
            ),
            (
                "minima first, then what is left by priority",
                4,
                &["a low 3 1 1", "b high 3 1 10"],
                31,
            ),
            (
                "a task without a minimum needs all its pods",
                3,
                &["a low 2 2 1", "b high 2 - 10"],
                20 + 1,
            ),
            ("a gang larger than the job", 9, &["a none 2 2 1"], 2),
        ];
        for (name, min_available, tasks, expected) in cases {
            assert_eq!(cpus(min_available, tasks), expected, "{name}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_read_counts_as_pods() {
        let spec: JobSpec = serde_json::from_value(json!({"minAvailable": 1, "tasks": [
            {"name": "a", "replicas": 1, "template": {"spec": {"containers": "none"}}}]}))
        .expect("readable");
        let amounts = min_resources(&spec, &Priorities::new());
        assert_eq!(amounts.keys().collect::<Vec<_>>(), ["count/pods", "pods"]);
    }
}
