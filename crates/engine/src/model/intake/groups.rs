//! PodGroups, the jobs that they make, and the sub-jobs that their policies split them into.

use super::{micros, parse_bool};
use crate::ids::{JobId, QueueId, Sym, TaskId};
use crate::model::Model;
use crate::model::class;
use crate::model::job::{Group, Job, Manager, Phase, Role, SubGroupPolicy, SubJob};
use crate::model::status::Counts;
use crate::model::task::Task;
use crate::resource::Resource;
use std::sync::Arc;
use volcano_api::core::Labels;
use volcano_api::names::{annotations, labels};
use volcano_api::scheduling::{self, PodGroup};
use volcano_api::time::GoDuration;

impl Model {
    pub(in crate::model) fn job_id(&mut self, namespace: Sym, name: Sym) -> JobId {
        if let Some(&id) = self.job_by_key.get(&(namespace, name)) {
            return id;
        }
        let text: Arc<str> = format!("{}/{}", self.text(namespace), self.text(name)).into();
        let job = Job {
            live: true,
            id: text,
            namespace,
            name,
            group: None,
            queue: self.queue_id(self.default_queue),
            priority: 0,
            roles: Vec::new(),
            sub_jobs: Vec::new(),
            tasks: Vec::new(),
            own_tasks: 0,
            foreign_pods: 0,
            counts: Counts::default(),
            allocated: Resource::default(),
            charged: Resource::default(),
            pending: Resource::default(),
            reserved: Resource::default(),
            gated: Resource::default(),
            inqueue: Resource::default(),
            elastic: Resource::default(),
            dirty: false,
        };
        let id = match self.free_jobs.pop() {
            Some(id) => {
                self.jobs[id.index()] = job;
                id
            }
            None => {
                self.jobs.push(job);
                JobId::from_index(self.jobs.len() - 1)
            }
        };
        self.job_by_key.insert((namespace, name), id);
        id
    }

    /// A job's sums leave (-1) or enter (1) its queue's.
    pub(in crate::model) fn count_in_queue(&mut self, id: JobId, sign: i64) {
        let job = &self.jobs[id.index()];
        if job.group.is_none() {
            return;
        }
        self.usage_stale = true;
        let queue = &mut self.queues[job.queue.index()];
        let parts = [
            (&mut queue.charged, &job.charged),
            (&mut queue.pending, &job.pending),
            (&mut queue.reserved, &job.reserved),
            (&mut queue.inqueue, &job.inqueue),
            (&mut queue.elastic, &job.elastic),
        ];
        for (sum, part) in parts {
            if sign > 0 {
                sum.add_to_sum(part);
            } else {
                sum.sub_from_sum(part);
            }
        }
        queue.jobs = queue.jobs.saturating_add_signed(sign as i32);
    }

    pub(in crate::model) fn set_group(&mut self, pod_group: &PodGroup) {
        let (meta, spec) = (&pod_group.metadata, &pod_group.spec);
        let (namespace, name) = (
            self.strings.intern(&meta.namespace),
            self.strings.intern(&meta.name),
        );
        let id = self.job_id(namespace, name);
        let mut group = self.read_group(pod_group);
        // A new incarnation of the name: its users have not been told anything yet.
        let before = self.jobs[id.index()].group.as_ref();
        let before = before.filter(|before| before.uid == group.uid);
        if let Some(before) = before {
            group.refusal = before.refusal.clone();
            group.told_at = before.told_at;
        }
        let queue = match spec.queue.as_str() {
            "" => self.default_queue,
            queue => self.strings.intern(queue),
        };
        let queue = self.queue_id(queue);
        let minimums: Vec<_> = spec
            .min_task_member
            .iter()
            .map(|(role, &min)| (self.strings.intern(role), min))
            .collect();
        if self.is_group(id, &group, queue, &minimums) {
            return;
        }
        self.news = true;
        self.count_in_queue(id, -1);
        let priority = self.cluster.priority(group.priority_class);
        let job = &mut self.jobs[id.index()];
        let regroup = job
            .group
            .as_ref()
            .map(|g| g.sub_groups.as_slice())
            .unwrap_or_default()
            != group.sub_groups;
        job.queue = queue;
        job.priority = priority;
        job.roles.iter_mut().for_each(|role| role.minimum = 0);
        for (role, minimum) in minimums {
            match job.roles.iter_mut().find(|r| r.name == role) {
                Some(known) => known.minimum = minimum,
                None => job.roles.push(Role {
                    name: role,
                    minimum,
                    counts: Counts::default(),
                }),
            }
        }
        job.group = Some(group);
        self.count_in_queue(id, 1);
        if regroup {
            self.regroup(id);
        }
        self.size_default_sub_job(id);
        self.touch(id);
    }

