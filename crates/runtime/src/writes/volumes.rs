//! Claims that pods to be bound wait for.
//!
//! ```text
//!                 ┌── failed or given up ──> take back ──> settled
//! write ──> wait for the claim to be Bound ──> settled
//! ```
//! A pod is bound once all of its claims have their volumes; until then its whole gang waits. When one claim fails, what
//! was written for the others of the same pod is taken back, so that the pod can go to another node.

use super::order::{ClaimRef, ClaimState, VolumeStep};
use super::timers::{Spot, Timers};
use super::work::{Answer, StepId, Uid, Work};
use crate::backoff::growing;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a write is tried, and then how long it is tried to take one back.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
const TAKE_BACK_PATIENCE: Duration = Duration::from_secs(5);
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);
/// A claim that is not seen with our node after this time has lost it, even if it was never seen with it: what
/// happened in between may have been skipped by a new list.
const ECHO_PATIENCE: Duration = Duration::from_secs(10);

/// Claims under way, by pod.
pub struct Volumes {
    timeout: Duration,
    steps: FxHashMap<StepId, Step>,
    pods: FxHashMap<Uid, Pod>,
    claims: FxHashMap<Uid, Vec<StepId>>,
    line: VecDeque<StepId>,
    timers: Timers<Timer>,
    count: StepId,
}

struct Pod {
    steps: Vec<StepId>,
    /// Steps that are not settled.
    open: usize,
    /// Why it failed, when it did.
    failed: Option<Option<String>>,
}

struct Step {
    pod: Uid,
    what: VolumeStep,
    node: Arc<str>,
    stage: Stage,
    /// In the line.
    queued: bool,
    flying: bool,
    bound: bool,
    /// The claim was seen with our node.
    echoed: bool,
    /// The claim was seen with another node, or none, the last time.
    elsewhere: bool,
    since: Option<Instant>,
    failures: u32,
    /// It is tried again then.
    retry: Option<Spot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Write,
    Wait,
    TakeBack,
    Settled,
}

enum Timer {
    Retry(StepId),
    Echo(StepId),
    Timeout(StepId),
}

/// What became of a pod's claims.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// All have their volumes.
    Ready(Uid),
    /// One failed; the rest is being taken back.
    Failing(Uid),
    /// All is taken back. Why it failed; `None` when it was given up.
    Failed(Uid, Option<String>),
}

impl Volumes {
    pub fn new(timeout: Duration) -> Self {
        Volumes {
            timeout,
            steps: FxHashMap::default(),
            pods: FxHashMap::default(),
            claims: FxHashMap::default(),
            line: VecDeque::new(),
            timers: Timers::default(),
            count: 0,
        }
    }

    /// A pod's claims to be prepared for a node.
    pub fn add(&mut self, pod: &Uid, node: &Arc<str>, steps: Vec<VolumeStep>, now: Instant) {
        let mut ids = Vec::with_capacity(steps.len());
        for what in steps {
            self.count += 1;
            let id = self.count;
            self.claims.entry(what.claim.uid.clone()).or_default().push(id);
            self.steps.insert(id, Step::new(pod, what, node));
            self.line_up(id);
            ids.push(id);
        }
        if let Some(first) = ids.first() {
            self.timers.set(now + self.timeout, Timer::Timeout(*first));
        }
        let open = ids.len();
        let entry = Pod {
            steps: ids,
            open,
            failed: None,
        };
        self.pods.insert(pod.clone(), entry);
    }

