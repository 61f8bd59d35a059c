//! `cargo xtask bench jobs`: how fast the controllers make the pods of Jobs, beside what the API server can do at all.
//!
//! ```text
//! Jobs are stored ──> controllers make PodGroups ──> stopped; PodGroups are admitted ──> controllers start ──> last pod
//!                                                                                       |<------ measured ------->|
//! ```
//!
//! The limit is a bare client that posts the same bodies over as many connections and decides nothing. The benchmark
//! admits the PodGroups in the scheduler's place: what a scheduler would do meanwhile is no work of the controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use volcano_api::batch::Job;
use volcano_api::protobuf;
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::time::Time;
use volcano_cluster_tests::controllers::Controllers;
use volcano_cluster_tests::jobs;
use volcano_reconcile::job::{Memory, Observed, group_name, reconcile};
use volcano_reconcile::plugins;
use volcano_reconcile::write::Write;
use volcano_testcluster::Cluster;
use volcano_testcluster::objects::{self, Progress};

use super::table::{Table, millis};
use super::{BareClient, bare_client, control_plane, median_of, rest};

/// Writes under way at once, of the controllers and of the bare client.
const CONNECTIONS: usize = 64;
/// The controllers make pods at this part of the limit's rate at least.
const LEAST_RATIO: f64 = 0.85;
/// How long a run may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How often the controllers are asked how far they are.
const LOOK: Duration = Duration::from_millis(10);
/// Where PodGroups and queues are.
const SCHEDULING: &str = "scheduling.volcano.sh/v1beta1";

/// Arguments of `cargo xtask bench jobs`.
#[derive(clap::Args)]
pub struct JobsArgs {
    /// Jobs.
    #[arg(long, default_value_t = 500)]
    jobs: usize,
    /// Pods of each.
    #[arg(long, default_value_t = 20)]
    pods: usize,
    /// Runs, in turn with the limit. The median of each counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Measures.
///
/// # Errors
/// When something does not come out as it must, or when a target is missed.
pub fn run(args: &JobsArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(args))
}

/// What the controllers did.
struct Ours {
    /// From the start of the process to the last pod.
    took: Duration,
    /// Writes of the controllers, from the first one for the Jobs on, events aside.
    writes: f64,
    /// Creations of pods that the API server was asked for, from the first look at the Jobs on.
    asked: f64,
    /// Those that it refused since there was one of that name.
    refused: f64,
}

async fn measure(args: &JobsArgs) -> anyhow::Result<()> {
    let (cluster, client) = control_plane()?;
    // Jobs wait for their queue, and no scheduler is there to make it.
    objects::create_queue(&client, "default", 1, &json!({})).await?;
    let bench = Bench { cluster, client };
    let total = args.jobs * args.pods;
    // The API server is slower until it has the memory that it needs.
    bench.bare(args).await?;
    let table = Table::new(&["round", "limit", "ours", "limit/s", "ours/s", "ratio"]);
    table.print_head();
    let rate = |took: Duration| total as f64 / took.as_secs_f64();
    let (mut limits, mut all, mut writes) = (Vec::new(), Vec::new(), 0.0_f64);
    for round in 1..=args.rounds.max(1) {
        let bare = bench.bare(args).await?;
        let ours = bench.ours(args, bare).await?;
        table.print(&[
            round.to_string(),
            millis(bare.as_secs_f64() * 1000.0),
            millis(ours.took.as_secs_f64() * 1000.0),
            format!("{:.0}", rate(bare)),
            format!("{:.0}", rate(ours.took)),
            format!("{:.0} %", rate(ours.took) / rate(bare) * 100.0),
        ]);
        ensure!(ours.refused == 0.0, "{} pods were asked for twice", ours.refused);
        ensure!(
            ours.asked == total as f64,
            "{} creations for {total} pods",
            ours.asked
        );
        limits.push(bare);
        all.push(ours.took);
        writes = writes.max(ours.writes);
    }
    let (limit, ours) = (median_of(limits), median_of(all));
    let ratio = rate(ours) / rate(limit);
    println!(
        "{} Jobs of {} pods: {:.0} pods/s of {:.0} pods/s, {:.0} %; {:.2} writes/pod, {:.1} writes/Job, 0 creations in vain",
        args.jobs,
        args.pods,
        rate(ours),
        rate(limit),
        ratio * 100.0,
        writes / total as f64,
        writes / args.jobs as f64,
    );
    if ratio < LEAST_RATIO {
        bail!(
            "missed: {:.0} % of the limit, {:.0} % wanted",
            ratio * 100.0,
            LEAST_RATIO * 100.0
        );
    }
    println!("all targets met");
    Ok(())
}

