//! Evictions under way.
//!
//! ```text
//! ordered ──> tell it in the pod's conditions ──> delete the pod ──> done
//! ```
//! The second does not depend on how the first ends: a pod that is told of its eviction and not deleted would keep the
//! place that others wait for.

use super::order::{Eviction, PodRef};
use super::timers::Timers;
use super::work::{Answer, Uid, Work};
use crate::backoff::growing;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long the conditions are tried before the pod is deleted without them.
const MARK_PATIENCE: Duration = Duration::from_secs(3);
/// How long the deletion is tried.
const DELETE_PATIENCE: Duration = Duration::from_secs(30);
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(2);

/// Pods that are being evicted.
#[derive(Default)]
pub struct Evictions {
    all: FxHashMap<Uid, Leaving>,
    line: VecDeque<Uid>,
    later: Timers<Uid>,
}

struct Leaving {
    eviction: Eviction,
    marked: bool,
    flying: bool,
    /// When the current step was tried first.
    since: Option<Instant>,
    failures: u32,
}

/// How an eviction ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The pod is deleted, or was gone already.
    Gone,
    /// The pod stays.
    Failed { pod: PodRef, why: Option<String> },
}

impl Evictions {
    /// A pod to be evicted. False when it is on its way already.
    pub fn order(&mut self, eviction: Eviction) -> bool {
        let uid = eviction.pod.uid.clone();
        if self.all.contains_key(&uid) {
            return false;
        }
        let leaving = Leaving {
            eviction,
            marked: false,
            flying: false,
            since: None,
            failures: 0,
        };
        self.all.insert(uid.clone(), leaving);
        self.line.push_back(uid);
        true
    }

    /// Puts those whose wait is over in front.
    pub fn tick(&mut self, now: Instant) {
        while let Some(uid) = self.later.expired(now) {
            self.line.push_front(uid);
        }
    }

    pub fn next(&mut self, now: Instant) -> Option<(Uid, Work)> {
        loop {
            let uid = self.line.pop_front()?;
            let Some(leaving) = self.all.get_mut(&uid) else {
                continue;
            };
            leaving.flying = true;
            leaving.since.get_or_insert(now);
            let pod = leaving.eviction.pod.clone();
            let work = if leaving.marked {
                Work::Delete { pod }
            } else {
                let reason = leaving.eviction.reason;
                Work::Mark { pod, reason }
            };
            return Some((uid, work));
        }
    }

    /// What came of a step. Says how the eviction ended if it did.
    pub fn answered(&mut self, uid: &Uid, answer: Answer, now: Instant) -> Option<Ended> {
        let leaving = self.all.get_mut(uid)?;
        leaving.flying = false;
        let tried = leaving.since.map_or(Duration::ZERO, |since| now - since);
        match (leaving.marked, answer) {
            (_, Answer::Gone) | (true, Answer::Done { .. }) => {
                self.all.remove(uid);
                Some(Ended::Gone)
            }
            (_, Answer::Fenced) => self.failed(uid, None),
            (false, Answer::Later { retry_after, .. }) if tried < MARK_PATIENCE => {
                self.retry(uid, now, retry_after, MARK_PATIENCE)
            }
            (false, _) => {
                (leaving.marked, leaving.since, leaving.failures) = (true, None, 0);
                self.line.push_front(uid.clone());
                None
            }
            (true, Answer::Later { retry_after, .. }) if tried < DELETE_PATIENCE => {
                self.retry(uid, now, retry_after, DELETE_PATIENCE)
            }
            (true, Answer::Later { why, .. } | Answer::Refused { why, .. } | Answer::Taken { why }) => {
                self.failed(uid, Some(why))
            }
        }
    }

    fn retry(
        &mut self,
        uid: &Uid,
        now: Instant,
        asked: Option<Duration>,
        longest: Duration,
    ) -> Option<Ended> {
        let leaving = self.all.get_mut(uid)?;
        leaving.failures += 1;
        let wait = growing(FIRST_RETRY, LONGEST_RETRY, leaving.failures);
        let wait = wait.max(asked.unwrap_or_default().min(longest));
        self.later.set(now + wait, uid.clone());
        None
    }

    fn failed(&mut self, uid: &Uid, why: Option<String>) -> Option<Ended> {
        let leaving = self.all.remove(uid)?;
        let pod = leaving.eviction.pod;
        Some(Ended::Failed { pod, why })
    }

    /// The lease is lost: what is not under way stays. Returns those pods.
    pub fn clear(&mut self) -> Vec<PodRef> {
        self.line.clear();
        self.later.clear();
        let mut stay: Vec<PodRef> = Vec::new();
        self.all.retain(|_, leaving| {
            if !leaving.flying {
                stay.push(leaving.eviction.pod.clone());
            }
            leaving.flying
        });
        stay.sort();
        stay
    }

    /// How many pods are being evicted.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn due(&self) -> Option<Instant> {
        self.later.due()
    }
}
