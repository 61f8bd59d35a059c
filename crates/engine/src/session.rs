//! One cycle's view of the model: a transaction over it.
//!
//! ```text
//! checkpoint --- allocate / pipeline / evict ... ---+-- commit    -> effects (a gang's binds are one effect)
//!                                                   +-- rollback  -> every sum as it was
//!                                                   +-- hold      -> stays applied, undone when the cycle closes
//! ```
//!
//! The third way is how a gang that waits for others to leave, or one that lost a part, keeps its places from others
//! for the rest of the cycle. Should the gang become whole after all, its held places are committed with the others.

use crate::dispatch::Plugins;
use crate::effect::Effect;
use crate::explain::{Attempt, JobReport};
use crate::figures::CycleFigures;
use crate::ids::{JobId, NodeId, TaskId};
use crate::model::Model;
use crate::model::accounting::Place;
use crate::model::status::Status;
use crate::placer::Placer;
use crate::plugin::EvictionKind;
use std::collections::{BTreeMap, BTreeSet};

/// A position in the log of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Checkpoint(usize);

/// What was done to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Placed on idle resources.
    Allocate,
    /// Placed on resources that others are leaving; `evicted` when some leave for it.
    Pipeline {
        /// Evictions were made for it.
        evicted: bool,
    },
    /// Evicted for another task.
    Evict {
        /// Why.
        kind: EvictionKind,
        /// For whom.
        preemptor: TaskId,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    task: TaskId,
    before: Place,
    operation: Operation,
}

/// A cycle at work.
pub struct Session<'a> {
    /// The cluster.
    pub m: &'a mut Model,
    /// The configured plugins.
    pub plugins: &'a mut Plugins,
    /// Verdicts and scores.
    pub placer: &'a mut Placer,
    /// `enqueue` is among the actions: jobs are only placed once admitted.
    pub admits: bool,
    /// What was decided so far.
    pub effects: Vec<Effect>,
    /// What was found out so far.
    pub reports: BTreeMap<JobId, JobReport>,
    /// What was counted so far.
    pub figures: CycleFigures,
    log: Vec<Entry>,
    /// Jobs with placements on idle resources that are held.
    held: BTreeSet<JobId>,
}

impl<'a> Session<'a> {
    /// Begins a cycle's work.
    pub fn new(m: &'a mut Model, plugins: &'a mut Plugins, placer: &'a mut Placer, admits: bool) -> Self {
        Session {
            m,
            plugins,
            placer,
            admits,
            effects: Vec::new(),
            reports: BTreeMap::new(),
            figures: CycleFigures::default(),
            log: Vec::new(),
            held: BTreeSet::new(),
        }
    }

    /// What was found out about a job.
    pub fn report(&mut self, job: JobId) -> &mut JobReport {
        self.reports.entry(job).or_default()
    }

