//! What a pod asks for and does not get here, in words for its events. Nothing is left out silently but what docs/node.md
//! names for all pods.

use crate::lifecycle::{Role, with_roles};
use crate::probes;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod, PodSpec};

/// One sentence for each.
pub(crate) fn of(pod: &Pod) -> Vec<String> {
    let mut found = Vec::new();
    let Some(spec) = &pod.spec else { return found };
    of_spec(spec, &mut found);
    for (container, role) in with_roles(pod) {
        of_container(container, &mut found);
        of_restarts(container, role, &mut found);
        if spec.host_network != Some(true) {
            of_ports(container, &mut found);
        }
    }
    found
}

fn of_spec(spec: &PodSpec, found: &mut Vec<String>) {
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
    let policy = spec.dns_policy.as_deref().unwrap_or_default();
    if policy == "None" || (policy == "Default" && spec.host_network != Some(true)) {
        found.push(format!(
            "dnsPolicy {policy} is not supported by this node: names are in /etc/hosts"
        ));
    }
    let security = spec.security_context.as_ref();
    let groups = security.and_then(|context| context.supplemental_groups.as_ref());
    let sysctls = security.and_then(|context| context.sysctls.as_ref());
    let is_foreign = spec.os.as_ref().is_some_and(|os| os.name != "linux");
    let others = [
        (
            groups.is_some_and(|groups| !groups.is_empty()),
            "supplementalGroups is not supported by this node: processes have no further groups",
        ),
        (
            sysctls.is_some_and(|sysctls| !sysctls.is_empty()),
            "sysctls is not supported by this node: settings of the kernel are as they are",
        ),
        (
            spec.host_users == Some(false),
            "hostUsers is not supported by this node: users are those of the host",
        ),
        (
            spec.hostname_override.is_some(),
            "hostnameOverride is not supported by this node: hostname and subdomain are",
        ),
        (
            spec.runtime_class_name.is_some(),
            "runtimeClassName is not supported by this node: pods are its own processes",
        ),
        (
            spec.resource_claims.iter().flatten().next().is_some(),
            "resourceClaims is not supported by this node: every pod has the devices that there are",
        ),
        (is_foreign, "os is not supported by this node, which is Linux"),
    ];
    let others = others.into_iter().filter(|(asked, _)| *asked);
    found.extend(others.map(|(_, text)| text.to_owned()));
}

