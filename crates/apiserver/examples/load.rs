//! How fast the plane is: `cargo run --release -p volcano-apiserver --example load [PODS] [DATA_FILE]`.
//!
//! Creates pods, binds them, reports them running and done, and deletes them, all through the client that the system
//! itself uses, while four watchers read along; prints the rate of each and the memory at the end.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a tool for developers stops at the first surprise"
)]

use futures::stream::{self, StreamExt as _};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use volcano_apiserver::{Options, Plane};

const LANES: usize = 64;
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn send(client: &kube::Client, method: Method, path: String, content_type: &str, body: &Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type);
    let request = request
        .body(Body::from(serde_json::to_vec(body).unwrap()))
        .unwrap();
    let answer = client.send(request).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.into_body().collect().await.unwrap();
}

fn pod(at: usize) -> Value {
    json!({
        "metadata": {"name": format!("p{at}"), "labels": {"volcano.sh/job-name": "load", "volcano.sh/task-spec": "worker"},
            "annotations": {"scheduling.k8s.io/group-name": "load", "volcano.sh/template-uid": "load-worker"}},
        "spec": {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [{
            "name": "main", "image": "busybox:1", "command": ["sleep", "10"],
            "env": [{"name": "VC_TASK_INDEX", "value": at.to_string()}],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        }], "volumes": [{"name": "scratch", "emptyDir": {}}]},
    })
}

async fn phase<F: Future<Output = ()>>(name: &str, pods: usize, one: impl Fn(usize) -> F) {
    let began = Instant::now();
    stream::iter(0..pods)
        .map(one)
        .buffer_unordered(LANES)
        .collect::<()>()
        .await;
    let took = began.elapsed();
    println!(
        "{name:<10} {:>8.0}/s {:>6.1} µs each",
        pods as f64 / took.as_secs_f64(),
        took.as_secs_f64() * 1e6 / pods as f64
    );
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let pods: usize = arguments.next().map_or(10_000, |text| text.parse().unwrap());
    let began = Instant::now();
    let options = Options {
        crds: volcano_api::crd::all(),
        data_file: arguments.next().map(Into::into),
        ..Options::default()
    };
    let plane = Plane::start(options).await.unwrap();
    println!("{:<10} {:>8.1} ms", "start", began.elapsed().as_secs_f64() * 1e3);
    let seen = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        let (client, seen) = (plane.client(), seen.clone());
        tokio::spawn(async move {
            let request = Request::get("/api/v1/pods?watch=true")
                .body(Body::empty())
                .unwrap();
            let mut body = client.send(request).await.unwrap().into_body();
            while let Some(Ok(frame)) = body.frame().await {
                let lines = frame
                    .data_ref()
                    .map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
                seen.fetch_add(lines, Ordering::Relaxed);
            }
        });
    }
    let client = &plane.client();
    let json = "application/json";
    phase("create", pods, |at| async move {
        send(client, Method::POST, PODS.to_owned(), json, &pod(at)).await
    })
    .await;
    phase("bind", pods, |at| async move {
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": format!("p{at}")}, "target": {"kind": "Node", "name": "n"}});
        send(client, Method::POST, format!("{PODS}/p{at}/binding"), json, &binding).await;
    })
    .await;
    for name in ["Running", "Succeeded"] {
        phase(name, pods, |at| async move {
            let status =
                json!({"status": {"phase": name, "conditions": [{"type": "Ready", "status": "True"}]}});
            send(
                client,
                Method::PATCH,
                format!("{PODS}/p{at}/status"),
                "application/strategic-merge-patch+json",
                &status,
            )
            .await;
        })
        .await;
    }
    let list = Instant::now();
    send(client, Method::GET, PODS.to_owned(), json, &Value::Null).await;
    println!("{:<10} {:>8.1} ms", "list", list.elapsed().as_secs_f64() * 1e3);
    phase("delete", pods, |at| async move {
        send(client, Method::DELETE, format!("{PODS}/p{at}"), json, &json!({})).await
    })
    .await;
    println!(
        "{:<10} {:>8} of {}",
        "watched",
        seen.load(Ordering::Relaxed),
        pods * 5 * 4
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    println!("{peak}");
}
