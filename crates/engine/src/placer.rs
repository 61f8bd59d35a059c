//! Where a task of a class would go best: verdicts and scores per class and node, kept between tasks and cycles.
//!
//! ```text
//!            change log of the nodes
//!  ... n7 n7 n3 n9 n3 ...
//!         ^ cursor of a class: on its next use, only n7, n3 and n9 are judged again
//! ```
//!
//! A class costs one look at every node when it is first used; each placement after that costs one new verdict and a
//! step in a heap. Cost follows the number of classes and of changes, not tasks times nodes.

use crate::dispatch::Plugins;
use crate::explain::{FitError, FitReason, Reasons};
use crate::ids::{ClassId, NodeId, TaskId};
use crate::model::Model;
use crate::model::class::Class;
use crate::plugin::{NormScore, Related};
use fixedbitset::FixedBitSet;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Memory that verdicts and scores may take up in all, in entries of [`ENTRY_BYTES`]; classes that were not used for
/// the longest time are dropped beyond it. A third of the 300 MiB that a scheduler may take: 200 classes on 10,000 nodes,
/// of which few clusters have as many wait at a time. One that was dropped costs a look at every node again.
const CACHE_BYTES: usize = 96 << 20;
const ENTRY_BYTES: usize = 48;

/// So few changes are compared with each other; for more, a set of all nodes is worth walking over.
const FEW_CHANGES: usize = 16;

/// The nodes that a task may go to.
#[derive(Clone, Copy, Debug)]
pub enum Candidates<'a> {
    /// Every node.
    All,
    /// These, such as the nodes of one network domain.
    Only(&'a [NodeId]),
}

/// A node that was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The node.
    pub node: NodeId,
    /// There is room now; otherwise once others have left.
    pub idle: bool,
}

/// A verdict: a group of nodes that fit, best group first, or the number of a set of reasons. Nodes that fit into what
/// is idle go before those that fit into what will be, and of each the scheduler's own before those of others.
type Verdict = u16;
const IDLE: Verdict = 0;
const IDLE_ELSEWHERE: Verdict = 1;
const FUTURE: Verdict = 2;
const FIRST_REASON: Verdict = 4;
/// Groups of nodes that fit.
const GROUPS: usize = FIRST_REASON as usize;
/// Bits that tell them apart.
const GROUP_BITS: u32 = 2;
const ABSENT: Verdict = u16::MAX;
const UNKNOWN: Verdict = u16::MAX - 1;

/// Verdicts and scores of all classes in use.
#[derive(Default)]
pub struct Placer {
    caches: Vec<Option<Box<ClassCache>>>,
    live: usize,
    uses: u64,
    changed: FixedBitSet,
    /// The nodes' epoch and the start of their log when caches were last looked through.
    trimmed_at: (u64, u64),
}

struct ClassCache {
    /// Of the class.
    serial: u64,
    used: u64,
    epoch: u64,
    cursor: u64,
    slots: Vec<Slot>,
    /// Node-local scores, kept apart from the keys only where normalised scores are added to them.
    base: Vec<f64>,
    heap: BinaryHeap<Entry>,
    reasons: Vec<(Reasons, u32)>,
    norms: Vec<Norm>,
}

/// What is known of a node for one class, side by side: judging a node again touches one cache line of it.
#[derive(Clone, Copy)]
struct Slot {
    /// Its place in the heap, if it fits: the score, and whether it fits now.
    key: u64,
    /// The tie-break of the heap.
    inverse_rank: u32,
    /// The whole verdict.
    verdict: Verdict,
    /// The verdict of the node's description alone.
    fixed: Verdict,
}

/// A heap entry: key, then the reverse of the rank by name, then the node.
type Entry = (u64, u32, u32);

/// A normalised score of one class.
struct Norm {
    score: NormScore,
    raw: Vec<i64>,
    /// Number of nodes by raw score, in each group of nodes that fit.
    feasible: [BTreeMap<i64, u32>; GROUPS],
    max_used: i64,
}

/// A score without the noise of the order in which its parts were added: ties must be ties in every run.
fn rounded(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}

