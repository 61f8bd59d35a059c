//! What a pod counts for in a quota: the amounts in `minResources` of a PodGroup.
//!
//! The scheduler admits a gang by these amounts, and compares them with queues and with the quotas of the namespace,
//! so they have the keys of both: `cpu` and `requests.cpu`, `nvidia.com/gpu` and `requests.nvidia.com/gpu`.
//!
//! ```text
//! pod, with requests taken from limits where it has none ──> effective requests, effective limits ──> keys
//! ```

use volcano_api::core::{self, Pod, PodSpec, ResourceRequirements};
use volcano_api::meta::ResourceList;
use volcano_api::names::resources::{
    COUNT_PODS, CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, LIMITS_PREFIX, MEMORY, PODS, REQUESTS_PREFIX,
};
use volcano_api::quantity::{Format, Quantity};

/// Resources whose limits are counted, and whose requests are counted under their own names as well.
const COMPUTE: [&str; 3] = [CPU, MEMORY, EPHEMERAL_STORAGE];

/// Part of the names that belong to Kubernetes; such a name is no extended resource.
const KUBERNETES_DOMAIN: &str = "kubernetes.io/";

/// What one pod counts for, by quota key. A key is there only if the pod asks for the resource, the two that count
/// pods apart.
///
/// Whoever reads a pod from a template sees it before the API server has filled in its defaults, so the one default
/// that matters is applied here: a container that has a limit and no request asks for its limit.
pub fn usage(pod: &Pod) -> ResourceList {
    let one = Quantity::from_value(1, Format::DecimalSi);
    let mut usage = ResourceList::from([(PODS.to_owned(), one), (COUNT_PODS.to_owned(), one)]);
    for (name, amount) in requests(pod) {
        if COMPUTE.contains(&name.as_str()) || name.starts_with(HUGEPAGES_PREFIX) || is_extended(&name) {
            usage.insert(format!("{REQUESTS_PREFIX}{name}"), amount);
            usage.insert(name, amount);
        }
    }
    for (name, amount) in limits(pod) {
        if COMPUTE.contains(&name.as_str()) {
            usage.insert(format!("{LIMITS_PREFIX}{name}"), amount);
        }
    }
    usage
}

/// Adds `amounts`, `count` times, to `total`.
pub fn add(total: &mut ResourceList, amounts: &ResourceList, count: i64) {
    for (name, amount) in amounts {
        let more = amount.saturating_mul(count);
        match total.get_mut(name) {
            Some(have) => *have = have.saturating_add(more),
            None => {
                total.insert(name.clone(), more);
            }
        }
    }
}

/// Whether the name is one of a device or another resource that Kubernetes does not know itself.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains(KUBERNETES_DOMAIN) && !name.starts_with(REQUESTS_PREFIX)
}

/// What the pod will ask for once the API server has filled in its defaults.
fn requests(pod: &Pod) -> ResourceList {
    let mut pod = Pod {
        metadata: core::Meta::default(),
        ..pod.clone()
    };
    let spec = &mut pod.spec;
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        limits_for_requests(&mut container.resources, |_| true);
    }
    if spec.resources.is_some() {
        // A limit of the pod as a whole stands for a request where no container asks for the resource.
        let overhead = std::mem::take(&mut spec.overhead);
        let asked = core::pod_requests(&pod);
        pod.spec.overhead = overhead;
        if let Some(resources) = &mut pod.spec.resources {
            limits_for_requests(resources, |name| !asked.contains_key(name));
        }
    }
    core::pod_requests(&pod)
}

/// Takes a limit for the request where there is none, for the resources that `applies` to.
fn limits_for_requests(resources: &mut ResourceRequirements, applies: impl Fn(&str) -> bool) {
    for (name, limit) in &resources.limits {
        if !resources.requests.contains_key(name) && applies(name) {
            resources.requests.insert(name.clone(), *limit);
        }
    }
}

