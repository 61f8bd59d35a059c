//! Field numbers, from the `generated.proto` files of Kubernetes: exactly the fields of the slim types.
//!
//! A field that a slim type gains goes in here as well; a test compares them.

use super::Form::{Inline, Integer, List, Map, Nested, Quantity, Text, Time, Truth};
use super::{Field, Message};

/// The tables of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// An object of the kind.
    pub object: Message,
    /// A list of such objects.
    pub list: Message,
}

macro_rules! messages {
    ($($name:ident { $($number:literal $field:literal: $form:expr,)* })*) => {$(
        const $name: Message = &[$(Field { number: $number, name: $field, form: $form },)*];
    )*};
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $object:ident,)*) => {$(
        $(#[$doc])*
        pub const $name: Tables = Tables {
            object: $object,
            list: &[
                Field { number: 1, name: "metadata", form: Nested(LIST_META) },
                Field { number: 2, name: "items", form: List(&Nested($object)) },
            ],
        };
    )*};
}

kinds! {
    /// `v1` Pod.
    POD: POD_OBJECT,
    /// `v1` Node.
    NODE: NODE_OBJECT,
    /// `v1` Namespace.
    NAMESPACE: NAMESPACE_OBJECT,
    /// `v1` PersistentVolumeClaim.
    PERSISTENT_VOLUME_CLAIM: CLAIM_OBJECT,
    /// `v1` PersistentVolume.
    PERSISTENT_VOLUME: VOLUME_OBJECT,
    /// `v1` ResourceQuota.
    RESOURCE_QUOTA: QUOTA_OBJECT,
    /// `storage.k8s.io/v1` StorageClass.
    STORAGE_CLASS: STORAGE_CLASS_OBJECT,
    /// `storage.k8s.io/v1` CSINode.
    CSI_NODE: CSI_NODE_OBJECT,
    /// `storage.k8s.io/v1` CSIDriver.
    CSI_DRIVER: CSI_DRIVER_OBJECT,
    /// `storage.k8s.io/v1` CSIStorageCapacity.
    CSI_STORAGE_CAPACITY: CSI_STORAGE_CAPACITY_OBJECT,
    /// `policy/v1` PodDisruptionBudget.
    POD_DISRUPTION_BUDGET: BUDGET_OBJECT,
    /// `scheduling.k8s.io/v1` PriorityClass.
    PRIORITY_CLASS: PRIORITY_CLASS_OBJECT,
    /// `apps/v1` ReplicaSet and StatefulSet: what is read has the same numbers in both.
    WORKLOAD: WORKLOAD_OBJECT,
}

/// `v1` Status, which the API server answers with when it refuses.
pub const STATUS: Message = &[
    Field {
        number: 3,
        name: "message",
        form: Text,
    },
    Field {
        number: 4,
        name: "reason",
        form: Text,
    },
    Field {
        number: 6,
        name: "code",
        form: Integer,
    },
];

messages! {
    LIST_META {
        2 "resourceVersion": Text,
        3 "continue": Text,
    }
    META {
        1 "name": Text,
        3 "namespace": Text,
        5 "uid": Text,
        6 "resourceVersion": Text,
        8 "creationTimestamp": Time,
        9 "deletionTimestamp": Time,
        11 "labels": Map(&Text),
        12 "annotations": Map(&Text),
        13 "ownerReferences": List(&Nested(OWNER)),
    }
    OWNER {
        1 "kind": Text,
        3 "name": Text,
        4 "uid": Text,
        5 "apiVersion": Text,
        6 "controller": Truth,
        7 "blockOwnerDeletion": Truth,
    }
    LABEL_SELECTOR {
        1 "matchLabels": Map(&Text),
        2 "matchExpressions": List(&Nested(REQUIREMENT)),
    }
    // Of labels and of node selectors: the numbers are the same.
    REQUIREMENT {
        1 "key": Text,
        2 "operator": Text,
        3 "values": List(&Text),
    }
}

