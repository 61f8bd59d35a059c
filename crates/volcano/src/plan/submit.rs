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
use std::collections::BTreeSet;
use std::path::PathBuf;
use volcano_api::batch::{Iteration, Job, TaskSpec};
use volcano_api::core::{PersistentVolumeClaim, Pod, PodVolume, PodVolumeClaim};
use volcano_api::names::kinds;
use volcano_api::scheduling::{PodGroup, PodGroupPhase};
use volcano_api::time::Time;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;
use volcano_reconcile::job::{group_name, pod_group, pod_metadata};

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
    job = admission::admit(&job, cluster, scheduler_name)
        .map_err(|refusal| Failure::new(format!("{title}: the Job would be refused: {refusal}")))?;
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
    objects.push(Delta::PodGroup(Box::new(group(&job, &priorities, now))));
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
            let mut pod = pod(&job, task, template, index, now)?;
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
fn pod(job: &Job, task: &TaskSpec, template: &Pod, index: i32, now: Time) -> Result<Pod, Failure> {
    let metadata = serde_json::from_value(pod_metadata(job, task, index))
        .map_err(|error| Failure::new(format!("{}: its pods: {error}", job.metadata.key())))?;
    let mut pod = Pod {
        metadata,
        spec: template.spec.clone(),
        ..Pod::default()
    };
    let meta = &mut pod.metadata;
    meta.uid = made_uid(&meta.namespace, &meta.name);
    meta.creation_timestamp = Some(now);
    Ok(pod)
}

/// Its PodGroup, which waits to be admitted.
fn group(job: &Job, priorities: &Priorities, now: Time) -> PodGroup {
    let mut group = pod_group(job, priorities.by_class());
    let meta = &mut group.metadata;
    meta.uid = made_uid(&meta.namespace, &meta.name);
    meta.creation_timestamp = Some(now);
    group.status.phase = PodGroupPhase::Pending;
    group
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod submit_tests;
