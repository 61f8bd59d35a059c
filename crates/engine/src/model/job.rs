//! A job: a PodGroup, the tasks attributed to it, and the predicates that gang scheduling is made of.

use super::status::{Counts, Status};
use crate::ids::{QueueId, Sym, TaskId};
use crate::resource::Resource;
use std::sync::Arc;
use volcano_api::meta::{LabelSelector, ObjectMeta};
use volcano_api::names::kinds::JOB;
use volcano_api::scheduling::{NetworkTopology, PodGroupCondition, PodGroupPhase};

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// False for a free entry.
    pub live: bool,
    /// `namespace/name` of the PodGroup.
    pub id: Arc<str>,
    /// Namespace.
    pub namespace: Sym,
    /// PodGroup name.
    pub name: Sym,
    /// What the PodGroup says; `None` while only pods that name it are known.
    pub group: Option<Group>,
    /// The queue of the PodGroup, or the default one.
    pub queue: QueueId,
    /// Value of the priority class.
    pub priority: i32,
    /// Roles: those with a minimum, and those that tasks name.
    pub roles: Vec<Role>,
    /// Sub-jobs, in order of first sight.
    pub sub_jobs: Vec<SubJob>,
    /// Tasks, in no order.
    pub tasks: Vec<TaskId>,
    /// How many of them this scheduler places.
    pub own_tasks: u32,
    /// Pods that wait for another scheduler; they are no tasks.
    pub foreign_pods: u32,
    /// Tasks by state.
    pub counts: Counts,
    /// Requests of tasks in the allocated states.
    pub allocated: Resource,
    /// Requests of tasks in the charged states.
    pub charged: Resource,
    /// Requests of pending tasks.
    pub pending: Resource,
    /// Requests of gated tasks, those that only wait for the queue-allocation gate excepted.
    pub gated: Resource,
    /// Requests of pending tasks that were let through the queue-allocation gate.
    pub reserved: Resource,
    /// Its part of the queue's `inqueue` sum.
    pub inqueue: Resource,
    /// Its part of the queue's `elastic` sum.
    pub elastic: Resource,
    /// In the model's list of changed jobs.
    pub dirty: bool,
}

/// What a PodGroup says.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// PodGroup UID.
    pub uid: Box<str>,
    /// Microseconds since 1970.
    pub created: i64,
    /// Who manages it.
    pub manager: Manager,
    /// Gang size.
    pub min_member: i32,
    /// Sum of the minimums by role.
    pub role_minimum_total: i32,
    /// Name of the priority class.
    pub priority_class: Option<Sym>,
    /// What must be free to admit it; `None` when not given.
    pub min_resources: Option<Resource>,
    /// Its phase, kept up to date by the cycles.
    pub phase: Phase,
    /// The phase that was last written or read; `None` while the object has none that is known.
    pub phase_written: Option<Phase>,
    /// When its users were last told how it stands, microseconds since 1970; `None` when that was not seen.
    pub told_at: Option<i64>,
    /// Its conditions, kept up to date by the cycles. Those of others are written back with them: as they were read.
    pub conditions: Vec<PodGroupCondition>,
    /// Why it was not admitted, as its users were last told.
    pub refusal: Option<Box<str>>,
    /// `running`, `succeeded`, `failed` as last written.
    pub counters: [u32; 3],
    /// Longest wait before `sla` acts, microseconds.
    pub sla_waiting_micros: Option<i64>,
    /// Says of itself that it may be preempted.
    pub preemptable: bool,
    /// Where its pods may lie in the network.
    pub network_topology: Option<NetworkTopology>,
    /// How its pods split into sub-groups.
    pub sub_groups: Vec<SubGroupPolicy>,
}

/// Who manages a PodGroup. No decision depends on it; how soon its status has to be written does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// Nobody: its pods are made whatever its status says.
    Nobody,
    /// The Job controller, which makes no pod before the group is admitted.
    Job,
    /// Another controller, which may wait for that as well.
    Other,
}

impl Manager {
    /// The one that an object names.
    pub fn of(meta: &ObjectMeta) -> Self {
        match meta.controller() {
            None => Manager::Nobody,
            Some(owner) if owner.kind == JOB.kind && owner.api_version == JOB.api_version() => Manager::Job,
            Some(_) => Manager::Other,
        }
    }
}

