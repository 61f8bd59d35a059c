//! `vc-scheduler` as users run it.

use crate::process::{Process, Program};

pub use crate::process::volcano;

/// The program.
#[derive(Debug)]
pub enum VcScheduler {}

impl Program for VcScheduler {
    const SUBCOMMAND: &'static str = "scheduler";
}

/// A running scheduler. It is killed when dropped.
pub type Scheduler = Process<VcScheduler>;
