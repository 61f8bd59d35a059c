//! What the scheduler is told on its command line, checked and typed.

use crate::gates::FeatureGates;
use crate::{client, lease, logging, serve};
use std::path::PathBuf;
use std::time::Duration;
use volcano_engine::model::features::Features;

/// Everything that the command line decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which API server, as whom, and how fast.
    pub client: client::Options,
    /// Pods that ask for one of these schedulers are ours.
    pub scheduler_names: Vec<String>,
    /// The configuration file.
    pub scheduler_conf: Option<PathBuf>,
    /// A configuration file that cannot be used stops the start, instead of giving way to the default.
    pub disable_default_conf: bool,
    /// The longest time between two cycles.
    pub schedule_period: Duration,
    /// The queue of PodGroups that name none.
    pub default_queue: String,
    /// Whether PriorityClasses are watched; without them every job has priority 0. The feature gate counts too.
    pub priority_class: bool,
    /// Whether CSIDrivers and CSIStorageCapacities are watched; without them free storage is not looked at.
    pub csi_storage: bool,
    /// `key:value` items; nodes with any of the labels are ours. All nodes without an item.
    pub node_selector: Vec<String>,
    /// What decisions depend on besides the configuration.
    pub features: Features,
    /// Feature gates.
    pub feature_gates: FeatureGates,
    /// Metrics and health.
    pub serve: serve::Settings,
    /// Whether SIGUSR1 and SIGUSR2 write what the scheduler knows.
    pub cache_dumper: bool,
    /// Where to.
    pub cache_dump_dir: PathBuf,
    /// The election; `None` without one.
    pub leader_election: Option<lease::Settings>,
    /// Events per second over a longer time; 0 for no events.
    pub event_qps: f64,
    /// Logs.
    pub logging: logging::Settings,
    /// Flags that were given and have no effect; logged once, at the start.
    pub unused: Vec<logging::Unused>,
    /// Arguments that are no flags; logged once, at the start.
    pub ignored: Vec<String>,
}

impl Options {
    /// The name of the scheduler, or its first one when it has several.
    pub fn first_name(&self) -> &str {
        let first = self.scheduler_names.first();
        first.map_or(volcano_api::names::SCHEDULER, String::as_str)
    }

    /// The component that events come from: the scheduler's name, or `volcano` when it has several.
    pub fn component(&self) -> &str {
        match self.scheduler_names.as_slice() {
            [name] => name,
            _ => volcano_api::names::SCHEDULER,
        }
    }
}
