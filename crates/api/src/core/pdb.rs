//! Disruption budgets of pods.

use std::collections::BTreeMap;

use super::{LabelSelector, Meta};
use crate::time::Time;

slim! {
    /// How many of a set of pods may be evicted.
    pub struct PodDisruptionBudget {
        /// Name and namespace.
        pub metadata: Meta,
        /// The pods.
        pub spec: PodDisruptionBudgetSpec,
        /// The room there is now.
        pub status: PodDisruptionBudgetStatus,
    }

    /// Which pods a budget is about.
    pub struct PodDisruptionBudgetSpec {
        /// The pods of the namespace; absent chooses none, empty chooses all.
        pub selector: Option<LabelSelector>,
    }

    /// The room a budget has now.
    pub struct PodDisruptionBudgetStatus {
        /// Evictions that are allowed now.
        pub disruptions_allowed: i32,
        /// Pods whose eviction was granted and is not yet seen, with the time of the grant.
        pub disrupted_pods: BTreeMap<String, Option<Time>>,
    }
}
