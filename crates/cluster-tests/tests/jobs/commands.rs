//! Orders that users give to Jobs.

use serde_json::json;
use volcano_cluster_tests::jobs::{BATCH, Troupe, task};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_suspended_and_resumed() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    stage.submit("pausing", &json!({"tasks": [task("t", 3)]})).await;
    let before = stage.wait_running("pausing", 3).await;
    stage.end_pod("pausing-t-0", 0).await;
    stage
        .wait(&stage.job_path("pausing"), "one succeeded", |job| {
            job["status"]["succeeded"] == 1
        })
        .await;
    stage.order("pausing", "AbortJob").await;
    stage.wait_job("pausing", "Aborted").await;
    stage.wait_pods("pausing", &["pausing-t-0 Succeeded"]).await;
    stage
        .wait_event_saying(
            "pausing",
            "CommandIssued",
            "Start to execute command AbortJob, and clean it up to make sure executed not more than once.",
        )
        .await;
    stage.wait_obeyed().await;
    stage.order("pausing", "ResumeJob").await;
    let job = stage.wait_job("pausing", "Running").await;
    assert_eq!(job["status"]["retryCount"], 1, "resuming costs a retry");
    let after = stage.wait_running("pausing", 2).await;
    assert!(after.iter().all(|(pod, uid)| before[pod] != *uid));
    for pod in after.keys() {
        stage.end_pod(pod, 0).await;
    }
    stage.wait_job("pausing", "Completed").await;
    assert_eq!(
        stage.pods_of("pausing").await.len(),
        3,
        "what succeeded is not run again"
    );
    stage.wait_obeyed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_is_carried_out_once() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let cases = [
        ("TerminateJob", "Terminated", 0),
        ("CompleteJob", "Completed", 0),
        ("RestartJob", "Running", 1),
        ("AbortJob", "Aborted", 0),
    ];
    let name = |action: &str| format!("by-{}", action.to_lowercase());
    for (action, ..) in cases {
        stage
            .submit(&name(action), &json!({"tasks": [task("t", 2)]}))
            .await;
    }
    for (action, phase, retries) in cases {
        let job = name(action);
        let before = stage.wait_running(&job, 2).await;
        let command = stage.order(&job, action).await;
        let uid_of_command = stage.path("bus.volcano.sh/v1alpha1", "commands", &command);
        stage.wait_gone(&uid_of_command).await;
        if retries > 0 {
            let path = stage.job_path(&job);
            stage
                .wait(&path, "it was restarted", |job| {
                    job["status"]["retryCount"] == retries
                })
                .await;
            let after = stage.wait_running(&job, 2).await;
            assert!(after.iter().all(|(pod, uid)| before[pod] != *uid), "{action}");
        }
        let done = stage.wait_job(&job, phase).await;
        let message = done["status"]["state"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(&format!("Command {command} (")), "{message}");
    }
    // The same order twice is two restarts, and no more.
    let path = stage.job_path("by-restartjob");
    for _ in 0..2 {
        stage.order("by-restartjob", "RestartJob").await;
    }
    stage.wait_obeyed().await;
    let status = stage.get(&path).await["status"].clone();
    assert!(status["retryCount"].as_i64() <= Some(3), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_for_another_job_of_the_name_is_dropped() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    stage.submit("namesake", &json!({"tasks": [task("t", 1)]})).await;
    stage.wait_running("namesake", 1).await;
    let target = json!({"apiVersion": BATCH, "kind": "Job", "name": "namesake", "uid": "of-an-earlier-one"});
    stage.command("namesake-", "TerminateJob", &target).await;
    stage.wait_obeyed().await;
    stage.wait_job("namesake", "Running").await;
}
