//! Writes take their time: until they come back, objects show what was before.

use super::{cycle, engine, group, merge, node, pod, running_on};
use serde_json::{Value, json};
use volcano_engine::effect::Nomination;
use volcano_engine::{Cycle, Effect, Engine};

fn nominations(cycle: &Cycle) -> Vec<Nomination> {
    let told = cycle.effects.iter().filter_map(|effect| match effect {
        Effect::PodCondition { nominated, .. } => Some(*nominated),
        _ => None,
    });
    told.collect()
}

/// `p` waits in vain; `n2` was freed for it and somebody else has filled it.
fn with_a_lost_nomination() -> (Engine, Value) {
    let mut engine = engine("allocate", &["gang", "predicates"]);
    let shown = json!({"status": {"nominatedNodeName": "n2"}});
    let objects = [
        node("n1", "1", json!({})),
        node("n2", "4", json!({})),
        pod("busy", "", "4", running_on("n2")),
        group("g", json!({})),
        pod("p", "g", "2", shown.clone()),
    ];
    objects.into_iter().for_each(|object| engine.apply(object));
    (engine, shown)
}

#[test]
fn a_nomination_that_was_given_up_is_not_taken_from_an_older_object() {
    let (mut engine, shown) = with_a_lost_nomination();
    assert_eq!(nominations(&cycle(&mut engine)), [Nomination::Clear]);
    let mut older = shown;
    merge(&mut older, json!({"metadata": {"labels": {"a": "b"}}}));
    engine.apply(pod("p", "g", "2", older));
    assert_eq!(nominations(&cycle(&mut engine)), []);
    let task = engine.model().find_task("ns", "p").expect("it waits");
    assert_eq!(engine.model().task(task).nominated, None);
}

#[test]
fn a_nomination_is_somebody_elses_when_it_is_neither_the_written_nor_the_older_one() {
    let (mut engine, _) = with_a_lost_nomination();
    cycle(&mut engine);
    engine.apply(pod("p", "g", "2", json!({"status": {"nominatedNodeName": "n1"}})));
    let task = engine.model().find_task("ns", "p").expect("it waits");
    assert_eq!(
        engine.model().nominated_node(task),
        engine.model().find_node("n1")
    );
}

fn statuses(cycle: &Cycle) -> Vec<&Effect> {
    let told = cycle.effects.iter();
    told.filter(|effect| matches!(effect, Effect::GroupStatus { .. } | Effect::GroupEvent { .. }))
        .collect()
}

#[test]
fn a_status_that_comes_back_is_not_written_again() {
    let mut engine = engine("enqueue, allocate", &["gang", "predicates"]);
    engine.apply(node("n1", "1", json!({})));
    engine.apply(group("g", json!({"status": {"phase": ""}})));
    engine.apply(pod("p", "g", "2", json!({})));
    let first = cycle(&mut engine);
    let Some(Effect::GroupStatus {
        phase,
        conditions,
        counters,
        ..
    }) = statuses(&first).first()
    else {
        panic!("the group is told that it waits: {:?}", first.effects);
    };
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|c| {
            json!({
                "type": c.r#type, "status": c.status, "reason": c.reason, "message": c.message,
                "lastTransitionTime": "2026-01-01T00:00:00Z", "transitionID": "x",
            })
        })
        .collect();
    let [running, succeeded, failed] = counters;
    let status = json!({"status": {
        "phase": phase.name(), "conditions": conditions,
        "running": running, "succeeded": succeeded, "failed": failed,
    }});
    for _ in 0..2 {
        engine.apply(group("g", status.clone()));
        let again = cycle(&mut engine);
        assert_eq!(statuses(&again), Vec::<&Effect>::new());
    }
}
