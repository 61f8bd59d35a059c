//! The kinds that the scheduler watches: where each is served and how its objects enter the model.

use crate::client::Resource;
use serde::de::DeserializeOwned;
use volcano_api::core::{
    CsiNode, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PriorityClass, ResourceQuota, StorageClass,
};
use volcano_api::names::kinds;
use volcano_api::protobuf::{self, Tables};
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::shard::NodeShard;
use volcano_api::topology::HyperNode;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;

/// An object of a watched kind.
pub trait Object: DeserializeOwned + Send + 'static {
    /// The kind.
    const KIND: Kind;
    /// Where it is served.
    const RESOURCE: Resource;
    /// The system works without the kind: its CRD may be missing.
    const OPTIONAL: bool = false;
    /// How its protobuf form is read; custom resources have only JSON.
    const PROTOBUF: Option<Tables> = None;

    /// Namespace and name.
    fn name(&self) -> (&str, &str);

    /// Version, for resuming the watch.
    fn version(&self) -> &str;

    /// The change that it makes to the model.
    fn delta(self) -> Delta;
}

macro_rules! watched {
    ($($type:ident: $kind:ident = $group:expr, $version:literal, $plural:literal $(, optional $optional:literal)? $(, protobuf $tables:ident)? => $delta:expr;)*) => {$(
        impl Object for $type {
            const KIND: Kind = Kind::$kind;
            const RESOURCE: Resource = Resource::new($group, $version, $plural);
            $(const OPTIONAL: bool = $optional;)?
            $(const PROTOBUF: Option<Tables> = Some(protobuf::$tables);)?

            fn name(&self) -> (&str, &str) {
                (&self.metadata.namespace, &self.metadata.name)
            }

            fn version(&self) -> &str {
                &self.metadata.resource_version
            }

            fn delta(self) -> Delta {
                let make: fn($type) -> Delta = $delta;
                make(self)
            }
        }
    )*};
}

watched! {
    Pod: Pod = "", "v1", "pods", protobuf POD => |object| Delta::Pod(Box::new(object));
    Node: Node = "", "v1", "nodes", protobuf NODE => |object| Delta::Node(Box::new(object));
    Namespace: Namespace = "", "v1", "namespaces", protobuf NAMESPACE => Delta::Namespace;
    PersistentVolumeClaim: Claim = "", "v1", "persistentvolumeclaims", protobuf PERSISTENT_VOLUME_CLAIM => |object| Delta::Claim(Box::new(object));
    PersistentVolume: Volume = "", "v1", "persistentvolumes", protobuf PERSISTENT_VOLUME => |object| Delta::Volume(Box::new(object));
    ResourceQuota: ResourceQuota = "", "v1", "resourcequotas", protobuf RESOURCE_QUOTA => |object| Delta::ResourceQuota(Box::new(object));
    StorageClass: StorageClass = "storage.k8s.io", "v1", "storageclasses", protobuf STORAGE_CLASS => |object| Delta::StorageClass(Box::new(object));
    CsiNode: CsiNode = "storage.k8s.io", "v1", "csinodes", protobuf CSI_NODE => |object| Delta::CsiNode(Box::new(object));
    PodDisruptionBudget: DisruptionBudget = "policy", "v1", "poddisruptionbudgets", protobuf POD_DISRUPTION_BUDGET => |object| Delta::DisruptionBudget(Box::new(object));
    PriorityClass: PriorityClass = "scheduling.k8s.io", "v1", "priorityclasses", protobuf PRIORITY_CLASS => Delta::PriorityClass;
    PodGroup: PodGroup = kinds::SCHEDULING, "v1beta1", "podgroups" => |object| Delta::PodGroup(Box::new(object));
    Queue: Queue = kinds::SCHEDULING, "v1beta1", "queues" => |object| Delta::Queue(Box::new(object));
    HyperNode: HyperNode = kinds::TOPOLOGY, "v1alpha1", "hypernodes", optional true => |object| Delta::HyperNode(Box::new(object));
    NodeShard: NodeShard = kinds::NODE_SHARD.group, "v1alpha1", "nodeshards" => |object| Delta::NodeShard(Box::new(object));
}
