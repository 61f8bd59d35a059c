//! The table of built-in resources: those that the system and its users touch. A line is all that a plain one takes.

use crate::schema::{Schema, builtin::schema};
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, batch::v1 as batch,
    coordination::v1 as coordination, core::v1 as core, discovery::v1 as discovery,
    networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
    scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use std::sync::Arc;

/// What is special about a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nature {
    /// Nothing: it is stored.
    #[default]
    Plain,
    /// Pods: defaults, binding, eviction, graceful deletion.
    Pod,
    /// Nodes.
    Node,
    /// Namespaces: their objects go with them.
    Namespace,
    /// Services: addresses and endpoints.
    Service,
    /// Endpoints, which follow services.
    Endpoints,
    /// ConfigMaps: may be immutable.
    ConfigMap,
    /// Secrets: texts are encoded; may be immutable.
    Secret,
    /// ServiceAccounts: every namespace has one.
    ServiceAccount,
    /// Claims of volumes.
    Claim,
    /// Volumes.
    Volume,
    /// Priority classes: pods get their values.
    PriorityClass,
    /// Budgets of disruptions: evictions ask them.
    Budget,
    /// Events, which are many.
    Event,
    /// Definitions of resources.
    Definition,
    /// Webhooks that change.
    Mutating,
    /// Webhooks that judge.
    Validating,
    /// Deployments, ReplicaSets and the like: stored, with generations.
    Workload,
}

/// A line of the table.
pub struct Row {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) short_names: &'static [&'static str],
    pub(super) categories: &'static [&'static str],
    pub(super) namespaced: bool,
    pub(super) status: bool,
    pub(super) scale: bool,
    pub(super) fields: &'static [&'static str],
    pub(super) nature: Nature,
    pub(super) schema: fn() -> Arc<Schema>,
}

const fn row(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    schema: fn() -> Arc<Schema>,
) -> Row {
    Row {
        group,
        version: "v1",
        kind,
        plural,
        short_names,
        categories: &[],
        namespaced,
        status: false,
        scale: false,
        fields: &[],
        nature: Nature::Plain,
        schema,
    }
}

impl Row {
    const fn is(mut self, nature: Nature) -> Row {
        self.nature = nature;
        self
    }

    const fn with_status(mut self) -> Row {
        self.status = true;
        self
    }

    const fn scaled(mut self) -> Row {
        self.scale = true;
        self
    }

    const fn by(mut self, fields: &'static [&'static str]) -> Row {
        self.fields = fields;
        self
    }

    const fn in_all(mut self) -> Row {
        self.categories = &["all"];
        self
    }
}

const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source.component",
    "type",
];

