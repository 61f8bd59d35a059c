//! What Kubernetes' published schemas leave out and the markers in its sources say: defaults, how lists and maps are
//! merged, and what embedded metadata may have. Rules are by type and field, so they hold wherever a type is used.

use schemars::{JsonSchema as _, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::quantity::Quantity;

use List::{Keyed, Set, Unmarked};

/// How a list is merged.
enum List {
    /// By these keys of its items.
    Keyed(&'static [&'static str]),
    /// As a set.
    Set,
    /// Nothing is said.
    Unmarked,
}

/// Fields that metadata has within another object.
const EMBEDDED_METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Types that are replaced as a whole.
const ATOMIC_TYPES: [&str; 15] = [
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "FileKeySelector",
    "LabelSelector",
    "LocalObjectReference",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ResourceFieldSelector",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "TypedLocalObjectReference",
];

/// Lists that are not replaced as a whole, which is what all others are.
const LISTS: &[(&str, &str, List)] = &[
    ("Container", "env", Keyed(&["name"])),
    ("Container", "ports", Keyed(&["containerPort", "protocol"])),
    ("Container", "volumeDevices", Keyed(&["devicePath"])),
    ("Container", "volumeMounts", Keyed(&["mountPath"])),
    ("ContainerRestartRuleOnExitCodes", "values", Set),
    ("EphemeralContainer", "env", Keyed(&["name"])),
    (
        "EphemeralContainer",
        "ports",
        Keyed(&["containerPort", "protocol"]),
    ),
    ("EphemeralContainer", "volumeDevices", Keyed(&["devicePath"])),
    ("EphemeralContainer", "volumeMounts", Keyed(&["mountPath"])),
    ("ObjectMeta", "finalizers", Unmarked),
    ("PodSpec", "containers", Keyed(&["name"])),
    ("PodSpec", "ephemeralContainers", Keyed(&["name"])),
    ("PodSpec", "hostAliases", Keyed(&["ip"])),
    ("PodSpec", "imagePullSecrets", Keyed(&["name"])),
    ("PodSpec", "initContainers", Keyed(&["name"])),
    ("PodSpec", "resourceClaims", Keyed(&["name"])),
    ("PodSpec", "schedulingGates", Keyed(&["name"])),
    (
        "PodSpec",
        "topologySpreadConstraints",
        Keyed(&["topologyKey", "whenUnsatisfiable"]),
    ),
    ("PodSpec", "volumes", Keyed(&["name"])),
    ("ResourceRequirements", "claims", Keyed(&["name"])),
];

/// Adds to a definition what its published schema leaves out.
pub(super) fn apply(definition_name: &str, definition: &mut Map<String, Value>) {
    let type_name = definition_name.rsplit('.').next().unwrap_or(definition_name);
    if type_name == "Quantity" {
        // Published as any value; it is what our own quantity is.
        let quantity = Quantity::json_schema(&mut SchemaGenerator::default());
        definition.extend(quantity.as_object().cloned().unwrap_or_default());
    }
    if ATOMIC_TYPES.contains(&type_name) {
        definition.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    let Some(Value::Object(properties)) = definition.get_mut("properties") else {
        return;
    };
    if type_name == "ObjectMeta" {
        properties.retain(|field, _| EMBEDDED_METADATA.contains(&field.as_str()));
    }
    let defaults = defaults();
    let mut defaulted = Vec::new();
    for (field, property) in properties {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        if property.get("type").is_some_and(|kind| kind == "array") {
            mark_list(type_name, field, property);
        }
        if let Some((_, _, default)) = defaults
            .iter()
            .find(|(of, name, _)| (*of, *name) == (type_name, field))
        {
            property.insert("default".into(), default.clone());
            defaulted.push(Value::from(field.as_str()));
        }
        if (type_name, field.as_str()) == ("PodSpec", "nodeSelector") {
            property.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
    }
    // The published schema requires some fields that have a default and so may be left out.
    if let Some(Value::Array(required)) = definition.get_mut("required") {
        required.retain(|field| !defaulted.contains(field));
    }
}

fn mark_list(type_name: &str, field: &str, property: &mut Map<String, Value>) {
    let rule = LISTS
        .iter()
        .find(|(of, name, _)| (*of, *name) == (type_name, field));
    let list_type = match rule.map(|(_, _, list)| list) {
        Some(Unmarked) => return,
        Some(Set) => "set",
        Some(Keyed(keys)) => {
            property.insert("x-kubernetes-list-map-keys".into(), json!(keys));
            "map"
        }
        None => "atomic",
    };
    property.insert("x-kubernetes-list-type".into(), list_type.into());
}

/// Defaults that the API server fills in, by type and field.
fn defaults() -> [(&'static str, &'static str, Value); 19] {
    [
        // References by name: an empty name is allowed for clients of the first versions.
        ("ConfigMapEnvSource", "name", json!("")),
        ("ConfigMapKeySelector", "name", json!("")),
        ("ConfigMapProjection", "name", json!("")),
        ("ConfigMapVolumeSource", "name", json!("")),
        ("LocalObjectReference", "name", json!("")),
        ("SecretEnvSource", "name", json!("")),
        ("SecretKeySelector", "name", json!("")),
        ("SecretProjection", "name", json!("")),
        ("GRPCAction", "service", json!("")),
        ("ContainerPort", "protocol", json!("TCP")),
        ("FileKeySelector", "optional", json!(false)),
        ("AzureDiskVolumeSource", "fsType", json!("ext4")),
        ("AzureDiskVolumeSource", "readOnly", json!(false)),
        ("ISCSIVolumeSource", "iscsiInterface", json!("default")),
        ("RBDVolumeSource", "keyring", json!("/etc/ceph/keyring")),
        ("RBDVolumeSource", "pool", json!("rbd")),
        ("RBDVolumeSource", "user", json!("admin")),
        ("ScaleIOVolumeSource", "fsType", json!("xfs")),
        ("ScaleIOVolumeSource", "storageMode", json!("ThinProvisioned")),
    ]
}

/// Every type, with an empty field, and every field of a type that a rule names.
#[cfg(test)]
pub(super) fn fields_with_rules() -> Vec<(&'static str, &'static str)> {
    let types = ATOMIC_TYPES.iter().map(|type_name| (*type_name, ""));
    let lists = LISTS.iter().map(|(type_name, field, _)| (*type_name, *field));
    types
        .chain(lists)
        .chain(defaults().map(|(type_name, field, _)| (type_name, field)))
        .collect()
}
