//! `vcctl job logs`: what the pods of a Job print, each line with its pod if there are several.
//!
//! ```text
//! pods of the Job ─┬─ log of pod 0 ──┐
//!                  └─ log of pod 1 ──┴─> lines ─> standard output
//! ```
//!
//! With `--follow` pods that start later, and containers that are started again, are followed too, until the Job is over.

use super::named;
use crate::api::{Api, Scope, encoded};
use crate::args::{ConnectArgs, NamespaceArgs};
use crate::commands::pod::status::PodItem;
use crate::failure::Failure;
use crate::go_flags::{BOOL, boolean};
use crate::live::{Change, Live};
use crate::output::Out;
use clap::ArgAction::Set;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;
use tokio::sync::mpsc;
use volcano_api::names::{kinds, labels};
use volcano_runtime::client::CallError;

/// How long to wait before asking again for the log of a container that is about to start.
const AGAIN: Duration = Duration::from_millis(500);
/// How often to look whether the Job is over.
const LOOK: Duration = Duration::from_secs(2);

/// Print what the pods of a Job print
#[derive(Clone, Debug, clap::Args)]
pub struct LogsArgs {
    /// Name of the Job
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Only pods of this task
    #[arg(
        long,
        short = 't',
        value_name = "TASK",
        default_value = "",
        hide_default_value = true
    )]
    task: String,
    /// Go on until the Job is over
    #[arg(long, short = 'f', value_name = BOOL, value_parser = boolean, action = Set, default_value = "false",
        num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    follow: bool,
    /// This container, of pods that have several [default: the first]
    #[arg(
        long,
        short = 'c',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    container: String,
    /// Only so many of the last lines of each pod
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
    /// Each line with its time
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false",
        num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_default_value = true,
        hide_possible_values = true)]
    timestamps: bool,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Runs the command.
pub async fn run(args: &LogsArgs, out: &mut Out) -> Result<u8, Failure> {
    let job = args.job.as_deref().unwrap_or_default();
    let job = named(job, "job name is mandatory to print the logs of a particular job")?;
    let api = Api::connect(&args.connect).await?;
    let namespace = &args.namespace.namespace;
    // Pods stay for a while after their Job; a name that was never one is a mistake.
    let stored: Value = api.get(kinds::JOB, namespace, job).await?;
    let mut selector = format!("{}={job}", labels::JOB_NAME);
    if !args.task.is_empty() {
        let _ = write!(selector, ",{}={}", labels::TASK_SPEC, args.task);
    }
    let scope = Scope::new(kinds::POD, namespace).labelled(&selector);
    if args.follow {
        return follow(&api, args, &Expected::of(&stored, &args.task), job, scope, out).await;
    }
    let mut pods: Vec<PodItem> = api.list(scope).await?;
    pods.sort_by_key(order);
    if pods.is_empty() {
        return Err(none(job, &args.task));
    }
    let has_it: Vec<&PodItem> = pods.iter().filter(|pod| has_container(args, pod)).collect();
    if has_it.is_empty() {
        return Err(no_container(
            job,
            &args.container,
            pods.iter().flat_map(PodItem::containers),
        ));
    }
    for pod in &has_it {
        let prefix = prefix(&pod.metadata.name, has_it.len() > 1);
        print(&api, args, pod, &prefix, out).await?;
    }
    Ok(0)
}

fn none(job: &str, task: &str) -> Failure {
    let of_task = if task.is_empty() {
        String::new()
    } else {
        format!(" of task {task}")
    };
    Failure::new(format!("job {job} has no pods{of_task}"))
        .hint("vcctl job view shows how the job is; --follow waits for its pods")
}

/// Servers answer for a container that is not there as for one that has not started: it would be waited for.
fn no_container<'a>(job: &str, container: &str, there: impl Iterator<Item = &'a str>) -> Failure {
    let there: BTreeSet<&str> = there.collect();
    let names: Vec<&str> = there.into_iter().collect();
    Failure::new(format!("no pod of job {job} has a container {container}"))
        .hint(format!("its containers are {}", names.join(", ")))
}

/// By task, then by index.
fn order(pod: &PodItem) -> (String, u64, String) {
    let label = |key: &str| pod.metadata.labels.get(key).cloned().unwrap_or_default();
    let index = label(labels::TASK_INDEX).parse().unwrap_or(u64::MAX);
    (label(labels::TASK_SPEC), index, pod.metadata.name.clone())
}

/// What stands before the lines of a pod, if there are others.
fn prefix(pod: &str, are_several: bool) -> String {
    match are_several {
        true => format!("[{pod}] "),
        false => String::new(),
    }
}

fn first_container(pod: &PodItem) -> &str {
    let first = pod.spec.containers.first();
    first.map_or("", |container| container.name.as_str())
}

