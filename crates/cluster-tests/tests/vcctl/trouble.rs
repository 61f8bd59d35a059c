//! What can go wrong: flags, credentials, servers, readers that go away.

use crate::transcript::{Transcript, tool};
use crate::world;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use volcano_cluster_tests::access::{account, rule};
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::process::binary;

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_and_refusals_are_told_with_a_way_out() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vcctl jop");
    script.run("vcctl job list --what");
    script.run("vcctl job list -n");
    script.run("vcctl job run --min x");
    script.run("vcctl job list -o xml");
    script.run("vcctl job list --kubeconfig /nowhere/config");
    script.run("vcctl job list --context nowhere");
    script.run("vcctl job list --kubeconfig /nowhere/config --master http://");
    script.run("vcctl job view -n NS -N a/b");
    script.run("vcctl job view -n '' -N a");
    script.run("vcctl job list -s http://127.0.0.1:1");
    script.run("vcctl top -n NS");
    assert_snapshot!(script.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_may_not_are_told_so() {
    let stage = world::set().await;
    let rules = [rule("batch.volcano.sh", &["jobs"], &["get", "list"])];
    let kubeconfig = account(&stage, &rules).await;
    let run = |line: &str| {
        let output = tool(line, &stage.namespace, &kubeconfig).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = run("vcctl job list -n NS");
    assert_eq!(code, Some(0), "{out}");
    let (code, out, err) = run("vcctl job delete -n NS -N train");
    assert_eq!(code, Some(255));
    assert!(
        out.starts_with("Failed to delete job: jobs.batch.volcano.sh \"train\" is forbidden: User "),
        "{out}"
    );
    assert_eq!(out.lines().count(), 1);
    assert!(err.starts_with("Hint: ask an administrator"), "{err}");
    let (code, out, _) = run("vcctl queue list");
    assert_eq!(code, Some(255));
    assert!(
        out.starts_with("Failed to list queue: failed to list podgroups with err: "),
        "{out}"
    );
    let (code, out, err) = run("vcctl job view -n NS -N train");
    assert_eq!(code, Some(0), "the events are not the point: {out}");
    assert!(
        err.starts_with("Failed to list events: events is forbidden: "),
        "{err}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_list_are_merged_and_contexts_chosen() {
    let stage = world::set().await;
    let text = std::fs::read_to_string(cluster().kubeconfig_path()).unwrap();
    let mut own: Value = serde_json::from_str(&text).unwrap();
    let context = own["contexts"][0]["context"].clone();
    own["contexts"] = json!([{"name": "real", "context": context}]);
    own["current-context"] = json!("");
    let elsewhere = json!({"apiVersion": "v1", "kind": "Config", "current-context": "dead",
        "clusters": [{"name": "dead", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [], "contexts": [{"name": "dead", "context": {"cluster": "dead", "user": ""}}]});
    let first = stage.file("first", &elsewhere.to_string()).unwrap();
    let second = stage.file("second", &own.to_string()).unwrap();
    let list = std::env::join_paths([&first, &stage.folder("x").unwrap().join("missing"), &second]).unwrap();
    let run = |line: &str| {
        let mut command = tool(line, &stage.namespace, &second);
        command.env("KUBECONFIG", &list);
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, out) = run("vcctl job list -n NS --context real -o name --selector train");
    assert_eq!((code, out.as_str()), (Some(0), "job.batch.volcano.sh/train\n"));
    let (code, out) = run("vcctl job list -n NS");
    assert_eq!(code, Some(255));
    assert!(
        out.contains("no answer from the API server http://127.0.0.1:1: "),
        "{out}"
    );
    let (code, _) = run(&format!(
        "vcctl job list -n NS --context real -s {}",
        cluster().url()
    ));
    assert_eq!(
        code,
        Some(0),
        "an address that is given replaces that of the context"
    );
    let (code, out) = run("vcctl __complete job list --context r");
    assert_eq!((code, out.trim_end()), (Some(0), "real"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_error() {
    let stage = world::set().await;
    let mut child = tool(
        "vcctl job list -A -o json",
        &stage.namespace,
        &cluster().kubeconfig_path(),
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), "")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_is_130() {
    let stage = world::set().await;
    let mut child = tool(
        "vcctl job list -n NS --watch",
        &stage.namespace,
        &cluster().kubeconfig_path(),
    )
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut first = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"Name");
    let status = Command::new("kill")
        .arg("-INT")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn help_and_version_need_no_cluster() {
    let run = |words: &[&str]| {
        let output = Command::new(binary())
            .args(words)
            .env("KUBECONFIG", "/nowhere")
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (code, out) = run(&["vcctl", "version"]);
    assert_eq!(code, Some(0));
    let keys: Vec<_> = out.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(
        keys,
        [
            "API Version",
            "Version",
            "Git SHA",
            "Built At",
            "Go Version",
            "Go OS/Arch"
        ]
    );
    let (code, out) = run(&["vcctl", "job"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("suspend"), "{out}");
}
