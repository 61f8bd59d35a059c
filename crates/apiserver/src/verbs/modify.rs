//! Update, patch and apply: all change what is there, against the version that they read.

use super::admit::problems;
use super::create::counts_generations;
use super::{Call, Written, in_version};
use crate::admission::Operation;
use crate::apply;
use crate::fault::{Fault, FieldError};
use crate::kinds::meta;
use crate::limits;
use crate::patch;
use crate::resources::{Nature, Resource, crd};
use crate::server::Server;
use crate::store::{Clash, Expect, Object};
use serde_json::{Value, json};
use std::sync::Arc;

/// Times that a change is made again when somebody was faster.
const TRIES: usize = 16;

/// A change of a part.
#[derive(Debug)]
pub enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own.
    Strategic(Value),
    /// Server-side apply.
    Apply(Value),
}

/// What an attempt came to.
enum Attempt {
    Done(Written),
    Again,
}

impl Server {
    /// Replaces an object, or its status.
    pub async fn update(&self, call: &Call<'_>, mut body: Value) -> Result<Written, Fault> {
        self.decode(call, &mut body)?;
        let is_placed = body["metadata"]["namespace"]
            .as_str()
            .is_some_and(|namespace| !namespace.is_empty());
        if call.resource.namespaced && !is_placed {
            body["metadata"]["namespace"] = call.namespace.into();
        }
        if call.resource.is_custom
            && body["metadata"]["resourceVersion"]
                .as_str()
                .is_none_or(str::is_empty)
        {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(Fault::invalid(&call.resource.about_kind(call.name), &[error]));
        }
        self.modify(call, |_| Ok(body.clone())).await
    }

    /// Changes a part of an object.
    pub async fn patch(&self, call: &Call<'_>, patch: Patch) -> Result<Written, Fault> {
        let resource = call.resource;
        match patch {
            Patch::Json(body) => {
                let operations = patch::parse_json_patch(&body).map_err(Fault::bad_request)?;
                let change = |old: &Value| {
                    let mut new = old.clone();
                    patch::json_patch(&mut new, &operations).map_err(|problem| rejected(&problem))?;
                    Ok(new)
                };
                self.modify_decoded(call, change).await
            }
            Patch::Merge(body) => {
                let change = |old: &Value| {
                    let mut new = old.clone();
                    patch::merge(&mut new, &body);
                    Ok(new)
                };
                self.modify_decoded(call, change).await
            }
            Patch::Strategic(body) => {
                let change = |old: &Value| {
                    let mut new = old.clone();
                    patch::strategic_merge(&mut new, &body, Some(resource.schema()))
                        .map_err(Fault::bad_request)?;
                    Ok(new)
                };
                self.modify_decoded(call, change).await
            }
            Patch::Apply(body) => self.apply(call, body).await,
        }
    }

