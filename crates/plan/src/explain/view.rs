//! A job after a trial: what the scheduler's answers about it mean, one question each.

use super::controller::Why;
use super::find::kept_by;
use super::nodes::ruled_out;
use super::reason::{Amount, QueueLimit, Reason, Room};
use super::room::{Space, holds, is_usable};
use super::world::{Trial, World};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volcano_api::core::Pod;
use volcano_api::meta::ConditionStatus;
use volcano_api::names::queues;
use volcano_engine::explain::{AdmissionReason, FitError, FitReason, JobReport, Shortfall};
use volcano_engine::figures::QueueFigures;
use volcano_engine::ids::{JobId, QueueId, TaskId};
use volcano_engine::model::Model;
use volcano_engine::model::node::Block;
use volcano_engine::model::queue::QueueState;
use volcano_engine::model::status::Status;
use volcano_engine::model::task::Gate;
use volcano_engine::resource::{PODS, Resource};

/// The job after a trial.
pub(super) struct View<'a> {
    pub m: &'a Model,
    pub id: JobId,
    trial: &'a Trial,
    report: Cow<'a, JobReport>,
    figures: Vec<QueueFigures>,
}

impl<'a> View<'a> {
    /// A job of a trial.
    pub fn of(trial: &'a Trial, id: JobId) -> Self {
        let report = trial.cycle.reports.get(&id);
        View {
            m: trial.engine.model(),
            id,
            trial,
            report: report.map_or_else(Cow::default, Cow::Borrowed),
            figures: trial.engine.queue_figures(),
        }
    }

    fn name(&self, queue: QueueId) -> String {
        self.m.text(self.m.queue(queue).name).to_owned()
    }

    /// Its queue takes nothing.
    pub fn queue(&self) -> Option<Reason> {
        let id = self.m.job(self.id).queue;
        let queue = self.m.queue(id);
        if !queue.exists {
            return Some(Reason::QueueMissing { queue: self.name(id) });
        }
        let answers = [self.report.admission.as_ref(), self.report.queue_full.as_ref()];
        for answer in answers.into_iter().flatten() {
            match answer {
                AdmissionReason::QueueNotOpen(id) => return Some(self.not_open(*id)),
                AdmissionReason::NotALeafQueue(id) => {
                    return Some(Reason::QueueInvalid {
                        queue: self.name(*id),
                        why: "it has child queues, and only leaf queues take jobs".to_owned(),
                    });
                }
                AdmissionReason::InvalidQueue(id, why) => {
                    return Some(Reason::QueueInvalid {
                        queue: self.name(*id),
                        why: why.to_string(),
                    });
                }
                _ => {}
            }
        }
        (!queue.is_open()).then(|| self.not_open(id))
    }

    fn not_open(&self, id: QueueId) -> Reason {
        let state = match self.m.queue(id).state {
            QueueState::Open => "Open",
            QueueState::Closed => "Closed",
            QueueState::Closing => "Closing",
            QueueState::Unknown => "Unknown",
        };
        Reason::QueueNotOpen {
            queue: self.name(id),
            state: state.to_owned(),
        }
    }

    /// Pods that the scheduler leaves alone.
    pub fn held_back(&self) -> Vec<Reason> {
        let job = self.m.job(self.id);
        let mut found = Vec::new();
        if job.foreign_pods > 0 && !job.is_ready() {
            let pods = job.foreign_pods;
            found.push(Reason::OtherScheduler { pods });
        }
        let is_gated = |&&task: &&TaskId| self.m.task(task).gate == Gate::Foreign;
        let gated = job.tasks.iter().filter(is_gated).count();
        let able = job.counts.valid() as usize - gated.min(job.counts.valid() as usize);
        if gated > 0 && able < job.min_available() as usize {
            let pods = self.trial.subject.pods.iter();
            let gates: BTreeSet<&str> = pods.flat_map(gates_of).collect();
            found.push(Reason::Gated {
                pods: u32::try_from(gated).unwrap_or(u32::MAX),
                gates: gates.into_iter().map(str::to_owned).collect(),
            });
        }
        found
    }

