//! Required affinity and anti-affinity between pods.

use crate::explain::FitReason;
use crate::ids::{NodeId, Sym, TaskId};
use crate::model::Model;
use crate::model::class::label;
use crate::relations::{Counts, Term, TermId};

/// A node label, and pods by its value.
type Keyed<'a> = (Sym, &'a Counts);

/// The required terms that concern one task.
pub(super) struct InterPod<'a> {
    // Must be near such pods; there are none anywhere, but the task is one itself: it may be the first.
    affinity: Vec<Keyed<'a>>,
    may_be_first: bool,
    anti_affinity: Vec<Keyed<'a>>,
    // Pods that do not want the task near them.
    existing: Vec<Keyed<'a>>,
}

impl<'a> InterPod<'a> {
    /// `None` when neither the task nor a pod that is there has such a term.
    pub(super) fn of(m: &'a Model, task: TaskId) -> Option<Self> {
        let (task, rules) = (m.task(task), &m.class_of(task).relations);
        let matching = |id: &TermId| (m.relations.term(*id).key, &m.relations.term(*id).matching);
        let occupied = |(_, counts): &Keyed<'a>| !counts.is_empty();
        let affinity: Vec<_> = rules.affinity.iter().map(matching).collect();
        let may_be_first = !affinity.iter().any(occupied)
            && rules
                .affinity
                .first()
                .is_some_and(|&t| m.relations.is_member(m.relations.term(t).group, task));
        let owners = |term: &'a Term| (term.key, &term.owners);
        let related = InterPod {
            affinity,
            may_be_first,
            anti_affinity: rules
                .anti_affinity
                .iter()
                .map(matching)
                .filter(occupied)
                .collect(),
            existing: m
                .relations
                .terms_about(task)
                .map(owners)
                .filter(occupied)
                .collect(),
        };
        let concerned =
            !related.affinity.is_empty() || !related.anti_affinity.is_empty() || !related.existing.is_empty();
        concerned.then_some(related)
    }

    /// The first rule that the node breaks.
    pub(super) fn filter(&self, m: &Model, node: NodeId) -> Option<FitReason> {
        let labels = &m.nodes[node].labels;
        let occupied =
            |(key, counts): &Keyed<'_>| label(labels, *key).is_some_and(|v| counts.contains_key(&v));
        let labelled = |(key, _): &Keyed<'_>| label(labels, *key).is_some();
        if !self
            .affinity
            .iter()
            .all(|term| labelled(term) && (self.may_be_first || occupied(term)))
        {
            Some(FitReason::PodAffinity)
        } else if self.anti_affinity.iter().any(occupied) {
            Some(FitReason::PodAntiAffinity)
        } else if self.existing.iter().any(occupied) {
            Some(FitReason::ExistingAntiAffinity)
        } else {
            None
        }
    }
}
