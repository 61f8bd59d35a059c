//! Small clusters for the tests of plugins, built from the objects that a user would write.

use crate::config::PluginConf;
use crate::ids::{JobId, NodeId, QueueId, TaskId};
use crate::model::accounting::Place;
use crate::model::delta::Delta;
use crate::model::status::Status;
use crate::model::{Model, SchedulerNames};
use crate::plugin::Plugin;
use serde_json::{Value, json};

/// A cluster in the making. Everything namespaced is in `ns`.
pub(crate) struct Fixture {
    pub m: Model,
}

/// A plugin entry with these arguments.
pub(crate) fn conf(name: &str, arguments: Value) -> PluginConf {
    let arguments = arguments
        .as_object()
        .cloned()
        .unwrap_or_default()
        .into_iter()
        .collect();
    PluginConf {
        name: name.to_owned(),
        arguments,
        ..PluginConf::default()
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a well-formed object")
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let mut fixture = Fixture {
            m: Model::new(SchedulerNames::Any, "default"),
        };
        fixture.queue("default", json!({}), json!({}));
        fixture
    }

    pub(crate) fn node(&mut self, name: &str, allocatable: Value) {
        let node = json!({"metadata": {"name": name}, "status": {"allocatable": allocatable}});
        self.m.apply(Delta::Node(Box::new(read(node))));
    }

    pub(crate) fn queue(&mut self, name: &str, annotations: Value, spec: Value) {
        let queue = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec,
            "status": {"state": "Open"}});
        self.m.apply(Delta::Queue(Box::new(read(queue))));
    }

    pub(crate) fn priority_class(&mut self, name: &str, value: i32) {
        let class = json!({"metadata": {"name": name}, "value": value});
        self.m.apply(Delta::PriorityClass(read(class)));
    }

    /// A PodGroup; `overlay` is merged into its metadata, spec and status.
    pub(crate) fn group(&mut self, name: &str, overlay: Value) {
        let mut group = json!({"metadata": {"name": name, "namespace": "ns"}, "spec": {}, "status": {"phase": "Inqueue"}});
        merge(&mut group, overlay);
        self.m.apply(Delta::PodGroup(Box::new(read(group))));
    }

    /// A pod of a PodGroup; `overlay` is merged into its metadata, spec and status.
    pub(crate) fn pod(&mut self, name: &str, group: &str, requests: Value, overlay: Value) -> TaskId {
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name,
                "annotations": {"scheduling.k8s.io/group-name": group}},
            "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": requests}}]},
            "status": {"phase": "Pending"},
        });
        merge(&mut pod, overlay);
        let namespace = pod["metadata"]["namespace"]
            .as_str()
            .expect("a namespace")
            .to_owned();
        self.m.apply(Delta::Pod(Box::new(read(pod))));
        self.m.find_task(&namespace, name).expect("just applied")
    }

    /// A pod that runs on a node.
    pub(crate) fn running(&mut self, name: &str, group: &str, node: &str, requests: Value) -> TaskId {
        self.pod(
            name,
            group,
            requests,
            json!({"spec": {"nodeName": node}, "status": {"phase": "Running"}}),
        )
    }

    /// A pod that runs on node `n`, of a role.
    pub(crate) fn role(&mut self, name: &str, group: &str, role: &str, phase: &str) -> TaskId {
        let node = if phase == "Pending" { "" } else { "n" };
        let overlay = json!({"metadata": {"annotations": {"volcano.sh/task-spec": role}},
            "spec": {"nodeName": node}, "status": {"phase": phase}});
        self.pod(name, group, json!({"cpu": "1"}), overlay)
    }

    /// As a cycle begins: sums are up to date and the plugin is open.
    pub(crate) fn open(&mut self, mut plugin: Box<dyn Plugin>, now: i64) -> Box<dyn Plugin> {
        self.m.refresh_changed_jobs();
        plugin.open(&self.m, now);
        plugin
    }

    /// Moves a task as a transaction does, without telling any plugin.
    pub(crate) fn set_status(&mut self, task: TaskId, status: Status, node: Option<&str>) {
        let node = node.and_then(|name| self.m.find_node(name));
        self.m.transition(
            task,
            Place {
                status,
                node,
                evicted_now: false,
            },
        );
    }

    pub(crate) fn job_id(&self, name: &str) -> JobId {
        self.m.find_job("ns", name).expect("a known job")
    }

    pub(crate) fn queue_id(&self, name: &str) -> QueueId {
        self.m.find_queue(name).expect("a known queue")
    }

    pub(crate) fn node_id(&self, name: &str) -> NodeId {
        self.m.find_node(name).expect("a known node")
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
