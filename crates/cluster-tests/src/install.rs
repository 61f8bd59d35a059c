//! What `volcano manifests` prints, installed by a real kubectl, and who the programs are in it.

use crate::cluster;
use crate::scheduler::volcano;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::path::PathBuf;
use volcano_testcluster::objects;

/// Namespace of the installation.
pub const NAMESPACE: &str = "volcano-system";

/// Installs parts of the manifests: applied on the server's side, which refuses fields that it does not know.
///
/// # Errors
/// When one is refused.
pub fn apply(parts: &str, flags: &[&str]) -> anyhow::Result<Vec<Value>> {
    let only = format!("--only={parts}");
    let mut arguments = vec!["manifests", &only];
    arguments.extend(flags);
    let text = volcano(&arguments)?;
    let path = cluster()
        .data_directory()
        .join(format!("manifests-{}.yaml", parts.replace(',', "-")));
    std::fs::write(&path, &text)?;
    let file = path.display().to_string();
    cluster().kubectl(&[
        "apply",
        "--server-side",
        "--force-conflicts",
        "--validate=strict",
        "-f",
        &file,
    ])?;
    serde_saphyr::from_multiple(&text).context("manifests are YAML")
}

/// A kubeconfig with a token of the account of a program (`scheduler`, `controllers`, `admission`): it may do what the
/// manifests allow, and nothing else.
///
/// # Errors
/// When there is no such account.
pub async fn kubeconfig(part: &str) -> anyhow::Result<PathBuf> {
    let client = cluster().client()?;
    let account = format!("volcano-{part}");
    let path = objects::path("v1", NAMESPACE, "serviceaccounts", &account);
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    });
    let answer = objects::create(&client, &format!("{path}/token"), &request).await?;
    let token = answer["status"]["token"]
        .as_str()
        .context("an answer has a token")?;
    // Each time a file of its own: another process may be reading the last one.
    let name = format!("{account}-{:016x}", fastrand::u64(..));
    cluster().kubeconfig_of(&name, token)
}
