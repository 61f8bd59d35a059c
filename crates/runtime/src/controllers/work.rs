//! What is to be looked at, and when: a state machine without I/O, to which time is an argument.
//!
//! ```text
//!            add, at                 next                      settled
//!  idle ───────────────> waiting ───────────> being worked on ──────────> idle, or waiting for its time
//!                           ^                        │ failed
//!                           └── longer each time ────┘
//! ```
//!
//! A key is in here once, however often something changes for it. What changes while it is worked on has it looked at
//! again afterwards.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;
use tokio::time::Instant;

/// The wait after the first failure; twice as long after each further one.
const FIRST_WAIT: Duration = Duration::from_millis(5);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(1000);
/// News of something that failed shorten the wait to this: they may be what it waits for, but come by the thousand.
const WAIT_WITH_NEWS: Duration = Duration::from_secs(1);

/// Keys that are to be looked at.
pub struct WorkQueue<K> {
    items: FxHashMap<K, Item>,
    /// By time, and in the order they came among equals.
    line: BTreeMap<(Instant, u64), K>,
    count: u64,
}

#[derive(Default)]
struct Item {
    /// Place in the line.
    spot: Option<(Instant, u64)>,
    is_running: bool,
    /// Something changed while it was worked on.
    is_stale: bool,
    /// News do not bring it forward before this.
    rests_until: Option<Instant>,
    /// Failures in a row, of any kind.
    failures: u32,
    /// Those of them that are nobody's fault but its own.
    refusals: u32,
}

