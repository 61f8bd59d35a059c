//! The commands, one file each: reads the flags, asks the API server, prints.

mod completion;
mod events;
mod flow;
pub mod job;
mod listing;
mod orders;
mod plan;
pub mod pod;
mod podgroup;
mod queue;
mod top;
mod vcancel;
pub mod version;
mod vjobs;
mod vqueues;
mod vresume;
mod vsub;
mod vsuspend;

use crate::Tool;
use crate::failure::Failure;
use crate::output::Out;
use clap::{ArgMatches, Args, Command, CommandFactory as _, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;

/// The command line of the batch system: jobs, queues, flows and pods
#[derive(Parser)]
#[command(name = "vcctl")]
struct Vcctl {
    #[command(subcommand)]
    command: VcctlCommand,
}

#[derive(Subcommand)]
enum VcctlCommand {
    /// vcctl command line operation job
    #[command(subcommand, disable_help_subcommand = true)]
    Job(job::JobCommand),
    /// Queue Operations
    #[command(subcommand, disable_help_subcommand = true)]
    Queue(queue::QueueCommand),
    /// vcctl command line operation jobflow
    #[command(subcommand, disable_help_subcommand = true)]
    Jobflow(flow::FlowCommand),
    /// vcctl command line operation jobtemplate
    #[command(subcommand, disable_help_subcommand = true)]
    Jobtemplate(flow::FlowCommand),
    /// vcctl command line operation pod
    #[command(subcommand, disable_help_subcommand = true)]
    Pod(pod::PodCommand),
    /// PodGroups, the gangs that the scheduler places
    #[command(subcommand, disable_help_subcommand = true)]
    Podgroup(podgroup::PodGroupCommand),
    Plan(plan::PlanArgs),
    Top(top::TopArgs),
    Completion(completion::CompletionArgs),
    Version(version::VersionArgs),
}

impl VcctlCommand {
    async fn run(&self, out: &mut Out) -> Result<u8, Failure> {
        match self {
            VcctlCommand::Job(command) => command.run(out).await,
            VcctlCommand::Queue(command) => command.run(out).await,
            VcctlCommand::Jobflow(command) => command.run(&flow::JOB_FLOW, out).await,
            VcctlCommand::Jobtemplate(command) => command.run(&flow::JOB_TEMPLATE, out).await,
            VcctlCommand::Pod(command) => command.run(out).await,
            VcctlCommand::Podgroup(command) => command.run(out).await,
            VcctlCommand::Plan(args) => plan::run(args, out).await,
            VcctlCommand::Top(args) => top::run(args).await,
            VcctlCommand::Completion(args) => completion::run(args, out),
            VcctlCommand::Version(args) => version::run(args, out),
        }
    }
}

/// The commands and flags of a tool.
pub fn tree(tool: Tool) -> Command {
    let command = match tool {
        Tool::Vcctl => Vcctl::command(),
        Tool::Vsub => of::<vsub::VsubArgs>(tool),
        Tool::Vjobs => of::<vjobs::VjobsArgs>(tool),
        Tool::Vqueues => of::<vqueues::VqueuesArgs>(tool),
        Tool::Vcancel => of::<vcancel::VcancelArgs>(tool),
        Tool::Vsuspend => of::<vsuspend::VsuspendArgs>(tool),
        Tool::Vresume => of::<vresume::VresumeArgs>(tool),
    };
    command.args_override_self(true).max_term_width(100)
}

fn of<A: Args>(tool: Tool) -> Command {
    A::augment_args(Command::new(tool.name()))
}

/// Flags that the environment stands for; those that the user gives come after them, and count.
pub fn from_environment(tool: Tool) -> Vec<OsString> {
    match tool {
        Tool::Vsub => vsub::from_environment(|name| std::env::var_os(name)),
        _ => Vec::new(),
    }
}

/// Runs the command of a tool that was chosen. Its exit code.
pub async fn run(tool: Tool, matches: &ArgMatches, out: &mut Out) -> Result<u8, Failure> {
    match tool {
        Tool::Vcctl => read::<Vcctl>(matches)?.command.run(out).await,
        Tool::Vsub => vsub::run(&read(matches)?, out).await,
        Tool::Vjobs => vjobs::run(&read(matches)?, out).await,
        Tool::Vqueues => vqueues::run(&read(matches)?, out).await,
        Tool::Vcancel => vcancel::run(&read(matches)?, out).await,
        Tool::Vsuspend => vsuspend::run(&read(matches)?).await,
        Tool::Vresume => vresume::run(&read(matches)?).await,
    }
}

fn read<A: FromArgMatches>(matches: &ArgMatches) -> Result<A, Failure> {
    A::from_arg_matches(matches).map_err(|error| Failure::new(error.to_string()))
}