fn of_container(container: &Container, found: &mut Vec<String>) {
    let name = &container.name;
    for probe in probes::unsupported(container) {
        found.push(format!(
            "{probe} of container {name} is not supported by this node, which has exec, tcpSocket and httpGet without \
             TLS; it counts as passed"
        ));
    }
    let lifecycle = container.lifecycle.as_ref();
    let hooks = lifecycle.map(|lifecycle| {
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
    let probes = [&container.startup_probe, &container.liveness_probe];
    let mut probes = probes.into_iter().flatten();
    let security = container.security_context.as_ref();
    let mounts = || container.volume_mounts.iter().flatten();
    let others = [
        (
            lifecycle.is_some_and(|lifecycle| lifecycle.stop_signal.is_some()),
            "stopSignal",
            "it is SIGTERM",
        ),
        (
            probes.any(|probe| probe.termination_grace_period_seconds.is_some()),
            "terminationGracePeriodSeconds of a probe",
            "that of the pod counts",
        ),
        (
            container.volume_devices.iter().flatten().next().is_some(),
            "volumeDevices",
            "the devices are not there",
        ),
        (
            mounts().any(|mount| {
                let how = mount.mount_propagation.as_deref();
                how.is_some_and(|how| how != "None")
            }),
            "mountPropagation",
            "mounts made later are not seen",
        ),
        (
            mounts().any(|mount| mount.recursive_read_only.as_deref() == Some("Enabled")),
            "recursiveReadOnly",
            "mounts within the volume are as they are",
        ),
        (
            security.and_then(|context| context.read_only_root_filesystem) == Some(true),
            "readOnlyRootFilesystem",
            "what is written stays with the container, as far as it does for all",
        ),
        (container.tty == Some(true), "tty", "there is no terminal"),
        (
            container.stdin == Some(true),
            "stdin",
            "standard input is /dev/null",
        ),
    ];
    for (_, field, instead) in others.into_iter().filter(|(asked, _, _)| *asked) {
        found.push(format!(
            "{field} of container {name} is not supported by this node: {instead}"
        ));
    }
}

/// Rules of a container's own for when it is started again; that of a sidecar is what makes it one.
fn of_restarts(container: &Container, role: Role, found: &mut Vec<String>) {
    let name = &container.name;
    if role != Role::Sidecar && container.restart_policy.is_some() {
        found.push(format!(
            "restartPolicy of container {name} is not supported by this node: that of the pod counts"
        ));
    }
    if container.restart_policy_rules.iter().flatten().next().is_some() {
        found.push(format!(
            "restartPolicyRules of container {name} are not supported by this node: the policy of the pod counts"
        ));
    }
}

fn of_ports(container: &Container, found: &mut Vec<String>) {
    let ports = container.ports.iter().flatten();
    for port in ports.filter_map(|port| port.host_port.filter(|port| *port > 0)) {
        found.push(format!(
            "hostPort {port} of container {} is not supported by this node: the pod's address has its ports",
            container.name
        ));
    }
}

fn is_possible(hook: &LifecycleHandler) -> bool {
    hook.exec.is_some() || hook.sleep.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    fn found(spec: Value) -> Vec<String> {
        let pod: Pod = from_value(json!({"spec": spec})).unwrap();
        of(&pod)
    }

    #[test]
    fn each_thing_that_is_left_out_is_named() {
        let found = found(json!({"hostPID": true, "containers": [{
            "name": "c",
            "livenessProbe": {"grpc": {"port": 1}},
            "lifecycle": {"preStop": {"httpGet": {"port": 1}}, "postStart": {"exec": {"command": ["a"]}}},
        }]}));
        assert_eq!(found.len(), 3, "{found:?}");
        for (text, start) in found.iter().zip([
            "hostPID",
            "livenessProbe of container c",
            "preStop of container c",
        ]) {
            assert!(text.starts_with(start), "{text}");
        }
    }

    #[test]
    fn a_pod_that_asks_for_nothing_special_is_told_nothing() {
        let container = json!({
            "name": "c",
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "ports": [{"containerPort": 80}],
            "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": true, "mountPropagation": "None"}],
        });
        let plain = found(json!({
            "dnsPolicy": "ClusterFirst",
            "hostname": "h",
            "subdomain": "s",
            "setHostnameAsFQDN": true,
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["db"]}],
            "os": {"name": "linux"},
            "hostUsers": true,
            "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            "containers": [container],
        }));
        assert!(plain.is_empty(), "{plain:?}");
        let on_host = found(
            json!({"hostNetwork": true, "dnsPolicy": "Default", "containers": [
                {"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]},
            ]}),
        );
        assert!(on_host.is_empty(), "{on_host:?}");
    }

    #[test]
    fn fields_of_pods_are_named() {
        for (field, value) in [
            ("shareProcessNamespace", json!(true)),
            ("hostIPC", json!(true)),
            ("hostUsers", json!(false)),
            ("dnsConfig", json!({})),
            ("dnsPolicy", json!("Default")),
            ("dnsPolicy", json!("None")),
            ("hostnameOverride", json!("other")),
            ("runtimeClassName", json!("gvisor")),
            ("resourceClaims", json!([{"name": "gpu"}])),
            ("os", json!({"name": "windows"})),
        ] {
            let found = found(json!({"containers": [], field: value}));
            assert!(
                found.len() == 1 && found[0].starts_with(field),
                "{field}: {found:?}"
            );
        }
        let security = json!({"supplementalGroups": [7], "sysctls": [{"name": "a", "value": "b"}]});
        let found = found(json!({"containers": [], "securityContext": security}));
        assert!(
            found[0].starts_with("supplementalGroups") && found[1].starts_with("sysctls"),
            "{found:?}"
        );
    }

    #[test]
    fn fields_of_containers_are_named() {
        for (name, fields) in [
            ("stopSignal", json!({"lifecycle": {"stopSignal": "SIGINT"}})),
            (
                "volumeDevices",
                json!({"volumeDevices": [{"name": "d", "devicePath": "/d"}]}),
            ),
            (
                "mountPropagation",
                json!({"volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "HostToContainer"}]}),
            ),
            (
                "recursiveReadOnly",
                json!({"volumeMounts": [{"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"}]}),
            ),
            (
                "readOnlyRootFilesystem",
                json!({"securityContext": {"readOnlyRootFilesystem": true}}),
            ),
            ("tty", json!({"tty": true})),
            ("stdin", json!({"stdin": true})),
            ("restartPolicy", json!({"restartPolicy": "Never"})),
            (
                "restartPolicyRules",
                json!({"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}]}),
            ),
            (
                "hostPort 80",
                json!({"ports": [{"containerPort": 80, "hostPort": 80}]}),
            ),
            (
                "terminationGracePeriodSeconds of a probe",
                json!({"livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 3}}),
            ),
        ] {
            let mut container = json!({"name": "c"});
            container
                .as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            let found = found(json!({"containers": [container]}));
            let start = format!("{name} of container c ");
            assert!(
                found.len() == 1 && found[0].starts_with(&start),
                "{name}: {found:?}"
            );
        }
    }
}
