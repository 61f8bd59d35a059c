//! Claims of Jobs: they get volumes, and volumes go with them.

use crate::count;
use crate::field::{Field, Outcome, all, case, job, pool, same, task, text, with};
use serde_json::{Value, json};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

fn claim(name: &str, class: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    })
}

fn volume(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": class,
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "5Gi"},
            "hostPath": {"path": "/data"},
        },
    })
}

/// A Job whose pods mount a claim that is there.
async fn uses(field: &Field, name: &str, claim: &str) -> Result<Value, String> {
    let volumes = json!([{"mountPath": "/data", "volumeClaimName": claim}]);
    let job = job(name, 1, &[task("a", 2, "sleep 5")]);
    field.submit(&with(job, "/spec/volumes", volumes)).await
}

/// A claim and its volume know each other. The name of the volume.
async fn bound(field: &Field, name: &str) -> Result<String, String> {
    let claim = field.get(&format!("{CLAIMS}/{name}")).await.unwrap_or_default();
    same(
        "phase of the claim",
        text(&claim["status"]["phase"]),
        "Bound".to_owned(),
    )?;
    let volume = text(&claim["spec"]["volumeName"]);
    let found = field
        .get(&format!("{VOLUMES}/{volume}"))
        .await
        .unwrap_or_default();
    same(
        "phase of the volume",
        text(&found["status"]["phase"]),
        "Bound".to_owned(),
    )?;
    let owner = &found["spec"]["claimRef"]["uid"];
    same(
        "claim of the volume",
        text(owner),
        text(&claim["metadata"]["uid"]),
    )?;
    same(
        "capacity of the claim",
        &claim["status"]["capacity"],
        &found["spec"]["capacity"],
    )?;
    Ok(volume)
}

async fn is_made(field: &Field, name: &str, class: Value) -> Outcome {
    field.make(CLAIMS, claim(name, class)).await?;
    uses(field, name, name).await?;
    field.reaches(name, "Completed").await?;
    let volume = bound(field, name).await?;
    // What was made for the claim goes with it.
    field
        .send("DELETE", &format!("{CLAIMS}/{name}"), &Value::Null)
        .await?;
    field
        .until("the volume is gone", async || {
            let volume = field.get(&format!("{VOLUMES}/{volume}")).await;
            (volume.is_none(), volume)
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn claims_get_volumes_and_their_jobs_complete() {
    let field = Field::new(vec![pool("node", 4, 8)]).await;
    for (name, provisioner, mode) in [
        ("fast", "csi.example.com", "Immediate"),
        ("late", "csi.example.com", "WaitForFirstConsumer"),
        ("manual", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    ] {
        field.make(CLASSES, class(name, provisioner, mode)).await.unwrap();
    }
    let mut cases = Vec::new();
    for (name, named) in [
        ("without-class", Value::Null),
        ("of-another-cluster", json!("gp3")),
        ("at-once", json!("fast")),
        ("once-placed", json!("late")),
    ] {
        let made = is_made(&field, name, named);
        cases.push(case(name, made));
    }
    for (name, named) in [("plain", ""), ("local", "manual")] {
        let field = &field;
        cases.push(case(format!("a {name} volume that is there"), async move {
            field.make(VOLUMES, volume(name, named)).await?;
            let modes = json!(["ReadOnlyMany"]);
            let claim = with(claim(name, json!(named)), "/spec/accessModes", modes);
            field.make(CLAIMS, claim).await?;
            uses(field, name, name).await?;
            field.reaches(name, "Completed").await?;
            same("its volume", bound(field, name).await?, name.to_owned())?;
            // It is its owner's, and is kept for them.
            field
                .send("DELETE", &format!("{CLAIMS}/{name}"), &Value::Null)
                .await?;
            field
                .until("released", async || {
                    let volume = field.get(&format!("{VOLUMES}/{name}")).await.unwrap_or_default();
                    (volume["status"]["phase"] == "Released", volume)
                })
                .await
        }));
    }
    cases.push(case("a claim that comes after its Job", async {
        uses(&field, "early", "tardy").await?;
        field.pass(20.0).await;
        field.make(CLAIMS, claim("tardy", Value::Null)).await?;
        field.reaches("early", "Completed").await
    }));
    all(cases).await;
    field.stop(count::CLAIMING).await;
}
