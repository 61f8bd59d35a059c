//! An engine under measurement: loads it, times its cycles, and looks at what they decided.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use volcano_api::time::Time;
use volcano_engine::config::{SchedulerConf, catalog};
use volcano_engine::model::delta::Delta;
use volcano_engine::model::{Model, SchedulerNames};
use volcano_engine::resource::{CPU, MEMORY};
use volcano_engine::{Cycle, Effect, Engine};
use volcano_testkit::build::SCHEDULER_NAME;
use volcano_testkit::executor::Executor;
use volcano_testkit::generate::BEGIN;

/// Cycles after which a cluster without changes must have nothing left to report.
const SETTLE_CYCLES: usize = 4;

/// An engine, and the time that loading it took.
pub struct Bench {
    /// The engine.
    pub engine: Engine,
    load_ms: f64,
    now: i64,
}

/// A cycle that was timed.
pub struct Timed {
    /// What the engine returned.
    pub cycle: Cycle,
    /// Pods and nodes, by name.
    pub binds: Vec<(String, String)>,
    /// Evicted pods, by name.
    pub evicted: Vec<String>,
    /// Number of pods that wait for room that is being made.
    pub pipelined: usize,
    took_ms: f64,
    steps: Vec<(String, f64)>,
}

/// What a scenario measured.
pub struct Outcome {
    /// Pods of the cluster.
    pub pods: usize,
    /// Pods that the measured cycle placed, or made room for.
    pub placed: usize,
    /// Time to take all objects in.
    pub load_ms: f64,
    /// Time of the measured cycle.
    pub cycle_ms: f64,
    /// Its parts.
    pub steps: Vec<(String, f64)>,
}

impl Bench {
    /// An engine with the plugins of the Helm chart, and these actions.
    ///
    /// # Errors
    /// When the engine lacks something of the configuration.
    pub fn new(actions: &str) -> anyhow::Result<Self> {
        let text = Bench::conf(actions);
        let conf = SchedulerConf::parse(&text, catalog::PLANNED_PLUGINS, catalog::ACTIONS)?;
        let names = SchedulerNames::Only(vec![SCHEDULER_NAME.to_owned()]);
        let (engine, missing) = Engine::new(conf, names, "default");
        ensure!(missing.is_empty(), "the engine lacks {missing:?}");
        let now = BEGIN.unix_seconds() + 200_000;
        Ok(Bench {
            engine,
            load_ms: 0.0,
            now,
        })
    }

    /// The configuration with the plugins of the Helm chart, and these actions.
    pub fn conf(actions: &str) -> String {
        format!(
            "actions: \"{actions}\"\n\
             tiers:\n\
             - plugins:\n  - name: priority\n  - name: gang\n  - name: conformance\n\
             - plugins:\n  - name: overcommit\n  - name: drf\n  - name: predicates\n  - name: proportion\n  \
             - name: nodeorder\n  - name: binpack\n"
        )
    }

    /// The time of the last cycle.
    pub fn now(&self) -> Time {
        Time::from_unix_seconds(self.now)
    }

    /// Takes objects in. Making them is not part of the time.
    pub fn load(&mut self, deltas: impl IntoIterator<Item = Delta>) {
        let mut deltas = deltas.into_iter();
        loop {
            let chunk: Vec<_> = deltas.by_ref().take(1_000).collect();
            if chunk.is_empty() {
                break;
            }
            let began = Instant::now();
            for delta in chunk {
                self.engine.apply(delta);
            }
            self.load_ms += millis_since(began);
        }
    }

    /// Runs a cycle.
    pub fn cycle(&mut self) -> Timed {
        self.timed(None)
    }

    /// Takes a change in and runs a cycle; the time is that of both.
    pub fn cycle_after(&mut self, delta: Delta) -> Timed {
        self.timed(Some(delta))
    }

