//! Runs the engine over the objects of a plan and writes down what it decided. The only part that knows the engine.

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::outcome::{ConditionOutcome, CycleOutcome, Eviction, GroupOutcome, Outcome};
use std::collections::BTreeMap;
use volcano_api::core::{Pod, PodPhase};
use volcano_api::meta::ConditionStatus;
use volcano_api::time::{GoDuration, Time};
use volcano_engine::config::{SchedulerConf, catalog};
use volcano_engine::effect::{Cycle, Effect};
use volcano_engine::explain::{AdmissionReason, FitError, JobReport};
use volcano_engine::ids::{JobId, NodeId, TaskId};
use volcano_engine::model::delta::Delta;
use volcano_engine::model::status::{self, Status};
use volcano_engine::model::{Model, SchedulerNames};
use volcano_engine::{Engine, actions, plugins};

/// Virtual time between two cycles, that of a scheduler with the default settings.
const PERIOD: GoDuration = GoDuration::from_seconds(1);

/// How a plan is run.
pub struct Setup {
    /// The scheduler configuration.
    pub conf: SchedulerConf,
    /// Whose pods are placed.
    pub names: SchedulerNames,
    /// The queue of PodGroups that name none.
    pub default_queue: String,
    /// How many cycles.
    pub cycles: u32,
    /// When the first cycle runs.
    pub now: Time,
}

/// Reads a scheduler configuration; `name` is what messages call it.
pub fn configuration(name: &str, text: &str) -> Result<SchedulerConf, Fault> {
    SchedulerConf::parse(text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(|error| format!("{name}: {error}")).collect();
        Fault::new(lines.join("\n       "))
    })
}

/// The plugins of a configuration that the engine does not have.
pub fn missing_plugins(conf: &SchedulerConf) -> Vec<&str> {
    let named = conf
        .tiers
        .iter()
        .flat_map(|tier| &tier.plugins)
        .map(|plugin| plugin.name.as_str());
    named
        .filter(|name| !plugins::AVAILABLE.iter().any(|(known, _)| known == name))
        .collect()
}

/// The actions of a configuration that the engine does not have.
pub fn missing_actions(conf: &SchedulerConf) -> Vec<&str> {
    let named = conf.actions.iter().map(String::as_str);
    named.filter(|name| !actions::AVAILABLE.contains(name)).collect()
}

/// An engine that has taken the cluster in.
pub struct Session {
    engine: Engine,
    setup: Setup,
    /// Pods by name, for telling the engine what became of them; empty when there is only one cycle.
    pods: BTreeMap<String, Box<Pod>>,
}

impl Session {
    /// Takes the cluster in.
    pub fn load(setup: Setup, cluster: Cluster) -> Self {
        let (engine, _) = Engine::new(setup.conf.clone(), setup.names.clone(), &setup.default_queue);
        let engine = engine.with_features(cluster.settings.features.unwrap_or_default());
        let mut session = Session {
            engine,
            setup,
            pods: BTreeMap::new(),
        };
        for object in cluster.objects {
            if session.setup.cycles > 1
                && let Delta::Pod(pod) = &object
            {
                session
                    .pods
                    .insert(key(&pod.metadata.namespace, &pod.metadata.name), pod.clone());
            }
            session.engine.apply(object);
        }
        session
            .engine
            .resume(&cluster.settings.underway.unwrap_or_default());
        session
    }

    /// Runs the cycles. `clock` tells milliseconds since some moment, for the times in the outcome.
    pub fn run(mut self, clock: &mut dyn FnMut() -> f64) -> Outcome {
        let mut outcome = Outcome::default();
        let m = self.engine.model();
        for job in m.jobs_by_name() {
            let phase = m.job(job).phase().name();
            let group = GroupOutcome {
                phase_before: phase,
                phase,
                ..GroupOutcome::default()
            };
            outcome.groups.insert(m.job(job).id.to_string(), group);
        }
        let mut now = self.setup.now;
        for number in 1..=self.setup.cycles {
            let cycle = self.timed_cycle(now, &mut outcome.steps, clock);
            let happened = self.record(&cycle, &mut outcome);
            if number < self.setup.cycles {
                self.carry_out(&happened, now);
                now = now.saturating_add(PERIOD);
            }
            outcome.cycles.push(happened);
        }
        outcome
    }

