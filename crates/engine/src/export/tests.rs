use super::*;
use crate::config::{SchedulerConf, catalog};
use crate::effect::Effect;
use serde_json::{Value, json};

fn read<T: for<'a> serde::Deserialize<'a>>(value: Value) -> T {
    serde_json::from_value(value).expect("a good object")
}

fn engine(names: SchedulerNames) -> Engine {
    let text = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]";
    let conf = SchedulerConf::parse(text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).expect("good");
    Engine::new(conf, names, "default").0
}

fn loaded(objects: impl IntoIterator<Item = Delta>) -> Engine {
    let mut engine = engine(SchedulerNames::Any);
    objects.into_iter().for_each(|object| engine.apply(object));
    engine
}

fn written(engine: &Engine) -> Vec<Value> {
    let value = |object| serde_json::to_value(Document(&object)).expect("writable");
    engine.objects().map(value).collect()
}

/// What comes out when one object went in.
#[track_caller]
fn comes_out(object: Delta, expected: Value) {
    assert_eq!(written(&loaded([object])), [expected]);
}

#[test]
fn a_pod_has_what_decisions_depend_on_and_nothing_else() {
    let pod = json!({
        "metadata": {
            "name": "train-worker-3", "namespace": "ns", "uid": "u1", "resourceVersion": "77",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "train", "volcano.sh/task-spec": "worker"},
            "annotations": {
                "scheduling.k8s.io/group-name": "train", "volcano.sh/task-priority": "5", "note": "for people",
                "volcano.sh/preemptable": "false",
            },
            "ownerReferences": [{"kind": "Job", "name": "train", "uid": "j1", "controller": true}],
        },
        "spec": {
            "schedulerName": "volcano", "priority": 7, "priorityClassName": "system-node-critical",
            "preemptionPolicy": "Never", "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "containers": [{
                "name": "main", "image": "img", "command": ["run", "--password=hunter2"],
                "env": [{"name": "TOKEN", "value": "hunter2"}],
                "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {"cpu": "2"}},
                "ports": [{"containerPort": 80}, {"containerPort": 22, "hostPort": 2222}],
            }],
            "volumes": [{"name": "key", "secret": {"secretName": "hunter2"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "schedulingGates": [{"name": "example.com/later"}],
        },
        "status": {
            "phase": "Pending", "nominatedNodeName": "n1",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room",
                "lastTransitionTime": "2026-01-01T00:00:01Z"}, {"type": "Initialized", "status": "True"}],
        },
    });
    comes_out(
        Delta::Pod(read(pod)),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "train-worker-3", "namespace": "ns", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"app": "train", "volcano.sh/task-spec": "worker"},
                "annotations": {"scheduling.k8s.io/group-name": "train", "volcano.sh/preemptable": "false"},
            },
            "spec": {
                "schedulerName": "volcano", "priority": 5, "priorityClassName": "system-cluster-critical",
                "preemptionPolicy": "Never", "nodeSelector": {"pool": "gpu"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "containers": [{
                    "name": "main", "image": "img", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}},
                    "ports": [{"containerPort": 22, "hostPort": 2222}],
                }],
                "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}],
                "schedulingGates": [{"name": "scheduling.volcano.sh/foreign"}],
            },
            "status": {
                "nominatedNodeName": "n1",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": "no room"}],
            },
        }),
    );
}

#[test]
fn a_pod_group_has_the_status_that_was_decided() {
    let group = json!({
        "metadata": {
            "name": "g", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00.25Z",
            "annotations": {"sla-waiting-time": "90m", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "labels": {"volcano.sh/preemptable": "true"},
        },
        "spec": {
            "minMember": 2, "minTaskMember": {"worker": 2, "master": 0}, "priorityClassName": "high",
            "minResources": {"cpu": "1", "nvidia.com/gpu": "0"}, "networkTopology": {"mode": "soft"},
            "subGroupPolicy": [{"name": "p", "matchLabelKeys": ["turn"]}],
        },
        "status": {"phase": "Inqueue", "conditions": [{"type": "Unschedulable", "status": "True", "reason": "r",
            "message": "m", "transitionID": "7", "lastTransitionTime": "2026-01-01T00:00:01Z"}], "running": 1},
    });
    comes_out(
        Delta::PodGroup(read(group)),
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {
                "name": "g", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00.250000Z",
                "annotations": {"volcano.sh/sla-waiting-time": "1h30m0s", "volcano.sh/preemptable": "true"},
            },
            "spec": {
                "minMember": 2, "minTaskMember": {"worker": 2}, "priorityClassName": "high", "queue": "default",
                "minResources": {"cpu": "1", "nvidia.com/gpu": "0"}, "networkTopology": {"mode": "soft"},
                "subGroupPolicy": [{"name": "p", "matchLabelKeys": ["turn"], "subGroupSize": 1, "minSubGroups": 0}],
            },
            "status": {"phase": "Inqueue", "conditions": [{"type": "Unschedulable", "status": "True", "reason": "r",
                "message": "m", "transitionID": "7", "lastTransitionTime": "2026-01-01T00:00:01Z"}], "running": 1},
        }),
    );
}

