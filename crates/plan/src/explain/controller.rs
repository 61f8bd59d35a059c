//! What the Job controller does between two cycles of a trial: PodGroup, claims and pods, by its own rules.

use super::quota::Quotas;
use crate::cluster::Priorities;
use crate::objects::made_uid;
use crate::submit;
use std::collections::BTreeSet;
use volcano_api::batch::{Job, JobPhase, TaskSpec};
use volcano_api::core::{PersistentVolumeClaim, Pod};
use volcano_api::scheduling::PodGroup;
use volcano_api::time::Time;
use volcano_engine::model::delta::Delta;
use volcano_reconcile::job::{self as rules, Claims};
use volcano_reconcile::plugins::{Plugins, pod_name};
use volcano_reconcile::write::Write;

/// The most pods that a trial makes for a Job; more do not change the answer and cost time.
const MOST_PODS: i64 = 100_000;

/// The job that a trial is about: as it stands, or as a change would make it.
#[derive(Clone, Debug, Default)]
pub(super) struct Subject {
    /// The Job; `None` for a bare PodGroup.
    pub job: Option<Job>,
    /// Its PodGroup, once it is made.
    pub group: Option<PodGroup>,
    /// Its pods.
    pub pods: Vec<Pod>,
}

/// Pods of a task that are not made.
#[derive(Clone, Debug)]
pub(super) struct Withheld {
    /// The task.
    pub task: String,
    /// How many.
    pub pods: i32,
    /// Why.
    pub why: Why,
    /// One of them, where it is known what they would be.
    pub sample: Option<Box<Pod>>,
}

impl Withheld {
    /// The quota that keeps them from being made.
    pub fn quota(&self) -> Option<&str> {
        match &self.why {
            Why::Quota { quota, .. } => Some(quota),
            _ => None,
        }
    }
}

/// Why pods are not made.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// The PodGroup is not admitted.
    NotAdmitted,
    /// Other tasks have to run first.
    DependsOn(Vec<String>),
    /// A quota of the namespace has no room.
    Quota { quota: String },
    /// A claim is missing, or a plugin cannot do its part.
    Trouble(String),
}

/// What a step made.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Changes of the cluster.
    pub objects: Vec<Delta>,
    /// What was not made.
    pub withheld: Vec<Withheld>,
}

impl Subject {
    /// Brings what belongs to the Job in line with it, as far as the Job controller would at this point.
    pub fn step(
        &mut self,
        priorities: &Priorities,
        claims: &BTreeSet<String>,
        quotas: &mut Quotas,
        now: Time,
    ) -> Made {
        let mut made = Made::default();
        let Some(job) = self.job.clone() else {
            return made;
        };
        if is_ending(&job.status.state.phase) {
            return made;
        }
        let total: i64 = job.spec.tasks.iter().map(|task| i64::from(task.replicas)).sum();
        if total > MOST_PODS {
            let why = format!("{total} pods are more than a plan makes ({MOST_PODS})");
            made.withheld = all(&job, &Why::Trouble(why));
            return made;
        }
        match self.group.as_mut() {
            None => {
                match claims_of(&job, claims) {
                    Ok(objects) => made.objects.extend(objects),
                    Err(why) => {
                        made.withheld = all(&job, &Why::Trouble(why));
                        return made;
                    }
                }
                let group = submit::group(&job, priorities, now);
                made.objects.push(Delta::PodGroup(Box::new(group.clone())));
                self.group = Some(group);
            }
            Some(group) => {
                let aligned = rules::aligned(&job, group, priorities.by_class());
                if aligned != group.spec {
                    group.spec = aligned;
                    made.objects.push(Delta::PodGroup(Box::new(group.clone())));
                }
            }
        }
        self.remove_excess(&job, quotas, &mut made);
        if !rules::is_admitted(self.group.as_ref()) {
            made.withheld = all(&job, &Why::NotAdmitted);
            return made;
        }
        let plugins = match Plugins::of(&job) {
            Ok(plugins) => plugins,
            Err(error) => {
                made.withheld = all(&job, &Why::Trouble(error.to_string()));
                return made;
            }
        };
        for task in &job.spec.tasks {
            self.make(&job, task, &plugins, priorities, quotas, now, &mut made);
        }
        made
    }

