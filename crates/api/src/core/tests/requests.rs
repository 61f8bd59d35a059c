//! What pods need, as a table of specs and sums.

use serde_json::{Value, json};

use crate::core::*;

fn pod(spec: &Value, status: &Value) -> Pod {
    serde_json::from_value(json!({"spec": spec, "status": status})).unwrap()
}

/// A container with requests.
fn asks(name: &str, requests: Value) -> Value {
    json!({"name": name, "resources": {"requests": requests}})
}

/// An init container that keeps running.
fn sidecar(name: &str, requests: Value) -> Value {
    json!({"name": name, "restartPolicy": "Always", "resources": {"requests": requests}})
}

struct Case {
    name: &'static str,
    spec: Value,
    status: Value,
    requests: Value,
    nonzero: (i64, i64),
}

const MI: i64 = 1 << 20;

#[test]
fn pods_need_the_most_of_starting_and_running_plus_overhead() {
    for case in container_cases()
        .into_iter()
        .chain(pod_level_cases())
        .chain(resize_cases())
    {
        let pod = pod(&case.spec, &case.status);
        let requests = serde_json::to_value(pod_requests(&pod)).unwrap();
        assert_eq!(requests, case.requests, "{}", case.name);
        assert_eq!(pod_nonzero(&pod), case.nonzero, "{}, non-zero", case.name);
    }
}

fn container_cases() -> Vec<Case> {
    vec![
        Case {
            name: "a pod without requests needs nothing and counts for the assumed amounts",
            spec: json!({"containers": [{"name": "a"}, {"name": "b", "resources": {}}]}),
            status: json!({}),
            requests: json!({}),
            nonzero: (200, 400 * MI),
        },
        Case {
            name: "containers add up",
            spec: json!({"containers": [
                asks("a", json!({"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1})),
                asks("b", json!({"cpu": 1, "memory": "512Mi"})),
            ]}),
            status: json!({}),
            requests: json!({"cpu": "1500m", "memory": "1536Mi", "nvidia.com/gpu": "1"}),
            nonzero: (1500, 1536 * MI),
        },
        Case {
            name: "limits are no requests",
            spec: json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": 4}}}]}),
            status: json!({}),
            requests: json!({}),
            nonzero: (100, 200 * MI),
        },
        Case {
            name: "an explicit zero is not replaced by the assumed amount",
            spec: json!({"containers": [asks("a", json!({"cpu": 0}))]}),
            status: json!({}),
            requests: json!({"cpu": "0"}),
            nonzero: (0, 200 * MI),
        },
        Case {
            name: "init containers run one after the other, so the largest counts, per resource",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1, "memory": "1Gi"}))],
                "initContainers": [asks("i", json!({"cpu": 3, "memory": "100Mi"})), asks("j", json!({"cpu": 2, "memory": "2Gi"}))],
            }),
            status: json!({}),
            requests: json!({"cpu": "3", "memory": "2Gi"}),
            nonzero: (3000, 2048 * MI),
        },
        Case {
            name: "a resource that only an init container wants counts",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1}))],
                "initContainers": [asks("i", json!({"example.com/fpga": 2}))],
            }),
            status: json!({}),
            requests: json!({"cpu": "1", "example.com/fpga": "2"}),
            nonzero: (1000, 200 * MI),
        },
        Case {
            name: "a sidecar runs beside the containers",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1, "memory": "1Gi"}))],
                "initContainers": [sidecar("s", json!({"cpu": "250m", "memory": "128Mi"}))],
            }),
            status: json!({}),
            requests: json!({"cpu": "1250m", "memory": "1152Mi"}),
            nonzero: (1250, 1152 * MI),
        },
        Case {
            name: "an init container runs beside the sidecars before it, not those after it",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1, "memory": "1Mi"}))],
                "initContainers": [
                    asks("i", json!({"cpu": 4, "memory": "1Mi"})),
                    sidecar("s", json!({"cpu": 1, "memory": "1Mi"})),
                    asks("j", json!({"cpu": "3500m", "memory": "1Mi"})),
                    sidecar("t", json!({"cpu": 1, "memory": "1Mi"})),
                ],
            }),
            status: json!({}),
            requests: json!({"cpu": "4500m", "memory": "3Mi"}),
            nonzero: (4500, 3 * MI),
        },
        Case {
            name: "several sidecars at the end may be more than any init container",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1}))],
                "initContainers": [asks("i", json!({"cpu": 2})), sidecar("s", json!({"cpu": 2})), sidecar("t", json!({"cpu": 2}))],
            }),
            status: json!({}),
            requests: json!({"cpu": "5"}),
            nonzero: (5000, 600 * MI),
        },
        Case {
            name: "another restart policy is no sidecar",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1, "memory": 1}))],
                "initContainers": [{"name": "i", "restartPolicy": "OnFailure", "resources": {"requests": {"cpu": 1, "memory": 1}}}],
            }),
            status: json!({}),
            requests: json!({"cpu": "1", "memory": "1"}),
            nonzero: (1000, 1),
        },
        Case {
            name: "overhead comes on top of the larger of the two",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1, "memory": "100Mi"}))],
                "initContainers": [asks("i", json!({"cpu": 2}))],
                "overhead": {"cpu": "250m", "memory": "20Mi", "example.com/slot": 1},
            }),
            status: json!({}),
            requests: json!({"cpu": "2250m", "memory": "120Mi", "example.com/slot": "1"}),
            // The init container is assumed to need 200Mi.
            nonzero: (2250, 220 * MI),
        },
    ]
}

