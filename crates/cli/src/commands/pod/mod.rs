//! `vcctl pod`: pods of Jobs and queues.

pub mod list;
pub mod status;

use crate::failure::Failure;
use crate::output::Out;

/// A command of the group.
#[derive(clap::Subcommand)]
pub enum PodCommand {
    List(list::ListArgs),
}

impl PodCommand {
    /// Runs it.
    pub async fn run(&self, out: &mut Out) -> Result<u8, Failure> {
        match self {
            PodCommand::List(args) => list::run(args, out).await,
        }
    }
}
