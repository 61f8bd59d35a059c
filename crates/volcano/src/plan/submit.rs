//! A Job that is not in the cluster yet, as the Job controller would expand it: its PodGroup, pods and claims.
//!
//! In a cluster the pods are made once the PodGroup is admitted. Here both come at once, with the PodGroup still
//! Pending, so that one plan answers whether the Job would be admitted and where its pods would go.

use super::admission;
use super::cluster::{Cluster, Priorities, counted, default_pod};
use super::input::{self, Entry, decode_value};
use super::objects::{DEFAULT_NAMESPACE, made_uid};
use super::source::Source;
use crate::failure::Failure;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use volcano_api::batch::{Iteration, Job, TaskSpec};
use volcano_api::core::{self, PersistentVolumeClaim, Pod, PodVolume, PodVolumeClaim, pod_requests};
use volcano_api::meta::{LabelSelector, OwnerReference, Resource as _, ResourceList};
use volcano_api::names::{annotations, kinds, labels, tasks};
use volcano_api::quantity::{Format, Quantity};
use volcano_api::scheduling::{NetworkTopology, PodGroup, PodGroupPhase, SubGroupPolicy};
use volcano_api::time::Time;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;

/// The most pods that one Job is expanded to.
const MAX_PODS: i64 = 1_000_000;

/// A Job that was added to the plan.
#[derive(Debug, PartialEq, Eq)]
pub struct Submitted {
    /// `namespace/name` of the Job.
    pub job: String,
    /// `namespace/name` of its PodGroup.
    pub group: String,
}

/// Reads Jobs from files and adds them to the cluster as its youngest.
pub fn submit(
    cluster: &mut Cluster,
    paths: &[PathBuf],
    scheduler_name: &str,
    now: Time,
) -> Result<Vec<Submitted>, Failure> {
    let mut submitted = Vec::new();
    for path in super::source::expand(paths)? {
        let source = Source::open(&path)?;
        let before = submitted.len();
        input::read(&source, &mut |entry| {
            let job = read_job(&entry)?;
            submitted.push(add(cluster, &entry.title(), job, scheduler_name, now)?);
            Ok(())
        })?;
        if submitted.len() == before {
            return Err(Failure::new(format!("{}: no Job in this file", source.name)));
        }
    }
    cluster.sort();
    Ok(submitted)
}

fn read_job(entry: &Entry<'_>) -> Result<Job, Failure> {
    if entry.group() != kinds::BATCH || entry.kind != kinds::JOB.kind {
        let wanted = format!("{} {}", kinds::JOB.api_version(), kinds::JOB.kind);
        return Err(Failure::new(format!(
            "{}: {} is not a {wanted}",
            entry.title(),
            entry.full_kind()
        ))
        .hint("--submit takes Jobs; objects that are in the cluster already go in with -f"));
    }
    let mut job: Job = entry.decode()?;
    let meta = &mut job.metadata;
    if meta.name.is_empty() {
        return Err(Failure::new(format!(
            "{}: metadata.name: required",
            entry.title()
        )));
    }
    if meta.namespace.is_empty() {
        meta.namespace = DEFAULT_NAMESPACE.to_owned();
    }
    if meta.uid.is_empty() {
        meta.uid = made_uid(&meta.namespace, &meta.name);
    }
    Ok(job)
}

