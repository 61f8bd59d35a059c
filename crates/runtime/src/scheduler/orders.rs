//! From what the engine decided to what is to be written. The model's ids end here.

use super::statuses::Statuses;
use crate::writes::order::{
    ClaimRef, Event, Eviction, GangBind, GroupStatus, ObjectRef, Order, PodBind, PodCondition, PodRef,
    QueueStatus, ShardStatus, VolumeStep,
};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use volcano_api::names::{events, kinds};
use volcano_api::scheduling::{PodGroupCondition, PodGroupPhase, PodGroupStatus};
use volcano_api::shard::NodeShardStatus;
use volcano_api::time::Time;
use volcano_engine::Engine;
use volcano_engine::effect::{Effect, Nomination};
use volcano_engine::ids::{DimId, JobId, NodeId, QueueId, TaskId};
use volcano_engine::model::Model;
use volcano_engine::model::job::{Manager, Phase};
use volcano_engine::plugins::predicates::volumes::binding::Source;
use volcano_engine::resource::Resource;

/// `apiVersion` of PodGroups and Queues.
const SCHEDULING_VERSION: &str = "scheduling.volcano.sh/v1beta1";

/// The orders of a cycle's effects, in their order.
pub fn orders(engine: &Engine, effects: &[Effect], statuses: &mut Statuses) -> Vec<Order> {
    let m = engine.model();
    let mut orders = Vec::with_capacity(effects.len());
    for effect in effects {
        match effect {
            Effect::Bind { job, binds } => orders.push(bind(engine, *job, binds)),
            Effect::Evict { task, kind, .. } => {
                orders.push(Order::Evict(Eviction {
                    pod: pod(m, *task),
                    reason: kind.name(),
                }));
                let job = m.task(*task).job;
                orders.extend(job.and_then(|job| group_event(m, job, false, events::EVICT, kind.name())));
            }
            Effect::GroupStatus {
                job,
                phase,
                conditions,
                counters,
            } => orders.extend(group_status(m, *job, *phase, conditions, *counters, statuses)),
            Effect::PodCondition {
                task,
                reason,
                message,
                nominated,
            } => orders.push(Order::PodCondition(PodCondition {
                pod: pod(m, *task),
                reason,
                message: message.clone(),
                nominated: match nominated {
                    Nomination::Keep => None,
                    Nomination::Set(node) => Some(node_name(m, *node)),
                    Nomination::Clear => Some("".into()),
                },
            })),
            Effect::QueueStatus {
                queue,
                allocated,
                removed,
            } => orders.push(queue_status(m, *queue, allocated, removed)),
            Effect::OpenGate { task } => orders.push(Order::OpenGate(pod(m, *task))),
            Effect::ShardStatus(status) => orders.extend(shard_status(m, status)),
            Effect::GroupEvent {
                job,
                warning,
                reason,
                message,
            } => orders.extend(group_event(m, *job, *warning, reason, message)),
        }
    }
    orders
}

fn shard_status(m: &Model, status: &NodeShardStatus) -> Option<Order> {
    let sharding = m.features.sharding.as_ref()?;
    Some(Order::ShardStatus(ShardStatus {
        name: sharding.name.as_str().into(),
        in_use: status.nodes_in_use.clone(),
        to_add: status.nodes_to_add.clone(),
        to_remove: status.nodes_to_remove.clone(),
    }))
}

/// One incarnation of a pod.
pub fn pod(m: &Model, task: TaskId) -> PodRef {
    let task = m.task(task);
    PodRef {
        namespace: m.strings.shared(task.namespace),
        name: (&*task.name).into(),
        uid: (&*task.uid).into(),
    }
}

fn node_name(m: &Model, node: NodeId) -> Arc<str> {
    m.strings.shared(m.nodes[node].name)
}

fn bind(engine: &Engine, job: JobId, binds: &[(TaskId, NodeId)]) -> Order {
    let m = engine.model();
    let binds = binds.iter().map(|&(task, node)| PodBind {
        pod: pod(m, task),
        node: node_name(m, node),
        created: Some(Time::from_unix_micros(m.task(task).created)),
        volumes: volumes(engine, task),
    });
    Order::Bind(GangBind {
        job: m.job(job).id.clone(),
        binds: binds.collect(),
        ends: None,
    })
}