    /// Pods that are not made, for another reason than that the job is not admitted.
    pub fn missing_pods(&self) -> Vec<Reason> {
        let job = self.m.job(self.id);
        let mut found = Vec::new();
        for withheld in &self.trial.withheld {
            match &withheld.why {
                Why::Quota { quota } => found.push(Reason::Quota {
                    quota: quota.clone(),
                    task: withheld.task.clone(),
                    pods: withheld.pods,
                    short: self.quota_short(quota),
                }),
                Why::DependsOn(names) => found.push(Reason::DependsOn {
                    task: withheld.task.clone(),
                    pods: withheld.pods,
                    waits_for: names.clone(),
                    minimum: job.min_available(),
                    total: job.counts.total(),
                }),
                Why::Trouble(why) => found.push(Reason::PodsNotMade {
                    pods: withheld.pods,
                    why: why.clone(),
                }),
                Why::NotAdmitted => {}
            }
        }
        found
    }

    /// What a quota lacks for all pods that it keeps from the gang.
    fn quota_short(&self, quota: &str) -> Vec<Amount> {
        self.trial.quotas.lacks(
            quota,
            &kept_by(self.trial, quota, self.m.job(self.id).min_available()),
        )
    }

    /// Its queue, or the cluster as a whole, does not admit it or may not use more.
    pub fn full(&self) -> Option<Reason> {
        let minimum = self.minimum();
        let answer = self.report.admission.as_ref().or(self.report.queue_full.as_ref());
        match answer {
            Some(AdmissionReason::QueueQuota { queue, short }) => {
                if let Some(too_large) = self.too_large(&minimum) {
                    return Some(too_large);
                }
                let full = self.queue_full(*queue, short, &minimum);
                Some(self.cluster_full(short).unwrap_or(full))
            }
            Some(AdmissionReason::Overcommitted(short)) => {
                Some(self.too_large(&minimum).unwrap_or_else(|| {
                    let short = short.iter().map(|short| self.amount(short)).collect();
                    Reason::Overcommitted { short }
                }))
            }
            Some(AdmissionReason::Other(text)) => Some(Reason::Other {
                message: text.to_string(),
            }),
            _ => self.overused(&minimum),
        }
    }

    /// A queue whose limit is all that there is: it is the cluster that is full.
    fn cluster_full(&self, short: &[Shortfall]) -> Option<Reason> {
        let total = self.m.nodes.total();
        if !short.iter().all(|short| short.limit >= total.get(short.dim)) {
            return None;
        }
        let job = self.m.job(self.id);
        let mut pending = job.tasks.iter().copied();
        let task = pending.find(|&task| self.m.task(task).status == Status::Pending)?;
        let role = self.m.role_name(task).map(|role| self.m.text(role).to_owned());
        let why =
            Space::of(self.m, self.m.class_of(task)).why(role.unwrap_or_default(), self.missing_of(task));
        Some(why)
    }

    /// What the job needs to start.
    fn minimum(&self) -> Resource {
        let job = self.m.job(self.id);
        let given = job.unallocated_minimum();
        if !given.is_empty() {
            return given;
        }
        let missing = job.min_available().saturating_sub(job.counts.ready());
        let pending = job
            .tasks
            .iter()
            .filter(|&&task| self.m.task(task).status == Status::Pending);
        let mut sum = Resource::default();
        pending
            .take(missing as usize)
            .for_each(|&task| sum.add(self.m.request(task)));
        sum
    }

    fn amount(&self, short: &Shortfall) -> Amount {
        Amount {
            resource: self.m.dims.name(short.dim).to_owned(),
            needed: self.m.dims.quantity(short.dim, short.needed),
            limit: self.m.dims.quantity(short.dim, short.limit),
        }
    }

    /// The gang asks for more than all nodes have.
    fn too_large(&self, minimum: &Resource) -> Option<Reason> {
        let total = self.m.nodes.total();
        let is_over = minimum
            .iter()
            .any(|(dim, value)| value > total.get(dim) && total.find(dim).is_some());
        if !is_over {
            return None;
        }
        let job = self.m.job(self.id);
        let room = self.trial.room_of_minimum(minimum);
        Some(Reason::GangTooLarge {
            role: String::new(),
            minimum: job.min_available(),
            fits: self.fitting_now(),
            room,
        })
    }

    /// How many pods of the gang fit now, going by the largest of its pods.
    fn fitting_now(&self) -> u32 {
        let job = self.m.job(self.id);
        let pending = job
            .tasks
            .iter()
            .filter(|&&task| self.m.task(task).status == Status::Pending);
        let fits = pending.map(|&task| Space::of(self.m, self.m.class_of(task)).fits(job.min_available()));
        fits.min().unwrap_or(0)
    }

