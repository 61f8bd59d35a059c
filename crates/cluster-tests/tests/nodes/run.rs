//! `volcano run` in a cluster: what it shows of containers that really run, and kinds that are defined with their objects.

use std::process::Output;
use volcano_cluster_tests::field::{Field, cluster};
use volcano_cluster_tests::process;
use volcano_testcluster::objects;

/// The context in the kubeconfig of the cluster.
const CONTEXT: &str = "volcano-test";

/// Runs manifests in the namespace of a test.
async fn run(field: &Field, manifests: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.yaml");
    std::fs::write(&file, manifests).unwrap();
    let kubeconfig = cluster().kubeconfig_path().display().to_string();
    let path = file.display().to_string();
    let words = [
        "run",
        "--kubeconfig",
        &kubeconfig,
        "--context",
        CONTEXT,
        "-n",
        &field.namespace,
        "--timeout",
        "2m",
        &path,
    ];
    let words = words.map(str::to_owned);
    let run = tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        process::output(&words).unwrap()
    });
    run.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_is_run_to_its_end_in_the_cluster_of_a_context() {
    let field = Field::with_volcano().await;
    // The example, with the image that the nodes have.
    let example = include_str!("../../../../examples/hello-gang.yaml");
    let done = run(&field, &example.replace("busybox:1.36", "busybox:1")).await;
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let out = String::from_utf8_lossy(&done.stdout);
    let (log, summary) = out.split_once("\njob hello-gang Completed: waited ").unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "the master alone is heard: {out}");
    assert!(
        lines[0].starts_with("hello, I am hello-gang-master-0 on node-"),
        "{out}"
    );
    assert_eq!(lines[1], "goodbye from the master");
    let rows = summary.lines().filter(|line| line.starts_with("hello-gang-"));
    let pods: Vec<Vec<&str>> = rows
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    assert_eq!(
        pods,
        [
            ["hello-gang-master-0", "Completed"],
            ["hello-gang-worker-0", "Completed"],
            ["hello-gang-worker-1", "Completed"],
            ["hello-gang-worker-2", "Completed"],
        ],
        "{out}"
    );
}

/// A kind, an object of it and a Job, in an order in which they cannot be created.
const KIND: &str = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: short}
spec:
  schedulerName: volcano
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: "busybox:1", command: ["true"]}]
---
apiVersion: GROUP/v1
kind: Widget
metadata: {name: first}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn objects_may_be_of_a_kind_that_is_defined_beside_them() {
    let field = Field::with_volcano().await;
    // Kinds are in no namespace: the group is the test's own.
    let group = format!("{}.example.com", field.namespace);
    let done = run(&field, &KIND.replace("GROUP", &group)).await;
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let out = String::from_utf8_lossy(&done.stdout);
    assert!(out.contains("\njob short Completed: "), "{out}");
    let path = objects::path(&format!("{group}/v1"), &field.namespace, "widgets", "first");
    let widget = objects::get(&field.client, &path).await.unwrap();
    assert_eq!(widget["spec"]["size"], 3);
}
