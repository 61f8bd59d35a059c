//! `--watch`: what changes is printed.

use crate::transcript::tool;
use crate::world;
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects;

/// A tool whose lines are read one by one. It is killed when dropped.
struct Following {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Following {
    fn start(stage: &Stage, line: &str) -> Self {
        let mut child = tool(line, &stage.namespace, &cluster().kubeconfig_path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Following { child, lines }
    }

    fn line(&mut self) -> String {
        let line = self.lines.next().unwrap().unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The next line that begins so.
    fn line_of(&mut self, start: &str) -> String {
        loop {
            let line = self.line();
            if line.starts_with(start) {
                return line;
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill(); // It may have ended already.
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_jobs_goes_on() {
    let stage = world::set().await;
    let mut list = Following::start(&stage, "vcctl job list -n NS -w");
    assert!(list.line().starts_with("Name Creation Phase"));
    list.line_of("train ");
    let status = json!({"state": {"phase": "Completed"}, "running": 0, "pending": 0, "succeeded": 4});
    objects::merge_patch_status(&stage.client, &stage.job_path("train"), &status)
        .await
        .unwrap();
    let line = list.line_of("train ");
    assert!(line.contains(" Completed MPI 4 3 0 0 4 "), "{line}");
    objects::delete(&stage.client, &stage.job_path("train"))
        .await
        .unwrap();
    let line = list.line_of("train ");
    assert!(line.contains(" Deleted "), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_queues_follows_their_podgroups() {
    let stage = world::set().await;
    let mut list = Following::start(&stage, "vcctl queue list --watch");
    assert_eq!(list.line_of("research "), "research 3 Open root 1 1 1 0 0");
    objects::create_pod_group(&stage.client, &stage.namespace, "new", 1, "research")
        .await
        .unwrap();
    let path = stage.path("scheduling.volcano.sh/v1beta1", "podgroups", "new");
    let patch = json!({"status": {"phase": "Pending"}});
    objects::merge_patch(&stage.client, &path, &patch).await.unwrap();
    assert_eq!(list.line_of("research "), "research 3 Open root 1 2 1 0 0");
    let path = objects::path("scheduling.volcano.sh/v1beta1", "", "queues", "retired");
    objects::delete(&stage.client, &path).await.unwrap();
    assert_eq!(list.line_of("retired 2 Deleted"), "retired 2 Deleted 0 0 0 0 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_change_are_documents_of_one_stream() {
    let stage = world::set().await;
    let mut list = Following::start(&stage, "vcctl jobtemplate list -n NS -w -o yaml");
    assert_eq!(list.line(), "apiVersion: flow.volcano.sh/v1alpha1");
    let path = stage.path("flow.volcano.sh/v1alpha1", "jobtemplates", "step");
    objects::delete(&stage.client, &path).await.unwrap();
    list.line_of("---");
    list.line_of("name: step");
}
