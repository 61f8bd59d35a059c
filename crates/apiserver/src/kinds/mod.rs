//! What Kubernetes does to its own kinds beyond storing them: defaults on the way in, and rules.
//!
//! Only what the system and its users rely on is here; docs/apiserver.md lists what is not.

pub mod meta;
mod pod;
mod pod_rules;
mod service;
#[cfg(test)]
mod tests;

pub use service::ClusterAddresses;

use crate::fault::FieldError;
use crate::resources::{Nature, Resource};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// Puts defaults into an object of a built-in kind, as decoding does: before webhooks and after them.
pub fn fill(resource: &Resource, object: &mut Value) {
    match resource.nature {
        Nature::Pod => pod::fill(object),
        Nature::Service => service::fill(object),
        Nature::Secret => secret(object),
        Nature::Namespace => namespace(object),
        Nature::PriorityClass => default(object, "preemptionPolicy", json!("PreemptLowerPriority")),
        Nature::Claim => default(&mut object["spec"], "volumeMode", json!("Filesystem")),
        Nature::Volume => volume(object),
        Nature::Workload => workload(resource, object),
        Nature::Mutating | Nature::Validating => webhooks(object, resource.nature == Nature::Mutating),
        Nature::Plain if resource.plural == "storageclasses" => {
            default(object, "reclaimPolicy", json!("Delete"));
            default(object, "volumeBindingMode", json!("Immediate"));
        }
        _ => {}
    }
}

/// What the server sets on a new object, whatever the client sent.
pub fn prepare_new(resource: &Resource, object: &mut Value) {
    match resource.nature {
        Nature::Pod => {
            let class = pod::qos_class(object);
            object["status"] = json!({"phase": "Pending", "qosClass": class});
        }
        Nature::Namespace => object["status"] = json!({"phase": "Active"}),
        Nature::Claim | Nature::Volume => object["status"] = json!({"phase": "Pending"}),
        Nature::Service => object["status"] = json!({"loadBalancer": {}}),
        // A kubelet registers with a status.
        Nature::Node => {}
        _ if resource.status => {
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
        }
        _ => {}
    }
}

/// What is wrong with an object of a built-in kind.
pub fn check(resource: &Resource, object: &Value) -> Vec<FieldError> {
    match resource.nature {
        Nature::Pod => pod_rules::check(object),
        Nature::Service => service::check(object),
        Nature::ConfigMap | Nature::Secret => keys(object),
        Nature::PriorityClass => priority_class(object),
        _ => Vec::new(),
    }
}

/// What is wrong with a change of an object of a built-in kind.
pub fn check_change(resource: &Resource, object: &Value, old: &Value) -> Vec<FieldError> {
    let immutable = "field is immutable";
    match resource.nature {
        Nature::Pod => pod_rules::check_change(object, old),
        Nature::ConfigMap | Nature::Secret if old["immutable"] == true => {
            let mut errors = Vec::new();
            let fields: &[&str] = match resource.nature {
                Nature::Secret => &["data"],
                _ => &["data", "binaryData"],
            };
            if object["immutable"] != true {
                errors.push(FieldError::forbidden(
                    "immutable",
                    "field is immutable when `immutable` is set",
                ));
            }
            for field in fields {
                if object[field] != old[field] {
                    errors.push(FieldError::forbidden(
                        *field,
                        "field is immutable when `immutable` is set",
                    ));
                }
            }
            errors
        }
        Nature::Secret if object["type"] != old["type"] => {
            vec![FieldError::invalid("type", object["type"].clone(), immutable)]
        }
        Nature::PriorityClass if object["value"] != old["value"] => {
            vec![FieldError::forbidden("value", "may not be changed in an update.")]
        }
        Nature::Service
            if object["spec"]["clusterIP"] != old["spec"]["clusterIP"]
                && !old["spec"]["clusterIP"].is_null() =>
        {
            let value = object["spec"]["clusterIPs"].clone();
            vec![FieldError::invalid(
                "spec.clusterIPs[0]",
                value,
                "may not change once set",
            )]
        }
        _ => Vec::new(),
    }
}

/// Sets a field that is not there.
pub(crate) fn default(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        let found = fields.get(field);
        if found.is_none_or(Value::is_null) {
            fields.insert(field.to_owned(), value);
        }
    }
}

fn secret(secret: &mut Value) {
    default(secret, "type", json!("Opaque"));
    let Some(fields) = secret.as_object_mut() else {
        return;
    };
    let Some(Value::Object(texts)) = fields.remove("stringData") else {
        return;
    };
    let data = fields.entry("data").or_insert_with(|| json!({}));
    for (key, text) in texts {
        data[key] = BASE64.encode(text.as_str().unwrap_or_default()).into();
    }
}

fn namespace(namespace: &mut Value) {
    let name = namespace["metadata"]["name"].clone();
    if name.is_string() {
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
    if namespace["spec"]["finalizers"].is_null() && namespace["metadata"]["deletionTimestamp"].is_null() {
        namespace["spec"]["finalizers"] = json!(["kubernetes"]);
    }
}

fn volume(volume: &mut Value) {
    let spec = &mut volume["spec"];
    default(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
    default(spec, "volumeMode", json!("Filesystem"));
}

fn workload(resource: &Resource, object: &mut Value) {
    if resource.scale.is_some() {
        default(&mut object["spec"], "replicas", json!(1));
    }
    if resource.kind == "Job" {
        let spec = &mut object["spec"];
        // Pods that work side by side are done when one of them is, unless it is said how many have to be.
        if spec["parallelism"].is_null() {
            default(spec, "completions", json!(1));
        }
        default(spec, "parallelism", json!(1));
        default(spec, "backoffLimit", json!(6));
    }
    if matches!(resource.kind.as_str(), "Job" | "CronJob") {
        default(&mut object["spec"], "suspend", json!(false));
    }
    if object["spec"]["template"]["spec"].is_object() {
        pod::fill_spec(&mut object["spec"]["template"]["spec"]);
    }
}

fn webhooks(configuration: &mut Value, mutating: bool) {
    for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
        for (field, value) in [
            ("failurePolicy", json!("Fail")),
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("timeoutSeconds", json!(10)),
        ] {
            default(webhook, field, value);
        }
        if mutating {
            default(webhook, "reinvocationPolicy", json!("Never"));
        }
        for rule in webhook["rules"].as_array_mut().into_iter().flatten() {
            default(rule, "scope", json!("*"));
        }
        if webhook["clientConfig"]["service"].is_object() {
            default(&mut webhook["clientConfig"]["service"], "port", json!(443));
        }
    }
}

fn keys(object: &Value) -> Vec<FieldError> {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let mut errors = Vec::new();
    for field in ["data", "binaryData"] {
        for key in object[field]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
        {
            if key.is_empty() || key.len() > 253 || !key.chars().all(inner) {
                let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                     or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                errors.push(FieldError::invalid(
                    format!("{field}[{key}]"),
                    key.as_str(),
                    detail,
                ));
            }
        }
    }
    errors
}

/// Highest value that users give.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;

fn priority_class(class: &Value) -> Vec<FieldError> {
    let name = class["metadata"]["name"].as_str().unwrap_or_default();
    let value = class["value"].as_i64().unwrap_or_default();
    if !name.starts_with("system-") && value > HIGHEST_PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}");
        return vec![FieldError::forbidden("value", detail)];
    }
    Vec::new()
}