    fn timed(&mut self, delta: Option<Delta>) -> Timed {
        self.now += 1;
        let now = Time::from_unix_seconds(self.now);
        let mut steps = Vec::with_capacity(8);
        let began = Instant::now();
        let mut step_began = began;
        if let Some(delta) = delta {
            self.engine.apply(delta);
            steps.push(("apply".to_owned(), millis_since(step_began)));
            step_began = Instant::now();
        }
        let cycle = self.engine.cycle(now, &mut |step| {
            let Some(step) = step.name() else { return };
            steps.push((step.to_owned(), millis_since(step_began)));
            step_began = Instant::now();
        });
        let took_ms = millis_since(began);
        let m = self.engine.model();
        let mut timed = Timed {
            binds: Vec::new(),
            evicted: Vec::new(),
            pipelined: cycle.pipelined.len(),
            took_ms,
            steps,
            cycle,
        };
        for effect in &timed.cycle.effects {
            match effect {
                Effect::Bind { binds, .. } => {
                    let named = |&(task, node)| (m.task_key(task), node_name(m, node));
                    timed.binds.extend(binds.iter().map(named));
                }
                Effect::Evict { task, .. } => timed.evicted.push(m.task_key(*task)),
                _ => {}
            }
        }
        timed
    }

    /// Carries a cycle out, and runs more until none has anything to write.
    ///
    /// # Errors
    /// When it does not come to rest.
    pub fn settle(&mut self, executor: &mut Executor, first: Timed) -> anyhow::Result<()> {
        let mut cycle = first.cycle;
        for _ in 0..SETTLE_CYCLES {
            if executor.carry_out(&mut self.engine, &cycle) == 0 {
                return Ok(());
            }
            cycle = self.cycle().cycle;
        }
        bail!("the cluster does not come to rest: {:?}", cycle.effects.first())
    }

    /// Every gang has as many placed members as it must have, or none.
    ///
    /// # Errors
    /// When one has fewer.
    pub fn check_whole_gangs(&self) -> anyhow::Result<()> {
        let m = self.engine.model();
        for id in m.jobs_by_name() {
            let job = m.job(id);
            let (ready, least) = (job.counts.ready(), job.min_available());
            ensure!(
                ready == 0 || ready >= least,
                "{} of {least} members of {} placed",
                ready,
                job.id
            );
        }
        Ok(())
    }

    /// No node holds more than it has.
    ///
    /// # Errors
    /// When one does.
    pub fn check_rooms(&self) -> anyhow::Result<()> {
        let m = self.engine.model();
        for id in m.nodes.ids() {
            let idle = [CPU, MEMORY].map(|dimension| m.nodes.idle(id, dimension));
            ensure!(
                idle.iter().all(|&idle| idle >= 0),
                "{} holds more than it has",
                node_name(m, id)
            );
        }
        Ok(())
    }

    /// The measurements of a cycle.
    pub fn outcome(&self, pods: usize, placed: usize, cycle: &Timed) -> Outcome {
        Outcome {
            pods,
            placed,
            load_ms: self.load_ms,
            cycle_ms: cycle.took_ms,
            steps: cycle.steps.clone(),
        }
    }
}

fn node_name(m: &Model, node: volcano_engine::ids::NodeId) -> String {
    m.text(m.nodes[node].name).to_owned()
}

/// Milliseconds since a moment.
pub fn millis_since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1000.0
}

/// The most memory that this process has had so far.
///
/// # Errors
/// When the system does not tell.
pub fn peak_mib() -> anyhow::Result<f64> {
    kib_of("/proc/self/status", "VmHWM:").map(|kib| kib / 1024.0)
}

/// A size that the system tells.
///
/// # Errors
/// When it does not.
pub fn kib_of(file: &str, name: &str) -> anyhow::Result<f64> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
    let size = text.lines().find_map(|line| line.strip_prefix(name));
    let size = size.with_context(|| format!("no {name} in {file}"))?;
    let kib = size.trim().trim_end_matches("kB").trim();
    kib.parse().with_context(|| format!("reading {name} of {file}"))
}
