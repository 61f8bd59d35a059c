//! Selectors and tolerations, as tables.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::*;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn labels() -> Labels {
    read(json!({"app": "web", "tier": "front", "cores": "16", "empty": ""}))
}

#[test]
fn label_selectors() {
    let cases = [
        ("an empty selector chooses everything", json!({}), true),
        (
            "nulls are empty",
            json!({"matchLabels": null, "matchExpressions": null}),
            true,
        ),
        (
            "a label with its value",
            json!({"matchLabels": {"app": "web"}}),
            true,
        ),
        (
            "a label with another value",
            json!({"matchLabels": {"app": "db"}}),
            false,
        ),
        ("a missing label", json!({"matchLabels": {"zone": ""}}), false),
        (
            "all labels must match",
            json!({"matchLabels": {"app": "web", "tier": "back"}}),
            false,
        ),
        (
            "In",
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}),
            true,
        ),
        (
            "In without the label",
            json!({"matchExpressions": [{"key": "x", "operator": "In", "values": [""]}]}),
            false,
        ),
        (
            "NotIn",
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
            false,
        ),
        (
            "NotIn without the label",
            json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}),
            true,
        ),
        (
            "Exists",
            json!({"matchExpressions": [{"key": "empty", "operator": "Exists"}]}),
            true,
        ),
        (
            "Exists without the label",
            json!({"matchExpressions": [{"key": "x", "operator": "Exists", "values": null}]}),
            false,
        ),
        (
            "DoesNotExist",
            json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}),
            true,
        ),
        (
            "DoesNotExist with the label",
            json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
            false,
        ),
        (
            "labels and expressions must both hold",
            json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["back"]}]}),
            false,
        ),
        (
            "an unknown operator chooses nothing",
            json!({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}),
            false,
        ),
        (
            "no operator chooses nothing",
            json!({"matchExpressions": [{"key": "app"}]}),
            false,
        ),
        (
            "In without values chooses nothing",
            json!({"matchExpressions": [{"key": "app", "operator": "In"}]}),
            false,
        ),
        (
            "NotIn without values chooses nothing",
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn"}]}),
            false,
        ),
        (
            "Exists with values chooses nothing",
            json!({"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["web"]}]}),
            false,
        ),
    ];
    for (name, selector, expected) in cases {
        assert_eq!(
            read::<LabelSelector>(selector).matches(&labels()),
            expected,
            "{name}"
        );
    }
}

#[test]
fn only_a_selector_without_conditions_is_empty() {
    assert!(LabelSelector::default().is_empty());
    assert!(!read::<LabelSelector>(json!({"matchLabels": {"a": "b"}})).is_empty());
    assert!(
        !read::<LabelSelector>(json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]})).is_empty()
    );
}

#[test]
fn node_selector_terms() {
    let expression = |operator: &str, key: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let field = |operator: &str, key: &str, values: Value| json!({"matchFields": [{"key": key, "operator": operator, "values": values}]});
    let cases = [
        ("an empty term holds for no node", json!({}), false),
        ("In", expression("In", "app", json!(["web"])), true),
        (
            "NotIn without the label",
            expression("NotIn", "x", json!(["web"])),
            true,
        ),
        ("Exists", expression("Exists", "app", json!(null)), true),
        (
            "DoesNotExist",
            expression("DoesNotExist", "app", json!(null)),
            false,
        ),
        ("Gt below", expression("Gt", "cores", json!(["8"])), true),
        ("Gt equal", expression("Gt", "cores", json!(["16"])), false),
        ("Lt above", expression("Lt", "cores", json!(["17"])), true),
        ("Gt of a word", expression("Gt", "app", json!(["1"])), false),
        (
            "Gt with a word",
            expression("Gt", "cores", json!(["many"])),
            false,
        ),
        (
            "Gt with two bounds",
            expression("Gt", "cores", json!(["1", "2"])),
            false,
        ),
        ("Gt without the label", expression("Gt", "x", json!(["1"])), false),
        (
            "an unknown operator",
            expression("Near", "app", json!(["web"])),
            false,
        ),
        (
            "the node's name",
            field("In", "metadata.name", json!(["n1"])),
            true,
        ),
        (
            "another node's name",
            field("In", "metadata.name", json!(["n2"])),
            false,
        ),
        (
            "not another node's name",
            field("NotIn", "metadata.name", json!(["n2"])),
            true,
        ),
        (
            "several names are invalid",
            field("In", "metadata.name", json!(["n1", "n2"])),
            false,
        ),
        (
            "other fields are invalid",
            field("NotIn", "spec.podCIDR", json!(["n2"])),
            false,
        ),
        (
            "other operators on fields are invalid",
            field("Exists", "metadata.name", json!([])),
            false,
        ),
    ];
    for (name, term, expected) in cases {
        assert_eq!(
            read::<NodeSelectorTerm>(term).matches("n1", &labels()),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_node_selector_needs_one_of_its_terms() {
    let web = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]});
    let db = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]});
    let matches =
        |terms: Value| read::<NodeSelector>(json!({"nodeSelectorTerms": terms})).matches("n1", &labels());
    assert!(matches(json!([db, web])));
    assert!(!matches(json!([db])));
    assert!(!matches(json!([])));
    assert!(!matches(json!(null)));
}

#[test]
fn tolerations() {
    let taint: Taint = read(json!({"key": "gpu", "value": "8", "effect": "NoSchedule"}));
    let cases = [
        (json!({"operator": "Exists"}), true),
        (json!({"key": "gpu", "operator": "Exists"}), true),
        (json!({"key": "gpu", "value": "8"}), true),
        (json!({"key": "gpu", "operator": "Equal", "value": "9"}), false),
        (json!({"key": "gpu"}), false),
        (json!({"key": "cpu", "operator": "Exists"}), false),
        (
            json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}),
            true,
        ),
        (
            json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}),
            false,
        ),
        (json!({"key": "gpu", "operator": "Gt", "value": "4"}), true),
        (json!({"key": "gpu", "operator": "Lt", "value": "8"}), false),
        (json!({"key": "gpu", "operator": "Lt", "value": "many"}), false),
        (json!({"key": "gpu", "operator": "Like", "value": "8"}), false),
    ];
    for (toleration, expected) in cases {
        assert_eq!(
            read::<Toleration>(toleration.clone()).tolerates(&taint),
            expected,
            "{toleration}"
        );
    }
}
