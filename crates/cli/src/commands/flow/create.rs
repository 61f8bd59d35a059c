//! `vcctl jobflow create`, `vcctl jobtemplate create`: every object of a file.

use super::{Noun, from_file};
use crate::api::Api;
use crate::args::{ConnectArgs, IgnoredArgs};
use crate::failure::Failure;
use crate::output::Out;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

/// Create all that a YAML file has
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// The file
    #[arg(
        long,
        short = 'f',
        value_name = "FILE",
        default_value = "",
        hide_default_value = true
    )]
    file: OsString,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command. One that is refused does not keep the others away.
pub async fn run(args: &CreateArgs, noun: &Noun, out: &mut Out) -> Result<u8, Failure> {
    let objects = from_file(Path::new(&args.file), noun)?;
    let api = Api::connect(&args.connect).await?;
    let kind = noun.kind.kind;
    for from in objects {
        let created = match from {
            Ok(from) => {
                let created = api.create(noun.kind, &from.namespace, &from.object).await;
                created.map(|_| format!("{}/{}", from.namespace, from.name))
            }
            Err(failure) => Err(failure),
        };
        match created {
            Ok(name) => writeln!(out, "Created {kind}: {name}")?,
            Err(failure) => told(failure, out, &format!("Failed to create {kind}: "))?,
        }
    }
    Ok(0)
}

/// Says what failed, and goes on.
pub fn told(failure: Failure, out: &mut Out, before: &str) -> Result<(), Failure> {
    match failure {
        Failure::Told { message, hint } => {
            writeln!(out, "{before}{message}")?;
            if let Some(hint) = hint {
                out.flush()?;
                crate::output::tell(&format!("Hint: {hint}\n"));
            }
            Ok(())
        }
        other => Err(other),
    }
}
