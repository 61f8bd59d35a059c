//! The metrics of the controllers. Series of Jobs and queues go with them.

use crate::metrics::build::{counter_vec, gauge_vec, histogram, range};
use crate::metrics::{Process, names, text};
use prometheus::{GaugeVec, Histogram, IntCounterVec, Registry};
use std::sync::Arc;
use volcano_api::batch::{Job, JobPhase};
use volcano_api::time::Time;
use volcano_reconcile::queue::Counts;

/// Clones share them.
#[derive(Clone)]
pub struct Metrics {
    process: Process,
    series: Arc<Series>,
}

struct Series {
    registry: Registry,
    completed: IntCounterVec,
    failed: IntCounterVec,
    latency: Histogram,
    /// By the names of [`Counts::named`].
    groups: Vec<(&'static str, GaugeVec)>,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let of_job = &["job_name", "queue_name"];
        let groups = Counts::default().named().map(|(phase, _)| {
            let name = format!("{}{phase}_count", names::QUEUE_POD_GROUP_PREFIX);
            let help = format!("PodGroups of a queue that are {phase}");
            (phase, gauge_vec(&registry, &name, &help, &["queue_name"]))
        });
        let series = Series {
            completed: counter_vec(
                &registry,
                names::JOBS_COMPLETED,
                "How often a Job was completed",
                of_job,
            ),
            failed: counter_vec(&registry, names::JOBS_FAILED, "How often a Job failed", of_job),
            latency: histogram(
                &registry,
                names::POD_CREATION,
                "Milliseconds from the creation of a Job to that of each of its pods",
                range(50.0, 60_000.0, 30),
            ),
            groups: groups.into_iter().collect(),
            registry,
        };
        Metrics {
            process: Process::new(&series.registry),
            series: Arc::new(series),
        }
    }
}

impl Metrics {
    /// Those that every program has.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// A Job came into a phase.
    pub fn job_entered(&self, job: &Job, phase: &JobPhase) {
        let counter = match phase {
            JobPhase::Completed => &self.series.completed,
            JobPhase::Failed => &self.series.failed,
            _ => return,
        };
        let labels = &[&*job.metadata.key(), &*job.spec.queue];
        counter.with_label_values(labels).inc();
    }

    /// A Job `namespace/name` is gone, and its series with it.
    pub fn forget_job(&self, key: &str, queue: &str) {
        for counter in [&self.series.completed, &self.series.failed] {
            let _ = counter.remove_label_values(&[key, queue]); // Absent when it did not end.
        }
    }

    /// A pod of a Job was made.
    pub fn pod_made(&self, job: &Job, now: Time) {
        let after = job.metadata.creation_timestamp.map(|made| now.since(made));
        if let Some(after) = after {
            self.series.latency.observe(after.as_seconds().max(0.0) * 1_000.0);
        }
    }

    /// What is in a queue; `None` when the queue is gone.
    pub fn queue(&self, name: &str, counts: Option<Counts>) {
        let Some(counts) = counts else {
            for (_, gauge) in &self.series.groups {
                let _ = gauge.remove_label_values(&[name]); // Absent when it was never set.
            }
            return;
        };
        for ((_, gauge), (_, count)) in self.series.groups.iter().zip(counts.named()) {
            gauge.with_label_values(&[name]).set(f64::from(count));
        }
    }

    /// The text that `/metrics` serves.
    pub fn text(&self) -> String {
        text(&self.series.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(metrics: &Metrics, part: &str) -> Vec<String> {
        let text = metrics.text();
        let wanted = text
            .lines()
            .filter(|line| line.contains(part) && !line.starts_with('#'));
        wanted.map(str::to_owned).collect()
    }

    #[test]
    fn series_come_and_go_with_jobs_and_queues() {
        let metrics = Metrics::default();
        let job: Job = serde_json::from_value(json!({
            "metadata": {"namespace": "ml", "name": "train", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"queue": "q"},
        }))
        .unwrap();
        for phase in [JobPhase::Running, JobPhase::Completed, JobPhase::Failed] {
            metrics.job_entered(&job, &phase);
        }
        metrics.pod_made(&job, Time::parse("2026-01-01T00:00:01Z").unwrap());
        let counts = Counts {
            running: 2,
            ..Counts::default()
        };
        metrics.queue("q", Some(counts));
        assert_eq!(
            lines(&metrics, "_phase_count"),
            [
                r#"volcano_job_completed_phase_count{job_name="ml/train",queue_name="q"} 1"#,
                r#"volcano_job_failed_phase_count{job_name="ml/train",queue_name="q"} 1"#,
            ]
        );
        assert_eq!(lines(&metrics, "pod_group").len(), 5);
        let running = r#"volcano_queue_pod_group_running_count{queue_name="q"} 2"#;
        assert_eq!(lines(&metrics, "pod_group_running"), [running]);
        let latency = "volcano_controller_job_to_pod_creation_latency_milliseconds_sum 1000";
        assert_eq!(lines(&metrics, "milliseconds_sum"), [latency]);
        metrics.forget_job("ml/train", "q");
        metrics.queue("q", None);
        assert_eq!(
            lines(&metrics, "_phase_count").len() + lines(&metrics, "pod_group").len(),
            0
        );
    }
}
