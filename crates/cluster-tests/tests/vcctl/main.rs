//! The command line against a real API server: what every command prints and exits with, to the byte where scripts read
//! it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

mod completion;
mod explain;
mod flows;
mod jobs;
mod large;
mod live;
mod pods;
mod queues;
mod reasons;
mod screen;
mod slurm;
mod tmux;
mod transcript;
mod tree;
mod trouble;
mod world;
