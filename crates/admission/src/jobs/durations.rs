//! Durations in the spec of a Job. They are texts here, so that an object with a bad one can still be read; Volcano's
//! programs cannot read such an object at all, and so it must not be stored.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use volcano_api::batch::{JobSpec, LifecyclePolicy};
use volcano_api::time::GoDuration;

use crate::review::{Operation, Refusal, Request};

/// Refuses an object for the first of its faults. What is stored with a fault may be changed in other ways: somebody has
/// to be able to remove its finalizers.
pub(crate) fn check<T: DeserializeOwned>(
    request: &Request,
    object: &T,
    faults: fn(&T) -> Vec<String>,
) -> Result<(), Refusal> {
    let found = faults(object);
    if found.is_empty() {
        return Ok(());
    }
    let stored: BTreeSet<String> = match request.operation() {
        Operation::Update => faults(&request.old_object()?).into_iter().collect(),
        _ => BTreeSet::new(),
    };
    match found.into_iter().find(|fault| !stored.contains(fault)) {
        Some(fault) => Err(fault.into()),
        None => Ok(()),
    }
}

/// What Go says of the durations of a spec that are none, each with its place.
pub(crate) fn faults(spec: &JobSpec, at: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let estimate = spec.running_estimate.as_deref();
    faults.extend(fault(estimate, || format!("{at}.runningEstimate")));
    add_timeouts(&spec.policies, || at.to_owned(), &mut faults);
    for (index, task) in spec.tasks.iter().enumerate() {
        add_timeouts(&task.policies, || format!("{at}.tasks[{index}]"), &mut faults);
    }
    faults
}

fn add_timeouts(policies: &[LifecyclePolicy], of: impl Fn() -> String, faults: &mut Vec<String>) {
    for (index, policy) in policies.iter().enumerate() {
        let place = || format!("{}.policies[{index}].timeout", of());
        faults.extend(fault(policy.timeout.as_deref(), place));
    }
}

fn fault(text: Option<&str>, place: impl Fn() -> String) -> Option<String> {
    let error = GoDuration::parse(text?).err()?;
    Some(format!("{}: time: {error}", place()))
}
