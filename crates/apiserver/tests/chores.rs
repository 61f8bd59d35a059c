//! What the server does by itself, when somebody is in its way: webhooks that refuse, or that take their time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Barrier;
use volcano_apiserver::{Options, Plane, WebhookHandler};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn ask(client: &kube::Client, method: Method, path: &str, body: &Value) -> Result<Value, u16> {
    let content_type = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() {
        Vec::new()
    } else {
        serde_json::to_vec(body).unwrap()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(body)
        .unwrap();
    client.request(request).await.map_err(|error| match error {
        kube::Error::Api(status) => status.code,
        error => panic!("{error}"),
    })
}

async fn make(client: &kube::Client, path: &str, object: Value) -> String {
    let made = ask(client, Method::POST, path, &object).await.unwrap();
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

async fn get(client: &kube::Client, path: &str) -> Result<Value, u16> {
    ask(client, Method::GET, path, &Value::Null).await
}

/// Waits until an object is gone, in the time of a paused runtime.
async fn is_gone(client: &kube::Client, path: &str) -> bool {
    for _ in 0..600 {
        if get(client, path).await == Err(404) {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

fn allowed(body: &Bytes, allows: bool) -> Result<Bytes, String> {
    let review: Value = serde_json::from_slice(body).unwrap();
    let response = json!({"uid": review["request"]["uid"], "allowed": allows});
    Ok(json!({"response": response}).to_string().into())
}

/// Refuses what controllers of the server do, as long as it is closed.
struct Gate {
    is_closed: AtomicBool,
}

impl WebhookHandler for Gate {
    fn review(&self, _path: String, body: Bytes) -> BoxFuture<'static, Result<Bytes, String>> {
        let review: Value = serde_json::from_slice(&body).unwrap();
        let user = review["request"]["userInfo"]["username"].as_str().unwrap();
        let allows = !self.is_closed.load(Ordering::Acquire) || !user.starts_with("system:");
        Box::pin(async move { allowed(&body, allows) })
    }
}

/// Lets deletions pass two at a time.
struct Pairs {
    barrier: Arc<Barrier>,
}

impl WebhookHandler for Pairs {
    fn review(&self, _path: String, body: Bytes) -> BoxFuture<'static, Result<Bytes, String>> {
        let barrier = self.barrier.clone();
        Box::pin(async move {
            barrier.wait().await;
            allowed(&body, true)
        })
    }
}

async fn plane_with(handler: Arc<dyn WebhookHandler>, operations: &[&str]) -> (Plane, kube::Client) {
    let plane = Plane::start(Options::default()).await.unwrap();
    plane.serve_webhooks("default", "judge", handler);
    let client = plane.client();
    let webhook = json!({
        "name": "judge.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "judge", "path": "/"}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "pods"], "operations": operations}],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    make(
        &client,
        path,
        json!({"metadata": {"name": "judge"}, "webhooks": [webhook]}),
    )
    .await;
    (plane, client)
}

async fn gated() -> (Plane, kube::Client, Arc<Gate>) {
    let gate = Arc::new(Gate {
        is_closed: AtomicBool::new(true),
    });
    let (plane, client) = plane_with(gate.clone(), &["UPDATE", "DELETE"]).await;
    (plane, client, gate)
}

async fn owner_and_owned(client: &kube::Client) {
    let uid = make(client, MAPS, json!({"metadata": {"name": "owner"}})).await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": true});
    make(
        client,
        MAPS,
        json!({"metadata": {"name": "owned", "ownerReferences": [owner]}}),
    )
    .await;
}

async fn delete_owner(client: &kube::Client, propagation: &str) {
    let options = json!({"propagationPolicy": propagation});
    ask(client, Method::DELETE, &format!("{MAPS}/owner"), &options)
        .await
        .unwrap();
    // Time for the collector to be refused.
    tokio::time::sleep(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn garbage_that_could_not_be_collected_is_collected_later() {
    for propagation in ["Background", "Foreground"] {
        let (_plane, client, gate) = gated().await;
        owner_and_owned(&client).await;
        delete_owner(&client, propagation).await;
        let owned = get(&client, &format!("{MAPS}/owned")).await;
        assert!(owned.is_ok(), "{propagation}: it was refused");
        gate.is_closed.store(false, Ordering::Release);
        assert!(is_gone(&client, &format!("{MAPS}/owned")).await, "{propagation}");
        assert!(is_gone(&client, &format!("{MAPS}/owner")).await, "{propagation}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_stays_until_it_has_let_go_of_what_it_owns() {
    let (_plane, client, gate) = gated().await;
    owner_and_owned(&client).await;
    delete_owner(&client, "Orphan").await;
    let owner = get(&client, &format!("{MAPS}/owner")).await.unwrap();
    assert_eq!(owner["metadata"]["finalizers"], json!(["orphan"]));
    gate.is_closed.store(false, Ordering::Release);
    assert!(is_gone(&client, &format!("{MAPS}/owner")).await);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let owned = get(&client, &format!("{MAPS}/owned")).await.unwrap();
    assert!(owned["metadata"].get("ownerReferences").is_none(), "{owned}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_could_not_be_emptied_is_emptied_later() {
    let (_plane, client, gate) = gated().await;
    make(&client, "/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let maps = "/api/v1/namespaces/n/configmaps";
    make(&client, maps, json!({"metadata": {"name": "m"}})).await;
    ask(&client, Method::DELETE, "/api/v1/namespaces/n", &Value::Null)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(get(&client, &format!("{maps}/m")).await.is_ok(), "it was refused");
    gate.is_closed.store(false, Ordering::Release);
    assert!(is_gone(&client, "/api/v1/namespaces/n").await);
}

#[tokio::test(start_paused = true)]
async fn two_evictions_at_once_do_not_share_one_place_of_a_budget() {
    let barrier = Arc::new(Barrier::new(2));
    let (_plane, client) = plane_with(Arc::new(Pairs { barrier }), &["DELETE"]).await;
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}});
    make(
        &client,
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        budget,
    )
    .await;
    for name in ["a", "b"] {
        let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "x"}]});
        make(
            &client,
            PODS,
            json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec}),
        )
        .await;
        let status =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        ask(&client, Method::PATCH, &format!("{PODS}/{name}/status"), &status)
            .await
            .unwrap();
    }
    let evict = async |name: &str| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        ask(
            &client,
            Method::POST,
            &format!("{PODS}/{name}/eviction"),
            &eviction,
        )
        .await
        .map(drop)
    };
    let (a, b) = tokio::join!(evict("a"), evict("b"));
    let mut outcomes = [a, b];
    outcomes.sort_unstable();
    assert_eq!(outcomes, [Ok(()), Err(429)]);
}

