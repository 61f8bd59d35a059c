//! Objects with values that make no sense: whatever parses is taken, and nothing panics.

use super::cluster::{CONFS, cluster};
use super::settings;
use proptest::prelude::*;
use serde_json::{Value, json};
use volcano_engine::model::delta::Delta;

/// Amounts that some user has written, or that arithmetic trips over.
const AMOUNTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "-1Gi",
    "100m",
    "1n",
    "9223372036854775807",
    "-9223372036854775808",
    "9E",
    "1e18",
    "-1e18",
    "9223372036854775807m",
    "8Ei",
    "0.0001",
    "1k",
    "5",
];

/// Whole numbers at the ends of their range.
const NUMBERS: &[i64] = &[0, 1, 2, 3, -1, -5, i32::MAX as i64, i32::MIN as i64, 1000];

fn amount() -> impl Strategy<Value = &'static str> {
    prop::sample::select(AMOUNTS)
}

fn number() -> impl Strategy<Value = i64> {
    prop::sample::select(NUMBERS)
}

fn list() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "cpu",
        "memory",
        "pods",
        "nvidia.com/gpu",
        "ephemeral-storage",
        "",
        "x/y",
        "count/pods",
    ]);
    prop::collection::btree_map(names, amount(), 0..5).prop_map(|list| json!(list))
}

fn name(of: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(of)
}

const NAMES: &[&str] = &["", "j0", "j1", "j9", "q0", "q1", "root", "default"];
const NODES: &[&str] = &["", "n0", "n1", "n9"];
const WORDS: &[&str] = &[
    "",
    "Pending",
    "Running",
    "Inqueue",
    "Unknown",
    "Completed",
    "Succeeded",
    "Failed",
    "Open",
    "Closed",
    "Nonsense",
];
const TIMES: &[&str] = &[
    "1970-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
];

fn pod() -> impl Strategy<Value = Value> {
    let text = (name(NAMES), name(NODES), name(WORDS), name(TIMES));
    (text, list(), list(), number(), number(), any::<bool>(), any::<bool>()).prop_map(
        |((group, node, phase, time), requests, overhead, priority, port, deleted, gated)| {
            let mut pod = json!({
                "metadata": {
                    "name": format!("j0-p{}", priority.rem_euclid(5)), "namespace": "default", "creationTimestamp": time,
                    "annotations": {
                        "scheduling.k8s.io/group-name": group, "volcano.sh/task-priority": format!("{port}"),
                        "volcano.sh/preemptable": phase, "volcano.sh/task-spec": group,
                    },
                },
                "spec": {
                    "nodeName": node, "schedulerName": "volcano", "priority": priority, "overhead": overhead,
                    "containers": [{"resources": {"requests": requests}, "ports": [{"hostPort": port}]}, {}],
                    "initContainers": [{"resources": {"requests": overhead}, "restartPolicy": "Always"}],
                    "nodeSelector": {"": group}, "tolerations": [{}, {"operator": "Odd", "key": node}],
                    "topologySpreadConstraints": [{"maxSkew": port, "topologyKey": node, "whenUnsatisfiable": "DoNotSchedule"}],
                },
                "status": {"phase": phase, "nominatedNodeName": node, "startTime": time},
            });
            if deleted {
                pod["metadata"]["deletionTimestamp"] = json!(time);
            }
            if gated {
                pod["spec"]["schedulingGates"] = json!([{}, {"name": "x"}]);
            }
            pod
        },
    )
}

fn group() -> impl Strategy<Value = Value> {
    let numbers = (number(), number(), number(), number());
    (name(NAMES), name(NAMES), name(WORDS), name(TIMES), list(), numbers, any::<bool>()).prop_map(
        |(own, queue, phase, time, minimum, (min, role, size, sub), parted)| {
            let mut group = json!({
                "metadata": {
                    "name": own, "namespace": "default", "creationTimestamp": time,
                    "annotations": {"sla-waiting-time": format!("{min}h"), "volcano.sh/preemptable": phase},
                },
                "spec": {
                    "minMember": min, "queue": queue, "priorityClassName": own, "minResources": minimum,
                    "minTaskMember": {"": role, "j0": size},
                },
                "status": {"phase": phase, "running": sub},
            });
            if parted {
                let policy = json!({"name": own, "subGroupSize": size, "minSubGroups": sub, "matchLabelKeys": [own]});
                group["spec"]["subGroupPolicy"] = json!([policy]);
            }
            group
        },
    )
}

