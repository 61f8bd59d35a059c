//! Gauges and counters of single jobs, which go with their jobs.
//!
//! They are kept as one small record for each job and become series when somebody scrapes: making a series for each
//! number beforehand took ten times as long as the cycle that places the job.
//!
//! Volcano labels some of them with the name of the job alone. Jobs of several namespaces that have the same name
//! share such a series: it holds their sum, and goes with the last of them.

use super::names;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volcano_api::time::Time;

/// The numbers of all jobs. Clones share them.
#[derive(Clone)]
pub(super) struct Jobs {
    /// By name, then by namespace.
    known: Arc<Mutex<BTreeMap<String, BTreeMap<String, Job>>>>,
    families: Arc<[Family; 6]>,
}

#[derive(Default)]
struct Job {
    /// The queue of its series that have that label.
    queue: String,
    /// When it was created, in Unix seconds.
    start: Option<f64>,
    took_ms: Option<f64>,
    /// When a task of it was placed last, in Unix seconds.
    last: Option<f64>,
    share: Option<f64>,
    waiting: Option<f64>,
    retries: Option<f64>,
}

/// A metric of jobs: what it is called, how it is labelled, and which number it is.
struct Family {
    desc: Desc,
    labels: Labels,
    kind: MetricType,
    number: fn(&Job) -> Option<f64>,
}

/// The labels of a series, by which jobs are told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Labels {
    Placed,
    Share,
    Name,
}

impl Labels {
    /// In the order that `/metrics` has them.
    fn names(self) -> &'static [&'static str] {
        match self {
            Labels::Placed => &["job_name", "job_namespace", "queue"],
            Labels::Share => &["job_id", "job_ns"],
            Labels::Name => &["job_id"],
        }
    }
}

impl Jobs {
    pub fn new(registry: &Registry) -> Self {
        use Labels::{Name, Placed, Share};
        use MetricType::{COUNTER, GAUGE};
        let took = "Milliseconds from the creation of a job to its last placement";
        let last = "When a task of a job was placed last, in Unix seconds";
        let families = [
            Family::new(names::JOB_DURATION, took, Placed, GAUGE, |job| job.took_ms),
            Family::new(
                names::JOB_START,
                "When a job was created, in Unix seconds",
                Placed,
                GAUGE,
                |job| job.start,
            ),
            Family::new(names::JOB_LAST, last, Placed, GAUGE, |job| job.last),
            Family::new(names::JOB_SHARE, "Dominant share of a job", Share, GAUGE, |job| {
                job.share
            }),
            Family::new(
                names::UNSCHEDULABLE_TASKS,
                "Tasks of a job that cannot be scheduled",
                Name,
                GAUGE,
                |job| job.waiting,
            ),
            Family::new(
                names::JOB_RETRIES,
                "Cycles in which a job was not ready",
                Name,
                COUNTER,
                |job| job.retries,
            ),
        ];
        let jobs = Jobs {
            known: Arc::default(),
            families: Arc::new(families),
        };
        super::build::register(registry, jobs)
    }

    pub fn created(&self, namespace: &str, name: &str, queue: &str, at: Time) {
        self.change(namespace, name, |job| {
            job.enter(queue);
            job.start = Some(unix_seconds(at));
        });
    }

    pub fn placed(&self, namespace: &str, name: &str, queue: &str, took_ms: f64, at: Time) {
        self.change(namespace, name, |job| {
            job.enter(queue);
            job.took_ms = Some(took_ms);
            job.last = Some(unix_seconds(at));
        });
    }

    pub fn waiting(&self, namespace: &str, name: &str, tasks: usize) {
        self.change(namespace, name, |job| job.waiting = Some(tasks as f64));
    }

    pub fn retried(&self, namespace: &str, name: &str) {
        self.change(namespace, name, |job| {
            *job.retries.get_or_insert_default() += 1.0;
        });
    }

    pub fn share(&self, namespace: &str, name: &str, share: f64) {
        self.change(namespace, name, |job| job.share = Some(share));
    }

    pub fn forget(&self, namespace: &str, name: &str) {
        let mut known = self.known();
        let Some(namesakes) = known.get_mut(name) else {
            return;
        };
        let gone = namesakes.remove(namespace);
        match namesakes.values_mut().next() {
            // A counter that they share does not go back.
            Some(namesake) => {
                let retries = gone.and_then(|gone| gone.retries);
                let both = [namesake.retries, retries].into_iter().flatten();
                namesake.retries = both.reduce(|sum, retries| sum + retries);
            }
            None => {
                known.remove(name);
            }
        }
    }

    fn change(&self, namespace: &str, name: &str, change: impl FnOnce(&mut Job)) {
        let mut known = self.known();
        if let Some(job) = known.get_mut(name).and_then(|jobs| jobs.get_mut(namespace)) {
            return change(job);
        }
        let mut job = Job::default();
        change(&mut job);
        let namesakes = known.entry(name.to_owned()).or_default();
        namesakes.insert(namespace.to_owned(), job);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, Job>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// A job that moved to another queue leaves its series in the old one.
    fn enter(&mut self, queue: &str) {
        if self.queue != queue {
            queue.clone_into(&mut self.queue);
            (self.start, self.took_ms, self.last) = (None, None, None);
        }
    }
}

impl Collector for Jobs {
    fn desc(&self) -> Vec<&Desc> {
        self.families.iter().map(|family| &family.desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let known = self.known();
        self.families
            .iter()
            .map(|family| family.collect(&known))
            .collect()
    }
}

impl Family {
    fn new(
        name: &str,
        help: &str,
        labels: Labels,
        kind: MetricType,
        number: fn(&Job) -> Option<f64>,
    ) -> Self {
        let variable = labels.names().iter().map(|&name| name.to_owned()).collect();
        Family {
            desc: super::build::desc(name, help, variable),
            labels,
            kind,
            number,
        }
    }

    fn collect(&self, known: &BTreeMap<String, BTreeMap<String, Job>>) -> MetricFamily {
        let mut metrics = Vec::new();
        for (name, namesakes) in known {
            let numbers = namesakes
                .iter()
                .filter_map(|(namespace, job)| Some((namespace, job, (self.number)(job)?)));
            match self.labels {
                Labels::Placed => {
                    metrics.extend(
                        numbers.map(|(namespace, job, number)| {
                            self.metric(&[name, namespace, &job.queue], number)
                        }),
                    );
                }
                Labels::Share => metrics
                    .extend(numbers.map(|(namespace, _, number)| self.metric(&[name, namespace], number))),
                Labels::Name => {
                    let sum = numbers
                        .map(|(_, _, number)| number)
                        .reduce(|sum, number| sum + number);
                    metrics.extend(sum.map(|sum| self.metric(&[name], sum)));
                }
            }
        }
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(self.kind);
        family.set_metric(metrics);
        family
    }

    fn metric(&self, values: &[&str], number: f64) -> Metric {
        let pairs = self.labels.names().iter().zip(values).map(|(&name, &value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value.to_owned());
            pair
        });
        let mut metric = Metric::from_label(pairs.collect());
        if self.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(number);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(number);
            metric.set_gauge(gauge);
        }
        metric
    }
}

fn unix_seconds(at: Time) -> f64 {
    at.unix_seconds() as f64
}
