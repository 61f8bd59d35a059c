//! The one place where a task changes state, and where every sum that depends on it is kept.

use super::Model;
use super::node::Block;
use super::status::Status;
use super::task::{Gate, Task};
use crate::ids::{JobId, NodeId, TaskId};

/// Which side of a sum a task is moved to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Into,
    OutOf,
}

/// Where a task is: all of its state that a transaction can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its state.
    pub status: Status,
    /// Its node.
    pub node: Option<NodeId>,
    /// Evicted in the running cycle.
    pub evicted_now: bool,
}

impl Model {
    /// Where a task is.
    pub fn place(&self, id: TaskId) -> Place {
        let task = self.task(id);
        Place {
            status: task.status,
            node: task.node,
            evicted_now: task.evicted_now,
        }
    }

    /// Moves a task to another state. All sums follow; moving back restores them exactly.
    pub fn transition(&mut self, id: TaskId, to: Place) {
        self.count(id, Side::OutOf);
        let task = &mut self.tasks[id.index()];
        task.status = to.status;
        task.node = to.node;
        task.evicted_now = to.evicted_now;
        self.count(id, Side::Into);
    }

    /// An allocated task is handed to the executor. Its place stays as it is; only its state is counted anew.
    pub(crate) fn bind(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let Task {
            status,
            best_effort,
            role,
            sub_job,
            ..
        } = *task;
        task.status = Status::Binding;
        task.nominated = None;
        let Some(job) = task.job else { return };
        let job = &mut self.jobs[job.index()];
        let role = role.map(|at| &mut job.roles[usize::from(at)].counts);
        let sub_job = &mut job.sub_jobs[sub_job as usize].counts;
        for counts in [Some(&mut job.counts), role, Some(sub_job)].into_iter().flatten() {
            counts.leave(status, best_effort, true);
            counts.enter(Status::Binding, best_effort, true);
        }
    }

    /// A task's queue has room for it: its gate is being removed.
    pub(crate) fn open_gate(&mut self, id: TaskId) {
        self.count(id, Side::OutOf);
        self.tasks[id.index()].gate_opened = true;
        self.count(id, Side::Into);
    }

    /// Counts a new task into its job, queue and node.
    pub(super) fn enter(&mut self, id: TaskId) {
        if let Some(job) = self.task(id).job {
            let position = self.jobs[job.index()].tasks.len();
            self.jobs[job.index()].tasks.push(id);
            self.jobs[job.index()].own_tasks += u32::from(self.task(id).mine);
            self.tasks[id.index()].position = u32::try_from(position).expect("fewer tasks than ids");
            self.gate(id, job, Side::Into);
        }
        self.count(id, Side::Into);
    }

    /// Counts a task out of its job, queue and node.
    pub(super) fn leave(&mut self, id: TaskId) {
        self.count(id, Side::OutOf);
        if let Some(job) = self.task(id).job {
            self.gate(id, job, Side::OutOf);
            let position = self.task(id).position as usize;
            self.jobs[job.index()].own_tasks -= u32::from(self.task(id).mine);
            let tasks = &mut self.jobs[job.index()].tasks;
            tasks.swap_remove(position);
            if let Some(&moved) = tasks.get(position) {
                self.tasks[moved.index()].position = position as u32;
            }
        }
    }

    fn gate(&mut self, id: TaskId, job: JobId, side: Side) {
        let task = &self.tasks[id.index()];
        if task.gate != Gate::Foreign || task.status != Status::Pending {
            return;
        }
        let request = &self.classes.get(task.class).request;
        match side {
            Side::Into => self.jobs[job.index()].gated.add_to_sum(request),
            Side::OutOf => self.jobs[job.index()].gated.sub_from_sum(request),
        }
    }

    #[inline]
    fn count(&mut self, id: TaskId, side: Side) {
        if let Some(job) = self.task(id).job {
            self.count_in_job(id, job, side);
        }
        if let Some(node) = self.task(id).node {
            self.count_on_node(id, node, side);
        }
    }

