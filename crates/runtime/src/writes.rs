//! Everything that is written to the cluster: binds, evictions, statuses, events.
//!
//! ```text
//! Writer::send ──> dispatcher: Queue (what is next) ──> lanes (one request each) ──> API server
//!                       ^                                    │
//! Outcome <─────────────┴────────────── answers ─────────────┘
//! ```
//! Who decides never waits for a write. One task owns everything that waits, so that nothing here needs a lock, and
//! no more writes are under way than there are lanes.

pub(crate) mod events;
mod evict;
mod gang;
pub mod order;
mod pace;
mod queue;
mod recent;
pub(crate) mod send;
mod slots;
mod status;
mod timers;
mod volumes;
pub(crate) mod work;

use crate::client::Client;
use crate::clock::Clock;
use crate::fence::Fence;
use crate::metrics::{Metrics, Stage, TaskStage};
use gang::Times;
use order::{Order, Outcome};
use queue::Queue;
use rustc_hash::FxHashMap;
use send::Sender;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::Instant;
use volcano_api::names;
use work::{Answer, Ticket};

/// Orders that are taken in before lanes are filled again.
const AT_ONCE: usize = 128;
/// How often the fence is looked at while something waits and nothing happens.
const FENCE_LOOK: Duration = Duration::from_millis(200);

/// How often gauges are set.
const GAUGES: Duration = Duration::from_millis(250);

/// How to write.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the scheduler, under which it tells events.
    pub component: String,
    /// The scheduler that evicted pods are told of: its first name, if it has several.
    pub scheduler_name: String,
    /// Writes under way at the same time.
    ///
    /// 64 by default: enough to keep an API server busy whose answers take 10 to 30 ms under load, and far enough from
    /// the 200 changes under way that it allows for everybody together.
    pub lanes: usize,
    /// Events per second over a longer time; 0 for none.
    pub event_qps: f64,
    /// How long a pod's claims may take to get their volumes.
    pub bind_timeout: Duration,
    /// Whether to tell of binds that succeeded, too. The scheduler sees those in its watch and need not be woken for them.
    pub tell_bound: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            component: names::SCHEDULER.to_owned(),
            scheduler_name: names::SCHEDULER.to_owned(),
            lanes: 64,
            event_qps: 50.0,
            bind_timeout: Duration::from_secs(600),
            tell_bound: false,
        }
    }
}

/// Writes what it is sent. When it is dropped, it stops at once.
pub struct Writer {
    messages: mpsc::UnboundedSender<Message>,
    dispatcher: AbortHandle,
}

enum Message {
    Order(Order),
    Drain {
        until: Instant,
        done: oneshot::Sender<()>,
    },
}

impl Writer {
    /// Starts to write. What comes of it is told to `outcomes`.
    pub fn start(
        client: &Client,
        fence: Fence,
        metrics: Metrics,
        settings: &Settings,
        outcomes: mpsc::UnboundedSender<Outcome>,
    ) -> Writer {
        let (to, messages) = mpsc::unbounded_channel();
        let component = settings.component.as_str().into();
        let dispatcher = Dispatcher {
            queue: Queue::new(settings),
            sender: Arc::new(
                Sender::new(client, fence.clone(), metrics.process().clone(), component)
                    .of_scheduler(&settings.scheduler_name),
            ),
            fence,
            metrics,
            messages,
            outcomes,
            running: JoinSet::new(),
            tickets: FxHashMap::default(),
            tell_bound: settings.tell_bound,
            drain: None,
            gauged: (Instant::now(), false),
        };
        Writer {
            messages: to,
            dispatcher: tokio::spawn(dispatcher.run()).abort_handle(),
        }
    }

    /// Has something written. Never waits.
    pub fn send(&self, order: Order) {
        let _ = self.messages.send(Message::Order(order)); // Ended: nothing is written any more.
    }

    /// Writes what there is to write, for so long at the most, and ends. Orders that come later are dropped.
    pub async fn drain(&self, within: Duration) {
        let (done, ended) = oneshot::channel();
        let until = Instant::now() + within;
        if self.messages.send(Message::Drain { until, done }).is_ok() {
            let _ = tokio::time::timeout(within, ended).await; // Either way it is over.
        }
        self.dispatcher.abort();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.dispatcher.abort();
    }
}

