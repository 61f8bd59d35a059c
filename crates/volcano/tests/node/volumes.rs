//! Files of pods.

use crate::machine::{can_run, not_run};
use crate::stage::{Stage, container};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::path::Path;
use volcano_node::Isolation;

async fn objects(stage: &Stage) {
    let _: ConfigMap = stage
        .create(json!({"metadata": {"name": "hosts"}, "data": {"worker.host": "w-0\n"}}))
        .await;
    let _: Secret = stage
        .create(json!({"metadata": {"name": "ssh"}, "stringData": {"id_rsa": "key\n"}}))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_at_their_paths_and_the_host_has_none_of_them() {
    for isolation in [Isolation::Root, Isolation::User] {
        if isolation == Isolation::Root && !can_run(&[]) {
            continue;
        }
        let mut stage = Stage::with(|options| options.isolation = Some(isolation)).await;
        if stage.agent().isolation() != isolation {
            let why = stage.agent().isolation_message();
            not_run(&format!("isolation as {isolation:?} cannot be had: {why}"));
            continue;
        }
        objects(&stage).await;
        let script = "cat /etc/volcano-by-test/worker.host /root-by-test/.ssh/id_rsa /one/file /pod/labels; \
            stat -L -c %a /root-by-test/.ssh/id_rsa; \
            touch /etc/volcano-by-test/x 2>/dev/null || echo read-only; \
            stat -f -c %T /memory; echo scratch > /empty/a/b && cat /empty/a/b; pwd | grep -c work; \
            cat /etc/hostname; ls -A / | grep -c volcano";
        let mut one = container(script);
        one["volumeMounts"] = json!([
            {"name": "hosts", "mountPath": "/etc/volcano-by-test", "readOnly": true},
            {"name": "ssh", "mountPath": "/root-by-test/.ssh"},
            {"name": "hosts", "mountPath": "/one/file", "subPath": "worker.host"},
            {"name": "pod", "mountPath": "/pod"},
            {"name": "memory", "mountPath": "/memory"},
            {"name": "empty", "mountPath": "/empty/a"},
        ]);
        let spec = json!({
            "volumes": [
                {"name": "hosts", "configMap": {"name": "hosts"}},
                {"name": "ssh", "secret": {"secretName": "ssh", "defaultMode": 0o600}},
                {"name": "pod", "downwardAPI": {"items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels['app']"}},
                ]}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "empty", "emptyDir": {}},
            ],
            "containers": [one],
        });
        stage.pod("p", spec).await;
        stage
            .until("p", "done", |pod| {
                pod["status"]["containerStatuses"][0]["state"]["terminated"].is_object()
            })
            .await;
        let log = stage.log("p").await;
        assert_eq!(
            log, "w-0\nkey\nw-0\np600\nread-only\ntmpfs\nscratch\n1\np\n0\n",
            "{isolation:?}"
        );
        for path in [
            "/etc/volcano-by-test",
            "/root-by-test",
            "/one",
            "/pod",
            "/memory",
            "/empty",
        ] {
            assert!(!Path::new(path).exists(), "{isolation:?}: {path} is on the host");
        }
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_container_writes_stays_with_it() {
    if !can_run(&[]) {
        return;
    }
    let mut stage = Stage::with(|options| options.isolation = Some(Isolation::Root)).await;
    assert_eq!(stage.agent().isolation(), Isolation::Root);
    let place = stage.directory.path().join("seen");
    std::fs::write(&place, "host\n").unwrap();
    let path = place.display();
    let script = format!("cat {path}; echo pod > {path}; cat {path}; echo x > /etc/by-test");
    stage.script("p", &script).await;
    stage
        .until("p", "done", |pod| {
            pod["status"]["containerStatuses"][0]["state"]["terminated"].is_object()
        })
        .await;
    let log = stage.log("p").await;
    assert!(log.starts_with("host\npod\n"), "{log}");
    assert_eq!(std::fs::read_to_string(&place).unwrap(), "host\n");
    assert!(!Path::new("/etc/by-test").exists());
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn host_paths_are_the_hosts_own() {
    let mut stage = Stage::start().await;
    if stage.agent().isolation() == Isolation::None {
        return not_run("volumes need namespaces");
    }
    let place = stage.directory.path().join("data");
    let mut one = container("echo written > /data-by-test/file");
    one["volumeMounts"] = json!([{"name": "data", "mountPath": "/data-by-test"}]);
    let spec = json!({
        "volumes": [{"name": "data", "hostPath": {"path": place, "type": "DirectoryOrCreate"}}],
        "containers": [one],
    });
    stage.pod("p", spec).await;
    stage.phase("p", "Succeeded").await;
    assert_eq!(std::fs::read_to_string(place.join("file")).unwrap(), "written\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_config_map_reaches_the_files() {
    let mut stage = Stage::start().await;
    if stage.agent().isolation() == Isolation::None {
        return not_run("volumes need namespaces");
    }
    objects(&stage).await;
    let mut one = container("until grep -q w-1 /hosts-by-test/worker.host; do sleep 0.1; done; echo seen");
    one["volumeMounts"] = json!([{"name": "hosts", "mountPath": "/hosts-by-test"}]);
    let spec = json!({"volumes": [{"name": "hosts", "configMap": {"name": "hosts"}}], "containers": [one]});
    stage.pod("p", spec).await;
    stage.phase("p", "Running").await;
    let maps: Api<ConfigMap> = Api::namespaced(stage.plane.client(), "default");
    let patch = Patch::Merge(json!({"data": {"worker.host": "w-0\nw-1\n"}}));
    maps.patch("hosts", &PatchParams::default(), &patch)
        .await
        .unwrap();
    stage.phase("p", "Succeeded").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_only_pods_with_mounts_fail() {
    let mut stage = Stage::with(|options| options.isolation = Some(Isolation::None)).await;
    objects(&stage).await;
    let mut one = container("true");
    one["volumeMounts"] = json!([{"name": "hosts", "mountPath": "/hosts-by-test"}]);
    let spec = json!({"volumes": [{"name": "hosts", "configMap": {"name": "hosts"}}], "containers": [one]});
    stage.pod("mounts", spec).await;
    let pod = stage.phase("mounts", "Failed").await;
    assert_eq!(pod["status"]["reason"], "VolumeMountsNotPossible");
    assert!(
        pod["status"]["message"]
            .as_str()
            .unwrap()
            .contains("\"hosts\" cannot be mounted at /hosts-by-test")
    );
    stage.script("plain", "echo fine").await;
    stage.phase("plain", "Succeeded").await;
    stage.stop().await;
}
