//! The time of day of a system whose runtime has a time of its own.

use std::sync::Arc;
use tokio::time::Instant;
use volcano_apiserver::Clock;

/// A clock that starts at `base` and goes as the timers of the runtime do: with a paused runtime it stands still while
/// something is done, and jumps when everybody waits.
pub fn virtual_clock(base: jiff::Timestamp) -> Clock {
    let began = Instant::now();
    Arc::new(move || {
        let passed = jiff::SignedDuration::try_from(began.elapsed()).unwrap_or_default();
        base.checked_add(passed).unwrap_or(base)
    })
}
