//! Disruption budgets: no cycles together evict more pods of a budget than it allows, while it does not change.

use super::checks::Decisions;
use super::cluster::{Cluster, Conf, contended_cluster};
use super::{cycle, read, settings, with_evictions};
use proptest::prelude::*;
use serde_json::json;
use volcano_engine::model::delta::Delta;

/// The apps that a pod is of, by label: none, one of two, or both.
fn apps(cluster: &Cluster, pod: &str) -> [bool; 2] {
    let (job, of) = cluster.find(pod);
    [(job + of) % 2 == 0, (job + of) % 3 == 0]
}

/// A budget for each app, and one for all pods of the namespace.
fn budgets(allowed: [i32; 3]) -> Vec<Delta> {
    let selectors = [
        json!({"matchLabels": {"app0": "yes"}}),
        json!({"matchExpressions": [{"key": "app1", "operator": "Exists"}]}),
        json!({}),
    ];
    let budget = |(at, selector)| {
        Delta::DisruptionBudget(read(json!({
            "metadata": {"name": format!("b{at}"), "namespace": "default"},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": allowed[at]},
        })))
    };
    selectors.into_iter().enumerate().map(budget).collect()
}

fn labelled(cluster: &Cluster) -> Vec<Delta> {
    let mut deltas = cluster.deltas();
    for delta in &mut deltas {
        if let Delta::Pod(pod) = delta {
            let of = apps(cluster, &pod.metadata.name);
            let names = ["app0", "app1"].into_iter().zip(of).filter(|(_, is)| *is);
            pod.metadata.labels = names
                .map(|(name, _)| (name.to_owned(), "yes".to_owned()))
                .collect();
        }
    }
    deltas
}

fn evicts_by_budgets(conf: &Conf) -> bool {
    with_evictions(conf) && conf.text.contains("pdb")
}

/// Evictions of the pods of each budget, in three cycles during which the victims do not go.
fn evicted(cluster: &Cluster, allowed: [i32; 3]) -> ([i32; 3], Vec<Decisions>) {
    let mut engine = cluster.conf().engine();
    let deltas = labelled(cluster).into_iter().chain(budgets(allowed));
    deltas.for_each(|delta| engine.apply(delta));
    let decided: Vec<Decisions> = (0..3).map(|second| cycle(&mut engine, second)).collect();
    let mut sums = [0; 3];
    for (victim, _, _) in decided.iter().flat_map(|decided| &decided.evictions) {
        let [first, second] = apps(cluster, victim);
        sums[0] += i32::from(first);
        sums[1] += i32::from(second);
        sums[2] += 1;
    }
    (sums, decided)
}

proptest! {
    #![proptest_config(settings(1500))]

    #[test]
    fn no_more_pods_are_evicted_than_budgets_allow(
        cluster in contended_cluster(evicts_by_budgets), allowed in [0..3i32, 0..3i32, 0..4i32]
    ) {
        let (sums, decided) = evicted(&cluster, allowed);
        prop_assert!((0..3).all(|at| sums[at] <= allowed[at]), "{sums:?} of {allowed:?}: {decided:#?}");
    }
}

/// Budgets that are never reached say nothing.
#[test]
fn random_clusters_reach_their_budgets() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::new(settings(1));
    let strategy = contended_cluster(evicts_by_budgets);
    let mut reached = 0;
    for _ in 0..500 {
        let cluster = strategy.new_tree(&mut runner).expect("a cluster").current();
        let (unlimited, _) = evicted(&cluster, [100; 3]);
        reached += usize::from(unlimited[2] > 1);
    }
    println!("of 500 clusters {reached} evict several pods where they may");
    assert!(reached > 10);
}
