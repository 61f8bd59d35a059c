//! gang: a PodGroup runs whole or not at all, and is not broken by evictions.
//!
//! Whole means: `minMember` tasks, the minimum of each role (`minTaskMember`, unless those add up to more than
//! `minMember`), and enough whole sub-groups of each policy. The counters behind these tests are the model's, so
//! every answer here is a comparison of a few numbers. The PodGroup's conditions are written when a cycle closes.

use crate::config::PluginConf;
use crate::explain::Invalid;
use crate::ids::{JobId, TaskId};
use crate::model::Model;
use crate::model::job::{Job, SubJob, at_least};
use crate::plugin::{EvictionKind, Plugin, Point, Vote};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Ordering;
use volcano_api::names::{messages, reasons};

struct Gang;

/// Builds the plugin.
pub fn build(_conf: &PluginConf) -> Box<dyn Plugin> {
    Box::new(Gang)
}

fn invalid(reason: &'static str, message: impl Into<String>) -> Result<(), Invalid> {
    Err(Invalid {
        reason,
        message: message.into(),
    })
}

fn vote(permit: bool) -> Vote {
    if permit { Vote::Permit } else { Vote::Reject }
}

fn sub_job(m: &Model, job: JobId, at: u32) -> Option<&SubJob> {
    m.job(job).sub_jobs.get(at as usize)
}

/// What would be left of a gang if the victims accepted so far went.
struct Remaining<'a> {
    job: &'a Job,
    ready: u32,
    /// Ready tasks by role; empty when role minimums do not bind.
    roles: SmallVec<[u32; 4]>,
    /// Tasks by sub-job; empty without policies.
    sub_jobs: SmallVec<[u32; 4]>,
    /// Whole sub-jobs by policy.
    whole: SmallVec<[u32; 2]>,
}

impl<'a> Remaining<'a> {
    fn of(job: &'a Job) -> Self {
        let ready = job.counts.ready();
        let mut left = Remaining {
            job,
            ready,
            roles: SmallVec::new(),
            sub_jobs: SmallVec::new(),
            whole: SmallVec::new(),
        };
        if job.roles_bind() {
            left.roles
                .extend(job.roles.iter().map(|role| role.counts.ready()));
        }
        if job.has_sub_groups() {
            left.whole
                .resize(job.group.as_ref().map_or(0, |g| g.sub_groups.len()), 0);
            for sub_job in &job.sub_jobs {
                left.sub_jobs
                    .push(sub_job.counts.ready() + sub_job.counts.best_effort_pending);
                if let Some(whole) = sub_job.policy.and_then(|at| left.whole.get_mut(usize::from(at))) {
                    *whole += u32::from(sub_job.is_ready());
                }
            }
        }
        left
    }

    /// Lets a task go if what is left is still a gang.
    fn release(&mut self, role: Option<u16>, sub_job: u32) -> bool {
        if self.ready <= self.job.min_available() {
            return false;
        }
        let role = role.map(usize::from).filter(|&at| at < self.roles.len());
        if role.is_some_and(|at| self.role_is_at_minimum(at)) {
            return false;
        }
        let sub_job = Some(sub_job as usize).filter(|&at| at < self.sub_jobs.len());
        let broken = sub_job.and_then(|at| self.policy_broken_by(at));
        if broken.is_some_and(|at| self.policy_is_at_minimum(at)) {
            return false;
        }
        self.ready -= 1;
        if let Some(at) = role {
            self.roles[at] = self.roles[at].saturating_sub(1);
        }
        if let Some(at) = sub_job {
            self.sub_jobs[at] = self.sub_jobs[at].saturating_sub(1);
        }
        if let Some(at) = broken {
            self.whole[at] = self.whole[at].saturating_sub(1);
        }
        true
    }

    fn role_is_at_minimum(&self, at: usize) -> bool {
        let minimum = at_least(self.job.roles[at].minimum);
        minimum > 0 && self.roles[at] <= minimum
    }

    /// The policy that loses a whole sub-group when the sub-job loses a task.
    fn policy_broken_by(&self, at: usize) -> Option<usize> {
        let sub_job = &self.job.sub_jobs[at];
        let policy = sub_job
            .policy
            .map(usize::from)
            .filter(|&at| at < self.whole.len())?;
        (self.sub_jobs[at] == at_least(sub_job.min_available)).then_some(policy)
    }