    /// The end of the log: what is done from here on can be undone.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.log.len())
    }

    /// Something was done since.
    pub fn changed_since(&self, checkpoint: Checkpoint) -> bool {
        self.log.len() > checkpoint.0
    }

    fn apply(&mut self, task: TaskId, to: Place, operation: Operation) {
        let before = self.m.place(task);
        self.m.transition(task, to);
        self.plugins
            .on_charge(self.m, task, !matches!(operation, Operation::Evict { .. }));
        self.log.push(Entry {
            task,
            before,
            operation,
        });
    }

    fn undo(&mut self, entry: Entry) {
        self.m.transition(entry.task, entry.before);
        self.plugins.on_charge(
            self.m,
            entry.task,
            matches!(entry.operation, Operation::Evict { .. }),
        );
    }

    /// Places a pending task on idle resources of a node.
    pub fn allocate(&mut self, task: TaskId, node: NodeId) {
        debug_assert_eq!(self.m.task(task).status, Status::Pending);
        let to = Place {
            status: Status::Allocated,
            node: Some(node),
            evicted_now: false,
        };
        self.apply(task, to, Operation::Allocate);
    }

    /// Places a pending task on resources of a node that others are leaving.
    pub fn pipeline(&mut self, task: TaskId, node: NodeId, evicted: bool) {
        debug_assert_eq!(self.m.task(task).status, Status::Pending);
        let to = Place {
            status: Status::Pipelined,
            node: Some(node),
            evicted_now: false,
        };
        self.apply(task, to, Operation::Pipeline { evicted });
    }

    /// Evicts a task for another one. It comes out as an effect only when the plan that needs it is committed.
    pub fn evict(&mut self, task: TaskId, kind: EvictionKind, preemptor: TaskId) {
        let node = self.m.task(task).node;
        let to = Place {
            status: Status::Releasing,
            node,
            evicted_now: true,
        };
        self.apply(task, to, Operation::Evict { kind, preemptor });
    }

    /// Has the queue-allocation gate of a task removed: its queue has room for it, and sets that aside. It can be placed
    /// once its object shows it.
    pub fn open_gate(&mut self, task: TaskId) {
        self.m.open_gate(task);
        self.effects.push(Effect::OpenGate { task });
    }

    /// Takes one eviction back, wherever it is in the log.
    pub fn spare(&mut self, task: TaskId) {
        let evicts = |e: &Entry| e.task == task && matches!(e.operation, Operation::Evict { .. });
        if let Some(at) = self.log.iter().rposition(evicts) {
            let entry = self.log.remove(at);
            self.undo(entry);
        }
    }

    /// Takes back placements for later that nobody was evicted for.
    pub fn take_back(&mut self, which: impl Fn(&Model, TaskId) -> bool) {
        for at in (0..self.log.len()).rev() {
            let entry = self.log[at];
            if entry.operation == (Operation::Pipeline { evicted: false }) && which(self.m, entry.task) {
                self.log.remove(at);
                self.undo(entry);
            }
        }
    }

    /// Undoes everything since a checkpoint, latest first, and remembers what the tasks had come to.
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        while self.log.len() > checkpoint.0 {
            let entry = self.log.pop().expect("longer than the checkpoint");
            self.remember(&entry);
            self.undo(entry);
        }
    }

    /// Undoes everything since a checkpoint without a trace: the attempt was only a look.
    pub fn forget(&mut self, checkpoint: Checkpoint) {
        while self.log.len() > checkpoint.0 {
            let entry = self.log.pop().expect("longer than the checkpoint");
            self.undo(entry);
        }
    }

    fn remember(&mut self, entry: &Entry) {
        let task = self.m.task(entry.task);
        let (Some(job), Some(node)) = (task.job, task.node) else {
            return;
        };
        let node = self.m.nodes[node].name;
        let attempt = match entry.operation {
            Operation::Allocate => Attempt::Allocated(node),
            Operation::Pipeline { .. } => Attempt::Pipelined(node),
            Operation::Evict { .. } => return,
        };
        self.report(job).attempts.insert(entry.task, attempt);
    }

    /// Leaves everything since a checkpoint applied until the cycle closes, without anything being decided.
    pub fn hold(&mut self, checkpoint: Checkpoint) {
        let kept = self.log[checkpoint.0..].iter();
        let kept = kept.filter(|entry| entry.operation == Operation::Allocate);
        self.held
            .extend(kept.filter_map(|entry| self.m.task(entry.task).job));
    }

    /// Puts what jobs hold in front of the placements that make them whole: a gang is bound in one piece.
    fn with_held(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        if self.held.is_empty() {
            return entries;
        }
        let m = &*self.m;
        let job_of = |entry: &Entry| match entry.operation {
            Operation::Allocate => m.task(entry.task).job,
            _ => None,
        };
        let placed: BTreeSet<JobId> = entries.iter().filter_map(job_of).collect();
        let whole: BTreeSet<JobId> = self.held.intersection(&placed).copied().collect();
        if whole.is_empty() {
            return entries;
        }
        let held = |entry: &Entry| job_of(entry).is_some_and(|job| whole.contains(&job));
        let (mut all, rest): (Vec<Entry>, Vec<Entry>) = self.log.iter().partition(|entry| held(entry));
        self.log = rest;
        self.held.retain(|job| !whole.contains(job));
        all.extend(entries);
        all
    }

    /// Makes everything since a checkpoint final. Pipelined tasks stay in place until the cycle closes.
    pub fn commit(&mut self, checkpoint: Checkpoint) {
        let entries = self.log.split_off(checkpoint.0);
        let entries = self.with_held(entries);
        if cfg!(debug_assertions) {
            self.check_evictions(&entries);
        }
        let kind = entries.iter().find_map(|entry| match entry.operation {
            Operation::Evict { kind, .. } => Some(kind.name()),
            _ => None,
        });
        if let Some(kind) = kind {
            *self.figures.eviction_transactions.entry(kind).or_default() += 1;
        }
        let mut binds: Vec<(JobId, Vec<(TaskId, NodeId)>)> = Vec::new();
        for entry in entries {
            match entry.operation {
                Operation::Allocate => {
                    self.m.bind(entry.task);
                    let task = self.m.task(entry.task);
                    let job = task.job.expect("only tasks of jobs are placed");
                    let node = task.node.expect("an allocated task has a node");
                    match binds.last_mut().filter(|(last, _)| *last == job) {
                        Some((_, list)) => list.push((entry.task, node)),
                        None => binds.push((job, vec![(entry.task, node)])),
                    }
                    if let Some(report) = self.reports.get_mut(&job) {
                        report.attempts.remove(&entry.task);
                    }
                }
                Operation::Pipeline { .. } => self.log.push(entry),
                Operation::Evict { kind, preemptor } => {
                    self.m.tasks[entry.task.index()].evicting = true;
                    self.effects.push(Effect::Evict {
                        task: entry.task,
                        kind,
                        preemptor,
                    });
                }
            }
        }
        self.effects
            .extend(binds.into_iter().map(|(job, binds)| Effect::Bind { job, binds }));
    }

    /// Every eviction belongs to a placement in the same plan, on the same node.
    fn check_evictions(&self, entries: &[Entry]) {
        for entry in entries {
            let Operation::Evict { preemptor, .. } = entry.operation else {
                continue;
            };
            let served = entries.iter().any(|e| {
                e.task == preemptor
                    && matches!(e.operation, Operation::Pipeline { .. })
                    && self.m.task(preemptor).node == self.m.task(entry.task).node
            });
            debug_assert!(served, "an eviction without the placement that it is for");
        }
    }

    /// The pipelined tasks, in the order in which they were placed, with whether evictions were made for them.
    pub fn pipelined(&self) -> Vec<(TaskId, NodeId, bool)> {
        let mut list = Vec::new();
        for entry in &self.log {
            if let (Operation::Pipeline { evicted }, Some(node)) =
                (entry.operation, self.m.task(entry.task).node)
            {
                list.push((entry.task, node, evicted));
            }
        }
        list
    }

    /// Undoes what was left applied without being committed.
    pub fn close(&mut self) {
        self.forget(Checkpoint(0));
    }
}

