//! Pods, and the tasks that they make.

use super::{micros, parse_bool};
use crate::ids::{JobId, NodeId, Sym, TaskId};
use crate::model::accounting::Place;
use crate::model::job::Role;
use crate::model::status::{Counts, Status};
use crate::model::task::{Gate, Task};
use crate::model::{Model, SchedulerNames};
use volcano_api::core::{Labels, Pod, PodPhase};
use volcano_api::names::{annotations, conditions, critical, gates, labels};
use volcano_api::time::Time;

impl Model {
    pub(in crate::model) fn set_pod(&mut self, pod: &Pod) {
        let meta = &pod.metadata;
        let namespace = self.strings.intern(&meta.namespace);
        let key = (namespace, meta.name.as_str().into());
        let known = self.task_by_key.get(&key).copied();
        let mine = match &self.scheduler_names {
            SchedulerNames::Any => true,
            SchedulerNames::Only(names) => names.contains(&pod.spec.scheduler_name),
        };
        if !mine && pod.spec.node_name.is_empty() {
            if let Some(id) = known {
                self.drop_task(id);
            }
            return;
        }
        if let Some(old) = known.map(|id| self.task(id))
            && *old.uid == *meta.uid
            && old.status == Status::Binding
            && pod.spec.node_name.is_empty()
            && pod.status.phase == PodPhase::Pending
            && meta.deletion_timestamp.is_none()
        {
            return; // The bind is on its way; this object is older than it.
        }
        let evicting = known
            .map(|id| self.task(id))
            .is_some_and(|old| old.evicting && *old.uid == *meta.uid);
        if let Some(id) = known {
            self.drop_task(id);
        }
        self.add_task(key, pod, mine, evicting);
    }

    pub(in crate::model) fn add_task(&mut self, key: (Sym, Box<str>), pod: &Pod, mine: bool, evicting: bool) {
        let meta = &pod.metadata;
        let (class, new_class) = self.classes.intern(pod, &mut self.strings, &mut self.dims);
        self.nodes.widen(&self.dims);
        if new_class {
            self.add_relations(class, pod);
        }
        let group_name = meta
            .annotations
            .get(annotations::KUBE_GROUP_NAME)
            .filter(|name| !name.is_empty());
        let job = match group_name {
            Some(name) => {
                let name = self.strings.intern(name);
                Some(self.job_id(key.0, name))
            }
            None => None,
        };
        let node = (!pod.spec.node_name.is_empty()).then(|| {
            let name = self.strings.intern(&pod.spec.node_name);
            self.nodes.find_or_insert(name)
        });
        let labels = self.interned_labels(&meta.labels).into_boxed_slice();
        let role = either(&meta.annotations, &meta.labels, labels::TASK_SPEC).unwrap_or("");
        let role = job.map(|job| self.role_of(job, role));
        let mut task = Task {
            live: true,
            mine,
            uid: meta.uid.as_str().into(),
            name: meta.name.as_str().into(),
            namespace: key.0,
            labels,
            job,
            role,
            sub_job: 0,
            position: 0,
            class,
            priority: task_priority(pod),
            index: name_index(&meta.name),
            created: micros(meta.creation_timestamp),
            status: status_of(pod),
            node,
            evicted_now: false,
            evicting,
            nominated: None,
            preemptable: either(&meta.annotations, &meta.labels, labels::PREEMPTABLE)
                .is_none_or(|text| parse_bool(text).unwrap_or(false)),
            never_preempts: pod.spec.preemption_policy.as_deref() == Some("Never"),
            critical: is_critical(pod),
            best_effort: self.classes.get(class).request.is_empty(),
            gate: gate_of(pod),
            started: pod.status.start_time.map(Time::unix_micros),
            condition: pod
                .status
                .conditions
                .iter()
                .find(|c| c.kind == conditions::POD_SCHEDULED && c.status == "False")
                .map(|c| (c.reason.as_str().into(), c.message.as_str().into())),
        };
        if evicting && matches!(task.status, Status::Running | Status::Bound) {
            task.status = Status::Releasing;
        }
        if !pod.status.nominated_node_name.is_empty() {
            task.nominated = Some(self.strings.intern(&pod.status.nominated_node_name));
        }
        let id = match self.free_tasks.pop() {
            Some(id) => {
                self.tasks[id.index()] = task;
                id
            }
            None => {
                self.tasks.push(task);
                TaskId::from_index(self.tasks.len() - 1)
            }
        };
        self.task_by_key.insert(key, id);
        if let Some(job) = job {
            self.tasks[id.index()].sub_job = self.sub_job_of(job, id);
        }
        self.enter(id);
    }

