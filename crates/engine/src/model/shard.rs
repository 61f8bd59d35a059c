//! Which nodes are this scheduler's where several divide them.
//!
//! ```text
//! NodeShard of this scheduler: nodesDesired  -  nodesInUse of all others  =  its own nodes  -> its nodesInUse
//! ```
//!
//! A node changes hands in two steps: the new owner waits until the old one has let it go, so that two never place on
//! the same node at once.

use super::Model;
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::shard::{NodeShard, NodeShardStatus};

/// The NodeShards, and what follows from them.
#[derive(Clone, Debug, Default)]
pub struct Shards {
    objects: BTreeMap<Box<str>, NodeShard>,
    /// Nodes of this scheduler, whether they exist or not.
    own: BTreeSet<String>,
    /// What is known of the status may be outdated.
    stale: bool,
}

impl Shards {
    /// The objects, by name.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &NodeShard> {
        self.objects.values()
    }

    /// Names of the objects, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.objects.keys().map(|name| &**name)
    }

    /// The nodes that one scheduler should use less those that others still do.
    fn free_for(&self, name: &str) -> Option<BTreeSet<String>> {
        let desired = &self.objects.get(name)?.spec.nodes_desired;
        let others = self.objects.iter().filter(|(other, _)| &***other != name);
        let taken: BTreeSet<&str> = others
            .flat_map(|(_, shard)| &shard.status.nodes_in_use)
            .map(String::as_str)
            .collect();
        let free = desired.iter().filter(|node| !taken.contains(node.as_str()));
        Some(free.cloned().collect())
    }
}

impl Model {
    pub(super) fn set_shard(&mut self, shard: NodeShard) {
        let name = shard.metadata.name.as_str().into();
        self.shards.objects.insert(name, shard);
        self.divide_nodes();
    }

    pub(super) fn remove_shard(&mut self, name: &str) {
        if self.shards.objects.remove(name).is_some() {
            self.divide_nodes();
        }
    }

    /// The node is another scheduler's, or nobody's yet.
    pub(super) fn is_elsewhere(&self, node: &str) -> bool {
        self.features.sharding.is_some() && !self.shards.own.contains(node)
    }

    /// Finds out anew which nodes are this scheduler's. While it has no NodeShard it keeps those that it had. Cost: all
    /// nodes; NodeShards change seldom.
    fn divide_nodes(&mut self) {
        self.shards.stale = true;
        let Some(sharding) = &self.features.sharding else {
            return;
        };
        let own = self.shards.free_for(&sharding.name);
        // A status that is to be written is a reason for a cycle, too.
        self.news = true;
        let Some(own) = own.filter(|own| *own != self.shards.own) else {
            return;
        };
        self.shards.own = own;
        for id in (0..self.nodes.len()).map(crate::ids::NodeId::from_index) {
            let elsewhere = self.is_elsewhere(self.text(self.nodes[id].name));
            if self.nodes.tally(id).elsewhere != elsewhere {
                self.nodes.tally_mut(id).elsewhere = elsewhere;
                self.nodes.changed(id, true);
            }
        }
    }

    /// The status of this scheduler's NodeShard, if it differs from what is known of it; it counts as written then.
    pub(crate) fn shard_status(&mut self) -> Option<NodeShardStatus> {
        if !std::mem::take(&mut self.shards.stale) {
            return None;
        }
        let sharding = self.features.sharding.as_ref()?;
        let own = &self.shards.own;
        let shard = self.shards.objects.get_mut(sharding.name.as_str())?;
        let desired: BTreeSet<&String> = shard.spec.nodes_desired.iter().collect();
        let status = NodeShardStatus {
            nodes_in_use: own.iter().cloned().collect(),
            nodes_to_remove: own
                .iter()
                .filter(|node| !desired.contains(node))
                .cloned()
                .collect(),
            nodes_to_add: desired
                .iter()
                .filter(|node| !own.contains(**node))
                .map(|&node| node.clone())
                .collect(),
            ..shard.status.clone()
        };
        if same(&shard.status, &status) {
            return None;
        }
        shard.status = status.clone();
        Some(status)
    }
}

/// Lists of nodes in any order.
fn same(a: &NodeShardStatus, b: &NodeShardStatus) -> bool {
    let lists = |s: &NodeShardStatus| {
        [&s.nodes_in_use, &s.nodes_to_remove, &s.nodes_to_add].map(|list| {
            let mut list = list.clone();
            list.sort_unstable();
            list
        })
    };
    lists(a) == lists(b)
}