/// A session that is dropped leaves nothing half done behind.
impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SchedulerConf, catalog};
    use crate::plugins::fixture::Fixture;
    use serde_json::json;

    /// Lets a gang of two hold one place; then `rest` goes on.
    fn with_one_held(rest: impl FnOnce(&mut Session<'_>, [TaskId; 2], NodeId)) -> Fixture {
        let mut f = Fixture::new();
        f.node("n", json!({"cpu": "4", "pods": "10"}));
        f.group("g", json!({"spec": {"minMember": 2}}));
        let tasks = ["p0", "p1"].map(|name| f.pod(name, "g", json!({"cpu": "1"}), json!({})));
        let node = f.node_id("n");
        let text = "actions: allocate\ntiers: [{plugins: [{name: gang}]}]";
        let conf = SchedulerConf::parse(text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).unwrap();
        let (mut plugins, _) = Plugins::build(&conf);
        let mut placer = Placer::default();
        let mut ssn = Session::new(&mut f.m, &mut plugins, &mut placer, false);
        let checkpoint = ssn.checkpoint();
        ssn.allocate(tasks[0], node);
        ssn.hold(checkpoint);
        rest(&mut ssn, tasks, node);
        drop(ssn);
        f
    }

    fn states(f: &Fixture) -> Vec<Status> {
        let tasks = &f.m.job(f.job_id("g")).tasks;
        tasks.iter().map(|&task| f.m.task(task).status).collect()
    }

    #[test]
    fn a_held_place_is_given_back_when_the_cycle_closes() {
        let f = with_one_held(|ssn, _, _| assert_eq!(ssn.effects, []));
        assert_eq!(states(&f), [Status::Pending; 2]);
    }

    #[test]
    fn what_a_gang_holds_is_bound_with_what_makes_it_whole() {
        let f = with_one_held(|ssn, tasks, node| {
            let checkpoint = ssn.checkpoint();
            ssn.allocate(tasks[1], node);
            ssn.commit(checkpoint);
            let job = ssn.m.task(tasks[0]).job.expect("both are of one job");
            let binds = tasks.map(|task| (task, node)).to_vec();
            assert_eq!(ssn.effects, [Effect::Bind { job, binds }]);
        });
        assert_eq!(states(&f), [Status::Binding; 2]);
    }
}
