//! Rules that hold for tasks and topologies both when a Job is made and when it is changed.

use volcano_api::batch::{PartitionPolicySpec, TaskSpec};
use volcano_api::names::admission::messages;
use volcano_api::scheduling::NetworkTopology;

/// Whether a topology names its highest tier in two ways.
pub(crate) fn has_both_tiers(topology: Option<&NetworkTopology>) -> bool {
    topology.is_some_and(|topology| {
        topology.highest_tier_allowed.is_some() && !topology.highest_tier_name.is_empty()
    })
}

/// What is wrong with the partitions of a task, the first thing only.
pub(super) fn partition_fault(task: &TaskSpec, job: &str) -> Option<String> {
    let policy = task.partition_policy.as_ref()?;
    let at = format!("in task: {}, job: {job}", task.name);
    if let Some(fault) = count_fault(task, policy) {
        return Some(format!("{fault} {at}"));
    }
    has_both_tiers(policy.network_topology.as_ref()).then(|| messages::BOTH_TIERS.to_owned())
}

fn count_fault(task: &TaskSpec, policy: &PartitionPolicySpec) -> Option<&'static str> {
    let size = i64::from(policy.partition_size);
    let pods = |partitions: i32| i64::from(partitions) * size;
    let minimum = task.min_available.map(i64::from);
    if policy.total_partitions <= 0 {
        Some("'TotalPartitions' must be greater than 0")
    } else if policy.partition_size <= 0 {
        Some("'PartitionSize' must be greater than 0")
    } else if i64::from(task.replicas) != pods(policy.total_partitions) {
        Some("'Replicas' are not equal to TotalPartitions*PartitionSize")
    } else if policy.min_partitions > 0 && minimum.is_some_and(|given| given != pods(policy.min_partitions)) {
        Some("'MinAvailable' is not equal to MinPartitions*PartitionSize")
    } else {
        None
    }
}

/// Pods of all tasks.
pub(super) fn total_replicas(tasks: &[TaskSpec]) -> i64 {
    tasks.iter().map(|task| i64::from(task.replicas)).sum()
}
