//! What is to be done with one queue.

use serde_json::{Map, Value, json};
use volcano_api::bus::{Action, Command};
use volcano_api::names::annotations::CLOSED_BY_PARENT;
use volcano_api::names::queues;
use volcano_api::scheduling::{Queue, QueueState};
use volcano_api::time::{GoDuration, Time};

use super::{Counts, events, is_closed};
use crate::write::{Plan, Target, Write};

/// How long a Command waits for what it needs: a queue that is not seen yet, a parent that is being opened.
pub const COMMAND_PATIENCE: GoDuration = GoDuration::from_seconds(30);

/// What is seen of a queue.
pub(super) struct View<'a> {
    pub queue: &'a Queue,
    pub parent: Parent,
    pub counts: Counts,
    /// Orders for it, oldest first.
    pub commands: Vec<&'a Command>,
}

/// How the parent of a queue bears on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    /// It is open. So is `root`, always.
    Open,
    /// It is closing or closed.
    Closed,
    /// It is missing, or in no state that says anything.
    Silent,
}

/// What becomes of the oldest order.
enum Order {
    /// There is none.
    None,
    /// The queue is as it says, or it says nothing.
    Done,
    /// It has to wait, until this time at the longest.
    Waits(Time),
    /// It cannot be carried out.
    Refused(String),
    /// The queue has to be opened.
    Open,
    /// The queue has to be closed.
    Close,
}

/// What the queue should be like after the next write.
#[derive(Default)]
struct Change {
    /// Value of the annotation.
    by_parent: Option<bool>,
    /// State.
    state: Option<QueueState>,
}

/// What is to be done with a queue.
pub(super) fn decide(view: &View<'_>, now: Time) -> Plan {
    let order = order(view, now);
    let change = match order {
        Order::Open => Change::to(QueueState::Open),
        Order::Close => close(view, false),
        _ => follow(view),
    };
    let mut plan = writes(view, change);
    match (order, view.commands.first()) {
        (Order::Done, Some(command)) => plan.then(vec![delete(command)]),
        (Order::Refused(why), Some(command)) => {
            let event = events::gave_up(view.queue, &command.action, &why);
            plan.then(vec![Write::Event(event)]);
            plan.then(vec![delete(command)]);
        }
        (Order::Waits(until), _) => plan.wake(until),
        _ => {}
    }
    plan
}

/// What becomes of the oldest order.
fn order(view: &View<'_>, now: Time) -> Order {
    let Some(command) = view.commands.first() else {
        return Order::None;
    };
    let state = &view.queue.status.state;
    match command.action {
        Action::OpenQueue | Action::CloseQueue if matches!(state, QueueState::Other(_)) => {
            Order::Refused(events::invalid_state(view.queue))
        }
        Action::OpenQueue if *state == QueueState::Open => Order::Done,
        Action::OpenQueue if view.parent == Parent::Closed => match until(command) {
            Some(until) if until > now && view.commands.len() == 1 => Order::Waits(until),
            _ => Order::Refused(events::parent_is_closed(view.queue)),
        },
        Action::OpenQueue => Order::Open,
        Action::CloseQueue if view.is_root() => Order::Refused("queue root cannot be closed".to_owned()),
        Action::CloseQueue if is_closed(state) && !view.is_marked() => Order::Done,
        // It would wait for the last PodGroup to go, and what was ordered after it would wait, too.
        Action::CloseQueue if is_closed(state) && !view.can_be_edited() && view.commands.len() > 1 => {
            Order::Done
        }
        Action::CloseQueue => Order::Close,
        _ => Order::Done,
    }
}

/// When an order has waited long enough.
pub(super) fn until(command: &Command) -> Option<Time> {
    Some(
        command
            .metadata
            .creation_timestamp?
            .saturating_add(COMMAND_PATIENCE),
    )
}

/// Deletes an order.
pub(super) fn delete(command: &Command) -> Write {
    Write::Delete {
        target: Target::of(command),
        foreground: false,
    }
}

