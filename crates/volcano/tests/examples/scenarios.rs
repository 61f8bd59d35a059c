//! What the descriptions of the examples about queues and priorities say happens: in the whole system, with simulated nodes and
//! in virtual time.

use super::{examples, read};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use volcano_local::{Nodes, Options, SimulatedNodes, System, virtual_clock};

/// How often things are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

struct Scene {
    system: System,
    folder: &'static str,
}

impl Scene {
    /// So many nodes of so many processors and 8Gi, with the configuration of the example if it has one.
    async fn new(folder: &'static str, nodes: usize, cpu: u32) -> Scene {
        let nodes = SimulatedNodes {
            count: nodes,
            cpu: cpu.to_string(),
            memory: "8Gi".to_owned(),
            ..SimulatedNodes::default()
        };
        let conf = examples().join(folder).join("volcano-scheduler.conf");
        let system = System::start(Options {
            nodes: Nodes::Simulated(vec![nodes]),
            scheduler_conf: std::fs::read_to_string(conf).ok(),
            clock: Some(virtual_clock("2030-01-01T00:00:00Z".parse().unwrap())),
            seed: Some(7),
            ..Options::default()
        });
        Scene {
            system: system.await.unwrap(),
            folder,
        }
    }

    /// Creates the objects of a file as they are.
    async fn apply(&self, file: &str) {
        self.apply_changed(file, |_| ()).await;
    }

    /// Creates the objects of a file with a change of each.
    async fn apply_changed(&self, file: &str, change: impl Fn(&mut Value)) {
        let text = read(&examples().join(self.folder).join(file));
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for mut object in objects {
            change(&mut object);
            let path = match object["kind"].as_str().unwrap() {
                "PriorityClass" => "/apis/scheduling.k8s.io/v1/priorityclasses",
                "Queue" => "/apis/scheduling.volcano.sh/v1beta1/queues",
                "Job" => "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
                other => panic!("{other}"),
            };
            let made = self.send("POST", path, &object).await;
            if object["kind"] == "Queue" {
                let path = format!("{path}/{}", made["metadata"]["name"].as_str().unwrap());
                self.until("the queue is open", async || {
                    self.send("GET", &path, &Value::Null).await["status"]["state"] == "Open"
                })
                .await;
            }
        }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = http::Request::builder().method(method).uri(path);
        let request = request
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let answer = self.system.client().request::<Value>(request).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Waits. The seconds that it took.
    async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) -> f64 {
        let began = Instant::now();
        while !holds().await {
            assert!(began.elapsed() < PATIENCE, "{}: never so: {what}", self.folder);
            tokio::time::sleep(LOOK).await;
        }
        began.elapsed().as_secs_f64()
    }

    async fn completed(&self, job: &str) -> f64 {
        let path = format!("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/{job}");
        self.until(&format!("{job} is completed"), async || {
            self.send("GET", &path, &Value::Null).await["status"]["state"]["phase"] == "Completed"
        })
        .await
    }

    /// Identities and phases of the pods of a Job.
    async fn pods(&self, job: &str) -> BTreeMap<String, String> {
        let path = format!("/api/v1/namespaces/default/pods?labelSelector=volcano.sh/job-name%3D{job}");
        let list = self.send("GET", &path, &Value::Null).await;
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        pods.iter()
            .map(|pod| (text(&pod["metadata"]["uid"]), text(&pod["status"]["phase"])))
            .collect()
    }

    /// How many pods of a Job are in a phase.
    async fn count(&self, job: &str, phase: &str) -> usize {
        let pods = self.pods(job).await;
        pods.values().filter(|one| *one == phase).count()
    }

    async fn runs(&self, job: &str, pods: usize) -> f64 {
        self.until(&format!("{pods} pods of {job} run"), async || {
            self.count(job, "Running").await == pods
        })
        .await
    }

    /// One Job fills the cluster; three seconds later another one comes. How many pods the first one lost until the other
    /// one had completed, and how long that took.
    async fn disturb(
        &self,
        first: (&str, usize),
        file: &str,
        second: &str,
        change: impl Fn(&mut Value),
    ) -> (usize, f64) {
        self.runs(first.0, first.1).await;
        let before = self.pods(first.0).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        self.apply_changed(file, change).await;
        let took = self.completed(second).await;
        let after = self.pods(first.0).await;
        let lost = before.keys().filter(|uid| !after.contains_key(*uid)).count();
        self.completed(first.0).await;
        (lost, took)
    }
}