    /// A queue without room: by which of its limits, and how much the whole gang needs.
    fn queue_full(&self, queue: QueueId, short: &[Shortfall], minimum: &Resource) -> Reason {
        let used = &self.m.queue(queue).charged;
        let capability = self.m.queue(queue).capability.as_ref();
        let name = self.name(queue);
        let figures = self.figures.iter().find(|figures| *figures.queue == *name);
        let deserved = figures.and_then(|figures| figures.deserved.as_ref());
        let is_capability = |s: &Shortfall| capability.and_then(|c| c.find(s.dim)) == Some(s.limit);
        let is_deserved = |s: &Shortfall| {
            let name = self.m.dims.name(s.dim);
            deserved.is_some_and(|list| list.iter().any(|(n, value)| **n == *name && *value == s.limit))
        };
        let limit = if short.iter().any(is_capability) {
            QueueLimit::Capability
        } else if short.iter().any(is_deserved) {
            QueueLimit::Deserved
        } else {
            QueueLimit::Rest
        };
        let whole = |s: &Shortfall| Shortfall {
            needed: s.needed.max(used.get(s.dim).saturating_add(minimum.get(s.dim))),
            ..s.clone()
        };
        Reason::QueueFull {
            queue: name,
            limit,
            short: short.iter().map(|s| self.amount(&whole(s))).collect(),
        }
    }

    /// Its queue uses all that it deserves, so that none of its jobs was tried.
    fn overused(&self, minimum: &Resource) -> Option<Reason> {
        let queue = self.m.job(self.id).queue;
        let name = self.name(queue);
        let figures = self.figures.iter().find(|figures| *figures.queue == *name)?;
        if figures.overused != Some(true) || !self.report.fit_errors.is_empty() || !self.waits() {
            return None;
        }
        let deserved = figures.deserved.as_ref()?;
        let used = &self.m.queue(queue).charged;
        let mut short: Vec<Shortfall> = Vec::new();
        for (dim, value) in minimum.iter().filter(|(_, value)| *value > 0) {
            let limit = deserved.iter().find(|(name, _)| **name == *self.m.dims.name(dim));
            let limit = limit.map_or(0, |(_, value)| *value);
            let needed = used.get(dim).saturating_add(value);
            if needed > limit && self.m.nodes.total().get(dim) > 0 {
                short.push(Shortfall { dim, needed, limit });
            }
        }
        Some(self.queue_full(queue, &short, minimum))
    }

    /// Other queues use more than they deserve, but this one could take nothing back: it would have more than it
    /// deserves itself.
    pub fn cannot_reclaim(&self, world: &World<'_>) -> Option<Reason> {
        let own = self.m.job(self.id).queue;
        let name = self.name(own);
        let lends = |figures: &&QueueFigures| {
            let over = |(name, used): &(Arc<str>, i64)| {
                let deserved = figures.deserved.iter().flatten().find(|(other, _)| other == name);
                deserved.is_some_and(|(_, deserved)| used > deserved)
            };
            *figures.queue != *name && *figures.queue != *queues::ROOT && figures.allocated.iter().any(over)
        };
        if !world.has_action("reclaim") || !self.figures.iter().any(|figures| lends(&figures)) {
            return None;
        }
        let deserved = self
            .figures
            .iter()
            .find(|figures| *figures.queue == *name)?
            .deserved
            .as_ref()?;
        let used = &self.m.queue(own).charged;
        let minimum = self.minimum();
        let mut short = Vec::new();
        for (dim, value) in minimum.iter().filter(|&(dim, value)| value > 0 && dim != PODS) {
            let limit = deserved
                .iter()
                .find(|(name, _)| **name == *self.m.dims.name(dim))?
                .1;
            let needed = used.get(dim).saturating_add(value);
            if needed > limit {
                short.push(self.amount(&Shortfall { dim, needed, limit }));
            }
        }
        (!short.is_empty()).then_some(Reason::QueueFull {
            queue: name,
            limit: QueueLimit::Deserved,
            short,
        })
    }

    fn waits(&self) -> bool {
        self.m.job(self.id).counts.of(Status::Pending) > 0
    }

