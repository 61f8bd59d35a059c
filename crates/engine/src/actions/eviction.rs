//! Making room for a task by evicting others, shared by `preempt` and `reclaim`.
//!
//! Evictions are part of a plan: they are made in the transaction together with the placement that needs them, and
//! none that could be spared stays in it.

use crate::ids::{NodeId, TaskId};
use crate::placer::Placer;
use crate::plugin::EvictionKind;
use crate::session::Session;

/// The tasks on a node that may be evicted for a task, first to go first.
pub fn victims(
    ssn: &Session<'_>,
    task: TaskId,
    node: NodeId,
    kind: EvictionKind,
    may_go: impl Fn(&Session<'_>, TaskId) -> bool,
) -> Vec<TaskId> {
    let on_node = ssn.m.nodes[node].tasks.iter().copied();
    let mut candidates: Vec<TaskId> = on_node
        .filter(|&t| ssn.m.task(t).preemptable && may_go(ssn, t))
        .collect();
    if candidates.is_empty() {
        return candidates;
    }
    candidates.sort_unstable_by(|&a, &b| {
        ssn.plugins
            .victim_order(ssn.m, a, b, task)
            .then_with(|| ssn.m.task(a).name.cmp(&ssn.m.task(b).name))
    });
    match kind {
        EvictionKind::Preempt => ssn.plugins.preemptable(ssn.m, task, &candidates),
        EvictionKind::Reclaim => ssn.plugins.reclaimable(ssn.m, task, &candidates),
    }
}

/// All victims together would make room enough.
fn could_fit(ssn: &Session<'_>, task: TaskId, node: NodeId, victims: &[TaskId]) -> bool {
    ssn.m.request(task).iter().all(|(dim, needed)| {
        let freed = victims
            .iter()
            .fold(0_i64, |sum, &v| sum.saturating_add(ssn.m.request(v).get(dim)));
        needed <= 0 || needed <= ssn.m.nodes.future_idle(node, dim).saturating_add(freed)
    })
}

/// Evicts as few victims as it takes, in order, until `fits` holds; `None`, and nothing done, when it never does. None are
/// needed where there is room already: what an earlier member of the gang was made room with may do for the next one.
pub fn make_room(
    ssn: &mut Session<'_>,
    task: TaskId,
    node: NodeId,
    kind: EvictionKind,
    victims: &[TaskId],
    fits: impl Fn(&Session<'_>) -> bool,
) -> Option<Vec<TaskId>> {
    if !could_fit(ssn, task, node, victims) {
        return None;
    }
    let checkpoint = ssn.checkpoint();
    let mut evicted = Vec::new();
    let mut left = victims.iter().copied();
    while !fits(ssn) {
        let Some(victim) = left.next() else {
            ssn.forget(checkpoint);
            return None;
        };
        ssn.evict(victim, kind, task);
        evicted.push(victim);
    }
    spare_needless(ssn, &mut evicted, kind, task, &fits);
    if cfg!(debug_assertions) {
        check_irreducible(ssn, &evicted, kind, task, &fits);
    }
    Some(evicted)
}

/// No victim can be left out: without any one of them the task does not fit.
fn check_irreducible(
    ssn: &mut Session<'_>,
    evicted: &[TaskId],
    kind: EvictionKind,
    task: TaskId,
    fits: &impl Fn(&Session<'_>) -> bool,
) {
    // Each is spared and evicted again in turn, so that the order of the log stays.
    for &victim in evicted {
        ssn.spare(victim);
        debug_assert!(!fits(ssn), "a victim that can be left out");
        ssn.evict(victim, kind, task);
    }
}

/// Takes back every eviction without which the task fits as well, the most important victim first.
fn spare_needless(
    ssn: &mut Session<'_>,
    evicted: &mut Vec<TaskId>,
    kind: EvictionKind,
    task: TaskId,
    fits: &impl Fn(&Session<'_>) -> bool,
) {
    // The last one is needed: without it the task did not fit.
    for at in (0..evicted.len().saturating_sub(1)).rev() {
        let victim = evicted[at];
        ssn.spare(victim);
        if fits(ssn) {
            evicted.remove(at);
        } else {
            ssn.evict(victim, kind, task);
        }
    }
}

/// The task has room on the node, and no filter is against it.
pub fn fits_on(ssn: &Session<'_>, task: TaskId, node: NodeId) -> bool {
    Placer::judge(ssn.m, ssn.plugins, task, node).is_empty()
}
