//! Events that wait to be written.
//!
//! They tell users what happens and are the least urgent of all writes: limited in rate and number, counted together
//! when they repeat, and dropped before they delay anything else.

use super::order::{Event, ObjectRef};
use super::recent::Recent;
use super::work::Answer;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The same again within this time is counted instead of told anew.
const COUNTED_FOR: Duration = Duration::from_secs(600);
/// How many events are remembered for counting.
const REMEMBERED: usize = 4096;
/// How many wait at the most.
const LONGEST_LINE: usize = 10_000;
/// Longest message that the API takes.
const LONGEST_MESSAGE: usize = 1024;
/// Longest part of an object's name in the name of its event: 253 less a dot and 16 digits.
const LONGEST_NAME: usize = 236;
/// How often a write is tried in all.
const TRIES: u8 = 3;

/// An event to be created, or its count to be raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventWrite {
    pub event: Event,
    /// Name of the Event object.
    pub name: Arc<str>,
    /// How often it happened; above 1 for an event that exists.
    pub count: u32,
    pub first: Instant,
    pub last: Instant,
    /// The Event object is there: raise its count.
    pub exists: bool,
}

/// What is to be told.
pub struct Events {
    rate: Tokens,
    warnings: VecDeque<Waiting>,
    normal: VecDeque<Waiting>,
    flying: FxHashMap<u64, Waiting>,
    seen: Recent<u64, Seen>,
    dropped: u64,
}

struct Waiting {
    key: u64,
    event: Event,
    tries: u8,
}

/// An event that was told, or is about to be.
struct Seen {
    name: Arc<str>,
    count: u32,
    first: Instant,
    last: Instant,
    /// It is in line.
    queued: bool,
    exists: bool,
}

impl Events {
    /// `per_second` over a longer time; none at all for 0.
    pub fn new(per_second: f64) -> Self {
        Events {
            rate: Tokens::new(per_second),
            warnings: VecDeque::new(),
            normal: VecDeque::new(),
            flying: FxHashMap::default(),
            seen: Recent::new(REMEMBERED),
            dropped: 0,
        }
    }

    /// Whether there is room for an event now, so that its text need not be made in vain. Counts it when there is none.
    pub fn has_room(&mut self, warning: bool, now: Instant) -> bool {
        let room = self.rate.has(warning, now);
        if !room && self.rate.per_second > 0.0 {
            self.dropped += 1;
        }
        room
    }

    /// Something to tell.
    pub fn order(&mut self, mut event: Event, now: Instant) {
        if self.rate.per_second <= 0.0 {
            return;
        }
        event.message = cut(event.message);
        let key = key(&event);
        let known = self.seen.get_mut(&key);
        let known = known.filter(|seen| now.duration_since(seen.first) < COUNTED_FOR);
        if let Some(seen) = known {
            (seen.count, seen.last) = (seen.count.saturating_add(1), now);
            if seen.queued {
                return;
            }
            if !self.rate.take(event.warning, now) {
                self.dropped += 1;
                return;
            }
            seen.queued = true;
        } else {
            if !self.rate.take(event.warning, now) {
                self.dropped += 1;
                return;
            }
            self.seen.insert(key, Seen::new(&event.object, now));
        }
        // One that is being written stands in line again when it is answered.
        if !self.flying.contains_key(&key) {
            self.push(Waiting { key, event, tries: 0 });
        }
    }

    fn push(&mut self, waiting: Waiting) {
        if self.len() >= LONGEST_LINE {
            let dropped = self.normal.pop_front().or_else(|| self.warnings.pop_front());
            if let Some(dropped) = dropped {
                self.seen.remove(&dropped.key);
                self.dropped += 1;
            }
        }
        if waiting.event.warning {
            self.warnings.push_back(waiting);
        } else {
            self.normal.push_back(waiting);
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.warnings.len() + self.normal.len()
    }

    /// The next to be written, warnings first.
    pub fn next(&mut self, now: Instant) -> Option<(u64, EventWrite)> {
        let waiting = self.warnings.pop_front().or_else(|| self.normal.pop_front())?;
        let key = waiting.key;
        if self.seen.get(&key).is_none() {
            // Forgotten while it waited in a long line.
            self.seen.insert(key, Seen::new(&waiting.event.object, now));
        }
        let seen = self.seen.get_mut(&key)?;
        seen.queued = false;
        let write = EventWrite {
            event: waiting.event.clone(),
            name: seen.name.clone(),
            count: seen.count,
            first: seen.first,
            last: seen.last,
            exists: seen.exists,
        };
        self.flying.insert(key, waiting);
        Some((key, write))
    }

    pub fn answered(&mut self, key: u64, answer: &Answer) {
        let Some(mut waiting) = self.flying.remove(&key) else {
            return;
        };
        let again = match answer {
            Answer::Done { .. } => {
                waiting.tries = 0;
                self.seen.get_mut(&key).is_some_and(|seen| {
                    seen.exists = true;
                    seen.queued
                })
            }
            Answer::Later { .. } => {
                waiting.tries += 1;
                waiting.tries < TRIES
            }
            _ => false,
        };
        if again {
            if let Some(seen) = self.seen.get_mut(&key) {
                seen.queued = true;
                self.push(waiting);
            }
        } else if !matches!(answer, Answer::Done { .. }) {
            self.seen.remove(&key);
        }
    }

    /// How many were dropped since this was asked last.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// The lease is lost.
    pub fn clear(&mut self) {
        self.warnings.clear();
        self.normal.clear();
        self.seen.clear();
    }
}

impl Seen {
    fn new(object: &ObjectRef, now: Instant) -> Self {
        let name = prefix(&object.name, LONGEST_NAME);
        Seen {
            name: format!("{name}.{:016x}", fastrand::u64(..)).into(),
            count: 1,
            first: now,
            last: now,
            queued: true,
            exists: false,
        }
    }
}

/// A bucket of tokens whose last fifth is for warnings.
struct Tokens {
    per_second: f64,
    burst: f64,
    left: f64,
    filled: Option<Instant>,
}

impl Tokens {
    fn new(per_second: f64) -> Self {
        let burst = (per_second * 10.0).max(100.0);
        Tokens {
            per_second,
            burst,
            left: burst,
            filled: None,
        }
    }

    fn has(&mut self, warning: bool, now: Instant) -> bool {
        let passed = self.filled.map_or(0.0, |at| now.duration_since(at).as_secs_f64());
        self.left = (self.left + passed * self.per_second).min(self.burst);
        self.filled = Some(now);
        let kept_back = if warning { 0.0 } else { self.burst / 5.0 };
        self.per_second > 0.0 && self.left >= kept_back + 1.0
    }

    fn take(&mut self, warning: bool, now: Instant) -> bool {
        let has = self.has(warning, now);
        if has {
            self.left -= 1.0;
        }
        has
    }
}

fn key(event: &Event) -> u64 {
    let mut hasher = FxHasher::default();
    event.object.hash(&mut hasher);
    event.warning.hash(&mut hasher);
    event.reason.hash(&mut hasher);
    event.message.hash(&mut hasher);
    hasher.finish()
}

fn cut(message: Arc<str>) -> Arc<str> {
    if message.len() <= LONGEST_MESSAGE {
        return message;
    }
    prefix(&message, LONGEST_MESSAGE).into()
}

/// The longest prefix of whole characters that has no more bytes.
fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
