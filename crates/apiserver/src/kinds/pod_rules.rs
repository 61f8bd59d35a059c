//! Pods: what is refused. The rules that users run into; those of volumes, probes and contexts are not here.

use super::meta::is_dns_label;
use crate::fault::{FieldError, Wrong};
use serde_json::Value;
use std::collections::BTreeSet;
use volcano_api::quantity::Quantity;

/// What is wrong with a pod.
pub fn check(pod: &Value) -> Vec<FieldError> {
    let spec = &pod["spec"];
    let mut errors = Vec::new();
    let containers = spec["containers"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if containers.is_empty() {
        errors.push(FieldError::required("spec.containers", ""));
    }
    let volumes = volumes(spec, &mut errors);
    let mut names = BTreeSet::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            container_rules(
                container,
                &format!("spec.{list}[{at}]"),
                &volumes,
                &mut names,
                &mut errors,
            );
        }
    }
    for (field, allowed) in [
        ("restartPolicy", ["Always", "OnFailure", "Never"].as_slice()),
        (
            "dnsPolicy",
            ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"].as_slice(),
        ),
    ] {
        if spec[field]
            .as_str()
            .is_some_and(|value| !allowed.contains(&value))
        {
            let allowed: Vec<String> = allowed.iter().map(|one| (*one).to_owned()).collect();
            errors.push(FieldError::not_supported(
                format!("spec.{field}"),
                spec[field].clone(),
                &allowed,
            ));
        }
    }
    let grace = spec["terminationGracePeriodSeconds"].as_i64();
    if grace.is_some_and(|seconds| seconds < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            "spec.terminationGracePeriodSeconds",
            grace,
            detail,
        ));
    }
    errors
}

fn volumes(spec: &Value, errors: &mut Vec<FieldError>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let name = volume["name"].as_str().unwrap_or_default();
        let field = format!("spec.volumes[{at}].name");
        if name.is_empty() {
            errors.push(FieldError::required(field, ""));
        } else if !names.insert(name.to_owned()) {
            errors.push(FieldError::new(Wrong::Duplicate, field, name.into(), ""));
        }
    }
    names
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
     end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

fn container_rules(
    container: &Value,
    path: &str,
    volumes: &BTreeSet<String>,
    names: &mut BTreeSet<String>,
    errors: &mut Vec<FieldError>,
) {
    let name = container["name"].as_str().unwrap_or_default();
    let field = format!("{path}.name");
    if name.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !is_dns_label(name) {
        errors.push(FieldError::invalid(field, name, LABEL));
    } else if !names.insert(name.to_owned()) {
        errors.push(FieldError::new(Wrong::Duplicate, field, name.into(), ""));
    }
    if container["image"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    for (at, mount) in container["volumeMounts"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let name = mount["name"].as_str().unwrap_or_default();
        if !volumes.contains(name) {
            let field = format!("{path}.volumeMounts[{at}].name");
            errors.push(FieldError::new(Wrong::NotFound, field, name.into(), ""));
        }
    }
    amounts(&container["resources"], &format!("{path}.resources"), errors);
    for (at, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let number = port["containerPort"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let field = format!("{path}.ports[{at}].containerPort");
            match number {
                0 => errors.push(FieldError::required(field, "")),
                _ => errors.push(FieldError::invalid(
                    field,
                    number,
                    "must be between 1 and 65535, inclusive",
                )),
            }
        }
    }
}

fn amounts(resources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let amount = |value: &Value| match value {
        Value::String(text) => text.parse::<Quantity>().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    };
    for list in ["limits", "requests"] {
        for (name, value) in resources[list].as_object().into_iter().flatten() {
            if amount(value).is_some_and(|amount| amount < Quantity::default()) {
                let detail = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(
                    format!("{path}.{list}[{name}]"),
                    value.clone(),
                    detail,
                ));
            }
        }
    }
    for (name, value) in resources["requests"].as_object().into_iter().flatten() {
        let (request, limit) = (amount(value), amount(&resources["limits"][name]));
        if let (Some(request), Some(limit)) = (request, limit)
            && request > limit
        {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(FieldError::invalid(
                format!("{path}.requests"),
                value.clone(),
                detail,
            ));
        }
    }
}

/// What of a pod's spec may change; the rest is fixed once it is created.
pub fn check_change(pod: &Value, old: &Value) -> Vec<FieldError> {
    let (mut new, mut was) = (pod["spec"].clone(), old["spec"].clone());
    for spec in [&mut new, &mut was] {
        for list in ["containers", "initContainers"] {
            for container in spec
                .get_mut(list)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                container["image"] = Value::Null;
            }
        }
        for field in [
            "activeDeadlineSeconds",
            "terminationGracePeriodSeconds",
            "tolerations",
            "schedulingGates",
        ] {
            if let Some(fields) = spec.as_object_mut() {
                fields.remove(field);
            }
        }
    }
    // While it is held back, where it may run can be narrowed.
    if old["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|gates| !gates.is_empty())
    {
        for spec in [&mut new, &mut was] {
            if let Some(fields) = spec.as_object_mut() {
                fields.remove("nodeSelector");
                fields.remove("affinity");
            }
        }
    }
    let mut errors = Vec::new();
    let count = |pod: &Value| pod["spec"]["schedulingGates"].as_array().map_or(0, Vec::len);
    if count(pod) > count(old) {
        let detail = "only deletion is allowed, but found new scheduling gate";
        errors.push(FieldError::forbidden("spec.schedulingGates", detail));
    }
    if new != was {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
             `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
             tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden("spec", detail));
    }
    errors
}
