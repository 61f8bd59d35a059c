//! Rules for what a queue has against what is above and below it.

use serde_json::{Value, json};

use super::world::{World, refusal};

const PATH: &str = "/queues/validate";

fn queue(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A tree: `top` has amounts, `mid` below it has none, `leaf` is below `mid`.
fn tree() -> World {
    let mut world = World::new();
    world
        .add(
            "top",
            json!({"parent": "root", "capability": {"cpu": 10, "memory": "20Gi", "nvidia.com/gpu": 8},
                "deserved": {"cpu": 8, "memory": "16Gi"}, "guarantee": {"resource": {"cpu": 8, "memory": "16Gi"}}}),
        )
        .add("mid", json!({"parent": "top"}))
        .add("leaf", json!({"parent": "mid", "capability": {"cpu": 6, "memory": "1Gi"}}));
    world
}

#[test]
fn nobody_may_use_more_than_those_above_allow() {
    let cases: &[(&str, &str, Value, &str)] = &[
        ("as much", "top", json!({"cpu": 10}), ""),
        (
            "more",
            "top",
            json!({"cpu": 20}),
            "queue q capability[cpu]=20 exceeds its ancestor's capability=10",
        ),
        (
            "a fraction more",
            "top",
            json!({"cpu": "10500m"}),
            "queue q capability[cpu]=10500m exceeds its ancestor's capability=10",
        ),
        (
            "more memory",
            "top",
            json!({"memory": "21Gi"}),
            "queue q capability[memory]=21Gi exceeds its ancestor's capability=20Gi",
        ),
        (
            "more cards",
            "top",
            json!({"nvidia.com/gpu": 9}),
            "queue q capability[nvidia.com/gpu]=9000.00 exceeds its ancestor's capability=8000.00",
        ),
        ("what nobody limits", "top", json!({"pods": 5}), ""),
        (
            "further up",
            "mid",
            json!({"cpu": 11}),
            "queue q capability[cpu]=11 exceeds its ancestor's capability=10",
        ),
        ("below the root", "root", json!({"cpu": 1000}), ""),
    ];
    for (name, parent, capability, expected) in cases {
        let object = queue("q", json!({"parent": parent, "capability": capability}));
        assert_eq!(tree().refusal(PATH, &object), *expected, "{name}");
    }
}

#[test]
fn nobody_may_allow_less_than_those_below_have() {
    let world = tree();
    let old = queue("top", json!({"parent": "root"}));
    let cases = [
        (json!({"cpu": 6}), ""),
        (
            json!({"cpu": 5}),
            "queue top capability[cpu]=5 is smaller than its descendants' max capability=6",
        ),
        (
            json!({"memory": "512Mi"}),
            "queue top capability[memory]=512Mi is smaller than its descendants' max capability=1Gi",
        ),
        (json!({"pods": 1}), ""),
    ];
    for (capability, expected) in cases {
        let new = queue("top", json!({"parent": "root", "capability": capability}));
        assert_eq!(refusal(&world.update(PATH, &old, &new)), expected, "{capability}");
    }
}

#[test]
fn the_nearest_limit_below_counts() {
    let mut world = tree();
    world.add("mid", json!({"parent": "top", "capability": {"cpu": 2}}));
    let old = queue("top", json!({"parent": "root"}));
    let new = queue("top", json!({"parent": "root", "capability": {"cpu": 2}}));
    assert_eq!(
        refusal(&world.update(PATH, &old, &new)),
        "",
        "what leaf has is a matter of mid"
    );
}

#[test]
fn children_do_not_get_more_than_their_parent_has() {
    let mut world = tree();
    world.add(
        "sister",
        json!({"parent": "top", "deserved": {"cpu": 4, "memory": "8Gi"}, "guarantee": {"resource": {"cpu": 4, "memory": "8Gi"}}}),
    );
    let given = |cpu: i32, memory: &str| {
        queue(
            "q",
            json!({"parent": "top", "deserved": {"cpu": cpu, "memory": memory}, "guarantee": {"resource": {"cpu": cpu, "memory": memory}}}),
        )
    };
    assert_eq!(world.refusal(PATH, &given(4, "8Gi")), "");
    assert_eq!(
        world.refusal(PATH, &given(5, "10Gi")),
        "parent queue top validation failed: sum of children's guarantee (cpu 9000.00, memory 19327352832.00) exceeds parent's guarantee limit (cpu 8000.00, memory 17179869184.00)"
    );
    let deserved = queue(
        "q",
        json!({"parent": "top", "deserved": {"cpu": 1, "nvidia.com/gpu": 1}}),
    );
    assert_eq!(
        world.refusal(PATH, &deserved),
        "parent queue top validation failed: sum of children's deserved (cpu 5000.00, memory 8589934592.00, nvidia.com/gpu 1000.00) exceeds parent's deserved limit (cpu 8000.00, memory 17179869184.00)"
    );
    let below_mid = queue("q", json!({"parent": "mid", "deserved": {"cpu": 1}}));
    assert_eq!(
        world.refusal(PATH, &below_mid),
        "parent queue mid validation failed: sum of children's deserved (cpu 1000.00, memory 0.00) exceeds parent's deserved limit (cpu 0.00, memory 0.00)",
        "a parent that has nothing has nothing to give"
    );
}

#[test]
fn of_what_a_parent_does_not_name_not_even_nothing_is_given() {
    let mut world = World::new();
    world.add("p", json!({"deserved": {"cpu": 4}}));
    let given = |deserved: Value| queue("q", json!({"parent": "p", "deserved": deserved}));
    assert_eq!(
        world.refusal(PATH, &given(json!({"cpu": 1, "nvidia.com/gpu": 0}))),
        "parent queue p validation failed: sum of children's deserved (cpu 1000.00, memory 0.00, nvidia.com/gpu 0.00) exceeds parent's deserved limit (cpu 4000.00, memory 0.00)"
    );
    let memory = json!({"cpu": 1, "memory": 0});
    assert_eq!(world.refusal(PATH, &given(memory)), "", "memory is always named");
}

#[test]
fn very_large_amounts_add_up() {
    let mut world = World::new();
    world
        .add("p", json!({"deserved": {"example.com/bytes": "20Pi"}}))
        .add(
            "a",
            json!({"parent": "p", "deserved": {"example.com/bytes": "10Pi"}}),
        );
    let given = |amount: &str| {
        queue(
            "q",
            json!({"parent": "p", "deserved": {"example.com/bytes": amount}}),
        )
    };
    assert_eq!(world.refusal(PATH, &given("10Pi")), "");
    assert_ne!(world.refusal(PATH, &given("11Pi")), "");
}

#[test]
fn a_queue_that_changes_is_not_counted_twice() {
    let mut world = tree();
    world.add("q", json!({"parent": "top", "deserved": {"cpu": 8}}));
    let old = queue("q", json!({"parent": "top", "deserved": {"cpu": 8}}));
    let new = queue("q", json!({"parent": "top", "deserved": {"cpu": 7}}));
    assert_eq!(refusal(&world.update(PATH, &old, &new)), "");
}

#[test]
fn a_parent_keeps_what_its_children_have() {
    let mut world = World::new();
    world
        .add("p", json!({"deserved": {"cpu": 4}}))
        .add("a", json!({"parent": "p", "deserved": {"cpu": 2}}))
        .add("b", json!({"parent": "p", "deserved": {"cpu": 2}}));
    let old = queue("p", json!({"deserved": {"cpu": 4}}));
    let new = |deserved: Value| queue("p", json!({"deserved": deserved}));
    assert_eq!(refusal(&world.update(PATH, &old, &new(json!({"cpu": 5})))), "");
    assert_eq!(
        refusal(&world.update(PATH, &old, &new(json!({"cpu": 3})))),
        "queue p validation failed: sum of children's deserved (cpu 4000.00, memory 0.00) exceeds parent's deserved limit (cpu 3000.00, memory 0.00)"
    );
}

#[test]
fn a_change_of_something_else_is_not_held_up_by_old_faults() {
    let mut world = tree();
    world.add(
        "greedy",
        json!({"parent": "mid", "capability": {"cpu": 99}, "deserved": {"cpu": 99}}),
    );
    let spec = json!({"parent": "mid", "capability": {"cpu": 99}, "deserved": {"cpu": 99}});
    let old = queue("greedy", spec.clone());
    let mut new = queue("greedy", spec);
    new["spec"]["weight"] = 7.into();
    assert_eq!(refusal(&world.update(PATH, &old, &new)), "");
    new["spec"]["deserved"]["cpu"] = 98.into();
    assert_ne!(refusal(&world.update(PATH, &old, &new)), "");
}

#[test]
fn a_parent_that_is_gone_is_named() {
    let old = queue("q", json!({"parent": "gone"}));
    let new = queue("q", json!({"parent": "gone", "deserved": {"cpu": 1}}));
    assert_eq!(
        refusal(&tree().update(PATH, &old, &new)),
        "parent queue gone not found: queue.scheduling.volcano.sh \"gone\" not found"
    );
}

#[test]
fn queues_that_are_their_own_ancestors_are_judged_all_the_same() {
    let mut world = World::new();
    world
        .add("x", json!({"parent": "y"}))
        .add("y", json!({"parent": "x"}));
    let old = queue("x", json!({"parent": "y"}));
    let new = queue("x", json!({"parent": "y", "capability": {"cpu": 1}}));
    assert_eq!(refusal(&world.update(PATH, &old, &new)), "");
}

#[test]
fn the_root_is_not_measured_against_its_children() {
    let mut world = World::new();
    world.options.protect_root_queue = false;
    world.add("q", json!({"parent": "root", "deserved": {"cpu": 5}}));
    let root = queue("root", json!({"deserved": {"cpu": 1}}));
    assert_eq!(refusal(&world.update(PATH, &queue("root", json!({})), &root)), "");
}
