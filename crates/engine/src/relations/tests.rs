//! The kept counts against what a plain look at every pod says.

use super::testing::{NS, add, empty, labelled, merged, node, plugins, pod};
use crate::ids::TaskId;
use crate::model::Model;
use crate::model::accounting::Place;
use crate::model::status::Status;
use crate::placer::Placer;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use volcano_api::core::{Affinity, LabelSelector, Labels, PodAffinityTerm, TopologySpreadConstraint};

/// Labels that pods have, by number.
fn pod_labels(kind: usize) -> Value {
    [
        json!({}),
        json!({"app": "a"}),
        json!({"app": "b"}),
        json!({"app": "a", "tier": "x"}),
    ][kind % 4]
        .clone()
}

/// Rules that pods have, by number.
fn rules(kind: usize) -> Value {
    let required = |side: &str, terms: Value| json!({"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}});
    let a = json!({"matchLabels": {"app": "a"}});
    let not_b = json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]});
    let listed = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]});
    let spread = |selector: &Value, key: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector});
    match kind % 8 {
        0 | 1 => json!({}),
        2 => required(
            "podAntiAffinity",
            json!([{"topologyKey": "zone", "labelSelector": a}]),
        ),
        3 => required(
            "podAntiAffinity",
            json!([
            {"topologyKey": "host", "labelSelector": listed, "namespaceSelector": {"matchLabels": {"team": "t"}}}]),
        ),
        4 => required(
            "podAffinity",
            json!([{"topologyKey": "zone", "labelSelector": a},
            {"topologyKey": "host", "labelSelector": not_b, "namespaces": [NS, "other"]}]),
        ),
        5 => required(
            "podAffinity",
            json!([{"topologyKey": "zone", "labelSelector": listed}]),
        ),
        6 => json!({"topologySpreadConstraints": [spread(&a, "zone")]}),
        _ => json!({"topologySpreadConstraints": [spread(&not_b, "zone"), spread(&listed, "host")]}),
    }
}

/// Labels that nodes have, by number.
fn node_labels(at: usize, kind: usize) -> Value {
    let host = format!("h{at}");
    [
        json!({"zone": "z1", "host": host}),
        json!({"zone": "z2", "host": host}),
        json!({"zone": "z1"}),
        json!({}),
    ][kind % 4]
        .clone()
}

#[derive(Clone, Debug)]
struct PlainPod {
    namespace: String,
    labels: Labels,
    affinity: Affinity,
    spread: Vec<TopologySpreadConstraint>,
    node: Option<usize>,
}

/// The cluster without any counts.
#[derive(Default)]
struct Plain {
    nodes: Vec<Labels>,
    pods: Vec<PlainPod>,
    namespaces: BTreeMap<String, Labels>,
}

impl Plain {
    fn chooses(&self, term: &PodAffinityTerm, owner: &PlainPod, pod: &PlainPod) -> bool {
        let by_default = term.namespaces.is_empty() && term.namespace_selector.is_none();
        let labels = self.namespaces.get(&pod.namespace).cloned().unwrap_or_default();
        let in_namespace = (by_default && pod.namespace == owner.namespace)
            || term.namespaces.contains(&pod.namespace)
            || term
                .namespace_selector
                .as_ref()
                .is_some_and(|s| s.matches(&labels));
        in_namespace
            && term
                .label_selector
                .as_ref()
                .is_some_and(|s| s.matches(&pod.labels))
    }

    fn same_domain(&self, key: &str, a: usize, b: usize) -> bool {
        self.nodes[a].contains_key(key) && self.nodes[a].get(key) == self.nodes[b].get(key)
    }

    fn allows(&self, at: usize, on: usize) -> bool {
        let incoming = &self.pods[at];
        let placed: Vec<(&PlainPod, usize)> = self.pods.iter().filter_map(|p| Some((p, p.node?))).collect();
        let near = incoming
            .affinity
            .pod_affinity
            .iter()
            .flat_map(|a| &a.required)
            .collect::<Vec<_>>();
        let meets_all = |pod: &PlainPod| near.iter().all(|term| self.chooses(term, incoming, pod));
        let friends: Vec<usize> = placed
            .iter()
            .filter(|(p, _)| meets_all(p))
            .map(|(_, node)| *node)
            .collect();
        let labelled = near
            .iter()
            .all(|term| self.nodes[on].contains_key(&term.topology_key));
        let nearby = |term: &&PodAffinityTerm| {
            friends
                .iter()
                .any(|&n| self.same_domain(&term.topology_key, on, n))
        };
        let counted = |term: &&PodAffinityTerm| {
            friends
                .iter()
                .any(|&n| self.nodes[n].contains_key(&term.topology_key))
        };
        let first = !near.iter().any(counted) && meets_all(incoming);
        let affinity = labelled && (first || near.iter().all(nearby));
        let keeps_away = |owner: &PlainPod, pod: &PlainPod, other: usize| {
            let terms = owner.affinity.pod_anti_affinity.iter().flat_map(|a| &a.required);
            terms
                .into_iter()
                .any(|t| self.chooses(t, owner, pod) && self.same_domain(&t.topology_key, on, other))
        };
        let anti = placed
            .iter()
            .any(|(p, n)| keeps_away(incoming, p, *n) || keeps_away(p, incoming, *n));
        affinity && !anti && self.spread_allows(incoming, &placed, on)
    }