const CORE: &str = "";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Every built-in resource.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row(CORE, "Pod", "pods", &["po"], true, schema::<core::Pod>).is(Nature::Pod).with_status().by(POD_FIELDS).in_all(),
    row(CORE, "Node", "nodes", &["no"], false, schema::<core::Node>).is(Nature::Node).with_status().by(&["spec.unschedulable"]),
    row(CORE, "Namespace", "namespaces", &["ns"], false, schema::<core::Namespace>).is(Nature::Namespace).with_status().by(&["status.phase"]),
    row(CORE, "Service", "services", &["svc"], true, schema::<core::Service>).is(Nature::Service).with_status().by(&["spec.clusterIP", "spec.type"]).in_all(),
    row(CORE, "Endpoints", "endpoints", &["ep"], true, schema::<core::Endpoints>).is(Nature::Endpoints),
    row(CORE, "ConfigMap", "configmaps", &["cm"], true, schema::<core::ConfigMap>).is(Nature::ConfigMap),
    row(CORE, "Secret", "secrets", &[], true, schema::<core::Secret>).is(Nature::Secret).by(&["type"]),
    row(CORE, "Event", "events", &["ev"], true, schema::<core::Event>).is(Nature::Event).by(EVENT_FIELDS),
    row(CORE, "ServiceAccount", "serviceaccounts", &["sa"], true, schema::<core::ServiceAccount>).is(Nature::ServiceAccount),
    row(CORE, "PersistentVolume", "persistentvolumes", &["pv"], false, schema::<core::PersistentVolume>).is(Nature::Volume).with_status(),
    row(CORE, "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], true, schema::<core::PersistentVolumeClaim>).is(Nature::Claim).with_status(),
    row(CORE, "ResourceQuota", "resourcequotas", &["quota"], true, schema::<core::ResourceQuota>).with_status(),
    row(CORE, "LimitRange", "limitranges", &["limits"], true, schema::<core::LimitRange>),
    row(CORE, "PodTemplate", "podtemplates", &[], true, schema::<core::PodTemplate>),
    row(CORE, "ReplicationController", "replicationcontrollers", &["rc"], true, schema::<core::ReplicationController>).is(Nature::Workload).with_status().scaled().in_all(),
    row("apps", "Deployment", "deployments", &["deploy"], true, schema::<apps::Deployment>).is(Nature::Workload).with_status().scaled().in_all(),
    row("apps", "ReplicaSet", "replicasets", &["rs"], true, schema::<apps::ReplicaSet>).is(Nature::Workload).with_status().scaled().in_all(),
    row("apps", "StatefulSet", "statefulsets", &["sts"], true, schema::<apps::StatefulSet>).is(Nature::Workload).with_status().scaled().in_all(),
    row("apps", "DaemonSet", "daemonsets", &["ds"], true, schema::<apps::DaemonSet>).is(Nature::Workload).with_status().in_all(),
    row("apps", "ControllerRevision", "controllerrevisions", &[], true, schema::<apps::ControllerRevision>),
    row("batch", "Job", "jobs", &[], true, schema::<batch::Job>).is(Nature::Workload).with_status().in_all(),
    row("batch", "CronJob", "cronjobs", &["cj"], true, schema::<batch::CronJob>).is(Nature::Workload).with_status().in_all(),
    row("coordination.k8s.io", "Lease", "leases", &[], true, schema::<coordination::Lease>),
    row("discovery.k8s.io", "EndpointSlice", "endpointslices", &[], true, schema::<discovery::EndpointSlice>),
    row("networking.k8s.io", "NetworkPolicy", "networkpolicies", &["netpol"], true, schema::<networking::NetworkPolicy>),
    row("networking.k8s.io", "Ingress", "ingresses", &["ing"], true, schema::<networking::Ingress>).with_status(),
    row("node.k8s.io", "RuntimeClass", "runtimeclasses", &[], false, schema::<node::RuntimeClass>),
    row("policy", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"], true, schema::<policy::PodDisruptionBudget>).is(Nature::Budget).with_status(),
    row(RBAC, "Role", "roles", &[], true, schema::<rbac::Role>),
    row(RBAC, "RoleBinding", "rolebindings", &[], true, schema::<rbac::RoleBinding>),
    row(RBAC, "ClusterRole", "clusterroles", &[], false, schema::<rbac::ClusterRole>),
    row(RBAC, "ClusterRoleBinding", "clusterrolebindings", &[], false, schema::<rbac::ClusterRoleBinding>),
    row("scheduling.k8s.io", "PriorityClass", "priorityclasses", &["pc"], false, schema::<scheduling::PriorityClass>).is(Nature::PriorityClass),
    row(STORAGE, "StorageClass", "storageclasses", &["sc"], false, schema::<storage::StorageClass>),
    row(STORAGE, "CSIDriver", "csidrivers", &[], false, schema::<storage::CSIDriver>),
    row(STORAGE, "CSINode", "csinodes", &[], false, schema::<storage::CSINode>),
    row(STORAGE, "CSIStorageCapacity", "csistoragecapacities", &[], true, schema::<storage::CSIStorageCapacity>),
    row(STORAGE, "VolumeAttachment", "volumeattachments", &[], false, schema::<storage::VolumeAttachment>).with_status(),
    row(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", &[], false, schema::<admission::MutatingWebhookConfiguration>).is(Nature::Mutating),
    row(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", &[], false, schema::<admission::ValidatingWebhookConfiguration>).is(Nature::Validating),
    row("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", &["crd", "crds"], false, schema::<extensions::CustomResourceDefinition>).is(Nature::Definition).with_status(),
];
