//! The cluster as the scheduler sees it. It persists across cycles and is changed by deltas; a cycle works on it
//! through a transaction (`session`).
//!
//! ```text
//! Queue 1--* Job (PodGroup) 1--* Task (Pod) *--1 Class
//!                                  |
//!                                  *--1 Node
//! ```
//!
//! Every sum (node usage, job and queue shares, gang counters) is a pure function of the tasks' states and is
//! kept up to date by [`Model::transition`] alone, in integers: going back to an earlier state restores every sum.

pub mod accounting;
pub mod class;
pub mod cluster;
pub mod delta;
pub mod features;
pub mod hypernode;
mod intake;
pub mod job;
pub mod kind;
pub mod node;
pub mod queue;
pub mod shard;
pub mod status;
pub mod task;

use crate::ids::{ClassId, DimId, JobId, NodeId, QueueId, Sym, TaskId};
use crate::intern::Interner;
use crate::relations::Relations;
use crate::resource::{CPU, Dims, MEMORY, Resource};
use class::{Class, Classes};
use cluster::Cluster;
use features::Features;
use hypernode::HyperTree;
use job::Job;
use node::Nodes;
use queue::Queue;
use rustc_hash::FxHashMap;
use shard::Shards;
use std::collections::BTreeSet;
use task::Task;
use volcano_api::scheduling::PodGroupCondition;

/// The cluster.
#[derive(Clone, Debug)]
pub struct Model {
    /// Interned strings.
    pub strings: Interner,
    /// Resource dimensions.
    pub dims: Dims,
    /// Nodes with their accounting.
    pub nodes: Nodes,
    /// Task classes.
    pub classes: Classes,
    /// Tasks; entries that are not `live` are free.
    pub tasks: Vec<Task>,
    /// Jobs; entries that are not `live` are free.
    pub jobs: Vec<Job>,
    /// Queues, placeholders for names that no Queue object has yet included.
    pub queues: Vec<Queue>,
    /// Counts for inter-pod affinity and topology spread.
    pub relations: Relations,
    /// Everything else that is watched: priority classes, namespaces, volumes, hypernodes.
    pub cluster: Cluster,
    /// The tree of network domains, as of the last cycle's opening.
    pub hyper_nodes: HyperTree,
    /// Which nodes are this scheduler's where several divide them.
    pub shards: Shards,
    /// Flags and feature gates; set before anything is applied.
    pub features: Features,
    /// Whose pods are scheduled here.
    pub scheduler_names: SchedulerNames,
    /// The queue of PodGroups that name none.
    pub default_queue: Sym,
    task_by_key: FxHashMap<(Sym, Box<str>), TaskId>,
    free_tasks: Vec<TaskId>,
    /// Pods of PodGroups that wait for another scheduler.
    foreign_pods: FxHashMap<(Sym, Box<str>), JobId>,
    job_by_key: FxHashMap<(Sym, Sym), JobId>,
    free_jobs: Vec<JobId>,
    queue_by_name: FxHashMap<Sym, QueueId>,
    /// Jobs whose tasks or PodGroup changed since the last cycle opened.
    dirty: BTreeSet<JobId>,
    /// Tasks evicted in the running cycle, on all nodes.
    pub(crate) evicted_now: u32,
    /// Jobs with something to decide: not admitted yet, or with pending tasks.
    waiting: BTreeSet<JobId>,
    /// Jobs with tasks whose gang is not ready, as of the last cycle.
    pub(crate) unready: BTreeSet<JobId>,
    /// Something was applied since the last cycle that could change a decision or a status.
    pub(crate) news: bool,
    /// What queues use, or what is known of their statuses, may have changed since it was last compared.
    pub(crate) usage_stale: bool,
}

/// Which pods this scheduler places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulerNames {
    /// Pods whose `spec.schedulerName` is in the list.
    Only(Vec<String>),
    /// Every pod, as conformance cases want it.
    Any,
}

