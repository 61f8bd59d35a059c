//! Rules for pods.

use serde_json::{Value, json};
use volcano_admission::{Event, ResourceGroups};

use super::world::{World, refusal, with};

const MIN: &str = "volcano.sh/jdb-min-available";
const MAX: &str = "volcano.sh/jdb-max-unavailable";
const GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

fn pod(annotations: Value) -> Value {
    json!({"metadata": {"name": "p", "annotations": annotations}, "spec": {"schedulerName": "volcano"}})
}

#[test]
fn budgets_are_numbers_or_percentages() {
    let cases = [
        ("1", ""),
        ("50%", ""),
        ("99%", ""),
        ("0", "invalid value <\"0\"> for K, it must be a positive integer"),
        (
            "-3",
            "invalid value <\"-3\"> for K, it must be a positive integer",
        ),
        (
            "0%",
            "invalid value <\"0%\"> for K, it must be a valid percentage which between 1% ~ 99%",
        ),
        (
            "100%",
            "invalid value <\"100%\"> for K, it must be a valid percentage which between 1% ~ 99%",
        ),
        (
            "some",
            "invalid value strconv.Atoi: parsing \"some\": invalid syntax for K",
        ),
        (
            "",
            "invalid value strconv.Atoi: parsing \"\": invalid syntax for K",
        ),
        (
            "99999999999999999999",
            "invalid value strconv.Atoi: parsing \"99999999999999999999\": value out of range for K",
        ),
    ];
    for key in [MIN, MAX] {
        for (value, expected) in cases {
            let refused = World::new().refusal("/pods/validate", &pod(json!({key: value})));
            assert_eq!(refused, expected.replace('K', key), "{value:?}");
        }
    }
    assert_eq!(
        World::new().refusal("/pods/validate", &pod(json!({MIN: "1", MAX: "1"}))),
        "not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> at same time"
    );
}

#[test]
fn pods_of_other_schedulers_are_not_judged() {
    let mut world = World::new();
    let bad = pod(json!({MIN: "0"}));
    let other = with(bad.clone(), "/spec/schedulerName", json!("default-scheduler"));
    assert_eq!(world.refusal("/pods/validate", &other), "");
    world.options.scheduler_names.push("default-scheduler".into());
    assert_ne!(world.refusal("/pods/validate", &other), "");
    assert_ne!(world.refusal("/pods/validate", &bad), "");
}

#[test]
fn a_bad_budget_is_told_in_an_event_too() {
    let world = World::new();
    let object = pod(json!({MAX: "0"}));
    let message = format!("invalid value <\"0\"> for {MAX}, it must be a positive integer");
    let event = Event {
        namespace: "ns".into(),
        name: "p".into(),
        reason: "Admit",
        message,
    };
    assert_eq!(world.create("/pods/validate", &object).event, Some(event));
    let dry = json!({"operation": "CREATE", "object": object, "dryRun": true});
    assert_eq!(
        world.ask("/pods/validate", dry).event,
        None,
        "a dry run writes nothing"
    );
    assert_eq!(
        world
            .create("/pods/validate", &pod(json!({MIN: "1", MAX: "1"})))
            .event,
        None
    );
}

fn world_of(groups: &str) -> World {
    let mut world = World::new();
    world.options.resource_groups = Some(ResourceGroups::parse(groups).expect("the file is readable"));
    world
}

const GROUPS: &str = r#"
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value: [mng-ns-1, mng-ns-2]
  schedulerName: default-scheduler
  labels:
    volcano.sh/nodetype: management
- resourceGroup: cpu
  object:
    key: annotation
    value: ["a/b: cpu", "a/b: processor"]
  schedulerName: volcano
  tolerations:
  - {key: k, operator: Equal, value: v, effect: NoExecute, tolerationseconds: 5}
  affinity: '{"nodeAffinity": {"x": 1}}'
- resourceGroup: gpu
  schedulerName: volcano
  labels: {pool: gpu}
"#;

