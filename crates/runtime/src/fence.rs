//! The fence around writes: they pass while the lease is held, and not a moment longer.
//!
//! The holder of a lease stops writing before the lease can have passed to another: the election moves the fence's
//! deadline with every renewal, and each write looks at it just before it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shared by the election, which moves it, and the writers, which look at it.
#[derive(Clone, Debug)]
pub struct Fence {
    /// Milliseconds after `began` until which writes pass.
    until: Arc<AtomicU64>,
    began: Instant,
}

impl Fence {
    /// A fence that lets everything through: there is no election.
    pub fn open() -> Self {
        Fence {
            until: Arc::new(AtomicU64::new(u64::MAX)),
            began: Instant::now(),
        }
    }

    /// A fence that lets nothing through until the lease is held.
    pub fn closed() -> Self {
        Fence {
            until: Arc::new(AtomicU64::new(0)),
            began: Instant::now(),
        }
    }

    /// The lease is held: writes pass for this long from `since`, when the renewal was sent.
    pub fn extend(&self, since: Instant, by: Duration) {
        let until = since.saturating_duration_since(self.began) + by;
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX - 1);
        self.until.store(until, Ordering::Release);
    }

    /// The lease is lost or given up.
    pub fn close(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// Whether a write may be sent now.
    pub fn passes(&self) -> bool {
        let until = self.until.load(Ordering::Acquire);
        until == u64::MAX || self.began.elapsed() < Duration::from_millis(until)
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
}
