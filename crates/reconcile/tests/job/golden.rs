//! Pods and PodGroups to the letter.

use serde_json::{Value, json};

use crate::world::{World, job, with};

/// What the API server adds is taken away again.
fn as_written(object: &Value) -> Value {
    let mut object = object.clone();
    let fields = object.as_object_mut().expect("an object");
    fields.remove("status");
    let metadata = fields["metadata"].as_object_mut().expect("metadata");
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(key);
    }
    object
}

fn owner() -> Value {
    json!([{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "job-uid",
        "controller": true, "blockOwnerDeletion": true}])
}

fn world(spec: Value, metadata: Value) -> World {
    let mut world = World::new(with(job(spec), json!({"metadata": metadata})));
    world.settle();
    world.admit();
    world
}

#[test]
fn a_bare_pod() {
    let template = json!({"metadata": {"name": "dropped"}, "spec": {"containers": [{"name": "main"}]}});
    let task = json!({"name": "t", "replicas": 1, "template": template});
    let world = world(json!({"minAvailable": 1, "tasks": [task]}), json!({}));
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "j-t-0",
            "namespace": "ns",
            "ownerReferences": owner(),
            "annotations": {
                "scheduling.k8s.io/group-name": "j-job-uid",
                "volcano.sh/job-name": "j",
                "volcano.sh/job-retry-count": "0",
                "volcano.sh/job-version": "0",
                "volcano.sh/queue-name": "default",
                "volcano.sh/task-index": "0",
                "volcano.sh/task-spec": "t",
                "volcano.sh/template-uid": "j-t",
            },
            "labels": {
                "volcano.sh/job-name": "j",
                "volcano.sh/job-namespace": "ns",
                "volcano.sh/queue-name": "default",
                "volcano.sh/task-index": "0",
                "volcano.sh/task-spec": "t",
            },
        },
        "spec": {"containers": [{"name": "main"}], "schedulerName": "volcano"},
    });
    assert_eq!(as_written(&world.pods["j-t-0"]), expected);
}

#[test]
fn a_pod_with_everything() {
    let template = json!({
        "metadata": {"labels": {"app": "x"}, "annotations": {"note": "y", "volcano.sh/task-index": "ours wins"}},
        "spec": {
            "schedulerName": "mine",
            "priorityClassName": "high",
            "initContainers": [{"name": "first"}],
            "containers": [{"name": "main", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}, {"name": "side"}],
            "volumes": [{"name": "own", "emptyDir": {}}],
        },
    });
    let task = json!({"name": "t", "replicas": 4, "template": template, "topologyPolicy": "restricted",
        "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}});
    let spec = json!({"minAvailable": 4, "queue": "q", "priorityClassName": "low", "tasks": [task],
        "volumes": [{"mountPath": "/data", "volumeClaimName": "c"}]});
    let mut world = World::new(with(
        job(spec),
        json!({"metadata": {
            "annotations": {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "10s",
                "volcano.sh/revocable-zone": "*", "volcano.sh/jdb-min-available": "1",
                "volcano.sh/jdb-max-unavailable": "2", "other": "not passed on"},
            "labels": {"volcano.sh/preemptable": "false", "team": "not passed on"}}}),
    ));
    world.claims.insert("c".into(), json!({}));
    world.settle();
    world.admit();
    let pod = as_written(&world.pods["j-t-3"]);
    let volume = pod["spec"]["volumes"][1]["name"]
        .as_str()
        .expect("a volume")
        .to_owned();
    assert!(volume.starts_with("j-") && volume.len() == 14, "{volume}");
    let mount = json!({"name": volume, "mountPath": "/data"});
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "j-t-3",
            "namespace": "ns",
            "ownerReferences": owner(),
            "annotations": {
                "note": "y",
                "scheduling.k8s.io/group-name": "j-job-uid",
                "volcano.sh/cooldown-time": "10s",
                "volcano.sh/jdb-min-available": "1",
                "volcano.sh/job-name": "j",
                "volcano.sh/job-retry-count": "0",
                "volcano.sh/job-version": "0",
                "volcano.sh/numa-topology-policy": "restricted",
                "volcano.sh/preemptable": "true",
                "volcano.sh/queue-name": "q",
                "volcano.sh/revocable-zone": "*",
                "volcano.sh/task-index": "3",
                "volcano.sh/task-spec": "t",
                "volcano.sh/template-uid": "j-t",
            },
            "labels": {
                "app": "x",
                "volcano.sh/job-name": "j",
                "volcano.sh/job-namespace": "ns",
                "volcano.sh/partition-id": "1",
                "volcano.sh/preemptable": "false",
                "volcano.sh/queue-name": "q",
                "volcano.sh/task-index": "3",
                "volcano.sh/task-spec": "t",
            },
        },
        "spec": {
            "schedulerName": "mine",
            "priorityClassName": "high",
            "initContainers": [{"name": "first"}],
            "containers": [
                {"name": "main", "volumeMounts": [{"name": "own", "mountPath": "/own"}, mount]},
                {"name": "side", "volumeMounts": [mount]},
            ],
            "volumes": [{"name": "own", "emptyDir": {}},
                {"name": volume, "persistentVolumeClaim": {"claimName": "c"}}],
        },
    });
    assert_eq!(pod, expected);
}

