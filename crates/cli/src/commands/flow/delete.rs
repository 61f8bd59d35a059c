//! `vcctl jobflow delete`, `vcctl jobtemplate delete`: one by name, or every object of a file.

use super::create::told;
use super::{Noun, from_file};
use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs, NamespaceArgs};
use crate::commands::job::named;
use crate::failure::Failure;
use crate::live::Whole;
use crate::output::Out;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

/// Delete one by name, or all that a YAML file has
#[derive(Clone, Debug, clap::Args)]
pub struct DeleteArgs {
    /// Its name
    #[arg(
        long,
        short = 'N',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// The file; name and namespace are then ignored
    #[arg(
        long,
        short = 'f',
        value_name = "FILE",
        default_value = "",
        hide_default_value = true
    )]
    file: OsString,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &DeleteArgs, noun: &Noun, out: &mut Out) -> Result<u8, Failure> {
    let kind = noun.kind.kind;
    if args.file.is_empty() {
        let name = named(&args.name, noun.missing_to_delete)?;
        let namespace = &args.namespace.namespace;
        let api = Api::connect(&args.connect).await?;
        api.get::<Whole>(noun.kind, namespace, name).await?;
        api.delete(noun.kind, namespace, name).await?;
        writeln!(out, "Deleted {kind}: {namespace}/{name}")?;
        return Ok(0);
    }
    let objects = from_file(Path::new(&args.file), noun)?;
    let api = Api::connect(&args.connect).await?;
    for from in objects {
        let deleted = match from {
            Ok(from) => {
                let deleted = api.delete(noun.kind, &from.namespace, &from.name).await;
                deleted.map(|()| format!("{}/{}", from.namespace, from.name))
            }
            Err(failure) => Err(failure),
        };
        match deleted {
            Ok(name) => writeln!(out, "Deleted {kind}: {name}")?,
            Err(failure) => told(failure, out, &format!("Failed to delete {kind}: "))?,
        }
    }
    Ok(0)
}
