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
