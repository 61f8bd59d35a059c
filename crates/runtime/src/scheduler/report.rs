//! What cycles mean for the metrics.
//!
//! What a cycle did is counted at once. The state of queues and jobs is sampled, at most once a second: it costs the
//! number of jobs, and nobody scrapes more often.

use crate::metrics::{Metrics, TaskStage};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::time::Time;
use volcano_engine::Engine;
use volcano_engine::effect::{Cycle, Effect};
use volcano_engine::figures::CycleFigures;
use volcano_engine::ids::{JobId, QueueId};
use volcano_engine::model::Model;

/// Shortest time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Feeds the metrics, and knows which series there are.
pub struct Reporter {
    metrics: Metrics,
    sampled_at: Option<Instant>,
    jobs: FxHashMap<JobId, JobSeries>,
    queues: BTreeSet<Arc<str>>,
}

/// The series of a job. The number of a job that is gone is given to another one.
struct JobSeries {
    id: Arc<str>,
    queue: QueueId,
    share: Option<f64>,
}

impl Reporter {
    /// Nothing is reported yet.
    pub fn new(metrics: Metrics) -> Self {
        Reporter {
            metrics,
            sampled_at: None,
            jobs: FxHashMap::default(),
            queues: BTreeSet::new(),
        }
    }

    /// Counts what a cycle decided.
    pub fn report(&mut self, engine: &Engine, cycle: &Cycle, now: Time) {
        let m = engine.model();
        for effect in &cycle.effects {
            if let Effect::Bind { job, binds } = effect {
                self.know(m, *job);
                report_binds(
                    &self.metrics,
                    m,
                    *job,
                    binds.iter().map(|&(task, _)| m.task(task).created),
                    now,
                );
            }
        }
        self.count(m, &cycle.figures);
        if self.sampled_at.is_none_or(|at| at.elapsed() >= SAMPLE_EVERY) {
            self.sample_jobs(engine);
            self.sample_queues(engine);
            self.sampled_at = Some(Instant::now());
        }
    }

    fn count(&mut self, m: &Model, figures: &CycleFigures) {
        for &(id, lacking) in &figures.unschedulable_tasks {
            self.know(m, id);
            let (namespace, name) = names(m, id);
            self.metrics.unschedulable(namespace, name, lacking as usize);
            if lacking > 0 {
                self.metrics.job_retried(namespace, name);
            }
        }
        self.metrics.unschedulable_jobs(figures.unschedulable_jobs);
        if let Some(victims) = figures.preemption_victims {
            self.metrics.preemption_victims(victims);
        }
        self.metrics.preemption_attempts(figures.preemption_attempts);
        for (action, &transactions) in &figures.eviction_transactions {
            self.metrics.evictions_committed(action, transactions);
        }
    }

    /// Has series for a job, and none for one that had its number before.
    fn know(&mut self, m: &Model, id: JobId) -> &mut JobSeries {
        let job = m.job(id);
        let (namespace, name) = names(m, id);
        let known = self.jobs.get(&id);
        if let Some(other) = known.filter(|known| known.id != job.id) {
            forget(&self.metrics, &other.id);
        }
        if known.is_none_or(|known| known.id != job.id || known.queue != job.queue) {
            let queue = m.text(m.queue(job.queue).name);
            let created = Time::from_unix_micros(job.created());
            self.metrics.job_created(namespace, name, queue, created);
            let series = JobSeries {
                id: job.id.clone(),
                queue: job.queue,
                share: None,
            };
            self.jobs.insert(id, series);
        }
        self.jobs.get_mut(&id).expect("it is there or was put in above")
    }

    fn sample_jobs(&mut self, engine: &Engine) {
        let m = engine.model();
        let taking_part = |id: JobId| m.in_session(id);
        let metrics = self.metrics.clone();
        self.jobs.retain(|&id, series| {
            let stays = taking_part(id) && m.job(id).id == series.id;
            if !stays {
                forget(&metrics, &series.id);
            }
            stays
        });
        for id in m.group_ids().filter(|&id| m.in_session(id)) {
            let share = engine.job_share(id);
            let series = self.know(m, id);
            if let Some(value) = share.filter(|_| series.share != share) {
                series.share = share;
                let (namespace, name) = names(m, id);
                metrics.job_share(namespace, name, value);
            }
        }
    }

    fn sample_queues(&mut self, engine: &Engine) {
        let figures = engine.queue_figures();
        let there: BTreeSet<Arc<str>> = figures.iter().map(|of| of.queue.clone()).collect();
        for gone in self.queues.difference(&there) {
            self.metrics.forget_queue(gone);
        }
        figures.iter().for_each(|of| self.metrics.queue(of));
        self.queues = there;
    }
}

/// Whoever leads no longer says nothing of jobs and queues: sums over replicas would count them twice, and those that go
/// meanwhile would stay.
impl Drop for Reporter {
    fn drop(&mut self) {
        self.jobs
            .values()
            .for_each(|series| forget(&self.metrics, &series.id));
        self.queues
            .iter()
            .for_each(|queue| self.metrics.forget_queue(queue));
    }
}

fn report_binds(metrics: &Metrics, m: &Model, job: JobId, created: impl Iterator<Item = i64>, now: Time) {
    let (namespace, name) = names(m, job);
    let job = m.job(job);
    let queue = m.text(m.queue(job.queue).name);
    let since_creation = now.since(Time::from_unix_micros(job.created()));
    for pod_created in created {
        metrics.job_scheduled(namespace, name, queue, since_creation, now);
        let waited = now.since(Time::from_unix_micros(pod_created));
        metrics.task_stage(TaskStage::Assumed, waited);
    }
}

