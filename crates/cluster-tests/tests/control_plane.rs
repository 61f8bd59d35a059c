//! The control plane that the other tests stand on: it collects garbage, survives restarts, and can be watched through
//! the proxy.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::json;
use volcano_cluster_tests::cluster;
use volcano_testcluster::{Cluster, Faults, Options, Proxy, objects};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn nodes_are_ready_without_heartbeats() {
    let client = cluster().client().unwrap();
    let nodes = (0..40).map(|at| {
        let node = objects::Node::new(&format!("bulk-{at}")).cpu("8").memory("32Gi");
        node.label("zone", "a").taint("only", "gpu", "NoSchedule")
    });
    objects::create_nodes(&client, nodes).await.unwrap();
    let there = objects::list(&client, "/api/v1/nodes").await.unwrap();
    let ours = there
        .iter()
        .filter(|node| objects::name_of(node).starts_with("bulk-"));
    let mut count = 0;
    for node in ours {
        assert!(objects::has_condition(node, "Ready"), "{}", node["status"]);
        assert_eq!(node["status"]["allocatable"]["memory"], "32Gi");
        assert_eq!(
            node["spec"]["taints"],
            json!([{"key": "only", "value": "gpu", "effect": "NoSchedule"}])
        );
        count += 1;
    }
    assert_eq!(count, 40);
}

#[tokio::test]
async fn what_an_object_owns_goes_with_it() {
    let client = cluster().client().unwrap();
    let namespace = objects::unique_namespace(&client, "garbage").await.unwrap();
    let maps = objects::path("v1", &namespace, "configmaps", "");
    let owner = objects::create(&client, &maps, &json!({"metadata": {"name": "owner"}}))
        .await
        .unwrap();
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [reference]}});
    objects::create(&client, &maps, &owned).await.unwrap();
    objects::delete(&client, &format!("{maps}/owner")).await.unwrap();
    objects::wait_until("the owned object is gone", TIMEOUT, || async {
        let owned = objects::try_get(&client, &format!("{maps}/owned")).await?;
        Ok(objects::check(owned.is_none(), || "it is there"))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_namespace_goes_with_pods_that_are_on_nodes() {
    let client = cluster().client().unwrap();
    let namespace = objects::unique_namespace(&client, "gone").await.unwrap();
    let pods = (0..50).map(|at| {
        let pod = objects::Pod::new(&namespace, &format!("p{at}")).cpu("1");
        pod.spec("nodeName", json!("nowhere"))
    });
    objects::create_pods(&client, pods).await.unwrap();
    let nodes = objects::pod_nodes(&client, &namespace).await.unwrap();
    let nodes: BTreeSet<_> = nodes.values().flatten().map(String::as_str).collect();
    assert_eq!(nodes, BTreeSet::from(["nowhere"]));
    objects::set_pod_phase(&client, &namespace, "p0", "Running")
        .await
        .unwrap();
    objects::delete_namespace(&client, &namespace).await.unwrap();
    assert_eq!(objects::pods(&client, &namespace).await.unwrap().len(), 0);
}

#[tokio::test]
async fn pods_on_nodes_run_and_end_when_somebody_plays_their_kubelet() {
    let client = cluster().client().unwrap();
    let namespace = objects::unique_namespace(&client, "kubelet").await.unwrap();
    let on_node = |name: &str| objects::Pod::new(&namespace, name).spec("nodeName", json!("somewhere"));
    let waiting = objects::Pod::new(&namespace, "waiting");
    objects::create_pods(&client, [on_node("stays"), on_node("goes"), waiting])
        .await
        .unwrap();
    assert_eq!(objects::play_kubelet(&client, &namespace).await.unwrap(), 2);
    let pods = objects::path("v1", &namespace, "pods", "");
    objects::delete(&client, &format!("{pods}/goes")).await.unwrap();
    assert_eq!(objects::play_kubelet(&client, &namespace).await.unwrap(), 1);
    let there = objects::pods(&client, &namespace).await.unwrap();
    let phases: Vec<_> = there
        .iter()
        .map(|pod| (objects::name_of(pod), &pod["status"]["phase"]))
        .collect();
    assert_eq!(
        phases,
        [("stays", &json!("Running")), ("waiting", &json!("Pending"))]
    );
}

#[tokio::test]
async fn a_restart_of_the_api_server_keeps_its_address_and_what_was_written() {
    let options = Options {
        controllers: false,
        ..Options::default()
    };
    let cluster = Cluster::start(options).unwrap();
    let client = cluster.client().unwrap();
    let namespace = objects::unique_namespace(&client, "kept").await.unwrap();
    cluster.stop_apiserver();
    let place = objects::path("v1", "", "namespaces", &namespace);
    assert!(objects::get(&client, &place).await.is_err());
    cluster.start_apiserver().unwrap();
    let kept = objects::get(&client, &place).await.unwrap();
    assert_eq!(objects::name_of(&kept), namespace);
}

#[tokio::test]
async fn the_proxy_passes_watches_and_makes_writes_fail_when_told() {
    let client = cluster().client().unwrap();
    let namespace = objects::unique_namespace(&client, "proxy").await.unwrap();
    let proxy = Proxy::start(cluster()).unwrap();
    let through = proxy.client().unwrap();
    let pods = objects::path("v1", &namespace, "pods", "");
    let watch = format!("{pods}?watch=true&resourceVersion=0");
    let request = Request::get(&watch).body(Body::empty()).unwrap();
    let mut events = through.send(request).await.unwrap().into_body();

    let mut faults = Faults::default();
    faults.writes.internal = 1.0;
    proxy.set_faults(faults);
    let pod = objects::Pod::new(&namespace, "p");
    assert!(objects::create_pod(&through, &pod).await.is_err());
    assert_eq!(proxy.counters().internal, 1);

    proxy.clear();
    objects::create_pod(&through, &pod).await.unwrap();
    let event = next_event(&mut events).await;
    assert!(
        event.contains(r#""type":"ADDED""#) && event.contains(r#""name":"p""#),
        "{event}"
    );
}

async fn next_event(events: &mut Body) -> String {
    let frame = tokio::time::timeout(TIMEOUT, events.frame())
        .await
        .expect("an event in time");
    let data = frame.unwrap().unwrap().into_data().unwrap();
    String::from_utf8(data.to_vec()).unwrap()
}
