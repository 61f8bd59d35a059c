//! Binds under way, gang by gang.
//!
//! ```text
//!            ┌────────────── later ──────────────┐
//!            v                                   │
//! unsent ──> flying ──> bound                    │
//!   │          ├───────── may succeed later ─────┘
//!   │          └───────── failed ──> held ──> reported
//!   └──> paused when a member failed, until somebody decides for the gang
//! ```
//! Each failure begins a new pause, and only who knows of the latest failure ends it: else a decision about the first would
//! send the rest of a gang of which more members have failed by then.
//!
//! A member that failed is reported at once the first time, and each time after that a little later than the last:
//! while it is held, the engine counts it as being bound and does not place it again.

use super::order::{ClaimRef, ClaimState, GangBind, JobKey, Pause, PodBind, PodRef};
use super::recent::Recent;
use super::timers::{Timers, earlier};
use super::volumes::{Progress, Volumes};
use super::work::{Answer, StepId, Uid, Work};
use crate::backoff::growing;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::time::Time;

/// How long a bind is tried. Then the pod is looked at, for as long as that takes: a bind whose answers were lost may have
/// got through, and what is undone though it did is placed twice.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// How long a pod is held that failed before, from the second failure on.
const FIRST_HOLD: Duration = Duration::from_millis(100);
const LONGEST_HOLD: Duration = Duration::from_secs(10);
/// A failure that is older does not count.
const FAILURES_COUNT_FOR: Duration = Duration::from_secs(600);
/// How many pods are remembered to have failed.
const REMEMBERED: usize = 10_000;
/// A gang is not paused for longer: what is left of it is given back. It is far longer than any cycle.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// When to look again at a pod whose condition is being written.
const CONDITION_UNDER_WAY: Duration = Duration::from_millis(5);

/// What happened to a member.
#[derive(Debug, PartialEq, Eq)]
pub enum Note {
    /// It is bound.
    Bound {
        pod: PodRef,
        node: Arc<str>,
        times: Times,
    },
    /// It is not.
    Failed {
        pod: PodRef,
        job: JobKey,
        paused: Option<Pause>,
        /// What to tell its owner; nothing when that would be wrong or in vain.
        message: Option<String>,
    },
    /// Nothing of a gang is left to do.
    Ended(JobKey),
}

/// When what happened to a member that is bound now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The pod was made.
    pub created: Option<Time>,
    /// The bind was ordered.
    pub ordered: Instant,
    /// Its claims were ready.
    pub ready: Instant,
    /// The bind was sent first.
    pub sent: Instant,
    /// The bind was answered.
    pub answered: Instant,
}

/// All gangs that are being bound.
pub struct Gangs {
    gangs: FxHashMap<JobKey, Gang>,
    members: FxHashMap<Uid, Member>,
    /// Gangs with something to send: begun ones first, then by age.
    line: BTreeMap<Rank, JobKey>,
    timers: Timers<Timer>,
    volumes: Volumes,
    progress: Vec<Progress>,
    failures: Recent<Uid, Failures>,
    count: u64,
    notes: Vec<Note>,
}

type Rank = (bool, u64);

struct Gang {
    age: u64,
    begun: bool,
    /// When a bind was sent last; before that, when the first was ordered.
    moved: Instant,
    unsent: VecDeque<Uid>,
    /// Sent before, to be sent again now.
    again: VecDeque<Uid>,
    /// Members that are not unsent.
    out: usize,
    /// Unsent members whose claims are not ready.
    unready: usize,
    /// The latest pause, while it lasts.
    paused: Option<Pause>,
    rank: Option<Rank>,
}

struct Member {
    pod: PodRef,
    job: JobKey,
    node: Arc<str>,
    place: Place,
    created: Option<Time>,
    ordered: Instant,
    /// When its claims were ready.
    ready: Option<Instant>,
    /// When it was sent first.
    since: Option<Instant>,
    tries: u32,
    /// It was tried for too long: the pod is looked at instead.
    silent: bool,
    message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unsent,
    Again,
    Flying,
    Later,
    TakingBack,
    Held,
}

enum Timer {
    Retry(Uid),
    Report(Uid),
    Unpause(JobKey, Pause),
}

struct Failures {
    count: u32,
    last: Instant,
}

