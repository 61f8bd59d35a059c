//! PodGroups of pods that have no Job: plain pods, ReplicaSets and StatefulSets.

use serde_json::{Value, json};
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::jobs::{Troupe, template, text, with};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, Progress};

/// Waits until the pods with this label are on nodes and all in one PodGroup. The group.
async fn wait_grouped(stage: &Stage, app: &str, count: usize) -> Value {
    let name = until(
        &format!("{count} pods of {app} are in a group and on nodes"),
        || async {
            let mut pods = objects::pods(&stage.client, &stage.namespace).await?;
            pods.retain(|pod| pod["metadata"]["labels"]["app"] == app && pod["spec"]["nodeName"].is_string());
            // Those of before may still be on their way out.
            pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
            let group = |pod: &Value| text(&pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]);
            let mut groups: Vec<_> = pods.iter().map(group).collect();
            groups.dedup();
            Ok(match &groups[..] {
                [group] if pods.len() == count => Progress::Done(group.clone()),
                groups => Progress::Waiting(format!("{} pods in {groups:?}", pods.len())),
            })
        },
    )
    .await;
    stage.get(&stage.group_path(&name)).await
}

fn workload(kind: &str, name: &str, replicas: usize) -> Value {
    let mut template = template();
    template["metadata"] = json!({"labels": {"app": name}});
    template["spec"]["schedulerName"] = json!("volcano");
    template["spec"]["restartPolicy"] = json!("Always");
    let annotations = json!({"volcano.sh/kept": "yes", "elsewhere/not": "kept",
        "scheduling.volcano.sh/group-min-member": "2"});
    let mut spec =
        json!({"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template});
    if kind == "StatefulSet" {
        // A gang of two cannot start one after the other.
        spec["podManagementPolicy"] = json!("Parallel");
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "spec": spec,
        "metadata": {"name": name, "annotations": annotations}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_pod_gets_a_group_of_its_own() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    stage.queue("side", 1, &json!({})).await;
    let pod = stage
        .pod("alone")
        .cpu("1")
        .label("app", "alone")
        .annotation("scheduling.volcano.sh/queue-name", "side");
    stage.add_pod(pod).await;
    let group = wait_grouped(stage, "alone", 1).await;
    let pod = stage.get(&stage.pod_path("alone")).await;
    let uid = text(&pod["metadata"]["uid"]);
    assert_eq!(group["metadata"]["name"], format!("podgroup-{uid}"));
    assert_eq!(group["metadata"]["ownerReferences"][0]["uid"], uid.as_str());
    assert_eq!(group["spec"]["queue"], "side");
    assert_eq!(group["spec"]["minMember"], 1);
    assert_eq!(group["spec"]["minResources"]["cpu"], "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_one_owner_share_a_group() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    for (kind, plural, name) in [
        ("ReplicaSet", "replicasets", "web"),
        ("StatefulSet", "statefulsets", "store"),
    ] {
        let path = stage.path("apps/v1", plural, "");
        let made = stage.create(&path, &workload(kind, name, 3)).await;
        let group = wait_grouped(stage, name, 3).await;
        let metadata = &group["metadata"];
        assert_eq!(
            metadata["name"],
            format!("podgroup-{}", text(&made["metadata"]["uid"]))
        );
        assert_eq!(metadata["ownerReferences"][0]["kind"], kind);
        assert_eq!(metadata["annotations"]["volcano.sh/kept"], "yes");
        assert!(metadata["annotations"]["elsewhere/not"].is_null());
        assert_eq!(group["spec"]["minMember"], 2);
        let group_path = stage.group_path(&text(&metadata["name"]));
        let object = stage.path("apps/v1", plural, name);
        stage.patch(&object, &json!({"spec": {"replicas": 0}})).await;
        stage.wait_gone(&group_path).await;
        stage.patch(&object, &json!({"spec": {"replicas": 2}})).await;
        wait_grouped(stage, name, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_other_schedulers_and_with_groups_are_left_alone() {
    let troupe = Troupe::play_with(&["--inherit-owner-annotations=false"]).await;
    let stage = &troupe.stage;
    let other = stage
        .pod("other")
        .spec("schedulerName", json!("default-scheduler"));
    stage.add_pod(other).await;
    stage.gang("own", 1, 1, "1").await;
    let made = stage
        .create(
            &stage.path("apps/v1", "replicasets", ""),
            &with(workload("ReplicaSet", "plain", 1), &json!({})),
        )
        .await;
    let group = wait_grouped(stage, "plain", 1).await;
    assert_eq!(
        group["spec"]["minMember"], 1,
        "annotations of owners are not looked at"
    );
    assert!(group["metadata"]["annotations"]["volcano.sh/kept"].is_null());
    stage.wait_bound("own", 1).await;
    let groups = objects::list(&stage.client, &stage.group_path("")).await.unwrap();
    let mut names: Vec<_> = groups.iter().map(objects::name_of).collect();
    names.sort_unstable();
    let uid = text(&made["metadata"]["uid"]);
    assert_eq!(names, ["own", &format!("podgroup-{uid}")]);
}
