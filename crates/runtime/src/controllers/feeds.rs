//! The watches of the controllers: one per kind, all into one channel. Which kinds depends on which controllers run.

use super::kinds::{Controlling, Kind, ReplicaSet, StatefulSet};
use super::options::Options;
use super::selection;
use crate::client::Client;
use crate::gates;
use crate::metrics::Process;
use crate::watch::{Feed, Object, watch};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use volcano_api::batch::Job;
use volcano_api::bus::Command;
use volcano_api::core::{PersistentVolumeClaim, Pod, PriorityClass};
use volcano_api::scheduling::{PodGroup, Queue};

/// Batches of changes that wait. A watch whose batches are not taken stops reading, and the API server waits.
const WAITING: usize = 64;

/// Which controllers run, given what they can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Jobs.
    pub jobs: bool,
    /// Deletion of finished Jobs.
    pub gc: bool,
    /// Queues.
    pub queues: bool,
    /// PodGroups of pods that have no Job.
    pub gangs: bool,
}

impl Running {
    /// By the command line.
    pub fn of(options: &Options) -> Self {
        let has = |name| options.controllers.has(name);
        let can_watch_jobs = options.feature_gates.enabled(gates::VOLCANO_JOB_SUPPORT);
        Running {
            jobs: has(selection::JOB) && can_watch_jobs,
            gc: has(selection::GC) && can_watch_jobs,
            queues: has(selection::QUEUE),
            gangs: has(selection::POD_GROUP),
        }
    }
}

/// Calls `with` for every kind that is watched.
macro_rules! each_kind {
    ($options:expr, $with:ident) => {{
        let running = Running::of($options);
        let gate = |name| $options.feature_gates.enabled(name);
        if running.jobs || running.gc {
            $with!(Job);
        }
        if running.jobs || running.gangs {
            $with!(Pod);
        }
        if running.jobs || running.gangs || running.queues {
            $with!(PodGroup);
        }
        if running.jobs || running.queues {
            $with!(Queue);
            if gate(gates::QUEUE_COMMAND_SYNC) {
                $with!(Command);
            }
        }
        if running.jobs {
            $with!(PersistentVolumeClaim);
            if gate(gates::PRIORITY_CLASS) {
                $with!(PriorityClass);
            }
        }
        if running.gangs && gate(gates::WORKLOAD_SUPPORT) {
            $with!(ReplicaSet);
            $with!(StatefulSet);
        }
    }};
}

/// The kinds that are watched.
pub fn kinds(options: &Options) -> Vec<Kind> {
    let mut kinds = Vec::new();
    macro_rules! add {
        ($type:ty) => {
            kinds.push(<$type as Object<Controlling>>::KIND)
        };
    }
    each_kind!(options, add);
    kinds
}

/// Starts the watches. They end with the tasks or with the receiver.
pub fn start(
    client: &Client,
    metrics: &Process,
    options: &Options,
    tasks: &mut JoinSet<()>,
) -> mpsc::Receiver<Feed<Controlling>> {
    let (feed, receiver) = mpsc::channel(WAITING);
    macro_rules! start {
        ($type:ty) => {
            tasks.spawn(watch::<Controlling, $type>(
                client.clone(),
                metrics.clone(),
                feed.clone(),
            ))
        };
    }
    each_kind!(options, start);
    receiver
}
