//! `/pods/mutate` and `/pods/validate`.

pub(crate) mod groups;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use volcano_api::core::null_default;
use volcano_api::meta::ObjectMeta;
use volcano_api::names::admission::{ADMIT, messages};
use volcano_api::names::{annotations, gates};

use crate::Patch;
use crate::field::{go_number_error, quote};
use crate::review::{Context, Event, Operation, Refusal, Request, Verdict};
use groups::ResourceGroup;

/// Annotations that limit how many pods of a job may be evicted.
const BUDGETS: [&str; 2] = [annotations::JDB_MIN_AVAILABLE, annotations::JDB_MAX_UNAVAILABLE];

/// Which pods [`validate`] has something to say about, for the API server, in CEL: it asks about no others, so that they
/// do not depend on an answer.
pub(crate) fn conditions(scheduler_names: &[String]) -> Value {
    let quoted = |text: &String| format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
    let names: Vec<_> = scheduler_names.iter().map(quoted).collect();
    let annotated = BUDGETS.map(|key| format!("'{key}' in object.metadata.annotations"));
    json!([
        {
            "name": "scheduler",
            "expression": format!("has(object.spec.schedulerName) && object.spec.schedulerName in [{}]", names.join(", ")),
        },
        {
            "name": "budget",
            "expression": format!("has(object.metadata.annotations) && ({})", annotated.join(" || ")),
        },
    ])
}

/// A pod as far as it is judged and changed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    #[serde(deserialize_with = "null_default")]
    metadata: ObjectMeta,
    #[serde(deserialize_with = "null_default")]
    spec: PodSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    #[serde(deserialize_with = "null_default")]
    scheduler_name: String,
    #[serde(deserialize_with = "null_default")]
    node_selector: BTreeMap<String, String>,
    affinity: Option<Value>,
    #[serde(deserialize_with = "null_default")]
    tolerations: Vec<Value>,
    #[serde(deserialize_with = "null_default")]
    scheduling_gates: Vec<Gate>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Gate {
    name: String,
}

/// Adds to a new pod what its resource group says, and the gate that it asks for.
pub(crate) fn mutate(context: &Context<'_>, request: &Request) -> Verdict {
    if request.operation() != Operation::Create {
        return Err(messages::EXPECT_CREATE.into());
    }
    let Some(groups) = &context.options.resource_groups else {
        return Ok(Patch::default());
    };
    let mut pod: Pod = request.object()?;
    if pod.metadata.namespace.is_empty() {
        pod.metadata.namespace.clone_from(&request.namespace);
    }
    let mut patch = Patch::default();
    if context.options.queue_allocation_gates {
        add_gate(&pod, &mut patch);
    }
    if let Some(group) = groups.of(&pod.metadata) {
        join(group, &pod.spec, &mut patch);
    }
    Ok(patch.with_parent("spec", &request.object))
}

fn add_gate(pod: &Pod, patch: &mut Patch) {
    let asked = pod.metadata.annotation(annotations::QUEUE_ALLOCATION_GATE) == Some("true");
    let present = &pod.spec.scheduling_gates;
    if !asked || present.iter().any(|gate| gate.name == gates::QUEUE_ALLOCATION) {
        return;
    }
    let gate = json!({"name": gates::QUEUE_ALLOCATION});
    if present.is_empty() {
        patch.add("/spec/schedulingGates", json!([gate]));
    } else {
        patch.add("/spec/schedulingGates/-", gate);
    }
}

/// What a resource group gives its pods.
fn join(group: &ResourceGroup, spec: &PodSpec, patch: &mut Patch) {
    if !group.labels.is_empty() {
        let mut selector = spec.node_selector.clone();
        selector.extend(group.labels.clone());
        patch.add("/spec/nodeSelector", json!(selector));
    }
    if let (Some(affinity), None) = (&group.affinity, &spec.affinity) {
        patch.add("/spec/affinity", affinity.clone());
    }
    // A pod that has a toleration already does not get it twice: what comes by again stays as it is.
    let missing = group
        .tolerations
        .iter()
        .filter(|toleration| !spec.tolerations.contains(toleration));
    let missing: Vec<Value> = missing.cloned().collect();
    if !missing.is_empty() {
        let mut tolerations = spec.tolerations.clone();
        tolerations.extend(missing);
        patch.add("/spec/tolerations", tolerations);
    }
    if !group.scheduler_name.is_empty() {
        patch.add("/spec/schedulerName", group.scheduler_name.as_str());
    }
}

/// Judges the eviction budget of a new pod of ours.
pub(crate) fn validate(context: &Context<'_>, request: &Request) -> Verdict {
    if request.operation() != Operation::Create {
        return Err(messages::EXPECT_CREATE.trim_end().into());
    }
    let pod: Pod = request.object()?;
    let ours = &context.options.scheduler_names;
    if !ours.contains(&pod.spec.scheduler_name) {
        return Ok(Patch::default());
    }
    let given: Vec<(&str, &str)> = BUDGETS
        .iter()
        .filter_map(|key| Some((*key, pod.metadata.annotation(key)?)))
        .collect();
    if let Some(message) = given.iter().find_map(|(key, value)| budget_fault(key, value)) {
        let namespace = match pod.metadata.namespace.as_str() {
            "" => request.namespace.clone(),
            own => own.to_owned(),
        };
        let event = Event {
            namespace,
            name: pod.metadata.name,
            reason: ADMIT,
            message: message.clone(),
        };
        return Err(Refusal {
            message,
            event: Some(event),
        });
    }
    if given.len() > 1 {
        return Err(messages::BOTH_BUDGETS.into());
    }
    Ok(Patch::default())
}

/// What keeps a text from being a number of pods or a percentage of them.
fn budget_fault(key: &str, value: &str) -> Option<String> {
    if let Ok(pods) = value.parse::<i32>() {
        let rule = "it must be a positive integer";
        return (pods <= 0).then(|| format!("invalid value <{}> for {key}, {rule}", quote(value)));
    }
    let digits = value.replace('%', "");
    match digits.parse::<i64>() {
        Ok(percent) if (1..=99).contains(&percent) => None,
        Ok(_) => {
            let rule = "it must be a valid percentage which between 1% ~ 99%";
            Some(format!("invalid value <{}> for {key}, {rule}", quote(value)))
        }
        Err(error) => {
            let error = go_number_error("Atoi", &digits, &error);
            Some(format!("invalid value {error} for {key}"))
        }
    }
}
