//! `vcctl jobflow list`, `vcctl jobtemplate list`.

use super::Noun;
use super::table::{FlowItem, columns, row};
use crate::api::{Api, Scope};
use crate::args::{AllNamespacesArgs, ConnectArgs, IgnoredArgs, ListingArgs, NamespaceArgs};
use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Out;

/// List those of a namespace
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    all: AllNamespacesArgs,
    #[command(flatten)]
    how: ListingArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &ListArgs, noun: &Noun, out: &mut Out) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    let namespace = if args.all.all_namespaces {
        ""
    } else {
        &args.namespace.namespace
    };
    let listing = Listing::<FlowItem> {
        scope: Scope::new(noun.kind, namespace).labelled(&args.how.label_selector),
        how: &args.how,
        columns: columns(noun),
        state: noun.has_phase.then_some(2),
        order: 0,
        keep: &|_| true,
        row: &|item| row(noun, item),
        bare_header: false,
    };
    listing.show(&api, out).await
}
