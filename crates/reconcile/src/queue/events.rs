//! What users are told about their queues.

use volcano_api::bus::Action;
use volcano_api::names::{events, messages};
use volcano_api::scheduling::{Queue, QueueState};

use super::is_closed;
use crate::write::{Event, Target};

/// The queue was closed.
pub(super) fn closed(queue: &Queue) -> Event {
    Event::normal(
        Target::of(queue),
        events::CLOSE_QUEUE,
        messages::CLOSE_QUEUE_SUCCEED,
    )
}

/// An action was given up; also an order that cannot be carried out.
pub fn gave_up(queue: &Queue, action: &Action, error: &str) -> Event {
    let message = format!("{action} queue failed for {error}");
    Event::warning(Target::of(queue), action.as_str(), message)
}

/// The queue's new state could not be written.
pub fn write_failed(queue: &Queue, to: &QueueState, error: &str) -> Event {
    let (reason, message) = if is_closed(to) {
        (events::CLOSE_QUEUE, format!("Close queue failed for {error}"))
    } else {
        let from = &queue.status.state;
        let message = format!("Update queue status from {from} to {to} failed for {error}");
        (events::OPEN_QUEUE, message)
    };
    Event::warning(Target::of(queue), reason, message)
}

/// Why a queue is not opened.
pub(super) fn parent_is_closed(queue: &Queue) -> String {
    format!(
        "Failed to open queue {} because its parent queue {} is closing or closed. Open the parent queue first.",
        queue.metadata.name, queue.spec.parent
    )
}

/// Why nothing is done with a queue.
pub(super) fn invalid_state(queue: &Queue) -> String {
    format!(
        "queue {} state {} is invalid",
        queue.metadata.name, queue.status.state
    )
}
