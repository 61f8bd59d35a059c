//! Defaults of queues, and rules for a queue by itself, its place and its end.

use serde_json::{Value, json};

use super::world::{World, refusal};

const MUTATE: &str = "/queues/mutate";
const VALIDATE: &str = "/queues/validate";
const PATH_KEY: &str = "volcano.sh/hierarchy";
const WEIGHTS_KEY: &str = "volcano.sh/hierarchy-weights";

fn queue(spec: Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": spec})
}

fn with_path(path: &str, weights: &str) -> Value {
    json!({"metadata": {"name": "q", "annotations": {PATH_KEY: path, WEIGHTS_KEY: weights}},
        "spec": {"reclaimable": true, "weight": 1}})
}

#[test]
fn defaults() {
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let rooted = json!([
        add("/metadata/annotations/volcano.sh~1hierarchy", json!("root/a/b")),
        add(
            "/metadata/annotations/volcano.sh~1hierarchy-weights",
            json!("1/2/3")
        ),
    ]);
    let cases = [
        (
            "nothing is given",
            queue(json!({})),
            json!([
                add("/spec/reclaimable", json!(true)),
                add("/spec/weight", json!(1))
            ]),
        ),
        (
            "everything is given",
            queue(json!({"reclaimable": false, "weight": 5})),
            json!([]),
        ),
        ("a path without the root", with_path("a/b", "2/3"), rooted),
        ("a path with the root", with_path("root/a/b", "1/2/3"), json!([])),
        ("the root alone", with_path("root", "1"), json!([])),
        ("a path without weights", with_path("a/b", ""), json!([])),
        ("weights without a path", with_path("", "1"), json!([])),
    ];
    for (name, object, expected) in cases {
        assert_eq!(World::new().changes(MUTATE, &object), expected, "{name}");
    }
    let bare = World::new().mutated(MUTATE, &json!({"metadata": {"name": "q"}}));
    assert_eq!(
        bare["spec"],
        json!({"reclaimable": true, "weight": 1}),
        "a queue without a spec gets one"
    );
}

