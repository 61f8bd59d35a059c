//! A running system with a time of its own, and what tests do with it.

use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, join_all};
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;
use volcano_local::{Nodes, Options, SimulatedNodes, System, virtual_clock};

/// What a case says: nothing, or what differs from what was expected.
pub type Outcome = Result<(), String>;
/// A case: its name, and what it does.
pub type Case<'a> = (String, LocalBoxFuture<'a, Outcome>);

/// How often things are looked at while something is waited for.
const LOOK: Duration = Duration::from_millis(250);
/// How long something is waited for.
pub const PATIENCE: Duration = Duration::from_secs(1500);
/// The day on which everything happens.
const DAY: &str = "2030-01-01T00:00:00Z";

const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
pub const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
pub const GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
const COMMANDS: &str = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands";

pub struct Field {
    system: System,
    client: kube::Client,
    began: Instant,
    jobs: Cell<usize>,
}

/// A group of nodes with this many CPUs each, named after the label `pool` that they have.
pub fn pool(name: &str, count: usize, cpu: u32) -> SimulatedNodes {
    SimulatedNodes {
        prefix: name.to_owned(),
        count,
        cpu: cpu.to_string(),
        labels: [("pool".to_owned(), name.to_owned())].into(),
        ..SimulatedNodes::default()
    }
}

impl Field {
    pub async fn new(pools: Vec<SimulatedNodes>) -> Field {
        Field::with_conf(pools, None).await
    }

    pub async fn with_conf(pools: Vec<SimulatedNodes>, conf: Option<&str>) -> Field {
        let system = System::start(Options {
            nodes: Nodes::Simulated(pools),
            scheduler_conf: conf.map(str::to_owned),
            clock: Some(virtual_clock(DAY.parse().unwrap())),
            seed: Some(7),
            ..Options::default()
        });
        let system = system.await.unwrap();
        Field {
            client: system.client(),
            system,
            began: Instant::now(),
            jobs: Cell::default(),
        }
    }

