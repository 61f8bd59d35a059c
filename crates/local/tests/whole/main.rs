//! Whole Jobs through the whole system, in virtual time: API server, admission, scheduler, controllers and nodes in one
//! process. What is expected follows from the documentation of Jobs and queues (docs/jobs.md, docs/queues.md).

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod count;
mod ends;
mod field;
mod orders;
mod others;
mod plugins;
mod policies;
mod queues;
mod starts;
mod tasks;
mod volumes;
