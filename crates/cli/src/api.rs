//! Calls to the API server: paths with what users typed made harmless, lists by pages, failures that can be told.

use crate::args::ConnectArgs;
use crate::failure::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write as _;
use std::marker::PhantomData;
use volcano_api::names::Kind;
use volcano_api::protobuf::Tables;
use volcano_api::time::Time;
use volcano_runtime::client::{CallError, Client, Frames, Page, Patch, Resource};

/// Objects of a page. Large enough that few questions are asked, small enough that a page of large objects is no
/// burden: only the part of each object that is printed is kept.
const PAGE: usize = 500;

/// A connection.
#[derive(Clone)]
pub struct Api {
    client: Client,
}

/// Which objects of a kind.
#[derive(Clone, Debug)]
pub struct Scope {
    kind: Kind,
    namespace: String,
    labels: String,
    fields: String,
}

impl Scope {
    /// Those of a namespace; of all when it is empty.
    pub fn new(kind: Kind, namespace: &str) -> Self {
        Scope {
            kind,
            namespace: namespace.to_owned(),
            labels: String::new(),
            fields: String::new(),
        }
    }

    /// Of these those with labels.
    #[must_use]
    pub fn labelled(mut self, selector: &str) -> Self {
        selector.clone_into(&mut self.labels);
        self
    }

    /// Of these those whose fields have a value.
    #[must_use]
    pub fn with_fields(mut self, selector: &str) -> Self {
        selector.clone_into(&mut self.fields);
        self
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Path of a list or watch with further parameters.
    pub fn path(&self, parameters: &str) -> String {
        let mut path = Resource::from(self.kind).within(&encoded(&self.namespace));
        let _ = write!(path, "?{parameters}");
        for (name, value) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if !value.is_empty() {
                let _ = write!(path, "&{name}={}", encoded(value));
            }
        }
        path
    }
}

/// What every object has, without what is not printed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Identity.
    pub uid: String,
    /// Version.
    pub resource_version: String,
    /// When it was made.
    pub creation_timestamp: Option<Time>,
}

impl From<Client> for Api {
    /// A connection that is there already.
    fn from(client: Client) -> Self {
        Api { client }
    }
}

impl Api {
    /// Reads the settings. Nothing is asked yet.
    pub async fn connect(args: &ConnectArgs) -> Result<Api, Failure> {
        let client = Client::connect(&args.options()).await?;
        Ok(Api { client })
    }

    /// What a failed call means to the user.
    pub fn failure(&self, error: &CallError) -> Failure {
        Failure::of_call(self.client.server(), error)
    }

