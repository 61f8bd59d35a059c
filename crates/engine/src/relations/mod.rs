//! Rules between pods: inter-pod affinity and anti-affinity, and topology spread.
//!
//! ```text
//!  rule of a class ──► group: which pods     (namespaces + labels, shared by all classes that say the same)
//!                 └──► term: group × node label key
//!                        matching: label value → pods of the group there
//!                        owners:   label value → pods there that keep the group away
//!                        leaning:  label value → weights of pods there that prefer (to avoid) the group
//! ```
//!
//! The counts follow every arrival and departure of a pod, so that judging a node is a look-up by the value of its
//! label, whatever the number of pods. A cluster without such rules pays nothing.

mod selector;
mod spread;

pub use selector::{PodSet, Selector};
pub use spread::{Domains, SpreadRule, has_all_keys, sum_domains};

use crate::ids::{NodeId, Sym};
use crate::intern::Interner;
use crate::model::class::{Class, label};
use crate::model::cluster::Cluster;
use crate::model::node::Nodes;
use crate::model::status::Status;
use crate::model::task::Task;
use rustc_hash::FxHashMap;
use selector::Resolved;
use smallvec::SmallVec;
use volcano_api::core::{Pod, PodAffinityTerm};

/// A set of pods that some rule is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(u32);

/// A group of pods and a node label key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TermId(u32);

/// Sums by label value; values whose sum is zero are not kept.
pub type Counts = FxHashMap<Sym, i64>;

/// The rules between pods that a class has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodRelations {
    /// Must be near a pod that meets every required term: all terms are of one group.
    pub affinity: Vec<TermId>,
    /// Must not be near.
    pub anti_affinity: Vec<TermId>,
    /// Would rather be near, or not be near where the weight is negative.
    pub preferred: Vec<(TermId, i64)>,
    /// How evenly its pods are to be spread.
    pub spread: Vec<SpreadRule>,
}

impl PodRelations {
    /// The class has no rules between pods.
    pub fn is_empty(&self) -> bool {
        self.affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.preferred.is_empty()
            && self.spread.is_empty()
    }
}

/// Counts of one term, by value of its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The pods.
    pub group: GroupId,
    /// The node label.
    pub key: Sym,
    /// Pods of the group.
    pub matching: Counts,
    /// Pods with a required anti-affinity to the group.
    pub owners: Counts,
    /// Weights of the preferences for the group that pods have, those against it negative.
    pub leaning: Counts,
}

#[derive(Clone, Debug, PartialEq)]
struct Group {
    // A pod belongs to it when it is in all of these.
    sets: Vec<Resolved>,
    terms: Vec<TermId>,
    // Kept for groups that a spread rule counts: only then the node matters, not just the value of its label.
    per_node: Option<FxHashMap<NodeId, i64>>,
}

impl Group {
    #[inline]
    fn matches(&self, task: &Task) -> bool {
        self.sets
            .iter()
            .all(|set| set.matches(task.namespace, &task.labels))
    }
}

/// Counts of pods per topology domain, for every rule that some class has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relations {
    groups: Vec<Group>,
    terms: Vec<Term>,
    group_ids: FxHashMap<Vec<PodSet>, GroupId>,
    term_ids: FxHashMap<(GroupId, Sym), TermId>,
    // Groups whose pods must have one of these labels, and those that are not so limited.
    by_label: FxHashMap<(Sym, Sym), Vec<GroupId>>,
    unlabelled: Vec<GroupId>,
}

/// What a new class added: pods that are there already are still to be counted for it.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    terms: Vec<TermId>,
    spread: Vec<GroupId>,
}

impl Fresh {
    /// Nothing is to be counted.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.spread.is_empty()
    }
}

fn add(counts: &mut Counts, value: Sym, by: i64) {
    let sum = counts.entry(value).or_insert(0);
    *sum = sum.saturating_add(by);
    if *sum == 0 {
        counts.remove(&value);
    }
}

