//! Where the certificate comes from, and how the API server comes to trust it.

use crate::{Scene, job};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::install::{self, NAMESPACE};
use volcano_cluster_tests::scheduler::volcano;
use volcano_cluster_tests::tls;
use volcano_cluster_tests::webhooks::{self, HOST, Manager};
use volcano_testcluster::objects::{self, Progress, check};
use volcano_testcluster::ports;

const SECRET: &str = "volcano-admission-secret";

fn bundle(configuration: &Value) -> Vec<u8> {
    let text = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str();
    STANDARD.decode(text.unwrap_or_default()).unwrap()
}

fn secret_path() -> String {
    objects::path("v1", NAMESPACE, "secrets", SECRET)
}

fn authority_of(secret: &Value) -> Vec<u8> {
    STANDARD
        .decode(secret["data"]["ca.crt"].as_str().unwrap())
        .unwrap()
}

#[tokio::test]
async fn the_authority_is_in_every_configuration_and_comes_back_when_it_is_reset() {
    let scene = Scene::set().await;
    let (_manager, authority) = scene.manager(&[]).await;
    for configuration in scene.configurations {
        let stored = objects::get(&scene.client, &webhooks::path_of(configuration))
            .await
            .unwrap();
        assert_eq!(bundle(&stored), authority, "{}", objects::name_of(&stored));
    }
    let path = webhooks::path_of(&scene.configurations[0]);
    let mut reset = objects::get(&scene.client, &path).await.unwrap();
    reset["webhooks"][0]["clientConfig"]
        .as_object_mut()
        .unwrap()
        .remove("caBundle");
    objects::replace(&scene.client, &path, &reset).await.unwrap();
    until("the authority is back", || async {
        let stored = objects::get(&scene.client, &path).await?;
        Ok(check(bundle(&stored) == authority, || stored.to_string()))
    })
    .await;
}

#[tokio::test]
async fn a_new_certificate_is_served_without_a_dropped_request() {
    let scene = Scene::set().await;
    let at = |name: &str| scene.folder.join(name);
    let old = webhooks::certificate(&at("1")).unwrap();
    let new = webhooks::certificate(&at("2")).unwrap();
    symlink(at("1"), at("mounted")).unwrap(); // As a kubelet mounts a Secret.
    let [port] = ports::free().unwrap();
    scene.register(port).await;
    let mut manager = Manager::launch(port, &webhooks::files(&at("mounted")))
        .await
        .unwrap();
    manager.ready(&old).await.unwrap();

    let (done, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let jobs = objects::path("batch.volcano.sh/v1alpha1", &scene.namespace, "jobs", "");
    let asking = async {
        // Until the change is over, and some more.
        let mut left = 20;
        while left > 0 {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            objects::create(&scene.client, &jobs, &job(&format!("j-{number}")))
                .await
                .unwrap();
            left -= usize::from(done.load(Ordering::Relaxed));
        }
    };
    let changing = async {
        symlink(at("2"), at("next")).unwrap();
        std::fs::rename(at("next"), at("mounted")).unwrap();
        until("the new certificate is served", || async {
            Ok(match tls::connect(port, HOST, &new).await {
                Ok(_) => Progress::Done(()),
                Err(error) => Progress::Waiting(error.to_string()),
            })
        })
        .await;
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(asking, changing);
    assert!(
        tls::connect(port, HOST, &old).await.is_err(),
        "the old one is gone"
    );
    let stored = objects::get(&scene.client, &webhooks::path_of(&scene.configurations[0]))
        .await
        .unwrap();
    let trusted = bundle(&stored);
    assert!(
        trusted.starts_with(&new) && trusted.len() > new.len(),
        "for a while both are trusted"
    );
}

#[tokio::test]
async fn replicas_without_a_certificate_agree_on_one_and_follow_its_rotation() {
    let scene = Scene::set().await;
    objects::delete(&scene.client, &secret_path()).await.unwrap();
    let [one, two] = ports::free().unwrap();
    scene.register(one).await;
    let flags = [format!("--admission-secret-name={SECRET}")];
    let (first, second) = tokio::join!(Manager::launch(one, &flags), Manager::launch(two, &flags));
    let mut managers = [first.unwrap(), second.unwrap()];
    let secret = until("there is a certificate", || async {
        Ok(match objects::try_get(&scene.client, &secret_path()).await? {
            Some(secret) => Progress::Done(secret),
            None => Progress::Waiting("none".to_owned()),
        })
    })
    .await;
    let authority = authority_of(&secret);
    for manager in &mut managers {
        manager.ready(&authority).await.unwrap();
        tls::connect(manager.port, HOST, &authority).await.unwrap();
    }
    let stored = objects::get(&scene.client, &webhooks::path_of(&scene.configurations[0]))
        .await
        .unwrap();
    assert_eq!(bundle(&stored), authority);

    // As the chart's job does before an upgrade, with the account that the chart gives it: get, create and patch.
    let kubeconfig = install::kubeconfig("admission")
        .await
        .unwrap()
        .display()
        .to_string();
    let arguments = [
        "gen-admission-secret",
        "--service",
        "volcano-admission-service",
        "--namespace",
        NAMESPACE,
    ];
    let said =
        volcano(&[&arguments[..], &["--secret", SECRET, "--kubeconfig", &kubeconfig]].concat()).unwrap();
    assert_eq!(said, "secret/volcano-admission-secret has a new certificate\n");
    let rotated = authority_of(&objects::get(&scene.client, &secret_path()).await.unwrap());
    assert_ne!(rotated, authority);
    for manager in &managers {
        let port = manager.port;
        until("the new certificate is served", || async {
            Ok(match tls::connect(port, HOST, &rotated).await {
                Ok(_) => Progress::Done(()),
                Err(error) => Progress::Waiting(error.to_string()),
            })
        })
        .await;
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_is_replaced() {
    let scene = Scene::set().await;
    objects::delete(&scene.client, &secret_path()).await.unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET},
        "data": {"ca.crt": STANDARD.encode("x"), "tls.crt": STANDARD.encode("y"), "tls.key": STANDARD.encode("z")},
    });
    let all = objects::path("v1", NAMESPACE, "secrets", "");
    objects::create(&scene.client, &all, &secret).await.unwrap();
    let [port] = ports::free().unwrap();
    scene.register(port).await;
    let mut manager = Manager::launch(port, &[format!("--admission-secret-name={SECRET}")])
        .await
        .unwrap();
    let authority = until("the Secret has a certificate", || async {
        let secret = objects::get(&scene.client, &secret_path()).await?;
        let authority = authority_of(&secret);
        Ok(match authority.starts_with(b"-----BEGIN CERTIFICATE-----") {
            true => Progress::Done(authority),
            false => Progress::Waiting("not yet".to_owned()),
        })
    })
    .await;
    manager.ready(&authority).await.unwrap();
}

#[tokio::test]
async fn a_file_that_cannot_be_read_ends_the_start_with_one_line() {
    let scene = Scene::set().await;
    let [port] = ports::free().unwrap();
    let mut manager = Manager::launch(port, &webhooks::files(&scene.folder.join("nowhere")))
        .await
        .unwrap();
    let status = manager.wait().await.unwrap();
    assert_eq!(status.code(), Some(2));
    let log = manager.log();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(
        log.contains("--ca-cert-file ") && log.contains("nowhere/ca.crt: No such file"),
        "{log}"
    );
}
