//! What a process that has just begun to lead may rely on.
//!
//! Watches lag, each kind by its own time. Whoever led before may have written what is not told yet, and its answers are
//! not known here:
//!
//! | told first | what it looks like | what would be done |
//! |---|---|---|
//! | the Job | pods that its status counts are missing | they are taken for evicted, and a healthy Job restarts |
//! | the pods | pods that were killed are missing | they are made again, for a version of the Job that is over |
//! | the pods | a Job that was resumed is still being aborted | its new pods are deleted |
//! | a Command | the Job is in the phase before the last | the Command means nothing there, and is dropped |
//!
//! A status is safe on old news, and so is what comes after it in a plan: it is written on condition of the version that
//! was looked at. So before the first plan of a term that makes or deletes something without such a write, or that takes
//! pods for lost which nobody here has seen, the API server is asked for the newest versions, and the plan is made again
//! once the watches have told of them. A Job that this process has begun itself is never asked about, and none is when
//! everything was listed after the term had begun.

use volcano_api::batch::Job;

use super::Memory;
use super::table::{Stage, stage};
use crate::write::{Plan, Write};

/// How firm the ground is for plans for one Job. A fresh one is right for each term.
#[derive(Clone, Debug, Default)]
pub struct Footing {
    has_job: bool,
    has_pods: bool,
    reading: Option<Reading>,
}

/// What has to be read before a plan is carried out: the Job, and its pods after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Whether the pods matter, too.
    pub pods: bool,
}

/// The newest versions that the API server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Of the Job.
    pub job: u64,
    /// Of its pods, 0 without any, if they were asked for.
    pub pods: Option<u64>,
}

/// The versions that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Of the Job.
    pub job: u64,
    /// The newest that the watch has told of any pod.
    pub pods: u64,
}

impl Footing {
    /// The API server answered with the Job: what is known of it is not older than this term.
    pub fn answered(&mut self) {
        self.has_job = true;
    }

    /// The API server was asked.
    pub fn read(&mut self, reading: Reading) {
        self.reading = Some(reading);
    }

    /// Whether what was read is still to be told by the watches.
    pub fn is_behind(&mut self, known: Known) -> bool {
        let Some(reading) = self.reading else {
            return false;
        };
        if known.job < reading.job || reading.pods.is_some_and(|pods| known.pods < pods) {
            return true;
        }
        self.has_job = true;
        self.has_pods |= reading.pods.is_some();
        self.reading = None;
        false
    }

    /// What has to be asked before a plan is carried out that was made with this memory. The memory is of no use then.
    pub fn asks(&self, job: &Job, plan: &Plan, memory: &Memory) -> Option<Ask> {
        // The first write for a new Job fails if it is not new.
        let is_new = job.status.state.phase.is_unset();
        let pods = !self.has_pods && memory.guesses() && stage(&job.status.state.phase) == Stage::Active;
        let job = !self.has_job && !is_new && is_daring(plan);
        (job || pods).then_some(Ask { pods })
    }
}

/// Whether a plan makes or deletes something before a write that fails if the Job is not as it was looked at.
fn is_daring(plan: &Plan) -> bool {
    let is_guard = |write: &Write| {
        matches!(
            write,
            Write::Patch {
                status: true,
                resource_version: Some(_),
                ..
            }
        )
    };
    let is_final = |write: &Write| matches!(write, Write::Create { .. } | Write::Delete { .. });
    let guard = plan.steps.iter().position(|step| step.iter().any(is_guard));
    // The writes of a step go out side by side.
    let unguarded = guard.map_or(plan.steps.len(), |at| at + 1);
    plan.steps.iter().take(unguarded).flatten().any(is_final)
}
