//! What an explanation costs: a Job that waits in a full cluster, with every change that is tried for it.

use std::time::Instant;

use anyhow::ensure;
use serde_json::json;
use volcano_engine::model::delta::Delta;
use volcano_plan::explain::{Conf, JobKey, Reason, State, explain};
use volcano_plan::{Cluster, configuration};
use volcano_testkit::executor::Executor;
use volcano_testkit::generate::Workload;

use super::engine::{Bench, Outcome, millis_since};

const ACTIONS: &str = "enqueue, allocate, backfill";

/// A cluster with room for 100 pods, and a gang of half as many pods as there are nodes: every size that is searched for has
/// to be found by bisection.
pub fn run(nodes: usize) -> anyhow::Result<Outcome> {
    let workload = Workload::full(nodes);
    let mut bench = Bench::new(ACTIONS)?;
    let mut executor = Executor::default();
    for delta in workload.deltas() {
        executor.store(&delta);
        bench.load([delta]);
    }
    let cycle = bench.cycle();
    let outcome = bench.outcome(workload.pods(), 0, &cycle);
    bench.settle(&mut executor, cycle)?;
    let size = nodes / 2;
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i",
        "resources": {"requests": {"cpu": "4", "memory": "8Gi"}}}]}});
    let job = serde_json::from_value(json!({
        "metadata": {"name": "train", "namespace": "batch", "uid": "u"},
        "spec": {"schedulerName": "volcano", "queue": "busy", "minAvailable": size,
            "tasks": [{"name": "worker", "replicas": size, "template": template}]},
    }))?;
    let mut cluster = Cluster {
        objects: bench.engine.objects().filter(|object| !is_gone(object)).collect(),
        jobs: vec![job],
        ..Cluster::default()
    };
    let conf = Conf::new(configuration("bench", &Bench::conf(ACTIONS))?, bench.now());
    cluster.complete(&conf.default_queue);
    let began = Instant::now();
    let explanation = explain(&cluster, &conf, &JobKey::new("batch", "train"))?;
    let cycle_ms = millis_since(began);
    ensure!(
        explanation.state == State::Waiting,
        "it does not wait: {explanation}"
    );
    let is_full = |reason: &Reason| {
        matches!(
            reason,
            Reason::Overcommitted { .. } | Reason::QueueFull { .. } | Reason::Short { .. }
        )
    };
    ensure!(explanation.reasons.first().is_some_and(is_full), "{explanation}");
    ensure!(
        nodes < 400 || !explanation.suggestions.is_empty(),
        "nothing would start it: {explanation}"
    );
    Ok(Outcome {
        cycle_ms,
        steps: Vec::new(),
        ..outcome
    })
}

/// The gang that leaves room.
fn is_gone(object: &Delta) -> bool {
    object
        .key()
        .is_some_and(|(_, _, name)| name == "fill-0" || name.starts_with("fill-0-"))
}
