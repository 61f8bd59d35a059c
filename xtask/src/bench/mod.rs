//! `cargo xtask bench engine`: how long a cycle takes, and how much memory, against the targets that the engine has.
//!
//! ```text
//! xtask -> cargo run --release xtask bench engine -> for each scenario and run: xtask bench one NAME --nodes N
//! ```
//!
//! Each run is a process of its own, single-threaded, so that its peak memory is its own and nothing is warm.

mod cluster;
mod engine;
mod explain;
mod jobs;
mod local;
mod scenarios;
mod table;

use std::env;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use kube::Client;
use serde_json::Value;
use volcano_runtime::client::{self, Client as BareClient, transport};
use volcano_testcluster::{Cluster, Options};

use crate::process::{Cargo, workspace_root};
use scenarios::{GROWTH, Growth, SCENARIOS, Scenario};
use table::Table;

/// The growth of time that doubling nodes and pods may cause.
const MAX_GROWTH: f64 = 2.3;
/// What the API server may take, at least and at most: 10,000 pods cost it about 4 GiB.
const LEAST_HEAP_MIB: f64 = 2048.0;
const MOST_HEAP_MIB: f64 = 8192.0;

/// What can be measured.
#[derive(Subcommand)]
pub enum BenchCommand {
    /// Scheduling cycles over generated clusters, in memory.
    Engine(EngineArgs),
    /// The scheduler on a real control plane, beside what the API server can do at all.
    Cluster(cluster::ClusterArgs),
    /// The controllers on a real control plane: how fast they make pods, beside a client that only makes pods.
    Jobs(jobs::JobsArgs),
    /// The whole system in one process with simulated nodes: from Jobs submitted to Jobs completed.
    Local(local::LocalArgs),
    /// One run of it in this process; prints its measurements as JSON.
    #[command(hide = true)]
    LocalOne(local::Size),
    /// One start of it in this process; says when the first pod runs.
    #[command(hide = true)]
    LocalStart,
    /// One run of one scenario in this process; prints its measurements as JSON.
    #[command(hide = true)]
    One {
        /// Name of the scenario.
        name: String,
        /// Nodes of the cluster.
        #[arg(long)]
        nodes: usize,
    },
}

/// Arguments of `cargo xtask bench engine`.
#[derive(clap::Args)]
pub struct EngineArgs {
    /// Measure only this scenario; may be repeated. Growth is left out then.
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    /// One run of each scenario, without the largest one and with smaller steps of growth.
    #[arg(long)]
    quick: bool,
    /// Print how long each step of the cycles took.
    #[arg(long)]
    steps: bool,
}

/// What one run measured.
#[derive(Clone, Debug)]
struct Measured {
    pods: u64,
    load_ms: f64,
    cycle_ms: f64,
    placed: u64,
    peak_mib: f64,
    steps: Vec<(String, f64)>,
}

/// Measures.
///
/// # Errors
/// When a scenario does not come out as it must, or when a target is missed.
pub fn run(command: &BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::One { name, nodes } => {
            println!("{}", scenarios::find(name)?.run(*nodes)?);
            Ok(())
        }
        BenchCommand::LocalOne(size) => local::one(size),
        BenchCommand::LocalStart => local::start(),
        BenchCommand::Engine(_) | BenchCommand::Local(_) if cfg!(debug_assertions) => in_release(),
        BenchCommand::Cluster(_) | BenchCommand::Jobs(_) if cfg!(debug_assertions) => {
            with_product_in_release()
        }
        BenchCommand::Engine(args) => measure(args),
        BenchCommand::Cluster(args) => cluster::run(args),
        BenchCommand::Jobs(args) => jobs::run(args),
        BenchCommand::Local(args) => local::run(args),
    }
}

/// Starts the release build of this program with the same arguments.
fn in_release() -> anyhow::Result<()> {
    let given: Vec<String> = env::args().skip(1).collect();
    let run = ["run", "--release", "--quiet", "--bin", "xtask", "--"];
    let words = run.into_iter().chain(given.iter().map(String::as_str));
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), Into::into);
    let binary = folder.join("release/volcano").display().to_string();
    let cargo = Cargo::new(words).default_variable("VOLCANO_BINARY", &binary);
    println!("{}", cargo.line());
    cargo.run()
}

/// Starts the release builds of this program and of the product. The features of all packages count for both, so that
/// dependencies are built once.
fn with_product_in_release() -> anyhow::Result<()> {
    Cargo::new(["build", "--release", "--quiet", "--bin", "volcano"]).run()?;
    in_release()
}

