//! What holds for every request, good or bad.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use volcano_admission::{ResourceGroups, Response, review, webhooks};
use volcano_api::batch::Job;
use volcano_api::quantity::Quantity;

use super::world::{World, envelope, job, refusal, task};

/// An object for each path that uses as many of its fields as there are.
fn example(path: &str) -> Value {
    match path.split('/').nth(1) {
        Some("jobs") => full_job(),
        Some("queues") => json!({"metadata": {"name": "q", "annotations":
                {"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/2"}},
            "spec": {"parent": "team", "weight": 2, "capability": {"cpu": "4", "nvidia.com/gpu": 2},
                "deserved": {"cpu": "2"}, "guarantee": {"resource": {"cpu": "1"}}},
            "status": {"state": "Open", "allocated": {"pods": 1}}}),
        Some("podgroups") => json!({"metadata": {"name": "g"}, "spec": {"queue": "default", "minMember": 2,
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
            "subGroupPolicy": [{"name": "a", "networkTopology": {"highestTierName": "b"}}]}}),
        Some("pods") => {
            json!({"metadata": {"name": "p", "annotations": {"volcano.sh/jdb-min-available": "50%",
                "scheduling.volcano.sh/queue-allocation-gate": "true", "volcano.sh/resource-group": "gpu"}},
            "spec": {"schedulerName": "volcano", "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
                "schedulingGates": [{"name": "x"}]}})
        }
        Some("jobflows") => json!({"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a"},
            {"name": "b", "dependsOn": {"targets": ["a"]}, "patch": {"jobSpec": {"queue": "x"}}}]}}),
        Some("cronjobs") => json!({"metadata": {"name": "c"}, "spec": {"schedule": "*/5 * * * *",
            "timeZone": "Europe/Berlin", "jobTemplate": {"spec": {"tasks": []}}}}),
        _ => json!({"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [
            {"type": "Node", "selector": {"regexMatch": {"pattern": "a(b|c)[d-f]+"}}},
            {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]}}),
    }
}

fn full_job() -> Value {
    let mut job = job();
    let spec = &mut job["spec"];
    spec["plugins"] = json!({"mpi": ["--master=a", "--port", "22"], "svc": []});
    spec["policies"] = json!([{"events": ["PodFailed"], "action": "RestartJob", "timeout": "1m"}, {"exitCode": 3, "action": "AbortJob"}]);
    spec["volumes"] =
        json!([{"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/b", "volumeClaim": {}}]);
    spec["networkTopology"] = json!({"mode": "soft", "highestTierName": "rack"});
    spec["tasks"] = json!([task("a"), task("b")]);
    let task = &mut spec["tasks"][1];
    task["dependsOn"] = json!({"name": ["a"], "iteration": "any"});
    task["topologyPolicy"] = "restricted".into();
    task["replicas"] = 4.into();
    task["partitionPolicy"] = json!({"totalPartitions": 2, "partitionSize": 2});
    task["template"] = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {
        "hostNetwork": true, "nodeSelector": {"a": "b"}, "restartPolicy": "OnFailure",
        "tolerations": [{"key": "k", "operator": "Exists"}], "schedulingGates": [{"name": "g"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "c"}}],
        "initContainers": [{"name": "i", "image": "i", "resources": {"limits": {"cpu": 1}}}],
        "containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 80, "hostPort": 80}],
            "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "volumeDevices": [{"name": "p", "devicePath": "/dev/p"}],
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}}]}});
    job
}

fn world() -> World {
    let mut world = World::new();
    world
        .add("team", json!({"parent": "root", "capability": {"cpu": 8}, "deserved": {"cpu": 4}, "guarantee": {"resource": {"cpu": 2}}}))
        .add("q", json!({"parent": "team", "deserved": {"cpu": 1}}))
        .add("below", json!({"parent": "q", "capability": {"cpu": 1}}))
        .namespace("ns", "scheduling.volcano.sh/queue-name", "q");
    let groups = "resourceGroups: [{resourceGroup: gpu, labels: {pool: gpu}, schedulerName: s, affinity: '{}', tolerations: [{key: a, operator: Exists}]}]";
    world.options.resource_groups = Some(ResourceGroups::parse(groups).expect("the file is readable"));
    world.options.queue_allocation_gates = true;
    world
}

