//! `vcctl podgroup list`.

use crate::api::{Api, Meta, Scope};
use crate::args::{AllNamespacesArgs, ConnectArgs, IgnoredArgs, ListingArgs, NamespaceArgs};
use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::live::{Item, Key};
use crate::output::{Column, Format, Out, age, times};
use serde::Deserialize;
use volcano_api::core::{ResourceList, null_default};
use volcano_api::names::kinds;

/// List PodGroups
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// Only PodGroups of this queue
    #[arg(
        long,
        short = 'q',
        value_name = "QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    queue: String,
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

/// What is printed of a PodGroup.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupItem {
    metadata: Meta,
    spec: Spec,
    #[serde(deserialize_with = "null_default")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    queue: String,
    min_member: i64,
    priority_class_name: String,
    #[serde(deserialize_with = "null_default")]
    min_resources: ResourceList,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
    running: i64,
    succeeded: i64,
    failed: i64,
}

impl Item for GroupItem {
    fn key(&self) -> Key {
        Key::from(&self.metadata)
    }
}

/// Runs the command.
pub async fn run(args: &ListArgs, out: &mut Out) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    let all = args.all.all_namespaces;
    let namespace = if all { "" } else { &args.namespace.namespace };
    let is_wide = args.how.output.output == Some(Format::Wide);
    let listing = Listing::<GroupItem> {
        scope: Scope::new(kinds::POD_GROUP, namespace).labelled(&args.how.label_selector),
        how: &args.how,
        columns: columns(all, is_wide),
        state: Some(if all { 2 } else { 1 }),
        order: 0,
        keep: &|group| args.queue.is_empty() || group.spec.queue == args.queue,
        row: &|group| group.row(all, is_wide),
        bare_header: false,
    };
    listing.show(&api, out).await
}

fn columns(all: bool, is_wide: bool) -> Vec<Column> {
    let headers: &[&'static str] = &["MinMember", "Running", "Succeeded", "Failed", "Queue", "Age"];
    let mut columns = vec![Column::longest("Name", 3), Column::longest("Phase", 3).state()];
    if all {
        columns.insert(0, Column::longest("Namespace", 3));
    }
    columns.extend(headers.iter().map(|header| Column::longest(header, 3)));
    if is_wide {
        columns.extend(["Priority", "MinResources"].map(|header| Column::longest(header, 3)));
    }
    columns
}

impl GroupItem {
    fn row(&self, all: bool, is_wide: bool) -> Vec<String> {
        let (meta, spec, status) = (&self.metadata, &self.spec, &self.status);
        let mut row = vec![meta.name.clone(), status.phase.clone()];
        if all {
            row.insert(0, meta.namespace.clone());
        }
        let numbers = [spec.min_member, status.running, status.succeeded, status.failed];
        row.extend(numbers.map(|number| number.to_string()));
        row.push(spec.queue.clone());
        row.push(age::since(times::now(), meta.creation_timestamp));
        if is_wide {
            let amounts = spec
                .min_resources
                .iter()
                .map(|(name, amount)| format!("{name}={amount}"));
            row.push(spec.priority_class_name.clone());
            row.push(amounts.collect::<Vec<_>>().join(","));
        }
        row
    }
}
