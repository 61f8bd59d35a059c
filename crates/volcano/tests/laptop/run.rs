//! `volcano run`.

use crate::process::{Running, volcano, volcano_reading};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// A Job of one task whose simulated pods take a moment, with more fields of the specification.
fn job(name: &str, replicas: u32, cpu: &str, annotations: &str, more: &str) -> String {
    format!(
        "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  schedulerName: volcano
  minAvailable: {replicas}
  {more}
  tasks:
  - name: worker
    replicas: {replicas}
    template:
      metadata: {{annotations: {{{annotations}}}}}
      spec:
        restartPolicy: Never
        containers:
        - {{name: main, image: none, command: [sleep, '1'], resources: {{requests: {{cpu: '{cpu}'}}}}}}
"
    )
}

const QUICK: &str = "volcano.sh/simulated-duration: 100ms";
const LONG: &str = "volcano.sh/simulated-duration: 1h";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Words of the lines that begin with one.
fn rows<'a>(text: &'a str, start: &str) -> Vec<Vec<&'a str>> {
    let lines = text.lines().filter(|line| line.starts_with(start));
    lines.map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn a_job_runs_to_its_end() {
    let folder = folder(&[("job.yaml", &job("train", 2, "6", QUICK, ""))]);
    let done = volcano(&["run", "--nodes", "2", "job.yaml"], folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    assert!(
        done.out.contains("\njob train Completed: waited 0."),
        "{}",
        done.all()
    );
    let pods = rows(&done.out, "train-worker-");
    let shown: Vec<_> = pods.iter().map(|row| &row[..3]).collect();
    // Each node has room for one.
    let mut nodes: Vec<_> = shown.iter().map(|row| row[2]).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node-0", "node-1"], "{}", done.all());
    assert!(shown.iter().all(|row| row[1] == "Completed"), "{}", done.all());
    // Without a terminal there is a line for each change.
    assert!(done.err.contains("job train: "), "{}", done.all());
    assert!(!done.err.contains('\x1b'), "{}", done.all());
}

#[test]
fn a_job_that_fails_ends_with_its_exit_code() {
    let annotations = format!("{QUICK}, volcano.sh/simulated-exit-code: '3'");
    let more = "policies: [{event: PodFailed, action: AbortJob}]";
    let folder = folder(&[
        ("fails.yaml", &job("fails", 1, "1", &annotations, "maxRetry: 1")),
        ("aborts.yaml", &job("aborts", 1, "1", &annotations, more)),
    ]);
    let done = volcano(&["run", "--nodes", "1", "fails.yaml"], folder.path());
    assert_eq!(done.code, Some(2), "{}", done.all());
    assert!(done.out.contains("\njob fails Failed: "), "{}", done.all());
    assert!(
        done.out
            .contains("pod fails-worker-0: container main exited with 3\n"),
        "{}",
        done.all()
    );
    let done = volcano(&["run", "--nodes", "1", "aborts.yaml"], folder.path());
    assert_eq!(done.code, Some(4), "{}", done.all());
}

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let good = job("good", 1, "1", QUICK, "");
    let told = |text: &str| {
        let folder = folder(&[("jobs.yaml", &format!("{good}---\n{text}"))]);
        let done = volcano(&["run", "--nodes", "1", "jobs.yaml"], folder.path());
        assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{}", done.all());
        done.err
    };
    let err = told(&job("typo", 1, "1", QUICK, "minAvailible: 1"));
    assert!(
        err.starts_with("error: jobs.yaml, document 2 (Job typo): "),
        "{err}"
    );
    assert!(err.contains("unknown field \"spec.minAvailible\""), "{err}");
    let err = told(&job("large", 1, "1", QUICK, "").replace("minAvailable: 1", "minAvailable: 2"));
    assert!(err.contains("document 2 (Job large): "), "{err}");
    assert!(err.contains("minAvailable"), "{err}");
    let err = told(&job("lost", 1, "1", QUICK, "queue: nowhere"));
    assert!(
        err.contains("document 2 (Job lost): ") && err.contains("nowhere"),
        "{err}"
    );
    let err = told("apiVersion: example.com/v1\nkind: Other\nmetadata: {name: o}\n");
    assert!(
        err.contains("document 2 (Other o): the cluster has no kind Other in example.com/v1\nHint: "),
        "{err}"
    );
    let err = told("kind: Queue\nmetadata: {name: q}\n");
    assert_eq!(
        err,
        "error: jobs.yaml, document 2: apiVersion is missing, or not a text\n"
    );
    let err = told("a: [1\n");
    assert!(err.starts_with("error: jobs.yaml, document 2: "), "{err}");
}

