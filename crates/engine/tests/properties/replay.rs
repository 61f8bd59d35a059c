//! A snapshot replays to the same decisions, and a model is the same whatever way its objects came in.

use super::checks::Decisions;
use super::extras::{Rich, rich_cluster};
use super::{any_conf, at, cluster, read, settings, strange, with_evictions};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::Value;
use std::collections::BTreeSet;
use volcano_api::core::PodCondition;
use volcano_api::names::conditions;
use volcano_engine::effect::Nomination;
use volcano_engine::export::Document;
use volcano_engine::ids::TaskId;
use volcano_engine::model::Model;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;
use volcano_engine::model::node::Block;
use volcano_engine::model::status::Status;
use volcano_engine::{Cycle, Effect, Engine};
use volcano_testkit::executor::Executor;
use volcano_testkit::generate::{Gang, Workload};

/// The decisions of a cycle by name. What users are told again, or were told already, is not a decision.
#[derive(Debug, PartialEq)]
struct Decided {
    decisions: Decisions,
    invalid_queues: BTreeSet<String>,
}

fn next_cycle(engine: &mut Engine, second: i64) -> (Cycle, Decided) {
    let cycle = engine.cycle(at(second), &mut |_| {});
    let m = engine.model();
    let told = |effect: &&Effect| !matches!(effect, Effect::GroupEvent { .. } | Effect::QueueStatus { .. });
    let decisions = Cycle {
        effects: cycle.effects.iter().filter(told).cloned().collect(),
        ..cycle.clone()
    };
    let queue = |(id, why): &(_, std::sync::Arc<str>)| format!("{}: {why}", m.text(m.queue(*id).name));
    let decided = Decided {
        decisions: Decisions::read(m, &decisions).sorted(),
        invalid_queues: cycle.invalid_queues.iter().map(queue).collect(),
    };
    (cycle, decided)
}

/// An object from the text that it is written as.
fn written_and_read(object: &Delta) -> Delta {
    let text = serde_json::to_string(&Document(object)).expect("writable");
    let value: Value = serde_json::from_str(&text).expect("readable");
    let (group, _) = value["apiVersion"]
        .as_str()
        .and_then(|v| v.split_once('/'))
        .unwrap_or_default();
    match Kind::find(group, value["kind"].as_str().expect("a kind")).expect("a known kind") {
        Kind::Pod => Delta::Pod(read(value)),
        Kind::Node => Delta::Node(read(value)),
        Kind::PodGroup => Delta::PodGroup(read(value)),
        Kind::Queue => Delta::Queue(read(value)),
        Kind::PriorityClass => Delta::PriorityClass(read(value)),
        Kind::Namespace => Delta::Namespace(read(value)),
        Kind::Claim => Delta::Claim(read(value)),
        Kind::Volume => Delta::Volume(read(value)),
        Kind::StorageClass => Delta::StorageClass(read(value)),
        Kind::CsiNode => Delta::CsiNode(read(value)),
        Kind::CsiDriver => Delta::CsiDriver(read(value)),
        Kind::StorageCapacity => Delta::StorageCapacity(read(value)),
        Kind::ResourceQuota => Delta::ResourceQuota(read(value)),
        Kind::DisruptionBudget => Delta::DisruptionBudget(read(value)),
        Kind::HyperNode => Delta::HyperNode(read(value)),
        Kind::NodeShard => Delta::NodeShard(read(value)),
    }
}

fn replayed(engine: &Engine, rich: &Rich) -> Engine {
    let mut again = rich.cluster.conf().engine();
    for object in engine.objects() {
        again.apply(written_and_read(&object));
    }
    again
}

