//! Create.

use super::admit::{fill, problems, read_values};
use super::{Call, Written};
use crate::admission::Operation;
use crate::apply;
use crate::fault::Fault;
use crate::kinds;
use crate::limits;
use crate::resources::{Nature, Resource, crd};
use crate::server::Server;
use crate::store::{Event, Expect, Object};
use serde_json::{Value, json};
use std::sync::Arc;

/// Longest part of a generated name that is the client's.
const LONGEST_PREFIX: usize = 58;
/// Names that are tried when generated ones are taken.
const NAME_TRIES: usize = 8;

/// Whether generations of a kind are counted.
pub(super) fn counts_generations(resource: &Resource) -> bool {
    let counted = matches!(
        resource.nature,
        Nature::Pod
            | Nature::Workload
            | Nature::Budget
            | Nature::Definition
            | Nature::Mutating
            | Nature::Validating
    );
    resource.is_custom || counted || resource.group == "networking.k8s.io"
}

impl Server {
    /// Creates an object.
    pub async fn create(&self, call: &Call<'_>, mut object: Value) -> Result<Written, Fault> {
        self.decode(call, &mut object)?;
        self.create_decoded(call, object).await
    }

    /// Creates an object that has been decoded.
    pub(super) async fn create_decoded(&self, call: &Call<'_>, mut object: Value) -> Result<Written, Fault> {
        let resource = call.resource;
        let generated = self.name_and_place(call, &mut object)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let named = Call {
            name: &name,
            warnings: std::sync::Mutex::default(),
            manager: call.manager.clone(),
            ..*call
        };
        let admitted = self.admit(&named, object).await;
        // What the webhooks had to say goes to the client that asked.
        for warning in crate::server::locked(&named.warnings).drain(..) {
            call.warn(warning);
        }
        let object = admitted?;
        if call.dry_run {
            if self.get(resource.table, &named.key()).is_some() {
                return Err(Fault::already_exists(&resource.about(&name)));
            }
            let mut kept = Object::new(&named.key(), object.clone(), 0, &resource.selectable);
            let mut object = object;
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            kept.bytes = serde_json::to_vec(&object).unwrap_or_default().into();
            return Ok(Written {
                object: Arc::new(kept),
                created: true,
            });
        }
        self.store_new(&named, object, generated.as_deref()).await
    }

    async fn store_new(
        &self,
        call: &Call<'_>,
        object: Value,
        prefix: Option<&str>,
    ) -> Result<Written, Fault> {
        let taken = || Fault::already_exists(&call.resource.about(call.name));
        let event = match prefix {
            None => self
                .put(call.resource, &call.key(), Expect::Absent, object)
                .map_err(|_| taken())?,
            Some(prefix) => self.store_generated(call, object, prefix).ok_or_else(taken)?,
        };
        self.settled(event.revision()).await?;
        Ok(Written {
            object: event.object.clone(),
            created: true,
        })
    }

    /// Tries other names when a generated one is taken.
    fn store_generated(&self, call: &Call<'_>, mut object: Value, prefix: &str) -> Option<Arc<Event>> {
        let mut key = call.key();
        for _ in 0..NAME_TRIES {
            if let Ok(event) = self.put(call.resource, &key, Expect::Absent, object.clone()) {
                return Some(event);
            }
            let name = format!("{prefix}{}", self.suffix());
            key = call.resource.key(call.namespace, &name);
            object["metadata"]["name"] = name.into();
        }
        None
    }

