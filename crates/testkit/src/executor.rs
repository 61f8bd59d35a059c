//! An executor for which every write succeeds at once: what a cycle decided comes back as the changes that a watch
//! would bring.

use std::collections::BTreeMap;

use volcano_api::core::{Pod, PodPhase};
use volcano_api::scheduling::{PodGroup, PodGroupCondition, PodGroupPhase};
use volcano_engine::Engine;
use volcano_engine::effect::{Cycle, Effect};
use volcano_engine::ids::{JobId, NodeId, TaskId};
use volcano_engine::model::Model;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::job::Phase;

/// The objects as an API server would hold them.
#[derive(Clone, Debug, Default)]
pub struct Executor {
    pods: BTreeMap<String, Pod>,
    groups: BTreeMap<String, PodGroup>,
}

impl Executor {
    /// Stores a pod or a PodGroup that was made; other objects are not written by a scheduler and not stored.
    pub fn store(&mut self, delta: &Delta) {
        match delta {
            Delta::Pod(pod) => {
                self.pods
                    .insert(key(&pod.metadata.namespace, &pod.metadata.name), (**pod).clone());
            }
            Delta::PodGone { namespace, name } => {
                self.pods.remove(&key(namespace, name));
            }
            Delta::PodGroup(group) => {
                self.groups.insert(
                    key(&group.metadata.namespace, &group.metadata.name),
                    (**group).clone(),
                );
            }
            Delta::PodGroupGone { namespace, name } => {
                self.groups.remove(&key(namespace, name));
            }
            _ => {}
        }
    }

    /// A stored pod.
    #[must_use]
    pub fn pod(&self, namespace: &str, name: &str) -> Option<&Pod> {
        self.pods.get(&key(namespace, name))
    }

    /// Carries a cycle out and lets the engine see the outcome: bound pods run, evicted ones are gone, statuses are
    /// written. Returns the number of changes.
    pub fn carry_out(&mut self, engine: &mut Engine, cycle: &Cycle) -> usize {
        let deltas = self.changes(engine.model(), cycle);
        let count = deltas.len();
        for delta in deltas {
            self.store(&delta);
            engine.apply(delta);
        }
        count
    }

    fn changes(&self, m: &Model, cycle: &Cycle) -> Vec<Delta> {
        let mut changes = Vec::new();
        for effect in &cycle.effects {
            match effect {
                Effect::Bind { binds, .. } => {
                    changes.extend(binds.iter().filter_map(|&(task, node)| self.bound(m, task, node)));
                }
                Effect::Evict { task, .. } => {
                    let task = m.task(*task);
                    let namespace = m.text(task.namespace).to_owned();
                    changes.push(Delta::PodGone {
                        namespace,
                        name: task.name.to_string(),
                    });
                }
                Effect::GroupStatus {
                    job,
                    phase,
                    conditions,
                    counters,
                } => {
                    changes.extend(self.group_status(m, *job, *phase, conditions, *counters));
                }
                Effect::OpenGate { task } => {
                    let pod = self.pods.get(&m.task_key(*task)).cloned();
                    changes.extend(pod.map(|mut pod| {
                        pod.spec.scheduling_gates.clear();
                        Delta::Pod(Box::new(pod))
                    }));
                }
                Effect::PodCondition { .. }
                | Effect::QueueStatus { .. }
                | Effect::ShardStatus(_)
                | Effect::GroupEvent { .. } => {}
            }
        }
        changes
    }

    fn bound(&self, m: &Model, task: TaskId, node: NodeId) -> Option<Delta> {
        let mut pod = self.pods.get(&m.task_key(task))?.clone();
        pod.spec.node_name = m.text(m.nodes[node].name).to_owned();
        pod.status.phase = PodPhase::Running;
        Some(Delta::Pod(Box::new(pod)))
    }

    fn group_status(
        &self,
        m: &Model,
        job: JobId,
        phase: Phase,
        conditions: &[PodGroupCondition],
        counters: [u32; 3],
    ) -> Option<Delta> {
        let mut group = self.groups.get(&*m.job(job).id)?.clone();
        group.status.phase = match phase {
            Phase::Pending => PodGroupPhase::Pending,
            Phase::Inqueue => PodGroupPhase::Inqueue,
            Phase::Running => PodGroupPhase::Running,
            Phase::Unknown => PodGroupPhase::Unknown,
            Phase::Completed => PodGroupPhase::Completed,
        };
        group.status.conditions = conditions.to_vec();
        let [running, succeeded, failed] = counters.map(|count| i32::try_from(count).unwrap_or(i32::MAX));
        group.status.running = running;
        group.status.succeeded = succeeded;
        group.status.failed = failed;
        Some(Delta::PodGroup(Box::new(group)))
    }
}

fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}
