//! Volumes: the pod goes where its volume is, and is bound when its claims are.

use crate::stage;
use serde_json::{Value, json};
use volcano_cluster_tests::acts::condition;
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects;

const VOLUMES: &str = "/api/v1/persistentvolumes";

/// A class of the test's own. Its name.
async fn class(stage: &Stage, provisioner: &str, mode: &str) -> String {
    let class = json!({
        "metadata": {"name": stage.namespace},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    });
    stage
        .create("/apis/storage.k8s.io/v1/storageclasses", &class)
        .await;
    stage.namespace.clone()
}

/// A volume of the class on one node. Its name.
async fn local(stage: &Stage, class: &str, node: &str, size: &str) -> String {
    let name = format!("{}-{node}", stage.namespace);
    let here =
        json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]});
    let volume = json!({
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class,
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
        },
    });
    stage.create(VOLUMES, &volume).await;
    let path = format!("{VOLUMES}/{name}");
    stage
        .wait(&path, "it is available", |volume| {
            volume["status"]["phase"] == "Available"
        })
        .await;
    name
}

/// A claim `data`. Its path.
async fn claim(stage: &Stage, class: &str, size: &str) -> String {
    let claims = objects::path("v1", &stage.namespace, "persistentvolumeclaims", "");
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    });
    stage.create(&claims, &claim).await;
    format!("{claims}/data")
}

/// A gang of one that uses the claim.
async fn user(stage: &Stage) {
    stage
        .group(&objects::pod_group(&stage.namespace, "user", 1, ""))
        .await;
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    stage
        .members("user", 1, |pod| pod.cpu("1").spec("volumes", volumes.clone()))
        .await;
}

fn is_bound(claim: &Value) -> bool {
    claim["status"]["phase"] == "Bound"
}

#[tokio::test]
async fn a_pod_goes_to_the_node_of_a_volume_that_suits_its_claim() {
    let stage = stage().await;
    for node in ["n1", "n2", "n3"] {
        stage.node(node, "4").await;
    }
    let class = class(&stage, "kubernetes.io/no-provisioner", "WaitForFirstConsumer").await;
    local(&stage, &class, "n2", "1Gi").await;
    let large = local(&stage, &class, "n3", "10Gi").await;
    let claim = claim(&stage, &class, "5Gi").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    user(&stage).await;
    assert_eq!(stage.wait_bound("user", 1).await["user-0"], "n3");
    let claim = stage.get(&claim).await;
    assert!(is_bound(&claim), "the pod was bound before its claim: {claim}");
    assert_eq!(claim["spec"]["volumeName"], large.as_str());
    let volume = stage.get(&format!("{VOLUMES}/{large}")).await;
    let owner = &volume["spec"]["claimRef"];
    assert_eq!(owner["uid"], claim["metadata"]["uid"]);
    assert_eq!(owner["namespace"], stage.namespace.as_str());
}

#[tokio::test]
async fn a_claim_that_binds_by_itself_is_waited_for() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let class = class(&stage, "kubernetes.io/no-provisioner", "Immediate").await;
    claim(&stage, &class, "1Gi").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    user(&stage).await;
    let told = stage.wait_told("user-0").await;
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("pod has unbound immediate PersistentVolumeClaims"),
        "{message}"
    );
    // kube-controller-manager binds the claim to a volume that suits it.
    let name = format!("{}-any", stage.namespace);
    let volume = json!({
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/mnt/disk"},
        },
    });
    stage.create(VOLUMES, &volume).await;
    stage.wait_bound("user", 1).await;
}

#[tokio::test]
async fn a_volume_is_made_for_the_node_of_the_pod() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let class = class(&stage, "disk.example.com", "WaitForFirstConsumer").await;
    let path = claim(&stage, &class, "1Gi").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    user(&stage).await;
    let claim = stage
        .wait(&path, "a node is selected", |claim| {
            claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
        })
        .await;
    assert!(stage.bound("user").await.is_empty(), "there is no volume yet");
    // What the provisioner of the class does.
    let volume = json!({
        "metadata": {
            "name": format!("{}-made", stage.namespace),
            "annotations": {"pv.kubernetes.io/provisioned-by": "disk.example.com"},
        },
        "spec": {
            "storageClassName": class,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "disk.example.com", "volumeHandle": "1"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": stage.namespace,
                "name": "data",
                "uid": claim["metadata"]["uid"],
            },
        },
    });
    stage.create(VOLUMES, &volume).await;
    stage.wait(&path, "it is bound", is_bound).await;
    assert_eq!(stage.wait_bound("user", 1).await["user-0"], "n1");
    let pod = stage.get(&stage.pod_path("user-0")).await;
    assert_ne!(condition(&pod, "PodScheduled")["status"], "False");
}
