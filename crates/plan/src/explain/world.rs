//! The cluster as a place to try things out: a change goes in, cycles run, and it shows whether the job starts.
//!
//! ```text
//! objects ──> Engine ──fork──> changes ──> controller step ──> cycle ──> … until it starts or nothing moves any more
//! ```
//!
//! Each trial works on a copy of the loaded engine, so that a trial costs a copy and what is new in its cycles, not
//! the decoding of the cluster.

use super::change::{self, Change, Changed};
use super::controller::{Made, Subject, Withheld};
use super::owners::Owners;
use super::quota::Quotas;
use super::{Conf, Evicted, JobKey};
use crate::cluster::{Cluster, Priorities};
use crate::fault::Fault;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::batch::Job;
use volcano_api::core::{Pod, PodPhase};
use volcano_api::names::annotations;
use volcano_api::scheduling::{PodGroup, PodGroupPhase};
use volcano_api::time::{GoDuration, Time};
use volcano_engine::Engine;
use volcano_engine::config::SchedulerConf;
use volcano_engine::effect::{Cycle, Effect};
use volcano_engine::ids::JobId;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::job::Phase;
use volcano_engine::model::{Model, SchedulerNames};
use volcano_reconcile::job::group_name;

/// Cycles of a trial: one to be admitted, one to be placed, one to evict, one to take the room; and one to spare.
const CYCLES: usize = 5;
/// Virtual time between two cycles.
const PERIOD: GoDuration = GoDuration::from_seconds(1);

/// The cluster, loaded once.
pub(super) struct World<'a> {
    pub cluster: &'a Cluster,
    pub subject: Subject,
    pub owners: Owners,
    base: Engine,
    priorities: Priorities,
    claims: BTreeSet<String>,
    quotas: Quotas,
    conf: SchedulerConf,
    now: Time,
    trials: Cell<usize>,
}

/// What a trial came to.
pub(super) struct Trial {
    /// The engine after the last cycle.
    pub engine: Engine,
    /// The last cycle.
    pub cycle: Cycle,
    /// The job after it.
    pub subject: Subject,
    /// Pods that are not made.
    pub withheld: Vec<Withheld>,
    /// The quotas of its namespace.
    pub quotas: Quotas,
    /// Its gang has its places.
    pub started: bool,
    /// Node by pod of the job.
    pub binds: BTreeMap<String, String>,
    /// Who has to go for it.
    pub evicted: Vec<Evicted>,
}

impl Trial {
    /// The job in the engine.
    pub fn id(&self) -> Option<JobId> {
        job_id(self.engine.model(), &self.subject)
    }
}

impl<'a> World<'a> {
    /// Loads the cluster.
    ///
    /// # Errors
    /// When there is no such job in it.
    pub fn load(cluster: &'a Cluster, conf: &Conf, key: &JobKey) -> Result<Self, Fault> {
        let subject = find(cluster, key)?;
        let names = SchedulerNames::Only(conf.scheduler_names.clone());
        let (engine, _) = Engine::new(conf.scheduler.clone(), names, &conf.default_queue);
        let features = cluster.settings.features.clone();
        let mut base = engine.with_features(features.unwrap_or_default());
        for object in &cluster.objects {
            base.apply(object.clone());
        }
        base.resume(&cluster.settings.underway.clone().unwrap_or_default());
        let claims = cluster.objects.iter().filter_map(|object| match object {
            Delta::Claim(claim) if claim.metadata.namespace == key.namespace => {
                Some(claim.metadata.name.clone())
            }
            _ => None,
        });
        Ok(World {
            cluster,
            subject,
            owners: Owners::of(cluster),
            base,
            priorities: cluster.priorities(),
            claims: claims.collect(),
            quotas: Quotas::of(cluster.objects.iter(), &key.namespace),
            conf: conf.scheduler.clone(),
            now: conf.now,
            trials: Cell::new(0),
        })
    }

    /// The model before anything is tried.
    pub fn model(&self) -> &Model {
        self.base.model()
    }

    /// The values of priority classes.
    pub fn priorities(&self) -> &Priorities {
        &self.priorities
    }

    /// Whether the configuration has a plugin.
    pub fn has_plugin(&self, name: &str) -> bool {
        self.conf.plugin(name).is_some()
    }

    /// Whether the configuration has an action.
    pub fn has_action(&self, name: &str) -> bool {
        self.conf.actions.iter().any(|action| action == name)
    }