#[test]
fn pods_get_what_their_group_has() {
    let world = world_of(GROUPS);
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let toleration =
        json!({"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5});
    let in_namespace = with(pod(json!({})), "/metadata/namespace", json!("mng-ns-2"));
    let selector = with(
        in_namespace.clone(),
        "/spec/nodeSelector",
        json!({"a": "b", "volcano.sh/nodetype": "x"}),
    );
    let cpu = pod(json!({"a/b": "processor"}));
    let tolerant = with(cpu.clone(), "/spec/tolerations", json!([{"operator": "Exists"}]));
    let attached = with(cpu.clone(), "/spec/affinity", json!({"podAffinity": {}}));
    let cases = [
        ("of no group", pod(json!({"a/b": "other"})), json!([])),
        (
            "by its namespace",
            in_namespace,
            json!([
                add("/spec/nodeSelector", json!({"volcano.sh/nodetype": "management"})),
                add("/spec/schedulerName", json!("default-scheduler"))
            ]),
        ),
        (
            "the group's label wins",
            selector,
            json!([
                add(
                    "/spec/nodeSelector",
                    json!({"a": "b", "volcano.sh/nodetype": "management"})
                ),
                add("/spec/schedulerName", json!("default-scheduler"))
            ]),
        ),
        (
            "by an annotation",
            cpu,
            json!([
                add("/spec/affinity", json!({"nodeAffinity": {"x": 1}})),
                add("/spec/tolerations", json!([toleration])),
                add("/spec/schedulerName", json!("volcano"))
            ]),
        ),
        (
            "its own tolerations stay",
            tolerant,
            json!([
                add("/spec/affinity", json!({"nodeAffinity": {"x": 1}})),
                add("/spec/tolerations", json!([{"operator": "Exists"}, toleration])),
                add("/spec/schedulerName", json!("volcano"))
            ]),
        ),
        (
            "it has the toleration",
            with(attached.clone(), "/spec/tolerations", json!([toleration])),
            json!([add("/spec/schedulerName", json!("volcano"))]),
        ),
        (
            "its own affinity stays",
            attached,
            json!([
                add("/spec/tolerations", json!([toleration])),
                add("/spec/schedulerName", json!("volcano"))
            ]),
        ),
        (
            "by the annotation of groups",
            pod(json!({"volcano.sh/resource-group": "gpu"})),
            json!([
                add("/spec/nodeSelector", json!({"pool": "gpu"})),
                add("/spec/schedulerName", json!("volcano"))
            ]),
        ),
        (
            "that annotation does not help groups with a key",
            pod(json!({"volcano.sh/resource-group": "cpu"})),
            json!([]),
        ),
    ];
    for (name, object, expected) in cases {
        assert_eq!(world.changes("/pods/mutate", &object), expected, "{name}");
    }
    let request = json!({"operation": "CREATE", "namespace": "mng-ns-1", "object": pod(json!({}))});
    let response = world.ask("/pods/mutate", request);
    assert_eq!(refusal(&response), "");
    assert_eq!(
        response.patch.operations().len(),
        2,
        "the namespace of the request counts"
    );
}

#[test]
fn without_a_file_nothing_changes() {
    let mut world = World::new();
    world.options.queue_allocation_gates = true;
    assert_eq!(
        world.changes("/pods/mutate", &pod(json!({GATE: "true"}))),
        json!([])
    );
}

#[test]
fn pods_are_held_back_when_they_ask_for_it() {
    let mut world = world_of("");
    let asking = pod(json!({GATE: "true"}));
    let gate = json!({"name": GATE});
    assert_eq!(
        world.changes("/pods/mutate", &asking),
        json!([]),
        "the feature is off"
    );
    world.options.queue_allocation_gates = true;
    let cases = [
        (
            "the first gate",
            asking.clone(),
            json!([{"op": "add", "path": "/spec/schedulingGates", "value": [gate]}]),
        ),
        (
            "one more",
            with(asking.clone(), "/spec/schedulingGates", json!([{"name": "x"}])),
            json!([{"op": "add", "path": "/spec/schedulingGates/-", "value": gate}]),
        ),
        (
            "it is there",
            with(asking, "/spec/schedulingGates", json!([gate])),
            json!([]),
        ),
        ("it does not ask", pod(json!({GATE: "false"})), json!([])),
        ("it says nothing", pod(json!({})), json!([])),
    ];
    for (name, object, expected) in cases {
        assert_eq!(world.changes("/pods/mutate", &object), expected, "{name}");
    }
}

#[test]
fn files_of_resource_groups() {
    let notes = |text: &str| {
        ResourceGroups::parse(text)
            .map(|groups| groups.notes().to_vec())
            .map_err(|e| e.to_string())
    };
    for empty in [
        "",
        "# only a comment\n",
        "resourceGroups:\n",
        "resourceGroups: []",
    ] {
        assert_eq!(notes(empty), Ok(vec![]), "{empty:?}");
    }
    assert_eq!(
        notes("resourceGroups: [{resourceGroup: a, object: {key: pod, value: [x]}, affinity: '['}]"),
        Ok(vec![
            "resource group \"a\": object.key \"pod\" is neither \"namespace\" nor \"annotation\": no pod is in it".to_owned(),
            "resource group \"a\": affinity is not the JSON of an affinity and is left out: invalid type: sequence, expected a map at line 1 column 0".to_owned(),
        ])
    );
    assert_eq!(
        notes("resourceGroups: [{resourceGroup: a, object: {key: annotation, value: [x]}}]"),
        Ok(vec![
            "resource group \"a\": object.value \"x\" is not of the form \"key: value\" and is left out"
                .to_owned()
        ])
    );
    for bad in [
        "resourceGroups: 7",
        "resourcegroups: []",
        "resourceGroups: [{labels: x}]",
        "a: [",
        "- b",
    ] {
        let error = notes(bad).expect_err(bad);
        assert!(
            error.starts_with("the file of resource groups cannot be read: "),
            "{error}"
        );
    }
    let long = "#".repeat(1024 * 1024 + 1);
    assert_eq!(
        notes(&long),
        Err("the file of resource groups has 1048577 bytes; at most 1048576 are read".to_owned())
    );
}

#[test]
fn an_affinity_that_cannot_be_one_is_left_out() {
    let cases = [
        ("{\"nodeAffinity\": 5}", "affinity.nodeAffinity: "),
        (
            "{\"podAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": {}}}",
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution: ",
        ),
        ("[]", "invalid type: sequence, expected a map"),
        (
            "{\"podAffinity\": []}",
            "affinity.podAffinity: invalid type: sequence, expected a map",
        ),
        (
            "{\"nodeAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": [[]]}}",
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: invalid type: sequence, expected a map",
        ),
        (
            "{\"nodeAffinity\": {\"preferredDuringSchedulingIgnoredDuringExecution\": [[1, {}]]}}",
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]: invalid type: sequence, expected a map",
        ),
    ];
    for (affinity, why) in cases {
        let file =
            format!("resourceGroups: [{{resourceGroup: a, schedulerName: s, affinity: '{affinity}'}}]");
        let groups = ResourceGroups::parse(&file).expect("the file is readable");
        let left_out = "resource group \"a\": affinity is not the JSON of an affinity and is left out: ";
        let notes = groups.notes();
        assert_eq!(notes.len(), 1, "{affinity}: {notes:?}");
        assert!(
            notes[0].starts_with(&format!("{left_out}{why}")),
            "{affinity}: {notes:?}"
        );
        let object = pod(json!({"volcano.sh/resource-group": "a"}));
        assert_eq!(
            world_of(&file).changes("/pods/mutate", &object),
            json!([{"op": "add", "path": "/spec/schedulerName", "value": "s"}]),
            "{affinity}"
        );
    }
}

#[test]
fn annotations_that_look_like_other_types_are_texts() {
    let world = world_of(
        "resourceGroups: [{resourceGroup: a, object: {key: annotation, value: ['x: true', 'y: 5']}, labels: {l: m}}]",
    );
    for (key, value) in [("x", "true"), ("y", "5")] {
        assert_ne!(
            world.changes("/pods/mutate", &pod(json!({key: value}))),
            json!([]),
            "{key}"
        );
    }
}
