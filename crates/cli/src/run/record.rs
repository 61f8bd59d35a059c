//! What is known of a Job or pod that was created: how it is, its pods, and when what happened.

use super::follow::Target;
use crate::commands::job::wait::End;
use crate::commands::pod::status::PodItem;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::names::{SCHEDULER, annotations, labels};

/// Names of tasks that speak for their Job.
const MASTERS: [&str; 6] = ["master", "launcher", "mpimaster", "driver", "head", "chief"];

/// A pod.
pub struct PodRecord {
    /// Its name.
    pub name: String,
    /// Its node; empty until it has one.
    pub node: String,
    /// How it is, in a word.
    pub status: String,
    /// When it was seen to have started.
    pub started: Option<Instant>,
    /// When it was seen to be over.
    pub ended: Option<Instant>,
    /// Containers that ended badly, with what they returned.
    pub failures: Vec<(String, i32)>,
}

/// A Job, or a pod of its own.
pub struct Record {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its pods by identity, those that are gone too.
    pub pods: BTreeMap<String, PodRecord>,
    /// When it was created.
    pub created: Instant,
    /// When the first of its pods was seen to have started.
    pub started: Option<Instant>,
    /// How it ended, and when.
    pub end: Option<(End, Instant)>,
    /// How it is, in words.
    pub text: String,
    /// Whether that has changed since it was shown.
    pub is_news: bool,
    /// How many pods have logs that are shown.
    pub logged_pods: u64,
    /// When it was last found out why it waits.
    pub looked_at: Option<Instant>,
    /// Whether it, or the part of it that is left, would not start as things are.
    pub is_stuck: bool,
    /// Whether a pod of it has a node and is not over.
    pub is_live: bool,
    is_job: bool,
    /// What the scheduler says of why a pod has no node.
    unplaced_because: Option<String>,
    stored: Value,
    /// The task whose logs are shown.
    logged_task: String,
    waits_since: Option<Instant>,
}

impl Record {
    /// A Job or a pod, as it is stored.
    pub fn new(is_job: bool, stored: Value) -> Self {
        let text = |field: &str| stored["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (logged_task, logged_pods) = match is_job {
            true => logged_task(&stored),
            false => (String::new(), 1),
        };
        Record {
            namespace: text("namespace"),
            name: text("name"),
            pods: BTreeMap::new(),
            created: Instant::now(),
            started: None,
            end: None,
            text: String::new(),
            is_news: false,
            logged_pods,
            looked_at: None,
            is_stuck: false,
            is_live: false,
            is_job,
            unplaced_because: None,
            stored,
            logged_task,
            waits_since: Some(Instant::now()),
        }
    }

    /// What is followed.
    pub fn target(&self) -> Target {
        match self.is_job {
            true => Target::Job(self.stored.clone()),
            false => Target::Pod {
                namespace: self.namespace.clone(),
                name: self.name.clone(),
                uid: self.uid().to_owned(),
            },
        }
    }

