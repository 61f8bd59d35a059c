//! `vcctl job resume`: starts a suspended Job again.

use super::OneJobArgs;
use crate::api::Api;
use crate::commands::orders;
use crate::failure::Failure;
use volcano_api::bus::Action;
use volcano_api::names::kinds;

/// What is said without a name.
pub const MISSING: &str = "job name is mandatory to resume a particular job";

/// Resume a suspended Job
#[derive(Clone, Debug, clap::Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    job: OneJobArgs,
}

/// Runs the command.
pub async fn run(args: &ResumeArgs) -> Result<u8, Failure> {
    let job = &args.job;
    let name = job.name(MISSING)?;
    let api = Api::connect(&job.connect).await?;
    resume(&api, &job.namespace.namespace, name).await
}

/// Asks the controllers to start an aborted Job again.
pub async fn resume(api: &Api, namespace: &str, name: &str) -> Result<u8, Failure> {
    orders::give(api, kinds::JOB, namespace, name, Action::ResumeJob, namespace).await?;
    Ok(0)
}
