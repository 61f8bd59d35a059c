//! The scheduler.

use super::Values;
use super::parts::{
    Workload, account, config_map, config_volume, deployment, empty_volume, lease_rules, metrics_service,
    rule,
};
use serde_json::{Value, json};
use volcano_api::names::SCHEDULER;
use volcano_api::names::kinds::{SCHEDULING, SHARD, TOPOLOGY};

const PART: &str = "scheduler";
const CONFIG: &str = "scheduler-configmap";
/// Label of its pods.
const APP: &str = "volcano-scheduler";
const CONF_FILE: &str = "volcano-scheduler.conf";
const CONF_FOLDER: &str = "/volcano.scheduler";
const METRICS_PORT: u16 = 8080;
/// Where its log level can be changed.
const SOCKETS: &str = "/tmp/klog-socks";

/// Its objects.
pub fn objects(values: &Values) -> Vec<Value> {
    let mut objects = account(values, PART, &cluster_rules(), &own_rules(values));
    objects.push(config_map(values, CONFIG, CONF_FILE, &values.scheduler_conf));
    objects.push(metrics_service(values, "scheduler-service", APP, METRICS_PORT));
    objects.push(deployment(
        values,
        &Workload {
            part: PART,
            app: APP,
            container: values.name(PART),
            command: "vc-scheduler",
            program: &values.scheduler,
            args: args(values),
            env: vec![json!({"name": "DEBUG_SOCKET_DIR", "value": SOCKETS})],
            ports: vec![("metrics", METRICS_PORT)],
            volumes: vec![
                ("scheduler-config", CONF_FOLDER, config_volume(values, CONFIG)),
                ("klog-sock", SOCKETS, empty_volume()),
            ],
            probe_scheme: "HTTP",
            tells_readiness: true,
        },
    ));
    objects
}

fn args(values: &Values) -> Vec<String> {
    let mut args = vec![
        "--logtostderr".to_owned(),
        format!("--scheduler-conf={CONF_FOLDER}/{CONF_FILE}"),
    ];
    args.extend(values.scheduler_name_flags());
    args.extend([
        "--enable-healthz=true".to_owned(),
        "--enable-metrics=true".to_owned(),
    ]);
    args.extend(values.election_flags());
    args.extend([
        "--kube-api-qps=2000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
        "--schedule-period=1s".to_owned(),
        "--node-worker-threads=20".to_owned(),
        format!("-v={}", values.scheduler.log_level),
    ]);
    args
}

/// What it reads, and what it writes: bindings, gates, evictions, statuses, volumes of pods, events, and the two queues that are
/// always there.
fn cluster_rules() -> Vec<Value> {
    const READ: &[&str] = &["list", "watch"];
    vec![
        rule("", &["nodes", "namespaces", "resourcequotas"], READ),
        rule("", &["pods"], &["get", "list", "watch", "patch", "delete"]),
        rule("", &["pods/status"], &["patch"]),
        rule("", &["pods/binding"], &["create"]),
        rule(
            "",
            &["persistentvolumeclaims", "persistentvolumes"],
            &["get", "list", "watch", "update"],
        ),
        rule("", &["events"], &["create", "patch"]),
        rule(
            "storage.k8s.io",
            &["storageclasses", "csinodes", "csidrivers", "csistoragecapacities"],
            READ,
        ),
        rule("policy", &["poddisruptionbudgets"], READ),
        rule("scheduling.k8s.io", &["priorityclasses"], READ),
        rule(SCHEDULING, &["queues"], &["get", "list", "watch", "create"]),
        rule(SCHEDULING, &["queues/status"], &["patch"]),
        rule(SCHEDULING, &["podgroups"], &["get", "list", "watch", "patch"]),
        rule(TOPOLOGY, &["hypernodes"], READ),
        rule(SHARD, &["nodeshards"], READ),
        rule(SHARD, &["nodeshards/status"], &["patch"]),
    ]
}

fn own_rules(values: &Values) -> Vec<Value> {
    if !values.leader_elect {
        return Vec::new();
    }
    // The lease is named after the scheduler if it has one name.
    let lease = match values.scheduler_names.as_slice() {
        [name] => name,
        _ => SCHEDULER,
    };
    lease_rules(lease)
}