    /// Looks at what is due.
    pub fn tick(&mut self, now: Instant, progress: &mut Vec<Progress>) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Retry(id) => self.line_up(id),
                Timer::Echo(id) => self.look(id, true, progress),
                Timer::Timeout(id) => self.timed_out(id, progress),
            }
        }
    }

    /// Puts a step in the line, once.
    fn line_up(&mut self, id: StepId) {
        let step = self.steps.get_mut(&id).filter(|step| !step.queued);
        if let Some(step) = step {
            step.queued = true;
            self.line.push_back(id);
        }
    }

    fn timed_out(&mut self, first: StepId, progress: &mut Vec<Progress>) {
        let Some(uid) = self.steps.get(&first).map(|step| step.pod.clone()) else {
            return;
        };
        let Some(pod) = self.pods.get(&uid).filter(|pod| pod.failed.is_none()) else {
            return;
        };
        let waiting = pod.steps.iter().filter_map(|id| self.steps.get(id));
        let claims: Vec<&str> = waiting
            .filter(|step| !step.bound)
            .map(|step| &*step.what.claim.name)
            .collect();
        let why = format!(
            "binding volumes: timed out after {} s, claims not bound: {}",
            self.timeout.as_secs(),
            claims.join(", ")
        );
        self.fail(&uid, Some(why), progress);
    }

    pub fn next(&mut self, now: Instant) -> Option<(StepId, Work)> {
        loop {
            let id = self.line.pop_front()?;
            let Some(step) = self.steps.get_mut(&id) else {
                continue;
            };
            let (what, node) = (step.what.clone(), step.node.clone());
            let work = match step.stage {
                Stage::Write => Work::Prepare { step: what, node },
                Stage::TakeBack => Work::TakeBack { step: what, node },
                Stage::Wait | Stage::Settled => continue,
            };
            (step.queued, step.flying) = (false, true);
            step.since.get_or_insert(now);
            return Some((id, work));
        }
    }

    /// What came of a write.
    pub fn answered(&mut self, id: StepId, answer: Answer, now: Instant, progress: &mut Vec<Progress>) {
        let Some(step) = self.steps.get_mut(&id) else {
            return;
        };
        step.flying = false;
        let tried = step.since.map_or(Duration::ZERO, |since| now - since);
        match step.stage {
            Stage::Write => self.written(id, answer, tried, now, progress),
            Stage::TakeBack => self.taken_back(id, answer, tried, now, progress),
            Stage::Wait | Stage::Settled => {}
        }
    }

    fn written(
        &mut self,
        id: StepId,
        answer: Answer,
        tried: Duration,
        now: Instant,
        progress: &mut Vec<Progress>,
    ) {
        let Some(step) = self.steps.get_mut(&id) else {
            return;
        };
        let uid = step.pod.clone();
        let claim = step.what.claim.name.clone();
        let given_up = self.pods.get(&uid).is_none_or(|pod| pod.failed.is_some());
        let why = match answer {
            Answer::Done { .. } if given_up => return self.begin_taking_back(id, progress),
            Answer::Done { .. } => {
                (step.stage, step.since, step.failures) = (Stage::Wait, None, 0);
                if step.what.volume.is_none() {
                    self.timers.set(now + ECHO_PATIENCE, Timer::Echo(id));
                }
                return self.look(id, false, progress);
            }
            Answer::Later { retry_after, .. } if tried < WRITE_PATIENCE && !given_up => {
                return self.retry(id, now, retry_after);
            }
            Answer::Gone => Some(format!("claim {claim} or its volume is gone")),
            Answer::Taken { why } | Answer::Later { why, .. } | Answer::Refused { why, .. } => {
                Some(format!("claim {claim}: {why}"))
            }
            Answer::Fenced => None,
        };
        // Whether a write without an answer took effect is not known.
        self.fail(&uid, why, progress);
        self.begin_taking_back(id, progress);
    }

    fn taken_back(
        &mut self,
        id: StepId,
        answer: Answer,
        tried: Duration,
        now: Instant,
        progress: &mut Vec<Progress>,
    ) {
        match answer {
            Answer::Later { retry_after, .. } if tried < TAKE_BACK_PATIENCE => {
                return self.retry(id, now, retry_after);
            }
            Answer::Later { why, .. } | Answer::Refused { why, .. } => {
                if let Some(step) = self.steps.get(&id) {
                    let (namespace, claim) = (&step.what.claim.namespace, &step.what.claim.name);
                    tracing::warn!(%namespace, %claim, why, "cannot take back what was written for a claim");
                }
            }
            Answer::Done { .. } | Answer::Gone | Answer::Taken { .. } | Answer::Fenced => {}
        }
        self.settle(id, progress);
    }

    fn retry(&mut self, id: StepId, now: Instant, asked: Option<Duration>) {
        if let Some(step) = self.steps.get_mut(&id) {
            step.failures += 1;
            let wait = growing(FIRST_RETRY, LONGEST_RETRY, step.failures);
            let wait = wait.max(asked.unwrap_or_default().min(LONGEST_RETRY));
            step.retry = Some(self.timers.set(now + wait, Timer::Retry(id)));
        }
    }

    /// What the API server says of a claim.
    pub fn claim(&mut self, claim: &ClaimRef, state: &ClaimState, progress: &mut Vec<Progress>) {
        let Some(ids) = self.claims.get(&claim.uid).cloned() else {
            return;
        };
        for id in ids {
            let Some(step) = self.steps.get_mut(&id) else {
                continue;
            };
            match state {
                ClaimState::Bound => step.bound = true,
                ClaimState::Gone => {
                    let why = format!("claim {} is gone", claim.name);
                    let pod = step.pod.clone();
                    self.fail(&pod, Some(why), progress);
                    continue;
                }
                ClaimState::Waiting { selected_node } => {
                    let ours = selected_node.as_ref() == Some(&step.node);
                    step.echoed |= ours;
                    step.elsewhere = !ours;
                }
            }
            self.look(id, false, progress);
        }
    }

    /// Looks whether a claim that was written has its volume, or has lost our node.
    fn look(&mut self, id: StepId, late: bool, progress: &mut Vec<Progress>) {
        let Some(step) = self.steps.get_mut(&id).filter(|step| step.stage == Stage::Wait) else {
            return;
        };
        if step.bound {
            return self.settle(id, progress);
        }
        let dynamic = step.what.volume.is_none();
        if dynamic && step.elsewhere && (step.echoed || late) {
            let why = format!(
                "provisioning for claim {} on node {} was given up",
                step.what.claim.name, step.node
            );
            let pod = step.pod.clone();
            self.fail(&pod, Some(why), progress);
        }
    }

    /// The pod is not to be bound after all; why, if its owner is to be told.
    pub fn give_up(&mut self, pod: &Uid, why: Option<String>, progress: &mut Vec<Progress>) {
        self.fail(pod, why, progress);
    }

    fn fail(&mut self, uid: &Uid, why: Option<String>, progress: &mut Vec<Progress>) {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.failed.is_none()) else {
            return;
        };
        pod.failed = Some(why);
        let steps = pod.steps.clone();
        progress.push(Progress::Failing(uid.clone()));
        for id in steps {
            let Some(step) = self.steps.get(&id) else {
                continue;
            };
            match step.stage {
                // Its answer decides.
                Stage::Write if step.flying => {}
                Stage::Write if step.since.is_none() => self.settle(id, progress),
                Stage::Write | Stage::Wait => self.begin_taking_back(id, progress),
                Stage::TakeBack | Stage::Settled => {}
            }
        }
    }

    fn begin_taking_back(&mut self, id: StepId, progress: &mut Vec<Progress>) {
        let Some(step) = self.steps.get(&id) else {
            return;
        };
        if matches!(step.stage, Stage::TakeBack | Stage::Settled) {
            return;
        }
        let shared = self.claims.get(&step.what.claim.uid).is_some_and(|ids| {
            let others = ids.iter().filter(|other| **other != id);
            let mut others = others.filter_map(|other| self.steps.get(other));
            others.any(|other| other.node == step.node && other.stage != Stage::TakeBack)
        });
        if step.bound || shared {
            return self.settle(id, progress);
        }
        if let Some(step) = self.steps.get_mut(&id) {
            (step.stage, step.since, step.failures) = (Stage::TakeBack, None, 0);
            step.retry.take().map(|spot| self.timers.cancel(spot));
            self.line_up(id);
        }
    }

    /// A step is over; when it was the pod's last, so is the pod.
    fn settle(&mut self, id: StepId, progress: &mut Vec<Progress>) {
        let Some(step) = self.steps.get_mut(&id) else {
            return;
        };
        if step.stage == Stage::Settled {
            return;
        }
        step.stage = Stage::Settled;
        let uid = step.pod.clone();
        let Some(pod) = self.pods.get_mut(&uid) else {
            return;
        };
        pod.open = pod.open.saturating_sub(1);
        if pod.open > 0 {
            return;
        }
        let Some(pod) = self.remove(&uid) else {
            return;
        };
        progress.push(match pod.failed {
            None => Progress::Ready(uid),
            Some(why) => Progress::Failed(uid, why),
        });
    }

    fn remove(&mut self, uid: &Uid) -> Option<Pod> {
        let pod = self.pods.remove(uid)?;
        for id in &pod.steps {
            let Some(step) = self.steps.remove(id) else {
                continue;
            };
            let claim = &step.what.claim.uid;
            if let Some(ids) = self.claims.get_mut(claim) {
                ids.retain(|other| other != id);
                if ids.is_empty() {
                    self.claims.remove(claim);
                }
            }
        }
        Some(pod)
    }

    /// The lease is lost.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.pods.clear();
        self.claims.clear();
        self.line.clear();
        self.timers.clear();
    }

    /// Whether claims of a pod are under way.
    pub fn has(&self, pod: &str) -> bool {
        self.pods.contains_key(pod)
    }

    pub fn due(&self) -> Option<Instant> {
        self.timers.due()
    }
}

impl Step {
    fn new(pod: &Uid, what: VolumeStep, node: &Arc<str>) -> Self {
        Step {
            pod: pod.clone(),
            what,
            node: node.clone(),
            stage: Stage::Write,
            queued: false,
            flying: false,
            bound: false,
            echoed: false,
            elsewhere: false,
            since: None,
            failures: 0,
            retry: None,
        }
    }
}
