//! Pods that come one after the other: how long each waits for its node.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use serde::Deserialize;
use tokio::sync::mpsc;
use volcano_testcluster::objects;

use super::limit;
use super::{Bench, LONGEST_P99_MS, MOST_WRITES, pod};
use crate::bench::{BareClient, bare_client};

/// Pods per second.
const RATE: u32 = 50;
/// The node of the bare client.
const NODE: usize = 0;

#[derive(Deserialize)]
struct Line {
    object: Seen,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Seen {
    metadata: Meta,
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    name: String,
    uid: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

/// Measures the scheduler, and beside it a bare client that binds each pod as soon as it sees it.
pub async fn run(bench: &Bench, seconds: u64, missed: &mut Vec<String>) -> anyhow::Result<()> {
    let binder = bare_client(&bench.cluster).await?;
    let bare = waits(&bench.client, "steady-bare", seconds, Some(&binder)).await?;
    let scheduler = bench.scheduler()?;
    super::wait_for(&scheduler, Duration::from_secs(60), |metrics| {
        metrics.value("volcano_cycles_total") >= 1.0
    })
    .await?;
    let ours = waits(&bench.client, "steady", seconds, None).await?;
    let writes = super::settle(&scheduler).await? / (seconds * u64::from(RATE)) as f64;
    scheduler.stop()?;
    let at = |waits: &[Duration], part: f64| {
        let index = ((waits.len() - 1) as f64 * part).round() as usize;
        waits[index].as_secs_f64() * 1000.0
    };
    println!(
        "{RATE} pods/s for {seconds} s, creation to bind: p50 {:.1} ms, p99 {:.1} ms; a bare client p50 {:.1} ms, p99 {:.1} ms; {writes:.2} writes/pod",
        at(&ours, 0.5),
        at(&ours, 0.99),
        at(&bare, 0.5),
        at(&bare, 0.99)
    );
    let beyond = at(&ours, 0.99) - at(&bare, 0.99);
    if beyond > LONGEST_P99_MS {
        missed.push(format!(
            "p99 is {beyond:.0} ms beyond the API server's own, {LONGEST_P99_MS} allowed"
        ));
    }
    if writes > MOST_WRITES {
        missed.push(format!(
            "{RATE} pods/s: {writes:.2} writes for each pod, {MOST_WRITES} allowed"
        ));
    }
    Ok(())
}

/// Creates pods at the rate, and returns how long each took to be bound, shortest first. A bare `binder` binds them;
/// without one, the scheduler does.
async fn waits(
    client: &Client,
    prefix: &str,
    seconds: u64,
    binder: Option<&BareClient>,
) -> anyhow::Result<Vec<Duration>> {
    let namespace = objects::unique_namespace(client, prefix).await?;
    let count = usize::try_from(seconds * u64::from(RATE))?;
    let (bound, mut seen) = mpsc::unbounded_channel();
    let watching = tokio::spawn(watch(client.clone(), namespace.clone(), binder.cloned(), bound));
    let mut created = BTreeMap::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
    let mut creations = tokio::task::JoinSet::new();
    for at in 0..count {
        ticks.tick().await;
        let (client, namespace, with_group) = (client.clone(), namespace.clone(), binder.is_none());
        creations.spawn(async move {
            let name = format!("pod-{at}");
            if with_group {
                objects::create_pod_group(&client, &namespace, &name, 1, "default").await?;
            }
            let began = Instant::now();
            objects::create_pod(&client, &pod(&namespace, at).group(&name)).await?;
            anyhow::Ok((name, began))
        });
    }
    while let Some(creation) = creations.join_next().await {
        let (name, began) = creation??;
        created.insert(name, began);
    }
    let mut waits = Vec::with_capacity(count);
    while waits.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(60), seen.recv()).await;
        let (name, at): (String, Instant) = next.context("a pod is not bound")?.context("the watch ended")?;
        let began = created.remove(&name).context("a pod is bound once")?;
        waits.push(at.saturating_duration_since(began));
    }
    watching.abort();
    waits.sort();
    Ok(waits)
}

/// Tells when each pod is seen with a node; with a `binder` it gives each pod its node itself.
async fn watch(
    client: Client,
    namespace: String,
    binder: Option<BareClient>,
    bound: mpsc::UnboundedSender<(String, Instant)>,
) -> anyhow::Result<()> {
    let path = format!("{}?watch=true", objects::path("v1", &namespace, "pods", ""));
    let body = client
        .request_stream(Request::get(path).body(Vec::new())?)
        .await?;
    let mut lines = body.lines();
    let mut told = std::collections::BTreeSet::new();
    while let Some(line) = lines.try_next().await? {
        let Line { object } = serde_json::from_str(&line)?;
        let Meta { name, uid } = object.metadata;
        if !object.spec.node_name.is_empty() {
            if told.insert(name.clone()) {
                bound.send((name, Instant::now()))?;
            }
        } else if let Some(binder) = binder.clone() {
            let (namespace, node) = (namespace.clone(), super::node_name(NODE));
            tokio::spawn(async move { limit::bind(&binder, &namespace, &name, &uid, &node).await });
        }
    }
    Ok(())
}
