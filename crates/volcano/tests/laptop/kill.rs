//! `volcano up --data-dir` ended with `kill -9` at any time: what was acknowledged is there afterwards, and all Jobs end.
//!
//! ```text
//! life 1: start ─ submit Jobs, count in a ConfigMap ─ kill -9
//! life 2: start ─ is all there that was acknowledged? ─ go on ─ kill -9
//! …       the last life ends when all Jobs have
//! ```
//!
//! `VOLCANO_CRASH_SEED` chooses the moments.

use crate::process::Running;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

const JOBS: usize = 200;
/// The last life has this long.
const LAST: Duration = Duration::from_secs(180);
const JOB_PATH: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
const MAP_PATH: &str = "/api/v1/namespaces/default/configmaps";

/// How often one is killed, when, and what its Jobs are.
struct Play {
    /// Arguments besides the data directory.
    words: &'static [&'static str],
    kills: usize,
    /// Milliseconds that a life has.
    life: Range<u64>,
    job: fn(usize) -> Value,
    /// Phases in which a Job may end.
    ends: fn(usize) -> &'static [&'static str],
}

#[test]
fn simulated_pods_go_on_where_they_were() {
    Play {
        // Room for a tenth of the Jobs at a time, so that the others wait.
        words: &["--nodes", "5"],
        kills: 12,
        life: 100..2500,
        job: |at| {
            let seconds = 1.0 + 0.3 * (at % 10) as f64;
            // Some fail and are restarted until they may not any more.
            match at % 5 {
                0 => job(at, 2, "1", &format!("sleep {seconds}; exit 1")),
                _ => job(at, 2, "1", &format!("sleep {seconds}")),
            }
        },
        // A simulated pod outlives the process, so that a crash changes nothing.
        ends: |at| match at % 5 {
            0 => &["Failed"],
            _ => &["Completed"],
        },
    }
    .act();
}

#[test]
fn processes_die_with_it_and_their_jobs_end_all_the_same() {
    Play {
        words: &["--cpu", "1"],
        kills: 5,
        life: 1000..5000,
        job: |at| job(at, 1, "100m", "sleep 1"),
        // Pods that were killed count as failed, and three times is too often.
        ends: |_| &["Completed", "Failed"],
    }
    .act();
}

/// What was acknowledged: Jobs with their UIDs, and the last value of the map.
#[derive(Default)]
struct Acknowledged {
    jobs: BTreeMap<String, String>,
    value: u64,
}

impl Play {
    fn act(&self) {
        let seed = std::env::var("VOLCANO_CRASH_SEED").ok();
        let seed = seed
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| fastrand::u64(..));
        println!("VOLCANO_CRASH_SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let mut acknowledged = Acknowledged::default();
        let threads = tokio::runtime::Runtime::new().unwrap();
        for _ in 0..self.kills {
            let limit = Duration::from_millis(random.u64(self.life.clone()));
            let ended = threads.block_on(self.live(folder.path(), &mut acknowledged, limit));
            println!("killed after {} ms: {ended} ended", limit.as_millis());
            assert!(ended < JOBS, "all Jobs had ended before the last kill");
        }
        let ended = threads.block_on(self.live(folder.path(), &mut acknowledged, LAST));
        assert_eq!(ended, JOBS, "Jobs that ended within {} s", LAST.as_secs());
        assert_eq!(acknowledged.jobs.len(), JOBS);
    }

    /// One life: what it has at its start must be all that was acknowledged. How many Jobs had ended at its end.
    async fn live(&self, folder: &Path, acknowledged: &mut Acknowledged, limit: Duration) -> usize {
        let words = [&["up", "--data-dir", "data"], self.words].concat();
        let mut running = Running::start(&words, folder);
        let killing = running.kill_after(limit);
        let mut ended = 0;
        if let Some(path) = running.find_kubeconfig() {
            // It goes on until the process is gone, unless all Jobs end before.
            let _ = self.drive(&client(&path).await, acknowledged, &mut ended).await;
        }
        if ended < JOBS {
            let (status, _) = running.end();
            assert_eq!(status.code(), None, "it ended by itself");
        } else {
            drop(killing);
            running.signal("TERM");
            assert_eq!(running.end().0.code(), Some(0));
        }
        ended
    }