#[test]
fn a_queue_and_a_node_come_out_as_they_count() {
    let queue = json!({
        "metadata": {"name": "q", "annotations": {"volcano.sh/hierarchy": "root/q", "note": "x"}},
        "spec": {"weight": 0, "capability": {"cpu": "4"}, "guarantee": {"resource": {"nvidia.com/gpu": "1"}},
            "parent": "root", "dequeueStrategy": "fifo", "reclaimable": false, "priority": 3},
        "status": {"state": "Closing"},
    });
    comes_out(
        Delta::Queue(read(queue)),
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": "q", "annotations": {"volcano.sh/hierarchy": "root/q"}},
            "spec": {"weight": 1, "capability": {"cpu": "4"}, "guarantee": {"resource": {"nvidia.com/gpu": "1"}},
                "parent": "root", "dequeueStrategy": "fifo", "reclaimable": false, "priority": 3},
            "status": {"state": "Closing", "allocated": null},
        }),
    );
    let node = json!({
        "metadata": {"name": "n", "labels": {"zone": "z"}, "annotations": {"volcano.sh/oversubscription-cpu": "500"}},
        "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "Odd"}]},
        "status": {"allocatable": {"cpu": "1", "memory": "1000", "pods": "5", "nvidia.com/gpu": "0"},
            "images": [{"names": ["a", "b"], "sizeBytes": 5}]},
    });
    comes_out(
        Delta::Node(read(node)),
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n", "labels": {"zone": "z"}},
            "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "1500m", "memory": "1k", "pods": "5"},
                "images": [{"names": ["a"], "sizeBytes": 5}, {"names": ["b"], "sizeBytes": 5}]},
        }),
    );
}

#[test]
fn a_copy_of_an_object_that_a_tool_keeps_in_it_does_not_come_out() {
    let copy = json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"secret\": 1}"});
    let meta = json!({"name": "x", "namespace": "ns", "annotations": copy, "resourceVersion": "9"});
    let engine = loaded([
        Delta::Claim(read(json!({"metadata": meta}))),
        Delta::StorageClass(read(
            json!({"metadata": meta, "provisioner": "glusterfs", "parameters": {
                "restuserkey": "secret", "csi.storage.k8s.io/csi-driver-name": "driver-of-it",
            }}),
        )),
        Delta::HyperNode(read(
            json!({"metadata": {"name": "h", "annotations": copy, "managedFields": [{"secret": 1}]}}),
        )),
    ]);
    let text = json!(written(&engine)).to_string();
    assert!(
        !text.contains("secret") && !text.contains("resourceVersion"),
        "{text}"
    );
    assert!(
        text.contains("driver-of-it"),
        "what decisions depend on stays: {text}"
    );
}