fn add(
    cluster: &mut Cluster,
    title: &str,
    mut job: Job,
    scheduler_name: &str,
    now: Time,
) -> Result<Submitted, Failure> {
    admission::mutate(&mut job, scheduler_name);
    let refusals = admission::refusals(&job, cluster);
    if !refusals.is_empty() {
        return Err(Failure::new(format!(
            "{title}: the Job would be refused: {}",
            refusals.join("; ")
        )));
    }
    let pods: i64 = job.spec.tasks.iter().map(|task| i64::from(task.replicas)).sum();
    if pods > MAX_PODS {
        return Err(Failure::new(format!(
            "{title}: {pods} pods; at most {MAX_PODS} are planned"
        )));
    }
    let priorities = cluster.priorities();
    let claims = claims(&job, cluster, title)?;
    let templates = templates(&job, title, &claims)?;
    let mut objects: Vec<Delta> = Vec::new();
    objects.push(Delta::PodGroup(Box::new(pod_group(
        &job,
        &templates,
        &priorities,
        now,
    ))));
    objects.extend(
        claims
            .iter()
            .filter_map(|claim| claim.made.clone())
            .map(|claim| Delta::Claim(Box::new(claim))),
    );
    for (task, template) in job.spec.tasks.iter().zip(&templates) {
        if let Some(waits_for) = unmet_dependency(&job, task) {
            cluster.notes.push(format!(
                "{title}: task {} waits for {waits_for} to run (dependsOn): its {} not made yet",
                task.name,
                counted(task.replicas.unsigned_abs() as usize, "pod is", "pods are")
            ));
            continue;
        }
        for index in 0..task.replicas {
            let mut pod = pod(&job, task, template, index, now);
            default_pod(&mut pod, &priorities);
            objects.push(Delta::Pod(Box::new(pod)));
        }
    }
    let there: BTreeSet<_> = cluster.objects.iter().filter_map(Delta::key).collect();
    let taken = objects
        .iter()
        .filter_map(Delta::key)
        .find(|key| there.contains(key));
    if let Some((kind, namespace, name)) = taken {
        return Err(Failure::new(format!(
            "{title}: {} {namespace}/{name} is in the cluster already",
            kind.name()
        ))
        .hint("give the Job another name, or leave its objects out of the input"));
    }
    let namespace = &job.metadata.namespace;
    let submitted = Submitted {
        job: job.metadata.key(),
        group: format!("{namespace}/{}", group_name(&job)),
    };
    cluster.objects.extend(objects);
    Ok(submitted)
}

fn group_name(job: &Job) -> String {
    format!("{}-{}", job.metadata.name, job.metadata.uid)
}

/// A claim of the Job, and its object if the Job makes it.
struct JobClaim {
    name: String,
    made: Option<PersistentVolumeClaim>,
}

/// The claims of the Job's volumes. A claim that must exist and does not keeps the Job from starting.
fn claims(job: &Job, cluster: &Cluster, title: &str) -> Result<Vec<JobClaim>, Failure> {
    let mut claims: Vec<JobClaim> = Vec::new();
    for (index, volume) in job.spec.volumes.iter().enumerate() {
        let namespace = &job.metadata.namespace;
        if !volume.volume_claim_name.is_empty() {
            let name = &volume.volume_claim_name;
            if !cluster.has(Kind::Claim, namespace, name) {
                return Err(Failure::new(format!(
                    "{title}: spec.volumes[{index}]: pvc {name} is not found, the job will be in the Pending state until the PVC is created"
                ))
                .hint("add the claim to the input"));
            }
            claims.push(JobClaim {
                name: name.clone(),
                made: None,
            });
        } else if let Some(spec) = &volume.volume_claim {
            let name = format!("{}-pvc-{index:012}", job.metadata.name);
            let path = format!("spec.volumes[{index}].volumeClaim");
            let mut claim = PersistentVolumeClaim {
                spec: decode_value(title, &path, Value::Object(spec.0.clone()))?,
                ..Default::default()
            };
            claim.metadata.name.clone_from(&name);
            claim.metadata.namespace.clone_from(namespace);
            claim.metadata.uid = made_uid(namespace, &name);
            claims.push(JobClaim {
                name,
                made: Some(claim),
            });
        } else {
            return Err(Failure::new(format!(
                "{title}: spec.volumes[{index}]: either VolumeClaim or VolumeClaimName must be specified"
            )));
        }
    }
    Ok(claims)
}