    fn spread_allows(&self, incoming: &PlainPod, placed: &[(&PlainPod, usize)], on: usize) -> bool {
        let rules = &incoming.spread;
        let complete = |node: &Labels| rules.iter().all(|r| node.contains_key(&r.topology_key));
        rules.iter().all(|rule| {
            let selector = rule.label_selector.clone().unwrap_or_else(LabelSelector::default);
            let Some(value) = self.nodes[on].get(&rule.topology_key) else {
                return false;
            };
            let mut counts: BTreeMap<&String, i64> = BTreeMap::new();
            for (node, labels) in self
                .nodes
                .iter()
                .enumerate()
                .filter(|(_, labels)| complete(labels))
            {
                let here = placed.iter().filter(|(p, n)| {
                    *n == node && p.namespace == incoming.namespace && selector.matches(&p.labels)
                });
                *counts.entry(&labels[&rule.topology_key]).or_default() += here.count() as i64;
            }
            let least = counts.values().copied().min().unwrap_or(0);
            let itself = i64::from(selector.matches(&incoming.labels));
            counts.get(value).copied().unwrap_or(0) + itself - least <= i64::from(rule.max_skew)
        })
    }
}

#[derive(Clone, Debug)]
enum Step {
    Place(usize, usize),
    Unplace(usize),
    Evict(usize),
    Relabel(usize, usize),
    Team(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..64_usize, 0..8_usize).prop_map(|(pod, node)| Step::Place(pod, node)),
        2 => (0..64_usize).prop_map(Step::Unplace),
        2 => (0..64_usize).prop_map(Step::Evict),
        1 => (0..8_usize, 0..4_usize).prop_map(|(node, kind)| Step::Relabel(node, kind)),
        1 => any::<bool>().prop_map(Step::Team),
    ];
    prop::collection::vec(step, 0..40)
}

struct World {
    m: Model,
    plain: Plain,
    tasks: Vec<TaskId>,
    moves: Vec<(TaskId, Place)>,
}

fn labels_of(value: &Value) -> Labels {
    serde_json::from_value(value.clone()).expect("labels")
}

impl World {
    fn new(node_kinds: &[usize], pods: &[(usize, usize, bool)]) -> Self {
        let mut world = World {
            m: empty(),
            plain: Plain::default(),
            tasks: Vec::new(),
            moves: Vec::new(),
        };
        for (at, &kind) in node_kinds.iter().enumerate() {
            world.plain.nodes.push(Labels::new());
            world.relabel(at, kind);
        }
        for (at, &(labels, rule, elsewhere)) in pods.iter().enumerate() {
            let namespace = if elsewhere { "other" } else { NS };
            let (labels, spec) = (pod_labels(labels), rules(rule));
            world.plain.pods.push(PlainPod {
                namespace: namespace.to_owned(),
                labels: labels_of(&labels),
                affinity: serde_json::from_value(spec["affinity"].clone()).unwrap_or_default(),
                spread: serde_json::from_value(spec["topologySpreadConstraints"].clone()).unwrap_or_default(),
                node: None,
            });
            let object = merged(
                labelled(labels),
                &json!({"metadata": {"namespace": namespace}, "spec": spec}),
            );
            world
                .tasks
                .push(pod(&mut world.m, &format!("p{at}"), None, object));
        }
        world
    }

    fn relabel(&mut self, at: usize, kind: usize) {
        let labels = node_labels(at, kind);
        self.plain.nodes[at] = labels_of(&labels);
        node(&mut self.m, &format!("n{at}"), labelled(labels));
    }

