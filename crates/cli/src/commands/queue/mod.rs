//! `vcctl queue`: shares of the cluster.

pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod operate;
pub mod table;

use crate::failure::Failure;
use crate::output::Out;

/// A command of the group.
#[derive(clap::Subcommand)]
pub enum QueueCommand {
    Create(create::CreateArgs),
    Delete(delete::DeleteArgs),
    Operate(operate::OperateArgs),
    List(list::ListArgs),
    Get(get::GetArgs),
}

impl QueueCommand {
    /// Runs it.
    pub async fn run(&self, out: &mut Out) -> Result<u8, Failure> {
        match self {
            QueueCommand::Create(args) => create::run(args).await,
            QueueCommand::Delete(args) => delete::run(args).await,
            QueueCommand::Operate(args) => operate::run(args).await,
            QueueCommand::List(args) => list::run(args, out).await,
            QueueCommand::Get(args) => get::run(args, out).await,
        }
    }
}
