//! Pods, and the tasks that they make.

use super::micros;
use crate::ids::{JobId, NodeId, Sym, TaskId};
use crate::model::accounting::Place;
use crate::model::job::Role;
use crate::model::status::{Counts, Status};
use crate::model::task::{self, Gate, Task};
use crate::model::{Model, SchedulerNames};
use std::sync::Arc;
use volcano_api::core::{Pod, PodCondition, PodPhase};
use volcano_api::names::{annotations, conditions, critical, gates, reasons};
use volcano_api::time::Time;

/// What was decided about a pod and its object does not show, or not yet: writes take their time, and an object may be
/// older than they are.
#[derive(Clone, Debug)]
pub(in crate::model) struct Decided {
    evicting: bool,
    bind_failed: bool,
    gate_opened: bool,
    condition: Option<(Arc<str>, Arc<str>)>,
    nominated: Option<Sym>,
    nominated_written: Option<Sym>,
    nominated_seen: Option<Sym>,
}

impl Decided {
    fn of(task: &Task) -> Self {
        Decided {
            evicting: task.evicting,
            bind_failed: task.bind_failed,
            gate_opened: task.gate_opened,
            condition: task.condition.clone(),
            nominated: task.nominated,
            nominated_written: task.nominated_written,
            nominated_seen: task.nominated_seen,
        }
    }

