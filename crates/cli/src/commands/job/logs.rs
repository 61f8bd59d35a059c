//! `vcctl job logs`: what the pods of a Job print, each line with its pod if there are several.
//!
//! ```text
//! pods of the Job ─┬─ log of pod 0 ──┐
//!                  └─ log of pod 1 ──┴─> lines ─> standard output
//! ```
//!
//! With `--follow` pods that start later are followed too, until the Job is over.

use super::named;
use crate::api::{Api, Scope, encoded};
use crate::args::{ConnectArgs, NamespaceArgs};
use crate::commands::pod::status::PodItem;
use crate::failure::Failure;
use crate::live::{Change, Live};
use crate::output::Out;
use serde_json::Value;
use std::collections::BTreeSet;
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
    #[arg(long, short = 'f')]
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
    #[arg(long)]
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
    api.get::<Value>(kinds::JOB, namespace, job).await?;
    let mut selector = format!("{}={job}", labels::JOB_NAME);
    if !args.task.is_empty() {
        let _ = write!(selector, ",{}={}", labels::TASK_SPEC, args.task);
    }
    let scope = Scope::new(kinds::POD, namespace).labelled(&selector);
    if args.follow {
        return follow(&api, args, job, scope, out).await;
    }
    let mut pods: Vec<PodItem> = api.list(scope).await?;
    pods.sort_by_key(order);
    if pods.is_empty() {
        return Err(none(job, &args.task));
    }
    let is_one = pods.len() == 1;
    for pod in &pods {
        let prefix = if is_one { String::new() } else { prefix(pod) };
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

/// By task, then by index.
fn order(pod: &PodItem) -> (String, u64, String) {
    let label = |key: &str| pod.metadata.labels.get(key).cloned().unwrap_or_default();
    let index = label(labels::TASK_INDEX).parse().unwrap_or(u64::MAX);
    (label(labels::TASK_SPEC), index, pod.metadata.name.clone())
}

fn prefix(pod: &PodItem) -> String {
    format!("[{}] ", pod.metadata.name)
}

fn first_container(pod: &PodItem) -> &str {
    let first = pod.spec.containers.first();
    first.map_or("", |container| container.name.as_str())
}

/// What to ask for.
fn parameters(args: &LogsArgs, pod: &PodItem) -> String {
    let container = match args.container.as_str() {
        "" => first_container(pod),
        given => given,
    };
    let mut text = format!("container={}", encoded(container));
    if args.follow {
        text.push_str("&follow=true");
    }
    if args.timestamps {
        text.push_str("&timestamps=true");
    }
    if let Some(lines) = args.tail {
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
    let opened = api.log(&meta.namespace, &meta.name, &parameters(args, pod)).await;
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
pub enum News {
    /// A line, without its end.
    Line {
        /// The pod.
        pod: String,
        /// The line.
        line: Vec<u8>,
    },
    /// There is no more.
    End,
}

async fn follow(api: &Api, args: &LogsArgs, job: &str, scope: Scope, out: &mut Out) -> Result<u8, Failure> {
    let mut pods = Live::<PodItem>::new(api, scope);
    let (sender, mut news) = mpsc::channel(1000);
    let (mut followed, mut open) = (BTreeSet::new(), 0_usize);
    let mut is_listed = false;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            change = pods.next() => match change {
                Change::Applied(pod) if pod.status.phase != "Pending" && followed.insert(pod.metadata.uid.clone()) => {
                    open += 1;
                    let parameters = parameters(args, &pod);
                    tokio::spawn(follow_pod(api.clone(), parameters, pod, sender.clone()));
                }
                Change::Listed => is_listed = true,
                Change::Trouble(failure) if !is_listed => return Err(failure),
                Change::Applied(_) | Change::Gone(_) | Change::Trouble(_) => {}
            },
            Some(news) = news.recv() => match news {
                News::Line { pod, line } => {
                    write_line(out, &format!("[{pod}] "), &line)?;
                    out.flush()?;
                }
                News::End => open -= 1,
            },
            _ = look.tick() => {
                if is_listed && open == 0 && is_over(api, &args.namespace.namespace, job).await? {
                    return Ok(0);
                }
            }
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

/// Follows a pod to its end. A container that is about to start is waited for.
pub async fn follow_pod(api: Api, parameters: String, pod: PodItem, news: mpsc::Sender<News>) {
    let meta = &pod.metadata;
    let say = |line: Vec<u8>| News::Line {
        pod: meta.name.clone(),
        line,
    };
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
            Err(error) if is_not_started(&error) && !pod.is_over() => tokio::time::sleep(AGAIN).await,
            Err(error) => {
                let _ = news.send(say(format!("(no log: {error})").into_bytes())).await;
                break;
            }
        }
    }
    let _ = news.send(News::End).await;
}
