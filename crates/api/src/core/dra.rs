//! Dynamic resource allocation: claims on devices, the devices that drivers publish, and their classes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Meta, NodeSelector, ResourceList};
use crate::quantity::Quantity;

slim! {
    /// A claim on devices.
    pub struct ResourceClaim {
        /// Name and namespace.
        pub metadata: Meta,
        /// What is wanted.
        pub spec: ResourceClaimSpec,
        /// What was given.
        pub status: ResourceClaimStatus,
    }

    /// What a claim wants.
    pub struct ResourceClaimSpec {
        /// The devices.
        pub devices: DeviceRequests,
    }

    /// The devices that a claim wants.
    pub struct DeviceRequests {
        /// The requests, all of which must be met.
        pub requests: Vec<DeviceRequest>,
        /// Conditions across the requests, as written.
        pub constraints: Vec<Value>,
    }

    /// A request for devices: one of the two forms is set.
    pub struct DeviceRequest {
        /// Name, unique in the claim.
        pub name: String,
        /// Exactly these.
        pub exactly: Option<ExactDeviceRequest>,
        /// The first of these that can be met.
        pub first_available: Vec<ExactDeviceRequest>,
    }

    /// Devices of a class.
    pub struct ExactDeviceRequest {
        /// Name of an alternative; empty for the only one.
        pub name: String,
        /// Class of the devices.
        pub device_class_name: String,
        /// Which devices of the class.
        pub selectors: Vec<DeviceSelector>,
        /// `ExactCount` (default, also when empty) or `All`.
        pub allocation_mode: String,
        /// How many; 0 or absent means one.
        pub count: i64,
        /// Whether devices in use may be shared, for monitoring.
        pub admin_access: bool,
        /// How much of each device.
        pub capacity: Option<RequestedCapacity>,
    }

    /// How much of a device is wanted.
    pub struct RequestedCapacity {
        /// Amounts by the device's capacity names.
        pub requests: ResourceList,
    }

    /// A condition on devices.
    pub struct DeviceSelector {
        /// The condition in the Common Expression Language.
        pub cel: Option<CelSelector>,
    }

    /// A condition in the Common Expression Language.
    pub struct CelSelector {
        /// The expression over `device`.
        pub expression: String,
    }

    /// What a claim was given.
    pub struct ResourceClaimStatus {
        /// The devices; absent until they are chosen.
        pub allocation: Option<DeviceAllocation>,
        /// Who may use the claim now.
        pub reserved_for: Vec<ResourceClaimConsumer>,
    }

    /// The devices that a claim was given.
    pub struct DeviceAllocation {
        /// Nodes from which the devices can be reached; absent for all.
        pub node_selector: Option<NodeSelector>,
        /// The devices.
        pub devices: AllocatedDevices,
    }

    /// The devices of an allocation.
    pub struct AllocatedDevices {
        /// One entry per device and request.
        pub results: Vec<AllocatedDevice>,
    }

    /// A device that was given to a request.
    pub struct AllocatedDevice {
        /// Name of the request, with `/<alternative>` if there were several.
        pub request: String,
        /// Driver of the device.
        pub driver: String,
        /// Pool of the device.
        pub pool: String,
        /// Name of the device.
        pub device: String,
        /// Whether it is shared for monitoring, and so not taken.
        pub admin_access: bool,
        /// How much of the device was taken.
        pub consumed_capacity: ResourceList,
    }

    /// Who may use a claim.
    pub struct ResourceClaimConsumer {
        /// Plural of the consumer's kind, `pods`.
        pub resource: String,
        /// Name.
        pub name: String,
        /// Identity.
        pub uid: String,
    }

    /// Devices that a driver publishes.
    pub struct ResourceSlice {
        /// Name.
        pub metadata: Meta,
        /// The devices.
        pub spec: ResourceSliceSpec,
    }

    /// Devices, and the nodes they belong to: one of the node fields is set.
    pub struct ResourceSliceSpec {
        /// Name of the driver.
        pub driver: String,
        /// The pool that the devices are part of.
        pub pool: ResourcePool,
        /// The node the devices are in.
        pub node_name: Option<String>,
        /// The nodes that can reach the devices.
        pub node_selector: Option<NodeSelector>,
        /// Whether all nodes can reach the devices.
        pub all_nodes: bool,
        /// The devices.
        pub devices: Vec<Device>,
    }

    /// A pool of devices, which may span several slices.
    pub struct ResourcePool {
        /// Name, unique for the driver.
        pub name: String,
        /// Generation; only slices of the newest count.
        pub generation: i64,
        /// How many slices the pool has in this generation.
        pub resource_slice_count: i64,
    }

    /// A device.
    pub struct Device {
        /// Name, unique in the pool.
        pub name: String,
        /// Properties, as written.
        pub attributes: BTreeMap<String, Value>,
        /// Amounts.
        pub capacity: BTreeMap<String, DeviceCapacity>,
        /// Whether several claims may share it.
        pub allow_multiple_allocations: bool,
    }

    /// An amount that a device has.
    pub struct DeviceCapacity {
        /// The amount.
        pub value: Quantity,
    }

    /// A class of devices.
    pub struct DeviceClass {
        /// Name.
        pub metadata: Meta,
        /// The devices.
        pub spec: DeviceClassSpec,
    }

    /// Which devices are in a class.
    pub struct DeviceClassSpec {
        /// Conditions, all of which must hold.
        pub selectors: Vec<DeviceSelector>,
        /// The extended resource name under which pods may ask for the class.
        pub extended_resource_name: Option<String>,
    }
}
