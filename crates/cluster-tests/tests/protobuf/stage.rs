//! Objects of every built-in kind that the scheduler watches, with every field that it reads set somewhere.

use kube::Client;
use serde_json::{Value, json};
use volcano_testcluster::objects;

/// Creates them in a namespace of this name.
pub async fn set(client: &Client, namespace: &str) {
    objects::create_namespace(client, namespace).await.unwrap();
    cluster_scoped(client).await;
    let pods = objects::path("v1", namespace, "pods", "");
    for pod in [whole_pod(), plain_pod()] {
        objects::create(client, &pods, &pod).await.unwrap();
    }
    objects::merge_patch_status(client, &format!("{pods}/whole"), &pod_status())
        .await
        .unwrap();
    let nominated = json!({"nominatedNodeName": "n1"});
    objects::merge_patch_status(client, &format!("{pods}/plain"), &nominated)
        .await
        .unwrap();
    // The finalizer keeps it, so that it has a time of deletion.
    objects::delete(client, &format!("{pods}/whole")).await.unwrap();
    // The quota comes after the pods that it would refuse.
    namespaced(client, namespace).await;
}

async fn cluster_scoped(client: &Client) {
    let owner = json!([{
        "apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "u-1", "controller": true,
    }]);
    let all = [
        (
            "scheduling.k8s.io/v1",
            "priorityclasses",
            json!({
                "metadata": {"name": "urgent", "labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": owner},
                "value": 1000, "globalDefault": true, "preemptionPolicy": "Never", "description": "first",
            }),
        ),
        (
            "scheduling.k8s.io/v1",
            "priorityclasses",
            json!({"metadata": {"name": "below-zero"}, "value": -7}),
        ),
        (
            "node.k8s.io/v1",
            "runtimeclasses",
            json!({
                "metadata": {"name": "boxed"}, "handler": "box",
                "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
            }),
        ),
        (
            "storage.k8s.io/v1",
            "storageclasses",
            json!({
                "metadata": {"name": "fast"}, "provisioner": "disk.example.com", "parameters": {"kind": "ssd"},
                "volumeBindingMode": "WaitForFirstConsumer", "mountOptions": ["discard"],
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
            }),
        ),
        (
            "v1",
            "nodes",
            json!({
                "metadata": {"name": "n1", "labels": {"zone": "a"}},
                "spec": {"unschedulable": true, "providerID": "x://1", "podCIDR": "10.0.0.0/24", "taints": [
                    {"key": "gpu", "value": "only", "effect": "NoSchedule"},
                    {"key": "gone", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
                ]},
            }),
        ),
        ("v1", "nodes", json!({"metadata": {"name": "n2"}})),
        (
            "storage.k8s.io/v1",
            "csinodes",
            json!({
                "metadata": {"name": "n1"},
                "spec": {"drivers": [
                    {"name": "disk.example.com", "nodeID": "1", "topologyKeys": ["zone"], "allocatable": {"count": 8}},
                    {"name": "none.example.com", "nodeID": "1", "allocatable": {"count": 0}},
                    {"name": "free.example.com", "nodeID": "1", "topologyKeys": []},
                ]},
            }),
        ),
        (
            "v1",
            "persistentvolumes",
            json!({
                "metadata": {"name": "v1", "labels": {"zone": "a"}},
                "spec": {
                    "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                    "storageClassName": "fast", "volumeMode": "Block", "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "both", "name": "data", "uid": "u-2", "kind": "PersistentVolumeClaim"},
                    "csi": {"driver": "disk.example.com", "volumeHandle": "h-1", "fsType": "ext4"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term()]}},
                },
            }),
        ),
        (
            "v1",
            "persistentvolumes",
            json!({
                "metadata": {"name": "v2"},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}},
            }),
        ),
    ];
    for (version, plural, object) in all {
        objects::create(client, &objects::path(version, "", plural, ""), &object)
            .await
            .unwrap();
    }
    let node = objects::path("v1", "", "nodes", "n1");
    objects::merge_patch_status(client, &node, &json!({
        "capacity": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4", "pods": "110"},
        "allocatable": {"cpu": "7900m", "memory": "31Gi", "nvidia.com/gpu": "4", "pods": "110"},
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Up", "message": "it is", "lastHeartbeatTime": "2026-01-02T03:04:05Z"},
            {"type": "DiskPressure", "status": "Unknown"},
        ],
        "images": [{"names": ["a:1", "a@sha256:0"], "sizeBytes": 5_000_000_000_i64}, {"sizeBytes": 0}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    })).await.unwrap();
    let volume = objects::path("v1", "", "persistentvolumes", "v1");
    objects::merge_patch_status(client, &volume, &json!({"phase": "Bound"}))
        .await
        .unwrap();
}

