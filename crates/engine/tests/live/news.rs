//! When a cycle is worth while.

use super::{cycle, engine, group, merge, node, pod, queue, read, running_on};
use serde_json::{Value, json};
use volcano_engine::model::delta::Delta;
use volcano_engine::{Effect, Engine};

fn claim(more: Value) -> Delta {
    let mut claim = json!({"metadata": {"name": "c", "namespace": "ns", "resourceVersion": "1"}});
    merge(&mut claim, more);
    Delta::Claim(Box::new(read(claim)))
}

fn hyper_node(more: Value) -> Delta {
    let member = json!({"type": "Node", "selector": {"exactMatch": {"name": "n1"}}});
    let mut hyper_node = json!({"metadata": {"name": "h"}, "spec": {"tier": 1, "members": [member]}});
    merge(&mut hyper_node, more);
    Delta::HyperNode(Box::new(read(hyper_node)))
}

fn priority_class(value: i32) -> Delta {
    Delta::PriorityClass(read(json!({"metadata": {"name": "high"}, "value": value})))
}

fn namespace(labels: Value) -> Delta {
    Delta::Namespace(read(json!({"metadata": {"name": "ns", "labels": labels}})))
}

fn budget(allowed: i32) -> Delta {
    let budget =
        json!({"metadata": {"name": "b", "namespace": "ns"}, "status": {"disruptionsAllowed": allowed}});
    Delta::DisruptionBudget(Box::new(read(budget)))
}

fn pod_gone(name: &str) -> Delta {
    Delta::PodGone {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
    }
}

/// A pod runs, another waits in vain, and all is told.
fn at_rest() -> Engine {
    let mut engine = engine("enqueue, allocate", &["gang", "predicates"]);
    let objects = [
        node("n1", "1", json!({})),
        group("runs", json!({"status": {"phase": "Running", "running": 1}})),
        pod("runs", "runs", "1", running_on("n1")),
        group("waits", json!({})),
        pod("waits", "waits", "1", json!({})),
        claim(json!({})),
        hyper_node(json!({})),
        priority_class(5),
        namespace(json!({})),
        budget(1),
    ];
    objects.into_iter().for_each(|object| engine.apply(object));
    assert!(engine.news(), "objects came in");
    cycle(&mut engine);
    assert!(!engine.news(), "a cycle has seen them");
    engine
}

#[test]
fn updates_that_change_nothing_are_no_news() {
    let heartbeat = json!({
        "metadata": {"resourceVersion": "7", "annotations": {"seen": "now"}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]},
    });
    let told = json!({"metadata": {"resourceVersion": "7"}, "status": {
        "nominatedNodeName": "",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "older"}],
    }});
    let mut ready = running_on("n1");
    merge(
        &mut ready,
        json!({"metadata": {"annotations": {"a": "b"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    );
    let cases = [
        ("a heartbeat of a node", node("n1", "1", heartbeat)),
        (
            "a condition of a pod that waits",
            pod("waits", "waits", "1", told),
        ),
        ("a pod that becomes ready", pod("runs", "runs", "1", ready)),
        (
            "a pod that waits for others",
            pod("x", "", "1", json!({"spec": {"schedulerName": "other"}})),
        ),
        (
            "counters of a queue",
            queue("default", json!({"status": {"running": 1, "pending": 1}})),
        ),
        (
            "a claim's version",
            claim(json!({"metadata": {"resourceVersion": "2"}})),
        ),
        (
            "the status of a HyperNode",
            hyper_node(json!({"status": {"nodeCount": 1}})),
        ),
        ("the same priority", priority_class(5)),
        ("the same labels", namespace(json!({}))),
        ("the same budget", budget(1)),
        ("a pod that nobody knows is gone", pod_gone("nobody")),
        (
            "a node that nobody knows is gone",
            Delta::NodeGone {
                name: "nobody".to_owned(),
            },
        ),
        (
            "a queue that nobody knows is gone",
            Delta::QueueGone {
                name: "nobody".to_owned(),
            },
        ),
    ];
    for (what, delta) in cases {
        let mut engine = at_rest();
        engine.apply(delta);
        assert!(!engine.news(), "{what}");
    }
}

#[test]
fn updates_that_change_something_are_news() {
    let labels = || json!({"metadata": {"labels": {"a": "b"}}});
    let cases = [
        ("a node with more room", node("n1", "2", json!({}))),
        ("a node with a label", node("n1", "1", labels())),
        (
            "a cordoned node",
            node("n1", "1", json!({"spec": {"unschedulable": true}})),
        ),
        ("another node", node("n2", "1", json!({}))),
        (
            "a node is gone",
            Delta::NodeGone {
                name: "n1".to_owned(),
            },
        ),
        (
            "a pod ends",
            pod(
                "runs",
                "runs",
                "1",
                json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}}),
            ),
        ),
        ("a pod gets a label", pod("waits", "waits", "1", labels())),
        (
            "a pod of the same name",
            pod("waits", "waits", "1", json!({"metadata": {"uid": "another"}})),
        ),
        ("a pod of another group", pod("waits", "runs", "1", json!({}))),
        ("a pod is gone", pod_gone("runs")),
        (
            "another scheduler's pod of a group",
            pod("x", "waits", "1", json!({"spec": {"schedulerName": "other"}})),
        ),
        (
            "a smaller gang",
            group("waits", json!({"spec": {"minMember": 0}})),
        ),
        (
            "a gang with a role",
            group("waits", json!({"spec": {"minTaskMember": {"": 1}}})),
        ),
        (
            "a group in another queue",
            group("waits", json!({"spec": {"queue": "other"}})),
        ),
        (
            "a phase that somebody else wrote",
            group("runs", json!({"status": {"phase": "Pending"}})),
        ),
        (
            "a group is gone",
            Delta::PodGroupGone {
                namespace: "ns".to_owned(),
                name: "runs".to_owned(),
            },
        ),
        (
            "a queue with a limit",
            queue("default", json!({"spec": {"capability": {"cpu": "1"}}})),
        ),
        (
            "a queue that is closed",
            queue("default", json!({"status": {"state": "Closed"}})),
        ),
        (
            "usage that somebody else wrote",
            queue("default", json!({"status": {"allocated": {"cpu": "77"}}})),
        ),
        (
            "a queue is gone",
            Delta::QueueGone {
                name: "default".to_owned(),
            },
        ),
        (
            "a claim that has its volume",
            claim(json!({"spec": {"volumeName": "v"}})),
        ),
        (
            "a claim is gone",
            Delta::ClaimGone {
                namespace: "ns".to_owned(),
                name: "c".to_owned(),
            },
        ),
        ("another tier", hyper_node(json!({"spec": {"tier": 2}}))),
        ("another priority", priority_class(6)),
        ("a label of a namespace", namespace(json!({"a": "b"}))),
        ("a budget that is used up", budget(0)),
    ];
    for (what, delta) in cases {
        let mut engine = at_rest();
        engine.apply(delta);
        assert!(engine.news(), "{what}");
    }
}