/// The pod of each task before anything that differs from pod to pod.
fn templates(job: &Job, title: &str, claims: &[JobClaim]) -> Result<Vec<Pod>, Failure> {
    let mut templates = Vec::new();
    for (index, task) in job.spec.tasks.iter().enumerate() {
        let path = format!("spec.tasks[{index}].template");
        let read: Pod = decode_value(title, &path, Value::Object(task.template.0.clone()))?;
        if read.spec.containers.is_empty() {
            return Err(Failure::new(format!("{title}: {path}.spec.containers: required")));
        }
        let mut pod = Pod {
            spec: read.spec,
            ..Pod::default()
        };
        pod.metadata.labels = read.metadata.labels;
        pod.metadata.annotations = read.metadata.annotations;
        if pod.spec.scheduler_name.is_empty() {
            pod.spec.scheduler_name.clone_from(&job.spec.scheduler_name);
        }
        if pod.spec.priority_class_name.is_empty() {
            pod.spec
                .priority_class_name
                .clone_from(&job.spec.priority_class_name);
        }
        let mut used = BTreeSet::new();
        for claim in claims.iter().filter(|claim| used.insert(&claim.name)) {
            pod.spec.volumes.push(PodVolume {
                name: format!("{}-{:012}", job.metadata.name, pod.spec.volumes.len()),
                persistent_volume_claim: Some(PodVolumeClaim {
                    claim_name: claim.name.clone(),
                }),
                ..PodVolume::default()
            });
        }
        templates.push(pod);
    }
    Ok(templates)
}

/// The tasks that must run before this one is made; `None` when it may be made now.
fn unmet_dependency(job: &Job, task: &TaskSpec) -> Option<String> {
    let depends_on = task
        .depends_on
        .as_ref()
        .filter(|depends| !depends.name.is_empty())?;
    let ready = |name: &String| {
        let dependency = job.spec.tasks.iter().find(|task| task.name == *name);
        dependency.is_some_and(|task| task.min_available.is_none_or(|minimum| minimum <= 0))
    };
    let any = depends_on.iteration == Iteration::Any && depends_on.name.len() > 1;
    let met = if any {
        depends_on.name.iter().any(ready)
    } else {
        depends_on.name.iter().all(ready)
    };
    (!met).then(|| depends_on.name.join(if any { " or " } else { ", " }))
}

/// One pod of a task.
fn pod(job: &Job, task: &TaskSpec, template: &Pod, index: i32, now: Time) -> Pod {
    let mut pod = template.clone();
    let name = format!("{}-{}-{index}", job.metadata.name, task.name);
    let namespace = &job.metadata.namespace;
    pod.metadata.uid = made_uid(namespace, &name);
    pod.metadata.name = name;
    pod.metadata.namespace.clone_from(namespace);
    pod.metadata.creation_timestamp = Some(now);
    pod.metadata.owner_references = vec![core::OwnerReference {
        api_version: kinds::JOB.api_version(),
        kind: kinds::JOB.kind.to_owned(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    }];
    let role = if task.name.is_empty() {
        tasks::DEFAULT
    } else {
        &task.name
    };
    let own_annotations = [
        (annotations::TASK_INDEX, index.to_string()),
        (annotations::TASK_SPEC, role.to_owned()),
        (annotations::KUBE_GROUP_NAME, group_name(job)),
        (annotations::JOB_NAME, job.metadata.name.clone()),
        (annotations::QUEUE_NAME, job.spec.queue.clone()),
        (annotations::JOB_VERSION, job.status.version.to_string()),
        (
            annotations::TEMPLATE_UID,
            format!("{}-{}", job.metadata.name, task.name),
        ),
        (annotations::JOB_RETRY_COUNT, job.status.retry_count.to_string()),
    ];
    put(&mut pod.metadata.annotations, own_annotations);
    if !task.topology_policy.is_unset() {
        put(
            &mut pod.metadata.annotations,
            [(
                annotations::NUMA_TOPOLOGY_POLICY,
                task.topology_policy.to_string(),
            )],
        );
    }
    let passed_on = [
        annotations::PREEMPTABLE,
        annotations::COOLDOWN_TIME,
        annotations::REVOCABLE_ZONE,
    ];
    copy(
        &job.metadata.annotations,
        &mut pod.metadata.annotations,
        &passed_on,
    );
    let budget = [annotations::JDB_MIN_AVAILABLE, annotations::JDB_MAX_UNAVAILABLE];
    if let Some(key) = budget
        .iter()
        .find(|key| job.metadata.annotations.contains_key(**key))
    {
        copy(&job.metadata.annotations, &mut pod.metadata.annotations, &[key]);
    }
    let own_labels = [
        (labels::TASK_INDEX, index.to_string()),
        (labels::JOB_NAME, job.metadata.name.clone()),
        (labels::TASK_SPEC, role.to_owned()),
        (labels::JOB_NAMESPACE, namespace.clone()),
        (labels::QUEUE_NAME, job.spec.queue.clone()),
    ];
    put(&mut pod.metadata.labels, own_labels);
    copy(
        &job.metadata.labels,
        &mut pod.metadata.labels,
        &[labels::PREEMPTABLE, labels::COOLDOWN_TIME],
    );
    if let Some(policy) = &task.partition_policy {
        let partition = index
            .checked_div(policy.partition_size)
            .filter(|_| policy.partition_size > 0)
            .unwrap_or(0);
        put(
            &mut pod.metadata.labels,
            [(labels::PARTITION_ID, partition.to_string())],
        );
    }
    pod
}

fn put<const N: usize>(map: &mut BTreeMap<String, String>, pairs: [(&str, String); N]) {
    map.extend(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)));
}

