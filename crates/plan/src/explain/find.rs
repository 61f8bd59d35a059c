//! Finds why a job waits in what a trial came to, the reason that a person would give first.
//!
//! The order is that of the way of a job: the queue takes it, its pods are made, nobody is before it, its queue has room,
//! the nodes have room. What fails first on that way is why the rest does not happen. One thing goes out of order: a
//! quota or a dependency keeps pods from being made without harm as long as the gang can do without them.

use super::controller::{Why, Withheld, is_ending};
use super::reason::{Ahead, QueueLimit, Reason};
use super::view::View;
use super::world::{Trial, World};
use volcano_api::core::Pod;
use volcano_api::scheduling::PodGroupPhase;
use volcano_engine::ids::JobId;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::job::Phase;
use volcano_engine::model::status::Status;

/// Why the job waits, most important first.
pub(super) fn reasons(world: &World<'_>, trial: &Trial) -> Vec<Reason> {
    let mut found = Vec::new();
    if let Some(job) = &world.subject.job
        && is_ending(&job.status.state.phase)
    {
        let phase = job.status.state.phase.to_string();
        return vec![Reason::Suspended { phase }];
    }
    let m = trial.engine.model();
    let Some(id) = trial.id() else {
        found.extend(not_made(&trial.withheld));
        return or_other(found, "it has no PodGroup yet");
    };
    let view = View::of(trial, id);
    found.extend(view.queue());
    found.extend(view.held_back());
    let gang_lacks_pods = m.job(id).counts.valid() < m.job(id).min_available() || !m.job(id).roles_valid();
    if gang_lacks_pods {
        found.extend(view.missing_pods());
    }
    let full = view
        .full()
        .map(|full| if_admitted(world, trial, &full).unwrap_or(full));
    let room = view.room();
    let is_over_share = matches!(
        &full,
        Some(Reason::QueueFull {
            limit: QueueLimit::Deserved,
            ..
        })
    );
    if found.is_empty() && !is_over_share && (full.is_some() || room.iter().any(is_about_room)) {
        found.extend(behind(world, &view));
    }
    found.extend(full);
    if found.is_empty() && room.iter().any(is_about_room) {
        found.extend(view.cannot_reclaim(world));
    }
    found.extend(room);
    if !gang_lacks_pods {
        found.extend(view.missing_pods());
    }
    found.dedup();
    or_other(found, &view.words())
}

/// What the nodes would say to a gang that is not even admitted since it is too large: that has the numbers of its pods.
fn if_admitted(world: &World<'_>, trial: &Trial, full: &Reason) -> Option<Reason> {
    let Reason::GangTooLarge { .. } = full else {
        return None;
    };
    let mut subject = trial.subject.clone();
    let group = subject.group.as_mut()?;
    group.status.phase = PodGroupPhase::Inqueue;
    let objects = vec![Delta::PodGroup(Box::new(group.clone()))];
    let trial = world.if_it_were(subject, objects);
    let view = View::of(&trial, trial.id()?);
    let mut reasons = view.room().into_iter().chain(view.full());
    reasons.find(|reason| matches!(reason, Reason::GangTooLarge { .. } | Reason::PodTooLarge { .. }))
}

fn or_other(mut found: Vec<Reason>, words: &str) -> Vec<Reason> {
    if found.is_empty() {
        let message = words.to_owned();
        found.push(Reason::Other { message });
    }
    found
}

fn is_about_room(reason: &Reason) -> bool {
    matches!(reason, Reason::Short { .. } | Reason::Fragmented { .. })
}

/// The reason of a trial that the job's queue, or the cluster, is full.
pub(super) fn queue_full(trial: &Trial) -> Option<Reason> {
    View::of(trial, trial.id()?).full()
}

/// The pods that a quota keeps from a gang: one of each task, with how many the gang needs of them.
pub(super) fn kept_by(trial: &Trial, quota: &str, minimum: u32) -> Vec<(Pod, i64)> {
    let there = trial.subject.pods.len();
    let mut left = i64::from(minimum) - i64::try_from(there).unwrap_or(i64::MAX);
    let mut kept = Vec::new();
    for withheld in &trial.withheld {
        let Some(sample) = withheld
            .sample
            .as_ref()
            .filter(|_| withheld.quota() == Some(quota))
        else {
            continue;
        };
        // A gang that has its minimum wants the rest as well.
        let wanted = if left > 0 {
            i64::from(withheld.pods).min(left)
        } else {
            i64::from(withheld.pods)
        };
        left -= wanted;
        kept.push(((**sample).clone(), wanted));
        if left == 0 {
            break;
        }
    }
    kept
}

fn not_made(withheld: &[Withheld]) -> Option<Reason> {
    let pods = withheld.iter().map(|withheld| withheld.pods).sum();
    withheld.iter().find_map(|withheld| match &withheld.why {
        Why::Trouble(why) => Some(Reason::PodsNotMade {
            pods,
            why: why.clone(),
        }),
        _ => None,
    })
}

/// The jobs that wait and come first, if the job would start without any other that waits.
fn behind(world: &World<'_>, view: &View<'_>) -> Option<Reason> {
    let m = world.model();
    let own = world.subject.group.as_ref();
    let own = own.and_then(|group| m.find_job(&group.metadata.namespace, &group.metadata.name));
    let waits = |id: &JobId| {
        let job = m.job(*id);
        job.has_pending() || (job.group.is_some() && job.phase() == Phase::Pending)
    };
    let others = m.jobs_by_name().into_iter();
    let others: Vec<JobId> = others.filter(|id| Some(*id) != own && waits(id)).collect();
    let mut gone = Vec::new();
    for &id in &others {
        let job = m.job(id);
        let pending = job
            .tasks
            .iter()
            .filter(|&&task| m.task(task).status == Status::Pending);
        gone.extend(pending.map(|&task| {
            let task = m.task(task);
            Delta::PodGone {
                namespace: m.text(task.namespace).to_owned(),
                name: task.name.to_string(),
            }
        }));
        if job.counts.allocated() == 0 && job.group.is_some() {
            gone.push(Delta::PodGroupGone {
                namespace: m.text(job.namespace).to_owned(),
                name: m.text(job.name).to_owned(),
            });
        }
    }
    if gone.is_empty() || !world.if_it_were(world.subject.clone(), gone).started {
        return None;
    }
    let priority = view.m.job(view.id).priority;
    let mut ahead: Vec<Ahead> = Vec::new();
    for &id in &others {
        let before = m.job(id);
        let (namespace, name) = (m.text(before.namespace), m.text(before.name));
        let Some(after) = view.m.find_job(namespace, name).map(|id| view.m.job(id)) else {
            continue;
        };
        let starts = after.counts.allocated() > before.counts.allocated();
        let reserves = !after.inqueue.is_empty() || after.counts.waiting() > 0;
        if starts || reserves || after.priority > priority {
            let pod_group = after.id.to_string();
            ahead.push(Ahead {
                job: world.owners.job_of(&pod_group),
                pod_group,
                priority: after.priority,
                starts,
            });
        }
    }
    ahead.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.job.cmp(&b.job)));
    (!ahead.is_empty()).then_some(Reason::Behind { priority, ahead })
}