/// Values that are at home somewhere in an object, and some that are nowhere.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(vec![
            0i64,
            1,
            -1,
            2,
            3,
            80,
            65536,
            i64::from(i32::MAX),
            i64::from(i32::MIN),
            i64::MAX,
            i64::MIN
        ])
        .prop_map(Value::from),
        (-1e6f64..1e6).prop_map(Value::from),
        select(vec![
            "",
            "a",
            "A_",
            "-",
            "a/b",
            "*",
            "100m",
            "-1",
            "1Gi",
            "1e400",
            "9999999999999999999E",
            "PodFailed",
            "Always",
            "root",
            "q",
            "below",
            "@every 1h",
            "60%",
            "((",
            "[",
            "\u{0}\u{e9}\n",
            "Europe/Berlin",
            "--master=b",
            "1/2/3",
        ])
        .prop_map(Value::from),
        "\\PC{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let key = select(vec![
            "name",
            "spec",
            "cpu",
            "parent",
            "key",
            "a",
            "nvidia.com/gpu",
            "tasks",
            "containers",
        ]);
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(key, inner, 0..5).prop_map(|members| json!(members)),
        ]
    })
}

/// Every place in an object, as a JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                places(
                    member,
                    &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(i, item)| places(item, &format!("{at}/{i}"), found)),
        _ => {}
    }
}

/// Puts other values at some places of an object.
fn disturb(mut object: Value, changes: &[(Index, Value)]) -> Value {
    for (index, value) in changes {
        let mut found = Vec::new();
        places(&object, "", &mut found);
        *object
            .pointer_mut(index.get::<String>(&found))
            .expect("it was just found") = value.clone();
    }
    object
}

fn disturbed(path: &'static str) -> impl Strategy<Value = Value> {
    vec((any::<Index>(), value()), 0..4).prop_map(move |changes| disturb(example(path), &changes))
}

fn any_path() -> impl Strategy<Value = &'static str> {
    select(
        webhooks::ALL
            .iter()
            .map(|webhook| webhook.path)
            .collect::<Vec<_>>(),
    )
}

/// An answer is a review that says either yes or why not.
fn is_an_answer(response: &Response) -> Result<(), TestCaseError> {
    prop_assert_eq!(response.allowed, response.message.is_empty());
    prop_assert!(response.allowed || response.patch.is_empty());
    let written: Value = serde_json::from_slice(&response.to_bytes()).expect("the answer is JSON");
    prop_assert_eq!(&written["kind"], "AdmissionReview");
    prop_assert_eq!(&written["response"]["uid"], response.uid.as_str());
    prop_assert_eq!(&written["response"]["allowed"], response.allowed);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes_of_any_kind_are_answered(path in any_path(), body in vec(any::<u8>(), 0..400)) {
        let world = world();
        let response = review(path, &body, &world, &world.options);
        prop_assert!(!response.allowed);
        is_an_answer(&response)?;
    }

    #[test]
    fn reviews_of_any_form_are_answered(
        path in any_path(), changes in vec((any::<Index>(), value()), 0..4), cut in any::<Option<Index>>(),
    ) {
        let world = world();
        let request = json!({"operation": "UPDATE", "object": example(path), "oldObject": example(path)});
        let mut body = disturb(envelope(path, request), &changes).to_string().into_bytes();
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        is_an_answer(&review(path, &body, &world, &world.options))?;
    }

    #[test]
    fn objects_of_any_form_are_answered_by_their_rules(
        (path, old, new) in any_path().prop_flat_map(|path| (Just(path), disturbed(path), disturbed(path))),
        operation in select(vec!["CREATE", "UPDATE", "DELETE"]),
    ) {
        let world = world();
        let response = world.ask(path, json!({"operation": operation, "name": "q", "object": new, "oldObject": old}));
        is_an_answer(&response)?;
        prop_assert_eq!(response.uid, "u-1");
    }

    #[test]
    fn what_was_filled_in_is_not_filled_in_again(
        (path, object) in select(webhooks::ALL.iter().filter(|w| w.mutating).map(|w| w.path).collect::<Vec<_>>())
            .prop_flat_map(|path| (Just(path), disturbed(path))),
    ) {
        let world = world();
        if !world.create(path, &object).allowed {
            return Ok(());
        }
        let once = world.mutated(path, &object);
        let twice = world.mutated(path, &once);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_job_that_does_not_change_is_not_refused_for_a_change(object in disturbed("/jobs/validate")) {
        let world = world();
        let Ok(typed) = serde_json::from_value::<Job>(object.clone()) else { return Ok(()) };
        let written = serde_json::to_value(typed).expect("a Job is JSON");
        for new in [&object, &written] {
            let message = world.update("/jobs/validate", &object, new).message;
            prop_assert!(!message.starts_with("job updates may not"), "{}", message);
        }
    }
}

#[test]
fn the_examples_are_admitted_as_they_are() {
    let mut world = world();
    world.add("q", json!({"parent": "team"}));
    for webhook in webhooks::ALL {
        let refused = refusal(&world.create(webhook.path, &example(webhook.path)));
        assert_eq!(refused, "", "{}", webhook.path);
    }
}

/// A Job of good tasks, of which much is left open.
fn open_job() -> impl Strategy<Value = Value> {
    let task = (any::<bool>(), 0..5i32, any::<bool>(), any::<bool>(), 0..3i32).prop_map(
        |(named, replicas, minimum, on_host, partitions)| {
            let mut task = json!({"replicas": replicas, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}});
            if named {
                task["name"] = "n".into();
            }
            if minimum {
                task["minAvailable"] = (replicas / 2).into();
            }
            if on_host {
                task["template"]["spec"]["hostNetwork"] = true.into();
            }
            if partitions > 0 {
                task["replicas"] = (4 * partitions).into();
                task["minAvailable"] = Value::Null;
                task["partitionPolicy"] = json!({"totalPartitions": 4, "partitionSize": partitions, "minPartitions": partitions});
            }
            task
        },
    );
    let plugins = select(vec![
        json!(null),
        json!({"ray": []}),
        json!({"tensorflow": [], "env": []}),
        json!({"ssh": []}),
    ]);
    (vec(task, 1..5), plugins, any::<bool>()).prop_map(|(mut tasks, plugins, queue)| {
        for (index, task) in tasks.iter_mut().enumerate() {
            if task.get("name").is_some() {
                task["name"] = format!("n{index}").into();
            }
        }
        let mut spec = json!({"tasks": tasks, "plugins": plugins});
        if queue {
            spec["queue"] = "default".into();
        }
        json!({"metadata": {"name": "j"}, "spec": spec})
    })
}

