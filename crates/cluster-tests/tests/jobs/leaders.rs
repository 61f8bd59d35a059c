//! Several controller managers, of which one works.

use serde_json::json;
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::jobs::{Kubelets, task};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::check;

/// A lease that is free again soon after its holder died.
const SHORT_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=250ms",
];

#[tokio::test(flavor = "multi_thread")]
async fn another_one_takes_over_and_goes_on() {
    let stage = Stage::set().await.unwrap();
    stage.node("n", "64").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    let _kubelets = Kubelets::start(&stage.client, &stage.namespace);
    let first = stage.controllers(&SHORT_LEASE).unwrap();
    let leads =
        |which: &volcano_cluster_tests::controllers::Controllers| check(which.leads(), || "it stands by");
    until("the first one leads", || async { Ok(leads(&first)) }).await;
    let second = stage.controllers(&SHORT_LEASE).unwrap();
    assert!(!second.leads());
    let spec = json!({"tasks": [task("t", 2)], "policies": [{"event": "PodFailed", "action": "RestartJob"}]});
    stage.submit("handed-over", &spec).await;
    let before = stage.wait_running("handed-over", 2).await;
    stage.wait_job("handed-over", "Running").await;
    first.kill().unwrap();
    stage.end_pod("handed-over-t-0", 1).await;
    until("the second one leads", || async { Ok(leads(&second)) }).await;
    let path = stage.job_path("handed-over");
    stage
        .wait(&path, "it was restarted once", |job| {
            job["status"]["retryCount"] == 1 && job["status"]["state"]["phase"] == "Running"
        })
        .await;
    let after = stage.wait_running("handed-over", 2).await;
    assert!(after.iter().all(|(pod, uid)| before[pod] != *uid));

    // One that is asked to end gives the lease back, so that the next one need not wait for it.
    let third = stage.controllers(&SHORT_LEASE).unwrap();
    assert!(second.stop().unwrap().success());
    until("the third one leads", || async { Ok(leads(&third)) }).await;
    for pod in after.keys() {
        stage.end_pod(pod, 0).await;
    }
    stage.wait_job("handed-over", "Completed").await;
    let refused = r#"volcano_api_writes_total{kind="pods",result="conflict""#;
    assert_eq!(third.metric(refused).unwrap(), 0.0);
}
