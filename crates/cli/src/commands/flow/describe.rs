//! `vcctl jobflow describe`, `vcctl jobtemplate describe`: whole objects in YAML or JSON.

use super::Noun;
use crate::api::{Api, Scope};
use crate::args::{ConnectArgs, IgnoredArgs, NamespaceArgs};
use crate::failure::Failure;
use crate::live::Whole;
use crate::output::Out;
use crate::output::objects::{json_indented, to_yaml};
use serde_json::{Value, json};
use std::io::Write as _;

/// Print one, or all of a namespace, in YAML or JSON
#[derive(Clone, Debug, clap::Args)]
pub struct DescribeArgs {
    /// Its name; all of the namespace without one
    #[arg(
        long,
        short = 'N',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// yaml or json
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "yaml")]
    format: String,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &DescribeArgs, noun: &Noun, out: &mut Out) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    let namespace = &args.namespace.namespace;
    if !args.name.is_empty() {
        let mut object: Whole = api.get(noun.kind, namespace, &args.name).await?;
        object.0["apiVersion"] = json!(noun.kind.api_version());
        object.0["kind"] = json!(noun.kind.kind);
        out.write_all(text(object.0, &args.format)?.as_bytes())?;
        return Ok(0);
    }
    let mut pages = api.pages::<Whole>(Scope::new(noun.kind, namespace), None);
    let mut is_first = true;
    while let Some(page) = pages.next().await.map_err(|error| api.failure(&error))? {
        for object in page {
            if !std::mem::take(&mut is_first) {
                out.write_all(b"\n\n")?;
            }
            out.write_all(text(object.0, &args.format)?.as_bytes())?;
        }
    }
    Ok(0)
}

fn text(mut object: Value, format: &str) -> Result<String, Failure> {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    match format {
        "yaml" => to_yaml(&object),
        "json" => Ok(json_indented(&object, b"  ")? + "\n"),
        other => Err(Failure::new(format!("Unsupported format: {other}"))),
    }
}
