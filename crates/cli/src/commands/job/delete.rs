//! `vcctl job delete`.

use super::OneJobArgs;
use crate::api::Api;
use crate::failure::Failure;
use crate::output::Out;
use std::io::Write as _;
use volcano_api::names::kinds;

/// Delete a Job and its pods
#[derive(Clone, Debug, clap::Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    job: OneJobArgs,
}

/// Runs the command.
pub async fn run(args: &DeleteArgs, out: &mut Out) -> Result<u8, Failure> {
    let job = &args.job;
    let name = job.name("job name is mandatory to delete a particular job")?;
    let api = Api::connect(&job.connect).await?;
    api.delete(kinds::JOB, &job.namespace.namespace, name).await?;
    writeln!(out, "delete job {name} successfully")?;
    Ok(0)
}
