//! What a plan came to, in plain text and numbers: made by `session`, printed by `output` and `table`, compared by
//! `case`.

use serde::Serialize;
use std::collections::BTreeMap;

/// What the cycles of a plan came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What happened in each cycle.
    pub cycles: Vec<CycleOutcome>,
    /// Every PodGroup after the last cycle, by `namespace/name`.
    pub groups: BTreeMap<String, GroupOutcome>,
    /// Queues that take no part, with the reason.
    pub invalid_queues: Vec<(String, String)>,
    /// Milliseconds by step, in the order of the steps, summed over the cycles.
    pub steps: Vec<(String, f64)>,
}

/// What happened in one cycle.
#[derive(Debug, Default)]
pub struct CycleOutcome {
    /// Node by pod.
    pub binds: BTreeMap<String, String>,
    /// Who was evicted, by pod.
    pub evictions: BTreeMap<String, Eviction>,
    /// Node by pod that waits for room there.
    pub pipelined: BTreeMap<String, String>,
    /// Phase before and after by PodGroup, where it changed.
    pub phases: BTreeMap<String, (&'static str, &'static str)>,
    /// Pods whose queue-allocation gate is removed.
    pub gates_opened: Vec<String>,
}

/// An eviction.
#[derive(Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Where it ran.
    pub node: String,
    /// Its PodGroup, if it has one.
    pub group: Option<String>,
    /// The pod that gets the room.
    pub preemptor: String,
    /// `preempt` or `reclaim`.
    pub kind: &'static str,
}

/// A PodGroup after the last cycle.
#[derive(Debug, Default)]
pub struct GroupOutcome {
    /// Its queue.
    pub queue: String,
    /// Phase before the first cycle.
    pub phase_before: &'static str,
    /// Phase after the last.
    pub phase: &'static str,
    /// Conditions after the last cycle.
    pub conditions: Vec<ConditionOutcome>,
    /// Pods that have a node or have ended well.
    pub ready: u32,
    /// Pods that must be ready for any to start.
    pub minimum: u32,
    /// All pods.
    pub total: u32,
    /// Pods by state.
    pub states: BTreeMap<&'static str, u32>,
    /// Pods bound by this plan, by node.
    pub binds: BTreeMap<String, u32>,
    /// Pods that wait for room, by node.
    pub pipelined: BTreeMap<String, u32>,
    /// Pods that this plan evicted.
    pub evicted: u32,
    /// Why pods wait, if any do.
    pub why: Option<String>,
}

/// A condition of a PodGroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConditionOutcome {
    /// `Unschedulable` or `Scheduled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: &'static str,
    /// In one word.
    pub reason: String,
    /// In words.
    pub message: String,
}

impl Outcome {
    /// All binds of all cycles.
    pub fn binds(&self) -> BTreeMap<&str, &str> {
        let all = self.cycles.iter().flat_map(|cycle| &cycle.binds);
        all.map(|(pod, node)| (pod.as_str(), node.as_str())).collect()
    }

    /// All evictions of all cycles.
    pub fn evictions(&self) -> BTreeMap<&str, &Eviction> {
        let all = self.cycles.iter().flat_map(|cycle| &cycle.evictions);
        all.map(|(pod, eviction)| (pod.as_str(), eviction)).collect()
    }

    /// What waits for room after the last cycle.
    pub fn pipelined(&self) -> BTreeMap<&str, &str> {
        let last = self.cycles.last().into_iter().flat_map(|cycle| &cycle.pipelined);
        last.map(|(pod, node)| (pod.as_str(), node.as_str())).collect()
    }
}

impl GroupOutcome {
    /// The gang may run.
    pub fn is_ready(&self) -> bool {
        self.ready >= self.minimum && self.ready > 0
    }
}
