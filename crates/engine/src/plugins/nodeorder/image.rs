//! Score from the images that a node holds already.

use crate::ids::NodeId;
use crate::model::Model;
use crate::model::class::Class;
use crate::plugin::MAX_NODE_SCORE;

const MIB: i64 = 1 << 20;
/// Fewer bytes than this are no reason to prefer a node.
const LEAST_BYTES: i64 = 23 * MIB;
/// More bytes than this per container make no further difference.
const MOST_BYTES_PER_CONTAINER: i64 = 1000 * MIB;

/// How much of the class's images the node holds. An image counts for less the fewer nodes have it, so that pods do
/// not all rush to the one node that happened to pull it first.
#[inline]
pub(super) fn locality(m: &Model, class: &Class, node: NodeId) -> i64 {
    let held = &m.nodes[node].images;
    if held.is_empty() || class.containers == 0 {
        return 0;
    }
    let nodes = m.nodes.present().max(1) as f64;
    let bytes = class.images.iter().filter_map(|&image| {
        let at = held.binary_search_by_key(&image, |h| h.0).ok()?;
        let spread = f64::from(m.nodes.holders_of(image)) / nodes;
        Some((held[at].1 as f64 * spread) as i64)
    });
    let most = MOST_BYTES_PER_CONTAINER * class.containers as i64;
    let bytes = bytes.fold(0_i64, i64::saturating_add).clamp(LEAST_BYTES, most);
    MAX_NODE_SCORE * (bytes - LEAST_BYTES) / (most - LEAST_BYTES)
}
