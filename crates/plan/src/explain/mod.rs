//! Why a job waits, and the smallest change that would start it.
//!
//! ```text
//! cluster ──> World ──trial as it is──> started? ──yes──> Starting
//!                          │ no
//!                          ├──> find: reasons, first the one that a person would give
//!                          ├──> holders: who has what is short
//!                          └──> suggest: changes, each tried in the same World; only those that start the job stay
//! ```

mod change;
mod controller;
mod find;
mod holders;
mod nodes;
mod owners;
mod quota;
mod reason;
mod room;
mod suggest;
#[cfg(test)]
mod tests;
mod text;
mod view;
mod world;

use crate::admission;
use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::objects::{DEFAULT_NAMESPACE, made_uid};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use volcano_api::batch::{Job, JobPhase};
use volcano_api::names::{SCHEDULER, kinds, queues};
use volcano_api::time::Time;
use volcano_engine::config::SchedulerConf;
use volcano_engine::model::job::Phase;
use world::{Trial, World};

pub use change::{Change, How};
pub use holders::Holder;
pub use reason::{Ahead, Amount, QueueLimit, Reason, Room, RuledOut};
pub use suggest::{Suggestion, What};

/// How the scheduler of the cluster is set up.
#[derive(Clone, Debug)]
pub struct Conf {
    /// Its configuration.
    pub scheduler: SchedulerConf,
    /// Its names: pods that ask for one of them are placed.
    pub scheduler_names: Vec<String>,
    /// The queue of PodGroups that name none.
    pub default_queue: String,
    /// The present.
    pub now: Time,
}

impl Conf {
    /// A scheduler with the usual names.
    pub fn new(scheduler: SchedulerConf, now: Time) -> Self {
        Conf {
            scheduler,
            scheduler_names: vec![SCHEDULER.to_owned()],
            default_queue: queues::DEFAULT.to_owned(),
            now,
        }
    }
}

/// Which job: a Job of this name, or else a PodGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl JobKey {
    /// A job by namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        JobKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How a job stands, why, and what would start it. Printed as text by `Display`, as JSON by `Serialize`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `namespace/name`.
    pub job: String,
    /// `Job` or `PodGroup`.
    pub kind: &'static str,
    /// `namespace/name` of its PodGroup, once it is made.
    pub pod_group: Option<String>,
    /// Its queue.
    pub queue: String,
    /// Its priority.
    pub priority: i32,
    /// Its phase, as the cluster has it.
    pub phase: String,
    /// How its gang stands.
    pub gang: Gang,
    /// How it stands.
    #[serde(flatten)]
    pub state: State,
    /// Why it, or a part of it, waits; most important first.
    pub reasons: Vec<Reason>,
    /// The jobs that hold most of what is short.
    pub holders: Vec<Holder>,
    /// Changes that would start it, each of which was tried; the smallest first.
    pub suggestions: Vec<Suggestion>,
}

/// Pods of a gang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gang {
    /// Pods that have a place or have ended well.
    pub ready: u32,
    /// Pods that have to be ready for any to start.
    pub minimum: u32,
    /// Pods that there are.
    pub total: u32,
    /// Pods that there should be.
    pub wanted: u32,
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum State {
    /// It has ended.
    Finished,
    /// Its gang runs; if there are reasons, some of its pods wait.
    Running,
    /// It waits, and starts in the next cycles by itself.
    Starting {
        /// Node by pod.
        binds: BTreeMap<String, String>,
        /// Pods that have to go for it.
        evicts: Vec<Evicted>,
    },
    /// It waits.
    Waiting,
}

/// A pod that has to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evicted {
    /// `namespace/name`.
    pub pod: String,
    /// `namespace/name` of its Job; of its PodGroup, if no Job has made that; none for a pod without.
    pub job: Option<String>,
    /// `namespace/name` of its PodGroup, if it has one.
    pub pod_group: Option<String>,
    /// `preempt` or `reclaim`.
    pub action: &'static str,
}

/// Says how a job stands, why it waits, and what would start it. The cluster has to be complete
/// ([`Cluster::complete`]) and to hold the Job, if there is one.
///
/// # Errors
/// When there is no such job in the cluster.
pub fn explain(cluster: &Cluster, conf: &Conf, key: &JobKey) -> Result<Explanation, Fault> {
    let world = World::load(cluster, conf, key)?;
    let mut explanation = describe(&world, key);
    if explanation.state == State::Finished {
        return Ok(explanation);
    }
    let Some(trial) = world.with(&[]) else {
        return Ok(explanation);
    };
    if explanation.state != State::Running && trial.started {
        explanation.state = State::Starting {
            binds: trial.binds.clone(),
            evicts: trial.evicted.clone(),
        };
        return Ok(explanation);
    }
    if explanation.state == State::Running && is_whole(&world, &trial) {
        return Ok(explanation);
    }
    explanation.reasons = find::reasons(&world, &trial);
    explanation.holders = holders::holders(&world, &trial, &explanation.reasons);
    if explanation.state == State::Waiting {
        explanation.suggestions = suggest::suggestions(&world, &trial, &explanation.reasons);
    }
    Ok(explanation)
}

