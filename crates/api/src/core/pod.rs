//! Pods.

use serde::{Deserialize, Deserializer, Serialize};

use super::{Affinity, Labels, Meta, ResourceList, TopologySpreadConstraint};
use crate::time::Time;

slim! {
    /// A pod.
    pub struct Pod {
        /// Name, labels, owners.
        pub metadata: Meta,
        /// What is wanted.
        pub spec: PodSpec,
        /// What is.
        pub status: PodStatus,
    }

    /// What is of a pod, whatever it wants, for those who have no use for its specification, which is most of it.
    pub struct PodState {
        /// Name, labels, owners.
        pub metadata: Meta,
        /// What is.
        pub status: PodStatus,
    }

    /// What a pod wants.
    pub struct PodSpec {
        /// The node it is bound to; empty while it waits.
        pub node_name: String,
        /// The scheduler that is to place it.
        pub scheduler_name: String,
        /// Priority, as resolved from the class by the API server.
        pub priority: Option<i32>,
        /// Name of the priority class.
        pub priority_class_name: String,
        /// `Never` or `PreemptLowerPriority` (default).
        pub preemption_policy: Option<String>,
        /// Labels that the node must have.
        pub node_selector: Labels,
        /// Affinity to nodes and pods.
        pub affinity: Option<Affinity>,
        /// Taints it puts up with.
        pub tolerations: Vec<Toleration>,
        /// How it is to be spread with others.
        pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
        /// Containers that run side by side.
        pub containers: Vec<Container>,
        /// Containers that run first, one after the other, and sidecars.
        pub init_containers: Vec<Container>,
        /// Resources of the pod as a whole.
        pub resources: Option<ResourceRequirements>,
        /// What the sandbox itself takes.
        pub overhead: ResourceList,
        /// Volumes that may need a claim.
        pub volumes: Vec<PodVolume>,
        /// While there is one, the pod is not to be placed.
        pub scheduling_gates: Vec<PodSchedulingGate>,
        /// Whether it shares the node's network, so that container ports are host ports.
        pub host_network: bool,
        /// Claims on devices.
        pub resource_claims: Vec<PodResourceClaim>,
    }

    /// What a pod is.
    pub struct PodStatus {
        /// Where it is in its life.
        pub phase: PodPhase,
        /// Conditions.
        pub conditions: Vec<PodCondition>,
        /// The node for which others were preempted on its behalf.
        pub nominated_node_name: String,
        /// When the node took it on.
        pub start_time: Option<Time>,
        /// Status of the containers.
        pub container_statuses: Vec<ContainerStatus>,
        /// Status of the init containers.
        pub init_container_statuses: Vec<ContainerStatus>,
        /// State of a resize in place, in the form before conditions said it (`Infeasible`, …).
        pub resize: String,
        /// Claims that were made for the pod.
        pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
    }

    /// A container.
    pub struct Container {
        /// Name, unique in the pod.
        pub name: String,
        /// Image.
        pub image: String,
        /// Resources.
        pub resources: ResourceRequirements,
        /// Ports.
        pub ports: Vec<ContainerPort>,
        /// `Always` makes an init container a sidecar.
        pub restart_policy: Option<String>,
    }

    /// Amounts asked for, and upper bounds.
    pub struct ResourceRequirements {
        /// What scheduling sets aside.
        pub requests: ResourceList,
        /// What the node enforces.
        pub limits: ResourceList,
    }

    /// A port of a container.
    pub struct ContainerPort {
        /// Port inside.
        pub container_port: i32,
        /// Port on the node; 0 for none.
        pub host_port: i32,
        /// Address on the node; empty for all.
        #[serde(rename = "hostIP")]
        pub host_ip: String,
        /// `TCP` (default, also when empty), `UDP` or `SCTP`.
        pub protocol: String,
    }

    /// A taint that a pod puts up with.
    pub struct Toleration {
        /// Key; empty with operator `Exists` tolerates everything.
        pub key: String,
        /// `Equal` (default, also when empty), `Exists`, `Gt` or `Lt`.
        pub operator: String,
        /// Value for `Equal`.
        pub value: String,
        /// Effect; empty for all.
        pub effect: String,
        /// How long a `NoExecute` taint is put up with.
        pub toleration_seconds: Option<i64>,
    }

    /// A volume, as far as it needs a claim.
    pub struct PodVolume {
        /// Name, unique in the pod.
        pub name: String,
        /// The claim it uses.
        pub persistent_volume_claim: Option<PodVolumeClaim>,
        /// The claim that is made for it, named `<pod>-<volume>`.
        pub ephemeral: Option<EphemeralVolume>,
    }

    /// A claim used by a volume.
    pub struct PodVolumeClaim {
        /// Name of the claim.
        pub claim_name: String,
    }

    /// A volume with a claim of its own.
    pub struct EphemeralVolume {
        /// What the claim will look like.
        pub volume_claim_template: EphemeralVolumeClaimTemplate,
    }

    /// Template of the claim of an ephemeral volume.
    pub struct EphemeralVolumeClaimTemplate {
        /// The claim's spec.
        pub spec: super::PersistentVolumeClaimSpec,
    }

    /// A reason why the pod is not to be placed yet.
    pub struct PodSchedulingGate {
        /// Name of the gate.
        pub name: String,
    }

    /// A claim on devices.
    pub struct PodResourceClaim {
        /// Name in the pod.
        pub name: String,
        /// The claim that exists.
        pub resource_claim_name: Option<String>,
        /// The template of the claim to be made.
        pub resource_claim_template_name: Option<String>,
    }

    /// The claim that was made for one entry of the pod's claims.
    pub struct PodResourceClaimStatus {
        /// Name in the pod.
        pub name: String,
        /// The claim; absent when none was needed.
        pub resource_claim_name: Option<String>,
    }

    /// A condition of a pod.
    pub struct PodCondition {
        /// Type.
        #[serde(rename = "type")]
        pub kind: String,
        /// `True`, `False` or `Unknown`.
        pub status: String,
        /// Reason, in one word.
        pub reason: String,
        /// Reason, in words.
        pub message: String,
        /// When the status changed last.
        pub last_transition_time: Option<Time>,
    }

    /// What a container really has. How it runs is read and not printed: to scheduling, equal pods stay equal while
    /// their containers come and go.
    pub struct ContainerStatus {
        /// Name of the container.
        pub name: String,
        /// Whether it serves.
        #[serde(skip_serializing)]
        pub ready: bool,
        /// How often it was started again.
        #[serde(skip_serializing)]
        pub restart_count: i32,
        /// How it is.
        #[serde(skip_serializing)]
        pub state: ContainerState,
        /// How it was before it was started again.
        #[serde(skip_serializing)]
        pub last_state: ContainerState,
        /// What the running container was given.
        pub resources: Option<ResourceRequirements>,
        /// What the node has set aside for it.
        pub allocated_resources: ResourceList,
    }

    /// How a container is.
    pub struct ContainerState {
        /// How it ended, once it has.
        pub terminated: Option<ContainerEnd>,
    }

    /// How a container ended.
    pub struct ContainerEnd {
        /// What it returned.
        pub exit_code: i32,
        /// When it ended.
        pub finished_at: Option<Time>,
    }
}

