//! Real nodes: containers that really run and end, with names that really resolve; and Jobs on them.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

mod actions;
mod frameworks;
mod gone;
mod mpi;
mod pods;
mod run;
mod vcctl;
