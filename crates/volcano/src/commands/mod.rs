//! The subcommands, one file each: reads the arguments, does the work through the libraries, prints.

pub mod controller_manager;
pub mod crds;
mod flags;
pub mod gen_admission_secret;
mod klog;
pub mod man;
pub mod manifests;
pub mod plan;
pub mod scheduler;
pub mod webhook_manager;

use crate::failure::Failure;
use std::io::{ErrorKind, Write};

/// Prints to standard output. A reader that has gone (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error. If nobody reads that, there is nobody left to tell.
pub(crate) fn tell(line: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
