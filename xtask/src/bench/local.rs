//! `cargo xtask bench local`: the whole system in one process, from Jobs that are submitted to Jobs that are completed.
//!
//! ```text
//! xtask -> for each round: xtask bench local-one  (throughput)    Jobs submitted ──> last one Completed
//!       -> for each round: volcano run hello-gang.yaml (start)    process started ──> first line of the master's log
//!       -> for each round: xtask bench local-start (simulated)    process started ──> first simulated pod Running
//! ```
//!
//! The start that counts is that of the product, with this machine as its node: the first line of a log is seen after its
//! pod runs.
//!
//! Each run is a process of its own, so that its peak memory is its own and nothing is warm. What came out is checked:
//! every Job is Completed, and every pod succeeded.

use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};
use volcano_local::{Nodes, Options, SimulatedNodes, System};

use super::engine::peak_mib;
use super::median_of;
use super::table::{Table, count, mib, millis};
use crate::process::{Cargo, workspace_root};

/// Pods per second, at least.
const LEAST_RATE: f64 = 2000.0;
/// Memory, at most.
const MOST_MIB: f64 = 1024.0;
/// From the start of the product to the first pod that runs, at most.
const LONGEST_START: Duration = Duration::from_millis(300);
/// Jobs that are submitted at the same time.
const SUBMITTED_AT_ONCE: usize = 16;
/// How often it is looked whether a Job is done.
const LOOK: Duration = Duration::from_millis(5);
/// How long a run may take.
const TIMEOUT: Duration = Duration::from_secs(300);
const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
/// What a process says when its first pod runs.
const RUNS: &str = "running";

/// Arguments of `cargo xtask bench local`.
#[derive(clap::Args)]
pub struct LocalArgs {
    #[command(flatten)]
    size: Size,
    /// Runs. The median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// How much there is to do.
#[derive(clap::Args)]
pub struct Size {
    /// Simulated nodes.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// Jobs.
    #[arg(long, default_value_t = 500)]
    jobs: usize,
    /// Pods of each.
    #[arg(long, default_value_t = 20)]
    pods: usize,
}

/// Measures.
///
/// # Errors
/// When something does not come out as it must, or when a target is missed.
pub fn run(args: &LocalArgs) -> anyhow::Result<()> {
    let rounds = args.rounds.max(1);
    Cargo::new(["build", "--release", "--quiet", "--bin", "volcano"]).run()?;
    let total = args.size.jobs * args.size.pods;
    let table = Table::new(&[
        "round",
        "pods",
        "nodes",
        "took",
        "pods/s",
        "rate/target",
        "peak",
        "start",
        "simulated",
    ]);
    table.print_head();
    let (mut all, mut starts, mut peak) = (Vec::new(), Vec::new(), 0.0_f64);
    let rate = |took: Duration| total as f64 / took.as_secs_f64();
    for round in 1..=rounds {
        let (took, mib_used) = one_run(&args.size)?;
        let (start, simulated) = (product_start()?, one_start()?);
        table.print(&[
            round.to_string(),
            count(total as u64),
            count(args.size.nodes as u64),
            millis(took.as_secs_f64() * 1000.0),
            format!("{:.0}", rate(took)),
            format!("{:.2}", rate(took) / LEAST_RATE),
            mib(mib_used),
            millis(start.as_secs_f64() * 1000.0),
            millis(simulated.as_secs_f64() * 1000.0),
        ]);
        all.push(took);
        starts.push(start);
        peak = peak.max(mib_used);
    }
    let (took, start) = (median_of(all), median_of(starts));
    println!(
        "{:.0} pods/s of {LEAST_RATE:.0} wanted, {:.2} times; peak {} of {}; first pod after {} of {}",
        rate(took),
        rate(took) / LEAST_RATE,
        mib(peak),
        mib(MOST_MIB),
        millis(start.as_secs_f64() * 1000.0),
        millis(LONGEST_START.as_secs_f64() * 1000.0),
    );
    let missed: Vec<&str> = [
        (rate(took) < LEAST_RATE, "rate"),
        (peak > MOST_MIB, "memory"),
        (start > LONGEST_START, "start"),
    ]
    .into_iter()
    .filter_map(|(missed, what)| missed.then_some(what))
    .collect();
    if !missed.is_empty() {
        bail!("missed: {}", missed.join(", "));
    }
    println!("all targets met");
    Ok(())
}

fn own(words: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(env::current_exe().context("finding this program")?);
    command.arg("bench").args(words).stdout(Stdio::piped());
    Ok(command)
}

fn one_run(size: &Size) -> anyhow::Result<(Duration, f64)> {
    let numbers = [size.nodes, size.jobs, size.pods].map(|number| number.to_string());
    let [nodes, jobs, pods] = &numbers;
    let output = own(&["local-one", "--nodes", nodes, "--jobs", jobs, "--pods", pods])?
        .output()
        .context("starting a run")?;
    ensure!(output.status.success(), "a run failed");
    let said: Value = serde_json::from_slice(&output.stdout).context("reading what a run printed")?;
    let (took, peak) = (said["tookMs"].as_f64(), said["peakMib"].as_f64());
    let (took, peak) = took.zip(peak).context("a run left something out")?;
    Ok((Duration::from_secs_f64(took / 1000.0), peak))
}

/// From before the product is started to the first line of its first pod, which is a process of this machine.
fn product_start() -> anyhow::Result<Duration> {
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), Into::into);
    let binary = env::var_os("VOLCANO_BINARY").map_or_else(|| folder.join("release/volcano"), Into::into);
    let mut command = Command::new(&binary);
    command
        .arg("run")
        .arg(workspace_root().join("examples/hello-gang.yaml"));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("starting {}", binary.display()))?;
    let output = child.stdout.take().context("the product has no output")?;
    let mut lines = BufReader::new(output).lines();
    let first = lines.next().context("the product printed nothing")??;
    let took = began.elapsed();
    // What is printed later is not of interest, but must find a reader.
    lines.for_each(drop);
    ensure!(
        child.wait()?.success() && first.starts_with("hello, I am "),
        "the product said {first:?}"
    );
    Ok(took)
}

