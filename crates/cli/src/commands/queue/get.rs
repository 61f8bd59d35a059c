//! `vcctl queue get`: one queue with its PodGroups by phase.

use super::table::{QueueItem, columns, counts, row};
use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs, OutputArgs};
use crate::commands::job::named;
use crate::failure::Failure;
use crate::live::Whole;
use crate::output::{Format, ObjectWriter, Out, Table};
use volcano_api::names::kinds;

/// Show one queue
#[derive(Clone, Debug, clap::Args)]
pub struct GetArgs {
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
    how: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &GetArgs, out: &mut Out) -> Result<u8, Failure> {
    let name = named(
        &args.name,
        "name is mandatory to get the particular queue details",
    )?;
    let api = Api::connect(&args.connect).await?;
    if let Some(format) = args.how.output.filter(|format| *format != Format::Wide) {
        let queue: Whole = api.get(kinds::QUEUE, "", name).await?;
        ObjectWriter::single(out, format, kinds::QUEUE).push(queue.0)?;
        return Ok(0);
    }
    let is_wide = args.how.output.is_some();
    let queue: QueueItem = api.get(kinds::QUEUE, "", name).await?;
    let counts = counts(&api)
        .await
        .map_err(|failure| failure.after(&format!("failed to list podgroup for queue {name} with err: ")))?;
    let mut table = Table::new(columns(is_wide));
    table.push(row(
        &queue,
        counts.get(name).copied().unwrap_or_default(),
        is_wide,
    ));
    table.print(out)?;
    Ok(0)
}
