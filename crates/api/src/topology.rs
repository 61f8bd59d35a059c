//! `topology.volcano.sh/v1alpha1`: HyperNodes, the domains of the network topology.

use crate::meta::{Condition, LabelSelector};
#[cfg(feature = "schema")]
use crate::wire::SUBDOMAIN;
use crate::wire::{object, resource, string_enum};

resource! {
    /// A domain of the network: nodes, or smaller domains, that are close to each other.
    pub struct HyperNode = HYPER_NODE {
        /// Its tier and members.
        pub spec: HyperNodeSpec,
        /// What was found.
        pub status: HyperNodeStatus,
    }
}

object! {
    /// Tier and members of a HyperNode.
    pub struct HyperNodeSpec {
        /// Name of the tier.
        #[schema(length(max = 253))]
        pub tier_name: String,
        /// The nodes or HyperNodes of the domain.
        #[schema(length(min = 1))]
        pub members: Vec<MemberSpec>,
    }
    always {
        /// Distance from the nodes: the lower, the closer are the members to each other.
        #[schema(with = "isize", range(min = 0))]
        pub tier: i64,
    }
}

object! {
    /// One or several members of a HyperNode.
    pub struct MemberSpec {
        /// Which nodes or HyperNodes they are.
        pub selector: MemberSelector,
    }
    always {
        /// Whether they are nodes or HyperNodes.
        pub r#type: MemberType,
    }
}

string_enum! {
    /// What a member of a HyperNode is.
    pub enum MemberType {
        /// A node.
        Node = "Node",
        /// A HyperNode of a lower tier.
        HyperNode = "HyperNode",
    }
}

object! {
    /// Selects members by exactly one of a name, a pattern of names, or labels.
    #[schema(extend("x-kubernetes-validations" = [
        {
            "rule": "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
            "message": "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        },
        {
            "rule": "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
            "message": "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        },
    ]))]
    pub struct MemberSelector {
        /// The member of this name.
        pub exact_match: Option<ExactMatch>,
        /// Members whose names match.
        pub regex_match: Option<RegexMatch>,
        /// Nodes with these labels.
        pub label_match: Option<LabelSelector>,
    }
}

object! {
    /// Selects one member by its name.
    pub struct ExactMatch {}
    always {
        /// The name.
        #[schema(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
        pub name: String,
    }
}

object! {
    /// Selects members by a pattern of their names.
    pub struct RegexMatch {}
    always {
        /// The regular expression.
        #[schema(length(min = 1))]
        pub pattern: String,
    }
}

object! {
    /// What was found about a HyperNode.
    pub struct HyperNodeStatus {
        /// Its conditions.
        pub conditions: Vec<Condition>,
        /// Number of nodes in it.
        #[schema(range(min = 0))]
        pub node_count: i64,
    }
}