/// A sub-group policy.
#[derive(Clone, Debug, PartialEq)]
pub struct SubGroupPolicy {
    /// Policy name.
    pub name: Box<str>,
    /// Tasks that make a sub-group.
    pub size: i32,
    /// Sub-groups that must be whole.
    pub min_sub_groups: i32,
    /// Which pods it covers; `None` covers all.
    pub selector: Option<LabelSelector>,
    /// Pods with equal values of these labels form one sub-group.
    pub match_label_keys: Vec<Sym>,
    /// Where a sub-group may lie in the network.
    pub network_topology: Option<NetworkTopology>,
}

/// PodGroup phase.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Phase {
    /// Not admitted yet; also a group that nobody has written a phase for.
    #[default]
    Pending,
    /// Admitted: its pods may be made and placed.
    Inqueue,
    /// The gang is scheduled.
    Running,
    /// Some members run, others cannot be placed.
    Unknown,
    /// All members ended.
    Completed,
}

impl From<&PodGroupPhase> for Phase {
    fn from(phase: &PodGroupPhase) -> Self {
        match phase {
            PodGroupPhase::Inqueue => Phase::Inqueue,
            PodGroupPhase::Running => Phase::Running,
            PodGroupPhase::Unknown => Phase::Unknown,
            PodGroupPhase::Completed => Phase::Completed,
            PodGroupPhase::Unset | PodGroupPhase::Pending | PodGroupPhase::Other(_) => Phase::Pending,
        }
    }
}

impl Phase {
    /// The phase that an object says it is in.
    pub fn written(phase: &PodGroupPhase) -> Option<Self> {
        let is_known = !matches!(phase, PodGroupPhase::Unset | PodGroupPhase::Other(_));
        is_known.then(|| Phase::from(phase))
    }

    /// The API's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::Inqueue => "Inqueue",
            Phase::Running => "Running",
            Phase::Unknown => "Unknown",
            Phase::Completed => "Completed",
        }
    }
}

/// A role of a job: the tasks made from one pod template.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Task-spec name.
    pub name: Sym,
    /// How many of it the gang needs.
    pub minimum: i32,
    /// Its tasks by state.
    pub counts: Counts,
}

/// A part of a job that is placed together.
#[derive(Clone, Debug, PartialEq)]
pub struct SubJob {
    /// `<job>` for the default one, else `<job>/<policy>-<values>`.
    pub id: Arc<str>,
    /// The policy it comes from; `None` for the default one.
    pub policy: Option<u16>,
    /// Tasks that make it whole.
    pub min_available: i32,
    /// Highest task priority, at least 0, as of the last cycle's opening.
    pub priority: i32,
    /// First matched label value as a number, the tie-break of their order.
    pub match_index: i64,
    /// Its tasks by state.
    pub counts: Counts,
}

impl SubJob {
    /// Enough tasks have a place.
    pub fn is_ready(&self) -> bool {
        self.counts.ready() + self.counts.best_effort_pending >= at_least(self.min_available)
    }

    /// Enough tasks have a place or will have one once others have gone.
    pub fn is_pipelined(&self) -> bool {
        self.counts.ready() + self.counts.best_effort_pending + self.counts.waiting()
            >= at_least(self.min_available)
    }
}

/// A minimum as a count: below zero asks for nothing.
pub fn at_least(minimum: i32) -> u32 {
    u32::try_from(minimum).unwrap_or(0)
}

impl Job {
    /// The gang size, 0 without a PodGroup.
    pub fn min_available(&self) -> u32 {
        self.group.as_ref().map_or(0, |g| at_least(g.min_member))
    }

    /// The phase of its PodGroup.
    pub fn phase(&self) -> Phase {
        self.group.as_ref().map_or(Phase::Pending, |g| g.phase)
    }

    /// When its PodGroup was made.
    pub fn created(&self) -> i64 {
        self.group.as_ref().map_or(0, |g| g.created)
    }

    /// This scheduler serves it: some of its pods name it, or there are none yet and nobody else can be told.
    pub fn is_ours(&self) -> bool {
        self.own_tasks > 0 || (self.tasks.is_empty() && self.foreign_pods == 0)
    }