impl Model {
    /// An empty cluster.
    pub fn new(scheduler_names: SchedulerNames, default_queue: &str) -> Self {
        let mut strings = Interner::default();
        let default_queue = strings.intern(default_queue);
        Model {
            strings,
            dims: Dims::default(),
            nodes: Nodes::default(),
            classes: Classes::default(),
            tasks: Vec::new(),
            jobs: Vec::new(),
            queues: Vec::new(),
            relations: Relations::default(),
            cluster: Cluster::default(),
            hyper_nodes: HyperTree::default(),
            shards: Shards::default(),
            features: Features::default(),
            scheduler_names,
            default_queue,
            task_by_key: FxHashMap::default(),
            free_tasks: Vec::new(),
            foreign_pods: FxHashMap::default(),
            job_by_key: FxHashMap::default(),
            free_jobs: Vec::new(),
            queue_by_name: FxHashMap::default(),
            dirty: BTreeSet::new(),
            evicted_now: 0,
            waiting: BTreeSet::new(),
            unready: BTreeSet::new(),
            news: false,
            usage_stale: false,
        }
    }

    /// A task.
    #[inline]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// A job.
    #[inline]
    pub fn job(&self, id: JobId) -> &Job {
        &self.jobs[id.index()]
    }

    /// A queue.
    #[inline]
    pub fn queue(&self, id: QueueId) -> &Queue {
        &self.queues[id.index()]
    }

    /// The class of a task.
    #[inline]
    pub fn class_of(&self, task: TaskId) -> &Class {
        self.classes.get(self.task(task).class)
    }

    /// A class.
    #[inline]
    pub fn class(&self, id: ClassId) -> &Class {
        self.classes.get(id)
    }

    /// The request of a task.
    #[inline]
    pub fn request(&self, task: TaskId) -> &Resource {
        &self.class_of(task).request
    }

    /// The name of a task's role, if its pod names one.
    pub fn role_name(&self, task: TaskId) -> Option<Sym> {
        let task = self.task(task);
        let role = self.job(task.job?).roles[usize::from(task.role?)].name;
        Some(role).filter(|&name| !self.text(name).is_empty())
    }

    /// The text of an interned string.
    #[inline]
    pub fn text(&self, sym: Sym) -> &str {
        self.strings.text(sym)
    }

    /// The first dimension in which a request does not fit into what will be idle on a node: `cpu`, `memory`, then
    /// by name, whatever order the resources became known in.
    pub fn first_short(&self, node: NodeId, request: &Resource) -> Option<DimId> {
        let first = self.nodes.short_in_future(node, request)?;
        if first == CPU || first == MEMORY {
            return Some(first);
        }
        let short = |&&(dim, value): &&(DimId, i64)| value > 0 && value > self.nodes.future_idle(node, dim);
        request
            .scalars
            .iter()
            .filter(short)
            .min_by_key(|(dim, _)| self.dims.name(*dim))
            .map(|&(dim, _)| dim)
    }

    /// `namespace/name` of a task.
    pub fn task_key(&self, id: TaskId) -> String {
        let task = self.task(id);
        format!("{}/{}", self.text(task.namespace), task.name)
    }

    /// The job of a PodGroup name.
    pub fn find_job(&self, namespace: &str, name: &str) -> Option<JobId> {
        let key = (self.strings.get(namespace)?, self.strings.get(name)?);
        self.job_by_key.get(&key).copied()
    }

    /// The task of a pod name.
    pub fn find_task(&self, namespace: &str, name: &str) -> Option<TaskId> {
        self.task_by_key
            .get(&(self.strings.get(namespace)?, name.into()))
            .copied()
    }

    /// The queue of a name, only if its Queue object exists.
    pub fn find_queue(&self, name: &str) -> Option<QueueId> {
        let id = *self.queue_by_name.get(&self.strings.get(name)?)?;
        self.queue(id).exists.then_some(id)
    }