    /// Reads an object.
    pub async fn get<T: DeserializeOwned>(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<T, Failure> {
        let found = self.find(kind, namespace, name).await?;
        found.map_err(|error| self.failure(&error))
    }

    /// Reads an object that may be gone.
    pub async fn find<T: DeserializeOwned>(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Result<T, CallError>, Failure> {
        let path = object_path(kind, namespace, name)?;
        Ok(self.client.get(&path).await)
    }

    /// Creates an object. It as it is stored.
    pub async fn create(&self, kind: Kind, namespace: &str, object: &Value) -> Result<Value, Failure> {
        let path = Resource::from(kind).within(&encoded(namespace));
        let body = object.to_string().into_bytes();
        let created = self.client.create(&path, body, None).await;
        created.map_err(|error| self.failure(&error))
    }

    /// Deletes an object.
    pub async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<(), Failure> {
        let path = object_path(kind, namespace, name)?;
        let deleted = self.client.delete(&path, b"{}".to_vec()).await;
        deleted.map(drop).map_err(|error| self.failure(&error))
    }

    /// Changes a part of an object.
    pub async fn merge(&self, kind: Kind, namespace: &str, name: &str, patch: &Value) -> Result<(), Failure> {
        let path = object_path(kind, namespace, name)?;
        let body = patch.to_string().into_bytes();
        let patched = self.client.patch(&path, Patch::Merge, body).await;
        patched.map(drop).map_err(|error| self.failure(&error))
    }

    /// Reads what is at a path.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        self.client.get(path).await
    }

    /// Creates an object at a path. It as it is stored.
    pub async fn create_at(&self, path: &str, object: &Value) -> Result<Value, CallError> {
        let body = object.to_string().into_bytes();
        self.client.create(path, body, None).await
    }

    /// Changes a part of the object at a path. It as it is stored.
    pub async fn patch_at(&self, path: &str, patch: Patch, object: &Value) -> Result<Value, CallError> {
        let body = object.to_string().into_bytes();
        let stored = self.client.patch(path, patch, body).await?;
        serde_json::from_slice(&stored).map_err(|error| CallError::Unreadable(error.to_string()))
    }

    /// A list, page by page.
    pub fn pages<T: DeserializeOwned>(&self, scope: Scope, tables: Option<Tables>) -> Pages<T> {
        Pages {
            client: self.client.clone(),
            scope,
            tables,
            next: Some(String::new()),
            version: String::new(),
            items: PhantomData,
        }
    }

    /// A whole list. For small objects only.
    pub async fn list<T: DeserializeOwned>(&self, scope: Scope) -> Result<Vec<T>, Failure> {
        let mut pages = self.pages(scope, None);
        let mut items = Vec::new();
        while let Some(page) = pages.next().await.map_err(|error| self.failure(&error))? {
            items.extend(page);
        }
        Ok(items)
    }

    /// Opens a watch.
    pub async fn watch(&self, path: &str, tables: Option<Tables>) -> Result<Frames, CallError> {
        self.client.stream(path, tables).await
    }

    /// Opens the log of a container, line by line.
    pub async fn log(&self, namespace: &str, pod: &str, parameters: &str) -> Result<Frames, CallError> {
        let kind = volcano_api::names::kinds::POD;
        let path = Resource::from(kind).object(&encoded(namespace), &encoded(pod));
        self.client.text(&format!("{path}/log?{parameters}")).await
    }
}

/// A list as it comes.
pub struct Pages<T> {
    client: Client,
    scope: Scope,
    tables: Option<Tables>,
    /// What to ask for next; `None` at the end.
    next: Option<String>,
    version: String,
    items: PhantomData<T>,
}

impl<T: DeserializeOwned> Pages<T> {
    /// The next objects; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, CallError> {
        // It is replaced only by what follows, so that a call that is dropped half way can be made again.
        let Some(next) = &self.next else {
            return Ok(None);
        };
        let mut parameters = format!("limit={PAGE}");
        if !next.is_empty() {
            let _ = write!(parameters, "&continue={}", encoded(next));
        }
        let page: Page<T> = self
            .client
            .list(&self.scope.path(&parameters), self.tables)
            .await?;
        self.version = page.metadata.resource_version;
        self.next = Some(page.metadata.r#continue).filter(|next| !next.is_empty());
        Ok(Some(page.items))
    }

    /// The version that was listed, from which a watch can go on.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Path of an object. What users type must not lead elsewhere.
fn object_path(kind: Kind, namespace: &str, name: &str) -> Result<String, Failure> {
    if name.is_empty() {
        return Err(Failure::new("resource name may not be empty"));
    }
    if kind.namespaced && namespace.is_empty() {
        return Err(Failure::new(
            "an empty namespace may not be set when a resource name is provided",
        ));
    }
    let wrong = if matches!(name, "." | "..") {
        Some(format!("may not be '{name}'"))
    } else {
        ['/', '%']
            .into_iter()
            .find(|&sign| name.contains(sign))
            .map(|sign| format!("may not contain '{sign}'"))
    };
    if let Some(wrong) = wrong {
        return Err(Failure::new(format!("invalid resource name {name:?}: [{wrong}]")));
    }
    let namespace = if kind.namespaced { namespace } else { "" };
    Ok(Resource::from(kind).object(&encoded(namespace), &encoded(name)))
}

/// A text for a place in an address.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use volcano_api::names::kinds;

    #[test]
    fn what_users_type_stays_in_its_place_of_the_address() {
        let scope = Scope::new(kinds::JOB, "a/b?").labelled("app=web,!x");
        assert_eq!(
            scope.path("limit=1"),
            "/apis/batch.volcano.sh/v1alpha1/namespaces/a%2Fb%3F/jobs?limit=1&labelSelector=app%3Dweb%2C%21x"
        );
        let cases = [
            ("", "resource name may not be empty"),
            ("..", "invalid resource name \"..\": [may not be '..']"),
            ("a/b", "invalid resource name \"a/b\": [may not contain '/']"),
        ];
        for (name, expected) in cases {
            let told = object_path(kinds::JOB, "ns", name).unwrap_err();
            assert_eq!(told, Failure::new(expected));
        }
        assert!(object_path(kinds::JOB, "", "x").is_err());
        assert_eq!(
            object_path(kinds::QUEUE, "", "q").unwrap(),
            "/apis/scheduling.volcano.sh/v1beta1/queues/q"
        );
    }
}
