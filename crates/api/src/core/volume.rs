//! Volumes: claims, the volumes behind them, their classes, and how many a node can attach.

use super::{LabelSelector, Labels, Meta, NodeSelector, ResourceList, ResourceRequirements};
use crate::quantity::Quantity;

slim! {
    /// A claim for a volume.
    pub struct PersistentVolumeClaim {
        /// Name, namespace, annotations (the selected node is one).
        pub metadata: Meta,
        /// What is wanted.
        pub spec: PersistentVolumeClaimSpec,
        /// What is.
        pub status: PersistentVolumeClaimStatus,
    }

    /// What a claim wants.
    pub struct PersistentVolumeClaimSpec {
        /// The volume it is bound to; empty while it waits.
        pub volume_name: String,
        /// Class; absent takes the default class, empty wants none.
        pub storage_class_name: Option<String>,
        /// `ReadWriteOnce`, `ReadWriteOncePod`, …
        pub access_modes: Vec<String>,
        /// Size, under `requests.storage`.
        pub resources: ResourceRequirements,
        /// `Filesystem` (default) or `Block`.
        pub volume_mode: Option<String>,
        /// Which volumes may serve it.
        pub selector: Option<LabelSelector>,
    }

    /// What a claim is.
    pub struct PersistentVolumeClaimStatus {
        /// `Pending`, `Bound` or `Lost`.
        pub phase: String,
    }

    /// A volume.
    pub struct PersistentVolume {
        /// Name and labels (zone and region are labels).
        pub metadata: Meta,
        /// What it is.
        pub spec: PersistentVolumeSpec,
        /// How it is.
        pub status: PersistentVolumeStatus,
    }

    /// What a volume is.
    pub struct PersistentVolumeSpec {
        /// Size, under `storage`.
        pub capacity: ResourceList,
        /// `ReadWriteOnce`, `ReadWriteOncePod`, …
        pub access_modes: Vec<String>,
        /// The claim it belongs to.
        pub claim_ref: Option<VolumeClaimRef>,
        /// Class.
        pub storage_class_name: String,
        /// Nodes that can reach it.
        pub node_affinity: Option<VolumeNodeAffinity>,
        /// The CSI volume behind it, if it is one.
        pub csi: Option<CsiSource>,
        /// `Filesystem` (default) or `Block`.
        pub volume_mode: Option<String>,
    }

    /// How a volume is.
    pub struct PersistentVolumeStatus {
        /// `Available`, `Bound`, `Released`, …
        pub phase: String,
    }

    /// The claim that a volume belongs to.
    pub struct VolumeClaimRef {
        /// Namespace of the claim.
        pub namespace: String,
        /// Name of the claim.
        pub name: String,
        /// Identity of the claim; empty while the volume is only reserved by name.
        pub uid: String,
    }

    /// Nodes that can reach a volume.
    pub struct VolumeNodeAffinity {
        /// The nodes; absent for all.
        pub required: Option<NodeSelector>,
    }

    /// The CSI volume behind a volume.
    pub struct CsiSource {
        /// Name of the driver.
        pub driver: String,
        /// The driver's own name for the volume; equal handles are one attachment.
        pub volume_handle: String,
    }

    /// A class of volumes.
    pub struct StorageClass {
        /// Name, and the annotation that makes it the default.
        pub metadata: Meta,
        /// Driver that makes the volumes.
        pub provisioner: String,
        /// `Immediate` (default) or `WaitForFirstConsumer`.
        pub volume_binding_mode: Option<String>,
        /// Parameters of the driver.
        pub parameters: Labels,
        /// Where volumes can be made; empty for everywhere.
        pub allowed_topologies: Vec<TopologyTerm>,
    }

    /// One place where volumes can be made.
    pub struct TopologyTerm {
        /// Node labels, all of which must match.
        pub match_label_expressions: Vec<TopologyLabel>,
    }

    /// A node label and the values it may have.
    pub struct TopologyLabel {
        /// Key.
        pub key: String,
        /// Values.
        pub values: Vec<String>,
    }

    /// The CSI drivers of the node with the same name.
    pub struct CsiNode {
        /// Name.
        pub metadata: Meta,
        /// The drivers.
        pub spec: CsiNodeSpec,
    }

    /// The CSI drivers of a node.
    pub struct CsiNodeSpec {
        /// The drivers.
        pub drivers: Vec<CsiNodeDriver>,
    }

    /// A CSI driver on a node.
    pub struct CsiNodeDriver {
        /// Name of the driver.
        pub name: String,
        /// How many volumes can be attached; absent for no bound.
        pub allocatable: Option<CsiVolumeLimit>,
    }

    /// How many volumes of a driver a node can attach.
    pub struct CsiVolumeLimit {
        /// The number; absent for no bound.
        pub count: Option<i32>,
    }
    /// A CSI driver of the cluster.
    pub struct CsiDriver {
        /// Name, which is that of provisioners.
        pub metadata: Meta,
        /// What it can do.
        pub spec: CsiDriverSpec,
    }

    /// What a CSI driver can do.
    pub struct CsiDriverSpec {
        /// It tells how much it can make, and where.
        pub storage_capacity: bool,
    }

    /// How much a CSI driver can make of a class, in one place.
    pub struct CsiStorageCapacity {
        /// Name and namespace, which say nothing.
        pub metadata: Meta,
        /// The nodes that can reach what is made; absent for none.
        pub node_topology: Option<LabelSelector>,
        /// Class.
        pub storage_class_name: String,
        /// Free storage; absent for unknown.
        pub capacity: Option<Quantity>,
        /// The largest volume that can be made; absent for as much as is free.
        pub maximum_volume_size: Option<Quantity>,
    }
}
