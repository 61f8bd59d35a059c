//! What tests of the scheduler do on the [`Stage`]: put nodes, gangs and queues on it, and wait for what becomes of them.
//!
//! Whatever does not go as told stops the test: a scheduler that is dropped then prints its log.

#![allow(
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

use crate::process::{Process, Program};
use crate::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;
use volcano_testcluster::objects::{self, Node, Pod, Progress, check};

/// How long what a test waits for may take. Far more than it does, for machines that do other things too.
pub const PATIENCE: Duration = Duration::from_secs(60);
const SCHEDULING: &str = "scheduling.volcano.sh/v1beta1";

/// Stops the test with the whole story of an error.
pub fn done<T>(outcome: anyhow::Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Waits until something holds.
pub async fn until<T, F>(what: &str, look: impl FnMut() -> F) -> T
where
    F: Future<Output = anyhow::Result<Progress<T>>>,
{
    done(objects::wait_until(what, PATIENCE, look).await)
}

/// Waits until the log has a line with all parts, and checks that it is one and that nothing panicked.
pub async fn wait_said<P: Program>(process: &Process<P>, parts: &[&str]) {
    let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
    until(&format!("the log says {parts:?}"), || async {
        let log = process.log();
        Ok(check(log.lines().any(|line| has_all(&line)), || log.clone()))
    })
    .await;
    let log = process.log();
    let said = log.lines().filter(has_all).count();
    assert_eq!(said, 1, "it is said once: {log}");
    assert!(!log.contains("panicked"), "{log}");
}

/// Waits until a program has read the whole cluster.
pub async fn wait_ready<P: Program>(process: &Process<P>) {
    until("it is ready", || async {
        Ok(check(process.is_ready(), || {
            format!("{:?}", process.health("/readyz"))
        }))
    })
    .await;
}

/// A condition of an object, null if it has none of this type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    const NONE: &Value = &Value::Null;
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|list| list.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(NONE)
}

impl Stage {
    /// Adds a node with this much processor and plenty of memory.
    pub async fn node(&self, name: &str, cpu: &str) {
        self.add_node(&Node::new(name).cpu(cpu).memory("64Gi")).await;
    }

    /// Adds a node.
    pub async fn add_node(&self, node: &Node) {
        done(objects::create_node(&self.client, node).await);
    }

    /// A gang in the default queue whose pods `NAME-0`, `NAME-1`, … ask for this much processor each.
    pub async fn gang(&self, name: &str, min: u32, pods: usize, cpu: &str) {
        self.gang_in("", name, min, pods, cpu).await;
    }

    /// The same in a queue.
    pub async fn gang_in(&self, queue: &str, name: &str, min: u32, pods: usize, cpu: &str) {
        self.group(&objects::pod_group(&self.namespace, name, min, queue))
            .await;
        self.members(name, pods, |pod| pod.cpu(cpu)).await;
    }

    /// Pods `GROUP-0`, `GROUP-1`, … of a group, each with something of its own.
    pub async fn members(&self, group: &str, pods: usize, with: impl Fn(Pod) -> Pod) {
        for at in 0..pods {
            self.add_pod(with(self.pod(&format!("{group}-{at}")).group(group)))
                .await;
        }
    }

    /// A pod of the test's namespace, to be added.
    pub fn pod(&self, name: &str) -> Pod {
        Pod::new(&self.namespace, name)
    }

    /// Adds a pod.
    pub async fn add_pod(&self, pod: Pod) {
        done(objects::create_pod(&self.client, &pod).await);
    }

    /// Adds a PodGroup; see [`objects::pod_group`].
    pub async fn group(&self, group: &Value) {
        done(objects::create(&self.client, &self.group_path(""), group).await);
    }

    /// Adds a queue with further fields of its specification.
    pub async fn queue(&self, name: &str, weight: u32, spec: &Value) {
        done(objects::create_queue(&self.client, name, weight, spec).await);
    }

