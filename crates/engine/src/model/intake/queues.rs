//! Queues.

use super::micros;
use crate::ids::{QueueId, Sym};
use crate::model::Model;
use crate::model::queue::Queue;
use volcano_api::names::annotations;
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
    }

    pub(in crate::model) fn remove_queue(&mut self, name: &str) {
        if let Some(id) = self.find_queue(name) {
            let kept = &self.queues[id.index()];
            let mut placeholder = Queue::placeholder(kept.name);
            placeholder.jobs = kept.jobs;
            placeholder.charged = kept.charged.clone();
            placeholder.pending = kept.pending.clone();
            placeholder.inqueue = kept.inqueue.clone();
            placeholder.elastic = kept.elastic.clone();
            self.queues[id.index()] = placeholder;
        }
    }
}