/// The model as text: its objects, without the usage of queues that was written last, since that is told again; what is
/// derived from them for each task; and every sum. A bind that is on its way counts as done.
fn text(engine: &Engine) -> Vec<String> {
    let m = engine.model();
    let objects = engine.objects().map(|mut object| {
        if let Delta::Queue(queue) = &mut object {
            queue.status.allocated.clear();
        }
        serde_json::to_string(&Document(&object)).expect("writable")
    });
    let tasks = m.task_ids().map(|id| task_text(m, id));
    let jobs = m.group_ids().map(|id| m.job(id)).map(|job| {
        let [allocated, charged, pending] =
            [&job.allocated, &job.charged, &job.pending].map(|sum| m.dims.quantities(sum));
        format!(
            "job {}: {allocated:?} {charged:?} {pending:?} {}",
            job.id, job.priority
        )
    });
    let queues = m.queue_ids().map(|id| m.queue(id)).map(|queue| {
        let [charged, pending] = [&queue.charged, &queue.pending].map(|sum| m.dims.quantities(sum));
        format!(
            "queue {}: {} {charged:?} {pending:?}",
            m.text(queue.name),
            queue.jobs
        )
    });
    let nodes = m.nodes.ids().map(|id| {
        let [offers, used, leaving] = [Block::Allocatable, Block::Used, Block::Releasing]
            .map(|block| m.dims.quantities(&m.nodes.block(id, block)));
        format!(
            "node {}: {offers:?} {used:?} {leaving:?}",
            m.text(m.nodes[id].name)
        )
    });
    let total = format!("all nodes: {:?}", m.dims.quantities(m.nodes.total()));
    let mut lines: Vec<String> = objects
        .chain(tasks)
        .chain(jobs)
        .chain(queues)
        .chain(nodes)
        .collect();
    lines.push(total);
    lines.sort();
    lines
}

fn task_text(m: &Model, id: TaskId) -> String {
    let (task, class) = (m.task(id), m.class_of(id));
    let status = match task.status {
        Status::Binding => Status::Bound,
        status => status,
    };
    let name = |sym: Option<_>| sym.map(|sym| m.text(sym));
    let places = (
        status,
        name(task.node.map(|node| m.nodes[node].name)),
        name(task.nominated),
        task.job.map(|job| &m.job(job).id),
        name(m.role_name(id)),
    );
    let marks = (
        task.mine,
        task.evicting,
        task.preemptable,
        task.never_preempts,
        task.critical,
        task.best_effort,
        task.gate,
    );
    let order = (&task.uid, task.priority, task.index, task.created, task.started);
    let needs = (
        m.dims.quantities(&class.request),
        class.nonzero_cpu,
        class.nonzero_memory,
        class.ports.len(),
        class.tolerations.len(),
        class
            .images
            .iter()
            .map(|&image| m.text(image))
            .collect::<Vec<_>>(),
        (class.containers, &class.claims, class.resource_claims),
    );
    format!(
        "task {}: {places:?} {marks:?} {order:?} {needs:?}",
        m.task_key(id)
    )
}

fn loaded(rich: &Rich, deltas: impl IntoIterator<Item = Delta>) -> Engine {
    let mut engine = rich.cluster.conf().engine();
    deltas.into_iter().for_each(|delta| engine.apply(delta));
    engine
}

/// The same objects, line by line; only those that differ are worth a look.
fn same(left: &[String], right: &[String]) -> Result<(), TestCaseError> {
    let lacks = |in_: &[String], of: &[String]| -> Vec<String> {
        of.iter().filter(|line| !in_.contains(line)).cloned().collect()
    };
    prop_assert_eq!(lacks(right, left), lacks(left, right));
    prop_assert_eq!(left.len(), right.len());
    Ok(())
}

