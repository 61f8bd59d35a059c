//! Jobs as users write them, and what the plugins make of them.

mod golden;
mod objects;
mod pods;
mod properties;

use serde_json::{Map, Value, json};
use volcano_api::batch::Job;
use volcano_api::names::kinds;

use super::hosts::pod_name;
use super::*;
use crate::write::Write;

/// A job `ml/train` with these plugins and tasks.
fn job(plugins: Value, tasks: Value) -> Job {
    serde_json::from_value(json!({
        "metadata": {"namespace": "ml", "name": "train", "uid": "job-uid"},
        "spec": {"plugins": plugins, "tasks": tasks},
    }))
    .expect("a readable job")
}

/// A task whose pods have one container, of the task's name.
fn task_of(name: &str, replicas: i32) -> Value {
    json!({
        "name": name, "replicas": replicas,
        "template": {"spec": {"containers": [{"name": name, "image": "app"}]}},
    })
}

/// A pod as it is before the plugins.
fn bare_pod(job: &Job, task: &TaskSpec, index: i32) -> Map<String, Value> {
    let spec = task.template.spec().cloned().unwrap_or_default();
    let metadata = json!({"name": pod_name(job, task, index), "namespace": "ml"});
    Map::from_iter([
        ("metadata".to_owned(), metadata),
        ("spec".to_owned(), Value::Object(spec)),
    ])
}

/// A pod as the plugins make it.
fn pod(job: &Job, task: &str, index: i32) -> Result<Value, PluginError> {
    let task = job
        .spec
        .tasks
        .iter()
        .find(|have| have.name == task)
        .expect("a task of the job");
    let mut pod = bare_pod(job, task, index);
    Plugins::of(job)?.on_pod_create(job, task, index, &mut pod)?;
    Ok(Value::Object(pod))
}

/// The value of a variable of a pod's first container.
fn variable(pod: &Value, name: &str) -> Option<String> {
    let variables = pod["spec"]["containers"][0]["env"].as_array()?;
    let mut found = variables.iter().filter(|variable| variable["name"] == name);
    let value = found.next()?["value"].as_str()?.to_owned();
    assert!(found.next().is_none(), "{name} is there twice");
    Some(value)
}

/// The writes for the objects of a job of which these are there.
fn writes(job: &Job, there: &[Value]) -> Result<Vec<Write>, PluginError> {
    Plugins::of(job)?.objects(job, &observed(there))
}

/// Objects as they were read.
fn observed(there: &[Value]) -> Observed {
    let mut observed = Observed::default();
    for object in there {
        let kinds = [
            kinds::SERVICE,
            kinds::CONFIG_MAP,
            kinds::SECRET,
            kinds::NETWORK_POLICY,
        ];
        let kind = kinds.into_iter().find(|kind| object["kind"] == kind.kind);
        observed.insert(kind.expect("a kind that plugins make"), object);
    }
    observed
}

/// What the API server stores for the objects that are created.
fn stored(writes: &[Write]) -> Vec<Value> {
    let mut objects = Vec::new();
    for write in writes {
        if let Write::Create { body, fill, .. } = write {
            let mut body = body.clone();
            body["metadata"]["uid"] = format!("uid-{}", objects.len()).into();
            if fill.is_some() {
                body["data"]["id_rsa"] = "random".into();
            }
            objects.push(body);
        }
    }
    objects
}

/// Writes as text: verb, object, what is written.
fn show(writes: &[Write]) -> String {
    let lines = writes.iter().map(|write| match write {
        Write::Create { target, body, fill } => {
            let fill = fill.map_or(String::new(), |fill| format!(" + {fill:?}"));
            format!("create {}{fill}\n{body:#}\n", object(target))
        }
        Write::Patch { target, patch, .. } => format!("patch {}\n{patch:#}\n", object(target)),
        Write::Delete { target, foreground } => {
            assert!(!foreground, "nothing depends on these objects");
            format!("delete {}\n", object(target))
        }
        Write::Event(event) => format!("event {}\n", event.message),
    });
    lines.collect()
}

fn object(target: &Target) -> String {
    let uid = if target.uid.is_empty() { "any" } else { &target.uid };
    format!(
        "{} {}/{} ({uid})",
        target.kind.kind, target.namespace, target.name
    )
}