fn queue() -> impl Strategy<Value = Value> {
    (name(NAMES), name(NAMES), name(WORDS), list(), list(), list(), number()).prop_map(
        |(own, parent, state, capability, deserved, guarantee, weight)| {
            json!({
                "metadata": {
                    "name": own,
                    "annotations": {"volcano.sh/hierarchy": format!("root/{parent}//x"), "volcano.sh/hierarchy-weights": format!("{weight}/-1")},
                },
                "spec": {
                    "weight": weight, "priority": weight, "parent": parent, "capability": capability,
                    "deserved": deserved, "guarantee": {"resource": guarantee},
                },
                "status": {"state": state},
            })
        },
    )
}

fn node() -> impl Strategy<Value = Value> {
    (name(NODES), list(), amount(), name(NAMES)).prop_map(|(own, offers, extra, label)| {
        json!({
            "metadata": {
                "name": own, "labels": {"zone": label, "": ""},
                "annotations": {"volcano.sh/oversubscription-cpu": extra, "volcano.sh/oversubscription-memory": extra},
            },
            "spec": {"taints": [{"key": label, "effect": "Odd"}, {"key": "", "effect": "NoExecute"}]},
            "status": {"allocatable": offers, "images": [{"names": [label], "sizeBytes": -5}]},
        })
    })
}

/// A change that parses; one that does not is no change.
pub fn delta() -> impl Strategy<Value = Option<Delta>> {
    fn read<T: for<'a> serde::Deserialize<'a>>(value: Value) -> Option<Box<T>> {
        serde_json::from_value(value).ok().map(Box::new)
    }
    prop_oneof![
        6 => pod().prop_map(|value| read(value).map(Delta::Pod)),
        3 => group().prop_map(|value| read(value).map(Delta::PodGroup)),
        3 => queue().prop_map(|value| read(value).map(Delta::Queue)),
        3 => node().prop_map(|value| read(value).map(Delta::Node)),
        1 => (name(NAMES), number()).prop_map(|(name, value)| {
            read(json!({"metadata": {"name": name}, "value": value, "globalDefault": true})).map(|c| Delta::PriorityClass(*c))
        }),
        1 => (0..5usize).prop_map(|at| Some(Delta::PodGone { namespace: "default".to_owned(), name: format!("j0-p{at}") })),
        1 => name(NAMES).prop_map(|name| Some(Delta::PodGroupGone { namespace: "default".to_owned(), name: name.to_owned() })),
        1 => name(NAMES).prop_map(|name| Some(Delta::QueueGone { name: name.to_owned() })),
        1 => name(NODES).prop_map(|name| Some(Delta::NodeGone { name: name.to_owned() })),
        1 => (0..5usize).prop_map(|at| Some(Delta::BindFailed { namespace: "default".to_owned(), name: format!("j0-p{at}"), uid: String::new() })),
        1 => (0..5usize).prop_map(|at| Some(Delta::EvictFailed { namespace: "default".to_owned(), name: format!("j0-p{at}"), uid: String::new() })),
    ]
}

proptest! {
    #![proptest_config(settings(1000))]

    #[test]
    fn no_object_that_parses_makes_a_cycle_panic(
        conf in 0..CONFS.len(),
        ordinary in cluster(super::any_conf),
        before in prop::collection::vec(delta(), 1..12),
        after in prop::collection::vec(delta(), 0..6),
    ) {
        let mut engine = CONFS[conf].engine();
        ordinary.deltas().into_iter().for_each(|delta| engine.apply(delta));
        before.into_iter().flatten().for_each(|delta| engine.apply(delta));
        engine.cycle(super::at(0), &mut |_| {});
        after.into_iter().flatten().for_each(|delta| engine.apply(delta));
        engine.cycle(super::at(1), &mut |_| {});
        engine.cycle(super::at(2), &mut |_| {});
    }
}
