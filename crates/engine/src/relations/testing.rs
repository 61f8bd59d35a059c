//! Small clusters for the tests of rules between pods, filters and scores.

use crate::config::{Arguments, PluginConf, SchedulerConf, Tier};
use crate::dispatch::Plugins;
use crate::ids::{NodeId, TaskId};
use crate::model::accounting::Place;
use crate::model::delta::Delta;
use crate::model::status::Status;
use crate::model::{Model, SchedulerNames};
use crate::placer::{Candidates, Placer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Namespace of pods and claims that name none.
pub(crate) const NS: &str = "ns";

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("a valid object")
}

/// Lays `patch` over `base`, objects key by key.
pub(crate) fn merged(mut base: Value, patch: &Value) -> Value {
    match (&mut base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                let below = base.remove(key).unwrap_or(Value::Null);
                base.insert(key.clone(), merged(below, value));
            }
        }
        _ => return patch.clone(),
    }
    base
}

/// An empty cluster.
pub(crate) fn empty() -> Model {
    Model::new(SchedulerNames::Any, "default")
}

/// A cluster of nodes by name and labels, each with 4 cores, 8 GiB and room for 10 pods.
pub(crate) fn cluster(nodes: &[(&str, Value)]) -> Model {
    let mut m = empty();
    for (name, labels) in nodes {
        node(&mut m, name, json!({"metadata": {"labels": labels}}));
    }
    m
}

/// Adds or changes a node.
pub(crate) fn node(m: &mut Model, name: &str, patch: Value) -> NodeId {
    let base = json!({
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    m.apply(Delta::Node(Box::new(read(merged(base, &patch)))));
    m.nodes.refresh_ranks({
        let strings = m.strings.clone();
        move |name| strings.shared(name)
    });
    m.find_node(name).expect("just added")
}

/// Adds or changes a pod: on a node it runs, without one it waits.
pub(crate) fn pod(m: &mut Model, name: &str, on: Option<&str>, patch: Value) -> TaskId {
    let base = json!({
        "metadata": {"name": name, "namespace": NS, "uid": name},
        "spec": {"nodeName": on.unwrap_or_default(), "containers": [{"name": "c"}]},
        "status": {"phase": if on.is_some() { "Running" } else { "Pending" }},
    });
    let object = merged(base, &patch);
    let namespace = object["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    m.apply(Delta::Pod(Box::new(read(object))));
    m.find_task(&namespace, name).expect("just added")
}

/// Adds an object of another kind.
pub(crate) fn add(m: &mut Model, object: Value) {
    m.apply(match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => Delta::Namespace(read(object)),
        "PersistentVolumeClaim" => Delta::Claim(Box::new(read(object))),
        "PersistentVolume" => Delta::Volume(Box::new(read(object))),
        "StorageClass" => Delta::StorageClass(Box::new(read(object))),
        "CSINode" => Delta::CsiNode(Box::new(read(object))),
        "CSIDriver" => Delta::CsiDriver(Box::new(read(object))),
        "CSIStorageCapacity" => Delta::StorageCapacity(Box::new(read(object))),
        kind => unreachable!("no test uses {kind}"),
    });
}

/// Labels of a pod.
pub(crate) fn labelled(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

/// Plugins by name, with arguments.
pub(crate) fn plugins(m: &Model, entries: &[(&str, &[(&str, Value)])]) -> Plugins {
    let entry = |(name, arguments): &(&str, &[(&str, Value)])| PluginConf {
        name: (*name).to_owned(),
        arguments: arguments
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect::<Arguments>(),
        ..PluginConf::default()
    };
    let tier = Tier {
        plugins: entries.iter().map(entry).collect(),
    };
    let (mut plugins, missing) = Plugins::build(&SchedulerConf {
        tiers: vec![tier],
        ..SchedulerConf::default()
    });
    assert!(missing.is_empty());
    plugins.open(m, 0, &mut |_| {});
    plugins
}

/// Why a task cannot go to each node in turn, in the words that users know; empty where it can.
pub(crate) fn verdicts(m: &Model, plugins: &Plugins, task: TaskId) -> Vec<String> {
    let text = |node: NodeId| {
        let reasons = Placer::judge_filters(m, plugins, task, node);
        reasons.iter().map(|r| r.text(m)).collect::<Vec<_>>().join("; ")
    };
    m.nodes.ids().map(text).collect()
}

/// The nodes that a task can go to.
pub(crate) fn open_nodes(m: &Model, plugins: &Plugins, task: TaskId) -> Vec<String> {
    let nodes = m
        .nodes
        .ids()
        .filter(|&n| Placer::judge_filters(m, plugins, task, n).is_empty());
    nodes.map(|n| m.text(m.nodes[n].name).to_owned()).collect()
}

/// The node that is chosen for a task; empty for none.
pub(crate) fn chosen(m: &Model, plugins: &Plugins, task: TaskId) -> String {
    let choice = Placer::default().choose(m, plugins, task, Candidates::All);
    choice.map_or(String::new(), |choice| {
        m.text(m.nodes[choice.node].name).to_owned()
    })
}

/// Places a task as a cycle does.
pub(crate) fn place(m: &mut Model, plugins: &mut Plugins, task: TaskId, on: &str) {
    let node = m.find_node(on);
    m.transition(
        task,
        Place {
            status: Status::Allocated,
            node,
            evicted_now: false,
        },
    );
    plugins.on_charge(m, task, true);
}

/// Undoes a placement.
pub(crate) fn unplace(m: &mut Model, plugins: &mut Plugins, task: TaskId) {
    m.transition(
        task,
        Place {
            status: Status::Pending,
            node: None,
            evicted_now: false,
        },
    );
    plugins.on_charge(m, task, false);
}
