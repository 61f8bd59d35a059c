//! The controller manager.

use super::Values;
use super::parts::{
    Workload, account, config_map, deployment, from_field, lease_rules, metrics_service, rule,
};
use serde_json::{Value, json};
use volcano_api::names::kinds::{BATCH, BUS, CONFIG, FLOW, SCHEDULING, SHARD, TOPOLOGY};

const PART: &str = "controllers";
/// Label of its pods.
const APP: &str = "volcano-controller";
const METRICS_PORT: u16 = 8081;
/// Name of its lease.
const LEASE: &str = volcano_api::names::CONTROLLER_MANAGER;

/// Its objects.
pub fn objects(values: &Values) -> Vec<Value> {
    let own = if values.leader_elect {
        lease_rules(LEASE)
    } else {
        Vec::new()
    };
    let mut objects = account(values, PART, &cluster_rules(), &own);
    objects.push(config_map(
        values,
        "controller-configmap",
        "volcano-controller.conf",
        "",
    ));
    objects.push(metrics_service(values, "controllers-service", APP, METRICS_PORT));
    objects.push(deployment(
        values,
        &Workload {
            part: PART,
            app: APP,
            container: values.name(PART),
            command: "vc-controller-manager",
            program: &values.controllers,
            args: args(values),
            env: vec![
                from_field("KUBE_POD_NAMESPACE", "metadata.namespace"),
                json!({"name": "HELM_RELEASE_NAME", "value": values.release}),
            ],
            ports: vec![("metrics", METRICS_PORT)],
            volumes: Vec::new(),
            probe_scheme: "HTTP",
            tells_readiness: true,
        },
    ));
    objects
}

fn args(values: &Values) -> Vec<String> {
    let mut args = vec![
        "--logtostderr".to_owned(),
        "--enable-healthz=true".to_owned(),
        "--enable-metrics=true".to_owned(),
    ];
    args.extend(values.scheduler_name_flags());
    args.extend(values.election_flags());
    args.extend(
        [
            "--kube-api-qps=50",
            "--kube-api-burst=100",
            "--worker-threads=3",
            "--worker-threads-for-gc=5",
            "--worker-threads-for-podgroup=5",
        ]
        .map(str::to_owned),
    );
    args.push(format!("-v={}", values.controllers.log_level));
    args
}

fn cluster_rules() -> Vec<Value> {
    const READ: &[&str] = &["get", "list", "watch"];
    const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
    const STATUS: &[&str] = &["update", "patch"];
    let written = &[
        "jobs/status",
        "jobs/finalizers",
        "cronjobs/status",
        "cronjobs/finalizers",
    ];
    let flows = &[
        "jobflows/status",
        "jobflows/finalizers",
        "jobtemplates/status",
        "jobtemplates/finalizers",
    ];
    vec![
        rule(
            BATCH,
            &["jobs", "cronjobs"],
            &["get", "list", "watch", "create", "update", "delete"],
        ),
        rule(BATCH, written, STATUS),
        rule(BUS, &["commands"], &["get", "list", "watch", "delete"]),
        rule("", &["events"], &["create", "update", "patch"]),
        rule("", &["pods"], WRITE),
        rule("", &["pods/finalizers"], STATUS),
        rule(
            "",
            &["persistentvolumeclaims"],
            &["get", "list", "watch", "create"],
        ),
        rule("", &["services"], &["get", "list", "watch", "create", "delete"]),
        rule(
            "",
            &["configmaps"],
            &["get", "list", "watch", "create", "update", "delete"],
        ),
        rule("", &["secrets"], &["get", "create", "update", "delete"]),
        rule("", &["nodes"], &["list", "watch"]),
        rule(SCHEDULING, &["podgroups", "queues", "queues/status"], WRITE),
        rule(
            FLOW,
            &["jobflows", "jobtemplates"],
            &["get", "list", "watch", "create", "update", "delete"],
        ),
        rule(FLOW, flows, STATUS),
        rule("scheduling.k8s.io", &["priorityclasses"], READ),
        rule(
            "networking.k8s.io",
            &["networkpolicies"],
            &["get", "create", "delete"],
        ),
        rule("apps", &["daemonsets"], &["get"]),
        rule("apps", &["replicasets", "statefulsets"], READ),
        rule("batch", &["jobs"], &["get"]),
        rule(TOPOLOGY, &["hypernodes", "hypernodes/status"], WRITE),
        rule(SHARD, &["nodeshards", "nodeshards/status"], WRITE),
        rule(CONFIG, &["colocationconfigurations"], READ),
    ]
}
