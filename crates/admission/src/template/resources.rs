//! Amounts: which resources there are, and what may be asked of them.

use volcano_api::core::ResourceRequirements;
use volcano_api::names::admission::messages;
use volcano_api::names::resources::{
    CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, LIMITS_PREFIX, MEMORY, PODS, REQUESTS_PREFIX,
};
use volcano_api::quantity::{Format, Quantity};

use crate::field::{Errors, Path};
use crate::syntax;

/// Resources without a prefix that a container may ask for.
const OF_CONTAINERS: [&str; 3] = [CPU, MEMORY, EPHEMERAL_STORAGE];
/// Resources that are counted.
const COUNTED: [&str; 9] = [
    PODS,
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const STORAGE: [&str; 2] = ["storage", "requests.storage"];
const ONE: Quantity = Quantity::from_value(1, Format::DecimalSi);
/// Part of the prefixes of resources that are Kubernetes' own.
const NATIVE: &str = "kubernetes.io/";

/// Checks what a container asks for and is limited to.
pub(super) fn check(resources: &ResourceRequirements, at: &Path, errors: &mut Errors) {
    let (limits, requests) = (at.child("limits"), at.child("requests"));
    for (name, quantity) in &resources.limits {
        check_name(name, &limits.key(name), errors);
        check_quantity(name, *quantity, &limits.key(name), errors);
        check_pages(name, *quantity, &limits.key(name), errors);
    }
    for (name, quantity) in &resources.requests {
        check_name(name, &requests.key(name), errors);
        check_quantity(name, *quantity, &requests.key(name), errors);
        check_request(name, *quantity, resources, at, errors);
        check_pages(name, *quantity, &requests.key(name), errors);
    }
    let asks = |wanted: fn(&str) -> bool| {
        let mut names = resources.limits.keys().chain(resources.requests.keys());
        names.any(|name| wanted(name))
    };
    if asks(|name| name.starts_with(HUGEPAGES_PREFIX)) && !asks(|name| [CPU, MEMORY].contains(&name)) {
        errors.forbidden(at, "HugePages require cpu or memory");
    }
}

/// Checks a request against its limit, which it must equal where nothing is given out twice.
fn check_request(
    name: &str,
    quantity: Quantity,
    resources: &ResourceRequirements,
    at: &Path,
    errors: &mut Errors,
) {
    let (limits, requests) = (at.child("limits"), at.child("requests"));
    match resources.limits.get(name) {
        Some(limit) if *limit == quantity => {}
        Some(limit) if !may_overcommit(name) => {
            let rule = format!("must be equal to {name} limit of {limit}");
            errors.invalid(&requests, quantity.to_string(), &rule);
        }
        Some(limit) if quantity > *limit => {
            let rule = format!("must be less than or equal to {name} limit of {limit}");
            errors.invalid(&requests, quantity.to_string(), &rule);
        }
        None if !may_overcommit(name) => {
            errors.required(&limits, "Limit must be set for non overcommitable resources");
        }
        _ => {}
    }
}

/// Huge pages come whole.
fn check_pages(name: &str, quantity: Quantity, at: &Path, errors: &mut Errors) {
    let Some(size) = name.strip_prefix(HUGEPAGES_PREFIX) else {
        return;
    };
    let whole =
        |size: &Quantity| *size == Quantity::from_value(size.value(), Format::DecimalSi) && size.value() > 0;
    let size = Quantity::parse(size).ok().filter(whole);
    if size.is_none_or(|size| quantity.value() % size.value() != 0) {
        let rule = format!("{quantity} is not positive integer multiple of {name}");
        errors.invalid(at, quantity.to_string(), &rule);
    }
}

/// Checks an amount of a resource: none is negative, and some are whole.
pub(crate) fn check_quantity(name: &str, quantity: Quantity, at: &Path, errors: &mut Errors) {
    if quantity.is_negative() {
        errors.invalid(at, quantity.to_string(), messages::NOT_NEGATIVE);
    }
    // Exactly: thousandths of very large amounts have no place in an integer.
    if is_whole(name) && quantity.nanos() % ONE.nanos() != 0 {
        errors.invalid(at, quantity.to_string(), messages::INTEGER);
    }
}

fn check_name(name: &str, at: &Path, errors: &mut Errors) {
    let faults = syntax::qualified_name(name);
    errors.invalid_each(at, name, &faults);
    if name.contains('/') {
        if !is_native(name) && !is_extended(name) {
            errors.invalid(at, name, "doesn't follow extended resource name standard");
        }
        return;
    }
    if faults.is_empty() && !is_standard(name) {
        errors.invalid(at, name, "must be a standard resource type or fully qualified");
    }
    if !OF_CONTAINERS.contains(&name) && !name.starts_with(HUGEPAGES_PREFIX) {
        errors.invalid(at, name, "must be a standard resource for containers");
    }
}

/// Whether Kubernetes knows a resource without a prefix, for containers or for quotas.
fn is_standard(name: &str) -> bool {
    let quota = name
        .strip_prefix(REQUESTS_PREFIX)
        .or_else(|| name.strip_prefix(LIMITS_PREFIX));
    OF_CONTAINERS.contains(&quota.unwrap_or(name))
        || COUNTED.contains(&name)
        || STORAGE.contains(&name)
        || name.starts_with(HUGEPAGES_PREFIX)
        || name
            .strip_prefix(REQUESTS_PREFIX)
            .is_some_and(|name| name.starts_with(HUGEPAGES_PREFIX))
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(NATIVE)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(REQUESTS_PREFIX)
        && syntax::qualified_name(&format!("{REQUESTS_PREFIX}{name}")).is_empty()
}

fn is_whole(name: &str) -> bool {
    COUNTED.contains(&name) || is_extended(name)
}

fn may_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGEPAGES_PREFIX)
}
