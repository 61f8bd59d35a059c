//! A Job as lines, two blanks for each level, a tab before each value.

use crate::output::times;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use volcano_api::batch::{Job, JobStatus, TaskSpec};
use volcano_api::quantity::Quantity;
use volcano_api::scheduling::PodGroup;

/// Which parts are shown.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    conditions: bool,
}

impl Parts {
    /// All of them.
    pub fn all() -> Self {
        Parts { conditions: true }
    }

    /// Without the phases so far, as `vjobs` shows a Job.
    pub fn without_conditions() -> Self {
        Parts { conditions: false }
    }
}

/// Lines at their levels.
#[derive(Default)]
struct Lines(String);

impl Lines {
    /// A line without a value.
    fn title(&mut self, level: usize, title: &str) {
        self.text(level, &format!("{title}:"));
    }

    /// A label and its value.
    fn value(&mut self, level: usize, label: &str, value: impl Display) {
        self.text(level, &format!("{label}\t{value}"));
    }

    /// A label and its value, when there is one.
    fn count(&mut self, level: usize, label: &str, value: i32) {
        if value > 0 {
            self.value(level, label, value);
        }
    }

    fn text(&mut self, level: usize, text: &str) {
        let _ = writeln!(self.0, "{:1$}{text}", "", level * 2);
    }
}

/// The lines of a Job.
pub fn job(job: &Job, parts: Parts) -> String {
    let mut lines = Lines::default();
    let meta = &job.metadata;
    lines.value(0, "Name:       ", &meta.name);
    lines.value(0, "Namespace:  ", &meta.namespace);
    lines.value(0, "Labels:     ", pairs(&meta.labels));
    lines.value(0, "Annotations:", pairs(&meta.annotations));
    lines.value(0, "API Version:", &job.api_version);
    lines.value(0, "Kind:       ", &job.kind);
    lines.title(0, "Metadata");
    lines.value(1, "Creation Timestamp:", times::full(meta.creation_timestamp));
    lines.value(1, "Generate Name:     ", &meta.generate_name);
    lines.value(1, "Generation:        ", meta.generation);
    lines.value(1, "Resource Version:  ", &meta.resource_version);
    lines.value(1, "UID:               ", &meta.uid);
    lines.title(0, "Spec");
    lines.value(1, "Min Available:     ", job.spec.min_available);
    lines.title(1, "Plugins");
    for (label, plugin) in [("Env:", "env"), ("Ssh:", "ssh")] {
        let arguments = job.spec.plugins.get(plugin).map(|list| list.join(" "));
        lines.value(2, label, format_args!("[{}]", arguments.unwrap_or_default()));
    }
    lines.value(1, "Scheduler Name:    ", &job.spec.scheduler_name);
    lines.title(1, "Tasks");
    for spec in &job.spec.tasks {
        task(&mut lines, spec);
    }
    lines.title(0, "Status");
    status(&mut lines, &job.status, parts);
    lines.0
}

/// Labels or annotations as JSON, in Go's spelling.
fn pairs(pairs: &BTreeMap<String, String>) -> String {
    if pairs.is_empty() {
        return "<none>".to_owned();
    }
    let text = serde_json::to_string(pairs).unwrap_or_default();
    // Go writes these so that the text can stand in a web page. They occur in strings only.
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "Cri . Cci . Io / Container - Type:          ",
        "cri.cci.io/container-type",
    ),
    (
        "Kubernetes . Io / Availablezone:            ",
        "kubernetes.io/availablezone",
    ),
    (
        "Network . Alpha . Kubernetes . Io / Network:",
        "network.alpha.kubernetes.io/network",
    ),
];

fn task(lines: &mut Lines, task: &TaskSpec) {
    lines.value(2, "Name:", &task.name);
    lines.value(2, "Replicas:", task.replicas);
    lines.title(2, "Template");
    lines.title(3, "Metadata");
    lines.title(4, "Annotations");
    for (label, key) in ANNOTATIONS {
        lines.value(5, label, task.template.annotation(key).unwrap_or_default());
    }
    lines.value(4, "Creation Timestamp:", times::full(None));
    lines.title(3, "Spec");
    let spec = task.template.spec();
    let field = |name: &str| spec.and_then(|spec| spec.get(name)).unwrap_or(&Value::Null);
    lines.title(4, "Containers");
    for one in each(field("containers")) {
        container(lines, one);
    }
    lines.title(4, "Image Pull Secrets");
    for secret in each(field("imagePullSecrets")) {
        lines.value(5, "Name:     ", text(&secret["name"]));
    }
    lines.value(4, "Restart Policy:   ", text(field("restartPolicy")));
}

fn container(lines: &mut Lines, container: &Value) {
    lines.title(5, "Command");
    for word in each(&container["command"]) {
        lines.text(6, text(word));
    }
    lines.value(5, "Image:", text(&container["image"]));
    lines.value(5, "Name: ", text(&container["name"]));
    lines.title(5, "Ports");
    for port in each(&container["ports"]) {
        lines.value(6, "Container Port:", port["containerPort"].as_i64().unwrap_or(0));
        lines.value(6, "Name:          ", text(&port["name"]));
    }
    lines.title(5, "Resources");
    let resources = &container["resources"];
    for (label, amounts) in [
        ("Limits", &resources["limits"]),
        ("Requests", &resources["requests"]),
    ] {
        lines.title(6, label);
        lines.value(7, "Cpu:   ", amount(&amounts["cpu"]));
        lines.value(7, "Memory:", amount(&amounts["memory"]));
    }
    lines.value(6, "Working Dir:", text(&container["workingDir"]));
}

