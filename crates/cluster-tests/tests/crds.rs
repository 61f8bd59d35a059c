//! The API server takes the generated CRDs, and keeps what clients write.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use serde_json::{Value, json};
use volcano_api::crd;
use volcano_api::names::kinds;
use volcano_cluster_tests::cluster;
use volcano_testcluster::objects;

/// Asserts that everything in `written` is in `read`; the API server may have added to it.
fn assert_kept(place: &str, written: &Value, read: &Value) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                let place = format!("{place}.{key}");
                let found = read.get(key).unwrap_or_else(|| panic!("{place} is lost"));
                assert_kept(&place, value, found);
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            assert_eq!(written.len(), read.len(), "items of {place}");
            for (at, (value, found)) in written.iter().zip(read).enumerate() {
                assert_kept(&format!("{place}[{at}]"), value, found);
            }
        }
        _ => assert_eq!(written, read, "{place}"),
    }
}

async fn round_trip(kind: kinds::Kind, namespace: &str, name: &str, spec: Value) -> Value {
    let client = cluster().client().unwrap();
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec,
    });
    let path = |name| objects::path(&kind.api_version(), namespace, kind.plural, name);
    objects::create(&client, &path(""), &object).await.unwrap();
    let read = objects::get(&client, &path(name)).await.unwrap();
    assert_kept(kind.kind, &object, &read);
    read
}

#[tokio::test]
async fn every_crd_is_established_with_its_names() {
    let client = cluster().client().unwrap();
    let there = objects::list(&client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .await
        .unwrap();
    for crd in crd::all() {
        let name = objects::name_of(&crd);
        let found = there.iter().find(|crd| objects::name_of(crd) == name);
        let found = found.unwrap_or_else(|| panic!("{name} is not there"));
        // A schema that breaks a rule is stored all the same, and told by a condition.
        assert!(
            !objects::has_condition(found, "NonStructuralSchema"),
            "{name}: {}",
            found["status"]
        );
        for condition in ["Established", "NamesAccepted"] {
            assert!(
                objects::has_condition(found, condition),
                "{name}: {}",
                found["status"]
            );
        }
    }
}

#[tokio::test]
async fn a_job_keeps_its_pod_template() {
    let client = cluster().client().unwrap();
    let namespace = objects::unique_namespace(&client, "crds").await.unwrap();
    let spec = json!({
        "schedulerName": "volcano",
        "minAvailable": 2,
        "queue": "default",
        "plugins": {"env": [], "svc": ["--disable-network-policy=true"]},
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [{
            "name": "worker",
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"app": "demo"}},
                "spec": {
                    "restartPolicy": "OnFailure",
                    "containers": [{
                        "name": "main",
                        "image": "busybox",
                        "command": ["sh", "-c", "true"],
                        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": 1}},
                        "ports": [{"containerPort": 22, "name": "ssh"}],
                    }],
                },
            },
        }],
    });
    round_trip(kinds::JOB, &namespace, "demo", spec).await;
}

#[tokio::test]
async fn a_pod_group_keeps_its_status_when_it_is_written_with_the_object() {
    let client = cluster().client().unwrap();
    let namespace = objects::unique_namespace(&client, "crds").await.unwrap();
    let spec = json!({"minMember": 3, "queue": "default", "minResources": {"cpu": "3", "memory": "1Gi"}});
    let mut group = round_trip(kinds::POD_GROUP, &namespace, "gang", spec).await;
    group["status"] = json!({"phase": "Inqueue", "running": 1});
    let kind = kinds::POD_GROUP;
    let path = objects::path(&kind.api_version(), &namespace, kind.plural, "gang");
    let written = objects::replace(&client, &path, &group).await.unwrap();
    assert_kept("PodGroup", &group["status"], &written["status"]);
}

#[tokio::test]
async fn a_queue_is_for_the_whole_cluster() {
    let spec = json!({"weight": 4, "capability": {"cpu": "10"}, "reclaimable": true});
    let queue = round_trip(kinds::QUEUE, "", "crds-queue", spec).await;
    assert_eq!(queue["metadata"].get("namespace"), None);
}

#[tokio::test]
async fn an_object_against_the_schema_is_refused_with_the_field() {
    let client = cluster().client().unwrap();
    let queue = objects::queue("crds-wrong", 1, &json!({"capability": "ten"}));
    let path = objects::path(&kinds::QUEUE.api_version(), "", kinds::QUEUE.plural, "");
    let error = objects::create(&client, &path, &queue).await.unwrap_err();
    assert!(format!("{error:#}").contains("spec.capability"), "{error:#}");
}
