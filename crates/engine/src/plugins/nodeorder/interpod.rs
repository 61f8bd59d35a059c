//! Score from preferred affinity and anti-affinity between pods: the task's own preferences, and those that pods which
//! are there have about it.

use crate::ids::{NodeId, Sym, TaskId};
use crate::model::Model;
use crate::model::class::label;
use crate::plugin::MAX_NODE_SCORE;
use crate::relations::Counts;

/// The preferences that concern one task: a node label, what counts by its value, and how much each counts.
pub(super) struct InterPod<'a>(Vec<(Sym, &'a Counts, i64)>);

impl<'a> InterPod<'a> {
    /// `None` when no node can differ from another.
    pub(super) fn of(m: &'a Model, task: TaskId) -> Option<Self> {
        let own = m
            .class_of(task)
            .relations
            .preferred
            .iter()
            .map(|&(term, weight)| {
                let term = m.relations.term(term);
                (term.key, &term.matching, weight)
            });
        let others = m
            .relations
            .terms_about(m.task(task))
            .map(|term| (term.key, &term.leaning, 1));
        let preferences: Vec<_> = own
            .chain(others)
            .filter(|(_, counts, _)| !counts.is_empty())
            .collect();
        (!preferences.is_empty()).then_some(InterPod(preferences))
    }

    fn raw(&self, m: &Model, node: NodeId) -> i64 {
        let labels = &m.nodes[node].labels;
        let part = |(key, counts, weight): &(Sym, &Counts, i64)| {
            label(labels, *key)
                .and_then(|value| counts.get(&value))
                .map_or(0, |count| count * weight)
        };
        self.0.iter().map(part).sum()
    }

    /// Adds the scores: 100 for the most preferred candidate, 0 for the least.
    pub(super) fn score(&self, m: &Model, nodes: &[NodeId], weight: f64, scores: &mut [f64]) {
        let raw: Vec<i64> = nodes.iter().map(|&node| self.raw(m, node)).collect();
        let (Some(&least), Some(&most)) = (raw.iter().min(), raw.iter().max()) else {
            return;
        };
        if least == most {
            return;
        }
        for (score, raw) in scores.iter_mut().zip(raw) {
            let share = (raw - least) as f64 / (most - least) as f64;
            *score += weight * (MAX_NODE_SCORE as f64 * share).trunc();
        }
    }
}
