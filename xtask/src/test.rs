//! `cargo xtask test`: the one test command, on a laptop as in CI.
//!
//! ```text
//! 1 format -> 2 lints -> 3 tests -> 4 purity -> 5 documentation -> 6 cluster tests -> 7 node tests
//!                                                                         stops at the first that fails
//! ```
//!
//! The cluster tests run against a real control plane, which is built with Go; the node tests on real nodes, which need
//! root and packages besides. What cannot run is left out, and the run says so at its end; where that must not happen, as
//! in CI, a variable makes it a failure.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::bail;

use volcano_testcluster::binaries;
use volcano_testcluster::nodes::{self, Packages};

use crate::process::{Cargo, workspace_root};
use crate::{cluster, purity};

/// The package of the tests that need a control plane.
const CLUSTER_TESTS: &str = "volcano-cluster-tests";
/// Its test files.
const CLUSTER_TEST_FILES: &[&str] = &[
    "crds",
    "control_plane",
    "protobuf",
    "scheduler",
    "jobs",
    "jobs_crash",
    "admission",
    "crash",
    "chaos",
    "api",
    "kubectl",
    "vcctl",
];
/// Those that need real nodes.
const NODE_TEST_FILES: &[&str] = &["nodes"];
/// Variable that makes it a failure when the cluster tests or the node tests cannot run.
const CLUSTER_TESTS_VARIABLE: &str = "VOLCANO_CLUSTER_TESTS";
/// The value of the variable that does so.
const REQUIRED: &str = "required";

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub struct TestArgs {
    /// For the loop of edit and test: property tests try fewer cases; the documentation is not built, and the tests
    /// against a real cluster and on real nodes do not run.
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
    /// `cargo test` of the package that needs a control plane, once that is built.
    Cluster(Cargo),
    /// The same for real nodes, once their programs and images are made too.
    Nodes(Cargo),
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
    let go = || binaries::check_go();
    let machine = || go().and_then(|()| nodes::prepare(Packages::from_environment()));
    let left_out = [
        ("cluster", left_out("cluster", args.quick, go, required())?),
        ("node", left_out("node", args.quick, machine, required())?),
    ];
    let (with_cluster, with_nodes) = (left_out[0].1.is_none(), left_out[1].1.is_none());
    let steps = steps(args.quick, with_cluster, with_nodes);
    let began = Instant::now();
    let _ahead = with_cluster.then(|| Ahead::start(with_nodes));
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
    for (what, reason) in left_out {
        if let Some(reason) = reason {
            println!("the {what} tests did NOT run: {reason}");
        }
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(())
}

/// Builds what the cluster tests need beside the first steps, in a process that makes way for them: compilers and tests
/// leave a processor idle now and then. Whoever needs a program waits for it; what failed here fails there again, and is
/// told then.
struct Ahead(Option<Child>);

impl Ahead {
    fn start(nodes: bool) -> Self {
        let program = std::env::current_exe();
        let child = program.and_then(|program| {
            let mut command = Command::new("nice");
            command.arg(program).args(["cluster", "build"]);
            command.args(nodes.then_some("--nodes"));
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            // A group of its own, with the compilers that it starts.
            command.process_group(0).spawn()
        });
        Ahead(child.ok())
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It has ended long ago, unless a step failed.
            let group = format!("-{}", child.id());
            let _ = Command::new("kill")
                .args(["--", &group])
                .stderr(Stdio::null())
                .status();
            let _ = child.wait();
        }
    }
}

/// Whether the cluster tests have to run.
fn required() -> bool {
    std::env::var_os(CLUSTER_TESTS_VARIABLE).is_some_and(|value| value == REQUIRED)
}

/// Why some tests do not run; none if they do. `able` says whether this machine can run them.
fn left_out(
    what: &str,
    quick: bool,
    able: impl FnOnce() -> anyhow::Result<()>,
    required: bool,
) -> anyhow::Result<Option<String>> {
    if quick {
        return Ok(Some("--quick leaves them out".to_owned()));
    }
    match able() {
        Ok(()) => Ok(None),
        Err(reason) if required => {
            bail!("{CLUSTER_TESTS_VARIABLE}={REQUIRED}, but the {what} tests cannot run: {reason:#}")
        }
        Err(reason) => Ok(Some(format!("{reason:#}"))),
    }
}

