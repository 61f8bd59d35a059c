//! What the controllers decide.
//!
//! ```text
//! observed objects + now ──> reconcile ──> Plan (steps of writes, when to look again)
//! ```
//!
//! Everything here is a function of what was observed: no clock, no random numbers, no memory of its own. A plan that was
//! carried out in part, because the process died or a write failed, is simply made again from what is there then.

pub mod job;
pub mod plugins;
pub mod pod_group;
pub mod queue;
#[cfg(test)]
mod testing;
pub mod ttl;
pub mod usage;
pub mod write;
