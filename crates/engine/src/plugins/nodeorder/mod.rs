//! The scores of Kubernetes, each with a weight: which of the nodes that fit is the best.
//!
//! `node_order` is the hottest function of the engine: it runs for every node that a placement changed, for every
//! class that is still waiting. It reads numbers of one node and allocates nothing.

mod image;
mod interpod;
mod resource;
mod spread;

use crate::config::PluginConf;
use crate::explain::Reasons;
use crate::ids::{DimId, NodeId, TaskId};
use crate::model::Model;
use crate::model::class::{Class, NodeTerm};
use crate::model::node::TaintEffect;
use crate::plugin::{NormScore, Plugin, Point, Related};

/// The third resource whose usage is to stay in balance with `cpu` and `memory`.
const GPU: &str = "nvidia.com/gpu";

struct NodeOrder {
    least: f64,
    most: f64,
    balanced: f64,
    image: f64,
    inter_pod: f64,
    spread: f64,
    norm: Vec<NormScore>,
    gpu: Option<DimId>,
}

/// Builds the plugin.
pub fn build(conf: &PluginConf) -> Box<dyn Plugin> {
    let weight = |score: &str, default| conf.arguments.int(&format!("{score}.weight"), default) as f64;
    let node_affinity = NormScore {
        applies: |_, class| !class.preferred.is_empty(),
        raw: preferred_node_terms,
        reverse: false,
        weight: weight("nodeaffinity", 2),
    };
    let taints = NormScore {
        applies: |m, _| m.nodes.soft_tainted() > 0,
        raw: untolerated_soft_taints,
        reverse: true,
        weight: weight("tainttoleration", 3),
    };
    Box::new(NodeOrder {
        least: weight("leastrequested", 1),
        most: weight("mostrequested", 0),
        balanced: weight("balancedresource", 1),
        image: weight("imagelocality", 1),
        inter_pod: weight("podaffinity", 2),
        spread: weight("podtopologyspread", 2),
        norm: [node_affinity, taints]
            .into_iter()
            .filter(|score| score.weight != 0.0)
            .collect(),
        gpu: None,
    })
}

impl Plugin for NodeOrder {
    fn name(&self) -> &'static str {
        "nodeorder"
    }

    fn points(&self) -> &'static [Point] {
        &[Point::NodeOrder]
    }

    fn open(&mut self, m: &Model, _now: i64) {
        self.gpu = m.dims.get(GPU);
    }

    fn node_order(&self, m: &Model, class: &Class, node: NodeId) -> f64 {
        let mut score = 0.0;
        if self.least != 0.0 {
            score += self.least * resource::least_allocated(m, class, node) as f64;
        }
        if self.most != 0.0 {
            score += self.most * resource::most_allocated(m, class, node) as f64;
        }
        if self.balanced != 0.0 {
            score += self.balanced * resource::balanced(m, class, node, self.gpu) as f64;
        }
        if self.image != 0.0 {
            score += self.image * image::locality(m, class, node) as f64;
        }
        score
    }

    fn norm_scores(&self) -> &[NormScore] {
        &self.norm
    }

    fn relate<'a>(&'a self, m: &'a Model, task: TaskId) -> Option<Box<dyn Related + 'a>> {
        if m.relations.is_empty() {
            return None;
        }
        let inter_pod = interpod::InterPod::of(m, task).filter(|_| self.inter_pod != 0.0);
        let spread = spread::Spread::of(m, task).filter(|_| self.spread != 0.0);
        if inter_pod.is_none() && spread.is_none() {
            return None;
        }
        Some(Box::new(RelatedScores {
            plugin: self,
            inter_pod,
            spread,
        }))
    }
}

/// The scores of one task that look at other pods.
struct RelatedScores<'a> {
    plugin: &'a NodeOrder,
    inter_pod: Option<interpod::InterPod<'a>>,
    spread: Option<spread::Spread<'a>>,
}

impl Related for RelatedScores<'_> {
    fn filter(&self, _m: &Model, _node: NodeId) -> Reasons {
        Reasons::new()
    }

    fn score(&self, m: &Model, nodes: &[NodeId], scores: &mut [f64]) {
        if let Some(inter_pod) = &self.inter_pod {
            inter_pod.score(m, nodes, self.plugin.inter_pod, scores);
        }
        if let Some(spread) = &self.spread {
            spread.score(m, nodes, self.plugin.spread, scores);
        }
    }
}

/// Sum of the weights of the preferred node terms that hold on a node.
fn preferred_node_terms(m: &Model, class: &Class, node: NodeId) -> i64 {
    let info = &m.nodes[node];
    let holds = |term: &NodeTerm| term.matches(&m.strings, info.name, &info.labels);
    class
        .preferred
        .iter()
        .filter(|(_, term)| holds(term))
        .map(|(weight, _)| weight)
        .sum()
}

/// Number of taints that advise against the node and that the class does not tolerate.
fn untolerated_soft_taints(m: &Model, class: &Class, node: NodeId) -> i64 {
    let soft = m.nodes[node]
        .taints
        .iter()
        .filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
    soft.filter(|taint| !class.tolerations.iter().any(|t| t.tolerates(taint)))
        .count() as i64
}

#[cfg(test)]
mod tests;
