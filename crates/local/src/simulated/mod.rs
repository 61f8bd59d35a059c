//! Simulated nodes: nodes without machines, whose pods run for the time that they say.
//!
//! ```text
//! one watch of pods ──> kubelet (state machine) ──> writes, many under way at the same time
//! ```
//!
//! All nodes are one task: what they cost follows from what happens to pods, not from how many nodes there are.

mod kubelet;
mod life;
mod node;
mod pod;
mod status;

use crate::options::{Nodes, SimulatedNodes};
use futures::StreamExt as _;
use futures::stream;
use kubelet::{Key, Kubelet, Write};
use pod::{Change, PODS, Pod, Simulating};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, warn};
use volcano_runtime::client::{CallError, Client, Patch, Resource};
use volcano_runtime::metrics::Process;
use volcano_runtime::watch::{Feed, watch};

const NODES: Resource = Resource::new("", "v1", "nodes");
/// Nodes that are made at the same time.
const MADE_AT_ONCE: usize = 16;
/// Batches of changes that wait.
const WAITING: usize = 64;
/// Writes under way at the same time, at most.
const LANES: usize = 64;
/// Without anything to do it wakes this often.
const IDLE: Duration = Duration::from_secs(3600);
/// Who tells events.
const COMPONENT: &str = "simulated-node";

/// Names and addresses of nodes that are there.
pub type Addresses = FxHashMap<String, Ipv4Addr>;

/// Names of all nodes.
pub fn names(nodes: &Nodes) -> Vec<String> {
    match nodes {
        Nodes::None => Vec::new(),
        Nodes::Simulated(groups) => groups.iter().flat_map(node::names).collect(),
    }
}

/// Makes the Node objects, or brings those that are there up to date.
///
/// # Errors
/// The name of the first node that was refused, and why.
pub async fn make(client: &Client, groups: &[SimulatedNodes]) -> Result<Addresses, (String, CallError)> {
    let mut nodes = Vec::new();
    let mut addresses = Addresses::default();
    for group in groups {
        for name in node::names(group) {
            let address = node::address(addresses.len());
            nodes.push((
                name.clone(),
                node::object(group, &name, address, client.clock().now()),
            ));
            addresses.insert(name, address);
        }
    }
    let mut made = stream::iter(nodes)
        .map(|(name, object)| async move {
            (make_one(client, &name, object).await).map_err(|error| (name, error))
        })
        .buffer_unordered(MADE_AT_ONCE);
    while let Some(outcome) = made.next().await {
        outcome?;
    }
    Ok(addresses)
}

async fn make_one(client: &Client, name: &str, mut object: Value) -> Result<(), CallError> {
    match client.post(&NODES.all(), bytes(&object)).await {
        Err(error) if error.is_conflict() => {}
        answer => return answer.map(drop),
    }
    // It is there from an earlier start, perhaps with other sizes.
    let path = NODES.object("", name);
    let status = json!({"status": object["status"].take()});
    client
        .patch(&format!("{path}/status"), Patch::Merge, bytes(&status))
        .await?;
    let labels = json!({"metadata": {"labels": object["metadata"]["labels"]}});
    client.patch(&path, Patch::Merge, bytes(&labels)).await.map(drop)
}

/// Runs the pods of the nodes until it is aborted.
pub async fn run(client: Client, metrics: Process, nodes: Addresses) {
    let (to, mut feed) = mpsc::channel(WAITING);
    let mut watching = JoinSet::new();
    watching.spawn(watch::<Simulating, Pod>(client.clone(), metrics, to));
    let mut kubelet = Kubelet::new(nodes);
    let mut running: JoinSet<Result<Key, Write>> = JoinSet::new();
    loop {
        while running.len() < LANES
            && let Some(write) = kubelet.next()
        {
            running.spawn(carry_out(client.clone(), write));
        }
        let wakes = kubelet.wakes().unwrap_or_else(|| Instant::now() + IDLE);
        tokio::select! {
            fed = feed.recv() => match fed {
                Some(fed) => take(&mut kubelet, fed, &client),
                None => return,
            },
            Some(Ok(ended)) = running.join_next() => match ended {
                Ok(key) => kubelet.written(&key),
                Err(write) => kubelet.failed(write, Instant::now()),
            },
            () = tokio::time::sleep_until(wakes) => {}
        }
        kubelet.tick(Instant::now(), client.clock().now());
    }
}

fn take(kubelet: &mut Kubelet, fed: Feed<Simulating>, client: &Client) {
    match fed {
        Feed::Changes(changes) => {
            let (now, wall) = (Instant::now(), client.clock().now());
            for change in changes {
                match change {
                    Change::Pod(pod) => kubelet.take(*pod, now, wall),
                    Change::Gone { namespace, name } => kubelet.gone(&(namespace, name)),
                }
            }
        }
        Feed::Listed(_, Some(listed)) => kubelet.retain(&listed.names),
        Feed::Listed(_, None) => {}
        Feed::Trouble(_, line) => warn!("{line}"),
    }
}

/// Writes once. The pod whose turn is over, or what is to be tried again.
async fn carry_out(client: Client, write: Write) -> Result<Key, Write> {
    let answer = match &write {
        Write::Status((namespace, name), patch) => {
            let path = format!("{}/status", PODS.object(namespace, name));
            client.patch(&path, Patch::Strategic, patch.clone()).await
        }
        Write::Remove((namespace, name), uid) => {
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
            client
                .delete(&PODS.object(namespace, name), bytes(&options))
                .await
        }
        Write::Warning(key, uid, what) => warn_about(&client, key, uid, what).await,
    };
    match answer {
        Err(error) if error.is_transient() => return Err(write),
        // The pod is gone, or another one has its name.
        Err(error) => debug!(%error, ?write, "a write of a simulated node was refused"),
        Ok(_) => {}
    }
    Ok(write.key().clone())
}

async fn warn_about(
    client: &Client,
    (namespace, name): &Key,
    uid: &str,
    what: &str,
) -> Result<bytes::Bytes, CallError> {
    let now = client.clock().now();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "generateName": format!("{name}.")},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid},
        "type": "Warning",
        "reason": "InvalidAnnotation",
        "message": what,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
    });
    let path = format!("/api/v1/namespaces/{namespace}/events");
    client.post(&path, bytes(&event)).await
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
