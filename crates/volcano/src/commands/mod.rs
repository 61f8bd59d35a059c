//! The subcommands, one file each: reads the arguments, does the work through the libraries, prints.

pub mod controller_manager;
pub mod crds;
mod files;
mod flags;
pub mod gen_admission_secret;
mod klog;
mod local;
pub mod man;
pub mod manifests;
pub mod plan;
pub mod run;
pub mod scheduler;
pub mod up;
pub mod webhook_manager;

use crate::failure::Failure;
use std::fmt::Display;
use std::future::Future;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use tokio::runtime::Builder;
use volcano_runtime::logging;

/// Runs a program that serves until it is told to end, on threads of its own.
pub(crate) fn run_program<E: Display>(
    settings: &logging::Settings,
    threads: &mut Builder,
    program: impl Future<Output = Result<(), E>>,
) -> Result<ExitCode, Failure> {
    let level = logging::start(settings);
    let runtime = threads
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    runtime.spawn(logging::socket(level, logging::socket_directory()));
    let outcome = runtime.block_on(program);
    outcome.map_err(|error| Failure::new(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the version of a program that serves, as Volcano's programs do.
pub(crate) fn print_version() -> Result<ExitCode, Failure> {
    print(&volcano_cli::version_lines())?;
    Ok(ExitCode::SUCCESS)
}

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
