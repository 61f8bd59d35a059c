//! Decoding of objects as the API server and Go clients write them.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::*;
use crate::quantity::Quantity;
use crate::time::Time;

/// Decodes, and checks that what is printed reads back as the same.
fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(value: Value) -> T {
    let object: T = serde_json::from_value(value).unwrap();
    let printed = serde_json::to_string(&object).unwrap();
    assert_eq!(serde_json::from_str::<T>(&printed).unwrap(), object, "{printed}");
    object
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

/// A pod with all that scheduling reads, and much that it does not.
fn busy_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "train-worker-0", "namespace": "team-a", "uid": "7c5e", "resourceVersion": "12345", "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": null, "selfLink": "",
            "labels": {"volcano.sh/job-name": "train"}, "annotations": {"scheduling.k8s.io/group-name": "train-1"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "2"},
                {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "1", "controller": true, "blockOwnerDeletion": true},
            ],
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:containers": {}}}}],
        },
        "spec": {
            "nodeName": "n1", "schedulerName": "volcano", "priority": 100, "priorityClassName": "high", "preemptionPolicy": "Never",
            "nodeSelector": {"gpu": "h100"}, "hostNetwork": true, "serviceAccountName": "default", "terminationGracePeriodSeconds": 30,
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
                        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}],
                    }]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}],
                },
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                    "labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "rack", "namespaces": ["x"],
                    "namespaceSelector": {}, "matchLabelKeys": ["rev"], "mismatchLabelKeys": ["team"],
                }]},
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}},
                ]},
            },
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}},
                "minDomains": 2, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["rev"],
            }],
            "containers": [{
                "name": "main", "image": "train:1", "command": ["python"], "args": ["--token", "s3cret"],
                "env": [{"name": "TOKEN", "value": "s3cret"}, {"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                "resources": {"requests": {"cpu": 2, "memory": "4Gi"}, "limits": {"cpu": "4", "memory": 8589934592_u64}, "claims": [{"name": "gpu"}]},
                "ports": [{"containerPort": 22, "hostPort": 2222, "hostIP": "10.0.0.1", "protocol": "TCP", "name": "ssh"}],
                "livenessProbe": {"exec": {"command": ["true"]}},
            }],
            "initContainers": [{"name": "side", "image": "log:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": 0.1}}}],
            "resources": {"requests": {"cpu": "3"}},
            "overhead": {"cpu": "10m"},
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": true}},
                {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}}}},
                {"name": "cfg", "configMap": {"name": "cfg", "defaultMode": 420}},
            ],
            "schedulingGates": [{"name": "wait"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        },
        "status": {
            "phase": "Running", "startTime": "2026-01-02T03:05:00Z", "nominatedNodeName": "n2", "qosClass": "Burstable",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room",
                            "lastProbeTime": null, "lastTransitionTime": "2026-01-02T03:04:06Z"}],
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"},
                                   "resources": {"requests": {"cpu": "2"}}, "state": {"running": {"startedAt": "2026-01-02T03:05:01Z"}}}],
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "train-gpu-x1"}],
        },
    })
}