/// A failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// Whether it will be the same the next time: it counts against the limit of retries.
    pub is_refusal: bool,
    /// When the API server asks to be tried again.
    pub retry_after: Duration,
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        WorkQueue {
            items: FxHashMap::default(),
            line: BTreeMap::new(),
            count: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// Something changed for a key.
    pub fn add(&mut self, key: K, now: Instant) {
        let item = self.items.entry(key.clone()).or_default();
        if item.is_running {
            item.is_stale = true;
            return;
        }
        let at = item.rests_until.map_or(now, |until| until.max(now));
        self.bring_forward(key, at);
    }

    /// Looks at a key at a time, or earlier.
    fn bring_forward(&mut self, key: K, at: Instant) {
        let item = self.items.entry(key.clone()).or_default();
        if item.spot.is_some_and(|(due, _)| due <= at) {
            return;
        }
        if let Some(spot) = item.spot {
            self.line.remove(&spot);
        }
        self.count += 1;
        let spot = (at, self.count);
        item.spot = Some(spot);
        self.line.insert(spot, key);
    }

    /// The next key whose time has come. It is worked on from now until [`settled`](Self::settled) or
    /// [`failed`](Self::failed).
    pub fn next(&mut self, now: Instant) -> Option<K> {
        let (&spot, _) = self.line.first_key_value().filter(|((due, _), _)| *due <= now)?;
        let key = self.line.remove(&spot)?;
        let item = self.items.entry(key.clone()).or_default();
        item.spot = None;
        item.is_running = true;
        item.is_stale = false;
        Some(key)
    }

    /// What was to be done for a key is done. It is looked at again `at` that time, and earlier with news, but not
    /// before it has had a `rest`: keys that take long to look at would keep all others waiting.
    pub fn settled(&mut self, key: &K, at: Option<Instant>, rest: Duration, now: Instant) {
        let Some(item) = self.items.get_mut(key) else {
            return;
        };
        let is_stale = item.is_stale;
        *item = Item {
            rests_until: (!rest.is_zero()).then(|| now + rest),
            ..Item::default()
        };
        if is_stale {
            self.add(key.clone(), now);
        }
        match at {
            Some(at) => self.bring_forward(key.clone(), at),
            None if !is_stale && rest.is_zero() => drop(self.items.remove(key)),
            None => {}
        }
    }

    /// What was to be done for a key failed: it is tried again after a while.
    pub fn failed(&mut self, key: &K, failure: Failure, now: Instant) {
        let Some(item) = self.items.get_mut(key) else {
            return;
        };
        item.is_running = false;
        item.failures = item.failures.saturating_add(1);
        item.refusals = item.refusals.saturating_add(u32::from(failure.is_refusal));
        let wait = wait_after(item.failures).max(failure.retry_after);
        let short = wait.min(WAIT_WITH_NEWS.max(failure.retry_after));
        item.rests_until = Some(now + short);
        let at = if std::mem::take(&mut item.is_stale) {
            now + short
        } else {
            now + wait
        };
        self.bring_forward(key.clone(), at);
    }

    /// Failures of a key in a row that count against the limit of retries.
    pub fn refusals(&self, key: &K) -> u32 {
        self.items.get(key).map_or(0, |item| item.refusals)
    }

    /// When the next key is due.
    pub fn due(&self) -> Option<Instant> {
        self.line.first_key_value().map(|((due, _), _)| *due)
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    /// Forgets that keys are worked on and what failed: somebody else does the work now.
    pub fn clear(&mut self) {
        *self = WorkQueue::default();
    }

    /// Forgets rests that are over. Keys of things that are gone would stay here for ever otherwise.
    pub fn tidy(&mut self, now: Instant) {
        let is_idle = |item: &Item| {
            let rests = item.rests_until.is_some_and(|until| until > now);
            item.spot.is_none() && !item.is_running && !rests
        };
        self.items.retain(|_, item| !is_idle(item));
    }
}

/// How long to wait after so many failures in a row.
fn wait_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_REST: Duration = Duration::ZERO;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Everything that is due, in order.
    fn take(queue: &mut WorkQueue<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.next(now)).collect()
    }

    #[test]
    fn a_key_is_looked_at_once_however_often_it_changes() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        for key in ["a", "b", "a", "a"] {
            queue.add(key, now);
        }
        assert_eq!(queue.waiting(), 2);
        assert_eq!(take(&mut queue, now), ["a", "b"]);
        assert_eq!(queue.due(), None);
    }

    #[test]
    fn a_key_is_never_worked_on_twice_at_once() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        queue.add("a", now);
        assert_eq!(take(&mut queue, now), ["a"]);
        queue.add("a", now);
        assert_eq!(take(&mut queue, now), [""; 0]);
        queue.settled(&"a", None, NO_REST, now);
        assert_eq!(take(&mut queue, now), ["a"], "it changed meanwhile");
        queue.settled(&"a", None, NO_REST, now);
        assert_eq!(take(&mut queue, now), [""; 0]);
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_the_longest() {
        let (mut queue, mut now) = (WorkQueue::default(), Instant::now());
        queue.add("a", now);
        for wait in [5, 10, 20, 40, 80] {
            assert_eq!(take(&mut queue, now), ["a"]);
            queue.failed(&"a", Failure::default(), now);
            assert_eq!(queue.due(), Some(now + ms(wait)));
            now += ms(wait);
        }
        assert_eq!(wait_after(40), LONGEST_WAIT);
        take(&mut queue, now);
        queue.settled(&"a", None, NO_REST, now);
        queue.add("a", now);
        take(&mut queue, now);
        queue.failed(&"a", Failure::default(), now);
        assert_eq!(queue.due(), Some(now + ms(5)), "it had worked in between");
    }

    #[test]
    fn only_refusals_count_against_the_limit() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        for is_refusal in [true, false, true] {
            queue.add("a", now);
            take(&mut queue, now + LONGEST_WAIT);
            let failure = Failure {
                is_refusal,
                ..Failure::default()
            };
            queue.failed(&"a", failure, now);
        }
        assert_eq!(queue.refusals(&"a"), 2);
        take(&mut queue, now + LONGEST_WAIT);
        queue.settled(&"a", None, NO_REST, now);
        assert_eq!(queue.refusals(&"a"), 0);
    }

    #[test]
    fn news_shorten_a_long_wait_and_no_more() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        queue.add("a", now);
        let failure = Failure {
            is_refusal: false,
            retry_after: ms(0),
        };
        for _ in 0..12 {
            take(&mut queue, now + LONGEST_WAIT);
            queue.failed(&"a", failure, now);
        }
        assert!(queue.due().is_some_and(|due| due > now + ms(5_000)));
        queue.add("a", now);
        assert_eq!(queue.due(), Some(now + WAIT_WITH_NEWS));
    }

    #[test]
    fn the_api_server_says_when_to_come_again() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        queue.add("a", now);
        take(&mut queue, now);
        let failure = Failure {
            is_refusal: false,
            retry_after: ms(3_000),
        };
        queue.failed(&"a", failure, now);
        queue.add("a", now);
        assert_eq!(queue.due(), Some(now + ms(3_000)));
    }

    #[test]
    fn timers_and_rests() {
        let (mut queue, now) = (WorkQueue::default(), Instant::now());
        queue.add("a", now);
        take(&mut queue, now);
        queue.settled(&"a", Some(now + ms(500)), ms(100), now);
        assert_eq!(queue.due(), Some(now + ms(500)), "its time");
        queue.add("a", now);
        assert_eq!(queue.due(), Some(now + ms(100)), "news, after a rest");
        assert_eq!(take(&mut queue, now + ms(100)), ["a"]);
        queue.settled(&"a", None, NO_REST, now);
        assert_eq!(
            queue.due(),
            None,
            "what it was looked at for before its time is said anew"
        );
        queue.add("b", now);
        take(&mut queue, now);
        queue.settled(&"b", None, ms(100), now);
        queue.tidy(now + ms(50));
        queue.add("b", now + ms(50));
        assert_eq!(queue.due(), Some(now + ms(100)), "still at rest");
        take(&mut queue, now + ms(100));
        queue.settled(&"b", None, ms(1), now);
        queue.tidy(now + ms(200));
        assert!(queue.items.is_empty(), "nothing is kept of keys at rest");
    }
}
