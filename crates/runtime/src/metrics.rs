//! Metrics, under the names, labels and buckets that dashboards know.
//!
//! Series of jobs and queues are taken out with them: what `/metrics` holds is bounded by what the cluster holds.

pub(crate) mod build;
mod jobs;
pub mod names;
mod process;
mod queues;
#[cfg(test)]
mod tests;

use build::{counter, counter_vec, gauge, gauge_vec, histogram, histogram_vec, range};
use jobs::Jobs;
pub use process::{Calls, Process};
use prometheus::{Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, Registry};
use queues::Queues;
use std::sync::Arc;
use std::time::Duration;
use volcano_api::time::{GoDuration, Time};
use volcano_engine::figures::QueueFigures;

/// How far a pod has come since its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStage {
    /// Its watch event came in.
    Watched,
    /// A node was chosen.
    Assumed,
    /// Its volumes and claims are ready.
    PreBound,
    /// The API server took the bind.
    Bound,
}

impl TaskStage {
    fn label(self) -> &'static str {
        match self {
            TaskStage::Watched => "Watched",
            TaskStage::Assumed => "Assumed",
            TaskStage::PreBound => "PreBound",
            TaskStage::Bound => "Bound",
        }
    }
}

/// A part of the work whose duration is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Filtering nodes.
    Predicate,
    /// Scoring nodes.
    Scoring,
    /// Making volumes and claims ready.
    PreBind,
    /// The call that binds.
    Bind,
}

impl Stage {
    fn label(self) -> &'static str {
        match self {
            Stage::Predicate => "Predicate",
            Stage::Scoring => "Scoring",
            Stage::PreBind => "PreBind",
            Stage::Bind => "Bind",
        }
    }
}

/// The metrics of the scheduler. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    process: Process,
    series: Arc<Series>,
}

struct Series {
    registry: Registry,
    cycle: Histogram,
    cycles: IntCounter,
    open_session: Histogram,
    job_latency: Histogram,
    plugin: HistogramVec,
    action: HistogramVec,
    task: HistogramVec,
    stage: HistogramVec,
    victims: Gauge,
    preemption_attempts: IntCounter,
    evictions: IntCounterVec,
    unschedulable_jobs: Gauge,
    jobs: Jobs,
    queues: Queues,
    reloads: IntCounterVec,
    config_good: Gauge,
    binds_in_flight: Gauge,
    last_bind: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        register_unused(&registry);
        let process = Process::new(&registry);
        let series = Arc::new(Series::new(registry));
        Metrics { process, series }
    }
}

/// Declared by Volcano and never given a value; declared here for the same reason: somebody may count on the names.
fn register_unused(registry: &Registry) {
    counter_vec(registry, names::ATTEMPTS, "Not counted", &["result"]);
    for name in [
        names::NAMESPACE_SHARE,
        names::NAMESPACE_WEIGHT,
        names::NAMESPACE_WEIGHTED_SHARE,
    ] {
        gauge_vec(registry, name, "Not set", &["namespace_name"]);
    }
}

impl Series {
    fn new(registry: Registry) -> Self {
        let r = &registry;
        let histogram = |name, help, (min, max, count)| histogram(r, name, help, range(min, max, count));
        let histograms = |name, help, (min, max, count), labels: &[&str]| {
            histogram_vec(r, name, help, range(min, max, count), labels)
        };
        Series {
            cycle: histogram(
                names::CYCLE,
                "Milliseconds that a whole cycle took",
                (1.0, 5_000.0, 20),
            ),
            cycles: counter(r, names::CYCLES, "Cycles"),
            open_session: histogram(
                names::OPEN_SESSION,
                "Milliseconds that opening a session took",
                (1.0, 5_000.0, 20),
            ),
            job_latency: histogram(
                names::JOB_LATENCY,
                "Milliseconds from the creation of a job to the placement of each of its tasks",
                (100.0, 120_000.0, 30),
            ),
            plugin: histograms(
                names::PLUGIN,
                "Milliseconds that a hook of a plugin took",
                (0.1, 100.0, 15),
                &["plugin", "OnSession"],
            ),
            action: histograms(
                names::ACTION,
                "Milliseconds that a run of an action took",
                (1.0, 2_000.0, 20),
                &["action"],
            ),
            task: histograms(
                names::TASK,
                "Milliseconds from the creation of a pod to a stage",
                (50.0, 60_000.0, 30),
                &["stage"],
            ),
            stage: histograms(
                names::STAGE,
                "Milliseconds that a stage took",
                (0.1, 500.0, 20),
                &["stage"],
            ),
            victims: gauge(r, names::VICTIMS, "Victims of the last preemption"),
            preemption_attempts: counter(r, names::PREEMPTION_ATTEMPTS, "Attempts at preempting"),
            evictions: counter_vec(
                r,
                names::EVICTIONS,
                "Committed decisions that evict at least one pod",
                &["action"],
            ),
            unschedulable_jobs: gauge(
                r,
                names::UNSCHEDULABLE_JOBS,
                "Jobs that are not ready at the end of a cycle",
            ),
            jobs: Jobs::default(),
            queues: Queues::new(r),
            reloads: counter_vec(
                r,
                names::CONFIG_RELOADS,
                "Reloads of the scheduler configuration",
                &["result"],
            ),
            config_good: gauge(
                r,
                names::CONFIG_GOOD,
                "Whether the configuration that was read last is in force",
            ),
            binds_in_flight: gauge(
                r,
                names::BINDS_IN_FLIGHT,
                "Binds that were sent and are not answered yet",
            ),
            last_bind: gauge(r, names::LAST_BIND, "When a pod was bound last"),
            registry,
        }
    }
}

