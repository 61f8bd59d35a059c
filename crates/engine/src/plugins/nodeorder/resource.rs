//! Scores from what is requested of a node: least and most allocated, and balanced allocation.

use crate::ids::{DimId, NodeId};
use crate::model::Model;
use crate::model::class::Class;
use crate::model::node::Block;
use crate::plugin::MAX_NODE_SCORE;
use crate::resource::{CPU, MEMORY};

/// Average over `cpu` and `memory` of the part of the node, in hundredths, that `part(requested, offered)` says, with
/// the class on it. Pods that request nothing count as requesting a little; what the node has none of does not count.
#[inline]
fn average(m: &Model, class: &Class, node: NodeId, part: impl Fn(i64, i64) -> i64) -> i64 {
    let info = m.nodes.tally(node);
    let requests = [
        (CPU, info.nonzero_cpu.saturating_add(class.nonzero_cpu)),
        (MEMORY, info.nonzero_memory.saturating_add(class.nonzero_memory)),
    ];
    let (mut sum, mut count) = (0, 0);
    for (dim, requested) in requests {
        let offered = m.nodes.amount(node, Block::Allocatable, dim);
        if offered > 0 {
            sum += part(requested, offered);
            count += 1;
        }
    }
    if count == 0 { 0 } else { sum / count }
}

#[inline]
fn hundredths(part: i64, whole: i64) -> i64 {
    match part.checked_mul(MAX_NODE_SCORE) {
        Some(scaled) => scaled / whole,
        None => (i128::from(part) * i128::from(MAX_NODE_SCORE) / i128::from(whole)) as i64,
    }
}

/// 100 for an empty node, 0 for a full one.
#[inline]
pub(super) fn least_allocated(m: &Model, class: &Class, node: NodeId) -> i64 {
    average(m, class, node, |requested, offered| {
        if requested > offered {
            0
        } else {
            hundredths(offered.saturating_sub(requested), offered)
        }
    })
}

/// 0 for an empty node, 100 for a full one.
#[inline]
pub(super) fn most_allocated(m: &Model, class: &Class, node: NodeId) -> i64 {
    average(m, class, node, |requested, offered| {
        hundredths(requested.min(offered), offered)
    })
}

/// Above 75 when the class evens out the use of `cpu`, `memory` and GPUs, below when it makes it more uneven; 0 for
/// all nodes when it requests none of these.
#[inline]
pub(super) fn balanced(m: &Model, class: &Class, node: NodeId, gpu: Option<DimId>) -> i64 {
    let request = &class.request;
    let gpu = gpu
        .map(|dim| (dim, request.get(dim)))
        .filter(|&(_, wanted)| wanted > 0);
    if request.cpu <= 0 && request.memory <= 0 && gpu.is_none() {
        return 0;
    }
    let (mut with, mut without) = (Fractions::default(), Fractions::default());
    let wanted = [Some((CPU, request.cpu)), Some((MEMORY, request.memory)), gpu];
    for (dim, wanted) in wanted.into_iter().flatten() {
        let offered = m.nodes.amount(node, Block::Allocatable, dim);
        if offered > 0 {
            let requested = m.nodes.requested(node, dim);
            without.push(requested, offered);
            with.push(requested.saturating_add(wanted), offered);
        }
    }
    let gain = with.evenness() - without.evenness();
    MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + gain) / 2
}

/// The parts of a node that are requested.
#[derive(Default)]
struct Fractions {
    list: [f64; 3],
    count: usize,
}

impl Fractions {
    fn push(&mut self, requested: i64, offered: i64) {
        self.list[self.count] = (requested as f64 / offered as f64).min(1.0);
        self.count += 1;
    }

    /// 100 when all are equal, less by their standard deviation in hundredths.
    fn evenness(&self) -> i64 {
        let list = &self.list[..self.count];
        let deviation = match list {
            [a, b] => ((a - b) / 2.0).abs(),
            [_, _, _] => {
                let mean = list.iter().sum::<f64>() / list.len() as f64;
                (list.iter().map(|f| (f - mean) * (f - mean)).sum::<f64>() / list.len() as f64).sqrt()
            }
            _ => 0.0,
        };
        ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
    }
}
