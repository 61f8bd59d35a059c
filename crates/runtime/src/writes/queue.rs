//! What is written next: a state machine without I/O or clock.
//!
//! ```text
//! orders ──> Queue ──next──> request
//!             ^  │
//!   answer ───┘  └──> outcomes
//! ```
//! Urgent are binds, the claims they need, and evictions: pods wait for them. Statuses and events are relaxed. While
//! urgent work waits, relaxed work waits too; when that goes on for long, it gets a small share of the lanes, enough that it
//! does not starve.

use super::Settings;
use super::events::Events;
use super::evict::{Ended, Evictions};
use super::gang::{Gangs, Note, Times};
use super::order::{
    Event, Eviction, GangBind, GroupStatus, JobKey, ObjectRef, Order, Outcome, PodCondition, PodRef,
    QueueStatus, ShardStatus,
};
use super::pace::Pace;
use super::status::{AFTER_BINDS, Statuses};
use super::timers::{Timers, earlier};
use super::work::{Answer, Kind, Ticket, Work};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::names::{events, reasons};

/// Relaxed work waits so long at the most for urgent work to be done. A burst of ten thousand binds is over by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// Events wait longer: they are only told.
const PATIENCE_OF_EVENTS: Duration = Duration::from_secs(10);
/// After that one lane of so many is for relaxed work while urgent work waits; of those, one of so many is for events.
const SHARE: usize = 32;
const EVENTS_SHARE: usize = 64;
/// One lane of so many stays free for urgent work, so that a bind need not wait for slow events to be answered.
const KEPT_FREE: usize = 4;
/// Of pods that could not be bound or evicted, one in this time is logged; the others are for those who look closer.
const TELL_AGAIN: Duration = Duration::from_secs(10);

const URGENT: [Kind; 3] = [Kind::Step, Kind::Evict, Kind::Bind];
const STATUSES: [Kind; 5] = [Kind::Group, Kind::Condition, Kind::Queue, Kind::Shard, Kind::Gate];

/// Everything that waits to be written, and what is known of what is being written.
pub struct Queue {
    lanes: usize,
    gangs: Gangs,
    evictions: Evictions,
    groups: Statuses<GroupStatus>,
    conditions: Statuses<PodCondition>,
    queues: Statuses<QueueStatus>,
    shards: Statuses<ShardStatus>,
    gates: Statuses<PodRef>,
    events: Events,
    flying: [usize; Kind::COUNT],
    pace: [Pace; Kind::COUNT],
    /// Whose turn it is among urgent work and among statuses.
    turns: [usize; 2],
    /// Since when every lane is taken and urgent work may be waiting for one.
    pressed_since: Option<Instant>,
    /// Gangs whose binds ended a moment ago.
    ended: FxHashMap<JobKey, Instant>,
    forget_ended: Timers<JobKey>,
    /// When a failure was logged last.
    told: Option<Instant>,
    open: bool,
    hurried: bool,
    outcomes: Vec<Outcome>,
    bound: Vec<Times>,
}

impl Queue {
    pub fn new(settings: &Settings) -> Self {
        let lanes = settings.lanes.max(1);
        Queue {
            lanes,
            gangs: Gangs::new(settings.bind_timeout),
            evictions: Evictions::default(),
            groups: Statuses::default(),
            conditions: Statuses::default(),
            queues: Statuses::default(),
            shards: Statuses::default(),
            gates: Statuses::default(),
            events: Events::new(settings.event_qps),
            flying: [0; Kind::COUNT],
            pace: std::array::from_fn(|_| Pace::new(lanes)),
            turns: [0; 2],
            pressed_since: None,
            ended: FxHashMap::default(),
            forget_ended: Timers::default(),
            told: None,
            open: true,
            hurried: false,
            outcomes: Vec::new(),
            bound: Vec::new(),
        }
    }

    /// Takes an order.
    pub fn order(&mut self, order: Order, now: Instant) {
        if !self.open {
            return self.turn_away(order);
        }
        match order {
            Order::Bind(gang) => {
                for bind in &gang.binds {
                    self.conditions.forget(&bind.pod.uid);
                }
                self.gangs.order(gang, now);
            }
            Order::Resume(job, pause) => self.gangs.resume(&job, pause),
            Order::Release(job, pause) => self.gangs.release(&job, pause, now),
            Order::PodGone(uid) => self.gangs.pod_gone(&uid, now),
            Order::NodeGone(node) => self.gangs.node_gone(&node, now),
            Order::Claim(claim, state) => self.gangs.claim(&claim, &state, now),
            Order::Evict(eviction) => self.evict(eviction, now),
            Order::GroupStatus(status) => self.groups.order(&status.job.clone(), status, now),
            Order::PodCondition(condition) => {
                if !self.gangs.has(&condition.pod.uid) {
                    let uid = condition.pod.uid.clone();
                    self.conditions.order(&uid, condition, now);
                }
            }
            Order::QueueStatus(status) => self.queues.order(&status.name.clone(), status, now),
            Order::ShardStatus(status) => self.shards.order(&status.name.clone(), status, now),
            Order::OpenGate(pod) => self.gates.order(&pod.uid.clone(), pod, now),
            Order::Event(event) => self.events.order(event, now),
        }
        self.take_notes(now);
    }

