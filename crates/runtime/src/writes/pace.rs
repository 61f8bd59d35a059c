//! How many requests of a kind may be under way: fewer while they fail, more again when they succeed.
//!
//! A request that fails is tried again later on its own. Without a common pace the thousands that wait behind it would
//! each be sent once to a server that is already in trouble. Each kind has its own pace, since kinds fail apart from
//! each other: a webhook that is down stops the writes of PodGroups, and must not slow down binds.

use crate::backoff::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// Pauses when even one at a time fails.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Halves with a failure, grows by one with a success.
pub struct Pace {
    most: usize,
    window: usize,
    /// So many failures are of requests that were under way at the last cut, and count with it.
    counted: usize,
    paused_until: Option<Instant>,
    pauses: Backoff,
}

impl Pace {
    pub fn new(most: usize) -> Self {
        Pace {
            most,
            window: most,
            counted: 0,
            paused_until: None,
            pauses: Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE),
        }
    }

    /// Whether another may be sent while so many are under way.
    pub fn allows(&self, flying: usize, now: Instant) -> bool {
        flying < self.window && self.paused_until.is_none_or(|until| until <= now)
    }

    /// When the pause ends, if there is one.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| *until > now)
    }

    /// The server answered, whatever it said.
    pub fn answered(&mut self) {
        self.window = (self.window + 1).min(self.most);
        self.counted = self.counted.saturating_sub(1);
        self.paused_until = None;
        self.pauses.reset();
    }

    /// The server did not answer, or said that it cannot now, while so many others are under way.
    pub fn failed(&mut self, flying: usize, now: Instant, retry_after: Option<Duration>) {
        if self.counted > 0 {
            self.counted -= 1;
        } else {
            self.window = (self.window / 2).max(1);
            self.counted = flying;
        }
        if self.window == 1 && self.due(now).is_none() {
            let pause = self.pauses.wait().max(retry_after.unwrap_or_default());
            self.paused_until = Some(now + pause.min(LONGEST_PAUSE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn failures_of_one_moment_count_once_and_success_grows_by_one() {
        let now = Instant::now();
        let mut pace = Pace::new(64);
        assert!(pace.allows(63, now) && !pace.allows(64, now));
        for flying in (0..64).rev() {
            pace.failed(flying, now, None);
        }
        assert!(pace.allows(31, now) && !pace.allows(32, now));
        pace.failed(0, now, None);
        assert!(pace.allows(15, now) && !pace.allows(16, now));
        for _ in 0..16 {
            pace.answered();
        }
        pace.answered();
        assert!(pace.allows(32, now) && !pace.allows(33, now));
        for _ in 0..100 {
            pace.answered();
        }
        assert!(!pace.allows(64, now));
    }

    #[test]
    fn when_one_at_a_time_fails_nothing_is_sent_for_a_growing_while() {
        let mut now = Instant::now();
        let mut pace = Pace::new(2);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            pace.failed(0, now, None);
            let until = pace.due(now).unwrap();
            assert!(!pace.allows(0, now) && pace.allows(0, until) && !pace.allows(1, until));
            pauses.push(until - now);
            now = until;
        }
        assert!(pauses[0] <= ms(100) && pauses[9] >= ms(2500), "{pauses:?}");
        pace.answered();
        assert!(pace.allows(1, now));
    }

    #[test]
    fn the_pause_that_the_server_asks_for_is_kept_up_to_a_limit() {
        let now = Instant::now();
        for (asked, kept) in [(ms(2000), ms(2000)), (Duration::from_secs(3600), LONGEST_PAUSE)] {
            let mut pace = Pace::new(1);
            pace.failed(0, now, Some(asked));
            assert_eq!(pace.due(now), Some(now + kept));
        }
    }
}