fn names(m: &Model, id: JobId) -> (&str, &str) {
    let job = m.job(id);
    (m.text(job.namespace), m.text(job.name))
}

fn forget(metrics: &Metrics, id: &str) {
    if let Some((namespace, name)) = id.split_once('/') {
        metrics.forget_job(namespace, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use volcano_engine::config::{SchedulerConf, catalog};
    use volcano_engine::model::SchedulerNames;
    use volcano_engine::model::delta::Delta;
    use volcano_engine::model::kind::Kind;

    const CONF: &str =
        "{actions: 'enqueue, allocate', tiers: [{plugins: [{name: gang}, {name: drf}, {name: proportion}]}]}";

    struct World {
        engine: Engine,
        reporter: Reporter,
    }

    impl World {
        fn new() -> Self {
            let conf = SchedulerConf::parse(CONF, catalog::PLANNED_PLUGINS, catalog::ACTIONS).unwrap();
            let (engine, _) = Engine::new(conf, SchedulerNames::Any, "default");
            let mut world = World {
                engine,
                reporter: Reporter::new(Metrics::default()),
            };
            world.apply(
                Delta::Queue,
                json!({"metadata": {"name": "q"}, "spec": {"weight": 3}}),
            );
            let capacity = json!({"cpu": "2", "pods": "10"});
            world.apply(
                Delta::Node,
                json!({"metadata": {"name": "n"}, "status": {"allocatable": capacity}}),
            );
            world
        }

        fn apply<T: serde::de::DeserializeOwned>(&mut self, delta: fn(Box<T>) -> Delta, object: Value) {
            let object = serde_json::from_value(object).unwrap();
            self.engine.apply(delta(Box::new(object)));
        }

        /// A job of one pod.
        fn job(&mut self, name: &str, cpu: &str) {
            let metadata = json!({"namespace": "ns", "name": name, "uid": name,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"scheduling.k8s.io/group-name": name}});
            self.apply(
                Delta::PodGroup,
                json!({"metadata": metadata, "spec": {"minMember": 1, "queue": "q"}}),
            );
            let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
            self.apply(
                Delta::Pod,
                json!({"metadata": metadata, "spec": {"containers": [container], "schedulerName": "volcano"},
                    "status": {"phase": "Pending"}}),
            );
        }

        /// Runs a cycle, with a sample; returns the series of which the name has this in it.
        fn series(&mut self, of: &str) -> Vec<String> {
            let now = Time::from_unix_seconds(1_800_000_000);
            let cycle = self.engine.cycle(now, &mut |_| {});
            self.reporter.sampled_at = None;
            self.reporter.report(&self.engine, &cycle, now);
            let text = self.reporter.metrics.text();
            let lines = text
                .lines()
                .filter(|line| line.split('{').next().is_some_and(|name| name.contains(of)));
            lines
                .filter(|line| !line.starts_with('#'))
                .map(str::to_owned)
                .collect()
        }
    }

    #[test]
    fn what_a_job_lacks_and_has_is_reported_until_it_is_gone() {
        let mut world = World::new();
        world.job("fits", "1");
        world.job("large", "8");
        assert_eq!(
            world.series("unschedule_task_count"),
            [
                r#"volcano_unschedule_task_count{job_id="fits"} 0"#,
                r#"volcano_unschedule_task_count{job_id="large"} 1"#
            ]
        );
        assert_eq!(
            world.series("unschedule_job_count"),
            ["volcano_unschedule_job_count 1"]
        );
        assert_eq!(
            world.series("job_share"),
            [
                r#"volcano_job_share{job_id="fits",job_ns="ns"} 0.5"#,
                r#"volcano_job_share{job_id="large",job_ns="ns"} 0"#
            ]
        );
        assert_eq!(world.series("job_scheduling_start_time").len(), 2);
        assert_eq!(world.series("job_scheduling_last_time").len(), 1);

        for kind in [Kind::Pod, Kind::PodGroup] {
            world.engine.apply(Delta::gone(kind, "ns", "large"));
        }
        assert_eq!(
            world.series("job_share"),
            [r#"volcano_job_share{job_id="fits",job_ns="ns"} 0.5"#]
        );
        assert_eq!(world.series("job_scheduling_start_time").len(), 1);
        world.job("another", "8");
        let shares = world.series("job_share");
        assert!(shares.len() == 2 && shares[0].contains("another"), "{shares:?}");
    }

    #[test]
    fn who_stops_leading_takes_the_series_of_jobs_and_queues_along() {
        let mut world = World::new();
        world.job("fits", "1");
        assert!(!world.series("job_share").is_empty());
        let World { reporter, .. } = world;
        let metrics = reporter.metrics.clone();
        drop(reporter);
        let text = metrics.text();
        let left = text
            .lines()
            .filter(|line| line.contains("fits") || line.contains("queue_name=\"q\""));
        assert_eq!(left.collect::<Vec<_>>(), [] as [&str; 0]);
    }

    #[test]
    fn a_queue_is_reported_until_it_is_gone() {
        let mut world = World::new();
        world.job("fits", "1");
        let allocated = r#"volcano_queue_allocated_milli_cpu{queue_name="q"} 1000"#;
        assert_eq!(world.series("queue_allocated_milli_cpu"), [allocated]);
        assert_eq!(
            world.series("queue_weight"),
            [r#"volcano_queue_weight{queue_name="q"} 3"#]
        );
        world.engine.apply(Delta::gone(Kind::Queue, "", "q"));
        assert_eq!(world.series("volcano_queue_"), [] as [&str; 0]);
    }
}
