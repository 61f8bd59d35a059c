//! Rules for a queue by itself. All faults are told together.

use volcano_api::meta::ResourceList;
use volcano_api::names::admission::messages;
use volcano_api::names::annotations;
use volcano_api::scheduling::{Queue, QueueSpec, QueueState};

use crate::Lookups;
use crate::field::{Errors, Path};
use crate::template::check_quantity;

/// Judges a queue by itself.
pub(super) fn check(cluster: &dyn Lookups, queue: &Queue) -> Result<(), String> {
    let at = Path::new("requestBody");
    let mut errors = Errors::default();
    check_amounts(&queue.spec, &at.child("spec"), &mut errors);
    if !matches!(
        queue.status.state,
        QueueState::Unset | QueueState::Open | QueueState::Closed
    ) {
        let state = queue.status.state.as_str();
        errors.invalid(&at.child("spec").child("state"), state, messages::QUEUE_STATE);
    }
    check_path(
        cluster,
        queue,
        &at.child("metadata").child("annotations"),
        &mut errors,
    );
    errors.aggregate().map_or(Ok(()), Err)
}

fn check_amounts(spec: &QueueSpec, at: &Path, errors: &mut Errors) {
    let (guarantee, deserved) = (&spec.guarantee.resource, at.child("deserved"));
    check_list(&spec.capability, &at.child("capability"), errors);
    check_list(&spec.deserved, &deserved, errors);
    check_list(guarantee, &at.child("guarantee").child("resource"), errors);
    for (name, set_aside) in guarantee {
        match spec.deserved.get(name) {
            None => {
                let rule = format!("deserved[{name}] must be >= guarantee[{name}]={set_aside}");
                errors.invalid(&deserved.child(name), "<nil>", &rule);
            }
            Some(share) if share < set_aside => {
                let rule = format!("deserved[{name}]={share} must be >= guarantee[{name}]={set_aside}");
                errors.invalid(&deserved.child(name), share.to_string(), &rule);
            }
            Some(_) => {}
        }
    }
    for (name, share) in &spec.deserved {
        if let Some(most) = spec.capability.get(name).filter(|most| share > *most) {
            let rule = format!("deserved[{name}]={share} must be <= capability[{name}]={most}");
            errors.invalid(&deserved.child(name), share.to_string(), &rule);
        }
    }
}

fn check_list(amounts: &ResourceList, at: &Path, errors: &mut Errors) {
    for (name, quantity) in amounts {
        check_quantity(name, *quantity, &at.child(name), errors);
    }
}

/// Judges the path and the weights of the drf plugin; the first fault only.
fn check_path(cluster: &dyn Lookups, queue: &Queue, at: &Path, errors: &mut Errors) {
    let annotation = |key: &str| queue.metadata.annotation(key).unwrap_or_default();
    let (path, weights) = (
        annotation(annotations::HIERARCHY),
        annotation(annotations::HIERARCHY_WEIGHTS),
    );
    if path.is_empty() && weights.is_empty() {
        return;
    }
    if path.split('/').count() != weights.split('/').count() {
        errors.invalid(at, path, messages::HIERARCHY_LENGTH);
        return;
    }
    if let Some(fault) = weights
        .split('/')
        .find_map(|weight| weight_fault(weight, weights))
    {
        errors.invalid(at, weights, &fault);
        return;
    }
    let above = format!("{path}/");
    for other in cluster.queues() {
        let theirs = other
            .metadata
            .annotation(annotations::HIERARCHY)
            .unwrap_or_default();
        let name = &other.metadata.name;
        if *name != queue.metadata.name && theirs.starts_with(&above) {
            let rule = format!("{path} is not allowed to be in the sub path of {theirs} of queue {name}");
            errors.invalid(at, path, &rule);
            return;
        }
    }
}

fn weight_fault(weight: &str, weights: &str) -> Option<String> {
    match weight.parse::<f64>() {
        Err(_) => {
            let quoted = crate::field::quote(weight);
            Some(format!(
                "{weight} in the {weights} is invalid number: strconv.ParseFloat: parsing {quoted}: invalid syntax"
            ))
        }
        Ok(number) if number > 0.0 => None,
        Ok(_) => Some(format!("{weight} in the {weights} must be larger than 0")),
    }
}