#[test]
fn amounts() {
    let cases: &[(&str, Value, &str)] = &[
        ("none", json!({}), ""),
        (
            "good ones",
            json!({"guarantee": {"resource": {"cpu": 1}}, "deserved": {"cpu": 1, "memory": "1Gi"}, "capability": {"cpu": 2}}),
            "",
        ),
        (
            "less than nothing",
            json!({"capability": {"cpu": "-1"}}),
            "requestBody.spec.capability.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
        (
            "more thousandths than fit an integer",
            json!({"capability": {"example.com/bytes": "10Pi"}}),
            "",
        ),
        (
            "half a pod and half a card",
            json!({"deserved": {"pods": "500m"}, "capability": {"nvidia.com/gpu": "1500m"}}),
            "[requestBody.spec.capability.nvidia.com/gpu: Invalid value: \"1500m\": must be an integer, requestBody.spec.deserved.pods: Invalid value: \"500m\": must be an integer]",
        ),
        (
            "a guarantee of nothing",
            json!({"guarantee": {"resource": {"cpu": "-2"}}, "deserved": {"cpu": 1}}),
            "requestBody.spec.guarantee.resource.cpu: Invalid value: \"-2\": must be greater than or equal to 0",
        ),
        (
            "a guarantee that is not deserved",
            json!({"guarantee": {"resource": {"cpu": 1}}}),
            "requestBody.spec.deserved.cpu: Invalid value: \"<nil>\": deserved[cpu] must be >= guarantee[cpu]=1",
        ),
        (
            "a guarantee of more than is deserved",
            json!({"guarantee": {"resource": {"memory": "2Gi"}}, "deserved": {"memory": "1Gi"}}),
            "requestBody.spec.deserved.memory: Invalid value: \"1Gi\": deserved[memory]=1Gi must be >= guarantee[memory]=2Gi",
        ),
        (
            "more than it may ever have",
            json!({"deserved": {"cpu": "1500m"}, "capability": {"cpu": 1}}),
            "requestBody.spec.deserved.cpu: Invalid value: \"1500m\": deserved[cpu]=1500m must be <= capability[cpu]=1",
        ),
        (
            "a share without a limit",
            json!({"deserved": {"cpu": 5}, "capability": {"memory": 1}}),
            "",
        ),
    ];
    for (name, spec, expected) in cases {
        assert_eq!(
            World::new().refusal(VALIDATE, &queue(spec.clone())),
            *expected,
            "{name}, new"
        );
        let changed = World::new().update(VALIDATE, &queue(json!({})), &queue(spec.clone()));
        assert_eq!(refusal(&changed), *expected, "{name}, changed");
    }
}

#[test]
fn only_the_controller_gives_a_queue_the_states_between() {
    let fault = |state: &str| {
        format!("requestBody.spec.state: Invalid value: \"{state}\": queue state must be in [Open Closed]")
    };
    let cases = [
        ("", String::new()),
        ("Open", String::new()),
        ("Closed", String::new()),
        ("Closing", fault("Closing")),
        ("Unknown", fault("Unknown")),
        ("Odd", fault("Odd")),
    ];
    for (state, expected) in cases {
        let object = json!({"metadata": {"name": "q"}, "status": {"state": state}});
        assert_eq!(World::new().refusal(VALIDATE, &object), expected, "{state}");
    }
}

#[test]
fn paths_and_weights() {
    let mut world = World::new();
    world.stored(
        json!({"metadata": {"name": "dev", "annotations": {PATH_KEY: "root/eng/dev", WEIGHTS_KEY: "1/2/3"}}}),
    );
    let fault = |value: &str, rule: &str| {
        format!("requestBody.metadata.annotations: Invalid value: \"{value}\": {rule}")
    };
    let cases = [
        ("root/sci", "1/2", String::new()),
        ("root/eng/prod", "1/2/0.5", String::new()),
        ("root/en", "1/2", String::new()),
        ("root/eng/dev", "1/2/3", String::new()),
        (
            "root/sci",
            "1/2/3",
            fault(
                "root/sci",
                "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights",
            ),
        ),
        (
            "root/sci",
            "1/x",
            fault(
                "1/x",
                "x in the 1/x is invalid number: strconv.ParseFloat: parsing \\\"x\\\": invalid syntax",
            )
            .replace("\\\"x\\\"", "\"x\""),
        ),
        (
            "root/sci",
            "1/-2",
            fault("1/-2", "-2 in the 1/-2 must be larger than 0"),
        ),
        (
            "root/sci",
            "1/NaN",
            fault("1/NaN", "NaN in the 1/NaN must be larger than 0"),
        ),
        (
            "root/eng",
            "1/2",
            fault(
                "root/eng",
                "root/eng is not allowed to be in the sub path of root/eng/dev of queue dev",
            ),
        ),
    ];
    for (path, weights, expected) in cases {
        assert_eq!(
            world.refusal(VALIDATE, &with_path(path, weights)),
            expected,
            "{path} {weights}"
        );
    }
    let itself =
        json!({"metadata": {"name": "dev", "annotations": {PATH_KEY: "root/eng", WEIGHTS_KEY: "1/2"}}});
    assert_eq!(
        world.refusal(VALIDATE, &itself),
        "",
        "a queue is not in its own way"
    );
}

#[test]
fn parents() {
    let mut world = World::new();
    world
        .add("l2", json!({"parent": "root"}))
        .add("l3", json!({"parent": "l2"}))
        .add("l4", json!({"parent": "l3"}))
        .add("l5", json!({"parent": "l4"}))
        .add("l6", json!({"parent": "l5"}))
        .add("orphan", json!({"parent": "gone"}))
        .add("x", json!({"parent": "y"}))
        .add("y", json!({"parent": "x"}))
        .stored(json!({"metadata": {"name": "busy"}, "spec": {"parent": "root"}, "status": {"allocated": {"pods": "3"}}}))
        .stored(json!({"metadata": {"name": "family"}, "spec": {}, "status": {"allocated": {"pods": "3"}}}))
        .add("child", json!({"parent": "family"}));
    let gone = "queue.scheduling.volcano.sh \"gone\" not found";
    let cases = [
        ("", String::new()),
        ("root", String::new()),
        ("l5", String::new()),
        ("l6", "queue q exceeds the maximum allowed depth of 5".to_owned()),
        ("x", "queue q exceeds the maximum allowed depth of 5".to_owned()),
        ("q", "queue q cannot use itself as parent".to_owned()),
        (
            "gone",
            format!("failed to get parent queue gone of queue q: {gone}"),
        ),
        (
            "orphan",
            format!("failed to get parent queue gone of queue q: {gone}"),
        ),
        (
            "busy",
            "queue busy cannot be the parent queue of queue q because it has allocated Pods: 3".to_owned(),
        ),
        ("family", String::new()),
    ];
    for (parent, expected) in cases {
        let object = queue(json!({"parent": parent}));
        assert_eq!(world.refusal(VALIDATE, &object), expected, "new below {parent:?}");
        let moved = world.update(VALIDATE, &queue(json!({"parent": "default"})), &object);
        assert_eq!(refusal(&moved), expected, "moved below {parent:?}");
        let stays = refusal(&world.update(VALIDATE, &object, &object));
        assert_eq!(stays, "", "a queue that stays below {parent:?} is left alone");
    }
    world.options.max_queue_depth = i64::MAX;
    assert_eq!(world.refusal(VALIDATE, &queue(json!({"parent": "l6"}))), "");
    let endless = world.refusal(VALIDATE, &queue(json!({"parent": "x"})));
    let most = i64::MAX;
    assert_eq!(
        endless,
        format!("queue q exceeds the maximum allowed depth of {most}")
    );
    world.options.max_queue_depth = -1;
    let shallow = world.refusal(VALIDATE, &queue(json!({"parent": "family"})));
    assert_eq!(shallow, "queue q exceeds the maximum allowed depth of -1");
    assert_eq!(world.refusal(VALIDATE, &queue(json!({"parent": "root"}))), "");
}

#[test]
fn what_the_root_has_is_protected() {
    let mut world = World::new();
    let root = |spec: Value| json!({"metadata": {"name": "root"}, "spec": spec});
    let frozen = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified";
    let old = root(json!({"capability": {"cpu": 1}}));
    let cases = [
        ("another form", json!({"capability": {"cpu": "1000m"}}), ""),
        (
            "another weight",
            json!({"capability": {"cpu": 1}, "weight": 3}),
            "",
        ),
        ("more", json!({"capability": {"cpu": 2}}), frozen),
        (
            "a share",
            json!({"capability": {"cpu": 1}, "deserved": {"cpu": 1}}),
            frozen,
        ),
        (
            "a guarantee",
            json!({"capability": {"cpu": 1}, "deserved": {"cpu": 1}, "guarantee": {"resource": {"cpu": 1}}}),
            frozen,
        ),
    ];
    for (name, spec, expected) in cases {
        assert_eq!(
            refusal(&world.update(VALIDATE, &old, &root(spec))),
            expected,
            "{name}"
        );
    }
    assert_eq!(
        world.refusal(VALIDATE, &root(json!({"capability": {"cpu": 9}}))),
        "",
        "it may be made with any"
    );
    world.options.protect_root_queue = false;
    assert_eq!(
        refusal(&world.update(VALIDATE, &old, &root(json!({"capability": {"cpu": 2}})))),
        ""
    );
}

#[test]
fn ends() {
    let mut world = World::new();
    world
        .add("team", json!({}))
        .add("b", json!({"parent": "team"}))
        .add("a", json!({"parent": "team"}))
        .stored(json!({"metadata": {"name": "busy"}, "status": {"allocated": {"pods": 2}}}));
    let end = |world: &World, name: &str| {
        refusal(&world.ask(
            VALIDATE,
            json!({"operation": "DELETE", "name": name, "oldObject": {}}),
        ))
    };
    let cases = [
        ("a", ""),
        ("busy", ""),
        ("default", "`default` queue can not be deleted"),
        ("root", "`root` queue can not be deleted"),
        ("gone", "queue.scheduling.volcano.sh \"gone\" not found"),
        (
            "team",
            "queue team can not be deleted because it has 2 child queues: a, b",
        ),
    ];
    for (name, expected) in cases {
        assert_eq!(end(&world, name), expected);
    }
    world.options.check_allocated_pods = true;
    assert_eq!(
        end(&world, "busy"),
        "queue busy cannot be deleted because it has allocated Pods: 2"
    );
    assert_eq!(end(&world, "a"), "");
}
