//! `scheduling.volcano.sh/v1beta1`: gangs of pods and the queues that they wait in.

use std::collections::BTreeMap;

use crate::meta::{ConditionStatus, LabelSelector, ResourceList};
use crate::time::Time;
#[cfg(feature = "schema")]
use crate::wire::SUBDOMAIN;
use crate::wire::{object, resource, string_enum};

resource! {
    /// A gang: pods that start together or not at all.
    pub struct PodGroup = POD_GROUP {
        /// What the gang asks for.
        pub spec: PodGroupSpec,
        /// Where the scheduler is with it.
        pub status: PodGroupStatus,
    }
}

object! {
    /// What a gang asks for.
    pub struct PodGroupSpec {
        /// Pods that must be placed for any of them to start.
        #[schema(range(min = 0))]
        pub min_member: i32,
        /// Pods of each task that must be placed, by task name.
        pub min_task_member: BTreeMap<String, i32>,
        /// The queue that the gang waits in.
        #[schema(length(max = 253), regex(pattern = SUBDOMAIN), extend("default" = "default"))]
        pub queue: String,
        /// Name of the PriorityClass.
        #[schema(length(max = 253))]
        pub priority_class_name: String,
        /// Resources that must be free for the gang to be admitted; may have quota keys such as `requests.cpu`.
        pub min_resources: Option<ResourceList>,
        /// How close together the pods must be.
        pub network_topology: Option<NetworkTopology>,
        /// Groups of pods within the gang with constraints of their own.
        pub sub_group_policy: Vec<SubGroupPolicy>,
    }
}

object! {
    /// How close together pods must be in the network. Tier and tier name exclude each other.
    pub struct NetworkTopology {
        /// Whether the tier is a limit or a wish.
        #[schema(extend("default" = "hard"))]
        pub mode: NetworkTopologyMode,
        /// The highest tier that the pods may span.
        #[schema(with = "isize", range(min = 0))]
        pub highest_tier_allowed: Option<i64>,
        /// Name of the highest tier that the pods may span.
        #[schema(length(max = 253))]
        pub highest_tier_name: String,
    }
}

string_enum! {
    /// How strict a network topology constraint is.
    pub enum NetworkTopologyMode {
        /// A limit.
        Hard = "hard",
        /// A wish.
        Soft = "soft",
    }
}

object! {
    /// Pods of a gang that form groups with constraints of their own.
    pub struct SubGroupPolicy {
        /// Name of the policy; the task's name for Jobs.
        #[schema(length(max = 253))]
        pub name: String,
        /// How close together the pods of one group must be.
        pub network_topology: Option<NetworkTopology>,
        /// Pods of one group.
        #[schema(range(min = 1), extend("default" = 1))]
        pub sub_group_size: Option<i32>,
        /// Groups that must be placed for the gang to start.
        #[schema(range(min = 0), extend("default" = 0))]
        pub min_sub_groups: Option<i32>,
        /// Which pods the policy is about.
        pub label_selector: Option<LabelSelector>,
        /// Pods that share the values of all these labels form one group.
        #[schema(extend("x-kubernetes-list-type" = "atomic"))]
        pub match_label_keys: Vec<String>,
    }
}

object! {
    /// Where the scheduler is with a gang.
    pub struct PodGroupStatus {
        /// The current phase.
        pub phase: PodGroupPhase,
        /// What was found out about the gang.
        pub conditions: Vec<PodGroupCondition>,
        /// Pods that run.
        #[schema(range(min = 0))]
        pub running: i32,
        /// Pods that succeeded.
        #[schema(range(min = 0))]
        pub succeeded: i32,
        /// Pods that failed.
        #[schema(range(min = 0))]
        pub failed: i32,
    }
}

string_enum! {
    /// Phase of a gang.
    pub enum PodGroupPhase {
        /// Accepted, its pods are not to be created yet.
        Pending = "Pending",
        /// At least `minMember` pods run.
        Running = "Running",
        /// Some pods run while others cannot be placed.
        Unknown = "Unknown",
        /// Admitted: its pods may be created and placed.
        Inqueue = "Inqueue",
        /// All pods are finished.
        Completed = "Completed",
    }
}

object! {
    /// Something that was found out about a gang.
    pub struct PodGroupCondition {
        /// Unschedulable or Scheduled.
        pub r#type: String,
        /// Whether it holds.
        #[schema(with = "String")]
        pub status: ConditionStatus,
        /// The scheduling cycle that set it.
        #[serde(rename = "transitionID")]
        pub transition_id: String,
        /// Why, as a word for programs.
        pub reason: String,
        /// Why, for people.
        pub message: String,
    }
    always {
        /// When it was set.
        pub last_transition_time: Option<Time>,
    }
}