    fn uid(&self) -> &str {
        self.stored["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// The name under which it is explained: a pod is by its PodGroup.
    pub fn explained_as(&self) -> String {
        if self.is_job {
            return self.name.clone();
        }
        let given = self.stored["metadata"]["annotations"][annotations::KUBE_GROUP_NAME].as_str();
        given.map_or_else(|| format!("podgroup-{}", self.uid()), str::to_owned)
    }

    /// The scheduler that a pod of its own asks for.
    pub fn scheduler_name(&self) -> Option<&str> {
        self.stored["spec"]["schedulerName"]
            .as_str()
            .filter(|_| !self.is_job)
    }

    /// Why a pod waits of which nothing else is known: what its scheduler says, or that none says anything.
    pub fn unplaced_because(&self) -> Option<String> {
        let asked = self.scheduler_name()?;
        Some(self.unplaced_because.clone().unwrap_or_else(|| {
            format!(
                "no scheduler has looked at it; its schedulerName is {asked:?}, Volcano's is {SCHEDULER:?}"
            )
        }))
    }

    /// It is like this now.
    pub fn set_state(&mut self, text: String, waits: bool, is_live: bool) {
        self.is_news |= self.text != text;
        self.text = text;
        self.is_live = is_live;
        match waits {
            true => drop(self.waits_since.get_or_insert_with(Instant::now)),
            false => {
                self.waits_since = None;
                self.is_stuck = false;
            }
        }
    }

    /// A pod is like this now.
    pub fn see(&mut self, pod: &PodItem) {
        let now = Instant::now();
        let record = self
            .pods
            .entry(pod.metadata.uid.clone())
            .or_insert_with(|| PodRecord {
                name: pod.metadata.name.clone(),
                node: String::new(),
                status: String::new(),
                started: None,
                ended: None,
                failures: Vec::new(),
            });
        self.unplaced_because = pod.unplaced_because().map(str::to_owned);
        record.node.clone_from(&pod.spec.node_name);
        record.status = pod.status();
        if !matches!(pod.status.phase.as_str(), "" | "Pending") {
            record.started.get_or_insert(now);
            self.started.get_or_insert(now);
        }
        if pod.is_over() {
            record.ended.get_or_insert(now);
        }
        let failures = pod.failures();
        record.failures = failures
            .map(|(container, code)| (container.to_owned(), code))
            .collect();
    }

    /// It is over.
    pub fn end_with(&mut self, end: End) {
        self.end = Some((end, Instant::now()));
        self.waits_since = None;
        self.is_live = false;
    }

    /// Whether the log of a pod is shown.
    pub fn logs(&self, pod: &PodItem) -> bool {
        let task = pod.metadata.labels.get(labels::TASK_SPEC);
        !self.is_job || task.is_some_and(|task| *task == self.logged_task)
    }

    /// Whether it has waited for so long since it was last looked at.
    pub fn is_late(&self, patience: Duration) -> bool {
        let since = self
            .waits_since
            .max(self.looked_at.filter(|_| self.waits_since.is_some()));
        since.is_some_and(|since| since.elapsed() >= patience)
    }

    /// How long it waited, and how long it has run since.
    pub fn took(&self) -> (Duration, Option<Duration>) {
        let end = self.end.as_ref().map_or_else(Instant::now, |(_, at)| *at);
        let start = self.started.unwrap_or(end);
        let ran = self.started.map(|started| end.duration_since(started));
        (start.duration_since(self.created), ran)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.is_job { "job" } else { "pod" }, self.name)
    }
}

/// The task of a Job whose logs are shown, and how many pods it has: the one that is named as the head of the others, or
/// the first.
fn logged_task(job: &Value) -> (String, u64) {
    let tasks = job["spec"]["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    let is_master = |task: &&Value| task["name"].as_str().is_some_and(|name| MASTERS.contains(&name));
    let Some(task) = tasks.iter().find(is_master).or(tasks.first()) else {
        return (String::new(), 0);
    };
    let name = task["name"].as_str().unwrap_or_default();
    (name.to_owned(), task["replicas"].as_u64().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_master_speaks_for_a_job_or_else_the_first_task() {
        let job = |tasks: Value| logged_task(&json!({"spec": {"tasks": tasks}}));
        let worker = json!({"name": "worker", "replicas": 3});
        assert_eq!(
            job(json!([worker, {"name": "mpimaster", "replicas": 1}])),
            ("mpimaster".to_owned(), 1)
        );
        assert_eq!(job(json!([worker, {"name": "other"}])), ("worker".to_owned(), 3));
        assert_eq!(job(json!([])), (String::new(), 0));
    }

    #[test]
    fn a_pod_without_a_node_says_what_its_scheduler_says() {
        let stored = json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "other"}});
        let mut record = Record::new(false, stored);
        assert_eq!(
            record.unplaced_because().unwrap(),
            "no scheduler has looked at it; its schedulerName is \"other\", Volcano's is \"volcano\""
        );
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"});
        let pod = json!({"status": {"conditions": [condition]}});
        record.see(&serde_json::from_value(pod).unwrap());
        assert_eq!(record.unplaced_because().unwrap(), "full");
        let job = Record::new(
            true,
            json!({"metadata": {"name": "j"}, "spec": {"schedulerName": "volcano"}}),
        );
        assert_eq!(job.unplaced_because(), None);
    }

    #[test]
    fn what_has_started_is_not_late() {
        let mut record = Record::new(true, json!({"metadata": {"name": "j"}}));
        assert!(record.is_late(Duration::ZERO));
        assert!(!record.is_late(Duration::from_secs(60)));
        record.set_state("Running".to_owned(), false, true);
        assert!(!record.is_late(Duration::ZERO));
        record.set_state("Pending".to_owned(), true, false);
        assert!(record.is_late(Duration::ZERO));
    }
}
