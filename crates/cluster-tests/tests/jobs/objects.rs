//! What is made beside the pods of a Job: claims, and the objects of plugins.

use serde_json::{Value, json};
use volcano_cluster_tests::jobs::{Troupe, task, text};

#[tokio::test(flavor = "multi_thread")]
async fn claims_are_made_or_waited_for() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let volumes = json!([
        {"mountPath": "/out", "volumeClaim": claim},
        {"mountPath": "/data", "volumeClaimName": "datasets"},
    ]);
    let spec = json!({"minAvailable": 1, "tasks": [task("t", 1)], "volumes": volumes});
    let created = stage.submit("mounts", &spec).await;
    stage
        .wait_event_saying("mounts", "PVCError", "pvc datasets is not found")
        .await;
    assert_eq!(stage.pods_of("mounts").await.len(), 0);
    let claims = stage.path("v1", "persistentvolumeclaims", "");
    let datasets = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "datasets"}, "spec": claim});
    stage.create(&claims, &datasets).await;
    let job = stage
        .wait(&stage.job_path("mounts"), "the claim has a name", |job| {
            job["spec"]["volumes"][0]["volumeClaimName"].is_string()
        })
        .await;
    let name = text(&job["spec"]["volumes"][0]["volumeClaimName"]);
    let made = stage.path("v1", "persistentvolumeclaims", &name);
    let made = stage
        .wait(&made, "it is there", |claim| {
            claim["metadata"]["name"].is_string()
        })
        .await;
    assert_eq!(
        made["metadata"]["ownerReferences"][0]["uid"],
        created["metadata"]["uid"]
    );
    let pods = stage
        .wait(&stage.pod_path("mounts-t-0"), "it is made", |pod| {
            pod["spec"].is_object()
        })
        .await;
    let used: Vec<_> = pods["spec"]["volumes"].as_array().unwrap().iter().collect();
    let used: Vec<_> = used
        .iter()
        .filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
        .collect();
    assert_eq!(used, [&*name, "datasets"]);
    let job = stage.get(&stage.job_path("mounts")).await;
    let noted = &job["status"]["controlledResources"];
    assert_eq!(noted["volume-pvc-datasets"], "datasets", "{noted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_plugins_come_and_go_with_the_pods() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let spec = json!({"tasks": [task("master", 1), task("worker", 2)],
        "plugins": {"svc": [], "ssh": [], "env": []}});
    stage.submit("mpi", &spec).await;
    stage.wait_running("mpi", 3).await;
    let service = stage.path("v1", "services", "mpi");
    let hosts = stage.path("v1", "configmaps", "mpi-svc");
    let keys = stage.path("v1", "secrets", "mpi-ssh");
    let policy = stage.path("networking.k8s.io/v1", "networkpolicies", "mpi");
    assert_eq!(stage.get(&service).await["spec"]["clusterIP"], "None");
    let listed = stage.get(&hosts).await["data"]["worker.host"].clone();
    assert_eq!(listed, "mpi-worker-0.mpi\nmpi-worker-1.mpi");
    stage.get(&policy).await;
    let secret = stage.get(&keys).await;
    let parts: Vec<_> = secret["data"].as_object().unwrap().keys().collect();
    assert_eq!(parts, ["authorized_keys", "config", "id_rsa", "id_rsa.pub"]);
    assert_eq!(secret["data"]["authorized_keys"], secret["data"]["id_rsa.pub"]);
    let pod = stage.get(&stage.pod_path("mpi-worker-1")).await;
    let container = &pod["spec"]["containers"][0];
    let variable = |name: &str| {
        let all = container["env"].as_array().unwrap();
        all.iter().find(|variable| variable["name"] == name).cloned()
    };
    assert_eq!(variable("VC_TASK_INDEX").unwrap()["value"], "1");
    assert!(variable("VC_WORKER_HOSTS").is_some());
    assert_eq!(pod["spec"]["subdomain"], "mpi");
    let log = troupe.controllers.log();
    assert!(!log.contains("PRIVATE KEY"), "no secret in the log");

    stage.order("mpi", "RestartJob").await;
    stage
        .wait(&stage.job_path("mpi"), "it was restarted", |job| {
            job["status"]["retryCount"] == 1 && job["status"]["state"]["phase"] == "Running"
        })
        .await;
    assert_eq!(stage.get(&keys).await["data"], secret["data"], "the keys stay");
    stage.order("mpi", "TerminateJob").await;
    stage.wait_job("mpi", "Terminated").await;
    for gone in [&service, &hosts, &policy] {
        stage.wait_gone(gone).await;
    }
    stage.get(&keys).await;
    let noted = |job: &Value| job["status"]["controlledResources"]["plugin-svc"].is_null();
    stage
        .wait(&stage.job_path("mpi"), "nothing of the plugins is noted", noted)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_somebody_else_is_left_alone() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let services = stage.path("v1", "services", "");
    let owner =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "u-1", "controller": true}]);
    let taken = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "taken", "ownerReferences": owner}, "spec": {"clusterIP": "None"}});
    stage.create(&services, &taken).await;
    stage
        .submit("taken", &json!({"tasks": [task("t", 1)], "plugins": {"svc": []}}))
        .await;
    let (kind, message) = stage.wait_event("taken", "PluginError").await;
    assert_eq!(kind, "Warning");
    assert!(
        message.contains("Service taken belongs to the Pod other"),
        "{message}"
    );
}