#[test]
fn a_pod_keeps_what_scheduling_reads() {
    let pod: Pod = read(busy_pod());
    let meta = &pod.metadata;
    assert_eq!(
        (meta.name.as_str(), meta.namespace.as_str(), meta.uid.as_str()),
        ("train-worker-0", "team-a", "7c5e")
    );
    assert_eq!(
        meta.creation_timestamp,
        Some(Time::parse("2026-01-02T03:04:05Z").unwrap())
    );
    assert_eq!(meta.deletion_timestamp, None);
    assert_eq!(meta.controller().unwrap().kind, "Job");

    let spec = &pod.spec;
    assert_eq!(
        (spec.node_name.as_str(), spec.scheduler_name.as_str()),
        ("n1", "volcano")
    );
    assert_eq!(
        (spec.priority, spec.priority_class_name.as_str()),
        (Some(100), "high")
    );
    assert_eq!(spec.preemption_policy.as_deref(), Some("Never"));
    assert!(spec.host_network);
    assert_eq!(spec.node_selector["gpu"], "h100");
    let affinity = spec.affinity.as_ref().unwrap();
    let node = affinity.node_affinity.as_ref().unwrap();
    assert_eq!(
        node.required.as_ref().unwrap().node_selector_terms[0].match_fields[0].values,
        ["n9"]
    );
    assert_eq!(node.preferred[0].weight, 10);
    let term = &affinity.pod_affinity.as_ref().unwrap().required[0];
    assert_eq!(term.namespace_selector, Some(LabelSelector::default()));
    assert_eq!(
        (
            term.match_label_keys.as_slice(),
            term.mismatch_label_keys.as_slice()
        ),
        (&["rev".to_owned()][..], &["team".to_owned()][..])
    );
    let away = &affinity.pod_anti_affinity.as_ref().unwrap().preferred[0];
    assert_eq!(
        (away.weight, away.pod_affinity_term.label_selector.as_ref()),
        (5, None)
    );
    assert_eq!(spec.tolerations[0].toleration_seconds, Some(300));
    let spread = &spec.topology_spread_constraints[0];
    assert_eq!((spread.max_skew, spread.min_domains), (1, Some(2)));
    assert_eq!(spread.node_taints_policy.as_deref(), Some("Honor"));

    let main = &spec.containers[0];
    assert_eq!(main.resources.requests["cpu"], quantity("2"));
    assert_eq!(main.resources.limits["memory"], quantity("8Gi"));
    assert_eq!(
        (main.ports[0].host_port, main.ports[0].host_ip.as_str()),
        (2222, "10.0.0.1")
    );
    assert!(spec.init_containers[0].is_sidecar() && !main.is_sidecar());
    assert_eq!(
        spec.init_containers[0].resources.requests["cpu"],
        quantity("100m")
    );
    assert_eq!(
        spec.all_containers().map(|c| c.name.as_str()).collect::<Vec<_>>(),
        ["side", "main"]
    );
    assert_eq!(
        spec.volumes[0]
            .persistent_volume_claim
            .as_ref()
            .unwrap()
            .claim_name,
        "data"
    );
    let template = &spec.volumes[1].ephemeral.as_ref().unwrap().volume_claim_template;
    assert_eq!(template.spec.storage_class_name.as_deref(), Some("fast"));
    assert_eq!(
        spec.volumes[2],
        PodVolume {
            name: "cfg".into(),
            ..PodVolume::default()
        }
    );
    assert_eq!(spec.scheduling_gates[0].name, "wait");
    assert_eq!(
        spec.resource_claims[0].resource_claim_template_name.as_deref(),
        Some("one-gpu")
    );

    assert_eq!(pod.status.phase, PodPhase::Running);
    assert_eq!(pod.status.conditions[0].reason, "Unschedulable");
    assert_eq!(
        pod.status.container_statuses[0].allocated_resources["cpu"],
        quantity("2")
    );
    assert_eq!(
        pod.status.resource_claim_statuses[0]
            .resource_claim_name
            .as_deref(),
        Some("train-gpu-x1")
    );
}

#[test]
fn how_containers_run_is_read_and_not_printed() {
    let pod: Pod = serde_json::from_value(json!({"status": {"containerStatuses": [{
        "name": "main",
        "ready": true,
        "restartCount": 2,
        "state": {"terminated": {"exitCode": 137, "finishedAt": "2026-01-02T03:04:05Z", "reason": "OOMKilled"}},
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": null}},
    }]}}))
    .unwrap();
    let status = &pod.status.container_statuses[0];
    assert_eq!((status.ready, status.restart_count), (true, 2));
    let end = status.state.terminated.as_ref().unwrap();
    assert_eq!(
        (end.exit_code, end.finished_at),
        (137, Some(Time::parse("2026-01-02T03:04:05Z").unwrap()))
    );
    let before = status.last_state.terminated.as_ref().unwrap();
    assert_eq!((before.exit_code, before.finished_at), (1, None));
    let printed = serde_json::to_value(&pod).unwrap();
    assert_eq!(
        printed,
        json!({"status": {"containerStatuses": [{"name": "main"}]}}),
        "equal pods look equal"
    );
}

