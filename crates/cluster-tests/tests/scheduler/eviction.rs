//! Priorities, preemption, reclaim and what fills the gaps.

use crate::{stage, with_actions};
use serde_json::{Value, json};
use volcano_cluster_tests::acts::{condition, until};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, Progress};

/// A gang with a PriorityClass, for its group and for its pods.
async fn gang_of(stage: &Stage, class: &str, name: &str, pods: usize) {
    let mut group = objects::pod_group(&stage.namespace, name, 1, "");
    group["spec"]["priorityClassName"] = json!(class);
    stage.group(&group).await;
    let with = |pod: objects::Pod| pod.cpu("1").spec("priorityClassName", json!(class));
    stage.members(name, pods, with).await;
}

/// Waits until a pod whose name begins so is being deleted.
async fn wait_leaving(stage: &Stage, prefix: &str) -> Value {
    until(&format!("a pod {prefix}* is being deleted"), || async {
        let pods = objects::pods(&stage.client, &stage.namespace).await?;
        let mut ours = pods
            .into_iter()
            .filter(|pod| objects::name_of(pod).starts_with(prefix));
        let leaving = ours.find(|pod| pod["metadata"]["deletionTimestamp"].is_string());
        Ok(leaving.map_or(Progress::Waiting("all stay".to_owned()), Progress::Done))
    })
    .await
}

#[tokio::test]
async fn the_higher_priority_starts_when_there_is_room_for_one() {
    let stage = stage().await;
    let (low, high) = (stage.priority("low", 10).await, stage.priority("high", 20).await);
    gang_of(&stage, &low, "low", 1).await;
    gang_of(&stage, &high, "high", 1).await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.wait_told("high-0").await;
    stage.wait_told("low-0").await;
    stage.node("n1", "1").await;
    stage.wait_bound("high", 1).await;
    assert!(stage.bound("low").await.is_empty());
}

#[tokio::test]
async fn a_higher_priority_takes_the_place_of_a_lower_one() {
    let stage = stage().await;
    stage.node("n1", "2").await;
    let (low, high) = (stage.priority("low", 10).await, stage.priority("high", 20).await);
    let _scheduler = stage
        .configured(&with_actions("enqueue, allocate, preempt, backfill"))
        .unwrap();
    gang_of(&stage, &low, "low", 2).await;
    stage.wait_bound("low", 2).await;
    stage.kubelets().await;
    gang_of(&stage, &high, "high", 1).await;

    let victim = wait_leaving(&stage, "low").await;
    let name = objects::name_of(&victim).to_owned();
    let ready = condition(&victim, "Ready");
    assert_eq!(
        (&ready["status"], &ready["reason"], &ready["message"]),
        (
            &json!("False"),
            &json!("Evict"),
            &json!("Pod is evicted, because of preempt")
        )
    );
    let target = condition(&victim, "DisruptionTarget");
    assert_eq!(
        (&target["status"], &target["reason"], &target["message"]),
        (
            &json!("True"),
            &json!("PreemptionByScheduler"),
            &json!("volcano: preempting to accommodate a higher priority pod")
        )
    );
    assert_eq!(
        stage.wait_event(&name, "Evict").await,
        (
            "Warning".to_owned(),
            "Pod is evicted, because of preempt".to_owned()
        )
    );
    assert_eq!(
        stage.wait_event("low", "Evict").await,
        ("Normal".to_owned(), "preempt".to_owned())
    );

    let told = stage
        .wait(&stage.pod_path("high-0"), "it has a nominated node", |pod| {
            pod["status"]["nominatedNodeName"] == "n1"
        })
        .await;
    let possibly = format!(
        "Pod {}/high-0 can possibly be assigned to n1, once resource is released and minAvailable is satisfied",
        stage.namespace
    );
    assert_eq!(condition(&told, "PodScheduled")["message"], possibly.as_str());
    assert!(
        stage.bound("high").await.is_empty(),
        "the victim is still in its place"
    );

    stage.kubelets().await;
    stage.wait_gone(&stage.pod_path(&name)).await;
    stage.wait_bound("high", 1).await;
    assert_eq!(stage.bound("low").await.len(), 1, "one victim was enough");
}

#[tokio::test]
async fn a_queue_gets_its_share_back_from_another() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    stage.queue("greedy", 1, &Value::Null).await;
    stage.queue("late", 1, &Value::Null).await;
    let _scheduler = stage
        .configured(&with_actions("enqueue, allocate, reclaim, backfill"))
        .unwrap();
    stage.gang_in("greedy", "greedy", 1, 4, "1").await;
    stage.wait_bound("greedy", 4).await;
    stage.kubelets().await;
    stage.gang_in("late", "late", 2, 3, "1").await;
    let victim = wait_leaving(&stage, "greedy").await;
    assert_eq!(
        condition(&victim, "Ready")["message"],
        "Pod is evicted, because of reclaim"
    );
    until("both queues have half of the cluster", || async {
        objects::play_kubelet(&stage.client, &stage.namespace).await?;
        let (greedy, late) = (stage.bound("greedy").await.len(), stage.bound("late").await.len());
        Ok(objects::check((greedy, late) == (2, 2), || {
            format!("greedy {greedy}, late {late}")
        }))
    })
    .await;
    stage.wait_phase("late", "Running").await;
    assert_eq!(stage.bound("").await.len(), 4, "each queue keeps its half");
}

#[tokio::test]
async fn pods_that_ask_for_nothing_fill_a_full_node() {
    let stage = stage().await;
    stage.node("n1", "1").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    stage.gang("full", 1, 1, "1").await;
    stage.wait_bound("full", 1).await;
    stage
        .group(&objects::pod_group(&stage.namespace, "little", 1, ""))
        .await;
    stage.members("little", 2, |pod| pod).await;
    stage.wait_bound("little", 2).await;
}
