//! What is told when something stands in the way.

use serde_json::json;
use volcano_cluster_tests::jobs::{Troupe, task};

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_say_how_it_is() {
    let troupe = Troupe::play().await;
    for path in ["/healthz", "/healthz/ping", "/readyz"] {
        assert_eq!(
            troupe.controllers.health(path).unwrap(),
            (200, "ok".to_owned()),
            "{path}"
        );
    }
    let (_, metrics) = troupe.controllers.get("/metrics").unwrap();
    assert!(metrics.contains("volcano_leader 1") && metrics.contains("volcano_build_info"));
    assert!(
        !metrics.contains("volcano_e2e_scheduling"),
        "that is the scheduler's"
    );
    let log = troupe.controllers.log();
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("not available yet"))
        .collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(troupe.controllers.stop().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_pods_are_refused_is_told_of_and_ended() {
    let troupe = Troupe::play_with(&["--max-requeue-num=3"]).await;
    let stage = &troupe.stage;
    let mut wrong = task("t", 2);
    wrong["template"]["spec"]["containers"][0]["image"] = json!("");
    stage
        .submit("wrong", &json!({"minAvailable": 1, "tasks": [wrong]}))
        .await;
    let (kind, message) = stage.wait_event("wrong", "FailedCreate").await;
    assert_eq!(kind, "Warning");
    assert!(
        message.starts_with("Error creating pods: [Pod \"wrong-t-"),
        "{message}"
    );
    stage
        .wait_event_saying(
            "wrong",
            "ExecuteAction",
            "Job failed on action SyncJob for retry limit reached",
        )
        .await;
    stage.wait_job("wrong", "Terminated").await;
}
