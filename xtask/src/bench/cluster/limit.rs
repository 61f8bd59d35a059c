//! What the API server can do: a client that decides nothing.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::json;
use volcano_testcluster::objects;

/// What the scheduler lists when it starts.
const KINDS: &[&str] = &[
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "/apis/scheduling.volcano.sh/v1beta1/queues",
];

/// Posts the bindings of all pods of a namespace, node after node.
pub async fn post_bindings(
    client: &Client,
    namespace: &str,
    pods: usize,
    nodes: usize,
    connections: usize,
) -> anyhow::Result<()> {
    futures::stream::iter(0..pods)
        .map(|at| {
            bind(
                client,
                namespace,
                format!("pod-{at}"),
                super::node_name(at % nodes),
            )
        })
        .buffer_unordered(connections)
        .try_collect()
        .await
}

/// Posts one binding.
pub async fn bind(client: &Client, namespace: &str, pod: String, node: String) -> anyhow::Result<()> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let path = format!("{}/binding", objects::path("v1", namespace, "pods", &pod));
    let request = Request::post(path)
        .header(CONTENT_TYPE, "application/json")
        .body(binding.to_string().into_bytes())?;
    client.request_text(request).await?;
    Ok(())
}

/// Lists what the scheduler lists, as it does: as streams, one beside the other, with nothing decoded.
pub async fn list_everything(client: &Client) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let lists = KINDS.iter().map(|path| list(client, path));
    futures::future::try_join_all(lists).await?;
    Ok(began.elapsed())
}

async fn list(client: &Client, path: &str) -> anyhow::Result<()> {
    use futures::AsyncBufReadExt as _;
    let path = format!(
        "{path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let body = client
        .request_stream(Request::get(path).body(Vec::new())?)
        .await?;
    let mut lines = body.lines();
    while let Some(line) = lines.try_next().await? {
        if line.contains("k8s.io/initial-events-end") && line.starts_with(r#"{"type":"BOOKMARK""#) {
            return Ok(());
        }
    }
    anyhow::bail!("the list broke off")
}
