//! Keys of labels.

pub use super::annotations::{
    COOLDOWN_TIME, CREATED_BY_JOB_FLOW, CREATED_BY_JOB_TEMPLATE, JOB_FORWARDING, JOB_NAME, PREEMPTABLE,
    QUEUE_NAME, REVOCABLE_ZONE, TASK_INDEX, TASK_SPEC,
};

// Pods and Jobs.
/// Pod: namespace of its Job.
pub const JOB_NAMESPACE: &str = "volcano.sh/job-namespace";
/// Pod: its partition in the task.
pub const PARTITION_ID: &str = "volcano.sh/partition-id";
/// Job: free type, shown by the command line.
pub const JOB_TYPE: &str = "volcano.sh/job-type";
/// Pod template: name of a Job that the command line made.
pub const CLI_JOB: &str = "job.volcano.sh";
/// Pod: revision of its StatefulSet.
pub const CONTROLLER_REVISION_HASH: &str = "controller-revision-hash";

// HyperNodes.
/// HyperNode: what found it, `ufm` or `label`.
pub const NETWORK_TOPOLOGY_SOURCE: &str = "volcano.sh/network-topology-source";

// Nodes.
/// Node: its node group.
pub const NODEGROUP_NAME: &str = "volcano.sh/nodegroup-name";
/// Node: group that pods of a resource group are sent to.
pub const NODE_GROUP: &str = "volcano.sh/node-group";
/// Node: `true` when it is warmed up, for the sharding controller.
pub const WARMUP: &str = "node.volcano.sh/warmup";
/// Node: whether the node agent manages it.
pub const COLOCATION: &str = "volcano.sh/colocation";
/// Node: whether its idle resources are given out twice.
pub const OVERSUBSCRIPTION: &str = "volcano.sh/oversubscription";
/// Node: policy of the node agent.
pub const COLOCATION_POLICY: &str = "colocation-policy";
/// Node: its host name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