/// The container that is wanted of a pod.
fn container<'a>(args: &'a LogsArgs, pod: &'a PodItem) -> &'a str {
    match args.container.as_str() {
        "" => first_container(pod),
        given => given,
    }
}

/// Whether a pod has the container that is wanted. Those of other tasks may have others.
fn has_container(args: &LogsArgs, pod: &PodItem) -> bool {
    args.container.is_empty() || pod.containers().any(|name| name == args.container)
}

/// What to ask for; `tail` is how many of the last lines.
fn parameters(args: &LogsArgs, pod: &PodItem, tail: Option<u32>) -> String {
    let mut text = format!("container={}", encoded(container(args, pod)));
    if args.follow {
        text.push_str("&follow=true");
    }
    if args.timestamps {
        text.push_str("&timestamps=true");
    }
    if let Some(lines) = tail {
        let _ = write!(text, "&tailLines={lines}");
    }
    text
}

/// Prints the log of a pod as it is.
async fn print(
    api: &Api,
    args: &LogsArgs,
    pod: &PodItem,
    prefix: &str,
    out: &mut Out,
) -> Result<(), Failure> {
    let meta = &pod.metadata;
    let parameters = parameters(args, pod, args.tail);
    let opened = api.log(&meta.namespace, &meta.name, &parameters).await;
    let mut lines = match opened {
        Ok(lines) => lines,
        // A pod that has not started has nothing to say, and others may have.
        Err(error) if is_not_started(&error) && !prefix.is_empty() => return Ok(()),
        Err(error) => return Err(of_pod(api, &error, &meta.name)),
    };
    while let Some(line) = lines
        .next()
        .await
        .map_err(|error| of_pod(api, &error, &meta.name))?
    {
        write_line(out, prefix, &line)?;
    }
    let rest = lines.rest();
    if !rest.is_empty() {
        write_line(out, prefix, &rest)?;
    }
    Ok(())
}

fn of_pod(api: &Api, error: &CallError, pod: &str) -> Failure {
    api.failure(error).after(&format!("pod {pod}: "))
}

fn is_not_started(error: &CallError) -> bool {
    error.code() == 400
}

/// Prints a line of a log.
pub fn write_line(out: &mut Out, prefix: &str, line: &[u8]) -> Result<(), Failure> {
    out.write_all(prefix.as_bytes())?;
    out.write_all(line)?;
    Ok(out.write_all(b"\n")?)
}

/// What comes of a pod that is followed.
enum News {
    /// A line, without its end.
    Line {
        /// The pod.
        pod: String,
        /// The line.
        line: Vec<u8>,
    },
    /// There is no more of this run.
    End {
        /// The pod's identity.
        uid: String,
    },
}

/// What is to come, by what the Job says of its tasks.
struct Expected {
    pods: i64,
    containers: BTreeSet<String>,
}

impl Expected {
    /// Of a task; of all when it is not named.
    fn of(job: &Value, task: &str) -> Self {
        let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let mut expected = Expected {
            pods: 0,
            containers: BTreeSet::new(),
        };
        let tasks = each(&job["spec"]["tasks"]);
        for task in tasks
            .iter()
            .filter(|spec| task.is_empty() || spec["name"] == task)
        {
            expected.pods += task["replicas"].as_i64().unwrap_or(0);
            let spec = &task["template"]["spec"];
            let containers = [each(&spec["containers"]), each(&spec["initContainers"])].concat();
            let names = containers
                .iter()
                .filter_map(|container| container["name"].as_str());
            expected.containers.extend(names.map(str::to_owned));
        }
        expected
    }
}

/// The pods that are followed, by their identity.
#[derive(Default)]
struct Followed {
    pods: BTreeMap<String, FollowedPod>,
    /// Containers that pods were seen to have.
    containers: BTreeSet<String>,
}

struct FollowedPod {
    pod: PodItem,
    /// Runs whose logs were asked for.
    asked: i64,
    /// Whether one of them goes on.
    is_open: bool,
}

impl Followed {
    /// A pod is like this now. What to ask for, if its container has started.
    fn see(&mut self, args: &LogsArgs, pod: PodItem) -> Option<(PodItem, String)> {
        self.containers.extend(pod.containers().map(str::to_owned));
        if !has_container(args, &pod) {
            return None;
        }
        let uid = pod.metadata.uid.clone();
        match self.pods.get_mut(&uid) {
            Some(followed) => followed.pod = pod,
            None => {
                let (asked, is_open) = (0, false);
                self.pods.insert(uid.clone(), FollowedPod { pod, asked, is_open });
            }
        }
        self.next(args, &uid)
    }

