//! Objects that decisions look up, kept as they came: priority classes, namespaces, volumes, budgets, hypernodes.

use crate::ids::Sym;
use crate::relations::Selector;
use std::collections::BTreeMap;
use volcano_api::core::{
    CsiDriver, CsiNode, CsiStorageCapacity, Labels, PersistentVolume, PersistentVolumeClaim,
    PodDisruptionBudget, ResourceQuota, StorageClass,
};
use volcano_api::topology::HyperNode;

/// A priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityValue {
    /// The number.
    pub value: i32,
    /// Holds for groups that name none.
    pub global_default: bool,
}

/// A disruption budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// As it came.
    pub object: PodDisruptionBudget,
    /// The pods of its namespace that it is about.
    pub pods: Selector,
}

/// How much a driver can make of a class, in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageCapacity {
    /// As it came.
    pub object: CsiStorageCapacity,
    /// The nodes that can reach what is made.
    pub nodes: Selector,
}

/// Objects that are only looked up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// By name.
    pub priority_classes: BTreeMap<Sym, PriorityValue>,
    /// Labels by namespace.
    pub namespaces: BTreeMap<Sym, Labels>,
    /// By namespace and name.
    pub claims: BTreeMap<(Sym, Box<str>), PersistentVolumeClaim>,
    /// By name.
    pub volumes: BTreeMap<Box<str>, PersistentVolume>,
    /// By name.
    pub storage_classes: BTreeMap<Box<str>, StorageClass>,
    /// By node name.
    pub csi_nodes: BTreeMap<Sym, CsiNode>,
    /// By name.
    pub csi_drivers: BTreeMap<Box<str>, CsiDriver>,
    /// By namespace and name.
    pub storage_capacities: BTreeMap<(Sym, Box<str>), StorageCapacity>,
    /// By namespace and name.
    pub quotas: BTreeMap<(Sym, Box<str>), ResourceQuota>,
    /// By namespace and name.
    pub budgets: BTreeMap<(Sym, Box<str>), Budget>,
    /// By name.
    pub hyper_nodes: BTreeMap<Box<str>, HyperNode>,
    /// HyperNodes, or the nodes that they may select, changed since their tree was built.
    pub hyper_nodes_stale: bool,
    /// Grows with every change of an object that filters look up; verdicts about volumes hold for one version.
    pub storage_version: u64,
}

impl Cluster {
    /// The priority of a group: that of its class, else of the global default, else 0.
    pub fn priority(&self, class: Option<Sym>) -> i32 {
        let named = class.and_then(|name| self.priority_classes.get(&name));
        let default = || {
            self.priority_classes
                .values()
                .filter(|c| c.global_default)
                .max_by_key(|c| c.value)
        };
        named.or_else(default).map_or(0, |c| c.value)
    }
}
