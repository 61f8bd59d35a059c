//! How a pod is, in the words of `kubectl get pods`.

use crate::live::{Item, Key};
use crate::output::age;
use serde::Deserialize;
use volcano_api::core::{Labels, null_default};
use volcano_api::time::Time;

/// What is printed of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodItem {
    /// Metadata.
    pub metadata: PodMeta,
    /// What it is to be.
    pub spec: PodSpecItem,
    /// What it is.
    #[serde(deserialize_with = "null_default")]
    pub status: PodStatusItem,
}

/// Metadata with labels and annotations.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodMeta {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Identity.
    pub uid: String,
    /// Version.
    pub resource_version: String,
    /// When it was made.
    pub creation_timestamp: Option<Time>,
    /// When it is to be gone.
    pub deletion_timestamp: Option<Time>,
    /// Labels.
    #[serde(deserialize_with = "null_default")]
    pub labels: Labels,
    /// Annotations.
    #[serde(deserialize_with = "null_default")]
    pub annotations: Labels,
}

/// What a pod is to be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpecItem {
    /// Its node.
    pub node_name: String,
    /// Its containers.
    #[serde(deserialize_with = "null_default")]
    pub containers: Vec<ContainerItem>,
    /// Those that run first.
    #[serde(deserialize_with = "null_default")]
    pub init_containers: Vec<ContainerItem>,
    /// Those that were added to look into it.
    #[serde(deserialize_with = "null_default")]
    pub ephemeral_containers: Vec<ContainerItem>,
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerItem {
    /// Its name.
    pub name: String,
    /// `Always` makes one that runs first a sidecar.
    pub restart_policy: String,
}

/// What a pod is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatusItem {
    /// The phase.
    pub phase: String,
    /// Why, in one word.
    pub reason: String,
    /// Conditions.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<ConditionItem>,
    /// How the containers are.
    #[serde(deserialize_with = "null_default")]
    pub container_statuses: Vec<ContainerStatusItem>,
    /// How those are that run first.
    #[serde(deserialize_with = "null_default")]
    pub init_container_statuses: Vec<ContainerStatusItem>,
}

/// A condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConditionItem {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: String,
    /// Why.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// How a container is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatusItem {
    /// Its name.
    pub name: String,
    /// Whether it serves.
    pub ready: bool,
    /// Whether it has started.
    pub started: Option<bool>,
    /// How often it was started again.
    pub restart_count: i64,
    /// How it is.
    #[serde(deserialize_with = "null_default")]
    pub state: ContainerStateItem,
    /// How it was before.
    #[serde(deserialize_with = "null_default")]
    pub last_state: ContainerStateItem,
}

/// One of these.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContainerStateItem {
    /// It waits.
    pub waiting: Option<WaitingItem>,
    /// It runs.
    pub running: Option<RunningItem>,
    /// It ended.
    pub terminated: Option<TerminatedItem>,
}

/// A container that waits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WaitingItem {
    /// Why.
    pub reason: String,
}

/// A container that runs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RunningItem {}

/// A container that ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TerminatedItem {
    /// Why.
    pub reason: String,
    /// What it returned.
    pub exit_code: i32,
    /// The signal that ended it.
    pub signal: i32,
    /// When.
    pub finished_at: Option<Time>,
}

impl Item for PodItem {
    fn key(&self) -> Key {
        Key {
            namespace: self.metadata.namespace.clone(),
            name: self.metadata.name.clone(),
            version: self.metadata.resource_version.clone(),
        }
    }
}

/// The cells of a pod.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// Ready containers of all.
    pub ready: String,
    /// The status in a word.
    pub status: String,
    /// Restarts, and when the last one was.
    pub restarts: String,
}

/// Restarts, counted.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Time>,
}

impl Restarts {
    fn add(&mut self, container: &ContainerStatusItem) {
        self.count += container.restart_count;
        let ended = container
            .last_state
            .terminated
            .as_ref()
            .and_then(|end| end.finished_at);
        self.last = self.last.max(ended);
    }
}

