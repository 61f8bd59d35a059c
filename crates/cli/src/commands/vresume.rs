//! `vresume`: resumes a Job.

use super::job::{named, resume};
use super::vcancel::OneJobArgs;
use crate::api::Api;
use crate::failure::Failure;

/// Resume a job
///
/// Starts an aborted job again.
#[derive(Clone, Debug, clap::Args)]
pub struct VresumeArgs {
    #[command(flatten)]
    job: OneJobArgs,
}

/// Runs the command.
pub async fn run(args: &VresumeArgs) -> Result<u8, Failure> {
    let job = &args.job;
    let name = named(&job.name, resume::MISSING)?;
    let api = Api::connect(&job.connect).await?;
    resume::resume(&api, &job.namespace, name).await
}
