//! A cluster of queues and namespaces, and reviews to be asked in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use volcano_admission::{Lookups, Options, Response, review, webhooks};
use volcano_api::core::Labels;
use volcano_api::scheduling::Queue;

/// What the rules can look up, and the settings that they follow.
#[derive(Default)]
pub struct World {
    queues: BTreeMap<String, Arc<Queue>>,
    namespaces: BTreeMap<String, Labels>,
    zones: BTreeSet<&'static str>,
    pub options: Options,
}

impl World {
    /// Two open queues, `root` and `default`, and the time zone `Europe/Berlin`.
    pub fn new() -> Self {
        let mut world = World {
            zones: BTreeSet::from(["Europe/Berlin"]),
            ..World::default()
        };
        world.add("root", json!({}));
        world.add("default", json!({"parent": "root"}));
        world
    }

    /// Adds an open queue.
    pub fn add(&mut self, name: &str, spec: Value) -> &mut Self {
        self.stored(json!({"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}))
    }

    /// Adds a queue as it is.
    pub fn stored(&mut self, queue: Value) -> &mut Self {
        let queue: Queue = serde_json::from_value(queue).expect("the queue is readable");
        self.queues.insert(queue.metadata.name.clone(), Arc::new(queue));
        self
    }

    /// Adds a namespace with one annotation.
    pub fn namespace(&mut self, name: &str, key: &str, value: &str) -> &mut Self {
        let annotations = Labels::from([(key.to_owned(), value.to_owned())]);
        self.namespaces.insert(name.to_owned(), annotations);
        self
    }

    /// Asks about a new object.
    pub fn create(&self, path: &str, object: &Value) -> Response {
        self.ask(path, json!({"operation": "CREATE", "object": object}))
    }

    /// Asks about a changed object.
    pub fn update(&self, path: &str, old: &Value, new: &Value) -> Response {
        self.ask(
            path,
            json!({"operation": "UPDATE", "object": new, "oldObject": old}),
        )
    }

    /// Asks a request, to which what each has is added.
    pub fn ask(&self, path: &str, request: Value) -> Response {
        review(
            path,
            envelope(path, request).to_string().as_bytes(),
            self,
            &self.options,
        )
    }

    /// Why a new object is refused; empty when it is not.
    pub fn refusal(&self, path: &str, object: &Value) -> String {
        refusal(&self.create(path, object))
    }

    /// The changes to a new object.
    pub fn changes(&self, path: &str, object: &Value) -> Value {
        let response = self.create(path, object);
        assert!(response.allowed, "refused: {}", response.message);
        serde_json::to_value(&response.patch).expect("a patch is JSON")
    }

    /// A new object after its changes.
    pub fn mutated(&self, path: &str, object: &Value) -> Value {
        let response = self.create(path, object);
        assert!(response.allowed, "refused: {}", response.message);
        let mut object = object.clone();
        response
            .patch
            .apply(&mut object)
            .expect("the changes have a place");
        object
    }
}

impl Lookups for World {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.queues.get(name).cloned()
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        self.queues.values().cloned().collect()
    }

    fn namespace_annotations(&self, name: &str) -> Option<Labels> {
        self.namespaces.get(name).cloned()
    }

    fn has_time_zone(&self, name: &str) -> bool {
        self.zones.contains(name)
    }
}

/// A review with a request to a path.
pub fn envelope(path: &str, mut request: Value) -> Value {
    let webhook = webhooks::find(path).expect("the path is one of ours");
    let resource = json!({"group": webhook.group, "version": webhook.version, "resource": webhook.resource});
    request["uid"] = "u-1".into();
    request["resource"] = resource;
    if request.get("namespace").is_none() {
        request["namespace"] = "ns".into();
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

/// Why a request is refused; empty when it is not.
pub fn refusal(response: &Response) -> String {
    assert_eq!(response.uid, "u-1");
    assert_eq!(response.allowed, response.message.is_empty(), "{response:?}");
    response.message.clone()
}

/// Changes a value at a JSON pointer, making what is missing on the way.
pub fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let mut at = &mut object;
    for part in pointer.split('/').skip(1) {
        at = match part.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[part],
        };
    }
    *at = value;
    object
}

/// A Job that is admitted as it is.
pub fn job() -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {"queue": "default", "schedulerName": "volcano", "minAvailable": 1, "maxRetry": 3, "tasks": [task("t")]},
    })
}

/// A task that is admitted as it is.
pub fn task(name: &str) -> Value {
    json!({
        "name": name, "replicas": 1, "minAvailable": 1, "maxRetry": 3,
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    })
}
