//! The wait of `vcctl job run --wait`: follows the Job, its pods and its place in the queue until it is over.

use super::progress::{Board, Position, Snapshot};
use crate::api::{Api, Meta, Scope};
use crate::commands::pod::status::PodItem;
use crate::exit;
use crate::failure::Failure;
use crate::live::{Change, Item, Key, Live};
use crate::output::{Out, age, times};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;
use volcano_api::core::{PriorityClass, null_default};
use volcano_api::names::{kinds, labels};
use volcano_api::time::Time;

/// How often the place in the queue is looked up.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What is read of a Job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JobState {
    metadata: Meta,
    spec: QueueOf,
    #[serde(deserialize_with = "null_default")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QueueOf {
    queue: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "null_default")]
    state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    phase: String,
}

impl Item for JobState {
    fn key(&self) -> Key {
        Key::from(&self.metadata)
    }
}

/// What is read of a PodGroup that may wait.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    metadata: Meta,
    spec: WaitingSpec,
    #[serde(deserialize_with = "null_default")]
    status: WaitingStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WaitingSpec {
    queue: String,
    priority_class_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WaitingStatus {
    phase: String,
}

/// Waits for the end of a Job. The exit code that stands for it.
pub async fn wait(api: &Api, job: &Value, timeout: Option<Duration>, out: &mut Out) -> Result<u8, Failure> {
    let mut progress = Board::new().line();
    let mut watched = Watched::new(job);
    let followed = follow(api, &mut watched, |watched, _| {
        progress.show(watched.snapshot().to_string());
    });
    let outcome = match timeout {
        Some(limit) => tokio::time::timeout(limit, followed)
            .await
            .unwrap_or(Ok(End::TimedOut(limit))),
        None => followed.await,
    };
    progress.end();
    let end = outcome?;
    end.tell(&watched, out)?;
    Ok(end.exit_code())
}

/// How the wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It has this phase, which is a last one.
    Phase(String),
    /// It is gone.
    Deleted,
    /// It is not over.
    TimedOut(Duration),
    /// It waits, and nothing that goes on would change that.
    Stuck,
}

impl End {
    /// The end that a phase is, if it is one.
    pub fn of(phase: &str) -> Option<End> {
        let is_end = matches!(phase, "Completed" | "Failed" | "Terminated" | "Aborted");
        is_end.then(|| End::Phase(phase.to_owned()))
    }

    /// The exit code that stands for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            End::Phase(phase) => match phase.as_str() {
                "Completed" | "Succeeded" => exit::JOB_COMPLETED,
                "Terminated" => exit::JOB_TERMINATED,
                "Aborted" => exit::JOB_ABORTED,
                _ => exit::JOB_FAILED,
            },
            End::Deleted => exit::JOB_DELETED,
            End::TimedOut(_) => exit::TIMED_OUT,
            End::Stuck => exit::WOULD_WAIT,
        }
    }

    fn tell(&self, watched: &Watched, out: &mut Out) -> Result<(), Failure> {
        let name = &watched.name;
        let took = age::since(times::now(), Some(watched.began));
        match self {
            End::Phase(phase) => writeln!(out, "job {name} {phase} after {took}")?,
            End::Deleted => writeln!(out, "job {name} was deleted after {took}")?,
            End::Stuck => writeln!(out, "job {name} waits, and would not start")?,
            End::TimedOut(limit) => writeln!(
                out,
                "job {name} is {} after {} s; it goes on without being waited for",
                if watched.phase.is_empty() {
                    "not started"
                } else {
                    &watched.phase
                },
                limit.as_secs()
            )?,
        }
        for pod in watched.pods.values() {
            for (container, code) in pod.failures() {
                writeln!(
                    out,
                    "pod {}: container {container} exited with {code}",
                    pod.metadata.name
                )?;
            }
        }
        Ok(())
    }
}

/// What is known of the Job.
pub struct Watched {
    namespace: String,
    name: String,
    uid: String,
    began: Time,
    phase: String,
    queue: String,
    pods: BTreeMap<String, PodItem>,
    /// Pods by their status, kept with every change: a Job may have thousands.
    statuses: BTreeMap<String, usize>,
    /// Pods that wait for a node, and those that have one and are not over; kept in the same way.
    unplaced: usize,
    live: usize,
    position: Option<Position>,
    /// What cannot be read for now, and why.
    troubles: BTreeMap<&'static str, String>,
}

const JOB: &str = "the job";
const PODS: &str = "pods";

impl Watched {
    /// A Job as it is stored.
    pub fn new(job: &Value) -> Self {
        let text = |field: &str| job["metadata"][field].as_str().unwrap_or_default().to_owned();
        Watched {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            began: times::now(),
            phase: String::new(),
            queue: job["spec"]["queue"].as_str().unwrap_or_default().to_owned(),
            pods: BTreeMap::new(),
            statuses: BTreeMap::new(),
            unplaced: 0,
            live: 0,
            position: None,
            troubles: BTreeMap::new(),
        }
    }