    /// A run is over. What to ask for, if there was another one since: a log is always that of the last run, so that they
    /// are asked for one after the other.
    fn ended(&mut self, args: &LogsArgs, uid: &str) -> Option<(PodItem, String)> {
        self.pods.get_mut(uid)?.is_open = false;
        self.next(args, uid)
    }

    fn next(&mut self, args: &LogsArgs, uid: &str) -> Option<(PodItem, String)> {
        let followed = self.pods.get_mut(uid)?;
        let runs = followed.pod.runs_of(container(args, &followed.pod));
        if followed.is_open || runs <= followed.asked {
            return None;
        }
        // Of a run that begins while others look, all is wanted.
        let tail = args.tail.filter(|_| followed.asked == 0);
        followed.asked = runs;
        followed.is_open = true;
        Some((followed.pod.clone(), parameters(args, &followed.pod, tail)))
    }

    fn is_open(&self) -> bool {
        self.pods.values().any(|followed| followed.is_open)
    }

    fn are_several(&self) -> bool {
        let names: BTreeSet<&str> = self
            .pods
            .values()
            .map(|followed| followed.pod.metadata.name.as_str())
            .collect();
        names.len() > 1
    }
}

async fn follow(
    api: &Api,
    args: &LogsArgs,
    expected: &Expected,
    job: &str,
    scope: Scope,
    out: &mut Out,
) -> Result<u8, Failure> {
    let mut pods = Live::<PodItem>::new(api, scope);
    let (sender, mut news) = mpsc::channel(1000);
    let mut are_several = expected.pods > 1;
    let mut followed = Followed::default();
    let mut is_listed = false;
    let mut look = tokio::time::interval(LOOK);
    loop {
        let mut next = None;
        tokio::select! {
            change = pods.next() => match change {
                Change::Applied(pod) => {
                    next = followed.see(args, pod);
                    are_several = are_several || followed.are_several();
                }
                Change::Listed => is_listed = true,
                Change::Trouble(failure) if !is_listed => return Err(failure),
                Change::Gone(_) | Change::Trouble(_) => {}
            },
            Some(news) = news.recv() => match news {
                News::Line { pod, line } => {
                    write_line(out, &prefix(&pod, are_several), &line)?;
                    out.flush()?;
                }
                News::End { uid } => next = followed.ended(args, &uid),
            },
            _ = look.tick() => {
                if is_listed && !followed.is_open() && is_over(api, &args.namespace.namespace, job).await? {
                    return Ok(0);
                }
            }
        }
        if let Some((pod, parameters)) = next {
            tokio::spawn(follow_pod(api.clone(), parameters, pod, sender.clone()));
        }
        let (name, seen) = (&args.container, &followed.containers);
        let is_known = name.is_empty() || expected.containers.contains(name) || seen.contains(name);
        if is_listed && !is_known && !seen.is_empty() {
            return Err(no_container(job, name, seen.iter().map(String::as_str)));
        }
    }
}

async fn is_over(api: &Api, namespace: &str, job: &str) -> Result<bool, Failure> {
    let found: Result<Value, CallError> = api.find(kinds::JOB, namespace, job).await?;
    match found {
        Ok(job) => {
            let phase = job["status"]["state"]["phase"].as_str().unwrap_or_default();
            Ok(matches!(phase, "Completed" | "Failed" | "Terminated" | "Aborted"))
        }
        Err(error) if error.is_not_found() => Ok(true),
        Err(error) if error.is_transient() => Ok(false),
        Err(error) => Err(api.failure(&error)),
    }
}

/// What to ask for to follow the first container of a pod.
pub fn following(pod: &PodItem) -> String {
    format!("container={}&follow=true", encoded(first_container(pod)))
}

/// Follows a run of a container to its end. One that is about to start is waited for.
async fn follow_pod(api: Api, parameters: String, pod: PodItem, news: mpsc::Sender<News>) {
    let meta = &pod.metadata;
    let say = |line: Vec<u8>| News::Line {
        pod: meta.name.clone(),
        line,
    };
    let mut is_over = pod.is_over();
    loop {
        match api.log(&meta.namespace, &meta.name, &parameters).await {
            Ok(mut lines) => {
                while let Ok(Some(line)) = lines.next().await {
                    if news.send(say(line.to_vec())).await.is_err() {
                        return;
                    }
                }
                let rest = lines.rest();
                if !rest.is_empty() {
                    let _ = news.send(say(rest.to_vec())).await;
                }
                break;
            }
            Err(error) if is_not_started(&error) && !is_over => {
                tokio::time::sleep(AGAIN).await;
                // It may have ended without a start; or with one, and then there is a log now.
                is_over = !may_start(&api, &pod).await;
            }
            Err(error) => {
                let _ = news.send(say(format!("(no log: {error})").into_bytes())).await;
                break;
            }
        }
    }
    let uid = pod.metadata.uid;
    let _ = news.send(News::End { uid }).await;
}

