//! `vcctl job suspend`: kills the pods of a Job, which can be resumed.

use super::OneJobArgs;
use crate::api::Api;
use crate::commands::orders;
use crate::failure::Failure;
use volcano_api::bus::Action;
use volcano_api::names::kinds;

/// What is said without a name.
pub const MISSING: &str = "job name is mandatory to suspend a particular job";

/// Suspend a Job: its pods are killed, and it can be resumed
#[derive(Clone, Debug, clap::Args)]
pub struct SuspendArgs {
    #[command(flatten)]
    job: OneJobArgs,
}

/// Runs the command.
pub async fn run(args: &SuspendArgs) -> Result<u8, Failure> {
    let job = &args.job;
    let name = job.name(MISSING)?;
    let api = Api::connect(&job.connect).await?;
    suspend(&api, &job.namespace.namespace, name).await
}

/// Asks the controllers to abort a Job.
pub async fn suspend(api: &Api, namespace: &str, name: &str) -> Result<u8, Failure> {
    orders::give(api, kinds::JOB, namespace, name, Action::AbortJob, namespace).await?;
    Ok(0)
}
