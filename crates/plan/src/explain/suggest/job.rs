//! Changes of the job itself that it may live through: priority, size, gates.

use super::super::change::{Change, How};
use super::super::reason::Reason;
use super::{Search, What};
use serde_json::{Value, json};
use volcano_api::batch::{Job, JobPhase};
use volcano_api::quantity::{Format, Quantity};
use volcano_engine::model::kind::Kind;

/// Priority classes that are tried, lowest first.
const MOST_CLASSES: usize = 8;

impl Search<'_> {
    /// A Job that was aborted goes on from where it began.
    pub(super) fn resume(&mut self) {
        let Some(job) = &self.world.subject.job else {
            return;
        };
        if !matches!(job.status.state.phase, JobPhase::Aborted | JobPhase::Aborting) {
            return;
        }
        let patch = json!({"status": {"state": {"phase": JobPhase::Pending}}});
        let change = Change::of_job(job, How::Resume, patch);
        self.offer(What::Resume, "resume it".to_owned(), vec![change]);
    }

    /// Scheduling gates of its pods.
    pub(super) fn remove_gates(&mut self) {
        if !self
            .reasons
            .iter()
            .any(|reason| matches!(reason, Reason::Gated { .. }))
        {
            return;
        }
        let gated = self
            .world
            .subject
            .pods
            .iter()
            .filter(|pod| !pod.spec.scheduling_gates.is_empty());
        let changes: Vec<Change> = gated
            .map(|pod| {
                let patch = json!({"spec": {"schedulingGates": null}});
                Change::of_core(Kind::Pod, &pod.metadata.namespace, &pod.metadata.name, patch)
            })
            .collect();
        let pods = changes.len();
        let text = format!(
            "remove the scheduling gates of {}",
            crate::cluster::counted(pods, "pod", "pods")
        );
        self.offer(What::RemoveGates { pods }, text, changes);
    }

    /// The lowest priority class that does it. Pods that exist keep their priority, so that the Job may have to be made
    /// anew for it.
    pub(super) fn raise_priority(&mut self) {
        if !self.is_about_amounts() {
            return;
        }
        let from = self.priority();
        let classes = self.world.priorities().by_class().iter();
        let mut higher: Vec<(i32, String)> = classes
            .filter(|(name, value)| **value > from && !name.starts_with("system-"))
            .map(|(name, value)| (*value, name.clone()))
            .collect();
        higher.sort();
        for (to, class) in higher.into_iter().take(MOST_CLASSES) {
            let patch = json!({"spec": {"priorityClassName": class}});
            let text = format!("give it the priority class {class} ({to}, now {from})");
            let what = What::RaisePriority { class, from, to };
            let ways = match (&self.world.subject.job, &self.world.subject.group) {
                (Some(job), _) => vec![
                    Change::of_job(job, How::Patch, patch.clone()),
                    Change::of_job(job, How::Recreate, patch),
                ],
                (None, Some(group)) => vec![Change::of_group(group, patch)],
                (None, None) => Vec::new(),
            };
            for change in ways {
                if self.offer(what.clone(), text.clone(), vec![change]) {
                    return;
                }
            }
        }
    }

    fn priority(&self) -> i32 {
        let id = self.trial.id();
        id.map_or(0, |id| self.trial.engine.model().job(id).priority)
    }

    /// The largest gang that starts.
    pub(super) fn lower_minimum(&mut self) {
        let depends = |reason: &Reason| matches!(reason, Reason::DependsOn { .. });
        if !self.is_about_amounts() && !self.has_ruled_out() && !self.reasons.iter().any(depends) {
            return;
        }
        let subject = &self.world.subject;
        let (from, with): (i32, Box<dyn Fn(i64) -> Vec<Change>>) = match (&subject.job, &subject.group) {
            (Some(job), _) => {
                let with = |minimum: i64| {
                    vec![Change::of_job(
                        job,
                        How::Patch,
                        json!({"spec": {"minAvailable": minimum}}),
                    )]
                };
                (job.spec.min_available, Box::new(with))
            }
            (None, Some(group)) => {
                let from = group.spec.min_member;
                let with = move |minimum: i64| {
                    let mut spec = json!({"minMember": minimum});
                    if let Some(resources) = &group.spec.min_resources {
                        let part = |amount: &Quantity| part(*amount, minimum, i64::from(from));
                        let scaled = resources
                            .iter()
                            .map(|(name, amount)| (name.clone(), json!(part(amount))));
                        spec["minResources"] = Value::Object(scaled.collect());
                    }
                    vec![Change::of_group(group, json!({"spec": spec}))]
                };
                (from, Box::new(with))
            }
            (None, None) => return,
        };
        let Some((to, trial)) = self.largest(1, i64::from(from) - 1, &with) else {
            return;
        };
        let changes = with(to);
        let to = i32::try_from(to).unwrap_or(i32::MAX);
        let field = if subject.job.is_some() {
            "minAvailable"
        } else {
            "minMember"
        };
        let text = format!(
            "lower {field} from {from} to {to}: so many can start, the others follow when there is room"
        );
        self.keep(What::LowerMinimum { from, to }, text, changes, trial.evicted);
    }

    /// The largest number of replicas of the task that does not fit.
    pub(super) fn fewer_replicas(&mut self) {
        if !self.is_about_amounts() {
            return;
        }
        let Some(job) = &self.world.subject.job else {
            return;
        };
        let Some((at, task)) = self.task() else { return };
        if task.partition_policy.is_some() {
            return; // Its replicas follow from the policy, which cannot change.
        }
        let (from, name) = (task.replicas, task.name.clone());
        let low = i64::from(job.spec.tasks.len() == 1);
        let with = |replicas: i64| vec![Change::of_job(job, How::Patch, scaled(job, at, replicas))];
        let Some((to, trial)) = self.largest(low, i64::from(from) - 1, with) else {
            return;
        };
        let changes = with(to);
        let to = i32::try_from(to).unwrap_or(i32::MAX);
        let text = format!("run {to} instead of {from} replicas of task {name}");
        self.keep(
            What::FewerReplicas { task: name, from, to },
            text,
            changes,
            trial.evicted,
        );
    }
}

/// The patch for other replicas of a task; the gang is no larger than what is left.
fn scaled(job: &Job, at: usize, replicas: i64) -> Value {
    let mut tasks = job.spec.tasks.clone();
    let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
    tasks[at].replicas = replicas;
    tasks[at].min_available = tasks[at].min_available.map(|minimum| minimum.min(replicas));
    let total: i64 = tasks.iter().map(|task| i64::from(task.replicas)).sum();
    let minimum = i64::from(job.spec.min_available).min(total);
    json!({"spec": {"minAvailable": minimum, "tasks": tasks}})
}

/// A part of an amount, rounded up to a thousandth.
fn part(amount: Quantity, part: i64, whole: i64) -> Quantity {
    let milli = i128::from(amount.milli_value()) * i128::from(part);
    let milli = (milli + i128::from(whole) - 1) / i128::from(whole.max(1));
    Quantity::from_milli(i64::try_from(milli).unwrap_or(i64::MAX), Format::DecimalSi)
}
