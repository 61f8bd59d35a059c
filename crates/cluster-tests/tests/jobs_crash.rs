//! The controllers end without a warning in the middle of their work, again and again: every Job ends as it would have,
//! no pod is made twice, and none is left behind.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::controllers::Controllers;
use volcano_cluster_tests::jobs::{job, task, with};
use volcano_cluster_tests::ledger::{Entry, Ledger};
use volcano_cluster_tests::seed::seed;
use volcano_cluster_tests::stage::Stage;
use volcano_cluster_tests::witness::Witness;
use volcano_testcluster::objects::{self, Node, Progress};

/// For what the control plane has to do in between, on a machine that has other things to do too.
const TIMEOUT: Duration = Duration::from_secs(180);
/// A lease that is free again soon after its holder died.
const SHORT_LEASE: [&str; 4] = [
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1s",
    "--leader-elect-retry-period=200ms",
    "--kube-api-qps=0",
];
const JOBS: usize = 200;
const KILLS: usize = 20;
/// How often the kubelets look.
const KUBELET: Duration = Duration::from_millis(100);

/// A kind of Job: what it is, how its pods end, and how it ends itself.
struct Script {
    name: &'static str,
    spec: Value,
    /// The exit code of a pod by task and attempt; none for one that runs on.
    ends: fn(&str, i32) -> Option<i32>,
    /// Whether users abort it.
    is_aborted: bool,
    phase: &'static str,
    retries: i64,
    /// Pods that are made for it in all.
    pods: usize,
    /// Pods that stay when it has ended.
    left: usize,
}

fn scripts() -> Vec<Script> {
    let on_failure = |action: &str| json!([{"event": "PodFailed", "action": action}]);
    let two_tasks = json!([task("a", 2), task("b", 1)]);
    let script = |name, spec, ends| Script {
        name,
        spec,
        ends,
        is_aborted: false,
        phase: "Completed",
        retries: 0,
        pods: 3,
        left: 3,
    };
    vec![
        script("plain", json!({"tasks": two_tasks}), |_, _| Some(0)),
        // Nobody evicts anything: what a new leader does not see yet is not lost.
        script(
            "stays",
            json!({"tasks": two_tasks, "policies": [{"event": "PodEvicted", "action": "RestartJob"}]}),
            |_, _| Some(0),
        ),
        Script {
            retries: 1,
            pods: 6,
            ..script(
                "again",
                json!({"tasks": two_tasks, "policies": on_failure("RestartJob")}),
                |task, attempt| Some(i32::from(task == "b" && attempt == 0)),
            )
        },
        Script {
            retries: 1,
            pods: 4,
            ..script(
                "part",
                json!({"tasks": two_tasks, "policies": on_failure("RestartTask")}),
                |task, attempt| Some(i32::from(task == "b" && attempt == 0)),
            )
        },
        Script {
            phase: "Failed",
            retries: 2,
            pods: 6,
            left: 1,
            ..script(
                "fails",
                json!({"tasks": two_tasks, "maxRetry": 2, "policies": on_failure("RestartJob")}),
                |task, _| (task == "b").then_some(1),
            )
        },
        Script {
            left: 1,
            ..script(
                "main",
                json!({"tasks": [task("side", 2), with(task("main", 1),
                    &json!({"policies": [{"event": "TaskCompleted", "action": "CompleteJob"}]}))]}),
                |task, _| (task == "main").then_some(0),
            )
        },
        Script {
            is_aborted: true,
            phase: "Aborted",
            left: 0,
            ..script("stops", json!({"tasks": two_tasks}), |_, _| None)
        },
    ]
}

fn script_of<'a>(scripts: &'a [Script], job: &str) -> &'a Script {
    let script = scripts.iter().find(|script| job.starts_with(script.name));
    script.expect("every Job has a script")
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_are_killed_twenty_times_end_every_job_as_they_should() {
    let test = "controllers_that_are_killed_twenty_times_end_every_job_as_they_should";
    let mut random = fastrand::Rng::with_seed(seed("jobs_crash", test));
    let stage = Stage::set().await.unwrap();
    let nodes = (0..8).map(|at| Node::new(&format!("node-{at}")).cpu("64").memory("256Gi"));
    objects::create_nodes(&stage.client, nodes).await.unwrap();
    let _scheduler = stage.scheduler(&[]).unwrap();
    let witness = Witness::with(&stage.client, &stage.namespace, Ledger::default())
        .await
        .unwrap();
    let scripts = scripts();
    let names: Vec<String> = (0..JOBS)
        .map(|at| format!("{}-{at}", scripts[at % scripts.len()].name))
        .collect();
    let jobs = names.iter().map(|name| {
        let spec = &script_of(&scripts, name).spec;
        (stage.job_path(""), job(name, spec))
    });
    objects::create_all(&stage.client, jobs).await.unwrap();
    let all: usize = names.iter().map(|name| script_of(&scripts, name).pods).sum();

    let mut controllers = launch();
    let kills = async {
        let mut last = 0;
        for point in kill_points(&mut random, all) {
            // Each has made something before it dies.
            let point = point.max(last + 1).min(all * 19 / 20);
            let what = format!("{point} pods were made");
            let reached = witness.until(&what, TIMEOUT, |ledger| ledger.made() >= point);
            reached.await.unwrap();
            // Somewhere between this write and the next ones.
            tokio::time::sleep(Duration::from_millis(random.u64(0..150))).await;
            let old = std::mem::replace(&mut controllers, launch());
            old.kill().unwrap();
            last = witness.seen().made();
            eprintln!("killed with {last} pods made");
        }
    };
    tokio::select! {
        () = kills => {}
        () = play(&stage, &witness, &scripts) => unreachable!("it goes on"),
    }
    tokio::select! {
        () = ended(&stage, &scripts, &names) => {}
        () = play(&stage, &witness, &scripts) => unreachable!("it goes on"),
    }

    witness.all_right().unwrap();
    assert_eq!(witness.seen().made(), all, "as many pods as without a crash");
    for name in &names {
        let seen = witness.seen();
        let left = seen.pods().filter(|pod| pod.job == *name).count();
        assert_eq!(left, script_of(&scripts, name).left, "pods of {name}");
    }
    let groups = objects::list(&stage.client, &stage.group_path("")).await.unwrap();
    assert_eq!(groups.len(), 0, "no PodGroup is left");
    assert!(controllers.stop().unwrap().success());
}

