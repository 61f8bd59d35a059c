//! Undoing restores everything that decisions can see.

use super::cluster::{Cluster, cluster};
use super::settings;
use proptest::prelude::*;
use volcano_engine::dispatch::Plugins;
use volcano_engine::ids::{NodeId, TaskId};
use volcano_engine::model::accounting::Place;
use volcano_engine::model::job::Job;
use volcano_engine::model::node::{Block, Node};
use volcano_engine::model::queue::Queue;
use volcano_engine::model::status::Status;
use volcano_engine::model::{Model, SchedulerNames};
use volcano_engine::placer::Placer;
use volcano_engine::plugin::EvictionKind;
use volcano_engine::relations::Relations;
use volcano_engine::resource::Resource;
use volcano_engine::session::Session;

/// An operation: what, on which task, where or for whom.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Allocate(usize, usize),
    Pipeline(usize, usize),
    Evict(usize, usize),
    Spare,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (any::<usize>(), any::<usize>()).prop_map(|(task, node)| Operation::Allocate(task, node)),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(task, node)| Operation::Pipeline(task, node)),
        3 => (any::<usize>(), any::<usize>()).prop_map(|(task, other)| Operation::Evict(task, other)),
        1 => Just(Operation::Spare),
    ]
}

/// All that decisions can see, in an order that does not depend on what was done and undone.
#[derive(Debug, PartialEq)]
struct Digest {
    nodes: Vec<(Node, Vec<Resource>)>,
    totals: [Resource; 2],
    jobs: Vec<Job>,
    queues: Vec<Queue>,
    relations: Relations,
    places: Vec<Place>,
    answers: Vec<String>,
}

impl Digest {
    fn of(m: &Model, plugins: &Plugins) -> Self {
        let blocks = [
            Block::Allocatable,
            Block::Used,
            Block::Releasing,
            Block::Pipelined,
            Block::Evicted,
        ];
        let node = |id: NodeId| {
            let mut node = m.nodes[id].clone();
            node.tasks.sort();
            node.ports.sort();
            (
                node,
                blocks.iter().map(|&block| m.nodes.block(id, block)).collect(),
            )
        };
        let job = |job: &Job| {
            let mut job = job.clone();
            job.tasks.sort();
            job.dirty = false;
            job
        };
        let tasks = || {
            (0..m.tasks.len())
                .map(TaskId::from_index)
                .filter(|&task| m.task(task).live)
        };
        Digest {
            nodes: m.nodes.ids().map(node).collect(),
            totals: [m.nodes.total().clone(), m.nodes.total_used().clone()],
            jobs: m.jobs.iter().map(job).collect(),
            queues: m.queues.clone(),
            relations: m.relations.clone(),
            places: tasks().map(|task| m.place(task)).collect(),
            answers: answers(m, plugins),
        }
    }
}

/// What the plugins say: their own sums are not to be seen in any other way.
fn answers(m: &Model, plugins: &Plugins) -> Vec<String> {
    let mut list = Vec::new();
    let queues: Vec<_> = m.queue_ids().collect();
    let jobs = m.jobs_by_name();
    for &queue in &queues {
        list.push(format!("{queue:?} overused: {}", plugins.overused(m, queue)));
        list.extend(
            queues
                .iter()
                .map(|&other| format!("{queue:?} {:?}", plugins.queue_order(m, queue, other))),
        );
    }
    for &job in &jobs {
        let queue = m.job(job).queue;
        list.extend(
            jobs.iter()
                .map(|&other| format!("{job:?} {:?}", plugins.job_order(m, job, other))),
        );
        list.push(format!(
            "{job:?} {} {}",
            plugins.job_ready(m, job),
            plugins.job_starving(m, job)
        ));
        for &task in &m.job(job).tasks {
            list.push(format!("{task:?} {:?}", plugins.allocatable(m, queue, task)));
        }
    }
    list.sort();
    list
}

fn perform(ssn: &mut Session<'_>, nodes: &[NodeId], evicted: &mut Vec<TaskId>, operation: Operation) {
    let of = |ssn: &Session<'_>, wanted: &[Status]| -> Vec<TaskId> {
        let ids = (0..ssn.m.tasks.len()).map(TaskId::from_index);
        ids.filter(|&t| ssn.m.task(t).live && wanted.contains(&ssn.m.task(t).status))
            .collect()
    };
    let pending = of(ssn, &[Status::Pending]);
    match operation {
        Operation::Allocate(task, node) | Operation::Pipeline(task, node) => {
            let (Some(&task), node) = (
                pending.get(task % pending.len().max(1)),
                nodes[node % nodes.len()],
            ) else {
                return;
            };
            match operation {
                Operation::Allocate(..) => ssn.allocate(task, node),
                _ => ssn.pipeline(task, node, false),
            }
        }
        Operation::Evict(victim, preemptor) => {
            let victims = of(ssn, &[Status::Running, Status::Bound]);
            let victim = victims.get(victim % victims.len().max(1));
            let preemptor = pending.get(preemptor % pending.len().max(1));
            if let (Some(&victim), Some(&preemptor)) = (victim, preemptor) {
                ssn.evict(victim, EvictionKind::Preempt, preemptor);
                evicted.push(victim);
            }
        }
        Operation::Spare => {
            if let Some(victim) = evicted.pop() {
                ssn.spare(victim);
            }
        }
    }
}

fn check(cluster: &Cluster, first: &[Operation], then: &[Operation]) -> Result<(), TestCaseError> {
    let conf = cluster.conf().read();
    let mut m = Model::new(SchedulerNames::Any, "default");
    cluster.deltas().into_iter().for_each(|delta| m.apply(delta));
    let (mut plugins, _) = Plugins::build(&conf);
    plugins.open(&m, super::at(0).unix_micros(), &mut |_| {});
    let mut placer = Placer::default();
    let nodes: Vec<NodeId> = m.nodes.ids().collect();
    let before = Digest::of(&m, &plugins);
    {
        let mut ssn = Session::new(&mut m, &mut plugins, &mut placer, false);
        let outer = ssn.checkpoint();
        let mut evicted = Vec::new();
        first
            .iter()
            .for_each(|&operation| perform(&mut ssn, &nodes, &mut evicted, operation));
        let between = Digest::of(ssn.m, ssn.plugins);
        let inner = ssn.checkpoint();
        then.iter()
            .for_each(|&operation| perform(&mut ssn, &nodes, &mut Vec::new(), operation));
        ssn.rollback(inner);
        prop_assert_eq!(&Digest::of(ssn.m, ssn.plugins), &between, "an inner rollback");
        ssn.rollback(outer);
        prop_assert_eq!(&Digest::of(ssn.m, ssn.plugins), &before, "an outer rollback");
        first
            .iter()
            .chain(then)
            .for_each(|&operation| perform(&mut ssn, &nodes, &mut Vec::new(), operation));
    }
    prop_assert_eq!(&Digest::of(&m, &plugins), &before, "a session that is dropped");
    Ok(())
}

proptest! {
    #![proptest_config(settings(1000))]

    #[test]
    fn a_rollback_restores_every_sum_and_every_answer(
        cluster in cluster(super::any_conf),
        first in prop::collection::vec(operation(), 0..12),
        then in prop::collection::vec(operation(), 1..12),
    ) {
        check(&cluster, &first, &then)?;
    }
}
