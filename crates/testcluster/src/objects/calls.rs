//! Single calls to the API server: paths in, JSON values out, errors that name the call.

use anyhow::Context as _;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

/// Objects in a page of a list.
const PAGE: usize = 5000;

/// The path of an object; of all objects of its kind if `name` is empty; in all namespaces, or for a kind without
/// them, if `namespace` is. `api_version` is `v1` or `group/version`.
///
/// ```
/// use volcano_testcluster::objects::path;
/// assert_eq!(path("v1", "ns", "pods", "p"), "/api/v1/namespaces/ns/pods/p");
/// assert_eq!(path("scheduling.volcano.sh/v1beta1", "", "queues", ""), "/apis/scheduling.volcano.sh/v1beta1/queues");
/// ```
pub fn path(api_version: &str, namespace: &str, plural: &str, name: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let mut path = format!("/{root}/{api_version}");
    for part in ["namespaces", namespace]
        .into_iter()
        .filter(|_| !namespace.is_empty())
    {
        path = format!("{path}/{part}");
    }
    path = format!("{path}/{plural}");
    if name.is_empty() {
        path
    } else {
        format!("{path}/{name}")
    }
}

/// Creates an object; `path` is that of all objects of its kind.
///
/// # Errors
/// When the API server refuses it.
pub async fn create(client: &Client, path: &str, object: &Value) -> anyhow::Result<Value> {
    let called = call(client, Method::POST, path, "application/json", Some(object)).await;
    called.with_context(|| format!("creating {} at {path}", super::name_of(object)))
}

/// Reads an object.
///
/// # Errors
/// When it is not there, or the API server does not answer.
pub async fn get(client: &Client, path: &str) -> anyhow::Result<Value> {
    let called = call(client, Method::GET, path, "application/json", None).await;
    called.with_context(|| format!("reading {path}"))
}

/// Reads an object that may not be there.
///
/// # Errors
/// When the API server does not answer.
pub async fn try_get(client: &Client, path: &str) -> anyhow::Result<Option<Value>> {
    match call(client, Method::GET, path, "application/json", None).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {path}")),
    }
}

/// Reads a list, page by page.
///
/// # Errors
/// When the API server does not answer.
pub async fn list(client: &Client, path: &str) -> anyhow::Result<Vec<Value>> {
    let mut items = Vec::new();
    let mut next = String::new();
    loop {
        let page = format!("{path}?limit={PAGE}&continue={next}");
        let mut answer = get(client, &page).await?;
        if let Value::Array(more) = answer["items"].take() {
            items.extend(more);
        }
        match answer["metadata"]["continue"].as_str() {
            Some(more) if !more.is_empty() => next = more.to_owned(),
            _ => return Ok(items),
        }
    }
}

/// Replaces an object.
///
/// # Errors
/// When the API server refuses it.
pub async fn replace(client: &Client, path: &str, object: &Value) -> anyhow::Result<Value> {
    let called = call(client, Method::PUT, path, "application/json", Some(object)).await;
    called.with_context(|| format!("replacing {path}"))
}

/// Changes a part of an object: objects merge, everything else is replaced.
///
/// # Errors
/// When the API server refuses it.
pub async fn merge_patch(client: &Client, path: &str, patch: &Value) -> anyhow::Result<Value> {
    let called = call(
        client,
        Method::PATCH,
        path,
        "application/merge-patch+json",
        Some(patch),
    )
    .await;
    called.with_context(|| format!("changing {path}"))
}

/// Changes a part of the status of an object, through its subresource.
///
/// # Errors
/// When the API server refuses it.
pub async fn merge_patch_status(client: &Client, path: &str, status: &Value) -> anyhow::Result<()> {
    let patch = json!({"status": status});
    merge_patch(client, &format!("{path}/status"), &patch)
        .await
        .map(drop)
}

/// Deletes an object, in the background as to what it owns; one that is gone is fine.
///
/// # Errors
/// When the API server refuses it.
pub async fn delete(client: &Client, path: &str) -> anyhow::Result<()> {
    delete_with(client, path, &json!({"propagationPolicy": "Background"})).await
}

/// Deletes an object with options; one that is gone is fine.
pub(super) async fn delete_with(client: &Client, path: &str, options: &Value) -> anyhow::Result<()> {
    match call(client, Method::DELETE, path, "application/json", Some(options)).await {
        Err(error) if !is_not_found(&error) => Err(error).with_context(|| format!("deleting {path}")),
        _ => Ok(()),
    }
}

async fn call(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: Option<&Value>,
) -> Result<Value, kube::Error> {
    let body = match body {
        Some(body) => serde_json::to_vec(body).map_err(kube::Error::SerdeError)?,
        None => Vec::new(),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content_type)
        .body(body)
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