impl Gangs {
    pub fn new(volume_timeout: Duration) -> Self {
        Gangs {
            gangs: FxHashMap::default(),
            members: FxHashMap::default(),
            line: BTreeMap::new(),
            timers: Timers::default(),
            volumes: Volumes::new(volume_timeout),
            progress: Vec::new(),
            failures: Recent::new(REMEMBERED),
            count: 0,
            notes: Vec::new(),
        }
    }

    /// A gang to be bound, or members that replace those that failed.
    pub fn order(&mut self, order: GangBind, now: Instant) {
        self.count += 1;
        let age = self.count;
        let job = order.job;
        let gang = self
            .gangs
            .entry(job.clone())
            .or_insert_with(|| Gang::new(age, now));
        if gang.unsent.is_empty() {
            // All that the pause held back has failed itself.
            gang.paused = None;
        }
        let mut added = VecDeque::with_capacity(order.binds.len());
        for bind in order.binds {
            let pod = &bind.pod;
            let uid = pod.uid.clone();
            if self.members.contains_key(&uid) {
                tracing::debug!(%pod.namespace, %pod.name, "a bind was ordered that is under way");
                continue;
            }
            if !bind.volumes.is_empty() {
                gang.unready += 1;
                self.volumes.add(&uid, &bind.node, bind.volumes.clone(), now);
            }
            self.members.insert(uid.clone(), Member::new(bind, &job, now));
            added.push_back(uid);
        }
        if gang.paused.is_some() {
            added.append(&mut gang.unsent);
            gang.unsent = added;
        } else {
            gang.unsent.append(&mut added);
        }
        if gang.paused == order.ends {
            gang.paused = None;
        }
        self.line_up(&job);
    }

    /// The gang is complete without the member that failed: send the rest.
    pub fn resume(&mut self, job: &JobKey, pause: Pause) {
        if let Some(gang) = self.paused(job, pause) {
            gang.paused = None;
            self.line_up(job);
        }
    }

    /// The gang cannot be completed: give back what was not sent.
    pub fn release(&mut self, job: &JobKey, pause: Pause, now: Instant) {
        if self.paused(job, pause).is_some() {
            self.give_back(job, now);
        }
    }

    /// The gang, if that is its latest pause.
    fn paused(&mut self, job: &JobKey, pause: Pause) -> Option<&mut Gang> {
        let gang = self.gangs.get_mut(job);
        gang.filter(|gang| gang.paused == Some(pause))
    }

    /// Gives back what was not sent.
    fn give_back(&mut self, job: &JobKey, now: Instant) {
        let Some(gang) = self.gangs.get_mut(job) else {
            return;
        };
        gang.paused = None;
        gang.unready = 0;
        let unsent = std::mem::take(&mut gang.unsent);
        gang.out += unsent.len();
        for uid in unsent {
            let Some(member) = self.members.get_mut(&uid) else {
                continue;
            };
            if self.volumes.has(&uid) {
                member.place = Place::TakingBack;
                self.volumes.give_up(&uid, None, &mut self.progress);
            } else {
                self.report(&uid);
            }
        }
        self.line_up(job);
        self.make_progress(now);
    }

    /// A pod is gone: there is nothing to bind, and its gang may be too small now.
    pub fn pod_gone(&mut self, uid: &Uid, now: Instant) {
        self.lose(uid, None, now);
        self.make_progress(now);
    }

    /// A node is gone. The API server would bind pods to it all the same.
    pub fn node_gone(&mut self, node: &str, now: Instant) {
        let there = self.members.iter().filter(|(_, member)| *member.node == *node);
        let mut there: Vec<(PodRef, Uid)> = there
            .map(|(uid, member)| (member.pod.clone(), uid.clone()))
            .collect();
        there.sort();
        let why = format!("node {node} is gone");
        for (_, uid) in there {
            self.lose(&uid, Some(&why), now);
        }
        self.make_progress(now);
    }

    /// An unsent member cannot be bound any more.
    fn lose(&mut self, uid: &Uid, why: Option<&str>, now: Instant) {
        let Some(member) = self
            .members
            .get(uid)
            .filter(|member| member.place == Place::Unsent)
        else {
            return;
        };
        if self.volumes.has(uid) {
            let why = why.map(str::to_owned);
            return self.volumes.give_up(uid, why, &mut self.progress);
        }
        let message = why.map(|why| failure(&member.node, why));
        self.take_out(uid, now);
        self.failed(uid, message, now);
    }