async fn namespaced(client: &Client, namespace: &str) {
    let all = [
        (
            "v1",
            "persistentvolumeclaims",
            json!({
                "metadata": {"name": "data", "annotations": {"volume.kubernetes.io/selected-node": "n1"}},
                "spec": claim("5Gi"),
            }),
        ),
        (
            "v1",
            "persistentvolumeclaims",
            json!({
                "metadata": {"name": "classless"},
                "spec": {"storageClassName": "", "volumeName": "v2", "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1G"}, "limits": {"storage": "2G"}}},
            }),
        ),
        (
            "v1",
            "resourcequotas",
            json!({
                "metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "100", "pods": "1k"}},
            }),
        ),
        (
            "policy/v1",
            "poddisruptionbudgets",
            json!({
                "metadata": {"name": "some"}, "spec": {"minAvailable": "30%", "selector": selector()},
            }),
        ),
        (
            "policy/v1",
            "poddisruptionbudgets",
            json!({
                "metadata": {"name": "all"}, "spec": {"maxUnavailable": 0, "selector": {}},
            }),
        ),
    ];
    for (version, plural, object) in all {
        objects::create(client, &objects::path(version, namespace, plural, ""), &object)
            .await
            .unwrap();
    }
    let statuses = [
        ("v1", "persistentvolumeclaims/data", json!({"phase": "Bound"})),
        (
            "v1",
            "resourcequotas/q",
            json!({
                "hard": {"requests.cpu": "100", "pods": "1k"}, "used": {"requests.cpu": "1500m", "pods": "2"},
            }),
        ),
        (
            "policy/v1",
            "poddisruptionbudgets/some",
            json!({
                "disruptionsAllowed": 3, "currentHealthy": 5, "desiredHealthy": 2, "expectedPods": 5,
                "disruptedPods": {"p1": "2026-01-02T03:04:05Z", "p2": "1970-01-01T00:00:00Z"},
            }),
        ),
    ];
    for (version, place, status) in statuses {
        let place = objects::path(version, namespace, place, "");
        objects::merge_patch_status(client, &place, &status)
            .await
            .unwrap();
    }
}

fn selector() -> Value {
    json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "old", "operator": "DoesNotExist"},
        ],
    })
}

fn term() -> Value {
    json!({
        "matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["c"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
    })
}

fn pod_term() -> Value {
    json!({
        "labelSelector": selector(), "namespaces": ["default", "both"], "namespaceSelector": selector(),
        "topologyKey": "zone", "matchLabelKeys": ["version"], "mismatchLabelKeys": ["tenant"],
    })
}

fn claim(size: &str) -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "volumeMode": "Block", "volumeName": "v1",
        "selector": selector(), "resources": {"requests": {"storage": size}, "limits": {"storage": size}},
    })
}

fn resources() -> Value {
    json!({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}})
}

/// A pod with everything.
fn whole_pod() -> Value {
    let port = json!([{"containerPort": 8080, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}]);
    let pod_affinity = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [pod_term()],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": pod_term()}],
    });
    json!({
        "metadata": {
            "name": "whole", "labels": {"app": "web", "version": "1", "tenant": "t"},
            "annotations": {"note": "ü \u{1F30B} \"quoted\""},
            "finalizers": ["example.com/keeps"],
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u-3", "controller": true,
                    "blockOwnerDeletion": true},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u-4", "controller": false},
            ],
        },
        "spec": {
            "nodeName": "n1", "schedulerName": "volcano", "priorityClassName": "urgent", "runtimeClassName": "boxed",
            "hostNetwork": true, "nodeSelector": {"zone": "a"}, "terminationGracePeriodSeconds": 0,
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term()]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": term()}],
                },
                "podAffinity": pod_affinity, "podAntiAffinity": pod_affinity,
            },
            "tolerations": [
                {"key": "gpu", "operator": "Equal", "value": "only", "effect": "NoSchedule"},
                {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
                {"operator": "Exists"},
            ],
            "topologySpreadConstraints": [{
                "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector(),
                "minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["version"],
            }],
            "initContainers": [
                {"name": "side", "image": "i:1", "restartPolicy": "Always", "resources": resources()},
                {"name": "first", "image": "i:2", "ports": port, "command": ["sh"], "env": [{"name": "SECRET", "value": "s"}]},
            ],
            "containers": [{
                "name": "main", "image": "i:3", "resources": resources(),
                "ports": port, "restartPolicy": "OnFailure",
                "livenessProbe": {"httpGet": {"path": "/", "port": "web"}},
            }],
            "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "2Gi"}},
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": true}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": claim("1Gi")}}},
                {"name": "empty", "emptyDir": {}},
                {"name": "settings", "configMap": {"name": "c"}},
            ],
            "resourceClaims": [
                {"name": "gpu", "resourceClaimName": "shared"},
                {"name": "nic", "resourceClaimTemplateName": "each"},
            ],
        },
    })
}

/// A pod with little, which waits behind gates.
fn plain_pod() -> Value {
    json!({
        "metadata": {"name": "plain", "labels": {"app": "web"}},
        "spec": {
            "schedulingGates": [{"name": "example.com/quota"}, {"name": "example.com/later"}],
            "priorityClassName": "below-zero",
            "containers": [{"name": "main", "image": "i:3", "ports": [{"containerPort": 80}]}],
            "affinity": {"podAffinity": {}},
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        },
    })
}

fn pod_status() -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": "i", "imageID": "x", "ready": false, "restartCount": 3, "resources": resources(),
            "allocatedResources": {"cpu": "100m", "memory": "64Mi"},
            "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-02T03:04:05Z"}},
        })
    };
    json!({
        "phase": "Running", "startTime": "2026-01-02T03:04:05Z", "resize": "Infeasible",
        "podIP": "10.0.0.9", "hostIP": "10.0.0.1",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "none fits",
             "lastTransitionTime": "2026-01-02T03:04:05Z"},
            {"type": "Ready", "status": "True"},
        ],
        "containerStatuses": [container("main")],
        "initContainerStatuses": [container("side"), container("first")],
        "resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "whole-nic-x"}, {"name": "gpu"}],
    })
}
