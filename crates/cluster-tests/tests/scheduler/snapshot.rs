//! What a scheduler tells about itself: snapshots that replay, metrics, and how much it writes.

use crate::stage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::scheduler::volcano;
use volcano_testcluster::objects::{self, Progress};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const SECRET: &str = "hunter2-is-nobody's-business";

#[tokio::test]
async fn a_snapshot_replays_to_what_the_scheduler_then_does() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    stage.node("n2", "3").await;
    stage.queue("team", 2, &Value::Null).await;
    // Somebody else leads, so nothing is decided yet.
    let lease = json!({"metadata": {"name": "volcano"}, "spec": {
        "holderIdentity": "somebody", "leaseDurationSeconds": 600, "leaseTransitions": 0,
        "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z",
    }});
    stage.create(LEASES, &lease).await;
    let folder = stage.folder("dumps").unwrap();
    let dump_to = format!("--cache-dump-dir={}", folder.display());
    let scheduler = stage
        .scheduler(&[&dump_to, "--leader-elect-retry-period=500ms"])
        .unwrap();
    stage.gang_in("team", "pair", 2, 2, "1500m").await;
    stage.gang("too-large", 3, 3, "2").await;
    stage.gang_in("team", "elastic", 1, 3, "1").await;
    stage
        .group(&objects::pod_group(&stage.namespace, "env", 1, ""))
        .await;
    let container = json!([{"name": "main", "image": "none", "command": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}], "resources": {"requests": {"cpu": "500m"}}}]);
    stage
        .members("env", 1, |pod| pod.spec("containers", container.clone()))
        .await;

    let knows_all = |snapshot: &Value| {
        let objects = snapshot["objects"].as_array().cloned().unwrap_or_default();
        let pods = objects.iter().filter(|object| object["kind"] == "Pod");
        pods.count() == 9
    };
    let (text, snapshot) = until("the scheduler knows all pods", || async {
        let (_, text) = scheduler.get("/debug/snapshot")?;
        let snapshot: Value = serde_json::from_str(&text)?;
        Ok(match knows_all(&snapshot) {
            true => Progress::Done((text, snapshot)),
            false => Progress::Waiting(text),
        })
    })
    .await;
    assert!(!text.contains(SECRET), "what pods run is no part of a snapshot");

    scheduler.signal("USR2").unwrap();
    let dumped = until("a file is there", || async {
        let files = std::fs::read_dir(&folder)?;
        let paths: Vec<_> = files.flatten().map(|file| file.path()).collect();
        let Some(path) = paths.first() else {
            return Ok(Progress::Waiting("none".to_owned()));
        };
        let whole = serde_json::from_str::<Value>(&std::fs::read_to_string(path)?)?;
        Ok(Progress::Done((path.clone(), whole)))
    })
    .await;
    assert_eq!(dumped.1["objects"], snapshot["objects"]);

    let path = dumped.0.to_str().unwrap();
    let plan = volcano(&["plan", "-f", path, "-o", "json"]).unwrap();
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let planned: BTreeMap<String, String> = serde_json::from_value(plan["binds"].clone()).unwrap();
    assert!(planned.len() > 2, "{plan}");

    stage
        .patch(
            &format!("{LEASES}/volcano"),
            &json!({"spec": {"holderIdentity": ""}}),
        )
        .await;
    let bound = stage.wait_bound("", planned.len()).await;
    let namespace = &stage.namespace;
    let bound: BTreeMap<_, _> = bound
        .into_iter()
        .map(|(pod, node)| (format!("{namespace}/{pod}"), node))
        .collect();
    assert_eq!(bound, planned);
    stage.wait_told("too-large-0").await;
    assert!(stage.bound("too-large").await.is_empty());
}

#[tokio::test]
async fn the_metrics_have_the_names_that_dashboards_know() {
    const NAMES: &[&str] = &[
        "e2e_scheduling_latency_milliseconds",
        "open_session_duration_milliseconds",
        "e2e_job_scheduling_latency_milliseconds",
        "e2e_job_scheduling_duration",
        "e2e_job_scheduling_start_time",
        "e2e_job_scheduling_last_time",
        "plugin_scheduling_latency_milliseconds",
        "action_scheduling_latency_milliseconds",
        "task_scheduling_latency_milliseconds",
        "scheduling_stage_duration_milliseconds",
        "pod_preemption_victims",
        "total_preemption_attempts",
        "unschedule_job_count",
        "unschedule_task_count",
        "job_retry_counts",
        "job_share",
        "queue_allocated_milli_cpu",
        "queue_request_memory_bytes",
        "queue_weight",
    ];
    let stage = stage().await;
    stage.node("n1", "2").await;
    let scheduler = stage.scheduler(&[]).unwrap();
    stage.gang("works", 2, 2, "1").await;
    stage.wait_bound("works", 2).await;
    stage.gang("waits", 1, 1, "1").await;
    stage.wait_told("waits-0").await;
    until("every metric is there", || async {
        let (_, text) = scheduler.get("/metrics")?;
        let families: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE volcano_")?.split(' ').next())
            .collect();
        let missing: Vec<_> = NAMES.iter().filter(|name| !families.contains(*name)).collect();
        Ok(objects::check(missing.is_empty(), || {
            format!("missing: {missing:?}; there are {families:?}")
        }))
    })
    .await;
}

#[tokio::test]
async fn a_gang_costs_at_most_two_writes_per_pod() {
    const PODS: usize = 20;
    let stage = stage().await;
    stage.node("n1", "64").await;
    let scheduler = stage.scheduler(&[]).unwrap();
    stage.gang("large", PODS as u32, PODS, "1").await;
    stage.wait_bound("large", PODS).await;
    stage.kubelets().await;
    let path = stage.group_path("large");
    stage
        .wait(&path, "all run", |group| group["status"]["running"] == PODS)
        .await;
    stage
        .wait(&stage.queue_path("default"), "all are counted", |queue| {
            queue["status"]["allocated"]["cpu"] == "20"
        })
        .await;
    let all = scheduler.metric("volcano_api_writes_total").unwrap();
    let events = scheduler
        .metric("volcano_api_writes_total{kind=\"event\"")
        .unwrap();
    let (writes, most) = (all - events, 2.0 * PODS as f64);
    let (_, text) = scheduler.get("/metrics").unwrap();
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("volcano_api_writes_total"))
        .collect();
    assert!(writes <= most, "{writes} writes for {PODS} pods: {lines:#?}");
}
