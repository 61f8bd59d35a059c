//! Types of conditions.

// Types of PodGroup conditions.
/// The gang cannot be placed.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// The gang is placed.
pub const SCHEDULED: &str = "Scheduled";

// Types of pod conditions.
/// Whether the pod has a node.
pub const POD_SCHEDULED: &str = "PodScheduled";
/// Whether the pod serves.
pub const READY: &str = "Ready";
/// The pod is about to be ended.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