/// Says whether a Job that is not in the cluster yet would start now, where, and who would have to go for it; if not, why
/// not and what would help. Its admission is part of it: `job` is what a user wrote.
///
/// # Errors
/// When admission would refuse the Job, or there is one of this name already.
pub fn plan_job(cluster: &Cluster, conf: &Conf, job: &Job) -> Result<Explanation, Fault> {
    let mut job = job.clone();
    let meta = &mut job.metadata;
    if meta.namespace.is_empty() {
        meta.namespace = DEFAULT_NAMESPACE.to_owned();
    }
    if meta.uid.is_empty() {
        meta.uid = made_uid(&meta.namespace, &meta.name);
    }
    meta.creation_timestamp = Some(conf.now);
    let key = JobKey::new(&meta.namespace, &meta.name);
    if cluster
        .jobs
        .iter()
        .any(|known| known.metadata.key() == job.metadata.key())
    {
        return Err(
            Fault::new(format!("Job {key} is in the cluster already")).hint("explain says how it stands")
        );
    }
    let scheduler = conf.scheduler_names.first().map_or(SCHEDULER, String::as_str);
    let job = admission::admit(&job, cluster, scheduler)
        .map_err(|refusal| Fault::new(format!("Job {key} would be refused: {refusal}")))?;
    let mut with_job = cluster.changed(&[])?;
    with_job.jobs.push(job);
    let mut explanation = explain(&with_job, conf, &key)?;
    for suggestion in &mut explanation.suggestions {
        suggestion.before_submission();
    }
    Ok(explanation)
}

/// What is known without a trial.
fn describe(world: &World<'_>, key: &JobKey) -> Explanation {
    let m = world.model();
    let subject = &world.subject;
    let group = subject.group.as_ref();
    let id = group.and_then(|group| m.find_job(&group.metadata.namespace, &group.metadata.name));
    let in_model = id.map(|id| m.job(id));
    let job = subject.job.as_ref();
    let wanted = job.map(|job| {
        job.spec
            .tasks
            .iter()
            .map(|task| task.replicas.unsigned_abs())
            .sum()
    });
    let gang = Gang {
        ready: in_model.map_or(0, |job| job.counts.ready()),
        minimum: in_model.map_or_else(
            || job.map_or(0, |job| job.spec.min_available.unsigned_abs()),
            |job| job.min_available(),
        ),
        total: in_model.map_or(0, |job| job.counts.total()),
        wanted: wanted.unwrap_or_else(|| in_model.map_or(0, |job| job.counts.total())),
    };
    let named = job
        .map(|job| &job.spec.queue)
        .or(group.map(|group| &group.spec.queue));
    let queue = in_model.map_or_else(
        || named.cloned().unwrap_or_default(),
        |job| m.text(m.queue(job.queue).name).to_owned(),
    );
    let class = job
        .map(|job| job.spec.priority_class_name.as_str())
        .unwrap_or_default();
    let phase = match (job, in_model) {
        (Some(job), _) => job.status.state.phase.to_string(),
        (None, Some(job)) => job.phase().name().to_owned(),
        (None, None) => String::new(),
    };
    let is_finished = match job {
        Some(job) => matches!(
            job.status.state.phase,
            JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated
        ),
        None => in_model.is_some_and(|job| job.phase() == Phase::Completed),
    };
    let is_running = in_model.is_some_and(|job| job.is_ready() && job.counts.allocated() > 0);
    Explanation {
        job: key.to_string(),
        kind: if job.is_some() {
            kinds::JOB.kind
        } else {
            kinds::POD_GROUP.kind
        },
        pod_group: group.map(|group| group.metadata.key()),
        queue,
        priority: in_model.map_or_else(|| world.priorities().get(class).unwrap_or(0), |job| job.priority),
        phase,
        gang,
        state: match (is_finished, is_running) {
            (true, _) => State::Finished,
            (_, true) => State::Running,
            _ => State::Waiting,
        },
        reasons: Vec::new(),
        holders: Vec::new(),
        suggestions: Vec::new(),
    }
}

/// Every pod that there should be has its place.
fn is_whole(world: &World<'_>, trial: &Trial) -> bool {
    let nothing_missing = trial.withheld.is_empty();
    let Some(id) = trial.id() else { return true };
    let counts = &trial.engine.model().job(id).counts;
    let waits = counts.of(volcano_engine::model::status::Status::Pending) > 0;
    nothing_missing && !waits && world.subject.group.is_some()
}