// Pods.
messages! {
    POD_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(POD_SPEC),
        3 "status": Nested(POD_STATUS),
    }
    POD_SPEC {
        1 "volumes": List(&Nested(POD_VOLUME)),
        2 "containers": List(&Nested(CONTAINER)),
        7 "nodeSelector": Map(&Text),
        10 "nodeName": Text,
        11 "hostNetwork": Truth,
        18 "affinity": Nested(AFFINITY),
        19 "schedulerName": Text,
        20 "initContainers": List(&Nested(CONTAINER)),
        22 "tolerations": List(&Nested(TOLERATION)),
        24 "priorityClassName": Text,
        25 "priority": Integer,
        31 "preemptionPolicy": Text,
        32 "overhead": Map(&Quantity),
        33 "topologySpreadConstraints": List(&Nested(SPREAD_CONSTRAINT)),
        38 "schedulingGates": List(&Nested(SCHEDULING_GATE)),
        39 "resourceClaims": List(&Nested(POD_RESOURCE_CLAIM)),
        40 "resources": Nested(RESOURCES),
    }
    POD_STATUS {
        1 "phase": Text,
        2 "conditions": List(&Nested(POD_CONDITION)),
        7 "startTime": Time,
        8 "containerStatuses": List(&Nested(CONTAINER_STATUS)),
        10 "initContainerStatuses": List(&Nested(CONTAINER_STATUS)),
        11 "nominatedNodeName": Text,
        14 "resize": Text,
        15 "resourceClaimStatuses": List(&Nested(POD_RESOURCE_CLAIM_STATUS)),
    }
    CONTAINER {
        1 "name": Text,
        2 "image": Text,
        6 "ports": List(&Nested(CONTAINER_PORT)),
        8 "resources": Nested(RESOURCES),
        24 "restartPolicy": Text,
    }
    // Of containers and of claims: the numbers are the same.
    RESOURCES {
        1 "limits": Map(&Quantity),
        2 "requests": Map(&Quantity),
    }
    CONTAINER_PORT {
        2 "hostPort": Integer,
        3 "containerPort": Integer,
        4 "protocol": Text,
        5 "hostIP": Text,
    }
    TOLERATION {
        1 "key": Text,
        2 "operator": Text,
        3 "value": Text,
        4 "effect": Text,
        5 "tolerationSeconds": Integer,
    }
    POD_VOLUME {
        1 "name": Text,
        2 "volumeSource": Inline(POD_VOLUME_SOURCE),
    }
    POD_VOLUME_SOURCE {
        10 "persistentVolumeClaim": Nested(POD_VOLUME_CLAIM),
        29 "ephemeral": Nested(EPHEMERAL_VOLUME),
    }
    POD_VOLUME_CLAIM {
        1 "claimName": Text,
    }
    EPHEMERAL_VOLUME {
        1 "volumeClaimTemplate": Nested(CLAIM_TEMPLATE),
    }
    CLAIM_TEMPLATE {
        2 "spec": Nested(CLAIM_SPEC),
    }
    SCHEDULING_GATE {
        1 "name": Text,
    }
    POD_RESOURCE_CLAIM {
        1 "name": Text,
        3 "resourceClaimName": Text,
        4 "resourceClaimTemplateName": Text,
    }
    POD_RESOURCE_CLAIM_STATUS {
        1 "name": Text,
        2 "resourceClaimName": Text,
    }
    POD_CONDITION {
        1 "type": Text,
        2 "status": Text,
        4 "lastTransitionTime": Time,
        5 "reason": Text,
        6 "message": Text,
    }
    CONTAINER_STATUS {
        1 "name": Text,
        2 "state": Nested(CONTAINER_STATE),
        3 "lastState": Nested(CONTAINER_STATE),
        4 "ready": Truth,
        5 "restartCount": Integer,
        10 "allocatedResources": Map(&Quantity),
        11 "resources": Nested(RESOURCES),
    }
    CONTAINER_STATE {
        3 "terminated": Nested(CONTAINER_END),
    }
    CONTAINER_END {
        1 "exitCode": Integer,
        6 "finishedAt": Time,
    }
}