    /// Its PodGroup splits it into sub-groups.
    pub fn has_sub_groups(&self) -> bool {
        self.group.as_ref().is_some_and(|g| !g.sub_groups.is_empty())
    }

    /// Enough tasks have a place.
    pub fn is_ready(&self) -> bool {
        self.counts.ready() + self.counts.best_effort_pending >= self.min_available()
    }

    /// Enough tasks have a place or will have one once others have gone.
    pub fn is_pipelined(&self) -> bool {
        self.counts.ready() + self.counts.best_effort_pending + self.counts.waiting() >= self.min_available()
    }

    /// Too few tasks have or will have a place.
    pub fn is_starving(&self) -> bool {
        self.counts.ready() + self.counts.waiting() < self.min_available()
    }

    /// Role minimums only bind when they do not add up to more than the gang size.
    pub fn roles_bind(&self) -> bool {
        self.group
            .as_ref()
            .is_some_and(|g| i64::from(g.min_member) >= i64::from(g.role_minimum_total))
    }

    /// Every role has enough tasks to start with.
    pub fn roles_valid(&self) -> bool {
        !self.roles_bind() || self.roles.iter().all(|r| r.counts.valid() >= at_least(r.minimum))
    }

    /// Every role has enough tasks with a place.
    pub fn roles_ready(&self) -> bool {
        !self.roles_bind() || self.roles.iter().all(Role::is_ready)
    }

    /// Every role has enough tasks with a place, now or soon.
    pub fn roles_pipelined(&self) -> bool {
        !self.roles_bind()
            || self.roles.iter().all(|r| {
                r.counts.ready() + r.counts.best_effort_pending + r.counts.waiting() >= at_least(r.minimum)
            })
    }

    fn sub_groups_meet(
        &self,
        wanted: impl Fn(&SubGroupPolicy) -> bool,
        has: impl Fn(&SubJob) -> bool,
    ) -> bool {
        let Some(group) = &self.group else { return true };
        group
            .sub_groups
            .iter()
            .enumerate()
            .filter(|(_, policy)| wanted(policy))
            .all(|(at, policy)| {
                let have = self
                    .sub_jobs
                    .iter()
                    .filter(|s| s.policy.map(usize::from) == Some(at) && s.counts.total() > 0 && has(s))
                    .count();
                have >= at_least(policy.min_sub_groups) as usize
            })
    }

    /// Every policy has enough sub-groups to start with.
    pub fn sub_groups_valid(&self) -> bool {
        self.sub_groups_meet(|_| true, |_| true)
    }

    /// Every policy has enough whole sub-groups.
    pub fn sub_groups_ready(&self) -> bool {
        self.sub_groups_meet(|p| p.min_sub_groups > 0, SubJob::is_ready)
    }

    /// Every policy has enough sub-groups that are or will be whole.
    pub fn sub_groups_pipelined(&self) -> bool {
        self.sub_groups_meet(|p| p.min_sub_groups > 0, SubJob::is_pipelined)
    }

    /// Needs a place in the network, itself or a part of it.
    pub fn has_network_topology(&self) -> bool {
        self.group.as_ref().is_some_and(|g| {
            g.network_topology.is_some() || g.sub_groups.iter().any(|s| s.network_topology.is_some())
        })
    }

    /// What it has yet to allocate of its minimum resources.
    pub fn unallocated_minimum(&self) -> Resource {
        let minimum = self.group.as_ref().and_then(|g| g.min_resources.as_ref());
        minimum.map(|m| m.beyond(&self.allocated)).unwrap_or_default()
    }

    /// `amount` less the requests of gated tasks, not below zero.
    pub fn without_gated(&self, amount: &Resource) -> Resource {
        amount.beyond(&self.gated)
    }

    /// Pending tasks exist that this scheduler could place.
    pub fn has_pending(&self) -> bool {
        self.counts.of(Status::Pending) > 0
    }
}

impl Role {
    /// Enough tasks have a place.
    pub fn is_ready(&self) -> bool {
        self.counts.ready() + self.counts.best_effort_pending >= at_least(self.minimum)
    }
}
