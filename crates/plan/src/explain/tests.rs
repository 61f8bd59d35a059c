//! Ten situations: the reason that a person would give comes first, and every change that is suggested starts the job.

use super::*;
use crate::cluster::Reader;
use crate::session::configuration;
use crate::source::Source;

mod properties;
mod situations;

/// The moment of all tests.
const NOW: Time = Time::from_unix_seconds(1_700_000_000);

fn cluster(objects: &[String]) -> Cluster {
    let mut reader = Reader::with_jobs();
    reader
        .add(&Source::from_text("objects", objects.join("\n---\n")))
        .unwrap();
    let mut cluster = reader.finish().unwrap();
    cluster.complete(queues::DEFAULT);
    cluster
}

fn conf_of(text: &str) -> Conf {
    Conf::new(configuration("conf", text).unwrap(), NOW)
}

fn conf() -> Conf {
    conf_of(SchedulerConf::default_text())
}

fn node(name: &str, cpu: u32, rest: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}}}}}, \
         spec: {{{rest}}}, status: {{allocatable: {{cpu: {cpu}, memory: 64Gi, pods: 110}}}}}}"
    )
}

fn queue(name: &str, spec: &str, state: &str) -> String {
    format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}, spec: {{{spec}}}, \
         status: {{state: {state}}}}}"
    )
}

fn class(name: &str, value: i32) -> String {
    format!(
        "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: {name}}}, value: {value}}}"
    )
}

/// A task of a Job: `rest` goes to the task, `spec` to its pods.
fn task(name: &str, replicas: u32, cpu: &str, rest: &str, spec: &str) -> String {
    format!(
        "{{name: {name}, replicas: {replicas}, {rest} template: {{spec: {{{spec} \
         containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}"
    )
}

/// A Job that its controller has seen, but whose PodGroup is not there yet.
fn job(name: &str, minimum: u32, rest: &str, tasks: &[String]) -> String {
    format!(
        "{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: {name}, namespace: ns, uid: u-{name}, \
         creationTimestamp: '2023-11-14T22:00:00Z'}}, spec: {{schedulerName: volcano, minAvailable: {minimum}, {rest} \
         tasks: [{}]}}, status: {{state: {{phase: Pending}}}}}}",
        tasks.join(", ")
    )
}

fn group(name: &str, queue: &str, minimum: u32, phase: &str, rest: &str) -> String {
    format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {name}, namespace: ns, \
         creationTimestamp: '2023-11-14T21:00:00Z'}}, \
         spec: {{queue: {queue}, minMember: {minimum}, {rest}}}, status: {{phase: {phase}}}}}"
    )
}

/// A pod of a PodGroup: on a node it runs, else it waits.
fn pod(group: &str, index: u32, cpu: &str, node: &str, rest: &str) -> String {
    let phase = if node.is_empty() { "Pending" } else { "Running" };
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {group}-{index}, namespace: ns, \
         annotations: {{scheduling.k8s.io/group-name: {group}}}}}, \
         spec: {{schedulerName: volcano, nodeName: '{node}', {rest} \
         containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}, status: {{phase: {phase}}}}}"
    )
}

/// A pod of a Job that waits.
fn own_pod(job: &str, task: &str, index: u32, cpu: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {job}-{task}-{index}, namespace: ns, \
         annotations: {{scheduling.k8s.io/group-name: {job}-u-{job}, volcano.sh/task-spec: {task}}}}}, \
         spec: {{schedulerName: volcano, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}, \
         status: {{phase: Pending}}}}"
    )
}

/// The explanation, with every suggestion tried once more from the objects on.
fn checked(objects: &[String], conf: &Conf, name: &str) -> Explanation {
    let cluster = cluster(objects);
    let key = JobKey::new("ns", name);
    let explanation = explain(&cluster, conf, &key).unwrap();
    check_suggestions(&cluster, conf, &key, &explanation);
    explanation
}

fn check_suggestions(cluster: &Cluster, conf: &Conf, key: &JobKey, explanation: &Explanation) {
    for suggestion in &explanation.suggestions {
        let changed = cluster.changed(&suggestion.changes).unwrap();
        let after = explain(&changed, conf, key).unwrap();
        assert!(
            matches!(after.state, State::Starting { .. }),
            "{explanation}\nwith {} it does not start:\n{after}",
            suggestion.text
        );
    }
}
