//! What is done when something happens to a pod.

use serde_json::{Value, json};
use volcano_cluster_tests::jobs::{Troupe, task, with};

/// A Job of two tasks of two pods each, with one policy.
fn job(policy: &Value) -> Value {
    json!({"policies": [policy], "tasks": [task("a", 2), with(task("b", 2),
        &json!({"partitionPolicy": {"totalPartitions": 2, "partitionSize": 1}}))]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_pod_has_each_action_carried_out() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    // The action, the phase that follows, the pods that are replaced, and those that are left at the end.
    let cases: [(&str, &str, &[&str], usize); 7] = [
        ("RestartJob", "Running", &["a-0", "a-1", "b-0", "b-1"], 4),
        ("RestartTask", "Running", &["b-0", "b-1"], 4),
        ("RestartPod", "Running", &["b-1"], 4),
        ("RestartPartition", "Running", &["b-1"], 4),
        ("AbortJob", "Aborted", &[], 1),
        ("TerminateJob", "Terminated", &[], 1),
        ("CompleteJob", "Completed", &[], 1),
    ];
    let name = |action: &str| action.to_lowercase();
    for (action, ..) in cases {
        let policy = json!({"event": "PodFailed", "action": action});
        stage.submit(&name(action), &job(&policy)).await;
    }
    for (action, phase, replaced, left) in cases {
        let job = name(action);
        let before = stage.wait_running(&job, 4).await;
        stage.end_pod(&format!("{job}-b-1"), 7).await;
        stage
            .wait_event_saying(
                &job,
                "ExecuteAction",
                &format!("Start to execute action {action} "),
            )
            .await;
        if replaced.is_empty() {
            stage.wait_job(&job, phase).await;
            stage.wait_pods(&job, &[&*format!("{job}-b-1 Failed")]).await;
        } else {
            let path = stage.job_path(&job);
            let restarted = stage
                .wait(&path, "it was restarted", |job| job["status"]["retryCount"] == 1)
                .await;
            let message = restarted["status"]["state"]["message"]
                .as_str()
                .unwrap_or_default();
            assert_eq!(message, format!("PodFailed of pod {job}-b-1, exit code 7"));
            stage.wait_job(&job, phase).await;
            let after = stage.wait_running(&job, 4).await;
            for (pod, uid) in &before {
                let short = pod.strip_prefix(&format!("{job}-")).unwrap();
                assert_eq!(after[pod] != *uid, replaced.contains(&short), "{action}: {pod}");
            }
        }
        assert_eq!(stage.pods_of(&job).await.len(), left, "{action}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_tasks_and_evictions_have_policies_of_their_own() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let spec = json!({
        "policies": [{"event": "PodEvicted", "action": "TerminateJob"}],
        "tasks": [
            with(task("codes", 2), &json!({"policies": [{"exitCode": 3, "action": "AbortJob"}]})),
            with(task("done", 1), &json!({"policies": [{"event": "TaskCompleted", "action": "CompleteJob"}]})),
        ],
    });
    for name in ["other-code", "code", "complete", "evicted"] {
        stage.submit(name, &spec).await;
    }
    for name in ["other-code", "code", "complete", "evicted"] {
        stage.wait_running(name, 3).await;
    }
    stage.end_pod("code-codes-0", 3).await;
    stage.end_pod("other-code-codes-0", 4).await;
    stage.end_pod("complete-done-0", 0).await;
    stage.remove(&stage.pod_path("evicted-codes-1")).await;
    stage.wait_job("code", "Aborted").await;
    stage.wait_job("complete", "Completed").await;
    let evicted = stage.wait_job("evicted", "Terminated").await;
    let message = evicted["status"]["state"]["message"].as_str().unwrap();
    assert_eq!(message, "PodEvicted of pod evicted-codes-1");
    let other = stage
        .wait(&stage.job_path("other-code"), "the failure is counted", |job| {
            job["status"]["failed"] == 1
        })
        .await;
    assert_eq!(other["status"]["state"]["phase"], "Running");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_waits_for_its_timeout_and_is_called_off_when_the_pod_starts() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let spec = |timeout: &str| {
        let mut waits = task("t", 1);
        waits["template"]["spec"]["nodeSelector"] = json!({"there-is": "no-such-node"});
        json!({"minAvailable": 1, "tasks": [waits],
            "policies": [{"event": "PodPending", "action": "AbortJob", "timeout": timeout}]})
    };
    stage.submit("short", &spec("2s")).await;
    stage.submit("long", &spec("10m")).await;
    stage
        .wait_event_saying("short", "ExecuteAction", "Execute action AbortJob after 2s")
        .await;
    stage.wait_job("short", "Aborted").await;
    stage
        .wait_event_saying("long", "ExecuteAction", "Execute action AbortJob after 10m0s")
        .await;
    let labels = json!({"metadata": {"labels": {"there-is": "no-such-node"}}});
    stage.patch("/api/v1/nodes/node-0", &labels).await;
    stage.wait_job("long", "Running").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_fails_when_its_retries_are_spent() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let spec = json!({"maxRetry": 3, "tasks": [task("t", 2)],
        "policies": [{"event": "PodFailed", "action": "RestartJob"}]});
    stage.submit("retries", &spec).await;
    let mut seen = std::collections::BTreeSet::new();
    for attempt in 1..=3 {
        let path = stage.job_path("retries");
        stage
            .wait(&path, "it runs", |job| {
                let status = &job["status"];
                status["state"]["phase"] == "Running"
                    && status["retryCount"].as_i64().unwrap_or(0) == attempt - 1
            })
            .await;
        let pods = stage.wait_running("retries", 2).await;
        assert!(
            pods.values().all(|uid| seen.insert(uid.clone())),
            "new pods in each attempt"
        );
        stage.end_pod("retries-t-0", 1).await;
    }
    let job = stage.wait_job("retries", "Failed").await;
    assert_eq!(job["status"]["retryCount"], 3);
    stage.wait_pods("retries", &["retries-t-0 Failed"]).await;
    let failed = r#"volcano_job_failed_phase_count{job_name="#;
    assert!(troupe.controllers.get("/metrics").unwrap().1.contains(failed));
}