/// What follows from the parent and the PodGroups, without an order.
fn follow(view: &View<'_>) -> Change {
    let state = &view.queue.status.state;
    match state {
        QueueState::Other(_) => Change::default(),
        _ if view.is_root() => Change::to(QueueState::Open),
        QueueState::Closed | QueueState::Closing if view.is_marked() && view.parent == Parent::Open => {
            // The mark goes once the queue is open: without it nobody would know that it has to be opened.
            Change::to(QueueState::Open)
        }
        QueueState::Closing if view.counts.total() == 0 => Change::to(QueueState::Closed),
        QueueState::Closed | QueueState::Closing => Change::default(),
        // By way of open: only then it can be noted on whose behalf it is closed.
        QueueState::Unknown if view.parent == Parent::Closed => Change::to(QueueState::Open),
        _ if view.parent == Parent::Closed => close(view, true),
        QueueState::Unset => Change::to(QueueState::Open),
        _ => Change {
            // A mark on an open queue would open it again after somebody has closed it.
            by_parent: view.is_marked().then_some(false),
            state: None,
        },
    }
}

/// Closes a queue: first it is noted on whose behalf, so that it is known whenever it is seen closed.
fn close(view: &View<'_>, by_parent: bool) -> Change {
    let state = match view.counts.total() {
        0 => QueueState::Closed,
        _ => QueueState::Closing,
    };
    Change {
        by_parent: (view.is_marked() != by_parent).then_some(by_parent),
        state: Some(state),
    }
}

impl Change {
    fn to(state: QueueState) -> Self {
        Change {
            by_parent: None,
            state: Some(state),
        }
    }
}

impl View<'_> {
    fn is_root(&self) -> bool {
        self.queue.metadata.name == queues::ROOT
    }

    /// Whether anything but its status can be written: admission refuses it in any other state.
    fn can_be_edited(&self) -> bool {
        let state = &self.queue.status.state;
        matches!(state, QueueState::Unset | QueueState::Open | QueueState::Closed)
    }

    /// Whether it is noted that the queue was closed since its parent was.
    fn is_marked(&self) -> bool {
        self.queue.metadata.annotation(CLOSED_BY_PARENT) == Some("true")
    }
}

/// The writes for a change. The version that was looked at is a condition for all that would be wrong if somebody
/// else had just written; numbers are right in any case.
fn writes(view: &View<'_>, change: Change) -> Plan {
    let queue = view.queue;
    let patch = |patch: Value, status: bool, conditional: bool| Write::Patch {
        target: Target::of(queue),
        patch,
        status,
        resource_version: conditional.then(|| queue.metadata.resource_version.clone()),
    };
    let mut main = Map::new();
    if queue.spec.parent.is_empty() && !view.is_root() {
        main.insert("spec".to_owned(), json!({"parent": queues::ROOT}));
    }
    if let Some(by_parent) = change.by_parent {
        let annotations = json!({CLOSED_BY_PARENT: by_parent.to_string()});
        main.insert("metadata".to_owned(), json!({"annotations": annotations}));
    }
    if !view.can_be_edited() {
        main.clear(); // It is written when the state allows it.
    }
    let mut status = view.counts.changes(&queue.status);
    let new = change.state.filter(|state| *state != queue.status.state);
    // The state waits for its own round when the object itself is written: that makes it a newer version.
    let new = new.filter(|_| main.is_empty());
    if let Some(state) = &new {
        status.insert("state".to_owned(), state.as_str().into());
    }
    let mut writes = Vec::new();
    if !main.is_empty() {
        writes.push(patch(Value::Object(main), false, true));
    }
    if !status.is_empty() {
        writes.push(patch(json!({"status": status}), true, new.is_some()));
    }
    let mut plan = Plan::of(vec![writes]);
    let was_closed = is_closed(&queue.status.state);
    if new.is_some_and(|state| is_closed(&state)) && !was_closed {
        plan.then(vec![Write::Event(events::closed(queue))]);
    }
    plan
}
