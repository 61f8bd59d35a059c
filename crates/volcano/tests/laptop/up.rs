//! `volcano up`.

use crate::process::{Done, Running, command, volcano};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const JOB: &str = "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: quick}
spec:
  schedulerName: volcano
  minAvailable: 2
  tasks:
  - name: worker
    replicas: 2
    template:
      metadata: {annotations: {volcano.sh/simulated-duration: 100ms}}
      spec:
        restartPolicy: Never
        containers: [{name: main, image: none, resources: {requests: {cpu: '1'}}}]
";

/// A system that is up.
struct Up {
    running: Running,
    kubeconfig: PathBuf,
}

impl Up {
    fn start(words: &[&str], folder: &Path) -> Up {
        let mut running = Running::start(&[&["up"], words].concat(), folder);
        let kubeconfig = running.wait_kubeconfig();
        Up { running, kubeconfig }
    }

    fn vcctl(&self, line: &str, folder: &Path) -> Done {
        let words: Vec<_> = ["vcctl"].into_iter().chain(line.split_whitespace()).collect();
        let output = command(&words, folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .unwrap();
        Done {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[test]
fn it_serves_until_it_is_told_to_end_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.yaml"), JOB).unwrap();
    let up = Up::start(&["--nodes", "2"], folder.path());
    let mode = std::fs::metadata(&up.kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let done = up.vcctl("job run -f job.yaml --wait --timeout 30s", folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    // The same in the words of `run`.
    let other = JOB.replace("quick", "other");
    std::fs::write(folder.path().join("other.yaml"), other).unwrap();
    let kubeconfig = up.kubeconfig.display().to_string();
    let done = volcano(&["run", "--kubeconfig", &kubeconfig, "other.yaml"], folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    let done = volcano(&["run", "--kubeconfig", &kubeconfig, "other.yaml"], folder.path());
    assert_eq!(done.code, Some(1), "{}", done.all());
    assert!(done.err.contains("\"other\" already exists"), "{}", done.all());
    let done = up.vcctl("job list -o name", folder.path());
    assert_eq!(
        done.out,
        "job.batch.volcano.sh/other\njob.batch.volcano.sh/quick\n"
    );

    up.running.signal("INT");
    let (status, _) = up.running.end();
    assert_eq!(status.code(), Some(0));
    assert!(!up.kubeconfig.exists());
    assert!(!up.kubeconfig.parent().unwrap().exists(), "nor its folder");
}

#[test]
fn a_data_directory_keeps_everything_for_the_next_start_and_has_one_user() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.yaml"), JOB).unwrap();
    let words = ["--nodes", "1", "--data-dir", "data"];
    let up = Up::start(&words, folder.path());
    let mode = std::fs::metadata(folder.path().join("data"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700, "Secrets are in it");
    let done = up.vcctl("job run -f job.yaml --wait --timeout 30s", folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    let second = volcano(&[&["up"], &words[..]].concat(), folder.path());
    assert_eq!(second.code, Some(2), "{}", second.all());
    let expected = format!(
        "error: data directory data is in use by process {}\nHint: stop that one, or name another directory with --data-dir\n",
        up.running.id()
    );
    assert_eq!(second.err, expected);
    up.running.signal("TERM");
    assert_eq!(up.running.end().0.code(), Some(0));

    // Once more after an end that nobody could prepare for.
    for signal in ["KILL", "TERM"] {
        let up = Up::start(&words, folder.path());
        let done = up.vcctl("job view -N quick -o name", folder.path());
        assert_eq!(done.out, "job.batch.volcano.sh/quick\n", "{}", done.all());
        up.running.signal(signal);
        up.running.end();
    }
    assert!(
        folder.path().join("data/kubeconfig").exists(),
        "it is kept with the data"
    );
}

#[test]
fn what_a_killed_one_left_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let killed = Up::start(&["--nodes", "1"], folder.path());
    let left = killed.kubeconfig.parent().unwrap().to_owned();
    let other = Up::start(&["--nodes", "1"], folder.path());
    assert!(left.exists(), "it is in use");
    killed.running.signal("KILL");
    killed.running.end();
    assert!(left.exists());
    let next = Up::start(&["--nodes", "1"], folder.path());
    assert!(!left.exists());
    assert!(other.kubeconfig.exists() && next.kubeconfig.exists());
}

#[test]
fn what_does_not_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("conf.yaml"), "actions: allocat\n").unwrap();
    std::fs::write(folder.path().join("mine"), "clusters: [{name: work}]\n").unwrap();
    for (words, expected) in [
        (["--scheduler-conf", "conf.yaml"], "allocat"),
        (["--scheduler-conf", "missing.yaml"], "missing.yaml"),
        (["--kubeconfig", "mine"], "kubeconfig mine is there already"),
        (["--data-dir", "mine"], "data directory mine: "),
    ] {
        let done = volcano(&[&["up", "--nodes", "1"], &words[..]].concat(), folder.path());
        assert_eq!(done.code, Some(2), "{}", done.all());
        assert!(done.err.contains(expected), "{}", done.all());
    }
    let kept = std::fs::read_to_string(folder.path().join("mine")).unwrap();
    assert_eq!(kept, "clusters: [{name: work}]\n");
}

#[test]
fn nodes_of_an_earlier_start_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let names = |nodes: &str| {
        let up = Up::start(&["--data-dir", "data", "--nodes", nodes], folder.path());
        let threads = tokio::runtime::Runtime::new().unwrap();
        let list = threads.block_on(async {
            let client = crate::kill::client(&up.kubeconfig).await;
            crate::kill::send(&client, "GET", "/api/v1/nodes", &serde_json::Value::Null).await
        });
        up.running.signal("TERM");
        up.running.end();
        let nodes = list.unwrap()["items"].as_array().unwrap().clone();
        nodes
            .iter()
            .map(|node| node["metadata"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("3"), ["node-0", "node-1", "node-2"]);
    assert_eq!(names("2"), ["node-0", "node-1"]);
}
