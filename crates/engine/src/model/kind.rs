//! The kinds of objects that the model is made of: what each is called, which of them are known, and how one goes.
//!
//! After a watch broke, its kind is listed again; what the model knows and the list lacks is gone:
//!
//! ```text
//! Model::names(kind)  -  keys of the list  =  Delta::gone(kind, …) for each that is left
//! ```

use super::Model;
use super::delta::Delta;
use crate::ids::{JobId, TaskId};
use volcano_api::names::kinds;

/// A kind of object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Pod,
    Node,
    PodGroup,
    Queue,
    PriorityClass,
    Namespace,
    Claim,
    Volume,
    StorageClass,
    CsiNode,
    CsiDriver,
    StorageCapacity,
    ResourceQuota,
    DisruptionBudget,
    HyperNode,
    NodeShard,
}

impl Kind {
    /// Every kind, each after those that it refers to: the order in which objects enter an empty model, so that
    /// nothing is computed twice.
    pub const ALL: [Kind; 16] = [
        Kind::PriorityClass,
        Kind::Namespace,
        Kind::Queue,
        Kind::HyperNode,
        Kind::NodeShard,
        Kind::Node,
        Kind::StorageClass,
        Kind::Volume,
        Kind::Claim,
        Kind::CsiNode,
        Kind::CsiDriver,
        Kind::StorageCapacity,
        Kind::ResourceQuota,
        Kind::DisruptionBudget,
        Kind::PodGroup,
        Kind::Pod,
    ];

    /// The API's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Pod => "Pod",
            Kind::Node => "Node",
            Kind::PodGroup => kinds::POD_GROUP.kind,
            Kind::Queue => kinds::QUEUE.kind,
            Kind::PriorityClass => "PriorityClass",
            Kind::Namespace => "Namespace",
            Kind::Claim => "PersistentVolumeClaim",
            Kind::Volume => "PersistentVolume",
            Kind::StorageClass => "StorageClass",
            Kind::CsiNode => "CSINode",
            Kind::CsiDriver => "CSIDriver",
            Kind::StorageCapacity => "CSIStorageCapacity",
            Kind::ResourceQuota => "ResourceQuota",
            Kind::DisruptionBudget => "PodDisruptionBudget",
            Kind::HyperNode => kinds::HYPER_NODE.kind,
            Kind::NodeShard => kinds::NODE_SHARD.kind,
        }
    }

    /// API group (empty for the core group) and version.
    pub const fn group_version(self) -> (&'static str, &'static str) {
        match self {
            Kind::Pod | Kind::Node | Kind::Namespace | Kind::Claim | Kind::Volume | Kind::ResourceQuota => {
                ("", "v1")
            }
            Kind::StorageClass | Kind::CsiNode | Kind::CsiDriver | Kind::StorageCapacity => {
                ("storage.k8s.io", "v1")
            }
            Kind::DisruptionBudget => ("policy", "v1"),
            Kind::PriorityClass => ("scheduling.k8s.io", "v1"),
            Kind::PodGroup | Kind::Queue => (kinds::SCHEDULING, kinds::V1BETA1),
            Kind::HyperNode => (kinds::TOPOLOGY, kinds::V1ALPHA1),
            Kind::NodeShard => (kinds::NODE_SHARD.group, kinds::NODE_SHARD.version),
        }
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(self) -> String {
        match self.group_version() {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        }
    }

    /// Objects of it are in a namespace.
    pub fn is_namespaced(self) -> bool {
        matches!(
            self,
            Kind::Pod
                | Kind::PodGroup
                | Kind::Claim
                | Kind::StorageCapacity
                | Kind::ResourceQuota
                | Kind::DisruptionBudget
        )
    }

    /// The kind of an API group and name; `None` when scheduling does not look at it.
    pub fn find(group: &str, name: &str) -> Option<Kind> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == name && kind.group_version().0 == group)
    }
}

impl Delta {
    /// An object that is no longer there; `namespace` is empty for a kind without one.
    pub fn gone(kind: Kind, namespace: &str, name: &str) -> Delta {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        match kind {
            Kind::Pod => Delta::PodGone { namespace, name },
            Kind::Node => Delta::NodeGone { name },
            Kind::PodGroup => Delta::PodGroupGone { namespace, name },
            Kind::Queue => Delta::QueueGone { name },
            Kind::PriorityClass => Delta::PriorityClassGone { name },
            Kind::Namespace => Delta::NamespaceGone { name },
            Kind::Claim => Delta::ClaimGone { namespace, name },
            Kind::Volume => Delta::VolumeGone { name },
            Kind::StorageClass => Delta::StorageClassGone { name },
            Kind::CsiNode => Delta::CsiNodeGone { name },
            Kind::CsiDriver => Delta::CsiDriverGone { name },
            Kind::StorageCapacity => Delta::StorageCapacityGone { namespace, name },
            Kind::ResourceQuota => Delta::ResourceQuotaGone { namespace, name },
            Kind::DisruptionBudget => Delta::DisruptionBudgetGone { namespace, name },
            Kind::HyperNode => Delta::HyperNodeGone { name },
            Kind::NodeShard => Delta::NodeShardGone { name },
        }
    }