fn copy(from: &BTreeMap<String, String>, to: &mut BTreeMap<String, String>, keys: &[&str]) {
    for key in keys {
        if let Some(value) = from.get(*key) {
            to.insert((*key).to_owned(), value.clone());
        }
    }
}

fn pod_group(job: &Job, templates: &[Pod], priorities: &Priorities, now: Time) -> PodGroup {
    let mut group = PodGroup::named(&job.metadata.namespace, &group_name(job));
    let meta = &mut group.metadata;
    meta.uid = made_uid(&meta.namespace, &meta.name);
    meta.creation_timestamp = Some(now);
    meta.labels = job.metadata.labels.clone();
    meta.annotations = job.metadata.annotations.clone();
    meta.owner_references = vec![OwnerReference {
        api_version: kinds::JOB.api_version(),
        kind: kinds::JOB.kind.to_owned(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..OwnerReference::default()
    }];
    let spec = &mut group.spec;
    spec.min_member = job.spec.min_available;
    spec.min_task_member = job
        .spec
        .tasks
        .iter()
        .map(|task| (task.name.clone(), task_minimum(task)))
        .collect();
    spec.queue.clone_from(&job.spec.queue);
    spec.priority_class_name.clone_from(&job.spec.priority_class_name);
    spec.min_resources = Some(min_resources(job, templates, priorities));
    spec.network_topology = job.spec.network_topology.as_ref().map(one_tier);
    spec.sub_group_policy = job.spec.tasks.iter().filter_map(sub_group).collect();
    group.status.phase = PodGroupPhase::Pending;
    group
}

fn task_minimum(task: &TaskSpec) -> i32 {
    let partitions = task
        .partition_policy
        .as_ref()
        .map(|p| p.min_partitions.saturating_mul(p.partition_size));
    task.min_available
        .or(partitions.filter(|&pods| pods != 0))
        .unwrap_or(task.replicas)
}

/// The tier by number wins over the tier by name.
fn one_tier(topology: &NetworkTopology) -> NetworkTopology {
    let mut topology = topology.clone();
    if topology.highest_tier_allowed.is_some() {
        topology.highest_tier_name.clear();
    }
    topology
}

fn sub_group(task: &TaskSpec) -> Option<SubGroupPolicy> {
    let policy = task.partition_policy.as_ref()?;
    let match_labels = [(labels::TASK_SPEC.to_owned(), task.name.clone())].into();
    Some(SubGroupPolicy {
        name: task.name.clone(),
        sub_group_size: Some(policy.partition_size),
        min_sub_groups: Some(policy.min_partitions),
        label_selector: Some(LabelSelector {
            match_labels,
            ..LabelSelector::default()
        }),
        match_label_keys: vec![labels::PARTITION_ID.to_owned()],
        network_topology: policy.network_topology.as_ref().map(one_tier),
        ..SubGroupPolicy::default()
    })
}

/// What the smallest gang uses: the pods of the most important tasks, up to the Job's minimum.
fn min_resources(job: &Job, templates: &[Pod], priorities: &Priorities) -> ResourceList {
    let mut sum = ResourceList::new();
    for (count, template) in smallest_gang(job, templates, priorities) {
        for (name, amount) in usage(template) {
            let total = sum.entry(name).or_default();
            let added = amount.saturating_mul(i64::from(count));
            *total = if total.is_zero() {
                added
            } else {
                total.saturating_add(added)
            };
        }
    }
    sum
}

/// How many pods of each template make the smallest gang.
fn smallest_gang<'a>(job: &Job, templates: &'a [Pod], priorities: &Priorities) -> Vec<(i32, &'a Pod)> {
    let mut order: Vec<(&TaskSpec, &Pod)> = job.spec.tasks.iter().zip(templates).collect();
    let priority = |task: &TaskSpec| {
        let class = task
            .template
            .spec()
            .and_then(|spec| spec.get("priorityClassName"))
            .and_then(Value::as_str);
        class.and_then(|class| priorities.get(class)).unwrap_or(0)
    };
    order.sort_by_key(|(task, _)| std::cmp::Reverse(priority(task)));
    let minimum = |task: &TaskSpec| task.min_available.unwrap_or(task.replicas).max(0);
    let minimums: i64 = order.iter().map(|(task, _)| i64::from(minimum(task))).sum();
    let mut remaining = job.spec.min_available.max(0);
    let mut take = |wanted: i32| {
        let taken = wanted.clamp(0, remaining);
        remaining -= taken;
        taken
    };
    if i64::from(job.spec.min_available) < minimums {
        return order
            .iter()
            .map(|(task, pod)| (take(task.replicas), *pod))
            .collect();
    }
    let mut gang: Vec<_> = order
        .iter()
        .map(|(task, pod)| (take(task.min_available.unwrap_or(0)), *pod))
        .collect();
    for ((task, _), (count, _)) in order.iter().zip(&mut gang) {
        *count += take(task.replicas - task.min_available.unwrap_or(0).max(0));
    }
    gang
}

