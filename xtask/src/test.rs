//! `cargo xtask test`: the one test command, on a laptop as in CI.
//!
//! ```text
//! 1 format -> 2 lints -> 3 tests -> 4 purity -> 5 documentation      stops at the first that fails
//! ```

use std::time::{Duration, Instant};

use anyhow::bail;

use crate::process::{Cargo, workspace_root};
use crate::purity;

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub struct TestArgs {
    /// For the loop of edit and test: property tests try fewer cases, and the documentation is not built.
    #[arg(long)]
    quick: bool,
}

/// What a step does.
enum Work {
    /// A cargo command.
    Cargo(Cargo),
    /// `cargo test`, whose results are added up.
    Tests(Cargo),
    /// The check of the pure crates, in this process.
    Purity,
}

struct Step {
    name: &'static str,
    work: Work,
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Takes in a line of output; only the summary of a test binary counts.
    fn read(&mut self, line: &str) {
        let Some(results) = line.trim_start().strip_prefix("test result: ") else {
            return;
        };
        // "ok. 12 passed; 0 failed; 0 ignored; …"
        for part in results.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                _ => {}
            }
        }
    }
}

/// Runs the steps, and stops at the first that fails.
///
/// # Errors
/// When a step fails.
pub fn run(args: &TestArgs) -> anyhow::Result<()> {
    let steps = steps(args.quick);
    let began = Instant::now();
    let mut tally = Tally::default();
    for (at, step) in steps.iter().enumerate() {
        let title = format!("[{}/{}] {}", at + 1, steps.len(), step.name);
        println!("{title}: {}", describe(&step.work));
        let step_began = Instant::now();
        let outcome = perform(&step.work, &mut tally);
        let took = seconds(step_began.elapsed());
        if let Err(error) = outcome {
            println!("{title}: FAILED after {took}");
            println!(
                "{} passed, {} failed; stopped at step {}",
                tally.passed, tally.failed, step.name
            );
            bail!("step {} ({}) failed: {error:#}", at + 1, step.name);
        }
        println!("{title}: ok, {took}");
    }
    println!("all {} steps ok in {}", steps.len(), seconds(began.elapsed()));
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(())
}

fn steps(quick: bool) -> Vec<Step> {
    let tests = Cargo::new(["test", "--workspace", "--all-features", "--no-fail-fast"]);
    let tests = if quick {
        tests.default_variable("PROPTEST_CASES", "32")
    } else {
        tests
    };
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ];
    let mut steps = vec![
        Step {
            name: "format",
            work: Work::Cargo(Cargo::new(["fmt", "--all", "--check"])),
        },
        Step {
            name: "lints",
            work: Work::Cargo(Cargo::new(lints)),
        },
        Step {
            name: "tests",
            work: Work::Tests(tests),
        },
        Step {
            name: "purity",
            work: Work::Purity,
        },
    ];
    if !quick {
        let documentation = Cargo::new(["doc", "--workspace", "--all-features", "--no-deps"])
            .default_variable("RUSTDOCFLAGS", "-D warnings");
        steps.push(Step {
            name: "documentation",
            work: Work::Cargo(documentation),
        });
    }
    steps
}

fn describe(work: &Work) -> String {
    match work {
        Work::Cargo(cargo) | Work::Tests(cargo) => cargo.line(),
        Work::Purity => "cargo xtask purity".to_owned(),
    }
}

fn perform(work: &Work, tally: &mut Tally) -> anyhow::Result<()> {
    match work {
        Work::Cargo(cargo) => cargo.run(),
        Work::Tests(cargo) => cargo.run_watching(|line| tally.read(line)),
        Work::Purity => purity::run(&workspace_root()),
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_test_binaries_add_up_and_other_lines_do_not_count() {
        let output = "running 3 tests\n\
            test a ... ok\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test 7 passed; 8 failed ... ok\n\
            test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.25s\n";
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.read(line));
        assert_eq!(tally, Tally { passed: 8, failed: 2 });
    }

    #[test]
    fn a_quick_run_leaves_out_the_documentation_only() {
        let names = |quick| steps(quick).iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(
            names(false),
            ["format", "lints", "tests", "purity", "documentation"]
        );
        assert_eq!(names(true), ["format", "lints", "tests", "purity"]);
    }

    #[test]
    fn warnings_are_errors_in_lints_and_documentation() {
        let lines: Vec<_> = steps(false).iter().map(|step| describe(&step.work)).collect();
        assert!(lines[1].ends_with("-- -D warnings"), "{}", lines[1]);
        if std::env::var_os("RUSTDOCFLAGS").is_none() {
            assert!(
                lines[4].starts_with("RUSTDOCFLAGS=\"-D warnings\" "),
                "{}",
                lines[4]
            );
        }
    }
}
