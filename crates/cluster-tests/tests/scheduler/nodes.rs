//! Which nodes and pods are a scheduler's: taints, labels, cordons, other schedulers, gates, NodeShards.

use crate::{CAPACITY, stage};
use serde_json::{Value, json};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, Node, Pod};

/// A gang of one with something of its own.
async fn one(stage: &Stage, name: &str, with: impl Fn(Pod) -> Pod) {
    stage
        .group(&objects::pod_group(&stage.namespace, name, 1, ""))
        .await;
    stage.members(name, 1, |pod| with(pod.cpu("1"))).await;
}

fn in_pool(pool: &str) -> impl Fn(Pod) -> Pod {
    let selector = json!({ "pool": pool });
    move |pod| pod.spec("nodeSelector", selector.clone())
}

fn node(name: &str) -> Node {
    Node::new(name).cpu("4").memory("64Gi").label("pool", name)
}

#[tokio::test]
async fn taints_selectors_and_cordons_are_kept_and_named() {
    let stage = stage().await;
    stage
        .add_node(&node("tainted").taint("dedicated", "gpu", "NoSchedule"))
        .await;
    stage.add_node(&node("cordoned").unschedulable()).await;
    stage.add_node(&node("plain")).await;
    one(&stage, "any", |pod| pod).await;
    one(&stage, "tolerant", |pod| {
        let toleration =
            json!([{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]);
        in_pool("tainted")(pod).spec("tolerations", toleration)
    })
    .await;
    let waits = [
        ("wrong-taint", "tainted", "1 node(s) had untolerated taint(s)"),
        ("wrong-cordon", "cordoned", "1 node(s) were unschedulable"),
        (
            "wrong-label",
            "nowhere",
            "2 node(s) didn't match Pod's node affinity/selector",
        ),
    ];
    for (name, pool, _) in waits {
        one(&stage, name, in_pool(pool)).await;
    }
    let _scheduler = stage.scheduler(&[]).unwrap();
    assert_eq!(stage.wait_bound("any", 1).await["any-0"], "plain");
    assert_eq!(stage.wait_bound("tolerant", 1).await["tolerant-0"], "tainted");
    for (name, _, reason) in waits {
        let told = stage.wait_told(&format!("{name}-0")).await;
        let message = told["message"].as_str().unwrap();
        assert!(
            message.starts_with("0/3 nodes are unavailable: ") && message.contains(reason),
            "{name}: {message}"
        );
    }
    assert!(stage.bound("wrong").await.is_empty());
    let cordoned = objects::path("v1", "", "nodes", "cordoned");
    stage
        .patch(&cordoned, &json!({"spec": {"unschedulable": false}}))
        .await;
    assert_eq!(
        stage.wait_bound("wrong-cordon", 1).await["wrong-cordon-0"],
        "cordoned"
    );
}

#[tokio::test]
async fn a_node_that_is_removed_is_not_used_any_more() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    one(&stage, "first", |pod| pod).await;
    stage.wait_bound("first", 1).await;
    stage.remove(&objects::path("v1", "", "nodes", "n1")).await;
    one(&stage, "second", |pod| pod).await;
    stage.wait_told("second-0").await;
    // More than the second asks for: the first still counts against the share of their queue.
    stage.node("n2", "4").await;
    assert_eq!(stage.wait_bound("second", 1).await["second-0"], "n2");
}

#[tokio::test]
async fn a_node_selector_limits_the_nodes_of_a_scheduler() {
    let stage = stage().await;
    stage.add_node(&node("batch")).await;
    stage.add_node(&node("web")).await;
    let _scheduler = stage.scheduler(&["--node-selector=pool:batch"]).unwrap();
    stage.gang("fits", 4, 4, "1").await;
    let bound = stage.wait_bound("fits", 4).await;
    assert!(bound.values().all(|node| node == "batch"), "{bound:?}");
    stage.gang("waits", 1, 1, "1").await;
    stage.wait_told("waits-0").await;
    assert!(stage.bound("waits").await.is_empty());
    // The label comes, and with it the node.
    let web = objects::path("v1", "", "nodes", "web");
    stage
        .patch(&web, &json!({"metadata": {"labels": {"pool": "batch"}}}))
        .await;
    assert_eq!(stage.wait_bound("waits", 1).await["waits-0"], "web");
    // The label goes, and with it the node.
    stage
        .patch(&web, &json!({"metadata": {"labels": {"pool": "web"}}}))
        .await;
    stage.gang("late", 1, 1, "1").await;
    stage.wait_told("late-0").await;
    assert!(stage.bound("late").await.is_empty());
}

#[tokio::test]
async fn pods_of_other_schedulers_take_room_on_their_nodes() {
    let stage = stage().await;
    stage.node("n1", "2").await;
    let foreign = stage.pod("foreign").cpu("2");
    let foreign = foreign
        .spec("schedulerName", json!("default-scheduler"))
        .spec("nodeName", json!("n1"));
    stage.add_pod(foreign).await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    one(&stage, "waits", |pod| pod).await;
    let told = stage.wait_told("waits-0").await;
    assert_eq!(told["message"], "0/1 nodes are unavailable: 1 Insufficient cpu.");
    stage.remove(&stage.pod_path("foreign")).await;
    stage.wait_bound("waits", 1).await;
}

