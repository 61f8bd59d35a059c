//! `vcctl podgroup`: the gangs that the scheduler places.

pub mod list;
pub mod view;

use crate::failure::Failure;
use crate::output::Out;

/// A command of the group.
#[derive(clap::Subcommand)]
pub enum PodGroupCommand {
    List(list::ListArgs),
    View(view::ViewArgs),
}

impl PodGroupCommand {
    /// Runs it.
    pub async fn run(&self, out: &mut Out) -> Result<u8, Failure> {
        match self {
            PodGroupCommand::List(args) => list::run(args, out).await,
            PodGroupCommand::View(args) => view::run(args, out).await,
        }
    }
}
