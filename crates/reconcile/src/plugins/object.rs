//! Objects beside the pods: how they should be, what is there, and the writes between the two.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use volcano_api::batch::Job;
use volcano_api::names::{Kind, job_plugins, kinds};

use super::PluginError;
use crate::write::{Fill, Target, Write, controller};

/// An object that a plugin makes.
pub struct Made {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Whether it outlives the job's pods.
    pub stays: bool,
}

impl Made {
    /// An object that goes with the job's pods.
    pub fn new(kind: Kind, name: String) -> Self {
        Made {
            kind,
            name,
            stays: false,
        }
    }
}

/// An object as it should be.
pub struct Wanted {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// All but its type and metadata.
    pub content: Map<String, Value>,
    /// What the executor has to fill in when it is made.
    pub fill: Option<Fill>,
}

/// What is there of the objects that the plugins of a job make.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    found: BTreeMap<(&'static str, String), Found>,
}

#[derive(Clone, Debug)]
struct Found {
    uid: String,
    owner: Option<Owner>,
    /// What is compared of it.
    data: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Owner {
    uid: String,
    shown: String,
}

impl Observed {
    /// Takes note of an object as it was read. Private keys are not kept.
    pub fn insert(&mut self, kind: Kind, object: &Value) {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owner = owners
            .filter(|owner| owner["controller"] == true)
            .map(|owner| Owner {
                uid: text(&owner["uid"]),
                shown: format!("{} {}", text(&owner["kind"]), text(&owner["name"])),
            })
            .next();
        let data = object["data"].as_object().into_iter().flatten();
        let found = Found {
            uid: text(&metadata["uid"]),
            owner,
            data: data
                .filter(|(key, _)| is_compared(kind, key))
                .map(|(key, value)| (key.clone(), text(value)))
                .collect(),
        };
        self.found.insert((kind.kind, text(&metadata["name"])), found);
    }

    /// Takes note that an object is gone.
    pub fn remove(&mut self, kind: Kind, name: &str) {
        self.found.remove(&(kind.kind, name.to_owned()));
    }

    /// Whether something in here belongs to something else than the job. It may be gone soon: the garbage collector takes
    /// the objects of an earlier job of that name away.
    pub fn has_others(&self, job: &Job) -> bool {
        let mut owners = self.found.values().filter_map(|found| found.owner.as_ref());
        owners.any(|owner| owner.uid != job.metadata.uid)
    }

    fn get(&self, kind: Kind, name: &str) -> Option<&Found> {
        self.found.get(&(kind.kind, name.to_owned()))
    }

    /// Deletes an object, if it is there and the job's own.
    pub fn removal(&self, job: &Job, made: &Made) -> Option<Write> {
        let found = self.get(made.kind, &made.name)?;
        let ours = matches!(&found.owner, Some(owner) if owner.uid == job.metadata.uid);
        ours.then(|| Write::Delete {
            target: target(job, made.kind, &made.name, &found.uid),
            foreground: false,
        })
    }
}

impl Wanted {
    /// An object with a spec.
    pub fn with_spec(kind: Kind, name: String, spec: Value) -> Self {
        Wanted {
            kind,
            name,
            content: Map::from_iter([("spec".to_owned(), spec)]),
            fill: None,
        }
    }

    /// An object with data.
    pub fn with_data(kind: Kind, name: String, data: Map<String, Value>) -> Self {
        Wanted {
            kind,
            name,
            content: Map::from_iter([("data".to_owned(), Value::Object(data))]),
            fill: None,
        }
    }

    /// What has to be written, if anything.
    ///
    /// Objects without a controller were there before the job; they are used, and given the data that the job needs.
    ///
    /// # Errors
    /// When an object of that name belongs to something else. That may be an earlier job of the same name, whose
    /// objects are about to be deleted.
    pub fn write(self, job: &Job, observed: &Observed) -> Result<Option<Write>, PluginError> {
        let Some(found) = observed.get(self.kind, &self.name) else {
            return Ok(Some(self.create(job)));
        };
        let ours = match &found.owner {
            Some(owner) if owner.uid != job.metadata.uid => {
                return Err(PluginError::Taken {
                    kind: self.kind.kind,
                    name: self.name,
                    owner: owner.shown.clone(),
                });
            }
            owner => owner.is_some(),
        };
        let changes = self.changes(found, ours);
        Ok((!changes.is_empty()).then(|| Write::Patch {
            target: target(job, self.kind, &self.name, &found.uid),
            patch: json!({"data": changes}),
            status: false,
            resource_version: None,
        }))
    }

    /// The entries of `data` that have to change. In an object of the job, entries that should not be there go.
    fn changes(&self, found: &Found, ours: bool) -> Map<String, Value> {
        let mut changes = Map::new();
        let Some(wanted) = self.content.get("data").and_then(Value::as_object) else {
            return changes;
        };
        for (key, value) in wanted.iter().filter(|(key, _)| is_compared(self.kind, key)) {
            if found.data.get(key).map(String::as_str) != value.as_str() {
                changes.insert(key.clone(), value.clone());
            }
        }
        for key in found.data.keys().filter(|key| ours && !wanted.contains_key(*key)) {
            changes.insert(key.clone(), Value::Null);
        }
        changes
    }

    fn create(self, job: &Job) -> Write {
        let mut body = self.content;
        body.insert("apiVersion".to_owned(), self.kind.api_version().into());
        body.insert("kind".to_owned(), self.kind.kind.into());
        let metadata = json!({
            "name": self.name,
            "namespace": job.metadata.namespace,
            "ownerReferences": [controller(job)],
        });
        body.insert("metadata".to_owned(), metadata);
        Write::Create {
            target: target(job, self.kind, &self.name, ""),
            body: Value::Object(body),
            fill: self.fill,
        }
    }
}

/// A text as a Secret has it.
pub fn encoded(text: &str) -> Value {
    BASE64.encode(text).into()
}

fn target(job: &Job, kind: Kind, name: &str, uid: &str) -> Target {
    Target {
        uid: uid.to_owned(),
        ..Target::named(kind, &job.metadata.namespace, name)
    }
}

/// Whether an entry of `data` is kept in line. The keys in a Secret are not: they are made once.
fn is_compared(kind: Kind, key: &str) -> bool {
    kind != kinds::SECRET || key == job_plugins::SSH_CONFIG
}