#[tokio::test(start_paused = true)]
async fn an_urgent_gang_takes_the_room_of_pods_of_lower_priority() {
    let play = async |batch: fn(&mut Value), urgent: fn(&mut Value)| {
        let scene = Scene::new("preemption", 1, 3).await;
        scene.apply_changed("batch.yaml", batch).await;
        let outcome = scene.disturb(("batch", 3), "urgent.yaml", "urgent", urgent).await;
        scene.system.stop().await;
        outcome
    };
    let (lost, took) = play(|_| (), |_| ()).await;
    assert!(lost == 2 && (3.0..8.0).contains(&took), "{lost} lost, {took} s");
    // What cannot lose any is not disturbed, nor is an equal.
    let whole = |object: &mut Value| {
        if object["kind"] == "Job" {
            object["spec"]["minAvailable"] = 3.into();
            object["spec"]["tasks"][0]["minAvailable"] = 3.into();
        }
    };
    let (lost, took) = play(whole, |_| ()).await;
    assert!(lost == 0 && took > 12.0, "{lost} lost, {took} s");
    let (lost, took) = play(|_| (), |job| job["spec"]["priorityClassName"] = "low".into()).await;
    assert!(lost == 0 && took > 12.0, "{lost} lost, {took} s");
}

#[tokio::test(start_paused = true)]
async fn a_queue_takes_back_what_it_is_owed() {
    let play = async |queue: fn(&mut Value)| {
        let scene = Scene::new("reclaim", 2, 2).await;
        scene.apply_changed("queues.yaml", queue).await;
        scene.apply("sweep.yaml").await;
        let outcome = scene.disturb(("sweep", 4), "train.yaml", "train", |_| ()).await;
        scene.system.stop().await;
        outcome
    };
    let (lost, took) = play(|_| ()).await;
    assert!(lost == 2 && (3.0..8.0).contains(&took), "{lost} lost, {took} s");
    let (lost, took) = play(|queue| queue["spec"]["reclaimable"] = false.into()).await;
    assert!(lost == 0 && took > 12.0, "{lost} lost, {took} s");
    // Of four processors one is too little for the gang.
    let heavier = |queue: &mut Value| {
        if queue["metadata"]["name"] == "team-a" {
            queue["spec"]["weight"] = 3.into();
        }
    };
    let (lost, took) = play(heavier).await;
    assert!(lost == 0 && took > 12.0, "{lost} lost, {took} s");
}

#[tokio::test(start_paused = true)]
async fn a_gang_waits_no_longer_than_its_limit() {
    let (limited, pending) = gang_among_small_pods(|_| ()).await;
    // Its limit, the next cycle, and what runs then.
    assert!(
        limited <= 5.0 + 1.0 + 3.1 && pending > 0,
        "after {limited} s, {pending} pods wait"
    );
    let (waited, pending) = gang_among_small_pods(|job| {
        job["metadata"].as_object_mut().unwrap().remove("annotations");
    })
    .await;
    assert!(
        waited > limited && pending == 0,
        "without a limit: after {waited} s, {pending} pods wait"
    );
}

/// How long the gang of the example waits, and how many small pods still do when it starts.
async fn gang_among_small_pods(change: impl Fn(&mut Value)) -> (f64, usize) {
    let scene = Scene::new("sla", 1, 4).await;
    scene.apply("small.yaml").await;
    scene.runs("small", 4).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.apply_changed("big.yaml", change).await;
    let waited = scene.runs("big", 4).await;
    let pending = scene.count("small", "Pending").await;
    scene.completed("big").await;
    scene.completed("small").await;
    scene.system.stop().await;
    (waited, pending)
}

#[tokio::test(start_paused = true)]
async fn queues_share_by_weight() {
    let scene = Scene::new("weights", 2, 4).await;
    scene.apply("queues.yaml").await;
    scene.apply("jobs.yaml").await;
    scene
        .until("six processors for research and two for sales", async || {
            (
                scene.count("sweep-research", "Running").await,
                scene.count("sweep-sales", "Running").await,
            ) == (6, 2)
        })
        .await;
    scene.completed("sweep-research").await;
    let left = scene.count("sweep-sales", "Succeeded").await;
    assert!(left < 24, "sales has ended first");
    scene.completed("sweep-sales").await;
    scene.system.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_tree_of_queues_keeps_its_limits() {
    let scene = Scene::new("hierarchy", 2, 4).await;
    scene.apply("queues.yaml").await;
    scene.apply("jobs.yaml").await;
    let mut most = 0;
    scene
        .until("speech has ended", async || {
            most = most.max(scene.count("speech", "Running").await);
            scene.count("speech", "Succeeded").await == 6
        })
        .await;
    assert!((1..=3).contains(&most), "{most} pods of speech at once");
    for job in ["vision", "speech", "sales"] {
        scene.completed(job).await;
    }
    scene.system.stop().await;
}