struct Bench {
    cluster: Cluster,
    client: Client,
}

impl Bench {
    /// The limit: the pods, and nothing but the pods. Its client is a new one, as that of the controllers is: both begin
    /// without connections.
    async fn bare(&self, args: &JobsArgs) -> anyhow::Result<Duration> {
        let namespace = objects::unique_namespace(&self.client, "limit").await?;
        let bodies = bodies(&namespace, args)?;
        rest(&self.client).await?;
        let began = Instant::now();
        let client = bare_client(&self.cluster).await?;
        futures::stream::iter(bodies)
            .map(|body| post(&client, &namespace, body))
            .buffer_unordered(CONNECTIONS)
            .try_collect::<()>()
            .await?;
        let took = began.elapsed();
        self.remove(&namespace).await?;
        Ok(took)
    }

    /// The controllers. They are not asked how far they are before the limit has passed: answers cost time that the bare
    /// client is not charged with.
    async fn ours(&self, args: &JobsArgs, limit: Duration) -> anyhow::Result<Ours> {
        let (before, total) = (self.creations().await?, args.jobs * args.pods);
        let (namespace, first) = self.admitted(args).await?;
        rest(&self.client).await?;
        let began = Instant::now();
        let controllers = self.controllers()?;
        tokio::time::sleep(limit).await;
        let made = || controllers.metric(r#"volcano_api_writes_total{kind="pods",result="ok""#);
        while made().unwrap_or_default() < total as f64 {
            ensure!(
                began.elapsed() < TIMEOUT,
                "of {total} pods there are {:?}:\n{}",
                made(),
                controllers.log()
            );
            tokio::time::sleep(LOOK).await;
        }
        let took = began.elapsed();
        // What is still to be written about the Jobs belongs to the pods' writes.
        let writes = first + settle(&controllers).await?;
        let after = self.creations().await?;
        controllers.stop()?;
        let there = objects::pods(&self.client, &namespace).await?.len();
        ensure!(there == total, "{there} pods are there");
        self.remove(&namespace).await?;
        Ok(Ours {
            took,
            writes,
            asked: after.0 - before.0,
            refused: after.1 - before.1,
        })
    }

    fn controllers(&self) -> anyhow::Result<Controllers> {
        Controllers::launch(
            &self.cluster.kubeconfig_path(),
            self.cluster.data_directory(),
            &["--kube-api-qps=0"],
        )
    }

    /// Stores the Jobs, has their PodGroups made and admits them. The namespace, and the writes of the controllers.
    async fn admitted(&self, args: &JobsArgs) -> anyhow::Result<(String, f64)> {
        let namespace = objects::unique_namespace(&self.client, "ours").await?;
        let path = objects::path(jobs::BATCH, &namespace, "jobs", "");
        let jobs = (0..args.jobs).map(|at| (path.clone(), job(at, args.pods)));
        objects::create_all(&self.client, jobs).await?;
        let path = objects::path(SCHEDULING, &namespace, "podgroups", "");
        let controllers = self.controllers()?;
        let groups = objects::wait_until("every Job has a PodGroup", TIMEOUT, || async {
            let groups = objects::list(&self.client, &path).await?;
            Ok(match groups.len() == args.jobs {
                true => Progress::Done(groups),
                false => Progress::Waiting(controllers.log()),
            })
        })
        .await?;
        let writes = settle(&controllers).await?;
        controllers.stop()?;
        let admitted = &json!({"status": {"phase": "Inqueue"}});
        futures::stream::iter(groups.iter().map(objects::name_of))
            .map(|name| format!("{path}/{name}"))
            .map(|path| async move {
                objects::merge_patch(&self.client, &path, admitted)
                    .await
                    .map(drop)
            })
            .buffer_unordered(CONNECTIONS)
            .try_collect::<()>()
            .await?;
        Ok((namespace, writes))
    }

    /// Creations of pods that the API server was asked for, and those that it refused with a conflict.
    async fn creations(&self) -> anyhow::Result<(f64, f64)> {
        let request = Request::get("/metrics").body(Vec::new())?;
        let text = self.client.request_text(request).await?;
        let is_it = |line: &&str| {
            line.starts_with("apiserver_request_total{")
                && [r#"resource="pods""#, r#"subresource="""#, r#"verb="POST""#]
                    .iter()
                    .all(|label| line.contains(label))
        };
        let value = |line: &str| line.rsplit(' ').next().and_then(|text| text.parse::<f64>().ok());
        let lines: Vec<&str> = text.lines().filter(is_it).collect();
        let all = lines.iter().filter_map(|line| value(line)).sum();
        let refused = lines.iter().filter(|line| line.contains(r#"code="409""#));
        Ok((all, refused.filter_map(|line| value(line)).sum()))
    }

    /// Removes what a run has made, so that the next one starts as this one did.
    async fn remove(&self, namespace: &str) -> anyhow::Result<()> {
        objects::delete(&self.client, &objects::path(jobs::BATCH, namespace, "jobs", "")).await?;
        objects::delete_pods(&self.client, namespace).await?;
        let groups = objects::path(SCHEDULING, namespace, "podgroups", "");
        objects::delete(&self.client, &groups).await?;
        let leases = objects::path("coordination.k8s.io/v1", "default", "leases", "");
        objects::delete(&self.client, &leases).await
    }
}

fn job(at: usize, pods: usize) -> Value {
    jobs::job(
        &format!("job-{at}"),
        &json!({"tasks": [jobs::task("worker", pods)]}),
    )
}

/// The pods of all Jobs, as the controllers make them.
fn bodies(namespace: &str, args: &JobsArgs) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut bodies = Vec::new();
    let queue = Queue::default();
    for at in 0..args.jobs {
        let mut job = job(at, args.pods);
        let uid = format!("00000000-0000-0000-0000-{at:012}");
        job["metadata"]["namespace"] = json!(namespace);
        job["metadata"]["uid"] = json!(uid);
        job["status"] = json!({"state": {"phase": "Pending"}});
        let job: Job = serde_json::from_value(job)?;
        let group: PodGroup = serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": group_name(&job), "uid": "g",
                "annotations": {"volcano.sh/job-version": "0"}},
            "status": {"phase": "Inqueue"},
        }))?;
        let observed = Observed {
            job: &job,
            pods: &[],
            pod_group: Some(&group),
            queue: Some(&queue),
            claims: &BTreeSet::new(),
            plugin_objects: &plugins::Observed::default(),
            commands: &[],
            priorities: &BTreeMap::new(),
            is_exhausted: false,
        };
        let plan = reconcile(&observed, &mut Memory::default(), Time::EPOCH);
        let pods = plan.steps.iter().flatten().filter_map(|write| match write {
            Write::Create { body, .. } if body["kind"] == "Pod" => Some(body.to_string().into_bytes()),
            _ => None,
        });
        bodies.extend(pods);
    }
    ensure!(
        bodies.len() == args.jobs * args.pods,
        "{} pods were planned",
        bodies.len()
    );
    Ok(bodies)
}

/// As the controllers ask for a pod: what the API server is spared there, it is spared here.
async fn post(client: &BareClient, namespace: &str, body: Vec<u8>) -> anyhow::Result<()> {
    let path = objects::path("v1", namespace, "pods", "") + "?fieldValidation=Ignore";
    let answer = client.create::<IgnoredAny>(&path, body, Some(protobuf::POD));
    answer.await?;
    Ok(())
}

/// Waits until the controllers write nothing more. Their writes, events aside.
async fn settle(controllers: &Controllers) -> anyhow::Result<f64> {
    super::settle(|| {
        let all = controllers.metric("volcano_api_writes_total")?;
        let events = controllers.metric(r#"volcano_api_writes_total{kind="event""#)?;
        Ok(all - events)
    })
    .await
}