    fn policy_is_at_minimum(&self, at: usize) -> bool {
        let policies = self
            .job
            .group
            .as_ref()
            .map(|g| g.sub_groups.as_slice())
            .unwrap_or_default();
        policies
            .get(at)
            .is_some_and(|p| p.min_sub_groups > 0 && self.whole[at] <= at_least(p.min_sub_groups))
    }
}

/// The candidates that can go, in order, with every gang kept whole.
fn spare(m: &Model, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
    let mut jobs: FxHashMap<JobId, Remaining<'_>> = FxHashMap::default();
    let goes = |&id: &TaskId| {
        let task = m.task(id);
        let Some(job) = task.job.filter(|&job| m.in_session(job)) else {
            return false;
        };
        jobs.entry(job)
            .or_insert_with(|| Remaining::of(m.job(job)))
            .release(task.role, task.sub_job)
    };
    Some(candidates.iter().copied().filter(goes).collect())
}

impl Plugin for Gang {
    fn name(&self) -> &'static str {
        "gang"
    }

    fn points(&self) -> &'static [Point] {
        &[
            Point::JobValid,
            Point::JobOrder,
            Point::SubJobOrder,
            Point::JobReady,
            Point::SubJobReady,
            Point::JobPipelined,
            Point::SubJobPipelined,
            Point::JobStarving,
            Point::Preemptable,
            Point::Reclaimable,
            Point::UnifiedEvictable,
        ]
    }

    fn job_valid(&self, m: &Model, job: JobId) -> Result<(), Invalid> {
        let job = m.job(job);
        if !job.roles_valid() {
            return invalid(
                reasons::NOT_ENOUGH_PODS_OF_TASK,
                messages::NOT_ENOUGH_PODS_OF_TASK,
            );
        }
        if !job.sub_groups_valid() {
            return invalid(reasons::NOT_ENOUGH_PODS_OF_TASK, messages::NOT_ENOUGH_SUB_GROUPS);
        }
        let (valid, minimum) = (job.counts.valid(), job.min_available());
        if valid < minimum {
            let message =
                format!("Not enough valid tasks for gang-scheduling, valid: {valid}, min: {minimum}");
            return invalid(reasons::NOT_ENOUGH_TASKS, message);
        }
        Ok(())
    }

    /// Those that still need members come first.
    fn job_order(&self, m: &Model, a: JobId, b: JobId) -> Ordering {
        m.job(a).is_ready().cmp(&m.job(b).is_ready())
    }

    fn sub_job_order(&self, m: &Model, job: JobId, a: u32, b: u32) -> Ordering {
        let ready = |at| sub_job(m, job, at).is_some_and(SubJob::is_ready);
        ready(a).cmp(&ready(b))
    }

    fn job_ready(&self, m: &Model, job: JobId) -> bool {
        let job = m.job(job);
        job.is_ready() && job.roles_ready() && job.sub_groups_ready()
    }

    fn sub_job_ready(&self, m: &Model, job: JobId, at: u32) -> bool {
        sub_job(m, job, at).is_some_and(SubJob::is_ready)
    }

    fn job_pipelined(&self, m: &Model, job: JobId) -> Vote {
        let job = m.job(job);
        vote(job.is_pipelined() && job.roles_pipelined() && job.sub_groups_pipelined())
    }

    fn sub_job_pipelined(&self, m: &Model, job: JobId, at: u32) -> Vote {
        vote(sub_job(m, job, at).is_some_and(SubJob::is_pipelined))
    }

    fn job_starving(&self, m: &Model, job: JobId) -> bool {
        m.job(job).is_starving()
    }

    fn preemptable(&self, m: &Model, _preemptor: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        spare(m, candidates)
    }

    fn reclaimable(&self, m: &Model, _reclaimer: TaskId, candidates: &[TaskId]) -> Option<Vec<TaskId>> {
        spare(m, candidates)
    }

    /// Whole-gang evictions keep or take gangs as a whole themselves.
    fn unified_evictable(
        &self,
        _m: &Model,
        _kind: EvictionKind,
        _evictor: JobId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        Some(candidates.to_vec())
    }
}

#[cfg(test)]
mod tests;
