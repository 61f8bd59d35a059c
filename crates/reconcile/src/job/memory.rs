//! What is remembered of a Job between two looks at it.
//!
//! Almost everything follows from what is observed. What does not is here: that a pod which is gone was there, and what
//! users were told already. None of it has to survive a restart. Of a pod that went while nobody looked, the counts in
//! the Job's status tell; a message may be told twice.

use std::collections::BTreeMap;

use volcano_api::batch::Job;
use volcano_api::core::PodPhase;
use volcano_api::time::Time;

use super::cause::Cause;
use super::pod::partition;
use super::pods::{Doom, Member, Members, task_key};
use crate::plugins::pod_name;

/// What is remembered of a Job. A fresh one is as good, a moment later.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The Job's UID; empty before the first look.
    uid: String,
    seen: BTreeMap<String, Seen>,
    lost: Vec<Lost>,
    /// Whether some of what is lost was never seen.
    has_guessed: bool,
    said: BTreeMap<String, String>,
    unknown_since: Option<(String, Time)>,
}

/// A pod that was there and that nobody here wanted to go.
#[derive(Clone, Debug)]
struct Seen {
    uid: String,
    leaves_at: Option<Time>,
    lost: Lost,
}

/// A pod that went although the Job's controller did not ask for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// Its name.
    pub name: String,
    /// Place of its task in the spec.
    pub task: usize,
    /// Its index in the task.
    pub index: i32,
    /// Its partition.
    pub partition: Option<String>,
    /// The Job's version that it was made for.
    pub version: i32,
    /// The Job's restarts when it was made.
    pub attempt: i32,
    /// When it went.
    pub at: Time,
}

impl Memory {
    /// Takes in what is observed: which pods have gone.
    pub(super) fn observe(&mut self, job: &Job, members: &Members<'_>, now: Time) {
        let is_new = self.uid != job.metadata.uid;
        if is_new {
            *self = Memory {
                uid: job.metadata.uid.clone(),
                lost: lost_unseen(job, members, now),
                ..Memory::default()
            };
        }
        let here: BTreeMap<&str, &Member<'_>> =
            members.iter().map(|member| (member.name(), member)).collect();
        for (name, seen) in std::mem::take(&mut self.seen) {
            let is_gone = here
                .get(name.as_str())
                .is_none_or(|member| member.pod.metadata.uid != seen.uid);
            if is_gone && self.lost.iter().all(|lost| lost.name != name) {
                self.lost.push(Lost {
                    at: seen.leaves_at.map_or(now, |time| time.min(now)),
                    ..seen.lost
                });
            }
        }
        // Whoever stands in for it and runs has made up for the loss.
        let is_made_up = |lost: &Lost| {
            let stand_in = here.get(lost.name.as_str());
            stand_in.is_some_and(|member| member.phase() != PodPhase::Pending)
        };
        self.lost.retain(|lost| is_open(job, lost) && !is_made_up(lost));
        self.has_guessed = !self.lost.is_empty() && (is_new || self.has_guessed);
        let doom = Doom::of(&job.spec, &job.status);
        let heeded = members.iter().filter(|member| doom.heeds(member));
        self.seen = heeded.filter_map(Seen::of).collect();
    }

    /// Pods that went and that nothing was done about yet.
    pub(super) fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Whether pods count as lost that were never seen, since the status says that they were there.
    pub(super) fn guesses(&self) -> bool {
        self.has_guessed
    }

    /// Whether something is worth telling: it was not what was told last on this topic.
    pub(super) fn is_news(&mut self, topic: &str, text: &str) -> bool {
        if self.said.get(topic).is_some_and(|told| told == text) {
            return false;
        }
        self.said.insert(topic.to_owned(), text.to_owned());
        true
    }

    /// Forgets what was told: another attempt begins.
    pub(super) fn new_attempt(&mut self) {
        self.said.clear();
    }

    /// Since when a PodGroup is in phase Unknown, if it has been seen so before.
    pub(super) fn unknown_since(&mut self, group: &str, now: Time) -> Time {
        match &self.unknown_since {
            Some((known, since)) if known == group => *since,
            _ => {
                self.unknown_since = Some((group.to_owned(), now));
                now
            }
        }
    }
}

impl Seen {
    fn of(member: &Member<'_>) -> Option<(String, Seen)> {
        let seen = Seen {
            uid: member.pod.metadata.uid.clone(),
            leaves_at: member.pod.metadata.deletion_timestamp,
            lost: Lost {
                name: member.name().to_owned(),
                task: member.task?,
                index: member.index,
                partition: member.partition().map(str::to_owned),
                version: member.version,
                attempt: member.attempt,
                at: Time::EPOCH,
            },
        };
        Some((member.name().to_owned(), seen))
    }
}

/// Whether a lost pod still matters: the spec has a place for it, and nothing was restarted since that it was part of.
fn is_open(job: &Job, lost: &Lost) -> bool {
    let Some(task) = job
        .spec
        .tasks
        .get(lost.task)
        .filter(|task| lost.index < task.replicas)
    else {
        return false;
    };
    let is_answered = lost.attempt < job.status.retry_count
        && Cause::read(&job.status.state.reason).covers(
            task_key(task),
            &lost.name,
            lost.partition.as_deref(),
        );
    lost.version >= job.status.version && !is_answered
}

/// Pods that went while nobody looked: the status counted more pods of a task than there are. Which ones cannot be
/// told, so the missing ones of the lowest indexes are taken for them.
fn lost_unseen(job: &Job, members: &Members<'_>, now: Time) -> Vec<Lost> {
    let doom = Doom::of(&job.spec, &job.status);
    let mut lost = Vec::new();
    for (at, task) in job.spec.tasks.iter().enumerate() {
        let counts = job.status.task_status_count.get(task_key(task));
        let counted = counts
            .map_or(0, |counts| counts.phase.values().sum::<i32>())
            .min(task.replicas);
        let heeded = members
            .iter()
            .filter(|member| member.task == Some(at) && member.is_wanted(&job.spec));
        let there = heeded.filter(|member| !doom.takes(member)).count();
        let missing = usize::try_from(counted).unwrap_or(0).saturating_sub(there);
        let names = (0..task.replicas).map(|index| (index, pod_name(job, task, index)));
        let gone = names.filter(|(_, name)| !members.is_taken(name)).take(missing);
        lost.extend(gone.map(|(index, name)| Lost {
            name,
            task: at,
            index,
            partition: partition(task, index),
            version: job.status.version,
            attempt: job.status.retry_count,
            at: now,
        }));
    }
    lost
}
