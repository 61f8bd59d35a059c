//! Rules for the pods of a task: those of Kubernetes for pod templates that users trip over.
//!
//! The API server judges every pod again when the controller makes it. What is told here is told to the user who
//! submits the Job, at once, and not in an event about a pod that could not be made. `docs/admission.md` lists what is
//! looked at and what is not.

mod containers;
mod mounts;
mod resources;
mod types;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use volcano_api::batch::{NumaPolicy, TaskSpec};
use volcano_api::core::Toleration;
use volcano_api::names::resources::CPU;
use volcano_api::quantity::{Format, Quantity};

use crate::field::{Errors, Path, go_number_error};
use crate::review::typed;
use crate::syntax;
use types::{PodSpec, Template};

pub(crate) use resources::check_quantity;

/// The most bytes of all annotations of a pod together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// What is wrong with the template of a task, or with its processors where they are to be aligned.
pub(crate) fn fault(index: usize, task: &TaskSpec) -> Option<String> {
    let at = format!("spec.task[{index}]");
    let template: Template = match typed(types::without_nulls(&task.template.0), "template") {
        Ok(template) => template,
        Err(error) => return Some(format!("{at}.{error}. ")),
    };
    let mut errors = Errors::default();
    check_name(&task.name, &mut errors);
    check_template(&template, &Path::new("template"), &mut errors);
    if errors.count() > 0 {
        let errors: String = errors.list().iter().map(|error| format!("{error}. ")).collect();
        return Some(format!("{at}.{errors}"));
    }
    numa_fault(task, &template.spec, &at)
}

/// Pods are named after their task.
fn check_name(name: &str, errors: &mut Errors) {
    let at = Path::new("metadata").child("name");
    if name.is_empty() {
        errors.required(&at, "name or generateName is required");
    } else {
        errors.invalid_each(&at, name, &syntax::subdomain(name));
    }
}

fn check_template(template: &Template, at: &Path, errors: &mut Errors) {
    check_labels(&template.metadata.labels, &at.child("labels"), errors);
    let annotations = &template.metadata.annotations;
    let place = at.child("annotations");
    for key in annotations.keys() {
        errors.invalid_each(&place, key, &syntax::qualified_name(&key.to_lowercase()));
    }
    let bytes: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > MAX_ANNOTATIONS_BYTES {
        errors.too_long(&place, MAX_ANNOTATIONS_BYTES);
    }
    check_spec(&template.spec, &at.child("spec"), errors);
}

fn check_spec(spec: &PodSpec, at: &Path, errors: &mut Errors) {
    let volumes = volumes::check(&spec.volumes, &at.child("volumes"), errors);
    containers::check(spec, &volumes, at, errors);
    check_one_of(
        &spec.restart_policy,
        &at.child("restartPolicy"),
        &["Always", "OnFailure", "Never"],
        errors,
    );
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check_one_of(&spec.dns_policy, &at.child("dnsPolicy"), &policies, errors);
    check_labels(&spec.node_selector, &at.child("nodeSelector"), errors);
    check_gates(spec, &at.child("schedulingGates"), errors);
    check_form(
        &spec.service_account_name,
        &at.child("serviceAccountName"),
        syntax::subdomain,
        errors,
    );
    check_form(&spec.node_name, &at.child("nodeName"), syntax::subdomain, errors);
    if let Some(seconds) = spec.active_deadline_seconds
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let place = at.child("activeDeadlineSeconds");
        errors.invalid(&place, seconds, "must be between 1 and 2147483647, inclusive");
    }
    check_form(&spec.hostname, &at.child("hostname"), syntax::dns_label, errors);
    check_form(&spec.subdomain, &at.child("subdomain"), syntax::dns_label, errors);
    for (index, toleration) in spec.tolerations.iter().enumerate() {
        check_toleration(toleration, &at.child("tolerations").index(index), errors);
    }
    check_form(
        &spec.priority_class_name,
        &at.child("priorityClassName"),
        syntax::subdomain,
        errors,
    );
    if !spec.ephemeral_containers.is_empty() {
        let place = at.child("ephemeralContainers");
        errors.forbidden(&place, "ephemeral containers not allowed in pod template");
    }
}

