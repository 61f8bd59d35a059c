//! The Queue controller: opens and closes queues, and counts what is in them.
//!
//! ```text
//! Queues, PodGroups, Commands ──> Index ──> which queues to look at ──> plan ──> writes to that one queue
//! ```
//!
//! | state | stays until | then |
//! |---|---|---|
//! | none yet | at once | `Open` |
//! | `Open` | a Command or a closed parent closes it | `Closing` with PodGroups, else `Closed` |
//! | `Closing` | its last PodGroup is gone | `Closed` |
//! | `Closing`, `Closed` | a Command opens it, or the parent that closed it is open again | `Open` |
//! | `Unknown` | a Command or a closed parent | as above |
//!
//! A plan writes to its own queue only, and one step at a time: a queue follows its parent by looking at it, a Command
//! is deleted when the queue is seen to be as it orders. So a crash between any two writes loses nothing, and doing
//! something again does no harm.
//!
//! Who writes what of `status`, by merge patches that name nothing else: `state` and the numbers of PodGroups are
//! written here, `allocated` by the scheduler.

mod decide;
mod events;
mod index;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use volcano_api::scheduling::{PodGroupPhase, QueueState, QueueStatus};

pub use decide::COMMAND_PATIENCE;
pub use events::{gave_up, write_failed};
pub use index::Index;

use crate::write::{Plan, Write};

/// PodGroups of a queue by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Not admitted yet; also those that nobody has looked at.
    pub pending: i32,
    /// Admitted.
    pub inqueue: i32,
    /// Running.
    pub running: i32,
    /// Running in part, or in a phase that is not known.
    pub unknown: i32,
    /// Finished.
    pub completed: i32,
}

impl Counts {
    /// All of them.
    pub fn total(&self) -> i32 {
        self.named().iter().map(|(_, count)| count).sum()
    }

    /// What the queue's status says.
    pub fn of(status: &QueueStatus) -> Self {
        Counts {
            pending: status.pending,
            inqueue: status.inqueue,
            running: status.running,
            unknown: status.unknown,
            completed: status.completed,
        }
    }

    /// Names of the fields in the status, which are also in the names of the metrics, with the numbers.
    pub fn named(&self) -> [(&'static str, i32); 5] {
        [
            ("pending", self.pending),
            ("inqueue", self.inqueue),
            ("running", self.running),
            ("unknown", self.unknown),
            ("completed", self.completed),
        ]
    }

    fn add(&mut self, phase: &PodGroupPhase, by: i32) {
        let count = match phase {
            PodGroupPhase::Unset | PodGroupPhase::Pending => &mut self.pending,
            PodGroupPhase::Inqueue => &mut self.inqueue,
            PodGroupPhase::Running => &mut self.running,
            PodGroupPhase::Completed => &mut self.completed,
            PodGroupPhase::Unknown | PodGroupPhase::Other(_) => &mut self.unknown,
        };
        *count = count.saturating_add(by);
    }

    /// The fields in which the status differs.
    fn changes(&self, status: &QueueStatus) -> Map<String, Value> {
        let (wanted, written) = (self.named(), Counts::of(status).named());
        let differing = wanted.iter().zip(written).filter(|((_, a), (_, b))| a != b);
        differing
            .map(|((name, count), _)| ((*name).to_owned(), (*count).into()))
            .collect()
    }
}

/// Whether a plan writes nothing but numbers. They change with every PodGroup, by the thousand when jobs are submitted in
/// bulk, and nobody waits for them: whoever carries plans out leaves a second between two such plans for a queue, and
/// makes a new one then.
pub fn is_only_numbers(plan: &Plan) -> bool {
    let is_numbers = |write: &Write| {
        matches!(
            write,
            Write::Patch {
                status: true,
                resource_version: None,
                ..
            }
        )
    };
    plan.steps.iter().flatten().all(is_numbers)
}

/// Whether a queue in this state takes no new jobs.
pub fn is_closed(state: &QueueState) -> bool {
    matches!(state, QueueState::Closed | QueueState::Closing)
}
