//! Pods that are not of our Jobs: PodGroups that others make, plain pods, pods of workloads; and what nodes do with pods.

use crate::count;
use crate::field::{Field, GROUPS, all, case, holds, pool, same, text};
use serde_json::{Value, json};

fn pod(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "restartPolicy": "Never",
            "containers": [{
                "name": "main",
                "image": "busybox:1",
                "command": ["sh", "-c", script],
                "resources": {"requests": {"cpu": "1"}},
            }],
        },
    })
}

async fn reaches(field: &Field, pod: &str, phase: &str) -> Result<(), String> {
    field
        .until(&format!("{pod} {phase}"), async || {
            let status = field.pod(pod).await["status"].take();
            (status["phase"] == phase, status)
        })
        .await
}

#[tokio::test(start_paused = true)]
async fn pods_of_others_are_placed_too() {
    let field = Field::new(vec![pool("all", 2, 8)]).await;
    let mut cases = Vec::new();
    cases.push(case("spark", async {
        // A driver that makes a PodGroup, and executors that name it.
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "spark", "namespace": "default"},
            "spec": {"minMember": 3, "queue": "default"},
        });
        field.make(GROUPS, group).await?;
        let member = |name: &str| {
            let mut pod = pod(name, "sleep 30");
            pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "spark"});
            pod
        };
        field.make_pod(member("spark-driver")).await?;
        field.make_pod(member("spark-exec-1")).await?;
        field.pass(60.0).await;
        let phase = field.pod("spark-driver").await["status"]["phase"].take();
        same("two of three wait", text(&phase), "Pending".to_owned())?;
        field.make_pod(member("spark-exec-2")).await?;
        for name in ["spark-driver", "spark-exec-1", "spark-exec-2"] {
            reaches(&field, name, "Succeeded").await?;
        }
        Ok(())
    }));
    cases.push(case("plain", async {
        field.make_pod(pod("plain", "sleep 10")).await?;
        reaches(&field, "plain", "Running").await?;
        let plain = field.pod("plain").await;
        let group = text(&plain["metadata"]["annotations"]["scheduling.k8s.io/group-name"]);
        let uid = text(&plain["metadata"]["uid"]);
        same("its PodGroup", group, format!("podgroup-{uid}"))?;
        reaches(&field, "plain", "Succeeded").await
    }));
    for (kind, plural, name) in [
        ("StatefulSet", "statefulsets", "db"),
        ("ReplicaSet", "replicasets", "web"),
    ] {
        let field = &field;
        cases.push(case(kind, async move {
            let labels = json!({"app": name});
            let mut set = json!({
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "annotations": {"scheduling.volcano.sh/group-min-member": "2"},
                },
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "main", "image": "serve:1"}]},
                    },
                },
            });
            if kind == "StatefulSet" {
                set["spec"]["serviceName"] = name.into();
            }
            let path = format!("/apis/apps/v1/namespaces/default/{plural}");
            let set = field.make(&path, set).await?;
            let uid = text(&set["metadata"]["uid"]);
            let member = |index: u32| {
                let mut pod = pod(&format!("{name}-{index}"), "serve");
                pod["metadata"]["labels"] = labels.clone();
                pod["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "apps/v1",
                    "kind": kind,
                    "name": name,
                    "uid": uid,
                    "controller": true,
                }]);
                pod
            };
            field.make_pod(member(0)).await?;
            field.pass(60.0).await;
            let phase = field.pod(&format!("{name}-0")).await["status"]["phase"].take();
            same("one of two waits", text(&phase), "Pending".to_owned())?;
            field.make_pod(member(1)).await?;
            for pod in [format!("{name}-0"), format!("{name}-1")] {
                reaches(field, &pod, "Running").await?;
                let group =
                    field.pod(&pod).await["metadata"]["annotations"]["scheduling.k8s.io/group-name"].take();
                same("its PodGroup", text(&group), format!("podgroup-{uid}"))?;
            }
            Ok(())
        }));
    }
    cases.push(case("of a kind of others", async {
        let names = json!({"plural": "pytorchjobs", "kind": "PyTorchJob"});
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "pytorchjobs.kubeflow.org"},
            "spec": {
                "group": "kubeflow.org",
                "scope": "Namespaced",
                "names": names,
                "versions": [
                    {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
                ],
            },
        });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        field.make(definitions, definition).await?;
        let train =
            json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train"}});
        let train = field
            .make("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs", train)
            .await?;
        let uid = text(&train["metadata"]["uid"]);
        for name in ["train-master-0", "train-worker-0"] {
            let mut pod = pod(name, "sleep 30");
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "name": "train",
                "uid": uid,
                "controller": true,
            }]);
            field.make_pod(pod).await?;
        }
        for name in ["train-master-0", "train-worker-0"] {
            reaches(&field, name, "Running").await?;
            let group =
                field.pod(name).await["metadata"]["annotations"]["scheduling.k8s.io/group-name"].take();
            same("its PodGroup", text(&group), format!("podgroup-{uid}"))?;
        }
        let groups = field.list(GROUPS).await;
        let theirs = groups
            .iter()
            .filter(|group| group["metadata"]["ownerReferences"][0]["uid"] == uid.as_str());
        same("one PodGroup for both", theirs.count(), 1)
    }));
    cases.push(case("of no scheduler", async {
        // As `kubectl run` makes it.
        let mut bare = pod("bare", "sleep 10");
        bare["spec"].as_object_mut().unwrap().remove("schedulerName");
        field.make_pod(bare).await?;
        reaches(&field, "bare", "Running").await?;
        let bare = field.pod("bare").await;
        let group = text(&bare["metadata"]["annotations"]["scheduling.k8s.io/group-name"]);
        let group = field.get(&format!("{GROUPS}/{group}")).await.unwrap_or_default();
        same("its queue", text(&group["spec"]["queue"]), "default".to_owned())?;
        reaches(&field, "bare", "Succeeded").await
    }));
    cases.push(case("not ours", async {
        let mut foreign = pod("foreign", "sleep 5");
        foreign["spec"]["schedulerName"] = "another".into();
        field.make_pod(foreign).await?;
        field.pass(120.0).await;
        let node = field.pod("foreign").await["spec"]["nodeName"].take();
        same("its node", node, Value::Null)
    }));
    all(cases).await;
    field.stop(count::NONE).await;
}

