//! What objects of all programs are made of.

use super::{Program, Values};
use serde_json::{Map, Value, json};
use volcano_api::names::critical;

/// Port of health, the same for all.
pub const HEALTH_PORT: u16 = 11251;
const RBAC: &str = "rbac.authorization.k8s.io";

/// Verbs on resources of an API group.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// The same for objects of these names only.
pub fn named_rule(group: &str, resources: &[&str], names: &[String], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "resourceNames": names, "verbs": verbs})
}

/// What a leader needs of Leases; creation cannot be limited to a name.
pub fn lease_rules(name: &str) -> Vec<Value> {
    let group = "coordination.k8s.io";
    vec![
        rule(group, &["leases"], &["create"]),
        named_rule(group, &["leases"], &[name.to_owned()], &["get", "update"]),
    ]
}

/// The account of a program, with what it may do in the cluster and in its own namespace.
pub fn account(values: &Values, part: &str, cluster: &[Value], own: &[Value]) -> Vec<Value> {
    let name = values.name(part);
    let namespace = &values.namespace;
    let role = |kind: &str, metadata: Value, rules: &[Value]| json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules});
    let binding = |kind: &str, metadata: Value, of: &str| {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": kind,
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": of, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        })
    };
    let bound = format!("{name}-role");
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
        role("ClusterRole", json!({"name": name}), cluster),
        binding("ClusterRoleBinding", json!({"name": bound}), "ClusterRole"),
    ];
    if !own.is_empty() {
        let here = |name: &str| json!({"name": name, "namespace": namespace});
        objects.push(role("Role", here(&name), own));
        objects.push(binding("RoleBinding", here(&bound), "Role"));
    }
    objects
}

/// A ConfigMap with one file.
pub fn config_map(values: &Values, part: &str, key: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": values.name(part), "namespace": values.namespace},
        "data": {key: text},
    })
}

/// The Service of a program's metrics.
pub fn metrics_service(values: &Values, part: &str, app: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": values.name(part),
            "namespace": values.namespace,
            "annotations": {
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": port.to_string(),
                "prometheus.io/scrape": "true",
            },
        },
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": app},
            "ports": [{"name": "metrics", "port": port, "protocol": "TCP", "targetPort": port}],
        },
    })
}

/// How a program runs.
pub struct Workload<'a> {
    /// Part of its name, which is also that of its account.
    pub part: &'a str,
    /// Value of the label `app`.
    pub app: &'a str,
    /// Name of the container.
    pub container: String,
    /// The program's own name, under which it is at the root of its image. Said here, so that one image can serve all.
    pub command: &'a str,
    pub program: &'a Program,
    pub args: Vec<String>,
    pub env: Vec<Value>,
    /// Ports by name.
    pub ports: Vec<(&'a str, u16)>,
    /// What is mounted where: name, path, source.
    pub volumes: Vec<(&'a str, &'a str, Value)>,
    /// `HTTP` or `HTTPS`.
    pub probe_scheme: &'a str,
    /// Whether it says by itself when it is ready.
    pub tells_readiness: bool,
}

/// A Deployment.
pub fn deployment(values: &Values, workload: &Workload<'_>) -> Value {
    let name = values.name(workload.part);
    let labels = json!({"app": workload.app});
    let mut spec = json!({
        "containers": [container(values, workload)],
        "priorityClassName": critical::CLUSTER_PRIORITY_CLASS,
        "securityContext": {
            "seLinuxOptions": {"level": "s0:c123,c456"},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": name,
    });
    let volumes = workload.volumes.iter().map(|(name, _, source)| {
        let mut volume = source.as_object().cloned().unwrap_or_default();
        volume.insert("name".to_owned(), json!(name));
        Value::Object(volume)
    });
    put(&mut spec, "volumes", volumes.collect());
    let secret = values.images.pull_secret.iter();
    put(
        &mut spec,
        "imagePullSecrets",
        secret.map(|name| json!({"name": name})).collect(),
    );
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": values.namespace, "labels": labels},
        "spec": {
            "replicas": workload.program.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

fn container(values: &Values, workload: &Workload<'_>) -> Value {
    let images = &values.images;
    let probe =
        |path: &str| json!({"httpGet": {"path": path, "port": HEALTH_PORT, "scheme": workload.probe_scheme}});
    let mut liveness = probe("/healthz");
    liveness["initialDelaySeconds"] = json!(5);
    let mut container = json!({
        "name": workload.container,
        "image": format!("{}/{}:{}", images.registry, workload.program.image, images.tag),
        "imagePullPolicy": images.pull_policy,
        "command": [format!("/{}", workload.command)],
        "args": workload.args,
        "livenessProbe": liveness,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": true,
            "runAsUser": 1000,
        },
    });
    if workload.tells_readiness {
        let mut readiness = probe("/readyz");
        readiness["periodSeconds"] = json!(5);
        container["readinessProbe"] = readiness;
    }
    put(&mut container, "env", workload.env.clone());
    let mut ports: Vec<(&str, u16)> = vec![("healthz", HEALTH_PORT)];
    ports.extend(&workload.ports);
    let ports = ports
        .iter()
        .map(|(name, port)| json!({"name": name, "containerPort": port}));
    put(&mut container, "ports", ports.collect());
    let mounts = workload.volumes.iter();
    let mounts = mounts.map(|(name, path, _)| json!({"name": name, "mountPath": path}));
    put(&mut container, "volumeMounts", mounts.collect());
    container
}

/// Sets a list that has something in it.
fn put(object: &mut Value, field: &str, list: Vec<Value>) {
    if !list.is_empty() {
        object[field] = Value::Array(list);
    }
}

/// A variable that is a field of the pod.
pub fn from_field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// A volume of the files of a ConfigMap.
pub fn config_volume(values: &Values, part: &str) -> Value {
    json!({"configMap": {"name": values.name(part)}})
}

/// A volume that is empty at first.
pub fn empty_volume() -> Value {
    json!({"emptyDir": Map::new()})
}
