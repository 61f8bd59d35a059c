//! Messages without a value in them. Those with one are made where the value is known.

// State of a PodGroup.
/// The gang is placed.
pub const POD_GROUP_READY: &str = "pod group is ready";
/// The gang is not placed.
pub const POD_GROUP_NOT_READY: &str = "pod group is not ready";
/// A role has too few pods.
pub const NOT_ENOUGH_PODS_OF_TASK: &str = "Not enough valid pods of each task for gang-scheduling";
/// A policy has too few sub-groups.
pub const NOT_ENOUGH_SUB_GROUPS: &str = "Not enough valid subGroups of each task for gang-scheduling";

// Why a node does not take a pod.
/// The node has as many pods as it may.
pub const NODE_POD_NUMBER_EXCEEDED: &str = "node(s) pod number exceeded";
/// The node is gone.
pub const NODE_NOT_FOUND: &str = "node info not found";
/// The node belongs to another scheduler.
pub const NODE_NOT_IN_SHARD: &str = "node isn't in scheduler node shard";
/// The pod has a sidecar and the feature is off.
pub const SIDECARS_DISABLED: &str =
    "pod has a restartable init container and the SidecarContainers feature is disabled";
/// An equal pod did not fit.
pub const EQUIVALENCE_CACHE_FAILED: &str = "plugin equivalence cache predicates failed";
/// The node is cordoned.
pub const NODE_UNSCHEDULABLE: &str = "node(s) were unschedulable";
/// The pod asks for other nodes.
pub const NODE_AFFINITY: &str = "node(s) didn't match Pod's node affinity/selector";
/// A host port is taken.
pub const NODE_PORTS: &str = "node(s) didn't have free ports for the requested pod ports";
/// The node has a taint that the pod does not tolerate.
pub const TAINTS: &str = "node(s) had untolerated taint(s)";
/// Pods there keep this one away.
pub const POD_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
/// The node cannot attach more volumes.
pub const MAX_VOLUME_COUNT: &str = "node(s) exceed max volume count";
/// A volume is in another zone.
pub const VOLUME_ZONE: &str = "node(s) had no available volume zone";
/// Pods would be spread too unevenly.
pub const TOPOLOGY_SPREAD: &str = "node(s) didn't match pod topology spread constraints";
/// No volume fits the claim.
pub const NO_PERSISTENT_VOLUMES: &str = "node(s) didn't find available persistent volumes to bind";
/// A claim that does not wait for a node is not bound.
pub const UNBOUND_IMMEDIATE_CLAIMS: &str = "pod has unbound immediate PersistentVolumeClaims";
/// No device is free.
pub const NO_ASCEND_DEVICE: &str = "no ascend device available";
/// No slice of a GPU fits.
pub const VGPU_ERROR: &str = "hami-vgpuDeviceSharing error";
/// The queue has too many devices of a class.
pub const DRA_EXCEEDED: &str = "dra-resource-exceeded";

// Events of controllers.
/// A queue was closed.
pub const CLOSE_QUEUE_SUCCEED: &str = "Close queue succeed";
/// A CronJob's last Job still runs.
pub const FORBID_CONCURRENT: &str = "Skipping job creation because another job is already running";
/// A CronJob's last Job is replaced.
pub const REPLACE_CONCURRENT: &str = "Replacing active job for CronJob";
/// A CronJob missed more than a hundred Jobs.
pub const TOO_MANY_MISSED_TIMES: &str =
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";

/// Required pod affinity is not met.
pub const POD_AFFINITY: &str = "node(s) didn't match pod affinity rules";
/// A pod that runs there does not want this one near.
pub const EXISTING_ANTI_AFFINITY: &str = "node(s) didn't satisfy existing pods anti-affinity rules";
/// The node lacks the label of a topology spread constraint.
pub const TOPOLOGY_SPREAD_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";
/// A bound volume cannot be used from the node.
pub const VOLUME_NODE_AFFINITY: &str = "node(s) didn't match PersistentVolume's node affinity";
