//! Objects of the kinds that tests of a scheduler need, with what is alike in all of them filled in.

use serde_json::{Map, Value, json};
use volcano_api::names::{SCHEDULER, annotations, kinds};

/// Name of the image of every container; nothing ever pulls it.
const IMAGE: &str = "none";

/// A node that is ready. Its status is written after it, as the API server drops a status on creation.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    labels: Map<String, Value>,
    taints: Vec<Value>,
    amounts: Map<String, Value>,
    unschedulable: bool,
}

impl Node {
    /// A node with room for 110 pods, the label of its host name, and nothing else.
    pub fn new(name: &str) -> Self {
        let node = Node {
            name: name.to_owned(),
            labels: Map::new(),
            taints: Vec::new(),
            amounts: Map::new(),
            unschedulable: false,
        };
        node.resource("pods", "110").label("kubernetes.io/hostname", name)
    }

    /// Has this much processor, such as `8` or `500m`.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.resource("cpu", amount)
    }

    /// Has this much memory, such as `32Gi`.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.resource("memory", amount)
    }

    /// Has this much of a resource, all of it for pods.
    #[must_use]
    pub fn resource(mut self, name: &str, amount: &str) -> Self {
        self.amounts.insert(name.to_owned(), json!(amount));
        self
    }

    /// Carries a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), json!(value));
        self
    }

    /// Keeps away pods that do not tolerate it.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        self.taints
            .push(json!({"key": key, "value": value, "effect": effect}));
        self
    }

    /// Is cordoned.
    #[must_use]
    pub fn unschedulable(mut self) -> Self {
        self.unschedulable = true;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is created.
    pub fn object(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": self.labels},
            "spec": {"taints": self.taints, "unschedulable": self.unschedulable},
        })
    }

    /// What is then written as its status.
    pub fn status(&self) -> Value {
        json!({
            "capacity": self.amounts,
            "allocatable": self.amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        })
    }
}

/// A pod of one container for this project's scheduler.
#[derive(Clone, Debug)]
pub struct Pod {
    object: Value,
}

impl Pod {
    /// A pod that asks for nothing.
    pub fn new(namespace: &str, name: &str) -> Self {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "labels": {}, "annotations": {}},
            "spec": {
                "schedulerName": SCHEDULER,
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": IMAGE, "resources": {"requests": {}}}],
            },
        });
        Pod { object }
    }

    /// Asks for this much processor.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.request("cpu", amount)
    }

    /// Asks for this much memory.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.request("memory", amount)
    }

    /// Asks for this much of a resource; of an extended one the limit has to be the same, and is.
    #[must_use]
    pub fn request(mut self, name: &str, amount: &str) -> Self {
        let resources = &mut self.object["spec"]["containers"][0]["resources"];
        resources["requests"][name] = json!(amount);
        if name.contains('/') {
            resources["limits"][name] = json!(amount);
        }
        self
    }

    /// Belongs to a PodGroup.
    #[must_use]
    pub fn group(self, name: &str) -> Self {
        self.annotation(annotations::KUBE_GROUP_NAME, name)
    }

    /// Carries a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Carries an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// Sets a field of the specification.
    #[must_use]
    pub fn spec(mut self, field: &str, value: Value) -> Self {
        self.object["spec"][field] = value;
        self
    }

    /// The namespace that it is for.
    pub fn namespace(&self) -> &str {
        self.object["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    /// What is created.
    pub fn object(&self) -> &Value {
        &self.object
    }
}

/// A PodGroup in a queue (`default` if empty).
pub fn pod_group(namespace: &str, name: &str, min_member: u32, queue: &str) -> Value {
    let mut group = json!({
        "apiVersion": kinds::POD_GROUP.api_version(),
        "kind": kinds::POD_GROUP.kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"minMember": min_member},
    });
    if !queue.is_empty() {
        group["spec"]["queue"] = json!(queue);
    }
    group
}

/// A queue; `spec` has its further fields, or is null.
pub fn queue(name: &str, weight: u32, spec: &Value) -> Value {
    let mut fields = spec.as_object().cloned().unwrap_or_default();
    fields.insert("weight".to_owned(), json!(weight));
    json!({
        "apiVersion": kinds::QUEUE.api_version(),
        "kind": kinds::QUEUE.kind,
        "metadata": {"name": name},
        "spec": fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_resource_is_limited_to_its_request() {
        let pod = Pod::new("ns", "p").cpu("1").request("nvidia.com/gpu", "2");
        let resources = &pod.object()["spec"]["containers"][0]["resources"];
        assert_eq!(resources["requests"], json!({"cpu": "1", "nvidia.com/gpu": "2"}));
        assert_eq!(resources["limits"], json!({"nvidia.com/gpu": "2"}));
    }

    #[test]
    fn a_queue_has_its_weight_and_further_fields() {
        let queue = queue("q", 3, &json!({"reclaimable": false}));
        assert_eq!(queue["spec"], json!({"weight": 3, "reclaimable": false}));
    }
}
