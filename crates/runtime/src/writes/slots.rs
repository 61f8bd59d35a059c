//! One place for each object: a newer value replaces the one that waits there.
//!
//! ```text
//! put ──> waiting ──take──> flying ──done────> free
//!            ^                 │
//!            └──────failed─────┘   unless a newer value waits already
//! ```

use super::timers::{Spot, Timers};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tokio::time::Instant;

/// Values to be written, by object.
pub struct Slots<V> {
    slots: FxHashMap<Arc<str>, Slot<V>>,
    due: Timers<Arc<str>>,
}

struct Slot<V> {
    waiting: Option<Waiting<V>>,
    flying: Option<Arc<V>>,
    /// Failures in a row.
    failures: u32,
    /// Nothing is sent before: the last write failed in a way that another value would not change.
    hold: Option<Instant>,
}

struct Waiting<V> {
    value: Arc<V>,
    since: Instant,
    due: Instant,
    /// In the timers, unless a value is flying.
    spot: Option<Spot>,
}

impl<V> Default for Slots<V> {
    fn default() -> Self {
        Slots {
            slots: FxHashMap::default(),
            due: Timers::default(),
        }
    }
}

impl<V> Slots<V> {
    /// Has a value written when it is due, instead of the one that waits, if one does.
    pub fn put(&mut self, key: &Arc<str>, value: V, due: Instant, now: Instant) {
        let slot = self.slots.entry(key.clone()).or_insert_with(|| Slot {
            waiting: None,
            flying: None,
            failures: 0,
            hold: None,
        });
        let due = slot.hold.map_or(due, |hold| hold.max(due));
        let mut since = now;
        if let Some(old) = slot.waiting.take() {
            since = old.since;
            old.spot.map(|spot| self.due.cancel(spot));
        }
        let spot = slot.flying.is_none().then(|| self.due.set(due, key.clone()));
        slot.waiting = Some(Waiting {
            value: Arc::new(value),
            since,
            due,
            spot,
        });
    }

    /// The value that waits for an object, or the one that is being written.
    pub fn latest(&self, key: &str) -> Option<&Arc<V>> {
        let slot = self.slots.get(key)?;
        let waiting = slot.waiting.as_ref().map(|waiting| &waiting.value);
        waiting.or(slot.flying.as_ref())
    }

    /// Since when a value waits for an object.
    pub fn waits_since(&self, key: &str) -> Option<Instant> {
        let waiting = self.slots.get(key)?.waiting.as_ref()?;
        Some(waiting.since)
    }

    /// Whether a value is being written for an object.
    pub fn is_flying(&self, key: &str) -> bool {
        self.slots.get(key).is_some_and(|slot| slot.flying.is_some())
    }

    /// The value that is being written for an object.
    pub fn flying(&self, key: &str) -> Option<Arc<V>> {
        self.slots.get(key)?.flying.clone()
    }

