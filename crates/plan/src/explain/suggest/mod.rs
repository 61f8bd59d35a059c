//! Changes that would start a job: made up from why it waits, tried, and kept if the job starts with them.
//!
//! ```text
//! reasons ──> candidates ──> World::with(changes) ──started──> Suggestion
//! ```
//!
//! Where a change has a size (replicas, a request, a weight), the smallest that does it is searched for by bisection. A
//! larger change of the same kind does no worse as a rule; where it does, what is found is still a change that starts
//! the job, since every one that is shown was tried as it stands.

mod job;
mod queue;
mod template;

use super::Evicted;
use super::change::{Change, How};
use super::reason::Reason;
use super::world::{Trial, World};
use serde::Serialize;
use volcano_api::batch::TaskSpec;
use volcano_api::quantity::Quantity;

/// Trials that one explanation may cost in all.
const MOST_TRIALS: usize = 120;
/// Patches up to this length are shown as a command.
const LONGEST_COMMAND: usize = 300;

/// A change that starts the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// What changes, with numbers.
    pub what: What,
    /// The same as a sentence.
    pub text: String,
    /// The objects to change, and how.
    pub changes: Vec<Change>,
    /// A command that makes the change, if one does and it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Pods that would have to go.
    pub evicts: Vec<Evicted>,
}

impl Suggestion {
    /// The same for a Job that is not submitted yet: there is nothing to patch but what the user wrote.
    pub(super) fn before_submission(&mut self) {
        for change in self.changes.iter_mut().filter(|change| change.is_of_job()) {
            change.how = How::Manifest;
            self.command = None;
        }
    }
}

/// What a suggestion changes, in the order in which they are shown: first what opens a door, then what gives the job more,
/// then what makes the job smaller, last what takes the Job to be written anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[allow(
    missing_docs,
    reason = "the names say it, and they are those of the fields that change"
)]
pub enum What {
    Resume,
    OpenQueue {
        queue: String,
    },
    RemoveGates {
        pods: usize,
    },
    RaiseQuota {
        quota: String,
    },
    RaiseCapability {
        queue: String,
    },
    RaiseDeserved {
        queue: String,
    },
    RaiseWeight {
        queue: String,
        from: i32,
        to: i32,
    },
    RaisePriority {
        class: String,
        from: i32,
        to: i32,
    },
    LowerMinimum {
        from: i32,
        to: i32,
    },
    FewerReplicas {
        task: String,
        from: i32,
        to: i32,
    },
    Uncordon {
        node: String,
    },
    Tolerate {
        task: String,
        taints: Vec<String>,
    },
    DropConstraint {
        task: String,
        constraint: String,
    },
    SmallerRequest {
        task: String,
        resource: String,
        from: Quantity,
        to: Quantity,
    },
    DropDependency {
        task: String,
    },
}

impl What {
    fn rank(&self) -> usize {
        match self {
            What::Resume => 0,
            What::OpenQueue { .. } => 1,
            What::RemoveGates { .. } => 2,
            What::RaiseQuota { .. } => 3,
            What::RaiseCapability { .. } => 4,
            What::RaiseDeserved { .. } => 5,
            What::RaiseWeight { .. } => 6,
            What::RaisePriority { .. } => 7,
            What::LowerMinimum { .. } => 8,
            What::FewerReplicas { .. } => 9,
            What::Uncordon { .. } => 10,
            What::Tolerate { .. } => 11,
            What::DropConstraint { .. } => 12,
            What::SmallerRequest { .. } => 13,
            What::DropDependency { .. } => 14,
        }
    }
}

/// All changes that were found to start the job, smallest first.
pub(super) fn suggestions(world: &World<'_>, trial: &Trial, reasons: &[Reason]) -> Vec<Suggestion> {
    let mut search = Search {
        world,
        trial,
        reasons,
        found: Vec::new(),
    };
    search.resume();
    search.open_queue();
    search.remove_gates();
    search.raise_quota();
    search.raise_capability();
    search.raise_deserved();
    search.raise_priority();
    search.lower_minimum();
    search.fewer_replicas();
    search.uncordon();
    search.tolerate();
    search.drop_constraints();
    search.smaller_requests();
    search.drop_dependency();
    let mut found = search.found;
    found.sort_by_key(|suggestion| suggestion.what.rank());
    found
}

