//! The time of day: that of the machine, or that of an API server in this process which has a time of its own.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;
use volcano_api::time::Time;

/// Tells the time of day. Clones tell the same. The default is the machine's.
#[derive(Clone, Default)]
pub struct Clock {
    other: Option<Arc<dyn Fn() -> Time + Send + Sync>>,
}

impl Clock {
    /// A time of its own. It has to go as fast as the timers of the runtime do.
    pub fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Clock {
            other: Some(Arc::new(now)),
        }
    }

    /// The time of day.
    pub fn now(&self) -> Time {
        match &self.other {
            Some(now) => now(),
            None => machine_time(),
        }
    }

    /// The time of day at a moment that has passed.
    pub fn at(&self, moment: Instant) -> Time {
        let passed = i64::try_from(moment.elapsed().as_micros()).unwrap_or(i64::MAX);
        Time::from_unix_micros(self.now().unix_micros().saturating_sub(passed))
    }
}

fn machine_time() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_moment_that_has_passed_has_its_time_of_day() {
        let began = Instant::now();
        let clock = Clock::new(move || {
            let passed = i64::try_from(began.elapsed().as_micros()).unwrap();
            Time::from_unix_micros(1_000_000 + passed)
        });
        let moment = Instant::now();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), Time::from_unix_micros(6_000_000));
        assert_eq!(clock.at(moment), Time::from_unix_micros(1_000_000));
    }
}
