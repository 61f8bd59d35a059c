//! What a process around the engine relies on: that its own writes coming back change nothing, that it can tell when a
//! cycle is worth while, the figures that it publishes, the features that it sets, and that it does not grow with history.

mod churn;
mod echoes;
mod features;
mod figures;
mod news;

use serde_json::{Value, json};
use volcano_api::time::Time;
use volcano_engine::config::{SchedulerConf, catalog};
use volcano_engine::model::SchedulerNames;
use volcano_engine::model::delta::Delta;
use volcano_engine::{Cycle, Engine};

/// An engine with a queue `default` and these actions and plugins, each one tier.
fn engine(actions: &str, plugins: &[&str]) -> Engine {
    let tiers: Vec<Value> = plugins
        .iter()
        .map(|name| json!({"plugins": [{"name": name}]}))
        .collect();
    let text = json!({"actions": actions, "tiers": tiers}).to_string();
    let conf = SchedulerConf::parse(&text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).expect("a good one");
    let names = SchedulerNames::Only(vec!["volcano".to_owned()]);
    let (mut engine, missing) = Engine::new(conf, names, "default");
    assert_eq!(missing, []);
    engine.apply(queue("default", json!({})));
    engine
}

fn cycle(engine: &mut Engine) -> Cycle {
    engine.cycle(Time::from_unix_seconds(1_700_000_000), &mut |_| {})
}

fn read<T: for<'a> serde::Deserialize<'a>>(value: Value) -> T {
    serde_json::from_value(value).expect("a good object")
}

/// Adds to an object: maps key by key, anything else is replaced.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn queue(name: &str, more: Value) -> Delta {
    let mut queue = json!({"metadata": {"name": name}, "status": {"state": "Open"}});
    merge(&mut queue, more);
    Delta::Queue(Box::new(read(queue)))
}

fn node(name: &str, cpu: &str, more: Value) -> Delta {
    let mut node =
        json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}});
    merge(&mut node, more);
    Delta::Node(Box::new(read(node)))
}

/// A PodGroup that was admitted.
fn group(name: &str, more: Value) -> Delta {
    let mut group = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"minMember": 1},
        "status": {"phase": "Inqueue"},
    });
    merge(&mut group, more);
    Delta::PodGroup(Box::new(read(group)))
}

fn pod(name: &str, group: &str, cpu: &str, more: Value) -> Delta {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name,
            "annotations": {"scheduling.k8s.io/group-name": group},
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": "Pending"},
    });
    merge(&mut pod, more);
    Delta::Pod(Box::new(read(pod)))
}

fn running_on(node: &str) -> Value {
    json!({"spec": {"nodeName": node}, "status": {"phase": "Running"}})
}