    /// The lease is not held: nothing is written.
    fn turn_away(&mut self, order: Order) {
        match order {
            Order::Bind(gang) => {
                let GangBind { job, binds, .. } = gang;
                self.outcomes
                    .extend(binds.into_iter().map(|bind| Outcome::BindFailed {
                        pod: bind.pod,
                        job: job.clone(),
                        paused: None,
                    }));
            }
            Order::Evict(eviction) => self.outcomes.push(Outcome::EvictFailed(eviction.pod)),
            _ => {}
        }
    }

    fn evict(&mut self, eviction: Eviction, now: Instant) {
        let (pod, reason) = (eviction.pod.clone(), eviction.reason);
        if self.evictions.order(eviction) {
            let message = evicted_because_of(reason);
            self.tell(&pod, true, events::EVICT, message, now);
        }
    }

    /// Says whether the lease is held. When it is lost, everything that waits is dropped.
    pub fn set_open(&mut self, open: bool, now: Instant) {
        self.open = open;
        if open {
            return;
        }
        self.gangs.clear();
        self.take_notes(now);
        for pod in self.evictions.clear() {
            self.outcomes.push(Outcome::EvictFailed(pod));
        }
        self.groups.clear();
        self.conditions.clear();
        self.queues.clear();
        self.shards.clear();
        self.gates.clear();
        self.events.clear();
    }

    /// The process ends: nothing waits for its time any more.
    pub fn hurry(&mut self, now: Instant) {
        self.hurried = true;
        self.gangs.hurry(now);
        self.groups.rush(now);
        self.conditions.rush(now);
        self.queues.rush(now);
        self.shards.rush(now);
        self.gates.rush(now);
        self.take_notes(now);
    }

    /// The next write, if there is one and a lane for it. Its answer is to be told to [`Queue::answered`].
    pub fn next(&mut self, now: Instant) -> Option<(Ticket, Work)> {
        self.tick(now);
        let flying: usize = self.flying.iter().sum();
        let urgent: usize = URGENT.iter().map(|kind| self.flying[*kind as usize]).sum();
        if !self.open {
            return None;
        }
        if flying >= self.lanes {
            if urgent > 0 {
                self.pressed_since.get_or_insert(now);
            }
            return None;
        }
        let relaxed = flying - urgent;
        let share = (self.lanes / SHARE).max(1);
        let most = (self.lanes - self.lanes / KEPT_FREE).max(1);
        let mut next = None;
        let pressed = self.pressed_since.map_or(Duration::ZERO, |since| now - since);
        if pressed >= PATIENCE && relaxed < share {
            let events = match pressed >= PATIENCE_OF_EVENTS {
                true => (self.lanes / EVENTS_SHARE).max(1),
                false => 0,
            };
            next = self.next_relaxed(events, now);
        }
        next = next.or_else(|| self.next_urgent(now));
        if next.is_none() {
            self.pressed_since = None;
            if relaxed < most {
                next = self.next_relaxed(most, now);
            }
        }
        if let Some((ticket, _)) = &next {
            self.flying[ticket.kind() as usize] += 1;
        }
        next
    }

    fn tick(&mut self, now: Instant) {
        self.gangs.tick(now);
        self.evictions.tick(now);
        while let Some(job) = self.forget_ended.expired(now) {
            if self
                .ended
                .get(&job)
                .is_some_and(|ended| *ended + AFTER_BINDS <= now)
            {
                self.ended.remove(&job);
            }
        }
        self.take_notes(now);
    }

    fn allows(&self, kind: Kind, now: Instant) -> bool {
        self.pace[kind as usize].allows(self.flying[kind as usize], now)
    }

    fn next_urgent(&mut self, now: Instant) -> Option<(Ticket, Work)> {
        for shift in 0..URGENT.len() {
            let turn = (self.turns[0] + shift) % URGENT.len();
            let kind = URGENT[turn];
            if !self.allows(kind, now) {
                continue;
            }
            let next = match kind {
                Kind::Step => self
                    .gangs
                    .next_step(now)
                    .map(|(id, work)| (Ticket::Step(id), work)),
                Kind::Evict => self
                    .evictions
                    .next(now)
                    .map(|(uid, work)| (Ticket::Evict(uid), work)),
                _ => {
                    let conditions = &self.conditions;
                    let next = self.gangs.next(now, |uid| conditions.is_flying(uid));
                    next.map(|(uid, work)| (Ticket::Bind(uid), work))
                }
            };
            if next.is_some() {
                self.turns[0] = turn + 1;
                return next;
            }
        }
        None
    }

