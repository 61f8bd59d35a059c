//! What a pod asks for and does not get here, in words for its events. Nothing is left out silently.

use crate::lifecycle::with_roles;
use crate::probes;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};

/// One sentence for each.
pub(crate) fn of(pod: &Pod) -> Vec<String> {
    let mut found = Vec::new();
    let Some(spec) = &pod.spec else { return found };
    let flags = [
        (spec.share_process_namespace, "shareProcessNamespace"),
        (spec.host_pid, "hostPID"),
        (spec.host_ipc, "hostIPC"),
    ];
    for (flag, name) in flags {
        if flag == Some(true) {
            found.push(format!(
                "{name} is not supported by this node: each container has processes of its own"
            ));
        }
    }
    if spec.dns_config.is_some() {
        found.push("dnsConfig is not supported by this node: names are in /etc/hosts".to_owned());
    }
    for (container, _) in with_roles(pod) {
        of_container(container, &mut found);
    }
    found
}

fn of_container(container: &Container, found: &mut Vec<String>) {
    let name = &container.name;
    for probe in probes::unsupported(container) {
        found.push(format!(
            "{probe} of container {name} is not supported by this node, which has exec, tcpSocket and httpGet without \
             TLS; it counts as passed"
        ));
    }
    let hooks = container.lifecycle.as_ref().map(|lifecycle| {
        [
            ("postStart", &lifecycle.post_start),
            ("preStop", &lifecycle.pre_stop),
        ]
    });
    for (kind, hook) in hooks.into_iter().flatten() {
        if hook.as_ref().is_some_and(|hook| !is_possible(hook)) {
            found.push(format!(
                "{kind} of container {name} is not supported by this node, which has exec and sleep; it is left out"
            ));
        }
    }
    let stop_signal = container
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.stop_signal.as_ref());
    if stop_signal.is_some() {
        found.push(format!(
            "stopSignal of container {name} is not supported by this node: it is SIGTERM"
        ));
    }
    if container.volume_devices.iter().flatten().next().is_some() {
        found.push(format!(
            "volumeDevices of container {name} are not supported by this node"
        ));
    }
}

fn is_possible(hook: &LifecycleHandler) -> bool {
    hook.exec.is_some() || hook.sleep.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn each_thing_that_is_left_out_is_named() {
        let pod: Pod = from_value(json!({"spec": {"hostPID": true, "containers": [{
            "name": "c",
            "livenessProbe": {"grpc": {"port": 1}},
            "lifecycle": {"preStop": {"httpGet": {"port": 1}}, "postStart": {"exec": {"command": ["a"]}}},
        }]}}))
        .unwrap();
        let found = of(&pod);
        assert_eq!(found.len(), 3, "{found:?}");
        for (text, start) in found.iter().zip([
            "hostPID",
            "livenessProbe of container c",
            "preStop of container c",
        ]) {
            assert!(text.starts_with(start), "{text}");
        }
        let plain: Pod = from_value(json!({"spec": {"containers": [{"name": "c"}]}})).unwrap();
        assert!(of(&plain).is_empty());
    }
}
