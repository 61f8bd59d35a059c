//! Long lives: nodes, pods and their templates come and go by the thousand, and what they leave behind neither grows
//! nor changes a decision.

use super::{cycle, engine, group, node, pod, read, running_on};
use serde_json::json;
use std::collections::BTreeMap;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;
use volcano_engine::{Cycle, Effect, Engine};

const PLUGINS: [&str; 3] = ["gang", "predicates", "nodeorder"];

fn plain() -> Engine {
    engine("enqueue, allocate", &PLUGINS)
}

/// Names of pods and their nodes.
fn binds(engine: &Engine, cycle: &Cycle) -> BTreeMap<String, String> {
    let m = engine.model();
    let mut bound = BTreeMap::new();
    for effect in &cycle.effects {
        let Effect::Bind { binds, .. } = effect else {
            continue;
        };
        for &(task, node) in binds {
            bound.insert(m.task_key(task), m.text(m.nodes[node].name).to_owned());
        }
    }
    bound
}

fn pod_gone(name: &str) -> Delta {
    Delta::gone(Kind::Pod, "ns", name)
}

/// A fresh engine that was told the same objects decides the same.
fn decides_as_a_fresh_one(engine: &mut Engine) -> BTreeMap<String, String> {
    let mut fresh = plain();
    let objects: Vec<Delta> = engine.objects().collect();
    objects.into_iter().for_each(|object| fresh.apply(object));
    let expected = cycle(&mut fresh);
    let decided = cycle(engine);
    let decided = binds(engine, &decided);
    assert_eq!(decided, binds(&fresh, &expected));
    decided
}

#[test]
fn nodes_that_come_and_go_leave_no_rows_behind() {
    let mut engine = plain();
    engine.apply(group("g", json!({})));
    for round in 0..3000 {
        let name = format!("spot-{round}");
        let size = if round % 2 == 0 { "small" } else { "large" };
        let labels = json!({"metadata": {"labels": {"size": size}}});
        engine.apply(node(&name, "2", labels));
        engine.apply(pod(&format!("on-{round}"), "g", "1", running_on(&name)));
        if round >= 10 {
            let gone = round - 10;
            engine.apply(Delta::gone(Kind::Node, "", &format!("spot-{gone}")));
            // Some pods outlive their node for a while, and some of those have ended.
            let last = format!("on-{gone}");
            if gone % 3 == 0 {
                let ended =
                    json!({"spec": {"nodeName": format!("spot-{gone}")}, "status": {"phase": "Succeeded"}});
                engine.apply(pod(&last, "g", "1", ended));
            } else if gone % 3 == 1 {
                engine.apply(pod_gone(&last));
            }
            if gone >= 20 {
                engine.apply(pod_gone(&format!("on-{}", gone - 20)));
            }
        }
        if round % 100 == 99 {
            let waiting = format!("new-{round}");
            let small = json!({"spec": {"nodeSelector": {"size": "small"}}});
            engine.apply(pod(&waiting, "g", "1", small));
            let decided = decides_as_a_fresh_one(&mut engine);
            assert_eq!(decided.len(), 1, "round {round}: {decided:?}");
            let on = &decided[&format!("ns/{waiting}")];
            let at = engine.model().find_node(on).expect("a known node");
            assert!(engine.model().nodes.is_present(at), "{on}");
            engine.apply(pod_gone(&waiting));
        }
    }
    let rows = engine.model().nodes.len();
    assert!(
        rows < 150,
        "{rows} rows for 10 nodes and the pods that name 20 that are gone"
    );
}

#[test]
fn a_node_that_a_pod_names_keeps_its_name_while_others_come_and_go() {
    let mut engine = plain();
    engine.apply(group("g", json!({})));
    engine.apply(node("old", "2", json!({})));
    for (name, phase) in [("runs", "Running"), ("ended", "Succeeded")] {
        let there = json!({"spec": {"nodeName": "old"}, "status": {"phase": phase}});
        engine.apply(pod(name, "g", "1", there));
    }
    engine.apply(Delta::gone(Kind::Node, "", "old"));
    for round in 0..500 {
        let name = format!("n{round}");
        engine.apply(node(&name, "2", json!({})));
        engine.apply(Delta::gone(Kind::Node, "", &name));
    }
    let m = engine.model();
    for name in ["runs", "ended"] {
        let task = m.task(m.find_task("ns", name).expect("a known pod"));
        assert_eq!(m.text(m.nodes[task.node.expect("it has a node")].name), "old");
    }
    engine.apply(node("old", "2", json!({})));
    engine.apply(pod("p", "g", "2", json!({})));
    assert_eq!(
        decides_as_a_fresh_one(&mut engine),
        BTreeMap::new(),
        "one of two is in use"
    );
}

#[test]
fn templates_that_come_and_go_leave_no_classes_behind() {
    let mut engine = plain();
    engine.apply(group("g", json!({})));
    for name in ["a", "b"] {
        engine.apply(node(name, "8", json!({"metadata": {"labels": {"name": name}}})));
    }
    for round in 0..3000 {
        let (name, on) = (format!("p{round}"), ["a", "b"][round % 7 % 2]);
        // Each is of a class of its own.
        let selector = json!({"spec": {"nodeSelector": {"name": on},
            "containers": [{"name": "main", "image": format!("image-{round}"), "resources": {"requests": {"cpu": "1"}}}]}});
        engine.apply(pod(&name, "g", "1", selector));
        let decided = cycle(&mut engine);
        let expected = BTreeMap::from([(format!("ns/{name}"), on.to_owned())]);
        assert_eq!(binds(&engine, &decided), expected);
        if round >= 5 {
            engine.apply(pod_gone(&format!("p{}", round - 5)));
        }
    }
    let classes = engine.model().classes.len();
    assert!(classes < 300, "{classes} classes for 5 pods");
    decides_as_a_fresh_one(&mut engine);
}

#[test]
fn conditions_of_others_are_written_back_as_they_were_read() {
    let mut engine = plain();
    engine.apply(node("n", "1", json!({})));
    let foreign = json!([
        {"type": "example.com/Checked", "status": "Unknown", "reason": "Waits", "message": "m"},
        {"type": "example.com/Odd", "status": "perhaps", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]);
    let read: Vec<volcano_api::scheduling::PodGroupCondition> = read(foreign.clone());
    engine.apply(group("g", json!({"status": {"conditions": foreign}})));
    engine.apply(pod("p", "g", "1", json!({})));
    let decided = cycle(&mut engine);
    let written = decided.effects.iter().find_map(|effect| match effect {
        Effect::GroupStatus { conditions, .. } => Some(conditions),
        _ => None,
    });
    let written = written.expect("the group is scheduled now");
    assert_eq!(written[..2], read);
    assert_eq!(written[2].r#type, "Scheduled");
}
