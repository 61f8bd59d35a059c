//! Things to look at again at a certain time.

use std::collections::BTreeMap;
use tokio::time::Instant;

/// Things by the time they are due, in the order they were set among equals.
pub struct Timers<T> {
    by_time: BTreeMap<(Instant, u64), T>,
    count: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Timers {
            by_time: BTreeMap::new(),
            count: 0,
        }
    }
}

/// Where a thing is, to take it out again.
pub type Spot = (Instant, u64);

impl<T> Timers<T> {
    pub fn set(&mut self, due: Instant, thing: T) -> Spot {
        self.count += 1;
        self.by_time.insert((due, self.count), thing);
        (due, self.count)
    }

    pub fn cancel(&mut self, spot: Spot) -> Option<T> {
        self.by_time.remove(&spot)
    }

    /// When the first is due.
    pub fn due(&self) -> Option<Instant> {
        self.by_time.keys().next().map(|(due, _)| *due)
    }

    /// The first, if it is due.
    pub fn first(&self, now: Instant) -> Option<&T> {
        let ((due, _), thing) = self.by_time.first_key_value()?;
        (*due <= now).then_some(thing)
    }

    /// Takes the first out if it is due.
    pub fn expired(&mut self, now: Instant) -> Option<T> {
        let first = self.by_time.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub fn clear(&mut self) {
        self.by_time.clear();
    }
}

/// The earlier of two times, where each may be missing.
pub fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn things_come_out_when_due_and_in_order() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut timers = Timers::default();
        timers.set(at(20), "b");
        let gone = timers.set(at(5), "gone");
        timers.set(at(10), "a");
        timers.set(at(20), "c");
        assert_eq!(timers.cancel(gone), Some("gone"));
        assert_eq!(timers.cancel(gone), None);
        assert_eq!(timers.due(), Some(at(10)));
        assert_eq!(timers.expired(at(9)), None);
        let all: Vec<_> = std::iter::from_fn(|| timers.expired(at(20))).collect();
        assert_eq!(all, ["a", "b", "c"]);
        assert_eq!(timers.due(), None);
    }
}
