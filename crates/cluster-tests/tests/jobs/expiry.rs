//! Jobs that are deleted some time after their end.

use serde_json::json;
use volcano_cluster_tests::jobs::{Troupe, task};

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_job_is_deleted_with_its_pods() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    for (name, ttl) in [("soon", json!(1)), ("later", json!(600))] {
        let spec = json!({"tasks": [task("t", 1)], "ttlSecondsAfterFinished": ttl});
        stage.submit(name, &spec).await;
        stage.wait_running(name, 1).await;
        stage.end_pod(&format!("{name}-t-0"), 0).await;
    }
    stage.wait_gone(&stage.job_path("soon")).await;
    stage.wait_gone(&stage.pod_path("soon-t-0")).await;
    stage.wait_job("later", "Completed").await;
    // The time can be changed while it runs.
    let path = stage.job_path("later");
    stage
        .patch(&path, &json!({"spec": {"ttlSecondsAfterFinished": 0}}))
        .await;
    stage.wait_gone(&path).await;
}