    pub(in crate::model) fn role_of(&mut self, job: JobId, role: &str) -> u16 {
        let name = self.strings.intern(role);
        let roles = &mut self.jobs[job.index()].roles;
        let at = match roles.iter().position(|r| r.name == name) {
            Some(at) => at,
            None => {
                roles.push(Role {
                    name,
                    minimum: 0,
                    counts: Counts::default(),
                });
                roles.len() - 1
            }
        };
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    pub(in crate::model) fn drop_task(&mut self, id: TaskId) {
        self.leave(id);
        let task = &mut self.tasks[id.index()];
        task.live = false;
        let (key, job) = ((task.namespace, task.name.clone()), task.job);
        self.task_by_key.remove(&key);
        self.free_tasks.push(id);
        if let Some(job) = job {
            self.free_job_if_unused(job);
        }
    }

    pub(in crate::model) fn remove_pod(&mut self, namespace: &str, name: &str) {
        if let Some(id) = self.find_task(namespace, name) {
            self.drop_task(id);
        }
    }

    pub(in crate::model) fn undo_bind(&mut self, namespace: &str, name: &str) {
        let Some(id) = self.find_task(namespace, name) else {
            return;
        };
        if self.task(id).status == Status::Binding {
            self.transition(
                id,
                Place {
                    status: Status::Pending,
                    node: None,
                    evicted_now: false,
                },
            );
        }
    }

    pub(in crate::model) fn undo_eviction(&mut self, namespace: &str, name: &str) {
        let Some(id) = self.find_task(namespace, name) else {
            return;
        };
        let task = self.task(id);
        if task.evicting && task.status == Status::Releasing {
            let place = Place {
                status: Status::Running,
                node: task.node,
                evicted_now: false,
            };
            self.transition(id, place);
        }
        self.tasks[id.index()].evicting = false;
    }

    /// The node that room was made on for a task, if its object exists.
    pub fn nominated_node(&self, task: TaskId) -> Option<NodeId> {
        let id = self.nodes.find(self.task(task).nominated?)?;
        self.nodes.is_present(id).then_some(id)
    }
}

fn either<'a>(first: &'a Labels, second: &'a Labels, key: &str) -> Option<&'a str> {
    first
        .get(key)
        .or_else(|| second.get(key))
        .map(String::as_str)
        .filter(|text| !text.is_empty())
}

fn status_of(pod: &Pod) -> Status {
    let deleting = pod.metadata.deletion_timestamp.is_some();
    match pod.status.phase {
        PodPhase::Running | PodPhase::Pending if deleting => Status::Releasing,
        PodPhase::Running => Status::Running,
        PodPhase::Pending if pod.spec.node_name.is_empty() => Status::Pending,
        PodPhase::Pending => Status::Bound,
        PodPhase::Succeeded => Status::Succeeded,
        PodPhase::Failed => Status::Failed,
        _ => Status::Unknown,
    }
}

fn task_priority(pod: &Pod) -> i32 {
    let annotated = pod
        .metadata
        .annotations
        .get(annotations::TASK_PRIORITY)
        .and_then(|text| text.parse().ok());
    annotated.or(pod.spec.priority).unwrap_or(1)
}

fn is_critical(pod: &Pod) -> bool {
    let class = pod.spec.priority_class_name.as_str();
    class == critical::CLUSTER_PRIORITY_CLASS
        || class == critical::NODE_PRIORITY_CLASS
        || pod.metadata.namespace == critical::NAMESPACE
}

fn gate_of(pod: &Pod) -> Gate {
    match pod.spec.scheduling_gates.as_slice() {
        [] => Gate::None,
        [only] if only.name == gates::QUEUE_ALLOCATION => Gate::QueueAllocation,
        _ => Gate::Foreign,
    }
}

/// The number at the end of a name of three or more parts.
fn name_index(name: &str) -> Option<u64> {
    let mut parts = name.rsplit('-');
    let last = parts.next()?;
    (parts.count() >= 2).then(|| last.parse().ok()).flatten()
}
