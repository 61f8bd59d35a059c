//! Developer commands: `cargo xtask test`, `cargo xtask crds`, `cargo xtask bench`, `cargo xtask cluster`.

mod bench;
mod cluster;
mod crds;
mod process;
mod purity;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The allocator of the `volcano` binary, so that benchmarks measure what users run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Developer commands of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check: format, lints, tests, purity of the pure crates, documentation, tests against a real cluster.
    Test(test::TestArgs),
    /// Check that the pure crates cannot reach a clock, random numbers, files or the network.
    Purity,
    /// Compare the generated CRDs with those in a directory.
    Crds {
        /// Directory with the reference CRDs as YAML files.
        #[arg(long, value_name = "DIR")]
        against: PathBuf,
    },
    /// Measure speed and memory.
    Bench {
        #[command(subcommand)]
        what: bench::BenchCommand,
    },
    /// A real Kubernetes control plane in the background.
    Cluster {
        #[command(subcommand)]
        what: cluster::ClusterCommand,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Purity => purity::run(&process::workspace_root()),
        Command::Crds { against } => crds::run(&against),
        Command::Bench { what } => bench::run(&what),
        Command::Cluster { what } => cluster::run(&what),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