    async fn apply(&self, call: &Call<'_>, mut body: Value) -> Result<Written, Fault> {
        let resource = call.resource;
        if call.manager.is_none() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            let about = crate::fault::About {
                group: "meta.k8s.io",
                what: "PatchOptions",
                name: "",
            };
            return Err(Fault::invalid(&about, &[error]));
        }
        if body["metadata"]["managedFields"]
            .as_array()
            .is_some_and(|entries| !entries.is_empty())
        {
            return Err(Fault::bad_request("metadata.managedFields must be nil"));
        }
        super::admit::identify(resource, &mut body)?;
        let unknown = crate::schema::prune(&mut body, resource.schema());
        self.refuse_unknown(call, &unknown)?;
        let (api_version, now) = (resource.api_version(), self.now());
        let writer = self.writer(call, &api_version, &now);
        if self.get(resource.table, &call.key()).is_none() {
            if !call.subresource.is_empty() {
                return Err(call.not_found());
            }
            body["metadata"]["name"] = call.name.into();
            if !body["metadata"]["uid"].as_str().unwrap_or_default().is_empty() {
                return Err(Fault::conflict(
                    &resource.about(call.name),
                    "uid mismatch: the provided object specified a uid, and no existing object was found",
                ));
            }
            let mut object = apply::apply(
                &Value::Null,
                &body,
                resource.schema(),
                &writer,
                call.force,
                resource.status,
            )?;
            if resource.namespaced {
                object["metadata"]["namespace"] = call.namespace.into();
            }
            self.decode(call, &mut object)?;
            match self.create_decoded(call, object).await {
                Err(fault) if fault.reason == "AlreadyExists" => {}
                created => return created,
            }
        }
        let change = |old: &Value| {
            let mut new = apply::apply(
                old,
                &body,
                resource.schema(),
                &writer,
                call.force,
                resource.status,
            )?;
            // Nobody owns the version, but whoever names one wants no other.
            if let Some(version) = body["metadata"]["resourceVersion"].as_str() {
                new["metadata"]["resourceVersion"] = version.into();
            }
            Ok(new)
        };
        self.modify_with(call, change, true).await
    }

    /// Changes an object by a function of what is there; what comes out is read as a client's body is.
    pub(super) async fn modify_decoded(
        &self,
        call: &Call<'_>,
        change: impl Fn(&Value) -> Result<Value, Fault>,
    ) -> Result<Written, Fault> {
        let decoded = |old: &Value| {
            let mut new = change(old)?;
            if !new.is_object() {
                return Err(Fault::bad_request(
                    "the patch makes something that is not an object",
                ));
            }
            // Most changes are of statuses; a specification that stays was read when it came. Not so that of a custom
            // resource, whose schema may have changed since.
            let spec = new.get_mut("spec").filter(|spec| old.get("spec") == Some(spec));
            let spec = spec.filter(|_| !call.resource.is_custom).map(Value::take);
            self.decode(call, &mut new)?;
            if let Some(spec) = spec {
                new["spec"] = spec;
            }
            Ok(new)
        };
        self.modify(call, decoded).await
    }

    /// Changes an object by a function of what is there.
    pub(crate) async fn modify(
        &self,
        call: &Call<'_>,
        change: impl Fn(&Value) -> Result<Value, Fault>,
    ) -> Result<Written, Fault> {
        self.modify_with(call, change, false).await
    }

    async fn modify_with(
        &self,
        call: &Call<'_>,
        change: impl Fn(&Value) -> Result<Value, Fault>,
        applies: bool,
    ) -> Result<Written, Fault> {
        let key = call.key();
        for _ in 0..TRIES {
            let current = self
                .get(call.resource.table, &key)
                .ok_or_else(|| call.not_found())?;
            let old = in_version(call.resource, &current);
            let new = change(&old)?;
            match self.attempt(call, &key, &current, &old, new, applies).await? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Again => {}
            }
        }
        Err(Fault::modified(&call.resource.about(call.name)))
    }

    async fn attempt(
        &self,
        call: &Call<'_>,
        key: &str,
        current: &Arc<Object>,
        old: &Value,
        mut new: Value,
        applies: bool,
    ) -> Result<Attempt, Fault> {
        let resource = call.resource;
        let about = resource.about(call.name);
        check_place(call, &new)?;
        let given = |field: &str| new["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (version, uid) = (given("resourceVersion"), given("uid"));
        if !version.is_empty() && version != current.revision.to_string() {
            return Err(Fault::modified(&about));
        }
        if !uid.is_empty() && *uid != *current.uid {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                current.uid
            );
            return Err(Fault::conflict(&about, &why));
        }
        self.settle_parts(call, &mut new, old);
        // What other subresources do is the server's own doing.
        let reviewed = matches!(call.subresource, "" | "status");
        if reviewed
            && self
                .hooks
                .mutate(self, call, Operation::Update, &mut new, Some(old))
                .await?
        {
            self.unpruned(call, &mut new)?;
            self.settle_parts(call, &mut new, old);
        }
        bump_generation(resource, &mut new, old);
        if resource.nature == Nature::Definition && call.subresource.is_empty() {
            let status = old["status"].clone();
            crd::accepted(&mut new, &status, &self.now());
            keep_times(&mut new["status"], &status);
        }
        let errors = problems(resource, &new, Some(old), call.subresource);
        if !errors.is_empty() {
            return Err(Fault::invalid(&resource.about_kind(call.name), &errors));
        }
        if reviewed {
            self.hooks
                .validate(self, call, Operation::Update, Some(&new), Some(old))
                .await?;
        }
        if applies {
            // Defaults of what was applied are nobody's.
            super::admit::fill(resource, &mut new);
        } else {
            self.record(call, old, &mut new);
        }
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        let unchanged = same(&new, old, applies);
        let gone = is_done(resource, &new);
        if unchanged && !gone {
            self.settled(current.revision).await?;
            return Ok(Attempt::Done(Written {
                object: current.clone(),
                created: false,
            }));
        }
        limits::check(&new)?;
        self.store_version(resource, &mut new);
        if call.dry_run {
            self.settled(current.revision).await?;
            let object = Object::new(key, new, current.revision, &resource.selectable);
            return Ok(Attempt::Done(Written {
                object: Arc::new(object),
                created: false,
            }));
        }
        let expect = Expect::At(current.revision);
        let event = match gone {
            true => self.remove(resource, key, expect, new),
            false => self.put(resource, key, expect, new),
        };
        match event {
            Ok(event) => {
                self.settled(event.revision()).await?;
                Ok(Attempt::Done(Written {
                    object: event.object.clone(),
                    created: false,
                }))
            }
            Err(Clash::Missing) => Err(call.not_found()),
            // A client that named a version is told so the next time.
            Err(_) => Ok(Attempt::Again),
        }
    }

    /// Who changed what, if anybody asked for that to be known.
    fn record(&self, call: &Call<'_>, old: &Value, new: &mut Value) {
        let tracked = apply::is_tracked(old);
        if call.manager.is_none() && !tracked {
            if let Some(metadata) = new["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            return;
        }
        let (api_version, now) = (call.resource.api_version(), self.now());
        apply::track(
            old,
            new,
            call.resource.schema(),
            &self.writer(call, &api_version, &now),
        );
    }

    /// The status is written through its own path, and all else not.
    fn settle_parts(&self, call: &Call<'_>, new: &mut Value, old: &Value) {
        let resource = call.resource;
        meta::keep(new, old);
        let Some(fields) = new.as_object_mut() else { return };
        match call.subresource {
            "status" => {
                let Some(before) = old.as_object() else { return };
                fields.retain(|name, _| name == "status" || before.contains_key(name));
                // Labels and finalizers of custom resources are not written this way; annotations of nodes and pods are.
                let managed = match fields.get_mut("metadata") {
                    Some(sent) if resource.is_custom => sent["managedFields"].take(),
                    _ => Value::Null,
                };
                for (name, value) in before {
                    let is_sent = name == "metadata" && !resource.is_custom;
                    if name != "status" && !is_sent && fields.get(name) != Some(value) {
                        fields.insert(name.clone(), value.clone());
                    }
                }
                if resource.is_custom
                    && let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut)
                {
                    metadata.remove("managedFields");
                    if !managed.is_null() {
                        metadata.insert("managedFields".to_owned(), managed);
                    }
                }
            }
            _ if resource.status && call.subresource.is_empty() => {
                match old.get("status") {
                    Some(status) => fields.insert("status".to_owned(), status.clone()),
                    None => fields.remove("status"),
                };
            }
            _ => {}
        }
        if resource.nature == Nature::Namespace && call.subresource != "finalize" {
            fields.insert("spec".to_owned(), old["spec"].clone());
        }
    }

    fn refuse_unknown(&self, call: &Call<'_>, unknown: &[String]) -> Result<(), Fault> {
        if unknown.is_empty() {
            return Ok(());
        }
        // An apply is typed: what the schema does not know cannot be owned.
        let Resource { kind, .. } = &**call.resource;
        let fields: Vec<String> = unknown
            .iter()
            .map(|field| format!(".{field}: field not declared in schema"))
            .collect();
        let message = format!(
            "failed to create typed patch object ({}/{}; {}, Kind={kind}): {}",
            call.namespace,
            call.name,
            call.resource.api_version(),
            fields.join(", ")
        );
        Err(Fault::new(500, "", message))
    }
}

