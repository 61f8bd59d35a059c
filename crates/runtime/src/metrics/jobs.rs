//! Gauges and counters of single jobs, which go with their jobs.
//!
//! They are kept as one small record for each job and become text when somebody scrapes: making a series for each
//! number beforehand took ten times as long as the cycle that places the job, and collecting them one by one for the
//! encoder of the others a hundred bytes of memory and more for each.
//!
//! Volcano labels some of them with the name of the job alone. Jobs of several namespaces that have the same name
//! share such a series: it holds their sum, and goes with the last of them.

use super::names;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volcano_api::time::Time;

/// The numbers of all jobs. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Jobs {
    /// By name, then by namespace.
    known: Arc<Mutex<BTreeMap<String, BTreeMap<String, Job>>>>,
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
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    labels: Labels,
    number: fn(&Job) -> Option<f64>,
}

const GAUGE: &str = "gauge";
const COUNTER: &str = "counter";

const FAMILIES: [Family; 6] = [
    Family {
        name: names::JOB_DURATION,
        help: "Milliseconds from the creation of a job to its last placement",
        kind: GAUGE,
        labels: Labels::Placed,
        number: |job| job.took_ms,
    },
    Family {
        name: names::JOB_START,
        help: "When a job was created, in Unix seconds",
        kind: GAUGE,
        labels: Labels::Placed,
        number: |job| job.start,
    },
    Family {
        name: names::JOB_LAST,
        help: "When a task of a job was placed last, in Unix seconds",
        kind: GAUGE,
        labels: Labels::Placed,
        number: |job| job.last,
    },
    Family {
        name: names::JOB_SHARE,
        help: "Dominant share of a job",
        kind: GAUGE,
        labels: Labels::Share,
        number: |job| job.share,
    },
    Family {
        name: names::UNSCHEDULABLE_TASKS,
        help: "Tasks of a job that cannot be scheduled",
        kind: GAUGE,
        labels: Labels::Name,
        number: |job| job.waiting,
    },
    Family {
        name: names::JOB_RETRIES,
        help: "Cycles in which a job was not ready",
        kind: COUNTER,
        labels: Labels::Name,
        number: |job| job.retries,
    },
];

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
    /// Adds the series to what `/metrics` serves. Costs what there is to write.
    pub fn write(&self, text: &mut String) {
        let known = self.known();
        for family in &FAMILIES {
            family.write(&known, text);
        }
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

impl Family {
    fn write(&self, known: &BTreeMap<String, BTreeMap<String, Job>>, text: &mut String) {
        let before = text.len();
        let Family {
            name: metric,
            help,
            kind,
            ..
        } = self;
        let _ = write!(text, "# HELP {metric} {help}\n# TYPE {metric} {kind}\n"); // A string takes everything.
        let head = text.len();
        for (name, namesakes) in known {
            let numbers = namesakes
                .iter()
                .filter_map(|(namespace, job)| Some((namespace, job, (self.number)(job)?)));
            match self.labels {
                Labels::Placed => numbers.for_each(|(namespace, job, number)| {
                    self.sample(text, &[name, namespace, &job.queue], number);
                }),
                Labels::Share => numbers.for_each(|(namespace, _, number)| {
                    self.sample(text, &[name, namespace], number);
                }),
                Labels::Name => {
                    let sum = numbers
                        .map(|(_, _, number)| number)
                        .reduce(|sum, number| sum + number);
                    if let Some(sum) = sum {
                        self.sample(text, &[name], sum);
                    }
                }
            }
        }
        if text.len() == head {
            text.truncate(before);
        }
    }

    fn sample(&self, text: &mut String, values: &[&str], number: f64) {
        text.push_str(self.name);
        let mut opening = '{';
        for (label, value) in self.labels.names().iter().zip(values) {
            let _ = write!(text, "{opening}{label}=\"{}\"", escaped(value)); // A string takes everything.
            opening = ',';
        }
        let _ = writeln!(text, "}} {number}");
    }
}

/// The value of a label between its quotes. Names of objects need no escapes, but a group may name any text as its queue.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return value.into();
    }
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .into()
}

fn unix_seconds(at: Time) -> f64 {
    at.unix_seconds() as f64
}
