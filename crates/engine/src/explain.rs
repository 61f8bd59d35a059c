//! Why things are not as a user wants them, as data: made where the decision is made, and printed in one way by
//! every caller (PodGroup condition, pod condition, `volcano plan`).

use crate::ids::{DimId, JobId, QueueId, Sym, TaskId};
use crate::model::Model;
use crate::model::status::{self, Status};
use crate::resource::PODS;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use volcano_api::names::{messages, reasons};

/// Why a task cannot go to a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FitReason {
    /// Too little of a resource.
    Insufficient(DimId),
    /// The node takes no more pods.
    PodNumber,
    /// The node is cordoned.
    Unschedulable,
    /// Node selector or node affinity.
    NodeAffinity,
    /// A taint that the pod does not tolerate.
    Taint,
    /// A host port is taken.
    HostPort,
    /// No pod nearby that it must be near.
    PodAffinity,
    /// A pod nearby that it must not be near.
    PodAntiAffinity,
    /// A pod nearby that does not want it near.
    ExistingAntiAffinity,
    /// Pods would be spread too unevenly.
    Spread,
    /// The node lacks the label that pods are spread over.
    SpreadLabel,
    /// Too many volumes of a driver.
    VolumeLimit,
    /// A volume is in another zone.
    VolumeZone,
    /// A volume cannot be reached from the node.
    VolumeNodeAffinity,
    /// No volume that the claim could bind to.
    VolumeBind,
    /// The task cannot be judged at all; the text says why.
    PrePredicate {
        /// The plugin that says so.
        plugin: &'static str,
        /// What it says.
        message: Arc<str>,
    },
    /// The node is another scheduler's.
    OtherShard,
    /// A reason of a plugin, with its own text.
    Other(Arc<str>),
}

/// All reasons of one node.
pub type Reasons = SmallVec<[FitReason; 1]>;

impl FitReason {
    /// Evicting pods from the node could help.
    pub fn is_resolvable(&self) -> bool {
        matches!(
            self,
            FitReason::Insufficient(_)
                | FitReason::PodNumber
                | FitReason::HostPort
                | FitReason::PodAntiAffinity
                | FitReason::ExistingAntiAffinity
                | FitReason::Spread
                | FitReason::VolumeLimit
        )
    }

    /// The wording that users know.
    pub fn text(&self, m: &Model) -> String {
        match self {
            FitReason::Insufficient(dim) => format!("Insufficient {}", m.dims.name(*dim)),
            FitReason::PrePredicate { plugin, message } => {
                format!("plugin {plugin} pre-predicates failed {message}")
            }
            FitReason::Other(text) => text.to_string(),
            FitReason::OtherShard => messages::NODE_NOT_IN_SHARD.to_owned(),
            FitReason::PodNumber => messages::NODE_POD_NUMBER_EXCEEDED.to_owned(),
            FitReason::Unschedulable => messages::NODE_UNSCHEDULABLE.to_owned(),
            FitReason::NodeAffinity => messages::NODE_AFFINITY.to_owned(),
            FitReason::Taint => messages::TAINTS.to_owned(),
            FitReason::HostPort => messages::NODE_PORTS.to_owned(),
            FitReason::PodAffinity => messages::POD_AFFINITY.to_owned(),
            FitReason::PodAntiAffinity => messages::POD_ANTI_AFFINITY.to_owned(),
            FitReason::ExistingAntiAffinity => messages::EXISTING_ANTI_AFFINITY.to_owned(),
            FitReason::Spread => messages::TOPOLOGY_SPREAD.to_owned(),
            FitReason::SpreadLabel => messages::TOPOLOGY_SPREAD_LABEL.to_owned(),
            FitReason::VolumeLimit => messages::MAX_VOLUME_COUNT.to_owned(),
            FitReason::VolumeZone => messages::VOLUME_ZONE.to_owned(),
            FitReason::VolumeNodeAffinity => messages::VOLUME_NODE_AFFINITY.to_owned(),
            FitReason::VolumeBind => messages::NO_PERSISTENT_VOLUMES.to_owned(),
        }
    }
}

