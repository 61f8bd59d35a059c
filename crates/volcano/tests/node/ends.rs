//! How pods end: by themselves, by their time, by deletion, with the node.

use crate::stage::{Stage, container, holds, isolations, odd_time, processes};
use kube::api::DeleteParams;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_pod_may_end_by_itself() {
    for isolation in isolations() {
        let mut stage = Stage::with(|options| options.isolation = Some(isolation)).await;
        stage
            .script(
                "p",
                "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
            )
            .await;
        stage.log_with("p", "up").await;
        let follow = kube::api::LogParams {
            follow: true,
            ..Default::default()
        };
        let log = stage.pods().log_stream("p", &follow).await.unwrap();
        stage.delete("p").await;
        let mut text = String::new();
        futures::AsyncReadExt::read_to_string(&mut std::pin::pin!(log), &mut text)
            .await
            .unwrap();
        assert_eq!(text, "up\nbye\n", "{isolation:?}");
        stage.gone("p").await;
        assert_eq!(stage.event("p", "Killing").await, "Stopping container main");
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_end_is_killed_with_all_it_started() {
    for isolation in isolations() {
        let mut stage = Stage::with(|options| options.isolation = Some(isolation)).await;
        let time = odd_time();
        let script = format!(
            "trap '' TERM; setsid sleep {time} & sleep {time} & echo up; while :; do sleep 0.05; done"
        );
        stage.script("p", &script).await;
        stage.log_with("p", "up").await;
        holds("both run", || processes(&time).len() == 2).await;
        let begin = Instant::now();
        stage
            .pods()
            .delete("p", &DeleteParams::default().grace_period(1))
            .await
            .unwrap();
        stage.gone("p").await;
        assert!(
            begin.elapsed() >= Duration::from_secs(1),
            "{isolation:?}: killed before its grace was over"
        );
        assert_eq!(processes(&time), [0; 0], "{isolation:?}");
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_its_container() {
    for isolation in isolations() {
        let mut stage = Stage::with(|options| options.isolation = Some(isolation)).await;
        let time = odd_time();
        let script = format!("setsid sh -c 'setsid sleep {time} & sleep {time}' & sleep 0.3");
        stage.script("p", &script).await;
        stage.phase("p", "Succeeded").await;
        assert_eq!(processes(&time), [0; 0], "{isolation:?}");
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_past_its_deadline_fails() {
    let mut stage = Stage::start().await;
    let spec = json!({"activeDeadlineSeconds": 1, "containers": [container("sleep 1000")]});
    stage.pod("p", spec).await;
    let pod = stage.phase("p", "Failed").await;
    assert_eq!(pod["status"]["reason"], "DeadlineExceeded");
    assert_eq!(
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"],
        143
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_pod_is_killed_and_its_name_can_be_used_again() {
    let mut stage = Stage::start().await;
    let time = odd_time();
    stage.script("p", &format!("sleep {time}")).await;
    stage.phase("p", "Running").await;
    stage
        .pods()
        .delete("p", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    stage.script("p", "echo second").await;
    stage.phase("p", "Succeeded").await;
    assert_eq!(stage.log("p").await, "second\n");
    holds("the first one is gone", || processes(&time).is_empty()).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_node_leaves_nothing() {
    let links = || std::fs::read_dir("/sys/class/net").unwrap().count();
    let mounts = || {
        std::fs::read_to_string("/proc/self/mountinfo")
            .unwrap()
            .lines()
            .count()
    };
    let before = mounts();
    let mut stage = Stage::start().await;
    let time = odd_time();
    let script = format!("trap '' TERM; setsid sleep {time} & while :; do sleep 0.05; done");
    for name in ["a", "b"] {
        stage.script(name, &script).await;
        stage.phase(name, "Running").await;
    }
    let with = links();
    assert_eq!(mounts(), before, "mounts of containers are seen by the host");
    let has_network = stage.agent().gateway().is_some();
    let begin = Instant::now();
    stage.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(20), "the grace is bounded");
    assert_eq!(processes(&time), [0; 0]);
    if has_network {
        holds("the link of the host is gone", || links() < with).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_of_the_node_pods_are_lost_or_run_again() {
    let mut stage = Stage::start().await;
    stage.script("never", "sleep 1000").await;
    stage.script("done", "echo kept").await;
    let spec = json!({"restartPolicy": "Always", "containers": [container("sleep 1000")]});
    stage.pod("always", spec).await;
    for name in ["never", "always"] {
        stage.phase(name, "Running").await;
    }
    stage.phase("done", "Succeeded").await;
    stage.stop().await;
    stage.start_agent(|_| ()).await;
    let pod = stage.phase("never", "Failed").await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(
        (&ended["reason"], &ended["exitCode"]),
        (&json!("ContainerStatusUnknown"), &json!(137))
    );
    let pod = stage
        .until("always", "running again", |pod| {
            let container = &pod["status"]["containerStatuses"][0];
            container["restartCount"] == 1 && container["state"]["running"].is_object()
        })
        .await;
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(stage.log("done").await, "kept\n", "logs are kept");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_for_one_node_only() {
    let mut stage = Stage::start().await;
    let second = volcano_node::Agent::start(
        stage.plane.client(),
        crate::stage::options(stage.directory.path()),
    )
    .await;
    let problem = second.err().unwrap().to_string();
    assert!(problem.contains("another node uses it"), "{problem}");
    stage.stop().await;
}
