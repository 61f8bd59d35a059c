//! What the API server can do: a client that decides nothing. It sends what the scheduler sends and asks for what the
//! scheduler asks for, over connections of the same kind.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use volcano_api::protobuf::{self, Tables};
use volcano_runtime::client::Client;
use volcano_testcluster::objects;

/// What the scheduler lists when it starts, and in which form.
const KINDS: &[(&str, Option<Tables>)] = &[
    ("/api/v1/pods", Some(protobuf::POD)),
    ("/api/v1/nodes", Some(protobuf::NODE)),
    ("/api/v1/namespaces", Some(protobuf::NAMESPACE)),
    ("/apis/scheduling.volcano.sh/v1beta1/podgroups", None),
    ("/apis/scheduling.volcano.sh/v1beta1/queues", None),
];
/// What the bookmark that ends a streamed list has in it.
const LIST_END: &[u8] = b"k8s.io/initial-events-end";

/// The names and UIDs of the pods of a namespace.
pub async fn pods(client: &kube::Client, namespace: &str) -> anyhow::Result<Vec<(String, String)>> {
    let pods = objects::pods(client, namespace).await?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    pods.iter()
        .map(|pod| text(&pod["metadata"]["name"]).zip(text(&pod["metadata"]["uid"])))
        .collect::<Option<_>>()
        .context("a pod has a name and a UID")
}

/// Posts the bindings of pods, node after node.
pub async fn post_bindings(
    client: &Client,
    namespace: &str,
    pods: &[(String, String)],
    nodes: usize,
    connections: usize,
) -> anyhow::Result<()> {
    futures::stream::iter(pods.iter().enumerate())
        .map(|(at, (name, uid))| async move {
            let node = super::node_name(at % nodes);
            bind(client, namespace, name, uid, &node).await
        })
        .buffer_unordered(connections)
        .try_collect()
        .await
}

/// Posts one binding.
pub async fn bind(client: &Client, namespace: &str, pod: &str, uid: &str, node: &str) -> anyhow::Result<()> {
    let path = format!("{}/binding", objects::path("v1", namespace, "pods", pod));
    let binding = protobuf::binding(namespace, pod, uid, node);
    Ok(client.post_protobuf(&path, binding).await?)
}

/// Lists what the scheduler lists, as it does: as streams, one beside the other, with nothing decoded.
pub async fn list_everything(client: &Client) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let lists = KINDS.iter().map(|(path, tables)| list(client, path, *tables));
    futures::future::try_join_all(lists).await?;
    Ok(began.elapsed())
}

async fn list(client: &Client, path: &str, tables: Option<Tables>) -> anyhow::Result<()> {
    let path = format!(
        "{path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut frames = client.stream(&path, tables).await?;
    while let Some(frame) = frames.next().await? {
        let is_end = |part: &[u8]| part == LIST_END;
        // The bookmark is small; objects are not searched.
        if frame.len() < 1000 && frame.windows(LIST_END.len()).any(is_end) {
            return Ok(());
        }
    }
    anyhow::bail!("the list broke off")
}
