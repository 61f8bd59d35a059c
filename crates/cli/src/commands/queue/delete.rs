//! `vcctl queue delete`.

use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs};
use crate::commands::job::named;
use crate::failure::Failure;
use volcano_api::names::kinds;

/// Delete a queue
#[derive(Clone, Debug, clap::Args)]
pub struct DeleteArgs {
    /// Name of the queue
    #[arg(
        long,
        short = 'n',
        value_name = "QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &DeleteArgs) -> Result<u8, Failure> {
    let name = named(&args.name, "queue name must be specified")?;
    let api = Api::connect(&args.connect).await?;
    api.delete(kinds::QUEUE, "", name).await?;
    Ok(0)
}