/// Why a task was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FitError {
    /// Each reason with the number of nodes that have it.
    Nodes {
        /// Nodes with a recorded reason.
        nodes: u32,
        /// Number of nodes by reason.
        reasons: BTreeMap<FitReason, u32>,
        /// The hypernode that the attempt was limited to.
        hyper_node: Option<Arc<str>>,
    },
    /// Another task of the same role has failed already.
    RoleFailed {
        /// The role.
        role: Sym,
    },
}

impl FitError {
    /// The wording that users know; `task` is the name of the pod.
    pub fn text(&self, m: &Model, task: &str) -> String {
        match self {
            FitError::RoleFailed { role } => {
                let role = m.text(*role);
                format!("Task {task} with role spec {role} has already predicated failed, skip")
            }
            FitError::Nodes {
                nodes,
                reasons,
                hyper_node,
            } => {
                let mut text = String::new();
                if let Some(name) = hyper_node {
                    write!(text, "In hyperNode {name}: ").expect("a String takes any text");
                }
                write!(text, "0/{nodes} nodes are unavailable").expect("a String takes any text");
                if !reasons.is_empty() {
                    let mut parts: Vec<_> = reasons
                        .iter()
                        .map(|(reason, count)| format!("{count} {}", reason.text(m)))
                        .collect();
                    parts.sort_unstable();
                    write!(text, ": {}.", parts.join(", ")).expect("a String takes any text");
                }
                text
            }
        }
    }
}

/// Something that was short, and by how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The resource.
    pub dim: DimId,
    /// What is needed, what is already claimed included.
    pub needed: i64,
    /// What there is.
    pub limit: i64,
}

/// Why a job was not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionReason {
    /// Admitted work would exceed what the cluster may be overcommitted to.
    Overcommitted(Vec<Shortfall>),
    /// A queue, the job's own or an ancestor, would exceed its capability.
    QueueQuota {
        /// That queue.
        queue: QueueId,
        /// What is short in it.
        short: Vec<Shortfall>,
    },
    /// The queue takes no new jobs.
    QueueNotOpen(QueueId),
    /// The queue has child queues; only leaves take jobs.
    NotALeafQueue(QueueId),
    /// The queue's place in the hierarchy is broken; the text says how.
    InvalidQueue(QueueId, Arc<str>),
    /// A plugin's own reason.
    Other(Arc<str>),
}

impl AdmissionReason {
    /// The event message that users know.
    pub fn text(&self, m: &Model) -> String {
        let names = |word: &str, short: &[Shortfall]| {
            let mut dims: Vec<DimId> = short.iter().map(|s| s.dim).collect();
            // `cpu` and `memory` first, the others by name, whatever order they became known in.
            dims.sort_by_key(|&dim| (dim.min(PODS), m.dims.name(dim)));
            let parts: Vec<_> = dims
                .iter()
                .map(|&dim| format!("{word} {}", m.dims.name(dim)))
                .collect();
            parts.join(", ")
        };
        let queue_name = |queue: &QueueId| m.text(m.queue(*queue).name).to_owned();
        match self {
            AdmissionReason::Overcommitted(short) => {
                format!("resource in cluster is overused: {}", names("overused", short))
            }
            AdmissionReason::QueueQuota { short, .. } => {
                format!(
                    "queue resource quota insufficient: {}",
                    names("insufficient", short)
                )
            }
            AdmissionReason::QueueNotOpen(queue) => format!("queue {} is not open", queue_name(queue)),
            AdmissionReason::NotALeafQueue(queue) => {
                format!(
                    "queue {} has child queues: only leaf queues take jobs",
                    queue_name(queue)
                )
            }
            AdmissionReason::InvalidQueue(queue, why) => {
                format!("queue {} is invalid: {why}", queue_name(queue))
            }
            AdmissionReason::Other(text) => text.to_string(),
        }
    }
}