/// What a pod counts for in a quota.
fn usage(pod: &Pod) -> ResourceList {
    let one = Quantity::from_value(1, Format::DecimalSi);
    let mut usage: ResourceList = [("pods".to_owned(), one), ("count/pods".to_owned(), one)].into();
    for (name, amount) in pod_requests(pod) {
        let quota = format!("requests.{name}");
        let plain = match name.as_str() {
            "cpu" | "memory" | "ephemeral-storage" => true,
            name if name.starts_with("hugepages-") => true,
            _ => quota.contains('/') && !quota.contains("kubernetes.io/"),
        };
        usage.insert(quota, amount);
        if plain {
            usage.insert(name, amount);
        }
    }
    for (name, amount) in pod_requests(&limits_as_requests(pod)) {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

/// A pod that requests what the given one is limited to: limits add up by the same rules.
fn limits_as_requests(pod: &Pod) -> Pod {
    let mut limits = Pod {
        spec: pod.spec.clone(),
        ..Pod::default()
    };
    let spec = &mut limits.spec;
    let mut limited = BTreeSet::new();
    let containers = spec
        .containers
        .iter_mut()
        .chain(&mut spec.init_containers)
        .map(|c| &mut c.resources);
    for resources in containers.chain(&mut spec.resources) {
        resources.requests = std::mem::take(&mut resources.limits);
        limited.extend(resources.requests.keys().cloned());
    }
    spec.overhead.retain(|name, _| limited.contains(name));
    limits
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod submit_tests;
