//! binpack: prefers the node that the pod fills best, so that others stay free for large pods.
//!
//! ```text
//! score = 100 · weight · ( Σ w_r · (request_r + used_r) / allocatable_r ) / Σ w_r    over requested, configured r
//! ```
//!
//! This runs once for each placement, on the node that just changed: no allocation, no look-up by name.

use crate::config::PluginConf;
use crate::ids::NodeId;
use crate::model::Model;
use crate::model::class::Class;
use crate::model::node::Block;
use crate::plugin::{Plugin, Point};
use std::collections::BTreeMap;

const MAX_NODE_SCORE: f64 = 100.0;

struct BinPack {
    weight: i64,
    by_name: BTreeMap<String, i64>,
    /// Weights by dimension; `None` for resources that are not configured.
    by_dim: Vec<Option<f64>>,
}

/// Builds the plugin.
pub fn build(conf: &PluginConf) -> Box<dyn Plugin> {
    let arguments = &conf.arguments;
    let weight_of = |key: &str| {
        Some(arguments.int(key, 1))
            .filter(|&weight| weight >= 0)
            .unwrap_or(1)
    };
    let listed = arguments.str("binpack.resources").unwrap_or_default();
    let listed = listed.split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut by_name: BTreeMap<String, i64> = listed
        .map(|name| (name.to_owned(), weight_of(&format!("binpack.resources.{name}"))))
        .collect();
    by_name.insert("cpu".to_owned(), weight_of("binpack.cpu"));
    by_name.insert("memory".to_owned(), weight_of("binpack.memory"));
    Box::new(BinPack {
        weight: arguments.int("binpack.weight", 1),
        by_name,
        by_dim: Vec::new(),
    })
}

impl Plugin for BinPack {
    fn name(&self) -> &'static str {
        "binpack"
    }

    fn points(&self) -> &'static [Point] {
        if self.weight == 0 {
            &[]
        } else {
            &[Point::NodeOrder]
        }
    }

    fn open(&mut self, m: &Model, _now: i64) {
        // Dimensions only grow, and keep their place.
        if self.by_dim.len() == m.dims.len() {
            return;
        }
        self.by_dim = vec![None; m.dims.len()];
        for (name, &weight) in &self.by_name {
            if let Some(dim) = m.dims.get(name) {
                self.by_dim[dim.index()] = Some(weight as f64);
            }
        }
    }

    fn node_order(&self, m: &Model, class: &Class, node: NodeId) -> f64 {
        let (mut filled, mut weights) = (0.0, 0.0);
        for (dim, requested) in class.request.iter() {
            let Some(weight) = self.by_dim.get(dim.index()).copied().flatten() else {
                continue;
            };
            if requested <= 0 {
                continue;
            }
            weights += weight;
            let allocatable = m.nodes.amount(node, Block::Allocatable, dim);
            if allocatable == 0 || weight == 0.0 {
                continue;
            }
            let used = requested.saturating_add(m.nodes.amount(node, Block::Used, dim));
            if used > allocatable {
                return 0.0;
            }
            filled += weight * (used as f64) / (allocatable as f64);
        }
        if filled == 0.0 {
            return 0.0;
        }
        filled / weights * (MAX_NODE_SCORE * self.weight as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::fixture::{Fixture, conf};
    use serde_json::{Value, json};

    /// The score of a pod on node `n` (8 cpu, 16 GiB, 4 GPUs) where 2 cpu, 4 GiB and 1 GPU are in use.
    fn score(arguments: Value, requests: Value) -> f64 {
        let mut f = Fixture::new();
        f.node(
            "n",
            json!({"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4", "pods": "110"}),
        );
        f.running(
            "used",
            "",
            "n",
            json!({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}),
        );
        let task = f.pod("new", "", requests, json!({}));
        let p = f.open(build(&conf("binpack", arguments)), 0);
        p.node_order(&f.m, f.m.class_of(task), f.node_id("n"))
    }

    #[test]
    fn scores() {
        let both = json!({"cpu": "2", "memory": "4Gi"});
        let gpu = json!({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "3"});
        let gpus = |weight| json!({"binpack.resources": "nvidia.com/gpu, ", "binpack.resources.nvidia.com/gpu": weight});
        let cases = [
            (
                "half of cpu and memory",
                json!({"binpack.weight": 5}),
                both.clone(),
                250.0,
            ),
            ("default weight", json!({}), both.clone(), 50.0),
            (
                "only what is requested counts",
                json!({}),
                json!({"cpu": "6"}),
                100.0,
            ),
            (
                "resource weights",
                json!({"binpack.cpu": 3}),
                json!({"cpu": "6", "memory": "4Gi"}),
                87.5,
            ),
            (
                "a resource that is not listed is left out",
                json!({}),
                gpu.clone(),
                50.0,
            ),
            ("a listed one counts", gpus(2), gpu.clone(), 75.0),
            (
                "its weight is 1 by default",
                json!({"binpack.resources": "nvidia.com/gpu"}),
                gpu.clone(),
                200.0 / 3.0,
            ),
            ("a negative resource weight is 1", gpus(-7), gpu, 200.0 / 3.0),
            (
                "a weight that is not listed does nothing",
                json!({"binpack.resources.nvidia.com/gpu": 9}),
                both.clone(),
                50.0,
            ),
            (
                "weight 0 still divides",
                json!({"binpack.memory": 0}),
                both.clone(),
                50.0,
            ),
            (
                "all weights 0",
                json!({"binpack.cpu": 0, "binpack.memory": 0}),
                both.clone(),
                0.0,
            ),
            (
                "no room in one resource",
                json!({}),
                json!({"cpu": "7", "memory": "1Gi"}),
                0.0,
            ),
            (
                "a resource that the node lacks only dilutes",
                json!({"binpack.resources": "example.com/x"}),
                json!({"cpu": "2", "example.com/x": "1"}),
                25.0,
            ),
            ("nothing requested", json!({}), json!({}), 0.0),
            (
                "a negative weight turns it around",
                json!({"binpack.weight": -1}),
                both,
                -50.0,
            ),
        ];
        for (case, arguments, requests, expected) in cases {
            let score = score(arguments, requests);
            assert!((score - expected).abs() < 1e-9, "{case}: {score}");
        }
    }

    #[test]
    fn weight_zero_takes_no_part() {
        assert_eq!(build(&conf("binpack", json!({"binpack.weight": 0}))).points(), []);
        assert_eq!(build(&conf("binpack", json!({}))).points(), [Point::NodeOrder]);
    }

    #[test]
    fn resources_named_after_the_first_cycle_are_found() {
        let mut f = Fixture::new();
        let p = f.open(
            build(&conf("binpack", json!({"binpack.resources": "example.com/x"}))),
            0,
        );
        f.node("n", json!({"cpu": "8", "example.com/x": "4"}));
        let task = f.pod("new", "", json!({"example.com/x": "2"}), json!({}));
        let p = f.open(p, 0);
        assert!((p.node_order(&f.m, f.m.class_of(task), f.node_id("n")) - 50.0).abs() < 1e-9);
    }
}