fn volumes(engine: &Engine, task: TaskId) -> Vec<VolumeStep> {
    let m = engine.model();
    let sources = engine.claim_sources(task).into_iter();
    sources
        .filter_map(|(key, source)| {
            let claim = m.cluster.claims.get(&key)?;
            Some(VolumeStep {
                claim: ClaimRef {
                    namespace: m.strings.shared(key.0),
                    name: (&*key.1).into(),
                    uid: claim.metadata.uid.as_str().into(),
                },
                volume: match source {
                    Source::Volume(name) => Some(name.into()),
                    Source::Made => None,
                },
            })
        })
        .collect()
}

fn group_status(
    m: &Model,
    job: JobId,
    phase: Phase,
    conditions: &[PodGroupCondition],
    counters: [u32; 3],
    statuses: &mut Statuses,
) -> Option<Order> {
    let job = m.job(job);
    let group = job.group.as_ref()?;
    let [running, succeeded, failed] = counters.map(|count| i32::try_from(count).unwrap_or(i32::MAX));
    let status = PodGroupStatus {
        phase: written_phase(phase),
        conditions: conditions.to_vec(),
        running,
        succeeded,
        failed,
        ..PodGroupStatus::default()
    };
    let mut value = serde_json::to_value(&status).ok()?;
    // Counters that went to zero are left out of the object as it is printed; a merge must say so.
    for (name, count) in [("running", running), ("succeeded", succeeded), ("failed", failed)] {
        value[name] = if count == 0 { Value::Null } else { count.into() };
    }
    let uid: Arc<str> = (&*group.uid).into();
    let sequence = statuses.decided(job.id.clone(), uid.clone(), status);
    Some(Order::GroupStatus(GroupStatus {
        job: job.id.clone(),
        namespace: m.strings.shared(job.namespace),
        name: m.strings.shared(job.name),
        uid,
        sequence,
        settles: settles(group.manager),
        status: value,
    }))
}

/// How long the first status of a PodGroup waits. A group and its pods are often made in one go: that it may have pods
/// need not be written when they are bound a moment later. But who waits for it to make the pods is not kept waiting.
fn settles(manager: Manager) -> Duration {
    match manager {
        Manager::Job => Duration::ZERO,
        Manager::Other => Duration::from_millis(25),
        Manager::Nobody => Duration::from_millis(250),
    }
}

fn written_phase(phase: Phase) -> PodGroupPhase {
    match phase {
        Phase::Pending => PodGroupPhase::Pending,
        Phase::Inqueue => PodGroupPhase::Inqueue,
        Phase::Running => PodGroupPhase::Running,
        Phase::Unknown => PodGroupPhase::Unknown,
        Phase::Completed => PodGroupPhase::Completed,
    }
}

fn queue_status(m: &Model, queue: QueueId, allocated: &Resource, removed: &[DimId]) -> Order {
    let mut amounts = Map::new();
    for (name, amount) in m.dims.quantities(allocated) {
        amounts.insert(name, amount.to_string().into());
    }
    for &dim in removed {
        amounts.insert(m.dims.name(dim).to_owned(), Value::Null);
    }
    Order::QueueStatus(QueueStatus {
        name: m.strings.shared(m.queue(queue).name),
        allocated: Value::Object(amounts),
    })
}

fn group_event(m: &Model, job: JobId, warning: bool, reason: &'static str, message: &str) -> Option<Order> {
    let job = m.job(job);
    let group = job.group.as_ref()?;
    Some(Order::Event(Event {
        object: ObjectRef {
            api_version: SCHEDULING_VERSION.into(),
            kind: kinds::POD_GROUP.kind,
            namespace: m.strings.shared(job.namespace),
            name: m.strings.shared(job.name),
            uid: (&*group.uid).into(),
        },
        warning,
        reason: reason.into(),
        message: message.into(),
    }))
}