#[test]
fn wrong_words_are_not_taken_for_a_job_that_failed() {
    let folder = folder(&[("job.yaml", &job("j", 1, "1", QUICK, ""))]);
    for words in [
        &["run"][..],
        &["run", "--what", "job.yaml"],
        &["run", "--nodes", "0", "job.yaml"],
        &["run", "--nodes", "1", "--cpu", "many", "job.yaml"],
        &["run", "--nodes", "1", "missing.yaml"],
        &["run", "--nodes", "1", "--kubeconfig", "x", "job.yaml"],
        &["run", "--gpu", "1", "--kubeconfig", "x", "job.yaml"],
        &["run", "--gpu", "1", "--context", "x", "job.yaml"],
    ] {
        let done = volcano(words, folder.path());
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(1), ""),
            "{words:?} {}",
            done.all()
        );
    }
    let done = volcano(&["run", "--kubeconfig", "missing", "job.yaml"], folder.path());
    assert_eq!(done.code, Some(255), "{}", done.all());
    assert!(done.err.contains("Hint: "), "{}", done.all());
}

#[test]
fn objects_of_any_kind_come_in_the_order_of_what_they_need() {
    let second = job(
        "second",
        2,
        "1",
        QUICK,
        "queue: team\n  priorityClassName: urgent",
    );
    let others = format!(
        "{second}---
apiVersion: v1
kind: Pod
metadata: {{name: lone, namespace: apart, annotations: {{{QUICK}}}}}
spec:
  schedulerName: volcano
  restartPolicy: Never
  containers: [{{name: main, image: none, resources: {{requests: {{cpu: '1'}}}}}}]
---
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: settings}}, data: {{a: b}}}}
- {{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: team}}, spec: {{weight: 1, parent: all}}}}
- {{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: all}}, spec: {{weight: 1}}}}
- {{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: default}}, spec: {{weight: 2}}}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: urgent}}
value: 100
"
    );
    let folder = folder(&[("a.yaml", &job("first", 1, "1", QUICK, "")), ("b.yaml", &others)]);
    let done = volcano(
        &["run", "--nodes", "1", "-n", "own", "a.yaml", "b.yaml"],
        folder.path(),
    );
    assert_eq!(done.code, Some(0), "{}", done.all());
    for line in [
        "job first Completed: ",
        "job second Completed: ",
        "pod lone Succeeded: ",
    ] {
        assert!(done.out.contains(&format!("\n{line}")), "{line}: {}", done.all());
    }
}

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}
";

const WIDGET: &str = "apiVersion: example.com/v1
kind: Widget
metadata: {name: first}
spec: {size: 3}
";

