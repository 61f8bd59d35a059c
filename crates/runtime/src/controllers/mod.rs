//! `vc-controller-manager`: the process around what the controllers decide.
//!
//! ```text
//! feeds ─> store ─> work queue ─> core: one look at a time ─> plan ─> executor ─> API server
//!            ^                    (job, queue, podgroup, ttl)             │
//!            └──────────────── answers, before the watch tells ───────────┘
//! ```

mod core;
mod execute;
mod feeds;
mod job;
pub mod kinds;
mod metrics;
pub mod options;
mod podgroup;
mod queue;
mod recorder;
mod run;
pub mod selection;
mod store;
mod ttl;
mod work;

pub use metrics::Metrics;
pub use run::{RunError, embedded, run};
