//! A snapshot of an engine, planned by the real binary, comes to what the engine itself decides.

#![allow(clippy::unwrap_used)]

use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::Command;
use volcano_api::time::{GoDuration, Time};
use volcano_engine::config::{SchedulerConf, catalog};
use volcano_engine::model::SchedulerNames;
use volcano_engine::model::delta::Delta;
use volcano_engine::{Cycle, Effect, Engine};
use volcano_testkit::executor::Executor;
use volcano_testkit::generate::{BEGIN, Gang, TaskTemplate, Workload};

const CONF: &str = r#"
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"#;

/// An engine with a cluster, and the objects as an API server would hold them.
struct World {
    engine: Engine,
    executor: Executor,
    now: Time,
}

impl World {
    fn new(names: SchedulerNames, default_queue: &str) -> Self {
        let conf = SchedulerConf::parse(CONF, catalog::PLANNED_PLUGINS, catalog::ACTIONS).unwrap();
        let (engine, missing) = Engine::new(conf, names, default_queue);
        assert_eq!(missing, []);
        World {
            engine,
            executor: Executor::default(),
            now: Time::from_unix_seconds(BEGIN.unix_seconds() + 200_000),
        }
    }

    fn take(&mut self, deltas: impl IntoIterator<Item = Delta>) {
        for delta in deltas {
            self.executor.store(&delta);
            self.engine.apply(delta);
        }
    }

    /// Half a second later.
    fn cycle(&mut self) -> Cycle {
        let cycle = self.engine.cycle(self.now, &mut |_| {});
        self.now = self.now.saturating_add(GoDuration::from_millis(500));
        cycle
    }

    fn settle(&mut self, cycles: usize) {
        for _ in 0..cycles {
            let cycle = self.cycle();
            self.executor.carry_out(&mut self.engine, &cycle);
        }
    }

    /// What the binary plans from a snapshot, and what the engine decides.
    fn planned_and_decided(&mut self, flags: &[&str]) -> (Value, Value) {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        let mut out = BufWriter::new(File::create(file.path()).unwrap());
        serde_json::to_writer(&mut out, &self.engine.snapshot(CONF, self.now)).unwrap();
        out.flush().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_volcano"))
            .args(["plan", "-o", "json", "-f"])
            .arg(file.path())
            .args(flags)
            .output()
            .unwrap();
        let notes = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && notes.is_empty(), "{notes}");
        let planned = serde_json::from_slice(&output.stdout).unwrap();
        let cycle = self.cycle();
        (planned, self.decided(&cycle))
    }

    /// The decisions of a cycle in the form of the plan's output.
    fn decided(&self, cycle: &Cycle) -> Value {
        let m = self.engine.model();
        let name = |node| json!(m.text(m.nodes[node].name));
        let (mut binds, mut evicted, mut groups) = (Map::new(), Vec::new(), Map::new());
        for effect in &cycle.effects {
            match effect {
                Effect::Bind { binds: list, .. } => {
                    binds.extend(list.iter().map(|&(task, node)| (m.task_key(task), name(node))));
                }
                Effect::Evict { task, .. } => evicted.push(m.task_key(*task)),
                _ => {}
            }
        }
        evicted.sort();
        for id in m.jobs_by_name() {
            let group = m.job(id).group.as_ref().unwrap();
            let conditions: Vec<Value> = group
                .conditions
                .iter()
                .map(|c| {
                    json!({"type": c.r#type, "status": c.status, "reason": c.reason,
                        "message": c.message})
                })
                .collect();
            let outcome = json!({"phase": group.phase.name(), "conditions": conditions});
            groups.insert(m.job(id).id.to_string(), outcome);
        }
        let pipelined: Map<_, _> = cycle
            .pipelined
            .iter()
            .map(|&(task, node)| (m.task_key(task), name(node)))
            .collect();
        json!({"binds": binds, "evicted": evicted, "pipelined": pipelined, "podGroups": groups})
    }
}

fn count(outcome: &Value, key: &str) -> usize {
    let value = &outcome[key];
    value
        .as_object()
        .map_or_else(|| value.as_array().unwrap().len(), Map::len)
}

#[track_caller]
fn same(world: &mut World) -> Value {
    let (planned, decided) = world.planned_and_decided(&[]);
    assert_eq!(planned, decided);
    decided
}

#[test]
fn a_cluster_that_nothing_has_been_placed_in() {
    let mut world = World::new(SchedulerNames::Any, "default");
    world.take(Workload::mixed(100).deltas());
    let decided = same(&mut world);
    assert_eq!(count(&decided, "binds"), Workload::mixed(100).pods());
}

#[test]
fn a_cluster_at_work_that_more_comes_to() {
    let mut world = World::new(SchedulerNames::Any, "default");
    let workload = Workload::mixed(50);
    world.take(workload.deltas());
    world.settle(2);
    let late =
        Gang::new("late", "late", "team-1", world.now).task(TaskTemplate::new("worker", 30, "2", "4Gi"));
    world.take(late.deltas());
    let decided = same(&mut world);
    assert_eq!(count(&decided, "binds"), 30);
}

#[test]
fn evictions_that_are_decided_and_those_that_are_on_their_way() {
    let mut world = World::new(SchedulerNames::Any, "default");
    world.take(Workload::full(20).deltas());
    world.settle(2);
    world.take(Workload::urgent("urgent", "busy", 15).deltas());
    let decided = same(&mut world);
    assert_eq!(count(&decided, "evicted"), 15);
    // The victims are still there: their room is waited for, and nobody else has to go.
    let waiting = same(&mut world);
    assert_eq!(
        (count(&waiting, "evicted"), count(&waiting, "pipelined")),
        (0, 15)
    );
}

#[test]
fn the_scheduler_s_names_its_default_queue_and_the_time_come_with_it_and_flags_go_before() {
    let names = SchedulerNames::Only(vec!["vc".to_owned()]);
    let mut world = World::new(names, "team-7");
    world.take(Workload::mixed(20).deltas());
    let gang = Gang::new("late", "late", "", world.now).task(TaskTemplate::new("worker", 3, "1", "1Gi"));
    world.take(gang.deltas().map(|mut delta| {
        if let Delta::Pod(pod) = &mut delta {
            "vc".clone_into(&mut pod.spec.scheduler_name);
        }
        delta
    }));
    let decided = same(&mut world);
    assert_eq!(
        count(&decided, "binds"),
        3,
        "the others are for another scheduler"
    );
    let (planned, _) = world.planned_and_decided(&["--scheduler-name", "nobody"]);
    assert_eq!(count(&planned, "binds"), 0);
}