    /// Everything between the body of a request and the store.
    async fn admit(&self, call: &Call<'_>, mut object: Value) -> Result<Value, Fault> {
        let resource = call.resource;
        self.check_namespace(call)?;
        self.admit_new(call, &mut object)?;
        self.set_server_fields(call, &mut object);
        if self
            .hooks
            .mutate(self, call, Operation::Create, &mut object, None)
            .await?
        {
            self.unpruned(call, &mut object)?;
        }
        kinds::prepare_new(resource, &mut object);
        if resource.is_custom
            && resource.status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        if resource.nature == Nature::Definition {
            crd::accepted(&mut object, &Value::Null, &self.now());
        }
        let errors = problems(resource, &object, None, "");
        if !errors.is_empty() {
            return Err(Fault::invalid(&resource.about_kind(call.name), &errors));
        }
        self.hooks
            .validate(self, call, Operation::Create, Some(&object), None)
            .await?;
        if call.manager.is_some() {
            let api_version = resource.api_version();
            let now = self.now();
            if !apply::is_tracked(&object) {
                apply::track(
                    &json!({}),
                    &mut object,
                    resource.schema(),
                    &self.writer(call, &api_version, &now),
                );
            }
        } else if !apply::is_tracked(&object)
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("managedFields");
        }
        limits::check(&object)?;
        self.store_version(resource, &mut object);
        Ok(object)
    }

    /// Objects are stored in one version.
    pub(super) fn store_version(&self, resource: &Resource, object: &mut Value) {
        if !resource.is_storage
            && let Some(storage) = self.registry().of_table(resource.table)
        {
            object["apiVersion"] = storage.api_version().into();
        }
    }

    /// What a webhook made of an object is read like what a client sends.
    pub(super) fn unpruned(&self, call: &Call<'_>, object: &mut Value) -> Result<(), Fault> {
        crate::schema::prune(object, call.resource.schema());
        if !call.resource.is_custom {
            read_values(call.resource, object).map_err(|problem| {
                Fault::internal(format!("a webhook made an object that cannot be read: {problem}"))
            })?;
        }
        fill(call.resource, object);
        Ok(())
    }

    pub(super) fn writer<'a>(
        &self,
        call: &'a Call<'_>,
        api_version: &'a str,
        now: &'a str,
    ) -> apply::Writer<'a> {
        apply::Writer {
            manager: call.manager.as_deref().unwrap_or("unknown"),
            api_version,
            subresource: call.subresource,
            now,
        }
    }

    /// The name and the namespace; the prefix of a generated name.
    fn name_and_place(&self, call: &Call<'_>, object: &mut Value) -> Result<Option<String>, Fault> {
        let metadata = &mut object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if !text(&metadata["resourceVersion"]).is_empty() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Fault::new(500, "", message));
        }
        if call.resource.namespaced {
            let given = text(&metadata["namespace"]);
            if !given.is_empty() && given != call.namespace {
                let message =
                    "the namespace of the provided object does not match the namespace sent on the request";
                return Err(Fault::bad_request(message));
            }
            metadata["namespace"] = call.namespace.into();
        } else if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("namespace");
        }
        let (name, prefix) = (text(&metadata["name"]), text(&metadata["generateName"]));
        if name.is_empty() && !call.name.is_empty() {
            metadata["name"] = call.name.into();
            return Ok(None);
        }
        if !name.is_empty() && !call.name.is_empty() && name != call.name {
            let message = format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                call.name
            );
            return Err(Fault::bad_request(message));
        }
        if !name.is_empty() || prefix.is_empty() {
            return Ok(None);
        }
        let prefix: String = prefix.chars().take(LONGEST_PREFIX).collect();
        metadata["name"] = format!("{prefix}{}", self.suffix()).into();
        Ok(Some(prefix))
    }

    fn set_server_fields(&self, call: &Call<'_>, object: &mut Value) {
        let Some(metadata) = object["metadata"].as_object_mut() else {
            return;
        };
        for field in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "resourceVersion",
            "generation",
        ] {
            metadata.remove(field);
        }
        metadata.insert("uid".to_owned(), self.uid().into());
        metadata.insert("creationTimestamp".to_owned(), self.now().into());
        if counts_generations(call.resource) {
            metadata.insert("generation".to_owned(), 1.into());
        }
    }
}
