//! The columns of built-in kinds.

use super::age;
use crate::resources::{Nature, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};

type Cell = fn(&Value, Timestamp) -> Value;

/// A column.
pub struct Column {
    name: &'static str,
    r#type: &'static str,
    is_wide: bool,
    pub(super) value: Cell,
}

impl Column {
    /// As tables define it.
    pub fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.r#type,
            "format": "",
            "description": "",
            "priority": i32::from(self.is_wide),
        })
    }
}

const fn column(name: &'static str, value: Cell) -> Column {
    Column {
        name,
        r#type: "string",
        is_wide: false,
        value,
    }
}

const fn wide(name: &'static str, value: Cell) -> Column {
    Column {
        name,
        r#type: "string",
        is_wide: true,
        value,
    }
}

fn at(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(Value::String(text)) if text.is_empty() => "<none>".into(),
        Some(found @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => found.clone(),
        _ => "<none>".into(),
    }
}

fn count(object: &Value, field: &str) -> usize {
    let found = &object[field];
    found
        .as_object()
        .map(serde_json::Map::len)
        .or(found.as_array().map(Vec::len))
        .unwrap_or_default()
}

fn joined(values: &Value) -> String {
    let texts: Vec<&str> = values
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if texts.is_empty() {
        "<none>".to_owned()
    } else {
        texts.join(",")
    }
}

