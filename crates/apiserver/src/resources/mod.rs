//! What is served: one descriptor for each resource, built in or from a CRD. Everything else is generic over them.

mod builtin;
pub mod crd;

pub use builtin::{Nature, TABLE};

use crate::fault::{About, Fault};
use crate::schema::Schema;
use crate::store::{Selectable, TableId};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// A column of `kubectl get`, from a CRD.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its definition, as tables have it.
    pub definition: Value,
    /// Where its value is.
    pub path: String,
}

/// The scale subresource: where its parts are in the object, as JSON pointers.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Wished replicas.
    pub spec: String,
    /// Actual replicas.
    pub status: String,
    /// Selector as a text.
    pub selector: Option<String>,
}

/// A served resource.
#[derive(Debug)]
pub struct Resource {
    /// Where its objects are; versions of a kind share it.
    pub table: TableId,
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Name in paths.
    pub plural: String,
    /// Name for one.
    pub singular: String,
    /// Names for those in a hurry.
    pub short_names: Vec<String>,
    /// Groups of resources that it is in, such as `all`.
    pub categories: Vec<String>,
    /// Its objects are in namespaces.
    pub namespaced: bool,
    /// It has a status that is written apart.
    pub status: bool,
    /// It can be scaled.
    pub scale: Option<Scale>,
    /// Fields to select by.
    pub selectable: Vec<Selectable>,
    /// What is special about it.
    pub nature: Nature,
    /// Columns, if it is from a CRD.
    pub columns: Vec<Column>,
    /// It is from a CRD.
    pub is_custom: bool,
    /// It is the version that objects are stored in.
    pub is_storage: bool,
    /// Clients can ask for it. The version that objects are stored in may be kept from them.
    pub is_served: bool,
    /// Schema as it is published, if it is from a CRD.
    pub published: Value,
    schema: OnceLock<Arc<Schema>>,
    make_schema: Option<fn() -> Arc<Schema>>,
}

impl Resource {
    /// `group/version`, or the version alone.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The schema; that of a built-in kind is made when it is first asked for.
    pub fn schema(&self) -> &Arc<Schema> {
        self.schema
            .get_or_init(|| self.make_schema.map(|make| make()).unwrap_or_default())
    }

    /// For messages that name the resource.
    pub fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            group: &self.group,
            what: &self.plural,
            name,
        }
    }

    /// For messages that name the kind.
    pub fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        About {
            group: &self.group,
            what: &self.kind,
            name,
        }
    }

    /// The key of an object in the store.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        match self.namespaced {
            true => format!("{namespace}/{name}"),
            false => name.to_owned(),
        }
    }

    /// Refuses a field selector that is not known.
    pub fn unknown_field(&self, field: &str) -> Fault {
        Fault::bad_request(format!("field label not supported: {field}"))
    }
}

/// All that is served. Replaced as a whole when a CRD comes or goes.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    resources: Vec<Arc<Resource>>,
    by_path: FxHashMap<(String, String, String), Arc<Resource>>,
}

impl Registry {
    /// Adds a resource.
    pub fn add(&mut self, resource: Resource) {
        let resource = Arc::new(resource);
        if resource.is_served {
            let path = (
                resource.group.clone(),
                resource.version.clone(),
                resource.plural.clone(),
            );
            self.by_path.insert(path, resource.clone());
        }
        self.resources.push(resource);
    }

    /// Removes all versions of a resource.
    pub fn remove(&mut self, group: &str, plural: &str) {
        self.resources
            .retain(|resource| resource.group != group || resource.plural != plural);
        self.by_path
            .retain(|(of, _, name), _| of != group || name != plural);
    }

    /// By group, version and plural.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        // No borrowed form of a tuple of texts exists; a request looks here once.
        self.by_path
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The resource whose objects are in a table.
    pub fn of_table(&self, table: TableId) -> Option<&Arc<Resource>> {
        self.resources
            .iter()
            .find(|resource| resource.table == table && resource.is_storage)
    }

    /// The one of a built-in nature.
    pub fn of_nature(&self, nature: Nature) -> &Arc<Resource> {
        let found = self.resources.iter().find(|resource| resource.nature == nature);
        found.expect("built-in resources are never removed")
    }

    /// All, in the order that they were added.
    pub fn all(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// Those that clients can ask for.
    pub fn served(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter().filter(|resource| resource.is_served)
    }
}

/// The built-in resources; their tables are numbered as they come.
pub fn built_in(mut new_table: impl FnMut() -> TableId) -> Registry {
    let mut registry = Registry::default();
    for row in TABLE {
        registry.add(Resource {
            table: new_table(),
            group: row.group.to_owned(),
            version: row.version.to_owned(),
            kind: row.kind.to_owned(),
            list_kind: format!("{}List", row.kind),
            plural: row.plural.to_owned(),
            singular: row.kind.to_lowercase(),
            short_names: row.short_names.iter().map(|name| (*name).to_owned()).collect(),
            categories: row.categories.iter().map(|name| (*name).to_owned()).collect(),
            namespaced: row.namespaced,
            status: row.status,
            scale: row.scale.then(|| Scale {
                spec: "/spec/replicas".to_owned(),
                status: "/status/replicas".to_owned(),
                selector: None,
            }),
            selectable: row.fields.iter().map(|field| Selectable::new(field)).collect(),
            nature: row.nature,
            columns: Vec::new(),
            is_custom: false,
            is_storage: true,
            is_served: true,
            published: Value::Null,
            schema: OnceLock::new(),
            make_schema: Some(row.schema),
        });
    }
    registry
}
