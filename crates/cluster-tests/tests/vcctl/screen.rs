//! `vcctl top` and `vcctl job run --wait` on a terminal: keys are typed, screens are read.

use crate::tmux::Terminal;
use crate::transcript::tool;
use crate::world;
use serde_json::json;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::jobs::{Troupe, job, task, template, with};
use volcano_cluster_tests::process::binary;
use volcano_testcluster::objects::{self, Node};

/// A line of a shell that runs a tool, says how it ended, and stays.
fn line(words: &str) -> String {
    format!(
        "KUBECONFIG={} TZ=UTC {} {words}; echo EXIT=$?; exec sleep 600",
        cluster().kubeconfig_path().display(),
        binary().display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn top_shows_queues_jobs_and_nodes() {
    let stage = world::set().await;
    stage
        .add_node(
            &Node::new("n1")
                .cpu("8")
                .memory("16Gi")
                .resource("nvidia.com/gpu", "2"),
        )
        .await;
    stage
        .add_node(&Node::new("n2").cpu("4").memory("8Gi").unschedulable())
        .await;
    let busy = objects::Pod::new(&stage.namespace, "busy")
        .cpu("2")
        .spec("nodeName", json!("n1"));
    objects::create_pod(&stage.client, &busy).await.unwrap();
    let terminal = Terminal::run("top", &line("vcctl top"));

    let screen = terminal.wait(&["queues 3", "jobs 3", "nodes 2", "research"]);
    let row = |screen: &str, name: &str| {
        let found = screen.lines().find(|line| line.contains(name)).map(str::to_owned);
        found.unwrap_or_else(|| panic!("no {name} in\n{screen}"))
    };
    // What it deserves is its own; a quarter of the processor is allocated, and less of the memory.
    assert!(row(&screen, "research").contains("25%"), "{screen}");
    assert!(row(&screen, "research").contains("8 cpu 32Gi"), "{screen}");
    assert!(row(&screen, "retired").contains("Closed"), "{screen}");

    terminal.press(&["2"]);
    let screen = terminal.wait(&["a-job-with-a-longer-name", "broken", "train"]);
    assert!(row(&screen, "train").contains("Running"), "{screen}");
    // By name from the start, the other way round with a key.
    let position = |screen: &str, name: &str| screen.lines().position(|line| line.contains(name)).unwrap();
    terminal.press(&["s"]);
    let screen = terminal.wait(&["Job▼"]);
    assert!(
        position(&screen, "broken") < position(&screen, "train"),
        "{screen}"
    );
    terminal.press(&["r"]);
    let screen = terminal.wait(&["Job▲"]);
    assert!(
        position(&screen, "broken") > position(&screen, "train"),
        "{screen}"
    );

    terminal.press(&["Tab"]);
    let screen = terminal.wait(&["Node", "n1", "n2"]);
    let n1 = row(&screen, "n1 ");
    assert!(
        n1.contains("2/8") && n1.contains("25%") && n1.contains("gpu 0/2"),
        "{screen}"
    );
    assert!(row(&screen, "n2 ").contains("cordoned"), "{screen}");

    // It goes on: what changes is seen.
    terminal.press(&["1"]);
    terminal.wait(&["research"]);
    let path = objects::path("scheduling.volcano.sh/v1beta1", "", "queues", "research");
    let status = json!({"allocated": {"cpu": "8", "memory": "1Gi"}});
    objects::merge_patch_status(&stage.client, &path, &status)
        .await
        .unwrap();
    terminal.wait(&["100%"]);
    terminal.press(&["q"]);
    terminal.wait(&["EXIT=0"]);
}

fn write_job(
    stage_file: impl Fn(&str, &str) -> anyhow::Result<std::path::PathBuf>,
    name: &str,
    cpu: &str,
) -> String {
    let mut pod = template();
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
    let job = job(
        name,
        &json!({"tasks": [with(task("t", 2), &json!({"template": pod}))]}),
    );
    let path = stage_file(&format!("{name}.yaml"), &job.to_string()).unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_waited_for_on_a_terminal() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let file = write_job(|name, text| stage.file(name, text), "train", "100m");
    let terminal = Terminal::run(
        "wait",
        &line(&format!("vcctl job run -n {} -f {file} --wait", stage.namespace)),
    );
    terminal.wait(&[
        "run job train successfully",
        "job train: Running",
        "pods: 2 Running",
    ]);
    stage.end_pod("train-t-0", 0).await;
    terminal.wait(&["1 Running"]);
    stage.end_pod("train-t-1", 0).await;
    let screen = terminal.wait(&["EXIT=0"]);
    assert!(screen.contains("job train Completed after"), "{screen}");
    assert!(
        !screen.contains("job train: "),
        "the line of progress is gone: {screen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_does_not_fit_shows_its_place_in_the_queue() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let file = write_job(|name, text| stage.file(name, text), "large", "1000");
    let terminal = Terminal::run(
        "queue",
        &line(&format!("vcctl job run -n {} -f {file} --wait", stage.namespace)),
    );
    terminal.wait(&["job large: Pending, 1 of 1 waiting in queue default, no pods yet"]);
    terminal.press(&["C-c"]);
    terminal.wait(&["EXIT=130"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_the_wait_is_lines_and_the_end_an_exit_code() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let file = write_job(|name, text| stage.file(name, text), "fails", "100m");
    let kubeconfig = cluster().kubeconfig_path();
    let start = |line: &str, kubeconfig: &Path| {
        let mut command = tool(line, &stage.namespace, kubeconfig);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut child = start(&format!("vcctl job run -n NS -f {file} --wait"), &kubeconfig);
    stage.wait_running("fails", 2).await;
    for pod in ["fails-t-0", "fails-t-1"] {
        stage.end_pod(pod, 3).await;
    }
    let status = tokio::task::spawn_blocking(move || {
        let status = child.wait().unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status.code(), out, err)
    });
    let (code, out, err) = status.await.unwrap();
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(
        out.starts_with("run job fails successfully\njob fails Failed after "),
        "{out}"
    );
    assert!(
        out.contains("pod fails-t-0: container main exited with 3\n"),
        "{out}"
    );
    assert!(
        err.lines()
            .any(|line| line.ends_with("job fails: Running, pods: 2 Running")),
        "{err}"
    );

    let file = write_job(|name, text| stage.file(name, text), "endless", "100m");
    let child = start(
        &format!("vcctl job run -n NS -f {file} --wait --timeout 2s"),
        &kubeconfig,
    );
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(124));
    let child = start("vcctl job run -n NS -N quick --wait", &kubeconfig);
    stage.wait_running("quick", 1).await;
    objects::delete(&stage.client, &stage.job_path("quick"))
        .await
        .unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}
