//! Statuses that wait to be written: of PodGroups, pods, queues and NodeShards; and gates of pods.
//!
//! Only the latest value of an object is kept, and each kind has a rule for how soon it may follow the last one:
//!
//! | kind | rule |
//! |---|---|
//! | PodGroup | not while its binds are under way, as they bring the final status anyway: that saves a write per gang; the first one after a time that depends on who manages the group; the same phase again after a second |
//! | pod | the first after a moment; the same reason again after a few seconds: messages with numbers in them change all the time |
//! | queue, NodeShard | once a second |
//! | gate of a pod | at once |
//!
//! A value that equals the last one is written again only after a few seconds. It is ordered when somebody else has
//! changed the object since, so it must be written in the end, and the API server stores no change where there is none.

use super::order::{GroupStatus, JobKey, PodCondition, PodRef, QueueStatus, ShardStatus};
use super::recent::Recent;
use super::slots::Slots;
use super::work::Answer;
use crate::backoff::growing;
use rustc_hash::FxHasher;
use serde_json::Value;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::names::reasons;

/// An equal value is written again after this time.
const REPEAT: Duration = Duration::from_secs(5);
/// A pod's condition with the same reason is written again after this time.
const SAME_REASON: Duration = Duration::from_secs(5);
/// A PodGroup's status of the same phase is written again after this time: its numbers change with every pod.
const SAME_PHASE: Duration = Duration::from_secs(1);
/// Why a pod waits is written after this time at the earliest: while the pods of a gang are being made, each waits for
/// the others and is bound a moment later.
const FIRST_CONDITION: Duration = Duration::from_millis(300);
/// A queue's status is written again after this time.
const QUEUE_INTERVAL: Duration = Duration::from_secs(1);
/// The pods of a bind come back through the watch, and a cycle makes a new status of them, in about this time.
pub const AFTER_BINDS: Duration = Duration::from_millis(150);
/// A PodGroup's status waits for binds that go on. Those that were sent so long ago, or wait for a volume, are not waited for.
const STUCK: Duration = Duration::from_secs(2);
/// The longest that a PodGroup's status waits for binds, however they go on.
const LONGEST_WAIT_FOR_BINDS: Duration = Duration::from_secs(30);
/// Waits after a failure that may pass soon.
const SOON: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// Waits after a refusal: somebody has to change something first.
const AFTER_REFUSAL: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// How many objects are remembered per kind.
const REMEMBERED: usize = 100_000;

/// What was written last for an object.
struct Written {
    at: Instant,
    /// Of the whole value.
    hash: u64,
    /// Of what makes a value urgent when it changes.
    reason: u64,
}

/// The statuses of one kind.
pub struct Statuses<V> {
    slots: Slots<V>,
    written: Recent<Arc<str>, Written>,
}

impl<V: Status> Default for Statuses<V> {
    fn default() -> Self {
        Statuses {
            slots: Slots::default(),
            written: Recent::new(REMEMBERED),
        }
    }
}

/// What the kinds differ in.
pub trait Status {
    /// All of the value.
    fn hash_value(&self, hasher: &mut FxHasher);
    /// What makes the value urgent when it changes.
    fn hash_reason(&self, hasher: &mut FxHasher);
    /// How soon it may follow the last one, when that had the same reason.
    const INTERVAL: Duration;
    /// How long the first value waits: what is true for a moment only need not be told.
    fn settles(&self) -> Duration {
        Duration::ZERO
    }
    /// Takes over what the value that it replaces was still to do.
    fn replace(&mut self, _older: &Self) {}
}

impl Status for GroupStatus {
    const INTERVAL: Duration = SAME_PHASE;

    fn hash_value(&self, hasher: &mut FxHasher) {
        self.hash_reason(hasher);
        hash_json(&self.status, hasher);
    }

    fn hash_reason(&self, hasher: &mut FxHasher) {
        self.uid.hash(hasher);
        hash_json(&self.status["phase"], hasher);
    }

    fn settles(&self) -> Duration {
        self.settles
    }
}

impl Status for PodCondition {
    const INTERVAL: Duration = SAME_REASON;

    fn hash_value(&self, hasher: &mut FxHasher) {
        self.message.hash(hasher);
        self.hash_reason(hasher);
    }

    fn hash_reason(&self, hasher: &mut FxHasher) {
        self.reason.hash(hasher);
        self.nominated.hash(hasher);
    }

    /// A node that is being freed for a pod is written at once: that must outlive a crash.
    fn settles(&self) -> Duration {
        let waits = self.nominated.is_none() && self.reason != reasons::SCHEDULER_ERROR;
        if waits { FIRST_CONDITION } else { Duration::ZERO }
    }

    /// A nomination is decided once: it stays to be written, or to be taken back, until that is done.
    fn replace(&mut self, older: &Self) {
        if self.nominated.is_none() {
            self.nominated.clone_from(&older.nominated);
        }
    }
}

impl Status for QueueStatus {
    const INTERVAL: Duration = QUEUE_INTERVAL;

    fn hash_value(&self, hasher: &mut FxHasher) {
        hash_json(&self.allocated, hasher);
    }

    fn hash_reason(&self, _hasher: &mut FxHasher) {}

    /// A resource to be removed stays one to be removed until that is written.
    fn replace(&mut self, older: &Self) {
        let (Some(new), Some(old)) = (self.allocated.as_object_mut(), older.allocated.as_object()) else {
            return;
        };
        for (resource, _) in old.iter().filter(|(_, amount)| amount.is_null()) {
            if !new.contains_key(resource) {
                new.insert(resource.clone(), Value::Null);
            }
        }
    }
}

impl Status for ShardStatus {
    const INTERVAL: Duration = QUEUE_INTERVAL;

