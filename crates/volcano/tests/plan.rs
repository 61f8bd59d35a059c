//! The real binary over files: what it prints, and what it exits with.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn volcano(arguments: &[&str]) -> Output {
    with_input(arguments, "")
}

fn with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_volcano"))
        .args(arguments)
        .current_dir(examples())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[track_caller]
fn prints(arguments: &[&str], expected: &str) {
    let output = volcano(arguments);
    assert_eq!(
        (out(&output), err(&output), output.status.code()),
        (expected, "", Some(0))
    );
}

#[test]
fn a_submitted_job_gets_its_answer_first() {
    prints(
        &["plan", "-f", "quickstart/cluster.yaml", "--submit", "quickstart/job.yaml"],
        "\
default/train would start now: yes: starts: 3 pods on node-2 x3

PODGROUP                     QUEUE    PHASE               GANG      WHAT HAPPENS
default/big                  default  Inqueue             0/3 of 3  waits: big-2: 0/2 nodes are unavailable: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector.
default/train-default-train  default  Pending -> Inqueue  3/3 of 3  starts: 3 pods on node-2 x3
default/web                  default  Running             1/1 of 1  runs

3 PodGroups: 1 starts, 0 wait for room being freed, 1 waits; 3 pods bound, 0 evicted.
",
    );
}

#[test]
fn cycles_show_what_happens_next() {
    let conf = "preemption/volcano-scheduler.conf";
    prints(
        &["plan", "-f", "preemption/cluster.yaml", "--scheduler-conf", conf, "--cycles", "3"],
        "\
PODGROUP        QUEUE    PHASE               GANG      WHAT HAPPENS
default/batch   default  Running             1/1 of 1  loses 2 pods
default/urgent  default  Inqueue -> Running  2/2 of 2  starts: 2 pods on node-1 x2

CYCLE  WHAT CHANGED
1      evicted default/batch-1 on node-1, default/batch-2 on node-1; waiting for room: default/urgent-0 on node-1, default/urgent-1 on node-1
2      bound default/urgent-0 on node-1, default/urgent-1 on node-1
3      default/urgent Inqueue -> Running

EVICTED          OF             FROM NODE  BY       FOR
default/batch-1  default/batch  node-1     preempt  default/urgent-1
default/batch-2  default/batch  node-1     preempt  default/urgent-0

2 PodGroups: 1 starts, 0 wait for room being freed, 0 wait; 2 pods bound, 2 evicted.
",
    );
}

#[test]
fn json_has_every_key_and_yaml_the_same_data() {
    let arguments = [
        "plan",
        "-f",
        "queues",
        "--scheduler-conf",
        "queues/volcano-scheduler.conf",
        "-o",
    ];
    let json = volcano(&[&arguments[..], &["json"]].concat());
    let plan: Value = serde_json::from_str(out(&json)).unwrap();
    let keys: Vec<_> = plan.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["binds", "evicted", "pipelined", "podGroups"]);
    assert_eq!(plan["binds"], json!({}));
    assert_eq!(plan["evicted"].as_array().unwrap().len(), 2);
    assert_eq!(plan["pipelined"].as_object().unwrap().len(), 2);
    assert_eq!(plan["podGroups"]["team-b/train"]["phase"], "Inqueue");
    for key in ["type", "status", "reason", "message"] {
        assert!(
            plan["podGroups"]["team-b/train"]["conditions"][0][key].is_string(),
            "{key}"
        );
    }
    let yaml = volcano(&[&arguments[..], &["yaml"]].concat());
    assert_eq!(serde_saphyr::from_str::<Value>(out(&yaml)).unwrap(), plan);
    let timed = volcano(&[&arguments[..], &["json", "--timings"]].concat());
    let timings = &serde_json::from_str::<Value>(out(&timed)).unwrap()["timings"];
    assert!(
        timings["loadMs"].is_number() && timings["cycleMs"].is_number(),
        "{timings}"
    );
    let actions: Vec<_> = timings["actionsMs"].as_object().unwrap().keys().collect();
    assert_eq!(actions, ["allocate", "backfill", "enqueue", "reclaim"]);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let arguments = [
        "plan",
        "-f",
        "queues/cluster.yaml",
        "--now",
        "2026-02-01T00:00:00Z",
        "-o",
        "json",
    ];
    assert_eq!(out(&volcano(&arguments)), out(&volcano(&arguments)));
}

#[test]
fn a_group_that_is_not_admitted_says_what_is_short_and_by_how_much() {
    let input = r#"
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: big, namespace: default}
spec: {minMember: 3, minResources: {cpu: "9", memory: 9Gi}}
"#;
    let output = with_input(&["plan", "-f", "-"], input);
    let wanted =
        "waits: not admitted: resource in cluster is overused: overused cpu (cpu: 9 needed, 4800m allowed)";
    assert!(out(&output).contains(wanted), "{}", out(&output));
}

