//! Pods: what their class is made of, and what is their own.

use super::{created, labels};
use crate::ids::{ClassId, TaskId};
use crate::model::delta::Delta;
use crate::model::status::Status;
use crate::model::task::{self, Gate, Task};
use crate::model::{Model, SchedulerNames};
use rustc_hash::FxHashMap;
use volcano_api::core::{Container, Labels, Meta, Pod, PodCondition, PodPhase, PodSchedulingGate};
use volcano_api::names::{SCHEDULER, annotations, conditions, critical, gates, labels as keys, reasons};
use volcano_api::time::Time;

/// Classes are read once, as long as there are no more than this: pods with ephemeral volumes have one each.
const MOST_TEMPLATES: usize = 4096;

pub(super) fn objects(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    let mut ids: Vec<TaskId> = m.task_ids().collect();
    let key = |id: TaskId| (m.text(m.task(id).namespace), &*m.task(id).name);
    ids.sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
    let mut templates: FxHashMap<ClassId, Pod> = FxHashMap::default();
    let (mine, others) = schedulers(m);
    let others_name = others.clone();
    ids.into_iter()
        .map(move |id| {
            let task = m.task(id);
            let read = || template(m, task.class);
            let mut pod = match templates.get(&task.class) {
                Some(template) => template.clone(),
                None if templates.len() < MOST_TEMPLATES => {
                    templates.entry(task.class).or_insert_with(read).clone()
                }
                None => read(),
            };
            pod.spec
                .scheduler_name
                .clone_from(if task.mine { &mine } else { &others });
            describe(m, task, &mut pod);
            show_state(m, task, &mut pod);
            Delta::Pod(Box::new(pod))
        })
        .chain(foreign(m, others_name))
}

/// Pods that wait for another scheduler: all that is known of one is the group that it names.
fn foreign(m: &Model, scheduler: String) -> impl Iterator<Item = Delta> + '_ {
    m.foreign_pods().into_iter().map(move |(namespace, name, group)| {
        let mut pod = Pod::default();
        pod.metadata.namespace = namespace;
        pod.metadata.name = name;
        let annotation = (annotations::KUBE_GROUP_NAME.to_owned(), group);
        pod.metadata.annotations.extend([annotation]);
        pod.spec.scheduler_name.clone_from(&scheduler);
        Delta::Pod(Box::new(pod))
    })
}

/// A name of this scheduler, and one that is none of its names.
fn schedulers(m: &Model) -> (String, String) {
    let mut other = "default-scheduler".to_owned();
    match &m.scheduler_names {
        SchedulerNames::Any => (SCHEDULER.to_owned(), other),
        SchedulerNames::Only(names) => {
            while names.contains(&other) {
                other.insert_str(0, "not-");
            }
            (names.first().cloned().unwrap_or_default(), other)
        }
    }
}

/// A pod of the class, without what the class keeps and does not read.
fn template(m: &Model, class: ClassId) -> Pod {
    let mut pod = m.class(class).template();
    let spec = &mut pod.spec;
    let trim = |container: &mut Container| {
        container.ports.retain(|port| port.host_port > 0);
        container.resources.limits.clear();
    };
    spec.containers
        .iter_mut()
        .chain(&mut spec.init_containers)
        .for_each(trim);
    pod
}

/// Name, labels and the rest that does not change over the pod's life.
fn describe(m: &Model, task: &Task, pod: &mut Pod) {
    pod.metadata = Meta {
        name: task.name.to_string(),
        namespace: m.text(task.namespace).to_owned(),
        uid: task.uid.to_string(),
        creation_timestamp: created(task.created),
        labels: labels(m, &task.labels),
        ..Meta::default()
    };
    pod.metadata.annotations = said(m, task, &pod.metadata.labels);
    let spec = &mut pod.spec;
    spec.priority = Some(task.priority);
    spec.preemption_policy = task.never_preempts.then(|| "Never".to_owned());
    if task.critical && pod.metadata.namespace != critical::NAMESPACE {
        critical::CLUSTER_PRIORITY_CLASS.clone_into(&mut spec.priority_class_name);
    }
    let gate = match task.gate {
        Gate::None => None,
        Gate::QueueAllocation => Some(gates::QUEUE_ALLOCATION),
        Gate::Foreign => Some(gates::FOREIGN),
    };
    spec.scheduling_gates = gate
        .map(|name| PodSchedulingGate {
            name: name.to_owned(),
        })
        .into_iter()
        .collect();
}

/// What the pod says in annotations: its group, and what its labels do not say or say otherwise.
fn said(m: &Model, task: &Task, labels: &Labels) -> Labels {
    let mut said = Labels::new();
    if let Some(job) = task.job.map(|id| m.job(id)) {
        let name = m.text(job.name).to_owned();
        said.insert(annotations::KUBE_GROUP_NAME.to_owned(), name);
        let role = task.role.map_or("", |at| m.text(job.roles[usize::from(at)].name));
        if task::role_name(&said, labels) != role {
            said.insert(keys::TASK_SPEC.to_owned(), role.to_owned());
        }
    }
    if task.asks_queue {
        said.insert(annotations::QUEUE_ALLOCATION_GATE.to_owned(), "true".to_owned());
    }
    if task::is_preemptable(&said, labels) != task.preemptable {
        said.insert(keys::PREEMPTABLE.to_owned(), task.preemptable.to_string());
    }
    said
}

/// Where the pod is in its life, decisions that are being carried out included.
fn show_state(m: &Model, task: &Task, pod: &mut Pod) {
    let status = &mut pod.status;
    status.phase = match task.status {
        Status::Pending | Status::Allocated | Status::Pipelined | Status::Binding | Status::Bound => {
            PodPhase::Pending
        }
        Status::Running | Status::Releasing => PodPhase::Running,
        Status::Succeeded => PodPhase::Succeeded,
        Status::Failed => PodPhase::Failed,
        Status::Unknown => PodPhase::Unknown,
    };
    let waits = matches!(
        task.status,
        Status::Pending | Status::Allocated | Status::Pipelined
    );
    if let Some(node) = task.node.filter(|_| !waits) {
        m.text(m.nodes[node].name).clone_into(&mut pod.spec.node_name);
    }
    if task.status == Status::Releasing {
        // When it was asked to go is not kept; that it was is all that counts.
        pod.metadata.deletion_timestamp = Some(Time::from_unix_micros(task.created));
    }
    status.start_time = task.started.map(Time::from_unix_micros);
    status.nominated_node_name = task
        .nominated
        .map(|name| m.text(name).to_owned())
        .unwrap_or_default();
    let waiting = task.condition.iter().map(|(reason, message)| PodCondition {
        kind: conditions::POD_SCHEDULED.to_owned(),
        status: "False".to_owned(),
        reason: reason.to_string(),
        message: message.to_string(),
        ..PodCondition::default()
    });
    let leaving = task.evicting.then(|| PodCondition {
        kind: conditions::DISRUPTION_TARGET.to_owned(),
        status: "True".to_owned(),
        reason: reasons::PREEMPTION_BY_SCHEDULER.to_owned(),
        ..PodCondition::default()
    });
    status.conditions = waiting.chain(leaving).collect();
}