    /// Nodes without room, or that no pod of the job may use: for each role that was tried.
    pub fn room(&self) -> Vec<Reason> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let origin = self.report.origin.into_iter();
        for task in origin.chain(self.report.fit_errors.keys().copied()) {
            let Some(FitError::Nodes { nodes, reasons, .. }) =
                self.report.fit_errors.get(&task).map(AsRef::as_ref)
            else {
                continue;
            };
            let role = self.m.role_name(task).map(|role| self.m.text(role).to_owned());
            let role = role.unwrap_or_default();
            if seen.insert(role.clone()) {
                found.extend(self.misfit(task, role, *nodes, reasons));
            }
        }
        found
    }

    fn misfit(
        &self,
        task: TaskId,
        role: String,
        nodes: u32,
        reasons: &BTreeMap<FitReason, u32>,
    ) -> Vec<Reason> {
        let class = self.m.class_of(task);
        let ruled_out = ruled_out(self.m, class, reasons);
        let lacks_room = reasons
            .keys()
            .any(|reason| matches!(reason, FitReason::Insufficient(_) | FitReason::PodNumber));
        let space = Space::of(self.m, class);
        let kept_away = self
            .m
            .nodes
            .ids()
            .any(|id| holds(self.m, class, id) && !is_usable(self.m, class, id));
        let count = u32::try_from(self.m.nodes.present()).unwrap_or(nodes).max(nodes);
        if !lacks_room || (space.large_enough() == 0 && kept_away) {
            let nodes = count;
            return vec![Reason::NoNode {
                role,
                nodes,
                ruled_out,
            }];
        }
        let why = space.why(role.clone(), self.missing_of(task));
        if ruled_out.len() < 2 {
            return vec![why];
        }
        let nodes = count;
        vec![
            why,
            Reason::RuledOut {
                role,
                nodes,
                ruled_out,
            },
        ]
    }

    /// Pods of a task's role that are missing for the gang.
    fn missing_of(&self, task: TaskId) -> u32 {
        let job = self.m.job(self.id);
        let all = job.min_available().saturating_sub(job.counts.ready());
        let role = self
            .m
            .task(task)
            .role
            .and_then(|at| job.roles.get(usize::from(at)));
        let of_role = role.map_or(all, |role| {
            let pending = role.counts.of(Status::Pending);
            let minimum = u32::try_from(role.minimum).unwrap_or(0);
            let minimum = if job.roles_bind() && minimum > 0 {
                minimum
            } else {
                all
            };
            minimum.saturating_sub(role.counts.ready()).min(pending)
        });
        of_role.min(all).max(1)
    }

    /// What the scheduler says.
    pub fn words(&self) -> String {
        if let Some(reason) = self.report.job_reason(self.m) {
            return reason;
        }
        let job = self.m.job(self.id);
        let conditions = job.group.iter().flat_map(|group| &group.conditions);
        let told = conditions
            .into_iter()
            .find(|condition| condition.status == ConditionStatus::True && !job.is_ready());
        told.map_or_else(
            || "nothing tried to place it in this cycle".to_owned(),
            |condition| condition.message.clone(),
        )
    }
}

impl Trial {
    /// What a minimum needs of what all nodes have.
    fn room_of_minimum(&self, minimum: &Resource) -> Vec<Room> {
        let m = self.engine.model();
        let total = m.nodes.total();
        let over = minimum
            .iter()
            .filter(|&(dim, value)| value > total.get(dim) && total.find(dim).is_some());
        over.map(|(dim, value)| {
            let quantity = |value| m.dims.quantity(dim, value);
            let free = |id| m.nodes.idle(id, dim).max(0);
            let has = |id| m.nodes.amount(id, Block::Allocatable, dim);
            Room {
                resource: m.dims.name(dim).to_owned(),
                request: quantity(value),
                needed: quantity(value),
                free: quantity(m.nodes.ids().map(free).fold(0, i64::saturating_add)),
                largest_free: quantity(m.nodes.ids().map(free).max().unwrap_or(0)),
                capacity: quantity(total.get(dim)),
                largest_node: quantity(m.nodes.ids().map(has).max().unwrap_or(0)),
            }
        })
        .collect()
    }
}

fn gates_of(pod: &Pod) -> impl Iterator<Item = &str> {
    pod.spec.scheduling_gates.iter().map(|gate| gate.name.as_str())
}
