//! The scenarios: what each does, what must come out of it, and the target that it is held to.
//!
//! A fast wrong answer is no answer: every scenario checks its binds, evictions and nodes.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use volcano_api::core::{Pod, PodPhase};
use volcano_engine::model::delta::Delta;
use volcano_testkit::executor::Executor;
use volcano_testkit::generate::Workload;

use super::engine::{Bench, Outcome};

/// Actions of most scenarios.
const PLACE: &str = "enqueue, allocate, backfill";

/// One thing to measure.
pub struct Scenario {
    /// How it is chosen on the command line.
    pub name: &'static str,
    /// Nodes of the cluster; the work grows with them.
    pub nodes: usize,
    /// The cycle is to take no longer.
    pub target_ms: f64,
    /// The process is to need no more memory.
    pub target_mib: Option<f64>,
    /// What Volcano's own scheduler was measured to need for the same on two cores.
    pub upstream_ms: Option<f64>,
    /// Runs of which the median counts.
    pub runs: usize,
    /// Left out of quick runs.
    pub large: bool,
    /// The benchmark itself holds a copy of every object, as an API server would: its memory is not the engine's.
    pub keeps_objects: bool,
    work: fn(usize) -> anyhow::Result<Outcome>,
}

/// Sizes at which a scenario is compared with itself, each twice the one before.
pub struct Growth {
    /// Name of the scenario.
    pub scenario: &'static str,
    /// Numbers of nodes.
    pub sizes: &'static [usize],
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    scenario("gangs-1k", 1_000, 50.0, gangs).upstream(80_000.0),
    scenario("gangs-5k", 5_000, 300.0, gangs),
    scenario("mixed-10k", 10_000, 2_000.0, mixed),
    scenario("mixed-100k", 100_000, 30_000.0, mixed)
        .within_mib(6.0 * 1024.0)
        .large(),
    scenario("one-change", 10_000, 2.0, one_change)
        .once()
        .keeps_objects(),
    scenario("preempt", 1_000, 200.0, preempt).keeps_objects(),
    scenario("reclaim", 1_000, 200.0, reclaim).keeps_objects(),
    scenario("explain", 1_000, 3_000.0, super::explain::run).keeps_objects(),
];

/// Growth is measured on these.
pub const GROWTH: &[Growth] = &[
    Growth {
        scenario: "gangs-1k",
        sizes: &[1_000, 2_000, 4_000, 8_000],
    },
    Growth {
        scenario: "mixed-10k",
        sizes: &[2_500, 5_000, 10_000, 20_000],
    },
];

const fn scenario(
    name: &'static str,
    nodes: usize,
    target_ms: f64,
    work: fn(usize) -> anyhow::Result<Outcome>,
) -> Scenario {
    Scenario {
        name,
        nodes,
        target_ms,
        target_mib: None,
        upstream_ms: None,
        runs: 3,
        large: false,
        keeps_objects: false,
        work,
    }
}

impl Scenario {
    const fn within_mib(mut self, mib: f64) -> Self {
        self.target_mib = Some(mib);
        self
    }

    const fn upstream(mut self, ms: f64) -> Self {
        self.upstream_ms = Some(ms);
        self
    }

    const fn once(mut self) -> Self {
        self.runs = 1;
        self
    }

    const fn keeps_objects(mut self) -> Self {
        self.keeps_objects = true;
        self
    }

    const fn large(mut self) -> Self {
        self.large = true;
        self.once()
    }

    /// Runs it in this process, and returns the measurements.
    ///
    /// # Errors
    /// When something else comes out than must.
    pub fn run(&self, nodes: usize) -> anyhow::Result<Value> {
        let outcome = (self.work)(nodes).with_context(|| format!("scenario {}", self.name))?;
        Ok(json!({
            "pods": outcome.pods,
            "loadMs": outcome.load_ms,
            "cycleMs": outcome.cycle_ms,
            "placed": outcome.placed,
            "peakMib": super::engine::peak_mib()?,
            "steps": outcome.steps,
        }))
    }
}

/// The scenario of a name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> anyhow::Result<&'static Scenario> {
    SCENARIOS
        .iter()
        .find(|scenario| scenario.name == name)
        .with_context(|| {
            let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            format!(
                "no scenario {name:?}\nHint: the scenarios are {}",
                names.join(", ")
            )
        })
}

/// An empty cluster with the work of `Workload::gangs`: every gang is placed whole in one cycle.
fn gangs(nodes: usize) -> anyhow::Result<Outcome> {
    place_all(&Workload::gangs(nodes))
}

/// An empty cluster with the work of `Workload::mixed`: every gang is placed whole in one cycle.
fn mixed(nodes: usize) -> anyhow::Result<Outcome> {
    place_all(&Workload::mixed(nodes))
}

fn place_all(workload: &Workload) -> anyhow::Result<Outcome> {
    let mut bench = Bench::new(PLACE)?;
    bench.load(workload.deltas());
    let cycle = bench.cycle();
    let pods = workload.pods();
    ensure!(
        cycle.binds.len() == pods,
        "{} of {pods} pods were placed",
        cycle.binds.len()
    );
    ensure!(
        cycle.evicted.is_empty(),
        "{} pods were evicted",
        cycle.evicted.len()
    );
    bench.check_whole_gangs()?;
    bench.check_rooms()?;
    Ok(bench.outcome(pods, pods, &cycle))
}

