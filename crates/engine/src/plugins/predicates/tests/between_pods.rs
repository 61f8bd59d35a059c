//! Rules between pods.

use super::{predicates, without};
use crate::model::Model;
use crate::model::accounting::Place;
use crate::model::status::Status;
use crate::relations::testing::{
    NS, add, cluster, labelled, merged, node, open_nodes, place, pod, unplace, verdicts,
};
use serde_json::{Value, json};

fn zones() -> Model {
    cluster(&[
        ("a1", json!({"zone": "a", "host": "a1"})),
        ("a2", json!({"zone": "a", "host": "a2"})),
        ("b1", json!({"zone": "b", "host": "b1"})),
        ("bare", json!({})),
    ])
}

fn required(kind: &str, terms: Value) -> Value {
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}})
}

fn term(key: &str, labels: Value) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": labels}})
}

fn app(name: &str) -> Value {
    labelled(json!({"app": name}))
}

#[test]
fn anti_affinity_keeps_away_from_matching_pods_in_the_same_domain() {
    let mut m = zones();
    pod(&mut m, "web", Some("a1"), app("web"));
    let anti = |key: &str| required("podAntiAffinity", json!([term(key, json!({"app": "web"}))]));
    let no = "node(s) didn't match pod anti-affinity rules";
    let task = pod(&mut m, "p", None, anti("zone"));
    assert_eq!(verdicts(&m, &predicates(&m), task), [no, no, "", ""]);
    assert_eq!(verdicts(&m, &without(&m, "PodAffinity"), task), [""; 4]);
    let task = pod(&mut m, "p", None, anti("host"));
    assert_eq!(verdicts(&m, &predicates(&m), task), [no, "", "", ""]);
}

#[test]
fn pods_that_are_there_keep_matching_pods_away() {
    let mut m = zones();
    pod(
        &mut m,
        "alone",
        Some("b1"),
        required("podAntiAffinity", json!([term("zone", json!({"app": "web"}))])),
    );
    let no = "node(s) didn't satisfy existing pods anti-affinity rules";
    let task = pod(&mut m, "p", None, app("web"));
    assert_eq!(verdicts(&m, &predicates(&m), task), ["", "", no, ""]);
    let task = pod(&mut m, "p", None, app("db"));
    assert_eq!(verdicts(&m, &predicates(&m), task), [""; 4]);
}

#[test]
fn a_rule_that_arrives_during_a_cycle_holds_at_once() {
    let mut m = zones();
    let itself = merged(
        app("web"),
        &required("podAntiAffinity", json!([term("zone", json!({"app": "web"}))])),
    );
    let first = pod(&mut m, "first", None, itself.clone());
    let second = pod(&mut m, "second", None, itself);
    let third = pod(&mut m, "third", None, app("web"));
    let mut plugins = predicates(&m);
    let before = m.relations.clone();
    place(&mut m, &mut plugins, first, "a1");
    assert_eq!(open_nodes(&m, &plugins, second), ["b1", "bare"]);
    assert_eq!(open_nodes(&m, &plugins, third), ["b1", "bare"]);
    unplace(&mut m, &mut plugins, first);
    assert_eq!(open_nodes(&m, &plugins, third).len(), 4);
    assert_eq!(m.relations, before);
}

#[test]
fn an_evicted_pod_no_longer_keeps_others_away() {
    let mut m = zones();
    let web = pod(&mut m, "web", Some("a1"), app("web"));
    let anti = required("podAntiAffinity", json!([term("host", json!({"app": "web"}))]));
    let task = pod(&mut m, "p", None, anti);
    let running = m.place(web);
    let before = m.relations.clone();
    m.transition(
        web,
        Place {
            status: Status::Releasing,
            evicted_now: true,
            ..running
        },
    );
    assert_eq!(open_nodes(&m, &predicates(&m), task).len(), 4);
    m.transition(web, running);
    assert_eq!(open_nodes(&m, &predicates(&m), task).len(), 3);
    assert_eq!(m.relations, before);
}

#[test]
fn affinity_needs_a_pod_that_meets_every_term() {
    let mut m = zones();
    let terms = json!([
        term("zone", json!({"app": "web"})),
        term("zone", json!({"tier": "front"}))
    ]);
    let task = pod(&mut m, "p", None, required("podAffinity", terms));
    let no = "node(s) didn't match pod affinity rules";
    assert_eq!(verdicts(&m, &predicates(&m), task), [no; 4]);
    pod(&mut m, "half", Some("b1"), app("web"));
    assert_eq!(verdicts(&m, &predicates(&m), task), [no; 4]);
    pod(
        &mut m,
        "whole",
        Some("a2"),
        labelled(json!({"app": "web", "tier": "front"})),
    );
    assert_eq!(verdicts(&m, &predicates(&m), task), ["", "", no, no]);
}