/// Whether a pod is still there, and not over. Where that cannot be read, it may.
async fn may_start(api: &Api, pod: &PodItem) -> bool {
    let meta = &pod.metadata;
    match api.find::<PodItem>(kinds::POD, &meta.namespace, &meta.name).await {
        Ok(Ok(now)) => now.metadata.uid == meta.uid && !now.is_over(),
        Ok(Err(error)) => !error.is_not_found(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::failure::Failure;
    use crate::fake::{Answer, Fake};
    use serde_json::{Value, json};

    const WAITS: &str = "container \"main\" in pod \"p\" is waiting to start: ImagePullBackOff";

    fn job(replicas: usize, phase: &str) -> Value {
        json!({"metadata": {"name": "j"}, "status": {"state": {"phase": phase}}, "spec": {"tasks": [
            {"name": "t", "replicas": replicas, "template": {"spec": {"containers": [{"name": "main"}]}}}]}})
    }

    fn pod(name: &str, phase: &str, restarts: usize, version: usize) -> Value {
        json!({"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string()},
            "spec": {"containers": [{"name": "main"}], "initContainers": [{"name": "setup"}]},
            "status": {"phase": phase, "containerStatuses": [
                {"name": "main", "restartCount": restarts, "state": {"running": {}}}]}})
    }

    #[tokio::test]
    async fn a_container_that_is_not_there_is_a_mistake_and_not_waited_for() {
        let fake = Fake::serve(|path| match path {
            log if log.contains("/log?") => Answer::refused(400, "container typo is not valid for pod p"),
            watch if watch.contains("watch=true") => Answer::stream(&[]),
            pods if pods.contains("/pods?") => {
                Answer::list(&[pod("p", "Running", 0, 1), pod("q", "Running", 0, 1)])
            }
            _ => Answer::object(&job(2, "Running")),
        })
        .await;
        let failure =
            || Failure::new("no pod of job j has a container typo").hint("its containers are main, setup");
        for words in [
            &["job", "logs", "j", "-n", "ns", "-c", "typo"][..],
            &["job", "logs", "j", "-f", "-c", "typo"],
        ] {
            let ended = tokio::time::timeout(std::time::Duration::from_secs(10), fake.vcctl(words)).await;
            assert_eq!(ended.unwrap(), (String::new(), Err(failure())));
        }
    }

    #[tokio::test]
    async fn a_pod_that_ends_without_a_start_is_not_waited_for() {
        let fake = Fake::serve(|path| match path {
            log if log.contains("/log?") => Answer::refused(400, WAITS),
            watch if watch.contains("watch=true") => Answer::stream(&[]),
            pods if pods.contains("/pods?") => Answer::list(&[pod("p", "Running", 0, 1)]),
            one if one.ends_with("/pods/p") => Answer::object(&pod("p", "Failed", 0, 2)),
            _ => Answer::object(&job(1, "Failed")),
        })
        .await;
        let (printed, ended) = fake
            .vcctl(&["job", "logs", "j", "-n", "ns", "--follow=true"])
            .await;
        assert_eq!(ended, Ok(0));
        // The one pod has no name before its lines.
        assert!(
            printed.starts_with("(no log: container \"main\" in pod"),
            "{printed}"
        );
    }

    #[tokio::test]
    async fn a_container_that_is_started_again_is_followed_again() {
        let fake = Fake::serve(|path| match path {
            log if log.contains("tailLines=5") => Answer::text("before\n"),
            log if log.contains("/log?") => Answer::text("again\n"),
            watch if watch.contains("watch=true") => Answer::stream(&[
                ("MODIFIED", pod("p", "Running", 0, 2)),
                ("MODIFIED", pod("p", "Running", 1, 3)),
            ]),
            pods if pods.contains("/pods?") => Answer::list(&[pod("p", "Running", 0, 1)]),
            _ => Answer::object(&job(1, "Running")),
        })
        .await;
        let words = ["job", "logs", "j", "-n", "ns", "-f", "--tail", "5"];
        let printed = fake.vcctl_until(&words, "again\n").await;
        assert_eq!(printed, "before\nagain\n");
    }

    #[tokio::test]
    async fn lines_of_several_pods_begin_with_their_names() {
        let fake = Fake::serve(|path| match path {
            log if log.contains("/log?") => Answer::text("a line\n"),
            watch if watch.contains("watch=true") => Answer::stream(&[]),
            pods if pods.contains("/pods?") => Answer::list(&[pod("p", "Running", 0, 1)]),
            _ => Answer::object(&job(2, "Completed")),
        })
        .await;
        let (printed, _) = fake.vcctl(&["job", "logs", "j", "-n", "ns", "-f"]).await;
        assert_eq!(printed, "[p] a line\n", "another one is to come");
    }
}
