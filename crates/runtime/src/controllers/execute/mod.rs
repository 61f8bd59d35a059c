//! Carries plans out: the steps one after the other, the writes of a step side by side.
//!
//! ```text
//! Plan ──> a task of its own ──> lanes ──> API server
//!                 │ each answer at once, then how it ended
//!                 v
//!              Message ──> the store, the work queue
//! ```
//!
//! Nothing is tried again here: after a failure the rest of the plan is dropped, and it is made anew from what is known
//! then.

mod keys;
mod lanes;
mod send;
#[cfg(test)]
mod tests;

use super::recorder::Recorder;
use super::store::{Answer, Key};
use crate::client::Client;
use crate::metrics::Process;
use futures::{FutureExt as _, StreamExt as _};
use lanes::Urgency;
use send::Sender;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use volcano_api::names::Kind;
use volcano_reconcile::job::{Ask, Reading};
use volcano_reconcile::write::{Plan, Target, Write};

/// Requests under way at the same time: enough to keep an API server busy whose answers take 10 to 30 ms under load, and
/// far from the 200 changes under way that it allows for everybody together.
const LANES: usize = 64;
/// Of those, one plan has this many at the most, so that a large Job does not keep all others waiting.
const LANES_PER_PLAN: usize = 32;
/// Writes in plans under way at the most; each has the body of an object.
const MOST_WRITES: usize = 10_000;
/// Plans under way at the most.
const MOST_PLANS: usize = 1_000;
/// When plans under way could use this many lanes, further ones that make pods would only be kept in memory.
const ENOUGH: usize = 8 * LANES;

/// What came of a plan, piece by piece.
#[derive(Debug)]
pub enum Message {
    /// The API server answered to a write.
    Written(Key, Effect),
    /// A plan of so many writes has ended.
    Done(Key, usize, Ended),
    /// What was to be read: each object, if it is there.
    Read(Key, Result<Vec<(Target, Option<Value>)>, Problem>),
    /// The newest versions of a Job and its pods, if the Job is there.
    Asked(Key, Result<Option<Reading>, Problem>),
}

/// How a plan ended.
#[derive(Debug)]
pub enum Ended {
    /// All of it is done.
    Whole,
    /// What can be told later is to be told later; all else is done.
    PutOff,
    /// Some writes failed, and what was to follow them was dropped.
    Failed(Vec<Failed>),
}

/// What came of a write.
#[derive(Debug)]
enum Outcome {
    /// It is done, and changed this.
    Written(Option<Effect>),
    /// It can be done later, and no lane is to spare now.
    PutOff,
}

/// What a write changed.
#[derive(Debug)]
pub enum Effect {
    /// An object of a kind that is watched.
    Watched(Answer),
    /// A pod was made.
    PodMade(Answer),
    /// An object of a job plugin is there.
    Made(Kind, Value),
    /// An object of a job plugin is gone.
    Removed(Kind, String),
}

/// A write that failed.
#[derive(Debug)]
pub struct Failed {
    /// What was to be written; nothing when the whole plan broke off.
    pub write: Option<Write>,
    /// Why it was not.
    pub problem: Problem,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What sort of failure it is.
    pub sort: Sort,
    /// What the API server said.
    pub text: String,
    /// When it asks to be tried again.
    pub retry_after: Duration,
}

/// Sorts of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It will be the same the next time.
    Refused,
    /// There is a pod of that name, and it belongs to something else: it may stay for long, which is nobody's fault.
    Taken,
    /// Somebody else wrote first, the API server is busy or does not answer: the next time may be better.
    Passing,
    /// The lease is not held.
    Fenced,
}

/// Carries plans out.
pub struct Executor {
    sender: Arc<Sender>,
    running: JoinSet<()>,
    to: mpsc::UnboundedSender<Message>,
    writes: usize,
    /// Lanes that the plans under way could use.
    lanes: usize,
    plans: usize,
}

impl Executor {
    /// One whose requests go through this client, which is behind the fence. What comes of them is sent.
    pub fn new(
        client: Client,
        metrics: Process,
        recorder: Recorder,
        to: mpsc::UnboundedSender<Message>,
    ) -> Self {
        Executor {
            sender: Arc::new(Sender::new(client, metrics, recorder, LANES)),
            running: JoinSet::new(),
            to,
            writes: 0,
            lanes: 0,
            plans: 0,
        }
    }