#[test]
fn the_first_pod_of_a_series_may_go_anywhere_that_has_the_label() {
    let mut m = zones();
    let series = merged(
        app("web"),
        &required("podAffinity", json!([term("zone", json!({"app": "web"}))])),
    );
    let task = pod(&mut m, "p", None, series.clone());
    assert_eq!(open_nodes(&m, &predicates(&m), task), ["a1", "a2", "b1"]);
    pod(&mut m, "first", Some("b1"), series);
    assert_eq!(open_nodes(&m, &predicates(&m), task), ["b1"]);
}

#[test]
fn terms_choose_namespaces_by_name_or_by_label() {
    let namespace = |name: &str, team: &str| json!({"kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}});
    let with = |patch: Value| {
        required(
            "podAntiAffinity",
            json!([merged(term("zone", json!({"app": "web"})), &patch)]),
        )
    };
    let own = json!({"namespaces": [NS]});
    let selector = json!({"namespaceSelector": {"matchLabels": {"team": "red"}}});
    let everywhere = json!({"namespaceSelector": {}});
    let cases: [(&str, Value, bool, bool); 6] = [
        ("its own by default", json!({}), true, false),
        ("by name", json!({"namespaces": ["other"]}), false, true),
        ("both names", json!({"namespaces": ["other", NS]}), true, true),
        ("by label", selector.clone(), false, true),
        ("by name or label", merged(own, &selector), true, true),
        ("all", everywhere, true, true),
    ];
    for (name, patch, own_counts, other_counts) in cases {
        let mut m = zones();
        add(&mut m, namespace("other", "red"));
        pod(&mut m, "mine", Some("a1"), app("web"));
        pod(
            &mut m,
            "theirs",
            Some("b1"),
            merged(app("web"), &json!({"metadata": {"namespace": "other"}})),
        );
        let task = pod(&mut m, "p", None, with(patch));
        let expected: Vec<&str> = [
            ("a1", own_counts),
            ("a2", own_counts),
            ("b1", other_counts),
            ("bare", false),
        ]
        .into_iter()
        .filter(|(_, counts)| !counts)
        .map(|(node, _)| node)
        .collect();
        assert_eq!(open_nodes(&m, &predicates(&m), task), expected, "{name}");
    }
    let mut m = zones();
    pod(
        &mut m,
        "theirs",
        Some("b1"),
        merged(app("web"), &json!({"metadata": {"namespace": "other"}})),
    );
    let task = pod(&mut m, "p", None, with(selector));
    assert_eq!(open_nodes(&m, &predicates(&m), task).len(), 4);
    add(&mut m, namespace("other", "red"));
    assert_eq!(
        open_nodes(&m, &predicates(&m), task),
        ["a1", "a2", "bare"],
        "a namespace got the label"
    );
    add(&mut m, namespace("other", "blue"));
    assert_eq!(open_nodes(&m, &predicates(&m), task).len(), 4, "and lost it");
}

#[test]
fn label_keys_tie_a_term_to_the_values_of_the_pod_itself() {
    let with = |patch: Value| {
        let rule = required(
            "podAntiAffinity",
            json!([merged(term("zone", json!({"app": "web"})), &patch)]),
        );
        merged(labelled(json!({"rev": "2"})), &rule)
    };
    let cases: [(&str, Value, &[&str]); 4] = [
        ("neither", json!({}), &["bare"]),
        ("match", json!({"matchLabelKeys": ["rev"]}), &["a1", "a2", "bare"]),
        ("mismatch", json!({"mismatchLabelKeys": ["rev"]}), &["b1", "bare"]),
        (
            "a key that the pod lacks",
            json!({"matchLabelKeys": ["none"]}),
            &["bare"],
        ),
    ];
    for (name, patch, expected) in cases {
        let mut m = zones();
        pod(
            &mut m,
            "old",
            Some("a1"),
            labelled(json!({"app": "web", "rev": "1"})),
        );
        pod(
            &mut m,
            "new",
            Some("b1"),
            labelled(json!({"app": "web", "rev": "2"})),
        );
        let task = pod(&mut m, "p", None, with(patch));
        assert_eq!(open_nodes(&m, &predicates(&m), task), expected, "{name}");
    }
}

#[test]
fn counts_follow_the_labels_of_nodes() {
    let mut m = zones();
    pod(&mut m, "web", Some("a1"), app("web"));
    let anti = required("podAntiAffinity", json!([term("zone", json!({"app": "web"}))]));
    let task = pod(&mut m, "p", None, anti);
    node(&mut m, "a1", labelled(json!({"zone": "b"})));
    assert_eq!(open_nodes(&m, &predicates(&m), task), ["a2", "bare"]);
    m.apply(crate::model::delta::Delta::NodeGone {
        name: "a1".to_owned(),
    });
    assert_eq!(
        open_nodes(&m, &predicates(&m), task),
        ["a2", "b1", "bare"],
        "pods of a lost node count nowhere"
    );
}

fn spread(patch: Value) -> Value {
    let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}});
    merged(
        app("web"),
        &json!({"spec": {"topologySpreadConstraints": [merged(constraint, &patch)]}}),
    )
}

