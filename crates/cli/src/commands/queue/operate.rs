//! `vcctl queue operate`: opens and closes a queue, and changes its weight.

use crate::api::Api;
use crate::args::{ConnectArgs, DEFAULT_NAMESPACE, IgnoredArgs, number};
use crate::commands::job::named;
use crate::commands::orders;
use crate::failure::Failure;
use serde_json::json;
use volcano_api::bus::Action;
use volcano_api::names::kinds;

/// Open or close a queue, or change its weight
#[derive(Clone, Debug, clap::Args)]
pub struct OperateArgs {
    /// Name of the queue
    #[arg(
        long,
        short = 'n',
        value_name = "QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// The new weight, for update
    #[arg(long, short = 'w', value_name = "N", value_parser = number, default_value = "0", hide_default_value = true)]
    weight: i32,
    /// open, close or update
    #[arg(
        long,
        short = 'a',
        value_name = "ACTION",
        default_value = "",
        hide_default_value = true
    )]
    action: String,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &OperateArgs) -> Result<u8, Failure> {
    let name = named(&args.name, "queue name must be specified")?;
    let order = match args.action.as_str() {
        "open" => Some(Action::OpenQueue),
        "close" => Some(Action::CloseQueue),
        "update" if args.weight == 0 => {
            return Err(Failure::new(format!(
                "when update queue {name}, weight must be specified, the value must be greater than 0"
            )));
        }
        "update" => None,
        "" => return Err(Failure::new("action can not be null")),
        other => {
            return Err(Failure::new(format!(
                "action {other} invalid, valid actions are open, close and update"
            )));
        }
    };
    let api = Api::connect(&args.connect).await?;
    match order {
        Some(order) => orders::give(&api, kinds::QUEUE, "", name, order, DEFAULT_NAMESPACE).await?,
        None => {
            let patch = json!({"spec": {"weight": args.weight}});
            api.merge(kinds::QUEUE, "", name, &patch).await?;
        }
    }
    Ok(0)
}