    /// The node of a name.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes.find(self.strings.get(name)?)
    }

    /// Tasks that are leaving a node.
    pub fn leaving(&self, node: NodeId) -> impl Iterator<Item = &Task> + '_ {
        let tasks = self.nodes[node].tasks.iter().map(|&task| self.task(task));
        tasks.filter(|task| task.status == status::Status::Releasing)
    }

    /// Jobs that a cycle looks at: they take part in it and have something to decide.
    pub fn waiting_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.waiting.iter().copied().filter(|&id| self.in_session(id))
    }

    /// A job takes part in a cycle when it has a PodGroup, its queue exists, and it is not another scheduler's. The
    /// latter's pods are neither placed nor evicted, and its PodGroup is not written to.
    pub fn in_session(&self, id: JobId) -> bool {
        self.in_queue(id) && self.job(id).is_ours()
    }

    /// A job counts for its queue when it has a PodGroup and the queue exists, whichever scheduler serves it: a queue's
    /// limits mean little when every scheduler knows only its own part.
    pub fn in_queue(&self, id: JobId) -> bool {
        let job = self.job(id);
        job.live && job.group.is_some() && self.queue(job.queue).exists
    }

    /// All jobs that have a PodGroup, sorted by namespace and name.
    pub fn jobs_by_name(&self) -> Vec<JobId> {
        let mut ids: Vec<_> = self.group_ids().collect();
        ids.sort_by(|&a, &b| self.job(a).id.cmp(&self.job(b).id));
        ids
    }

    /// All queues that exist.
    pub fn queue_ids(&self) -> impl Iterator<Item = QueueId> + '_ {
        (0..self.queues.len())
            .map(QueueId::from_index)
            .filter(|&id| self.queue(id).exists)
    }

    /// Moves a PodGroup to another phase.
    pub(crate) fn set_phase(&mut self, job: JobId, phase: job::Phase) {
        if let Some(group) = &mut self.jobs[job.index()].group {
            group.phase = phase;
        }
        self.touch(job);
    }

    /// Builds the tree of network domains anew if HyperNodes or node labels changed.
    pub(crate) fn refresh_hyper_nodes(&mut self) {
        if std::mem::take(&mut self.cluster.hyper_nodes_stale) {
            self.hyper_nodes = HyperTree::build(self);
        }
    }

    /// Remembers why a job was not admitted; true when that is news.
    pub(crate) fn set_refusal(&mut self, job: JobId, why: &str) -> bool {
        match &mut self.jobs[job.index()].group {
            Some(group) if group.refusal.as_deref() != Some(why) => {
                group.refusal = Some(why.into());
                true
            }
            _ => false,
        }
    }

    /// Takes over the status that a cycle found.
    pub(crate) fn set_group_status(
        &mut self,
        job: JobId,
        phase: job::Phase,
        conditions: Vec<PodGroupCondition>,
        counters: [u32; 3],
    ) {
        if let Some(group) = &mut self.jobs[job.index()].group {
            group.phase = phase;
            group.phase_written = Some(phase);
            group.conditions = conditions;
            group.counters = counters;
        }
        self.touch(job);
    }

    /// The users of a job are being told how it stands.
    pub(crate) fn told(&mut self, job: JobId, now_micros: i64) {
        if let Some(group) = &mut self.jobs[job.index()].group {
            group.told_at = Some(now_micros);
        }
    }

    /// Jobs that changed since the cycle opened.
    pub(crate) fn changed_jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.dirty.iter().copied()
    }

    /// The cycle is over: what was evicted in it is now like everything else that is leaving.
    pub(crate) fn end_cycle(&mut self, evicted: impl Iterator<Item = TaskId>) {
        for id in evicted {
            let place = accounting::Place {
                evicted_now: false,
                ..self.place(id)
            };
            self.transition(id, place);
        }
        self.nodes.trim_log();
    }

    /// Marks a job as changed, so that the next cycle looks at it again.
    pub(crate) fn touch(&mut self, job: JobId) {
        if !self.jobs[job.index()].dirty {
            self.jobs[job.index()].dirty = true;
            self.dirty.insert(job);
        }
    }
}
