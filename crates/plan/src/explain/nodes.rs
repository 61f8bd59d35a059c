//! Which nodes were ruled out by what.
//!
//! The scheduler counts nodes by reason and keeps no names: with thousands of nodes and pods these would cost more than
//! the decision. They are found out here, for the one pod that is explained, by asking each node once more.

use super::reason::RuledOut;
use std::collections::BTreeMap;
use volcano_engine::explain::FitReason;
use volcano_engine::ids::NodeId;
use volcano_engine::model::Model;
use volcano_engine::model::class::Class;

/// Nodes that are named for a reason.
const MOST: usize = 100;

/// The reasons with their nodes, those of most nodes first.
pub(super) fn ruled_out(m: &Model, class: &Class, reasons: &BTreeMap<FitReason, u32>) -> Vec<RuledOut> {
    let mut found: BTreeMap<&FitReason, Vec<NodeId>> = BTreeMap::new();
    let mut left = Vec::new();
    for id in m.nodes.ids() {
        let of_node = of_node(m, class, id, reasons);
        if of_node.is_empty() {
            left.push(id);
        }
        for reason in of_node {
            found.entry(reason).or_default().push(id);
        }
    }
    let count = |reason: &FitReason| reasons.get(reason).map_or(0, |&count| count as usize);
    let lacks = |reason: &&FitReason| found.get(reason).map_or(0, Vec::len) < count(reason);
    // What a node is asked now is not all that it was asked: pods of the gang itself had taken the room, or pods nearby
    // stood in the way. If that goes for one reason alone, the nodes that are left are its.
    let mut lacking = reasons.keys().filter(lacks);
    if let (Some(reason), None) = (lacking.next(), lacking.next()) {
        found.entry(reason).or_default().append(&mut left);
    }
    let mut ruled_out: Vec<RuledOut> = reasons
        .iter()
        .map(|(reason, &nodes)| {
            let ids = found.get(reason).map_or(&[][..], Vec::as_slice);
            let mut names: Vec<String> = ids
                .iter()
                .map(|&id| m.text(m.nodes[id].name).to_owned())
                .collect();
            names.sort();
            names.truncate(MOST.min(nodes as usize));
            RuledOut {
                reason: reason.text(m),
                nodes,
                names,
            }
        })
        .collect();
    ruled_out.sort_by(|a, b| b.nodes.cmp(&a.nodes).then_with(|| a.reason.cmp(&b.reason)));
    ruled_out
}

/// The reasons of a node among those that were given: what it lacks, else what keeps the pods away; and the number of its
/// pods, which is told beside the latter.
fn of_node<'a>(
    m: &Model,
    class: &Class,
    id: NodeId,
    reasons: &'a BTreeMap<FitReason, u32>,
) -> Vec<&'a FitReason> {
    let node = &m.nodes[id];
    let short = m.first_short(id, &class.request).map(FitReason::Insufficient);
    let asked = [
        (FitReason::OtherShard, m.nodes.tally(id).elsewhere),
        (FitReason::Unschedulable, node.unschedulable),
        (
            FitReason::NodeAffinity,
            !class.selector.matches(&m.strings, node.name, &node.labels),
        ),
        (FitReason::Taint, !class.tolerates_hard(&node.taints)),
    ];
    let given = |reason: FitReason| reasons.get_key_value(&reason).map(|(reason, _)| reason);
    if let Some(short) = short.and_then(given) {
        return vec![short];
    }
    let fixed = asked.into_iter().filter(|(_, holds)| *holds);
    let fixed = fixed.map(|(reason, _)| reason).find_map(given);
    let is_full = m.nodes.max_pods(id) <= m.nodes.tally(id).pods;
    let full = given(FitReason::PodNumber).filter(|_| is_full);
    fixed.into_iter().chain(full).collect()
}