impl PodItem {
    /// The status in a word.
    pub fn status(&self) -> String {
        self.shown(Time::EPOCH).status
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// The names of all its containers.
    pub fn containers(&self) -> impl Iterator<Item = &str> {
        let spec = &self.spec;
        let all = spec.containers.iter().chain(&spec.init_containers);
        all.chain(&spec.ephemeral_containers)
            .map(|container| container.name.as_str())
    }

    /// How many runs a container has had, with the one that goes on; none before the first.
    pub fn runs_of(&self, container: &str) -> i64 {
        let status = &self.status;
        let mut all = status
            .container_statuses
            .iter()
            .chain(&status.init_container_statuses);
        let found = all.find(|status| status.name == container);
        let begun =
            found.is_some_and(|found| found.state.running.is_some() || found.state.terminated.is_some());
        if !begun && matches!(status.phase.as_str(), "" | "Pending") {
            return 0;
        }
        1 + found.map_or(0, |found| found.restart_count)
    }

    /// Containers that ended badly, with what they returned.
    pub fn failures(&self) -> impl Iterator<Item = (&str, i32)> {
        self.status.container_statuses.iter().filter_map(|container| {
            let end = container.state.terminated.as_ref()?;
            (end.exit_code != 0).then_some((container.name.as_str(), end.exit_code))
        })
    }

    /// Whether it is still to get a node.
    pub fn waits_for_node(&self) -> bool {
        let is_new = matches!(self.status.phase.as_str(), "" | "Pending");
        is_new && self.spec.node_name.is_empty() && self.metadata.deletion_timestamp.is_none()
    }

    /// Whether it has a node and is not over.
    pub fn is_on_node(&self) -> bool {
        !self.spec.node_name.is_empty() && !self.is_over()
    }

    /// What its scheduler says of why it has no node.
    pub fn unplaced_because(&self) -> Option<&str> {
        let mut conditions = self.status.conditions.iter();
        let found = conditions.find(|one| one.kind == "PodScheduled" && one.status == "False")?;
        Some(match found.message.as_str() {
            "" => &found.reason,
            message => message,
        })
    }

    fn is_sidecar(&self, name: &str) -> bool {
        let mut containers = self.spec.init_containers.iter();
        containers.any(|container| container.name == name && container.restart_policy == "Always")
    }

    fn has_condition(&self, kind: &str) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == kind && condition.status == "True")
    }

    /// What is printed of it.
    pub fn shown(&self, now: Time) -> Shown {
        let sidecars = self
            .spec
            .init_containers
            .iter()
            .filter(|c| c.restart_policy == "Always")
            .count();
        let total = self.spec.containers.len() + sidecars;
        let (starting, mut ready, mut restarts, sidecar_restarts) = self.beginning();
        let mut status = starting.clone().unwrap_or_else(|| self.first_word());
        if starting.is_none() || self.has_condition("Initialized") {
            restarts = sidecar_restarts;
            let (word, more) = self.main_part(&mut restarts);
            ready += more;
            status = word.unwrap_or(status);
        }
        if self.metadata.deletion_timestamp.is_some() {
            if self.status.reason == "NodeLost" {
                "Unknown".clone_into(&mut status);
            } else if !self.is_over() {
                "Terminating".clone_into(&mut status);
            }
        }
        let restarts = match restarts.last {
            Some(last) if restarts.count > 0 => {
                format!("{} ({} ago)", restarts.count, age::since(now, Some(last)))
            }
            _ => restarts.count.to_string(),
        };
        Shown {
            ready: format!("{ready}/{total}"),
            status,
            restarts,
        }
    }

    /// What is said before one looks at the containers.
    fn first_word(&self) -> String {
        let gated = |condition: &ConditionItem| {
            condition.kind == "PodScheduled" && condition.reason == "SchedulingGated"
        };
        if self.status.conditions.iter().any(gated) {
            return "SchedulingGated".to_owned();
        }
        match self.status.reason.is_empty() {
            true => self.status.phase.clone(),
            false => self.status.reason.clone(),
        }
    }

    /// The containers that run first: what is said while one of them is not done, how many sidecars are ready, and
    /// restarts of all of them and of the sidecars.
    fn beginning(&self) -> (Option<String>, usize, Restarts, Restarts) {
        let (mut ready, mut all, mut sidecars) = (0, Restarts::default(), Restarts::default());
        for (at, container) in self.status.init_container_statuses.iter().enumerate() {
            let is_sidecar = self.is_sidecar(&container.name);
            all.add(container);
            if is_sidecar {
                sidecars.add(container);
            }
            let state = &container.state;
            let word = match (&state.terminated, &state.waiting) {
                (Some(end), _) if end.exit_code == 0 => continue,
                _ if is_sidecar && container.started == Some(true) => {
                    ready += usize::from(container.ready);
                    continue;
                }
                (Some(end), _) => format!("Init:{}", ended(end)),
                (None, Some(waiting)) if !matches!(waiting.reason.as_str(), "" | "PodInitializing") => {
                    format!("Init:{}", waiting.reason)
                }
                _ => format!("Init:{at}/{}", self.spec.init_containers.len()),
            };
            return (Some(word), ready, all, sidecars);
        }
        (None, ready, all, sidecars)
    }

    /// The containers: what is said of them, if anything, and how many are ready.
    fn main_part(&self, restarts: &mut Restarts) -> (Option<String>, usize) {
        let (mut word, mut ready, mut runs) = (None, 0, false);
        for container in self.status.container_statuses.iter().rev() {
            restarts.add(container);
            let state = &container.state;
            match (&state.waiting, &state.terminated) {
                (Some(waiting), _) if !waiting.reason.is_empty() => word = Some(waiting.reason.clone()),
                (_, Some(end)) => word = Some(ended(end)),
                _ if container.ready && state.running.is_some() => {
                    runs = true;
                    ready += 1;
                }
                _ => {}
            }
        }
        let said = word.clone().unwrap_or_else(|| self.first_word());
        if said == "Completed" && runs {
            let is_ready = self.has_condition("Ready");
            word = Some(if is_ready { "Running" } else { "NotReady" }.to_owned());
        }
        (word, ready)
    }
}

