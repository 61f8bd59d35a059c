//! Queues: shares, limits, states and what they report.

use crate::{CAPACITY, stage};
use serde_json::{Value, json};

#[tokio::test]
async fn the_queues_that_are_always_there_are_made() {
    let stage = stage().await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    for (name, reclaimable) in [("root", false), ("default", true)] {
        let queue = stage.get(&stage.queue_path(name)).await;
        assert_eq!(queue["spec"]["reclaimable"], reclaimable, "{name}");
        assert_eq!(queue["spec"]["weight"], 1, "{name}");
    }
}

#[tokio::test]
async fn queues_divide_the_cluster_by_weight() {
    let stage = stage().await;
    stage.node("n1", "8").await;
    stage.queue("heavy", 3, &Value::Null).await;
    stage.queue("light", 1, &Value::Null).await;
    for queue in ["heavy", "light"] {
        stage.gang_in(queue, queue, 1, 8, "1").await;
    }
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.wait_bound("", 8).await;
    assert_eq!(stage.bound("heavy").await.len(), 6);
    assert_eq!(stage.bound("light").await.len(), 2);
}

#[tokio::test]
async fn a_queue_stays_within_its_capability() {
    let stage = stage().await;
    stage.node("n1", "8").await;
    stage
        .queue("small", 1, &json!({"capability": {"cpu": "2"}}))
        .await;
    stage.gang_in("small", "elastic", 1, 4, "1").await;
    let scheduler = stage.configured(CAPACITY).unwrap();
    stage.wait_bound("elastic", 2).await;
    // The next in line of another queue is served, so the two that are left were looked at.
    stage.gang("other", 1, 1, "1").await;
    stage.wait_bound("other", 1).await;
    assert_eq!(stage.bound("elastic").await.len(), 2);
    drop(scheduler);
}

#[tokio::test]
async fn a_closed_queue_admits_nothing_until_it_is_open() {
    let stage = stage().await;
    stage.node("n1", "8").await;
    stage.queue("closed", 1, &Value::Null).await;
    let status = format!("{}/status", stage.queue_path("closed"));
    stage
        .patch(&status, &json!({"status": {"state": "Closed"}}))
        .await;
    stage.gang_in("closed", "waits", 1, 1, "1").await;
    stage.gang("works", 1, 1, "1").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.wait_bound("works", 1).await;
    stage
        .wait_event_saying("waits", "Unschedulable", "queue closed is not open")
        .await;
    stage.wait_phase("waits", "Pending").await;
    assert!(stage.bound("waits").await.is_empty());
    stage.patch(&status, &json!({"status": {"state": "Open"}})).await;
    stage.wait_bound("waits", 1).await;
}

#[tokio::test]
async fn what_a_queue_uses_is_in_its_status_and_that_of_root() {
    let stage = stage().await;
    stage.node("n1", "8").await;
    stage.queue("team", 1, &Value::Null).await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.gang_in("team", "works", 2, 2, "1500m").await;
    stage.wait_bound("works", 2).await;
    for name in ["team", "root"] {
        stage
            .wait(&stage.queue_path(name), "three processors are in use", |queue| {
                queue["status"]["allocated"]["cpu"] == "3"
            })
            .await;
    }
    stage.phase("works-0", "Succeeded").await;
    stage.remove(&stage.pod_path("works-1")).await;
    for name in ["team", "root"] {
        stage
            .wait(&stage.queue_path(name), "nothing is in use", |queue| {
                matches!(queue["status"]["allocated"]["cpu"].as_str(), None | Some("0"))
            })
            .await;
    }
}