/// An amount in its shortest form; zero when there is none.
fn amount(value: &Value) -> Quantity {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Quantity::default(),
    };
    Quantity::parse(&text).unwrap_or_default()
}

fn status(lines: &mut Lines, status: &JobStatus, parts: Parts) {
    lines.count(1, "Succeeded:    ", status.succeeded);
    lines.count(1, "Pending:      ", status.pending);
    lines.count(1, "Running:      ", status.running);
    lines.count(1, "Failed:       ", status.failed);
    lines.count(1, "Terminating:  ", status.terminating);
    lines.count(1, "Unknown:      ", status.unknown);
    lines.count(1, "RetryCount:   ", status.retry_count);
    lines.count(1, "Min Available:", status.min_available);
    lines.count(1, "Version:      ", status.version);
    lines.title(1, "State");
    lines.value(2, "Phase:", &status.state.phase);
    if !status.controlled_resources.is_empty() {
        lines.title(1, "Controlled Resources");
        for (key, value) in &status.controlled_resources {
            lines.value(2, &format!("{key}: "), value);
        }
    }
    if parts.conditions && !status.conditions.is_empty() {
        lines.title(1, "Conditions");
        lines.text(2, "Status\tTransitionTime");
        for condition in &status.conditions {
            let time = match condition.last_transition_time {
                Some(time) => times::full(Some(time)),
                None => "<nil>".to_owned(),
            };
            lines.value(2, &format!("{} ", condition.status), format_args!("{time} "));
        }
    }
}

/// The lines of a PodGroup: where the scheduler is with it, and what it says.
pub fn group(group: &PodGroup) -> String {
    let mut lines = Lines::default();
    let (spec, status) = (&group.spec, &group.status);
    lines.title(0, "PodGroup");
    lines.value(1, "Name:      ", &group.metadata.name);
    lines.value(1, "Queue:     ", &spec.queue);
    lines.value(1, "Phase:     ", &status.phase);
    lines.value(1, "Min Member:", spec.min_member);
    if !status.conditions.is_empty() {
        lines.title(1, "Conditions");
        for condition in &status.conditions {
            let time = times::full(condition.last_transition_time);
            lines.value(
                2,
                &format!("{}={}", condition.r#type, condition.status),
                format_args!("{time}\t{}: {}", condition.reason, condition.message),
            );
        }
    }
    lines.0
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_json_as_go_writes_it() {
        assert_eq!(pairs(&BTreeMap::new()), "<none>");
        let labels = [
            ("b".to_owned(), "<&>".to_owned()),
            ("a".to_owned(), "1".to_owned()),
        ]
        .into();
        assert_eq!(pairs(&labels), r#"{"a":"1","b":"\u003c\u0026\u003e"}"#);
    }

    #[test]
    fn a_job_with_everything() {
        let text = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: ns, uid: u, resourceVersion: "7", generation: 2, labels: {team: a}}
spec:
  minAvailable: 2
  schedulerName: volcano
  plugins: {env: [], ssh: ["--no-root", "-x"], svc: []}
  tasks:
  - name: worker
    replicas: 2
    template:
      metadata: {annotations: {kubernetes.io/availablezone: z1}}
      spec:
        restartPolicy: OnFailure
        imagePullSecrets: [{name: registry}]
        containers:
        - name: main
          image: busybox
          command: [sh, -c, "sleep 1"]
          workingDir: /work
          ports: [{name: http, containerPort: 80}]
          resources: {limits: {cpu: 1000m}, requests: {cpu: 0.5, memory: 1024Mi}}
status:
  state: {phase: Running}
  running: 2
  minAvailable: 2
  controlledResources: {plugin-env: env}
  conditions: [{status: Pending, lastTransitionTime: null}, {status: Running}]
"#;
        let parsed: Job = serde_saphyr::from_str(text).unwrap();
        insta::assert_snapshot!(job(&parsed, Parts::all()).replace('\t', "⇥"));
        let less = job(&parsed, Parts::without_conditions());
        assert!(!less.contains("Conditions"));
    }

    #[test]
    fn every_number_that_is_not_zero_has_its_line() {
        let parsed: Job = serde_json::from_value(serde_json::json!({"status": {
            "state": {"phase": "Restarting"}, "succeeded": 1, "pending": 2, "running": 3, "failed": 4, "terminating": 5,
            "unknown": 6, "retryCount": 7, "minAvailable": 8, "version": 9}}))
        .unwrap();
        let text = job(&parsed, Parts::all());
        let (_, status) = text.split_once("Status:\n").unwrap();
        assert_eq!(
            status,
            "  Succeeded:    \t1\n  Pending:      \t2\n  Running:      \t3\n  Failed:       \t4\n  \
             Terminating:  \t5\n  Unknown:      \t6\n  RetryCount:   \t7\n  Min Available:\t8\n  \
             Version:      \t9\n  State:\n    Phase:\tRestarting\n"
        );
    }
}
