//! `cargo xtask bench cluster`: the scheduler on a real control plane, beside what the API server can do at all.
//!
//! Everything is compared in one run on one machine: a time alone says nothing, since the API server, etcd and the
//! scheduler share the processors. The limit is a bare client that posts the same bindings over as many connections
//! and decides nothing.

mod limit;
mod steady;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail, ensure};
use kube::Client;
use serde_json::json;
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_testcluster::Cluster;
use volcano_testcluster::objects::{self, Node, Pod};

use super::table::{Table, mib, millis};
use super::{bare_client, control_plane, median_of, rest};

/// Writes under way at once, of the scheduler and of the bare client.
const CONNECTIONS: usize = 64;
/// The scheduler reaches at least this part of the limit's rate.
const LEAST_RATIO: f64 = 0.85;
/// Placing a pod takes at most this much longer than the API server itself does, for 99 of 100.
const LONGEST_P99_MS: f64 = 100.0;
/// Memory with all pods of the large cluster.
const MOST_MIB: f64 = 300.0;
/// From the start to the first decision, beyond the time of the lists.
const LONGEST_START_MS: f64 = 1000.0;
/// Writes for each pod, events aside.
const MOST_WRITES: f64 = 2.0;

/// Arguments of `cargo xtask bench cluster`.
#[derive(clap::Args)]
pub struct ClusterArgs {
    /// Nodes.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// Pods of each of the three scenarios.
    #[arg(long, default_value_t = 5000)]
    pods: usize,
    /// Pods that are there already when memory and the time of a restart are measured.
    #[arg(long, default_value_t = 50_000)]
    existing: usize,
    /// Times that each scenario is run, in turn with the limit. The median of each counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of steady load.
    #[arg(long, default_value_t = 20)]
    steady_seconds: u64,
    /// Measure only these parts: bind, steady, large; may be repeated.
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<String>,
}

/// Measures.
///
/// # Errors
/// When something does not come out as it must, or when a target is missed.
pub fn run(args: &ClusterArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(args))
}

async fn measure(args: &ClusterArgs) -> anyhow::Result<()> {
    let (cluster, client) = control_plane()?;
    println!("{} nodes", args.nodes);
    let nodes = (0..args.nodes).map(|at| Node::new(&node_name(at)).cpu("64").memory("256Gi"));
    objects::create_nodes(&client, nodes).await?;
    let bench = Bench { cluster, client };
    let wanted = |part: &str| args.parts.is_empty() || args.parts.iter().any(|given| given == part);
    let mut missed = Vec::new();
    if wanted("bind") {
        // The API server is slower until it has the memory that it needs.
        bench.post_bare(args).await?;
        bench.binds(args, &mut missed).await?;
    }
    if wanted("steady") {
        steady::run(&bench, args.steady_seconds, &mut missed).await?;
    }
    if wanted("large") {
        bench.large(args, &mut missed).await?;
    }
    if !missed.is_empty() {
        bail!("missed: {}", missed.join("; "));
    }
    println!("all targets met");
    Ok(())
}

fn node_name(at: usize) -> String {
    format!("node-{at}")
}

struct Bench {
    cluster: Cluster,
    client: Client,
}

impl Bench {
    fn scheduler(&self) -> anyhow::Result<Scheduler> {
        Scheduler::launch(
            &self.cluster.kubeconfig_path(),
            self.cluster.data_directory(),
            &[],
        )
    }