    /// How many trials there were.
    pub fn trials(&self) -> usize {
        self.trials.get()
    }

    /// Tries changes; `None` when they cannot be applied.
    pub fn with(&self, changes: &[Change]) -> Option<Trial> {
        let Changed { objects, jobs } = change::apply(self.cluster, changes).ok()?;
        let mut subject = self.subject.clone();
        let mut objects = objects;
        let mut gone = Vec::new();
        for (job, anew) in jobs {
            if !self.is_subject(&job) {
                continue;
            }
            if anew {
                gone.extend(std::mem::take(&mut subject.pods));
                objects.extend(subject.group.take().map(|group| Delta::PodGroupGone {
                    namespace: group.metadata.namespace,
                    name: group.metadata.name,
                }));
                subject.job = Some(self.anew(job));
            } else {
                subject.job = Some(job);
            }
        }
        for object in &objects {
            match object {
                Delta::PodGroup(group) if self.is_group(group) => subject.group = Some((**group).clone()),
                Delta::Pod(changed) => {
                    let own = subject.pods.iter_mut();
                    for pod in own.filter(|pod| pod.metadata.uid == changed.metadata.uid) {
                        pod.clone_from(changed);
                    }
                }
                _ => {}
            }
        }
        Some(self.run(subject, objects, &gone))
    }

    /// Tries changes of the cluster that nobody could make, for finding out what matters.
    pub fn if_it_were(&self, subject: Subject, objects: Vec<Delta>) -> Trial {
        self.run(subject, objects, &[])
    }

    fn anew(&self, mut job: Job) -> Job {
        job.status = Default::default();
        job.metadata.creation_timestamp = Some(self.now);
        job
    }

    fn is_subject(&self, job: &Job) -> bool {
        let own = self.subject.job.as_ref();
        own.is_some_and(|own| own.metadata.key() == job.metadata.key())
    }

    fn is_group(&self, group: &PodGroup) -> bool {
        let own = self.subject.group.as_ref();
        own.is_some_and(|own| own.metadata.key() == group.metadata.key())
    }

    fn run(&self, mut subject: Subject, objects: Vec<Delta>, gone: &[Pod]) -> Trial {
        self.trials.set(self.trials.get() + 1);
        let mut engine = self.base.fork();
        let mut quotas = self.quotas.clone();
        quotas.release(gone.iter());
        for pod in gone {
            engine.apply(Delta::PodGone {
                namespace: pod.metadata.namespace.clone(),
                name: pod.metadata.name.clone(),
            });
        }
        for object in objects {
            if let Delta::ResourceQuota(quota) = &object {
                quotas.set(quota);
            }
            engine.apply(object);
        }
        let mut trial = Trial {
            engine,
            cycle: Cycle::default(),
            subject: Subject::default(),
            withheld: Vec::new(),
            quotas: Quotas::default(),
            started: false,
            binds: BTreeMap::new(),
            evicted: Vec::new(),
        };
        let mut now = self.now;
        for _ in 0..CYCLES {
            let Made { objects, withheld } = subject.step(&self.priorities, &self.claims, &mut quotas, now);
            let made = !objects.is_empty();
            objects.into_iter().for_each(|object| trial.engine.apply(object));
            trial.withheld = withheld;
            trial.cycle = trial.engine.cycle(now, &mut |_| {});
            let moved = trial.take_stock(&mut subject, &self.owners);
            if trial.started || !(made || moved) {
                break;
            }
            trial.carry_out(&mut subject, now);
            now = now.saturating_add(PERIOD);
        }
        trial.subject = subject;
        trial.quotas = quotas;
        trial
    }
}