#[tokio::test(start_paused = true)]
async fn an_event_expires_an_hour_after_it_was_written_last() {
    let plane = Plane::start(Options::default()).await.unwrap();
    let client = plane.client();
    let events = "/api/v1/namespaces/default/events";
    for name in ["once", "again"] {
        let about = json!({"kind": "Pod", "namespace": "default", "name": "p"});
        make(
            &client,
            events,
            json!({"metadata": {"name": name}, "involvedObject": about}),
        )
        .await;
    }
    let is_there = async |name: &str| get(&client, &format!("{events}/{name}")).await.is_ok();
    let minutes = |count: u64| tokio::time::sleep(Duration::from_secs(60 * count));
    minutes(40).await;
    ask(
        &client,
        Method::PATCH,
        &format!("{events}/again"),
        &json!({"count": 2}),
    )
    .await
    .unwrap();
    minutes(19).await;
    assert!(is_there("once").await);
    minutes(2).await;
    assert!(!is_there("once").await && is_there("again").await);
    minutes(40).await;
    assert!(!is_there("again").await);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_gone_go_unless_it_comes_back() {
    let plane = Plane::start(Options::default()).await.unwrap();
    let client = plane.client();
    let nodes = "/api/v1/nodes";
    for name in ["lost", "anew", "stays"] {
        make(&client, nodes, json!({"metadata": {"name": name}})).await;
        let spec = json!({"nodeName": name, "containers": [{"name": "c", "image": "x"}]});
        make(&client, PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    for name in ["lost", "anew"] {
        let path = format!("{nodes}/{name}");
        ask(&client, Method::DELETE, &path, &Value::Null).await.unwrap();
    }
    make(&client, nodes, json!({"metadata": {"name": "anew"}})).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        get(&client, &format!("{PODS}/lost")).await.is_ok(),
        "it has some time"
    );
    assert!(is_gone(&client, &format!("{PODS}/lost")).await);
    tokio::time::sleep(Duration::from_secs(60)).await;
    for name in ["anew", "stays"] {
        assert!(get(&client, &format!("{PODS}/{name}")).await.is_ok(), "{name}");
    }
}