fn pod_level_cases() -> Vec<Case> {
    vec![
        Case {
            name: "requests of the pod replace the sum, for cpu, memory and huge pages only",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"}))],
                "resources": {"requests": {"cpu": 3, "hugepages-2Mi": "8Mi", "nvidia.com/gpu": 9, "ephemeral-storage": "1Gi"}},
            }),
            status: json!({}),
            requests: json!({"cpu": "3", "memory": "1Gi", "hugepages-2Mi": "8Mi", "nvidia.com/gpu": "1"}),
            nonzero: (3000, 1024 * MI),
        },
        Case {
            name: "overhead comes on top of the pod's requests",
            spec: json!({
                "containers": [{"name": "a"}],
                "resources": {"requests": {"cpu": 2, "memory": "1Gi"}},
                "overhead": {"cpu": "100m"},
            }),
            status: json!({}),
            requests: json!({"cpu": "2100m", "memory": "1Gi"}),
            nonzero: (2100, 1024 * MI),
        },
        Case {
            name: "with requests of the pod, only what nobody asked for is assumed",
            spec: json!({
                "containers": [{"name": "a"}, {"name": "b"}],
                "resources": {"requests": {"cpu": "50m"}},
            }),
            status: json!({}),
            requests: json!({"cpu": "50m"}),
            nonzero: (50, 400 * MI),
        },
        Case {
            name: "what one container asks for is not assumed for the other, given requests of the pod",
            spec: json!({
                "containers": [asks("a", json!({"memory": "1Mi"})), {"name": "b"}],
                "resources": {"requests": {"cpu": "50m"}},
            }),
            status: json!({}),
            requests: json!({"cpu": "50m", "memory": "1Mi"}),
            nonzero: (50, MI),
        },
        Case {
            name: "limits of the pod change nothing",
            spec: json!({
                "containers": [asks("a", json!({"cpu": 1, "memory": "1Mi"}))],
                "resources": {"limits": {"cpu": 8}},
            }),
            status: json!({}),
            requests: json!({"cpu": "1", "memory": "1Mi"}),
            nonzero: (1000, MI),
        },
    ]
}

fn resize_cases() -> Vec<Case> {
    let status = |extra: Value| {
        let mut status = json!({"containerStatuses": [{
            "name": "a",
            "resources": {"requests": {"cpu": 2, "memory": "1Mi"}},
            "allocatedResources": {"cpu": "1500m", "memory": "3Mi"},
        }]});
        status
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        status
    };
    let infeasible =
        json!({"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]});
    let deferred =
        json!({"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]});
    let spec = || json!({"containers": [asks("a", json!({"cpu": 5, "memory": "2Mi"}))]});
    let larger = || json!({"cpu": "5", "memory": "3Mi"});
    vec![
        Case {
            name: "during a resize the most of spec, actual and allocated counts",
            spec: spec(),
            status: status(json!({})),
            requests: larger(),
            nonzero: (5000, 3 * MI),
        },
        Case {
            name: "a deferred resize counts",
            spec: spec(),
            status: status(deferred),
            requests: larger(),
            nonzero: (5000, 3 * MI),
        },
        Case {
            name: "an infeasible resize does not count",
            spec: spec(),
            status: status(infeasible.clone()),
            requests: json!({"cpu": "2", "memory": "3Mi"}),
            nonzero: (2000, 3 * MI),
        },
        Case {
            name: "an infeasible resize in the older form does not count either",
            spec: spec(),
            status: status(json!({"resize": "Infeasible"})),
            requests: json!({"cpu": "2", "memory": "3Mi"}),
            nonzero: (2000, 3 * MI),
        },
        Case {
            name: "without actual resources in the status the spec counts",
            spec: spec(),
            status: json!({"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": 9}}], "conditions": infeasible["conditions"]}),
            requests: json!({"cpu": "5", "memory": "2Mi"}),
            nonzero: (5000, 2 * MI),
        },
        Case {
            name: "sidecars are resized like containers, other init containers are not",
            spec: json!({"initContainers": [sidecar("s", json!({"cpu": 1, "memory": 1})), asks("i", json!({"cpu": 1, "memory": 1}))]}),
            status: json!({"initContainerStatuses": [
                {"name": "s", "resources": {"requests": {"cpu": 2}}},
                {"name": "i", "resources": {"requests": {"cpu": 50}}},
            ]}),
            requests: json!({"cpu": "3", "memory": "2"}),
            nonzero: (3000, 2),
        },
    ]
}