    /// Pods that are there already, in gangs of different sizes.
    async fn binds(&self, args: &ClusterArgs, missed: &mut Vec<String>) -> anyhow::Result<()> {
        let table = Table::new(&[
            "pods already created",
            "limit",
            "ours",
            "limit/s",
            "ours/s",
            "ratio",
            "writes/pod",
        ]);
        table.print_head();
        for (title, gang) in [("one gang", args.pods), ("gangs of 250", 250), ("groups of 1", 1)] {
            let (mut limits, mut all, mut writes) = (Vec::new(), Vec::new(), 0.0_f64);
            for _ in 0..args.rounds.max(1) {
                let bare = self.post_bare(args).await?;
                let (took, written) = self.schedule(args.pods, gang, bare).await?;
                limits.push(bare);
                all.push(took);
                writes = writes.max(written);
            }
            let (limit, ours) = (median_of(limits), median_of(all));
            let rate = |took: Duration| args.pods as f64 / took.as_secs_f64();
            let ratio = rate(ours) / rate(limit);
            table.print(&[
                format!("{} in {title}", args.pods),
                millis(limit.as_secs_f64() * 1000.0),
                millis(ours.as_secs_f64() * 1000.0),
                format!("{:.0}", rate(limit)),
                format!("{:.0}", rate(ours)),
                format!("{:.0} %", ratio * 100.0),
                format!("{writes:.2}"),
            ]);
            if ratio < LEAST_RATIO {
                missed.push(format!(
                    "{title}: {:.0} % of the limit, {:.0} % wanted",
                    ratio * 100.0,
                    LEAST_RATIO * 100.0
                ));
            }
            if writes > MOST_WRITES {
                missed.push(format!(
                    "{title}: {writes:.2} writes for each pod, {MOST_WRITES} allowed"
                ));
            }
        }
        Ok(())
    }

    /// The limit: the bindings, and nothing but the bindings. Its client is a new one of the same kind as the scheduler's:
    /// both begin without connections.
    async fn post_bare(&self, args: &ClusterArgs) -> anyhow::Result<Duration> {
        let namespace = objects::unique_namespace(&self.client, "limit").await?;
        let pods = (0..args.pods).map(|at| pod(&namespace, at).spec("schedulerName", "nobody".into()));
        objects::create_pods(&self.client, pods).await?;
        let pods = limit::pods(&self.client, &namespace).await?;
        rest(&self.client).await?;
        let began = Instant::now();
        let client = bare_client(&self.cluster).await?;
        limit::post_bindings(&client, &namespace, &pods, args.nodes, CONNECTIONS).await?;
        let took = began.elapsed();
        self.remove(&namespace).await?;
        Ok(took)
    }

    /// The scheduler, from its start to the last bind; and its writes for each pod, events aside. It says itself when the
    /// last bind was answered, and is asked after that: answers cost time that the bare client is not charged with.
    async fn schedule(&self, pods: usize, gang: usize, limit: Duration) -> anyhow::Result<(Duration, f64)> {
        let namespace = objects::unique_namespace(&self.client, "ours").await?;
        let groups = pods.div_ceil(gang);
        let size = u32::try_from(gang)?;
        let group = |at: usize| objects::pod_group(&namespace, &format!("group-{at}"), size, "default");
        let place = objects::path("scheduling.volcano.sh/v1beta1", &namespace, "podgroups", "");
        objects::create_all(&self.client, (0..groups).map(|at| (place.clone(), group(at)))).await?;
        let members = (0..pods).map(|at| pod(&namespace, at).group(&format!("group-{}", at / gang)));
        objects::create_pods(&self.client, members).await?;
        rest(&self.client).await?;
        let began = SystemTime::now();
        let scheduler = self.scheduler()?;
        let ended = bound(&scheduler, pods, limit).await?;
        let took = ended.duration_since(began).context("a bind before the start")?;
        // What is still to be written about the groups belongs to the pods' writes.
        let writes = settle(&scheduler).await? / pods as f64;
        let bound = objects::pod_nodes(&self.client, &namespace).await?;
        ensure!(
            bound.values().all(Option::is_some),
            "a pod without a node was counted as bound"
        );
        scheduler.stop()?;
        self.remove(&namespace).await?;
        Ok((took, writes))
    }

    /// Memory and restart in a cluster with many pods.
    async fn large(&self, args: &ClusterArgs, missed: &mut Vec<String>) -> anyhow::Result<()> {
        let namespace = objects::unique_namespace(&self.client, "large").await?;
        println!("creating {} pods", args.existing);
        let pods = (0..args.existing)
            .map(|at| pod(&namespace, at).spec("nodeName", node_name(at % args.nodes).into()));
        objects::create_pods(&self.client, pods).await?;
        rest(&self.client).await?;
        let client = bare_client(&self.cluster).await?;
        let lists = limit::list_everything(&client).await?;
        let began = Instant::now();
        let scheduler = self.scheduler()?;
        wait_for(&scheduler, Duration::from_secs(120), |metrics| {
            metrics.value("volcano_cycles_total") >= 1.0
        })
        .await?;
        let first = began.elapsed();
        settle(&scheduler).await?;
        let memory = resident_mib(scheduler.id())?;
        println!(
            "{} nodes, {} pods: {} resident; first decision after {}, the lists alone take {}",
            args.nodes,
            args.existing,
            mib(memory),
            millis(first.as_secs_f64() * 1000.0),
            millis(lists.as_secs_f64() * 1000.0)
        );
        if memory > MOST_MIB {
            missed.push(format!(
                "{memory:.0} MiB with {} pods, {MOST_MIB} allowed",
                args.existing
            ));
        }
        let beyond = (first.as_secs_f64() - lists.as_secs_f64()) * 1000.0;
        if beyond > LONGEST_START_MS {
            missed.push(format!(
                "first decision {beyond:.0} ms after the lists, {LONGEST_START_MS} allowed"
            ));
        }
        scheduler.stop()?;
        Ok(())
    }

