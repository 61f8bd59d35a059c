//! `vcctl pod list`: pods of a Job, of a queue, or of any Job.

use super::status::PodItem;
use crate::api::{Api, Scope};
use crate::args::{AllNamespacesArgs, ConnectArgs, IgnoredArgs, ListingArgs, NamespaceArgs};
use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::{Column, Format, Out, age, times};
use volcano_api::names::{annotations, kinds, labels};

/// List the pods of Jobs and queues
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// Only pods of this queue
    #[arg(
        long,
        short = 'q',
        value_name = "QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    queue: String,
    /// Only pods of this Job
    #[arg(
        long,
        short = 'j',
        value_name = "JOB",
        default_value = "",
        hide_default_value = true
    )]
    job: String,
    #[command(flatten)]
    namespace: NamespaceArgs,
    #[command(flatten)]
    all: AllNamespacesArgs,
    #[command(flatten)]
    how: ListingArgs,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    ignored: IgnoredArgs,
}

/// Runs the command.
pub async fn run(args: &ListArgs, out: &mut Out) -> Result<u8, Failure> {
    let api = Api::connect(&args.connect).await?;
    let all = args.all.all_namespaces;
    let namespace = if all { "" } else { &args.namespace.namespace };
    let scope = Scope::new(kinds::POD, namespace).labelled(&selector(args));
    if !args.job.is_empty() && !args.queue.is_empty() {
        check_queue(&api, scope.clone(), args).await?;
    }
    let is_wide = args.how.output.output == Some(Format::Wide);
    let by_queue = args.job.is_empty() && !args.queue.is_empty();
    let listing = Listing::<PodItem> {
        scope,
        how: &args.how,
        columns: columns(all, is_wide),
        state: Some(if all { 3 } else { 2 }),
        order: if all { 2 } else { 0 },
        keep: &|pod| !by_queue || is_of_queue(pod, &args.queue),
        // A list that goes on has pods that were made after its beginning.
        row: &|pod| row(pod, all, is_wide, times::now()),
        bare_header: false,
    };
    listing.show(&api, out).await
}

/// The labels that pods must have: those of a Job or of any, and what the user asks for besides. Pods of a queue may
/// have an annotation instead of the label, so that all are looked at.
fn selector(args: &ListArgs) -> String {
    let job = match (args.job.as_str(), args.queue.as_str()) {
        ("", "") => labels::JOB_NAME.to_owned(),
        ("", _) => String::new(),
        (job, _) => format!("{} in ({job})", labels::JOB_NAME),
    };
    let parts = [job, args.how.label_selector.clone()];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(",")
}

fn is_of_queue(pod: &PodItem, queue: &str) -> bool {
    let meta = &pod.metadata;
    let is = |value: Option<&String>| value.is_some_and(|value| value == queue);
    is(meta.labels.get(labels::QUEUE_NAME)) || is(meta.annotations.get(annotations::SCHEDULING_QUEUE_NAME))
}

/// A Job and a queue that do not belong together are a mistake.
async fn check_queue(api: &Api, scope: Scope, args: &ListArgs) -> Result<(), Failure> {
    let pods: Vec<PodItem> = api.list(scope).await?;
    let elsewhere = |pod: &PodItem| {
        pod.metadata
            .labels
            .get(labels::QUEUE_NAME)
            .is_none_or(|queue| *queue != args.queue)
    };
    if pods.iter().any(elsewhere) {
        return Err(Failure::new(format!(
            "the input vcjob {} does not match the queue {}",
            args.job, args.queue
        )));
    }
    Ok(())
}

fn columns(all: bool, is_wide: bool) -> Vec<Column> {
    let column = |header| Column::spaced(header, 2, 8);
    let mut columns = vec![
        column("Name"),
        column("Ready"),
        column("Status").state(),
        column("Restart"),
        column("Age"),
    ];
    if all {
        columns.insert(0, column("Namespace"));
    }
    if is_wide {
        columns.extend([column("Node"), column("Task"), column("Queue")]);
    }
    columns
}

fn row(pod: &PodItem, all: bool, is_wide: bool, now: volcano_api::time::Time) -> Vec<String> {
    let (meta, shown) = (&pod.metadata, pod.shown(now));
    let mut row = vec![
        meta.name.clone(),
        shown.ready,
        shown.status,
        shown.restarts,
        age::since(now, meta.creation_timestamp),
    ];
    if all {
        row.insert(0, meta.namespace.clone());
    }
    if is_wide {
        let label = |key: &str| meta.labels.get(key).cloned().unwrap_or_default();
        let queue = meta.annotations.get(annotations::SCHEDULING_QUEUE_NAME).cloned();
        row.push(pod.spec.node_name.clone());
        row.push(label(labels::TASK_SPEC));
        row.push(queue.unwrap_or_else(|| label(labels::QUEUE_NAME)));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Answer, Fake};
    use crate::output::Table;
    use serde_json::json;
    use volcano_api::time::{GoDuration, Time};

    fn pod(namespace: &str, name: &str, created: Time) -> serde_json::Value {
        json!({"metadata": {"namespace": namespace, "name": name, "creationTimestamp": created,
            "resourceVersion": "1"}, "status": {"phase": "Running"}})
    }

    #[tokio::test]
    async fn pods_of_all_namespaces_are_in_the_order_of_these_and_of_names() {
        let of = |namespace, name| pod(namespace, name, Time::EPOCH);
        // As the server has them: by `namespace/name`.
        let pods = [of("team-a", "x"), of("team", "b"), of("team", "a")];
        let fake = Fake::serve(move |path| match path.contains("watch=true") {
            true => Answer::stream(&[]),
            false => Answer::list(&pods),
        })
        .await;
        let (listed, _) = fake.vcctl(&["pod", "list", "-A"]).await;
        let followed = fake.vcctl_until(&["pod", "list", "-A", "-w"], "team-a").await;
        for printed in [listed, followed] {
            let names = printed
                .lines()
                .skip(1)
                .map(|line| line.split_whitespace().take(2));
            let names: Vec<String> = names.map(|words| words.collect::<Vec<_>>().join("/")).collect();
            assert_eq!(names, ["team/a", "team/b", "team-a/x"]);
        }
    }

    #[tokio::test]
    async fn a_pod_that_comes_later_has_an_age() {
        let begun = times::now();
        let fake = Fake::serve(move |path| {
            let is_later = path.contains("watch=true");
            if is_later {
                // Ages know a second: only then it is younger than the list.
                std::thread::sleep(std::time::Duration::from_millis(2500));
            }
            match is_later {
                true => Answer::stream(&[(
                    "ADDED",
                    pod("ns", "new", begun.saturating_add(GoDuration::from_seconds(2))),
                )]),
                false => Answer::list(&[]),
            }
        })
        .await;
        let printed = fake.vcctl_until(&["pod", "list", "-n", "ns", "-w"], "new").await;
        assert!(!printed.contains("<invalid>"), "{printed}");
    }

    #[test]
    fn columns_are_as_wide_as_their_values_ask_for() {
        let (created, now) = (Time::from_unix_seconds(1_000), Time::from_unix_seconds(1_065));
        let mut table = Table::new(columns(false, true));
        let item = serde_json::from_value(pod("ns", "train-0", created)).unwrap();
        table.push(row(&item, false, true, now));
        let lines = table.lines();
        assert_eq!(
            lines,
            "Name           Ready      Status         Restart  Age        Node    Task    Queue   \n\
             train-0        0/0        Running        0        65s                                \n"
        );
    }
}
