//! A Job that is not in the cluster yet, as the Job controller would expand it: its PodGroup, pods and claims.
//!
//! In a cluster the pods are made once the PodGroup is admitted. Here both come at once, with the PodGroup still
//! Pending, so that one plan answers whether the Job would be admitted and where its pods would go.

use crate::admission;
use crate::cluster::{Cluster, Priorities, counted, default_pod};
use crate::fault::Fault;
use crate::input::{self, Entry, decode_value};
use crate::objects::{self, made_uid};
use crate::source::Source;
use serde_json::Value;
use std::collections::BTreeSet;
use volcano_api::batch::{Iteration, Job, TaskSpec};
use volcano_api::core::{PersistentVolumeClaim, Pod};
use volcano_api::names::kinds;
use volcano_api::scheduling::{PodGroup, PodGroupPhase};
use volcano_api::time::Time;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;
use volcano_reconcile::job::{
    self as reconcile, Circumstances, Claims, group_name, may_have_pods, pod_group,
};
use volcano_reconcile::plugins::Plugins;
use volcano_reconcile::write::Write;

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

/// Reads Jobs from sources and adds them to the cluster as its youngest.
pub fn submit(
    cluster: &mut Cluster,
    sources: &[Source],
    scheduler_name: &str,
    now: Time,
) -> Result<Vec<Submitted>, Fault> {
    let mut submitted = Vec::new();
    for source in sources {
        let before = submitted.len();
        input::read(source, &mut |entry| {
            let job = read_job(&entry)?;
            submitted.push(add(cluster, &entry.title(), job, scheduler_name, now)?);
            Ok(())
        })?;
        if submitted.len() == before {
            return Err(Fault::new(format!("{}: no Job in this file", source.name)));
        }
    }
    cluster.sort();
    Ok(submitted)
}

fn read_job(entry: &Entry<'_>) -> Result<Job, Fault> {
    if objects::is_job(entry) {
        return objects::job(entry);
    }
    let wanted = format!("{} {}", kinds::JOB.api_version(), kinds::JOB.kind);
    Err(Fault::new(format!(
        "{}: {} is not a {wanted}",
        entry.title(),
        entry.full_kind()
    ))
    .hint("--submit takes Jobs; objects that are in the cluster already go in with -f"))
}

