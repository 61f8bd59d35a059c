//! Claims on this machine: their volumes are directories, which pods share and which go with their claims.

use crate::kill::{client, send};
use crate::machine::not_run;
use crate::process::{Running, volcano};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const CLAIM: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
";

/// A Job of tasks that come one after the other, each with a script, all with this volume.
fn job(name: &str, volume: &str, tasks: &[(&str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  schedulerName: volcano
  minAvailable: 1
  maxRetry: 1
  volumes: [{volume}]
  tasks:
"
    );
    let mut before = None;
    for (task, script) in tasks {
        let after = before.map_or(String::new(), |name| {
            format!("    dependsOn: {{name: [{name}]}}\n")
        });
        text += &format!(
            "  - name: {task}
    replicas: 1
{after}    template:
      spec:
        restartPolicy: Never
        containers:
        - {{name: main, image: none, command: [sh, -c, '{script}'], resources: {{requests: {{cpu: 10m}}}}}}
"
        );
        before = Some(task);
    }
    text
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Whether pods have no mounts on this machine, which was told.
fn is_without_mounts(told: &str) -> bool {
    let is_so = told.contains("cannot be mounted");
    if is_so {
        not_run("volumes need namespaces");
    }
    is_so
}

#[test]
fn pods_of_a_job_share_the_volume_that_it_asks_for() {
    let volume = "{mountPath: /data-by-test, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}";
    let tasks = [
        ("writer", "echo kept > /data-by-test/file; sleep 1"),
        ("master", "until cat /data-by-test/file; do sleep 0.1; done"),
    ];
    let folder = folder(&[("job.yaml", &job("shares", volume, &tasks))]);
    let done = volcano(&["run", "--timeout", "60s", "job.yaml"], folder.path());
    if is_without_mounts(&done.all()) {
        return;
    }
    assert_eq!(done.code, Some(0), "{}", done.all());
    assert!(done.out.lines().any(|line| line == "kept"), "{}", done.all());
    assert!(!Path::new("/data-by-test").exists());
}

#[test]
fn what_a_pod_writes_is_there_for_a_later_one_until_the_claim_goes() {
    let volume = "{mountPath: /data-by-test, volumeClaimName: data}";
    let write = job("writes", volume, &[("w", "echo kept > /data-by-test/file")]);
    let read = job("reads", volume, &[("r", "cat /data-by-test/file")]);
    let folder = folder(&[
        ("claim.yaml", CLAIM),
        ("write.yaml", &write),
        ("read.yaml", &read),
    ]);
    let mut up = Running::start(&["up", "--data-dir", "data"], folder.path());
    let kubeconfig = up.wait_kubeconfig();
    let run = |files: &[&str]| {
        let words = [
            "run",
            "--timeout",
            "60s",
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
        ];
        volcano(&[&words[..], files].concat(), folder.path())
    };
    let done = run(&["claim.yaml", "write.yaml"]);
    if is_without_mounts(&done.all()) {
        return;
    }
    assert_eq!(done.code, Some(0), "{}", done.all());
    // It is there after another start too.
    up.signal("TERM");
    up.end();
    let mut up = Running::start(&["up", "--data-dir", "data"], folder.path());
    let kubeconfig = up.wait_kubeconfig();
    let words = [
        "run",
        "--timeout",
        "60s",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "read.yaml",
    ];
    let done = volcano(&words, folder.path());
    assert_eq!(done.code, Some(0), "{}", done.all());
    assert!(done.out.lines().any(|line| line == "kept"), "{}", done.all());

    let volumes = folder.path().join("data/volumes");
    let count = || std::fs::read_dir(&volumes).unwrap().count();
    assert_eq!(count(), 1);
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(async {
        let client = client(&kubeconfig).await;
        let path = "/api/v1/namespaces/default/persistentvolumeclaims/data";
        send(&client, "DELETE", path, &Value::Null).await.unwrap();
    });
    let began = Instant::now();
    while count() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "the directory stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    up.signal("INT");
    assert_eq!(up.end().0.code(), Some(0));
}