/// A control plane to measure on, with the CRDs. Its API server collects no garbage below a limit that what is measured does
/// not reach, where the machine has that much: a collection takes most of a second of both processors, about as often as
/// there is a measurement, and by chance it falls into what is measured or into its limit. etcd collects its own, which
/// is little: otherwise it would always write to memory that nobody has used yet, which is several times as slow.
fn control_plane() -> anyhow::Result<(Cluster, Client)> {
    let memory = engine::kib_of("/proc/meminfo", "MemTotal:").unwrap_or_default();
    let limit = (memory / 1024.0 / 3.0).clamp(LEAST_HEAP_MIB, MOST_HEAP_MIB);
    let cluster = Cluster::start(Options {
        controllers: false,
        apiserver_environment: vec![
            ("GOGC", "off".to_owned()),
            ("GOMEMLIMIT", format!("{limit:.0}MiB")),
        ],
        ..Options::default()
    })?;
    cluster.install_crds(&volcano_api::crd::all())?;
    let client = transport::client(cluster.client_config()?)?;
    Ok((cluster, client))
}

/// What asks as the scheduler and the controllers do and decides nothing: a client of the same kind, without connections
/// yet and without a limit of its own.
async fn bare_client(cluster: &Cluster) -> anyhow::Result<BareClient> {
    let options = client::Options {
        kubeconfig: Some(cluster.kubeconfig_path()),
        master: None,
        context: None,
        search: client::Search::default(),
        qps: 0.0,
        burst: 0,
    };
    Ok(BareClient::connect(&options).await?)
}

/// The API server and etcd clean up after thousands of writes, and the API server collects its garbage: neither what is
/// measured nor its limit is to pay for what came before. While something is measured it collects none: see
/// [`control_plane`].
async fn rest(client: &Client) -> anyhow::Result<()> {
    tokio::time::sleep(Duration::from_secs(3)).await;
    let collect = http::Request::get("/debug/pprof/heap?gc=1&debug=1").body(Vec::new())?;
    client.request_text(collect).await?;
    Ok(())
}

/// The one in the middle: what else happens on the machine makes some rounds slower, and a lucky one faster.
fn median_of(mut rounds: Vec<Duration>) -> Duration {
    rounds.sort();
    rounds.get(rounds.len() / 2).copied().unwrap_or(Duration::MAX)
}

/// Waits until a process writes nothing more, and says how much it has written.
async fn settle(writes: impl Fn() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let mut last = f64::NAN;
    loop {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let now = writes()?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
}

fn measure(args: &EngineArgs) -> anyhow::Result<()> {
    for name in &args.scenarios {
        scenarios::find(name)?;
    }
    let chosen = SCENARIOS
        .iter()
        .filter(|scenario| match args.scenarios.as_slice() {
            [] => !(args.quick && scenario.large),
            names => names.iter().any(|name| name == scenario.name),
        });
    let mut missed = measure_scenarios(chosen, args)?;
    if args.scenarios.is_empty() {
        missed += measure_growth(args.quick)?;
    }
    if missed > 0 {
        bail!("{missed} targets missed");
    }
    println!("\nall targets met");
    Ok(())
}

fn measure_scenarios<'a>(
    chosen: impl Iterator<Item = &'a Scenario>,
    args: &EngineArgs,
) -> anyhow::Result<usize> {
    let table = Table::new(&[
        "scenario",
        "pods",
        "nodes",
        "load",
        "cycle",
        "pods/s",
        "peak",
        "target",
        "cycle/target",
    ]);
    table.print_head();
    let mut missed = 0;
    for scenario in chosen {
        let runs = if args.quick { 1 } else { scenario.runs };
        let measured = median(scenario.name, scenario.nodes, runs)?;
        let slow = measured.cycle_ms > scenario.target_ms;
        let big = scenario.target_mib.is_some_and(|limit| measured.peak_mib > limit);
        missed += usize::from(slow) + usize::from(big);
        let memory = scenario
            .target_mib
            .map_or(String::new(), |limit| format!(" and {}", table::mib(limit)));
        table.print(&[
            scenario.name.to_owned(),
            table::count(measured.pods),
            table::count(scenario.nodes as u64),
            table::millis(measured.load_ms),
            table::millis(measured.cycle_ms),
            table::rate(measured.placed, measured.cycle_ms),
            if scenario.keeps_objects {
                "-".to_owned()
            } else {
                table::mib(measured.peak_mib)
            },
            format!("{}{memory}", table::millis(scenario.target_ms)),
            format!(
                "{:.2}{}{}",
                measured.cycle_ms / scenario.target_ms,
                if slow { " MISSED" } else { "" },
                if big { " MEMORY MISSED" } else { "" }
            ),
        ]);
        if args.steps {
            let steps: Vec<_> = measured
                .steps
                .iter()
                .map(|(name, ms)| format!("{name} {}", table::millis(*ms)))
                .collect();
            println!("    {}", steps.join(", "));
        }
        if let Some(upstream_ms) = scenario.upstream_ms {
            println!(
                "    Volcano's own scheduler takes {} for this: {:.0} times as long",
                table::millis(upstream_ms),
                upstream_ms / measured.cycle_ms
            );
        }
    }
    Ok(missed)
}