impl PodSpec {
    /// All containers: the init containers first.
    pub fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.init_containers.iter().chain(&self.containers)
    }
}

impl Container {
    /// Whether, as an init container, it goes on running beside the others.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// Where a pod is in its life.
///
/// A pod without a phase is pending, since that is what the API server makes of a new one; an unknown word is
/// `Unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum PodPhase {
    /// Not all containers have been started.
    #[default]
    Pending,
    /// Bound, and at least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, one of them badly.
    Failed,
    /// The node does not answer.
    Unknown,
}

impl PodPhase {
    /// The phase as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            PodPhase::Pending => "Pending",
            PodPhase::Running => "Running",
            PodPhase::Succeeded => "Succeeded",
            PodPhase::Failed => "Failed",
            PodPhase::Unknown => "Unknown",
        }
    }

    /// Whether the pod has ended and holds no resources.
    pub const fn is_terminated(self) -> bool {
        matches!(self, PodPhase::Succeeded | PodPhase::Failed)
    }
}

impl From<&str> for PodPhase {
    fn from(text: &str) -> Self {
        match text {
            "" | "Pending" => PodPhase::Pending,
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            _ => PodPhase::Unknown,
        }
    }
}

impl<'de> Deserialize<'de> for PodPhase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| PodPhase::from(text.as_str()))
    }
}