    /// Statuses in turns, then events, of which so many may be under way.
    fn next_relaxed(&mut self, events: usize, now: Instant) -> Option<(Ticket, Work)> {
        for shift in 0..STATUSES.len() {
            let turn = (self.turns[1] + shift) % STATUSES.len();
            let kind = STATUSES[turn];
            if !self.allows(kind, now) {
                continue;
            }
            let next = match kind {
                Kind::Group => self.next_group(now),
                Kind::Condition => self.next_condition(now),
                Kind::Queue => self.next_queue(now),
                Kind::Shard => self.next_shard(now),
                _ => self.next_gate(now),
            };
            if next.is_some() {
                self.turns[1] = turn + 1;
                return next;
            }
        }
        if self.flying[Kind::Event as usize] >= events || !self.allows(Kind::Event, now) {
            return None;
        }
        let (key, write) = self.events.next(now)?;
        Some((Ticket::Event(key), Work::Event(write)))
    }

    fn next_group(&mut self, now: Instant) -> Option<(Ticket, Work)> {
        loop {
            let job = self.groups.first(now)?;
            if !self.hurried && self.waits_for_binds(&job, now) {
                continue;
            }
            let value = self.groups.take(&job)?;
            return Some((Ticket::Group(job), Work::Group(value)));
        }
    }

    /// Whether the status of a gang waits for its binds. If so, it is no longer due.
    fn waits_for_binds(&mut self, job: &JobKey, now: Instant) -> bool {
        if let Some(moved) = self.gangs.moved(job, now) {
            return self.groups.wait_for_binds(job, moved, now);
        }
        match self.ended.get(job) {
            Some(ended) if now < *ended + AFTER_BINDS => self.groups.wait_after_binds(job, *ended, now),
            _ => false,
        }
    }

    fn next_condition(&mut self, now: Instant) -> Option<(Ticket, Work)> {
        let uid = self.conditions.first(now)?;
        let first = self.conditions.is_first(&uid);
        let value = self.conditions.take(&uid)?;
        Some((Ticket::Condition(uid), Work::Condition { value, first }))
    }

    fn next_queue(&mut self, now: Instant) -> Option<(Ticket, Work)> {
        let name = self.queues.first(now)?;
        let value = self.queues.take(&name)?;
        Some((Ticket::Queue(name), Work::Queue(value)))
    }

    fn next_shard(&mut self, now: Instant) -> Option<(Ticket, Work)> {
        let name = self.shards.first(now)?;
        let value = self.shards.take(&name)?;
        Some((Ticket::Shard(name), Work::Shard(value)))
    }

    fn next_gate(&mut self, now: Instant) -> Option<(Ticket, Work)> {
        let uid = self.gates.first(now)?;
        let pod = self.gates.take(&uid)?;
        Some((Ticket::Gate(uid), Work::OpenGate(pod)))
    }

    /// What came of a write.
    pub fn answered(&mut self, ticket: Ticket, answer: Answer, now: Instant) {
        let kind = ticket.kind() as usize;
        self.flying[kind] = self.flying[kind].saturating_sub(1);
        match &answer {
            Answer::Later { retry_after, .. } => self.pace[kind].failed(self.flying[kind], now, *retry_after),
            Answer::Fenced => {}
            _ => self.pace[kind].answered(),
        }
        match ticket {
            Ticket::Bind(uid) => self.gangs.answered(&uid, answer, now),
            Ticket::Step(id) => self.gangs.step_answered(id, answer, now),
            Ticket::Evict(uid) => {
                let ended = self.evictions.answered(&uid, answer, now);
                if let Some(Ended::Failed { pod, why }) = ended {
                    self.log_failure(&pod, "evicted", why.as_deref().unwrap_or_default(), now);
                    self.outcomes.push(Outcome::EvictFailed(pod));
                }
            }
            Ticket::Group(job) => self.group_answered(&job, answer, now),
            Ticket::Condition(uid) => {
                let told = matches!(answer, Answer::Done { .. } | Answer::Refused { .. });
                let value = self.conditions.answered(&uid, &answer, now);
                if let Some(value) = value.filter(|_| told) {
                    let PodCondition { pod, message, .. } = &*value;
                    self.tell(pod, true, events::FAILED_SCHEDULING, message.clone(), now);
                }
            }
            Ticket::Queue(name) => {
                self.queues.answered(&name, &answer, now);
            }
            Ticket::Shard(name) => {
                self.shards.answered(&name, &answer, now);
            }
            Ticket::Gate(uid) => {
                self.gates.answered(&uid, &answer, now);
            }
            Ticket::Event(key) => self.events.answered(key, &answer),
        }
        self.take_notes(now);
    }

