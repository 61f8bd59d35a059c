//! Completion: in a real bash, of names that the cluster has, under the names that users link.

use crate::transcript::tool;
use crate::world;
use std::path::PathBuf;
use std::process::Command;
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::process::binary;
use volcano_cluster_tests::stage::Stage;

/// A folder with the tools under their names.
fn links(stage: &Stage) -> PathBuf {
    let folder = stage.folder("bin").unwrap();
    for name in ["vcctl", "vcancel", "kubectl-vc", "kubectl_complete-vc"] {
        std::os::unix::fs::symlink(binary(), folder.join(name)).unwrap();
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_completes_names_of_jobs_and_queues() {
    let stage = world::set().await;
    let folder = links(&stage);
    let completed = |words: &[&str]| {
        let script = "source <(vcctl completion bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                      _volcano_complete; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let output = Command::new("bash")
            .args(["--norc", "-c", script, "bash"])
            .args(words)
            .env(
                "PATH",
                format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()),
            )
            .env("KUBECONFIG", cluster().kubeconfig_path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let ns = stage.namespace.as_str();
    assert_eq!(completed(&["vcctl", "jobt"]), ["jobtemplate"]);
    assert_eq!(
        completed(&["vcctl", "job", "view", "-n", ns, "-N", "tr"]),
        ["train"]
    );
    assert_eq!(completed(&["vcctl", "job", "logs", "-n", ns, "b"]), ["broken"]);
    assert_eq!(
        completed(&["vcctl", "job", "list", "--queue", "=", "re"]),
        ["research", "retired"]
    );
    assert_eq!(
        completed(&["vcancel", "-N", ns, "-n", "a"]),
        ["a-job-with-a-longer-name"]
    );
    assert_eq!(
        completed(&["vcctl", "jobflow", "get", "-n", ns, "-N", ""]),
        ["nightly", "weekly-report"]
    );
    assert_eq!(completed(&["vcctl", "job", "view", "-n", &ns[..9]]), [ns]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_does_not_answer_offers_nothing() {
    let stage = world::set().await;
    let output = tool(
        "vcctl __complete job view -s http://127.0.0.1:1 -N t",
        "x",
        &cluster().kubeconfig_path(),
    )
    .output()
    .unwrap();
    assert_eq!(
        (
            output.status.code(),
            output.stdout.as_slice(),
            output.stderr.as_slice()
        ),
        (Some(0), &b""[..], &b""[..])
    );
    drop(stage);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_finds_the_plugin_and_its_completions() {
    let stage = world::set().await;
    let folder = links(&stage);
    let run = |program: &str, words: &[&str]| {
        let output = Command::new(folder.join(program))
            .args(words)
            .env("KUBECONFIG", cluster().kubeconfig_path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, out) = run(
        "kubectl-vc",
        &[
            "job",
            "list",
            "-n",
            &stage.namespace,
            "-o",
            "name",
            "--selector",
            "train",
        ],
    );
    assert_eq!((code, out.as_str()), (Some(0), "job.batch.volcano.sh/train\n"));
    let (_, out) = run("kubectl-vc", &["job", "--help"]);
    assert!(out.contains("Usage: kubectl vc job"), "{out}");
    let (_, out) = run("kubectl_complete-vc", &["queue", "get", "-n", "res"]);
    assert_eq!(out, "research\t\n:4\n");
}
