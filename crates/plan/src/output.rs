//! A plan for programs: JSON, and the same data as YAML.

use crate::fault::Fault;
use crate::outcome::{ConditionOutcome, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;
use volcano_engine::config::catalog;

/// How long things took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Reading, decoding and taking in the objects.
    pub load_ms: f64,
    /// All cycles.
    pub cycle_ms: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan<'a> {
    binds: BTreeMap<&'a str, &'a str>,
    evicted: Vec<&'a str>,
    pipelined: BTreeMap<&'a str, &'a str>,
    pod_groups: BTreeMap<&'a str, Group<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<Timings<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    phase: &'a str,
    conditions: &'a [ConditionOutcome],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Timings<'a> {
    load_ms: f64,
    cycle_ms: f64,
    actions_ms: BTreeMap<&'a str, f64>,
}

fn plan(outcome: &Outcome, timing: Option<Timing>) -> Plan<'_> {
    let groups = outcome.groups.iter().map(|(name, group)| {
        (
            name.as_str(),
            Group {
                phase: group.phase,
                conditions: &group.conditions,
            },
        )
    });
    let is_action = |name: &str| catalog::ACTIONS.iter().any(|action| action.name == name);
    let actions = outcome.steps.iter().filter(|(name, _)| is_action(name));
    Plan {
        binds: outcome.binds(),
        evicted: outcome.evictions().into_keys().collect(),
        pipelined: outcome.pipelined(),
        pod_groups: groups.collect(),
        timings: timing.map(|timing| Timings {
            load_ms: rounded(timing.load_ms),
            cycle_ms: rounded(timing.cycle_ms),
            actions_ms: actions
                .map(|(name, took_ms)| (name.as_str(), rounded(*took_ms)))
                .collect(),
        }),
    }
}

/// To the microsecond: more digits are noise.
fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

/// The plan as JSON, ending with a line break.
pub fn json(outcome: &Outcome, timing: Option<Timing>) -> Result<String, Fault> {
    let text = serde_json::to_string_pretty(&plan(outcome, timing));
    text.map(|text| text + "\n")
        .map_err(|error| Fault::new(format!("cannot write JSON: {error}")))
}

/// The plan as YAML.
pub fn yaml(outcome: &Outcome, timing: Option<Timing>) -> Result<String, Fault> {
    serde_saphyr::to_string(&plan(outcome, timing))
        .map_err(|error| Fault::new(format!("cannot write YAML: {error}")))
}