    /// How it is, to be shown.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            name: self.name.clone(),
            phase: self.phase.clone(),
            queue: self.position.map(|position| (self.queue.clone(), position)),
            pods: self.statuses.clone(),
            trouble: self
                .troubles
                .iter()
                .next_back()
                .map(|(what, why)| format!("{what} cannot be read: {why}")),
        }
    }

    fn set(&mut self, pod: PodItem) {
        *self.statuses.entry(pod.status()).or_insert(0) += 1;
        self.unplaced += usize::from(pod.waits_for_node());
        self.live += usize::from(pod.is_on_node());
        if let Some(old) = self.pods.insert(pod.metadata.name.clone(), pod) {
            self.discount(&old);
        }
    }

    fn remove(&mut self, pod: &str) {
        if let Some(old) = self.pods.remove(pod) {
            self.discount(&old);
        }
    }

    fn discount(&mut self, old: &PodItem) {
        self.unplaced -= usize::from(old.waits_for_node());
        self.live -= usize::from(old.is_on_node());
        let status = old.status();
        if let Some(count) = self.statuses.get_mut(&status) {
            *count -= 1;
            if *count == 0 {
                self.statuses.remove(&status);
            }
        }
    }

    /// Whether it has not started.
    pub fn waits(&self) -> bool {
        matches!(self.phase.as_str(), "" | "Pending")
    }

    /// Whether a pod of it waits for a node.
    pub fn lacks_nodes(&self) -> bool {
        self.unplaced > 0
    }

    /// Whether a pod of it has a node and is not over.
    pub fn is_live(&self) -> bool {
        self.live > 0
    }
}

/// Which pods are those of a Job.
pub fn pods_of(namespace: &str, job: &str) -> Scope {
    Scope::new(kinds::POD, namespace).labelled(&format!("{}={job}", labels::JOB_NAME))
}

/// Follows a Job to its end. What changes is told, with the pod if it is one.
pub async fn follow(
    api: &Api,
    watched: &mut Watched,
    mut tell: impl FnMut(&Watched, Option<&PodItem>),
) -> Result<End, Failure> {
    let field = format!("metadata.name={}", watched.name);
    let mut job = Live::<JobState>::new(
        api,
        Scope::new(kinds::JOB, &watched.namespace).with_fields(&field),
    );
    let mut pods = Live::<PodItem>::new(api, pods_of(&watched.namespace, &watched.name));
    let mut look = tokio::time::interval(LOOK_AGAIN);
    let (mut end, mut was_seen) = (None, false);
    loop {
        let mut changed = None;
        tokio::select! {
            change = job.next() => match change {
                Change::Applied(job) if job.metadata.uid == watched.uid => {
                    was_seen = true;
                    watched.troubles.remove(JOB);
                    watched.phase = job.status.state.phase;
                    watched.queue = job.spec.queue;
                    end = End::of(&watched.phase);
                }
                // Another one of the name means that this one is gone.
                Change::Applied(_) | Change::Gone(_) => end = Some(End::Deleted),
                Change::Listed if !was_seen => end = Some(End::Deleted),
                Change::Listed => drop(watched.troubles.remove(JOB)),
                // Who may not read it would wait for ever.
                Change::Trouble(failure) if !was_seen => {
                    return Err(failure.after("the job is submitted, but cannot be waited for: "));
                }
                Change::Trouble(failure) => drop(watched.troubles.insert(JOB, failure.to_string())),
            },
            change = pods.next() => match change {
                Change::Applied(pod) => {
                    changed = Some(pod.metadata.name.clone());
                    watched.set(pod);
                }
                Change::Gone(gone) => watched.remove(&gone.key.name),
                Change::Listed => drop(watched.troubles.remove(PODS)),
                Change::Trouble(failure) => drop(watched.troubles.insert(PODS, failure.to_string())),
            },
            _ = look.tick() => {
                watched.position = if watched.waits() { position(api, watched).await } else { None };
            }
        }
        if !watched.waits() {
            watched.position = None;
        }
        tell(watched, changed.and_then(|name| watched.pods.get(&name)));
        if let Some(end) = end.take() {
            return Ok(end);
        }
    }
}

/// The place of the Job's PodGroup among those of its queue that wait to be admitted: by priority, then by age. None
/// when it does not wait, or when the user may not see.
async fn position(api: &Api, watched: &Watched) -> Option<Position> {
    let groups: Vec<Waiting> = api.list(Scope::new(kinds::POD_GROUP, "")).await.ok()?;
    let classes: Vec<PriorityClass> = api
        .list(Scope::new(kinds::PRIORITY_CLASS, ""))
        .await
        .unwrap_or_default();
    let priorities = classes
        .into_iter()
        .map(|class| (class.metadata.name.clone(), class.value))
        .collect();
    let name = format!("{}-{}", watched.name, watched.uid);
    place(&groups, &priorities, &watched.queue, &watched.namespace, &name)
}

