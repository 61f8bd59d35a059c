//! Trouble: each kind is said in one line that tells what to do, and is over when its cause is.

use crate::stage;
use serde_json::{Value, json};
use std::path::PathBuf;
use volcano_cluster_tests::access::{ROLES, account, rule};
use volcano_cluster_tests::acts::{PATIENCE, condition, wait_ready, wait_said};
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_testcluster::{Cluster, Options};

/// What the chart of Volcano grants to its scheduler.
fn reference_rules() -> Vec<Value> {
    const READ: &[&str] = &["get", "list", "watch"];
    const LIST: &[&str] = &["list", "watch"];
    let scheduling = "scheduling.volcano.sh";
    vec![
        rule("", &["events"], &["create", "list", "watch", "update", "patch"]),
        rule("", &["pods"], &["get", "list", "watch", "patch", "delete"]),
        rule("", &["pods/status"], &["update"]),
        rule("", &["pods/binding"], &["create"]),
        rule(
            "",
            &["persistentvolumeclaims", "persistentvolumes"],
            &["list", "watch", "update"],
        ),
        rule("", &["namespaces", "services", "replicationcontrollers"], READ),
        rule("", &["resourcequotas"], LIST),
        rule("", &["nodes"], &["get", "list", "watch", "update", "patch"]),
        rule(
            "",
            &["configmaps"],
            &["get", "list", "watch", "create", "delete", "update"],
        ),
        rule(
            "storage.k8s.io",
            &[
                "storageclasses",
                "csinodes",
                "csidrivers",
                "csistoragecapacities",
                "volumeattachments",
            ],
            LIST,
        ),
        rule("policy", &["poddisruptionbudgets"], LIST),
        rule("scheduling.k8s.io", &["priorityclasses"], READ),
        rule(
            scheduling,
            &["queues"],
            &["get", "list", "watch", "create", "delete", "update"],
        ),
        rule(scheduling, &["queues/status"], &["update"]),
        rule(scheduling, &["podgroups"], &["list", "watch", "update"]),
        rule("topology.volcano.sh", &["hypernodes", "hypernodes/status"], READ),
        rule("apps", &["daemonsets", "replicasets", "statefulsets"], READ),
        rule(
            "coordination.k8s.io",
            &["leases"],
            &["get", "create", "update", "watch"],
        ),
    ]
}

#[tokio::test]
async fn a_scheduler_that_comes_before_the_api_server_and_the_crds_waits_for_both_and_says_so() {
    let options = Options {
        controllers: false,
        ..Options::default()
    };
    let cluster = Cluster::start(options).unwrap();
    cluster.stop_apiserver();
    let scheduler = Scheduler::launch(&cluster.kubeconfig_path(), cluster.data_directory(), &[]).unwrap();
    let url = cluster.url();
    wait_said(
        &scheduler,
        &[
            &format!("the API server at {url} does not answer"),
            "check the address",
        ],
    )
    .await;
    let (status, body) = scheduler.health("/readyz").unwrap();
    assert_eq!(status, 503);
    assert!(body.contains("does not answer"), "{body}");
    let (status, _) = scheduler.health("/healthz").unwrap();
    assert_eq!(status, 200, "it waits, which is not a reason to restart it");

    cluster.start_apiserver().unwrap();
    let crds = "has no queues.scheduling.volcano.sh: install the CustomResourceDefinitions";
    wait_said(&scheduler, &[crds, "volcano crds | kubectl apply -f -"]).await;
    cluster.install_crds(&volcano_api::crd::all()).unwrap();
    wait_ready(&scheduler).await;
}

#[tokio::test]
async fn a_missing_permission_is_named_and_the_scheduler_goes_on_when_it_is_granted() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let rules = reference_rules();
    let lacks: Vec<Value> = rules
        .iter()
        .filter(|rule| rule["resources"] != json!(["podgroups"]))
        .cloned()
        .collect();
    let kubeconfig = account(&stage, &lacks).await;
    let scheduler = stage.launch(&kubeconfig, &[]).unwrap();
    wait_said(
        &scheduler,
        &[
            "not allowed to list and watch podgroups",
            "grant both verbs to its ClusterRole",
        ],
    )
    .await;
    assert!(!scheduler.is_ready());
    let role = format!("{ROLES}/{}", stage.namespace);
    stage.patch(&role, &json!({ "rules": rules })).await;
    wait_ready(&scheduler).await;
    stage.gang("works", 1, 1, "1").await;
    stage.wait_bound("works", 1).await;
}

#[tokio::test]
async fn statuses_are_written_with_the_role_of_the_reference_that_may_not_patch() {
    let stage = stage().await;
    stage.node("n1", "2").await;
    let kubeconfig = account(&stage, &reference_rules()).await;
    let scheduler = stage.launch(&kubeconfig, &[]).unwrap();
    wait_ready(&scheduler).await;
    stage.gang("works", 2, 2, "1").await;
    stage.wait_bound("works", 2).await;
    stage.wait_phase("works", "Running").await;
    stage
        .wait(
            &stage.queue_path("default"),
            "two processors are in use",
            |queue| queue["status"]["allocated"]["cpu"] == "2",
        )
        .await;
    stage.gang("waits", 1, 1, "1").await;
    let told = stage.wait_told("waits-0").await;
    assert_eq!(told["reason"], "Unschedulable");
    stage
        .wait(&stage.group_path("waits"), "it is unschedulable", |group| {
            condition(group, "Unschedulable")["status"] == "True"
        })
        .await;
}

#[tokio::test]
async fn a_start_that_cannot_work_ends_with_one_line_that_says_what_to_do() {
    let stage = stage().await;
    let good = cluster().kubeconfig_path();
    let missing = stage.file("no-such-kubeconfig", "").unwrap();
    std::fs::remove_file(&missing).unwrap();
    let garbled = stage.file("garbled-kubeconfig", "clusters: [").unwrap();
    let cases: [(&PathBuf, &[&str], &str); 7] = [
        (&missing, &[], "no-such-kubeconfig"),
        (&garbled, &[], "garbled-kubeconfig"),
        (&good, &["--no-such-flag"], "--no-such-flag"),
        (&good, &["--schedule-period=soon"], "--schedule-period"),
        (&good, &["--master=not an address"], "--master"),
        (
            &good,
            &["--leader-elect-lease-duration=1s"],
            "--leader-elect-lease-duration",
        ),
        (&good, &["--feature-gates=NoSuchGate=maybe"], "--feature-gates"),
    ];
    for (kubeconfig, flags, expected) in cases {
        let mut scheduler = stage.launch(kubeconfig, flags).unwrap();
        let status = scheduler.wait(PATIENCE).unwrap();
        let log = scheduler.log();
        assert_eq!(status.code(), Some(2), "{expected}: {log}");
        let errors: Vec<_> = log
            .lines()
            .filter(|line| line.to_lowercase().contains("error"))
            .collect();
        assert_eq!(errors.len(), 1, "{expected}: {log}");
        assert!(errors[0].contains(expected), "{expected}: {log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}