    /// Takes over what was decided. A nomination that is neither the one written nor the one seen before is somebody
    /// else's, and holds.
    fn carry_over(self, task: &mut Task) {
        task.evicting |= self.evicting;
        if task.evicting && matches!(task.status, Status::Running | Status::Bound) {
            task.status = Status::Releasing;
        }
        if task.node.is_some() {
            return;
        }
        task.gate_opened = self.gate_opened && task.gate == Gate::QueueAllocation;
        task.bind_failed = self.bind_failed;
        task.condition = self.condition;
        let shown = task.nominated_seen;
        if shown.is_none() || shown == self.nominated_written || shown == self.nominated_seen {
            task.nominated = self.nominated;
            task.nominated_written = self.nominated_written;
        }
    }
}

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
            self.note_foreign(key, group_name(pod));
            return;
        }
        self.note_foreign(key.clone(), None);
        if let Some(old) = known.map(|id| self.task(id))
            && *old.uid == *meta.uid
            && old.status == Status::Binding
            && pod.spec.node_name.is_empty()
            && pod.status.phase == PodPhase::Pending
            && meta.deletion_timestamp.is_none()
        {
            return; // The bind is on its way; this object is older than it.
        }
        let mut task = self.read_task(namespace, pod, mine);
        let Some(id) = known else {
            return self.add_task(key, task);
        };
        let old = self.task(id);
        if *old.uid == *meta.uid {
            Decided::of(old).carry_over(&mut task);
        }
        if self.is_same(id, &mut task) {
            self.tasks[id.index()].nominated_seen = task.nominated_seen;
        } else {
            self.replace_task(id, task);
        }
    }

    /// The pod is as it was, in all that the model keeps. What its object shows as the nomination may differ: that is
    /// only for telling old objects from new ones.
    fn is_same(&self, id: TaskId, task: &mut Task) -> bool {
        let old = self.task(id);
        (task.position, task.sub_job) = (old.position, old.sub_job);
        let shown = std::mem::replace(&mut task.nominated_seen, old.nominated_seen);
        let same = *task == *old;
        task.nominated_seen = shown;
        same
    }

    fn read_task(&mut self, namespace: Sym, pod: &Pod, mine: bool) -> Task {
        let meta = &pod.metadata;
        let (class, new_class) = self.classes.intern(pod, &mut self.strings, &mut self.dims);
        self.nodes.widen(&self.dims);
        if new_class {
            self.add_relations(class, pod);
        }
        let job = group_name(pod).map(|name| {
            let name = self.strings.intern(name);
            self.job_id(namespace, name)
        });
        let node = (!pod.spec.node_name.is_empty()).then(|| {
            let name = self.strings.intern(&pod.spec.node_name);
            self.node_id(name)
        });
        let nominated = Some(pod.status.nominated_node_name.as_str()).filter(|name| !name.is_empty());
        let nominated = nominated.map(|name| self.strings.intern(name));
        let labels = self.interned_labels(&meta.labels).into_boxed_slice();
        let role = task::role_name(&meta.annotations, &meta.labels);
        let role = job.map(|job| self.role_of(job, role));
        Task {
            live: true,
            mine,
            uid: meta.uid.as_str().into(),
            name: meta.name.as_str().into(),
            namespace,
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
            status_seen: status_of(pod),
            node,
            evicted_now: false,
            evicting: is_preempted(pod),
            bind_failed: false,
            nominated: nominated.filter(|_| node.is_none()),
            nominated_written: nominated,
            nominated_seen: nominated,
            preemptable: task::is_preemptable(&meta.annotations, &meta.labels),
            never_preempts: pod.spec.preemption_policy.as_deref() == Some("Never"),
            critical: is_critical(pod),
            best_effort: self.classes.get(class).request.is_empty(),
            gate: gate_of(pod),
            asks_queue: self.features.queue_admission && asks_queue(pod),
            gate_opened: false,
            started: pod.status.start_time.map(Time::unix_micros),
            condition: pod
                .status
                .conditions
                .iter()
                .find(|c| c.kind == conditions::POD_SCHEDULED && c.status == "False")
                .map(|c| (c.reason.as_str().into(), c.message.as_str().into())),
        }
    }

    fn add_task(&mut self, key: (Sym, Box<str>), task: Task) {
        self.classes.hold(task.class);
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
        self.enter_job(id);
    }

    fn replace_task(&mut self, id: TaskId, task: Task) {
        self.leave(id);
        let Task {
            job: before, class, ..
        } = *self.task(id);
        self.classes.hold(task.class);
        self.classes.release(class);
        self.tasks[id.index()] = task;
        self.enter_job(id);
        if let Some(job) = before {
            self.free_job_if_unused(job);
        }
    }

    fn enter_job(&mut self, id: TaskId) {
        if let Some(job) = self.task(id).job {
            self.tasks[id.index()].sub_job = self.sub_job_of(job, id);
        }
        self.enter(id);
        self.news = true;
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
        self.news = true;
        let task = &mut self.tasks[id.index()];
        task.live = false;
        self.classes.release(task.class);
        let (key, job) = ((task.namespace, task.name.clone()), task.job);
        self.task_by_key.remove(&key);
        self.free_tasks.push(id);
        if let Some(job) = job {
            self.free_job_if_unused(job);
        }
    }

    pub(in crate::model) fn remove_pod(&mut self, namespace: &str, name: &str) {
        let key = (self.strings.intern(namespace), name.into());
        self.note_foreign(key, None);
        if let Some(id) = self.find_task(namespace, name) {
            self.drop_task(id);
        }
    }

    /// The task of a pod name, if it is of this incarnation; an empty `uid` is about whichever is there.
    fn incarnation(&self, namespace: &str, name: &str, uid: &str) -> Option<TaskId> {
        let id = self.find_task(namespace, name)?;
        (uid.is_empty() || *self.task(id).uid == *uid).then_some(id)
    }

    pub(in crate::model) fn undo_bind(&mut self, namespace: &str, name: &str, uid: &str) {
        let Some(id) = self.incarnation(namespace, name, uid) else {
            return;
        };
        if self.task(id).status == Status::Binding {
            self.news = true;
            let task = &mut self.tasks[id.index()];
            task.bind_failed = true;
            task.condition = None; // The executor may have told the pod in the meantime why it was not bound.
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

    pub(in crate::model) fn undo_eviction(&mut self, namespace: &str, name: &str, uid: &str) {
        let Some(id) = self.incarnation(namespace, name, uid) else {
            return;
        };
        self.news |= self.task(id).evicting;
        let task = self.task(id);
        if task.evicting && task.status == Status::Releasing {
            let place = Place {
                // Not all that is evicted ran: pods that are bound are, as well.
                status: match task.status_seen {
                    Status::Running => Status::Running,
                    _ => Status::Bound,
                },
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

/// The PodGroup that a pod names.
fn group_name(pod: &Pod) -> Option<&str> {
    let name = pod.metadata.annotations.get(annotations::KUBE_GROUP_NAME);
    name.map(String::as_str).filter(|name| !name.is_empty())
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

/// It is being deleted to make room for another pod, and says so: a scheduler that was started since then, or that
/// looks at a snapshot, knows whom the room is for.
fn is_preempted(pod: &Pod) -> bool {
    let marked = |c: &PodCondition| {
        c.kind == conditions::DISRUPTION_TARGET
            && c.status == "True"
            && c.reason == reasons::PREEMPTION_BY_SCHEDULER
    };
    pod.metadata.deletion_timestamp.is_some() && pod.status.conditions.iter().any(marked)
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

/// The pod wants to be held back until its queue has room.
fn asks_queue(pod: &Pod) -> bool {
    let word = pod.metadata.annotations.get(annotations::QUEUE_ALLOCATION_GATE);
    word.is_some_and(|word| word == "true")
}

/// The number at the end of a name of three or more parts.
fn name_index(name: &str) -> Option<u64> {
    let mut parts = name.rsplit('-');
    let last = parts.next()?;
    (parts.count() >= 2).then(|| last.parse().ok()).flatten()
}