impl Trial {
    /// Writes down what a cycle decided; whether anything moved that another cycle could build on.
    fn take_stock(&mut self, subject: &mut Subject, owners: &Owners) -> bool {
        let m = self.engine.model();
        let id = job_id(m, subject);
        let mut moved = !self.cycle.pipelined.is_empty();
        for effect in &self.cycle.effects {
            match effect {
                Effect::Bind { job, binds } => {
                    moved = true;
                    if Some(*job) == id {
                        let placed = binds.iter().map(|&(task, node)| {
                            (
                                m.task(task).name.to_string(),
                                m.text(m.nodes[node].name).to_owned(),
                            )
                        });
                        self.binds.extend(placed);
                    }
                }
                Effect::Evict {
                    task,
                    kind,
                    preemptor,
                } => {
                    moved = true;
                    let group = m.task(*task).job.map(|job| m.job(job).id.to_string());
                    if m.task(*preemptor).job == id {
                        self.evicted.push(Evicted {
                            pod: m.task_key(*task),
                            job: group.as_deref().map(|group| owners.job_of(group)),
                            pod_group: group,
                            action: kind.name(),
                        });
                    }
                }
                Effect::OpenGate { .. } => moved = true,
                _ => {}
            }
        }
        let Some(id) = id else { return moved };
        let phase = pod_group_phase(m.job(id).phase());
        if let Some(group) = subject.group.as_mut()
            && group.status.phase != phase
        {
            moved = true;
            group.status.phase = phase;
        }
        let job = m.job(id);
        self.started = !self.binds.is_empty() && job.is_ready() && job.counts.ready() > 0;
        moved
    }

    /// Between two cycles evicted pods go and the job's own bound pods start to run.
    fn carry_out(&mut self, subject: &mut Subject, now: Time) {
        let m = self.engine.model();
        let mut objects = Vec::new();
        for effect in &self.cycle.effects {
            match effect {
                Effect::Evict { task, .. } => {
                    let task = m.task(*task);
                    objects.push(Delta::PodGone {
                        namespace: m.text(task.namespace).to_owned(),
                        name: task.name.to_string(),
                    });
                }
                Effect::OpenGate { task } => {
                    let name = &*m.task(*task).name;
                    for pod in subject.pods.iter_mut().filter(|pod| pod.metadata.name == name) {
                        pod.spec.scheduling_gates.clear();
                        objects.push(Delta::Pod(Box::new(pod.clone())));
                    }
                }
                _ => {}
            }
        }
        for pod in &mut subject.pods {
            if let Some(node) = self
                .binds
                .get(&pod.metadata.name)
                .filter(|_| pod.spec.node_name.is_empty())
            {
                pod.spec.node_name.clone_from(node);
                pod.status.phase = PodPhase::Running;
                pod.status.start_time = Some(now);
                objects.push(Delta::Pod(Box::new(pod.clone())));
            }
        }
        objects.into_iter().for_each(|object| self.engine.apply(object));
    }
}

fn pod_group_phase(phase: Phase) -> PodGroupPhase {
    match phase {
        Phase::Pending => PodGroupPhase::Pending,
        Phase::Inqueue => PodGroupPhase::Inqueue,
        Phase::Running => PodGroupPhase::Running,
        Phase::Unknown => PodGroupPhase::Unknown,
        Phase::Completed => PodGroupPhase::Completed,
    }
}

fn job_id(m: &Model, subject: &Subject) -> Option<JobId> {
    let group = subject.group.as_ref()?;
    m.find_job(&group.metadata.namespace, &group.metadata.name)
}

/// The Job of a name, else the PodGroup of that name.
fn find(cluster: &Cluster, key: &JobKey) -> Result<Subject, Fault> {
    let is_it = |job: &&Job| job.metadata.namespace == key.namespace && job.metadata.name == key.name;
    let job = cluster.jobs.iter().find(is_it).cloned();
    let names: Vec<String> = match &job {
        // A controller of an older version named it after the Job alone.
        Some(job) => vec![group_name(job), key.name.clone()],
        None => vec![key.name.clone()],
    };
    let group = names.iter().find_map(|name| {
        cluster.objects.iter().find_map(|object| match object {
            Delta::PodGroup(group)
                if group.metadata.namespace == key.namespace && group.metadata.name == *name =>
            {
                Some((**group).clone())
            }
            _ => None,
        })
    });
    if job.is_none() && group.is_none() {
        return Err(Fault::new(format!("no Job and no PodGroup {key} in the cluster"))
            .hint("check the name and the namespace"));
    }
    let pods = group.as_ref().map(|group| {
        let is_own = |pod: &&Pod| {
            let named = pod.metadata.annotations.get(annotations::KUBE_GROUP_NAME);
            pod.metadata.namespace == key.namespace && named == Some(&group.metadata.name)
        };
        cluster.pods().filter(is_own).cloned().collect()
    });
    Ok(Subject {
        job,
        group,
        pods: pods.unwrap_or_default(),
    })
}
