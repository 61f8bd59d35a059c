//! Queues.

use super::micros;
use crate::ids::{QueueId, Sym};
use crate::model::Model;
use crate::model::queue::Queue;
use crate::resource::Resource;
use std::collections::BTreeSet;
use volcano_api::names::{annotations, queues};
use volcano_api::scheduling::{self, DequeueStrategy};

impl Model {
    pub(in crate::model) fn queue_id(&mut self, name: Sym) -> QueueId {
        if let Some(&id) = self.queue_by_name.get(&name) {
            return id;
        }
        let id = QueueId::from_index(self.queues.len());
        self.queues.push(Queue::placeholder(name));
        self.queue_by_name.insert(name, id);
        id
    }

    pub(in crate::model) fn set_queue(&mut self, queue: &scheduling::Queue) {
        let name = self.strings.intern(&queue.metadata.name);
        let id = self.queue_id(name);
        let spec = &queue.spec;
        let capability = (!spec.capability.is_empty()).then(|| self.dims.vector(&spec.capability));
        let guarantee = self.dims.vector(&spec.guarantee.resource);
        let deserved = self.dims.vector(&spec.deserved);
        let allocated = &queue.status.allocated;
        let allocated = (!allocated.is_empty()).then(|| self.dims.vector(allocated));
        self.nodes.widen(&self.dims);
        let annotation = |key: &str| {
            queue
                .metadata
                .annotations
                .get(key)
                .map_or("", String::as_str)
                .into()
        };
        let parent = (!spec.parent.is_empty()).then(|| self.strings.intern(&spec.parent));
        let entry = &mut self.queues[id.index()];
        let before = entry.clone();
        entry.exists = true;
        entry.created = micros(queue.metadata.creation_timestamp);
        entry.weight = spec.weight.max(1);
        entry.priority = spec.priority;
        entry.capability = capability;
        entry.guarantee = guarantee;
        entry.deserved = deserved;
        entry.reclaimable = spec.reclaimable.unwrap_or(true);
        entry.parent = parent;
        entry.state = (&queue.status.state).into();
        entry.hierarchy = annotation(annotations::HIERARCHY);
        entry.hierarchy_weights = annotation(annotations::HIERARCHY_WEIGHTS);
        entry.fifo = spec.dequeue_strategy == DequeueStrategy::Fifo;
        entry.see_allocated(allocated);
        if !entry.is_as(&before) {
            self.usage_stale = true;
            self.news = true;
        }
    }

    pub(in crate::model) fn remove_queue(&mut self, name: &str) {
        if let Some(id) = self.find_queue(name) {
            let kept = &self.queues[id.index()];
            let mut placeholder = Queue::placeholder(kept.name);
            placeholder.jobs = kept.jobs;
            placeholder.charged = kept.charged.clone();
            placeholder.pending = kept.pending.clone();
            placeholder.reserved = kept.reserved.clone();
            placeholder.inqueue = kept.inqueue.clone();
            placeholder.elastic = kept.elastic.clone();
            self.queues[id.index()] = placeholder;
            self.usage_stale = true;
            self.news = true;
        }
    }

    /// What each queue uses, by index, with the queues below it.
    pub(crate) fn queue_usage(&self) -> Vec<Resource> {
        let mut usage = self.queue_sums(|queue| &queue.charged);
        // A request that names nothing of a resource says nothing about it.
        let named = |part: &mut Resource| part.scalars.retain(|scalar| scalar.1 != 0);
        usage.iter_mut().for_each(named);
        usage
    }

    /// Amounts of each queue, by index, added up: with a queue `root` those of all queues below it included. Queues whose
    /// ancestors cannot be told, for want of a parent or in a circle, still count for `root`.
    pub(crate) fn queue_sums(&self, of: impl Fn(&Queue) -> &Resource) -> Vec<Resource> {
        let mut sums: Vec<Resource> = self.queues.iter().map(|queue| of(queue).clone()).collect();
        let Some(root) = self.find_queue(queues::ROOT) else {
            return sums;
        };
        let parent_of = |id: QueueId| {
            let named = self.queue(id).parent.map(|name| self.text(name));
            named.and_then(|name| self.find_queue(name)).unwrap_or(root)
        };
        let others = || self.queue_ids().filter(|&id| id != root);
        let mut children = vec![0_usize; self.queues.len()];
        others().for_each(|id| children[parent_of(id).index()] += 1);
        let mut ready: Vec<QueueId> = others().filter(|id| children[id.index()] == 0).collect();
        let mut left: BTreeSet<QueueId> = others().collect();
        let mut add = |id: QueueId, to: QueueId| {
            let part = sums[id.index()].clone();
            sums[to.index()].add(&part);
        };
        while let Some(id) = ready.pop() {
            left.remove(&id);
            let parent = parent_of(id);
            add(id, parent);
            children[parent.index()] -= 1;
            if children[parent.index()] == 0 && parent != root {
                ready.push(parent);
            }
        }
        left.into_iter().for_each(|id| add(id, root));
        sums
    }
}