    fn go(&mut self, at: usize, node: Option<usize>, to: Place) {
        self.plain.pods[at].node = node;
        self.moves.push((self.tasks[at], self.m.place(self.tasks[at])));
        self.m.transition(self.tasks[at], to);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Place(pod, node) => {
                let (pod, node) = (pod % self.tasks.len(), node % self.plain.nodes.len());
                let on = self.m.find_node(&format!("n{node}"));
                self.go(
                    pod,
                    Some(node),
                    Place {
                        status: Status::Allocated,
                        node: on,
                        evicted_now: false,
                    },
                );
            }
            Step::Unplace(pod) => {
                let pod = pod % self.tasks.len();
                self.go(
                    pod,
                    None,
                    Place {
                        status: Status::Pending,
                        node: None,
                        evicted_now: false,
                    },
                );
            }
            Step::Evict(pod) => {
                let pod = pod % self.tasks.len();
                let place = self.m.place(self.tasks[pod]);
                if place.node.is_some() {
                    self.go(
                        pod,
                        None,
                        Place {
                            status: Status::Releasing,
                            evicted_now: true,
                            ..place
                        },
                    );
                }
            }
            Step::Relabel(node, kind) => self.relabel(node % self.plain.nodes.len(), kind),
            Step::Team(joined) => {
                let labels = if joined { json!({"team": "t"}) } else { json!({}) };
                self.plain
                    .namespaces
                    .insert("other".to_owned(), labels_of(&labels));
                let object = json!({"kind": "Namespace", "metadata": {"name": "other", "labels": labels}});
                add(&mut self.m, object);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn counts_agree_with_a_look_at_every_pod(
        node_kinds in prop::collection::vec(0..4_usize, 1..6),
        pods in prop::collection::vec((0..4_usize, 0..8_usize, any::<bool>()), 1..12),
        steps in steps(),
    ) {
        let mut world = World::new(&node_kinds, &pods);
        steps.iter().for_each(|step| world.step(step));
        let mut recounted = world.m.clone();
        recounted.recount_relations();
        prop_assert_eq!(&world.m.relations, &recounted.relations);
        let plugins = plugins(&world.m, &[("predicates", &[])]);
        for (at, &task) in world.tasks.iter().enumerate().filter(|(at, _)| world.plain.pods[*at].node.is_none()) {
            if world.m.task(task).status != Status::Pending {
                continue;
            }
            for on in 0..world.plain.nodes.len() {
                let node = world.m.find_node(&format!("n{on}")).expect("there");
                // Pod numbers are not what is tested here: a node takes ten, and there are up to eleven pods.
                let reasons = Placer::judge_filters(&world.m, &plugins, task, node);
                let allowed = reasons.iter().all(|r| *r == crate::explain::FitReason::PodNumber);
                prop_assert_eq!(allowed, world.plain.allows(at, on), "pod p{} on n{}: {:?}", at, on, reasons);
            }
        }
    }

    #[test]
    fn going_back_restores_every_count(
        node_kinds in prop::collection::vec(0..4_usize, 1..6),
        pods in prop::collection::vec((0..4_usize, 0..8_usize, any::<bool>()), 1..12),
        steps in steps(),
    ) {
        let mut world = World::new(&node_kinds, &pods);
        let moves = |s: &&Step| matches!(s, Step::Place(..) | Step::Unplace(_) | Step::Evict(_));
        let half = steps.len() / 2;
        steps[..half].iter().for_each(|step| world.step(step));
        world.moves.clear();
        let before = world.m.relations.clone();
        steps[half..].iter().filter(moves).for_each(|step| world.step(step));
        for (task, place) in std::mem::take(&mut world.moves).into_iter().rev() {
            world.m.transition(task, place);
        }
        prop_assert_eq!(&world.m.relations, &before);
    }
}

#[test]
fn rules_that_say_the_same_are_kept_once() {
    let mut m = empty();
    for (name, cpu) in [("p", "1"), ("q", "2")] {
        let anti = json!({"spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a", "tier": "x"}}}]}}}});
        pod(&mut m, name, None, anti);
    }
    assert_ne!(
        m.task(m.find_task(NS, "p").expect("p")).class,
        m.task(m.find_task(NS, "q").expect("q")).class
    );
    assert_eq!((m.relations.groups.len(), m.relations.terms.len()), (1, 1));
}

#[test]
fn a_cluster_without_rules_keeps_nothing() {
    let mut m = empty();
    node(&mut m, "n", json!({}));
    pod(&mut m, "p", Some("n"), labelled(json!({"app": "a"})));
    assert!(m.relations.is_empty());
    assert_eq!(m.relations, super::Relations::default());
}