/// Scores as integers that compare alike, below the bits of the group.
fn key_of(group: Verdict, score: f64) -> u64 {
    let bits = rounded(score).to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    (u64::from(FIRST_REASON - 1 - group) << (64 - GROUP_BITS)) | (ordered >> GROUP_BITS)
}

/// The score in a key.
fn score_of(key: u64) -> f64 {
    let ordered = key << GROUP_BITS;
    let bits = if ordered >> 63 == 1 {
        ordered & !(1 << 63)
    } else {
        !ordered
    };
    rounded(f64::from_bits(bits))
}

impl Norm {
    /// The highest raw score among the nodes that are compared: those of the best group that has any.
    fn max(&self) -> i64 {
        let compared = self.feasible.iter().find_map(BTreeMap::last_key_value);
        compared.map_or(0, |(&raw, _)| raw)
    }

    fn value(&self, node: usize) -> f64 {
        self.score.normalized(self.raw[node], self.max_used)
    }

    /// A node of this verdict enters or leaves; one that does not fit is not counted.
    fn count(&mut self, node: usize, verdict: Verdict, enter: bool) {
        let Some(feasible) = self.feasible.get_mut(usize::from(verdict)) else {
            return;
        };
        let count = feasible.entry(self.raw[node]).or_default();
        if enter {
            *count += 1;
        } else {
            *count -= 1;
            if *count == 0 {
                feasible.remove(&self.raw[node]);
            }
        }
    }
}

impl Placer {
    /// The best node for a task; `Err` says why there is none.
    pub fn choose(
        &mut self,
        m: &Model,
        plugins: &Plugins,
        task: TaskId,
        candidates: Candidates<'_>,
    ) -> Result<Choice, Arc<FitError>> {
        let class = m.task(task).class;
        self.refresh(m, plugins, class);
        let cache = self.caches[class.index()]
            .as_deref_mut()
            .expect("refresh made it");
        let related = plugins.relate(m, task);
        match candidates {
            Candidates::All if related.is_empty() && !plugins.has_best_node() => {
                cache.top().ok_or_else(|| Arc::new(cache.fit_error()))
            }
            Candidates::All => {
                let nodes: Vec<NodeId> = m.nodes.ids().collect();
                cache.scan(m, plugins, task, &nodes, &related)
            }
            Candidates::Only(nodes) => cache.scan(m, plugins, task, nodes, &related),
        }
    }

    /// The nodes that pass every filter that eviction could not cure, the scheduler's own first, by name: where victims
    /// may be looked for.
    pub fn nodes_for_eviction(&mut self, m: &Model, plugins: &Plugins, task: TaskId) -> Vec<NodeId> {
        let class_id = m.task(task).class;
        let class = m.class(class_id);
        let related = plugins.relate(m, task);
        let resolvable = |reasons: &Reasons| reasons.iter().all(FitReason::is_resolvable);
        let mut nodes: Vec<NodeId> = Vec::new();
        for node in m.nodes.ids() {
            if resolvable(&self.static_reasons(m, plugins, class_id, node))
                && resolvable(&plugins.filter_usage(m, class, node))
                && related.iter().all(|r| resolvable(&r.filter(m, node)))
            {
                nodes.push(node);
            }
        }
        nodes.sort_unstable_by_key(|&node| (m.nodes.tally(node).elsewhere, m.nodes.rank(node)));
        nodes
    }

    /// The same nodes, best first. O(n log n).
    pub fn rank_for_eviction(&mut self, m: &Model, plugins: &Plugins, task: TaskId) -> Vec<NodeId> {
        let nodes = self.nodes_for_eviction(m, plugins, task);
        let related = plugins.relate(m, task);
        let scores = full_scores(m, plugins, m.task(task).class, &nodes, &related);
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        let elsewhere = |at: usize| m.nodes.tally(nodes[at]).elsewhere;
        // Stable: equal scores stay in the order of names.
        order.sort_by(|&a, &b| {
            elsewhere(a)
                .cmp(&elsewhere(b))
                .then(scores[b].total_cmp(&scores[a]))
        });
        order.into_iter().map(|at| nodes[at]).collect()
    }

