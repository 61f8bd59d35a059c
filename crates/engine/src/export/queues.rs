//! Queues.

use super::{amounts, created};
use crate::ids::QueueId;
use crate::model::Model;
use crate::model::delta::Delta;
use crate::model::queue::{self, QueueState};
use volcano_api::meta::{Resource as _, ResourceList};
use volcano_api::names::annotations;
use volcano_api::quantity::Quantity;
use volcano_api::scheduling::{self, DequeueStrategy, Queue};

/// Those whose object is there.
pub(super) fn objects(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    let mut ids: Vec<QueueId> = m.queue_ids().collect();
    ids.sort_unstable_by_key(|&id| m.text(m.queue(id).name));
    ids.into_iter()
        .map(move |id| Delta::Queue(Box::new(queue(m, m.queue(id)))))
}

fn queue(m: &Model, from: &queue::Queue) -> Queue {
    let mut queue = Queue::named("", m.text(from.name));
    queue.metadata.creation_timestamp = created(from.created);
    for (key, value) in [
        (annotations::HIERARCHY, &from.hierarchy),
        (annotations::HIERARCHY_WEIGHTS, &from.hierarchy_weights),
    ] {
        if !value.is_empty() {
            queue
                .metadata
                .annotations
                .insert(key.to_owned(), value.to_string());
        }
    }
    let spec = &mut queue.spec;
    spec.weight = from.weight;
    spec.priority = from.priority;
    spec.capability = from
        .capability
        .as_ref()
        .map(|amount| limit(amounts(&m.dims, amount)))
        .unwrap_or_default();
    spec.guarantee.resource = amounts(&m.dims, &from.guarantee);
    spec.deserved = amounts(&m.dims, &from.deserved);
    spec.reclaimable = Some(from.reclaimable);
    spec.parent = from
        .parent
        .map(|name| m.text(name).to_owned())
        .unwrap_or_default();
    if from.fifo {
        spec.dequeue_strategy = DequeueStrategy::Fifo;
    }
    queue.status.state = match from.state {
        QueueState::Open => scheduling::QueueState::Open,
        QueueState::Closed => scheduling::QueueState::Closed,
        QueueState::Closing => scheduling::QueueState::Closing,
        QueueState::Unknown => scheduling::QueueState::Unknown,
    };
    if let Some(written) = &from.allocated_written {
        queue.status.allocated = m.dims.quantities(written);
    }
    queue
}

/// A limit that names nothing is still a limit.
fn limit(mut amounts: ResourceList) -> ResourceList {
    if amounts.is_empty() {
        amounts.insert("cpu".to_owned(), Quantity::default());
    }
    amounts
}
