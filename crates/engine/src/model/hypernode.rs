//! The tree of network domains: HyperNodes over HyperNodes over nodes.
//!
//! A tree with a cycle or with a domain that has two parents is *not ready*: it says so, and nothing is placed by it.

use super::Model;
use crate::ids::NodeId;
use regex::RegexBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volcano_api::core::Labels;
use volcano_api::topology::{HyperNode, MemberSelector, MemberType};

/// Memory that a compiled name pattern may take up: patterns come from users.
const PATTERN_BYTES: usize = 1 << 20;

/// A network domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// The lower, the closer its members are to each other.
    pub tier: i64,
    /// Name of the tier.
    pub tier_name: Box<str>,
    /// The domain around it.
    pub parent: Option<Arc<str>>,
    /// The domains in it.
    pub children: BTreeSet<Arc<str>>,
    /// The nodes in it, those of its children included.
    pub nodes: BTreeSet<NodeId>,
}

/// All network domains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HyperTree {
    /// By name.
    pub domains: BTreeMap<Arc<str>, Domain>,
    /// Why the tree cannot be used.
    pub broken: Option<String>,
}

impl HyperTree {
    /// Builds the tree of the model's HyperNodes. O(hypernodes × nodes), when one of them changed.
    pub fn build(m: &Model) -> HyperTree {
        let mut tree = HyperTree::default();
        for (name, hyper_node) in &m.cluster.hyper_nodes {
            let spec = &hyper_node.spec;
            let nodes = spec
                .members
                .iter()
                .filter(|member| member.r#type == MemberType::Node)
                .flat_map(|member| selected_nodes(m, &member.selector))
                .collect();
            let domain = Domain {
                tier: spec.tier,
                tier_name: spec.tier_name.as_str().into(),
                nodes,
                ..Domain::default()
            };
            tree.domains.insert(Arc::from(&**name), domain);
        }
        for (name, hyper_node) in &m.cluster.hyper_nodes {
            tree.adopt(&Arc::from(&**name), hyper_node);
        }
        if tree.broken.is_none() {
            tree.collect_nodes();
        }
        tree
    }

    fn adopt(&mut self, parent: &Arc<str>, hyper_node: &HyperNode) {
        let members = hyper_node
            .spec
            .members
            .iter()
            .filter(|member| member.r#type == MemberType::HyperNode);
        for member in members.filter_map(|member| member.selector.exact_match.as_ref()) {
            let Some((name, child)) = self.domains.get_key_value(member.name.as_str()) else {
                continue;
            };
            let name = name.clone();
            match &child.parent {
                Some(other) if other != parent => {
                    self.broken = Some(format!(
                        "HyperNode {name} already has a parent {other}, and cannot set another parent {parent}"
                    ));
                }
                _ => {
                    if let Some(child) = self.domains.get_mut(&name) {
                        child.parent = Some(parent.clone());
                    }
                    if let Some(parent) = self.domains.get_mut(parent) {
                        parent.children.insert(name);
                    }
                }
            }
        }
    }

    /// Hands the nodes of every domain up to those around it.
    fn collect_nodes(&mut self) {
        let own: Vec<(Arc<str>, BTreeSet<NodeId>)> = self
            .domains
            .iter()
            .map(|(name, domain)| (name.clone(), domain.nodes.clone()))
            .collect();
        for (name, nodes) in own {
            for ancestor in self.path(&name).into_iter().skip(1) {
                if let Some(domain) = self.domains.get_mut(&ancestor) {
                    domain.nodes.extend(&nodes);
                }
            }
        }
    }

    /// A domain and those around it, inside out; a cycle ends it and makes the tree unusable.
    fn path(&mut self, name: &Arc<str>) -> Vec<Arc<str>> {
        let mut path = vec![name.clone()];
        let mut at = name.clone();
        while let Some(parent) = self.domains.get(&at).and_then(|domain| domain.parent.clone()) {
            if path.contains(&parent) {
                self.broken = Some(format!("HyperNode {parent} is in a cycle"));
                break;
            }
            path.push(parent.clone());
            at = parent;
        }
        path
    }

    /// The tree can be used.
    pub fn is_ready(&self) -> bool {
        self.broken.is_none()
    }

    /// The domain of the lowest tier that holds a node; ties go to the first name.
    pub fn lowest(&self, node: NodeId) -> Option<&Arc<str>> {
        let holding = self
            .domains
            .iter()
            .filter(|(_, domain)| domain.nodes.contains(&node));
        holding
            .min_by_key(|(name, domain)| (domain.tier, (*name).clone()))
            .map(|(name, _)| name)
    }
}

fn selected_nodes(m: &Model, selector: &MemberSelector) -> Vec<NodeId> {
    if let Some(exact) = &selector.exact_match {
        return m
            .find_node(&exact.name)
            .filter(|&id| m.nodes.is_present(id))
            .into_iter()
            .collect();
    }
    if let Some(by_name) = &selector.regex_match {
        let pattern = RegexBuilder::new(&by_name.pattern)
            .size_limit(PATTERN_BYTES)
            .build();
        let Ok(pattern) = pattern else { return Vec::new() };
        return m
            .nodes
            .ids()
            .filter(|&id| pattern.is_match(m.text(m.nodes[id].name)))
            .collect();
    }
    let Some(by_label) = &selector.label_match else {
        return Vec::new();
    };
    if by_label.match_labels.is_empty() && by_label.match_expressions.is_empty() {
        return Vec::new();
    }
    let labels = |id: NodeId| -> Labels {
        m.nodes[id]
            .labels
            .iter()
            .map(|&(k, v)| (m.text(k).to_owned(), m.text(v).to_owned()))
            .collect()
    };
    m.nodes
        .ids()
        .filter(|&id| by_label.matches(&labels(id)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SchedulerNames;
    use crate::model::delta::Delta;
    use serde_json::{Value, json};

    fn model(nodes: &[(&str, &str)], hyper_nodes: &[Value]) -> Model {
        let mut m = Model::new(SchedulerNames::Any, "default");
        for (name, rack) in nodes {
            let node = json!({"metadata": {"name": name, "labels": {"rack": rack}}});
            m.apply(Delta::Node(serde_json::from_value(node).expect("a node")));
        }
        for hyper_node in hyper_nodes {
            m.apply(Delta::HyperNode(
                serde_json::from_value(hyper_node.clone()).expect("a hypernode"),
            ));
        }
        m.refresh_hyper_nodes();
        m
    }

    fn leaf(name: &str, selector: Value) -> Value {
        json!({"metadata": {"name": name}, "spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]}})
    }

    fn above(name: &str, tier: i64, children: &[&str]) -> Value {
        let members: Vec<Value> = children
            .iter()
            .map(|c| json!({"type": "HyperNode", "selector": {"exactMatch": {"name": c}}}))
            .collect();
        json!({"metadata": {"name": name}, "spec": {"tier": tier, "members": members}})
    }

    fn names(m: &Model, domain: &str) -> Vec<String> {
        let nodes = &m.hyper_nodes.domains[domain].nodes;
        nodes
            .iter()
            .map(|&id| m.text(m.nodes[id].name).to_owned())
            .collect()
    }

    #[test]
    fn members_are_selected_by_name_pattern_or_label() {
        let m = model(
            &[("a1", "r1"), ("a2", "r2"), ("b1", "r1")],
            &[
                leaf("exact", json!({"exactMatch": {"name": "a2"}})),
                leaf("pattern", json!({"regexMatch": {"pattern": "^a"}})),
                leaf("label", json!({"labelMatch": {"matchLabels": {"rack": "r1"}}})),
                leaf("empty-label", json!({"labelMatch": {}})),
                leaf("bad-pattern", json!({"regexMatch": {"pattern": "("}})),
            ],
        );
        assert_eq!(names(&m, "exact"), ["a2"]);
        assert_eq!(names(&m, "pattern"), ["a1", "a2"]);
        assert_eq!(names(&m, "label"), ["a1", "b1"]);
        assert_eq!(names(&m, "empty-label"), [""; 0]);
        assert_eq!(names(&m, "bad-pattern"), [""; 0]);
    }

    #[test]
    fn a_domain_holds_the_nodes_of_the_domains_in_it() {
        let m = model(
            &[("a", "r1"), ("b", "r2")],
            &[
                leaf("s0", json!({"exactMatch": {"name": "a"}})),
                leaf("s1", json!({"exactMatch": {"name": "b"}})),
                above("top", 2, &["s0", "s1", "absent"]),
            ],
        );
        assert!(m.hyper_nodes.is_ready());
        assert_eq!(names(&m, "top"), ["a", "b"]);
        let a = m.find_node("a").expect("a node");
        assert_eq!(m.hyper_nodes.lowest(a).map(|name| &**name), Some("s0"));
    }

    #[test]
    fn two_parents_or_a_cycle_make_the_tree_unusable() {
        let m = model(
            &[],
            &[
                leaf("s0", json!({})),
                above("p", 2, &["s0"]),
                above("q", 2, &["s0"]),
            ],
        );
        let why = m.hyper_nodes.broken.as_deref();
        assert_eq!(
            why,
            Some("HyperNode s0 already has a parent p, and cannot set another parent q")
        );
        let m = model(&[], &[above("p", 2, &["q"]), above("q", 3, &["p"])]);
        assert!(!m.hyper_nodes.is_ready());
    }

    #[test]
    fn a_node_that_leaves_is_no_longer_in_its_domain() {
        let mut m = model(
            &[("a", "r1")],
            &[leaf("s0", json!({"regexMatch": {"pattern": "a"}}))],
        );
        m.apply(Delta::NodeGone { name: "a".to_owned() });
        m.refresh_hyper_nodes();
        assert_eq!(names(&m, "s0"), [""; 0]);
    }
}
