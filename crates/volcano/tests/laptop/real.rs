//! This machine as the node: pods are processes of it.

use crate::machine::not_run;
use crate::process::{Running, volcano};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A Job with a task of each of these names, number of pods and script.
fn job(tasks: &[(&str, u32, &str)]) -> TempDir {
    let mut text = "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: real}
spec:
  schedulerName: volcano
  maxRetry: 1
  tasks:
"
    .to_owned();
    for (name, replicas, script) in tasks {
        text += &format!(
            "  - name: {name}
    replicas: {replicas}
    template:
      spec:
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers:
        - name: main
          image: none
          command: [sh, -c, '{script}']
          resources: {{requests: {{cpu: 10m, memory: 10Mi}}}}
"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.yaml"), text).unwrap();
    folder
}

/// Processes whose command line has a text.
fn processes(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(text)).collect()
}

/// Waits until no process has the text.
fn wait_gone(text: &str) {
    let began = Instant::now();
    while !processes(text).is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?} is left",
            processes(text)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_master_is_heard_and_the_gang_completes() {
    let folder = job(&[
        ("worker", 2, "echo worker works"),
        ("master", 1, "echo one; printf two; echo trouble >&2"),
    ]);
    let done = volcano(&["run", "job.yaml"], folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    let (logs, summary) = done.out.split_once("\njob real Completed: ").unwrap();
    let mut lines: Vec<_> = logs.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    let joined = lines.join("|");
    assert!(
        joined.contains("one") && joined.contains("two") && joined.contains("trouble"),
        "{}",
        done.all()
    );
    assert!(!done.out.contains("worker works"), "{}", done.all());
    assert!(!logs.contains('['), "one pod needs no name: {}", done.all());
    assert_eq!(
        summary.lines().filter(|line| line.starts_with("real-")).count(),
        3,
        "{}",
        done.all()
    );
}

#[test]
fn lines_of_several_pods_have_names() {
    let folder = job(&[("w", 2, "echo hello")]);
    let done = volcano(&["run", "job.yaml"], folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    for line in ["[real-w-0] hello", "[real-w-1] hello"] {
        assert!(done.out.lines().any(|told| told == line), "{}", done.all());
    }
}

#[test]
fn an_exit_code_is_told() {
    let folder = job(&[("w", 1, "exit 3")]);
    let done = volcano(&["run", "job.yaml"], folder.path());
    assert_eq!(done.code, Some(2), "{}", done.all());
    assert!(
        done.out.contains("container main exited with 3\n"),
        "{}",
        done.all()
    );
}

#[test]
fn every_run_of_a_container_is_heard() {
    let text = "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: again}
spec:
  schedulerName: volcano
  tasks:
  - name: w
    replicas: 1
    template:
      spec:
        restartPolicy: OnFailure
        volumes: [{name: runs, emptyDir: {}}]
        containers:
        - name: main
          image: none
          command: [sh, -c, 'echo x >> /runs-by-test/count; n=`grep -c x /runs-by-test/count`; echo run $n; sleep 0.5; test $n = 2']
          volumeMounts: [{name: runs, mountPath: /runs-by-test}]
          resources: {requests: {cpu: 10m}}
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.yaml"), text).unwrap();
    let done = volcano(&["run", "--timeout", "60s", "job.yaml"], folder.path());
    if done.all().contains("cannot be mounted") {
        return not_run("volumes need namespaces");
    }
    assert_eq!(done.code, Some(0), "{}", done.all());
    let lines: Vec<_> = done.out.lines().filter(|line| line.starts_with("run ")).collect();
    assert_eq!(lines, ["run 1", "run 2"], "{}", done.all());
}

/// Runs a Job with a line of shell before it, in the same process.
fn volcano_after(line: &str, folder: &TempDir) -> (Option<i32>, String) {
    let script = format!("{line}; exec \"$0\" run --timeout 60s job.yaml");
    let output = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_volcano")])
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn many_pods_fit_a_low_limit_of_open_files() {
    let folder = job(&[("w", 40, "sleep 2")]);
    let (code, told) = volcano_after("ulimit -Sn 128", &folder);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn what_one_with_the_same_number_left_is_not_in_the_way() {
    let folder = job(&[("w", 1, "true")]);
    let (code, told) = volcano_after("mkdir \"$TMPDIR/volcano-$$\"", &folder);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn a_second_signal_ends_it_at_once_and_leaves_no_process() {
    let marker = format!("{}8{}", 7_000_000, std::process::id());
    // It does not listen, and would have its grace.
    let script = format!("trap \"\" TERM; echo started; while :; do sleep {marker}; done");
    let folder = job(&[("w", 1, &script)]);
    let mut running = Running::start(&["run", "job.yaml"], folder.path());
    running.wait_line("started");
    running.signal("INT");
    running.wait_error("Ctrl-C ends them at once");
    running.signal("INT");
    running.wait_error("ended at once");
    assert_eq!(running.end().0.code(), Some(130));
    wait_gone(&marker);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "its directory is gone too");
}

#[test]
fn no_process_is_left_whatever_ends_it() {
    for (at, signal) in ["INT", "TERM", "KILL"].into_iter().enumerate() {
        let marker = format!("{}{at}{}", 7_000_000, std::process::id());
        let folder = job(&[("w", 2, &format!("echo started; sleep {marker} & sleep {marker}"))]);
        let mut running = Running::start(&["run", "job.yaml"], folder.path());
        for _ in 0..2 {
            running.wait_line("started");
        }
        assert!(!processes(&marker).is_empty());
        running.signal(signal);
        running.end();
        wait_gone(&marker);
    }
}

#[test]
fn up_ends_its_pods() {
    let marker = format!("{}9{}", 7_000_000, std::process::id());
    let folder = job(&[("w", 1, &format!("sleep {marker}"))]);
    let mut up = Running::start(&["up"], folder.path());
    let kubeconfig = up.wait_kubeconfig();
    let words = [
        "vcctl",
        "job",
        "run",
        "-f",
        "job.yaml",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ];
    let done = volcano(&words, folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    let began = Instant::now();
    while processes(&marker).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    up.signal("INT");
    assert_eq!(up.end().0.code(), Some(0));
    wait_gone(&marker);
}

/// Who has no rights.
const NOBODY: u32 = 65534;

#[test]
fn an_ordinary_user_has_gangs_too() {
    let folder = job(&[("w", 2, "id -u; sleep 0.1")]);
    // Where the binary is built may be closed to others, and so is a temporary directory.
    let binary = folder.path().join("volcano");
    std::fs::copy(env!("CARGO_BIN_EXE_volcano"), &binary).unwrap();
    if let Err(error) = chown(folder.path(), Some(NOBODY), Some(NOBODY)) {
        return not_run(&format!(
            "only root becomes somebody else ({error}); the other tests are those of an ordinary user"
        ));
    }
    let output = Command::new(&binary)
        .args(["run", "job.yaml"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("TMPDIR", folder.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains("job real Completed: "), "{out}\n{err}");
    for line in ["[real-w-0] 65534", "[real-w-1] 65534"] {
        assert!(out.lines().any(|told| told == line), "{out}\n{err}");
    }
    // What is less than root has is said.
    assert!(
        err.starts_with("note: Pods ") && err.contains("share"),
        "{out}\n{err}"
    );
}
