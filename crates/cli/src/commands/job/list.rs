//! `vcctl job list`, and the table of `vjobs`.

use crate::api::{Api, Scope};
use crate::args::{AllNamespacesArgs, ConnectArgs, IgnoredArgs, ListingArgs, NamespaceArgs};
use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::live::{Item, Key};
use crate::output::{Column, Format, Out, age, times};
use serde::Deserialize;
use volcano_api::core::{Labels, null_default};
use volcano_api::names::{kinds, labels};

/// List Jobs
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// Only Jobs of this queue
    #[arg(
        long,
        short = 'q',
        value_name = "QUEUE",
        default_value = "",
        hide_default_value = true
    )]
    queue: String,
    /// Only Jobs of this scheduler
    #[arg(
        long,
        short = 'S',
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    scheduler: String,
    /// Only Jobs with this in their name
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    selector: String,
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
    let query = Query {
        namespace: &args.namespace.namespace,
        all_namespaces: args.all.all_namespaces,
        queue: &args.queue,
        scheduler: &args.scheduler,
        part: &args.selector,
        how: &args.how,
        bare_header: false,
    };
    query.show(&api, out).await
}

/// Which Jobs.
pub struct Query<'a> {
    /// Of this namespace.
    pub namespace: &'a str,
    /// Of all namespaces.
    pub all_namespaces: bool,
    /// Of this queue; of any when empty.
    pub queue: &'a str,
    /// Of this scheduler; of any when empty.
    pub scheduler: &'a str,
    /// With this in their name.
    pub part: &'a str,
    /// How they are shown.
    pub how: &'a ListingArgs,
    /// Whether the header is printed when no Job is left.
    pub bare_header: bool,
}

impl Query<'_> {
    /// Asks and prints.
    pub async fn show(&self, api: &Api, out: &mut Out) -> Result<u8, Failure> {
        let namespace = if self.all_namespaces { "" } else { self.namespace };
        let is_wide = self.how.output.output == Some(Format::Wide);
        let listing = Listing::<JobItem> {
            scope: Scope::new(kinds::JOB, namespace).labelled(&self.how.label_selector),
            how: self.how,
            columns: columns(self.all_namespaces, is_wide),
            state: Some(if self.all_namespaces { 3 } else { 2 }),
            order: 0,
            keep: &|job| self.wants(job),
            row: &|job| job.row(self.all_namespaces, is_wide),
            bare_header: self.bare_header,
        };
        listing.show(api, out).await
    }

    fn wants(&self, job: &JobItem) -> bool {
        let is = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
        is(self.queue, &job.spec.queue)
            && is(self.scheduler, &job.spec.scheduler_name)
            && job.metadata.name.contains(self.part)
    }
}

fn columns(all_namespaces: bool, is_wide: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::longest("Name", 3),
        Column::fixed("Creation", 15),
        Column::fixed("Phase", 12).state(),
        Column::fixed("JobType", 12),
        Column::fixed("Replicas", 12),
        Column::fixed("Min", 6),
        Column::fixed("Pending", 10),
        Column::fixed("Running", 10),
        Column::fixed("Succeeded", 12),
        Column::fixed("Failed", 10),
        Column::fixed("Unknown", 12),
        Column::fixed("RetryCount", 10),
    ];
    if all_namespaces {
        columns.insert(0, Column::longest("Namespace", 3));
    }
    if is_wide {
        // Alone it is exactly as wide as its header.
        columns.pop();
        columns.push(Column::longest("RetryCount", 3));
        columns.push(Column::longest("Queue", 3));
        columns.push(Column::longest("Scheduler", 3));
        columns.push(Column::longest("Age", 3));
    }
    columns
}

/// What is printed of a Job; pod templates are not even read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct JobItem {
    /// Metadata.
    pub metadata: JobMeta,
    /// What runs.
    pub spec: JobSpecItem,
    /// How far it is.
    pub status: JobStatusItem,
}

/// Metadata with labels.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobMeta {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Version.
    pub resource_version: String,
    /// When it was made.
    pub creation_timestamp: Option<volcano_api::time::Time>,
    /// Labels.
    #[serde(deserialize_with = "null_default")]
    pub labels: Labels,
}

/// What runs, as numbers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobSpecItem {
    /// The queue.
    pub queue: String,
    /// The scheduler.
    pub scheduler_name: String,
    /// The groups of pods.
    #[serde(deserialize_with = "null_default")]
    pub tasks: Vec<TaskItem>,
}

/// A group of pods.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TaskItem {
    /// How many.
    pub replicas: i64,
}

/// How far a Job is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobStatusItem {
    /// The phase.
    #[serde(deserialize_with = "null_default")]
    pub state: StateItem,
    /// The minimum in force.
    pub min_available: i64,
    /// Pods that wait.
    pub pending: i64,
    /// Pods that run.
    pub running: i64,
    /// Pods that succeeded.
    pub succeeded: i64,
    /// Pods that failed.
    pub failed: i64,
    /// Pods in an unknown phase.
    pub unknown: i64,
    /// Restarts.
    pub retry_count: i64,
}

/// The phase of a Job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StateItem {
    /// The phase.
    pub phase: String,
}

impl Item for JobItem {
    fn key(&self) -> Key {
        Key {
            namespace: self.metadata.namespace.clone(),
            name: self.metadata.name.clone(),
            version: self.metadata.resource_version.clone(),
        }
    }
}

impl JobItem {
    /// Pods of all tasks.
    pub fn replicas(&self) -> i64 {
        self.spec.tasks.iter().map(|task| task.replicas).sum()
    }

    fn row(&self, all_namespaces: bool, is_wide: bool) -> Vec<String> {
        let (meta, status) = (&self.metadata, &self.status);
        let kind = meta.labels.get(labels::JOB_TYPE).filter(|kind| !kind.is_empty());
        let mut row = vec![
            meta.name.clone(),
            times::date(meta.creation_timestamp),
            status.state.phase.clone(),
            kind.cloned().unwrap_or_else(|| "Batch".to_owned()),
            self.replicas().to_string(),
            status.min_available.to_string(),
            status.pending.to_string(),
            status.running.to_string(),
            status.succeeded.to_string(),
            status.failed.to_string(),
            status.unknown.to_string(),
            status.retry_count.to_string(),
        ];
        if all_namespaces {
            row.insert(0, meta.namespace.clone());
        }
        if is_wide {
            row.push(self.spec.queue.clone());
            row.push(self.spec.scheduler_name.clone());
            row.push(age::since(times::now(), meta.creation_timestamp));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_what_scripts_read() {
        let job: JobItem = serde_json::from_value(json!({
            "metadata": {"namespace": "ns", "name": "train", "creationTimestamp": null,
                "labels": {"volcano.sh/job-type": "MPI"}},
            "spec": {"tasks": [{"replicas": 2, "template": {"spec": {}}}, {"replicas": 3}]},
            "status": {"state": {"phase": "Running", "lastTransitionTime": null}, "minAvailable": 4, "running": 5},
        }))
        .unwrap();
        let expected = [
            "ns",
            "train",
            "0001-01-01",
            "Running",
            "MPI",
            "5",
            "4",
            "0",
            "5",
            "0",
            "0",
            "0",
            "0",
        ];
        assert_eq!(job.row(true, false), expected);
        assert_eq!(columns(true, false).len(), expected.len());
        assert_eq!(columns(false, true).len(), job.row(false, true).len());
    }
}
