//! Where a pod wants to be: affinity to nodes and to other pods, and spreading.

use super::{LabelSelector, NodeSelector, NodeSelectorTerm};

slim! {
    /// All affinities of a pod.
    pub struct Affinity {
        /// To nodes.
        pub node_affinity: Option<NodeAffinity>,
        /// To pods.
        pub pod_affinity: Option<PodAffinity>,
        /// Away from pods.
        pub pod_anti_affinity: Option<PodAffinity>,
    }

    /// Affinity to nodes.
    pub struct NodeAffinity {
        /// Nodes on which the pod may run.
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        pub required: Option<NodeSelector>,
        /// Nodes on which the pod would rather run.
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        pub preferred: Vec<PreferredNodeTerm>,
    }

    /// A preference for nodes.
    pub struct PreferredNodeTerm {
        /// How much it counts, 1 to 100.
        pub weight: i32,
        /// The nodes.
        pub preference: NodeSelectorTerm,
    }

    /// Affinity to pods, or away from them.
    pub struct PodAffinity {
        /// Terms that must all hold.
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        pub required: Vec<PodAffinityTerm>,
        /// Terms that should hold.
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        pub preferred: Vec<WeightedPodAffinityTerm>,
    }

    /// Pods, and the node label whose value is to be shared with them (or not to be).
    pub struct PodAffinityTerm {
        /// The pods; absent chooses none.
        pub label_selector: Option<LabelSelector>,
        /// Their namespaces; with no selector of namespaces either, the pod's own.
        pub namespaces: Vec<String>,
        /// Their namespaces, by label; an empty selector chooses all.
        pub namespace_selector: Option<LabelSelector>,
        /// The node label.
        pub topology_key: String,
        /// Pod labels whose values must equal those of the incoming pod.
        pub match_label_keys: Vec<String>,
        /// Pod labels whose values must differ from those of the incoming pod.
        pub mismatch_label_keys: Vec<String>,
    }

    /// A preference for pods.
    pub struct WeightedPodAffinityTerm {
        /// How much it counts, 1 to 100.
        pub weight: i32,
        /// The pods and the topology.
        pub pod_affinity_term: PodAffinityTerm,
    }

    /// How evenly pods are to be spread over the values of a node label.
    pub struct TopologySpreadConstraint {
        /// Largest allowed difference between two values of the label.
        pub max_skew: i32,
        /// The node label.
        pub topology_key: String,
        /// `DoNotSchedule` or `ScheduleAnyway`.
        pub when_unsatisfiable: String,
        /// The pods to count; absent counts none.
        pub label_selector: Option<LabelSelector>,
        /// Values of the label that must exist; with fewer the smallest count is taken to be zero.
        pub min_domains: Option<i32>,
        /// `Honor` (default) or `Ignore`: whether nodes outside the pod's node affinity are left out.
        pub node_affinity_policy: Option<String>,
        /// `Honor` or `Ignore` (default): whether nodes with untolerated taints are left out.
        pub node_taints_policy: Option<String>,
        /// Pod labels whose values must equal those of the incoming pod.
        pub match_label_keys: Vec<String>,
    }
}
