//! `vcancel`: deletes a Job.

use super::job::named;
use crate::api::Api;
use crate::args::{ConnectArgs, DEFAULT_NAMESPACE, IgnoredArgs};
use crate::failure::Failure;
use crate::output::Out;
use std::io::Write as _;
use volcano_api::names::kinds;

/// One Job, with the letters of the Slurm-like tools: `-n` is the name and `-N` the namespace.
#[derive(Clone, Debug, clap::Args)]
pub struct OneJobArgs {
    /// The namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    pub namespace: String,
    /// Name of the Job
    #[arg(
        long,
        short = 'n',
        value_name = "JOB",
        default_value = "",
        hide_default_value = true
    )]
    pub name: String,
    #[command(flatten)]
    pub connect: ConnectArgs,
    #[command(flatten)]
    pub ignored: IgnoredArgs,
}

/// Cancel a job
///
/// Cancels a running, pending or aborted job: it is deleted.
#[derive(Clone, Debug, clap::Args)]
pub struct VcancelArgs {
    #[command(flatten)]
    job: OneJobArgs,
}

/// Runs the command.
pub async fn run(args: &VcancelArgs, out: &mut Out) -> Result<u8, Failure> {
    let job = &args.job;
    let name = named(&job.name, "job name is mandatory to cancel a particular job")?;
    let api = Api::connect(&job.connect).await?;
    api.delete(kinds::JOB, &job.namespace, name).await?;
    writeln!(out, "cancel job {name} successfully")?;
    Ok(0)
}
