//! `vcctl jobflow get`, `vcctl jobtemplate get`.

use super::Noun;
use super::table::{FlowItem, columns, row};
use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs, NamespaceArgs, OutputArgs};
use crate::commands::job::named;
use crate::failure::Failure;
use crate::live::Whole;
use crate::output::{Format, ObjectWriter, Out, Table};

/// Show one
#[derive(Clone, Debug, clap::Args)]
pub struct GetArgs {
    /// Its name
    #[arg(
        long,
        short = 'N',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    how: OutputArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &GetArgs, noun: &Noun, out: &mut Out) -> Result<u8, Failure> {
    let name = named(&args.name, noun.missing_to_get)?;
    let api = Api::connect(&args.connect).await?;
    let namespace = &args.namespace.namespace;
    if let Some(format) = args.how.output.filter(|format| *format != Format::Wide) {
        let object: Whole = api.get(noun.kind, namespace, name).await?;
        ObjectWriter::single(out, format, noun.kind).push(object.0)?;
        return Ok(0);
    }
    let item: FlowItem = api.get(noun.kind, namespace, name).await?;
    let mut table = Table::new(columns(noun));
    table.push(row(noun, &item));
    table.print(out)?;
    Ok(0)
}
