//! Writing many objects: a bounded number of calls at once, which is what makes thousands of them quick.

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::Value;
use volcano_api::names::kinds;

use super::calls::{create, merge_patch_status, path};
use super::{Node, Pod};

/// Calls at once. More do not make the API server of a small machine any faster.
pub const CONCURRENCY: usize = 32;

/// Creates objects, each at the path of its kind, [`CONCURRENCY`] at a time.
///
/// # Errors
/// When the API server refuses one; which of the others are there then is not known.
pub async fn create_all(
    client: &Client,
    objects: impl IntoIterator<Item = (String, Value)>,
) -> anyhow::Result<()> {
    futures::stream::iter(objects)
        .map(|(path, object)| async move { create(client, &path, &object).await.map(drop) })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// Creates a node and writes its status.
///
/// # Errors
/// When the API server refuses it.
pub async fn create_node(client: &Client, node: &Node) -> anyhow::Result<()> {
    create(client, "/api/v1/nodes", &node.object()).await?;
    merge_patch_status(client, &path("v1", "", "nodes", node.name()), &node.status())
        .await
        .with_context(|| format!("writing the status of node {}", node.name()))
}

/// Creates nodes with their status, [`CONCURRENCY`] at a time.
///
/// # Errors
/// When the API server refuses one.
pub async fn create_nodes(client: &Client, nodes: impl IntoIterator<Item = Node>) -> anyhow::Result<()> {
    futures::stream::iter(nodes)
        .map(|node| async move { create_node(client, &node).await })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// Creates a pod.
///
/// # Errors
/// When the API server refuses it.
pub async fn create_pod(client: &Client, pod: &Pod) -> anyhow::Result<()> {
    create(client, &path("v1", pod.namespace(), "pods", ""), pod.object())
        .await
        .map(drop)
}

/// Creates pods, [`CONCURRENCY`] at a time.
///
/// # Errors
/// When the API server refuses one.
pub async fn create_pods(client: &Client, pods: impl IntoIterator<Item = Pod>) -> anyhow::Result<()> {
    futures::stream::iter(pods)
        .map(|pod| async move { create_pod(client, &pod).await })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// Creates a PodGroup; see [`pod_group`](super::pod_group).
///
/// # Errors
/// When the API server refuses it.
pub async fn create_pod_group(
    client: &Client,
    namespace: &str,
    name: &str,
    min_member: u32,
    queue: &str,
) -> anyhow::Result<()> {
    let kind = kinds::POD_GROUP;
    let place = path(&kind.api_version(), namespace, kind.plural, "");
    let group = super::pod_group(namespace, name, min_member, queue);
    create(client, &place, &group).await.map(drop)
}

/// Creates a queue; see [`queue`](super::queue).
///
/// # Errors
/// When the API server refuses it.
pub async fn create_queue(client: &Client, name: &str, weight: u32, spec: &Value) -> anyhow::Result<()> {
    let kind = kinds::QUEUE;
    let place = path(&kind.api_version(), "", kind.plural, "");
    create(client, &place, &super::queue(name, weight, spec))
        .await
        .map(drop)
}