    /// Adds a PriorityClass of the test's own. Its name.
    pub async fn priority(&self, name: &str, value: i32) -> String {
        let name = format!("{}-{name}", self.namespace);
        let class = json!({"metadata": {"name": name}, "value": value});
        self.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class)
            .await;
        name
    }

    /// Creates any object.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        done(objects::create(&self.client, path, object).await)
    }

    /// Path of a pod of the test's namespace; of all without a name.
    pub fn pod_path(&self, name: &str) -> String {
        objects::path("v1", &self.namespace, "pods", name)
    }

    /// Path of a PodGroup.
    pub fn group_path(&self, name: &str) -> String {
        objects::path(SCHEDULING, &self.namespace, "podgroups", name)
    }

    /// Path of a queue.
    pub fn queue_path(&self, name: &str) -> String {
        objects::path(SCHEDULING, "", "queues", name)
    }

    /// Reads an object.
    pub async fn get(&self, path: &str) -> Value {
        done(objects::get(&self.client, path).await)
    }

    /// Changes a part of an object.
    pub async fn patch(&self, path: &str, patch: &Value) -> Value {
        done(objects::merge_patch(&self.client, path, patch).await)
    }

    /// Removes an object at once.
    pub async fn remove(&self, path: &str) {
        done(objects::delete_now(&self.client, path).await);
    }

    /// Writes the phase of a pod, as its kubelet does.
    pub async fn phase(&self, pod: &str, phase: &str) {
        done(objects::set_pod_phase(&self.client, &self.namespace, pod, phase).await);
    }

    /// Does once what kubelets do.
    pub async fn kubelets(&self) {
        done(objects::play_kubelet(&self.client, &self.namespace).await);
    }

    /// The pods on nodes whose names begin so, with their nodes.
    pub async fn bound(&self, prefix: &str) -> BTreeMap<String, String> {
        done(self.try_bound(prefix).await)
    }

    async fn try_bound(&self, prefix: &str) -> anyhow::Result<BTreeMap<String, String>> {
        let pods = objects::pod_nodes(&self.client, &self.namespace).await?;
        let ours = pods.into_iter().filter(|(name, _)| name.starts_with(prefix));
        Ok(ours.filter_map(|(name, node)| Some((name, node?))).collect())
    }

    /// Waits until so many pods whose names begin so are on nodes, and says on which.
    pub async fn wait_bound(&self, prefix: &str, count: usize) -> BTreeMap<String, String> {
        let what = format!("{count} pods {prefix}* are on nodes");
        until(&what, || async {
            let bound = self.try_bound(prefix).await?;
            Ok(match bound.len() {
                there if there == count => Progress::Done(bound),
                _ => Progress::Waiting(format!("{bound:?}")),
            })
        })
        .await
    }

    /// Waits until an object is as it should be.
    pub async fn wait(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{path}: {what}"), || async {
            let object = objects::get(&self.client, path).await?;
            Ok(match holds(&object) {
                true => Progress::Done(object),
                false => Progress::Waiting(object.to_string()),
            })
        })
        .await
    }

    /// Waits until an object is gone.
    pub async fn wait_gone(&self, path: &str) {
        until(&format!("{path} is gone"), || async {
            let there = objects::try_get(&self.client, path).await?;
            Ok(check(there.is_none(), || "it is there"))
        })
        .await;
    }

    /// Waits for the phase of a PodGroup.
    pub async fn wait_phase(&self, group: &str, phase: &str) -> Value {
        let what = format!("its phase is {phase}");
        self.wait(&self.group_path(group), &what, |group| {
            group["status"]["phase"] == phase
        })
        .await
    }

    /// Waits until the scheduler says of a pod why it waits: its `PodScheduled` condition.
    pub async fn wait_told(&self, pod: &str) -> Value {
        let is_told = |pod: &Value| condition(pod, "PodScheduled")["status"] == "False";
        let pod = self
            .wait(&self.pod_path(pod), "the scheduler says why it waits", is_told)
            .await;
        condition(&pod, "PodScheduled").clone()
    }

    /// Waits for an event about an object with a reason. Its type and message.
    pub async fn wait_event(&self, name: &str, reason: &str) -> (String, String) {
        self.wait_event_saying(name, reason, "").await
    }

    /// Waits for an event about an object with a reason and a message that has this part. Its type and message.
    pub async fn wait_event_saying(&self, name: &str, reason: &str, part: &str) -> (String, String) {
        let what = format!("there is an event {reason} about {name}: {part}");
        until(&what, || async {
            let events = self.events(name).await?;
            let told = events.iter().filter(|event| event["reason"] == reason);
            let mut told = told.map(|event| {
                let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
                (text("type"), text("message"))
            });
            Ok(match told.find(|(_, message)| message.contains(part)) {
                Some(event) => Progress::Done(event),
                None => Progress::Waiting(serde_json::to_string(&events)?),
            })
        })
        .await
    }

    /// The events about an object, of the test's namespace or of none.
    pub async fn events(&self, name: &str) -> anyhow::Result<Vec<Value>> {
        let mut all = objects::list(&self.client, "/api/v1/events").await?;
        all.retain(|event| {
            let about = &event["involvedObject"];
            let here = [json!(self.namespace), Value::Null, json!("")];
            about["name"] == name && here.contains(&about["namespace"])
        });
        Ok(all)
    }
}
