//! The objects of manifests: read from texts, checked for what every object has, and put in the order in which they can be
//! created.

use crate::failure::Failure;
use crate::output::files;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// Kinds that others refer to, in the order in which they have to be there. What is not listed comes after them, what
/// makes pods last.
const FIRST: [&str; 19] = [
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
    "ConfigMap",
    "Secret",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
    "Node",
    "HyperNode",
    "Queue",
];
const LAST: [&str; 6] = ["PodGroup", "JobTemplate", "Pod", "Job", "CronJob", "JobFlow"];

/// An object, and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// File, and the number of the document where it has several.
    pub origin: String,
    /// The object, as it is written.
    pub object: Value,
}

impl Manifest {
    /// A field of the object that is a text; empty without.
    pub fn text(&self, pointer: &str) -> &str {
        let found = self.object.pointer(pointer);
        found.and_then(Value::as_str).unwrap_or_default()
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// Its name; empty when the server is to make one.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Whether it is one of Volcano's Jobs.
    pub fn is_job(&self) -> bool {
        self.kind() == "Job" && self.api_version().starts_with("batch.volcano.sh/")
    }

    /// Whether it is a pod.
    pub fn is_pod(&self) -> bool {
        self.kind() == "Pod" && self.api_version() == "v1"
    }

    /// Whether it defines a kind, of which others may be.
    pub fn is_definition(&self) -> bool {
        self.kind() == "CustomResourceDefinition" && self.api_version().starts_with("apiextensions.k8s.io/")
    }

    /// Something about it that is wrong.
    pub fn wrong(&self, problem: impl fmt::Display) -> String {
        format!("{} ({self}): {problem}", self.origin)
    }

    /// What every object has to have.
    fn check(&self) -> Result<(), String> {
        let missing = |field: &str| Err(format!("{}: {field} is missing, or not a text", self.origin));
        if !self.object.is_object() {
            return Err(format!("{}: it is not an object with fields", self.origin));
        }
        for (field, value) in [("apiVersion", self.api_version()), ("kind", self.kind())] {
            if value.is_empty() {
                return missing(field);
            }
        }
        if self.name().is_empty() && self.text("/metadata/generateName").is_empty() {
            return missing("metadata.name");
        }
        match self.object.pointer("/metadata/namespace") {
            None | Some(Value::Null | Value::String(_)) => Ok(()),
            Some(_) => missing("metadata.namespace"),
        }
    }

    fn rank(&self) -> usize {
        if self.kind() == "Job" && !self.is_job() {
            return FIRST.len();
        }
        let first = FIRST.iter().position(|kind| *kind == self.kind());
        let last = LAST.iter().position(|kind| *kind == self.kind());
        first
            .or(last.map(|at| FIRST.len() + 1 + at))
            .unwrap_or(FIRST.len())
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.name() {
            "" => self.text("/metadata/generateName"),
            name => name,
        };
        write!(f, "{} {name}", self.kind())
    }
}

/// Everything that is to be created.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    all: Vec<Manifest>,
    wrong: Vec<String>,
}

impl Manifests {
    /// Reads a text: documents of YAML or JSON, and `List`s of objects.
    pub fn add(&mut self, file: &str, text: &str) {
        let documents = files::documents(text);
        let several = documents.len() > 1;
        for (at, document) in documents.iter().enumerate() {
            let origin = match several {
                true => format!("{file}, document {}", at + 1),
                false => file.to_owned(),
            };
            match files::object(document) {
                Ok(object) => self.take(&origin, object),
                Err(error) => {
                    let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.wrong.push(format!("{origin}: {line}"));
                }
            }
        }
    }

    fn take(&mut self, origin: &str, mut object: Value) {
        let is_list = object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        if let (true, Some(items)) = (is_list, object.get_mut("items").and_then(Value::as_array_mut)) {
            for (at, item) in std::mem::take(items).into_iter().enumerate() {
                self.take(&format!("{origin}, items[{at}]"), item);
            }
            return;
        }
        let manifest = Manifest {
            origin: origin.to_owned(),
            object,
        };
        match manifest.check() {
            Ok(()) => self.all.push(manifest),
            Err(problem) => self.wrong.push(problem),
        }
    }

    /// All objects in the order in which they can be created.
    ///
    /// # Errors
    /// When something cannot be read, or when there is nothing that runs.
    pub fn finish(mut self) -> Result<Vec<Manifest>, Failure> {
        if !self.wrong.is_empty() {
            return Err(Failure::new(self.wrong.join("\n")));
        }
        if !self
            .all
            .iter()
            .any(|manifest| manifest.is_job() || manifest.is_pod())
        {
            return Err(Failure::new("there is no Job and no Pod to run in these files")
                .hint("kubectl apply creates other objects; volcano up is a cluster to create them in"));
        }
        let mut seen = BTreeSet::new();
        for manifest in self.all.iter().filter(|manifest| !manifest.name().is_empty()) {
            let key = (
                manifest.api_version(),
                manifest.kind(),
                manifest.text("/metadata/namespace"),
                manifest.name(),
            );
            if !seen.insert(key) {
                return Err(Failure::new(manifest.wrong("it is there twice")));
            }
        }
        self.all.sort_by_key(Manifest::rank);
        Ok(parents_first(self.all))
    }
}

