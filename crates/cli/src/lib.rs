//! The command line: `vcctl` and the Slurm-like tools.
//!
//! ```text
//! words ─> parse (Go's flags) ─> commands/* ─> api, live ─> API server
//!                                    └─> output ─> standard output
//! ```
//!
//! Scripts read what these tools print, so the tables, messages and exit codes are Volcano's to the byte. What is new
//! comes only with new flags and commands.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done; also when the reader of the output has gone |
//! | 1 | wrong flags or an unknown command: usage and `Error: …` on standard error |
//! | 130 | interrupted |
//! | 255 | failed: `Failed to …` on standard output, a hint on standard error |
//!
//! `vcctl job run --wait` has further ones, see `commands/job/wait.rs`.

mod api;
mod args;
mod commands;
mod completion;
pub mod exit;
mod failure;
#[cfg(test)]
mod fake;
pub mod go_flags;
mod live;
mod output;
mod parse;
mod planning;
pub mod run;

pub use commands::version::lines as version_lines;
pub use failure::Failure;
use output::Out;
use parse::Parsed;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

/// A program of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `vcctl`, also `kubectl vc`.
    Vcctl,
    /// `vsub`.
    Vsub,
    /// `vjobs`.
    Vjobs,
    /// `vqueues`.
    Vqueues,
    /// `vcancel`.
    Vcancel,
    /// `vsuspend`.
    Vsuspend,
    /// `vresume`.
    Vresume,
}

/// The name under which kubectl finds `vcctl`.
pub const KUBECTL_PLUGIN: &str = "kubectl-vc";
/// The name under which kubectl asks for completions of its plugin.
pub const KUBECTL_COMPLETE: &str = "kubectl_complete-vc";

impl Tool {
    /// Every tool.
    pub const ALL: [Tool; 7] = [
        Tool::Vcctl,
        Tool::Vsub,
        Tool::Vjobs,
        Tool::Vqueues,
        Tool::Vcancel,
        Tool::Vsuspend,
        Tool::Vresume,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Vcctl => "vcctl",
            Tool::Vsub => "vsub",
            Tool::Vjobs => "vjobs",
            Tool::Vqueues => "vqueues",
            Tool::Vcancel => "vcancel",
            Tool::Vsuspend => "vsuspend",
            Tool::Vresume => "vresume",
        }
    }

    /// The tool that a program of this name is.
    pub fn named(name: &str) -> Option<Tool> {
        if name == KUBECTL_PLUGIN {
            return Some(Tool::Vcctl);
        }
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Its commands and flags, for help and manuals.
    pub fn command(self) -> clap::Command {
        commands::tree(self)
    }

    /// Runs it. `shown` is how users call it, in usage lines; `arguments` are those after the name.
    pub fn run(self, shown: &str, arguments: Vec<OsString>) -> ExitCode {
        if arguments.first().is_some_and(|word| word == completion::HIDDEN) {
            return completion::answer(self, &arguments[1..], completion::Style::Shell);
        }
        let command = self.command().bin_name(shown.to_owned());
        let words = [commands::from_environment(self), arguments].concat();
        match parse::parse(command, words) {
            Parsed::Help(text) => {
                let mut out = Out::standard();
                code(
                    out.write_all(text.as_bytes())
                        .and_then(|()| out.flush())
                        .map_err(Failure::from),
                )
            }
            Parsed::Wrong(text) => {
                output::tell(&text);
                ExitCode::from(exit::USAGE)
            }
            Parsed::Run { matches, path } => self.execute(&matches, &path),
        }
    }

    /// Does the work, and tells how it went.
    fn execute(self, matches: &clap::ArgMatches, path: &[String]) -> ExitCode {
        let mut out = Out::standard();
        let outcome = block_on(async {
            let done = commands::run(self, matches, &mut out).await;
            out.flush().map_err(Failure::from)?;
            done
        });
        match outcome {
            Ok(code) => ExitCode::from(code),
            Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
            Err(Failure::Interrupted) => ExitCode::from(exit::INTERRUPTED),
            Err(Failure::Told { message, hint }) => {
                // The leaf first, then what it is part of; the tool itself is left out.
                let what: String = path.iter().rev().map(|word| format!(" {word}")).collect();
                let line = writeln!(out, "Failed to{what}: {message}").and_then(|()| out.flush());
                if let Some(hint) = hint {
                    output::tell(&format!("Hint: {hint}\n"));
                }
                match line {
                    Ok(()) => ExitCode::from(exit::FAILED),
                    Err(error) => code(Err(Failure::from(error))),
                }
            }
        }
    }
}

/// What `kubectl` asks `kubectl_complete-vc` for.
pub fn complete_for_kubectl(words: &[OsString]) -> ExitCode {
    completion::answer(Tool::Vcctl, words, completion::Style::Kubectl)
}

fn code(written: Result<(), Failure>) -> ExitCode {
    match written {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(exit::FAILED),
    }
}

/// Runs to the end, or until the user interrupts.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = work => outcome,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        }
    });
    // A thread that waits for a key or a name server must not hold up the end.
    runtime.shutdown_background();
    outcome
}
