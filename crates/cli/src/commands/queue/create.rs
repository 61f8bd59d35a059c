//! `vcctl queue create`.

use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs, number};
use crate::failure::Failure;
use serde_json::json;
use volcano_api::names::kinds;

/// Create a queue
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// Name of the queue
    #[arg(long, short = 'n', value_name = "NAME", default_value = "test")]
    name: String,
    /// Its weight in the division of the cluster
    #[arg(long, short = 'w', value_name = "N", value_parser = number, default_value = "1")]
    weight: i32,
    /// Accepted for scripts; a queue begins as the controllers say
    #[arg(long, short = 'S', value_name = "STATE", default_value = "Open")]
    state: String,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &CreateArgs) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    let queue = json!({
        "apiVersion": kinds::QUEUE.api_version(),
        "kind": kinds::QUEUE.kind,
        "metadata": {"name": args.name},
        "spec": {"weight": args.weight},
        "status": {"state": args.state},
    });
    api.create(kinds::QUEUE, "", &queue).await?;
    Ok(0)
}
