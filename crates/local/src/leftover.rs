//! What nodes of an earlier start left: nobody runs them any more, and nobody would ever end their pods.

use futures::StreamExt as _;
use futures::stream;
use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde_json::json;
use tracing::info;
use volcano_runtime::client::{CallError, Client, Page, Resource};

const NODES: Resource = Resource::new("", "v1", "nodes");
const PODS: Resource = Resource::new("", "v1", "pods");
/// Objects that are removed at the same time.
const AT_ONCE: usize = 16;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

/// Removes nodes that are not these, and the pods on them, as Kubernetes does with nodes that are gone. Pods that are over stay:
/// they are results of their Jobs.
///
/// # Errors
/// What was refused, and why.
pub async fn remove(client: &Client, ours: &FxHashSet<String>) -> Result<(), (String, CallError)> {
    let nodes = list(client, NODES).await?;
    let others = nodes.iter().filter(|node| !ours.contains(&node.metadata.name));
    let others: Vec<_> = others.map(|node| NODES.object("", &node.metadata.name)).collect();
    let pods = list(client, PODS).await?;
    let is_lost = |pod: &&Item| {
        let is_over = matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        let stays = is_over && pod.metadata.deletion_timestamp.is_none();
        !pod.spec.node_name.is_empty() && !ours.contains(&pod.spec.node_name) && !stays
    };
    let lost = pods.iter().filter(is_lost);
    let lost: Vec<_> = lost
        .map(|pod| PODS.object(&pod.metadata.namespace, &pod.metadata.name))
        .collect();
    if !others.is_empty() || !lost.is_empty() {
        info!(
            nodes = others.len(),
            pods = lost.len(),
            "nodes of an earlier start are removed"
        );
    }
    // Pods last: none may be bound to a node that is about to go.
    for paths in [others, lost] {
        let mut removed = stream::iter(paths)
            .map(|path| remove_one(client, path))
            .buffer_unordered(AT_ONCE);
        while let Some(outcome) = removed.next().await {
            outcome?;
        }
    }
    Ok(())
}

async fn remove_one(client: &Client, path: String) -> Result<(), (String, CallError)> {
    let at_once = json!({"gracePeriodSeconds": 0}).to_string().into_bytes();
    match client.delete(&path, at_once).await {
        Err(error) if !error.is_not_found() => Err((path, error)),
        _ => Ok(()),
    }
}

async fn list(client: &Client, resource: Resource) -> Result<Vec<Item>, (String, CallError)> {
    let page: Result<Page<Item>, CallError> = client.list(&resource.all(), None).await;
    let page = page.map_err(|error| (resource.plural.to_owned(), error))?;
    Ok(page.items)
}
