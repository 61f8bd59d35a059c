//! Nodes.

use super::{amounts, labels};
use crate::ids::NodeId;
use crate::model::Model;
use crate::model::delta::Delta;
use crate::model::node::Block;
use volcano_api::core::{ContainerImage, Meta, Node, NodeSpec, NodeStatus, Taint};

/// Those whose object is there. What is given out twice is part of what the node offers.
pub(super) fn objects(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    let mut ids: Vec<NodeId> = m.nodes.ids().collect();
    ids.sort_unstable_by_key(|&id| m.text(m.nodes[id].name));
    ids.into_iter().map(move |id| Delta::Node(Box::new(node(m, id))))
}

fn node(m: &Model, id: NodeId) -> Node {
    let info = &m.nodes[id];
    let text = |sym| m.text(sym).to_owned();
    Node {
        metadata: Meta {
            name: text(info.name),
            labels: labels(m, &info.labels),
            ..Meta::default()
        },
        spec: NodeSpec {
            unschedulable: info.unschedulable,
            taints: info
                .taints
                .iter()
                .map(|taint| Taint {
                    key: text(taint.key),
                    value: text(taint.value),
                    effect: taint.effect.name().to_owned(),
                })
                .collect(),
        },
        status: NodeStatus {
            allocatable: amounts(&m.dims, &m.nodes.block(id, Block::Allocatable)),
            images: info
                .images
                .iter()
                .map(|&(name, size_bytes)| ContainerImage {
                    names: vec![text(name)],
                    size_bytes,
                })
                .collect(),
            ..NodeStatus::default()
        },
    }
}
