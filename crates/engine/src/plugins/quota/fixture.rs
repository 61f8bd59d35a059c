//! Small clusters for the tests of the queue plugins.

use crate::config::{Arguments, PluginConf, Switches};
use crate::explain::{AdmissionReason, Shortfall};
use crate::ids::{JobId, QueueId, TaskId};
use crate::model::accounting::Place;
use crate::model::delta::Delta;
use crate::model::status::Status;
use crate::model::{Model, SchedulerNames};
use crate::plugin::Plugin;
use serde_json::{Value, json};

/// A cluster under construction.
pub(crate) struct Fixture {
    pub m: Model,
    pods: usize,
}

impl Fixture {
    /// One node with these amounts.
    pub fn new(allocatable: Value) -> Self {
        let mut m = Model::new(SchedulerNames::Any, "default");
        let node = json!({"metadata": {"name": "n1"}, "status": {"allocatable": allocatable}});
        m.apply(Delta::Node(Box::new(serde_json::from_value(node).unwrap())));
        Fixture { m, pods: 0 }
    }

    /// Adds a queue with this spec, open.
    pub fn queue(mut self, name: &str, spec: Value) -> Self {
        self.set_queue(name, spec, "Open");
        self
    }

    /// Adds a queue that takes no work.
    pub fn closed_queue(mut self, name: &str, spec: Value) -> Self {
        self.set_queue(name, spec, "Closed");
        self
    }

    fn set_queue(&mut self, name: &str, spec: Value, state: &str) {
        let queue = json!({"metadata": {"name": name}, "spec": spec, "status": {"state": state}});
        self.m
            .apply(Delta::Queue(Box::new(serde_json::from_value(queue).unwrap())));
    }

    /// Adds a PodGroup in a phase, with minimum resources unless they are null.
    pub fn group(mut self, name: &str, queue: &str, phase: &str, minimum: Value) -> Self {
        let group = json!({
            "metadata": {"namespace": "ns", "name": name},
            "spec": {"minMember": 1, "queue": queue, "minResources": minimum},
            "status": {"phase": phase},
        });
        self.m
            .apply(Delta::PodGroup(Box::new(serde_json::from_value(group).unwrap())));
        self
    }

    /// Adds a pod `<group>-<n>` to a group, running on the node or pending.
    fn pod(mut self, group: &str, running: bool, requests: &Value) -> Self {
        let mut pod = json!({
            "metadata": {
                "namespace": "ns",
                "name": format!("{group}-{}", self.pods),
                "uid": format!("uid-{:03}", self.pods),
                "annotations": {"scheduling.k8s.io/group-name": group},
            },
            "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]},
            "status": {"phase": "Pending"},
        });
        if running {
            pod["spec"]["nodeName"] = json!("n1");
            pod["status"]["phase"] = json!("Running");
        }
        self.pods += 1;
        self.m
            .apply(Delta::Pod(Box::new(serde_json::from_value(pod).unwrap())));
        self
    }

    /// A job of its own in a queue with one running pod of these requests.
    pub fn running(self, group: &str, queue: &str, requests: Value) -> Self {
        self.group(group, queue, "Running", Value::Null)
            .pod(group, true, &requests)
    }

    /// A job of its own in a queue with one pending pod of these requests.
    pub fn pending(self, group: &str, queue: &str, requests: Value) -> Self {
        self.group(group, queue, "Inqueue", Value::Null)
            .pod(group, false, &requests)
    }

    /// One more pod of an earlier group.
    pub fn more(self, group: &str, running: bool, requests: Value) -> Self {
        self.pod(group, running, &requests)
    }

    /// Opens a plugin as a cycle does.
    pub fn open(&mut self, plugin: &mut dyn Plugin) {
        self.m.refresh_changed_jobs();
        plugin.open(&self.m, 0);
    }

    pub fn queue_id(&self, name: &str) -> QueueId {
        let ids = (0..self.m.queues.len()).map(QueueId::from_index);
        ids.into_iter()
            .find(|&id| self.m.text(self.m.queue(id).name) == name)
            .expect("the queue was added")
    }

    pub fn job(&self, name: &str) -> JobId {
        self.m.find_job("ns", name).expect("the group was added")
    }

    /// The only pod of a group.
    pub fn task(&self, group: &str) -> TaskId {
        self.m.job(self.job(group)).tasks[0]
    }

    pub fn tasks(&self, groups: &[&str]) -> Vec<TaskId> {
        groups.iter().map(|group| self.task(group)).collect()
    }

    /// The groups of these tasks.
    pub fn groups(&self, tasks: &[TaskId]) -> Vec<String> {
        let name = |&task: &TaskId| {
            self.m
                .text(self.m.job(self.m.task(task).job.unwrap()).name)
                .to_owned()
        };
        tasks.iter().map(name).collect()
    }

    /// Moves the pod of a group to a state and tells the plugin, as a transaction does.
    pub fn set_state(&mut self, plugin: &mut dyn Plugin, group: &str, status: Status) {
        let task = self.task(group);
        let node = (status != Status::Pending).then(|| self.m.find_node("n1").unwrap());
        let was = self.m.task(task).status.is_charged();
        self.m.transition(
            task,
            Place {
                status,
                node,
                evicted_now: false,
            },
        );
        match (was, status.is_charged()) {
            (false, true) => plugin.on_allocate(&self.m, task),
            (true, false) => plugin.on_deallocate(&self.m, task),
            _ => {}
        }
    }
}

/// A plugin entry.
pub(crate) fn conf(name: &str, hierarchy: bool, arguments: Arguments) -> PluginConf {
    PluginConf {
        name: name.to_owned(),
        switches: Switches {
            hierarchy,
            ..Switches::default()
        },
        arguments,
    }
}

/// The names of what is short, or the text of another reason.
pub(crate) fn short(m: &Model, answer: Result<(), AdmissionReason>) -> String {
    match answer {
        Ok(()) => "fits".to_owned(),
        Err(AdmissionReason::QueueQuota { queue, short }) => {
            let name = |s: &Shortfall| format!("{} {}>{}", m.dims.name(s.dim), s.needed, s.limit);
            let parts: Vec<_> = short.iter().map(name).collect();
            format!("{}: {}", m.text(m.queue(queue).name), parts.join(", "))
        }
        Err(other) => other.text(m),
    }
}