    /// Kind, namespace (empty for a kind without one) and name of the object that it brings; `None` when it brings
    /// none.
    pub fn key(&self) -> Option<(Kind, &str, &str)> {
        Some(match self {
            Delta::Pod(o) => (Kind::Pod, &o.metadata.namespace, &o.metadata.name),
            Delta::Node(o) => (Kind::Node, "", &o.metadata.name),
            Delta::PodGroup(o) => (Kind::PodGroup, &o.metadata.namespace, &o.metadata.name),
            Delta::Queue(o) => (Kind::Queue, "", &o.metadata.name),
            Delta::PriorityClass(o) => (Kind::PriorityClass, "", &o.metadata.name),
            Delta::Namespace(o) => (Kind::Namespace, "", &o.metadata.name),
            Delta::Claim(o) => (Kind::Claim, &o.metadata.namespace, &o.metadata.name),
            Delta::Volume(o) => (Kind::Volume, "", &o.metadata.name),
            Delta::StorageClass(o) => (Kind::StorageClass, "", &o.metadata.name),
            Delta::CsiNode(o) => (Kind::CsiNode, "", &o.metadata.name),
            Delta::CsiDriver(o) => (Kind::CsiDriver, "", &o.metadata.name),
            Delta::StorageCapacity(o) => (Kind::StorageCapacity, &o.metadata.namespace, &o.metadata.name),
            Delta::ResourceQuota(o) => (Kind::ResourceQuota, &o.metadata.namespace, &o.metadata.name),
            Delta::DisruptionBudget(o) => (Kind::DisruptionBudget, &o.metadata.namespace, &o.metadata.name),
            Delta::HyperNode(o) => (Kind::HyperNode, "", &o.metadata.name),
            Delta::NodeShard(o) => (Kind::NodeShard, "", &o.metadata.name),
            _ => return None,
        })
    }
}

impl Model {
    /// Namespace (empty for a kind without one) and name of every object of a kind that the model knows, sorted.
    /// Names that others refer to and whose object is not there are not among them.
    pub fn names(&self, kind: Kind) -> Vec<(String, String)> {
        let cluster = &self.cluster;
        let text = |sym| self.text(sym).to_owned();
        let bare = |name: &str| (String::new(), name.to_owned());
        let mut names: Vec<(String, String)> = match kind {
            Kind::Pod => self
                .task_ids()
                .map(|id| self.task(id))
                .map(|task| (text(task.namespace), task.name.to_string()))
                .chain(
                    self.foreign_pods()
                        .into_iter()
                        .map(|(namespace, name, _)| (namespace, name)),
                )
                .collect(),
            Kind::Node => self
                .nodes
                .ids()
                .map(|id| bare(self.text(self.nodes[id].name)))
                .collect(),
            Kind::PodGroup => self
                .group_ids()
                .map(|id| self.job(id))
                .map(|job| (text(job.namespace), text(job.name)))
                .collect(),
            Kind::Queue => self
                .queue_ids()
                .map(|id| bare(self.text(self.queue(id).name)))
                .collect(),
            Kind::PriorityClass => cluster
                .priority_classes
                .keys()
                .map(|&name| bare(self.text(name)))
                .collect(),
            Kind::Namespace => cluster
                .namespaces
                .keys()
                .map(|&name| bare(self.text(name)))
                .collect(),
            Kind::CsiNode => cluster
                .csi_nodes
                .keys()
                .map(|&name| bare(self.text(name)))
                .collect(),
            Kind::Volume => cluster.volumes.keys().map(|name| bare(name)).collect(),
            Kind::StorageClass => cluster.storage_classes.keys().map(|name| bare(name)).collect(),
            Kind::CsiDriver => cluster.csi_drivers.keys().map(|name| bare(name)).collect(),
            Kind::StorageCapacity => cluster
                .storage_capacities
                .keys()
                .map(|(namespace, name)| (text(*namespace), name.to_string()))
                .collect(),
            Kind::HyperNode => cluster.hyper_nodes.keys().map(|name| bare(name)).collect(),
            Kind::NodeShard => self.shards.names().map(bare).collect(),
            Kind::Claim => cluster
                .claims
                .keys()
                .map(|(namespace, name)| (text(*namespace), name.to_string()))
                .collect(),
            Kind::ResourceQuota => cluster
                .quotas
                .keys()
                .map(|(namespace, name)| (text(*namespace), name.to_string()))
                .collect(),
            Kind::DisruptionBudget => cluster
                .budgets
                .keys()
                .map(|(namespace, name)| (text(*namespace), name.to_string()))
                .collect(),
        };
        names.sort_unstable();
        names
    }