const AGE: Column = column("Age", |object, now| {
    age(
        object["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap_or_default(),
        now,
    )
    .into()
});

/// The columns of a built-in kind, after the name.
pub fn of(resource: &Resource) -> Vec<Column> {
    match (resource.nature, resource.plural.as_str()) {
        (Nature::Pod, _) => vec![
            column("Ready", |pod, _| ready(pod).into()),
            column("Status", |pod, _| status(pod).into()),
            column("Restarts", |pod, _| restarts(pod).into()),
            AGE,
            wide("IP", |pod, _| at(pod, "/status/podIP")),
            wide("Node", |pod, _| at(pod, "/spec/nodeName")),
            wide("Nominated Node", |pod, _| at(pod, "/status/nominatedNodeName")),
            wide("Readiness Gates", |_, _| "<none>".into()),
        ],
        (Nature::Node, _) => vec![
            column("Status", |node, _| node_status(node).into()),
            column("Roles", |node, _| roles(node).into()),
            AGE,
            column("Version", |node, _| {
                match at(node, "/status/nodeInfo/kubeletVersion") {
                    Value::String(version) if version == "<none>" => "".into(),
                    version => version,
                }
            }),
            wide("Internal-IP", |node, _| address(node, "InternalIP").into()),
            wide("External-IP", |node, _| address(node, "ExternalIP").into()),
            wide("OS-Image", |node, _| {
                unknown(at(node, "/status/nodeInfo/osImage"))
            }),
            wide("Kernel-Version", |node, _| {
                unknown(at(node, "/status/nodeInfo/kernelVersion"))
            }),
            wide("Container-Runtime", |node, _| {
                unknown(at(node, "/status/nodeInfo/containerRuntimeVersion"))
            }),
        ],
        (Nature::Namespace, _) => vec![column("Status", |object, _| at(object, "/status/phase")), AGE],
        (Nature::Service, _) => vec![
            column("Type", |object, _| at(object, "/spec/type")),
            column("Cluster-IP", |object, _| at(object, "/spec/clusterIP")),
            column("External-IP", |_, _| "<none>".into()),
            column("Port(s)", |object, _| ports(object).into()),
            AGE,
            wide("Selector", |object, _| {
                selector(&object["spec"]["selector"]).into()
            }),
        ],
        (Nature::Endpoints, _) => vec![column("Endpoints", |object, _| addresses(object).into()), AGE],
        (Nature::ConfigMap, _) => vec![
            column("Data", |object, _| {
                (count(object, "data") + count(object, "binaryData")).into()
            }),
            AGE,
        ],
        (Nature::Secret, _) => vec![
            column("Type", |object, _| at(object, "/type")),
            column("Data", |object, _| count(object, "data").into()),
            AGE,
        ],
        (Nature::ServiceAccount, _) => vec![
            column("Secrets", |object, _| count(object, "secrets").into()),
            AGE,
        ],
        (Nature::Event, _) => vec![
            column("Last Seen", |event, now| age(last_seen(event), now).into()),
            column("Type", |event, _| at(event, "/type")),
            column("Reason", |event, _| at(event, "/reason")),
            column("Object", |event, _| {
                let object = &event["involvedObject"];
                let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
                format!("{kind}/{}", object["name"].as_str().unwrap_or_default()).into()
            }),
            column("Message", |event, _| {
                event["message"].as_str().unwrap_or_default().trim().into()
            }),
        ],
        (Nature::Volume, _) => vec![
            column("Capacity", |object, _| at(object, "/spec/capacity/storage")),
            column("Access Modes", |object, _| {
                joined(&object["spec"]["accessModes"]).into()
            }),
            column("Reclaim Policy", |object, _| {
                at(object, "/spec/persistentVolumeReclaimPolicy")
            }),
            column("Status", |object, _| at(object, "/status/phase")),
            column("Claim", |object, _| {
                let claim = &object["spec"]["claimRef"];
                match claim["name"].as_str() {
                    Some(name) => {
                        format!("{}/{name}", claim["namespace"].as_str().unwrap_or_default()).into()
                    }
                    None => "".into(),
                }
            }),
            column("StorageClass", |object, _| at(object, "/spec/storageClassName")),
            AGE,
        ],
        (Nature::Claim, _) => vec![
            column("Status", |object, _| at(object, "/status/phase")),
            column("Volume", |object, _| at(object, "/spec/volumeName")),
            column("Capacity", |object, _| at(object, "/status/capacity/storage")),
            column("Access Modes", |object, _| {
                joined(&object["spec"]["accessModes"]).into()
            }),
            column("StorageClass", |object, _| at(object, "/spec/storageClassName")),
            AGE,
        ],
        (Nature::PriorityClass, _) => vec![
            column("Value", |object, _| at(object, "/value")),
            column("Global-Default", |object, _| {
                (object["globalDefault"] == true).into()
            }),
            AGE,
            column("PreemptionPolicy", |object, _| at(object, "/preemptionPolicy")),
        ],
        (Nature::Budget, _) => vec![
            column("Min Available", |object, _| {
                or_na(at(object, "/spec/minAvailable"))
            }),
            column("Max Unavailable", |object, _| {
                or_na(at(object, "/spec/maxUnavailable"))
            }),
            column("Allowed Disruptions", |object, _| {
                object["status"]["disruptionsAllowed"]
                    .as_i64()
                    .unwrap_or_default()
                    .into()
            }),
            AGE,
        ],
        (Nature::Definition, _) => vec![column("Created At", |object, _| {
            at(object, "/metadata/creationTimestamp")
        })],
        (Nature::Mutating | Nature::Validating, _) => vec![
            column("Webhooks", |object, _| count(object, "webhooks").into()),
            AGE,
        ],
        (_, "leases") => vec![
            column("Holder", |object, _| at(object, "/spec/holderIdentity")),
            AGE,
        ],
        (_, "networkpolicies") => vec![
            column("Pod-Selector", |object, _| {
                selector(&object["spec"]["podSelector"]["matchLabels"]).into()
            }),
            AGE,
        ],
        (_, "deployments") => vec![
            column("Ready", |object, _| {
                let number = |pointer: &str| {
                    object
                        .pointer(pointer)
                        .and_then(Value::as_i64)
                        .unwrap_or_default()
                };
                format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas")).into()
            }),
            column("Up-to-date", |object, _| {
                object["status"]["updatedReplicas"]
                    .as_i64()
                    .unwrap_or_default()
                    .into()
            }),
            column("Available", |object, _| {
                object["status"]["availableReplicas"]
                    .as_i64()
                    .unwrap_or_default()
                    .into()
            }),
            AGE,
        ],
        (_, "storageclasses") => vec![
            column("Provisioner", |object, _| at(object, "/provisioner")),
            column("ReclaimPolicy", |object, _| at(object, "/reclaimPolicy")),
            column("VolumeBindingMode", |object, _| at(object, "/volumeBindingMode")),
            AGE,
        ],
        _ => vec![AGE],
    }
}

fn unknown(value: Value) -> Value {
    if value == "<none>" {
        "<unknown>".into()
    } else {
        value
    }
}

fn or_na(value: Value) -> Value {
    if value == "<none>" { "N/A".into() } else { value }
}

fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["status"]["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten()
}

fn ready(pod: &Value) -> String {
    let ready = statuses(pod).filter(|status| status["ready"] == true).count();
    let all = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    format!("{ready}/{all}")
}

fn restarts(pod: &Value) -> String {
    let count: i64 = statuses(pod)
        .map(|status| status["restartCount"].as_i64().unwrap_or_default())
        .sum();
    count.to_string()
}

/// What a pod is at, in a word: the reason of a container that does not run says more than the phase.
fn status(pod: &Value) -> String {
    let deleting = !pod["metadata"]["deletionTimestamp"].is_null();
    let phase = pod["status"]["phase"].as_str().unwrap_or("Unknown");
    let mut said = pod["status"]["reason"].as_str().unwrap_or(phase).to_owned();
    let held = pod["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty());
    if held && phase == "Pending" {
        said = "SchedulingGated".to_owned();
    }
    let containers: Vec<&Value> = statuses(pod).collect();
    for container in containers.iter().rev() {
        let state = &container["state"];
        if let Some(reason) = state["waiting"]["reason"]
            .as_str()
            .filter(|reason| !reason.is_empty())
        {
            said = reason.to_owned();
        } else if state["terminated"].is_object() {
            let ended = &state["terminated"];
            said = match ended["reason"].as_str().filter(|reason| !reason.is_empty()) {
                Some(reason) => reason.to_owned(),
                None => format!("ExitCode:{}", ended["exitCode"].as_i64().unwrap_or_default()),
            };
        }
    }
    let runs = containers
        .iter()
        .any(|container| container["ready"] == true && container["state"]["running"].is_object());
    if said == "Completed" && runs {
        said = "Running".to_owned();
    }
    if deleting {
        let over = matches!(phase, "Succeeded" | "Failed");
        said = if over { said } else { "Terminating".to_owned() };
    }
    said
}

fn node_status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions
        .filter(|one| one["type"] == "Ready")
        .map(|one| one["status"] == "True")
        .next();
    let mut said = match ready {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        said.push_str(",SchedulingDisabled");
    }
    said
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> = labels
        .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.join(",")
    }
}

