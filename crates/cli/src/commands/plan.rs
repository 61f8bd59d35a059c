//! `vcctl plan`: what would become of a Job, were it submitted now.

use super::job;
use crate::api::Api;
use crate::args::{ConnectArgs, NamespaceArgs};
use crate::exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::planning::{self, FormArgs, SchedulerArgs};
use std::ffi::OsString;
use std::path::Path;
use volcano_plan::explain::State;
use volcano_plan::plan_job;

/// Say whether a Job would start now, where, and what it would evict
///
/// Plans on the present state of the cluster and writes nothing. Exit code 0 if the Job would start, 6 if it would wait.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanArgs {
    /// A YAML file with the Job
    #[arg(
        long,
        short = 'f',
        value_name = "FILE",
        default_value = "",
        hide_default_value = true
    )]
    filename: OsString,
    #[command(flatten)]
    output: FormArgs,
    #[command(flatten)]
    scheduler: SchedulerArgs,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs the command.
pub async fn run(args: &PlanArgs, out: &mut Out) -> Result<u8, Failure> {
    if args.filename.is_empty() {
        return Err(Failure::new("a file with the Job is mandatory").hint("vcctl plan -f job.yaml"));
    }
    let (_, mut job) = job::file::read(Path::new(&args.filename))?;
    if job.metadata.namespace.is_empty() {
        job.metadata.namespace.clone_from(&args.namespace.namespace);
    }
    let api = Api::connect(&args.connect).await?;
    let (mut reader, conf) = planning::read(&api, &args.scheduler).await?;
    planning::add_job(&api, &job.metadata.namespace, &job.metadata.name, &mut reader).await?;
    let cluster = planning::finish(reader, &conf)?;
    let explanation = plan_job(&cluster, &conf, &job)?;
    args.output.print(&explanation, out)?;
    Ok(match explanation.state {
        State::Waiting => exit::WOULD_WAIT,
        _ => 0,
    })
}