#[test]
fn a_bind_is_news_when_it_is_seen_and_when_it_failed_and_not_before() {
    let bound_pod = || {
        let mut engine = at_rest();
        engine.apply(node("n2", "1", json!({})));
        let decided = cycle(&mut engine);
        let binds = |effect: &Effect| matches!(effect, Effect::Bind { .. });
        assert!(decided.effects.iter().any(binds));
        assert!(!engine.news());
        engine.apply(pod(
            "waits",
            "waits",
            "1",
            json!({"metadata": {"labels": {"a": "b"}}}),
        ));
        assert!(!engine.news(), "an object that is older than the bind");
        engine
    };
    let mut engine = bound_pod();
    engine.apply(pod("waits", "waits", "1", json!({"spec": {"nodeName": "n2"}})));
    assert!(engine.news(), "the group is scheduled now");
    let mut engine = bound_pod();
    engine.apply(Delta::BindFailed {
        namespace: "ns".to_owned(),
        name: "waits".to_owned(),
        uid: String::new(),
    });
    assert!(engine.news());
    cycle(&mut engine);
    let nobody = Delta::BindFailed {
        namespace: "ns".to_owned(),
        name: "runs".to_owned(),
        uid: String::new(),
    };
    engine.apply(nobody);
    assert!(!engine.news(), "it was not being bound");
}

#[test]
fn what_the_engine_has_written_is_no_news_when_it_comes_back() {
    let mut engine = engine("enqueue, allocate", &["gang", "predicates"]);
    engine.apply(node("n1", "1", json!({})));
    engine.apply(group("g", json!({})));
    engine.apply(pod("p", "g", "2", json!({})));
    let decided = cycle(&mut engine);
    for effect in &decided.effects {
        match effect {
            Effect::GroupStatus {
                phase, conditions, ..
            } => {
                let conditions: Vec<Value> = conditions
                    .iter()
                    .map(|c| {
                        json!({"type": c.r#type, "status": "True", "reason": c.reason, "message": c.message,
                        "lastTransitionTime": c.last_transition_time, "transitionID": c.transition_id})
                    })
                    .collect();
                engine.apply(group(
                    "g",
                    json!({"status": {"phase": phase.name(), "conditions": conditions}}),
                ));
            }
            Effect::PodCondition { reason, message, .. } => {
                let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": &**message});
                engine.apply(pod("p", "g", "2", json!({"status": {"conditions": [condition]}})));
            }
            Effect::QueueStatus { allocated, .. } => {
                let allocated = engine.model().dims.quantities(allocated);
                let amounts: Value = allocated
                    .iter()
                    .map(|(name, amount)| (name.clone(), json!(amount.to_string())))
                    .collect();
                engine.apply(queue("default", json!({"status": {"allocated": amounts}})));
            }
            _ => {}
        }
        assert!(!engine.news(), "{effect:?}");
    }
    assert!(decided.effects.len() >= 3);
}