// Affinity and spreading.
messages! {
    AFFINITY {
        1 "nodeAffinity": Nested(NODE_AFFINITY),
        2 "podAffinity": Nested(POD_AFFINITY),
        3 "podAntiAffinity": Nested(POD_AFFINITY),
    }
    NODE_AFFINITY {
        1 "requiredDuringSchedulingIgnoredDuringExecution": Nested(NODE_SELECTOR),
        2 "preferredDuringSchedulingIgnoredDuringExecution": List(&Nested(PREFERRED_NODE_TERM)),
    }
    PREFERRED_NODE_TERM {
        1 "weight": Integer,
        2 "preference": Nested(NODE_SELECTOR_TERM),
    }
    NODE_SELECTOR {
        1 "nodeSelectorTerms": List(&Nested(NODE_SELECTOR_TERM)),
    }
    NODE_SELECTOR_TERM {
        1 "matchExpressions": List(&Nested(REQUIREMENT)),
        2 "matchFields": List(&Nested(REQUIREMENT)),
    }
    POD_AFFINITY {
        1 "requiredDuringSchedulingIgnoredDuringExecution": List(&Nested(POD_AFFINITY_TERM)),
        2 "preferredDuringSchedulingIgnoredDuringExecution": List(&Nested(WEIGHTED_POD_TERM)),
    }
    POD_AFFINITY_TERM {
        1 "labelSelector": Nested(LABEL_SELECTOR),
        2 "namespaces": List(&Text),
        3 "topologyKey": Text,
        4 "namespaceSelector": Nested(LABEL_SELECTOR),
        5 "matchLabelKeys": List(&Text),
        6 "mismatchLabelKeys": List(&Text),
    }
    WEIGHTED_POD_TERM {
        1 "weight": Integer,
        2 "podAffinityTerm": Nested(POD_AFFINITY_TERM),
    }
    SPREAD_CONSTRAINT {
        1 "maxSkew": Integer,
        2 "topologyKey": Text,
        3 "whenUnsatisfiable": Text,
        4 "labelSelector": Nested(LABEL_SELECTOR),
        5 "minDomains": Integer,
        6 "nodeAffinityPolicy": Text,
        7 "nodeTaintsPolicy": Text,
        8 "matchLabelKeys": List(&Text),
    }
}

// Nodes, namespaces, quotas, budgets, priorities.
messages! {
    NODE_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(NODE_SPEC),
        3 "status": Nested(NODE_STATUS),
    }
    NODE_SPEC {
        4 "unschedulable": Truth,
        5 "taints": List(&Nested(TAINT)),
    }
    NODE_STATUS {
        1 "capacity": Map(&Quantity),
        2 "allocatable": Map(&Quantity),
        4 "conditions": List(&Nested(NODE_CONDITION)),
        8 "images": List(&Nested(CONTAINER_IMAGE)),
    }
    TAINT {
        1 "key": Text,
        2 "value": Text,
        3 "effect": Text,
    }
    NODE_CONDITION {
        1 "type": Text,
        2 "status": Text,
    }
    CONTAINER_IMAGE {
        1 "names": List(&Text),
        2 "sizeBytes": Integer,
    }
    NAMESPACE_OBJECT {
        1 "metadata": Nested(META),
    }
    QUOTA_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(QUOTA_SPEC),
        3 "status": Nested(QUOTA_STATUS),
    }
    QUOTA_SPEC {
        1 "hard": Map(&Quantity),
    }
    QUOTA_STATUS {
        1 "hard": Map(&Quantity),
        2 "used": Map(&Quantity),
    }
    BUDGET_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(BUDGET_SPEC),
        3 "status": Nested(BUDGET_STATUS),
    }
    BUDGET_SPEC {
        2 "selector": Nested(LABEL_SELECTOR),
    }
    BUDGET_STATUS {
        2 "disruptedPods": Map(&Time),
        3 "disruptionsAllowed": Integer,
    }
    WORKLOAD_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(WORKLOAD_SPEC),
    }
    WORKLOAD_SPEC {
        1 "replicas": Integer,
        3 "template": Nested(WORKLOAD_TEMPLATE),
    }
    WORKLOAD_TEMPLATE {
        2 "spec": Nested(WORKLOAD_POD),
    }
    WORKLOAD_POD {
        19 "schedulerName": Text,
    }
    PRIORITY_CLASS_OBJECT {
        1 "metadata": Nested(META),
        2 "value": Integer,
        3 "globalDefault": Truth,
        5 "preemptionPolicy": Text,
    }
}

