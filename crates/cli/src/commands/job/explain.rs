//! `vcctl job explain`: why a Job waits, and the smallest change that would start it.

use super::named;
use crate::api::Api;
use crate::args::{ConnectArgs, NamespaceArgs};
use crate::failure::Failure;
use crate::output::Out;
use crate::planning::{self, FormArgs, SchedulerArgs};
use volcano_plan::{JobKey, explain};

/// Say why a Job waits, who holds what it needs, and what would start it
///
/// Plans on the present state of the cluster and writes nothing. Every change that is suggested was tried in that way. Takes
/// a PodGroup too.
#[derive(Clone, Debug, clap::Args)]
pub struct ExplainArgs {
    /// Name of the Job, or of a PodGroup
    #[arg(value_name = "JOB")]
    job: Option<String>,
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
pub async fn run(args: &ExplainArgs, out: &mut Out) -> Result<u8, Failure> {
    let name = args.job.as_deref().unwrap_or_default();
    let name = named(name, "job name is mandatory to explain a particular job")?;
    let (namespace, api) = (&args.namespace.namespace, Api::connect(&args.connect).await?);
    let (mut reader, conf) = planning::read(&api, &args.scheduler).await?;
    planning::add_job(&api, namespace, name, &mut reader).await?;
    let cluster = planning::finish(reader, &conf)?;
    let explanation = explain(&cluster, &conf, &JobKey::new(namespace, name))?;
    args.output.print(&explanation, out)?;
    Ok(0)
}
