//! Changes of the cluster, and how each enters the model.

use super::Model;
use super::cluster::{Budget, PriorityValue, StorageCapacity};
use crate::ids::{JobId, Sym};
use crate::relations::Selector;
use std::collections::BTreeMap;
use volcano_api::core::{self, Labels, Pod};
use volcano_api::scheduling::{self, PodGroup};
use volcano_api::shard::NodeShard;
use volcano_api::topology::HyperNode;

/// A change of the cluster: an object as it is now, or the name of one that is gone.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Delta {
    Pod(Box<Pod>),
    PodGone {
        namespace: String,
        name: String,
    },
    Node(Box<core::Node>),
    NodeGone {
        name: String,
    },
    PodGroup(Box<PodGroup>),
    PodGroupGone {
        namespace: String,
        name: String,
    },
    Queue(Box<scheduling::Queue>),
    QueueGone {
        name: String,
    },
    PriorityClass(core::PriorityClass),
    PriorityClassGone {
        name: String,
    },
    Namespace(core::Namespace),
    NamespaceGone {
        name: String,
    },
    Claim(Box<core::PersistentVolumeClaim>),
    ClaimGone {
        namespace: String,
        name: String,
    },
    Volume(Box<core::PersistentVolume>),
    VolumeGone {
        name: String,
    },
    StorageClass(Box<core::StorageClass>),
    StorageClassGone {
        name: String,
    },
    CsiNode(Box<core::CsiNode>),
    CsiNodeGone {
        name: String,
    },
    CsiDriver(Box<core::CsiDriver>),
    CsiDriverGone {
        name: String,
    },
    StorageCapacity(Box<core::CsiStorageCapacity>),
    StorageCapacityGone {
        namespace: String,
        name: String,
    },
    ResourceQuota(Box<core::ResourceQuota>),
    ResourceQuotaGone {
        namespace: String,
        name: String,
    },
    DisruptionBudget(Box<core::PodDisruptionBudget>),
    DisruptionBudgetGone {
        namespace: String,
        name: String,
    },
    HyperNode(Box<HyperNode>),
    HyperNodeGone {
        name: String,
    },
    NodeShard(Box<NodeShard>),
    NodeShardGone {
        name: String,
    },
    /// The executor could not bind a pod: it waits again. An answer about an incarnation of the name that is no
    /// longer there changes nothing; an empty `uid` is about whichever is there.
    BindFailed {
        namespace: String,
        name: String,
        uid: String,
    },
    /// The executor could not evict a pod: it stays. The same holds for `uid`.
    EvictFailed {
        namespace: String,
        name: String,
        uid: String,
    },
}

impl Model {
    /// Takes a change in. Cost: that of the object, not of the cluster.
    pub fn apply(&mut self, delta: Delta) {
        match delta {
            Delta::Pod(pod) => self.set_pod(&pod),
            Delta::PodGone { namespace, name } => self.remove_pod(&namespace, &name),
            Delta::Node(node) => self.set_node(&node),
            Delta::NodeGone { name } => self.remove_node(&name),
            Delta::PodGroup(group) => self.set_group(&group),
            Delta::PodGroupGone { namespace, name } => self.remove_group(&namespace, &name),
            Delta::Queue(queue) => {
                let is_new = self.find_queue(&queue.metadata.name).is_none();
                self.set_queue(&queue);
                if is_new {
                    self.touch_jobs_of(&queue.metadata.name);
                }
            }
            Delta::QueueGone { name } => self.remove_queue(&name),
            Delta::PriorityClass(class) => {
                let value = PriorityValue {
                    value: class.value,
                    global_default: class.global_default,
                };
                let name = self.strings.intern(&class.metadata.name);
                if self.cluster.priority_classes.insert(name, value) != Some(value) {
                    self.refresh_priorities();
                }
            }
            Delta::PriorityClassGone { name } => {
                let name = self.strings.intern(&name);
                if self.cluster.priority_classes.remove(&name).is_some() {
                    self.refresh_priorities();
                }
            }
            Delta::Namespace(namespace) => {
                self.set_namespace(&namespace.metadata.name, Some(namespace.metadata.labels));
            }
            Delta::NamespaceGone { name } => self.set_namespace(&name, None),
            Delta::HyperNode(hyper_node) => {
                let name = hyper_node.metadata.name.as_str().into();
                let spec = hyper_node.spec.clone();
                let before = self.cluster.hyper_nodes.insert(name, *hyper_node);
                let changed = before.is_none_or(|before| before.spec != spec);
                self.cluster.hyper_nodes_stale |= changed;
                self.news |= changed;
            }
            Delta::HyperNodeGone { name } => {
                let changed = self.cluster.hyper_nodes.remove(name.as_str()).is_some();
                self.cluster.hyper_nodes_stale |= changed;
                self.news |= changed;
            }
            Delta::NodeShard(shard) => self.set_shard(*shard),
            Delta::NodeShardGone { name } => self.remove_shard(&name),
            Delta::ResourceQuota(quota) => {
                let key = self.object_key(&quota.metadata);
                self.news |= put(&mut self.cluster.quotas, key, *quota);
            }
            Delta::ResourceQuotaGone { namespace, name } => {
                let key = (self.strings.intern(&namespace), name.into());
                self.news |= self.cluster.quotas.remove(&key).is_some();
            }
            Delta::DisruptionBudget(budget) => {
                let key = self.object_key(&budget.metadata);
                let pods = Selector::compile(budget.spec.selector.as_ref(), &mut self.strings);
                let object = *budget;
                self.news |= put(&mut self.cluster.budgets, key, Budget { object, pods });
            }
            Delta::DisruptionBudgetGone { namespace, name } => {
                let key = (self.strings.intern(&namespace), name.into());
                self.news |= self.cluster.budgets.remove(&key).is_some();
            }
            Delta::BindFailed { namespace, name, uid } => self.undo_bind(&namespace, &name, &uid),
            Delta::EvictFailed { namespace, name, uid } => self.undo_eviction(&namespace, &name, &uid),
            storage => self.set_storage(storage),
        }
    }