// Volumes.
messages! {
    CLAIM_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(CLAIM_SPEC),
        3 "status": Nested(PHASE),
    }
    CLAIM_SPEC {
        1 "accessModes": List(&Text),
        2 "resources": Nested(RESOURCES),
        3 "volumeName": Text,
        4 "selector": Nested(LABEL_SELECTOR),
        5 "storageClassName": Text,
        6 "volumeMode": Text,
    }
    // The status of claims and of volumes.
    PHASE {
        1 "phase": Text,
    }
    VOLUME_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(VOLUME_SPEC),
        3 "status": Nested(PHASE),
    }
    VOLUME_SPEC {
        1 "capacity": Map(&Quantity),
        2 "persistentVolumeSource": Inline(VOLUME_SOURCE),
        3 "accessModes": List(&Text),
        4 "claimRef": Nested(CLAIM_REF),
        6 "storageClassName": Text,
        8 "volumeMode": Text,
        9 "nodeAffinity": Nested(VOLUME_NODE_AFFINITY),
    }
    VOLUME_SOURCE {
        22 "csi": Nested(CSI_SOURCE),
    }
    CLAIM_REF {
        2 "namespace": Text,
        3 "name": Text,
        4 "uid": Text,
    }
    VOLUME_NODE_AFFINITY {
        1 "required": Nested(NODE_SELECTOR),
    }
    CSI_SOURCE {
        1 "driver": Text,
        2 "volumeHandle": Text,
    }
    STORAGE_CLASS_OBJECT {
        1 "metadata": Nested(META),
        2 "provisioner": Text,
        3 "parameters": Map(&Text),
        7 "volumeBindingMode": Text,
        8 "allowedTopologies": List(&Nested(TOPOLOGY_TERM)),
    }
    TOPOLOGY_TERM {
        1 "matchLabelExpressions": List(&Nested(TOPOLOGY_LABEL)),
    }
    TOPOLOGY_LABEL {
        1 "key": Text,
        2 "values": List(&Text),
    }
    CSI_NODE_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(CSI_NODE_SPEC),
    }
    CSI_NODE_SPEC {
        1 "drivers": List(&Nested(CSI_NODE_DRIVER)),
    }
    CSI_NODE_DRIVER {
        1 "name": Text,
        4 "allocatable": Nested(CSI_VOLUME_LIMIT),
    }
    CSI_VOLUME_LIMIT {
        1 "count": Integer,
    }
    CSI_DRIVER_OBJECT {
        1 "metadata": Nested(META),
        2 "spec": Nested(CSI_DRIVER_SPEC),
    }
    CSI_DRIVER_SPEC {
        4 "storageCapacity": Truth,
    }
    CSI_STORAGE_CAPACITY_OBJECT {
        1 "metadata": Nested(META),
        2 "nodeTopology": Nested(LABEL_SELECTOR),
        3 "storageClassName": Text,
        4 "capacity": Quantity,
        5 "maximumVolumeSize": Quantity,
    }
}
