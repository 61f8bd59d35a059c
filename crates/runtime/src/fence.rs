//! The fence around writes: they pass while the lease is held, and not a moment longer.
//!
//! The holder of a lease stops writing before the lease can have passed to another: the election moves the fence's
//! deadline with every renewal, and each write looks at it just before it is sent. What was decided before the lease was
//! lost does not pass either when the lease is won again: another one may have written in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shared by the election, which moves it, and the writers, which look at it.
#[derive(Clone, Debug)]
pub struct Fence {
    state: Arc<State>,
    began: Instant,
    /// The epoch in which this handle lets writes pass; none for every one.
    epoch: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// Milliseconds after `began` until which writes pass.
    until: AtomicU64,
    /// How often the fence was closed: nothing that was decided before passes after it.
    epoch: AtomicU64,
}

impl Fence {
    /// A fence that lets everything through: there is no election.
    pub fn open() -> Self {
        let fence = Fence::closed();
        fence.state.until.store(u64::MAX, Ordering::Release);
        fence
    }

    /// A fence that lets nothing through until the lease is held.
    pub fn closed() -> Self {
        Fence {
            state: Arc::default(),
            began: Instant::now(),
            epoch: None,
        }
    }

    /// The same fence for what is decided from now on, as long as the lease is not lost.
    pub fn in_this_epoch(&self) -> Self {
        Fence {
            epoch: Some(self.state.epoch.load(Ordering::Acquire)),
            ..self.clone()
        }
    }

    /// The lease is held: writes pass for this long from `since`, when the renewal was sent.
    pub fn extend(&self, since: Instant, by: Duration) {
        let until = since.saturating_duration_since(self.began) + by;
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX - 1);
        self.state.until.store(until, Ordering::Release);
    }

    /// The lease is lost or given up.
    pub fn close(&self) {
        self.state.epoch.fetch_add(1, Ordering::AcqRel);
        self.state.until.store(0, Ordering::Release);
    }

    /// Whether a write may be sent now.
    pub fn passes(&self) -> bool {
        let until = self.state.until.load(Ordering::Acquire);
        let is_open = until == u64::MAX || self.began.elapsed() < Duration::from_millis(until);
        // Read after the time: a fence that was closed and opened again in between has another epoch by now.
        let epoch = self.state.epoch.load(Ordering::Acquire);
        is_open && self.epoch.is_none_or(|own| own == epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_pass_while_the_lease_is_held() {
        assert!(Fence::open().passes());
        let fence = Fence::closed();
        assert!(!fence.passes());
        let writer = fence.clone();
        fence.extend(Instant::now(), Duration::from_secs(60));
        assert!(writer.passes());
        fence.close();
        assert!(!writer.passes());
        fence.extend(Instant::now(), Duration::ZERO);
        assert!(!writer.passes(), "a renewal that took too long opens nothing");
    }

    #[test]
    fn what_was_decided_before_the_lease_was_lost_does_not_pass_after_it() {
        let fence = Fence::closed();
        fence.extend(Instant::now(), Duration::from_secs(60));
        let (before, any) = (fence.in_this_epoch(), fence.clone());
        assert!(before.passes());
        fence.close();
        assert!(!before.passes());
        fence.extend(Instant::now(), Duration::from_secs(60));
        assert!(!before.passes(), "another one may have led in between");
        assert!(any.passes() && fence.in_this_epoch().passes());
    }
}
