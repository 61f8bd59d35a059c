//! PodGroups: how pods belong to them, their life, and other clients that write them.

use crate::stage;
use serde_json::{Value, json};
use volcano_testcluster::objects;

#[tokio::test]
async fn pods_may_come_before_their_group() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.members("early", 2, |pod| pod.cpu("1")).await;
    stage.add_pod(stage.pod("alone").cpu("1")).await;
    // One that comes later and is placed: those before it were looked at.
    stage.gang("later", 1, 1, "1").await;
    stage.wait_bound("later", 1).await;
    assert!(stage.bound("early").await.is_empty(), "there is no group yet");
    stage
        .group(&objects::pod_group(&stage.namespace, "early", 2, ""))
        .await;
    stage.wait_bound("early", 2).await;
    assert!(
        stage.bound("alone").await.is_empty(),
        "a pod without a group waits for a controller to give it one"
    );
}

#[tokio::test]
async fn a_group_may_come_before_its_pods_and_waits_for_enough_of_them() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage
        .group(&objects::pod_group(&stage.namespace, "slow", 2, ""))
        .await;
    let text = "0/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable";
    let told = stage.wait_event("slow", "Unschedulable").await;
    assert_eq!(told, ("Warning".to_owned(), text.to_owned()));
    let member = |name: &str| stage.pod(name).group("slow").cpu("1");
    stage.add_pod(member("slow-0")).await;
    stage.wait_told("slow-0").await;
    assert!(stage.bound("slow").await.is_empty(), "one of two is no gang");
    stage.add_pod(member("slow-1")).await;
    stage.wait_bound("slow", 2).await;
}

#[tokio::test]
async fn the_phase_and_counters_follow_the_life_of_a_group() {
    let stage = stage().await;
    stage.queue("work", 1, &Value::Null).await;
    let queue_status = format!("{}/status", stage.queue_path("work"));
    stage
        .patch(&queue_status, &json!({"status": {"state": "Closed"}}))
        .await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.gang_in("work", "life", 2, 2, "1").await;
    stage.wait_phase("life", "Pending").await;
    stage
        .patch(&queue_status, &json!({"status": {"state": "Open"}}))
        .await;
    stage.wait_phase("life", "Inqueue").await;
    stage.node("n1", "2").await;
    stage.wait_bound("life", 2).await;
    stage.wait_phase("life", "Running").await;
    let counters = |group: &Value| {
        let of = |name: &str| group["status"][name].as_i64().unwrap_or(0);
        (of("running"), of("succeeded"), of("failed"))
    };
    let path = stage.group_path("life");
    stage.kubelets().await;
    stage
        .wait(&path, "both pods run", |group| counters(group) == (2, 0, 0))
        .await;
    stage.phase("life-0", "Succeeded").await;
    let group = stage
        .wait(&path, "one pod is done", |group| counters(group) == (1, 1, 0))
        .await;
    assert_eq!(group["status"]["phase"], "Running");
    stage.phase("life-1", "Failed").await;
    let group = stage.wait_phase("life", "Completed").await;
    assert_eq!(counters(&group), (0, 1, 1));
}

#[tokio::test]
async fn a_client_that_replaces_a_group_with_an_old_status_does_not_win_and_there_is_no_fight() {
    const RESETS: u32 = 5;
    let stage = stage().await;
    stage.node("n1", "4").await;
    let scheduler = stage.scheduler(&[]).unwrap();
    stage.gang("shared", 2, 2, "1").await;
    stage.wait_bound("shared", 2).await;
    stage.kubelets().await;
    let path = stage.group_path("shared");
    let is_whole = |group: &Value| group["status"]["phase"] == "Running" && group["status"]["running"] == 2;
    let mut group = stage.wait(&path, "it runs", is_whole).await;
    let writes = || {
        scheduler
            .metric("volcano_api_writes_total{kind=\"podgroup\"")
            .unwrap()
    };
    let before = writes();
    for _ in 0..RESETS {
        group["status"] = json!({"phase": "Pending"});
        objects::replace(&stage.client, &path, &group).await.unwrap();
        group = stage.wait(&path, "it has its status back", is_whole).await;
    }
    // What is written for another group comes after whatever was still to be written for this one.
    stage.gang("after", 1, 1, "1").await;
    stage.wait_phase("after", "Running").await;
    let last = stage.get(&path).await;
    assert_eq!(
        last["metadata"]["resourceVersion"], group["metadata"]["resourceVersion"],
        "somebody still writes"
    );
    let answered = writes() - before;
    let most = f64::from(RESETS) * 2.0 + 3.0;
    assert!(answered <= most, "{answered} writes for {RESETS} resets");
}
