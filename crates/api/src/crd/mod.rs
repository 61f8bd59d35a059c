//! The CRDs, generated from the types of this crate.
//!
//! ```text
//! types --schemars--> JSON schema with $defs ─┐
//! k8s-openapi (pod template, claim spec) ─────┴─ structural.rs ─> structural schema ─> CustomResourceDefinition
//!                                    overlay.rs ─┘  (what Kubernetes' schemas leave out)
//! ```
//!
//! So a field that is added to a type is in the CRD, with its doc comment as the description that
//! `kubectl explain` shows, and the schema of a pod follows Kubernetes' own.

mod foreign;
mod overlay;
mod structural;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::batch::{CronJob, Job};
use crate::bus::Command;
use crate::config::ColocationConfiguration;
use crate::flow::{JobFlow, JobTemplate};
use crate::meta::Resource;
use crate::names::{Kind, kinds};
use crate::nodeinfo::Numatopology;
use crate::scheduling::{PodGroup, Queue};
use crate::shard::NodeShard;
use crate::topology::HyperNode;

/// Every CRD, in the order of [`kinds::ALL`].
pub fn all() -> Vec<Value> {
    vec![
        of::<Job>(),
        of::<CronJob>(),
        of::<Command>(),
        of::<PodGroup>(),
        of::<Queue>(),
        of::<JobFlow>(),
        of::<JobTemplate>(),
        of::<Numatopology>(),
        of::<HyperNode>(),
        of::<NodeShard>(),
        of::<ColocationConfiguration>(),
    ]
}

/// The CRD of one kind.
pub fn of<T: Resource + JsonSchema>() -> Value {
    let kind = T::KIND;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.crd_name(),
            "annotations": {
                // Tools that look for generated CRDs know them by this one; Helm keeps the data on uninstall by the other.
                "controller-gen.kubebuilder.io/version": "v0.20.0",
                "helm.sh/resource-policy": "keep",
            },
        },
        "spec": {
            "group": kind.group,
            "names": names(&kind),
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "versions": [version(&kind, structural::schema_of::<T>())],
        },
    })
}

fn names(kind: &Kind) -> Value {
    let mut names = json!({
        "kind": kind.kind,
        "listKind": kind.list_kind(),
        "plural": kind.plural,
        "singular": kind.singular(),
    });
    if !kind.short_names.is_empty() {
        names["shortNames"] = json!(kind.short_names);
    }
    names
}

/// The one version, served and stored.
fn version(kind: &Kind, schema: Value) -> Value {
    let mut version = Map::new();
    version.insert("name".into(), kind.version.into());
    version.insert("served".into(), true.into());
    version.insert("storage".into(), true.into());
    version.insert("schema".into(), json!({"openAPIV3Schema": schema}));
    let columns = printer_columns(kind);
    if !columns.is_empty() {
        version.insert("additionalPrinterColumns".into(), columns.into());
    }
    if kind.status_subresource {
        version.insert("subresources".into(), json!({"status": {}}));
    } else if *kind == kinds::POD_GROUP {
        // Declared and empty, as installed clusters have it: clients write the status with the whole object.
        version.insert("subresources".into(), json!({}));
    }
    version.into()
}

/// What `kubectl get` shows besides the name.
fn printer_columns(kind: &Kind) -> Vec<Value> {
    const AGE: &str = ".metadata.creationTimestamp";
    match *kind {
        kinds::JOB => vec![
            column("STATUS", "string", ".status.state.phase"),
            column("minAvailable", "integer", ".status.minAvailable"),
            column("RUNNINGS", "integer", ".status.running"),
            column("AGE", "date", AGE),
            wide(column("QUEUE", "string", ".spec.queue")),
        ],
        kinds::POD_GROUP => vec![
            column("STATUS", "string", ".status.phase"),
            column("minMember", "integer", ".spec.minMember"),
            column("RUNNINGS", "integer", ".status.running"),
            column("AGE", "date", AGE),
            wide(column("QUEUE", "string", ".spec.queue")),
        ],
        kinds::QUEUE => vec![column("PARENT", "string", ".spec.parent")],
        kinds::JOB_FLOW => {
            vec![
                column("Status", "string", ".status.state.phase"),
                column("Age", "date", AGE),
            ]
        }
        kinds::HYPER_NODE => vec![
            column("Tier", "string", ".spec.tier"),
            column("TierName", "string", ".spec.tierName"),
            column("NodeCount", "integer", ".status.nodeCount"),
            column("Age", "date", AGE),
        ],
        kinds::NODE_SHARD => vec![column("AGE", "date", AGE)],
        _ => Vec::new(),
    }
}

fn column(name: &str, r#type: &str, path: &str) -> Value {
    json!({"name": name, "type": r#type, "jsonPath": path})
}

/// Shown with `-o wide` only.
fn wide(mut column: Value) -> Value {
    column["priority"] = 1.into();
    column
}
