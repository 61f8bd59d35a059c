//! What the controller manager is told on its command line, checked and typed.

use super::selection::Selection;
use crate::gates::FeatureGates;
use crate::{client, lease, logging, serve};

/// Everything that the command line decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which API server, as whom, and how fast.
    pub client: client::Options,
    /// Pods for one of these schedulers that have no PodGroup get one.
    pub scheduler_names: Vec<String>,
    /// Whether such a PodGroup takes over annotations of the pods' owners.
    pub inherit_owner_annotations: bool,
    /// Refused writes for an object in a row before it is given up; no limit when negative.
    pub max_requeue_num: i32,
    /// Which controllers run.
    pub controllers: Selection,
    /// Feature gates.
    pub feature_gates: FeatureGates,
    /// Metrics and health.
    pub serve: serve::Settings,
    /// The election; `None` without one.
    pub leader_election: Option<lease::Settings>,
    /// Logs.
    pub logging: logging::Settings,
    /// Flags that were given and have no effect, to be logged once.
    pub unused: Vec<logging::Unused>,
    /// Arguments that are no flags, to be logged once.
    pub ignored: Vec<String>,
}
