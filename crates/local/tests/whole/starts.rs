//! What a start finds of an earlier one.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use volcano_local::{Nodes, Options, SimulatedNodes, System};

const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
const PATIENCE: Duration = Duration::from_secs(60);

async fn send(system: &System, method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json").body(body);
    system.client().request(request.unwrap()).await.unwrap()
}

/// The nodes of all pods that run, once so many do.
async fn nodes_of(system: &System, count: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let pods = send(system, "GET", PODS, &Value::Null).await;
        let pods = pods["items"].as_array().cloned().unwrap_or_default();
        let mut nodes: Vec<String> = pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running")
            .map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned())
            .collect();
        if nodes.len() == count {
            nodes.sort();
            return nodes;
        }
        assert!(began.elapsed() < PATIENCE, "{pods:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_nobody_runs_any_more_are_gone_and_their_pods_run_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let start = async |count: usize, cpu: &str| {
        let nodes = SimulatedNodes {
            count,
            cpu: cpu.to_owned(),
            ..SimulatedNodes::default()
        };
        let options = Options {
            data_dir: Some(folder.path().join("data")),
            nodes: Nodes::Simulated(vec![nodes]),
            ..Options::default()
        };
        System::start(options).await.unwrap()
    };
    let system = start(3, "1").await;
    let job = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "long", "namespace": "default"},
        "spec": {"minAvailable": 1, "schedulerName": "volcano", "tasks": [{
            "name": "w",
            "replicas": 3,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{
                "name": "main",
                "image": "busybox:1",
                "command": ["sleep", "100000"],
                "resources": {"requests": {"cpu": "1"}},
            }]}},
        }]},
    });
    send(&system, "POST", JOBS, &job).await;
    assert_eq!(nodes_of(&system, 3).await, ["node-0", "node-1", "node-2"]);
    system.stop().await;

    let system = start(1, "3").await;
    let nodes = send(&system, "GET", "/api/v1/nodes", &Value::Null).await;
    let names: Vec<_> = nodes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["metadata"]["name"])
        .collect();
    assert_eq!(names, ["node-0"]);
    assert_eq!(nodes_of(&system, 3).await, ["node-0"; 3]);
    system.stop().await;
}
