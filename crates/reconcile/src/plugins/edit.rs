//! Changes to a pod as raw JSON. What is there already is not added a second time.

use serde_json::{Map, Value, json};

/// Which containers a change is for.
#[derive(Clone, Copy, PartialEq)]
pub enum Containers {
    /// Those that do the work.
    Normal,
    /// Those and the ones that run before them.
    All,
}

/// Changes containers of a pod, the init containers last.
pub fn each(
    pod: &mut Map<String, Value>,
    which: Containers,
    mut change: impl FnMut(&mut Map<String, Value>),
) {
    let keys: &[&str] = match which {
        Containers::Normal => &["containers"],
        Containers::All => &["containers", "initContainers"],
    };
    let spec = object(pod, "spec");
    for key in keys {
        let containers = spec.get_mut(*key).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                change(container);
            }
        }
    }
}

/// Sets a variable. One that the template has under this name gets the value in its place.
pub fn set_env(container: &mut Map<String, Value>, name: &str, value: &str) {
    put(container, "env", "name", json!({"name": name, "value": value}));
}

/// Sets a variable from a key of a ConfigMap.
pub fn set_env_from(container: &mut Map<String, Value>, name: &str, config_map: &str, key: &str) {
    let source = json!({"configMapKeyRef": {"name": config_map, "key": key}});
    put(
        container,
        "env",
        "name",
        json!({"name": name, "valueFrom": source}),
    );
}

/// Adds a port, unless the container has one of that number. The name goes to one port of a container only.
pub fn add_port(container: &mut Map<String, Value>, name: &str, number: i64) {
    let ports = list(container, "ports");
    if ports
        .iter()
        .any(|port| port["containerPort"].as_i64() == Some(number))
    {
        return;
    }
    let mut port = json!({"containerPort": number, "protocol": "TCP"});
    if ports.iter().all(|port| port["name"].as_str() != Some(name)) {
        port["name"] = name.into();
    }
    ports.push(port);
}

/// Adds a volume, unless the pod has one of that name.
pub fn add_volume(pod: &mut Map<String, Value>, volume: Value) {
    add(list(object(pod, "spec"), "volumes"), "name", volume);
}

/// Adds a mount, unless something is mounted there already.
pub fn add_mount(container: &mut Map<String, Value>, mount: Value) {
    add(list(container, "volumeMounts"), "mountPath", mount);
}

/// Adds an init container, unless the pod has one of that name.
pub fn add_init_container(pod: &mut Map<String, Value>, container: Value) {
    add(list(object(pod, "spec"), "initContainers"), "name", container);
}

/// Sets a text of the pod's spec that is empty.
pub fn set_if_empty(pod: &mut Map<String, Value>, key: &str, value: &str) {
    let spec = object(pod, "spec");
    if text(spec, key).is_empty() {
        spec.insert(key.to_owned(), value.into());
    }
}

/// A text of an object; empty when it is missing.
pub fn text<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The object under a key, made when it is missing.
pub fn object<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = parent.entry(key).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made an object above")
}

/// The list under a key, made when it is missing.
fn list<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Vec<Value> {
    let value = parent.entry(key).or_insert(Value::Null);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it was made a list above")
}

/// Adds an entry to a list, unless one has the same value under `key`.
fn add(entries: &mut Vec<Value>, key: &str, entry: Value) {
    if entries.iter().all(|have| have[key] != entry[key]) {
        entries.push(entry);
    }
}

/// Adds an entry to a list, in the place of those that have the same value under `by`.
fn put(parent: &mut Map<String, Value>, key: &str, by: &str, entry: Value) {
    let entries = list(parent, key);
    match entries.iter().position(|have| have[by] == entry[by]) {
        None => entries.push(entry),
        Some(first) => {
            let mut at = 0;
            entries.retain(|have| {
                at += 1;
                at <= first + 1 || have[by] != entry[by]
            });
            entries[first] = entry;
        }
    }
}