    fn static_reasons(&mut self, m: &Model, plugins: &Plugins, class: ClassId, node: NodeId) -> Reasons {
        if let Some(Some(cache)) = self.caches.get(class.index())
            && cache.serial == m.class(class).serial
            && cache.epoch == m.nodes.epoch
            && cache.cursor == m.nodes.log_end()
        {
            let code = cache.slots[node.index()].fixed;
            if code == IDLE {
                return Reasons::new();
            }
            if code != UNKNOWN {
                return cache.reasons[usize::from(code - FIRST_REASON)].0.clone();
            }
        }
        plugins.filter_static(m, m.class(class), node)
    }

    /// Why a task cannot go to one node now, counting what will be idle; empty when it can.
    pub fn judge(m: &Model, plugins: &Plugins, task: TaskId, node: NodeId) -> Reasons {
        let class = m.class_of(task);
        if let Some(dim) = m.first_short(node, &class.request) {
            return Reasons::from_elem(FitReason::Insufficient(dim), 1);
        }
        Self::judge_filters(m, plugins, task, node)
    }

    /// The same without the look at resources.
    pub fn judge_filters(m: &Model, plugins: &Plugins, task: TaskId, node: NodeId) -> Reasons {
        let class = m.class_of(task);
        let mut reasons = plugins.filter_static(m, class, node);
        if reasons.is_empty() {
            reasons = plugins.filter_usage(m, class, node);
        }
        if reasons.is_empty() {
            reasons = Self::judge_related(m, plugins, task, node);
        }
        reasons
    }

    /// Only the rules that look at pods of other nodes.
    pub fn judge_related(m: &Model, plugins: &Plugins, task: TaskId, node: NodeId) -> Reasons {
        let related = plugins.relate(m, task);
        related
            .iter()
            .map(|r| r.filter(m, node))
            .find(|reasons| !reasons.is_empty())
            .unwrap_or_default()
    }

    /// Forgets everything, after the configuration changed.
    pub fn clear(&mut self) {
        *self = Placer::default();
    }

    fn refresh(&mut self, m: &Model, plugins: &Plugins, class: ClassId) {
        if self.caches.len() <= class.index() {
            self.caches.resize_with(class.index() + 1, || None);
        }
        self.uses += 1;
        let serial = m.class(class).serial;
        if self.caches[class.index()]
            .as_ref()
            .is_some_and(|c| c.serial != serial)
        {
            self.drop_cache(class.index());
        }
        if self.caches[class.index()].is_none() {
            self.make_room(m.nodes.len());
            self.caches[class.index()] = Some(Box::new(ClassCache::empty(serial)));
            self.live += 1;
        }
        self.changed.grow(m.nodes.len());
        let cache = self.caches[class.index()].as_deref_mut().expect("made above");
        cache.used = self.uses;
        cache.refresh(m, plugins, class, &mut self.changed);
    }

    fn make_room(&mut self, nodes: usize) {
        let most = (CACHE_BYTES / (ENTRY_BYTES * nodes.max(1))).max(8);
        if self.live >= most {
            let oldest = self
                .caches
                .iter()
                .enumerate()
                .filter_map(|(at, c)| Some((c.as_ref()?.used, at)))
                .min();
            if let Some((_, at)) = oldest {
                self.drop_cache(at);
            }
        }
    }

    /// Drops what would be built anew on its next use: of classes that were not used since so many changes ago that the
    /// nodes no longer keep them, or since nodes came or went.
    pub fn trim(&mut self, m: &Model) {
        let now = (m.nodes.epoch, m.nodes.log_start());
        if std::mem::replace(&mut self.trimmed_at, now) == now {
            return;
        }
        for at in 0..self.caches.len() {
            let is_stale = |cache: &ClassCache| {
                cache.epoch != m.nodes.epoch || m.nodes.changes_since(cache.cursor).is_none()
            };
            if self.caches[at].as_deref().is_some_and(is_stale) {
                self.drop_cache(at);
            }
        }
    }

