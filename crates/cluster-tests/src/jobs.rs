//! What tests of the controllers do: a cluster in which a scheduler, the controllers and kubelets are at work, Jobs, and
//! waiting for what becomes of them.

#![allow(
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use crate::acts::{done, until};
use crate::controllers::Controllers;
use crate::scheduler::Scheduler;
use crate::stage::Stage;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::AbortHandle;
use volcano_testcluster::objects::{self, Node, Progress, check};

/// How often the kubelets look.
const KUBELET: Duration = Duration::from_millis(50);
/// Group and version of Jobs.
pub const BATCH: &str = "batch.volcano.sh/v1alpha1";

/// A cluster in which everybody is at work.
pub struct Troupe {
    /// The cluster.
    pub stage: Stage,
    /// The controllers.
    pub controllers: Controllers,
    /// The scheduler.
    pub scheduler: Scheduler,
    _kubelets: Kubelets,
}

/// Kubelets that start the pods on their nodes and let those go that are deleted, until this is dropped.
pub struct Kubelets(AbortHandle);

impl Kubelets {
    /// Those of the pods of a namespace.
    pub fn start(client: &kube::Client, namespace: &str) -> Self {
        let (client, namespace) = (client.clone(), namespace.to_owned());
        let work = async move {
            loop {
                // A pod may go while it is looked at; the next look is as good.
                let _ = objects::play_kubelet(&client, &namespace).await;
                tokio::time::sleep(KUBELET).await;
            }
        };
        Kubelets(tokio::spawn(work).abort_handle())
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A task of so many pods, which sets no minimum of its own.
pub fn task(name: &str, replicas: usize) -> Value {
    json!({"name": name, "replicas": replicas, "template": template()})
}

/// A pod of one container.
pub fn template() -> Value {
    let requests = json!({"cpu": "100m", "memory": "64Mi"});
    json!({"spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "none", "resources": {"requests": requests}}]}})
}

/// The value with further fields.
pub fn with(mut value: Value, fields: &Value) -> Value {
    if let (Some(value), Some(fields)) = (value.as_object_mut(), fields.as_object()) {
        value.extend(fields.clone());
    }
    value
}

/// A Job as the admission webhook leaves it: defaults are filled in.
pub fn job(name: &str, spec: &Value) -> Value {
    let mut spec = spec.as_object().cloned().unwrap_or_else(Map::new);
    let replicas = spec["tasks"].as_array().into_iter().flatten();
    let all: i64 = replicas.filter_map(|task| task["replicas"].as_i64()).sum();
    for (field, value) in [
        ("minAvailable", json!(all)),
        ("queue", json!("default")),
        ("schedulerName", json!("volcano")),
        ("maxRetry", json!(3)),
    ] {
        spec.entry(field).or_insert(value);
    }
    json!({"apiVersion": BATCH, "kind": "Job", "metadata": {"name": name}, "spec": spec})
}

impl Troupe {
    /// Everybody, on a clean cluster with room for plenty of pods.
    pub async fn play() -> Troupe {
        Troupe::play_with(&[]).await
    }

    /// The same, with flags of the controllers.
    pub async fn play_with(flags: &[&str]) -> Troupe {
        let stage = done(Stage::set().await);
        for at in 0..2 {
            let node = Node::new(&format!("node-{at}")).cpu("64").memory("256Gi");
            stage.add_node(&node).await;
        }
        let scheduler = done(stage.scheduler(&[]));
        let controllers = done(stage.controllers(flags));
        let kubelets = Kubelets::start(&stage.client, &stage.namespace);
        Troupe {
            stage,
            controllers,
            scheduler,
            _kubelets: kubelets,
        }
    }
}

impl Stage {
    /// Path of a Job.
    pub fn job_path(&self, name: &str) -> String {
        objects::path(BATCH, &self.namespace, "jobs", name)
    }

    /// Path of an object of the test's namespace.
    pub fn path(&self, api_version: &str, plural: &str, name: &str) -> String {
        objects::path(api_version, &self.namespace, plural, name)
    }

    /// Submits a Job. It as it is stored.
    pub async fn submit(&self, name: &str, spec: &Value) -> Value {
        self.create(&self.job_path(""), &job(name, spec)).await
    }

    /// Waits for the phase of a Job.
    pub async fn wait_job(&self, name: &str, phase: &str) -> Value {
        let what = format!("its phase is {phase}");
        self.wait(&self.job_path(name), &what, |job| {
            job["status"]["state"]["phase"] == phase
        })
        .await
    }

    /// Waits until so many pods of a Job run. Their UIDs by name.
    pub async fn wait_running(&self, job: &str, count: usize) -> BTreeMap<String, String> {
        let what = format!("{count} pods of {job} run");
        until(&what, || async {
            let pods = self.try_pods(job).await?;
            let runs = |pod: &&Value| {
                pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
            };
            let running: Vec<_> = pods.iter().filter(runs).collect();
            let named = |pod: &&Value| (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]));
            Ok(match running.len() {
                there if there == count => Progress::Done(running.iter().map(named).collect()),
                there => Progress::Waiting(format!("{there} of {}: {:?}", pods.len(), shown(&pods))),
            })
        })
        .await
    }

    /// Waits until there are exactly these pods of a Job, each as `name phase`.
    pub async fn wait_pods(&self, job: &str, expected: &[&str]) {
        until(&format!("the pods of {job} are {expected:?}"), || async {
            let pods = shown(&self.try_pods(job).await?);
            Ok(check(pods == expected, || format!("{pods:?}")))
        })
        .await;
    }

    /// The pods of a Job.
    pub async fn pods_of(&self, job: &str) -> Vec<Value> {
        done(self.try_pods(job).await)
    }

    async fn try_pods(&self, job: &str) -> anyhow::Result<Vec<Value>> {
        let mut pods = objects::pods(&self.client, &self.namespace).await?;
        pods.retain(|pod| pod["metadata"]["annotations"]["volcano.sh/job-name"] == job);
        pods.sort_by_key(|pod| text(&pod["metadata"]["name"]));
        Ok(pods)
    }

    /// A pod ends with an exit code, as its kubelet tells.
    pub async fn end_pod(&self, pod: &str, code: i32) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let end = json!({"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z",
            "startedAt": "2026-01-01T00:00:00Z", "reason": "Ended"}});
        let container = json!({"name": "main", "image": "none", "imageID": "", "ready": false,
            "restartCount": 0, "state": end});
        let status = json!({"phase": phase, "containerStatuses": [container]});
        done(objects::merge_patch_status(&self.client, &self.pod_path(pod), &status).await);
    }