    /// Stops it, after so many Jobs.
    pub async fn stop(self, jobs: usize) {
        self.system.stop().await;
        assert_eq!(self.jobs.get(), jobs, "Jobs that ran");
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    pub async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content);
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = request.body(body).unwrap();
        self.client
            .request::<Value>(request)
            .await
            .map_err(|error| format!("{method} {path}: {error}"))
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        self.send("GET", path, &Value::Null).await.ok()
    }

    pub async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn submit(&self, job: &Value) -> Result<Value, String> {
        let made = self.send("POST", JOBS, job).await?;
        self.jobs.set(self.jobs.get() + 1);
        Ok(made)
    }

    pub async fn job(&self, name: &str) -> Value {
        self.get(&format!("{JOBS}/{name}")).await.unwrap_or_default()
    }

    pub async fn pod(&self, name: &str) -> Value {
        self.get(&format!("{PODS}/{name}")).await.unwrap_or_default()
    }

    /// The pods of a Job, by name.
    pub async fn pods(&self, job: &str) -> Vec<Value> {
        self.list(&format!("{PODS}?labelSelector=volcano.sh/job-name%3D{job}"))
            .await
    }

    pub async fn uids(&self, job: &str) -> Vec<(String, String)> {
        let pods = self.pods(job).await;
        pods.iter()
            .map(|pod| (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"])))
            .collect()
    }

    pub async fn make(&self, path: &str, object: Value) -> Result<Value, String> {
        self.send("POST", path, &object).await
    }

    pub async fn make_pod(&self, pod: Value) -> Result<Value, String> {
        self.make(PODS, pod).await
    }

    pub async fn delete_pod(&self, name: &str) -> Result<Value, String> {
        self.send("DELETE", &format!("{PODS}/{name}"), &Value::Null).await
    }

    /// Gives an order to a Job.
    pub async fn command(&self, job: &str, action: &str) -> Result<Value, String> {
        let object = self.job(job).await;
        let command = json!({
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": format!("{job}-"), "namespace": "default"},
            "action": action,
            "target": {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "name": job,
                "uid": object["metadata"]["uid"],
                "controller": true,
            },
        });
        self.make(COMMANDS, command).await
    }

    /// Makes a queue below the root, and waits until it takes Jobs.
    pub async fn queue(&self, name: &str, spec: Value) -> Outcome {
        let queue = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
        });
        self.make(QUEUES, queue).await?;
        self.until("open", async || {
            let queue = self.get(&format!("{QUEUES}/{name}")).await.unwrap_or_default();
            (queue["status"]["state"] == "Open", queue)
        })
        .await
    }

    /// Gives an order to a queue.
    pub async fn command_queue(&self, queue: &str, action: &str) -> Result<Value, String> {
        let object = self.get(&format!("{QUEUES}/{queue}")).await.unwrap_or_default();
        let command = json!({
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": format!("{queue}-"), "namespace": "default"},
            "action": action,
            "target": {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "name": queue,
                "uid": object["metadata"]["uid"],
                "controller": true,
            },
        });
        self.make(COMMANDS, command).await
    }

    pub async fn priority_class(&self, name: &str, value: i32) -> Result<Value, String> {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        });
        self.make("/apis/scheduling.k8s.io/v1/priorityclasses", class)
            .await
    }

    /// Waits until something holds. What was seen last is told if it does not in time.
    pub async fn until<T: std::fmt::Debug>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> (bool, T),
    ) -> Outcome {
        let until = Instant::now() + PATIENCE;
        loop {
            let (holds, seen) = look().await;
            if holds {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("never {what}; last: {seen:?}"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a Job is in a phase, and stays there.
    pub async fn reaches(&self, job: &str, phase: &str) -> Outcome {
        self.until(&format!("in phase {phase}"), async || {
            let status = self.job(job).await["status"].take();
            (status["state"]["phase"] == phase, brief(&status))
        })
        .await
    }

    /// Waits until so many pods of a Job run.
    pub async fn runs(&self, job: &str, count: usize) -> Outcome {
        self.until(&format!("{count} pods running"), async || {
            let phases = self.phases(job).await;
            let running = phases.iter().filter(|(_, phase)| phase == "Running").count();
            (running == count, phases)
        })
        .await
    }

    /// Names and phases of the pods of a Job; `Terminating` for those that are being deleted.
    pub async fn phases(&self, job: &str) -> Vec<(String, String)> {
        let pods = self.pods(job).await;
        pods.iter()
            .map(|pod| {
                let phase = match pod["metadata"]["deletionTimestamp"].is_null() {
                    true => text(&pod["status"]["phase"]),
                    false => "Terminating".to_owned(),
                };
                (text(&pod["metadata"]["name"]), phase)
            })
            .collect()
    }

    /// Lets some time pass.
    pub async fn pass(&self, seconds: f64) {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }

    /// The phases that a Job was in, in order.
    pub async fn history(&self, job: &str) -> Vec<String> {
        let job = self.job(job).await;
        let conditions = job["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut phases: Vec<String> = conditions.iter().map(|one| text(&one["status"])).collect();
        phases.dedup();
        phases
    }

    pub fn system(&self) -> &System {
        &self.system
    }
}

/// What matters of a Job's status.
fn brief(status: &Value) -> String {
    let counts = [
        "pending",
        "running",
        "succeeded",
        "failed",
        "terminating",
        "retryCount",
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|name| !status[**name].is_null())
        .map(|name| format!("{name} {}", status[*name]))
        .collect();
    format!("{} ({})", status["state"], counts.join(", "))
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Says what differs, if something does.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {found:?}"))
}

pub fn holds(what: &str, is_so: bool) -> Outcome {
    if is_so {
        Ok(())
    } else {
        Err(format!("not so: {what}"))
    }
}

pub fn case<'a>(name: impl Into<String>, body: impl Future<Output = Outcome> + 'a) -> Case<'a> {
    (name.into(), body.boxed_local())
}

/// Runs cases side by side; tells all that failed.
pub async fn all(cases: Vec<Case<'_>>) {
    let count = cases.len();
    let cases = cases.into_iter().map(|(name, case)| async move {
        let outcome = case.await;
        outcome.err().map(|differs| format!("{name}: {differs}"))
    });
    let failed: Vec<String> = join_all(cases).await.into_iter().flatten().collect();
    assert!(
        failed.is_empty(),
        "{} of {count} cases failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// A pod template whose container runs a shell script.
pub fn template(script: &str) -> Value {
    template_in("", script)
}

/// The same on the nodes of a pool.
pub fn template_in(pool: &str, script: &str) -> Value {
    let mut spec = json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "main",
            "image": "busybox:1",
            "command": ["sh", "-c", script],
            "resources": {"requests": {"cpu": "1"}},
        }],
    });
    if !pool.is_empty() {
        spec["nodeSelector"] = json!({"pool": pool});
    }
    json!({"spec": spec})
}

pub fn task(name: &str, replicas: u32, script: &str) -> Value {
    json!({"name": name, "replicas": replicas, "template": template(script)})
}

pub fn job(name: &str, min_available: u32, tasks: &[Value]) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": min_available, "schedulerName": "volcano", "tasks": tasks},
    })
}

/// Some more of an object.
pub fn with(mut object: Value, path: &str, value: Value) -> Value {
    let (parent, field) = path.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}