/// The API server has what the cycle wrote to pods and all binds, and the engine has seen the binds; evictions are still
/// on their way.
fn see_binds(engine: &mut Engine, executor: &mut Executor, cycle: &Cycle) {
    let m = engine.model();
    let stored = |executor: &Executor, task| {
        let task = m.task(task);
        let pod = executor.pod(m.text(task.namespace), &task.name);
        Box::new(pod.expect("a stored pod").clone())
    };
    let mut seen = Vec::new();
    for effect in &cycle.effects {
        match effect {
            Effect::PodCondition {
                task,
                reason,
                message,
                nominated,
            } => {
                let mut pod = stored(executor, *task);
                pod.status.conditions = vec![PodCondition {
                    kind: conditions::POD_SCHEDULED.to_owned(),
                    status: "False".to_owned(),
                    reason: (*reason).to_owned(),
                    message: message.to_string(),
                    ..PodCondition::default()
                }];
                match nominated {
                    Nomination::Keep => {}
                    Nomination::Set(node) => m
                        .text(m.nodes[*node].name)
                        .clone_into(&mut pod.status.nominated_node_name),
                    Nomination::Clear => pod.status.nominated_node_name.clear(),
                }
                executor.store(&Delta::Pod(pod));
            }
            Effect::Bind { binds, .. } => {
                for &(task, node) in binds {
                    let mut pod = stored(executor, task);
                    m.text(m.nodes[node].name).clone_into(&mut pod.spec.node_name);
                    seen.push(Delta::Pod(pod));
                }
            }
            _ => {}
        }
    }
    for delta in seen {
        executor.store(&delta);
        engine.apply(delta);
    }
}

/// Binds are done, as far as the engine knows.
fn bound(engine: &mut Engine, cycle: &Cycle) {
    let m = engine.model();
    let is_bound = |key: &str| {
        let binds = cycle.effects.iter().flat_map(|effect| match effect {
            Effect::Bind { binds, .. } => binds.as_slice(),
            _ => &[],
        });
        binds.into_iter().any(|&(task, _)| m.task_key(task) == key)
    };
    let pods = engine.objects().filter(|object| match object {
        Delta::Pod(pod) => is_bound(&format!("{}/{}", pod.metadata.namespace, pod.metadata.name)),
        _ => false,
    });
    pods.collect::<Vec<_>>()
        .into_iter()
        .for_each(|pod| engine.apply(pod));
}

