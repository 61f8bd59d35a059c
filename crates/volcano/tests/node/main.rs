//! The node agent on an embedded plane: real processes, with the binary that they are started by.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here is a test that fails"
)]

mod crash;
mod ends;
#[path = "../support/machine.rs"]
mod machine;
mod network;
mod runs;
mod stage;
mod volumes;
