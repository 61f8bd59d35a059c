//! An API server with the CRDs and the rules of admission, and whether it would take an object.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use volcano_admission::{Lookups, Options, review, webhooks};
use volcano_api::core::Labels;
use volcano_api::scheduling::Queue;
use volcano_apiserver::Plane;

/// Kinds that examples have: group and version, kind, plural, whether they are in a namespace.
const KINDS: [(&str, &str, &str, bool); 11] = [
    ("v1", "ConfigMap", "configmaps", true),
    ("v1", "Node", "nodes", false),
    ("v1", "Pod", "pods", true),
    ("v1", "Secret", "secrets", true),
    ("v1", "Service", "services", true),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", false),
    ("batch.volcano.sh/v1alpha1", "Job", "jobs", true),
    ("bus.volcano.sh/v1alpha1", "Command", "commands", true),
    ("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", true),
    ("scheduling.volcano.sh/v1beta1", "Queue", "queues", false),
    ("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", false),
];

/// The API server, and the queues that were taken so far: every queue is open at once.
pub struct Api {
    plane: Plane,
    queues: BTreeMap<String, Arc<Queue>>,
}

impl Api {
    /// With the queues `root` and `default`.
    pub async fn new() -> Api {
        let options = volcano_apiserver::Options {
            crds: volcano_api::crd::all(),
            ..volcano_apiserver::Options::default()
        };
        let plane = Plane::start(options).await.unwrap();
        let mut api = Api {
            plane,
            queues: BTreeMap::new(),
        };
        for name in ["root", "default"] {
            api.open(&json!({"metadata": {"name": name}, "spec": {}}));
        }
        api
    }

    fn open(&mut self, queue: &Value) {
        let mut queue: Queue = serde_json::from_value(queue.clone()).unwrap();
        queue.status = serde_json::from_value(json!({"state": "Open"})).unwrap();
        self.queues.insert(queue.metadata.name.clone(), Arc::new(queue));
    }

    /// Asks about all objects of a text of YAML, in their order: defaults, schema and rules. Those of a list are asked about one by one.
    pub async fn take_all(&mut self, text: &str) -> Result<Vec<Value>, String> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
        let mut taken = Vec::new();
        for object in documents.into_iter().filter(|it| !it.is_null()).flat_map(items) {
            let about = format!(
                "{} {}",
                text_of(&object["kind"]),
                text_of(&object["metadata"]["name"])
            );
            let object = self.take(object).await.map_err(|why| format!("{about}: {why}"))?;
            taken.push(object);
        }
        Ok(taken)
    }

    /// Asks about one; as it would be kept, or why it is refused.
    async fn take(&mut self, mut object: Value) -> Result<Value, String> {
        let is_it =
            |known: &&(&str, &str, &str, bool)| object["apiVersion"] == known.0 && object["kind"] == known.1;
        let known = KINDS.iter().find(is_it);
        let &(version, kind, plural, is_namespaced) =
            known.ok_or("its kind is not in the table of this test")?;
        let webhooks = |mutating: bool| {
            let of_kind = move |hook: &&webhooks::Webhook| {
                format!("{}/{}", hook.group, hook.version).trim_start_matches('/') == version
                    && hook.resource == plural
                    && hook.operations.contains(&"CREATE")
                    && hook.mutating == mutating
            };
            webhooks::ALL.iter().filter(of_kind)
        };
        for hook in webhooks(true) {
            self.ask(hook, &mut object)?;
        }
        let namespace = text_of(&object["metadata"]["namespace"]);
        let namespace = if namespace.is_empty() {
            "default"
        } else {
            namespace
        };
        let root = if version == "v1" { "/api" } else { "/apis" };
        let place = match is_namespaced {
            true => {
                self.ensure_namespace(namespace).await;
                format!("{root}/{version}/namespaces/{namespace}/{plural}")
            }
            false => format!("{root}/{version}/{plural}"),
        };
        // Pods name classes of priority, which have to be there; those that several files make are the same.
        let dry = if kind == "PriorityClass" {
            ""
        } else {
            "&dryRun=All"
        };
        let posted = self
            .post(&format!("{place}?fieldValidation=Strict{dry}"), &object)
            .await;
        let mut object = match posted {
            Err(why) if kind == "PriorityClass" && why.ends_with("already exists") => object,
            posted => posted?,
        };
        for hook in webhooks(false) {
            self.ask(hook, &mut object)?;
        }
        if kind == "Queue" {
            self.open(&object);
        }
        Ok(object)
    }

    /// Asks a rule of admission, and makes its changes.
    fn ask(&self, hook: &webhooks::Webhook, object: &mut Value) -> Result<(), String> {
        let request = json!({
            "uid": "u", "operation": "CREATE", "namespace": "default", "object": &*object,
            "resource": {"group": hook.group, "version": hook.version, "resource": hook.resource},
        });
        let body =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let response = review(hook.path, body.to_string().as_bytes(), self, &Options::default());
        if !response.allowed {
            return Err(format!("{}: {}", hook.path, response.message));
        }
        response.patch.apply(object).map_err(|error| format!("{error:?}"))
    }

    async fn ensure_namespace(&self, name: &str) {
        let object = json!({"metadata": {"name": name}});
        // It may be there already.
        let _ = self.post("/api/v1/namespaces", &object).await;
    }

    async fn post(&self, path: &str, object: &Value) -> Result<Value, String> {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        let answer = self.plane.client().request::<Value>(request).await;
        answer.map_err(|error| match error {
            kube::Error::Api(status) => status.message,
            other => other.to_string(),
        })
    }
}

impl Lookups for Api {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.queues.get(name).cloned()
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        self.queues.values().cloned().collect()
    }

    fn namespace_annotations(&self, _name: &str) -> Option<Labels> {
        None
    }

    fn has_time_zone(&self, _name: &str) -> bool {
        false
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The objects of a list, or the object itself.
fn items(object: Value) -> Vec<Value> {
    let Some(kind) = text_of(&object["kind"]).strip_suffix("List").map(str::to_owned) else {
        return vec![object];
    };
    let whole = |item: &Value| {
        let mut item = item.clone();
        item["apiVersion"] = object["apiVersion"].clone();
        item["kind"] = kind.as_str().into();
        item
    };
    object["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(whole)
        .collect()
}