    /// All tasks.
    pub fn task_ids(&self) -> impl Iterator<Item = TaskId> + '_ {
        (0..self.tasks.len())
            .map(TaskId::from_index)
            .filter(|&id| self.task(id).live)
    }

    /// All jobs that have a PodGroup.
    pub fn group_ids(&self) -> impl Iterator<Item = JobId> + '_ {
        (0..self.jobs.len())
            .map(JobId::from_index)
            .filter(|&id| self.job(id).live && self.job(id).group.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SchedulerNames;
    use serde_json::{Value, json};

    fn read<T: for<'a> serde::Deserialize<'a>>(value: Value) -> T {
        serde_json::from_value(value).expect("a good object")
    }

    /// An object of a kind.
    fn object(kind: Kind, name: &str) -> Delta {
        let namespace = if kind.is_namespaced() { "ns" } else { "" };
        let value = json!({"metadata": {"name": name, "namespace": namespace}});
        match kind {
            Kind::Pod => Delta::Pod(read(value)),
            Kind::Node => Delta::Node(read(value)),
            Kind::PodGroup => Delta::PodGroup(read(value)),
            Kind::Queue => Delta::Queue(read(value)),
            Kind::PriorityClass => Delta::PriorityClass(read(value)),
            Kind::Namespace => Delta::Namespace(read(value)),
            Kind::Claim => Delta::Claim(read(value)),
            Kind::Volume => Delta::Volume(read(value)),
            Kind::StorageClass => Delta::StorageClass(read(value)),
            Kind::CsiNode => Delta::CsiNode(read(value)),
            Kind::CsiDriver => Delta::CsiDriver(read(value)),
            Kind::StorageCapacity => Delta::StorageCapacity(read(value)),
            Kind::ResourceQuota => Delta::ResourceQuota(read(value)),
            Kind::DisruptionBudget => Delta::DisruptionBudget(read(value)),
            Kind::HyperNode => Delta::HyperNode(read(value)),
            Kind::NodeShard => Delta::NodeShard(read(value)),
        }
    }

    #[test]
    fn every_kind_is_known_by_name_until_it_is_gone() {
        for kind in Kind::ALL {
            let mut m = Model::new(SchedulerNames::Any, "default");
            let namespace = if kind.is_namespaced() { "ns" } else { "" };
            let key = |name: &str| (namespace.to_owned(), name.to_owned());
            for name in ["b", "a", "b"] {
                let object = object(kind, name);
                assert_eq!(object.key(), Some((kind, namespace, name)));
                m.apply(object);
            }
            assert_eq!(m.names(kind), [key("a"), key("b")], "{kind:?}");
            m.apply(Delta::gone(kind, namespace, "a"));
            m.apply(Delta::gone(kind, namespace, "never-there"));
            assert_eq!(m.names(kind), [key("b")], "{kind:?}");
            for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
                assert_eq!(m.names(other), [], "{other:?} beside {kind:?}");
            }
            assert_eq!(Kind::find(kind.group_version().0, kind.name()), Some(kind));
        }
        assert_eq!(Kind::find("apps", "Deployment"), None);
        assert_eq!(Delta::gone(Kind::Pod, "ns", "a").key(), None);
    }

    #[test]
    fn pods_of_other_schedulers_are_known_by_name_and_what_is_only_referred_to_is_not() {
        let mut m = Model::new(SchedulerNames::Only(vec!["volcano".to_owned()]), "default");
        let pod = |name: &str, node: &str| {
            let annotations = json!({"scheduling.k8s.io/group-name": "g"});
            Delta::Pod(read(json!({
                "metadata": {"name": name, "namespace": "ns", "annotations": annotations}, "spec": {"nodeName": node},
            })))
        };
        m.apply(pod("on-a-node", "n1"));
        m.apply(pod("of-another-scheduler", ""));
        let names: Vec<_> = m.names(Kind::Pod).into_iter().map(|(_, name)| name).collect();
        assert_eq!(
            names,
            ["of-another-scheduler", "on-a-node"],
            "a list without one must make it go away"
        );
        for kind in [Kind::Node, Kind::PodGroup, Kind::Queue] {
            assert_eq!(m.names(kind), [], "{kind:?}");
        }
    }

    #[test]
    fn a_namespace_that_is_gone_is_no_longer_selected() {
        let mut m = Model::new(SchedulerNames::Any, "default");
        let team =
            |labels: Value| Delta::Namespace(read(json!({"metadata": {"name": "team", "labels": labels}})));
        m.apply(team(json!({"tier": "gold"})));
        m.apply(Delta::Node(read(
            json!({"metadata": {"name": "n1", "labels": {"zone": "z"}}}),
        )));
        m.apply(Delta::Pod(read(json!({
            "metadata": {"name": "there", "namespace": "team", "labels": {"app": "db"}}, "spec": {"nodeName": "n1"},
        }))));
        let term = json!({"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone",
            "namespaceSelector": {"matchLabels": {"tier": "gold"}}});
        m.apply(Delta::Pod(read(json!({
            "metadata": {"name": "near", "namespace": "ns"},
            "spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
        }))));
        let counted = |m: &Model| {
            let task = m.find_task("ns", "near").expect("a known pod");
            let term = m.class_of(task).relations.affinity[0];
            m.relations.term(term).matching.values().sum::<i64>()
        };
        assert_eq!(counted(&m), 1);
        m.apply(Delta::gone(Kind::Namespace, "", "team"));
        assert_eq!(counted(&m), 0);
        m.apply(team(json!({"tier": "gold"})));
        assert_eq!(counted(&m), 1);
    }
}