#[test]
fn spread_keeps_domains_within_the_skew() {
    let uneven = "node(s) didn't match pod topology spread constraints";
    let bare = "node(s) didn't match pod topology spread constraints (missing required label)";
    let mut m = zones();
    pod(&mut m, "w1", Some("a1"), app("web"));
    let task = pod(&mut m, "p", None, spread(json!({})));
    assert_eq!(verdicts(&m, &predicates(&m), task), [uneven, uneven, "", bare]);
    assert_eq!(verdicts(&m, &without(&m, "PodTopologySpread"), task), [""; 4]);
    let task = pod(&mut m, "p", None, spread(json!({"maxSkew": 2})));
    assert_eq!(verdicts(&m, &predicates(&m), task), ["", "", "", bare]);
    pod(&mut m, "w2", Some("b1"), app("web"));
    let task = pod(&mut m, "p", None, spread(json!({})));
    assert_eq!(verdicts(&m, &predicates(&m), task), ["", "", "", bare]);
    let task = pod(&mut m, "p", None, spread(json!({"minDomains": 3})));
    assert_eq!(
        verdicts(&m, &predicates(&m), task),
        [uneven, uneven, uneven, bare],
        "too few domains"
    );
}

#[test]
fn spread_does_not_count_pods_that_are_being_deleted_or_are_elsewhere() {
    let mut m = zones();
    let deleting = json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}});
    pod(&mut m, "w1", Some("a1"), merged(app("web"), &deleting));
    pod(
        &mut m,
        "w2",
        Some("a1"),
        merged(app("web"), &json!({"metadata": {"namespace": "other"}})),
    );
    let task = pod(&mut m, "p", None, spread(json!({})));
    assert_eq!(open_nodes(&m, &predicates(&m), task), ["a1", "a2", "b1"]);
}

#[test]
fn spread_looks_only_at_nodes_that_the_pod_could_use() {
    let mut m = zones();
    node(
        &mut m,
        "c1",
        json!({"metadata": {"labels": {"zone": "c"}}, "spec": {"taints": [
        {"key": "k", "effect": "NoSchedule"}]}}),
    );
    pod(&mut m, "w1", Some("a1"), app("web"));
    pod(&mut m, "w2", Some("b1"), app("web"));
    let only = |hosts: Value| {
        json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "host", "operator": "In", "values": hosts}]}]}}}}})
    };
    let cases: [(&str, Value, &[&str]); 5] = [
        ("an empty zone with a taint counts as 0", spread(json!({})), &[]),
        (
            "unless taints are honoured",
            spread(json!({"nodeTaintsPolicy": "Honor"})),
            &["a1", "a2", "b1"],
        ),
        (
            "nodes outside the affinity do not count",
            merged(spread(json!({})), &only(json!(["a1", "b1"]))),
            &["a1", "b1"],
        ),
        (
            "unless affinity is ignored",
            merged(
                spread(json!({"nodeAffinityPolicy": "Ignore"})),
                &only(json!(["a1", "b1"])),
            ),
            &[],
        ),
        (
            "a pod that is not counted itself",
            merged(spread(json!({})), &app("db")),
            &["a1", "a2", "b1"],
        ),
    ];
    for (name, patch, expected) in cases {
        let task = pod(&mut m, "p", None, patch);
        assert_eq!(open_nodes(&m, &predicates(&m), task), expected, "{name}");
    }
}

#[test]
fn spread_by_label_keys_counts_one_revision() {
    let mut m = zones();
    pod(
        &mut m,
        "w1",
        Some("a1"),
        labelled(json!({"app": "web", "rev": "1"})),
    );
    let next = merged(
        spread(json!({"matchLabelKeys": ["rev"]})),
        &labelled(json!({"rev": "2"})),
    );
    let task = pod(&mut m, "p", None, next);
    assert_eq!(open_nodes(&m, &predicates(&m), task), ["a1", "a2", "b1"]);
}

#[test]
fn pods_that_no_rule_is_about_are_not_related() {
    let plugin = |m: &mut Model| {
        let mut plugin = super::super::build(&crate::config::PluginConf::default());
        plugin.open(m, 0);
        plugin
    };
    let mut m = zones();
    let task = pod(&mut m, "p", None, app("db"));
    assert!(plugin(&mut m).relate(&m, task).is_none(), "no rule at all");
    assert!(m.relations.is_empty());
    pod(
        &mut m,
        "alone",
        Some("a1"),
        required("podAntiAffinity", json!([term("zone", json!({"app": "web"}))])),
    );
    assert!(plugin(&mut m).relate(&m, task).is_none(), "a rule about others");
}