#[test]
fn pods_keep_being_this_schedulers_or_anothers() {
    let names = |list: &[&str]| SchedulerNames::Only(list.iter().map(|name| (*name).to_owned()).collect());
    for (scheduler_names, expected) in [
        (
            names(&["volcano", "vc2"]),
            ["volcano", "volcano", "default-scheduler"],
        ),
        (
            names(&["volcano", "vc2", "default-scheduler"]),
            ["volcano", "volcano", "volcano"],
        ),
        (
            names(&["default-scheduler"]),
            [
                "not-default-scheduler",
                "not-default-scheduler",
                "default-scheduler",
            ],
        ),
        (SchedulerNames::Any, ["volcano", "volcano", "volcano"]),
    ] {
        let mut engine = engine(scheduler_names.clone());
        for (at, of) in ["volcano", "vc2", "default-scheduler"].into_iter().enumerate() {
            engine.apply(Delta::Pod(read(json!({
                "metadata": {"name": format!("p{at}"), "namespace": "ns"}, "spec": {"schedulerName": of, "nodeName": "n"},
            }))));
        }
        let out: Vec<String> = engine
            .objects()
            .map(|object| match object {
                Delta::Pod(pod) => pod.spec.scheduler_name,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(out, expected, "{scheduler_names:?}");
    }
}

#[test]
fn a_change_that_brings_no_object_cannot_be_written() {
    let gone = Delta::NodeGone { name: "n".to_owned() };
    assert!(serde_json::to_value(Document(&gone)).is_err());
}

/// A node, a queue, and a pod whose claim of a class waits for its node.
fn with_claim(class: &str, provisioner: &str) -> Vec<Delta> {
    let pod = json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
    });
    vec![
        Delta::Queue(read(json!({"metadata": {"name": "default"}}))),
        Delta::Node(read(json!({
            "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}
        }))),
        Delta::StorageClass(read(json!({
            "metadata": {"name": class}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        }))),
        Delta::Volume(read(json!({
            "metadata": {"name": "pv"}, "spec": {"storageClassName": "local"}, "status": {"phase": "Available"},
        }))),
        Delta::Claim(read(json!({
            "metadata": {"name": "c", "namespace": "ns", "uid": "cu"}, "spec": {"storageClassName": class},
        }))),
        Delta::PodGroup(read(
            json!({"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 1}}),
        )),
        Delta::Pod(read(pod)),
    ]
}

/// Name of the claim that the volume is set aside for, and the node that the claim's volume is to be made for.
fn decided_volumes(engine: &Engine) -> (Option<String>, Option<String>) {
    let (mut reserved, mut node) = (None, None);
    for object in engine.objects() {
        match object {
            Delta::Volume(volume) => reserved = volume.spec.claim_ref.map(|claim| claim.uid),
            Delta::Claim(mut claim) => {
                node = claim
                    .metadata
                    .annotations
                    .remove("volume.kubernetes.io/selected-node");
            }
            _ => {}
        }
    }
    (reserved, node)
}

#[test]
fn volumes_that_were_decided_on_are_shown_until_the_bind_fails() {
    let cases = [
        ("local", "kubernetes.io/no-provisioner", (Some("cu"), None)),
        ("made", "csi.example.com", (None, Some("n1"))),
    ];
    for (class, provisioner, (reserved, node)) in cases {
        let mut engine = loaded(with_claim(class, provisioner));
        assert_eq!(decided_volumes(&engine), (None, None), "{class}");
        let cycle = engine.cycle(Time::EPOCH, &mut |_| {});
        assert!(
            cycle.effects.iter().any(|e| matches!(e, Effect::Bind { .. })),
            "{class}"
        );
        let expected = (reserved.map(str::to_owned), node.map(str::to_owned));
        assert_eq!(decided_volumes(&engine), expected, "{class}");
        engine.apply(Delta::BindFailed {
            namespace: "ns".to_owned(),
            name: "p".to_owned(),
            uid: "u".to_owned(),
        });
        assert_eq!(decided_volumes(&engine), (None, None), "{class}");
    }
}

#[test]
fn a_snapshot_says_how_it_is_to_be_planned() {
    let mut engine = engine(SchedulerNames::Only(vec!["vc1".to_owned(), "vc2".to_owned()]));
    engine.apply(Delta::Queue(read(json!({"metadata": {"name": "default"}}))));
    let now = Time::parse("2026-01-01T00:00:00.5Z").expect("a time");
    let snapshot = serde_json::to_value(engine.snapshot("actions: allocate", now)).expect("writable");
    assert_eq!(snapshot["objects"].as_array().map(Vec::len), Some(1));
    let mut head = snapshot;
    head.as_object_mut().expect("a map").remove("objects");
    assert_eq!(
        head,
        json!({
            "conf": r#"{"actions": "allocate"}"#, "schedulerNames": ["vc1", "vc2"], "defaultQueue": "default",
            "features": {"queueAdmission": false, "sharding": null, "storageScoring": false, "ignoredProvisioners": []},
            "now": "2026-01-01T00:00:00.500000Z", "complete": true,
            "underway": {"bindFailed": [], "gatesOpened": []},
        })
    );
}

#[test]
fn a_password_in_the_configuration_is_not_in_the_snapshot_which_replays_as_before() {
    let text = "actions: allocate\ntiers:\n- plugins: [{name: gang}]\nmetrics:\n  type: elasticsearch\n  \
        address: https://u:hunter1@h\n  elasticsearch:\n    username: u\n    password: hunter2\n";
    let parse =
        |text: &str| SchedulerConf::parse(text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).expect("valid");
    let (engine, _) = Engine::new(parse(text), SchedulerNames::Any, "default");
    let snapshot = serde_json::to_value(engine.snapshot(text, Time::EPOCH)).expect("writable");
    assert!(!snapshot.to_string().contains("hunter"), "{snapshot}");
    let (replayed, mut used) = (parse(snapshot["conf"].as_str().expect("a text")), parse(text));
    used.metrics.clear();
    assert_eq!(replayed, used);
}
