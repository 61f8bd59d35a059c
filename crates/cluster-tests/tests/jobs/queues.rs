//! Queues: orders, hierarchy and numbers.

use serde_json::{Value, json};
use volcano_cluster_tests::jobs::{Troupe, task, with};
use volcano_cluster_tests::stage::Stage;

async fn order(stage: &Stage, queue: &str, action: &str) {
    let uid = stage.get(&stage.queue_path(queue)).await["metadata"]["uid"].clone();
    let target =
        json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue, "uid": uid});
    stage.command(&format!("{queue}-"), action, &target).await;
}

async fn wait_state(stage: &Stage, queue: &str, state: &str) -> Value {
    let what = format!("it is {state}");
    stage
        .wait(&stage.queue_path(queue), &what, |queue| {
            queue["status"]["state"] == state
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_queues_is_closed_and_opened() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    stage.queue("research", 1, &json!({})).await;
    stage.queue("vision", 1, &json!({"parent": "research"})).await;
    stage.queue("speech", 1, &json!({"parent": "research"})).await;
    for queue in ["research", "vision", "speech"] {
        wait_state(stage, queue, "Open").await;
    }
    let research = stage.get(&stage.queue_path("research")).await;
    assert_eq!(research["spec"]["parent"], "root");
    order(stage, "speech", "CloseQueue").await;
    wait_state(stage, "speech", "Closed").await;
    order(stage, "research", "CloseQueue").await;
    for queue in ["research", "vision"] {
        wait_state(stage, queue, "Closed").await;
    }
    let vision = stage.get(&stage.queue_path("vision")).await;
    assert_eq!(
        vision["metadata"]["annotations"]["volcano.sh/closed-by-parent"],
        "true"
    );
    assert_eq!(
        stage.wait_event("research", "CloseQueue").await,
        ("Normal".to_owned(), "Close queue succeed".to_owned())
    );
    order(stage, "research", "OpenQueue").await;
    for queue in ["research", "vision"] {
        wait_state(stage, queue, "Open").await;
    }
    wait_state(stage, "speech", "Closed").await;
    order(stage, "root", "CloseQueue").await;
    let (kind, message) = stage.wait_event("root", "CloseQueue").await;
    assert_eq!(
        (&*kind, &*message),
        (
            "Warning",
            "CloseQueue queue failed for queue root cannot be closed"
        )
    );
    wait_state(stage, "root", "Open").await;
    stage.wait_obeyed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_counts_its_groups_and_is_closed_when_the_last_is_gone() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    stage.queue("busy", 1, &json!({})).await;
    wait_state(stage, "busy", "Open").await;
    let spec = with(json!({"tasks": [task("t", 1)]}), &json!({"queue": "busy"}));
    stage.submit("works", &spec).await;
    stage.wait_running("works", 1).await;
    let path = stage.queue_path("busy");
    stage
        .wait(&path, "one runs", |queue| queue["status"]["running"] == 1)
        .await;
    let gauge = r#"volcano_queue_pod_group_running_count{queue_name="busy""#;
    assert_eq!(troupe.controllers.metric(gauge).unwrap(), 1.0);
    order(stage, "busy", "CloseQueue").await;
    wait_state(stage, "busy", "Closing").await;
    stage.wait_job("works", "Running").await;
    stage.end_pod("works-t-0", 0).await;
    let closed = wait_state(stage, "busy", "Closed").await;
    assert_eq!(closed["status"]["running"].as_i64().unwrap_or(0), 0, "{closed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_for_its_queue_and_says_so() {
    let troupe = Troupe::play_with(&["--max-requeue-num=2"]).await;
    let stage = &troupe.stage;
    let spec = json!({"tasks": [task("t", 1)], "queue": "to-come"});
    stage.submit("early", &spec).await;
    let (kind, message) = stage.wait_event("early", "PodGroupError").await;
    assert_eq!(
        (&*kind, &*message),
        (
            "Warning",
            "Failed to create PodGroup, err: queue to-come is not found"
        )
    );
    stage.wait_job("early", "Pending").await;
    stage.queue("to-come", 1, &json!({})).await;
    stage.wait_running("early", 1).await;
}
