//! `vcctl version`, and `--version` of the servers: what was built, in the lines that scripts read.

use crate::args::{ConnectArgs, IgnoredArgs};
use crate::failure::Failure;
use crate::output::Out;
use std::io::Write as _;
use volcano_api::names::kinds;

/// What the build does not know.
const MISSING: &str = "Not provided.";

/// Print the version
#[derive(Clone, Debug, clap::Args)]
pub struct VersionArgs {
    // Taken as every command takes them; no server is asked.
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub fn run(_: &VersionArgs, out: &mut Out) -> Result<u8, Failure> {
    out.write_all(lines().as_bytes())?;
    Ok(0)
}

/// The lines, six of them.
pub fn lines() -> String {
    format!(
        "API Version: {}\nVersion: {}\nGit SHA: {}\nBuilt At: {}\nGo Version: {}\nGo OS/Arch: {}/{}\n",
        kinds::JOB.version,
        env!("CARGO_PKG_VERSION"),
        option_env!("VOLCANO_GIT_SHA").unwrap_or(MISSING),
        option_env!("VOLCANO_BUILT_AT").unwrap_or(MISSING),
        concat!("none (Rust ", env!("CARGO_PKG_RUST_VERSION"), ")"),
        match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        },
        match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" => "ppc64le",
            other => other,
        },
    )
}