/// An object stays where it is, under its name.
fn check_place(call: &Call<'_>, object: &Value) -> Result<(), Fault> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match text("name") {
        name if name == call.name => {}
        "" => return Err(Fault::bad_request("name must be provided")),
        name => {
            let url = call.name;
            let message =
                format!("the name of the object ({name}) does not match the name on the URL ({url})");
            return Err(Fault::bad_request(message));
        }
    }
    if call.resource.namespaced && text("namespace") != call.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Fault::bad_request(message));
    }
    Ok(())
}

/// The answer to a JSON patch that cannot be applied.
fn rejected(problem: &str) -> Fault {
    let mut fault = Fault::new(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    fault.details = Some(json!({"causes": [{"reason": "UnexpectedServerResponse", "message": problem}]}));
    fault
}

/// A change of what is wished makes a new generation.
fn bump_generation(resource: &Resource, new: &mut Value, old: &Value) {
    if !counts_generations(resource) {
        return;
    }
    let (Some(after), Some(before)) = (new.as_object(), old.as_object()) else {
        return;
    };
    let counts = |name: &str| match resource.is_custom {
        true => name != "metadata" && !(name == "status" && resource.status),
        false => name == "spec" || name == "webhooks",
    };
    let changed = after
        .iter()
        .any(|(name, value)| counts(name) && before.get(name) != Some(value))
        || before
            .keys()
            .any(|name| counts(name) && !after.contains_key(name));
    if changed {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        new["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Conditions that were there keep the time of their change.
fn keep_times(status: &mut Value, old: &Value) {
    let known = old["conditions"].as_array().cloned().unwrap_or_default();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        let before = known
            .iter()
            .find(|one| one["type"] == condition["type"] && one["status"] == condition["status"]);
        if let Some(before) = before {
            condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
        }
    }
}

/// Whether nothing changed, apart from when who wrote it.
fn same(new: &Value, old: &Value, applies: bool) -> bool {
    if new == old {
        return true;
    }
    if applies {
        return false;
    }
    let bare = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        value
    };
    (apply::is_tracked(new) && apply::is_tracked(old)) && bare(new) == bare(old)
}

/// An object that was to go, and that nothing holds any more.
fn is_done(resource: &Resource, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    let waits = metadata["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or_default()
        > 0;
    let held = resource.nature == Nature::Namespace && !empty(&object["spec"]["finalizers"]);
    !metadata["deletionTimestamp"].is_null() && empty(&metadata["finalizers"]) && !waits && !held
}
