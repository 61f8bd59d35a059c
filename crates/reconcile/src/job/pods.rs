//! The pods of a Job as they are observed, and which of them are to go.
//!
//! Whether a pod is to go follows from the Job's status alone, so that a kill that was cut short goes on by itself:
//!
//! ```text
//! in an ending or ended Job           what has not finished
//! of an older version                 what has not finished; after RestartJob everything
//! of an older attempt, in the part    everything
//!   that was restarted last
//! marked, or beyond `replicas`        everything
//! ```

use std::collections::{BTreeMap, BTreeSet};

use volcano_api::batch::{Job, JobSpec, JobStatus, TaskSpec};
use volcano_api::bus::Action;
use volcano_api::core::{Pod, PodPhase};
use volcano_api::names::{annotations, labels, tasks};

use super::cause::Cause;
use super::evaluate::is_spent;
use super::table::{Stage, stage};

/// What pods of a task carry as its name.
pub fn task_key(task: &TaskSpec) -> &str {
    if task.name.is_empty() {
        tasks::DEFAULT
    } else {
        &task.name
    }
}

/// A pod of a Job.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Name of its task, as the pod carries it.
    pub task_name: &'a str,
    /// Place of its task in the spec, if it is there.
    pub task: Option<usize>,
    /// Its index in the task.
    pub index: i32,
    /// The Job's version that it was made for.
    pub version: i32,
    /// The Job's restarts when it was made.
    pub attempt: i32,
}

impl<'a> Member<'a> {
    fn read(pod: &'a Pod, tasks: &BTreeMap<&str, usize>) -> Option<Self> {
        let annotation = |key| pod.metadata.annotations.get(key).map(String::as_str);
        annotation(annotations::JOB_NAME)?;
        let task_name = annotation(annotations::TASK_SPEC)?;
        let index = pod
            .metadata
            .name
            .rsplit('-')
            .next()
            .and_then(|text| text.parse().ok());
        Some(Member {
            pod,
            task_name,
            task: tasks.get(task_name).copied(),
            index: index.unwrap_or(i32::MAX),
            version: annotation(annotations::JOB_VERSION)?.parse().ok()?,
            attempt: annotation(annotations::JOB_RETRY_COUNT)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
        })
    }

    /// The pod's name.
    pub fn name(&self) -> &'a str {
        &self.pod.metadata.name
    }

    /// Its partition, as its label has it.
    pub fn partition(&self) -> Option<&'a str> {
        self.pod
            .metadata
            .labels
            .get(labels::PARTITION_ID)
            .map(String::as_str)
    }

    /// Its phase.
    pub fn phase(&self) -> PodPhase {
        self.pod.status.phase
    }

    /// Whether its deletion was asked for, by whomever.
    pub fn is_leaving(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    /// Whether the controller has written on it that it deletes it.
    pub fn is_marked(&self) -> bool {
        self.pod
            .metadata
            .annotations
            .contains_key(annotations::CONTROLLER_OUT_OF_SYNC)
    }

    /// Whether the spec has a place for it.
    pub fn is_wanted(&self, spec: &JobSpec) -> bool {
        self.task
            .is_some_and(|task| self.index < spec.tasks[task].replicas)
    }
}

/// The pods of a Job.
#[derive(Debug, Default)]
pub struct Members<'a> {
    list: Vec<Member<'a>>,
    names: BTreeSet<&'a str>,
}

impl<'a> Members<'a> {
    /// Reads them. A pod that another Job controls is none of ours, yet holds its name until it is gone.
    pub fn read(job: &Job, pods: &[&'a Pod]) -> Self {
        let tasks: BTreeMap<&str, usize> = job
            .spec
            .tasks
            .iter()
            .enumerate()
            .map(|(at, task)| (task_key(task), at))
            .collect();
        let is_ours = |pod: &Pod| {
            let controller = pod.metadata.controller();
            controller.is_some_and(|owner| owner.uid == job.metadata.uid)
        };
        let ours = pods.iter().filter(|pod| is_ours(pod));
        let mut list: Vec<_> = ours.filter_map(|pod| Member::read(pod, &tasks)).collect();
        list.sort_by_key(|member| (member.task.unwrap_or(usize::MAX), member.index));
        Members {
            list,
            names: pods.iter().map(|pod| pod.metadata.name.as_str()).collect(),
        }
    }

    /// All of them, by task and index.
    pub fn iter(&self) -> impl Iterator<Item = &Member<'a>> {
        self.list.iter()
    }

    /// Whether a name is taken.
    pub fn is_taken(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

/// Which pods of a Job are to go, by its status.
#[derive(Debug)]
pub struct Doom<'a> {
    spec: &'a JobSpec,
    version: i32,
    retry_count: i32,
    cause: Cause,
    is_over: bool,
    is_spent: bool,
}

impl<'a> Doom<'a> {
    /// By this status.
    pub fn of(spec: &'a JobSpec, status: &JobStatus) -> Self {
        Doom {
            spec,
            version: status.version,
            retry_count: status.retry_count,
            cause: Cause::read(&status.state.reason),
            is_over: stage(&status.state.phase) != Stage::Active,
            is_spent: is_spent(spec, status),
        }
    }

    /// Whether a pod is to go. It may be leaving already.
    pub fn takes(&self, member: &Member<'_>) -> bool {
        let has_finished = member.phase().is_terminated();
        if self.is_over {
            return !has_finished;
        }
        if member.is_marked() || self.is_excess(member) {
            return true;
        }
        // The pods of the last attempt stay, so that its end can be looked into.
        let is_kept = has_finished && self.is_spent;
        let is_old = member.version < self.version;
        let is_restarted = is_old && self.cause == Cause::Whole(Action::RestartJob);
        (is_old && !has_finished) || ((is_restarted || self.is_replaced(member)) && !is_kept)
    }

    /// Whether the part of the Job that it is in was restarted since it was made.
    fn is_replaced(&self, member: &Member<'_>) -> bool {
        member.attempt < self.retry_count
            && self
                .cause
                .covers(member.task_name, member.name(), member.partition())
    }

    fn is_excess(&self, member: &Member<'_>) -> bool {
        member.task.is_some() && !member.is_wanted(self.spec)
    }

    /// Whether a pod belongs to the Job as it runs now: what happens to it matters.
    pub fn heeds(&self, member: &Member<'_>) -> bool {
        member.version >= self.version && member.task.is_some() && !self.takes(member)
    }
}
