//! Manifests and the cluster: what it has of their kinds, whether it would take them, and their creation.

use super::Stop;
use super::manifests::{Manifest, alone};
use crate::api::{Api, encoded};
use crate::failure::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use volcano_api::names::{kinds, queues};
use volcano_runtime::client::{self, CallError, Patch};

/// How long the controllers may take to open a queue.
const OPENS: Duration = Duration::from_secs(10);
/// How long the cluster may take to serve a kind that has been defined.
const SERVES: Duration = Duration::from_secs(30);
/// How often it is looked whether they have, or it does.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a cluster says that it has of a version of a group.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
}

/// A manifest whose place in the cluster is known.
pub struct Placed {
    /// The manifest, with its namespace.
    pub manifest: Manifest,
    /// Its namespace; empty if its kind has none.
    pub namespace: String,
    /// `batch.volcano.sh/v1alpha1` as a part of a path.
    root: String,
    resource: Resource,
}

impl Placed {
    /// The path of all objects of the kind in the namespace.
    fn path(&self, namespace: &str) -> String {
        match self.resource.namespaced {
            true => format!(
                "{}/namespaces/{}/{}",
                self.root,
                encoded(namespace),
                self.resource.name
            ),
            false => format!("{}/{}", self.root, self.resource.name),
        }
    }

    /// Whether there may be one already, which then gets what the manifest says: what runs must be new.
    fn may_exist(&self) -> bool {
        !self.manifest.is_job() && !self.manifest.is_pod()
    }
}

/// Waits until Jobs are taken that name no queue, in a system that has just started.
pub async fn wait_ready(api: &Api) {
    let path = client::Resource::from(kinds::QUEUE).object("", queues::DEFAULT);
    wait_open(api, &path).await;
}

/// Finds the place of each manifest. Those without a namespace get this one.
pub async fn place(api: &Api, manifests: Vec<Manifest>, namespace: &str) -> Result<Vec<Placed>, Stop> {
    let mut known: BTreeMap<String, Vec<Resource>> = BTreeMap::new();
    let (mut placed, mut wrong) = (Vec::new(), Vec::new());
    for mut manifest in manifests {
        let version = manifest.api_version().to_owned();
        let root = match version.contains('/') {
            true => format!("/apis/{}", encoded(&version).replace("%2F", "/")),
            false => format!("/api/{}", encoded(&version)),
        };
        if !known.contains_key(&version) {
            known.insert(version.clone(), resources(api, &root).await?);
        }
        let of_kind = |resource: &&Resource| resource.kind == manifest.kind() && !resource.name.contains('/');
        let Some(resource) = known[&version].iter().find(of_kind).cloned() else {
            let problem = format!("the cluster has no kind {} in {version}", manifest.kind());
            wrong.push(manifest.wrong(problem));
            continue;
        };
        let mut own = String::new();
        if resource.namespaced {
            own = match manifest.text("/metadata/namespace") {
                "" => namespace.to_owned(),
                given => given.to_owned(),
            };
            manifest.object["metadata"]["namespace"] = json!(own);
        }
        placed.push(Placed {
            manifest,
            namespace: own,
            root,
            resource,
        });
    }
    match wrong.is_empty() {
        true => Ok(placed),
        false => Err(Stop::Refused(Failure::new(wrong.join("\n")).hint(
            "are apiVersion and kind spelled right? kubectl api-resources shows what there is",
        ))),
    }
}

async fn resources(api: &Api, root: &str) -> Result<Vec<Resource>, Failure> {
    match api.read::<Resources>(root).await {
        Ok(found) => Ok(found.resources),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(api.failure(&error)),
    }
}

/// Asks the cluster whether it would take them all, before any is created: everything that is wrong is told at once.
pub async fn rehearse(api: &Api, placed: &[Placed]) -> Result<(), Stop> {
    let manifests: Vec<_> = placed.iter().map(|placed| placed.manifest.clone()).collect();
    let mut wrong = Vec::new();
    for one in placed {
        let object = alone(&one.manifest, &manifests);
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(&one.namespace);
        let path = format!("{}?dryRun=All&fieldValidation=Strict", one.path(namespace));
        match api.create_at(&path, &object).await {
            Ok(_) => {}
            // Where it is tried in place of its own namespace, which is yet to be made, there may be one.
            Err(error) if exists(&error) && (one.may_exist() || namespace != one.namespace) => {}
            // Nothing was said about the object.
            Err(error) if error.code() == 0 || error.code() == 401 || error.code() >= 500 => {
                return Err(api.failure(&error).after(&one.manifest.wrong("")).into());
            }
            Err(error) => wrong.push(one.manifest.wrong(message(&error))),
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Stop::Refused(Failure::new(wrong.join("\n")))),
    }
}