#[test]
fn objects_may_be_of_a_kind_that_is_defined_beside_them() {
    let text = format!(
        "{}---\n{WIDGET}---\n{DEFINITION}",
        job("train", 1, "1", QUICK, "")
    );
    let folder = folder(&[("all.yaml", &text)]);
    let done = volcano(&["run", "--nodes", "1", "-n", "own", "all.yaml"], folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    assert!(done.out.contains("\njob train Completed: "), "{}", done.all());
}

#[test]
fn a_definition_stays_in_a_cluster_that_refuses_the_rest() {
    let good = format!(
        "{DEFINITION}---\n{WIDGET}---\n{}",
        job("train", 1, "1", QUICK, "")
    );
    let bad = good.replace("size: 3", "sise: 3");
    let folder = folder(&[("good.yaml", &good), ("bad.yaml", &bad)]);
    let mut up = Running::start(&["up", "--nodes", "1"], folder.path());
    let kubeconfig = up.wait_kubeconfig();
    let run = |file: &str| {
        let words = ["run", "--kubeconfig", kubeconfig.to_str().unwrap(), file];
        volcano(&words, folder.path())
    };
    let done = run("bad.yaml");
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{}", done.all());
    assert!(
        done.err.starts_with(
            "CustomResourceDefinition widgets.example.com is in the cluster and stays there\n\
             error: bad.yaml, document 2 (Widget first): "
        ),
        "{}",
        done.all()
    );
    assert!(done.err.contains("unknown field \"spec.sise\""), "{}", done.all());
    // The Job was not created, and the definition is not in the way.
    let done = run("good.yaml");
    assert_eq!(done.code, Some(0), "{}", done.all());
    let threads = tokio::runtime::Runtime::new().unwrap();
    let stored = threads.block_on(async {
        let client = crate::kill::client(&kubeconfig).await;
        let path = "/apis/example.com/v1/namespaces/default/widgets/first";
        crate::kill::send(&client, "GET", path, &Value::Null).await
    });
    assert_eq!(stored.unwrap()["spec"]["size"], 3);
}

#[test]
fn the_first_that_does_not_complete_decides() {
    let fails = format!("{QUICK}, volcano.sh/simulated-exit-code: '1'");
    let text = format!(
        "{}---\n{}",
        job("good", 1, "1", QUICK, ""),
        job("bad", 1, "1", &fails, "maxRetry: 1")
    );
    let folder = folder(&[]);
    let done = volcano_reading(&["run", "--nodes", "1", "-"], folder.path(), &text);
    assert_eq!(done.code, Some(2), "{}", done.all());
    assert!(done.out.contains("\njob good Completed: "), "{}", done.all());
    assert!(done.out.contains("\njob bad Failed: "), "{}", done.all());
}

#[test]
fn what_would_never_start_is_explained_and_given_up() {
    let folder = folder(&[("job.yaml", &job("large", 9, "1", QUICK, ""))]);
    let words = ["run", "--nodes", "1", "--patience", "1s", "job.yaml"];
    let done = volcano(&words, folder.path());
    assert_eq!(done.code, Some(6), "{}", done.all());
    assert!(
        done.err.contains("the gang is too large for the cluster"),
        "{}",
        done.all()
    );
    assert!(done.err.contains("What would start it"), "{}", done.all());
    assert!(
        done.out.contains("\njob large does not start: waited "),
        "{}",
        done.all()
    );
}

/// A pod of its own, for a scheduler if it names one.
fn pod(name: &str, scheduler: &str, cpu: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{{QUICK}}}}}
spec:
  restartPolicy: Never
  containers: [{{name: main, image: none, resources: {{requests: {{cpu: '{cpu}'}}}}}}]
  {scheduler}
"
    )
}