/// Owns what waits and what is under way.
struct Dispatcher {
    queue: Queue,
    sender: Arc<Sender>,
    fence: Fence,
    metrics: Metrics,
    messages: mpsc::UnboundedReceiver<Message>,
    outcomes: mpsc::UnboundedSender<Outcome>,
    running: JoinSet<Answer>,
    tickets: FxHashMap<Id, Ticket>,
    tell_bound: bool,
    drain: Option<(Instant, oneshot::Sender<()>)>,
    /// When the gauges were set, and whether something was left to write then.
    gauged: (Instant, bool),
}

impl Dispatcher {
    async fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            self.fill_lanes();
            self.tell();
            if self.is_drained() {
                return;
            }
            let wake = self.wake();
            tokio::select! {
                count = self.messages.recv_many(&mut batch, AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                    batch.drain(..).for_each(|message| self.take(message));
                }
                Some(ended) = self.running.join_next_with_id() => {
                    self.ended(ended);
                    while let Some(ended) = self.running.try_join_next_with_id() {
                        self.ended(ended);
                    }
                }
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    fn take(&mut self, message: Message) {
        let now = Instant::now();
        match message {
            Message::Order(order) => self.queue.order(order, now),
            Message::Drain { until, done } => {
                self.queue.hurry(now);
                self.drain = Some((until, done));
            }
        }
    }

    fn fill_lanes(&mut self) {
        let now = Instant::now();
        self.queue.set_open(self.fence.passes(), now);
        while let Some((ticket, work)) = self.queue.next(now) {
            let sender = self.sender.clone();
            let task = self.running.spawn(async move { sender.send(work).await });
            self.tickets.insert(task.id(), ticket);
        }
    }

    fn ended(&mut self, ended: Result<(Id, Answer), JoinError>) {
        let (id, answer) = match ended {
            Ok((id, answer)) => (id, answer),
            Err(error) => {
                tracing::error!(%error, "a write broke off");
                let why = "the write broke off inside the scheduler".to_owned();
                let forbidden = false;
                (error.id(), Answer::Refused { why, forbidden })
            }
        };
        if let Some(ticket) = self.tickets.remove(&id) {
            self.queue.answered(ticket, answer, Instant::now());
        }
    }

    fn tell(&mut self) {
        let outcomes = self.queue.take_outcomes().into_iter();
        for outcome in outcomes.filter(|outcome| self.tell_bound || !matches!(outcome, Outcome::Bound(_))) {
            let _ = self.outcomes.send(outcome); // Nobody is left to care.
        }
        let times = self.queue.take_times();
        if !times.is_empty() {
            report_times(&self.metrics, self.sender.clock(), &times);
        }
        let dropped = self.queue.take_dropped_events();
        if dropped > 0 {
            self.metrics.process().events_dropped(dropped);
        }
        self.set_gauges();
    }

    /// A few times a second, and when the last is written.
    fn set_gauges(&mut self) {
        let (now, busy) = (Instant::now(), !self.queue.is_empty());
        let (then, was_busy) = self.gauged;
        if busy == was_busy && (!busy || now < then + GAUGES) {
            return;
        }
        self.gauged = (now, busy);
        self.metrics.binds_in_flight(self.queue.binds_in_flight());
        for (kind, waiting) in self.queue.waiting() {
            self.metrics.process().pending_writes(kind, waiting);
        }
    }

    /// When to look again although nothing happens.
    fn wake(&self) -> Instant {
        let now = Instant::now();
        let fence_look = now + FENCE_LOOK;
        let idle = now + Duration::from_secs(3600);
        let latest = if self.queue.is_empty() { idle } else { fence_look };
        let due = self.queue.due(now).unwrap_or(latest);
        due.min(latest)
    }

    /// Whether nothing is left that could be written in time.
    fn is_drained(&self) -> bool {
        let Some((until, _)) = &self.drain else {
            return false;
        };
        let due = self.queue.due(Instant::now());
        let nothing_left = self.queue.is_empty() || due.is_none_or(|due| due > *until);
        self.running.is_empty() && nothing_left
    }
}

fn report_times(metrics: &Metrics, clock: &Clock, times: &[Times]) {
    if let Some(last) = times.iter().map(|times| times.answered).max() {
        metrics.bound_at(clock.at(last));
    }
    for times in times {
        if let Some(created) = times.created {
            let at = |moment| clock.at(moment).since(created);
            metrics.task_stage(TaskStage::PreBound, at(times.sent));
            metrics.task_stage(TaskStage::Bound, at(times.answered));
        }
        if times.ready > times.ordered {
            metrics.stage_took(Stage::PreBind, times.ready - times.ordered);
        }
        metrics.stage_took(Stage::Bind, times.answered - times.sent);
    }
}

#[cfg(test)]
mod tests;
