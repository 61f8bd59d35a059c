//! What there is: groups, versions and resources, in the forms that clients ask for.

use super::answer::{Body, json_answer};
use super::route::Index;
use crate::fault::Fault;
use crate::resources::{Nature, Registry, Resource};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The version of Kubernetes whose API this is.
pub fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.1+volcano",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// Answers a question about the API.
pub fn answer(registry: &Registry, index: &Index, headers: &HeaderMap) -> Result<Response<Body>, Fault> {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let wants_all = accept.split(',').any(|option| {
        let parts: Vec<&str> = option.split(';').map(str::trim).collect();
        parts.contains(&"as=APIGroupDiscoveryList") && parts.contains(&"v=v2")
    });
    let groups = groups(registry);
    match index {
        Index::Core | Index::Groups if wants_all => {
            let wanted = |group: &str| group.is_empty() == (*index == Index::Core);
            let items: Vec<Value> = groups
                .iter()
                .filter(|(group, _)| wanted(group))
                .map(|(group, versions)| aggregated(registry, group, versions))
                .collect();
            let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
            let mut answer = json_answer(200, &list);
            answer
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
            Ok(answer)
        }
        Index::Core => Ok(json_answer(
            200,
            &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        )),
        Index::Groups => {
            let all = groups.iter().filter(|(group, _)| !group.is_empty());
            let all: Vec<Value> = all.map(|(group, versions)| api_group(group, versions)).collect();
            Ok(json_answer(
                200,
                &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": all}),
            ))
        }
        Index::Group(group) => {
            let versions = groups
                .get(group)
                .filter(|_| !group.is_empty())
                .ok_or_else(Fault::no_resource)?;
            let mut found = api_group(group, versions);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            Ok(json_answer(200, &found))
        }
        Index::Version(group, version) => {
            let resources = of_version(registry, group, version);
            if resources.is_empty() {
                return Err(Fault::no_resource());
            }
            let group_version = resources[0].api_version();
            let list: Vec<Value> = resources.iter().flat_map(|resource| listed(resource)).collect();
            Ok(json_answer(
                200,
                &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}),
            ))
        }
    }
}

/// Groups with their versions; the storage version first.
fn groups(registry: &Registry) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (stored, others): (Vec<_>, Vec<_>) = registry.served().partition(|resource| resource.is_storage);
    for resource in stored.into_iter().chain(others) {
        let versions = groups.entry(resource.group.clone()).or_default();
        if !versions.contains(&resource.version) {
            versions.push(resource.version.clone());
        }
    }
    groups
}

fn of_version<'a>(registry: &'a Registry, group: &str, version: &str) -> Vec<&'a Resource> {
    let all = registry.served().map(|resource| &**resource);
    all.filter(|resource| resource.group == group && resource.version == version)
        .collect()
}

fn api_group(group: &str, versions: &[String]) -> Value {
    let version =
        |version: &String| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let all: Vec<Value> = versions.iter().map(version).collect();
    json!({"name": group, "versions": all, "preferredVersion": all.first()})
}

/// The subresources of a resource: name, group, version and kind of what they take, and verbs.
fn subresources(resource: &Resource) -> Vec<(&'static str, [String; 3], &'static [&'static str])> {
    let own = || {
        [
            resource.group.clone(),
            resource.version.clone(),
            resource.kind.clone(),
        ]
    };
    let of = |group: &str, kind: &str| [group.to_owned(), "v1".to_owned(), kind.to_owned()];
    let mut all: Vec<(&'static str, [String; 3], &'static [&'static str])> = Vec::new();
    if resource.nature == Nature::Pod {
        all.push(("binding", of("", "Binding"), &["create"]));
        all.push(("eviction", of("policy", "Eviction"), &["create"]));
        all.push(("log", of("", "Pod"), &["get"]));
    }
    if resource.nature == Nature::Namespace {
        all.push(("finalize", of("", "Namespace"), &["update"]));
    }
    if resource.scale.is_some() {
        all.push(("scale", of("autoscaling", "Scale"), &["get", "patch", "update"]));
    }
    if resource.status {
        all.push(("status", own(), &["get", "patch", "update"]));
    }
    all
}

fn listed(resource: &Resource) -> Vec<Value> {
    let mut own = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": VERBS,
    });
    if !resource.short_names.is_empty() {
        own["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        own["categories"] = resource.categories.clone().into();
    }
    let mut all = vec![own];
    for (name, [group, version, kind], verbs) in subresources(resource) {
        all.push(json!({
            "name": format!("{}/{name}", resource.plural),
            "singularName": "",
            "namespaced": resource.namespaced,
            "group": group,
            "version": version,
            "kind": kind,
            "verbs": verbs,
        }));
    }
    all
}

fn aggregated(registry: &Registry, group: &str, versions: &[String]) -> Value {
    let version = |version: &String| {
        let resources: Vec<Value> = of_version(registry, group, version)
            .into_iter()
            .map(discovered)
            .collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    let mut metadata = json!({"creationTimestamp": null});
    if !group.is_empty() {
        metadata["name"] = group.into();
    }
    json!({"metadata": metadata, "versions": versions})
}

fn discovered(resource: &Resource) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let below: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|(name, [group, version, of], verbs)| {
            json!({"subresource": name, "responseKind": kind(&group, &version, &of), "verbs": verbs})
        })
        .collect();
    let mut found = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": VERBS,
    });
    for (name, list) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !list.is_empty() {
            found[name] = list.clone().into();
        }
    }
    if !below.is_empty() {
        found["subresources"] = below.into();
    }
    found
}
