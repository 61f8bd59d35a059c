//! Gauges and counters of single jobs, which go with their jobs.
//!
//! Volcano labels some of them with the name of the job alone. Jobs of several namespaces that have the same name
//! share such a series: it holds their sum, and goes with the last of them.

use super::build::{counter_vec, gauge_vec, set};
use super::names;
use prometheus::{GaugeVec, IntCounterVec, Registry};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use volcano_api::time::Time;

/// The gauges and counters of all jobs.
pub(super) struct Jobs {
    duration: GaugeVec,
    start: GaugeVec,
    last: GaugeVec,
    share: GaugeVec,
    waiting: GaugeVec,
    retries: IntCounterVec,
    known: Mutex<Known>,
}

/// Which series there are.
#[derive(Default)]
struct Known {
    /// By name, then by namespace.
    jobs: BTreeMap<String, BTreeMap<String, Job>>,
}

#[derive(Default)]
struct Job {
    /// The queue of its series that have that label.
    queue: Option<String>,
    waiting: i64,
}

impl Known {
    fn job(&mut self, namespace: &str, name: &str) -> &mut Job {
        let namesakes = self.jobs.entry(name.to_owned()).or_default();
        namesakes.entry(namespace.to_owned()).or_default()
    }
}

impl Jobs {
    pub fn new(registry: &Registry) -> Self {
        let placed = &["job_name", "queue", "job_namespace"];
        let gauge = |name, help| gauge_vec(registry, name, help, placed);
        Jobs {
            duration: gauge(
                names::JOB_DURATION,
                "Milliseconds from the creation of a job to its last placement",
            ),
            start: gauge(names::JOB_START, "When a job was created, in Unix seconds"),
            last: gauge(
                names::JOB_LAST,
                "When a task of a job was placed last, in Unix seconds",
            ),
            share: gauge_vec(
                registry,
                names::JOB_SHARE,
                "Dominant share of a job",
                &["job_ns", "job_id"],
            ),
            waiting: gauge_vec(
                registry,
                names::UNSCHEDULABLE_TASKS,
                "Tasks of a job that cannot be scheduled",
                &["job_id"],
            ),
            retries: counter_vec(
                registry,
                names::JOB_RETRIES,
                "Cycles in which a job was not ready",
                &["job_id"],
            ),
            known: Mutex::default(),
        }
    }

    pub fn created(&self, namespace: &str, name: &str, queue: &str, at: Time) {
        self.enter_queue(namespace, name, queue);
        set(&self.start, &[name, queue, namespace], Some(unix_seconds(at)));
    }

    pub fn placed(&self, namespace: &str, name: &str, queue: &str, took_ms: f64, at: Time) {
        self.enter_queue(namespace, name, queue);
        set(&self.duration, &[name, queue, namespace], Some(took_ms));
        set(&self.last, &[name, queue, namespace], Some(unix_seconds(at)));
    }

    pub fn waiting(&self, namespace: &str, name: &str, tasks: usize) {
        let mut known = self.known();
        known.job(namespace, name).waiting = i64::try_from(tasks).unwrap_or(i64::MAX);
        self.report_waiting(&known, name);
    }

    pub fn retried(&self, namespace: &str, name: &str) {
        self.known().job(namespace, name);
        self.retries.with_label_values(&[name]).inc();
    }

    pub fn share(&self, namespace: &str, name: &str, share: f64) {
        self.known().job(namespace, name);
        set(&self.share, &[namespace, name], Some(share));
    }

    pub fn forget(&self, namespace: &str, name: &str) {
        let mut known = self.known();
        let Some(namesakes) = known.jobs.get_mut(name) else {
            return;
        };
        let Some(job) = namesakes.remove(namespace) else {
            return;
        };
        let last = namesakes.is_empty();
        self.leave_queue(namespace, name, job.queue.as_deref());
        set(&self.share, &[namespace, name], None);
        if last {
            known.jobs.remove(name);
            set(&self.waiting, &[name], None);
            // Absent when the job was ready from the beginning.
            let _ = self.retries.remove_label_values(&[name]);
        } else {
            self.report_waiting(&known, name);
        }
    }

    fn report_waiting(&self, known: &Known, name: &str) {
        let namesakes = known.jobs.get(name).into_iter().flat_map(BTreeMap::values);
        let sum = namesakes.fold(0_i64, |sum, job| sum.saturating_add(job.waiting));
        set(&self.waiting, &[name], Some(sum as f64));
    }

    /// A job that moved to another queue leaves its series in the old one.
    fn enter_queue(&self, namespace: &str, name: &str, queue: &str) {
        let mut known = self.known();
        let job = known.job(namespace, name);
        if job.queue.as_deref() != Some(queue) {
            let left = job.queue.replace(queue.to_owned());
            self.leave_queue(namespace, name, left.as_deref());
        }
    }

    fn leave_queue(&self, namespace: &str, name: &str, queue: Option<&str>) {
        let Some(queue) = queue else { return };
        for gauge in [&self.duration, &self.start, &self.last] {
            set(gauge, &[name, queue, namespace], None);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unix_seconds(at: Time) -> f64 {
    at.unix_seconds() as f64
}
