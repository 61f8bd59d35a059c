//! Queues as they are seen, and what is done with them.

mod index;
mod rules;
mod simulation;

use serde_json::{Value, json};
use volcano_api::bus::Command;
use volcano_api::names::annotations::CLOSED_BY_PARENT;
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::time::Time;

use super::*;

/// A queue below `root`, as the API server stores it.
fn queue(name: &str, state: &str) -> Queue {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "5"},
        "spec": {"parent": if name == "root" { "" } else { "root" }},
        "status": {"state": state},
    }))
    .expect("a readable queue")
}

/// The same queue below another one.
fn below(parent: &str, mut queue: Queue) -> Queue {
    queue.spec.parent = parent.to_owned();
    queue
}

/// The same queue with a note on whether its parent closed it.
fn marked(by_parent: &str, mut queue: Queue) -> Queue {
    let annotations = &mut queue.metadata.annotations;
    annotations.insert(CLOSED_BY_PARENT.to_owned(), by_parent.to_owned());
    queue
}

/// A PodGroup of a queue.
fn group(name: &str, queue: &str, phase: &str) -> PodGroup {
    serde_json::from_value(json!({
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"queue": queue},
        "status": {"phase": phase},
    }))
    .expect("a readable PodGroup")
}

/// An order, given so many seconds after the start of 1970.
fn command(name: &str, queue: &str, action: &str, at: i64) -> Command {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": format!("uid-{name}"),
            "creationTimestamp": Time::from_unix_seconds(at),
        },
        "action": action,
        "target": {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "name": queue, "uid": format!("uid-{queue}"),
        },
    }))
    .expect("a readable Command")
}

/// An index that has seen all of this.
fn index(queues: &[Queue], groups: &[PodGroup], commands: &[Command]) -> Index {
    let mut index = Index::default();
    queues.iter().cloned().for_each(|queue| index.put_queue(queue));
    groups.iter().for_each(|group| index.put_group(group));
    commands
        .iter()
        .cloned()
        .for_each(|command| index.put_command(command));
    index
}

/// A plan as text: one line a step.
fn show(plan: &Plan) -> Vec<String> {
    let mut lines: Vec<_> = plan
        .steps
        .iter()
        .map(|step| step.iter().map(show_write).collect::<Vec<_>>().join(" & "))
        .collect();
    if let Some(at) = plan.again_at {
        lines.push(format!("again at {}", at.unix_seconds()));
    }
    lines
}

fn show_write(write: &Write) -> String {
    match write {
        Write::Create { target, .. } => format!("create {}", target.name),
        Write::Patch {
            target,
            patch,
            status,
            resource_version,
        } => {
            let what = if *status { "status" } else { "queue" };
            let condition = resource_version.as_ref().map(|version| format!(" if {version}"));
            let patch = if *status { &patch["status"] } else { patch };
            assert_eq!(target.uid, format!("uid-{}", target.name));
            format!("{what} {} {patch}{}", target.name, condition.unwrap_or_default())
        }
        Write::Delete { target, foreground } => {
            assert!(!foreground && target.uid == format!("uid-{}", target.name));
            format!("delete {} {}", target.kind.kind, target.name)
        }
        Write::Event(event) => {
            let kind = if event.warning { "Warning" } else { "Normal" };
            format!(
                "{kind} {} on {}: {}",
                event.reason, event.about.name, event.message
            )
        }
    }
}

/// Nothing.
fn none() -> Vec<String> {
    Vec::new()
}

fn lines(text: &[&str]) -> Vec<String> {
    text.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn numbers_are_those_of_the_status() {
    let status = serde_json::from_value(json!({
        "pending": 1, "inqueue": 2, "running": 3, "unknown": 4, "completed": 5,
    }))
    .expect("readable");
    let counts = Counts::of(&status);
    assert_eq!(counts.total(), 15);
    assert_eq!(counts.changes(&status), serde_json::Map::new());
    let changes = counts.changes(&QueueStatus::default());
    assert_eq!(
        Value::Object(changes),
        serde_json::to_value(
            counts
                .named()
                .map(|(n, c)| (n.to_owned(), c))
                .into_iter()
                .collect::<std::collections::BTreeMap<_, _>>()
        )
        .expect("writable")
    );
}
