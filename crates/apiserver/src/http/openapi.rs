//! As much of OpenAPI v3 as kubectl asks for: which kinds can be patched with checked fields, and schemas of CRDs.

use super::answer::{Body, json_answer};
use crate::fault::Fault;
use crate::resources::{Registry, Resource};
use http::Response;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Answers `/openapi/v3` and what is below it.
pub fn answer(registry: &Registry, path: &str) -> Result<Response<Body>, Fault> {
    if path.is_empty() {
        let places: BTreeSet<String> = registry.served().map(|resource| place(resource)).collect();
        let paths: Map<String, Value> = places
            .into_iter()
            .map(|place| {
                let url = format!("/openapi/v3/{place}");
                (place, json!({"serverRelativeURL": url}))
            })
            .collect();
        return Ok(json_answer(200, &json!({"paths": paths})));
    }
    let resources: Vec<&Resource> = registry
        .served()
        .map(|resource| &**resource)
        .filter(|resource| place(resource) == path)
        .collect();
    if resources.is_empty() {
        return Err(Fault::no_resource());
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for resource in resources {
        let (path, operations) = operations(resource);
        paths.insert(path, operations);
        schemas.insert(schema_name(resource), schema(resource));
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.1"},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    Ok(json_answer(200, &document))
}

fn place(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}

fn schema_name(resource: &Resource) -> String {
    let mut parts: Vec<&str> = resource
        .group
        .split('.')
        .filter(|part| !part.is_empty())
        .collect();
    parts.reverse();
    parts.extend([resource.version.as_str(), resource.kind.as_str()]);
    match resource.group.as_str() {
        "" => format!("io.k8s.api.core.{}.{}", resource.version, resource.kind),
        _ => parts.join("."),
    }
}

fn kind(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn operations(resource: &Resource) -> (String, Value) {
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let path = format!("/{}{scope}/{}/{{name}}", place(resource), resource.plural);
    let parameter = |name: &str, r#type: &str| json!({"name": name, "in": "query", "schema": {"type": r#type, "uniqueItems": true}});
    let body = json!({"$ref": format!("#/components/schemas/{}", schema_name(resource))});
    let mut content = Map::new();
    for media_type in [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ] {
        content.insert(media_type.to_owned(), json!({"schema": {"type": "object"}}));
    }
    // Strategic patches are left out: kubectl would make them from the schema, and has its own of built-in kinds.
    let operations = json!({
        "get": {"x-kubernetes-action": "get", "x-kubernetes-group-version-kind": kind(resource),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": body}}}}},
        "patch": {
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind(resource),
            "parameters": [
                parameter("dryRun", "string"),
                parameter("fieldManager", "string"),
                parameter("fieldValidation", "string"),
                parameter("force", "boolean"),
            ],
            "requestBody": {"content": content, "required": true},
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": body}}}},
        },
    });
    (path, operations)
}

/// The schema of a kind: that of its CRD, or as much as tells kubectl that there is one.
fn schema(resource: &Resource) -> Value {
    let mut schema = match &resource.published {
        Value::Null => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        published => published.clone(),
    };
    schema["x-kubernetes-group-version-kind"] = json!([kind(resource)]);
    schema
}
