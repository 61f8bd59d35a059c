//! The `volcano` binary: one program under several names.
//!
//! ```text
//! argv[0] names a subcommand (vc-scheduler) ─┐
//! volcano SUBCOMMAND ────────────────────────┴─> commands/<subcommand>.rs -> exit code
//! ```
//!
//! Exit codes: 0 done, 1 an answer that says no (a failed case), 2 wrong usage or input.

mod commands;
mod failure;
mod manifests;

use clap::{CommandFactory as _, Parser, Subcommand};
use failure::Failure;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Loading a cluster makes millions of small objects, and a cycle makes and drops thousands.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A batch scheduler for Kubernetes: gangs, queues, fair share, preemption.
#[derive(Parser)]
#[command(
    name = "volcano",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Volcano {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Scheduler(Box<commands::scheduler::SchedulerArgs>),
    ControllerManager(Box<commands::controller_manager::ControllerManagerArgs>),
    WebhookManager(Box<commands::webhook_manager::WebhookManagerArgs>),
    Plan(commands::plan::PlanArgs),
    Manifests(Box<commands::manifests::ManifestsArgs>),
    /// Print the CustomResourceDefinitions, for `kubectl apply -f -` and for charts
    Crds(commands::crds::CrdsArgs),
    GenAdmissionSecret(commands::gen_admission_secret::GenAdmissionSecretArgs),
}

/// Names that the binary may be linked under, with the subcommand that each stands for.
const LINKS: &[(&str, &str)] = &[
    ("vc-scheduler", "scheduler"),
    ("vc-controller-manager", "controller-manager"),
    ("vc-webhook-manager", "webhook-manager"),
    ("gen-admission-secret", "gen-admission-secret"),
    ("volcano-plan", "plan"),
    ("volcano-crds", "crds"),
];

/// Subcommands that take their flags as Go programs do.
const GO_STYLE: &[&str] = &["scheduler", "controller-manager", "webhook-manager"];

fn main() -> ExitCode {
    let arguments = with_subcommand(std::env::args_os().collect());
    let volcano = Volcano::parse_from(in_clap_style(arguments));
    let outcome = match volcano.command {
        Command::Scheduler(args) => commands::scheduler::run(&args),
        Command::ControllerManager(args) => commands::controller_manager::run(&args),
        Command::WebhookManager(args) => commands::webhook_manager::run(&args),
        Command::Manifests(args) => commands::manifests::run(&args),
        Command::GenAdmissionSecret(args) => commands::gen_admission_secret::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Crds(args) => commands::crds::run(&args)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| Failure::new(format!("{error:#}"))),
    };
    outcome.unwrap_or_else(|failure: Failure| {
        commands::tell(&failure);
        failure.exit_code()
    })
}

/// The arguments with the subcommand that the program's own name stands for.
fn with_subcommand(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments
        .first()
        .and_then(|program| Path::new(program).file_stem())
        .and_then(|name| name.to_str());
    let subcommand = name.and_then(|name| LINKS.iter().find(|(link, _)| *link == name));
    if let Some((_, subcommand)) = subcommand {
        arguments.insert(1, (*subcommand).into());
    }
    arguments
}

/// The arguments with those of a subcommand in Go style made into what clap takes.
fn in_clap_style(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.get(1).and_then(|name| name.to_str());
    let Some(name) = GO_STYLE.iter().find(|subcommand| name == Some(**subcommand)) else {
        return arguments;
    };
    let volcano = Volcano::command();
    if let Some(command) = volcano.find_subcommand(name) {
        let rest = arguments.split_off(2);
        arguments.extend(commands::go_flags::normalise(command, rest));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Volcano as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_link_stands_for_its_subcommand() {
        let arguments = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let cases: [(&[&str], &[&str]); 6] = [
            (
                &["./gen-admission-secret.sh", "--secret", "x"],
                &[
                    "./gen-admission-secret.sh",
                    "gen-admission-secret",
                    "--secret",
                    "x",
                ],
            ),
            (
                &["/vc-scheduler", "-v=3"],
                &["/vc-scheduler", "scheduler", "-v=3"],
            ),
            (
                &["/usr/bin/volcano-plan", "-f", "x"],
                &["/usr/bin/volcano-plan", "plan", "-f", "x"],
            ),
            (&["volcano-crds"], &["volcano-crds", "crds"]),
            (&["./volcano", "plan"], &["./volcano", "plan"]),
            (&[], &[]),
        ];
        for (given, expected) in cases {
            assert_eq!(with_subcommand(arguments(given)), arguments(expected));
        }
        for subcommand in LINKS.iter().map(|(_, subcommand)| subcommand).chain(GO_STYLE) {
            let command = <Volcano as clap::CommandFactory>::command();
            assert!(command.find_subcommand(subcommand).is_some(), "{subcommand}");
        }
    }

    #[test]
    fn only_some_subcommands_take_flags_in_go_style() {
        let arguments = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let cases: [(&[&str], &[&str]); 3] = [
            (
                &["volcano", "scheduler", "--leader_elect"],
                &["volcano", "scheduler", "--leader-elect=true"],
            ),
            (
                &["volcano", "plan", "--scheduler_conf"],
                &["volcano", "plan", "--scheduler_conf"],
            ),
            (&["volcano"], &["volcano"]),
        ];
        for (given, expected) in cases {
            assert_eq!(in_clap_style(arguments(given)), arguments(expected));
        }
    }
}
