//! `vc-scheduler`: the process around the engine.
//!
//! ```text
//! feeds ─> core (cluster, pace, statuses) ─> orders ─> writes
//! run: starts all of it, and starts it anew
//! ```

pub mod cluster;
pub mod core;
mod feeds;
pub mod options;
mod orders;
mod pace;
mod queues;
mod report;
mod run;
mod shared;
pub(crate) mod signals;
mod statuses;

pub use queues::standing as standing_queues;
pub use run::{RunError, embedded, run};
