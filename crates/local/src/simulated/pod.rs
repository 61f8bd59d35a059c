//! Pods as a simulated node sees them: no more is read than it needs.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use volcano_api::time::Time;
use volcano_runtime::client::Resource;
use volcano_runtime::watch::{Family, Gone, Object};

/// Where pods are.
pub const PODS: Resource = Resource::new("", "v1", "pods");

/// The watch of simulated nodes.
#[derive(Debug)]
pub struct Simulating;

/// What a watch tells.
#[derive(Debug)]
pub enum Change {
    /// A pod is there, new or changed.
    Pod(Box<Pod>),
    /// A pod is gone.
    Gone {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl Family for Simulating {
    type Kind = &'static str;
    type Change = Change;

    fn gone(_: &'static str, object: &Gone<'_>) -> Change {
        Change::Gone {
            namespace: object.namespace.to_owned(),
            name: object.name.to_owned(),
        }
    }
}

impl Object<Simulating> for Pod {
    const KIND: &'static str = "Pod";
    const RESOURCE: Resource = PODS;

    fn name(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }

    fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    fn change(self) -> Change {
        Change::Pod(Box::new(self))
    }
}

/// A pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: Metadata,
    pub spec: Spec,
    pub status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    pub deletion_timestamp: Option<Time>,
    pub deletion_grace_period_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    pub node_name: String,
    pub restart_policy: RestartPolicy,
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Container {
    pub name: String,
    pub image: String,
    #[serde(deserialize_with = "or_default")]
    pub command: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub args: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    pub phase: String,
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    pub start_time: Option<Time>,
    #[serde(deserialize_with = "or_default")]
    pub container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    pub restart_count: u32,
    #[serde(deserialize_with = "or_default")]
    pub state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    pub running: Option<Running>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Running {
    pub started_at: Option<Time>,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
