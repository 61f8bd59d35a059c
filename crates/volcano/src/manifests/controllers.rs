//! The controller manager.

use super::Values;
use super::parts::{
    Workload, account, config_map, deployment, from_field, lease_rules, metrics_service, rule,
};
use serde_json::{Value, json};
use volcano_api::names::kinds::{BATCH, BUS, SCHEDULING};

const PART: &str = "controllers";
/// Label of its pods.
const APP: &str = "volcano-controller";
const METRICS_PORT: u16 = 8081;
/// Name of the settings of the sharding controller, without the release.
const SHARDING: &str = "sharding-configmap";
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
    objects.push(config_map(values, SHARDING, "sharding.yaml", ""));
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
    args.push(format!("--sharding-configmap={}", values.name(SHARDING)));
    args.push(format!("--sharding-configmap-namespace={}", values.namespace));
    args.push(format!("-v={}", values.controllers.log_level));
    args
}

/// What it reads, and what it writes: Jobs and their statuses, pods and PodGroups, what job plugins make, queues, events.
fn cluster_rules() -> Vec<Value> {
    const READ: &[&str] = &["get", "list", "watch"];
    const MAKE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
    vec![
        rule(BATCH, &["jobs"], &["get", "list", "watch", "update", "delete"]),
        rule(BATCH, &["jobs/status"], &["patch"]),
        // Owners that hold their dependents back from being deleted need this where that is enforced.
        rule(BATCH, &["jobs/finalizers"], &["update"]),
        rule("", &["pods/finalizers"], &["update"]),
        rule(BUS, &["commands"], &["get", "list", "watch", "delete"]),
        rule("", &["pods"], MAKE),
        rule(
            "",
            &["persistentvolumeclaims"],
            &["get", "list", "watch", "create"],
        ),
        rule("", &["services"], &["get", "create", "delete"]),
        rule(
            "",
            &["configmaps", "secrets"],
            &["get", "create", "update", "delete"],
        ),
        rule(
            "networking.k8s.io",
            &["networkpolicies"],
            &["get", "create", "delete"],
        ),
        rule("", &["events"], &["create", "patch"]),
        rule(SCHEDULING, &["podgroups"], MAKE),
        rule(SCHEDULING, &["queues"], &["get", "list", "watch", "patch"]),
        rule(SCHEDULING, &["queues/status"], &["patch"]),
        rule("scheduling.k8s.io", &["priorityclasses"], &["list", "watch"]),
        rule("apps", &["replicasets", "statefulsets"], READ),
        rule("apps", &["daemonsets"], &["get"]),
        rule("batch", &["jobs"], &["get"]),
    ]
}