proptest! {
    #![proptest_config(settings(1000))]

    #[test]
    fn a_snapshot_replays_to_the_same_decisions(rich in rich_cluster(any_conf), cycles in 0..4i64) {
        let mut engine = rich.cluster.conf().engine();
        let mut executor = Executor::default();
        for delta in rich.deltas() {
            executor.store(&delta);
            engine.apply(delta);
        }
        for second in 0..cycles {
            let (cycle, _) = next_cycle(&mut engine, second);
            executor.carry_out(&mut engine, &cycle);
        }
        let mut again = replayed(&engine, &rich);
        same(&text(&engine), &text(&again))?;
        let (_, decided) = next_cycle(&mut engine, cycles);
        prop_assert_eq!(decided, next_cycle(&mut again, cycles).1);
    }

    #[test]
    fn a_snapshot_shows_what_is_on_its_way_as_done(rich in rich_cluster(with_evictions), cycles in 1..3i64) {
        let mut engine = rich.cluster.conf().engine();
        let mut executor = Executor::default();
        for delta in rich.deltas() {
            executor.store(&delta);
            engine.apply(delta);
        }
        for second in 0..cycles {
            let (cycle, _) = next_cycle(&mut engine, second);
            let on_its_way = text(&engine);
            see_binds(&mut engine, &mut executor, &cycle);
            same(&on_its_way, &text(&engine))?;
        }
        let mut again = replayed(&engine, &rich);
        let (_, decided) = next_cycle(&mut engine, cycles);
        prop_assert_eq!(decided, next_cycle(&mut again, cycles).1);
    }

    #[test]
    fn a_model_does_not_depend_on_the_order_or_repetition_of_its_objects(
        (rich, order) in rich_cluster(any_conf).prop_flat_map(|rich| {
            let count = rich.deltas().len();
            (Just(rich), prop::collection::vec(0..count, 0..20), Just((0..count).collect::<Vec<_>>()).prop_shuffle())
                .prop_map(|(rich, again, order)| (rich, again.into_iter().chain(order).collect::<Vec<_>>()))
        })
    ) {
        let deltas = rich.deltas();
        let mut straight = loaded(&rich, deltas.clone());
        let mut shuffled = loaded(&rich, order.iter().map(|&at| deltas[at].clone()));
        same(&text(&straight), &text(&shuffled))?;
        let (_, decided) = next_cycle(&mut straight, 0);
        prop_assert_eq!(decided, next_cycle(&mut shuffled, 0).1);
    }

    #[test]
    fn a_model_that_lost_what_a_list_lacks_is_the_model_of_the_list(
        (rich, kept) in rich_cluster(any_conf).prop_flat_map(|rich| {
            let count = rich.deltas().len();
            (Just(rich), prop::collection::vec(any::<bool>(), count))
        }),
        cycles in 0..2i64,
    ) {
        let mut engine = loaded(&rich, rich.deltas());
        for second in 0..cycles {
            next_cycle(&mut engine, second);
        }
        let listed: Vec<Delta> = rich.deltas().into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(d, _)| d).collect();
        for kind in Kind::ALL {
            let names: BTreeSet<(&str, &str)> = listed
                .iter()
                .filter_map(Delta::key)
                .filter(|key| key.0 == kind)
                .map(|(_, namespace, name)| (namespace, name))
                .collect();
            for (namespace, name) in engine.names(kind) {
                if !names.contains(&(namespace.as_str(), name.as_str())) {
                    engine.apply(Delta::gone(kind, &namespace, &name));
                }
            }
        }
        let mut fresh = loaded(&rich, listed.clone());
        for kind in Kind::ALL {
            prop_assert_eq!(engine.names(kind), fresh.names(kind), "{:?}", kind);
        }
        if cycles == 0 {
            same(&text(&engine), &text(&fresh))?;
            let (_, decided) = next_cycle(&mut engine, 0);
            prop_assert_eq!(decided, next_cycle(&mut fresh, 0).1);
        }
    }

    #[test]
    fn a_snapshot_of_strange_objects_replays_as_well(
        rich in rich_cluster(any_conf),
        before in prop::collection::vec(strange::delta(), 1..12),
        after in prop::collection::vec(strange::delta(), 0..6),
    ) {
        // No API server has an object without a name, and no field can refer to one.
        let named = |delta: &Delta| delta.key().is_none_or(|(_, _, name)| !name.is_empty());
        let mut engine = loaded(&rich, rich.deltas());
        before.into_iter().flatten().filter(named).for_each(|delta| engine.apply(delta));
        let (cycle, _) = next_cycle(&mut engine, 0);
        bound(&mut engine, &cycle);
        after.into_iter().flatten().filter(named).for_each(|delta| engine.apply(delta));
        let mut again = replayed(&engine, &rich);
        same(&text(&engine), &text(&again))?;
        let (_, decided) = next_cycle(&mut engine, 1);
        prop_assert_eq!(decided, next_cycle(&mut again, 1).1);
    }
}

/// Generated clusters are larger than random ones and look like those of users.
#[test]
fn snapshots_of_generated_clusters_replay() {
    let urgent = || Workload::urgent("urgent", "busy", 12);
    let cases: [(Workload, Vec<Gang>); 3] = [
        (Workload::gangs(40), Vec::new()),
        (Workload::mixed(60), Vec::new()),
        (Workload::full(20), vec![urgent()]),
    ];
    for (conf, (workload, late)) in cluster::CONFS
        .iter()
        .flat_map(|conf| cases.iter().map(move |case| (conf, case)))
    {
        let (mut engine, mut executor) = (conf.engine(), Executor::default());
        let mut take = |engine: &mut Engine, delta: Delta| {
            executor.store(&delta);
            engine.apply(delta);
        };
        workload.deltas().for_each(|delta| take(&mut engine, delta));
        let (cycle, _) = next_cycle(&mut engine, 0);
        executor.carry_out(&mut engine, &cycle);
        late.iter()
            .flat_map(Gang::deltas)
            .for_each(|delta| engine.apply(delta));
        let mut again = conf.engine();
        engine
            .objects()
            .for_each(|object| again.apply(written_and_read(&object)));
        let (_, decided) = next_cycle(&mut engine, 1);
        assert_eq!(decided, next_cycle(&mut again, 1).1, "{}", conf.text);
    }
}
