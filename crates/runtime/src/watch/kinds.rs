//! The kinds that the scheduler watches: where each is served and how its objects enter the model.

use super::{Family, Gone, Object};
use crate::client::Resource;
use volcano_api::core::{
    CsiDriver, CsiNode, CsiStorageCapacity, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    PodDisruptionBudget, PriorityClass, ResourceQuota, StorageClass,
};
use volcano_api::names::kinds;
use volcano_api::protobuf::{self, Tables};
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::shard::NodeShard;
use volcano_api::topology::HyperNode;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;

/// The watches of the scheduler: changes enter the model.
#[derive(Debug)]
pub struct Scheduling;

impl Family for Scheduling {
    type Kind = Kind;
    type Change = Delta;

    fn gone(kind: Kind, object: &Gone<'_>) -> Delta {
        Delta::gone(kind, object.namespace, object.name)
    }
}

macro_rules! watched {
    ($($type:ident: $kind:ident = $group:expr, $version:literal, $plural:literal $(, optional $optional:literal)? $(, protobuf $tables:ident)? => $delta:expr;)*) => {$(
        impl Object<Scheduling> for $type {
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

            fn change(self) -> Delta {
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
    CsiDriver: CsiDriver = "storage.k8s.io", "v1", "csidrivers", protobuf CSI_DRIVER => |object| Delta::CsiDriver(Box::new(object));
    CsiStorageCapacity: StorageCapacity = "storage.k8s.io", "v1", "csistoragecapacities", protobuf CSI_STORAGE_CAPACITY => |object| Delta::StorageCapacity(Box::new(object));
    PodDisruptionBudget: DisruptionBudget = "policy", "v1", "poddisruptionbudgets", protobuf POD_DISRUPTION_BUDGET => |object| Delta::DisruptionBudget(Box::new(object));
    PriorityClass: PriorityClass = "scheduling.k8s.io", "v1", "priorityclasses", protobuf PRIORITY_CLASS => Delta::PriorityClass;
    PodGroup: PodGroup = kinds::SCHEDULING, "v1beta1", "podgroups" => |object| Delta::PodGroup(Box::new(object));
    Queue: Queue = kinds::SCHEDULING, "v1beta1", "queues" => |object| Delta::Queue(Box::new(object));
    HyperNode: HyperNode = kinds::TOPOLOGY, "v1alpha1", "hypernodes", optional true => |object| Delta::HyperNode(Box::new(object));
    NodeShard: NodeShard = kinds::NODE_SHARD.group, "v1alpha1", "nodeshards" => |object| Delta::NodeShard(Box::new(object));
}