/// A full cluster in which all run; a pod ends and the one that waited takes its place. The time is that of taking
/// the end in and of the cycle, the median of many such changes.
fn one_change(nodes: usize) -> anyhow::Result<Outcome> {
    const ROUNDS: usize = 21;
    let workload = Workload::full(nodes);
    let mut bench = Bench::new(PLACE)?;
    let mut executor = Executor::default();
    for delta in workload.deltas() {
        executor.store(&delta);
        bench.load([delta]);
    }
    let pods = workload.pods();
    let cycle = bench.cycle();
    ensure!(
        cycle.binds.len() == pods,
        "{} of {pods} pods fill the cluster",
        cycle.binds.len()
    );
    bench.settle(&mut executor, cycle)?;

    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let waiting = Workload::urgent(&format!("waiting-{round}"), "busy", 1);
        for delta in waiting.deltas() {
            executor.store(&delta);
            bench.engine.apply(delta);
        }
        let idle = bench.cycle();
        ensure!(idle.binds.is_empty(), "a pod was placed in a full cluster");
        bench.settle(&mut executor, idle)?;

        let name = format!("fill-{}-worker-{}", round * 37 % workload.gangs, round * 11 % 100);
        let pod = executor
            .pod("batch", &name)
            .with_context(|| format!("no pod {name}"))?;
        let freed = pod.spec.node_name.clone();
        let ended = Delta::Pod(Box::new(succeeded(pod)));
        executor.store(&ended);
        let cycle = bench.cycle_after(ended);
        let placed: Vec<_> = cycle.binds.iter().map(|(_, node)| node.as_str()).collect();
        ensure!(
            placed == [freed.as_str()],
            "{freed} was freed, and pods went to {placed:?}"
        );
        rounds.push(bench.outcome(pods, 1, &cycle));
        bench.settle(&mut executor, cycle)?;
    }
    rounds.sort_by(|a, b| a.cycle_ms.total_cmp(&b.cycle_ms));
    Ok(rounds.swap_remove(ROUNDS / 2))
}

fn succeeded(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    pod.status.phase = PodPhase::Succeeded;
    pod
}

/// A cluster full of low-priority work, and a gang of high priority in the same queue.
fn preempt(nodes: usize) -> anyhow::Result<Outcome> {
    evict_for("busy", "enqueue, allocate, preempt, backfill", nodes)
}

/// A cluster full of the work of one queue, and a gang in another that has nothing.
fn reclaim(nodes: usize) -> anyhow::Result<Outcome> {
    evict_for("waiting", "enqueue, allocate, reclaim, backfill", nodes)
}

fn evict_for(queue: &str, actions: &str, nodes: usize) -> anyhow::Result<Outcome> {
    let workload = Workload::full(nodes);
    let mut bench = Bench::new(actions)?;
    let mut executor = Executor::default();
    for delta in workload.deltas() {
        executor.store(&delta);
        bench.load([delta]);
    }
    let pods = workload.pods();
    let cycle = bench.cycle();
    ensure!(
        cycle.binds.len() == pods,
        "{} of {pods} pods fill the cluster",
        cycle.binds.len()
    );
    bench.settle(&mut executor, cycle)?;

    let size = nodes / 2;
    let gang = Workload::urgent("urgent", queue, size);
    for delta in gang.deltas() {
        executor.store(&delta);
        bench.engine.apply(delta);
    }
    let cycle = bench.cycle();
    ensure!(
        cycle.binds.is_empty(),
        "{} pods were placed on full nodes",
        cycle.binds.len()
    );
    ensure!(
        cycle.evicted.len() == size,
        "{} pods evicted, {size} are enough",
        cycle.evicted.len()
    );
    ensure!(
        cycle.pipelined == size,
        "{} of {size} pods wait for the evicted ones",
        cycle.pipelined
    );
    ensure!(
        cycle.evicted.iter().all(|name| name.starts_with("batch/fill-")),
        "others were evicted"
    );
    let outcome = bench.outcome(pods + size, size, &cycle);

    // Once those are gone, the gang takes their places.
    executor.carry_out(&mut bench.engine, &cycle.cycle);
    let after = bench.cycle();
    ensure!(
        after.binds.len() == size,
        "{} of {size} pods took the freed places",
        after.binds.len()
    );
    ensure!(
        after.evicted.is_empty(),
        "{} more pods were evicted",
        after.evicted.len()
    );
    let mut by_node = BTreeMap::new();
    for (_, node) in &after.binds {
        *by_node.entry(node.as_str()).or_insert(0_usize) += 1;
    }
    ensure!(
        by_node.values().all(|&count| count <= 10),
        "more pods on a node than fit"
    );
    bench.check_rooms()?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_comes_out_right_at_a_small_size() {
        for (name, nodes) in [
            ("gangs-1k", 100),
            ("mixed-10k", 200),
            ("one-change", 40),
            ("preempt", 40),
            ("reclaim", 40),
            ("explain", 240),
        ] {
            let measured = find(name).unwrap().run(nodes).unwrap();
            assert!(measured["cycleMs"].as_f64().unwrap() > 0.0, "{name}");
        }
    }

    #[test]
    fn growth_doubles_a_known_scenario() {
        for growth in GROWTH {
            assert!(find(growth.scenario).is_ok());
            assert!(growth.sizes.windows(2).all(|pair| pair[1] == 2 * pair[0]));
        }
    }

    #[test]
    fn an_unknown_scenario_is_an_error_with_the_names_that_there_are() {
        let error = find("gang").err().unwrap().to_string();
        assert!(
            error.contains("\"gang\"") && error.contains("gangs-5k"),
            "{error}"
        );
    }
}