resource! {
    /// A share of the cluster that jobs wait for.
    pub struct Queue = QUEUE {
        /// How much the queue may use.
        pub spec: QueueSpec,
        /// Whether it is open and how much it uses.
        pub status: QueueStatus,
    }
}

object! {
    /// How much a queue may use.
    pub struct QueueSpec {
        /// Weight in the division of the cluster.
        #[schema(range(min = 1, max = 65535), extend("default" = 1))]
        pub weight: i32,
        /// The most that the queue may ever use.
        pub capability: ResourceList,
        /// Whether other queues may take back what this one uses beyond its share.
        pub reclaimable: Option<bool>,
        /// Clusters that jobs of the queue may be forwarded to.
        pub extend_clusters: Vec<ExtendCluster>,
        /// What is set aside for the queue.
        pub guarantee: Guarantee,
        /// Node groups for the queue's pods.
        pub affinity: Option<Affinity>,
        /// Free classification.
        #[schema(length(max = 253))]
        pub r#type: String,
        /// The queue that this one is part of.
        #[schema(length(max = 253), regex(pattern = SUBDOMAIN))]
        pub parent: String,
        /// The queue's share, which it may lend and take back.
        pub deserved: ResourceList,
        /// Queues of higher priority come first.
        #[schema(range(min = 0))]
        pub priority: i32,
        /// What happens when the first job does not fit.
        #[schema(extend("default" = "traverse"))]
        pub dequeue_strategy: DequeueStrategy,
    }
}

string_enum! {
    /// What a queue does when its first job does not fit.
    pub enum DequeueStrategy {
        /// The other jobs wait.
        Fifo = "fifo",
        /// The next job is tried.
        Traverse = "traverse",
    }
}

object! {
    /// A cluster that jobs may be forwarded to.
    pub struct ExtendCluster {
        /// Name of the cluster.
        pub name: String,
        /// Weight among the clusters.
        pub weight: i32,
        /// What the cluster offers.
        pub capacity: ResourceList,
    }
}

object! {
    /// What is set aside for a queue.
    pub struct Guarantee {
        /// The amounts.
        pub resource: ResourceList,
    }
}

object! {
    /// Node groups for a queue's pods.
    pub struct Affinity {
        /// Node groups to use.
        pub node_group_affinity: Option<NodeGroupTerms>,
        /// Node groups to avoid.
        pub node_group_anti_affinity: Option<NodeGroupTerms>,
    }
}

object! {
    /// Node groups by strictness.
    pub struct NodeGroupTerms {
        /// Names of node groups that must be kept to.
        pub required_during_scheduling_ignored_during_execution: Vec<String>,
        /// Names of node groups that are kept to if possible.
        pub preferred_during_scheduling_ignored_during_execution: Vec<String>,
    }
}

object! {
    /// Whether a queue is open and how much it uses.
    pub struct QueueStatus {
        /// Whether the queue takes jobs.
        pub state: QueueState,
        /// PodGroups in phase Unknown.
        #[schema(range(min = 0))]
        pub unknown: i32,
        /// PodGroups in phase Pending.
        #[schema(range(min = 0))]
        pub pending: i32,
        /// PodGroups in phase Running.
        #[schema(range(min = 0))]
        pub running: i32,
        /// PodGroups in phase Inqueue.
        #[schema(range(min = 0))]
        pub inqueue: i32,
        /// PodGroups in phase Completed.
        #[schema(range(min = 0))]
        pub completed: i32,
        /// What is reserved for the queue's first job.
        pub reservation: Reservation,
    }
    always {
        /// What the queue's pods use. Written as `null` when empty, as clients expect.
        #[schema(with = "Option<ResourceList>")]
        #[serde(serialize_with = "crate::wire::null_if_empty")]
        pub allocated: ResourceList,
    }
}

string_enum! {
    /// Whether a queue takes jobs.
    pub enum QueueState {
        /// It does.
        Open = "Open",
        /// It does not, and no job is left.
        Closed = "Closed",
        /// It does not, and jobs are left.
        Closing = "Closing",
        /// Its state cannot be told.
        Unknown = "Unknown",
    }
}

object! {
    /// What is reserved for a queue's first job.
    pub struct Reservation {
        /// Nodes kept free.
        pub nodes: Vec<String>,
        /// Amounts kept free.
        pub resource: ResourceList,
    }
}
