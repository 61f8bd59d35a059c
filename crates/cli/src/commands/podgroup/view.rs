//! `vcctl podgroup view`: one PodGroup, what the scheduler says of it, and its events.

use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs, NamespaceArgs, OutputArgs};
use crate::commands::events;
use crate::commands::job::named;
use crate::failure::Failure;
use crate::live::Whole;
use crate::output::{Format, ObjectWriter, Out, times};
use std::fmt::Write as _;
use std::io::Write as _;
use volcano_api::meta::ResourceList;
use volcano_api::names::kinds;
use volcano_api::scheduling::PodGroup;

/// Show a PodGroup: what it asks for, where the scheduler is with it, and why
#[derive(Clone, Debug, clap::Args)]
pub struct ViewArgs {
    /// Name of the PodGroup
    #[arg(
        long,
        short = 'N',
        value_name = "PODGROUP",
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
pub async fn run(args: &ViewArgs, out: &mut Out) -> Result<u8, Failure> {
    let name = named(
        &args.name,
        "podgroup name is mandatory to view a particular podgroup",
    )?;
    let namespace = &args.namespace.namespace;
    let api = Api::connect(&args.connect).await?;
    if let Some(format) = args.how.output.filter(|format| *format != Format::Wide) {
        let group: Whole = api.get(kinds::POD_GROUP, namespace, name).await?;
        ObjectWriter::single(out, format, kinds::POD_GROUP).push(group.0)?;
        return Ok(0);
    }
    let group: PodGroup = api.get(kinds::POD_GROUP, namespace, name).await?;
    out.write_all(describe(&group).as_bytes())?;
    let prefix = format!("{name}.");
    let events = events::of(&api, namespace, |event| event.metadata.name.starts_with(&prefix)).await?;
    out.write_all(events::lines(&events, times::now()).as_bytes())?;
    Ok(0)
}

fn describe(group: &PodGroup) -> String {
    let (meta, spec, status) = (&group.metadata, &group.spec, &group.status);
    let mut text = String::new();
    let owner = meta
        .controller()
        .map(|owner| format!("{}/{}", owner.kind, owner.name));
    let rows = [
        ("Name:", meta.name.clone()),
        ("Namespace:", meta.namespace.clone()),
        ("Created:", times::full(meta.creation_timestamp)),
        ("Owner:", owner.unwrap_or_else(|| "<none>".to_owned())),
        ("Queue:", spec.queue.clone()),
        ("Priority Class:", spec.priority_class_name.clone()),
        ("Min Member:", spec.min_member.to_string()),
        (
            "Min Resources:",
            spec.min_resources.as_ref().map_or_else(String::new, amounts),
        ),
        ("Phase:", status.phase.to_string()),
        ("Running:", status.running.to_string()),
        ("Succeeded:", status.succeeded.to_string()),
        ("Failed:", status.failed.to_string()),
    ];
    for (label, value) in rows {
        let value = if value.is_empty() { "<none>" } else { &value };
        let _ = writeln!(text, "{label:<16}{value}");
    }
    let _ = writeln!(
        text,
        "Conditions:{}",
        if status.conditions.is_empty() {
            "     <none>"
        } else {
            ""
        }
    );
    for condition in &status.conditions {
        let time = times::full(condition.last_transition_time);
        let _ = writeln!(text, "  {}={}  {time}", condition.r#type, condition.status);
        let _ = writeln!(text, "    {}: {}", condition.reason, condition.message);
    }
    text
}

fn amounts(list: &ResourceList) -> String {
    let parts: Vec<_> = list
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect();
    parts.join(", ")
}
