//! How much a pod needs: one figure per resource from its containers, init containers, sidecars and overhead.
//!
//! ```text
//! running = Σ containers + Σ sidecars
//! start   = max over init containers, in order: its own request + the sidecars started before it
//! total   = max(running, start), replaced by what the pod asks for as a whole, + overhead
//! ```

use super::{Container, ContainerStatus, Pod, ResourceList};
use crate::quantity::{Format, Quantity};

/// CPU that is assumed for a container that asks for none, in thousandths, when nodes are scored.
pub const NONZERO_MILLI_CPU: i64 = 100;
/// Memory that is assumed for a container that asks for none, in bytes, when nodes are scored.
pub const NONZERO_MEMORY_BYTES: i64 = 200 * 1024 * 1024;

/// The word for a resize that the node can never grant.
pub const RESIZE_INFEASIBLE: &str = "Infeasible";

const CPU: &str = "cpu";
const MEMORY: &str = "memory";

/// What a pod needs, by resource; without the pod itself (`pods`).
pub fn pod_requests(pod: &Pod) -> ResourceList {
    requests_with_floor(pod, &[])
}

/// What a pod counts for when nodes are scored: thousandths of CPU and bytes of memory, with an assumed amount
/// for each container that does not say, so that pods without requests do not all land on one node.
pub fn pod_nonzero(pod: &Pod) -> (i64, i64) {
    let floor = [
        (CPU, Quantity::from_milli(NONZERO_MILLI_CPU, Format::DecimalSi)),
        (
            MEMORY,
            Quantity::from_value(NONZERO_MEMORY_BYTES, Format::DecimalSi),
        ),
    ];
    let total = if pod_level(pod).next().is_some() {
        // With a request for the pod as a whole, only what nobody asked for is assumed.
        let asked = pod_requests(pod);
        let missing: Vec<_> = floor
            .into_iter()
            .filter(|(name, _)| !asked.contains_key(*name))
            .collect();
        requests_with_floor(pod, &missing)
    } else {
        requests_with_floor(pod, &floor)
    };
    let get = |name| total.get(name).copied().unwrap_or_default();
    (get(CPU).milli_value(), get(MEMORY).value())
}

/// Whether the node said that it can never grant the resize that the pod's spec asks for.
pub fn is_resize_infeasible(pod: &Pod) -> bool {
    match pod
        .status
        .conditions
        .iter()
        .find(|condition| condition.kind == "PodResizePending")
    {
        Some(condition) => condition.reason == RESIZE_INFEASIBLE,
        None => pod.status.resize == RESIZE_INFEASIBLE,
    }
}

fn requests_with_floor(pod: &Pod, floor: &[(&str, Quantity)]) -> ResourceList {
    let infeasible = is_resize_infeasible(pod);
    let mut total = ResourceList::new();
    for container in &pod.spec.containers {
        let status = find_status(&pod.status.container_statuses, container);
        add(
            &mut total,
            &container_requests(container, status, infeasible, floor),
        );
    }
    let mut sidecars = ResourceList::new();
    let mut start = ResourceList::new();
    for container in &pod.spec.init_containers {
        if container.is_sidecar() {
            let status = find_status(&pod.status.init_container_statuses, container);
            let own = container_requests(container, status, infeasible, floor);
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut start, &sidecars);
        } else {
            let mut own = container_requests(container, None, infeasible, floor);
            add(&mut own, &sidecars);
            raise(&mut start, &own);
        }
    }
    raise(&mut total, &start);
    for (name, amount) in pod_level(pod) {
        total.insert(name.clone(), *amount);
    }
    add(&mut total, &pod.spec.overhead);
    total
}

/// What one container needs. While a resize in place is under way, that is the most of what is asked for, what
/// the container has and what the node has set aside; a resize that cannot be granted does not count.
fn container_requests(
    container: &Container,
    status: Option<&ContainerStatus>,
    infeasible: bool,
    floor: &[(&str, Quantity)],
) -> ResourceList {
    let spec = &container.resources.requests;
    let mut requests = match status.and_then(|status| Some((status.resources.as_ref()?, status))) {
        None => spec.clone(),
        Some((actual, status)) => {
            let mut requests = if infeasible {
                ResourceList::new()
            } else {
                spec.clone()
            };
            raise(&mut requests, &actual.requests);
            raise(&mut requests, &status.allocated_resources);
            requests
        }
    };
    for (name, amount) in floor {
        if !requests.contains_key(*name) {
            requests.insert((*name).to_owned(), *amount);
        }
    }
    requests
}

/// Requests of the pod as a whole, for the resources where that is possible.
fn pod_level(pod: &Pod) -> impl Iterator<Item = (&String, &Quantity)> {
    let requests = pod
        .spec
        .resources
        .iter()
        .flat_map(|resources| &resources.requests);
    requests.filter(|(name, _)| *name == CPU || *name == MEMORY || name.starts_with("hugepages-"))
}

fn find_status<'a>(statuses: &'a [ContainerStatus], container: &Container) -> Option<&'a ContainerStatus> {
    statuses.iter().find(|status| status.name == container.name)
}

/// Adds `amounts` to `total`.
fn add(total: &mut ResourceList, amounts: &ResourceList) {
    merge(total, amounts, Quantity::saturating_add);
}

/// Raises `total` to `amounts` wherever it is lower.
fn raise(total: &mut ResourceList, amounts: &ResourceList) {
    merge(
        total,
        amounts,
        |have, other| if other > have { other } else { have },
    );
}

fn merge(total: &mut ResourceList, amounts: &ResourceList, combine: impl Fn(Quantity, Quantity) -> Quantity) {
    for (name, amount) in amounts {
        match total.get_mut(name) {
            Some(have) => *have = combine(*have, *amount),
            None => {
                total.insert(name.clone(), *amount);
            }
        }
    }
}