/// The cycle and its parts.
impl Metrics {
    /// A cycle is over: how long it took, with everything.
    pub fn cycle_took(&self, took: Duration) {
        self.series.cycle.observe(millis(took));
        self.series.cycles.inc();
    }

    /// A session was opened: plugins included.
    pub fn open_session_took(&self, took: Duration) {
        self.series.open_session.observe(millis(took));
    }

    /// A plugin has prepared itself for a cycle. None has anything to do at its end.
    pub fn plugin_took(&self, plugin: &str, took: Duration) {
        let labels = &[plugin, "OnSessionOpen"];
        self.series.plugin.with_label_values(labels).observe(millis(took));
    }

    /// An action is done.
    pub fn action_took(&self, action: &str, took: Duration) {
        self.series
            .action
            .with_label_values(&[action])
            .observe(millis(took));
    }

    /// A pod came to a stage. Clocks differ between machines: a negative time counts as none.
    pub fn task_stage(&self, stage: TaskStage, since_creation: GoDuration) {
        let after = clamped_millis(since_creation);
        self.series
            .task
            .with_label_values(&[stage.label()])
            .observe(after);
    }

    /// A part of the work is done.
    pub fn stage_took(&self, stage: Stage, took: Duration) {
        let labels = &[stage.label()];
        self.series.stage.with_label_values(labels).observe(millis(took));
    }

    /// What the last preemption would evict.
    pub fn preemption_victims(&self, victims: usize) {
        self.series.victims.set(victims as f64);
    }

    /// Nodes were tried for a preemption.
    pub fn preemption_attempts(&self, attempts: u64) {
        self.series.preemption_attempts.inc_by(attempts);
    }

    /// Decisions of an action (`preempt`, `reclaim`, …) that evict were committed.
    pub fn evictions_committed(&self, action: &str, transactions: u64) {
        self.series
            .evictions
            .with_label_values(&[action])
            .inc_by(transactions);
    }
}

/// Jobs.
impl Metrics {
    /// A PodGroup is known.
    pub fn job_created(&self, namespace: &str, name: &str, queue: &str, created: Time) {
        self.series.jobs.created(namespace, name, queue, created);
    }

    /// A task of a job was placed.
    pub fn job_scheduled(
        &self,
        namespace: &str,
        name: &str,
        queue: &str,
        since_creation: GoDuration,
        at: Time,
    ) {
        let after = clamped_millis(since_creation);
        self.series.job_latency.observe(after);
        self.series.jobs.placed(namespace, name, queue, after, at);
    }

    /// How many tasks of a job cannot be scheduled; 0 once it is ready.
    pub fn unschedulable(&self, namespace: &str, name: &str, tasks: usize) {
        self.series.jobs.waiting(namespace, name, tasks);
    }

    /// How many jobs are not ready at the end of a cycle.
    pub fn unschedulable_jobs(&self, jobs: usize) {
        self.series.unschedulable_jobs.set(jobs as f64);
    }

    /// A job was not ready in a cycle.
    pub fn job_retried(&self, namespace: &str, name: &str) {
        self.series.jobs.retried(namespace, name);
    }

    /// The dominant share of a job.
    pub fn job_share(&self, namespace: &str, name: &str, share: f64) {
        self.series.jobs.share(namespace, name, share);
    }

    /// A job is gone, and its series with it.
    pub fn forget_job(&self, namespace: &str, name: &str) {
        self.series.jobs.forget(namespace, name);
    }
}

/// Queues.
impl Metrics {
    /// The state of a queue.
    pub fn queue(&self, figures: &QueueFigures) {
        self.series.queues.set(figures);
    }

    /// A queue is gone, and its series with it.
    pub fn forget_queue(&self, name: &str) {
        self.series.queues.forget(name);
    }
}

/// The process.
impl Metrics {
    /// Those that every program has.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// How many binds were sent and are not answered yet.
    pub fn binds_in_flight(&self, binds: usize) {
        self.series.binds_in_flight.set(binds as f64);
    }

    /// A pod was bound at this time.
    pub fn bound_at(&self, at: Time) {
        self.series.last_bind.set(at.unix_micros() as f64 / 1e6);
    }

    /// The configuration was read again: whether it is in force now.
    pub fn config_reloaded(&self, good: bool) {
        let result = if good { "success" } else { "failure" };
        self.series.reloads.with_label_values(&[result]).inc();
        self.series.config_good.set(f64::from(good));
    }

    /// The configuration of the start is in force.
    pub fn config_loaded(&self) {
        self.series.config_good.set(1.0);
    }

    /// The text that `/metrics` serves.
    pub fn text(&self) -> String {
        let mut text = text(&self.series.registry);
        self.series.jobs.write(&mut text);
        text
    }
}

/// All series of a registry, as `/metrics` serves them.
pub(crate) fn text(registry: &Registry) -> String {
    prometheus::TextEncoder::new()
        .encode_to_string(&registry.gather())
        .unwrap_or_default()
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

fn clamped_millis(after: GoDuration) -> f64 {
    after.as_seconds().max(0.0) * 1_000.0
}
