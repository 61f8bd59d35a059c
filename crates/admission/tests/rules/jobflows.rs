//! Rules for JobFlows.

use serde_json::{Value, json};

use super::world::{World, refusal};

const PATH: &str = "/jobflows/validate";

fn flow(flows: Value) -> Value {
    json!({"metadata": {"name": "f"}, "spec": {"flows": flows}})
}

#[test]
fn flows_form_a_graph_without_cycles() {
    let cases = [
        ("no flows", json!([]), ""),
        (
            "a chain",
            json!([{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]),
            "",
        ),
        (
            "a flow of nobody",
            json!([{"name": "a", "dependsOn": {"targets": ["x"]}}]),
            "jobflow Flow is not DAG: vertex is not defined: x",
        ),
        (
            "itself",
            json!([{"name": "a", "dependsOn": {"targets": ["a"]}}]),
            "jobflow Flow is not DAG",
        ),
        (
            "a long way round",
            json!([{"name": "a", "dependsOn": {"targets": ["c"]}}, {"name": "b", "dependsOn": {"targets": ["a"]}},
                {"name": "c", "dependsOn": {"targets": ["b"]}}]),
            "jobflow Flow is not DAG",
        ),
    ];
    for (name, flows, expected) in cases {
        let object = flow(flows);
        assert_eq!(World::new().refusal(PATH, &object), expected, "{name}, new");
        let changed = World::new().update(PATH, &flow(json!([])), &object);
        assert_eq!(refusal(&changed), expected, "{name}, changed");
    }
}

#[test]
fn durations_in_patches_can_be_read() {
    let of = |estimate: &str| {
        let patch = json!({"jobSpec": {"runningEstimate": estimate}});
        flow(json!([{"name": "a"}, {"name": "b", "patch": patch}]))
    };
    let fault = "object.spec.flows[1].patch.jobSpec.runningEstimate: time: missing unit in duration \"10\"";
    assert_eq!(World::new().refusal(PATH, &of("10s")), "");
    assert_eq!(World::new().refusal(PATH, &of("10")), fault);
    assert_eq!(refusal(&World::new().update(PATH, &of("10s"), &of("10"))), fault);
    assert_eq!(refusal(&World::new().update(PATH, &of("10"), &of("10"))), "");
}
