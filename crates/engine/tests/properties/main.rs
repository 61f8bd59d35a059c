//! What holds for every cluster: random small clusters, several configurations. A failing case is printed shrunk; the
//! seed is fixed so that runs repeat, and `PROPTEST_RNG_SEED` and `PROPTEST_CASES` choose other cases.

mod budgets;
mod checks;
mod cluster;
mod extras;
mod replay;
mod rollback;
mod strange;

use checks::Decisions;
use cluster::{Cluster, Conf, cluster, contended_cluster, uniform_cluster};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError};
use volcano_api::time::Time;
use volcano_engine::Engine;

/// The settings of a property that is tried `cases` times.
fn settings(cases: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        given.cases
    } else {
        cases
    };
    let rng_seed = match given.rng_seed {
        RngSeed::Random => RngSeed::Fixed(2026),
        fixed => fixed,
    };
    ProptestConfig {
        cases,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..given
    }
}

fn at(second: i64) -> Time {
    Time::from_unix_seconds(1_700_001_000 + second)
}

fn run(cluster: &Cluster) -> (Engine, Decisions) {
    let mut engine = cluster.conf().engine();
    cluster.deltas().into_iter().for_each(|delta| engine.apply(delta));
    let decided = cycle(&mut engine, 0);
    (engine, decided)
}

fn cycle(engine: &mut Engine, second: i64) -> Decisions {
    let cycle = engine.cycle(at(second), &mut |_| {});
    Decisions::read(engine.model(), &cycle)
}

fn holds(outcome: Result<(), String>, decisions: &Decisions) -> Result<(), TestCaseError> {
    outcome.map_err(|why| TestCaseError::fail(format!("{why}; decided: {decisions:#?}")))
}

/// An object from JSON.
fn read<T: for<'a> serde::Deserialize<'a>>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a good object")
}

fn any_conf(_: &Conf) -> bool {
    true
}

fn with_evictions(conf: &Conf) -> bool {
    conf.text.contains("preempt") || conf.text.contains("reclaim")
}

proptest! {
    #![proptest_config(settings(2500))]

    #[test]
    fn nodes_and_queues_keep_their_limits_and_gangs_are_whole(cluster in cluster(any_conf)) {
        let (_, decided) = run(&cluster);
        holds(checks::nodes_keep_their_limits(&cluster, &decided), &decided)?;
        holds(checks::pods_go_where_they_may(&cluster, &decided), &decided)?;
        holds(checks::gangs_are_whole(&cluster, &decided), &decided)?;
        if cluster.conf().keeps_capability {
            holds(checks::queues_keep_their_limits(&cluster, &decided), &decided)?;
        }
    }

    #[test]
    fn evictions_belong_to_placements_and_none_is_needless(cluster in contended_cluster(with_evictions)) {
        let (_, decided) = run(&cluster);
        holds(checks::evictions_are_needed(&cluster, &decided), &decided)?;
        holds(checks::nodes_keep_their_limits(&cluster, &decided), &decided)?;
        holds(checks::pods_go_where_they_may(&cluster, &decided), &decided)?;
    }
}

proptest! {
    #![proptest_config(settings(1000))]

    #[test]
    fn decisions_do_not_depend_on_the_order_in_which_objects_arrive(
        (cluster, shuffled) in prop_oneof![cluster(any_conf), contended_cluster(any_conf)].prop_flat_map(|cluster| {
            let order: Vec<usize> = (0..cluster.deltas().len()).collect();
            (Just(cluster), Just(order).prop_shuffle())
        })
    ) {
        let (_, decided) = run(&cluster);
        let deltas = cluster.deltas();
        let mut engine = cluster.conf().engine();
        shuffled.iter().for_each(|&at| engine.apply(deltas[at].clone()));
        let again = cycle(&mut engine, 0);
        prop_assert_eq!(decided.sorted(), again.sorted());
    }

    #[test]
    fn decisions_do_not_depend_on_updates_that_change_nothing(cluster in cluster(any_conf)) {
        let (_, decided) = run(&cluster);
        let mut engine = cluster.conf().engine();
        for delta in cluster.deltas().into_iter().chain(cluster.deltas()) {
            engine.apply(delta);
        }
        let again = cycle(&mut engine, 0);
        prop_assert_eq!(decided.sorted(), again.sorted());
    }

    #[test]
    fn a_cluster_that_does_not_change_comes_to_rest(cluster in prop_oneof![cluster(any_conf), contended_cluster(any_conf)]) {
        let (mut engine, _) = run(&cluster);
        let mut last = cycle(&mut engine, 1);
        for second in 2..5 {
            last = cycle(&mut engine, second);
        }
        prop_assert_eq!(&last.binds, &Vec::new());
        prop_assert_eq!(&last.evictions, &Vec::new());
    }

    // Where pods of a job differ, a cycle may find a place that an earlier one missed: it tries them in one order only.
    #[test]
    fn a_cycle_leaves_nothing_that_the_next_could_place(cluster in uniform_cluster(any_conf)) {
        let (mut engine, first) = run(&cluster);
        let second = cycle(&mut engine, 1);
        if first.evictions.is_empty() {
            prop_assert_eq!(&second.binds, &Vec::new(), "after {:#?}", first);
            prop_assert_eq!(&second.evictions, &Vec::new(), "after {:#?}", first);
        }
    }

    #[test]
    fn nothing_is_said_again_while_nothing_changes(cluster in cluster(any_conf)) {
        let (mut engine, _) = run(&cluster);
        let mut last = cycle(&mut engine, 1);
        for second in 2..5 {
            last = cycle(&mut engine, second);
        }
        prop_assert_eq!(&last.writes, &Vec::<String>::new());
        prop_assert_eq!(&last.events, &Vec::<String>::new());
    }
}

/// Properties of clusters where nothing happens say nothing.
#[test]
fn random_clusters_have_binds_and_evictions_and_waiting_pods() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::new(settings(1));
    let strategy = prop_oneof![cluster(any_conf), contended_cluster(with_evictions)];
    let (mut binds, mut evictions, mut waits, mut refused) = (0, 0, 0, 0);
    for _ in 0..500 {
        let cluster = strategy.new_tree(&mut runner).expect("a cluster").current();
        let (_, decided) = run(&cluster);
        binds += usize::from(!decided.binds.is_empty());
        evictions += usize::from(!decided.evictions.is_empty());
        waits += usize::from(decided.pipelined.len() > decided.evictions.len());
        refused += usize::from(
            decided
                .writes
                .iter()
                .any(|line| line.contains("nodes are unavailable")),
        );
    }
    println!(
        "of 500 clusters: {binds} with binds, {evictions} with evictions, {waits} with waiting pods, {refused} with misfits"
    );
    assert!(binds > 100 && evictions > 15 && waits > 10 && refused > 100);
}