#[test]
fn a_printed_pod_has_no_secrets_and_nothing_empty() {
    let printed = serde_json::to_string(&read::<Pod>(busy_pod())).unwrap();
    assert!(
        !printed.contains("s3cret") && !printed.contains("env"),
        "{printed}"
    );
    let small: Pod = read(json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}));
    let expected = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}});
    assert_eq!(serde_json::to_value(small).unwrap(), expected);
}

/// Paths of all the fields of an object; entries of lists and of maps by name are no fields.
fn fields(value: &Value, path: &str, found: &mut Vec<String>) {
    const MAPS: [&str; 8] = [
        "labels",
        "annotations",
        "nodeSelector",
        "matchLabels",
        "requests",
        "limits",
        "overhead",
        "allocatedResources",
    ];
    match value {
        Value::Object(entries) if !MAPS.iter().any(|name| path.ends_with(&format!("/{name}"))) => {
            for (key, value) in entries {
                let path = format!("{path}/{key}");
                fields(value, &path, found);
                found.push(path);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                fields(item, &format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_of_a_pod_may_be_null() {
    let mut paths = Vec::new();
    fields(&busy_pod(), "", &mut paths);
    assert!(paths.len() > 150, "{}", paths.len());
    for path in paths {
        let mut pod = busy_pod();
        *pod.pointer_mut(&path).unwrap() = Value::Null;
        let decoded =
            serde_json::from_value::<Pod>(pod.clone()).unwrap_or_else(|error| panic!("{path}: {error}"));
        let (parent, field) = path.rsplit_once('/').unwrap();
        pod.pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(field);
        assert_eq!(
            decoded,
            serde_json::from_value::<Pod>(pod).unwrap(),
            "{path}: null is as good as missing"
        );
    }
}

#[test]
fn every_object_may_be_all_null() {
    let empty = json!({"metadata": null, "spec": null, "status": null, "provisioner": null, "value": null});
    assert_eq!(read::<Pod>(empty.clone()), Pod::default());
    assert_eq!(read::<Node>(empty.clone()), Node::default());
    assert_eq!(read::<PriorityClass>(empty.clone()), PriorityClass::default());
    assert_eq!(read::<ResourceQuota>(empty.clone()), ResourceQuota::default());
    assert_eq!(
        read::<PodDisruptionBudget>(empty.clone()),
        PodDisruptionBudget::default()
    );
    assert_eq!(
        read::<PersistentVolumeClaim>(empty.clone()),
        PersistentVolumeClaim::default()
    );
    assert_eq!(
        read::<PersistentVolume>(empty.clone()),
        PersistentVolume::default()
    );
    assert_eq!(read::<StorageClass>(empty.clone()), StorageClass::default());
    assert_eq!(read::<CsiNode>(empty.clone()), CsiNode::default());
    assert_eq!(read::<CsiDriver>(empty.clone()), CsiDriver::default());
    assert_eq!(
        read::<CsiStorageCapacity>(empty.clone()),
        CsiStorageCapacity::default()
    );
    assert_eq!(read::<Namespace>(empty.clone()), Namespace::default());
    assert_eq!(read::<ResourceClaim>(empty.clone()), ResourceClaim::default());
    assert_eq!(read::<ResourceSlice>(empty.clone()), ResourceSlice::default());
    assert_eq!(read::<DeviceClass>(empty), DeviceClass::default());
}

#[test]
fn unknown_fields_are_skipped_however_many_and_deep() {
    let mut pod = busy_pod();
    let expected: Pod = serde_json::from_value(pod.clone()).unwrap();
    let mut nested = json!([1, "two", null, {"three": 3.5}]);
    for depth in 0..60 {
        nested = json!({format!("level{depth}"): nested, "list": [nested.get("none")]});
    }
    for path in [
        "",
        "/metadata",
        "/spec",
        "/spec/containers/0",
        "/spec/volumes/2",
        "/status",
    ] {
        let part = pod.pointer_mut(path).unwrap().as_object_mut().unwrap();
        part.extend((0..100).map(|i| (format!("unknown{i}"), nested.clone())));
    }
    assert_eq!(serde_json::from_str::<Pod>(&pod.to_string()).unwrap(), expected);
}

#[test]
fn a_bad_quantity_is_an_error_that_says_so() {
    let error =
        serde_json::from_value::<Node>(json!({"status": {"allocatable": {"cpu": "four"}}})).unwrap_err();
    assert!(error.to_string().contains(r#""four""#), "{error}");
}

#[test]
fn pod_phases_are_read_leniently() {
    let cases = [
        (json!({"phase": "Succeeded"}), PodPhase::Succeeded),
        (json!({"phase": "Failed"}), PodPhase::Failed),
        (json!({"phase": ""}), PodPhase::Pending),
        (json!({}), PodPhase::Pending),
        (json!({"phase": "Unknown"}), PodPhase::Unknown),
        (json!({"phase": "Sleeping"}), PodPhase::Unknown),
    ];
    for (status, phase) in cases {
        assert_eq!(read::<PodStatus>(status.clone()).phase, phase, "{status}");
        assert_eq!(PodPhase::from(phase.as_str()), phase);
    }
    assert!(PodPhase::Failed.is_terminated() && !PodPhase::Running.is_terminated());
}

#[test]
fn a_node_keeps_resources_taints_conditions_and_images() {
    let node: Node = read(json!({
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"unschedulable": true, "providerID": "aws:///i-1", "podCIDR": "10.0.0.0/24",
                 "taints": [{"key": "gpu", "effect": "NoSchedule", "timeAdded": null}]},
        "status": {
            "allocatable": {"cpu": "63500m", "memory": "257Gi", "pods": 110, "hugepages-1Gi": 0},
            "capacity": {"cpu": "64"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}],
            "images": [{"names": ["a@sha256:1", "a:1"], "sizeBytes": 123_456_789}, {"names": null, "sizeBytes": 1}],
            "nodeInfo": {"kubeletVersion": "v1.36.0"},
        },
    }));
    assert!(node.spec.unschedulable);
    assert_eq!(node.spec.taints[0].key, "gpu");
    assert_eq!(node.status.allocatable["cpu"].milli_value(), 63_500);
    assert_eq!(node.status.allocatable["pods"].value(), 110);
    assert_eq!(node.status.conditions[0].kind, "Ready");
    assert_eq!(node.status.images[0].size_bytes, 123_456_789);
    assert!(node.status.images[1].names.is_empty());
}

#[test]
fn classes_quotas_and_budgets() {
    let class: PriorityClass =
        read(json!({"value": -5, "globalDefault": true, "description": "x", "preemptionPolicy": "Never"}));
    assert_eq!((class.value, class.global_default), (-5, true));
    let quota: ResourceQuota = read(json!({
        "spec": {"hard": {"requests.cpu": "10"}, "scopes": ["BestEffort"]},
        "status": {"hard": {"requests.cpu": "10"}, "used": {"requests.cpu": "2500m"}},
    }));
    assert_eq!(quota.status.used["requests.cpu"].milli_value(), 2500);
    let budget: PodDisruptionBudget = read(json!({
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"web-1": "2026-01-02T03:04:05Z", "web-2": null}},
    }));
    assert_eq!(budget.status.disruptions_allowed, 2);
    assert_eq!(budget.status.disrupted_pods.len(), 2);
    assert!(budget.spec.selector.is_some());
}

#[test]
fn volumes_and_their_classes() {
    let claim: PersistentVolumeClaim = read(json!({
        "metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}},
        "spec": {"volumeName": "pv1", "storageClassName": "", "accessModes": ["ReadWriteOncePod"], "volumeMode": "Block",
                 "resources": {"requests": {"storage": "10Gi"}}, "selector": {"matchLabels": {"a": "b"}}},
        "status": {"phase": "Bound"},
    }));
    assert_eq!(claim.spec.storage_class_name.as_deref(), Some(""));
    assert_eq!(claim.spec.resources.requests["storage"], quantity("10Gi"));
    let volume: PersistentVolume = read(json!({
        "metadata": {"name": "pv1", "labels": {"topology.kubernetes.io/zone": "a"}},
        "spec": {"capacity": {"storage": "10Gi"}, "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "x", "name": "c", "uid": "1"},
                 "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "volumeAttributes": {"k": "v"}},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}},
        "status": {"phase": "Available"},
    }));
    assert_eq!(volume.spec.csi.as_ref().unwrap().volume_handle, "vol-1");
    assert_eq!(volume.spec.claim_ref.as_ref().unwrap().uid, "1");
    assert!(
        volume
            .spec
            .node_affinity
            .unwrap()
            .required
            .unwrap()
            .matches("n", &Labels::from([("zone".into(), "a".into())]))
    );
    let class: StorageClass = read(json!({
        "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer", "parameters": {"type": "gp3"},
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    }));
    assert_eq!(
        class.allowed_topologies[0].match_label_expressions[0].values,
        ["a"]
    );
    let drivers: CsiNode = read(json!({"spec": {"drivers": [
        {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}, "topologyKeys": null}, {"name": "nfs", "allocatable": null},
    ]}}));
    assert_eq!(
        drivers.spec.drivers[0].allocatable.as_ref().unwrap().count,
        Some(25)
    );
    assert_eq!(drivers.spec.drivers[1].allocatable, None);
    let driver: CsiDriver = read(json!({"spec": {"attachRequired": false, "storageCapacity": true}}));
    assert!(driver.spec.storage_capacity);
    let capacity: CsiStorageCapacity = read(json!({
        "storageClassName": "local", "capacity": "10Gi", "maximumVolumeSize": null,
        "nodeTopology": {"matchLabels": {"host": "n1"}},
    }));
    assert_eq!(
        (capacity.capacity, capacity.maximum_volume_size),
        (Some(quantity("10Gi")), None)
    );
    assert!(capacity.node_topology.is_some());
}

#[test]
fn claims_on_devices() {
    let claim: ResourceClaim = read(json!({
        "spec": {"devices": {"requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2,
                                        "selectors": [{"cel": {"expression": "true"}}], "capacity": {"requests": {"memory": "40Gi"}}}},
            {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "a"}, {"name": "small", "deviceClassName": "b"}]},
        ], "config": [{"opaque": {"driver": "d", "parameters": {}}}]}},
        "status": {
            "allocation": {"devices": {"results": [{"request": "gpu", "driver": "d", "pool": "n1", "device": "gpu-0", "adminAccess": null}]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}],
        },
    }));
    let requests = &claim.spec.devices.requests;
    let exactly = requests[0].exactly.as_ref().unwrap();
    assert_eq!((exactly.device_class_name.as_str(), exactly.count), ("gpu", 2));
    assert_eq!(
        exactly.capacity.as_ref().unwrap().requests["memory"],
        quantity("40Gi")
    );
    assert_eq!(requests[1].first_available.len(), 2);
    assert_eq!(
        claim.status.allocation.unwrap().devices.results[0].device,
        "gpu-0"
    );
    assert_eq!(claim.status.reserved_for[0].name, "p");

    let slice: ResourceSlice = read(json!({"spec": {
        "driver": "d", "nodeName": "n1", "pool": {"name": "n1", "generation": 4, "resourceSliceCount": 1}, "allNodes": null,
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "h100"}}, "capacity": {"memory": {"value": "80Gi"}}}],
    }}));
    assert_eq!(slice.spec.devices[0].capacity["memory"].value, quantity("80Gi"));
    assert_eq!(slice.spec.pool.generation, 4);

    let class: DeviceClass = read(json!({
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'd'"}}], "extendedResourceName": "nvidia.com/gpu"},
    }));
    assert_eq!(
        class.spec.selectors[0].cel.as_ref().unwrap().expression,
        "device.driver == 'd'"
    );
}
