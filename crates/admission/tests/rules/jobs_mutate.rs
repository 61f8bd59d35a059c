//! Defaults of Jobs.

use serde_json::{Value, json};

use super::world::{World, job, with};

const PATH: &str = "/jobs/mutate";

#[test]
fn everything_that_is_left_open_is_filled_in_in_order() {
    let object = json!({"metadata": {"name": "j"}, "spec": {
        "tasks": [
            {"replicas": 3, "template": {"spec": {"hostNetwork": true}}},
            {"name": "w", "replicas": 4, "minAvailable": 1, "maxRetry": 9},
            {"replicas": 8, "partitionPolicy": {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}},
            {"replicas": 2, "partitionPolicy": {"totalPartitions": 1, "partitionSize": 2}},
        ],
        "plugins": {"mpi": ["--master=w"]},
    }});
    assert_eq!(
        World::new().changes(PATH, &object),
        json!([
            {"op": "add", "path": "/spec/queue", "value": "default"},
            {"op": "add", "path": "/spec/schedulerName", "value": "volcano"},
            {"op": "add", "path": "/spec/maxRetry", "value": 3},
            {"op": "replace", "path": "/spec/tasks", "value": [
                {"name": "default0", "replicas": 3, "minAvailable": 3, "maxRetry": 3,
                    "template": {"spec": {"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet"}}},
                {"name": "w", "replicas": 4, "minAvailable": 1, "maxRetry": 9},
                {"name": "default2", "replicas": 8, "minAvailable": 6, "maxRetry": 3,
                    "partitionPolicy": {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}},
                {"name": "default3", "replicas": 2, "minAvailable": 2, "maxRetry": 3,
                    "partitionPolicy": {"totalPartitions": 1, "partitionSize": 2}},
            ]},
            {"op": "add", "path": "/spec/minAvailable", "value": 12},
            {"op": "replace", "path": "/spec/plugins", "value": {"mpi": ["--master=w"], "svc": [], "ssh": []}},
        ])
    );
}

#[test]
fn a_job_that_leaves_nothing_open_stays_as_it_is() {
    assert_eq!(World::new().changes(PATH, &job()), json!([]));
}

#[test]
fn each_default_alone() {
    let cases = [
        (
            "queue",
            "/spec/queue",
            json!(""),
            json!({"op": "add", "path": "/spec/queue", "value": "default"}),
        ),
        (
            "scheduler",
            "/spec/schedulerName",
            Value::Null,
            json!({"op": "add", "path": "/spec/schedulerName", "value": "volcano"}),
        ),
        (
            "retries",
            "/spec/maxRetry",
            json!(0),
            json!({"op": "add", "path": "/spec/maxRetry", "value": 3}),
        ),
        (
            "gang",
            "/spec/minAvailable",
            json!(0),
            json!({"op": "add", "path": "/spec/minAvailable", "value": 1}),
        ),
    ];
    for (name, pointer, value, change) in cases {
        assert_eq!(
            World::new().changes(PATH, &with(job(), pointer, value)),
            json!([change]),
            "{name}"
        );
    }
}

#[test]
fn the_first_scheduler_name_is_the_default() {
    let mut world = World::new();
    world.options.scheduler_names = vec!["first".into(), "second".into()];
    let object = with(job(), "/spec/schedulerName", json!(""));
    assert_eq!(world.mutated(PATH, &object)["spec"]["schedulerName"], "first");
    world.options.scheduler_names.clear();
    assert_eq!(world.mutated(PATH, &object)["spec"]["schedulerName"], "volcano");
}

#[test]
fn frameworks_get_the_plugins_that_they_need() {
    let cases = [
        (json!({"tensorflow": []}), json!({"tensorflow": [], "svc": []})),
        (
            json!({"pytorch": ["--port=1"]}),
            json!({"pytorch": ["--port=1"], "svc": []}),
        ),
        (json!({"ray": []}), json!({"ray": [], "svc": []})),
        (json!({"mpi": []}), json!({"mpi": [], "svc": [], "ssh": []})),
        (
            json!({"mpi": [], "svc": ["--x"], "ssh": ["--y"]}),
            json!({"mpi": [], "svc": ["--x"], "ssh": ["--y"]}),
        ),
        (json!({"env": []}), json!({"env": []})),
        (json!({}), json!({})),
    ];
    for (given, expected) in cases {
        let object = with(job(), "/spec/plugins", given);
        assert_eq!(
            World::new().changes(PATH, &object),
            json!([{"op": "replace", "path": "/spec/plugins", "value": expected}])
        );
    }
}

#[test]
fn a_job_that_names_no_plugins_gets_none() {
    let object = with(job(), "/spec/plugins", Value::Null);
    assert_eq!(World::new().changes(PATH, &object), json!([]));
}

#[test]
fn the_dns_policy_is_set_for_the_network_of_the_node_only() {
    let cases = [
        (json!({"hostNetwork": true}), json!("ClusterFirstWithHostNet")),
        (
            json!({"hostNetwork": true, "dnsPolicy": ""}),
            json!("ClusterFirstWithHostNet"),
        ),
        (
            json!({"hostNetwork": true, "dnsPolicy": null}),
            json!("ClusterFirstWithHostNet"),
        ),
        (
            json!({"hostNetwork": true, "dnsPolicy": "Default"}),
            json!("Default"),
        ),
        (json!({"hostNetwork": false}), Value::Null),
    ];
    for (spec, expected) in cases {
        let mutated = World::new().mutated(PATH, &with(job(), "/spec/tasks/0/template/spec", spec.clone()));
        assert_eq!(
            mutated["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"], expected,
            "{spec}"
        );
    }
}

#[test]
fn fields_that_are_not_known_survive() {
    let object = with(job(), "/spec/tasks/0/name", json!(""));
    let object = with(object, "/spec/tasks/0/newer", json!({"a": [1]}));
    let object = with(object, "/spec/tasks/0/template/spec/newest", json!(true));
    let task = &World::new().mutated(PATH, &object)["spec"]["tasks"][0];
    assert_eq!(
        (&task["name"], &task["newer"]),
        (&json!("default0"), &json!({"a": [1]}))
    );
    assert_eq!(task["template"]["spec"]["newest"], true);
}

#[test]
fn a_job_without_a_spec_gets_one() {
    let mutated = World::new().mutated(PATH, &json!({"metadata": {"name": "j"}}));
    let spec = json!({"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": 0});
    assert_eq!(mutated["spec"], spec);
}