/// Doubles nodes and pods and compares the times.
fn measure_growth(quick: bool) -> anyhow::Result<usize> {
    println!("\nGrowth: nodes and pods doubled, at most {MAX_GROWTH} times the time");
    let table = Table::new(&["scenario", "pods", "nodes", "cycle", "growth"]);
    table.print_head();
    let mut missed = 0;
    for Growth { scenario, sizes } in GROWTH {
        let sizes = if quick { &sizes[..2] } else { *sizes };
        let best = best_of(scenario, sizes, if quick { 5 } else { 15 })?;
        let mut before: Option<f64> = None;
        for (&nodes, measured) in sizes.iter().zip(best) {
            let growth = before.map(|before| measured.cycle_ms / before);
            let over = growth.is_some_and(|growth| growth > MAX_GROWTH);
            missed += usize::from(over);
            table.print(&[
                (*scenario).to_owned(),
                table::count(measured.pods),
                table::count(nodes as u64),
                table::millis(measured.cycle_ms),
                growth.map_or(String::new(), |growth| {
                    format!("{growth:.2}{}", if over { " MISSED" } else { "" })
                }),
            ]);
            before = Some(measured.cycle_ms);
        }
    }
    Ok(missed)
}

/// The run with the median time of several.
fn median(scenario: &str, nodes: usize, runs: usize) -> anyhow::Result<Measured> {
    let mut all = (0..runs.max(1))
        .map(|_| one(scenario, nodes))
        .collect::<anyhow::Result<Vec<_>>>()?;
    all.sort_by(|a, b| a.cycle_ms.total_cmp(&b.cycle_ms));
    Ok(all.swap_remove(all.len() / 2))
}

/// The fastest run at each size: what is compared is the work, not what else the machine was doing. The sizes take
/// turns, so that a slow minute of the machine hits all of them.
fn best_of(scenario: &str, sizes: &[usize], rounds: usize) -> anyhow::Result<Vec<Measured>> {
    let mut best = sizes
        .iter()
        .map(|&nodes| one(scenario, nodes))
        .collect::<anyhow::Result<Vec<_>>>()?;
    for _ in 1..rounds {
        for (best, &nodes) in best.iter_mut().zip(sizes) {
            let again = one(scenario, nodes)?;
            if again.cycle_ms < best.cycle_ms {
                *best = again;
            }
        }
    }
    Ok(best)
}

/// One run, in a process of its own.
fn one(scenario: &str, nodes: usize) -> anyhow::Result<Measured> {
    let program = env::current_exe().context("finding this program")?;
    let output = Command::new(program)
        .args(["bench", "one", scenario, "--nodes", &nodes.to_string()])
        .current_dir(workspace_root())
        .stderr(Stdio::inherit())
        .output()
        .context("starting a run")?;
    if !output.status.success() {
        bail!("scenario {scenario} with {nodes} nodes failed");
    }
    read(&serde_json::from_slice(&output.stdout).context("reading what a run printed")?)
        .with_context(|| format!("a run of {scenario} left something out"))
}

fn read(value: &Value) -> Option<Measured> {
    let step = |step: &Value| Some((step[0].as_str()?.to_owned(), step[1].as_f64()?));
    Some(Measured {
        pods: value["pods"].as_u64()?,
        load_ms: value["loadMs"].as_f64()?,
        cycle_ms: value["cycleMs"].as_f64()?,
        placed: value["placed"].as_u64()?,
        peak_mib: value["peakMib"].as_f64()?,
        steps: value["steps"].as_array()?.iter().filter_map(step).collect(),
    })
}