    fn timed_cycle(
        &mut self,
        now: Time,
        steps: &mut Vec<(String, f64)>,
        clock: &mut dyn FnMut() -> f64,
    ) -> Cycle {
        let mut last = clock();
        self.engine.cycle(now, &mut |step| {
            let Some(step) = step.name() else { return };
            let now_ms = clock();
            let took_ms = now_ms - std::mem::replace(&mut last, now_ms);
            match steps.iter_mut().find(|(name, _)| name == step) {
                Some((_, total_ms)) => *total_ms += took_ms,
                None => steps.push((step.to_owned(), took_ms)),
            }
        })
    }

    /// Writes down what a cycle decided, and how every group stands after it.
    fn record(&self, cycle: &Cycle, outcome: &mut Outcome) -> CycleOutcome {
        let m = self.engine.model();
        let mut happened = CycleOutcome::default();
        for effect in &cycle.effects {
            match effect {
                Effect::Bind { binds, .. } => {
                    for &(task, node) in binds {
                        happened.binds.insert(m.task_key(task), node_name(m, node));
                        if let Some(group) = group_of(m, task).and_then(|id| outcome.groups.get_mut(id)) {
                            *group.binds.entry(node_name(m, node)).or_default() += 1;
                        }
                    }
                }
                Effect::Evict {
                    task,
                    kind,
                    preemptor,
                } => {
                    if let Some(group) = group_of(m, *task).and_then(|id| outcome.groups.get_mut(id)) {
                        group.evicted += 1;
                    }
                    let eviction = Eviction {
                        node: m
                            .task(*task)
                            .node
                            .map(|node| node_name(m, node))
                            .unwrap_or_default(),
                        group: group_of(m, *task).map(str::to_owned),
                        preemptor: m.task_key(*preemptor),
                        kind: kind.name(),
                    };
                    happened.evictions.insert(m.task_key(*task), eviction);
                }
                Effect::OpenGate { task } => happened.gates_opened.push(m.task_key(*task)),
                _ => {}
            }
        }
        for group in outcome.groups.values_mut() {
            group.pipelined.clear();
        }
        for &(task, node) in &cycle.pipelined {
            happened.pipelined.insert(m.task_key(task), node_name(m, node));
            if let Some(group) = group_of(m, task).and_then(|id| outcome.groups.get_mut(id)) {
                *group.pipelined.entry(node_name(m, node)).or_default() += 1;
            }
        }
        outcome.invalid_queues = cycle
            .invalid_queues
            .iter()
            .map(|(queue, why)| (m.text(m.queue(*queue).name).to_owned(), why.to_string()))
            .collect();
        for job in m.jobs_by_name() {
            let id = m.job(job).id.to_string();
            let group = outcome.groups.entry(id.clone()).or_default();
            let before = group.phase;
            describe(m, job, cycle.reports.get(&job), group);
            if before != group.phase {
                happened.phases.insert(id, (before, group.phase));
            }
        }
        happened
    }

    /// Between two cycles bound pods start to run, evicted ones are gone, and open gates are removed.
    fn carry_out(&mut self, happened: &CycleOutcome, now: Time) {
        for name in &happened.gates_opened {
            if let Some(pod) = self.pods.get_mut(name) {
                pod.spec.scheduling_gates.clear();
                self.engine.apply(Delta::Pod(pod.clone()));
            }
        }
        for (name, node) in &happened.binds {
            if let Some(pod) = self.pods.get_mut(name) {
                pod.spec.node_name.clone_from(node);
                pod.status.phase = PodPhase::Running;
                pod.status.start_time = Some(now);
                self.engine.apply(Delta::Pod(pod.clone()));
            }
        }
        for name in happened.evictions.keys() {
            if let Some(pod) = self.pods.remove(name) {
                let (namespace, name) = (pod.metadata.namespace, pod.metadata.name);
                self.engine.apply(Delta::PodGone { namespace, name });
            }
        }
    }
}

fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn node_name(m: &Model, node: NodeId) -> String {
    m.text(m.nodes[node].name).to_owned()
}

fn group_of(m: &Model, task: TaskId) -> Option<&str> {
    m.task(task).job.map(|job| &*m.job(job).id)
}

/// How a group stands after a cycle.
fn describe(m: &Model, id: JobId, report: Option<&JobReport>, group: &mut GroupOutcome) {
    let job = m.job(id);
    group.queue = m.text(m.queue(job.queue).name).to_owned();
    group.phase = job.phase().name();
    group.conditions = job
        .group
        .iter()
        .flat_map(|g| &g.conditions)
        .map(|condition| ConditionOutcome {
            kind: condition.r#type.clone(),
            status: match condition.status {
                ConditionStatus::True => "True",
                ConditionStatus::False => "False",
                _ => "Unknown",
            },
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
        .collect();
    group.ready = job.counts.ready();
    group.minimum = job.min_available();
    group.total = job.counts.total();
    group.states = status::ALL
        .iter()
        .map(|&s| (s.name(), job.counts.of(s)))
        .filter(|(_, count)| *count > 0)
        .collect();
    group.why = why(m, id, report);
}

/// Why a group, or a part of it, waits; the reason that was made where the decision was made.
fn why(m: &Model, id: JobId, report: Option<&JobReport>) -> Option<String> {
    let job = m.job(id);
    if !m.queue(job.queue).exists {
        return Some(format!(
            "queue {} does not exist",
            m.text(m.queue(job.queue).name)
        ));
    }
    if job.counts.total() > 0 && job.counts.of(Status::Pending) == 0 {
        return None;
    }
    let tasks = || {
        job.tasks
            .iter()
            .map(|&task| m.task(task))
            .filter(|task| task.status == Status::Pending)
    };
    let reported = report.and_then(|report| {
        let invalid = report.invalid.as_ref().map(|invalid| invalid.message.clone());
        let with_amounts = |reason: &AdmissionReason| match reason.amounts(m) {
            Some(amounts) => format!("{} ({amounts})", reason.text(m)),
            None => reason.text(m),
        };
        let not_admitted = || {
            let reason = report.admission.as_ref()?;
            Some(format!("not admitted: {}", with_amounts(reason)))
        };
        let queue_full = || report.queue_full.as_ref().map(with_amounts);
        invalid
            .or_else(not_admitted)
            .or_else(|| fit_error(m, report))
            .or_else(queue_full)
    });
    if reported.is_some() {
        return reported;
    }
    if job.counts.total() == 0 {
        return Some("it has no pods yet".to_owned());
    }
    if tasks().all(|task| task.gated()) {
        return Some("its pods are held back by scheduling gates".to_owned());
    }
    let told = job
        .group
        .iter()
        .flat_map(|g| &g.conditions)
        .find(|c| c.status == ConditionStatus::True && !job.is_ready());
    Some(told.map_or_else(
        || "nothing tried to place it in this cycle".to_owned(),
        |c| c.message.clone(),
    ))
}

/// The first pod that was tried and found no node.
fn fit_error(m: &Model, report: &JobReport) -> Option<String> {
    let (task, error) = report
        .fit_errors
        .iter()
        .find(|(_, error)| matches!(error.as_ref(), FitError::Nodes { .. }))?;
    let name = &m.task(*task).name;
    Some(format!("{name}: {}", error.text(m, name)))
}
