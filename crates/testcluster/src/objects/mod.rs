//! Objects for tests and benchmarks: made, written in bulk, read, waited for, removed.
//!
//! Everything goes over raw paths and JSON values, so that what a test writes is what the API server gets.

mod build;
mod bulk;
mod calls;
mod wait;

pub use build::{Node, Pod, pod_group, queue};
pub use bulk::{
    CONCURRENCY, create_all, create_node, create_nodes, create_pod, create_pod_group, create_pods,
    create_queue,
};
pub use calls::{create, delete, get, list, merge_patch, merge_patch_status, path, replace, try_get};
pub use wait::{Progress, check, wait_until};

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};
use uuid::Uuid;

/// How long a CRD may take to be served, and a namespace to be gone.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Path of the CRDs.
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Creates CRDs, replaces those that are there already, and waits until all are served.
///
/// # Errors
/// When the API server refuses one, or when one is not established in time.
pub async fn install_crds(client: &Client, crds: &[Value]) -> anyhow::Result<()> {
    for crd in crds {
        let name = name_of(crd);
        let place = format!("{CRDS}/{name}");
        let install = async {
            let Some(there) = try_get(client, &place).await? else {
                return create(client, CRDS, crd).await;
            };
            let mut newer = crd.clone();
            newer["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
            replace(client, &place, &newer).await
        };
        install
            .await
            .with_context(|| format!("installing the CRD {name}"))?;
    }
    wait_until("all CRDs are established", SETTLE_TIMEOUT, || async {
        let there = list(client, CRDS).await?;
        let waiting: Vec<&str> = crds
            .iter()
            .map(name_of)
            .filter(|name| {
                let found = there.iter().find(|crd| name_of(crd) == *name);
                !found.is_some_and(|crd| has_condition(crd, "Established"))
            })
            .collect();
        Ok(check(waiting.is_empty(), || waiting.join(", ")))
    })
    .await?;
    wait_until("all new kinds are served", SETTLE_TIMEOUT, || async {
        for crd in crds {
            let spec = &crd["spec"];
            let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (group, plural) = (field(&spec["group"]), field(&spec["names"]["plural"]));
            let version = field(&spec["versions"][0]["name"]);
            list(client, &format!("/apis/{group}/{version}/{plural}")).await?;
        }
        Ok(Progress::Done(()))
    })
    .await
}

/// Whether an object has a condition that is true.
pub fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// `metadata.name`, empty if there is none.
pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Creates a namespace.
///
/// # Errors
/// When the API server refuses it.
pub async fn create_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    create(client, "/api/v1/namespaces", &namespace).await.map(drop)
}

/// Creates a namespace whose name begins with `prefix` and that no other test has.
///
/// # Errors
/// When the API server refuses it.
pub async fn unique_namespace(client: &Client, prefix: &str) -> anyhow::Result<String> {
    let id = Uuid::new_v4().simple().to_string();
    let name = format!("{prefix}-{}", &id[..8]);
    create_namespace(client, &name).await?;
    Ok(name)
}

/// Removes a namespace and all that is in it, and waits until it is gone. Needs kube-controller-manager.
///
/// # Errors
/// When it is not gone in time.
pub async fn delete_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let place = path("v1", "", "namespaces", name);
    delete(client, &place).await?;
    wait_until(&format!("namespace {name} is gone"), SETTLE_TIMEOUT, || async {
        // There is no kubelet that would confirm the end of a pod.
        delete_pods(client, name).await?;
        let there = try_get(client, &place).await?;
        Ok(match there {
            None => Progress::Done(()),
            Some(namespace) => Progress::Waiting(namespace["status"].to_string()),
        })
    })
    .await
}

