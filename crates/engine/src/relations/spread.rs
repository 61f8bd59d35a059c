//! Topology spread: how a pod's constraint counts pods per domain of nodes.
//!
//! Which nodes count depends on the pod that asks (its node affinity, the taints it tolerates), so the counts per
//! domain are summed when it asks, from the counts per node that are kept.

use super::{Counts, GroupId, PodSet, Registry, Selector};
use crate::ids::{NodeId, Sym};
use crate::model::Model;
use crate::model::class::{Class, label};
use volcano_api::core::{Pod, TopologySpreadConstraint};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadRule {
    /// The pods that are counted.
    pub group: GroupId,
    /// The node label whose values are the domains.
    pub key: Sym,
    /// Every node is a domain of its own.
    pub per_host: bool,
    /// Largest difference between two domains.
    pub max_skew: i64,
    /// With fewer domains than this the smallest count is taken to be zero.
    pub min_domains: usize,
    /// Holds nodes back; otherwise it only scores them.
    pub hard: bool,
    /// Leaves out nodes that the pod's node affinity excludes.
    pub honor_affinity: bool,
    /// Leaves out nodes with taints that the pod does not tolerate.
    pub honor_taints: bool,
}

impl SpreadRule {
    pub(super) fn compile(
        constraint: &TopologySpreadConstraint,
        pod: &Pod,
        registry: &mut Registry<'_>,
    ) -> SpreadRule {
        let mut labels = Selector::compile(constraint.label_selector.as_ref(), registry.strings);
        labels.pin(
            &constraint.match_label_keys,
            &pod.metadata.labels,
            true,
            registry.strings,
        );
        let namespaces = vec![registry.strings.intern(&pod.metadata.namespace)];
        let group = registry.spread_group(PodSet {
            namespaces,
            namespace_selector: None,
            labels,
        });
        SpreadRule {
            group,
            key: registry.strings.intern(&constraint.topology_key),
            per_host: constraint.topology_key == HOSTNAME,
            max_skew: i64::from(constraint.max_skew),
            min_domains: constraint
                .min_domains
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(1),
            hard: constraint.when_unsatisfiable != "ScheduleAnyway",
            honor_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honor_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    /// Pods on the node count for a pod of this class.
    pub fn counts_node(&self, m: &Model, class: &Class, node: NodeId) -> bool {
        let info = &m.nodes[node];
        (!self.honor_affinity || class.selector.matches(&m.strings, info.name, &info.labels))
            && (!self.honor_taints || class.tolerates_hard(&info.taints))
    }
}

/// Number of pods per domain, one list per rule in the order of the rules; domains without pods are there with 0.
pub type Domains = Vec<Counts>;

/// A node that has the label of every rule.
pub fn has_all_keys(m: &Model, rules: &[&SpreadRule], node: NodeId) -> bool {
    rules
        .iter()
        .all(|rule| label(&m.nodes[node].labels, rule.key).is_some())
}

/// Adds the pods of every node that counts to `domains`. With `known_only`, domains that are not there yet are left
/// out.
pub fn sum_domains(m: &Model, class: &Class, rules: &[&SpreadRule], domains: &mut Domains, known_only: bool) {
    for node in m.nodes.ids().filter(|&node| has_all_keys(m, rules, node)) {
        let labels = &m.nodes[node].labels;
        for (rule, counts) in rules.iter().zip(domains.iter_mut()) {
            let Some(value) = label(labels, rule.key) else {
                continue;
            };
            if known_only && !counts.contains_key(&value) || !rule.counts_node(m, class, node) {
                continue;
            }
            *counts.entry(value).or_insert(0) += m.relations.spread_on(rule.group, node);
        }
    }
}
