//! Nodes.

use super::{Meta, ResourceList, Toleration};

slim! {
    /// A node.
    pub struct Node {
        /// Name, labels, annotations.
        pub metadata: Meta,
        /// What its operator wants.
        pub spec: NodeSpec,
        /// What it reports.
        pub status: NodeStatus,
    }

    /// What the operator of a node wants.
    pub struct NodeSpec {
        /// Whether it is cordoned.
        pub unschedulable: bool,
        /// What keeps pods away.
        pub taints: Vec<Taint>,
    }

    /// What a node reports.
    pub struct NodeStatus {
        /// What pods may use.
        pub allocatable: ResourceList,
        /// What the machine has.
        pub capacity: ResourceList,
        /// Conditions.
        pub conditions: Vec<NodeCondition>,
        /// Images that are there already.
        pub images: Vec<ContainerImage>,
    }

    /// Keeps pods away that do not tolerate it.
    pub struct Taint {
        /// Key.
        pub key: String,
        /// Value.
        pub value: String,
        /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        pub effect: String,
    }

    /// A condition of a node.
    pub struct NodeCondition {
        /// Type.
        #[serde(rename = "type")]
        pub kind: String,
        /// `True`, `False` or `Unknown`.
        pub status: String,
    }

    /// An image on a node.
    pub struct ContainerImage {
        /// Names by which it is known.
        pub names: Vec<String>,
        /// Size.
        pub size_bytes: i64,
    }
}

impl Toleration {
    /// Whether a pod with this toleration puts up with the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if !self.effect.is_empty() && self.effect != taint.effect {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        match self.operator.as_str() {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            "Gt" => numbers(&taint.value, &self.value).is_some_and(|(taint, bound)| taint > bound),
            "Lt" => numbers(&taint.value, &self.value).is_some_and(|(taint, bound)| taint < bound),
            _ => false,
        }
    }
}

fn numbers(left: &str, right: &str) -> Option<(i64, i64)> {
    Some((left.parse().ok()?, right.parse().ok()?))
}