#[tokio::test(start_paused = true)]
async fn pods_go_with_their_node() {
    let field = Field::new(vec![pool("all", 1, 8)]).await;
    let lost = case("lost", async {
        field.make_pod(pod("lost", "serve")).await?;
        reaches(&field, "lost", "Running").await?;
        field.send("DELETE", "/api/v1/nodes/all-0", &Value::Null).await?;
        let gone = async || {
            let lost = field.pod("lost").await;
            (lost.is_null(), lost["status"]["phase"].clone())
        };
        field.until("gone", gone).await
    });
    all(vec![lost]).await;
    field.stop(count::NONE).await;
}

#[tokio::test(start_paused = true)]
async fn simulated_nodes_report_as_kubelets_do() {
    let field = Field::new(vec![pool("all", 2, 8)]).await;
    let mut cases = Vec::new();
    cases.push(case("status", async {
        field.make_pod(pod("shown", "sleep 60; exit 3")).await?;
        reaches(&field, "shown", "Running").await?;
        let status = field.pod("shown").await["status"].take();
        holds("it has an address", text(&status["podIP"]).starts_with("10."))?;
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        for name in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
            let one = conditions.iter().find(|one| one["type"] == name);
            same(name, one.map(|one| text(&one["status"])), Some("True".to_owned()))?;
        }
        reaches(&field, "shown", "Failed").await?;
        let status = field.pod("shown").await["status"].take();
        let ended = &status["containerStatuses"][0]["state"]["terminated"];
        same("exit code", ended["exitCode"].clone(), json!(3))
    }));
    cases.push(case("annotated", async {
        let mut object = pod("annotated", "serve");
        object["metadata"]["annotations"] = json!({
            "volcano.sh/simulated-duration": "1m30s",
            "volcano.sh/simulated-exit-code": "7",
        });
        let began = field.seconds();
        field.make_pod(object).await?;
        reaches(&field, "annotated", "Failed").await?;
        let took = field.seconds() - began;
        holds(
            &format!("it ran for a minute and a half: {took}"),
            (90.0..95.0).contains(&took),
        )
    }));
    cases.push(case("wrong annotation", async {
        let mut object = pod("wrong", "sleep 5");
        object["metadata"]["annotations"] = json!({"volcano.sh/simulated-duration": "soon"});
        field.make_pod(object).await?;
        reaches(&field, "wrong", "Succeeded").await?;
        field
            .until("told in an event", async || {
                let events = field.list("/api/v1/namespaces/default/events").await;
                let told = events.iter().any(|event| {
                    event["reason"] == "InvalidAnnotation" && event["involvedObject"]["name"] == "wrong"
                });
                (told, events.len())
            })
            .await
    }));
    cases.push(case("grace", async {
        let mut object = pod("slow", "serve");
        object["metadata"]["annotations"] = json!({"volcano.sh/simulated-termination": "20s"});
        field.make_pod(object).await?;
        reaches(&field, "slow", "Running").await?;
        field.delete_pod("slow").await?;
        field.pass(15.0).await;
        holds("it is still there", !field.pod("slow").await.is_null())?;
        field.pass(10.0).await;
        same("it is gone", field.pod("slow").await, Value::Null)
    }));
    cases.push(case("addresses", async {
        for index in 0..5 {
            field.make_pod(pod(&format!("many-{index}"), "sleep 500")).await?;
        }
        let mut addresses = Vec::new();
        for index in 0..5 {
            let name = format!("many-{index}");
            reaches(&field, &name, "Running").await?;
            addresses.push(text(&field.pod(&name).await["status"]["podIP"]));
        }
        addresses.sort();
        addresses.dedup();
        same("different addresses", addresses.len(), 5)
    }));
    all(cases).await;
    let (scheduler, controllers) = field.system().metrics();
    assert!(
        scheduler.contains("volcano_e2e_scheduling_latency_milliseconds"),
        "{scheduler}"
    );
    assert!(controllers.contains("volcano_api_writes_total"), "{controllers}");
    field.stop(count::NONE).await;
}