    #[inline]
    fn count_in_job(&mut self, id: TaskId, job_id: JobId, side: Side) {
        self.touch(job_id);
        let task = &self.tasks[id.index()];
        let Task {
            status,
            best_effort,
            role,
            sub_job,
            ..
        } = *task;
        let (on_node, promised) = (task.node.is_some(), task.is_promised());
        let request = &self.classes.get(task.class).request;
        let job = &mut self.jobs[job_id.index()];
        let queue = job.group.is_some().then(|| &mut self.queues[job.queue.index()]);
        let role = role.map(|at| &mut job.roles[usize::from(at)].counts);
        let sub_job = &mut job.sub_jobs[sub_job as usize].counts;
        for counts in [Some(&mut job.counts), role, Some(sub_job)].into_iter().flatten() {
            match side {
                Side::Into => counts.enter(status, best_effort, on_node),
                Side::OutOf => counts.leave(status, best_effort, on_node),
            }
        }
        let (mut charged, mut pending, mut reserved) = (None, None, None);
        if let Some(queue) = queue {
            self.usage_stale = true;
            (charged, pending) = (Some(&mut queue.charged), Some(&mut queue.pending));
            reserved = Some(&mut queue.reserved);
        }
        let sums = [
            (status.is_allocated(), Some(&mut job.allocated)),
            (status.is_charged(), Some(&mut job.charged)),
            (status == Status::Pending, Some(&mut job.pending)),
            (promised, Some(&mut job.reserved)),
            (status.is_charged(), charged),
            (status == Status::Pending, pending),
            (promised, reserved),
        ];
        for (applies, sum) in sums {
            let Some(sum) = sum.filter(|_| applies) else {
                continue;
            };
            match side {
                Side::Into => sum.add_to_sum(request),
                Side::OutOf => sum.sub_from_sum(request),
            }
        }
    }

    #[inline]
    fn count_on_node(&mut self, id: TaskId, node: NodeId, side: Side) {
        let task = &self.tasks[id.index()];
        let sign = if side == Side::Into { 1 } else { -1 };
        let class = self.classes.get(task.class);
        match task.status {
            Status::Pending | Status::Succeeded | Status::Failed => return,
            Status::Pipelined => self.nodes.charge(node, Block::Pipelined, &class.request, sign),
            Status::Releasing => {
                self.nodes.charge(node, Block::Used, &class.request, sign);
                self.nodes.charge(node, Block::Releasing, &class.request, sign);
            }
            _ => self.nodes.charge(node, Block::Used, &class.request, sign),
        }
        let info = self.nodes.get_mut(node);
        match side {
            Side::Into => info.tasks.push(id),
            Side::OutOf => {
                // A node holds as many tasks as it takes pods (110 by default): the search is short.
                let at = info
                    .tasks
                    .iter()
                    .rposition(|&t| t == id)
                    .expect("a counted task is on its node");
                info.tasks.swap_remove(at);
            }
        }
        if task.evicted_now {
            self.evicted_now = self.evicted_now.saturating_add_signed(sign as i32);
            let tally = self.nodes.tally_mut(node);
            tally.evicted_now = tally.evicted_now.saturating_add_signed(sign as i32);
            self.nodes.charge(node, Block::Evicted, &class.request, sign);
        } else {
            for port in &class.ports {
                match info.ports.iter().position(|p| p.0 == *port) {
                    Some(at) if side == Side::Into => info.ports[at].1 += 1,
                    Some(at) if info.ports[at].1 > 1 => info.ports[at].1 -= 1,
                    Some(at) => {
                        info.ports.swap_remove(at);
                    }
                    None => info.ports.push((*port, 1)),
                }
            }
            let tally = self.nodes.tally_mut(node);
            // A pod that is leaving frees its place as it frees its resources; until then `idle` counts it.
            tally.pods += if task.status == Status::Releasing { 0 } else { sign };
            tally.nonzero_cpu = tally.nonzero_cpu.wrapping_add(sign * class.nonzero_cpu);
            tally.nonzero_memory = tally.nonzero_memory.wrapping_add(sign * class.nonzero_memory);
            if !self.relations.is_empty() {
                self.relations.count(task, class, &self.nodes, node, sign);
            }
        }
        self.nodes.changed(node, false);
    }
}
