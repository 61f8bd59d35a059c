//! The verbs: what a request does to the store. One path for all resources; kinds come in through their descriptor.

mod admit;
mod create;
mod delete;
mod modify;
mod read;
mod sub;

pub use delete::{DeleteOptions, Deleted, FOREGROUND, ORPHAN, Propagation, asks_dry_run};
pub use modify::Patch;
pub use read::{ListOptions, out_of_reach, page_metadata};

use crate::fault::Fault;
use crate::resources::Resource;
use crate::server::locked;
use crate::store::Object;
use bytes::Bytes;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// What happens to fields that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the client is told.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Name of the user.
    pub user: String,
    /// Groups.
    pub groups: Vec<String>,
}

/// A request on an object, its words apart.
#[derive(Debug)]
pub struct Call<'a> {
    /// What kind of objects.
    pub resource: &'a Arc<Resource>,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Name; empty for a collection.
    pub name: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Who asks.
    pub caller: &'a Caller,
    /// Nothing is to be written.
    pub dry_run: bool,
    /// Who manages the fields; what is not named is not recorded.
    pub manager: Option<String>,
    /// Take fields from others.
    pub force: bool,
    /// What happens to unknown fields.
    pub validation: Validation,
    /// What the client should know.
    pub warnings: Mutex<Vec<String>>,
}

impl<'a> Call<'a> {
    /// A call of the server itself.
    pub fn own(
        resource: &'a Arc<Resource>,
        namespace: &'a str,
        name: &'a str,
        caller: &'a Caller,
    ) -> Call<'a> {
        Call {
            resource,
            namespace,
            name,
            subresource: "",
            caller,
            dry_run: false,
            manager: None,
            force: false,
            validation: Validation::Ignore,
            warnings: Mutex::default(),
        }
    }

    /// Tells the client.
    pub fn warn(&self, text: String) {
        locked(&self.warnings).push(text);
    }

    /// The key in the store.
    pub fn key(&self) -> String {
        self.resource.key(self.namespace, self.name)
    }

    /// There is no such object.
    pub fn not_found(&self) -> Fault {
        Fault::not_found(&self.resource.about(self.name))
    }
}

/// What came of a write.
#[derive(Debug)]
pub struct Written {
    /// The object, as the client gets it.
    pub object: Arc<Object>,
    /// It is new.
    pub created: bool,
}

/// The bytes of an object in the version that was asked for: versions differ in their name only.
pub fn rendered(resource: &Resource, object: &Object) -> Bytes {
    if is_in_version(resource, object) {
        return object.bytes.clone();
    }
    serde_json::to_vec(&in_version(resource, object))
        .unwrap_or_default()
        .into()
}

/// An object in the version that was asked for.
pub fn in_version(resource: &Resource, object: &Object) -> Value {
    let mut value = object.value();
    if resource.is_custom {
        value["apiVersion"] = resource.api_version().into();
    }
    value
}

/// Whether an object is certainly stored in a version. Which one is the storage version may have changed since it was
/// written, so that the object is asked: its first field is nearly always this one, and no other has to be read.
fn is_in_version(resource: &Resource, object: &Object) -> bool {
    let version = format!("{{\"apiVersion\":\"{}\"", resource.api_version());
    !resource.is_custom || object.bytes.starts_with(version.as_bytes())
}
