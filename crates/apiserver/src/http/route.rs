//! What a path means.

use crate::resources::{Registry, Resource};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// A place in the API.
pub struct Place {
    /// What kind of objects.
    pub resource: Arc<Resource>,
    /// Namespace; empty for all, or for cluster-scoped objects.
    pub namespace: String,
    /// Name; empty for a collection.
    pub name: String,
    /// Subresource.
    pub subresource: String,
}

impl Place {
    /// Objects can be created here: namespaced ones in a namespace.
    pub fn is_placed(&self) -> bool {
        !self.resource.namespaced || !self.namespace.is_empty()
    }
}

/// A part of what is told of the API itself.
#[derive(Debug, PartialEq, Eq)]
pub enum Index {
    /// `/api`: versions of the core group.
    Core,
    /// `/apis`: groups.
    Groups,
    /// `/apis/GROUP`: versions of a group.
    Group(String),
    /// Resources of a version.
    Version(String, String),
}

/// What a path means.
pub enum Route {
    /// Whether the server is well.
    Health,
    /// Which version it is.
    Version,
    /// What there is.
    Discovery(Index),
    /// Schemas.
    OpenApi(String),
    /// A review of access.
    Access(String),
    /// Objects.
    Resource(Place),
    /// Nothing.
    Nothing,
}

const REVIEWS: [&str; 4] = [
    "selfsubjectaccessreviews",
    "subjectaccessreviews",
    "selfsubjectrulesreviews",
    "selfsubjectreviews",
];

/// Finds out what a path means.
pub fn route(registry: &Registry, path: &str) -> Route {
    let parts: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match texts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["version"] => Route::Version,
        ["api"] => Route::Discovery(Index::Core),
        ["apis"] => Route::Discovery(Index::Groups),
        ["apis", group] => Route::Discovery(Index::Group((*group).to_owned())),
        ["api", version] => Route::Discovery(Index::Version(String::new(), (*version).to_owned())),
        ["apis", group, version] => {
            Route::Discovery(Index::Version((*group).to_owned(), (*version).to_owned()))
        }
        ["openapi", "v3", rest @ ..] => Route::OpenApi(rest.join("/")),
        [
            "apis",
            "authorization.k8s.io" | "authentication.k8s.io",
            "v1",
            review,
        ] if REVIEWS.contains(review) => Route::Access((*review).to_owned()),
        ["api", version, rest @ ..] => place(registry, "", version, rest),
        ["apis", group, version, rest @ ..] => place(registry, group, version, rest),
        _ => Route::Nothing,
    }
}

fn place(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // What is below a namespace is in it, apart from its own subresources.
        ["namespaces", namespace, below @ ..] if !below.is_empty() && !is_own(group, below) => {
            (*namespace, below)
        }
        rest => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Route::Nothing,
    };
    let Some(resource) = registry.find(group, version, plural) else {
        return Route::Nothing;
    };
    let misplaced = !namespace.is_empty() && !resource.namespaced
        || resource.namespaced && namespace.is_empty() && !name.is_empty();
    if misplaced {
        return Route::Nothing;
    }
    Route::Resource(Place {
        resource: resource.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    })
}

fn is_own(group: &str, below: &[&str]) -> bool {
    group.is_empty() && matches!(below, ["status" | "finalize"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::built_in;

    fn shown(path: &str) -> String {
        let mut next = 0;
        let registry = built_in(|| {
            next += 1;
            next
        });
        match route(&registry, path) {
            Route::Health => "health".to_owned(),
            Route::Version => "version".to_owned(),
            Route::Discovery(index) => format!("{index:?}"),
            Route::OpenApi(path) => format!("schemas {path}"),
            Route::Access(review) => format!("review {review}"),
            Route::Resource(place) => {
                let Place {
                    resource,
                    namespace,
                    name,
                    subresource,
                } = place;
                format!("{} {namespace:?} {name:?} {subresource:?}", resource.plural)
            }
            Route::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn paths_mean_what_they_mean_in_kubernetes() {
        for (path, expected) in [
            ("/api/v1/pods", r#"pods "" "" """#),
            ("/api/v1/namespaces/a/pods", r#"pods "a" "" """#),
            ("/api/v1/namespaces/a/pods/p", r#"pods "a" "p" """#),
            ("/api/v1/namespaces/a/pods/p/binding", r#"pods "a" "p" "binding""#),
            ("/api/v1/namespaces", r#"namespaces "" "" """#),
            ("/api/v1/namespaces/a", r#"namespaces "" "a" """#),
            ("/api/v1/namespaces/a/status", r#"namespaces "" "a" "status""#),
            ("/api/v1/namespaces/a/finalize", r#"namespaces "" "a" "finalize""#),
            (
                "/apis/apps/v1/namespaces/a/deployments/d",
                r#"deployments "a" "d" """#,
            ),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Ax",
                r#"clusterroles "" "system:x" """#,
            ),
            ("/apis/apps/v2/namespaces/a/deployments", "nothing"),
            ("/api/v1/namespaces/a/nodes", "nothing"),
            ("/api/v1/pods/p", "nothing"),
            ("/api/v1/namespaces/a/pods/p/log/more", "nothing"),
            ("/api", "Core"),
            ("/apis/", "Groups"),
            ("/apis/apps", "Group(\"apps\")"),
            ("/apis/apps/v1", "Version(\"apps\", \"v1\")"),
            ("/openapi/v3/api/v1", "schemas api/v1"),
            ("/livez/ping", "health"),
            ("/", "nothing"),
        ] {
            assert_eq!(shown(path), expected, "{path}");
        }
    }
}
