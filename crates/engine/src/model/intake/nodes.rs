//! Nodes, and the counts between pods that depend on their labels.

use crate::ids::{ClassId, NodeId, Sym};
use crate::model::Model;
use crate::model::class::parse_effect;
use crate::model::node::{Description, Taint};
use crate::model::status::Status;
use crate::model::task::Task;
use crate::resource::{CPU, LARGEST, MEMORY, Resource};
use volcano_api::core::{self, Pod};
use volcano_api::names::annotations;

impl Model {
    pub(in crate::model) fn set_node(&mut self, node: &core::Node) {
        let name = self.strings.intern(&node.metadata.name);
        let mut allocatable = self.dims.vector(&node.status.allocatable);
        let oversubscribed = |key: &str| {
            let text = node.metadata.annotations.get(key)?;
            text.parse::<f64>()
                .ok()
                .filter(|v| v.is_finite() && *v > 0.0)
                .map(|v| v as i64)
        };
        let extra_cpu = oversubscribed(annotations::OVERSUBSCRIPTION_CPU).unwrap_or(0);
        let extra_memory = oversubscribed(annotations::OVERSUBSCRIPTION_MEMORY).unwrap_or(0);
        allocatable.set(CPU, allocatable.cpu.saturating_add(extra_cpu).min(LARGEST));
        allocatable.set(
            MEMORY,
            allocatable.memory.saturating_add(extra_memory).min(LARGEST),
        );
        self.nodes.widen(&self.dims);
        let labels = self.interned_labels(&node.metadata.labels);
        let taints = node.spec.taints.iter().filter_map(|t| {
            let effect = parse_effect(&t.effect)?;
            Some(Taint {
                key: self.strings.intern(&t.key),
                value: self.strings.intern(&t.value),
                effect,
            })
        });
        let taints: Vec<_> = taints.collect();
        let mut images = Vec::new();
        for image in &node.status.images {
            images.extend(
                image
                    .names
                    .iter()
                    .map(|n| (self.strings.intern(n), image.size_bytes)),
            );
        }
        images.sort_unstable();
        images.dedup_by_key(|image| image.0);
        let id = self.node_id(name);
        let description = Description {
            labels,
            taints,
            unschedulable: node.spec.unschedulable,
            images,
        };
        let info = &self.nodes[id];
        if self.nodes.is_present(id)
            && self.nodes.is_described(id, &description)
            && self.nodes.offers(id, &allocatable)
        {
            return; // A heartbeat.
        }
        let relabelled = info.labels != description.labels;
        self.news = true;
        let elsewhere = self.is_elsewhere(&node.metadata.name);
        self.nodes.tally_mut(id).elsewhere = elsewhere;
        if relabelled || !self.nodes.is_present(id) {
            self.cluster.hyper_nodes_stale |= !self.cluster.hyper_nodes.is_empty();
        }
        if relabelled {
            self.count_relations_on(id, -1);
        }
        self.nodes.describe(id, description);
        if relabelled {
            self.count_relations_on(id, 1);
        }
        self.nodes.set_present(id, true, &allocatable);
    }

    /// The node of a name, made as a placeholder on first sight.
    pub(in crate::model) fn node_id(&mut self, name: Sym) -> NodeId {
        if self.nodes.is_crowded() && self.nodes.find(name).is_none() {
            let live = self.tasks.iter().filter(|task| task.live);
            self.nodes.free_absent(live.filter_map(|task| task.node));
        }
        self.nodes.find_or_insert(name)
    }

    pub(in crate::model) fn remove_node(&mut self, name: &str) {
        if let Some(id) = self.find_node(name).filter(|&id| self.nodes.is_present(id)) {
            self.news = true;
            self.count_relations_on(id, -1);
            self.nodes.describe(id, Description::default());
            self.count_relations_on(id, 1);
            self.nodes.set_present(id, false, &Resource::default());
            self.cluster.hyper_nodes_stale |= !self.cluster.hyper_nodes.is_empty();
        }
    }

    /// Counts the pods of one node into (1) or out of (-1) the rules between pods, around a change of its labels.
    pub(in crate::model) fn count_relations_on(&mut self, id: NodeId, sign: i64) {
        if self.relations.is_empty() {
            return;
        }
        let Model {
            relations,
            tasks,
            classes,
            nodes,
            ..
        } = self;
        for task in nodes[id]
            .tasks
            .iter()
            .map(|t| &tasks[t.index()])
            .filter(|t| !t.evicted_now)
        {
            relations.count(task, classes.get(task.class), nodes, id, sign);
        }
    }

    /// Counts every rule between pods anew. O(pods), when a rule's namespaces changed.
    pub(crate) fn recount_relations(&mut self) {
        self.relations.clear_counts();
        let Model {
            relations,
            tasks,
            classes,
            nodes,
            ..
        } = self;
        for (task, node) in on_nodes(tasks) {
            relations.count(task, classes.get(task.class), nodes, node, 1);
        }
    }

    /// Registers the rules between pods that a new class has. A rule that no class had before costs a look at every
    /// pod.
    pub(in crate::model) fn add_relations(&mut self, class: ClassId, pod: &Pod) {
        let (rules, fresh) = self.relations.compile(pod, &self.cluster, &mut self.strings);
        self.classes.get_mut(class).relations = rules;
        if !fresh.is_empty() {
            let Model {
                relations,
                tasks,
                nodes,
                ..
            } = self;
            for (task, node) in on_nodes(tasks) {
                relations.count_fresh(&fresh, task, nodes, node);
            }
        }
    }
}

/// The tasks that are on a node as filters see it.
fn on_nodes(tasks: &[Task]) -> impl Iterator<Item = (&Task, NodeId)> {
    let counted = tasks
        .iter()
        .filter(|t| t.live && !t.evicted_now && counts_on_node(t.status));
    counted.filter_map(|t| Some((t, t.node?)))
}

/// A task in this state uses up its node as filters see it.
pub fn counts_on_node(status: Status) -> bool {
    !matches!(status, Status::Pending | Status::Succeeded | Status::Failed)
}
