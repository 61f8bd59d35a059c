//! Score from topology spread constraints that only advise (`ScheduleAnyway`).

use crate::ids::{NodeId, TaskId};
use crate::model::Model;
use crate::model::class::{Class, label};
use crate::plugin::MAX_NODE_SCORE;
use crate::relations::{Counts, Domains, SpreadRule, has_all_keys, sum_domains};

/// The constraints of one task.
pub(super) struct Spread<'a> {
    class: &'a Class,
    rules: Vec<&'a SpreadRule>,
}

impl<'a> Spread<'a> {
    /// `None` when the task has no such constraint.
    pub(super) fn of(m: &'a Model, task: TaskId) -> Option<Self> {
        let class = m.class_of(task);
        let rules: Vec<_> = class.relations.spread.iter().filter(|rule| !rule.hard).collect();
        (!rules.is_empty()).then_some(Spread { class, rules })
    }

    /// Adds the scores: the fewer pods share the candidate's domains the better, and a rule over many domains counts
    /// for more than one over a few. Candidates that lack a label get 0.
    pub(super) fn score(&self, m: &Model, nodes: &[NodeId], weight: f64, scores: &mut [f64]) {
        let raw = self.raw(m, nodes);
        let scored = || raw.iter().flatten().copied();
        let (Some(least), Some(most)) = (scored().min(), scored().max()) else {
            return;
        };
        for (score, raw) in scores.iter_mut().zip(&raw) {
            let Some(raw) = raw else { continue };
            let value = if most == 0 {
                MAX_NODE_SCORE
            } else {
                MAX_NODE_SCORE * (most + least - raw) / most
            };
            *score += weight * value as f64;
        }
    }

    /// How crowded each candidate's domains are; `None` for a candidate that lacks a label.
    fn raw(&self, m: &Model, nodes: &[NodeId]) -> Vec<Option<i64>> {
        let eligible: Vec<bool> = nodes
            .iter()
            .map(|&node| has_all_keys(m, &self.rules, node))
            .collect();
        let candidates = || {
            nodes
                .iter()
                .zip(&eligible)
                .filter(|(_, ok)| **ok)
                .map(|(&node, _)| node)
        };
        let mut domains: Domains = vec![Counts::default(); self.rules.len()];
        for node in candidates() {
            for (rule, counts) in self
                .rules
                .iter()
                .zip(&mut domains)
                .filter(|(rule, _)| !rule.per_host)
            {
                if let Some(value) = label(&m.nodes[node].labels, rule.key) {
                    counts.insert(value, 0);
                }
            }
        }
        let hosts = candidates().count();
        let size = |(rule, counts): (&&SpreadRule, &Counts)| if rule.per_host { hosts } else { counts.len() };
        let weights: Vec<f64> = self
            .rules
            .iter()
            .zip(&domains)
            .map(size)
            .map(|size| (size as f64 + 2.0).ln())
            .collect();
        sum_domains(m, self.class, &self.rules, &mut domains, true);
        let crowded = |node: NodeId| {
            let labels = &m.nodes[node].labels;
            let mut sum = 0.0;
            for ((rule, counts), weight) in self.rules.iter().zip(&domains).zip(&weights) {
                let pods = if rule.per_host {
                    m.relations.spread_on(rule.group, node)
                } else {
                    label(labels, rule.key)
                        .and_then(|value| counts.get(&value))
                        .copied()
                        .unwrap_or(0)
                };
                sum += pods as f64 * weight + (rule.max_skew - 1) as f64;
            }
            sum.round() as i64
        };
        nodes
            .iter()
            .zip(&eligible)
            .map(|(&node, ok)| ok.then(|| crowded(node)))
            .collect()
    }
}