/// Queues after the queue that they are part of.
fn parents_first(mut manifests: Vec<Manifest>) -> Vec<Manifest> {
    let mut sorted: Vec<Manifest> = Vec::with_capacity(manifests.len());
    while !manifests.is_empty() {
        let waits = |manifest: &Manifest| {
            let parent = manifest.text("/spec/parent");
            let has = |other: &Manifest| other.kind() == "Queue" && other.name() == parent;
            manifest.kind() == "Queue" && parent != manifest.name() && manifests.iter().any(has)
        };
        // A ring of parents has no order; the server says what is wrong with it.
        let next = manifests
            .iter()
            .position(|manifest| !waits(manifest))
            .unwrap_or(0);
        sorted.push(manifests.remove(next));
    }
    sorted
}

/// Names of the objects of a kind among these.
fn names<'a>(manifests: &'a [Manifest], kind: &str) -> BTreeSet<&'a str> {
    let of_kind = manifests.iter().filter(|manifest| manifest.kind() == kind);
    of_kind.map(Manifest::name).collect()
}

/// The object without what refers to others of these manifests: what can be tried before those are there.
pub fn alone(manifest: &Manifest, all: &[Manifest]) -> Value {
    let mut object = manifest.object.clone();
    let drop_if = |value: &mut Value, field: &str, names: &BTreeSet<&str>| {
        let given = value.get(field).and_then(Value::as_str);
        let refers = given.is_some_and(|name| names.contains(name));
        if let (true, Some(fields)) = (refers, value.as_object_mut()) {
            fields.remove(field);
        }
    };
    let (queues, classes) = (names(all, "Queue"), names(all, "PriorityClass"));
    let accounts = names(all, "ServiceAccount");
    if let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) {
        drop_if(spec, "queue", &queues);
        drop_if(spec, "parent", &queues);
        drop_if(spec, "priorityClassName", &classes);
        drop_if(spec, "serviceAccountName", &accounts);
        let tasks = spec.get_mut("tasks").and_then(Value::as_array_mut);
        for task in tasks.into_iter().flatten() {
            let spec = task.pointer_mut("/template/spec");
            if let Some(spec) = spec.filter(|spec| spec.is_object()) {
                drop_if(spec, "priorityClassName", &classes);
                drop_if(spec, "serviceAccountName", &accounts);
            }
        }
    }
    if names(all, "Namespace").contains(manifest.text("/metadata/namespace")) {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Manifest>, Failure> {
        let mut manifests = Manifests::default();
        manifests.add("job.yaml", text);
        manifests.finish()
    }

    fn told(text: &str) -> String {
        match read(text).unwrap_err() {
            Failure::Told { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }

    const JOB: &str =
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {queue: child}\n";

    #[test]
    fn objects_are_ordered_by_what_they_need() {
        let text = format!(
            "{JOB}---\napiVersion: v1\nkind: Pod\nmetadata: {{generateName: p-}}\n---\n\
             apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: child}}\nspec: {{parent: top}}\n---\n\
             apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: top}}\n---\n\
             apiVersion: example.com/v1\nkind: Other\nmetadata: {{name: o}}\n---\n\
             kind: List\nitems:\n- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}}}\n"
        );
        let shown: Vec<_> = read(&text).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "ConfigMap c",
                "Queue top",
                "Queue child",
                "Other o",
                "Pod p-",
                "Job j"
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_file_document_and_field() {
        assert_eq!(
            told(&format!(
                "{JOB}---\nkind: Queue\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: 3}}\n"
            )),
            "job.yaml, document 2: apiVersion is missing, or not a text\n\
             job.yaml, document 3: metadata.name is missing, or not a text"
        );
        assert!(told("a: [1").starts_with("job.yaml: "));
        assert!(told("- 1").contains("not an object"));
        assert!(told("").contains("no Job and no Pod"));
        assert_eq!(
            told(&format!("{JOB}---\n{JOB}")),
            "job.yaml, document 2 (Job j): it is there twice"
        );
    }

    #[test]
    fn an_error_of_yaml_has_the_line_of_the_file() {
        let told = told(&format!("{JOB}---\na: 1\nb: 'x\n"));
        assert!(told.contains("line 7") || told.contains("line 8"), "{told}");
    }

    #[test]
    fn what_is_created_together_is_tried_alone() {
        let all = read(&format!(
            "{JOB}---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: child}}\n"
        ))
        .unwrap();
        let job = all.iter().find(|manifest| manifest.is_job()).unwrap();
        assert_eq!(alone(job, &all)["spec"], json!({}));
        assert_eq!(alone(job, &[])["spec"], json!({"queue": "child"}));
        let made = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n---\n\
                    apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ns}\n";
        let all = read(made).unwrap();
        assert_eq!(
            alone(&all[1], &all)["metadata"],
            json!({"name": "p", "namespace": "default"})
        );
    }
}
