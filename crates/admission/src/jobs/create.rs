//! Rules for a new Job. Two faults end the check at once; the messages of all others are strung together.

use std::collections::BTreeSet;

use volcano_api::batch::{Job, JobSpec, TaskSpec, VolumeSpec};
use volcano_api::names::admission::messages;
use volcano_api::names::{job_plugins, queues};
use volcano_api::scheduling::QueueState;

use super::{policies, tasks};
use crate::field::{MAX_MESSAGE, go_list};
use crate::lookups;
use crate::review::{Context, Verdict, verdict};
use crate::{Lookups, dag, syntax, template};

/// Where job policies are, and where those of tasks.
const POLICIES: &str = "spec.policies";
const TASK_POLICIES: &str = "spec.tasks.policies";
/// Name of the task that the mpi plugin calls its master when it is not told.
const MPI_MASTER: &str = "master";

/// Judges a new Job.
pub(super) fn check(context: &Context<'_>, job: &Job) -> Verdict {
    let spec = &job.spec;
    if spec.tasks.is_empty() {
        return Err(messages::NO_TASK.into());
    }
    if let Some(arguments) = spec.plugins.get(job_plugins::MPI) {
        let master = mpi_master(arguments);
        if !spec.tasks.iter().any(|task| task.name == master) {
            return Err(messages::NO_MPI_MASTER.into());
        }
    }
    let mut text = String::new();
    if tasks::has_both_tiers(spec.network_topology.as_ref()) {
        text.push_str(messages::BOTH_TIERS);
    }
    let dependent = check_tasks(job, &mut text);
    check_whole(job, &mut text);
    text.push_str(&volume_fault(&spec.volumes).unwrap_or_default());
    check_queue(context.cluster, &spec.queue, &mut text);
    if dependent && !is_dag(spec) {
        text.push_str(messages::NOT_A_DAG);
    }
    verdict(text.trim())
}

/// Judges each task, and tells whether one depends on others. A repeated name ends it, as what follows would be said
/// of the wrong task.
fn check_tasks(job: &Job, text: &mut String) -> bool {
    let mut names = BTreeSet::new();
    let mut dependent = false;
    for (index, task) in job.spec.tasks.iter().enumerate() {
        dependent |= task.depends_on.is_some();
        if task.min_available.is_some_and(|minimum| minimum > task.replicas) {
            text.push_str(&format!(
                " 'minAvailable' is greater than 'replicas' in task: {}, job: {};",
                task.name, job.metadata.name
            ));
        }
        if !names.insert(&task.name) {
            text.push_str(&format!(" duplicated task name {};", task.name));
            break;
        }
        check_task(job, index, task, text);
        if text.len() > MAX_MESSAGE {
            break;
        }
    }
    dependent
}

fn check_task(job: &Job, index: usize, task: &TaskSpec, text: &mut String) {
    let job_name = &job.metadata.name;
    text.push_str(&policies::fault(&task.policies, TASK_POLICIES).unwrap_or_default());
    let pod = format!("{job_name}-{}-{index}", task.name);
    let faults = syntax::qualified_name(&pod);
    if !faults.is_empty() {
        text.push_str(&format!(
            "create pod with name {pod} validate failed {};",
            go_list(&faults)
        ));
    }
    text.push_str(&template::fault(index, task).unwrap_or_default());
    text.push_str(&tasks::partition_fault(task, job_name).unwrap_or_default());
}

fn check_whole(job: &Job, text: &mut String) {
    let (name, spec) = (&job.metadata.name, &job.spec);
    let faults = syntax::qualified_name(name);
    if !faults.is_empty() {
        text.push_str(&format!(
            "create job with name {name} validate failed {}",
            go_list(&faults)
        ));
    }
    if tasks::total_replicas(&spec.tasks) < i64::from(spec.min_available) {
        text.push_str(messages::MIN_AVAILABLE_OVER_REPLICAS);
    }
    text.push_str(&policies::fault(&spec.policies, POLICIES).unwrap_or_default());
    for plugin in spec.plugins.keys() {
        if !job_plugins::ALL.contains(&plugin.as_str()) {
            text.push_str(&format!(" unable to find job plugin: {plugin};"));
        }
    }
}

/// The first thing that is wrong with the volumes of a Job.
fn volume_fault(volumes: &[VolumeSpec]) -> Option<String> {
    let mut paths = BTreeSet::new();
    volumes.iter().find_map(|volume| {
        let (path, claim) = (&volume.mount_path, &volume.volume_claim_name);
        if path.is_empty() {
            return Some(messages::MOUNT_PATH_REQUIRED.to_owned());
        }
        if !paths.insert(path) {
            return Some(format!(" duplicated mountPath: {path};"));
        }
        match (claim.is_empty(), &volume.volume_claim) {
            (true, None) => Some(messages::CLAIM_REQUIRED.to_owned()),
            (true, Some(_)) => None,
            (false, Some(_)) => Some(messages::CLAIM_CONFLICT.to_owned()),
            (false, None) => {
                let faults = syntax::subdomain(claim);
                (!faults.is_empty())
                    .then(|| format!("invalid VolumeClaimName {claim} : {}", go_list(&faults)))
            }
        }
    })
}

fn check_queue(cluster: &dyn Lookups, name: &str, text: &mut String) {
    let queue = match lookups::queue(cluster, name) {
        Ok(queue) => queue,
        Err(error) => {
            text.push_str(&format!(" unable to find job queue: {error};"));
            return;
        }
    };
    let state = &queue.status.state;
    if *state != QueueState::Open {
        text.push_str(&format!(
            " can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
        ));
    }
    if name == queues::ROOT {
        text.push_str(messages::JOB_IN_ROOT_QUEUE);
        return;
    }
    let children = cluster.children(name).len();
    if children > 0 {
        text.push_str(&format!(
            " can only submit job to leaf queue, queue `{name}` has {children} child queues;"
        ));
    }
}

fn is_dag(spec: &JobSpec) -> bool {
    let nodes: Vec<(&str, &[String])> = spec
        .tasks
        .iter()
        .map(|task| {
            let targets = task.depends_on.as_ref().map_or(&[][..], |on| &on.name);
            (task.name.as_str(), targets)
        })
        .collect();
    dag::fault(&nodes).is_none()
}

/// The argument `master` of the mpi plugin. Arguments are flags; reading stops at the first that is none.
fn mpi_master(arguments: &[String]) -> &str {
    let mut master = MPI_MASTER;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
            break;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, rest.next().map(String::as_str)),
        };
        match (name, value) {
            ("master", Some(value)) => master = value,
            ("worker", Some(_)) => {}
            ("port", Some(value)) if value.parse::<i64>().is_ok() => {}
            _ => break,
        }
    }
    master
}