fn steps(quick: bool, cluster: bool, nodes: bool) -> Vec<Step> {
    let tests = [
        "test",
        "--workspace",
        "--exclude",
        CLUSTER_TESTS,
        "--all-features",
        "--no-fail-fast",
    ];
    let tests = Cargo::new(tests);
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
    if cluster {
        steps.push(Step {
            name: "cluster tests",
            work: Work::Cluster(tests_of(CLUSTER_TEST_FILES)),
        });
    }
    if nodes {
        steps.push(Step {
            name: "node tests",
            work: Work::Nodes(tests_of(NODE_TEST_FILES)),
        });
    }
    steps
}

/// The command that runs test files of the package that needs a control plane.
fn tests_of(files: &[&'static str]) -> Cargo {
    // All packages are named, as in the other steps: with one alone, dependencies have other features and are built once
    // more.
    let tests = ["test", "--workspace", "--all-features", "--no-fail-fast"];
    let targets = files.iter().flat_map(|name| ["--test", name]);
    Cargo::new(tests.into_iter().chain(targets))
}

fn describe(work: &Work) -> String {
    match work {
        Work::Cargo(cargo) | Work::Tests(cargo) | Work::Cluster(cargo) | Work::Nodes(cargo) => cargo.line(),
        Work::Purity => "cargo xtask purity".to_owned(),
    }
}

fn perform(work: &Work, tally: &mut Tally) -> anyhow::Result<()> {
    match work {
        Work::Cargo(cargo) => cargo.run(),
        Work::Tests(cargo) => cargo.run_watching(|line| tally.read(line)),
        Work::Purity => purity::run(&workspace_root()),
        Work::Cluster(cargo) => {
            // Here rather than in the first test that needs it, which would seem to hang for minutes.
            cluster::build(false)?;
            cargo.run_watching(|line| tally.read(line))
        }
        Work::Nodes(cargo) => {
            cluster::build(true)?;
            cargo.run_watching(|line| tally.read(line))
        }
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
    fn a_quick_run_leaves_out_the_documentation_and_a_run_on_a_bare_machine_what_needs_more() {
        let names = |quick, cluster, nodes| {
            let steps = steps(quick, cluster, nodes);
            steps.iter().map(|step| step.name).collect::<Vec<_>>()
        };
        let always = ["format", "lints", "tests", "purity"];
        assert_eq!(names(true, false, false), always);
        let full = [&always[..], &["documentation"]].concat();
        assert_eq!(names(false, false, false), full);
        let cluster = [&full[..], &["cluster tests"]].concat();
        assert_eq!(names(false, true, false), cluster);
        assert_eq!(names(false, true, true), [&cluster[..], &["node tests"]].concat());
    }

    #[test]
    fn the_cluster_tests_run_in_steps_of_their_own() {
        let lines: Vec<_> = steps(false, true, true)
            .iter()
            .map(|step| describe(&step.work))
            .collect();
        assert!(
            lines[2].contains("--exclude volcano-cluster-tests"),
            "{}",
            lines[2]
        );
        assert!(lines[5].contains("--test crds"), "{}", lines[5]);
        assert!(!lines[5].contains("--test nodes"), "{}", lines[5]);
        assert!(lines[6].ends_with("--test nodes"), "{}", lines[6]);
    }

    #[test]
    fn no_file_of_cluster_tests_is_forgotten() {
        let folder = workspace_root().join("crates/cluster-tests/tests");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists())
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let mut known = [CLUSTER_TEST_FILES, NODE_TEST_FILES].concat();
        known.sort_unstable();
        assert_eq!(files, known);
    }

    #[test]
    fn cluster_tests_that_cannot_run_are_told_and_fail_where_they_are_required() {
        let no_go = || Err(anyhow::anyhow!("no `go` found"));
        assert_eq!(left_out("cluster", false, || Ok(()), true).unwrap(), None);
        let told = left_out("cluster", false, no_go, false).unwrap();
        assert_eq!(told.unwrap(), "no `go` found");
        let error = left_out("cluster", false, no_go, true).unwrap_err().to_string();
        assert!(
            error.starts_with("VOLCANO_CLUSTER_TESTS=required, but"),
            "{error}"
        );
        let quick = left_out("cluster", true, no_go, true).unwrap();
        assert_eq!(quick.unwrap(), "--quick leaves them out");
    }

    #[test]
    fn warnings_are_errors_in_lints_and_documentation() {
        let lines: Vec<_> = steps(false, true, true)
            .iter()
            .map(|step| describe(&step.work))
            .collect();
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