fn add(
    cluster: &mut Cluster,
    title: &str,
    mut job: Job,
    scheduler_name: &str,
    now: Time,
) -> Result<Submitted, Fault> {
    job = admission::admit(&job, cluster, scheduler_name)
        .map_err(|refusal| Fault::new(format!("{title}: the Job would be refused: {refusal}")))?;
    let total: i64 = job.spec.tasks.iter().map(|task| i64::from(task.replicas)).sum();
    if total > MAX_PODS {
        return Err(Fault::new(format!(
            "{title}: {total} pods; at most {MAX_PODS} are planned"
        )));
    }
    let priorities = cluster.priorities();
    let mut objects = claims(&job, cluster, title)?;
    objects.push(Delta::PodGroup(Box::new(group(&job, &priorities, now))));
    let plugins = Plugins::of(&job).map_err(|error| Fault::new(format!("{title}: spec.plugins: {error}")))?;
    for (at, task) in job.spec.tasks.iter().enumerate() {
        check_template(title, at, task)?;
        if !may_have_pods(&job, task, &[]) {
            cluster.notes.push(format!(
                "{title}: task {} waits for {} to run (dependsOn): its {} not made yet",
                task.name,
                waits_for(task),
                counted(task.replicas.unsigned_abs() as usize, "pod is", "pods are")
            ));
            continue;
        }
        let made = pods(&job, task, 0..task.replicas, &plugins, &priorities, now)
            .map_err(|error| Fault::new(format!("{title}: task {}: {error}", task.name)))?;
        objects.extend(made.into_iter().map(|pod| Delta::Pod(Box::new(pod))));
    }
    let there: BTreeSet<_> = cluster.objects.iter().filter_map(Delta::key).collect();
    let taken = objects
        .iter()
        .filter_map(Delta::key)
        .find(|key| there.contains(key));
    if let Some((kind, namespace, name)) = taken {
        return Err(Fault::new(format!(
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

/// The claims that the Job makes. A claim that must exist and does not keeps the Job from starting.
fn claims(job: &Job, cluster: &Cluster, title: &str) -> Result<Vec<Delta>, Fault> {
    let namespace = &job.metadata.namespace;
    let steps = match reconcile::claims(job, &|name| cluster.has(Kind::Claim, namespace, name)) {
        Claims::Need(steps) => steps,
        Claims::Missing(why) => {
            return Err(
                Fault::new(format!("{title}: spec.volumes: {why}")).hint("add the claim to the input")
            );
        }
    };
    let mut claims = Vec::new();
    for write in steps.into_iter().flatten() {
        if let Write::Create { body, .. } = write {
            let mut claim: PersistentVolumeClaim = decode_value(title, "", body)?;
            claim.metadata.uid = made_uid(namespace, &claim.metadata.name);
            claims.push(Delta::Claim(Box::new(claim)));
        }
    }
    Ok(claims)
}

/// The template of a task has to be one of pods.
fn check_template(title: &str, at: usize, task: &TaskSpec) -> Result<(), Fault> {
    let path = format!("spec.tasks[{at}].template");
    let read: Pod = decode_value(title, &path, Value::Object(task.template.0.clone()))?;
    if read.spec.containers.is_empty() {
        return Err(Fault::new(format!("{title}: {path}.spec.containers: required")));
    }
    Ok(())
}

/// The tasks that must run before this one is made.
pub(crate) fn waits_for(task: &TaskSpec) -> String {
    let Some(depends_on) = &task.depends_on else {
        return String::new();
    };
    let any = depends_on.iteration == Iteration::Any;
    depends_on.name.join(if any { " or " } else { ", " })
}

/// Pods of a task, as the Job controller makes them and the API server completes them.
///
/// What plugins add differs between the pods of a task only in what scheduling does not see (variables, host names), and
/// may be long, so they are asked once.
pub(crate) fn pods(
    job: &Job,
    task: &TaskSpec,
    indices: impl IntoIterator<Item = i32>,
    plugins: &Plugins,
    priorities: &Priorities,
    now: Time,
) -> Result<Vec<Pod>, String> {
    let body = reconcile::pod_body(job, task, 0, plugins, Circumstances::default())
        .map_err(|error| error.to_string())?;
    let mut first: Pod = serde_json::from_value(body).map_err(|error| error.to_string())?;
    default_pod(&mut first, priorities);
    let claimed = reconcile::mounts(job, &first.metadata.name);
    let mut pods = Vec::new();
    for index in indices {
        let metadata = serde_json::from_value(reconcile::pod_metadata(job, task, index))
            .map_err(|error| error.to_string())?;
        let mut pod = Pod {
            metadata,
            ..first.clone()
        };
        for ((before, _), (own, _)) in claimed.iter().zip(reconcile::mounts(job, &pod.metadata.name)) {
            let name = |volume: &Value| volume["name"].as_str().unwrap_or_default().to_owned();
            let volumes = pod.spec.volumes.iter_mut();
            for volume in volumes.filter(|volume| volume.name == name(before)) {
                volume.name = name(&own);
            }
        }
        let meta = &mut pod.metadata;
        meta.uid = made_uid(&meta.namespace, &meta.name);
        meta.creation_timestamp = Some(now);
        pods.push(pod);
    }
    Ok(pods)
}

/// Its PodGroup, which waits to be admitted.
pub(crate) fn group(job: &Job, priorities: &Priorities, now: Time) -> PodGroup {
    let mut group = pod_group(job, priorities.by_class());
    let meta = &mut group.metadata;
    meta.uid = made_uid(&meta.namespace, &meta.name);
    meta.creation_timestamp = Some(now);
    group.status.phase = PodGroupPhase::Pending;
    group
}

#[cfg(test)]
mod tests;
