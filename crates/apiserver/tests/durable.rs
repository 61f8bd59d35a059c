//! The data file: what was acknowledged is there after a restart, whatever happened to the process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use http::{Method, Request};
use serde_json::{Value, json};
use std::path::Path;
use volcano_apiserver::{Options, Plane};

async fn start(path: &Path) -> Plane {
    let options = Options {
        data_file: Some(path.to_owned()),
        ..Options::default()
    };
    Plane::start(options).await.unwrap()
}

/// The thread that writes ends when the last request does; the file is free then.
async fn restart(path: &Path, crds: Vec<Value>) -> Plane {
    let mut tries = 0;
    loop {
        let options = Options {
            data_file: Some(path.to_owned()),
            crds: crds.clone(),
            ..Options::default()
        };
        match Plane::start(options).await {
            Ok(plane) => return plane,
            Err(error) if tries < 100 => {
                tries += 1;
                assert!(error.to_string().contains("data file"), "{error}");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn ask(client: &kube::Client, method: Method, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let body = if body.is_null() {
        Vec::new()
    } else {
        serde_json::to_vec(body).unwrap()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    client.request(request.body(body).unwrap()).await
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_there_after_a_restart_with_its_versions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let plane = start(&path).await;
    let client = plane.client();
    let crd = volcano_api::crd::all()
        .into_iter()
        .find(|crd| crd["metadata"]["name"] == "queues.scheduling.volcano.sh")
        .unwrap();
    ask(
        &client,
        Method::POST,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &crd,
    )
    .await
    .unwrap();
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 3}});
    let queue = ask(
        &client,
        Method::POST,
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        &queue,
    )
    .await
    .unwrap();
    let a = ask(
        &client,
        Method::POST,
        MAPS,
        &json!({"metadata": {"name": "a"}, "data": {"k": "1"}}),
    )
    .await
    .unwrap();
    ask(&client, Method::POST, MAPS, &json!({"metadata": {"name": "b"}}))
        .await
        .unwrap();
    ask(&client, Method::DELETE, &format!("{MAPS}/b"), &Value::Null)
        .await
        .unwrap();
    let before = plane.revision();
    drop((plane, client));

    let plane = restart(&path, Vec::new()).await;
    let client = plane.client();
    assert!(plane.revision() >= before);
    assert_eq!(
        ask(&client, Method::GET, &format!("{MAPS}/a"), &Value::Null)
            .await
            .unwrap(),
        a
    );
    assert_eq!(
        ask(
            &client,
            Method::GET,
            "/apis/scheduling.volcano.sh/v1beta1/queues/q",
            &Value::Null
        )
        .await
        .unwrap(),
        queue
    );
    assert!(
        ask(&client, Method::GET, &format!("{MAPS}/b"), &Value::Null)
            .await
            .is_err()
    );
    let next = ask(&client, Method::POST, MAPS, &json!({"metadata": {"name": "c"}}))
        .await
        .unwrap();
    let revision: u64 = next["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(revision > before, "versions go on");
    let old = format!(
        "{MAPS}?watch=true&resourceVersion={}",
        a["metadata"]["resourceVersion"].as_str().unwrap()
    );
    let answer = client
        .request_text(Request::get(&old).body(Vec::new()).unwrap())
        .await
        .unwrap();
    assert!(
        answer.contains("\"code\":410"),
        "what happened before the restart is not known: {answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_of_the_program_brings_its_own_definitions() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut crd = volcano_api::crd::all()
        .into_iter()
        .find(|crd| crd["metadata"]["name"] == "queues.scheduling.volcano.sh")
        .unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.scheduling.volcano.sh";
    let plane = restart(&data, vec![crd.clone()]).await;
    let first = ask(&plane.client(), Method::GET, path, &Value::Null)
        .await
        .unwrap();
    drop(plane);
    let plane = restart(&data, vec![crd.clone()]).await;
    let same = ask(&plane.client(), Method::GET, path, &Value::Null)
        .await
        .unwrap();
    assert_eq!(same, first, "what does not differ is not written");
    drop(plane);

    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    crd.pointer_mut(spec).unwrap()["flavour"] = json!({"type": "string"});
    let plane = restart(&data, vec![crd]).await;
    let client = plane.client();
    let renewed = ask(&client, Method::GET, path, &Value::Null).await.unwrap();
    assert_eq!(renewed["metadata"]["generation"], 2, "{}", renewed["metadata"]);
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"flavour": "sweet"}});
    let queue = ask(
        &client,
        Method::POST,
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        &queue,
    )
    .await;
    assert_eq!(queue.unwrap()["spec"]["flavour"], "sweet");
}

/// The process that is killed. It writes numbers until it is, and prints each one when it is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_time_loses_nothing_that_was_acknowledged() {
    const PATH: &str = "VOLCANO_APISERVER_CRASH";
    if let Ok(path) = std::env::var(PATH) {
        let plane = start(Path::new(&path)).await;
        let client = plane.client();
        for number in 0.. {
            let map = json!({"metadata": {"generateName": "n-"}, "data": {"number": format!("{number}")}});
            let made = ask(&client, Method::POST, MAPS, &map).await.unwrap();
            println!("acknowledged {}", made["metadata"]["name"].as_str().unwrap());
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let mut acknowledged = Vec::new();
    for round in 1..=4 {
        let output = tempfile::NamedTempFile::new().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "a_kill_at_any_time_loses_nothing_that_was_acknowledged",
                "--exact",
                "--nocapture",
            ])
            .env(PATH, &path)
            .stdout(output.reopen().unwrap())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let enough = 30 * round;
        let seen = loop {
            let text = std::fs::read_to_string(output.path()).unwrap();
            if text.matches("acknowledged").count() >= enough {
                break true;
            }
            if child.try_wait().unwrap().is_some() {
                break false;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen, "the writer ended by itself in round {round}");
        let text = std::fs::read_to_string(output.path()).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        acknowledged.extend(
            whole
                .lines()
                .filter_map(|line| line.split_once("acknowledged "))
                .map(|(_, name)| name.to_owned()),
        );
    }
    let plane = start(&path).await;
    let client = plane.client();
    let list = ask(&client, Method::GET, MAPS, &Value::Null).await.unwrap();
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    for name in &acknowledged {
        assert!(
            names.contains(&name.as_str()),
            "{name} of {} is lost",
            acknowledged.len()
        );
    }
    assert!(acknowledged.len() >= 300, "{}", acknowledged.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_whose_node_went_before_a_restart_go_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let plane = start(&path).await;
    let client = plane.client();
    let (nodes, pods) = ("/api/v1/nodes", "/api/v1/namespaces/default/pods");
    for name in ["lost", "stays"] {
        let node = json!({"metadata": {"name": name}});
        ask(&client, Method::POST, nodes, &node).await.unwrap();
        let spec = json!({"nodeName": name, "containers": [{"name": "c", "image": "x"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        ask(&client, Method::POST, pods, &pod).await.unwrap();
    }
    let lost = format!("{nodes}/lost");
    ask(&client, Method::DELETE, &lost, &Value::Null).await.unwrap();
    drop((plane, client));
    let plane = restart(&path, Vec::new()).await;
    let client = plane.client();
    let is_there = async |name: &str| {
        let path = format!("{pods}/{name}");
        ask(&client, Method::GET, &path, &Value::Null).await.is_ok()
    };
    assert!(is_there("lost").await);
    for _ in 0..3000 {
        if !is_there("lost").await {
            assert!(is_there("stays").await);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it stays");
}