    /// What the API server says of a claim.
    pub fn claim(&mut self, claim: &ClaimRef, state: &ClaimState, now: Instant) {
        self.volumes.claim(claim, state, &mut self.progress);
        self.make_progress(now);
    }

    /// Looks at what is due.
    pub fn tick(&mut self, now: Instant) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Retry(uid) if self.place(&uid) == Some(Place::Later) => self.again(uid),
                Timer::Report(uid) if self.place(&uid) == Some(Place::Held) => self.report(&uid),
                Timer::Retry(_) | Timer::Report(_) => {}
                Timer::Unpause(job, pause) => {
                    if self.paused(&job, pause).is_some() {
                        tracing::warn!(%job, "nobody decided for a gang whose bind failed: its binds are given back");
                        self.give_back(&job, now);
                    }
                }
            }
        }
        self.volumes.tick(now, &mut self.progress);
        self.make_progress(now);
    }

    fn place(&self, uid: &Uid) -> Option<Place> {
        self.members.get(uid).map(|member| member.place)
    }

    fn again(&mut self, uid: Uid) {
        let Some(member) = self.members.get_mut(&uid) else {
            return;
        };
        let job = member.job.clone();
        member.place = Place::Again;
        if let Some(gang) = self.gangs.get_mut(&job) {
            gang.again.push_back(uid);
            self.line_up(&job);
        }
    }

    /// The next bind. One whose condition is being written waits for that: the condition says that the pod has no
    /// node, and must not come after the bind.
    pub fn next(&mut self, now: Instant, condition_under_way: impl Fn(&str) -> bool) -> Option<(Uid, Work)> {
        loop {
            let job = self.line.first_key_value()?.1.clone();
            let gang = self.gangs.get_mut(&job)?;
            (gang.begun, gang.moved) = (true, now);
            let uid = gang.again.pop_front().or_else(|| {
                let uid = gang.unsent.pop_front()?;
                gang.out += 1;
                Some(uid)
            });
            self.line_up(&job);
            let Some((uid, member)) =
                uid.and_then(|uid| self.members.get_mut(&uid).map(|member| (uid, member)))
            else {
                continue;
            };
            if condition_under_way(&uid) {
                member.place = Place::Later;
                self.timers.set(now + CONDITION_UNDER_WAY, Timer::Retry(uid));
                continue;
            }
            member.place = Place::Flying;
            member.since.get_or_insert(now);
            let (pod, node) = (member.pod.clone(), member.node.clone());
            let work = match member.silent {
                true => Work::LookAtPod { pod, node },
                false => Work::Bind { pod, node },
            };
            return Some((uid, work));
        }
    }

    /// The next claim to be prepared.
    pub fn next_step(&mut self, now: Instant) -> Option<(StepId, Work)> {
        self.volumes.next(now)
    }

    /// What came of preparing a claim.
    pub fn step_answered(&mut self, id: StepId, answer: Answer, now: Instant) {
        self.volumes.answered(id, answer, now, &mut self.progress);
        self.make_progress(now);
    }

    /// What came of a bind.
    pub fn answered(&mut self, uid: &Uid, answer: Answer, now: Instant) {
        let Some(member) = self.members.get_mut(uid) else {
            return;
        };
        let tried = member.since.map_or(Duration::ZERO, |since| now - since);
        match answer {
            Answer::Done { .. } => self.bound(uid, now),
            Answer::Later { why, retry_after } => {
                if !member.silent && tried >= PATIENCE {
                    (member.silent, member.tries) = (true, 0);
                    member.message = Some(failure(&member.node, &why));
                }
                member.place = Place::Later;
                member.tries += 1;
                let wait = growing(FIRST_RETRY, LONGEST_RETRY, member.tries);
                let asked = retry_after.unwrap_or_default().min(PATIENCE);
                self.timers.set(now + wait.max(asked), Timer::Retry(uid.clone()));
            }
            Answer::Refused { why, .. } => {
                // Of a pod that was looked at, what kept it from being bound says more.
                let message = member.message.take();
                let message = message.or_else(|| Some(failure(&member.node, &why)));
                self.failed(uid, message, now);
            }
            Answer::Gone | Answer::Taken { .. } => self.failed(uid, None, now),
            Answer::Fenced => {
                member.message = None;
                self.report(uid);
            }
        }
    }

    fn bound(&mut self, uid: &Uid, now: Instant) {
        let Some(member) = self.members.remove(uid) else {
            return;
        };
        self.failures.remove(uid);
        let times = Times {
            created: member.created,
            ordered: member.ordered,
            ready: member.ready.unwrap_or(now),
            sent: member.since.unwrap_or(now),
            answered: now,
        };
        let Member { pod, job, node, .. } = member;
        self.notes.push(Note::Bound { pod, node, times });
        self.one_less(&job);
    }

    /// A member failed for good: the rest of its gang waits, and it is reported, maybe after a while.
    fn failed(&mut self, uid: &Uid, message: Option<String>, now: Instant) {
        let Some(member) = self.members.get_mut(uid) else {
            return;
        };
        member.message = message;
        let job = member.job.clone();
        self.pause(&job, now);
        let hold = self.hold(uid, now);
        if hold.is_zero() {
            return self.report(uid);
        }
        if let Some(member) = self.members.get_mut(uid) {
            member.place = Place::Held;
            self.timers.set(now + hold, Timer::Report(uid.clone()));
        }
    }

    /// How long a pod that failed is held.
    fn hold(&mut self, uid: &Uid, now: Instant) -> Duration {
        let known = self.failures.get_mut(uid);
        let count = known
            .filter(|failures| now - failures.last < FAILURES_COUNT_FOR)
            .map_or(1, |failures| failures.count.saturating_add(1));
        self.failures.insert(uid.clone(), Failures { count, last: now });
        if count == 1 {
            return Duration::ZERO;
        }
        growing(FIRST_HOLD, LONGEST_HOLD, count - 1)
    }

    /// The rest of a gang waits for a decision that knows of this failure.
    fn pause(&mut self, job: &JobKey, now: Instant) {
        let Some(gang) = self.gangs.get_mut(job) else {
            return;
        };
        if gang.unsent.is_empty() {
            return;
        }
        self.count += 1;
        gang.paused = Some(self.count);
        self.timers
            .set(now + LONGEST_PAUSE, Timer::Unpause(job.clone(), self.count));
        self.line_up(job);
    }

    fn report(&mut self, uid: &Uid) {
        let Some(member) = self.members.remove(uid) else {
            return;
        };
        let Member {
            pod, job, message, ..
        } = member;
        let gang = self.gangs.get(&job).filter(|gang| !gang.unsent.is_empty());
        let paused = gang.and_then(|gang| gang.paused);
        let job_key = job.clone();
        self.notes.push(Note::Failed {
            pod,
            job,
            paused,
            message,
        });
        self.one_less(&job_key);
    }

    /// A member that was out is done with.
    fn one_less(&mut self, job: &JobKey) {
        if let Some(gang) = self.gangs.get_mut(job) {
            gang.out = gang.out.saturating_sub(1);
            self.line_up(job);
        }
    }

    /// Puts the gang where it belongs in the line, and forgets it when nothing of it is left.
    fn line_up(&mut self, job: &JobKey) {
        let Some(gang) = self.gangs.get_mut(job) else {
            return;
        };
        let rank = gang.may_send().then_some((!gang.begun, gang.age));
        if rank != gang.rank {
            gang.rank.map(|rank| self.line.remove(&rank));
            rank.map(|rank| self.line.insert(rank, job.clone()));
            gang.rank = rank;
        }
        if gang.out == 0 && gang.unsent.is_empty() {
            self.gangs.remove(job);
            self.notes.push(Note::Ended(job.clone()));
        }
    }

    /// Takes over what became of claims.
    fn make_progress(&mut self, now: Instant) {
        for progress in std::mem::take(&mut self.progress) {
            match progress {
                Progress::Ready(uid) => self.ready(&uid, now),
                Progress::Failing(uid) => self.take_out(&uid, now),
                Progress::Failed(uid, why) => self.volumes_failed(&uid, why, now),
            }
        }
    }

    fn ready(&mut self, uid: &Uid, now: Instant) {
        let unready = |member: &&mut Member| member.ready.is_none();
        let Some(member) = self.members.get_mut(uid).filter(unready) else {
            return;
        };
        member.ready = Some(now);
        let job = member.job.clone();
        if let Some(gang) = self.gangs.get_mut(&job) {
            gang.unready = gang.unready.saturating_sub(1);
            self.line_up(&job);
        }
    }

    /// An unsent member failed: it no longer stands in the way of the others, which wait for a decision.
    fn take_out(&mut self, uid: &Uid, now: Instant) {
        let unsent = self.members.get_mut(uid);
        let Some(member) = unsent.filter(|member| member.place == Place::Unsent) else {
            return;
        };
        member.place = Place::TakingBack;
        let was_unready = usize::from(member.ready.is_none());
        let job = member.job.clone();
        if let Some(gang) = self.gangs.get_mut(&job) {
            gang.unsent.retain(|other| other != uid);
            gang.unready = gang.unready.saturating_sub(was_unready);
            gang.out += 1;
        }
        self.pause(&job, now);
        self.line_up(&job);
    }

    fn volumes_failed(&mut self, uid: &Uid, why: Option<String>, now: Instant) {
        let Some(member) = self.members.get(uid) else {
            return;
        };
        let Some(why) = why else {
            return self.report(uid);
        };
        let (namespace, name) = (&member.pod.namespace, &member.pod.name);
        let message = format!("execute preBind for pod {namespace}/{name} failed: {why}, resync the task");
        self.failed(uid, Some(message), now);
    }

    /// The lease is lost: what is not under way is given back.
    pub fn clear(&mut self) {
        self.volumes.clear();
        self.progress.clear();
        self.timers.clear();
        self.line.clear();
        let mut back: Vec<(PodRef, Uid)> = Vec::new();
        for (uid, member) in &mut self.members {
            if member.place != Place::Flying {
                member.message = None;
                back.push((member.pod.clone(), uid.clone()));
            }
        }
        back.sort();
        for gang in self.gangs.values_mut() {
            gang.out += gang.unsent.len();
            gang.unsent.clear();
            gang.again.clear();
            (gang.unready, gang.paused, gang.rank) = (0, None, None);
        }
        for (_, uid) in back {
            self.report(&uid);
        }
    }

    /// The process ends: what would wait for a decision or for others is given back now.
    pub fn hurry(&mut self, now: Instant) {
        let waiting = self.gangs.iter();
        let waiting = waiting.filter(|(_, gang)| gang.paused.is_some() || gang.unready > 0);
        let waiting: Vec<JobKey> = waiting.map(|(job, _)| job.clone()).collect();
        for job in waiting {
            self.give_back(&job, now);
        }
        let held = self.members.iter();
        let held = held.filter(|(_, member)| member.place == Place::Held);
        let held: Vec<Uid> = held.map(|(uid, _)| uid.clone()).collect();
        for uid in held {
            self.report(&uid);
        }
    }

    /// When the binds of a gang went on last, if some are under way. Those that only wait for their turn go on now.
    pub fn moved(&self, job: &str, now: Instant) -> Option<Instant> {
        let gang = self.gangs.get(job)?;
        Some(if gang.rank.is_some() { now } else { gang.moved })
    }

    /// Whether a pod is being bound.
    pub fn has(&self, uid: &str) -> bool {
        self.members.contains_key(uid)
    }

    pub fn is_empty(&self) -> bool {
        self.gangs.is_empty()
    }

    /// How many pods are being bound.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn due(&self) -> Option<Instant> {
        earlier(self.timers.due(), self.volumes.due())
    }

    /// What happened since this was asked last.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

fn failure(node: &str, why: &str) -> String {
    format!("failed to bind to node {node}: {why}")
}

impl Gang {
    fn new(age: u64, now: Instant) -> Self {
        Gang {
            age,
            begun: false,
            moved: now,
            unsent: VecDeque::new(),
            again: VecDeque::new(),
            out: 0,
            unready: 0,
            paused: None,
            rank: None,
        }
    }

    fn may_send(&self) -> bool {
        let rest = self.paused.is_none() && self.unready == 0 && !self.unsent.is_empty();
        rest || !self.again.is_empty()
    }
}

impl Member {
    fn new(bind: PodBind, job: &JobKey, now: Instant) -> Self {
        Member {
            pod: bind.pod,
            job: job.clone(),
            node: bind.node,
            place: Place::Unsent,
            created: bind.created,
            ordered: now,
            ready: bind.volumes.is_empty().then_some(now),
            since: None,
            tries: 0,
            silent: false,
            message: None,
        }
    }
}
