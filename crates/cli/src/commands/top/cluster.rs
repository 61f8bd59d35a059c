//! The cluster as far as it is shown: small values, changed by what the watches tell.

use crate::commands::job::list::JobItem;
use crate::commands::queue::table::{Counts, GroupItem, QueueItem};
use crate::failure::Failure;
use crate::live::{Change, Item, Key};
use std::collections::BTreeMap;
use volcano_api::core::{Node, Pod, ResourceList, pod_requests};
use volcano_api::protobuf::{self, Tables};

/// A change of a kind.
pub enum News {
    /// Of queues.
    Queue(Change<QueueItem>),
    /// Of PodGroups.
    Group(Change<GroupItem>),
    /// Of Jobs.
    Job(Change<JobItem>),
    /// Of nodes.
    Node(Change<NodeItem>),
    /// Of pods.
    Pod(Change<PodUse>),
}

/// A node.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub struct NodeItem(pub Box<Node>);

impl Item for NodeItem {
    const TABLES: Option<Tables> = Some(protobuf::NODE);

    fn key(&self) -> Key {
        Key {
            namespace: String::new(),
            name: self.0.metadata.name.clone(),
            version: self.0.metadata.resource_version.clone(),
        }
    }
}

/// A pod, of which only what it takes is kept.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub struct PodUse(pub Box<Pod>);

impl Item for PodUse {
    const TABLES: Option<Tables> = Some(protobuf::POD);

    fn key(&self) -> Key {
        Key {
            namespace: self.0.metadata.namespace.clone(),
            name: self.0.metadata.name.clone(),
            version: self.0.metadata.resource_version.clone(),
        }
    }
}

type Name = (String, String);

/// What is known.
#[derive(Default)]
pub struct Cluster {
    /// Queues by name.
    pub queues: BTreeMap<String, QueueItem>,
    /// Jobs by namespace and name.
    pub jobs: BTreeMap<Name, JobItem>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Box<Node>>,
    /// PodGroups of each queue by phase.
    pub counts: BTreeMap<String, Counts>,
    /// What the pods of each node take, and how many they are.
    pub used: BTreeMap<String, Used>,
    /// What cannot be read, by kind.
    pub troubles: BTreeMap<&'static str, String>,
    groups: BTreeMap<Name, (String, String)>,
    pods: BTreeMap<Name, (String, ResourceList)>,
}

/// What the pods of a node take.
#[derive(Debug, Default)]
pub struct Used {
    /// How many they are.
    pub pods: usize,
    /// What they ask for.
    pub requests: ResourceList,
}

impl Cluster {
    /// Takes in a change.
    pub fn take(&mut self, news: News) {
        match news {
            News::Queue(change) => {
                if let Some((key, queue)) = self.news_of("queues", change) {
                    put(&mut self.queues, key.name, queue);
                }
            }
            News::Job(change) => {
                if let Some((key, job)) = self.news_of("jobs", change) {
                    put(&mut self.jobs, (key.namespace, key.name), job);
                }
            }
            News::Node(change) => {
                if let Some((key, node)) = self.news_of("nodes", change) {
                    put(&mut self.nodes, key.name, node.map(|node| node.0));
                }
            }
            News::Group(change) => {
                if let Some((key, group)) = self.news_of("podgroups", change) {
                    self.count(
                        (key.namespace, key.name),
                        group.map(|g| (g.spec.queue, g.status.phase)),
                    );
                }
            }
            News::Pod(change) => {
                if let Some((key, pod)) = self.news_of("pods", change) {
                    self.place((key.namespace, key.name), pod.map(|pod| pod.0));
                }
            }
        }
    }

    /// The object of a change, without one when it is gone. Troubles are noted, and forgotten when they are over.
    fn news_of<T: Item>(&mut self, kind: &'static str, change: Change<T>) -> Option<(Key, Option<T>)> {
        match change {
            Change::Applied(item) => Some((item.key(), Some(item))),
            Change::Gone(gone) => Some((gone.key, None)),
            Change::Listed => {
                self.troubles.remove(kind);
                None
            }
            Change::Trouble(Failure::Told { message, .. }) => {
                self.troubles.insert(kind, message);
                None
            }
            Change::Trouble(_) => None,
        }
    }

    fn count(&mut self, key: Name, now: Option<(String, String)>) {
        let before = match &now {
            Some(now) => self.groups.insert(key, now.clone()),
            None => self.groups.remove(&key),
        };
        for (place, count) in [(before, -1), (now, 1)] {
            if let Some((queue, phase)) = place {
                self.counts.entry(queue).or_default().add(&phase, count);
            }
        }
    }

    fn place(&mut self, key: Name, now: Option<Box<Pod>>) {
        let now = now.filter(|pod| !pod.spec.node_name.is_empty() && !pod.status.phase.is_terminated());
        if let Some((node, requests)) = self.pods.remove(&key) {
            let used = self.used.entry(node).or_default();
            used.pods -= 1;
            for (name, amount) in requests {
                let sum = used.requests.entry(name).or_default();
                *sum = sum.saturating_sub(amount);
            }
        }
        if let Some(pod) = now {
            let requests = pod_requests(&pod);
            let used = self.used.entry(pod.spec.node_name.clone()).or_default();
            used.pods += 1;
            for (name, amount) in &requests {
                let sum = used.requests.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*amount);
            }
            self.pods.insert(key, (pod.spec.node_name, requests));
        }
    }

    /// What all nodes have.
    pub fn total(&self) -> ResourceList {
        let mut total = ResourceList::new();
        for node in self.nodes.values() {
            for (name, amount) in &node.status.allocatable {
                let sum = total.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*amount);
            }
        }
        total
    }
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Gone;
    use serde_json::json;

    fn pod(name: &str, node: &str, cpu: &str, phase: &str) -> News {
        let pod = json!({"metadata": {"namespace": "ns", "name": name}, "status": {"phase": phase},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]}});
        News::Pod(Change::Applied(serde_json::from_value(pod).unwrap()))
    }

    #[test]
    fn what_nodes_hold_follows_their_pods() {
        let mut cluster = Cluster::default();
        cluster.take(pod("a", "n", "1", "Running"));
        cluster.take(pod("b", "n", "500m", "Pending"));
        cluster.take(pod("c", "", "9", "Pending"));
        let used = |cluster: &Cluster| {
            let used = &cluster.used["n"];
            (used.pods, used.requests["cpu"].to_string())
        };
        assert_eq!(used(&cluster), (2, "1500m".to_owned()));
        cluster.take(pod("a", "n", "1", "Succeeded"));
        assert_eq!(used(&cluster), (1, "500m".to_owned()));
        let key = Key {
            namespace: "ns".to_owned(),
            name: "b".to_owned(),
            version: String::new(),
        };
        cluster.take(News::Pod(Change::Gone(Gone { key, last: None })));
        assert_eq!(used(&cluster), (0, "0".to_owned()));
    }
}
