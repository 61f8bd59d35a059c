//! Gangs: whole or not at all, now or when there is room.

use crate::stage;
use serde_json::json;
use volcano_cluster_tests::acts::condition;
use volcano_testcluster::objects;

#[tokio::test]
async fn a_gang_that_fits_is_bound_whole_and_everybody_is_told() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.gang("fits", 3, 3, "1").await;
    let bound = stage.wait_bound("fits", 3).await;
    assert!(bound.values().all(|node| node == "n1"), "{bound:?}");

    let group = stage.wait_phase("fits", "Running").await;
    let scheduled = condition(&group, "Scheduled");
    assert_eq!(scheduled["status"], "True");
    assert_eq!(scheduled["reason"], "tasks in gang are ready to be scheduled");
    assert_eq!(
        stage.wait_event("fits", "Scheduled").await,
        ("Normal".to_owned(), "pod group is ready".to_owned())
    );
    let assigned = format!("Successfully assigned {}/fits-0 to n1", stage.namespace);
    assert_eq!(
        stage.wait_event("fits-0", "Scheduled").await,
        ("Normal".to_owned(), assigned)
    );
}

#[tokio::test]
async fn a_gang_that_does_not_fit_whole_stays_out_and_says_why() {
    let stage = stage().await;
    stage.node("n1", "3").await;
    // Keeps the share of the queue above what the gang asks for, so that it is the nodes that say no.
    stage
        .add_node(
            &objects::Node::new("n2")
                .cpu("4")
                .taint("dedicated", "web", "NoSchedule"),
        )
        .await;
    stage.gang("too-big", 4, 4, "1").await;
    let _scheduler = stage.scheduler(&[]).unwrap();

    let why = stage.wait_told("too-big-3").await;
    assert_eq!(why["reason"], "Unschedulable");
    let reasons = "0/2 nodes are unavailable: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).";
    assert_eq!(why["message"], reasons);
    let could = stage.wait_told("too-big-0").await;
    assert_eq!(could["reason"], "Schedulable");
    let possibly = format!(
        "Pod {}/too-big-0 can possibly be assigned to n1, once minAvailable is satisfied",
        stage.namespace
    );
    assert_eq!(could["message"], possibly.as_str());

    let path = stage.group_path("too-big");
    let group = stage
        .wait(&path, "it is unschedulable", |group| {
            condition(group, "Unschedulable")["status"] == "True"
        })
        .await;
    let text = format!(
        "pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable. \
         Origin reason is too-big-3: {reasons}"
    );
    let unschedulable = condition(&group, "Unschedulable");
    assert_eq!(unschedulable["reason"], "NotEnoughResources");
    assert_eq!(
        unschedulable["message"],
        format!("1/4 tasks in gang unschedulable: {text}")
    );
    assert_eq!(group["status"]["phase"], "Inqueue");
    let in_event = format!("4/4 tasks in gang unschedulable: {text}");
    let told = stage.wait_event_saying("too-big", "Unschedulable", "4/4").await;
    assert_eq!(told, ("Warning".to_owned(), in_event));
    let (kind, message) = stage.wait_event("too-big-3", "FailedScheduling").await;
    assert_eq!(
        (kind.as_str(), message.as_str()),
        ("Warning", why["message"].as_str().unwrap())
    );
    assert!(stage.bound("").await.is_empty(), "a part of the gang was bound");
}

#[tokio::test]
async fn a_gang_that_waits_starts_when_a_node_is_added() {
    let stage = stage().await;
    stage.node("n1", "2").await;
    stage.gang("waits", 3, 3, "1").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.wait_told("waits-0").await;
    assert!(stage.bound("").await.is_empty());
    stage.node("n2", "1").await;
    let bound = stage.wait_bound("waits", 3).await;
    let on_new = bound.values().filter(|node| *node == "n2").count();
    assert_eq!(on_new, 1, "{bound:?}");
    let group = stage.wait_phase("waits", "Running").await;
    assert_eq!(condition(&group, "Scheduled")["status"], "True");
    assert_eq!(condition(&group, "Unschedulable")["status"], "False");
}

#[tokio::test]
async fn a_gang_that_waits_starts_when_other_pods_end() {
    let stage = stage().await;
    stage.node("n1", "2").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.gang("first", 2, 2, "1").await;
    stage.wait_bound("first", 2).await;
    stage.gang("second", 2, 2, "1").await;
    stage.wait_told("second-0").await;
    stage.remove(&stage.pod_path("first-0")).await; // Deleted, …
    stage.kubelets().await;
    stage.phase("first-1", "Succeeded").await; // … and done.
    stage.wait_bound("second", 2).await;
}

#[tokio::test]
async fn each_role_has_its_minimum() {
    let stage = stage().await;
    stage.node("n1", "3").await;
    let mut group = objects::pod_group(&stage.namespace, "roles", 3, "");
    group["spec"]["minTaskMember"] = json!({"master": 1, "worker": 2});
    stage.group(&group).await;
    let role = |name: &str, role: &str, cpu: &str| {
        let pod = stage.pod(name).group("roles").cpu(cpu);
        pod.annotation("volcano.sh/task-spec", role)
    };
    stage.add_pod(role("roles-master-0", "master", "4")).await;
    for at in 0..3 {
        stage
            .add_pod(role(&format!("roles-worker-{at}"), "worker", "1"))
            .await;
    }
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.wait_told("roles-master-0").await;
    stage.wait_phase("roles", "Inqueue").await;
    assert!(
        stage.bound("").await.is_empty(),
        "three workers are as many as minMember, but there is no master"
    );
    stage.node("n2", "8").await; // For all of them, whoever is placed first.
    let bound = stage.wait_bound("roles", 4).await;
    assert_eq!(bound["roles-master-0"], "n2");
}