#[test]
fn a_pod_of_its_own_runs_to_its_end_whoever_it_asks_for() {
    let text = format!(
        "{}---\n{}",
        pod("plain", "", "1"),
        pod("ours", "schedulerName: volcano", "1")
    );
    let folder = folder(&[("pods.yaml", &text)]);
    let done = volcano(&["run", "--nodes", "1", "pods.yaml"], folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    for line in ["\npod plain Succeeded: ", "\npod ours Succeeded: "] {
        assert!(done.out.contains(line), "{}", done.all());
    }
}

#[test]
fn pods_that_would_never_start_are_explained_and_given_up() {
    let text = [
        pod("ours", "schedulerName: volcano", "90"),
        pod("plain", "", "91"),
        pod("foreign", "schedulerName: another", "1"),
        // One that does not start keeps no other from being given up.
        job("large", 9, "1", QUICK, ""),
        job("fits", 1, "1", QUICK, ""),
    ];
    let folder = folder(&[("all.yaml", &text.join("---\n"))]);
    let words = [
        "run",
        "--nodes",
        "1",
        "--patience",
        "1s",
        "--timeout",
        "40s",
        "all.yaml",
    ];
    let done = volcano(&words, folder.path());
    assert_eq!(done.code, Some(6), "{}", done.all());
    for line in [
        "\npod ours does not start: ",
        "\npod plain does not start: ",
        "\npod foreign does not start: ",
        "\njob large does not start: ",
        "\njob fits Completed: ",
    ] {
        assert!(done.out.contains(line), "{line} {}", done.all());
    }
    let foreign = "pod foreign waits: no scheduler has looked at it; its schedulerName is \"another\"";
    assert!(done.err.contains(foreign), "{}", done.all());
    assert!(!done.err.contains("why cannot be said"), "{}", done.all());
    assert!(done.err.contains("What would start it"), "{}", done.all());
}

/// A Job that runs with one of its two pods; the other one fits no node.
fn half(annotations: &str) -> String {
    let small = job("half", 1, "1", annotations, "");
    let at = small.find("  - name: worker").unwrap();
    let (head, task) = small.split_at(at);
    let large = task
        .replace("name: worker", "name: large")
        .replace("cpu: '1'", "cpu: '90'");
    format!("{head}{task}{large}")
}

#[test]
fn a_part_of_a_running_job_that_never_starts_is_explained_and_given_up_at_the_end_of_the_rest() {
    let folder = folder(&[("long.yaml", &half(LONG)), ("quick.yaml", &half(QUICK))]);
    let run = |timeout: &str, file: &str| {
        let words = [
            "run",
            "--nodes",
            "1",
            "--patience",
            "1s",
            "--timeout",
            timeout,
            file,
        ];
        volcano(&words, folder.path())
    };
    let done = run("5s", "long.yaml");
    assert_eq!(done.code, Some(124), "{}", done.all());
    assert!(done.err.contains("Why some of its pods wait:"), "{}", done.all());
    let done = run("40s", "quick.yaml");
    assert_eq!(done.code, Some(6), "{}", done.all());
    assert!(done.out.contains("\njob half does not go on: "), "{}", done.all());
}

#[test]
fn what_waits_for_room_that_another_job_leaves_is_not_given_up() {
    let text = format!(
        "{}---\n{}",
        job("first", 1, "8", "volcano.sh/simulated-duration: 4s", ""),
        job("second", 1, "8", QUICK, "")
    );
    let folder = folder(&[("jobs.yaml", &text)]);
    let words = ["run", "--nodes", "1", "--patience", "1s", "jobs.yaml"];
    let done = volcano(&words, folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    assert!(
        done.err.contains("job second") || done.err.contains("second waits"),
        "{}",
        done.all()
    );
}

#[test]
fn objects_of_a_namespace_that_is_made_with_them_are_not_taken_for_those_of_another() {
    let own = job("twin", 1, "1", QUICK, "");
    let apart = own.replace("{name: twin}", "{name: twin, namespace: apart}");
    let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: apart}}\n---\n{apart}");
    let folder = folder(&[("own.yaml", &own), ("apart.yaml", &text)]);
    let mut up = Running::start(&["up", "--nodes", "1"], folder.path());
    let kubeconfig = up.wait_kubeconfig();
    for file in ["own.yaml", "apart.yaml"] {
        let words = ["run", "--kubeconfig", kubeconfig.to_str().unwrap(), file];
        let done = volcano(&words, folder.path());
        assert_eq!(done.code, Some(0), "{file} {}", done.all());
    }
}

#[test]
fn time_runs_out() {
    let folder = folder(&[("job.yaml", &job("long", 1, "1", LONG, ""))]);
    let done = volcano(
        &["run", "--nodes", "1", "--timeout", "1s", "job.yaml"],
        folder.path(),
    );
    assert_eq!(done.code, Some(124), "{}", done.all());
    assert!(
        done.out.contains("\njob long was not over after 1.0s: waited "),
        "{}",
        done.all()
    );
}

#[test]
fn a_signal_ends_it() {
    let folder = folder(&[("job.yaml", &job("long", 1, "1", LONG, ""))]);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut running = Running::start(&["run", "--nodes", "1", "job.yaml"], folder.path());
        running.wait_error("Running");
        running.signal(signal);
        assert_eq!(running.end().0.code(), Some(code), "{signal}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder(&[("job.yaml", &job("train", 1, "1", QUICK, ""))]);
    let mut child = crate::process::command(&["run", "--nodes", "1", "job.yaml"], Path::new(folder.path()))
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
