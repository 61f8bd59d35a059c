//! What is told when something stands in the way.

use serde_json::{Value, json};
use volcano_cluster_tests::access::{ROLES, account, rule};
use volcano_cluster_tests::acts::{wait_ready, wait_said};
use volcano_cluster_tests::controllers::Controllers;
use volcano_cluster_tests::jobs::{Kubelets, Troupe, task};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::{Cluster, Options};

/// What the chart of Volcano grants to its controllers, as far as it is about what they do here.
fn reference_rules() -> Vec<Value> {
    const READ: &[&str] = &["get", "list", "watch"];
    const ALL: &[&str] = &["get", "list", "watch", "create", "delete", "update", "patch"];
    let (batch, scheduling) = ("batch.volcano.sh", "scheduling.volcano.sh");
    vec![
        rule(
            batch,
            &["jobs", "cronjobs"],
            &["create", "get", "list", "watch", "update", "delete"],
        ),
        rule(batch, &["jobs/status", "jobs/finalizers"], &["update", "patch"]),
        rule(
            "bus.volcano.sh",
            &["commands"],
            &["get", "list", "watch", "delete"],
        ),
        rule("", &["events"], &["create", "list", "watch", "update", "patch"]),
        rule("", &["pods"], ALL),
        rule("", &["pods/finalizers"], &["update", "patch"]),
        rule(
            "",
            &["persistentvolumeclaims"],
            &["get", "list", "watch", "create"],
        ),
        rule("", &["services"], &["get", "list", "watch", "create", "delete"]),
        rule(
            "",
            &["configmaps"],
            &["get", "list", "watch", "create", "delete", "update"],
        ),
        rule("", &["secrets"], &["get", "create", "delete", "update"]),
        rule(scheduling, &["podgroups", "queues", "queues/status"], ALL),
        rule("scheduling.k8s.io", &["priorityclasses"], READ),
        rule(
            "networking.k8s.io",
            &["networkpolicies"],
            &["get", "create", "delete"],
        ),
        rule("apps", &["daemonsets"], &["get"]),
        rule("apps", &["replicasets", "statefulsets"], READ),
        rule("batch", &["jobs"], &["get"]),
        rule(
            "coordination.k8s.io",
            &["leases"],
            &["get", "create", "update", "watch"],
        ),
    ]
}