    /// The PodGroup is as it was, in all that the model keeps.
    fn is_group(&self, id: JobId, group: &Group, queue: QueueId, minimums: &[(Sym, i32)]) -> bool {
        let job = self.job(id);
        let bound = |of: &[(Sym, i32)]| of.iter().filter(|(_, minimum)| *minimum != 0).count();
        let known: Vec<(Sym, i32)> = job.roles.iter().map(|role| (role.name, role.minimum)).collect();
        job.group.as_ref() == Some(group)
            && job.queue == queue
            && minimums.iter().all(|minimum| known.contains(minimum))
            && bound(minimums) == bound(&known)
    }

    pub(in crate::model) fn read_group(&mut self, pod_group: &PodGroup) -> Group {
        let (meta, spec, status) = (&pod_group.metadata, &pod_group.spec, &pod_group.status);
        let annotation = |key: &str| meta.annotations.get(key).map(String::as_str);
        let waiting = annotation(annotations::SLA_WAITING_TIME)
            .or_else(|| annotation(annotations::SLA_WAITING_TIME_SHORT))
            .and_then(|text| GoDuration::parse(text).ok())
            .filter(|d| *d > GoDuration::ZERO);
        let preemptable =
            annotation(labels::PREEMPTABLE).or(meta.labels.get(labels::PREEMPTABLE).map(String::as_str));
        let min_resources = spec.min_resources.as_ref().map(|list| self.dims.vector(list));
        self.nodes.widen(&self.dims);
        let counter = |value: i32| u32::try_from(value).unwrap_or(0);
        Group {
            uid: meta.uid.as_str().into(),
            created: micros(meta.creation_timestamp),
            manager: Manager::of(meta),
            min_member: spec.min_member,
            role_minimum_total: spec
                .min_task_member
                .values()
                .fold(0, |sum: i32, &min| sum.saturating_add(min)),
            priority_class: (!spec.priority_class_name.is_empty())
                .then(|| self.strings.intern(&spec.priority_class_name)),
            min_resources,
            phase: Phase::from(&status.phase),
            phase_written: Phase::written(&status.phase),
            told_at: None,
            refusal: None,
            conditions: status.conditions.clone(),
            counters: [
                counter(status.running),
                counter(status.succeeded),
                counter(status.failed),
            ],
            sla_waiting_micros: waiting.map(|d| d.as_nanos() / 1000),
            preemptable: preemptable.and_then(parse_bool).unwrap_or(false),
            network_topology: spec.network_topology.clone(),
            sub_groups: spec
                .sub_group_policy
                .iter()
                .map(|p| self.read_sub_group(p))
                .collect(),
        }
    }

    pub(in crate::model) fn read_sub_group(&mut self, policy: &scheduling::SubGroupPolicy) -> SubGroupPolicy {
        SubGroupPolicy {
            name: policy.name.as_str().into(),
            size: policy.sub_group_size.unwrap_or(1),
            min_sub_groups: policy.min_sub_groups.unwrap_or(0),
            selector: policy.label_selector.clone(),
            match_label_keys: policy
                .match_label_keys
                .iter()
                .map(|k| self.strings.intern(k))
                .collect(),
            network_topology: policy.network_topology.clone(),
        }
    }

    pub(in crate::model) fn remove_group(&mut self, namespace: &str, name: &str) {
        let Some(id) = self.find_job(namespace, name) else {
            return;
        };
        self.news |= self.job(id).group.is_some();
        self.count_in_queue(id, -1);
        let job = &mut self.jobs[id.index()];
        job.group = None;
        job.inqueue = Resource::default();
        job.elastic = Resource::default();
        job.roles.iter_mut().for_each(|role| role.minimum = 0);
        self.regroup(id);
        self.touch(id);
        self.free_job_if_unused(id);
    }

    pub(in crate::model) fn free_job_if_unused(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        if job.live && job.group.is_none() && job.tasks.is_empty() && job.foreign_pods == 0 {
            job.live = false;
            job.dirty = false;
            let key = (job.namespace, job.name);
            self.job_by_key.remove(&key);
            self.dirty.remove(&id);
            self.waiting.remove(&id);
            self.unready.remove(&id);
            self.free_jobs.push(id);
        }
    }

    /// Sorts a job's tasks into sub-jobs anew.
    pub(in crate::model) fn regroup(&mut self, id: JobId) {
        let tasks = self.jobs[id.index()].tasks.clone();
        for &task in &tasks {
            self.leave(task);
        }
        self.jobs[id.index()].sub_jobs.clear();
        for &task in &tasks {
            self.tasks[task.index()].sub_job = self.sub_job_of(id, task);
            self.enter(task);
        }
    }

    pub(in crate::model) fn size_default_sub_job(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        let minimum = match &job.group {
            Some(group) if group.sub_groups.is_empty() => group.min_member,
            _ => 1,
        };
        if let Some(default) = job.sub_jobs.iter_mut().find(|s| s.policy.is_none()) {
            default.min_available = minimum;
        }
    }