impl Relations {
    /// Registers the rules of a pod. What is new must be counted with [`Relations::count_fresh`].
    pub fn compile(&mut self, pod: &Pod, cluster: &Cluster, strings: &mut Interner) -> (PodRelations, Fresh) {
        let (mut rules, mut fresh) = (PodRelations::default(), Fresh::default());
        let mut registry = Registry {
            relations: self,
            cluster,
            strings,
            fresh: &mut fresh,
        };
        if let Some(affinity) = &pod.spec.affinity {
            let (near, far) = (
                affinity.pod_affinity.as_ref(),
                affinity.pod_anti_affinity.as_ref(),
            );
            if let Some(required) = near.map(|a| a.required.as_slice()).filter(|r| !r.is_empty()) {
                let sets = required.iter().map(|term| registry.pod_set(term, pod)).collect();
                let group = registry.group(sets);
                rules.affinity = required
                    .iter()
                    .map(|t| registry.term(group, &t.topology_key))
                    .collect();
                rules.affinity.sort_unstable();
                rules.affinity.dedup();
            }
            for term in far.iter().flat_map(|a| &a.required) {
                rules.anti_affinity.push(registry.single(term, pod));
            }
            let (wanted, avoided) = (near.iter(), far.iter());
            let wanted = wanted
                .flat_map(|a| &a.preferred)
                .map(|p| (p, i64::from(p.weight)));
            let avoided = avoided
                .flat_map(|a| &a.preferred)
                .map(|p| (p, -i64::from(p.weight)));
            for (preference, weight) in wanted.chain(avoided).filter(|(_, weight)| *weight != 0) {
                rules
                    .preferred
                    .push((registry.single(&preference.pod_affinity_term, pod), weight));
            }
        }
        for constraint in &pod.spec.topology_spread_constraints {
            let rule = SpreadRule::compile(constraint, pod, &mut registry);
            rules.spread.push(rule);
        }
        (rules, fresh)
    }

    /// No rule exists.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Looks up again which namespaces each rule is about; true if that changed for some rule, and so all pods are to
    /// be counted anew.
    pub fn resolve_namespaces(&mut self, cluster: &Cluster, strings: &mut Interner) -> bool {
        let sets = self.groups.iter_mut().flat_map(|g| &mut g.sets);
        sets.fold(false, |changed, set| set.resolve(cluster, strings) | changed)
    }

    /// Sets all counts to zero; the caller counts every task anew.
    pub fn clear_counts(&mut self) {
        for term in &mut self.terms {
            term.matching.clear();
            term.owners.clear();
            term.leaning.clear();
        }
        self.groups
            .iter_mut()
            .filter_map(|g| g.per_node.as_mut())
            .for_each(FxHashMap::clear);
    }

    /// A task came to a node as filters see it (`sign` 1), or left it (-1).
    pub fn count(&mut self, task: &Task, class: &Class, nodes: &Nodes, node: NodeId, sign: i64) {
        let labels = &nodes[node].labels;
        for group in self.groups_of(task) {
            let Group { terms, per_node, .. } = &mut self.groups[group.0 as usize];
            for term in terms {
                let term = &mut self.terms[term.0 as usize];
                if let Some(value) = label(labels, term.key) {
                    add(&mut term.matching, value, sign);
                }
            }
            if let Some(per_node) = per_node {
                count_on_node(per_node, task, node, sign);
            }
        }
        for term in &class.relations.anti_affinity {
            let term = &mut self.terms[term.0 as usize];
            if let Some(value) = label(labels, term.key) {
                add(&mut term.owners, value, sign);
            }
        }
        for (term, weight) in &class.relations.preferred {
            let term = &mut self.terms[term.0 as usize];
            if let Some(value) = label(labels, term.key) {
                add(&mut term.leaning, value, sign * weight);
            }
        }
    }

    /// Counts a task that was there before a new class, for what that class added. No such task owns a fresh term.
    pub fn count_fresh(&mut self, fresh: &Fresh, task: &Task, nodes: &Nodes, node: NodeId) {
        for &id in &fresh.terms {
            let term = &mut self.terms[id.0 as usize];
            if self.groups[term.group.0 as usize].matches(task)
                && let Some(value) = label(&nodes[node].labels, term.key)
            {
                add(&mut term.matching, value, 1);
            }
        }
        for &id in &fresh.spread {
            let group = &mut self.groups[id.0 as usize];
            if group.matches(task)
                && let Some(per_node) = &mut group.per_node
            {
                count_on_node(per_node, task, node, 1);
            }
        }
    }

    /// The groups that a task belongs to.
    pub fn groups_of(&self, task: &Task) -> SmallVec<[GroupId; 8]> {
        let labelled = task
            .labels
            .iter()
            .filter_map(|pair| self.by_label.get(pair))
            .flatten();
        let all = labelled.chain(&self.unlabelled).copied();
        all.filter(|group| self.groups[group.0 as usize].matches(task))
            .collect()
    }

