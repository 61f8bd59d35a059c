//! The examples run, with the real binary: as processes on this machine, and on simulated nodes.

use super::examples;
use super::machine::can_run;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use volcano_testcluster::images::mpi;

/// How long an example may take before the test gives up. Those here take seconds.
const PATIENCE: &str = "120s";
/// The same for the process as a whole, should it not keep to it.
const LIMIT: Duration = Duration::from_secs(180);

/// `volcano run` with the files of examples and further arguments.
fn run(files: &[&str], arguments: &[&str]) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_volcano"))
        .arg("run")
        .args(files)
        .args(["--timeout", PATIENCE])
        .args(arguments)
        .current_dir(examples())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let (send, ended) = mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    ended
        .recv_timeout(LIMIT)
        .unwrap_or_else(|_| {
            let _ = Command::new("kill").arg(id.to_string()).status();
            panic!("{files:?} did not end within {LIMIT:?}")
        })
        .unwrap()
}

/// Runs examples and compares the exit code, and looks for words in what was printed.
#[track_caller]
fn check(files: &[&str], arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(files, arguments);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{files:?}: {:?}\n{text}",
        output.status
    );
    for word in words {
        assert!(text.contains(word), "{files:?}: {word:?} is not in\n{text}");
    }
}

#[test]
fn the_gang_says_hello_from_processes_of_this_machine() {
    check(
        &["hello-gang.yaml"],
        &[],
        0,
        &[
            "hello, I am hello-gang-master-0",
            "goodbye from the master",
            "Completed",
        ],
    );
}

#[test]
fn the_gang_runs_on_simulated_nodes() {
    check(&["hello-gang.yaml"], &["--nodes", "2"], 0, &["Completed"]);
}

#[test]
fn jobs_of_a_shell() {
    check(
        &["depends-on/job.yaml"],
        &[],
        0,
        &["report: all workers are there", "Completed"],
    );
    check(&["min-success/job.yaml"], &[], 0, &["Completed"]);
    check(&["policies/restart.yaml"], &[], 0, &["Completed"]);
    check(&["policies/give-up.yaml"], &[], 2, &["Failed"]);
    check(&["policies/terminate.yaml"], &[], 3, &["Terminated"]);
    check(&["ttl/job.yaml"], &[], 0, &["done", "Completed"]);
}

#[test]
fn pods_know_the_names_of_all() {
    if can_run(&[]) {
        let words = [
            "worker at hosts-worker-1.hosts",
            "2 workers in a variable: hosts-worker-0.hosts,hosts-worker-1.hosts",
        ];
        check(&["hosts/job.yaml"], &[], 0, &words);
    }
}

#[test]
fn programs_of_the_frameworks_talk_to_each_other() {
    if !can_run(&[("python3", "python3")]) {
        return;
    }
    for (file, word) in [
        ("tensorflow/job.yaml", "fitted: y = 2.9"),
        ("pytorch/job.yaml", "ranks [0, 1, 2] of a world of 3"),
        ("horovod/job.yaml", "rank 0 of 4: mean of 4000 gradients is 2.5"),
        ("ray/tasks.yaml", "sum of squares: 650"),
        ("paddle/job.yaml", "Completed"),
        ("spark/wordcount.yaml", "2700 words; start: 300, starts: 300"),
    ] {
        check(&[file], &[], 0, &[word]);
    }
}

#[test]
fn ranks_of_mpi_say_hello() {
    if !can_run(&mpi::PROGRAMS) {
        return;
    }
    let hello = |rank| {
        format!("Hello world from processor lm-mpi-job-mpiworker-{rank}, rank {rank} out of 3 processors")
    };
    check(&["mpi/job.yaml"], &[], 0, &[&hello(0), &hello(1), &hello(2)]);
}

#[test]
fn every_framework_is_placed_on_simulated_nodes() {
    for file in [
        "mpi/job.yaml",
        "tensorflow/job.yaml",
        "pytorch/job.yaml",
        "horovod/job.yaml",
        "ray/tasks.yaml",
        "ray/ray.yaml",
        "spark/wordcount.yaml",
        "paddle/job.yaml",
    ] {
        check(&[file], &["--nodes", "2"], 0, &[]);
    }
}

#[test]
fn queues_and_racks_on_simulated_nodes() {
    check(
        &["elastic/job.yaml"],
        &["--nodes", "1", "--cpu", "4"],
        0,
        &["Completed"],
    );
    let weights = ["weights/queues.yaml", "weights/jobs.yaml"];
    check(
        &weights,
        &["--nodes", "2", "--cpu", "4"],
        0,
        &["sweep-research", "sweep-sales"],
    );
    let tree = ["hierarchy/queues.yaml", "hierarchy/jobs.yaml"];
    let conf = [
        "--nodes",
        "2",
        "--cpu",
        "4",
        "--memory",
        "8Gi",
        "--scheduler-conf",
        "hierarchy/volcano-scheduler.conf",
    ];
    check(&tree, &conf, 0, &["vision", "speech", "sales"]);
    let racks = ["topology/hypernodes.yaml", "topology/soft.yaml"];
    check(&racks, &["--nodes", "8", "--cpu", "4"], 0, &["Completed"]);
}