fn address(node: &Value, kind: &str) -> String {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let found = addresses
        .filter(|one| one["type"] == kind)
        .filter_map(|one| one["address"].as_str())
        .next();
    found.unwrap_or("<none>").to_owned()
}

fn ports(service: &Value) -> String {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let shown: Vec<String> = ports
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64() {
                Some(node) => format!("{}:{node}/{protocol}", port["port"]),
                None => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    if shown.is_empty() {
        "<none>".to_owned()
    } else {
        shown.join(",")
    }
}

fn selector(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let shown: Vec<String> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if shown.is_empty() {
        "<none>".to_owned()
    } else {
        shown.join(",")
    }
}

fn addresses(endpoints: &Value) -> String {
    let mut shown = Vec::new();
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        for address in subset["addresses"].as_array().into_iter().flatten() {
            let ip = address["ip"].as_str().unwrap_or_default();
            match subset["ports"].as_array() {
                Some(ports) => shown.extend(ports.iter().map(|port| format!("{ip}:{}", port["port"]))),
                None => shown.push(ip.to_owned()),
            }
        }
    }
    match shown.len() {
        0 => "<none>".to_owned(),
        1..=3 => shown.join(","),
        more => format!("{} + {} more...", shown[..3].join(","), more - 3),
    }
}

fn last_seen(event: &Value) -> &str {
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    let mut found = times
        .iter()
        .filter_map(|pointer| event.pointer(pointer).and_then(Value::as_str));
    found.next().unwrap_or_default()
}
