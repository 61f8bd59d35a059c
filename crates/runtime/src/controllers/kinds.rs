//! The kinds that the controllers watch, and what a change of each is.

use super::store::job_of;
use crate::client::{DecodeError, Encoded, Resource};
use crate::watch::{Family, Gone, Object};
use volcano_api::batch::Job;
use volcano_api::bus::Command;
use volcano_api::core::{PersistentVolumeClaim, Pod, PodState, PriorityClass, Workload};
use volcano_api::names::kinds;
use volcano_api::protobuf::{self, Tables};
use volcano_api::scheduling::{PodGroup, Queue};

/// The watches of the controllers.
#[derive(Debug)]
pub struct Controlling;

/// A kind that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Jobs of this project.
    Job,
    /// PodGroups.
    PodGroup,
    /// Queues.
    Queue,
    /// Commands.
    Command,
    /// Pods.
    Pod,
    /// PersistentVolumeClaims.
    Claim,
    /// PriorityClasses.
    PriorityClass,
    /// ReplicaSets.
    ReplicaSet,
    /// StatefulSets.
    StatefulSet,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 9;
}

/// What changed.
#[derive(Debug)]
pub enum Change {
    /// A Job is there.
    Job(Box<Job>),
    /// A PodGroup is there.
    PodGroup(Box<PodGroup>),
    /// A Queue is there.
    Queue(Box<Queue>),
    /// A Command is there.
    Command(Box<Command>),
    /// A pod is there.
    Pod(Box<Pod>),
    /// A claim is there.
    Claim(Spot),
    /// A PriorityClass is there.
    PriorityClass(PriorityClass),
    /// A ReplicaSet or StatefulSet is there.
    Workload(Kind, Box<Workload>),
    /// An object is gone.
    Gone(Kind, Spot),
}

/// An object of which no more matters than that it is there, or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u64,
}

/// A version as a number: the API server counts, and within a kind the higher one is the newer one.
pub fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

impl Family for Controlling {
    type Kind = Kind;
    type Change = Change;

    fn gone(kind: Kind, object: &Gone<'_>) -> Change {
        let spot = Spot {
            namespace: object.namespace.to_owned(),
            name: object.name.to_owned(),
            version: number(object.version),
        };
        Change::Gone(kind, spot)
    }
}

/// A pod without its specification.
pub fn without_spec(state: PodState) -> Pod {
    Pod {
        metadata: state.metadata,
        status: state.status,
        ..Pod::default()
    }
}

/// Of the pods of Jobs, which are most of those that change, nobody here reads the specification.
fn read_pod(encoded: Encoded<'_>) -> Result<Pod, DecodeError> {
    let pod = without_spec(encoded.object()?);
    match job_of(&pod) {
        Some(_) => Ok(pod),
        None => encoded.object(),
    }
}

/// A ReplicaSet.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub struct ReplicaSet(Workload);

/// A StatefulSet.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub struct StatefulSet(Workload);

macro_rules! watched {
    ($($type:ident: $kind:ident = $api:ident [$($tables:ident $($read:ident)?)?] $object:ident => $metadata:expr, $change:expr;)*) => {$(
        impl Object<Controlling> for $type {
            const KIND: Kind = Kind::$kind;
            const RESOURCE: Resource = Resource::new(kinds::$api.group, kinds::$api.version, kinds::$api.plural);
            $(
                const PROTOBUF: Option<Tables> = Some(protobuf::$tables);
                $(fn read(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
                    $read(encoded)
                })?
            )?

            fn name(&self) -> (&str, &str) {
                let $object = self;
                (&$metadata.namespace, &$metadata.name)
            }

            fn version(&self) -> &str {
                let $object = self;
                &$metadata.resource_version
            }

            fn change(self) -> Change {
                let $object = self;
                $change
            }
        }
    )*};
}

watched! {
    Job: Job = JOB [] object => object.metadata, Change::Job(Box::new(object));
    PodGroup: PodGroup = POD_GROUP [] object => object.metadata, Change::PodGroup(Box::new(object));
    Queue: Queue = QUEUE [] object => object.metadata, Change::Queue(Box::new(object));
    Command: Command = COMMAND [] object => object.metadata, Change::Command(Box::new(object));
    Pod: Pod = POD [POD read_pod] object => object.metadata, Change::Pod(Box::new(object));
    PersistentVolumeClaim: Claim = PERSISTENT_VOLUME_CLAIM [PERSISTENT_VOLUME_CLAIM] object => object.metadata, {
        let metadata = object.metadata;
        Change::Claim(Spot { version: number(&metadata.resource_version), namespace: metadata.namespace, name: metadata.name })
    };
    PriorityClass: PriorityClass = PRIORITY_CLASS [PRIORITY_CLASS] object => object.metadata, Change::PriorityClass(object);
    ReplicaSet: ReplicaSet = REPLICA_SET [WORKLOAD] object => object.0.metadata, Change::Workload(Kind::ReplicaSet, Box::new(object.0));
    StatefulSet: StatefulSet = STATEFUL_SET [WORKLOAD] object => object.0.metadata, Change::Workload(Kind::StatefulSet, Box::new(object.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Format;
    use serde_json::{Value, json};

    fn read(owner: &Value) -> Pod {
        let pod = json!({
            "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "7", "ownerReferences": [owner]},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "main"}]},
            "status": {"phase": "Running"},
        })
        .to_string();
        let encoded = Encoded {
            format: Format::Json,
            bytes: pod.as_bytes(),
        };
        <Pod as Object<Controlling>>::read(encoded).unwrap()
    }

    #[test]
    fn the_specification_of_a_pod_is_read_unless_it_belongs_to_a_job() {
        let owner = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": true});
        let cases = [
            (
                "a Job of this project",
                owner("batch.volcano.sh/v1alpha1", "Job"),
                0,
            ),
            ("a Job of Kubernetes", owner("batch/v1", "Job"), 1),
            ("a ReplicaSet", owner("apps/v1", "ReplicaSet"), 1),
            ("nobody", json!({}), 1),
        ];
        for (name, owner, containers) in cases {
            let pod = read(&owner);
            assert_eq!(pod.spec.containers.len(), containers, "{name}");
            assert_eq!(pod.metadata.resource_version, "7", "{name}");
            assert_eq!(pod.status.phase, volcano_api::core::PodPhase::Running, "{name}");
        }
    }
}
