//! Slim views of the core objects: only the fields that scheduling reads.
//!
//! A pod in the API has hundreds of fields, and a cluster has a hundred thousand pods. These types are decoded
//! straight from JSON or [protobuf](crate::protobuf), skipping the rest without allocating it; environment values,
//! commands and other things that might be secret are therefore never in memory, and never in a snapshot.
//!
//! Every field may be missing or `null`: Go clients write `null` for empty lists, maps and times.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::quantity::Quantity;
use crate::time::Time;

/// Defines structs that decode leniently and print tersely: each field is optional on the wire, `null` is its
/// default, and defaults are not printed.
macro_rules! slim {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident: $type:ty, )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(
                    deserialize_with = "crate::core::null_default",
                    skip_serializing_if = "crate::core::is_default"
                )]
                pub $field: $type,
            )*
        }
    )*};
}

mod affinity;
mod dra;
mod namespace;
mod node;
mod pdb;
mod pod;
mod pod_requests;
mod priority_class;
mod resource_quota;
mod selector;
#[cfg(test)]
mod tests;
mod volume;
mod workload;

pub use affinity::{
    Affinity, NodeAffinity, PodAffinity, PodAffinityTerm, PreferredNodeTerm, TopologySpreadConstraint,
    WeightedPodAffinityTerm,
};
pub use dra::{
    AllocatedDevice, AllocatedDevices, CelSelector, Device, DeviceAllocation, DeviceCapacity, DeviceClass,
    DeviceClassSpec, DeviceRequest, DeviceRequests, DeviceSelector, ExactDeviceRequest, RequestedCapacity,
    ResourceClaim, ResourceClaimConsumer, ResourceClaimSpec, ResourceClaimStatus, ResourcePool,
    ResourceSlice, ResourceSliceSpec,
};
pub use namespace::Namespace;
pub use node::{ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus, Taint};
pub use pdb::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
pub use pod::{
    Container, ContainerEnd, ContainerPort, ContainerState, ContainerStatus, EphemeralVolume,
    EphemeralVolumeClaimTemplate, Pod, PodCondition, PodPhase, PodResourceClaim, PodResourceClaimStatus,
    PodSchedulingGate, PodSpec, PodState, PodStatus, PodVolume, PodVolumeClaim, ResourceRequirements,
    Toleration,
};
pub use pod_requests::{
    NONZERO_MEMORY_BYTES, NONZERO_MILLI_CPU, RESIZE_INFEASIBLE, is_resize_infeasible, pod_nonzero,
    pod_requests,
};
pub use priority_class::PriorityClass;
pub use resource_quota::{ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus};
pub use selector::{
    LabelRequirement, LabelSelector, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
};
pub use volume::{
    CsiDriver, CsiDriverSpec, CsiNode, CsiNodeDriver, CsiNodeSpec, CsiSource, CsiStorageCapacity,
    CsiVolumeLimit, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus, PersistentVolumeSpec, PersistentVolumeStatus, StorageClass, TopologyLabel,
    TopologyTerm, VolumeClaimRef, VolumeNodeAffinity,
};
pub use workload::{Workload, WorkloadPod, WorkloadSpec, WorkloadTemplate};

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

/// Labels or annotations.
pub type Labels = BTreeMap<String, String>;

slim! {
    /// What every object has: its name, identity, labels and owners.
    pub struct Meta {
        /// Name, unique in the namespace.
        pub name: String,
        /// Namespace; empty for cluster-scoped objects.
        pub namespace: String,
        /// Identity of this incarnation of the name.
        pub uid: String,
        /// Version of the stored object, for optimistic locking.
        pub resource_version: String,
        /// When the API server stored it first.
        pub creation_timestamp: Option<Time>,
        /// When it is to be gone; set once deletion has been asked for.
        pub deletion_timestamp: Option<Time>,
        /// Labels.
        pub labels: Labels,
        /// Annotations.
        pub annotations: Labels,
        /// Objects that own this one.
        pub owner_references: Vec<OwnerReference>,
    }

    /// One owner of an object.
    pub struct OwnerReference {
        /// Group and version of the owner.
        pub api_version: String,
        /// Kind of the owner.
        pub kind: String,
        /// Name of the owner.
        pub name: String,
        /// Identity of the owner.
        pub uid: String,
        /// Whether this owner is the managing controller.
        pub controller: bool,
        /// Whether the owner waits for the object to be gone before it goes.
        pub block_owner_deletion: bool,
    }
}

impl Meta {
    /// The owner that manages this object, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// Reads a value, taking `null` for its default.
pub fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a value is its default, and so need not be printed.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