    /// Removes the pods and groups of a namespace, so that the next run starts as this one did.
    async fn remove(&self, namespace: &str) -> anyhow::Result<()> {
        objects::delete_pods(&self.client, namespace).await?;
        let groups = objects::path("scheduling.volcano.sh/v1beta1", namespace, "podgroups", "");
        objects::delete(&self.client, &groups).await
    }
}

/// A pod as a cluster makes it: with a volume for the credentials of its account, whose name is its own. The control plane of
/// the tests has no accounts, so it is written here.
fn pod(namespace: &str, at: usize) -> Pod {
    let credentials = json!({
        "name": format!("kube-api-access-{at:05}"),
        "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]},
    });
    Pod::new(namespace, &format!("pod-{at}"))
        .cpu("100m")
        .memory("128Mi")
        .spec("terminationGracePeriodSeconds", 0.into())
        .spec("serviceAccountName", "default".into())
        .spec("volumes", json!([credentials]))
}

/// What `/metrics` said.
struct Metrics(String);

impl Metrics {
    fn read(scheduler: &Scheduler) -> anyhow::Result<Self> {
        Ok(Metrics(scheduler.get("/metrics")?.1))
    }

    fn value(&self, series: &str) -> f64 {
        let line = self
            .0
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    /// Writes that were answered, events aside. Those of queues are not counted either: they come once a second, however
    /// many pods there are.
    fn writes(&self) -> f64 {
        let writes = self
            .0
            .lines()
            .filter(|line| line.starts_with("volcano_api_writes_total{"));
        let aside = [r#"kind="event""#, r#"kind="queue-status""#];
        let counted = writes.filter(|line| !aside.iter().any(|kind| line.contains(kind)));
        counted
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}

/// Waits until so many pods are bound; when the last one was. The scheduler is first asked when it should be done, and not
/// all the time: with thousands of jobs an answer costs it a twentieth of a second.
async fn bound(scheduler: &Scheduler, pods: usize, limit: Duration) -> anyhow::Result<SystemTime> {
    const LONGEST: Duration = Duration::from_secs(300);
    let began = Instant::now();
    tokio::time::sleep(limit.mul_f64(1.5)).await;
    loop {
        let metrics = Metrics::read(scheduler)?;
        let done = metrics.value(r#"volcano_api_writes_total{kind="bind",result="ok"}"#);
        if done >= pods as f64 {
            let last = metrics.value("volcano_last_bind_timestamp_seconds");
            return Ok(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(last));
        }
        ensure!(
            began.elapsed() < LONGEST,
            "{done} of {pods} pods are bound after {:?}\n{}",
            began.elapsed(),
            scheduler.log()
        );
        tokio::time::sleep(limit / 10).await;
    }
}

/// Looks at the metrics until they are as wanted: no load on the API server.
async fn wait_for(
    scheduler: &Scheduler,
    within: Duration,
    holds: impl Fn(&Metrics) -> bool,
) -> anyhow::Result<()> {
    objects::wait_until("the scheduler is done", within, || async {
        let metrics = Metrics::read(scheduler).unwrap_or(Metrics(String::new()));
        Ok(objects::check(holds(&metrics), || scheduler.log()))
    })
    .await
}

/// Waits until the scheduler writes nothing more.
async fn settle(scheduler: &Scheduler) -> anyhow::Result<f64> {
    super::settle(|| Ok(Metrics::read(scheduler)?.writes())).await
}

fn resident_mib(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    Ok(kib.context("a process has a size")? / 1024.0)
}
