//! `vsuspend`: suspends a Job.

use super::job::{named, suspend};
use super::vcancel::OneJobArgs;
use crate::api::Api;
use crate::failure::Failure;

/// Suspend a job
///
/// Suspends a running or pending job: its pods are killed, and it can be resumed.
#[derive(Clone, Debug, clap::Args)]
pub struct VsuspendArgs {
    #[command(flatten)]
    job: OneJobArgs,
}

/// Runs the command.
pub async fn run(args: &VsuspendArgs) -> Result<u8, Failure> {
    let job = &args.job;
    let name = named(&job.name, suspend::MISSING)?;
    let api = Api::connect(&job.connect).await?;
    suspend::suspend(&api, &job.namespace, name).await
}
