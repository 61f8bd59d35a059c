//! The way in from outside.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use volcano_apiserver::{Options, Plane};

async fn config(path: &std::path::Path) -> kube::Config {
    let file = Kubeconfig::read_from(path).unwrap();
    kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .unwrap()
}

fn get(path: &str) -> http::Request<Vec<u8>> {
    http::Request::get(path).body(Vec::new()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_holder_of_the_kubeconfig_gets_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    let plane = Plane::start(Options::default()).await.unwrap();
    let address = plane.serve(&path).await.unwrap();
    assert!(address.ip().is_loopback());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    let client = kube::Client::try_from(config(&path).await).unwrap();
    let list: Value = client.request(get("/api/v1/namespaces")).await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 4);

    let mut stranger = config(&path).await;
    stranger.auth_info = kube::config::AuthInfo::default();
    let refused = kube::Client::try_from(stranger)
        .unwrap()
        .request::<Value>(get("/api/v1/namespaces"))
        .await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 401));

    let mut untrusting = config(&path).await;
    untrusting.root_cert = None;
    let refused = kube::Client::try_from(untrusting)
        .unwrap()
        .request::<Value>(get("/version"))
        .await;
    assert!(
        refused.is_err(),
        "the certificate is signed by an authority of its own"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_not_written_into_a_file_that_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    let other = directory.path().join("kubeconfig.new");
    std::fs::write(&other, "somebody else's").unwrap();
    let plane = Plane::start(Options::default()).await.unwrap();
    plane.serve(&path).await.unwrap();
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "somebody else's");
    let files = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(files, 2, "nothing else is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused() {
    let plane = Plane::start(Options::default()).await.unwrap();
    let map = json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(4 << 20)}});
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .body(serde_json::to_vec(&map).unwrap())
        .unwrap();
    let refused = plane.client().request::<Value>(request).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 413));
}
