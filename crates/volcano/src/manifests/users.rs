//! Roles that administrators give to users.

use super::parts::rule;
use serde_json::{Value, json};
use volcano_api::names::kinds::{BATCH, BUS};

/// The roles.
pub fn objects() -> Vec<Value> {
    let editor = [
        rule(BATCH, &["jobs"], &["create", "get", "list", "update", "delete"]),
        rule(BUS, &["commands"], &["create", "get", "list"]),
    ];
    let viewer = [rule(BATCH, &["jobs"], &["get", "list"])];
    vec![
        role("vcjob-editor-role", &editor),
        role("vcjob-viewer-role", &viewer),
    ]
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    })
}
