//! Containers: names, images, ports, variables and mounts.

use std::collections::BTreeSet;

use super::types::{Container, PodSpec, Port};
use super::volumes::Volumes;
use super::{check_one_of, mounts, resources};
use crate::field::{Errors, Path};
use crate::syntax;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const TERMINATION_MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const DEFAULT_PROTOCOL: &str = "TCP";

/// Checks the containers of a pod.
pub(super) fn check(spec: &PodSpec, volumes: &Volumes<'_>, at: &Path, errors: &mut Errors) {
    let place = at.child("containers");
    if spec.containers.is_empty() {
        errors.required(&place, "");
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (index, container) in spec.containers.iter().enumerate() {
        let own = place.index(index);
        check_container(container, volumes, &own, errors);
        check_unique(&container.name, &mut names, &own, errors);
        check_restart_policy(container, &own, errors);
    }
    for (index, container) in spec.containers.iter().enumerate() {
        check_host_ports(container, &mut host_ports, &place.index(index), errors);
    }
    let init_place = at.child("initContainers");
    for (index, container) in spec.init_containers.iter().enumerate() {
        let own = init_place.index(index);
        check_container(container, volumes, &own, errors);
        check_restart_policy(container, &own, errors);
        check_unique(&container.name, &mut names, &own, errors);
        // Init containers run one by one, so that each has the ports of the node for itself.
        check_host_ports(container, &mut BTreeSet::new(), &own, errors);
        if container.restart_policy.as_deref() != Some("Always") {
            check_ends(container, &own, errors);
        }
    }
    if spec.host_network {
        for (index, container) in spec.containers.iter().enumerate() {
            check_ports_match(&container.ports, &place.index(index).child("ports"), errors);
        }
    }
}

fn check_container(container: &Container, volumes: &Volumes<'_>, at: &Path, errors: &mut Errors) {
    let name = at.child("name");
    if container.name.is_empty() {
        errors.required(&name, "");
    } else {
        errors.invalid_each(&name, &container.name, &syntax::dns_label(&container.name));
    }
    if container.image.is_empty() {
        errors.required(&at.child("image"), "");
    }
    let policy = &container.termination_message_policy;
    check_one_of(
        policy,
        &at.child("terminationMessagePolicy"),
        &TERMINATION_MESSAGE_POLICIES,
        errors,
    );
    check_ports(&container.ports, &at.child("ports"), errors);
    for (index, variable) in container.env.iter().enumerate() {
        let place = at.child("env").index(index).child("name");
        if variable.name.is_empty() {
            errors.required(&place, "");
        } else {
            errors.invalid_each(&place, &variable.name, &syntax::env_name(&variable.name));
        }
    }
    mounts::check(container, volumes, at, errors);
    check_one_of(
        &container.image_pull_policy,
        &at.child("imagePullPolicy"),
        &PULL_POLICIES,
        errors,
    );
    resources::check(&container.resources, &at.child("resources"), errors);
}

fn check_unique<'a>(name: &'a str, names: &mut BTreeSet<&'a str>, at: &Path, errors: &mut Errors) {
    if !name.is_empty() && !names.insert(name) {
        errors.duplicate(&at.child("name"), name);
    }
}

/// A container may have a policy of its own; an empty one is none of those that there are.
fn check_restart_policy(container: &Container, at: &Path, errors: &mut Errors) {
    if let Some(policy) = &container.restart_policy
        && !RESTART_POLICIES.contains(&policy.as_str())
    {
        errors.not_supported(&at.child("restartPolicy"), policy, &RESTART_POLICIES);
    }
}

/// What only makes sense for a container that goes on running.
fn check_ends(container: &Container, at: &Path, errors: &mut Errors) {
    let handlers = [
        ("lifecycle", &container.lifecycle),
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
        ("startupProbe", &container.startup_probe),
    ];
    for (name, handler) in handlers {
        if handler.is_some() {
            let rule = "may not be set for init containers without restartPolicy=Always";
            errors.forbidden(&at.child(name), rule);
        }
    }
}

fn check_ports(ports: &[Port], at: &Path, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let place = at.index(index);
        let faults = if port.name.is_empty() {
            Vec::new()
        } else {
            syntax::port_name(&port.name)
        };
        errors.invalid_each(&place.child("name"), &port.name, &faults);
        if faults.is_empty() {
            check_unique(&port.name, &mut names, &place, errors);
        }
        if port.container_port == 0 {
            errors.required(&place.child("containerPort"), "");
        }
        for (name, number) in [
            ("containerPort", port.container_port),
            ("hostPort", port.host_port),
        ] {
            if number != 0 && !(1..=65535).contains(&number) {
                errors.invalid(
                    &place.child(name),
                    number,
                    "must be between 1 and 65535, inclusive",
                );
            }
        }
        check_one_of(&port.protocol, &place.child("protocol"), &PROTOCOLS, errors);
    }
}

fn check_host_ports(container: &Container, taken: &mut BTreeSet<String>, at: &Path, errors: &mut Errors) {
    for (index, port) in container
        .ports
        .iter()
        .enumerate()
        .filter(|(_, port)| port.host_port != 0)
    {
        let protocol = if port.protocol.is_empty() {
            DEFAULT_PROTOCOL
        } else {
            &port.protocol
        };
        let key = format!("{protocol}/{}/{}", port.host_ip, port.host_port);
        if taken.contains(&key) {
            errors.duplicate(&at.child("ports").index(index).child("hostPort"), &key);
        } else {
            taken.insert(key);
        }
    }
}

/// In the network of the node a port has one number.
fn check_ports_match(ports: &[Port], at: &Path, errors: &mut Errors) {
    for (index, port) in ports.iter().enumerate() {
        if port.host_port != 0 && port.host_port != port.container_port {
            let rule = "must match `containerPort` when `hostNetwork` is true";
            errors.invalid(&at.index(index).child("hostPort"), port.host_port, rule);
        }
    }
}
