//! Ten thousand Jobs: the list begins soon after the server's answer, and takes little memory.

use crate::transcript::tool;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, Instant};
use volcano_cluster_tests::acts::done;
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::jobs::{job, task};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects;

const JOBS: usize = 10_000;
/// Of what the issue allows.
const MEMORY_KIB: u64 = 150 << 10;
const AFTER_THE_ANSWER: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_jobs_are_listed_at_once_and_in_little_memory() {
    let stage = done(Stage::set().await);
    let path = stage.job_path("");
    let jobs = (0..JOBS).map(|at| {
        let mut job = job(
            &format!("job-{at:05}"),
            &json!({"tasks": [task("master", 1), task("worker", 9)]}),
        );
        // Templates of Jobs are large; what is not printed must not be kept.
        job["metadata"]["annotations"] = json!({"padding": "x".repeat(2000)});
        (path.clone(), job)
    });
    done(objects::create_all(&stage.client, jobs).await);

    // The server's own time, for the same pages: once to warm up, once to count.
    let mut answer = Duration::ZERO;
    for _ in 0..2 {
        let began = Instant::now();
        assert_eq!(raw(&stage, &path).await, JOBS);
        answer = began.elapsed();
    }

    let began = Instant::now();
    let mut child = tool(
        "vcctl job list -n NS",
        &stage.namespace,
        &cluster().kubeconfig_path(),
    )
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut header = String::new();
    out.read_line(&mut header).unwrap();
    let first_line = began.elapsed();
    assert!(header.starts_with("Name "), "{header}");
    // Its output is larger than a pipe: until the rest is read it stands still, at its largest.
    let peak = peak_kib(child.id());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rest.lines().count(), JOBS);
    eprintln!("the server took {answer:?}, the first line {first_line:?}, peak {peak} KiB");
    assert!(
        first_line <= answer + AFTER_THE_ANSWER,
        "the first line came after {first_line:?}, the server's answer takes {answer:?}"
    );
    assert!(peak < MEMORY_KIB, "{peak} KiB at the most");
    done(objects::delete(&stage.client, &path).await);
}

/// Reads the list by the pages that the tool asks for, and does nothing with it but count.
async fn raw(stage: &Stage, path: &str) -> usize {
    let (mut count, mut next) = (0, String::new());
    loop {
        let page = objects::get(&stage.client, &format!("{path}?limit=500&continue={next}"))
            .await
            .unwrap();
        count += page["items"].as_array().map_or(0, Vec::len);
        match page["metadata"]["continue"].as_str() {
            Some(more) if !more.is_empty() => next = more.to_owned(),
            _ => return count,
        }
    }
}

fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