    /// Pods beyond the replicas of their task go.
    fn remove_excess(&mut self, job: &Job, quotas: &mut Quotas, made: &mut Made) {
        let wanted: BTreeSet<String> = job
            .spec
            .tasks
            .iter()
            .flat_map(|task| (0..task.replicas).map(move |index| pod_name(job, task, index)))
            .collect();
        let (stay, go): (Vec<Pod>, Vec<Pod>) = std::mem::take(&mut self.pods)
            .into_iter()
            .partition(|pod| wanted.contains(&pod.metadata.name));
        self.pods = stay;
        quotas.release(go.iter());
        made.objects.extend(go.into_iter().map(|pod| Delta::PodGone {
            namespace: pod.metadata.namespace,
            name: pod.metadata.name,
        }));
    }

    /// Makes the pods of a task that are missing.
    fn make(
        &mut self,
        job: &Job,
        task: &TaskSpec,
        plugins: &Plugins,
        priorities: &Priorities,
        quotas: &mut Quotas,
        now: Time,
        made: &mut Made,
    ) {
        let there: BTreeSet<&str> = self.pods.iter().map(|pod| pod.metadata.name.as_str()).collect();
        let missing: Vec<i32> = (0..task.replicas)
            .filter(|&index| !there.contains(pod_name(job, task, index).as_str()))
            .collect();
        if missing.is_empty() {
            return;
        }
        let count = i32::try_from(missing.len()).unwrap_or(i32::MAX);
        let withheld = |pods: i32, why: Why, sample: Option<Box<Pod>>| Withheld {
            task: task.name.clone(),
            pods,
            why,
            sample,
        };
        let pods: Vec<&Pod> = self.pods.iter().collect();
        if !rules::may_have_pods(job, task, &pods) {
            let names = task.depends_on.as_ref().map(|depends| depends.name.clone());
            let why = Why::DependsOn(names.unwrap_or_default());
            made.withheld.push(withheld(count, why, None));
            return;
        }
        let pods = match submit::pods(job, task, missing, plugins, priorities, now) {
            Ok(pods) => pods,
            Err(error) => {
                made.withheld.push(withheld(count, Why::Trouble(error), None));
                return;
            }
        };
        let mut left = count;
        for pod in pods {
            if let Err(quota) = quotas.admit(&pod) {
                let why = Why::Quota { quota };
                made.withheld.push(withheld(left, why, Some(Box::new(pod))));
                return;
            }
            left -= 1;
            made.objects.push(Delta::Pod(Box::new(pod.clone())));
            self.pods.push(pod);
        }
    }
}

/// Whether a Job is being ended, or was suspended: nothing is made for it then.
pub(super) fn is_ending(phase: &JobPhase) -> bool {
    matches!(
        phase,
        JobPhase::Aborting | JobPhase::Aborted | JobPhase::Terminating | JobPhase::Completing
    )
}

fn all(job: &Job, why: &Why) -> Vec<Withheld> {
    let tasks = job.spec.tasks.iter().filter(|task| task.replicas > 0);
    let withheld = tasks.map(|task| Withheld {
        task: task.name.clone(),
        pods: task.replicas,
        why: why.clone(),
        sample: None,
    });
    withheld.collect()
}

/// The claims that the Job makes.
fn claims_of(job: &Job, there: &BTreeSet<String>) -> Result<Vec<Delta>, String> {
    let steps = match rules::claims(job, &|name| there.contains(name)) {
        Claims::Need(steps) => steps,
        Claims::Missing(why) => return Err(why),
    };
    let mut made = Vec::new();
    for write in steps.into_iter().flatten() {
        if let Write::Create { body, .. } = write {
            let mut claim: PersistentVolumeClaim =
                serde_json::from_value(body).map_err(|error| error.to_string())?;
            claim.metadata.uid = made_uid(&claim.metadata.namespace, &claim.metadata.name);
            made.push(Delta::Claim(Box::new(claim)));
        }
    }
    Ok(made)
}