    /// The task is one of the group's pods.
    pub fn is_member(&self, group: GroupId, task: &Task) -> bool {
        self.groups[group.0 as usize].matches(task)
    }

    /// A term with its counts.
    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize]
    }

    /// The terms that are about pods like this task.
    pub fn terms_about(&self, task: &Task) -> impl Iterator<Item = &Term> {
        self.groups_of(task)
            .into_iter()
            .flat_map(|g| &self.groups[g.0 as usize].terms)
            .map(|&t| self.term(t))
    }

    /// Number of the group's pods on a node, those that are being deleted left out.
    #[inline]
    pub fn spread_on(&self, group: GroupId, node: NodeId) -> i64 {
        let per_node = self.groups[group.0 as usize].per_node.as_ref();
        per_node
            .and_then(|counts| counts.get(&node))
            .copied()
            .unwrap_or(0)
    }
}

/// Spreading does not count pods that are being deleted.
fn count_on_node(per_node: &mut FxHashMap<NodeId, i64>, task: &Task, node: NodeId, sign: i64) {
    if task.status == Status::Releasing {
        return;
    }
    let count = per_node.entry(node).or_insert(0);
    *count += sign;
    if *count == 0 {
        per_node.remove(&node);
    }
}

/// Interns groups and terms while a class is compiled.
struct Registry<'a> {
    relations: &'a mut Relations,
    cluster: &'a Cluster,
    strings: &'a mut Interner,
    fresh: &'a mut Fresh,
}

impl Registry<'_> {
    /// The pods that an affinity term is about.
    fn pod_set(&mut self, term: &PodAffinityTerm, pod: &Pod) -> PodSet {
        let mut labels = Selector::compile(term.label_selector.as_ref(), self.strings);
        labels.pin(&term.match_label_keys, &pod.metadata.labels, true, self.strings);
        labels.pin(
            &term.mismatch_label_keys,
            &pod.metadata.labels,
            false,
            self.strings,
        );
        let mut namespaces: Vec<Sym> = term.namespaces.iter().map(|n| self.strings.intern(n)).collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(self.strings.intern(&pod.metadata.namespace));
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        let selector = term.namespace_selector.as_ref();
        let namespace_selector = selector.map(|s| Selector::compile(Some(s), self.strings));
        PodSet {
            namespaces,
            namespace_selector,
            labels,
        }
    }

    fn group(&mut self, mut sets: Vec<PodSet>) -> GroupId {
        sets.sort_unstable();
        sets.dedup();
        if let Some(&id) = self.relations.group_ids.get(&sets) {
            return id;
        }
        let id = GroupId(u32::try_from(self.relations.groups.len()).expect("fewer groups than ids"));
        self.relations.group_ids.insert(sets.clone(), id);
        let resolved: Vec<Resolved> = sets
            .into_iter()
            .map(|set| Resolved::new(set, self.cluster, self.strings))
            .collect();
        match resolved.iter().find_map(Resolved::needed) {
            Some((key, values)) => {
                for &value in values {
                    self.relations.by_label.entry((key, value)).or_default().push(id);
                }
            }
            None => self.relations.unlabelled.push(id),
        }
        self.relations.groups.push(Group {
            sets: resolved,
            terms: Vec::new(),
            per_node: None,
        });
        id
    }

    fn term(&mut self, group: GroupId, topology_key: &str) -> TermId {
        let key = self.strings.intern(topology_key);
        if let Some(&id) = self.relations.term_ids.get(&(group, key)) {
            return id;
        }
        let id = TermId(u32::try_from(self.relations.terms.len()).expect("fewer terms than ids"));
        let counts = Counts::default;
        self.relations.terms.push(Term {
            group,
            key,
            matching: counts(),
            owners: counts(),
            leaning: counts(),
        });
        self.relations.term_ids.insert((group, key), id);
        self.relations.groups[group.0 as usize].terms.push(id);
        self.fresh.terms.push(id);
        id
    }

    fn single(&mut self, term: &PodAffinityTerm, pod: &Pod) -> TermId {
        let set = self.pod_set(term, pod);
        let group = self.group(vec![set]);
        self.term(group, &term.topology_key)
    }

    fn spread_group(&mut self, set: PodSet) -> GroupId {
        let id = self.group(vec![set]);
        let group = &mut self.relations.groups[id.0 as usize];
        if group.per_node.is_none() {
            group.per_node = Some(FxHashMap::default());
            self.fresh.spread.push(id);
        }
        id
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