    /// Gives an order to a Job.
    pub async fn order(&self, job: &str, action: &str) -> String {
        let uid = self.get(&self.job_path(job)).await["metadata"]["uid"].clone();
        let target = json!({"apiVersion": BATCH, "kind": "Job", "name": job, "uid": uid});
        self.command(&format!("{job}-{}-", action.to_lowercase()), action, &target)
            .await
    }

    /// Gives an order. The name of the Command.
    pub async fn command(&self, prefix: &str, action: &str, target: &Value) -> String {
        let path = self.path("bus.volcano.sh/v1alpha1", "commands", "");
        let command = json!({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
            "metadata": {"generateName": prefix}, "action": action, "target": target});
        text(&self.create(&path, &command).await["metadata"]["name"])
    }

    /// Waits until all Commands of the namespace are carried out.
    pub async fn wait_obeyed(&self) {
        until("all Commands are gone", || async {
            let path = self.path("bus.volcano.sh/v1alpha1", "commands", "");
            let left = objects::list(&self.client, &path).await?;
            Ok(check(left.is_empty(), || format!("{left:?}")))
        })
        .await;
    }
}

/// A text.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn shown(pods: &[Value]) -> Vec<String> {
    let shown = |pod: &Value| {
        format!(
            "{} {}",
            text(&pod["metadata"]["name"]),
            text(&pod["status"]["phase"])
        )
    };
    pods.iter().map(shown).collect()
}
