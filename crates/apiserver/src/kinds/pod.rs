//! Pods: what is filled in.

use super::default;
use serde_json::{Value, json};

/// Fills in what a pod leaves out.
pub fn fill(pod: &mut Value) {
    if !pod["spec"].is_object() {
        return;
    }
    fill_spec(&mut pod["spec"]);
}

/// The same for the pod of a template.
pub fn fill_spec(spec: &mut Value) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
    ] {
        default(spec, field, value);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            fill_container(container, list != "ephemeralContainers");
        }
    }
    for volume in spec
        .get_mut("volumes")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        fill_volume(volume);
    }
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        default(spec, "serviceAccount", account);
    } else if let Some(account) = spec.get("serviceAccount").cloned() {
        default(spec, "serviceAccountName", account);
    }
}

fn fill_container(container: &mut Value, has_resources: bool) {
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default();
    let latest = !image.contains('@') && (!tag.contains(':') || tag.ends_with(":latest"));
    let policy = if latest { "Always" } else { "IfNotPresent" };
    for (field, value) in [
        ("imagePullPolicy", json!(policy)),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
    ] {
        default(container, field, value);
    }
    if has_resources {
        default(container, "resources", json!({}));
    }
    for port in container
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        default(port, "protocol", json!("TCP"));
    }
    for env in container
        .get_mut("env")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(reference) = env.pointer_mut("/valueFrom/fieldRef") {
            default(reference, "apiVersion", json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            fill_probe(probe);
        }
    }
    requests_from_limits(&mut container["resources"]);
}

fn fill_probe(probe: &mut Value) {
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        default(probe, field, json!(value));
    }
    if let Some(get) = probe.get_mut("httpGet").filter(|get| get.is_object()) {
        default(get, "path", json!("/"));
        default(get, "scheme", json!("HTTP"));
    }
}

/// A limit without a request asks for as much.
fn requests_from_limits(resources: &mut Value) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    default(resources, "requests", json!({}));
    for (name, limit) in limits {
        default(&mut resources["requests"], &name, limit);
    }
}

const FILE_MODE: i64 = 420;

fn fill_volume(volume: &mut Value) {
    for (source, field) in [
        ("configMap", "defaultMode"),
        ("secret", "defaultMode"),
        ("downwardAPI", "defaultMode"),
        ("projected", "defaultMode"),
    ] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            default(source, field, json!(FILE_MODE));
        }
    }
    if let Some(path) = volume.get_mut("hostPath").filter(|path| path.is_object()) {
        default(path, "type", json!(""));
    }
    let has_source = volume
        .as_object()
        .is_some_and(|fields| fields.keys().any(|key| key != "name"));
    if !has_source {
        volume["emptyDir"] = json!({});
    }
    let items = |volume: &mut Value, pointer: &str| {
        for item in volume
            .pointer_mut(pointer)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(reference) = item.get_mut("fieldRef").filter(|reference| reference.is_object()) {
                default(reference, "apiVersion", json!("v1"));
            }
        }
    };
    items(volume, "/downwardAPI/items");
}

/// The class of a pod by what it asks for.
pub fn qos_class(pod: &Value) -> &'static str {
    let lists = ["containers", "initContainers"];
    let containers = lists
        .iter()
        .flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
    let mut guaranteed = true;
    let mut best_effort = true;
    for container in containers {
        let resources = &container["resources"];
        for name in ["cpu", "memory"] {
            let (request, limit) = (&resources["requests"][name], &resources["limits"][name]);
            let set = |amount: &Value| !amount.is_null() && !matches!(amount.as_str(), Some("0" | "0m"));
            best_effort &= !set(request) && !set(limit);
            guaranteed &= set(limit) && (request == limit || request.is_null());
        }
    }
    match (guaranteed, best_effort) {
        (_, true) => "BestEffort",
        (true, false) => "Guaranteed",
        (false, false) => "Burstable",
    }
}
