//! When the next cycle starts: soon after a change, not too often under load, and at the latest after the period.

use std::time::Duration;
use tokio::time::Instant;

/// Changes that arrive together are decided together.
const BATCH: Duration = Duration::from_millis(2);
/// The longest rest after a long cycle.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// The pace of cycles.
#[derive(Clone, Debug)]
pub struct Pace {
    period: Duration,
    /// When the first change since the last cycle came.
    news_at: Option<Instant>,
    ended_at: Instant,
    took: Duration,
}

impl Pace {
    /// At least one cycle per period.
    pub fn new(period: Duration, now: Instant) -> Self {
        Pace {
            period,
            news_at: None,
            ended_at: now,
            took: Duration::ZERO,
        }
    }

    /// Something changed that could change a decision.
    pub fn news(&mut self, now: Instant) {
        self.news_at.get_or_insert(now);
    }

    /// A cycle is over.
    pub fn ended(&mut self, began: Instant, now: Instant) {
        self.news_at = None;
        self.ended_at = now;
        self.took = now.saturating_duration_since(began);
    }

    /// When the next cycle starts. After a long cycle the engine rests as long as it worked, so that changes are
    /// taken in and decided in larger batches when there are many.
    pub fn next(&self) -> Instant {
        let latest = self.ended_at + self.period;
        match self.news_at {
            Some(at) => (at + BATCH)
                .max(self.ended_at + self.took.min(LONGEST_REST))
                .min(latest),
            None => latest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_followed_by_a_cycle_within_milliseconds_and_silence_by_one_after_the_period() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut pace = Pace::new(ms(1000), start);
        assert_eq!(pace.next(), start + ms(1000));
        pace.news(start + ms(10));
        pace.news(start + ms(11));
        assert_eq!(pace.next(), start + ms(12), "from the first change on");
        pace.ended(start + ms(12), start + ms(13));
        assert_eq!(pace.next(), start + ms(1013));
        pace.news(start + ms(13));
        assert_eq!(pace.next(), start + ms(15));
    }

    #[test]
    fn after_a_long_cycle_there_is_a_rest_but_never_longer_than_the_period() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut pace = Pace::new(ms(1000), start);
        pace.ended(start, start + ms(40));
        pace.news(start + ms(40));
        assert_eq!(pace.next(), start + ms(80));
        pace.ended(start, start + ms(900));
        pace.news(start + ms(900));
        assert_eq!(pace.next(), start + ms(1000));
        let mut short = Pace::new(ms(20), start);
        short.ended(start, start + ms(90));
        short.news(start + ms(90));
        assert_eq!(short.next(), start + ms(110));
    }
}
