//! The shell around the pure crates: everything that touches the network, the clock, files and signals.
//!
//! ```text
//! watch ──> Delta ──> engine (its own thread) ──> Effect ──> writes ──> API server
//!   ^                                                                       │
//!   └───────────────────────────────────────────────────────────────────────┘
//! ```

pub mod backoff;
pub mod client;
pub mod clock;
pub mod controllers;
pub mod embed;
pub mod fence;
pub mod gates;
pub mod lease;
pub mod logging;
pub mod metrics;
pub mod ownership;
pub mod reload;
pub mod scheduler;
pub mod serve;
#[cfg(test)]
mod testing;
pub mod watch;
pub mod webhooks;
pub mod writes;