    /// Whether another plan can be taken on.
    pub fn has_room(&self) -> bool {
        self.plans < MOST_PLANS && self.writes < MOST_WRITES
    }

    /// Whether there is enough under way to keep all lanes busy for a while.
    pub fn is_busy(&self) -> bool {
        self.lanes >= ENOUGH
    }

    /// Lanes to spare for what can be told later.
    pub fn spare(&self) -> usize {
        self.sender.spare()
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.plans == 0
    }

    /// Begins to carry a plan out; one that changes a phase is waited for.
    pub fn start(&mut self, key: Key, plan: Plan, changes_phase: bool) {
        while self.running.try_join_next().is_some() {}
        let writes = plan.steps.iter().map(Vec::len).sum();
        self.writes += writes;
        self.lanes += lanes_of(writes);
        self.plans += 1;
        let (sender, to) = (self.sender.clone(), self.to.clone());
        self.running.spawn(async move {
            let work = carry_out(&sender, &key, plan, changes_phase, &to);
            let ended = match AssertUnwindSafe(work).catch_unwind().await {
                Ok(ended) => ended,
                Err(_) => Ended::Failed(vec![broke_off()]),
            };
            let _ = to.send(Message::Done(key, writes, ended)); // Nobody is left to care.
        });
    }

    /// Begins to read objects.
    pub fn read(&mut self, key: Key, targets: Vec<Target>) {
        while self.running.try_join_next().is_some() {}
        self.plans += 1;
        let (sender, to) = (self.sender.clone(), self.to.clone());
        self.running.spawn(async move {
            let read = sender.read_all(targets).await;
            let _ = to.send(Message::Read(key, read)); // Nobody is left to care.
        });
    }

    /// Begins to ask for the newest versions of a Job and its pods.
    pub fn ask(&mut self, key: Key, job: Target, ask: Ask) {
        while self.running.try_join_next().is_some() {}
        self.plans += 1;
        let (sender, to) = (self.sender.clone(), self.to.clone());
        self.running.spawn(async move {
            let asked = sender.newest(&job, ask).await;
            let _ = to.send(Message::Asked(key, asked)); // Nobody is left to care.
        });
    }

    /// Sends nothing more. What is sent already comes to its end, and is told.
    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.sender.is_stopped()
    }

    /// A message said that a plan of so many writes has ended.
    pub fn ended(&mut self, writes: usize) {
        self.plans = self.plans.saturating_sub(1);
        self.writes = self.writes.saturating_sub(writes);
        self.lanes = self.lanes.saturating_sub(lanes_of(writes));
    }
}

/// Lanes that a plan of so many writes could use.
fn lanes_of(writes: usize) -> usize {
    writes.min(LANES_PER_PLAN)
}

/// Carries a plan out.
async fn carry_out(
    sender: &Sender,
    key: &Key,
    plan: Plan,
    changes_phase: bool,
    to: &mpsc::UnboundedSender<Message>,
) -> Ended {
    for step in plan.steps {
        let mut answers = futures::stream::iter(step)
            .map(|write| async move {
                let urgency = Urgency::of(&write, changes_phase);
                let outcome = sender.write(&write, urgency).await;
                (write, outcome)
            })
            .buffer_unordered(LANES_PER_PLAN);
        let (mut failed, mut is_put_off) = (Vec::new(), false);
        while let Some((write, outcome)) = answers.next().await {
            match outcome {
                Ok(Outcome::Written(Some(effect))) => {
                    let _ = to.send(Message::Written(key.clone(), effect)); // Nobody is left to care.
                }
                Ok(Outcome::Written(None)) => {}
                Ok(Outcome::PutOff) => is_put_off = true,
                Err(problem) => failed.push(Failed {
                    write: Some(write),
                    problem,
                }),
            }
        }
        if !failed.is_empty() {
            return Ended::Failed(failed);
        }
        if is_put_off {
            return Ended::PutOff;
        }
    }
    Ended::Whole
}

fn broke_off() -> Failed {
    Failed {
        write: None,
        problem: Problem {
            sort: Sort::Refused,
            text: "the write broke off inside the controller manager".to_owned(),
            retry_after: Duration::ZERO,
        },
    }
}
