//! What is left of nodes when their cluster ends, or when the process that holds it is killed: nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use volcano_testcluster::objects::{check, wait_until};

/// Room for a machine that has other things to do.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A process with a cluster, its data, its network link, and all processes that belong to it.
struct Holder {
    child: Child,
    directory: String,
    cable: String,
    processes: BTreeSet<u32>,
    groups: BTreeSet<PathBuf>,
}

/// Starts a cluster with a pod in a process of its own.
fn hold() -> Holder {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hold-nodes"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().expect("it says what it holds").unwrap();
    let (directory, cable) = (line(), line());
    let processes = processes_of(&directory);
    let groups = groups_of(&processes);
    Holder {
        child,
        directory,
        cable,
        processes,
        groups,
    }
}

/// Processes that have the directory in their command line or among their mounts.
fn processes_of(directory: &str) -> BTreeSet<u32> {
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let names = |id: &u32| {
        ["cmdline", "mountinfo"].iter().any(|file| {
            let bytes = fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(directory)
        })
    };
    ids.filter(names).collect()
}

/// The control groups of the cluster that processes are in: `volcano-HASH` under each controller.
fn groups_of(processes: &BTreeSet<u32>) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for id in processes {
        let text = fs::read_to_string(format!("/proc/{id}/cgroup")).unwrap_or_default();
        for line in text.lines() {
            let path = line.splitn(3, ':').nth(2).unwrap_or_default();
            let Some(cluster) = path.split('/').find(|part| part.starts_with("volcano-")) else {
                continue;
            };
            let mounts = fs::read_dir("/sys/fs/cgroup").unwrap().flatten();
            let places = mounts.map(|mount| mount.path().join(cluster));
            let root = Path::new("/sys/fs/cgroup").join(cluster);
            found.extend(places.chain([root]).filter(|place| place.is_dir()));
        }
    }
    found
}

/// The name of the program of a process.
fn program(id: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

impl Holder {
    /// What is there is all that a node consists of.
    fn assert_whole(&self) {
        let programs: BTreeSet<String> = self.processes.iter().map(|id| program(*id)).collect();
        for name in [
            "containerd",
            "containerd-shim",
            "kubelet",
            "sleep",
            "pause",
            "coredns",
        ] {
            assert!(
                programs.iter().any(|program| program.starts_with(name)),
                "{name} is not among {programs:?}"
            );
        }
        assert!(!self.groups.is_empty(), "no control groups");
        assert!(link(&self.cable).exists(), "{}", self.cable);
        assert!(Path::new(&self.directory).exists());
    }

    /// Waits until nothing of it is there, and stops the test if something stays.
    async fn wait_until_gone(&self) {
        let gone = wait_until("nothing is left", TIMEOUT, || async {
            let processes: Vec<String> = processes_of(&self.directory).into_iter().map(program).collect();
            let groups: Vec<&PathBuf> = self.groups.iter().filter(|group| group.exists()).collect();
            let is_gone = processes.is_empty()
                && groups.is_empty()
                && !link(&self.cable).exists()
                && !Path::new(&self.directory).exists();
            Ok(check(is_gone, || {
                let directory = Path::new(&self.directory).exists();
                let cable = link(&self.cable).exists();
                format!("{processes:?}, {groups:?}, link {cable}, directory {directory}")
            }))
        });
        gone.await.unwrap();
    }
}

fn link(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}

#[tokio::test]
async fn nothing_is_left_of_a_cluster_that_is_dropped() {
    let mut holder = tokio::task::spawn_blocking(hold).await.unwrap();
    holder.assert_whole();
    drop(holder.child.stdin.take());
    assert!(holder.child.wait().unwrap().success());
    holder.wait_until_gone().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_cluster_whose_process_is_killed() {
    let mut holder = tokio::task::spawn_blocking(hold).await.unwrap();
    holder.assert_whole();
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    holder.wait_until_gone().await;
}