/// From before the process is started to what it says when its first pod runs.
fn one_start() -> anyhow::Result<Duration> {
    let mut command = own(&["local-start"])?;
    let began = Instant::now();
    let mut child = command.spawn().context("starting a run")?;
    let output = child.stdout.take().context("a run has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let took = began.elapsed();
    ensure!(
        child.wait()?.success() && line.trim() == RUNS,
        "a run said {line:?}"
    );
    Ok(took)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// One run of the throughput, in this process; prints its measurements as JSON.
///
/// # Errors
/// When something does not come out as it must.
pub fn one(size: &Size) -> anyhow::Result<()> {
    let took = runtime()?.block_on(throughput(size))?;
    let measured = json!({"tookMs": took.as_secs_f64() * 1000.0, "peakMib": peak_mib()?});
    println!("{measured}");
    Ok(())
}

async fn throughput(size: &Size) -> anyhow::Result<Duration> {
    let nodes = SimulatedNodes {
        count: size.nodes,
        cpu: "16".to_owned(),
        memory: "64Gi".to_owned(),
        ..SimulatedNodes::default()
    };
    let system = System::start(Options {
        nodes: Nodes::Simulated(vec![nodes]),
        ..Options::default()
    })
    .await?;
    let client = system.client();
    let began = Instant::now();
    let names: Vec<String> = (0..size.jobs).map(|at| format!("job-{at:04}")).collect();
    futures::stream::iter(&names)
        .map(|name| submit(&client, name, size.pods, "100ms"))
        .buffer_unordered(SUBMITTED_AT_ONCE)
        .try_collect::<()>()
        .await?;
    let reader = system.plane().reader();
    for name in &names {
        loop {
            let bytes = reader.get("batch.volcano.sh", "jobs", "default", name);
            let job: Value = serde_json::from_slice(&bytes.context("a Job is gone")?)?;
            match job["status"]["state"]["phase"].as_str() {
                Some("Completed") => {
                    ensure!(
                        job["status"]["succeeded"] == size.pods,
                        "{name}: {}",
                        job["status"]
                    );
                    break;
                }
                Some("Failed") => bail!("{name} failed: {}", job["status"]),
                _ if began.elapsed() > TIMEOUT => bail!("{name} takes too long: {}", job["status"]),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }
    let took = began.elapsed();
    let pods = reader.all("", "pods");
    let succeeded = pods.iter().filter(|pod| is_succeeded(pod)).count();
    ensure!(
        succeeded == size.jobs * size.pods,
        "{succeeded} of {} pods succeeded",
        size.jobs * size.pods
    );
    system.stop().await;
    Ok(took)
}

fn is_succeeded(pod: &[u8]) -> bool {
    let pod: Value = serde_json::from_slice(pod).unwrap_or_default();
    pod["status"]["phase"] == "Succeeded"
}

/// One start: says when the first pod runs.
///
/// # Errors
/// When none does.
pub fn start() -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let system = System::start(Options {
            nodes: Nodes::Simulated(vec![SimulatedNodes::default()]),
            ..Options::default()
        })
        .await?;
        submit(&system.client(), "first", 1, "10s").await?;
        let began = Instant::now();
        let reader = system.plane().reader();
        let runs = || {
            let pod = reader.get("", "pods", "default", "first-main-0")?;
            let pod: Value = serde_json::from_slice(&pod).ok()?;
            (pod["status"]["phase"] == "Running").then_some(())
        };
        while runs().is_none() {
            ensure!(began.elapsed() < TIMEOUT, "no pod runs");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        println!("{RUNS}");
        std::io::stdout().flush()?;
        system.stop().await;
        Ok(())
    })
}

async fn submit(client: &Client, name: &str, pods: usize, runs: &str) -> anyhow::Result<()> {
    let job = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": pods,
            "schedulerName": "volcano",
            "tasks": [{
                "name": "main",
                "replicas": pods,
                "template": {
                    "metadata": {"annotations": {"volcano.sh/simulated-duration": runs}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{
                            "name": "main",
                            "image": "busybox:1",
                            "command": ["train"],
                            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                        }],
                    },
                },
            }],
        },
    });
    let request = http::Request::post(JOBS)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(&job)?)?;
    client.request::<Value>(request).await?;
    Ok(())
}