fn launch() -> Controllers {
    Controllers::launch(
        &cluster().kubeconfig_path(),
        cluster().data_directory(),
        &SHORT_LEASE,
    )
    .unwrap()
}

/// Numbers of pods made at which the controllers are killed, in order: one in each part of the work.
fn kill_points(random: &mut fastrand::Rng, all: usize) -> Vec<usize> {
    // The last ones wait for what others do, so that there may be nothing more to interrupt.
    let part = all * 9 / 10 / KILLS;
    (0..KILLS).map(|at| at * part + random.usize(1..=part)).collect()
}

/// What kubelets and users do: pods start, and end as their scripts say; Jobs whose pods run are aborted.
async fn play(stage: &Stage, witness: &Witness<Ledger>, scripts: &[Script]) {
    let mut ordered = std::collections::BTreeSet::new();
    loop {
        let pods: Vec<Entry> = witness.seen().pods().cloned().collect();
        let mut running: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in &pods {
            *running.entry(&pod.job).or_default() += usize::from(pod.phase == "Running");
        }
        for (job, count) in &running {
            if script_of(scripts, job).is_aborted && *count == 3 && ordered.insert((*job).to_owned()) {
                stage.order(job, "AbortJob").await;
            }
        }
        futures::stream::iter(&pods)
            .for_each_concurrent(16, |pod| attend(stage, scripts, pod))
            .await;
        tokio::time::sleep(KUBELET).await;
    }
}

/// What a kubelet does with a pod that it sees. As a kubelet means that pod and no other, a pod that has changed since, or
/// another one of its name, is left alone: the next look is as good.
async fn attend(stage: &Stage, scripts: &[Script], pod: &Entry) {
    if pod.is_leaving {
        let path = stage.pod_path(&pod.name);
        let _ = objects::delete_now_as_seen(&stage.client, &path, &pod.version).await;
    } else if pod.is_placed && pod.phase == "Pending" {
        let ready = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]);
        report(stage, pod, json!({"phase": "Running", "conditions": ready})).await;
    } else if pod.phase == "Running" {
        let script = script_of(scripts, &pod.job);
        if let Some(code) = (script.ends)(&pod.task, pod.attempt) {
            report(stage, pod, ended_with(code)).await;
        }
    }
}

fn ended_with(code: i32) -> Value {
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let state = json!({"terminated": {"exitCode": code, "reason": "Ended"}});
    json!({"phase": phase, "containerStatuses": [
        {"name": "main", "image": "none", "imageID": "", "ready": false, "restartCount": 0, "state": state}]})
}

async fn report(stage: &Stage, pod: &Entry, status: Value) {
    let path = format!("{}/status", stage.pod_path(&pod.name));
    let patch = json!({"metadata": {"resourceVersion": pod.version}, "status": status});
    let _ = objects::merge_patch(&stage.client, &path, &patch).await;
}

/// Waits until every Job has ended as its script says.
async fn ended(stage: &Stage, scripts: &[Script], names: &[String]) {
    let waited = objects::wait_until("every Job has ended", TIMEOUT, || async {
        let jobs = objects::list(&stage.client, &stage.job_path("")).await?;
        let wrong: Vec<String> = jobs
            .iter()
            .filter_map(|job| {
                let name = objects::name_of(job);
                let script = script_of(scripts, name);
                let status = &job["status"];
                let phase = status["state"]["phase"].as_str().unwrap_or_default();
                let retries = status["retryCount"].as_i64().unwrap_or(0);
                let is_right = phase == script.phase && retries == script.retries;
                (!is_right).then(|| format!("{name} is after {retries} retries {}", status["state"]))
            })
            .collect();
        Ok(match wrong.is_empty() && jobs.len() == names.len() {
            true => Progress::Done(()),
            false => Progress::Waiting(format!("{} of {}: {wrong:?}", wrong.len(), jobs.len())),
        })
    });
    waited.await.unwrap();
}
