//! The configured plugins, and how their answers combine at each extension point.
//!
//! "Walk" below means: tiers in order, plugins in order inside the tier, those that are switched off or do not take
//! part left out. The lists are made once per configuration, so that a walk is a loop over a short slice.

use crate::config::{PluginConf, SchedulerConf, Switches};
use crate::effect::Step;
use crate::explain::{AdmissionReason, FitReason, Invalid, Reasons};
use crate::ids::{JobId, NodeId, QueueId, TaskId};
use crate::model::Model;
use crate::model::class::Class;
use crate::model::delta::Delta;
use crate::plugin::{Allotment, Domain, EvictionKind, NormScore, POINTS, Plugin, Point, Related, Vote};
use crate::plugins;
use crate::plugins::predicates::volumes::binding::{ClaimKey, Source};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The configured plugins.
pub struct Plugins {
    list: Vec<Box<dyn Plugin>>,
    tiers: [Vec<Vec<usize>>; POINTS],
    norm_scores: Vec<NormScore>,
    simulates: bool,
}

/// A plugin that the configuration names and this engine does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin {0} is not available in this engine")]
pub struct Unavailable(pub String);

impl Plugins {
    /// Builds the plugins of a configuration. Those that the engine does not have are returned by name: the caller
    /// decides whether to go on without them.
    pub fn build(conf: &SchedulerConf) -> (Self, Vec<Unavailable>) {
        let mut plugins = Plugins {
            list: Vec::new(),
            tiers: Default::default(),
            norm_scores: Vec::new(),
            simulates: true,
        };
        let mut missing = Vec::new();
        for tier in &conf.tiers {
            plugins.tiers.iter_mut().for_each(|lists| lists.push(Vec::new()));
            for entry in &tier.plugins {
                match plugins::build(entry) {
                    Some(plugin) => plugins.add(plugin, entry),
                    None => missing.push(Unavailable(entry.name.clone())),
                }
            }
        }
        (plugins, missing)
    }

    fn add(&mut self, plugin: Box<dyn Plugin>, entry: &PluginConf) {
        let at = self.list.len();
        for &point in plugin.points() {
            if enabled(point, &entry.switches) {
                let lists = &mut self.tiers[point as usize];
                lists.last_mut().expect("a tier was begun").push(at);
            }
        }
        if plugin.points().contains(&Point::Predicate) && entry.switches.predicate {
            self.simulates &= entry.switches.preemptable || entry.switches.allocatable;
        }
        if entry.switches.node_order {
            self.norm_scores.extend_from_slice(plugin.norm_scores());
        }
        self.list.push(plugin);
    }

