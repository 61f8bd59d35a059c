//! Several controller managers, of which one works.

use serde_json::json;
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::controllers::Controllers;
use volcano_cluster_tests::jobs::{Kubelets, task};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, Node, check};

/// A lease that is free again soon after its holder died.
const SHORT_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=250ms",
];

async fn lead(controllers: &Controllers) {
    let what = "the next one leads";
    until(what, || async {
        Ok(check(controllers.leads(), || "it stands by"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_one_takes_over_and_goes_on() {
    let stage = Stage::set().await.unwrap();
    stage.node("n", "64").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    let _kubelets = Kubelets::start(&stage.client, &stage.namespace);
    let first = stage.controllers(&SHORT_LEASE).unwrap();
    lead(&first).await;
    let second = stage.controllers(&SHORT_LEASE).unwrap();
    assert!(!second.leads());
    let spec = json!({"tasks": [task("t", 2)], "policies": [{"event": "PodFailed", "action": "RestartJob"}]});
    stage.submit("handed-over", &spec).await;
    let before = stage.wait_running("handed-over", 2).await;
    stage.wait_job("handed-over", "Running").await;
    first.kill().unwrap();
    stage.end_pod("handed-over-t-0", 1).await;
    lead(&second).await;
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
    lead(&third).await;
    for pod in after.keys() {
        stage.end_pod(pod, 0).await;
    }
    stage.wait_job("handed-over", "Completed").await;
    let refused = r#"volcano_api_writes_total{kind="pods",result="conflict""#;
    assert_eq!(third.metric(refused).unwrap(), 0.0);
}

/// Who takes over knows the pods that were just made from its watches alone, and they come after the Job that counts them.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_pods_were_just_made_is_not_restarted_when_another_one_takes_over() {
    const PODS: usize = 200;
    const ROUNDS: usize = 4;
    let stage = Stage::set().await.unwrap();
    let nodes = (0..ROUNDS * 2).map(|at| Node::new(&format!("n-{at}")).cpu("64").memory("256Gi"));
    objects::create_nodes(&stage.client, nodes).await.unwrap();
    let _scheduler = stage.scheduler(&[]).unwrap();
    let _kubelets = Kubelets::start(&stage.client, &stage.namespace);
    let flags: Vec<&str> = SHORT_LEASE.into_iter().chain(["--kube-api-qps=0"]).collect();
    let mut leader = stage.controllers(&flags).unwrap();
    lead(&leader).await;
    let policies = json!([{"event": "PodEvicted", "action": "RestartJob"}]);
    let name = |round: usize| format!("large-{round}");
    for round in 0..ROUNDS {
        let next = stage.controllers(&flags).unwrap();
        let spec = json!({"minAvailable": 1, "tasks": [task("t", PODS)], "policies": policies});
        stage.submit(&name(round), &spec).await;
        // The Job says that its pods are there: whoever sees that, and not the pods, could take them for lost.
        let path = stage.job_path(&name(round));
        stage
            .wait(&path, "its pods are counted", |job| {
                !job["status"]["taskStatusCount"]["t"].is_null()
            })
            .await;
        // One is asked to end, the next one dies.
        if round % 2 == 0 {
            assert!(leader.stop().unwrap().success());
        } else {
            leader.kill().unwrap();
        }
        lead(&next).await;
        leader = next;
    }
    for round in 0..ROUNDS {
        let job = stage.wait_job(&name(round), "Running").await;
        assert_eq!(job["status"]["retryCount"].as_i64().unwrap_or(0), 0, "{job}");
        assert_eq!(stage.pods_of(&name(round)).await.len(), PODS);
    }
    let made_twice = r#"volcano_api_writes_total{kind="pods",result="conflict""#;
    assert_eq!(leader.metric(made_twice).unwrap(), 0.0);
}