fn ended(end: &TerminatedItem) -> String {
    match (end.reason.as_str(), end.signal) {
        ("", 0) => format!("ExitCode:{}", end.exit_code),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(pod: &Value) -> (String, String, String) {
        let pod: PodItem = serde_json::from_value(pod.clone()).unwrap();
        let shown = pod.shown(Time::parse("2026-01-01T01:00:00Z").unwrap());
        (shown.ready, shown.status, shown.restarts)
    }

    #[test]
    fn pods_are_shown_as_kubectl_shows_them() {
        let main = json!([{"name": "main"}]);
        let running = json!({"name": "main", "ready": true, "state": {"running": {}}});
        let waiting = |reason: &str| json!({"name": "main", "state": {"waiting": {"reason": reason}}});
        let ended = |code: i32, reason: &str| json!({"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason}}});
        let setup = json!([{"name": "setup"}, {"name": "side", "restartPolicy": "Always"}]);
        let cases = [
            (
                "waits",
                json!({"spec": {"containers": main}, "status": {"phase": "Pending"}}),
                ("0/1", "Pending", "0"),
            ),
            (
                "gated",
                json!({"spec": {"containers": main}, "status": {"phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}),
                ("0/1", "SchedulingGated", "0"),
            ),
            (
                "runs",
                json!({"spec": {"containers": main}, "status": {"phase": "Running",
                "containerStatuses": [running]}}),
                ("1/1", "Running", "0"),
            ),
            (
                "is being made",
                json!({"spec": {"containers": main}, "status": {"phase": "Pending",
                "containerStatuses": [waiting("ContainerCreating")]}}),
                ("0/1", "ContainerCreating", "0"),
            ),
            (
                "ended well",
                json!({"spec": {"containers": main}, "status": {"phase": "Succeeded",
                "containerStatuses": [ended(0, "Completed")]}}),
                ("0/1", "Completed", "0"),
            ),
            (
                "ended badly, without a word",
                json!({"spec": {"containers": main}, "status": {"phase": "Failed",
                "containerStatuses": [ended(3, "")]}}),
                ("0/1", "ExitCode:3", "0"),
            ),
            (
                "evicted",
                json!({"spec": {"containers": main}, "status": {"phase": "Failed", "reason": "Evicted"}}),
                ("0/1", "Evicted", "0"),
            ),
            (
                "crashes",
                json!({"spec": {"containers": main}, "status": {"phase": "Running",
                "containerStatuses": [{"name": "main", "restartCount": 4,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:55:00Z"}}}]}}),
                ("0/1", "CrashLoopBackOff", "4 (5m ago)"),
            ),
            (
                "sets up",
                json!({"spec": {"containers": main, "initContainers": setup}, "status": {"phase": "Pending",
                "initContainerStatuses": [{"name": "setup", "state": {"running": {}}}],
                "containerStatuses": [waiting("PodInitializing")]}}),
                ("0/2", "Init:0/2", "0"),
            ),
            (
                "set-up failed",
                json!({"spec": {"containers": main, "initContainers": setup}, "status": {
                "phase": "Pending", "initContainerStatuses": [
                    {"name": "setup", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]}}),
                ("0/2", "Init:Error", "0"),
            ),
            (
                "runs with a sidecar",
                json!({"spec": {"containers": main, "initContainers": setup}, "status": {
                "phase": "Running", "initContainerStatuses": [
                    {"name": "setup", "state": {"terminated": {"exitCode": 0}}, "restartCount": 7},
                    {"name": "side", "ready": true, "started": true, "state": {"running": {}}}],
                "containerStatuses": [running]}}),
                ("2/2", "Running", "0"),
            ),
            (
                "one of two is done",
                json!({"spec": {"containers": [{"name": "a"}, {"name": "main"}]}, "status": {
                "phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [ended(0, "Completed"), running]}}),
                ("1/2", "NotReady", "0"),
            ),
            (
                "leaves",
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"containers": main}, "status": {"phase": "Running", "containerStatuses": [running]}}),
                ("1/1", "Terminating", "0"),
            ),
            (
                "is lost",
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"containers": main}, "status": {"phase": "Running", "reason": "NodeLost"}}),
                ("0/1", "Unknown", "0"),
            ),
        ];
        for (name, pod, (ready, status, restarts)) in cases {
            let expected = (ready.to_owned(), status.to_owned(), restarts.to_owned());
            assert_eq!(shown(&pod), expected, "{name}");
        }
    }
}