#[tokio::test]
async fn each_scheduler_places_the_pods_that_name_it() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let _volcano = stage.scheduler(&[]).unwrap();
    one(&stage, "theirs", |pod| pod.spec("schedulerName", json!("other"))).await;
    one(&stage, "ours", |pod| pod).await;
    stage.wait_bound("ours", 1).await;
    assert!(
        stage.bound("theirs").await.is_empty(),
        "nobody is named other yet"
    );
    let _other = stage.scheduler(&["--scheduler-name=other"]).unwrap();
    stage.wait_bound("theirs", 1).await;
    for (pod, scheduler) in [("ours-0", "volcano"), ("theirs-0", "other")] {
        stage.wait_event(pod, "Scheduled").await;
        let events = stage.events(pod).await.unwrap();
        let told_by = |event: &Value| event["source"]["component"] == scheduler;
        let scheduled = events.iter().filter(|event| event["reason"] == "Scheduled");
        let scheduled: Vec<_> = scheduled.collect();
        assert!(scheduled.len() == 1 && told_by(scheduled[0]), "{scheduled:?}");
    }
}

#[tokio::test]
async fn a_pod_waits_until_its_gates_are_gone() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    one(&stage, "gated", |pod| {
        pod.spec("schedulingGates", json!([{"name": "example.com/not-yet"}]))
    })
    .await;
    one(&stage, "later", |pod| pod).await;
    stage.wait_bound("later", 1).await;
    assert!(stage.bound("gated").await.is_empty());
    stage
        .patch(
            &stage.pod_path("gated-0"),
            &json!({"spec": {"schedulingGates": null}}),
        )
        .await;
    stage.wait_bound("gated", 1).await;
}

/// What holds a pod back until its queue has room.
const QUEUE_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

#[tokio::test]
async fn the_gate_of_a_queue_opens_when_there_is_room() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    stage
        .queue("narrow", 1, &json!({"capability": {"cpu": "1"}}))
        .await;
    let gated = |pod: Pod| {
        let gates = json!([{ "name": QUEUE_GATE }]);
        pod.cpu("1")
            .annotation(QUEUE_GATE, "true")
            .spec("schedulingGates", gates)
    };
    for name in ["first", "second"] {
        let group = objects::pod_group(&stage.namespace, name, 1, "narrow");
        stage.group(&group).await;
        stage.members(name, 1, gated).await;
    }
    let conf = stage.file("scheduler.conf", CAPACITY).unwrap();
    let conf = format!("--scheduler-conf={}", conf.display());
    let gate = "--feature-gates=SchedulingGatesQueueAdmission=true";
    let _scheduler = stage.scheduler(&[&conf, gate]).unwrap();
    let bound = stage.wait_bound("", 1).await;
    let waits = if bound.contains_key("first-0") {
        "second"
    } else {
        "first"
    };
    let waiting = stage.pod_path(&format!("{waits}-0"));
    let gates = &stage.get(&waiting).await["spec"]["schedulingGates"];
    assert_eq!(gates[0]["name"], QUEUE_GATE, "the queue is full");
    for pod in bound.keys() {
        stage.remove(&stage.pod_path(pod)).await;
    }
    stage.wait_bound(waits, 1).await;
}

#[tokio::test]
async fn schedulers_that_divide_the_nodes_keep_to_their_own() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    stage.node("n2", "4").await;
    let shard = |name: &str, nodes: &[&str]| {
        json!({
            "apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard",
            "metadata": {"name": name}, "spec": {"nodesDesired": nodes},
        })
    };
    let shards = "/apis/shard.volcano.sh/v1alpha1/nodeshards";
    stage.create(shards, &shard("volcano", &["n2"])).await;
    let _scheduler = stage.scheduler(&["--scheduler-sharding-mode=hard"]).unwrap();
    stage.gang("own", 2, 2, "2").await;
    let bound = stage.wait_bound("own", 2).await;
    assert!(bound.values().all(|node| node == "n2"), "{bound:?}");
    stage.gang("more", 1, 1, "2").await;
    let told = stage.wait_told("more-0").await;
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("1 node isn't in scheduler node shard"),
        "{message}"
    );
    let path = format!("{shards}/volcano");
    let in_use = |nodes: Value| move |shard: &Value| shard["status"]["nodesInUse"] == nodes;
    stage
        .wait(&path, "it says what it uses", in_use(json!(["n2"])))
        .await;
    stage
        .patch(&path, &json!({"spec": {"nodesDesired": ["n1", "n2"]}}))
        .await;
    assert_eq!(stage.wait_bound("more", 1).await["more-0"], "n1");
    stage
        .wait(&path, "it says what it uses", in_use(json!(["n1", "n2"])))
        .await;
}
