//! `volcano up` and `volcano run`: the real binary, and the whole system in it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

mod help;
mod kill;
#[path = "../support/machine.rs"]
mod machine;
mod mpi;
mod process;
mod real;
mod run;
mod up;
mod volumes;