    /// The sub-job that a task belongs to, made on first sight.
    pub(in crate::model) fn sub_job_of(&mut self, id: JobId, task: TaskId) -> u32 {
        let (job, task) = (&self.jobs[id.index()], &self.tasks[task.index()]);
        let policies = job
            .group
            .as_ref()
            .map(|g| g.sub_groups.as_slice())
            .unwrap_or_default();
        let matched = policies.iter().enumerate().find_map(|(at, policy)| {
            let values = self.sub_group_values(policy, task)?;
            Some((at, policy, values))
        });
        let (key, policy, min_available, match_index) = match matched {
            Some((at, policy, values)) => {
                let first = values.first().and_then(|v| v.parse().ok()).unwrap_or(0);
                let joined = values.join("-");
                let key: Arc<str> = format!("{}/{}-{}", job.id, policy.name, bounded(joined)).into();
                (key, Some(at as u16), policy.size, first)
            }
            None => {
                let minimum = if policies.is_empty() {
                    job.min_available() as i32
                } else {
                    1
                };
                (job.id.clone(), None, minimum, 0)
            }
        };
        let job = &mut self.jobs[id.index()];
        let at = match job
            .sub_jobs
            .iter()
            .position(|s| s.policy == policy && s.id == key)
        {
            Some(at) => at,
            None => {
                let counts = Counts::default();
                job.sub_jobs.push(SubJob {
                    id: key,
                    policy,
                    min_available,
                    priority: 0,
                    match_index,
                    counts,
                });
                job.sub_jobs.len() - 1
            }
        };
        at as u32
    }

    /// The label values that put a task into a sub-group of a policy; `None` when the policy does not cover it.
    /// A policy without `matchLabelKeys` makes one group of all that its selector covers.
    pub(in crate::model) fn sub_group_values(
        &self,
        policy: &SubGroupPolicy,
        task: &Task,
    ) -> Option<Vec<&str>> {
        if let Some(selector) = &policy.selector {
            let labels: Labels = task
                .labels
                .iter()
                .map(|&(k, v)| (self.text(k).to_owned(), self.text(v).to_owned()))
                .collect();
            if !selector.matches(&labels) {
                return None;
            }
        }
        let value = |&key: &Sym| {
            class::label(&task.labels, key)
                .map(|v| self.text(v))
                .filter(|v| !v.is_empty())
        };
        policy.match_label_keys.iter().map(value).collect()
    }

    pub(in crate::model) fn refresh_priorities(&mut self) {
        self.news = true;
        for at in 0..self.jobs.len() {
            let job = &self.jobs[at];
            if let Some(group) = job.group.as_ref().filter(|_| job.live) {
                let priority = self.cluster.priority(group.priority_class);
                self.jobs[at].priority = priority;
            }
        }
    }

    /// A sub-job matters as much as its most important task. Only the order among several asks for that.
    fn refresh_sub_job_priorities(&mut self, id: JobId) {
        let job = &mut self.jobs[id.index()];
        if job.sub_jobs.len() < 2 {
            return;
        }
        job.sub_jobs.iter_mut().for_each(|sub_job| sub_job.priority = 0);
        for task in job.tasks.iter().map(|task| &self.tasks[task.index()]) {
            let priority = &mut job.sub_jobs[task.sub_job as usize].priority;
            *priority = (*priority).max(task.priority);
        }
    }

    /// Brings up to date what depends on changed jobs: the queues' admitted work, the order of sub-jobs, and the list of
    /// jobs that wait. Cost: the number of changed jobs, and the tasks of those that have sub-jobs.
    pub(crate) fn refresh_changed_jobs(&mut self) -> Vec<JobId> {
        let changed: Vec<JobId> = std::mem::take(&mut self.dirty).into_iter().collect();
        for &id in &changed {
            self.count_in_queue(id, -1);
            let job = &mut self.jobs[id.index()];
            job.dirty = false;
            (job.inqueue, job.elastic) = admitted_parts(job);
            self.count_in_queue(id, 1);
            self.refresh_sub_job_priorities(id);
            let job = &self.jobs[id.index()];
            if job.group.is_some() && (job.phase() == Phase::Pending || job.has_pending()) {
                self.waiting.insert(id);
            } else {
                self.waiting.remove(&id);
            }
        }
        changed
    }
}

/// What a job still claims of its admitted minimum, and what it holds beyond it.
fn admitted_parts(job: &Job) -> (Resource, Resource) {
    let Some(group) = &job.group else {
        return Default::default();
    };
    let Some(minimum) = &group.min_resources else {
        return (Resource::default(), job.allocated.clone());
    };
    let admitted = match group.phase {
        Phase::Inqueue => true,
        Phase::Running => job.counts.allocated() >= job.min_available(),
        _ => false,
    };
    let inqueue = if admitted {
        job.without_gated(&job.unallocated_minimum())
    } else {
        Resource::default()
    };
    (inqueue, job.allocated.beyond(minimum))
}

/// Long joined values become a short stable name.
fn bounded(values: String) -> String {
    if values.len() <= 128 {
        return values;
    }
    let hash = values.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}