    /// Submits what is missing, counts, and waits for the end of all Jobs.
    async fn drive(
        &self,
        client: &kube::Client,
        acknowledged: &mut Acknowledged,
        ended: &mut usize,
    ) -> Option<()> {
        let has = stored(client).await?;
        let is_lost = |(name, uid): &(&String, &String)| has.jobs.get(*name) != Some(uid);
        let lost: Vec<_> = acknowledged.jobs.iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        assert!(
            has.value >= acknowledged.value,
            "value {} was acknowledged, {} is there",
            acknowledged.value,
            has.value
        );
        // What was stored and not acknowledged counts from now on.
        *acknowledged = has;
        let Acknowledged { jobs, value } = acknowledged;
        let submitting = async {
            for at in 0..JOBS {
                let name = name(at);
                if jobs.contains_key(&name) {
                    continue;
                }
                let made = send(client, "POST", JOB_PATH, &(self.job)(at)).await?;
                jobs.insert(name, made["metadata"]["uid"].as_str().unwrap().to_owned());
            }
            Some(())
        };
        let watching = async {
            while *ended < JOBS {
                *ended = self.ended(client).await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Some(())
        };
        let watching = async { tokio::join!(submitting, watching) };
        tokio::select! {
            (submitted, watched) = watching => submitted.and(watched),
            counted = count(client, value) => counted,
        }
    }

    /// How many Jobs have ended as they should.
    async fn ended(&self, client: &kube::Client) -> Option<usize> {
        let jobs = send(client, "GET", JOB_PATH, &Value::Null).await?;
        let jobs = jobs["items"].as_array().cloned().unwrap_or_default();
        let has_ended = |job: &&Value| {
            let number = text(job, "name").trim_start_matches("job-").parse().unwrap();
            let phase = job["status"]["state"]["phase"].as_str().unwrap_or_default();
            (self.ends)(number).contains(&phase)
        };
        Some(jobs.iter().filter(has_ended).count())
    }
}

fn name(at: usize) -> String {
    format!("job-{at}")
}

fn job(at: usize, replicas: u32, cpu: &str, script: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name(at), "namespace": "default"},
        "spec": {
            "minAvailable": replicas,
            "schedulerName": "volcano",
            "maxRetry": 2,
            "plugins": {"svc": [], "env": []},
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "tasks": [{"name": "t", "replicas": replicas, "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main",
                    "image": "none",
                    "command": ["sh", "-c", script],
                    "resources": {"requests": {"cpu": cpu}},
                }],
            }}}],
        },
    })
}

/// Counts in a ConfigMap until the process is gone.
async fn count(client: &kube::Client, value: &mut u64) -> Option<()> {
    if *value == 0 {
        let map = json!({"metadata": {"name": "value"}, "data": {"value": "1"}});
        send(client, "POST", MAP_PATH, &map).await?;
        *value = 1;
    }
    loop {
        let patch = json!({"data": {"value": (*value + 1).to_string()}});
        send(client, "PATCH", &format!("{MAP_PATH}/value"), &patch).await?;
        *value += 1;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

async fn stored(client: &kube::Client) -> Option<Acknowledged> {
    let jobs = send(client, "GET", JOB_PATH, &Value::Null).await?;
    let maps = send(client, "GET", MAP_PATH, &Value::Null).await?;
    let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    let map = items(&maps).into_iter().find(|map| text(map, "name") == "value");
    let value = map.and_then(|map| map["data"]["value"].as_str()?.parse().ok());
    Some(Acknowledged {
        jobs: items(&jobs)
            .iter()
            .map(|job| (text(job, "name").to_owned(), text(job, "uid").to_owned()))
            .collect(),
        value: value.unwrap_or(0),
    })
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub async fn client(kubeconfig: &Path) -> kube::Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}

/// The answer; nothing if the process is gone.
pub async fn send(client: &kube::Client, method: &str, path: &str, body: &Value) -> Option<Value> {
    let content = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .body(body)
        .unwrap();
    match client.request(request).await {
        Ok(answer) => Some(answer),
        Err(kube::Error::Api(status)) => panic!("{method} {path}: {status:?}"),
        Err(_) => None,
    }
}
