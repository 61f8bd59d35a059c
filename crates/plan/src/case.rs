//! Conformance cases: a configuration, objects, and the outcome of one cycle that users rely on.
//!
//! ```text
//! {name, source, conf, objects, expect} -> one cycle -> differences from `expect`
//! ```
//!
//! In a case every pod is the scheduler's, whatever its `schedulerName`, and nothing is added to the objects but
//! missing uids.

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::known;
use crate::outcome::Outcome;
use crate::session::{self, Session, Setup};
use crate::source::Source;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::names::queues;
use volcano_api::scheduling::{NetworkTopology, NetworkTopologyMode};
use volcano_api::time::Time;
use volcano_api::topology::HyperNode;
use volcano_engine::model::SchedulerNames;
use volcano_engine::model::delta::Delta;

/// The moment of a case's cycle: objects without a time were made long before it.
const NOW: Time = Time::from_unix_seconds(1_767_225_600);
/// The API group of devices, which the engine does not plan.
const DEVICES_GROUP: &str = "resource.k8s.io";
/// The plugin that gives HyperNodes a meaning.
const TOPOLOGY_PLUGIN: &str = "network-topology-aware";

/// A case file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    name: String,
    #[serde(default, rename = "source")]
    _source: String,
    conf: String,
    objects: Vec<serde_json::Value>,
    expect: Expect,
}

/// What is expected of a case. A key that is absent is not checked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Expect {
    binds: Option<BTreeMap<String, String>>,
    bind_count: Option<usize>,
    evicted: Option<BTreeSet<String>>,
    pipelined_nodes: Option<BTreeMap<String, BTreeSet<String>>>,
    phases: Option<BTreeMap<String, String>>,
    task_counts: Option<BTreeMap<String, BTreeMap<String, u32>>>,
    bind_counts_by_lowest_hyper_node: Option<Vec<usize>>,
}

/// What became of a case.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As expected.
    Passed,
    /// Not as expected: the differences.
    Failed(Vec<String>),
    /// Not as expected, on purpose.
    Known(&'static str),
    /// Needs something that the engine does not have.
    Skipped(String),
}

/// A case that was run.
#[derive(Debug)]
pub struct CaseResult {
    /// File name without the extension.
    pub file: String,
    /// The case's own name.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
}