fn place(
    groups: &[Waiting],
    priorities: &BTreeMap<String, i32>,
    queue: &str,
    namespace: &str,
    name: &str,
) -> Option<Position> {
    let waits =
        |group: &&Waiting| group.spec.queue == queue && matches!(group.status.phase.as_str(), "" | "Pending");
    let order = |group: &&Waiting| {
        let priority = priorities
            .get(&group.spec.priority_class_name)
            .copied()
            .unwrap_or(0);
        let meta = &group.metadata;
        (
            std::cmp::Reverse(priority),
            meta.creation_timestamp,
            meta.namespace.clone(),
            meta.name.clone(),
        )
    };
    let mut waiting: Vec<_> = groups.iter().filter(waits).collect();
    waiting.sort_by_key(order);
    let is_it = |group: &&Waiting| group.metadata.namespace == namespace && group.metadata.name == name;
    let at = waiting.iter().position(is_it)?;
    Some(Position {
        at: at + 1,
        of: waiting.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Answer, Fake};
    use serde_json::json;

    #[tokio::test]
    async fn a_job_that_may_not_be_read_is_not_waited_for() {
        let fake = Fake::serve(|_| Answer::refused(403, "jobs is forbidden")).await;
        let mut watched = Watched::new(&json!({"metadata": {"namespace": "ns", "name": "j", "uid": "u"}}));
        let api = fake.api().await;
        let ended =
            tokio::time::timeout(Duration::from_secs(10), follow(&api, &mut watched, |_, _| {})).await;
        let failure = ended.unwrap().unwrap_err();
        assert_eq!(
            failure.to_string(),
            "the job is submitted, but cannot be waited for: jobs is forbidden"
        );
    }

    #[tokio::test]
    async fn what_cannot_be_read_later_is_shown() {
        let job = json!({"metadata": {"namespace": "ns", "name": "j", "uid": "u", "resourceVersion": "1"},
            "status": {"state": {"phase": "Running"}}});
        let stored = job.clone();
        let fake = Fake::serve(move |path| match path {
            watch if watch.contains("/jobs?watch=true") => Answer::refused(401, "Unauthorized"),
            watch if watch.contains("watch=true") => Answer::stream(&[]),
            jobs if jobs.contains("/jobs?") => Answer::list(std::slice::from_ref(&job)),
            _ => Answer::list(&[]),
        })
        .await;
        let (mut watched, api) = (Watched::new(&stored), fake.api().await);
        let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
        let followed = follow(&api, &mut watched, |watched, _| {
            let _ = sender.send(watched.snapshot().to_string());
        });
        let shown = async {
            while let Some(text) = told.recv().await {
                if text.ends_with("(the job cannot be read: Unauthorized)") {
                    return;
                }
            }
        };
        tokio::select! {
            end = followed => panic!("it ended: {end:?}"),
            () = shown => {}
            () = tokio::time::sleep(Duration::from_secs(10)) => panic!("it was not shown"),
        }
    }

    #[test]
    fn every_end_has_its_exit_code() {
        let cases = [("Completed", 0), ("Failed", 2), ("Terminated", 3), ("Aborted", 4)];
        for (phase, code) in cases {
            assert_eq!(End::of(phase).map(|end| end.exit_code()), Some(code), "{phase}");
        }
        for phase in [
            "",
            "Pending",
            "Running",
            "Restarting",
            "Completing",
            "Aborting",
            "Terminating",
        ] {
            assert_eq!(End::of(phase), None, "{phase}");
        }
        assert_eq!(End::Deleted.exit_code(), 5);
        assert_eq!(End::TimedOut(Duration::ZERO).exit_code(), 124);
    }

    #[test]
    fn the_place_in_a_queue_goes_by_priority_and_age() {
        let group = |name: &str, queue: &str, class: &str, phase: &str, second: u32| -> Waiting {
            serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "name": name,
                    "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")},
                "spec": {"queue": queue, "priorityClassName": class},
                "status": {"phase": phase},
            }))
            .unwrap()
        };
        let groups = [
            group("late", "q", "", "Pending", 9),
            group("early", "q", "", "", 1),
            group("urgent", "q", "high", "Pending", 20),
            group("runs", "q", "high", "Running", 1),
            group("elsewhere", "other", "high", "Pending", 1),
        ];
        let priorities = [("high".to_owned(), 100)].into();
        let of = |name: &str| place(&groups, &priorities, "q", "ns", name).map(|p| (p.at, p.of));
        assert_eq!(of("urgent"), Some((1, 3)));
        assert_eq!(of("early"), Some((2, 3)));
        assert_eq!(of("late"), Some((3, 3)));
        assert_eq!(of("runs"), None);
    }
}
