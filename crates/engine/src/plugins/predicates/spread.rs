//! Topology spread constraints that hold nodes back (`DoNotSchedule`).

use crate::explain::FitReason;
use crate::ids::{NodeId, Sym, TaskId};
use crate::model::Model;
use crate::model::class::label;
use crate::relations::{Counts, Domains, SpreadRule, sum_domains};

/// The constraints of one task with the pods counted.
pub(super) struct Spread {
    rules: Vec<Rule>,
}

struct Rule {
    key: Sym,
    domains: Counts,
    // Most pods that a domain may have for the task to go there.
    limit: i64,
}

impl Spread {
    /// `None` when the task has no such constraint. O(nodes).
    pub(super) fn of(m: &Model, task: TaskId) -> Option<Self> {
        let class = m.class_of(task);
        if class.relations.spread.is_empty() {
            return None;
        }
        let hard: Vec<&SpreadRule> = class.relations.spread.iter().filter(|rule| rule.hard).collect();
        if hard.is_empty() {
            return None;
        }
        let mut domains: Domains = vec![Counts::default(); hard.len()];
        sum_domains(m, class, &hard, &mut domains, false);
        let rules = hard.into_iter().zip(domains).map(|(rule, domains)| {
            let least = domains
                .values()
                .copied()
                .min()
                .filter(|_| domains.len() >= rule.min_domains);
            let itself = i64::from(m.relations.is_member(rule.group, m.task(task)));
            Rule {
                key: rule.key,
                domains,
                limit: rule.max_skew + least.unwrap_or(0) - itself,
            }
        });
        Some(Spread {
            rules: rules.collect(),
        })
    }

    /// The first constraint that the node breaks.
    pub(super) fn filter(&self, m: &Model, node: NodeId) -> Option<FitReason> {
        let labels = &m.nodes[node].labels;
        for rule in &self.rules {
            let Some(value) = label(labels, rule.key) else {
                return Some(FitReason::SpreadLabel);
            };
            if rule.domains.get(&value).copied().unwrap_or(0) > rule.limit {
                return Some(FitReason::Spread);
            }
        }
        None
    }
}
