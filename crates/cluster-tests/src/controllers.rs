//! `vc-controller-manager` as users run it.

use crate::process::{Process, Program};

/// The program.
#[derive(Debug)]
pub enum VcControllerManager {}

impl Program for VcControllerManager {
    const SUBCOMMAND: &'static str = "controller-manager";
}

/// A running controller manager. It is killed when dropped.
pub type Controllers = Process<VcControllerManager>;