/// Removes all pods of a namespace at once, without a grace period.
///
/// # Errors
/// When the API server refuses it.
pub async fn delete_pods(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let pods = list(client, &path("v1", namespace, "pods", "")).await?;
    futures::stream::iter(pods)
        .map(|pod| async move { delete_now(client, &path("v1", namespace, "pods", name_of(&pod))).await })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// Removes an object at once, without a grace period; one that is gone is fine.
///
/// # Errors
/// When the API server refuses it.
pub async fn delete_now(client: &Client, path: &str) -> anyhow::Result<()> {
    calls::delete_with(client, path, &json!({"gracePeriodSeconds": 0})).await
}

/// Removes an object at once if it has not changed since this version of it was seen; one that is gone is fine.
///
/// # Errors
/// When it has changed, or another one has its name.
pub async fn delete_now_as_seen(client: &Client, path: &str, version: &str) -> anyhow::Result<()> {
    let seen = json!({"resourceVersion": version});
    calls::delete_with(
        client,
        path,
        &json!({"gracePeriodSeconds": 0, "preconditions": seen}),
    )
    .await
}

/// The pods of a namespace; of all namespaces if it is empty.
///
/// # Errors
/// When the API server does not answer.
pub async fn pods(client: &Client, namespace: &str) -> anyhow::Result<Vec<Value>> {
    list(client, &path("v1", namespace, "pods", "")).await
}

/// The node of each pod of a namespace, by the pod's name; none for one that waits.
///
/// # Errors
/// When the API server does not answer.
pub async fn pod_nodes(client: &Client, namespace: &str) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let pods = pods(client, namespace).await?;
    let node = |pod: &Value| {
        let node = pod["spec"]["nodeName"].as_str();
        node.filter(|node| !node.is_empty()).map(str::to_owned)
    };
    Ok(pods
        .iter()
        .map(|pod| (name_of(pod).to_owned(), node(pod)))
        .collect())
}

/// Sets the phase of a pod, as its kubelet would; `Running` comes with the Ready condition.
///
/// # Errors
/// When the API server refuses it.
pub async fn set_pod_phase(client: &Client, namespace: &str, name: &str, phase: &str) -> anyhow::Result<()> {
    merge_patch_status(client, &path("v1", namespace, "pods", name), &status_in(phase)).await
}

/// What a kubelet says of a pod in a phase.
fn status_in(phase: &str) -> Value {
    let ready = if phase == "Running" { "True" } else { "False" };
    json!({"phase": phase, "conditions": [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": ready},
    ]})
}

/// Does once what kubelets would do for the pods of a namespace that are on nodes: pods begin to run, and those that are
/// being deleted are gone. How many pods changed.
///
/// # Errors
/// When the API server refuses it.
pub async fn play_kubelet(client: &Client, namespace: &str) -> anyhow::Result<usize> {
    let pods = pods(client, namespace).await?;
    let on_nodes = pods.into_iter().filter(|pod| pod["spec"]["nodeName"].is_string());
    let changed: Vec<bool> = futures::stream::iter(on_nodes)
        .map(|pod| async move { play_kubelet_of(client, namespace, &pod).await })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await?;
    Ok(changed.into_iter().filter(|changed| *changed).count())
}

/// As a kubelet means the pod that it sees and no other, one that has changed since, or another one of its name, is left
/// alone and counts as changed: the next look is as good.
async fn play_kubelet_of(client: &Client, namespace: &str, pod: &Value) -> anyhow::Result<bool> {
    let (place, metadata) = (path("v1", namespace, "pods", name_of(pod)), &pod["metadata"]);
    let done = if metadata["deletionTimestamp"].is_string() {
        let version = metadata["resourceVersion"].as_str().unwrap_or_default();
        delete_now_as_seen(client, &place, version).await
    } else if pod["status"]["phase"] == "Pending" {
        let seen = json!({"resourceVersion": metadata["resourceVersion"]});
        let patch = json!({"metadata": seen, "status": status_in("Running")});
        let place = format!("{place}/status");
        merge_patch(client, &place, &patch).await.map(drop)
    } else {
        return Ok(false);
    };
    match done {
        Err(error) if !has_changed(&error) => Err(error),
        _ => Ok(true),
    }
}

/// Whether a write came too late: the object is gone, or not as it was seen.
fn has_changed(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<kube::Error>();
    refusal
        .is_some_and(|error| matches!(error, kube::Error::Api(status) if [404, 409].contains(&status.code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests spawn them on threads of a runtime.
    #[allow(dead_code, reason = "that it compiles is the test")]
    fn every_future_can_be_sent(client: &Client) {
        fn can_be_sent(_: impl Send) {}
        let pods = || (0..3).map(|at| Pod::new("ns", &format!("p{at}")));
        can_be_sent(install_crds(client, &[]));
        can_be_sent(unique_namespace(client, ""));
        can_be_sent(delete_namespace(client, ""));
        can_be_sent(delete_pods(client, ""));
        can_be_sent(pod_nodes(client, ""));
        can_be_sent(set_pod_phase(client, "", "", ""));
        can_be_sent(play_kubelet(client, ""));
        can_be_sent(create_pods(client, pods()));
        can_be_sent(create_nodes(client, vec![Node::new("n")]));
        can_be_sent(create_all(
            client,
            pods().map(|pod| (String::new(), pod.object().clone())),
        ));
    }
}