/// The pod's limits. They combine as requests do, so they are put in the place of requests; overhead counts only where
/// there is a limit at all.
fn limits(pod: &Pod) -> ResourceList {
    let as_requests = |resources: &ResourceRequirements| ResourceRequirements {
        requests: resources.limits.clone(),
        limits: ResourceList::new(),
    };
    let containers = |containers: &[core::Container]| {
        containers
            .iter()
            .map(|container| core::Container {
                resources: as_requests(&container.resources),
                restart_policy: container.restart_policy.clone(),
                ..core::Container::default()
            })
            .collect()
    };
    let mut limits = core::pod_requests(&Pod {
        spec: PodSpec {
            containers: containers(&pod.spec.containers),
            init_containers: containers(&pod.spec.init_containers),
            resources: pod.spec.resources.as_ref().map(as_requests),
            ..PodSpec::default()
        },
        ..Pod::default()
    });
    for (name, limit) in &mut limits {
        if let Some(overhead) = pod.spec.overhead.get(name).filter(|_| !limit.is_zero()) {
            *limit = limit.saturating_add(*overhead);
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn usage_of(spec: Value) -> Value {
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("readable");
        let mut usage = serde_json::to_value(usage(&pod)).expect("writable");
        let counted = usage.as_object_mut().expect("a map");
        assert_eq!(counted.remove("pods"), Some(json!("1")), "every pod is one pod");
        assert_eq!(
            counted.remove("count/pods"),
            Some(json!("1")),
            "every pod is one object"
        );
        usage
    }

    fn container(requests: Value, limits: Value) -> Value {
        json!({"resources": {"requests": requests, "limits": limits}})
    }

    #[test]
    fn requests_and_limits_become_quota_keys() {
        let cases = [
            (
                "a pod that asks for nothing has no other keys",
                json!({"containers": [{}]}),
                json!({}),
            ),
            (
                "compute resources are counted with and without prefix, limits with theirs",
                json!({"containers": [container(
                    json!({"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "2Gi"}),
                    json!({"cpu": "1", "memory": "2Gi", "ephemeral-storage": "3Gi"}),
                )]}),
                json!({
                    "cpu": "500m", "requests.cpu": "500m", "limits.cpu": "1",
                    "memory": "1Gi", "requests.memory": "1Gi", "limits.memory": "2Gi",
                    "ephemeral-storage": "2Gi", "requests.ephemeral-storage": "2Gi",
                    "limits.ephemeral-storage": "3Gi",
                }),
            ),
            (
                "huge pages have both keys and no limit",
                json!({"containers": [container(json!({"hugepages-2Mi": "4Mi"}), json!({"hugepages-2Mi": "4Mi"}))]}),
                json!({"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"}),
            ),
            (
                "an extended resource has both keys and no limit",
                json!({"containers": [container(json!({"nvidia.com/gpu": "8"}), json!({"nvidia.com/gpu": "8"}))]}),
                json!({"nvidia.com/gpu": "8", "requests.nvidia.com/gpu": "8"}),
            ),
            (
                "resources in Kubernetes' own domain are no extended ones",
                json!({"containers": [container(json!({"kubernetes.io/batch-cpu": "8"}), json!({}))]}),
                json!({}),
            ),
            (
                "names without a domain that nobody knows are not counted",
                json!({"containers": [container(json!({"gold": "8"}), json!({}))]}),
                json!({}),
            ),
            (
                "a limit without a request is the request",
                json!({"containers": [container(json!({"cpu": "1"}), json!({"cpu": "2", "nvidia.com/gpu": "1"}))]}),
                json!({
                    "cpu": "1", "requests.cpu": "1", "limits.cpu": "2",
                    "nvidia.com/gpu": "1", "requests.nvidia.com/gpu": "1",
                }),
            ),
        ];
        for (name, spec, expected) in cases {
            assert_eq!(usage_of(spec), expected, "{name}");
        }
    }

    #[test]
    fn requests_and_limits_of_several_containers_combine_alike() {
        let cases = [
            (
                "containers run side by side",
                json!({"containers": [
                    container(json!({"cpu": "1"}), json!({"cpu": "2"})),
                    container(json!({"cpu": "3"}), json!({"cpu": "4"})),
                ]}),
                json!({"cpu": "4", "requests.cpu": "4", "limits.cpu": "6"}),
            ),
            (
                "an init container counts where it needs more than they do",
                json!({
                    "containers": [container(json!({"cpu": "1"}), json!({"cpu": "9"}))],
                    "initContainers": [container(json!({"cpu": "5"}), json!({"cpu": "6"}))],
                }),
                json!({"cpu": "5", "requests.cpu": "5", "limits.cpu": "9"}),
            ),
            (
                "a sidecar runs beside them",
                json!({
                    "containers": [container(json!({"cpu": "1"}), json!({"cpu": "2"}))],
                    "initContainers": [{
                        "restartPolicy": "Always",
                        "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "20m"}},
                    }],
                }),
                json!({"cpu": "1010m", "requests.cpu": "1010m", "limits.cpu": "2020m"}),
            ),
            (
                "overhead is asked for, and raises only limits that there are",
                json!({
                    "containers": [container(json!({"cpu": "1"}), json!({"cpu": "2"}))],
                    "overhead": {"cpu": "100m", "memory": "1Mi"},
                }),
                json!({
                    "cpu": "1100m", "requests.cpu": "1100m", "limits.cpu": "2100m",
                    "memory": "1Mi", "requests.memory": "1Mi",
                }),
            ),
            (
                "overhead does not raise a limit of zero",
                json!({"containers": [container(json!({}), json!({"cpu": "0"}))], "overhead": {"cpu": "100m"}}),
                json!({"cpu": "100m", "requests.cpu": "100m", "limits.cpu": "0"}),
            ),
            (
                "what the pod asks for as a whole replaces what its containers ask for",
                json!({
                    "containers": [container(json!({"cpu": "1"}), json!({"cpu": "2"}))],
                    "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
                }),
                json!({"cpu": "3", "requests.cpu": "3", "limits.cpu": "4"}),
            ),
            (
                "a limit of the pod as a whole is its request where no container asks",
                json!({
                    "containers": [container(json!({"cpu": "1"}), json!({}))],
                    "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
                    "overhead": {"memory": "1Mi"},
                }),
                json!({
                    "cpu": "1", "requests.cpu": "1", "limits.cpu": "4",
                    "memory": "1025Mi", "requests.memory": "1025Mi", "limits.memory": "1025Mi",
                }),
            ),
        ];
        for (name, spec, expected) in cases {
            assert_eq!(usage_of(spec), expected, "{name}");
        }
    }

    #[test]
    fn amounts_add_up() {
        let list = |pairs: Value| -> ResourceList { serde_json::from_value(pairs).expect("readable") };
        let mut total = list(json!({"cpu": "1"}));
        add(&mut total, &list(json!({"cpu": "500m", "pods": "1"})), 3);
        assert_eq!(total, list(json!({"cpu": "2500m", "pods": "3"})));
        add(&mut total, &list(json!({"memory": "1Gi"})), 0);
        assert_eq!(total, list(json!({"cpu": "2500m", "pods": "3", "memory": "0"})));
    }
}
