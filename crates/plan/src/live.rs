//! What has to be read of a live cluster.

use volcano_engine::model::kind::Kind;

/// A kind to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Name in URLs.
    pub plural: &'static str,
    /// Name of the kind.
    pub kind: &'static str,
    /// Plans can do without it: a cluster may not serve it, or a user may not read it.
    pub optional: bool,
}

/// Every kind that a plan reads, in all namespaces. For [`explain`](fn@crate::explain) the Job comes on top (or all Jobs).
pub const KINDS: [Listed; 16] = [
    listed(Kind::Node, "nodes", false),
    listed(Kind::Pod, "pods", false),
    listed(Kind::PodGroup, "podgroups", false),
    listed(Kind::Queue, "queues", false),
    listed(Kind::PriorityClass, "priorityclasses", true),
    listed(Kind::Namespace, "namespaces", true),
    listed(Kind::Claim, "persistentvolumeclaims", true),
    listed(Kind::Volume, "persistentvolumes", true),
    listed(Kind::StorageClass, "storageclasses", true),
    listed(Kind::CsiNode, "csinodes", true),
    listed(Kind::CsiDriver, "csidrivers", true),
    listed(Kind::StorageCapacity, "csistoragecapacities", true),
    listed(Kind::ResourceQuota, "resourcequotas", true),
    listed(Kind::DisruptionBudget, "poddisruptionbudgets", true),
    listed(Kind::HyperNode, "hypernodes", true),
    listed(Kind::NodeShard, "nodeshards", true),
];

const fn listed(kind: Kind, plural: &'static str, optional: bool) -> Listed {
    let (group, version) = kind.group_version();
    Listed {
        group,
        version,
        plural,
        kind: kind.name(),
        optional,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volcano_api::names::kinds;

    #[test]
    fn every_kind_that_is_planned_is_listed_once() {
        for kind in Kind::ALL {
            let found: Vec<_> = KINDS.iter().filter(|listed| listed.kind == kind.name()).collect();
            assert_eq!(found.len(), 1, "{kind:?}");
            assert_eq!((found[0].group, found[0].version), kind.group_version());
        }
        assert_eq!(KINDS.len(), Kind::ALL.len());
    }

    #[test]
    fn the_names_in_urls_are_those_of_the_crds() {
        for kind in kinds::ALL {
            for listed in KINDS
                .iter()
                .filter(|listed| listed.kind == kind.kind && listed.group == kind.group)
            {
                assert_eq!(listed.plural, kind.plural);
            }
        }
    }
}
