//! `vqueues`: one queue or all, with the numbers that their status has.

use super::listing::Listing;
use super::queue::table::QueueItem;
use crate::api::{Api, Scope};
use crate::args::{ConnectArgs, IgnoredArgs, ListingArgs};
use crate::failure::Failure;
use crate::live::Whole;
use crate::output::{Column, Format, ObjectWriter, Out, Table};
use volcano_api::names::kinds;

/// View queue information
///
/// Shows one queue by its name, or all queues.
#[derive(Clone, Debug, clap::Args)]
pub struct VqueuesArgs {
    /// Name of a queue
    #[arg(
        long,
        short = 'n',
        value_name = "QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    #[command(flatten)]
    how: ListingArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &VqueuesArgs, out: &mut Out) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    if args.name.is_empty() {
        let listing = Listing::<QueueItem> {
            scope: Scope::new(kinds::QUEUE, "").labelled(&args.how.label_selector),
            how: &args.how,
            columns: columns(),
            state: Some(2),
            order: 0,
            keep: &|_| true,
            row: &row,
            bare_header: false,
        };
        return listing.show(&api, out).await;
    }
    if let Some(format) = args.how.output.output.filter(|format| *format != Format::Wide) {
        let queue: Whole = api.get(kinds::QUEUE, "", &args.name).await?;
        ObjectWriter::single(out, format, kinds::QUEUE).push(queue.0)?;
        return Ok(0);
    }
    let queue: QueueItem = api.get(kinds::QUEUE, "", &args.name).await?;
    let mut table = Table::new(columns());
    table.push(row(&queue));
    table.print(out)?;
    Ok(0)
}

fn columns() -> Vec<Column> {
    vec![
        Column::fixed("Name", 25),
        Column::fixed("Weight", 8),
        Column::fixed("State", 8).state(),
        Column::fixed("Inqueue", 8),
        Column::fixed("Pending", 8),
        Column::fixed("Running", 8),
        Column::fixed("Unknown", 8),
    ]
}

fn row(queue: &QueueItem) -> Vec<String> {
    let status = &queue.status;
    let mut row = vec![
        queue.metadata.name.clone(),
        queue.spec.weight.to_string(),
        status.state.clone(),
    ];
    let numbers = [status.inqueue, status.pending, status.running, status.unknown];
    row.extend(numbers.map(|number| number.to_string()));
    row
}
