//! Every name that is API, in one place: kinds, labels, annotations, conditions, reasons, events, resources, gates.
//!
//! Users grep for these, other programs match on them, and a typo in one is an incompatibility that no compiler
//! finds, so code never spells them out.

pub mod admission;
pub mod annotations;
pub mod conditions;
pub mod devices;
pub mod events;
pub mod job_plugins;
pub mod kinds;
pub mod labels;
pub mod messages;
pub mod reasons;
pub mod resources;

pub use kinds::Kind;

/// Prefix of the labels and annotations of the project; owners' annotations with it reach the PodGroup.
pub const PREFIX: &str = "volcano.sh/";
/// Name of the scheduler that pods ask for.
pub const SCHEDULER: &str = "volcano";
/// Name of the controller manager: of its Lease, and of the component that its events come from.
pub const CONTROLLER_MANAGER: &str = "vc-controller-manager";

/// Names of scheduling gates.
pub mod gates {
    /// Holds a pod back until its queue has room for it.
    pub const QUEUE_ALLOCATION: &str = super::annotations::QUEUE_ALLOCATION_GATE;
    /// Stands for the gates of others in a snapshot of the scheduler, which does not know their names.
    pub const FOREIGN: &str = "scheduling.volcano.sh/foreign";
}

/// Names of queues that are always there.
pub mod queues {
    /// The queue of jobs that name none.
    pub const DEFAULT: &str = "default";
    /// The parent of all queues.
    pub const ROOT: &str = "root";
}

/// Names of tasks.
pub mod tasks {
    /// Value of the task label for pods of a task without a name.
    pub const DEFAULT: &str = "default";
}

/// Managers of fields in server-side apply.
pub mod field_managers {
    /// Owner of a queue's `status.state`.
    pub const QUEUE_CONTROLLER: &str = "queue-controller";
}

/// Priority classes and namespaces whose pods are never evicted for others.
pub mod critical {
    /// Priority class of the control plane.
    pub const CLUSTER_PRIORITY_CLASS: &str = "system-cluster-critical";
    /// Priority class of daemons.
    pub const NODE_PRIORITY_CLASS: &str = "system-node-critical";
    /// Namespace of the control plane.
    pub const NAMESPACE: &str = "kube-system";
}

/// Parameter of a StorageClass: the CSI driver behind a provisioner of another name.
pub const CSI_DRIVER_PARAMETER: &str = "csi.storage.k8s.io/csi-driver-name";

/// The HyperNode above all others, which exists in the scheduler only.
pub const CLUSTER_TOP_HYPERNODE: &str = "<cluster-top-hypernode>";

/// Keys of a Job's `status.controlledResources`.
pub mod controlled {
    /// Before the name of a plugin.
    pub const PLUGIN_PREFIX: &str = "plugin-";
    /// Before the name of a claim.
    pub const VOLUME_PREFIX: &str = "volume-pvc-";
}
