//! Kubeconfig files: how clients find a server and who they are.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

/// Name of the one cluster, user and context.
const NAME: &str = "volcano-test";

/// The text of a kubeconfig. It is JSON, which every reader of YAML reads.
pub fn text(server: &str, authority: Option<&Path>, token: Option<&str>) -> String {
    let mut cluster = json!({"server": server});
    if let Some(authority) = authority {
        cluster["certificate-authority"] = json!(authority);
    }
    let user = match token {
        Some(token) => json!({"token": token}),
        None => json!({}),
    };
    let config: Value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    });
    format!("{config:#}\n")
}

/// Writes a file that only its owner may read.
pub fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let open = || {
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
    };
    open()
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::config::{KubeConfigOptions, Kubeconfig};
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn clients_read_the_server_and_the_token() {
        let text = text("https://127.0.0.1:6443", None, Some("secret-token"));
        let parsed = Kubeconfig::from_yaml(&text).unwrap();
        let config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
            .await
            .unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://127.0.0.1:6443/");
        assert!(config.auth_info.token.is_some());
    }

    #[test]
    fn the_authority_is_named_only_where_there_is_one() {
        let with = text("https://127.0.0.1:1", Some(Path::new("/data/ca.crt")), Some("t"));
        assert!(
            with.contains(r#""certificate-authority": "/data/ca.crt""#),
            "{with}"
        );
        let without = text("http://127.0.0.1:1", None, None);
        assert!(
            !without.contains("certificate-authority") && !without.contains("token"),
            "{without}"
        );
    }

    #[test]
    fn secrets_are_for_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        write_secret(&path, "text").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