/// Runs the case of a file; `file` is its name without the extension. A panic of the engine is a failed case, not the end of all others.
///
/// # Errors
/// When the text is not a case.
pub fn run(file: &str, source: &Source) -> Result<CaseResult, Fault> {
    let case: CaseFile = serde_json::from_str(source.text())
        .map_err(|error| Fault::new(format!("{}: not a conformance case: {error}", source.name)))?;
    let name = case.name.clone();
    let verdict = match std::panic::catch_unwind(|| judge(&source.name, case)) {
        Ok(verdict) => verdict?,
        Err(panic) => Verdict::Failed(vec![format!("the engine panicked: {}", panic_text(&*panic))]),
    };
    let verdict = match (verdict, known::reason(file)) {
        (Verdict::Failed(_), Some(reason)) => Verdict::Known(reason),
        (verdict, _) => verdict,
    };
    Ok(CaseResult {
        file: file.to_owned(),
        name,
        verdict,
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

fn judge(file: &str, case: CaseFile) -> Result<Verdict, Fault> {
    let conf = session::configuration(&format!("{file}: conf"), &case.conf)?;
    let objects = Source::from_text(file, serde_json::Value::Array(case.objects.clone()).to_string());
    let cluster = Cluster::exactly(&objects)?;
    let hyper_nodes = hyper_nodes(&cluster);
    let topology = !hyper_nodes.is_empty() || has_hard_topology(&cluster);
    if let Some(need) = need(&session::missing_plugins(&conf), &case.objects, topology) {
        return Ok(Verdict::Skipped(format!("needs {need}")));
    }
    let waiting_for_volumes = waiting_for_volumes(&cluster);
    let setup = Setup {
        conf,
        names: SchedulerNames::Any,
        default_queue: queues::DEFAULT.to_owned(),
        cycles: 1,
        now: NOW,
    };
    let outcome = Session::load(setup, cluster).run(&mut || 0.0);
    let differences = differences(&case.expect, &outcome, &waiting_for_volumes, &hyper_nodes);
    Ok(if differences.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Failed(differences)
    })
}

/// What a case needs that the engine does not have.
fn need(missing: &[&str], objects: &[serde_json::Value], topology: bool) -> Option<String> {
    let in_group = |object: &serde_json::Value| {
        object["apiVersion"]
            .as_str()
            .and_then(|version| version.split_once('/'))
            .is_some_and(|(g, _)| g == DEVICES_GROUP)
    };
    if objects.iter().any(in_group) {
        return Some("dynamic resource allocation".to_owned());
    }
    // Where nothing is said about the network, the plugin has nothing to say either.
    let needed = missing.iter().find(|name| **name != TOPOLOGY_PLUGIN || topology);
    needed.map(|name| (*name).to_owned())
}

fn hyper_nodes(cluster: &Cluster) -> BTreeMap<String, HyperNode> {
    let list = cluster.objects.iter().filter_map(|object| match object {
        Delta::HyperNode(hyper_node) => Some((hyper_node.metadata.name.clone(), (**hyper_node).clone())),
        _ => None,
    });
    list.collect()
}

/// Whether a PodGroup, or a part of one, must lie close together.
fn has_hard_topology(cluster: &Cluster) -> bool {
    let hard = |topology: &NetworkTopology| topology.mode != NetworkTopologyMode::Soft;
    cluster.objects.iter().any(|object| match object {
        Delta::PodGroup(group) => {
            let parts = group
                .spec
                .sub_group_policy
                .iter()
                .filter_map(|part| part.network_topology.as_ref());
            group.spec.network_topology.iter().chain(parts).any(hard)
        }
        _ => false,
    })
}

/// Pods whose claims are not bound yet. They have a node after the cycle, but the API binds them only once their
/// volumes are, so a case does not count them among the binds.
fn waiting_for_volumes(cluster: &Cluster) -> BTreeSet<String> {
    let unbound: BTreeSet<(&str, &str)> = cluster
        .objects
        .iter()
        .filter_map(|object| match object {
            Delta::Claim(claim) if claim.spec.volume_name.is_empty() => {
                Some((claim.metadata.namespace.as_str(), claim.metadata.name.as_str()))
            }
            _ => None,
        })
        .collect();
    let waits = |pod: &&volcano_api::core::Pod| {
        let claims = pod
            .spec
            .volumes
            .iter()
            .filter_map(|volume| volume.persistent_volume_claim.as_ref());
        claims
            .into_iter()
            .any(|claim| unbound.contains(&(pod.metadata.namespace.as_str(), claim.claim_name.as_str())))
    };
    cluster
        .pods()
        .filter(waits)
        .map(|pod| format!("{}/{}", pod.metadata.namespace, pod.metadata.name))
        .collect()
}

/// How an outcome differs from what is expected, one line each.
fn differences(
    expect: &Expect,
    outcome: &Outcome,
    waiting_for_volumes: &BTreeSet<String>,
    hyper_nodes: &BTreeMap<String, HyperNode>,
) -> Vec<String> {
    let mut found = Vec::new();
    let binds: BTreeMap<&str, &str> = outcome
        .binds()
        .into_iter()
        .filter(|(pod, _)| !waiting_for_volumes.contains(*pod))
        .collect();
    if let Some(expected) = &expect.binds {
        compare_binds(expected, &binds, &mut found);
    }
    if let Some(expected) = expect.bind_count
        && binds.len() != expected
    {
        found.push(format!("bindCount: expected {expected}, got {}", binds.len()));
    }
    if let Some(expected) = &expect.evicted {
        let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
        let got: BTreeSet<&str> = outcome.evictions().into_keys().collect();
        found.extend(
            expected
                .difference(&got)
                .map(|pod| format!("evicted: expected {pod}, which stays")),
        );
        found.extend(
            got.difference(&expected)
                .map(|pod| format!("evicted: {pod}, which should stay")),
        );
    }
    for (group, nodes) in expect.pipelined_nodes.iter().flatten() {
        let got: BTreeSet<&String> = outcome
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| group.pipelined.keys())
            .collect();
        if got.is_empty() || !got.iter().all(|node| nodes.contains(*node)) {
            found.push(format!(
                "pipelinedNodes: {group}: expected some of {nodes:?} only, got {got:?}"
            ));
        }
    }
    for (group, phase) in expect.phases.iter().flatten() {
        let got = outcome
            .groups
            .get(group)
            .map_or("no such PodGroup", |group| group.phase);
        if got != phase {
            found.push(format!("phases: {group}: expected {phase}, got {got}"));
        }
    }
    for (group, states) in expect.task_counts.iter().flatten() {
        for (state, &expected) in states {
            let got = outcome
                .groups
                .get(group)
                .and_then(|group| group.states.get(state.as_str()))
                .copied()
                .unwrap_or(0);
            if got != expected {
                found.push(format!(
                    "taskCounts: {group}: expected {expected} {state}, got {got}"
                ));
            }
        }
    }
    if let Some(expected) = &expect.bind_counts_by_lowest_hyper_node {
        let got = counts_by_hyper_node(binds.values().copied(), hyper_nodes);
        if got != *expected {
            found.push(format!(
                "bindCountsByLowestHyperNode: expected {expected:?}, got {got:?}"
            ));
        }
    }
    found
}

fn compare_binds(expected: &BTreeMap<String, String>, got: &BTreeMap<&str, &str>, found: &mut Vec<String>) {
    for (pod, node) in expected {
        match got.get(pod.as_str()) {
            None => found.push(format!("binds: expected {pod} on {node}, which is not bound")),
            Some(other) if other != node => {
                found.push(format!("binds: expected {pod} on {node}, got {other}"))
            }
            Some(_) => {}
        }
    }
    let extra = got.iter().filter(|(pod, _)| !expected.contains_key(**pod));
    found.extend(extra.map(|(pod, node)| format!("binds: {pod} on {node}, which should not be bound")));
}

/// Binds counted by the lowest-tier hypernode that names the node as a member; sorted. Nodes outside of all count
/// as one.
fn counts_by_hyper_node<'a>(
    nodes: impl Iterator<Item = &'a str>,
    hyper_nodes: &BTreeMap<String, HyperNode>,
) -> Vec<usize> {
    let mut counts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for node in nodes {
        let holders = hyper_nodes.iter().filter(|(_, hyper_node)| {
            hyper_node.spec.members.iter().any(|member| {
                member
                    .selector
                    .exact_match
                    .as_ref()
                    .is_some_and(|exact| exact.name == node)
            })
        });
        let lowest = holders
            .min_by_key(|(_, hyper_node)| hyper_node.spec.tier)
            .map(|(name, _)| name.as_str());
        *counts.entry(lowest).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{CycleOutcome, Eviction, GroupOutcome};
    use serde_json::json;

    fn outcome() -> Outcome {
        let eviction = Eviction {
            node: "n1".into(),
            group: None,
            preemptor: "ns/p".into(),
            kind: "preempt",
        };
        let cycle = CycleOutcome {
            binds: [("ns/a".into(), "n1".into()), ("ns/b".into(), "n2".into())].into(),
            evictions: [("ns/v".into(), eviction)].into(),
            pipelined: [("ns/p".into(), "n1".into())].into(),
            ..CycleOutcome::default()
        };
        let group = GroupOutcome {
            phase: "Inqueue",
            pipelined: [("n1".into(), 1)].into(),
            states: [("Binding", 2)].into(),
            ..GroupOutcome::default()
        };
        Outcome {
            cycles: vec![cycle],
            groups: [("ns/g".into(), group)].into(),
            ..Outcome::default()
        }
    }

    fn check(expect: serde_json::Value) -> Vec<String> {
        let expect: Expect = serde_json::from_value(expect).unwrap();
        differences(&expect, &outcome(), &BTreeSet::new(), &BTreeMap::new())
    }

    #[test]
    fn what_is_as_expected_is_no_difference() {
        for expect in [
            json!({}),
            json!({"binds": {"ns/a": "n1", "ns/b": "n2"}, "bindCount": 2, "evicted": ["ns/v"]}),
            json!({"pipelinedNodes": {"ns/g": ["n1", "n2"]}, "phases": {"ns/g": "Inqueue"}}),
            json!({"taskCounts": {"ns/g": {"Binding": 2, "Pending": 0}}, "bindCountsByLowestHyperNode": [2]}),
        ] {
            assert_eq!(check(expect.clone()), [""; 0], "{expect}");
        }
    }

    #[test]
    fn each_difference_is_told() {
        let cases: [(serde_json::Value, &[&str]); 9] = [
            (
                json!({"binds": {"ns/a": "n2", "ns/c": "n1"}}),
                &[
                    "binds: expected ns/a on n2, got n1",
                    "binds: expected ns/c on n1, which is not bound",
                    "binds: ns/b on n2, which should not be bound",
                ],
            ),
            (json!({"bindCount": 1}), &["bindCount: expected 1, got 2"]),
            (json!({"evicted": []}), &["evicted: ns/v, which should stay"]),
            (
                json!({"evicted": ["ns/w"]}),
                &[
                    "evicted: expected ns/w, which stays",
                    "evicted: ns/v, which should stay",
                ],
            ),
            (
                json!({"pipelinedNodes": {"ns/g": ["n2"]}}),
                &["pipelinedNodes: ns/g: expected some of {\"n2\"} only, got {\"n1\"}"],
            ),
            (
                json!({"phases": {"ns/g": "Running"}}),
                &["phases: ns/g: expected Running, got Inqueue"],
            ),
            (
                json!({"phases": {"ns/h": "Running"}}),
                &["phases: ns/h: expected Running, got no such PodGroup"],
            ),
            (
                json!({"taskCounts": {"ns/g": {"Binding": 1}}}),
                &["taskCounts: ns/g: expected 1 Binding, got 2"],
            ),
            (
                json!({"bindCountsByLowestHyperNode": [1, 1]}),
                &["bindCountsByLowestHyperNode: expected [1, 1], got [2]"],
            ),
        ];
        for (expect, expected) in cases {
            assert_eq!(check(expect.clone()), expected, "{expect}");
        }
    }

    #[test]
    fn pods_that_wait_for_volumes_are_not_bound_yet() {
        let expect: Expect = serde_json::from_value(json!({"binds": {"ns/b": "n2"}})).unwrap();
        let waiting = ["ns/a".to_owned()].into();
        assert_eq!(
            differences(&expect, &outcome(), &waiting, &BTreeMap::new()),
            [""; 0]
        );
    }

    #[test]
    fn a_case_is_skipped_for_what_the_engine_lacks() {
        let device = [json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"})];
        assert_eq!(
            need(&[], &device, false).as_deref(),
            Some("dynamic resource allocation")
        );
        assert_eq!(need(&["tdm"], &[], false).as_deref(), Some("tdm"));
        assert_eq!(need(&[TOPOLOGY_PLUGIN], &[], false), None);
        assert_eq!(
            need(&[TOPOLOGY_PLUGIN], &[], true).as_deref(),
            Some(TOPOLOGY_PLUGIN)
        );
        assert_eq!(need(&[], &[json!({"apiVersion": "v1"})], true), None);
    }
}
