//! `vcctl job`: Jobs, from their submission to their logs.

pub mod delete;
pub mod explain;
pub mod file;
pub mod list;
pub mod logs;
pub mod progress;
pub mod resume;
pub mod run;
pub mod submit;
pub mod suspend;
pub mod view;
pub mod wait;

use crate::args::{ConnectArgs, IgnoredArgs, NamespaceArgs};
use crate::failure::Failure;
use crate::output::Out;

/// A command of the group.
#[derive(clap::Subcommand)]
pub enum JobCommand {
    Run(run::RunArgs),
    List(list::ListArgs),
    View(view::ViewArgs),
    Suspend(suspend::SuspendArgs),
    Resume(resume::ResumeArgs),
    Delete(delete::DeleteArgs),
    Logs(logs::LogsArgs),
    Explain(explain::ExplainArgs),
}

impl JobCommand {
    /// Runs it.
    pub async fn run(&self, out: &mut Out) -> Result<u8, Failure> {
        match self {
            JobCommand::Run(args) => run::run(args, out).await,
            JobCommand::List(args) => list::run(args, out).await,
            JobCommand::View(args) => view::run(args, out).await,
            JobCommand::Suspend(args) => suspend::run(args).await,
            JobCommand::Resume(args) => resume::run(args).await,
            JobCommand::Delete(args) => delete::run(args, out).await,
            JobCommand::Logs(args) => logs::run(args, out).await,
            JobCommand::Explain(args) => explain::run(args, out).await,
        }
    }
}

/// One Job.
#[derive(Clone, Debug, clap::Args)]
pub struct OneJobArgs {
    /// Name of the Job
    #[arg(
        long,
        short = 'N',
        value_name = "JOB",
        default_value = "",
        hide_default_value = true
    )]
    pub name: String,
    #[command(flatten)]
    pub namespace: NamespaceArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
    #[command(flatten)]
    pub ignored: IgnoredArgs,
}

impl OneJobArgs {
    /// The name.
    ///
    /// # Errors
    /// With these words when there is none.
    pub fn name(&self, otherwise: &str) -> Result<&str, Failure> {
        named(&self.name, otherwise)
    }
}

/// A name that has to be there.
pub fn named<'a>(name: &'a str, otherwise: &str) -> Result<&'a str, Failure> {
    if name.is_empty() {
        return Err(Failure::new(otherwise));
    }
    Ok(name)
}