impl AdmissionReason {
    /// What was short and by how much: `cpu: 9 needed, 6 allowed`; `None` when nothing is a matter of amounts.
    pub fn amounts(&self, m: &Model) -> Option<String> {
        let (AdmissionReason::Overcommitted(short) | AdmissionReason::QueueQuota { short, .. }) = self else {
            return None;
        };
        let mut parts: Vec<_> = short
            .iter()
            .map(|s| {
                let amount = |value| m.dims.quantity(s.dim, value);
                format!(
                    "{}: {} needed, {} allowed",
                    m.dims.name(s.dim),
                    amount(s.needed),
                    amount(s.limit)
                )
            })
            .collect();
        parts.sort_unstable();
        Some(parts.join("; "))
    }
}

/// Why a job is not valid for a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Machine-readable cause.
    pub reason: &'static str,
    /// The cause in words.
    pub message: String,
}

/// What the last attempt to place a task came to; it is undone, but says what could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It had a node, and waits for the rest of its gang.
    Allocated(Sym),
    /// It had a node that others are leaving.
    Pipelined(Sym),
}

/// What a cycle found out about one job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobReport {
    /// Why it was not admitted.
    pub admission: Option<AdmissionReason>,
    /// Why the gang cannot even be tried.
    pub invalid: Option<Invalid>,
    /// Why its queue may not use more: the task's request would exceed what the queue may have.
    pub queue_full: Option<AdmissionReason>,
    /// Why tasks were not placed.
    pub fit_errors: BTreeMap<TaskId, Arc<FitError>>,
    /// The first task that no node took: its error stands for the job's.
    pub origin: Option<TaskId>,
    /// What attempts that were undone had come to.
    pub attempts: BTreeMap<TaskId, Attempt>,
}

impl JobReport {
    /// Remembers why a task was not placed.
    pub fn misfit(&mut self, task: TaskId, error: Arc<FitError>) {
        if self.origin.is_none() && matches!(*error, FitError::Nodes { .. }) {
            self.origin = Some(task);
        }
        self.fit_errors.insert(task, error);
    }

    /// Why the job as a whole was held back: not admitted, not complete, or its queue is full.
    pub fn job_reason(&self, m: &Model) -> Option<String> {
        let admission = self
            .admission
            .as_ref()
            .or(self.queue_full.as_ref())
            .map(|reason| reason.text(m));
        self.invalid
            .as_ref()
            .map(|invalid| invalid.message.clone())
            .or(admission)
    }
}

/// `pod group is not ready, 1 Pending, 3 minAvailable; Pending: 1 Unschedulable. Origin reason is …`.
pub fn job_text(m: &Model, id: JobId, report: &JobReport) -> String {
    let job = m.job(id);
    let state = if job.is_ready() {
        messages::POD_GROUP_READY
    } else {
        messages::POD_GROUP_NOT_READY
    };
    let mut parts: Vec<String> = status::ALL
        .iter()
        .filter(|&&s| job.counts.of(s) > 0)
        .map(|&s| format!("{} {}", job.counts.of(s), s.name()))
        .collect();
    parts.push(format!("{} minAvailable", job.min_available()));
    parts.sort_unstable();
    let mut text = format!("{state}, {}", parts.join(", "));
    let mut pending: BTreeMap<&str, u32> = BTreeMap::new();
    for &task in job.tasks.iter().filter(|&&t| m.task(t).status == Status::Pending) {
        let reason = match report.attempts.get(&task) {
            Some(Attempt::Allocated(_)) => reasons::SCHEDULABLE,
            _ => reasons::UNSCHEDULABLE,
        };
        *pending.entry(reason).or_default() += 1;
    }
    if !pending.is_empty() {
        let mut parts: Vec<_> = pending
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        parts.sort_unstable();
        write!(text, "; Pending: {}", parts.join(", ")).expect("a String takes any text");
    }
    if let Some((task, error)) = report
        .origin
        .and_then(|task| Some((task, report.fit_errors.get(&task)?)))
    {
        let name = &m.task(task).name;
        write!(text, ". Origin reason is {name}: {}", error.text(m, name)).expect("a String takes any text");
    } else if let Some(reason) = report.job_reason(m) {
        write!(text, ". Origin reason is: {reason}").expect("a String takes any text");
    }
    text
}
