//! `vcctl job run`: submits a Job of flags or of a file, and waits for its end if that is wished.

use super::submit::{MISSING_NAME, SimpleArgs, submit};
use super::{file, wait};
use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs, NamespaceArgs};
use crate::failure::Failure;
use crate::go_flags::{BOOL, boolean, duration};
use crate::output::Out;
use clap::ArgAction::Set;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Submit a Job, made of flags or read from a file
///
/// With --wait it ends with the Job: exit code 0 if the Job completed, 2 if it failed, 3 if it was terminated, 4 if it
/// was aborted, 5 if it was deleted, 124 if it was not over within --timeout.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Name of the Job
    #[arg(
        long,
        short = 'N',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    #[command(flatten)]
    simple: SimpleArgs,
    /// A YAML file with the Job; the flags that describe one are then ignored
    #[arg(
        long,
        short = 'f',
        value_name = "FILE",
        default_value = "",
        hide_default_value = true
    )]
    filename: OsString,
    /// Show how the Job gets on, and end with it
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false",
        num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    wait: bool,
    /// With --wait, how long to wait, such as 30m; 0 for as long as it takes
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s", hide_default_value = true)]
    timeout: Duration,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &RunArgs, out: &mut Out) -> Result<u8, Failure> {
    if args.name.is_empty() && args.filename.is_empty() {
        return Err(Failure::new(MISSING_NAME));
    }
    let namespace = &args.namespace.namespace;
    // Made for a file too: amounts that are wrong are told in any case.
    let made = args.simple.job(&args.name, namespace, &[])?;
    let job = match args.filename.is_empty() {
        true => made,
        false => file::read(Path::new(&args.filename))?.0,
    };
    let api = Api::connect(&args.connect).await?;
    let job = submit(&api, namespace, &job, out).await?;
    if !args.wait {
        return Ok(0);
    }
    let timeout = Some(args.timeout).filter(|timeout| !timeout.is_zero());
    wait::wait(&api, &job, timeout, out).await
}