/// A search in progress.
struct Search<'a> {
    world: &'a World<'a>,
    trial: &'a Trial,
    reasons: &'a [Reason],
    found: Vec<Suggestion>,
}

impl<'a> Search<'a> {
    /// Tries changes; the trial if the job starts.
    fn starts(&self, changes: &[Change]) -> Option<Trial> {
        if self.world.trials() >= MOST_TRIALS {
            return None;
        }
        self.world.with(changes).filter(|trial| trial.started)
    }

    /// Keeps changes if the job starts with them.
    fn offer(&mut self, what: What, text: String, changes: Vec<Change>) -> bool {
        match self.starts(&changes) {
            Some(trial) => {
                self.keep(what, text, changes, trial.evicted);
                true
            }
            None => false,
        }
    }

    fn keep(&mut self, what: What, text: String, changes: Vec<Change>, evicts: Vec<Evicted>) {
        self.found.push(Suggestion {
            what,
            text,
            command: command(&changes),
            changes,
            evicts,
        });
    }

    /// The largest number of a range with which the job starts, with its trial: bisection from the smallest on.
    fn largest(&self, low: i64, high: i64, changes: impl Fn(i64) -> Vec<Change>) -> Option<(i64, Trial)> {
        if low > high {
            return None;
        }
        let mut best = (low, self.starts(&changes(low))?);
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = low + (high - low + 1) / 2;
            match self.starts(&changes(middle)) {
                Some(trial) => {
                    best = (middle, trial);
                    low = middle;
                }
                None => high = middle - 1,
            }
        }
        Some(best)
    }

    /// The task that the reasons are about: the one that does not fit, else the one with the most pods.
    fn task(&self) -> Option<(usize, &'a TaskSpec)> {
        let job = self.world.subject.job.as_ref()?;
        let named = self.reasons.iter().find_map(|reason| match reason {
            Reason::GangTooLarge { role, .. }
            | Reason::PodTooLarge { role, .. }
            | Reason::Short { role, .. }
            | Reason::Fragmented { role, .. }
            | Reason::NoNode { role, .. }
            | Reason::RuledOut { role, .. } => Some(role.as_str()),
            Reason::Quota { task, .. } => Some(task.as_str()),
            _ => None,
        });
        let tasks = || job.spec.tasks.iter().enumerate();
        let named = named.filter(|name| !name.is_empty());
        let found = named.and_then(|name| tasks().find(|(_, task)| task.name == name));
        found.or_else(|| tasks().max_by_key(|(at, task)| (task.replicas, usize::MAX - at)))
    }

    /// Whether it is amounts that are in the way, so that asking for less may help.
    fn is_about_amounts(&self) -> bool {
        self.reasons.iter().any(|reason| {
            matches!(
                reason,
                Reason::Quota { .. }
                    | Reason::Behind { .. }
                    | Reason::QueueFull { .. }
                    | Reason::GangTooLarge { .. }
                    | Reason::PodTooLarge { .. }
                    | Reason::Short { .. }
                    | Reason::Fragmented { .. }
                    | Reason::Overcommitted { .. }
            )
        })
    }

    /// Whether nodes were ruled out.
    fn has_ruled_out(&self) -> bool {
        let is_it = |reason: &Reason| matches!(reason, Reason::NoNode { .. } | Reason::RuledOut { .. });
        self.reasons.iter().any(is_it)
    }
}

/// `kubectl patch …`, or the like, for a change of one object that exists.
fn command(changes: &[Change]) -> Option<String> {
    let [change] = changes else { return None };
    if change.how == How::Resume {
        return Some(format!(
            "vcctl job resume -n {} -N {}",
            change.namespace, change.name
        ));
    }
    let patch = change.patch.to_string();
    let is_of_manifest = matches!(change.how, How::Recreate | How::Manifest);
    if is_of_manifest || patch.len() > LONGEST_COMMAND {
        return None;
    }
    let kind = change.kind.to_ascii_lowercase();
    let resource = match change.api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind,
    };
    let namespace = match change.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let status = if change.how == How::PatchStatus {
        " --subresource status"
    } else {
        ""
    };
    let patch = patch.replace('\'', r"'\''");
    Some(format!(
        "kubectl patch {resource} {}{namespace} --type merge{status} -p '{patch}'",
        change.name
    ))
}