fn launch(stage: &Stage, kubeconfig: &std::path::Path) -> Controllers {
    let folder = stage.folder("controllers").unwrap();
    Controllers::launch(kubeconfig, &folder, &["--kube-api-qps=0"]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_done_with_the_role_of_the_reference() {
    let stage = Stage::set().await.unwrap();
    stage.node("n", "64").await;
    let _scheduler = stage.scheduler(&[]).unwrap();
    let _kubelets = Kubelets::start(&stage.client, &stage.namespace);
    let kubeconfig = account(&stage, &reference_rules()).await;
    let controllers = launch(&stage, &kubeconfig);
    wait_ready(&controllers).await;
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let datasets = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "datasets"}, "spec": claim});
    let claims = stage.path("v1", "persistentvolumeclaims", "");
    stage.create(&claims, &datasets).await;
    // Its name is written into the Job, which the role allows to replace and not to patch.
    let claims = json!({"minAvailable": 1, "tasks": [task("t", 1)],
        "volumes": [{"mountPath": "/d", "volumeClaim": claim}, {"mountPath": "/e", "volumeClaimName": "datasets"}]});
    stage.submit("claims", &claims).await;
    stage
        .wait(&stage.job_path("claims"), "its claim has a name", |job| {
            job["spec"]["volumes"][0]["volumeClaimName"].is_string()
        })
        .await;
    let spec = json!({"minAvailable": 1, "tasks": [task("t", 2)], "plugins": {"svc": [], "ssh": []}});
    stage.submit("plugins", &spec).await;
    stage.wait_running("plugins", 2).await;
    let mut lengths = std::collections::BTreeMap::new();
    for (kind, name, key) in [
        ("configmaps", "plugins-svc", "VC_T_HOSTS"),
        ("secrets", "plugins-ssh", "config"),
    ] {
        let object = stage.get(&stage.path("v1", kind, name)).await;
        lengths.insert(kind, object["data"][key].as_str().map_or(0, str::len));
    }
    let more = json!({"spec": {"tasks": [task("t", 3)]}});
    stage.patch(&stage.job_path("plugins"), &more).await;
    stage.wait_running("plugins", 3).await;
    for (kind, name, key) in [
        ("configmaps", "plugins-svc", "VC_T_HOSTS"),
        ("secrets", "plugins-ssh", "config"),
    ] {
        // It lists one host more.
        let path = stage.path("v1", kind, name);
        let (two, three) = (lengths[kind], key);
        stage
            .wait(&path, "it follows", |object| {
                object["data"][three].as_str().map_or(0, str::len) > two
            })
            .await;
    }
    stage.order("plugins", "TerminateJob").await;
    stage.wait_job("plugins", "Terminated").await;
    stage.wait_gone(&stage.path("v1", "services", "plugins")).await;
    stage.add_pod(stage.pod("bare").cpu("1")).await;
    stage.wait_bound("bare", 1).await;
    stage.wait_obeyed().await;
    let log = controllers.log();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_named_and_it_goes_on_when_it_is_granted() {
    let stage = Stage::set().await.unwrap();
    let rules = reference_rules();
    let lacks: Vec<Value> = rules
        .iter()
        .filter(|rule| rule["resources"] != json!(["commands"]))
        .cloned()
        .collect();
    let kubeconfig = account(&stage, &lacks).await;
    let controllers = launch(&stage, &kubeconfig);
    let parts = [
        "not allowed to list and watch commands",
        "grant both verbs to its ClusterRole",
    ];
    wait_said(&controllers, &parts).await;
    assert!(!controllers.is_ready());
    let role = format!("{ROLES}/{}", stage.namespace);
    stage.patch(&role, &json!({ "rules": rules })).await;
    wait_ready(&controllers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_api_server_and_without_crds_it_waits_and_says_so() {
    let options = Options {
        controllers: false,
        ..Options::default()
    };
    let cluster = Cluster::start(options).unwrap();
    cluster.stop_apiserver();
    let controllers = Controllers::launch(&cluster.kubeconfig_path(), cluster.data_directory(), &[]).unwrap();
    let url = cluster.url();
    let (status, _) = controllers.health("/healthz").unwrap_or((200, String::new()));
    assert_eq!(status, 200, "it waits, which is not a reason to restart it");
    until_said(&controllers, &format!("the API server at {url} does not answer")).await;
    cluster.start_apiserver().unwrap();
    until_said(
        &controllers,
        "has no jobs.batch.volcano.sh: install the CustomResourceDefinitions",
    )
    .await;
    cluster.install_crds(&volcano_api::crd::all()).unwrap();
    wait_ready(&controllers).await;
}

/// Waits until the log says it, for whichever kind comes first.
async fn until_said(controllers: &Controllers, text: &str) {
    volcano_cluster_tests::acts::until(text, || async {
        let log = controllers.log();
        let is_said = log.contains(text);
        Ok(volcano_testcluster::objects::check(is_said, || log))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_say_how_it_is() {
    let troupe = Troupe::play().await;
    for path in ["/healthz", "/healthz/ping", "/readyz"] {
        assert_eq!(
            troupe.controllers.health(path).unwrap(),
            (200, "ok".to_owned()),
            "{path}"
        );
    }
    let (_, metrics) = troupe.controllers.get("/metrics").unwrap();
    assert!(metrics.contains("volcano_leader 1") && metrics.contains("volcano_build_info"));
    assert!(
        !metrics.contains("volcano_e2e_scheduling"),
        "that is the scheduler's"
    );
    let log = troupe.controllers.log();
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("not available yet"))
        .collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(troupe.controllers.stop().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_pods_are_refused_is_told_of_and_ended() {
    let troupe = Troupe::play_with(&["--max-requeue-num=3"]).await;
    let stage = &troupe.stage;
    let mut wrong = task("t", 2);
    wrong["template"]["spec"]["containers"][0]["image"] = json!("");
    stage
        .submit("wrong", &json!({"minAvailable": 1, "tasks": [wrong]}))
        .await;
    let (kind, message) = stage.wait_event("wrong", "FailedCreate").await;
    assert_eq!(kind, "Warning");
    assert!(
        message.starts_with("Error creating pods: [Pod \"wrong-t-"),
        "{message}"
    );
    stage
        .wait_event_saying(
            "wrong",
            "ExecuteAction",
            "Job failed on action SyncJob for retry limit reached",
        )
        .await;
    stage.wait_job("wrong", "Terminated").await;
}
