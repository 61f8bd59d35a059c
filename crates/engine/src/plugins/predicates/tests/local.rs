//! Filters that look at one node only.

use super::{predicates, without};
use crate::relations::testing::{cluster, empty, node, open_nodes, pod, verdicts};
use serde_json::{Value, json};

fn spec(spec: Value) -> Value {
    json!({ "spec": spec })
}

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let mut m = empty();
    node(&mut m, "n", spec(json!({"unschedulable": true})));
    let cordoned = "node(s) were unschedulable";
    let cases = [
        ("no toleration", json!([]), cordoned),
        (
            "another key",
            json!([{"key": "other", "operator": "Exists"}]),
            cordoned,
        ),
        ("everything", json!([{"operator": "Exists"}]), ""),
        (
            "the taint by name",
            json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            "",
        ),
        (
            "the taint with its effect",
            json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
            "",
        ),
        (
            "the taint with another effect",
            json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}]),
            cordoned,
        ),
        (
            "the taint with a value",
            json!([{"key": "node.kubernetes.io/unschedulable", "value": "yes"}]),
            cordoned,
        ),
    ];
    for (name, tolerations, expected) in cases {
        let task = pod(&mut m, "p", None, spec(json!({ "tolerations": tolerations })));
        assert_eq!(verdicts(&m, &predicates(&m), task), [expected], "{name}");
    }
}

#[test]
fn taints_that_are_not_tolerated_keep_pods_away() {
    let taint = |effect: &str| spec(json!({"taints": [{"key": "k", "value": "v", "effect": effect}]}));
    let mut m = empty();
    for effect in ["NoSchedule", "NoExecute", "PreferNoSchedule"] {
        node(&mut m, effect, taint(effect));
    }
    let no = "node(s) had untolerated taint(s)";
    let cases = [
        ("no toleration", json!([]), [no, no, ""]),
        (
            "equal value",
            json!([{"key": "k", "operator": "Equal", "value": "v"}]),
            ["", "", ""],
        ),
        (
            "other value",
            json!([{"key": "k", "operator": "Equal", "value": "w"}]),
            [no, no, ""],
        ),
        (
            "one effect",
            json!([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]),
            ["", no, ""],
        ),
    ];
    for (name, tolerations, expected) in cases {
        let task = pod(&mut m, "p", None, spec(json!({ "tolerations": tolerations })));
        assert_eq!(verdicts(&m, &predicates(&m), task), expected, "{name}");
        assert_eq!(
            verdicts(&m, &without(&m, "TaintToleration"), task),
            [""; 3],
            "{name}, switched off"
        );
    }
}

#[test]
fn node_selector_and_required_node_affinity_both_hold() {
    let mut m = cluster(&[
        ("a", json!({"disk": "ssd", "gen": "3"})),
        ("b", json!({"disk": "ssd", "gen": "7"})),
        ("c", json!({})),
    ]);
    let required = |terms: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    let expression = |key: &str, operator: &str, values: Value| json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]);
    let cases: [(&str, Value, &[&str]); 9] = [
        ("nothing asked", json!({}), &["a", "b", "c"]),
        ("selector", json!({"nodeSelector": {"disk": "ssd"}}), &["a", "b"]),
        (
            "in",
            json!({"affinity": required(expression("gen", "In", json!(["7"])))}),
            &["b"],
        ),
        (
            "not in",
            json!({"affinity": required(expression("gen", "NotIn", json!(["7"])))}),
            &["a", "c"],
        ),
        (
            "greater",
            json!({"affinity": required(expression("gen", "Gt", json!(["5"])))}),
            &["b"],
        ),
        (
            "absent",
            json!({"affinity": required(expression("disk", "DoesNotExist", json!([])))}),
            &["c"],
        ),
        (
            "selector and affinity",
            json!({"nodeSelector": {"disk": "ssd"},
                   "affinity": required(expression("gen", "Lt", json!(["5"])))}),
            &["a"],
        ),
        (
            "name",
            json!({"affinity": required(json!([{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["c"]}]}]))}),
            &["c"],
        ),
        ("no term", json!({"affinity": required(json!([]))}), &[]),
    ];
    for (name, patch, expected) in cases {
        let task = pod(&mut m, "p", None, spec(patch));
        assert_eq!(open_nodes(&m, &predicates(&m), task), expected, "{name}");
        assert_eq!(
            open_nodes(&m, &without(&m, "NodeAffinity"), task),
            ["a", "b", "c"],
            "{name}, switched off"
        );
    }
}

#[test]
fn a_node_takes_as_many_pods_as_it_offers() {
    let mut m = empty();
    node(&mut m, "n", json!({"status": {"allocatable": {"pods": "2"}}}));
    let task = pod(&mut m, "p", None, json!({}));
    pod(&mut m, "one", Some("n"), json!({}));
    assert_eq!(verdicts(&m, &predicates(&m), task), [""]);
    pod(&mut m, "two", Some("n"), json!({}));
    assert_eq!(
        verdicts(&m, &predicates(&m), task),
        ["node(s) pod number exceeded"]
    );
}

#[test]
fn host_ports_conflict_by_protocol_port_and_address() {
    let ports = |ip: &str, protocol: &str, port: i64| {
        spec(json!({"containers": [{"name": "c", "ports": [
            {"containerPort": 80, "hostPort": port, "hostIP": ip, "protocol": protocol}]}]}))
    };
    let taken = "node(s) didn't have free ports for the requested pod ports";
    let cases = [
        ("the same", ("", "TCP", 80), ("", "TCP", 80), taken),
        ("another port", ("", "TCP", 80), ("", "TCP", 81), ""),
        ("another protocol", ("", "TCP", 80), ("", "UDP", 80), ""),
        (
            "two addresses",
            ("10.0.0.1", "TCP", 80),
            ("10.0.0.2", "TCP", 80),
            "",
        ),
        (
            "any address against one",
            ("0.0.0.0", "TCP", 80),
            ("10.0.0.2", "TCP", 80),
            taken,
        ),
        (
            "one address against any",
            ("10.0.0.1", "TCP", 80),
            ("", "TCP", 80),
            taken,
        ),
        ("no host port", ("", "TCP", 0), ("", "TCP", 0), ""),
    ];
    for (name, used, wanted, expected) in cases {
        let mut m = cluster(&[("n", json!({}))]);
        pod(&mut m, "old", Some("n"), ports(used.0, used.1, used.2));
        let task = pod(&mut m, "p", None, ports(wanted.0, wanted.1, wanted.2));
        assert_eq!(verdicts(&m, &predicates(&m), task), [expected], "{name}");
        assert_eq!(
            verdicts(&m, &without(&m, "NodePorts"), task),
            [""],
            "{name}, switched off"
        );
    }
}