    fn hash_value(&self, hasher: &mut FxHasher) {
        self.hash(hasher);
    }

    fn hash_reason(&self, _hasher: &mut FxHasher) {}
}

/// That a pod is to lose its gate: there is nothing to differ in.
impl Status for PodRef {
    const INTERVAL: Duration = REPEAT;

    fn hash_value(&self, hasher: &mut FxHasher) {
        self.hash(hasher);
    }

    fn hash_reason(&self, _hasher: &mut FxHasher) {}
}

impl<V: Status> Statuses<V> {
    /// A value to be written.
    pub fn order(&mut self, key: &Arc<str>, mut value: V, now: Instant) {
        if let Some(older) = self.slots.latest(key) {
            value.replace(older);
        }
        let due = match self.allowed(key, &value) {
            Some(allowed) => allowed,
            None if self.is_first(key) => self.slots.waits_since(key).unwrap_or(now) + value.settles(),
            None => now,
        };
        let due = due.max(now);
        self.slots.put(key, value, due, now);
    }

    /// When the value may be written at the earliest.
    fn allowed(&self, key: &Arc<str>, value: &V) -> Option<Instant> {
        let last = self.written.get(key)?;
        let (hash, reason) = hashes(value);
        if hash == last.hash {
            return Some(last.at + REPEAT.max(V::INTERVAL));
        }
        (reason == last.reason).then(|| last.at + V::INTERVAL)
    }

    /// The value that waits was ordered before the last one was written: it keeps its distance from it.
    fn space_out(&mut self, key: &Arc<str>) {
        let newer = self.slots.latest(key);
        if let Some(allowed) = newer.and_then(|newer| self.allowed(key, newer)) {
            self.slots.not_before(key, allowed);
        }
    }

    /// Whether nothing is known to have been written for the object.
    pub fn is_first(&self, key: &Arc<str>) -> bool {
        self.written.get(key).is_none()
    }

    /// The object of the first value that is due.
    pub fn first(&mut self, now: Instant) -> Option<Arc<str>> {
        self.slots.first(now)
    }

    /// Takes the value of an object to write it.
    pub fn take(&mut self, key: &Arc<str>) -> Option<Arc<V>> {
        self.slots.take(key)
    }

    /// What came of a write. Returns the value, unless it is sent again soon.
    pub fn answered(&mut self, key: &Arc<str>, answer: &Answer, now: Instant) -> Option<Arc<V>> {
        match answer {
            Answer::Done { .. } => {
                let value = self.slots.done(key)?;
                let (hash, reason) = hashes(&*value);
                let at = now;
                self.written.insert(key.clone(), Written { at, hash, reason });
                self.space_out(key);
                Some(value)
            }
            Answer::Gone | Answer::Taken { .. } | Answer::Fenced => {
                self.written.remove(key);
                self.slots.done(key)
            }
            Answer::Later { retry_after, .. } => {
                let asked = retry_after.unwrap_or_default();
                let again = |failures| now + growing(SOON.0, SOON.1, failures).max(asked.min(SOON.1));
                self.slots.failed(key, now, true, again);
                None
            }
            Answer::Refused { forbidden, .. } => {
                let value = self.slots.flying(key);
                let again = |failures| now + growing(AFTER_REFUSAL.0, AFTER_REFUSAL.1, failures);
                self.slots.failed(key, now, *forbidden, again);
                value
            }
        }
    }

    pub fn is_flying(&self, key: &str) -> bool {
        self.slots.is_flying(key)
    }

    pub fn forget(&mut self, key: &str) {
        self.slots.forget(key);
    }

    pub fn rush(&mut self, now: Instant) {
        self.slots.rush(now);
    }

    /// The lease is lost: others write from now on.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.written.clear();
    }

    pub fn due(&self) -> Option<Instant> {
        self.slots.due()
    }

    /// How many objects have a status that waits or is being written.
    pub fn len(&self) -> usize {
        self.slots.len()
    }
}

impl Statuses<GroupStatus> {
    /// Whether a due status waits on since binds of its gang are under way, which went on last then. If so, it is due again
    /// when it has waited long enough.
    pub fn wait_for_binds(&mut self, job: &JobKey, moved: Instant, now: Instant) -> bool {
        self.wait_until(job, moved + STUCK, now)
    }

    /// The same when the binds have ended a moment ago.
    pub fn wait_after_binds(&mut self, job: &JobKey, ended: Instant, now: Instant) -> bool {
        self.wait_until(job, ended + AFTER_BINDS, now)
    }

    fn wait_until(&mut self, job: &JobKey, until: Instant, now: Instant) -> bool {
        let Some(since) = self.slots.waits_since(job) else {
            return false;
        };
        let until = until.min(since + LONGEST_WAIT_FOR_BINDS);
        if until > now {
            self.slots.postpone(job, until);
        }
        until > now
    }

    /// The binds of a gang have ended: a status that waits for them may be written soon.
    pub fn binds_ended(&mut self, job: &JobKey, ended: Instant) {
        self.wait_until(job, ended + AFTER_BINDS, ended);
    }
}

fn hashes<V: Status>(value: &V) -> (u64, u64) {
    let (mut whole, mut reason) = (FxHasher::default(), FxHasher::default());
    value.hash_value(&mut whole);
    value.hash_reason(&mut reason);
    (whole.finish(), reason.finish())
}

fn hash_json(value: &Value, hasher: &mut FxHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(hasher),
        Value::Number(value) => value.hash(hasher),
        Value::String(value) => value.hash(hasher),
        Value::Array(values) => values.iter().for_each(|value| hash_json(value, hasher)),
        Value::Object(fields) => {
            for (name, value) in fields {
                name.hash(hasher);
                hash_json(value, hasher);
            }
        }
    }
}