/// A queue by number: its parent's number, and its amounts in thousandths of processors.
type Planned = (usize, Option<u32>, u32, u32);

fn planned() -> impl Strategy<Value = Vec<Planned>> {
    vec(
        (
            0..8usize,
            proptest::option::of(1..6000u32),
            0..3000u32,
            0..3000u32,
        ),
        1..16,
    )
}

proptest! {
    #[test]
    fn a_good_job_is_admitted_once_its_defaults_are_filled_in(object in open_job()) {
        let world = world();
        let complete = world.mutated("/jobs/mutate", &object);
        prop_assert_eq!(world.refusal("/jobs/validate", &complete), "");
        prop_assert_eq!(refusal(&world.update("/jobs/validate", &complete, &complete)), "");
    }

    #[test]
    fn queues_that_were_admitted_one_by_one_add_up(plan in planned()) {
        let mut world = World::new();
        world.options.max_queue_depth = 100;
        let mut admitted: BTreeMap<String, Value> = BTreeMap::new();
        for (number, (parent, capability, deserved, guarantee)) in plan.iter().enumerate() {
            let milli = |value: u32| json!({"cpu": format!("{value}m")});
            let parent = if *parent < number { format!("q{parent}") } else { "root".to_owned() };
            let deserved = deserved.max(guarantee);
            let mut spec = json!({"parent": parent, "deserved": milli(*deserved), "guarantee": {"resource": milli(*guarantee)}});
            if let Some(capability) = capability {
                spec["capability"] = milli(*capability.max(deserved));
            }
            let name = format!("q{number}");
            if world.refusal("/queues/validate", &json!({"metadata": {"name": name}, "spec": spec})).is_empty() {
                world.add(&name, spec.clone());
                admitted.insert(name, spec);
            }
        }
        let amount = |spec: &Value, pointer: &str| -> Quantity {
            spec.pointer(pointer).map_or(Quantity::ZERO, |v| v.as_str().expect("text").parse().expect("an amount"))
        };
        for (name, spec) in &admitted {
            let children: Vec<&Value> = admitted.values().filter(|child| child["parent"] == name.as_str()).collect();
            if children.is_empty() {
                continue;
            }
            for pointer in ["/deserved/cpu", "/guarantee/resource/cpu"] {
                let sum: Quantity = children.iter().map(|child| amount(child, pointer)).sum();
                prop_assert!(sum <= amount(spec, pointer), "{} of {}", pointer, name);
            }
            if spec.get("capability").is_some() {
                for child in children {
                    prop_assert!(amount(child, "/capability/cpu") <= amount(spec, "/capability/cpu"), "{}", name);
                }
            }
        }
    }
}