    /// Opens every plugin for a cycle.
    pub fn open(&mut self, m: &Model, now: i64, probe: &mut dyn FnMut(Step<'_>)) {
        for plugin in &mut self.list {
            plugin.open(m, now);
            probe(Step::Plugin(plugin.name()));
        }
    }

    /// Writes what plugins have decided and no object shows yet into an object of a snapshot.
    pub fn show(&self, m: &Model, object: &mut Delta) {
        self.list.iter().for_each(|plugin| plugin.show(m, object));
    }

    fn walk(&self, point: Point) -> impl Iterator<Item = &dyn Plugin> {
        self.tiers[point as usize]
            .iter()
            .flatten()
            .map(|&at| self.list[at].as_ref())
    }

    fn tiers(&self, point: Point) -> impl Iterator<Item = impl Iterator<Item = &dyn Plugin>> {
        self.tiers[point as usize]
            .iter()
            .map(|tier| tier.iter().map(|&at| self.list[at].as_ref()))
    }

    // ---- order

    fn first_unequal(&self, point: Point, compare: impl Fn(&dyn Plugin) -> Ordering) -> Ordering {
        self.walk(point)
            .map(compare)
            .find(|o| o.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Which queue is served first; ties: older, then by name.
    pub fn queue_order(&self, m: &Model, a: QueueId, b: QueueId) -> Ordering {
        let (qa, qb) = (m.queue(a), m.queue(b));
        self.first_unequal(Point::QueueOrder, |p| p.queue_order(m, a, b))
            .then_with(|| qa.created.cmp(&qb.created))
            .then_with(|| m.text(qa.name).cmp(m.text(qb.name)))
    }

    /// Which queue loses tasks first; ties: the reverse of `queue_order`.
    pub fn victim_queue_order(&self, m: &Model, a: QueueId, b: QueueId, preemptor: QueueId) -> Ordering {
        self.first_unequal(Point::VictimQueueOrder, |p| {
            p.victim_queue_order(m, a, b, preemptor)
        })
        .then_with(|| self.queue_order(m, b, a))
    }

    /// Which job is served first as far as plugins say.
    pub fn job_order_of_plugins(&self, m: &Model, a: JobId, b: JobId) -> Ordering {
        self.first_unequal(Point::JobOrder, |p| p.job_order(m, a, b))
    }

    /// Which job is served first; ties: older, then by id.
    pub fn job_order(&self, m: &Model, a: JobId, b: JobId) -> Ordering {
        self.job_order_of_plugins(m, a, b)
            .then_with(|| m.job(a).created().cmp(&m.job(b).created()))
            .then_with(|| m.job(a).id.cmp(&m.job(b).id))
    }

    /// Which sub-job is served first; ties: smaller match index, then by id.
    pub fn sub_job_order(&self, m: &Model, job: JobId, a: u32, b: u32) -> Ordering {
        let (sa, sb) = (&m.job(job).sub_jobs[a as usize], &m.job(job).sub_jobs[b as usize]);
        self.first_unequal(Point::SubJobOrder, |p| p.sub_job_order(m, job, a, b))
            .then_with(|| sa.match_index.cmp(&sb.match_index))
            .then_with(|| sa.id.cmp(&sb.id))
    }

    /// Which task is placed first; ties: smaller index in the name, older, then by UID. Tasks whose name has no
    /// index come after those that have one, so that the order is total.
    pub fn task_order(&self, m: &Model, a: TaskId, b: TaskId) -> Ordering {
        let (ta, tb) = (m.task(a), m.task(b));
        self.first_unequal(Point::TaskOrder, |p| p.task_order(m, a, b))
            .then_with(|| ta.index.is_none().cmp(&tb.index.is_none()))
            .then_with(|| ta.index.cmp(&tb.index))
            .then_with(|| ta.created.cmp(&tb.created))
            .then_with(|| ta.uid.cmp(&tb.uid))
            .then_with(|| ta.name.cmp(&tb.name))
    }

    /// Which of two victims is evicted first.
    pub fn victim_order(&self, m: &Model, a: TaskId, b: TaskId, preemptor: TaskId) -> Ordering {
        let later_task = || self.task_order(m, b, a);
        let in_session = |task: TaskId| m.task(task).job.filter(|&job| m.in_session(job));
        let (ja, jb) = match (in_session(a), in_session(b)) {
            (Some(ja), Some(jb)) if ja == jb => return later_task(),
            (Some(ja), Some(jb)) => (ja, jb),
            (None, None) => return later_task(),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        };
        let (qa, qb) = (m.job(ja).queue, m.job(jb).queue);
        match in_session(preemptor) {
            Some(preemptor) if qa != qb => self.victim_queue_order(m, qa, qb, m.job(preemptor).queue),
            _ => self.job_order_of_plugins(m, jb, ja),
        }
        .then_with(later_task)
    }

    // ---- nodes

    /// The task can be judged at all; the first refusal counts.
    pub fn pre_predicate(&self, m: &Model, task: TaskId) -> Result<(), FitReason> {
        self.walk(Point::PrePredicate)
            .try_for_each(|p| p.pre_predicate(m, task))
    }

    /// Why a class cannot go to a node as its description says: whose it is, then the first plugin with reasons.
    pub fn filter_static(&self, m: &Model, class: &Class, node: NodeId) -> Reasons {
        if m.nodes.tally(node).elsewhere && m.features.is_confined() {
            return Reasons::from_elem(FitReason::OtherShard, 1);
        }
        self.walk(Point::Predicate)
            .map(|p| p.filter_static(m, class, node))
            .find(|reasons| !reasons.is_empty())
            .unwrap_or_default()
    }

    /// Why a class cannot go to a node as its usage says: the first plugin with reasons.
    pub fn filter_usage(&self, m: &Model, class: &Class, node: NodeId) -> Reasons {
        self.walk(Point::Predicate)
            .map(|p| p.filter_usage(m, class, node))
            .find(|reasons| !reasons.is_empty())
            .unwrap_or_default()
    }

    /// Rules of a task that look at pods of other nodes.
    pub fn relate<'a>(&'a self, m: &'a Model, task: TaskId) -> Vec<Box<dyn Related + 'a>> {
        let filters = self.walk(Point::Predicate).filter_map(|p| p.relate(m, task));
        let scores = self
            .walk(Point::NodeOrder)
            .filter(|p| !p.points().contains(&Point::Predicate));
        filters.chain(scores.filter_map(|p| p.relate(m, task))).collect()
    }

    /// Trial evictions are seen by the filters: each filtering plugin has `enablePreemptable` or
    /// `enabledAllocatable` on, the switches of its simulation.
    pub fn simulates(&self) -> bool {
        self.simulates
    }

    /// Sum of the node-local scores.
    #[inline]
    pub fn node_order(&self, m: &Model, class: &Class, node: NodeId) -> f64 {
        self.walk(Point::NodeOrder)
            .map(|p| p.node_order(m, class, node))
            .sum()
    }

    /// The scores to normalise.
    pub fn norm_scores(&self) -> &[NormScore] {
        &self.norm_scores
    }

    /// The node to take whatever the scores say: the first answer.
    pub fn best_node(&self, m: &Model, task: TaskId, scored: &[(NodeId, f64)]) -> Option<NodeId> {
        self.walk(Point::BestNode)
            .find_map(|p| p.best_node(m, task, scored))
    }

    /// Some plugin may overrule the scores.
    pub fn has_best_node(&self) -> bool {
        self.walk(Point::BestNode).next().is_some()
    }

    // ---- victims

    /// Victims: what plugins protect (conformance and the like) is no candidate for anybody. Inside a tier each plugin
    /// is asked about what those before it left, so that a victim that one refuses does not count as gone for the
    /// next; a tier that is left with none hands on to the next tier. What plugins limit is for the caller to ask.
    fn victims(
        &self,
        point: Point,
        candidates: &[TaskId],
        ask: impl Fn(&dyn Plugin, &[TaskId]) -> Option<Vec<TaskId>>,
    ) -> Vec<TaskId> {
        let mut candidates = self.narrowed(point, plugins::PROTECTING, candidates.to_vec(), &ask);
        for plugin in self.walk(point).filter(|p| is_limiting(*p)) {
            candidates.retain(|&task| ask(plugin, &[task]).is_none_or(|answer| !answer.is_empty()));
        }
        for tier in self.tiers(point) {
            let mut chosen: Option<Vec<TaskId>> = None;
            for plugin in tier {
                let left = chosen.as_deref().unwrap_or(&candidates);
                let answer = if is_limiting(plugin) {
                    Some(left.to_vec())
                } else {
                    ask(plugin, left)
                };
                let Some(answer) = answer else { continue };
                let empty = answer.is_empty();
                chosen = Some(answer);
                if empty {
                    break;
                }
            }
            if let Some(chosen) = chosen.filter(|c| !c.is_empty()) {
                return chosen;
            }
        }
        Vec::new()
    }

    /// What is left of candidates after each of the named plugins that takes part, in whichever tier, was asked.
    fn narrowed(
        &self,
        point: Point,
        names: &[&str],
        mut candidates: Vec<TaskId>,
        ask: &impl Fn(&dyn Plugin, &[TaskId]) -> Option<Vec<TaskId>>,
    ) -> Vec<TaskId> {
        for plugin in self.walk(point).filter(|p| names.contains(&p.name())) {
            if let Some(answer) = ask(plugin, &candidates) {
                candidates = answer;
            }
        }
        candidates
    }

    /// The candidates that may be evicted for a task of the same queue.
    pub fn preemptable(&self, m: &Model, preemptor: TaskId, candidates: &[TaskId]) -> Vec<TaskId> {
        let ask = |p: &dyn Plugin, c: &[TaskId]| p.preemptable(m, preemptor, c);
        let chosen = self.victims(Point::Preemptable, candidates, ask);
        self.narrowed(Point::Preemptable, plugins::LIMITING, chosen, &ask)
    }

    /// The candidates that may be evicted for a task of another queue. The plugins that divide the cluster between
    /// queues have a say whichever tier decided: else queues take turns at taking from one that has no more than
    /// its share.
    pub fn reclaimable(&self, m: &Model, reclaimer: TaskId, candidates: &[TaskId]) -> Vec<TaskId> {
        let ask = |p: &dyn Plugin, c: &[TaskId]| p.reclaimable(m, reclaimer, c);
        let chosen = self.victims(Point::Reclaimable, candidates, ask);
        let chosen = self.narrowed(Point::Reclaimable, plugins::DIVIDING, chosen, &ask);
        self.narrowed(Point::Reclaimable, plugins::LIMITING, chosen, &ask)
    }

    /// The candidates that a whole-gang eviction may take.
    pub fn unified_evictable(
        &self,
        m: &Model,
        kind: EvictionKind,
        evictor: JobId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let ask = |p: &dyn Plugin, c: &[TaskId]| p.unified_evictable(m, kind, evictor, c);
        let chosen = self.victims(Point::UnifiedEvictable, candidates, ask);
        self.narrowed(Point::UnifiedEvictable, plugins::LIMITING, chosen, &ask)
    }

    /// Running tasks to evict for their own sake, in the order given: the union inside a tier; the first tier that has
    /// any decides. Plugins that limit evictions propose nobody: they are asked about what the others proposed.
    pub fn victim_tasks(&self, m: &Model, running: &[TaskId]) -> Vec<TaskId> {
        for tier in self.tiers(Point::VictimTasks) {
            let proposing = tier.filter(|p| !is_limiting(*p));
            let union: BTreeSet<TaskId> = proposing.flat_map(|p| p.victim_tasks(m, running)).collect();
            if !union.is_empty() {
                let proposed = running
                    .iter()
                    .copied()
                    .filter(|task| union.contains(task))
                    .collect();
                let ask = |p: &dyn Plugin, c: &[TaskId]| Some(p.victim_tasks(m, c));
                return self.narrowed(Point::VictimTasks, plugins::LIMITING, proposed, &ask);
            }
        }
        Vec::new()
    }

    // ---- queues and jobs

    /// Some plugin says that the queue uses too much.
    pub fn overused(&self, m: &Model, queue: QueueId) -> bool {
        self.walk(Point::Overused).any(|p| p.overused(m, queue))
    }

    /// All plugins let the queue take from others.
    pub fn preemptive(&self, m: &Model, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.walk(Point::Preemptive)
            .all(|p| p.preemptive(m, queue, tasks))
    }

    /// All plugins let the queue use what the task requests.
    pub fn allocatable(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        self.walk(Point::Allocatable)
            .try_for_each(|p| p.allocatable(m, queue, task))
    }

    /// All plugins let the queue use what a missing member of a gang that lost a part requests.
    pub fn completable(&self, m: &Model, queue: QueueId, task: TaskId) -> Result<(), AdmissionReason> {
        self.walk(Point::Allocatable)
            .try_for_each(|p| p.completable(m, queue, task))
    }

    /// All plugins find the job ready.
    pub fn job_ready(&self, m: &Model, job: JobId) -> bool {
        self.walk(Point::JobReady).all(|p| p.job_ready(m, job))
    }

    /// All plugins find the sub-job ready; without sub-groups, the job.
    pub fn sub_job_ready(&self, m: &Model, job: JobId, sub_job: u32) -> bool {
        if !m.job(job).has_sub_groups() {
            return self.job_ready(m, job);
        }
        self.walk(Point::SubJobReady)
            .all(|p| p.sub_job_ready(m, job, sub_job))
    }

    /// A rejection anywhere is final; after a tier with a permission, later tiers are not asked. True by default.
    fn vote(&self, point: Point, mut ask: impl FnMut(&dyn Plugin) -> Vote) -> bool {
        for tier in self.tiers(point) {
            let mut permitted = false;
            for plugin in tier {
                match ask(plugin) {
                    Vote::Reject => return false,
                    Vote::Permit => permitted = true,
                    Vote::Abstain => {}
                }
            }
            if permitted {
                return true;
            }
        }
        true
    }

    /// The plugins vote for the job to wait for what is being released.
    pub fn job_pipelined(&self, m: &Model, job: JobId) -> bool {
        self.vote(Point::JobPipelined, |p| p.job_pipelined(m, job))
    }

    /// The plugins vote for the sub-job to wait; without sub-groups, for the job.
    pub fn sub_job_pipelined(&self, m: &Model, job: JobId, sub_job: u32) -> bool {
        if !m.job(job).has_sub_groups() {
            return self.job_pipelined(m, job);
        }
        self.vote(Point::SubJobPipelined, |p| p.sub_job_pipelined(m, job, sub_job))
    }

    /// The first tier with an opinion decides, by all of its plugins; false when there is none.
    pub fn job_starving(&self, m: &Model, job: JobId) -> bool {
        let mut tiers = self.tiers(Point::JobStarving).map(Iterator::peekable);
        match tiers.find_map(|mut tier| tier.peek().is_some().then_some(tier)) {
            Some(mut tier) => tier.all(|p| p.job_starving(m, job)),
            None => false,
        }
    }

    /// The first plugin that finds the job invalid.
    pub fn job_valid(&self, m: &Model, job: JobId) -> Result<(), Invalid> {
        self.walk(Point::JobValid).try_for_each(|p| p.job_valid(m, job))
    }

    /// The plugins vote for admitting the job; a refusal comes with its reason.
    pub fn job_enqueueable(&self, m: &Model, job: JobId) -> Result<(), AdmissionReason> {
        let mut why = None;
        let admitted = self.vote(Point::JobEnqueueable, |p| {
            let (vote, reason) = p.job_enqueueable(m, job);
            if vote == Vote::Reject {
                why = Some(
                    reason.unwrap_or_else(|| AdmissionReason::Other(format!("plugin {}", p.name()).into())),
                );
            }
            vote
        });
        match why {
            Some(why) if !admitted => Err(why),
            _ => Ok(()),
        }
    }

    /// Tells all plugins that a job was admitted.
    pub fn job_enqueued(&mut self, m: &Model, job: JobId) {
        for &at in self.tiers[Point::JobEnqueued as usize].iter().flatten() {
            self.list[at].job_enqueued(m, job);
        }
    }

    /// Per-plugin scores of hypernodes, summed.
    pub fn hyper_node_order(&self, m: &Model, job: JobId, sub_job: u32, domains: &[Domain]) -> Vec<f64> {
        let mut sums = vec![0.0; domains.len()];
        for plugin in self.walk(Point::HyperNodeOrder) {
            let scores = plugin.hyper_node_order(m, job, sub_job, domains);
            sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
        }
        sums
    }

    /// The domains to try: the first plugin with an answer, else the given one alone.
    pub fn hyper_node_gradient(&self, m: &Model, job: JobId, within: &Domain) -> Vec<Vec<Domain>> {
        self.walk(Point::HyperNodeGradient)
            .find_map(|p| p.hyper_node_gradient(m, job, within))
            .unwrap_or_else(|| vec![vec![within.clone()]])
    }

    /// Queues that take no part because their place in the hierarchy is broken, with the reason.
    pub fn invalid_queues(&self, m: &Model) -> Vec<(QueueId, std::sync::Arc<str>)> {
        self.list
            .iter()
            .flat_map(|plugin| plugin.invalid_queues(m))
            .collect()
    }

    /// How the waiting claims of a placed task are to be served, before it is bound.
    pub fn claim_sources(&self, m: &Model, task: TaskId) -> Vec<(ClaimKey, Source)> {
        self.list
            .iter()
            .flat_map(|plugin| plugin.claim_sources(m, task))
            .collect()
    }

    /// What was made of the queues in the last cycle, by the first plugin that divides the cluster.
    pub fn allotments(&self, m: &Model) -> BTreeMap<QueueId, Allotment> {
        let all = self.list.iter().map(|plugin| plugin.allotments(m));
        all.into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    /// The share of a job, by the first plugin that compares shares.
    pub fn job_share(&self, m: &Model, job: JobId) -> Option<f64> {
        self.list.iter().find_map(|plugin| plugin.job_share(m, job))
    }

    /// Tells all plugins that a task was charged or no longer is.
    pub fn on_charge(&mut self, m: &Model, task: TaskId, charged: bool) {
        for &at in self.tiers[Point::Events as usize].iter().flatten() {
            let plugin = &mut self.list[at];
            if charged {
                plugin.on_allocate(m, task)
            } else {
                plugin.on_deallocate(m, task)
            }
        }
    }
}

/// The plugin limits how many are evicted.
fn is_limiting(plugin: &dyn Plugin) -> bool {
    plugins::LIMITING.contains(&plugin.name())
}

/// The switch of an extension point; some have none.
fn enabled(point: Point, switches: &Switches) -> bool {
    match point {
        Point::QueueOrder => switches.queue_order,
        Point::JobOrder => switches.job_order,
        Point::SubJobOrder => switches.sub_job_order,
        Point::TaskOrder => switches.task_order,
        Point::PrePredicate | Point::Predicate => switches.predicate,
        Point::NodeOrder => switches.node_order,
        Point::BestNode => switches.best_node,
        Point::Preemptable => switches.preemptable,
        Point::Reclaimable => switches.reclaimable,
        Point::Overused => switches.overused,
        Point::Preemptive => switches.preemptive,
        Point::Allocatable => switches.allocatable,
        Point::JobReady => switches.job_ready,
        Point::SubJobReady => switches.sub_job_ready,
        Point::JobPipelined => switches.job_pipelined,
        Point::SubJobPipelined => switches.sub_job_pipelined,
        Point::JobStarving => switches.job_starving,
        Point::JobEnqueueable | Point::JobEnqueued => switches.job_enqueued,
        Point::VictimTasks => switches.victim,
        Point::HyperNodeOrder => switches.hyper_node_order,
        Point::HyperNodeGradient => switches.hyper_node_gradient,
        Point::VictimQueueOrder | Point::UnifiedEvictable | Point::JobValid | Point::Events => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Tier;
    use crate::plugins::fixture::{Fixture, conf};
    use serde_json::json;

    /// Wants everybody gone.
    struct Sweeping;

    impl Plugin for Sweeping {
        fn name(&self) -> &'static str {
            "sweeping"
        }

        fn points(&self) -> &'static [Point] {
            &[Point::VictimTasks]
        }

        fn victim_tasks(&self, _m: &Model, running: &[TaskId]) -> Vec<TaskId> {
            running.iter().rev().copied().collect()
        }
    }

    #[test]
    fn a_plugin_that_limits_evictions_proposes_nobody_and_is_asked_whoever_does() {
        let mut f = Fixture::new();
        f.node("n", json!({"cpu": "8", "pods": "10"}));
        f.group("j", json!({"spec": {"minMember": 1}}));
        let running = ["p0", "p1", "p2"].map(|name| f.running(name, "j", "n", json!({"cpu": "1"})));
        let budget = json!({"metadata": {"name": "b", "namespace": "ns"}, "spec": {"selector": {}},
            "status": {"disruptionsAllowed": 2}});
        let budget = serde_json::from_value(budget).expect("a good budget");
        f.m.apply(Delta::DisruptionBudget(budget));
        let tier = Tier {
            plugins: vec![conf("pdb", json!({}))],
        };
        let (mut plugins, missing) = Plugins::build(&SchedulerConf {
            tiers: vec![tier],
            ..SchedulerConf::default()
        });
        assert_eq!(missing, []);
        assert_eq!(plugins.victim_tasks(&f.m, &running), [], "nobody proposes");
        // In a later tier than the limit.
        plugins.tiers.iter_mut().for_each(|lists| lists.push(Vec::new()));
        plugins.add(Box::new(Sweeping), &conf("sweeping", json!({})));
        assert_eq!(plugins.victim_tasks(&f.m, &running), running[..2]);
    }
}