    fn group_answered(&mut self, job: &JobKey, answer: Answer, now: Instant) {
        let value = self.groups.answered(job, &answer, now);
        let resource_version = match answer {
            Answer::Done { version } => version,
            Answer::Gone => None,
            _ => return,
        };
        if let Some(value) = value {
            self.outcomes.push(Outcome::GroupWritten {
                job: job.clone(),
                sequence: value.sequence,
                resource_version,
            });
        }
    }

    /// Turns what happened to binds into outcomes, conditions and events.
    fn take_notes(&mut self, now: Instant) {
        for note in self.gangs.take_notes() {
            match note {
                Note::Bound { pod, node, times } => {
                    self.bound.push(times);
                    if self.events.has_room(false, now) {
                        let PodRef { namespace, name, .. } = &pod;
                        let message = format!("Successfully assigned {namespace}/{name} to {node}");
                        self.tell(&pod, false, events::SCHEDULED, message.into(), now);
                    }
                    self.outcomes.push(Outcome::Bound(pod));
                }
                Note::Failed {
                    pod,
                    job,
                    paused,
                    message,
                } => {
                    if let Some(message) = message {
                        self.bind_failed(&pod, message, now);
                    }
                    self.outcomes.push(Outcome::BindFailed { pod, job, paused });
                }
                Note::Ended(job) => {
                    self.groups.binds_ended(&job, now);
                    self.forget_ended.set(now + AFTER_BINDS, job.clone());
                    self.ended.insert(job, now);
                }
            }
        }
    }

    fn bind_failed(&mut self, pod: &PodRef, message: String, now: Instant) {
        self.log_failure(pod, "bound", &message, now);
        let condition = PodCondition {
            pod: pod.clone(),
            reason: reasons::SCHEDULER_ERROR,
            message: message.into(),
            nominated: None,
        };
        self.conditions.order(&pod.uid, condition, now);
    }

    fn log_failure(&mut self, pod: &PodRef, what: &str, why: &str, now: Instant) {
        let PodRef { namespace, name, .. } = pod;
        if self.told.is_none_or(|at| now >= at + TELL_AGAIN) {
            self.told = Some(now);
            tracing::warn!(%namespace, %name, why, "a pod could not be {what}");
        } else {
            tracing::debug!(%namespace, %name, why, "a pod could not be {what}");
        }
    }

    fn tell(&mut self, pod: &PodRef, warning: bool, reason: &'static str, message: Arc<str>, now: Instant) {
        let object = ObjectRef {
            api_version: "v1".into(),
            kind: "Pod",
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        };
        let event = Event {
            object,
            warning,
            reason: reason.into(),
            message,
        };
        self.events.order(event, now);
    }

    /// When to look again although nothing happened. What is due already waits for a lane, and so for an answer.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let times = [
            self.gangs.due(),
            self.evictions.due(),
            self.groups.due(),
            self.conditions.due(),
            self.queues.due(),
            self.shards.due(),
            self.gates.due(),
        ];
        let pauses = self.pace.iter().map(|pace| pace.due(now));
        let times = times.into_iter().map(|due| due.filter(|due| *due > now));
        times.chain(pauses).fold(None, earlier)
    }

    /// Whether nothing waits and nothing is under way.
    pub fn is_empty(&self) -> bool {
        let waiting = self.waiting().iter().any(|(_, waiting)| *waiting > 0);
        !waiting && self.gangs.is_empty() && self.flying.iter().all(|flying| *flying == 0)
    }

    /// How much waits or is under way, by kind as in metrics.
    pub fn waiting(&self) -> [(&'static str, usize); 8] {
        [
            ("bind", self.gangs.len()),
            ("evict", self.evictions.len()),
            ("podgroup", self.groups.len()),
            ("pod-status", self.conditions.len()),
            ("queue-status", self.queues.len()),
            ("shard-status", self.shards.len()),
            ("pod", self.gates.len()),
            ("event", self.events.len()),
        ]
    }

    /// How many binds are under way.
    pub fn binds_in_flight(&self) -> usize {
        self.flying[Kind::Bind as usize]
    }

    /// Times of pods that were bound since this was asked last.
    pub fn take_times(&mut self) -> Vec<Times> {
        std::mem::take(&mut self.bound)
    }

    /// What came of orders since this was asked last.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// How many events were dropped since this was asked last.
    pub fn take_dropped_events(&mut self) -> u64 {
        self.events.take_dropped()
    }
}

/// The message of an eviction, in the event and in the pod's condition.
pub fn evicted_because_of(reason: &str) -> Arc<str> {
    format!("Pod is evicted, because of {reason}").into()
}

#[cfg(test)]
mod tests;