#[test]
fn pods_of_a_task_without_a_name() {
    let task = json!({"replicas": 1, "template": {"spec": {"containers": [{"name": "main"}]}}});
    let world = world(json!({"minAvailable": 1, "tasks": [task]}), json!({}));
    let pod = &world.pods["j--0"];
    assert_eq!(pod["metadata"]["labels"]["volcano.sh/task-spec"], "default");
    assert_eq!(world.count("pending"), 1, "it is found again");
}

#[test]
fn a_group_with_everything() {
    let pod = |requests: Value| json!({"spec": {"containers": [{"name": "m", "resources": {"requests": requests}}]}});
    let spec = json!({
        "minAvailable": 5,
        "queue": "q",
        "priorityClassName": "high",
        "networkTopology": {"mode": "hard", "highestTierAllowed": 2, "highestTierName": "unused"},
        "tasks": [
            {"name": "master", "replicas": 1, "template": pod(json!({"cpu": "1"}))},
            {"name": "worker", "replicas": 8, "minAvailable": 4, "template": pod(json!({"cpu": "2", "memory": "1Gi"})),
                "partitionPolicy": {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 2,
                    "networkTopology": {"mode": "soft", "highestTierName": "rack"}}},
            {"name": "other", "replicas": 6, "template": pod(json!({})),
                "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 1}},
        ],
    });
    let metadata = json!({"labels": {"team": "x"}, "annotations": {"volcano.sh/sla-waiting-time": "1h"}});
    let world = world(spec, metadata);
    let of_task = |name: &str| json!({"matchLabels": {"volcano.sh/task-spec": name}});
    let expected = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "j-job-uid",
            "namespace": "ns",
            "labels": {"team": "x"},
            "annotations": {"volcano.sh/sla-waiting-time": "1h", "volcano.sh/job-version": "0"},
            "ownerReferences": owner(),
        },
        "spec": {
            "minMember": 5,
            "minTaskMember": {"master": 1, "worker": 4, "other": 2},
            "queue": "q",
            "priorityClassName": "high",
            "minResources": {"pods": "5", "count/pods": "5", "cpu": "9", "requests.cpu": "9",
                "memory": "4Gi", "requests.memory": "4Gi"},
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
            "subGroupPolicy": [
                {"name": "worker", "subGroupSize": 2, "minSubGroups": 2, "labelSelector": of_task("worker"),
                    "matchLabelKeys": ["volcano.sh/partition-id"],
                    "networkTopology": {"mode": "soft", "highestTierName": "rack"}},
                {"name": "other", "subGroupSize": 2, "minSubGroups": 1, "labelSelector": of_task("other"),
                    "matchLabelKeys": ["volcano.sh/partition-id"]},
            ],
        },
    });
    assert_eq!(as_written(world.group.as_ref().expect("a group")), expected);
}

#[test]
fn a_group_keeps_what_others_wrote() {
    let task = json!({"name": "t", "replicas": 1, "template": {}});
    let mut world = world(json!({"minAvailable": 1, "tasks": [task]}), json!({}));
    let group = world.group.as_mut().expect("a group");
    group["metadata"]["annotations"]["theirs"] = json!("x");
    group["spec"]["queue"] = json!("elsewhere");
    group["spec"]["minTaskMember"]["gone"] = json!(7);
    group["spec"]["minResources"]["cpu"] = json!("99");
    let before = group.clone();
    world.settle();
    let mut expected = before;
    expected["spec"]["minResources"]
        .as_object_mut()
        .expect("amounts")
        .remove("cpu");
    let mut group = world.group.clone().expect("a group");
    group["metadata"]["resourceVersion"] = expected["metadata"]["resourceVersion"].clone();
    assert_eq!(group, expected);
}
