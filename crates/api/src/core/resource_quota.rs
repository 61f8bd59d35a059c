//! Quotas of a namespace.

use super::{Meta, ResourceList};

slim! {
    /// A quota of a namespace.
    pub struct ResourceQuota {
        /// Name and namespace.
        pub metadata: Meta,
        /// What is wanted.
        pub spec: ResourceQuotaSpec,
        /// What is enforced and used.
        pub status: ResourceQuotaStatus,
    }

    /// The wanted bounds.
    pub struct ResourceQuotaSpec {
        /// Upper bound by resource.
        pub hard: ResourceList,
    }

    /// The bounds in force.
    pub struct ResourceQuotaStatus {
        /// Upper bound by resource.
        pub hard: ResourceList,
        /// Use by resource.
        pub used: ResourceList,
    }
}