#[test]
fn what_is_not_used_is_noted_and_a_snapshot_brings_its_configuration() {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    let input = json!({
        "conf": "actions: allocate, shuffle\ntiers:\n- plugins:\n  - name: gang\n  - name: tdm\n",
        "objects": [deployment.clone(), deployment],
    });
    let output = with_input(&["plan", "-f", "-"], &input.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(
        err(&output),
        "note: skipped 2 objects of kind apps/v1 Deployment: not used by scheduling\n\
         note: plugin tdm of the configuration is not available yet: planned without it\n\
         note: action shuffle of the configuration is not available yet: planned without it\n"
    );
    assert!(out(&output).starts_with("No PodGroups.\n"), "{}", out(&output));
}

#[test]
fn wrong_input_names_the_place_and_exits_with_2() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p1, namespace: default}\n";
    let cases: [(&[&str], &str, &str); 8] = [
        (
            &["plan", "-f", "-"],
            &format!(
                "{pod}---\n{pod}---\n{pod}spec: {{containers: [{{resources: {{requests: {{cpu: 1core}}}}}}]}}\n"
            ),
            "error: standard input: document 3 (Pod default/p1): spec.containers[0].resources.requests.cpu: ",
        ),
        (&["plan", "-f", "-"], "", "error: no objects in the input\nHint: "),
        (
            &["plan", "-f", "-"],
            "a: [",
            "error: standard input: document 1: not YAML: ",
        ),
        (
            &["plan", "-f", "-", "-f", "-"],
            "",
            "error: standard input (-) can be read only once",
        ),
        (
            &["plan", "-f", "no-such-file.yaml"],
            "",
            "error: no-such-file.yaml: No such file or directory (os error 2)\nHint: ",
        ),
        (
            &["plan", "-f", "quickstart/cluster.yaml", "--scheduler-conf", "-"],
            "actions: alocate\n",
            "error: standard input: line 1",
        ),
        (
            &["plan", "-f", "quickstart/cluster.yaml", "--now", "noon"],
            "",
            "error: --now: \"noon\" is no RFC 3339 time",
        ),
        (
            &["plan"],
            "",
            "error: the following required arguments were not provided",
        ),
    ];
    for (arguments, input, expected) in cases {
        let output = with_input(arguments, input);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", err(&output));
        assert!(
            err(&output).starts_with(expected),
            "{arguments:?}: {}",
            err(&output)
        );
    }
}

#[test]
fn a_directory_without_files_of_objects_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    let output = volcano(&["plan", "-f", path]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    let expected = format!("error: {path}: no *.yaml, *.yml or *.json files in this directory\nHint: ");
    assert!(err(&output).starts_with(&expected), "{}", err(&output));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_volcano"))
        .arg("crds")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
}

fn case(binds: &Value, plugin: &str) -> Value {
    json!({
        "name": "one pod on one node", "source": "test",
        "conf": format!("actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: {plugin}\n"),
        "objects": [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
             "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}},
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}},
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "ns"},
             "spec": {"minMember": 1, "queue": "q"}, "status": {"phase": "Inqueue"}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns",
             "annotations": {"scheduling.k8s.io/group-name": "g"}},
             "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}},
        ],
        "expect": {"binds": binds},
    })
}

#[test]
fn cases_are_compared_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, case: Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, case.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write("a-good.json", case(&json!({"ns/p": "n1"}), "predicates"));
    let skipped = write("c-skipped.json", case(&json!({}), "tdm"));
    let directory = folder.path().to_str().unwrap();

    let output = volcano(&["plan", "--case", &good]);
    assert_eq!(
        (out(&output), output.status.code()),
        ("one pod on one node: passed\n", Some(0))
    );
    let output = volcano(&["plan", "--case", &skipped]);
    assert_eq!(
        (out(&output), output.status.code()),
        ("one pod on one node: skipped: needs tdm\n", Some(0))
    );
    let output = volcano(&["plan", "--cases", directory]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));

    let bad = write("b-bad.json", case(&json!({"ns/p": "n2"}), "predicates"));
    let output = volcano(&["plan", "--case", &bad]);
    let expected = "one pod on one node: failed\n  binds: expected ns/p on n2, got n1\n";
    assert_eq!((out(&output), output.status.code()), (expected, Some(1)));
    let output = volcano(&["plan", "--cases", directory]);
    let expected = "\
CASE       RESULT
a-good     passed
b-bad      failed
             binds: expected ns/p on n2, got n1
c-skipped  skipped: needs tdm

1 passed, 1 failed, 1 skipped
";
    assert_eq!((out(&output), output.status.code()), (expected, Some(1)));
}
