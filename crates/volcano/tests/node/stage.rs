//! A plane with one node.

use crate::machine::can_run;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use volcano_apiserver::Plane;
use volcano_node::{Agent, Isolation, Options};

/// Longer than anything takes on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
pub const NODE: &str = "here";

pub struct Stage {
    pub plane: Plane,
    pub agent: Option<Agent>,
    pub directory: tempfile::TempDir,
}

impl Stage {
    pub async fn start() -> Stage {
        Stage::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut Options)) -> Stage {
        let plane = Plane::start(volcano_apiserver::Options::default()).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut stage = Stage {
            plane,
            agent: None,
            directory,
        };
        stage.start_agent(change).await;
        stage
    }

    pub async fn start_agent(&mut self, change: impl FnOnce(&mut Options)) {
        let mut options = options(self.directory.path());
        change(&mut options);
        let agent = Agent::start(self.plane.client(), options).await.unwrap();
        self.plane.set_logs(agent.logs());
        self.agent = Some(agent);
    }

    pub fn agent(&self) -> &Agent {
        self.agent.as_ref().unwrap()
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.plane.client(), "default")
    }

    pub async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>
            + k8s_openapi::Resource
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
        <K as kube::Resource>::DynamicType: Default,
    {
        let api: Api<K> = Api::namespaced(self.plane.client(), "default");
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    /// A pod on the node with one container that runs a script.
    pub async fn script(&self, name: &str, script: &str) -> Pod {
        self.pod(name, json!({"containers": [container(script)]})).await
    }

    pub async fn pod(&self, name: &str, mut spec: Value) -> Pod {
        spec["nodeName"] = NODE.into();
        if spec["restartPolicy"].is_null() {
            spec["restartPolicy"] = "Never".into();
        }
        let pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
        self.create(pod).await
    }

    /// Waits until a pod is as it should be.
    pub async fn until(&self, name: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let pod = self.pods().get_opt(name).await.unwrap();
            let pod = serde_json::to_value(&pod).unwrap();
            if fits(&pod) {
                return pod;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "pod {name} is not {what}: {:#} {:#?}",
                pod["status"],
                self.events(name).await
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn phase(&self, name: &str, phase: &str) -> Value {
        self.until(name, phase, |pod| pod["status"]["phase"] == phase)
            .await
    }

    pub async fn gone(&self, name: &str) {
        self.until(name, "gone", Value::is_null).await;
    }

    pub async fn delete(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn log(&self, name: &str) -> String {
        self.pods().logs(name, &LogParams::default()).await.unwrap()
    }

    /// Waits until a log has a text.
    pub async fn log_with(&self, name: &str, text: &str) -> String {
        let begin = Instant::now();
        loop {
            let log = self.pods().logs(name, &LogParams::default()).await;
            if let Ok(log) = &log
                && log.contains(text)
            {
                return log.clone();
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "the log of {name} has no {text:?}: {log:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Reason and message of all events of a pod.
    pub async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.plane.client(), "default");
        let list = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let found = events.list(&list).await.unwrap().items.into_iter();
        found
            .map(|event| {
                (
                    event.reason.unwrap_or_default(),
                    event.message.unwrap_or_default(),
                )
            })
            .collect()
    }

    pub async fn event(&self, name: &str, reason: &str) -> String {
        let begin = Instant::now();
        loop {
            let events = self.events(name).await;
            if let Some((_, message)) = events.iter().find(|(known, _)| known == reason) {
                return message.clone();
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "pod {name} has no event {reason}: {events:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn stop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.stop().await;
        }
    }
}

pub fn options(directory: &Path) -> Options {
    let mut options = Options::new(NODE, directory.join("node"));
    options.program = Some(env!("CARGO_BIN_EXE_volcano").into());
    options
}

pub fn container(script: &str) -> Value {
    json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]})
}

/// The isolations that can be had here.
pub fn isolations() -> Vec<Isolation> {
    if can_run(&[]) {
        vec![Isolation::Root, Isolation::User, Isolation::None]
    } else {
        vec![Isolation::User, Isolation::None]
    }
}

/// Processes with a word on their command line.
pub fn processes(word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let has = line.split(|byte| *byte == 0).any(|one| one == word.as_bytes());
            has.then_some(pid)
        })
        .collect()
}

/// Waits until something holds.
pub async fn holds(what: &str, fits: impl Fn() -> bool) {
    let begin = Instant::now();
    while !fits() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A number that no other process sleeps for.
pub fn odd_time() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{}.{}",
        100_000 + std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}
