//! Programs that may do no more than a role says.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use crate::cluster;
use crate::stage::Stage;
use serde_json::{Value, json};
use std::path::PathBuf;
use volcano_testcluster::objects;

/// Path of the roles.
pub const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A rule of a role.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// A service account with a role, both with the name of the test's namespace. The path of its kubeconfig.
pub async fn account(stage: &Stage, rules: &[Value]) -> PathBuf {
    let name = &stage.namespace;
    let accounts = objects::path("v1", name, "serviceaccounts", "");
    stage
        .create(&accounts, &json!({"metadata": {"name": "program"}}))
        .await;
    stage
        .create(ROLES, &json!({"metadata": {"name": name}, "rules": rules}))
        .await;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": name, "name": "program"}],
    });
    stage.create(BINDINGS, &binding).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = stage.create(&format!("{accounts}/program/token"), &request).await;
    let text = std::fs::read_to_string(cluster().kubeconfig_path()).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"]["token"] = answer["status"]["token"].clone();
    stage.file("kubeconfig", &kubeconfig.to_string()).unwrap()
}