    /// A queue has come to be: its jobs take part in cycles from now on.
    fn touch_jobs_of(&mut self, queue: &str) {
        let Some(queue) = self.find_queue(queue) else {
            return;
        };
        let of_queue = |id: &JobId| self.job(*id).queue == queue;
        let jobs: Vec<JobId> = self.group_ids().filter(of_queue).collect();
        jobs.into_iter().for_each(|job| self.touch(job));
    }

    /// Takes in the labels of a namespace; `None` when it is gone.
    fn set_namespace(&mut self, name: &str, labels: Option<Labels>) {
        let name = self.strings.intern(name);
        if self.cluster.namespaces.get(&name) == labels.as_ref() {
            return;
        }
        self.news = true;
        match labels {
            Some(labels) => self.cluster.namespaces.insert(name, labels),
            None => self.cluster.namespaces.remove(&name),
        };
        if self
            .relations
            .resolve_namespaces(&self.cluster, &mut self.strings)
        {
            self.recount_relations();
        }
    }

    fn set_storage(&mut self, delta: Delta) {
        let cluster = &mut self.cluster;
        let changed = match delta {
            Delta::Claim(claim) => {
                let key = (
                    self.strings.intern(&claim.metadata.namespace),
                    claim.metadata.name.as_str().into(),
                );
                put(&mut cluster.claims, key, *claim)
            }
            Delta::ClaimGone { namespace, name } => {
                let key = (self.strings.intern(&namespace), name.into());
                cluster.claims.remove(&key).is_some()
            }
            Delta::Volume(volume) => {
                let name = volume.metadata.name.as_str().into();
                put(&mut cluster.volumes, name, *volume)
            }
            Delta::VolumeGone { name } => cluster.volumes.remove(name.as_str()).is_some(),
            Delta::StorageClass(class) => {
                let name = class.metadata.name.as_str().into();
                put(&mut cluster.storage_classes, name, *class)
            }
            Delta::StorageClassGone { name } => cluster.storage_classes.remove(name.as_str()).is_some(),
            Delta::CsiNode(node) => {
                let name = self.strings.intern(&node.metadata.name);
                put(&mut cluster.csi_nodes, name, *node)
            }
            Delta::CsiNodeGone { name } => {
                let name = self.strings.intern(&name);
                cluster.csi_nodes.remove(&name).is_some()
            }
            Delta::CsiDriver(driver) => {
                let name = driver.metadata.name.as_str().into();
                put(&mut cluster.csi_drivers, name, *driver)
            }
            Delta::CsiDriverGone { name } => cluster.csi_drivers.remove(name.as_str()).is_some(),
            Delta::StorageCapacity(capacity) => {
                let key = (
                    self.strings.intern(&capacity.metadata.namespace),
                    capacity.metadata.name.as_str().into(),
                );
                let nodes = Selector::compile(capacity.node_topology.as_ref(), &mut self.strings);
                let object = *capacity;
                put(
                    &mut cluster.storage_capacities,
                    key,
                    StorageCapacity { object, nodes },
                )
            }
            Delta::StorageCapacityGone { namespace, name } => {
                let key = (self.strings.intern(&namespace), name.into());
                cluster.storage_capacities.remove(&key).is_some()
            }
            _ => false,
        };
        cluster.storage_version += u64::from(changed);
        self.news |= changed;
    }

    pub(in crate::model) fn object_key(&mut self, metadata: &core::Meta) -> (Sym, Box<str>) {
        (
            self.strings.intern(&metadata.namespace),
            metadata.name.as_str().into(),
        )
    }

    pub(in crate::model) fn interned_labels(&mut self, labels: &Labels) -> Vec<(Sym, Sym)> {
        let mut list: Vec<_> = labels
            .iter()
            .map(|(k, v)| (self.strings.intern(k), self.strings.intern(v)))
            .collect();
        list.sort_unstable();
        list
    }
}

/// Objects that are kept as they came.
trait Kept: PartialEq {
    fn metadata(&mut self) -> &mut core::Meta;
}

macro_rules! kept {
    ($($kind:ident),*) => {
        $(impl Kept for core::$kind {
            fn metadata(&mut self) -> &mut core::Meta {
                &mut self.metadata
            }
        })*
    };
}

kept!(
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CsiNode,
    CsiDriver,
    ResourceQuota
);

impl Kept for Budget {
    fn metadata(&mut self) -> &mut core::Meta {
        &mut self.object.metadata
    }
}

impl Kept for StorageCapacity {
    fn metadata(&mut self) -> &mut core::Meta {
        &mut self.object.metadata
    }
}

/// Stores an object; true when more of it changed than its version.
fn put<K: Ord, T: Kept>(map: &mut BTreeMap<K, T>, key: K, mut object: T) -> bool {
    let Some(before) = map.get_mut(&key) else {
        map.insert(key, object);
        return true;
    };
    before
        .metadata()
        .resource_version
        .clone_from(&object.metadata().resource_version);
    let changed = *before != object;
    *before = object;
    changed
}
