//! A pod template as far as it is judged.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use volcano_api::core::{PodSchedulingGate, ResourceRequirements, Toleration};

/// Declares structures all of whose members may be missing.
macro_rules! view {
    ($( $(#[$meta:meta])* pub struct $name:ident { $( $(#[$field:meta])* pub $member:ident: $type:ty, )* } )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $name { $( $(#[$field])* pub $member: $type, )* }
    )*};
}

view! {
    pub struct Template {
        pub metadata: Metadata,
        pub spec: PodSpec,
    }

    pub struct Metadata {
        pub labels: BTreeMap<String, String>,
        pub annotations: BTreeMap<String, String>,
    }

    pub struct PodSpec {
        pub volumes: Vec<Volume>,
        pub containers: Vec<Container>,
        pub init_containers: Vec<Container>,
        pub ephemeral_containers: Vec<IgnoredAny>,
        pub host_network: bool,
        pub restart_policy: String,
        pub dns_policy: String,
        pub node_selector: BTreeMap<String, String>,
        pub scheduling_gates: Vec<PodSchedulingGate>,
        pub service_account_name: String,
        pub node_name: String,
        pub active_deadline_seconds: Option<i64>,
        pub hostname: String,
        pub subdomain: String,
        pub tolerations: Vec<Toleration>,
        pub priority_class_name: String,
    }

    pub struct Volume {
        pub name: String,
        #[serde(flatten)]
        pub sources: Map<String, Value>,
    }

    pub struct Container {
        pub name: String,
        pub image: String,
        pub termination_message_policy: String,
        pub ports: Vec<Port>,
        pub env: Vec<Variable>,
        pub volume_mounts: Vec<Mount>,
        pub volume_devices: Vec<Device>,
        pub image_pull_policy: String,
        pub resources: ResourceRequirements,
        pub restart_policy: Option<String>,
        pub lifecycle: Option<IgnoredAny>,
        pub liveness_probe: Option<IgnoredAny>,
        pub readiness_probe: Option<IgnoredAny>,
        pub startup_probe: Option<IgnoredAny>,
    }

    pub struct Port {
        pub name: String,
        pub container_port: i32,
        pub host_port: i32,
        #[serde(rename = "hostIP")]
        pub host_ip: String,
        pub protocol: String,
    }

    pub struct Variable {
        pub name: String,
    }

    pub struct Mount {
        pub name: String,
        pub mount_path: String,
        pub sub_path: String,
        pub sub_path_expr: String,
    }

    pub struct Device {
        pub name: String,
        pub device_path: String,
    }
}

/// An object without the members that are `null`, which clients write for what is not set.
pub(super) fn without_nulls(object: &Map<String, Value>) -> Value {
    let members = object.iter().filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(key, value)| (key.clone(), strip(value))).collect())
}

fn strip(value: &Value) -> Value {
    match value {
        Value::Object(members) => without_nulls(members),
        Value::Array(items) => Value::Array(items.iter().map(strip).collect()),
        other => other.clone(),
    }
}
