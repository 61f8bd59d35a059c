//! Rules for PodGroups.

use serde_json::{Value, json};

use super::world::World;

const QUEUE_KEY: &str = "scheduling.volcano.sh/queue-name";

fn group(spec: Value) -> Value {
    json!({"metadata": {"name": "g", "namespace": "ns"}, "spec": spec})
}

#[test]
fn a_namespace_can_have_a_queue() {
    let mut world = World::new();
    world
        .namespace("ns", QUEUE_KEY, "team")
        .namespace("other", "a", "b");
    let changes = |object: Value| world.changes("/podgroups/mutate", &object);
    let moved = json!([{"op": "add", "path": "/spec/queue", "value": "team"}]);
    assert_eq!(changes(group(json!({"queue": "default"}))), moved);
    assert_eq!(
        changes(json!({"metadata": {"name": "g"}, "spec": {"queue": "default"}})),
        moved,
        "by the request"
    );
    assert_eq!(changes(group(json!({"queue": "mine"}))), json!([]));
    assert_eq!(
        changes(group(json!({}))),
        json!([]),
        "the schema has filled it in already"
    );
    for namespace in ["other", "unknown"] {
        let object = json!({"metadata": {"namespace": namespace}, "spec": {"queue": "default"}});
        assert_eq!(changes(object), json!([]), "{namespace}");
    }
}

#[test]
fn new_podgroups() {
    let mut world = World::new();
    world.stored(json!({"metadata": {"name": "closing"}, "status": {"state": "Closing"}}));
    let both = json!({"highestTierAllowed": 1, "highestTierName": "a"});
    let both_text =
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously.";
    let cases = [
        ("no queue", json!({}), String::new()),
        ("an open queue", json!({"queue": "default"}), String::new()),
        (
            "a queue of nobody",
            json!({"queue": "nope"}),
            "unable to find queue: queue.scheduling.volcano.sh \"nope\" not found".into(),
        ),
        (
            "a queue that is not open",
            json!({"queue": "closing"}),
            "can only submit PodGroup to queue with state `Open`, queue `closing` status is `Closing`."
                .into(),
        ),
        (
            "a tier in two ways",
            json!({"networkTopology": both}),
            both_text.into(),
        ),
        (
            "the first sub-group with it",
            json!({"subGroupPolicy": [{"name": "a"}, {"name": "b", "networkTopology": both}, {"name": "c", "networkTopology": both}]}),
            format!("in subGroupPolicy 'b': {both_text}"),
        ),
        (
            "all at once",
            json!({"queue": "nope", "networkTopology": both, "subGroupPolicy": [{"name": "a", "networkTopology": both}]}),
            format!(
                "unable to find queue: queue.scheduling.volcano.sh \"nope\" not found; {both_text}; in subGroupPolicy 'a': {both_text}"
            ),
        ),
        (
            "each tier alone",
            json!({"networkTopology": {"highestTierAllowed": 0}, "subGroupPolicy": [{"networkTopology": {"highestTierName": "a"}}]}),
            String::new(),
        ),
    ];
    for (name, spec, expected) in cases {
        assert_eq!(
            world.refusal("/podgroups/validate", &group(spec)),
            expected,
            "{name}"
        );
    }
}