    fn drop_cache(&mut self, at: usize) {
        self.caches[at] = None;
        self.live -= 1;
    }
}

/// There is room for the class now. A host port that a pod evicted in this cycle holds is free only once it has gone.
pub fn fits_now(m: &Model, class: &Class, node: NodeId) -> bool {
    m.nodes.fits_idle(node, &class.request)
        && (class.ports.is_empty() || m.nodes.tally(node).evicted_now == 0)
}

/// Scores of nodes for a task, all parts together.
fn full_scores(
    m: &Model,
    plugins: &Plugins,
    class_id: ClassId,
    nodes: &[NodeId],
    related: &[Box<dyn Related + '_>],
) -> Vec<f64> {
    let class = m.class(class_id);
    let mut scores: Vec<f64> = nodes
        .iter()
        .map(|&node| plugins.node_order(m, class, node))
        .collect();
    for score in plugins.norm_scores().iter().filter(|s| (s.applies)(m, class)) {
        let raw: Vec<i64> = nodes.iter().map(|&node| (score.raw)(m, class, node)).collect();
        let max = raw.iter().copied().max().unwrap_or(0);
        scores
            .iter_mut()
            .zip(raw)
            .for_each(|(sum, raw)| *sum += score.normalized(raw, max));
    }
    related.iter().for_each(|r| r.score(m, nodes, &mut scores));
    scores.iter_mut().for_each(|score| *score = rounded(*score));
    scores
}

impl ClassCache {
    fn empty(serial: u64) -> Self {
        ClassCache {
            serial,
            used: 0,
            epoch: u64::MAX,
            cursor: 0,
            slots: Vec::new(),
            base: Vec::new(),
            heap: BinaryHeap::new(),
            reasons: Vec::new(),
            norms: Vec::new(),
        }
    }

    fn refresh(&mut self, m: &Model, plugins: &Plugins, class: ClassId, changed: &mut FixedBitSet) {
        if self.epoch != m.nodes.epoch {
            return self.rebuild(m, plugins, class);
        }
        let Some(changes) = m.nodes.changes_since(self.cursor) else {
            return self.rebuild(m, plugins, class);
        };
        if changes.is_empty() {
            return;
        }
        if changes.iter().any(|c| c.of_spec()) && self.norms_differ(m, plugins, class) {
            return self.rebuild(m, plugins, class);
        }
        for change in changes.iter().filter(|change| change.of_spec()) {
            self.slots[change.node().index()].fixed = UNKNOWN;
            self.refresh_raw(m, class, change.node().index());
        }
        if changes.len() <= FEW_CHANGES {
            // The usual case between two tasks of a gang: the one node that the last task went to.
            for (at, change) in changes.iter().enumerate() {
                if !changes[..at]
                    .iter()
                    .any(|earlier| earlier.node() == change.node())
                {
                    self.judge(m, plugins, class, change.node());
                }
            }
        } else {
            // Each node is judged once, however often it changed, and in the order in which they lie in memory.
            changed.extend(changes.iter().map(|change| change.node().index()));
            for at in changed.ones() {
                self.judge(m, plugins, class, NodeId::from_index(at));
            }
            changed.clear();
        }
        self.cursor = m.nodes.log_end();
        self.settle();
    }

    fn norms_differ(&self, m: &Model, plugins: &Plugins, class: ClassId) -> bool {
        let class = m.class(class);
        plugins
            .norm_scores()
            .iter()
            .filter(|s| (s.applies)(m, class))
            .count()
            != self.norms.len()
    }

    fn refresh_raw(&mut self, m: &Model, class: ClassId, at: usize) {
        for norm in &mut self.norms {
            norm.count(at, self.slots[at].verdict, false);
            norm.raw[at] = (norm.score.raw)(m, m.class(class), NodeId::from_index(at));
            norm.count(at, self.slots[at].verdict, true);
        }
    }

    fn rebuild(&mut self, m: &Model, plugins: &Plugins, class_id: ClassId) {
        let (n, class) = (m.nodes.len(), m.class(class_id));
        self.epoch = m.nodes.epoch;
        self.cursor = m.nodes.log_end();
        self.slots = vec![
            Slot {
                key: 0,
                inverse_rank: 0,
                verdict: ABSENT,
                fixed: UNKNOWN
            };
            n
        ];
        for (at, slot) in self.slots.iter_mut().enumerate() {
            slot.inverse_rank = u32::MAX - m.nodes.rank(NodeId::from_index(at));
        }
        self.reasons.clear();
        self.norms = plugins
            .norm_scores()
            .iter()
            .filter(|score| (score.applies)(m, class))
            .map(|&score| Norm {
                score,
                raw: vec![0; n],
                feasible: Default::default(),
                max_used: 0,
            })
            .collect();
        for norm in &mut self.norms {
            for node in m.nodes.ids() {
                norm.raw[node.index()] = (norm.score.raw)(m, class, node);
            }
        }
        self.base = vec![0.0; if self.norms.is_empty() { 0 } else { n }];
        for node in m.nodes.ids() {
            self.assess(m, plugins, class_id, node);
        }
        self.norms.iter_mut().for_each(|norm| norm.max_used = norm.max());
        self.rekey();
    }

    /// Judges one node anew and files it.
    fn judge(&mut self, m: &Model, plugins: &Plugins, class_id: ClassId, node: NodeId) {
        let before = self.slots[node.index()];
        self.assess(m, plugins, class_id, node);
        let after = self.slots[node.index()];
        // An entry that is too good stays: it is corrected when it comes to the top. Only a better one is needed now.
        if after.verdict < FIRST_REASON && (before.verdict >= FIRST_REASON || after.key > before.key) {
            self.heap.push((after.key, after.inverse_rank, node.0));
        }
    }

    /// Judges one node anew, the heap apart.
    fn assess(&mut self, m: &Model, plugins: &Plugins, class_id: ClassId, node: NodeId) {
        let (at, class) = (node.index(), m.class(class_id));
        let before = self.slots[at].verdict;
        let verdict = if m.nodes.is_present(node) {
            self.verdict(m, plugins, class, node)
        } else {
            ABSENT
        };
        self.refile(at, before, verdict);
        if verdict < FIRST_REASON {
            let base = plugins.node_order(m, class, node);
            if let Some(kept) = self.base.get_mut(at) {
                *kept = base;
            }
            let score = self.norms.iter().fold(base, |sum, norm| sum + norm.value(at));
            self.slots[at].key = key_of(verdict, score);
        }
    }

    /// Whether the node fits, else why not: what it lacks, or what the filters say. Pods that request nothing are left to
    /// the filters.
    fn verdict(&mut self, m: &Model, plugins: &Plugins, class: &Class, node: NodeId) -> Verdict {
        let (at, short) = (node.index(), m.first_short(node, &class.request));
        let lacks = |dim| Reasons::from_elem(FitReason::Insufficient(dim), 1);
        if let Some(dim) = short
            && !class.request.is_empty()
        {
            return self.reason_code(lacks(dim));
        }
        if self.slots[at].fixed == UNKNOWN {
            let reasons = plugins.filter_static(m, class, node);
            self.slots[at].fixed = if reasons.is_empty() {
                IDLE
            } else {
                self.reason_code(reasons)
            };
        }
        if self.slots[at].fixed != IDLE {
            return self.static_verdict(m, plugins, class, node);
        }
        let usage = plugins.filter_usage(m, class, node);
        if !usage.is_empty() {
            self.reason_code(usage)
        } else if let Some(dim) = short {
            self.reason_code(lacks(dim))
        } else {
            let group = if fits_now(m, class, node) { IDLE } else { FUTURE };
            group + Verdict::from(m.nodes.tally(node).elsewhere)
        }
    }

    /// The number of pods is looked at before anything else and told beside it.
    fn static_verdict(&mut self, m: &Model, plugins: &Plugins, class: &Class, node: NodeId) -> Verdict {
        let code = self.slots[node.index()].fixed;
        if m.nodes.max_pods(node) > m.nodes.tally(node).pods
            || !plugins
                .filter_usage(m, class, node)
                .contains(&FitReason::PodNumber)
        {
            return code;
        }
        let mut reasons = self.reasons[usize::from(code - FIRST_REASON)].0.clone();
        reasons.push(FitReason::PodNumber);
        self.reason_code(reasons)
    }

    fn refile(&mut self, at: usize, before: Verdict, after: Verdict) {
        self.slots[at].verdict = after;
        let reason = |code: Verdict| {
            (FIRST_REASON..UNKNOWN)
                .contains(&code)
                .then(|| usize::from(code - FIRST_REASON))
        };
        if let Some(code) = reason(before) {
            self.reasons[code].1 -= 1;
        }
        if let Some(code) = reason(after) {
            self.reasons[code].1 += 1;
        }
        if before != after {
            for norm in &mut self.norms {
                norm.count(at, before, false);
                norm.count(at, after, true);
            }
        }
    }

    fn reason_code(&mut self, reasons: Reasons) -> Verdict {
        let at = self
            .reasons
            .iter()
            .position(|(known, _)| *known == reasons)
            .unwrap_or_else(|| {
                self.reasons.push((reasons, 0));
                self.reasons.len() - 1
            });
        // There are a few dozen sets of reasons; should there ever be more than codes, the last ones are merged.
        Verdict::try_from(at)
            .unwrap_or(u16::MAX)
            .saturating_add(FIRST_REASON)
            .min(UNKNOWN - 1)
    }

    /// After changes: follows a moved maximum, and drops stale heap entries once they are the majority.
    fn settle(&mut self) {
        let mut moved = false;
        for norm in &mut self.norms {
            moved |= norm.max() != norm.max_used;
            norm.max_used = norm.max();
        }
        if moved || self.heap.len() > 2 * self.slots.len() + 64 {
            self.rekey();
        }
    }

    fn rekey(&mut self) {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.clear();
        for at in 0..self.slots.len() {
            if self.slots[at].verdict >= FIRST_REASON {
                continue;
            }
            if let Some(&base) = self.base.get(at) {
                let score = self.norms.iter().fold(base, |sum, norm| sum + norm.value(at));
                self.slots[at].key = key_of(self.slots[at].verdict, score);
            }
            entries.push((
                self.slots[at].key,
                self.slots[at].inverse_rank,
                NodeId::from_index(at).0,
            ));
        }
        self.heap = BinaryHeap::from(entries);
    }

    /// The best node of all.
    fn top(&mut self) -> Option<Choice> {
        while let Some(&(key, inverse_rank, node)) = self.heap.peek() {
            let slot = self.slots[node as usize];
            if slot.verdict < FIRST_REASON && slot.key == key {
                return Some(Choice {
                    node: NodeId(node),
                    idle: slot.verdict <= IDLE_ELSEWHERE,
                });
            }
            self.heap.pop();
            if slot.verdict < FIRST_REASON && slot.key < key {
                self.heap.push((slot.key, inverse_rank, node));
            }
        }
        None
    }

    /// The node-local score of a node that fits.
    fn base_score(&self, at: usize) -> f64 {
        self.base
            .get(at)
            .copied()
            .unwrap_or_else(|| score_of(self.slots[at].key))
    }

    fn fit_error(&self) -> FitError {
        let mut error = ErrorCount::default();
        for (reasons, count) in self.reasons.iter().filter(|(_, count)| *count > 0) {
            error.add(reasons, *count);
        }
        error.finish()
    }

    /// Scores of some of the nodes that fit: what is kept of each, normalised over these, and what related rules add.
    fn scores(&self, m: &Model, nodes: &[NodeId], related: &[Box<dyn Related + '_>]) -> Vec<f64> {
        let mut scores: Vec<f64> = nodes.iter().map(|node| self.base_score(node.index())).collect();
        for norm in &self.norms {
            let max = nodes.iter().map(|node| norm.raw[node.index()]).max().unwrap_or(0);
            for (sum, node) in scores.iter_mut().zip(nodes) {
                *sum += norm.score.normalized(norm.raw[node.index()], max);
            }
        }
        related.iter().for_each(|r| r.score(m, nodes, &mut scores));
        scores.iter_mut().for_each(|score| *score = rounded(*score));
        scores
    }

    /// The best of some nodes, with rules between pods.
    fn scan(
        &mut self,
        m: &Model,
        plugins: &Plugins,
        task: TaskId,
        nodes: &[NodeId],
        related: &[Box<dyn Related + '_>],
    ) -> Result<Choice, Arc<FitError>> {
        let mut error = ErrorCount::default();
        let mut groups: [Vec<NodeId>; GROUPS] = Default::default();
        for &node in nodes {
            let verdict = self.slots[node.index()].verdict;
            if verdict == ABSENT {
                continue;
            }
            let told = (verdict >= FIRST_REASON)
                .then(|| &self.reasons[usize::from(verdict - FIRST_REASON)].0)
                .filter(|reasons| !others_are_told(reasons));
            if let Some(reasons) = told {
                error.add(reasons, 1);
                continue;
            }
            let refused = related.iter().map(|r| r.filter(m, node)).find(|r| !r.is_empty());
            match (verdict, refused) {
                (..FIRST_REASON, None) => groups[usize::from(verdict)].push(node),
                (..FIRST_REASON, Some(reasons)) => error.add(&reasons, 1),
                (_, refused) => {
                    let mut reasons = self.reasons[usize::from(verdict - FIRST_REASON)].0.clone();
                    reasons.extend(refused.into_iter().flatten());
                    error.add(&reasons, 1);
                }
            }
        }
        let Some(at) = groups.iter().position(|group| !group.is_empty()) else {
            return Err(Arc::new(error.finish()));
        };
        let (group, in_idle) = (std::mem::take(&mut groups[at]), at <= usize::from(IDLE_ELSEWHERE));
        // Rules between pods reach beyond a node: while what was evicted in this cycle still runs anywhere, a place
        // that they allow is a place for later.
        let in_idle = in_idle && (related.is_empty() || m.evicted_now == 0);
        let scores = self.scores(m, &group, related);
        let scored: Vec<(NodeId, f64)> = group.into_iter().zip(scores).collect();
        let best = plugins.best_node(m, task, &scored).or_else(|| {
            let better = |a: &&(NodeId, f64), b: &&(NodeId, f64)| {
                a.1.total_cmp(&b.1)
                    .then_with(|| m.nodes.rank(b.0).cmp(&m.nodes.rank(a.0)))
            };
            scored.iter().max_by(better).map(|best| best.0)
        });
        best.map(|node| Choice { node, idle: in_idle })
            .ok_or_else(|| Arc::new(error.finish()))
    }
}

/// Filters that look at other pods are asked too after these reasons: full nodes and ports, which eviction could cure.
fn others_are_told(reasons: &Reasons) -> bool {
    reasons
        .iter()
        .all(|reason| matches!(reason, FitReason::PodNumber | FitReason::HostPort))
}

/// Counts reasons over nodes.
#[derive(Default)]
struct ErrorCount {
    nodes: u32,
    reasons: BTreeMap<FitReason, u32>,
}

impl ErrorCount {
    fn add(&mut self, reasons: &Reasons, nodes: u32) {
        self.nodes += nodes;
        for reason in reasons {
            *self.reasons.entry(reason.clone()).or_default() += nodes;
        }
    }

    fn finish(self) -> FitError {
        FitError::Nodes {
            nodes: self.nodes,
            reasons: self.reasons,
            hyper_node: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_groups_and_scores_do_and_give_the_score_back() {
        let scores = [-250.5, -0.000001, 0.0, 0.5, 99.999999, 100.0, 1234.5];
        for pair in scores.windows(2) {
            assert!(key_of(IDLE, pair[0]) < key_of(IDLE, pair[1]), "{pair:?}");
        }
        for score in scores {
            for group in IDLE..FIRST_REASON {
                assert_eq!(score_of(key_of(group, score)), score);
                if group > IDLE {
                    let better = key_of(group - 1, score);
                    assert!(
                        key_of(group, 1e9) < better,
                        "room now goes before room later, own nodes before others"
                    );
                }
            }
        }
    }
}
