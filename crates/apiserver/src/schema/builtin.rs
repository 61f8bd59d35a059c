//! Schemas of Kubernetes' own kinds: what is published, and how their lists merge, which is not.

use super::{List, Schema, compile};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The schema of a kind, as it is published.
pub fn published<T: JsonSchema>() -> (Value, Map<String, Value>) {
    let root = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>();
    let mut root = root.to_value();
    let definitions = root.as_object_mut().and_then(|root| root.remove("$defs"));
    let definitions = definitions.and_then(|definitions| match definitions {
        Value::Object(definitions) => Some(definitions),
        _ => None,
    });
    (root, definitions.unwrap_or_default())
}

/// The schema of a kind, compiled.
pub fn schema<T: JsonSchema>() -> Arc<Schema> {
    let (mut root, definitions) = published::<T>();
    // The root is written out; by its name the rules for it are found.
    let name = T::schema_name();
    let mut all = definitions;
    all.insert(name.to_string(), root.take());
    let reference = serde_json::json!({"$ref": format!("#/$defs/{name}")});
    compile(&reference, &all).expect("published schemas compile")
}

/// Lists that merge: type, field, keys of server-side apply (none for a set), key of strategic merge patches.
#[rustfmt::skip]
const LISTS: &[(&str, &str, &[&str], &str)] = &[
    ("Container", "env", &["name"], "name"),
    ("Container", "ports", &["containerPort", "protocol"], "containerPort"),
    ("Container", "volumeDevices", &["devicePath"], "devicePath"),
    ("Container", "volumeMounts", &["mountPath"], "mountPath"),
    ("EphemeralContainer", "env", &["name"], "name"),
    ("EphemeralContainer", "ports", &["containerPort", "protocol"], "containerPort"),
    ("EphemeralContainer", "volumeDevices", &["devicePath"], "devicePath"),
    ("EphemeralContainer", "volumeMounts", &["mountPath"], "mountPath"),
    ("PodSpec", "containers", &["name"], "name"),
    ("PodSpec", "ephemeralContainers", &["name"], "name"),
    ("PodSpec", "hostAliases", &["ip"], "ip"),
    ("PodSpec", "imagePullSecrets", &["name"], "name"),
    ("PodSpec", "initContainers", &["name"], "name"),
    ("PodSpec", "resourceClaims", &["name"], "name"),
    ("PodSpec", "schedulingGates", &["name"], "name"),
    ("PodSpec", "topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"], "topologyKey"),
    ("PodSpec", "volumes", &["name"], "name"),
    ("PodStatus", "conditions", &["type"], "type"),
    ("PodStatus", "hostIPs", &[], ""),
    ("PodStatus", "podIPs", &["ip"], "ip"),
    ("ResourceRequirements", "claims", &["name"], ""),
    ("ObjectMeta", "finalizers", &[], "*"),
    ("ObjectMeta", "ownerReferences", &["uid"], "uid"),
    ("NodeStatus", "addresses", &["type"], "type"),
    ("NodeStatus", "conditions", &["type"], "type"),
    ("NodeSpec", "podCIDRs", &[], "*"),
    ("NamespaceStatus", "conditions", &["type"], "type"),
    ("ServiceSpec", "ports", &["port", "protocol"], "port"),
    ("ServiceStatus", "conditions", &["type"], "type"),
    ("ServiceAccount", "secrets", &["name"], "name"),
    ("PersistentVolumeClaimStatus", "conditions", &["type"], "type"),
    ("PodDisruptionBudgetStatus", "conditions", &["type"], "type"),
    ("DeploymentStatus", "conditions", &["type"], "type"),
    ("ReplicaSetStatus", "conditions", &["type"], "type"),
    ("StatefulSetStatus", "conditions", &["type"], "type"),
    ("DaemonSetStatus", "conditions", &["type"], "type"),
    ("JobStatus", "conditions", &[], "type"),
    ("CustomResourceDefinitionStatus", "conditions", &["type"], ""),
    ("MutatingWebhookConfiguration", "webhooks", &["name"], "name"),
    ("ValidatingWebhookConfiguration", "webhooks", &["name"], "name"),
    ("MutatingWebhook", "matchConditions", &["name"], "name"),
    ("ValidatingWebhook", "matchConditions", &["name"], "name"),
];

/// Types that are replaced as a whole.
const ATOMIC_TYPES: &[&str] = &[
    "LabelSelector",
    "NodeSelector",
    "NodeSelectorTerm",
    "LocalObjectReference",
    "ObjectReference",
    "ConfigMapKeySelector",
    "SecretKeySelector",
    "ObjectFieldSelector",
    "ResourceFieldSelector",
    "SecretReference",
    "RoleRef",
    "TypedLocalObjectReference",
    "ScopeSelector",
];

/// Adds to a type what its published schema leaves out.
pub fn mark(definition: &str, schema: &mut Schema) {
    let name = definition.rsplit('.').next().unwrap_or(definition);
    schema.atomic_map |= ATOMIC_TYPES.contains(&name);
    // Objects about which nothing is published hold anything.
    if matches!(name, "RawExtension" | "FieldsV1" | "JSON") {
        schema.preserve = true;
    }
    if name == "Quantity" {
        (schema.is_amount, schema.has_amounts) = (true, true);
    }
    for (_, field, keys, strategic) in LISTS.iter().filter(|(of, ..)| *of == name) {
        let Some(list) = schema.properties.get_mut(*field).and_then(Arc::get_mut) else {
            continue;
        };
        list.list = match keys {
            [] => List::Set,
            keys => List::Map(keys.iter().map(|key| (*key).into()).collect()),
        };
        list.strategic_key = (!strategic.is_empty()).then(|| (*strategic).into());
    }
    if name == "PodSpec"
        && let Some(selector) = schema.properties.get_mut("nodeSelector").and_then(Arc::get_mut)
    {
        selector.atomic_map = true;
    }
}
