//! Completion: in real shells and a real kubectl, of names that the cluster has, under the names that users link.

use crate::tmux::Terminal;
use crate::transcript::tool;
use crate::world;
use std::path::{Path, PathBuf};
use std::process::Command;
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::process::binary;
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::binaries::{Binaries, Program};
use volcano_testcluster::nodes::{Packages, ensure_program};

/// A folder with the tools under their names.
fn links(stage: &Stage) -> PathBuf {
    let folder = stage.folder("bin").unwrap();
    for name in ["vcctl", "vcancel", "kubectl-vc", "kubectl_complete-vc"] {
        std::os::unix::fs::symlink(binary(), folder.join(name)).unwrap();
    }
    folder
}

/// Where programs are looked for: the links first.
fn path(links: &Path) -> String {
    format!("{}:{}", links.display(), std::env::var("PATH").unwrap())
}

/// Installs a shell if that is wished; without it there is nothing to test, and that is said.
fn ensure_shell(name: &str) {
    ensure_program(name, name, Packages::from_environment()).unwrap_or_else(|error| panic!("{error:#}"));
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
            .env("PATH", path(&folder))
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
async fn zsh_completes_what_is_typed() {
    ensure_shell("zsh");
    let stage = world::set().await;
    let folder = links(&stage);
    // No files of the user, and a prompt that is easy to find.
    let line = format!(
        "PATH={} KUBECONFIG={} HOME={} PS1='READY> ' exec zsh -f",
        path(&folder),
        cluster().kubeconfig_path().display(),
        folder.display(),
    );
    let terminal = Terminal::run("zsh", &line);
    terminal.wait(&["READY>"]);
    terminal.press(&["source <(vcctl completion zsh)", "Enter"]);
    let ns = &stage.namespace;
    for (typed, expected) in [
        ("vcctl jobt", "vcctl jobtemplate".to_owned()),
        (
            &format!("vcctl job view -n {ns} -N tr"),
            format!("-n {ns} -N train"),
        ),
        (
            &format!("vcctl job logs -n {ns} b"),
            format!("logs -n {ns} broken"),
        ),
        (
            "vcctl job list --queue=rese",
            "vcctl job list --queue=research".to_owned(),
        ),
        (
            &format!("vcancel -N {ns} -n a"),
            "-n a-job-with-a-longer-name".to_owned(),
        ),
    ] {
        terminal.press(&["-l", typed]);
        terminal.press(&["Tab"]);
        terminal.wait(&[&expected]);
        terminal.press(&["C-u", "C-l"]);
        terminal.wait_for("an empty line", |screen| screen.trim() == "READY>");
    }
    // Several are shown.
    terminal.press(&["-l", "vcctl queue get -n re"]);
    terminal.press(&["Tab", "Tab"]);
    terminal.wait(&["research", "retired"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn fish_completes_what_is_typed() {
    ensure_shell("fish");
    let stage = world::set().await;
    let folder = links(&stage);
    let completed = |typed: &str| {
        let output = Command::new("fish")
            .args([
                "--no-config",
                "-c",
                "vcctl completion fish | source; complete -C $argv[1]",
            ])
            .arg(typed)
            .env("PATH", path(&folder))
            .env("HOME", &folder)
            .env("KUBECONFIG", cluster().kubeconfig_path())
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let words = text
            .lines()
            .map(|line| line.split('\t').next().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    let ns = stage.namespace.as_str();
    assert_eq!(completed("vcctl jobt"), ["jobtemplate"]);
    assert_eq!(completed(&format!("vcctl job view -n {ns} -N tr")), ["train"]);
    assert_eq!(completed("vcctl queue get -n re"), ["research", "retired"]);
    assert_eq!(
        completed("vcctl job list --queue=re"),
        ["--queue=research", "--queue=retired"]
    );
    assert_eq!(
        completed(&format!("vcancel -N {ns} -n a")),
        ["a-job-with-a-longer-name"]
    );
    assert_eq!(completed(&format!("vcctl job view -n {}", &ns[..9])), [ns]);
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
async fn kubectl_runs_the_plugin_and_completes_it() {
    let stage = world::set().await;
    let folder = links(&stage);
    let kubectl = Binaries::locate().unwrap().ensure(Program::Kubectl).unwrap();
    let run = |words: &[&str]| {
        let output = Command::new(&kubectl)
            .args(words)
            .env("PATH", path(&folder))
            .env("HOME", &folder)
            .env("KUBECONFIG", cluster().kubeconfig_path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let ns = stage.namespace.as_str();
    let (code, out) = run(&["vc", "job", "list", "-n", ns]);
    let itself = tool("vcctl job list -n NS", ns, &cluster().kubeconfig_path())
        .output()
        .unwrap();
    assert_eq!((code, out.as_bytes()), (Some(0), itself.stdout.as_slice()));
    assert!(out.contains("\ntrain "), "{out}");
    let (code, _) = run(&["vc", "job", "view", "-n", ns, "-N", "nobody"]);
    assert_eq!(code, Some(255), "its exit code is the plugin's");
    let (_, out) = run(&["vc", "job", "--help"]);
    assert!(out.contains("Usage: kubectl vc job"), "{out}");
    let (_, out) = run(&["plugin", "list", "--name-only"]);
    assert!(out.ends_with("\nkubectl-vc\n"), "{out}");
    let (_, out) = run(&["__complete", "vc", "queue", "get", "-n", "res"]);
    assert_eq!(out, "research\n:4\n");
}
