//! What the admission webhook makes of a new Job: its defaults, and why it would refuse it.

use crate::cluster::Cluster;
use serde_json::{Value, json};
use std::sync::Arc;
use volcano_admission::{Lookups, Options, Patch, review};
use volcano_api::batch::Job;
use volcano_api::core::Labels;
use volcano_api::names::admission::{REVIEW_API_VERSION, REVIEW_KIND, paths};
use volcano_api::names::kinds;
use volcano_api::scheduling::{Queue, QueueState};

/// The Job with its defaults.
///
/// # Errors
/// What the webhook says if it would refuse it.
pub fn admit(job: &Job, cluster: &Cluster, scheduler_name: &str) -> Result<Job, String> {
    let cluster = Known(cluster);
    let options = Options {
        scheduler_names: vec![scheduler_name.to_owned()],
        ..Options::default()
    };
    let mut object = serde_json::to_value(job).map_err(|error| error.to_string())?;
    let defaults = ask(paths::JOBS_MUTATE, &object, &cluster, &options)?;
    defaults.apply(&mut object).map_err(|error| error.to_string())?;
    ask(paths::JOBS_VALIDATE, &with_some_pods(&object), &cluster, &options)?;
    serde_json::from_value(object).map_err(|error| error.to_string())
}

/// The Job with templates that nothing can be said against: what its containers run is left out of many a plan.
fn with_some_pods(job: &Value) -> Value {
    let mut job = job.clone();
    let tasks = job["spec"]["tasks"].as_array_mut().into_iter().flatten();
    for task in tasks.filter_map(Value::as_object_mut) {
        let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
        task.insert("template".to_owned(), template);
        task.remove("topologyPolicy"); // It asks for whole processors in the template.
    }
    job
}

fn ask(path: &str, job: &Value, cluster: &Known<'_>, options: &Options) -> Result<Patch, String> {
    let request = json!({
        "apiVersion": REVIEW_API_VERSION,
        "kind": REVIEW_KIND,
        "request": {
            "operation": "CREATE",
            "resource": {"group": kinds::JOB.group, "version": kinds::JOB.version, "resource": kinds::JOB.plural},
            "name": job["metadata"]["name"],
            "namespace": job["metadata"]["namespace"],
            "object": job,
        },
    });
    let answer = review(path, request.to_string().as_bytes(), cluster, options);
    match answer.allowed {
        true => Ok(answer.patch),
        false => Err(answer.message.trim().trim_end_matches(';').to_owned()),
    }
}

/// The input as the rules see it.
struct Known<'a>(&'a Cluster);

impl Known<'_> {
    /// A queue of the input. One without a state is a new one, which its controller opens.
    fn opened(queue: &Queue) -> Arc<Queue> {
        let mut queue = queue.clone();
        if queue.status.state == QueueState::Unset {
            queue.status.state = QueueState::Open;
        }
        Arc::new(queue)
    }
}

impl Lookups for Known<'_> {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.0.queue(name).map(Self::opened)
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        self.0.queues().map(Self::opened).collect()
    }

    fn namespace_annotations(&self, _: &str) -> Option<Labels> {
        None // Only PodGroups ask, and a Job's names its queue.
    }

    fn has_time_zone(&self, _: &str) -> bool {
        false // Only CronJobs ask.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn admitted(spec: Value, cluster: &Cluster) -> Result<Job, String> {
        let job: Job = serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": spec})).unwrap();
        admit(&job, cluster, "volcano")
    }

    fn cluster(text: &str) -> Cluster {
        let mut cluster = Cluster::exactly(&Source::from_text("t", text)).unwrap();
        cluster.complete("default");
        cluster
    }

    #[test]
    fn what_is_left_open_is_filled_in() {
        let tasks = json!({"tasks": [
            {"replicas": 3},
            {"name": "w", "replicas": 4, "minAvailable": 1},
            {"replicas": 8, "partitionPolicy": {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}},
        ]});
        let job = admitted(tasks, &cluster("")).unwrap();
        assert_eq!(
            (job.spec.queue.as_str(), job.spec.scheduler_name.as_str()),
            ("default", "volcano")
        );
        assert_eq!((job.spec.max_retry, job.spec.min_available), (3, 10));
        let tasks = job.spec.tasks.iter();
        let tasks: Vec<_> = tasks
            .map(|task| (task.name.as_str(), task.min_available))
            .collect();
        assert_eq!(
            tasks,
            [("default0", Some(3)), ("w", Some(1)), ("default2", Some(6))]
        );
    }

    #[test]
    fn a_job_that_cannot_be_stored_is_refused_in_the_words_of_the_webhook() {
        let cluster = cluster(
            "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: closed}, status: {state: Closed}}\n---\n\
             {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: child}, spec: {parent: team}}\n---\n\
             {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team}}",
        );
        let cases = [
            (json!({}), "No task specified in job spec"),
            (
                json!({"tasks": [{"name": "a", "replicas": 1, "minAvailable": 2}], "minAvailable": 1}),
                "'minAvailable' is greater than 'replicas' in task: a, job: j",
            ),
            (
                json!({"tasks": [{"name": "a", "replicas": 1}], "minAvailable": 2, "queue": "nope"}),
                "job 'minAvailable' should not be greater than total replicas in tasks; \
                 unable to find job queue: queue.scheduling.volcano.sh \"nope\" not found",
            ),
            (
                json!({"tasks": [{"name": "a", "replicas": 1, "dependsOn": {"name": ["b"]}}]}),
                "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)",
            ),
            (
                json!({"queue": "root", "tasks": [{"replicas": 1}]}),
                "can not submit job to root queue",
            ),
            (
                json!({"queue": "closed", "tasks": [{"replicas": 1}]}),
                "can only submit job to queue with state `Open`, queue `closed` status is `Closed`",
            ),
            (
                json!({"queue": "team", "tasks": [{"replicas": 1}]}),
                "can only submit job to leaf queue, queue `team` has 1 child queues",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(admitted(spec, &cluster).unwrap_err(), expected);
        }
    }
}
