//! The columns of built-in kinds.

use super::{age, pod, workload};
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

pub(super) const fn column(name: &'static str, value: Cell) -> Column {
    Column {
        name,
        r#type: "string",
        is_wide: false,
        value,
    }
}

pub(super) const fn wide(name: &'static str, value: Cell) -> Column {
    Column {
        name,
        r#type: "string",
        is_wide: true,
        value,
    }
}

/// A column of numbers.
pub(super) const fn integer(name: &'static str, value: Cell) -> Column {
    Column {
        name,
        r#type: "integer",
        is_wide: false,
        value,
    }
}

pub(super) fn at(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(Value::String(text)) if text.is_empty() => "<none>".into(),
        Some(found @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => found.clone(),
        _ => "<none>".into(),
    }
}

/// The same where Kubernetes says nothing if nothing is there.
fn bare(object: &Value, pointer: &str) -> Value {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .into()
}

fn unset(object: &Value, pointer: &str) -> Value {
    match at(object, pointer) {
        Value::String(text) if text == "<none>" => "<unset>".into(),
        found => found,
    }
}

pub(super) fn or_none(text: Option<String>) -> Value {
    text.unwrap_or_else(|| "<none>".to_owned()).into()
}

fn count(object: &Value, field: &str) -> usize {
    let found = &object[field];
    found
        .as_object()
        .map(serde_json::Map::len)
        .or(found.as_array().map(Vec::len))
        .unwrap_or_default()
}

/// Short names of the access modes of volumes, in the order that tables have them.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

fn modes(given: &Value) -> String {
    let has = |mode: &str| {
        let mut given = given.as_array().into_iter().flatten();
        given.any(|one| one == mode)
    };
    let short: Vec<&str> = MODES
        .iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| *short)
        .collect();
    short.join(",")
}

/// The phase, unless it is on its way out.
fn phase(object: &Value) -> Value {
    match object["metadata"]["deletionTimestamp"].is_null() {
        true => bare(object, "/status/phase"),
        false => "Terminating".into(),
    }
}

pub(super) const AGE: Column = column("Age", |object, now| {
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
            column("Ready", |pod, now| pod::shown(pod, now).ready.into()),
            column("Status", |pod, now| pod::shown(pod, now).status.into()),
            column("Restarts", |pod, now| pod::shown(pod, now).restarts.into()),
            AGE,
            wide("IP", |pod, _| at(pod, "/status/podIP")),
            wide("Node", |pod, _| at(pod, "/spec/nodeName")),
            wide("Nominated Node", |pod, _| at(pod, "/status/nominatedNodeName")),
            wide("Readiness Gates", |pod, _| pod::readiness_gates(pod).into()),
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
            column("Capacity", |object, _| bare(object, "/spec/capacity/storage")),
            column("Access Modes", |object, _| {
                modes(&object["spec"]["accessModes"]).into()
            }),
            column("Reclaim Policy", |object, _| {
                bare(object, "/spec/persistentVolumeReclaimPolicy")
            }),
            column("Status", |object, _| phase(object)),
            column("Claim", |object, _| {
                let claim = &object["spec"]["claimRef"];
                match claim["name"].as_str() {
                    Some(name) => {
                        format!("{}/{name}", claim["namespace"].as_str().unwrap_or_default()).into()
                    }
                    None => "".into(),
                }
            }),
            column("StorageClass", |object, _| bare(object, "/spec/storageClassName")),
            column("VolumeAttributesClass", |object, _| {
                unset(object, "/spec/volumeAttributesClassName")
            }),
            column("Reason", |object, _| bare(object, "/status/reason")),
            AGE,
            wide("VolumeMode", |object, _| unset(object, "/spec/volumeMode")),
        ],
        (Nature::Claim, _) => vec![
            column("Status", |object, _| phase(object)),
            column("Volume", |object, _| bare(object, "/spec/volumeName")),
            column("Capacity", |object, _| match is_bound(object) {
                true => bare(object, "/status/capacity/storage"),
                false => "".into(),
            }),
            column("Access Modes", |object, _| match is_bound(object) {
                true => modes(&object["status"]["accessModes"]).into(),
                false => "".into(),
            }),
            column("StorageClass", |object, _| bare(object, "/spec/storageClassName")),
            column("VolumeAttributesClass", |object, _| {
                unset(object, "/spec/volumeAttributesClassName")
            }),
            AGE,
            wide("VolumeMode", |object, _| unset(object, "/spec/volumeMode")),
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
        (_, "storageclasses") => vec![
            column("Provisioner", |object, _| at(object, "/provisioner")),
            column("ReclaimPolicy", |object, _| at(object, "/reclaimPolicy")),
            column("VolumeBindingMode", |object, _| at(object, "/volumeBindingMode")),
            column("AllowVolumeExpansion", |object, _| {
                (object["allowVolumeExpansion"] == true).into()
            }),
            AGE,
        ],
        (_, "resourcequotas") => vec![
            column("Request", |object, _| used(object, false).into()),
            column("Limit", |object, _| used(object, true).into()),
            AGE,
        ],
        (Nature::Workload, plural) => workload::of(plural).unwrap_or_else(|| vec![AGE]),
        _ => vec![AGE],
    }
}

/// What a table calls an object: its name, and whether it is what others are if they say nothing.
pub fn name(resource: &Resource, object: &Value) -> Value {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let annotations = &object["metadata"]["annotations"];
    let is_default =
        |of: &str| annotations[format!("storageclass{of}.kubernetes.io/is-default-class")] == "true";
    if resource.plural == "storageclasses" && (is_default("") || is_default(".beta")) {
        return format!("{name} (default)").into();
    }
    name.into()
}

fn is_bound(claim: &Value) -> bool {
    claim["spec"]["volumeName"]
        .as_str()
        .is_some_and(|name| !name.is_empty())
}

/// What is used of a quota: of limits, or of everything else.
fn used(quota: &Value, of_limits: bool) -> String {
    let hard = quota["status"]["hard"].as_object().into_iter().flatten();
    let shown: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == of_limits)
        .map(|(name, hard)| {
            let used = quota["status"]["used"][name].as_str().unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    shown.join(", ")
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

pub(super) fn selector(labels: &Value) -> String {
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