/// Creates one, or changes the one that is there. It as it is stored.
pub async fn create(api: &Api, placed: &Placed) -> Result<Value, Failure> {
    let path = placed.path(&placed.namespace);
    let created = match api.create_at(&path, &placed.manifest.object).await {
        Err(error) if exists(&error) && placed.may_exist() => {
            let object = format!("{path}/{}", encoded(placed.manifest.name()));
            api.patch_at(&object, Patch::Merge, &placed.manifest.object).await
        }
        created => created,
    };
    let stored = created.map_err(|error| api.failure(&error).after(&placed.manifest.wrong("")))?;
    if placed.manifest.kind() == "Queue" {
        wait_open(api, &format!("{path}/{}", encoded(placed.manifest.name()))).await;
    }
    Ok(stored)
}

/// Waits until the kind of a definition that has been created is served, so that its objects can be placed.
pub async fn wait_served(api: &Api, definition: &Placed) -> Result<(), Stop> {
    let path = format!(
        "{}/{}",
        definition.path(&definition.namespace),
        encoded(definition.manifest.name())
    );
    let began = Instant::now();
    loop {
        let stored = api.read::<Value>(&path).await;
        let stored = stored.map_err(|error| api.failure(&error).after(&definition.manifest.wrong("")))?;
        if is_established(&stored) && is_served(api, &stored["spec"]).await? {
            return Ok(());
        }
        if began.elapsed() > SERVES {
            let problem = format!(
                "it has been created, but its kind is not served after {SERVES:?}{}",
                shortcomings(&stored)
            );
            return Err(Stop::Refused(Failure::new(definition.manifest.wrong(problem))));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn conditions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
}

fn is_established(definition: &Value) -> bool {
    conditions(definition)
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// What a definition says of why its kind is not served.
fn shortcomings(definition: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    conditions(definition)
        .filter(|condition| condition["status"] == "False")
        .map(|condition| format!("; {}: {}", text(&condition["type"]), text(&condition["message"])))
        .collect()
}

/// Whether discovery, which follows a moment after the definition is established, has its kind in all versions.
async fn is_served(api: &Api, spec: &Value) -> Result<bool, Failure> {
    let text = |value: &Value| encoded(value.as_str().unwrap_or_default());
    let is_its = |resource: &Resource| spec["names"]["kind"] == resource.kind;
    let versions = spec["versions"].as_array().into_iter().flatten();
    for version in versions.filter(|version| version["served"] == true) {
        let root = format!("/apis/{}/{}", text(&spec["group"]), text(&version["name"]));
        let found = resources(api, &root).await?;
        if !found.iter().any(is_its) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits until the controllers have seen a queue: until it has a state, admission refuses Jobs for it. Who may not read it
/// has to try.
async fn wait_open(api: &Api, path: &str) {
    let began = Instant::now();
    while began.elapsed() < OPENS {
        match api.read::<Value>(path).await {
            Ok(queue) if queue["status"]["state"].as_str().is_none_or(str::is_empty) => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            _ => return,
        }
    }
}

fn exists(error: &CallError) -> bool {
    matches!(error, CallError::Refused { code: 409, reason, .. } if reason == "AlreadyExists")
}

fn message(error: &CallError) -> String {
    match error {
        CallError::Refused { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Answer, Fake};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn a_definition_is_waited_for_until_discovery_has_its_kind() {
        let asked = AtomicUsize::new(0);
        let fake = Fake::serve(move |path| {
            let turn = asked.fetch_add(1, Ordering::Relaxed);
            if path == "/apis/example.com/v1" {
                return match turn {
                    ..4 => Answer::refused(404, "the server could not find the requested resource"),
                    _ => Answer::object(&json!({"resources": [{"name": "widgets", "kind": "Widget"}]})),
                };
            }
            assert_eq!(
                path,
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
            );
            let established = if turn == 0 { "False" } else { "True" };
            Answer::object(&json!({
                "spec": {
                    "group": "example.com",
                    "names": {"kind": "Widget"},
                    "versions": [{"name": "v1", "served": true}, {"name": "v0", "served": false}],
                },
                "status": {"conditions": [{"type": "Established", "status": established}]},
            }))
        })
        .await;
        let definition = Placed {
            manifest: Manifest {
                origin: "widgets.yaml".to_owned(),
                object: json!({"metadata": {"name": "widgets.example.com"}}),
            },
            namespace: String::new(),
            root: "/apis/apiextensions.k8s.io/v1".to_owned(),
            resource: Resource {
                name: "customresourcedefinitions".to_owned(),
                ..Resource::default()
            },
        };
        wait_served(&fake.api().await, &definition).await.unwrap();
    }

    #[test]
    fn what_keeps_a_kind_from_being_served_is_told() {
        let definition = json!({"status": {"conditions": [
            {"type": "NamesAccepted", "status": "False", "message": "\"Widget\" is already in use"},
            {"type": "Terminating", "status": "Unknown"},
        ]}});
        assert!(!is_established(&definition));
        assert_eq!(
            shortcomings(&definition),
            "; NamesAccepted: \"Widget\" is already in use"
        );
        assert_eq!(shortcomings(&Value::Null), "");
    }
}