    /// Changes when the value that waits for an object is due.
    pub fn postpone(&mut self, key: &str, due: Instant) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let due = slot.hold.map_or(due, |hold| hold.max(due));
        let Some(waiting) = slot.waiting.as_mut() else {
            return;
        };
        waiting.due = due;
        if let Some(key) = waiting.spot.take().and_then(|spot| self.due.cancel(spot)) {
            waiting.spot = Some(self.due.set(due, key));
        }
    }

    /// The value that waits for an object is due at that time or later.
    pub fn not_before(&mut self, key: &str, due: Instant) {
        let waiting = self.slots.get(key).and_then(|slot| slot.waiting.as_ref());
        if waiting.is_some_and(|waiting| waiting.due < due) {
            self.postpone(key, due);
        }
    }

    /// Forgets the value that waits for an object.
    pub fn forget(&mut self, key: &str) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if let Some(spot) = slot.waiting.take().and_then(|waiting| waiting.spot) {
            self.due.cancel(spot);
        }
        if slot.flying.is_none() {
            self.slots.remove(key);
        }
    }

    /// The object of the first value that is due.
    pub fn first(&mut self, now: Instant) -> Option<Arc<str>> {
        self.due.first(now).cloned()
    }

    /// Takes the value of an object to write it.
    pub fn take(&mut self, key: &Arc<str>) -> Option<Arc<V>> {
        let slot = self.slots.get_mut(key)?;
        let waiting = slot.waiting.take()?;
        waiting.spot.map(|spot| self.due.cancel(spot));
        slot.flying = Some(waiting.value.clone());
        slot.hold = None;
        Some(waiting.value)
    }

    /// The value that was being written is written, or need not be. Returns it.
    pub fn done(&mut self, key: &Arc<str>) -> Option<Arc<V>> {
        let slot = self.slots.get_mut(key)?;
        let value = slot.flying.take();
        (slot.failures, slot.hold) = (0, None);
        match &mut slot.waiting {
            Some(waiting) => waiting.spot = Some(self.due.set(waiting.due, key.clone())),
            None => {
                self.slots.remove(key);
            }
        }
        value
    }

    /// The value that was being written could not be. It waits again unless a newer one does, and is sent when
    /// `again` says, which is told how often it failed in a row. `hold`: a newer value waits as well.
    pub fn failed(&mut self, key: &Arc<str>, now: Instant, hold: bool, again: impl FnOnce(u32) -> Instant) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        slot.failures = slot.failures.saturating_add(1);
        let again = again(slot.failures);
        slot.hold = hold.then_some(again);
        let flown = slot.flying.take();
        match (&mut slot.waiting, flown) {
            (Some(waiting), _) => {
                let due = if hold { again.max(waiting.due) } else { waiting.due };
                waiting.due = due;
                waiting.spot = Some(self.due.set(due, key.clone()));
            }
            (None, Some(value)) => {
                slot.waiting = Some(Waiting {
                    value,
                    since: now,
                    due: again,
                    spot: Some(self.due.set(again, key.clone())),
                });
            }
            (None, None) => {
                self.slots.remove(key);
            }
        }
    }

    /// Makes everything due that waits.
    pub fn rush(&mut self, now: Instant) {
        let keys: Vec<Arc<str>> = self.slots.keys().cloned().collect();
        for key in keys {
            self.postpone(&key, now);
        }
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        self.due.clear();
        self.slots.retain(|_, slot| {
            slot.waiting = None;
            slot.flying.is_some()
        });
    }

    /// When the first value is due.
    pub fn due(&self) -> Option<Instant> {
        self.due.due()
    }

    /// How many objects have a value that waits or is being written.
    pub fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn key(name: &str) -> Arc<str> {
        name.into()
    }

    fn take_due(slots: &mut Slots<u32>, now: Instant) -> Option<(Arc<str>, u32)> {
        let key = slots.first(now)?;
        let value = slots.take(&key)?;
        Some((key, *value))
    }

    #[test]
    fn only_the_latest_value_is_written() {
        let now = Instant::now();
        let mut slots = Slots::default();
        slots.put(&key("a"), 1, now, now);
        slots.put(&key("b"), 10, now, now);
        slots.put(&key("a"), 2, now, now);
        assert_eq!(take_due(&mut slots, now), Some((key("b"), 10)));
        assert_eq!(take_due(&mut slots, now), Some((key("a"), 2)));
        assert_eq!(take_due(&mut slots, now), None);
        slots.done(&key("a"));
        slots.done(&key("b"));
        assert!(slots.len() == 0);
    }

    #[test]
    fn one_write_of_an_object_at_a_time() {
        let now = Instant::now();
        let mut slots = Slots::default();
        slots.put(&key("a"), 1, now, now);
        assert_eq!(take_due(&mut slots, now), Some((key("a"), 1)));
        slots.put(&key("a"), 2, now, now);
        slots.put(&key("a"), 3, now, now);
        assert_eq!(take_due(&mut slots, now), None);
        assert_eq!(slots.done(&key("a")).as_deref(), Some(&1));
        assert_eq!(take_due(&mut slots, now), Some((key("a"), 3)));
    }

    #[test]
    fn a_failed_value_comes_back_unless_there_is_a_newer_one() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut slots = Slots::default();
        slots.put(&key("a"), 1, now, now);
        take_due(&mut slots, now);
        slots.failed(&key("a"), now, true, |failures| {
            assert_eq!(failures, 1);
            later
        });
        assert_eq!(take_due(&mut slots, now), None);
        slots.put(&key("a"), 2, now, now);
        assert_eq!(take_due(&mut slots, now), None, "the newer value waits as well");
        assert_eq!(take_due(&mut slots, later), Some((key("a"), 2)));
        slots.put(&key("a"), 3, now, now);
        slots.failed(&key("a"), now, false, |failures| {
            assert_eq!(failures, 2);
            later
        });
        assert_eq!(take_due(&mut slots, now), Some((key("a"), 3)));
        slots.done(&key("a"));
        assert!(slots.len() == 0);
    }

    #[test]
    fn what_waits_can_be_moved_hurried_and_forgotten() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut slots = Slots::default();
        slots.put(&key("a"), 1, now, now);
        slots.postpone("a", later);
        assert_eq!((slots.due(), slots.waits_since("a")), (Some(later), Some(now)));
        slots.rush(now);
        assert_eq!(take_due(&mut slots, now), Some((key("a"), 1)));
        slots.put(&key("a"), 2, now, now);
        slots.forget("a");
        slots.done(&key("a"));
        assert!(slots.len() == 0);
        slots.put(&key("a"), 3, now, now);
        slots.clear();
        assert!(slots.len() == 0 && slots.due().is_none());
    }
}
