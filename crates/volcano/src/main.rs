//! The `volcano` binary: one program under several names.
//!
//! ```text
//! argv[0] names a subcommand (vc-scheduler) ─┐
//! volcano SUBCOMMAND ────────────────────────┼─> commands/<subcommand>.rs -> exit code
//! argv[0] or SUBCOMMAND is a tool (vcctl) ───┴─> volcano-cli -> exit code
//! ```
//!
//! Exit codes: 0 done, 1 an answer that says no (a failed case), 2 wrong usage or input. Those of the tools and of `run` are
//! in `volcano-cli`.

mod commands;
mod failure;
mod manifests;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use failure::Failure;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use volcano_cli::Tool;
use volcano_cli::go_flags::{Dashes, normalise};

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
    Up(Box<commands::up::UpArgs>),
    Run(Box<commands::run::RunArgs>),
    Plan(commands::plan::PlanArgs),
    Manifests(Box<commands::manifests::ManifestsArgs>),
    /// Print the CustomResourceDefinitions, for `kubectl apply -f -` and for charts
    Crds(commands::crds::CrdsArgs),
    GenAdmissionSecret(commands::gen_admission_secret::GenAdmissionSecretArgs),
    Man(commands::man::ManArgs),
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
    // Containers of a node are this binary, started again: it must not do anything else then.
    if let Some(code) = volcano_node::container::main() {
        return code;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if program(&arguments) == Some(volcano_cli::KUBECTL_COMPLETE) {
        return volcano_cli::complete_for_kubectl(&arguments[1..]);
    }
    if let Some((tool, shown, words)) = tool(&arguments) {
        return tool.run(&shown, words);
    }
    let arguments = in_clap_style(with_subcommand(arguments));
    let matches = match command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return usage(&error, &arguments),
    };
    let volcano = Volcano::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match volcano.command {
        Command::Scheduler(args) => commands::scheduler::run(&args),
        Command::ControllerManager(args) => commands::controller_manager::run(&args),
        Command::WebhookManager(args) => commands::webhook_manager::run(&args),
        Command::Manifests(args) => commands::manifests::run(&args),
        Command::GenAdmissionSecret(args) => commands::gen_admission_secret::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Man(args) => commands::man::run(&args, command()),
        Command::Up(args) => commands::up::run(&args),
        Command::Run(args) => Ok(commands::run::run(&args)),
        Command::Crds(args) => commands::crds::run(&args)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| Failure::new(format!("{error:#}"))),
    };
    outcome.unwrap_or_else(|failure: Failure| {
        commands::tell(&failure);
        failure.exit_code()
    })
}

/// Prints help, or what is wrong with the command line. The exit code of `run` for that is its own: 2 says there that a Job
/// failed.
fn usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let _ = error.print(); // If nobody reads it, there is nobody left to tell.
    let is_run = arguments.get(1).is_some_and(|word| word == "run");
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if is_run => ExitCode::from(volcano_cli::exit::USAGE),
        code => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}

/// Everything that the binary does: its own subcommands, and the tools. Those read their flags themselves; here they are
/// for the help and the manual.
fn command() -> clap::Command {
    Volcano::command().subcommands(Tool::ALL.map(Tool::command))
}

/// The name that the program was started by.
fn program(arguments: &[OsString]) -> Option<&str> {
    Path::new(arguments.first()?).file_stem()?.to_str()
}

/// The tool that was asked for by the program's name or by the first word, how users call it, and its arguments.
fn tool(arguments: &[OsString]) -> Option<(Tool, String, Vec<OsString>)> {
    let name = program(arguments)?;
    if let Some(tool) = Tool::named(name) {
        // kubectl finds `kubectl-vc` for `kubectl vc`.
        return Some((
            tool,
            name.replace("kubectl-", "kubectl "),
            arguments[1..].to_vec(),
        ));
    }
    if LINKS.iter().any(|(link, _)| *link == name) {
        return None;
    }
    let word = arguments.get(1)?.to_str()?;
    let tool = Tool::named(word)?;
    Some((tool, format!("{name} {word}"), arguments[2..].to_vec()))
}

/// The arguments with the subcommand that the program's own name stands for.
fn with_subcommand(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = program(&arguments);
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
        arguments.extend(normalise(command, Dashes::Any, rest));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_tool_is_found_by_the_name_of_the_program_or_by_the_first_word() {
        let found = |list: &[&str]| {
            let arguments: Vec<_> = list.iter().map(OsString::from).collect();
            tool(&arguments).map(|(tool, shown, words)| (tool, shown, words.len()))
        };
        assert_eq!(
            found(&["/bin/vcctl", "job"]),
            Some((Tool::Vcctl, "vcctl".to_owned(), 1))
        );
        assert_eq!(
            found(&["kubectl-vc"]),
            Some((Tool::Vcctl, "kubectl vc".to_owned(), 0))
        );
        assert_eq!(
            found(&["volcano", "vjobs", "-n", "x"]),
            Some((Tool::Vjobs, "volcano vjobs".to_owned(), 2))
        );
        assert_eq!(found(&["volcano", "plan"]), None);
        assert_eq!(found(&["vc-scheduler", "vcctl"]), None);
        assert_eq!(found(&[]), None);
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