fn check_labels(labels: &BTreeMap<String, String>, at: &Path, errors: &mut Errors) {
    for (key, value) in labels {
        errors.invalid_each(at, key, &syntax::qualified_name(key));
        errors.invalid_each(at, value, &syntax::label_value(value));
    }
}

/// Checks the form of a text that may be left out.
fn check_form(text: &str, at: &Path, form: fn(&str) -> Vec<String>, errors: &mut Errors) {
    if !text.is_empty() {
        errors.invalid_each(at, text, &form(text));
    }
}

/// Checks a choice that may be left open.
fn check_one_of(text: &str, at: &Path, choices: &[&str], errors: &mut Errors) {
    if !text.is_empty() && !choices.contains(&text) {
        errors.not_supported(at, text, choices);
    }
}

fn check_gates(spec: &PodSpec, at: &Path, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (index, gate) in spec.scheduling_gates.iter().enumerate() {
        let place = at.index(index);
        errors.invalid_each(&place, &gate.name, &syntax::qualified_name(&gate.name));
        if !names.insert(&gate.name) {
            errors.duplicate(&place, &gate.name);
        }
    }
}

fn check_toleration(toleration: &Toleration, at: &Path, errors: &mut Errors) {
    let Toleration {
        key,
        operator,
        value,
        effect,
        toleration_seconds,
    } = toleration;
    check_form(key, &at.child("key"), syntax::qualified_name, errors);
    let place = at.child("operator");
    if key.is_empty() && operator != "Exists" {
        let rule =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.invalid(&place, operator.as_str(), rule);
    }
    if toleration_seconds.is_some() && effect != "NoExecute" {
        let rule = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&at.child("effect"), effect.as_str(), rule);
    }
    match operator.as_str() {
        "" | "Equal" => {
            let faults = syntax::label_value(value);
            if !faults.is_empty() {
                errors.invalid(&place, value.as_str(), &faults.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.invalid(
                &place,
                value.as_str(),
                "value must be empty when `operator` is 'Exists'",
            );
        }
        "Exists" => {}
        "Lt" | "Gt" => check_number(value, &at.child("value"), errors),
        other => errors.not_supported(&place, other, &["Equal", "Exists"]),
    }
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    check_one_of(effect, &at.child("effect"), &effects, errors);
}

/// Checks a number that taints are compared with: in the one form that it has.
fn check_number(text: &str, at: &Path, errors: &mut Errors) {
    let number = text.parse::<i64>();
    if number.as_ref().map(i64::to_string).as_deref() != Ok(text) {
        let rule = if text.is_empty() {
            "must be non-empty"
        } else {
            "must be a valid decimal integer in canonical form"
        };
        errors.invalid(at, text, rule);
    }
    if let Err(error) = number {
        errors.invalid(at, text, &go_number_error("ParseInt", text, &error));
    }
}

/// Pods that are aligned to NUMA nodes need whole processors in each container. The ordinary containers count first,
/// the init containers after them.
fn numa_fault(task: &TaskSpec, spec: &PodSpec, at: &str) -> Option<String> {
    if matches!(task.topology_policy, NumaPolicy::Unset | NumaPolicy::None) {
        return None;
    }
    let mut containers = spec.containers.iter().chain(&spec.init_containers);
    let odd = containers.position(|container| {
        let resources = &container.resources;
        let asked = if resources.requests.is_empty() {
            &resources.limits
        } else {
            &resources.requests
        };
        let cpu = asked.get(CPU).copied().unwrap_or_default();
        cpu.is_zero() || cpu != Quantity::from_value(cpu.value(), Format::DecimalSi)
    })?;
    Some(format!(
        "the cpu request isn't an integer in {at} container[{odd}]."
    ))
}
