//! The thin part that talks to the API server: one function per kind of write, and what its answer means.

mod bind;
pub(crate) mod change;
mod event;
mod evict;
mod status;
mod volume;

use super::work::{Answer, Work};
use crate::client::{CallError, Client};
use crate::clock::Clock;
use crate::fence::Fence;
use crate::metrics::Process;
use change::Detours;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends writes.
pub struct Sender {
    client: Client,
    metrics: Process,
    /// Name under which events are told.
    component: Arc<str>,
    /// Name of the scheduler that pods make room for.
    scheduler: Arc<str>,
    detours: Detours,
    /// The API server, or a proxy before it, does not read protobuf.
    json_only: AtomicBool,
    /// What it was said of that the role does not allow it.
    told: [AtomicBool; 3],
}

/// A write that a role may lack and that has no other way.
#[derive(Clone, Copy)]
enum Needed {
    Bind,
    Delete,
    Event,
}

impl Needed {
    /// As roles name it.
    fn grant(self) -> &'static str {
        match self {
            Needed::Bind => "the verb create on pods/binding",
            Needed::Delete => "the verb delete on pods",
            Needed::Event => "the verbs create and patch on events",
        }
    }
}

impl Sender {
    pub fn new(client: &Client, fence: Fence, metrics: Process, component: Arc<str>) -> Self {
        Sender {
            client: client.behind(fence),
            metrics,
            scheduler: component.clone(),
            component,
            detours: Detours::default(),
            json_only: AtomicBool::new(false),
            told: Default::default(),
        }
    }

    /// The same in the name of a scheduler, where that is not the component's.
    pub fn of_scheduler(mut self, name: &str) -> Self {
        self.scheduler = name.into();
        self
    }

    /// Says once what the role lacks: it is so for every object.
    fn tell_forbidden(&self, needed: Needed, error: &CallError) {
        if error.is_forbidden() && !self.told[needed as usize].swap(true, Ordering::Relaxed) {
            let (hint, role) = (needed.grant(), &self.component);
            tracing::error!(%error, "not allowed to write: grant {hint} to the role of {role}");
        }
    }

    /// The time of day that writes have.
    pub fn clock(&self) -> &Clock {
        self.client.clock()
    }

    /// Carries a write out, once.
    pub async fn send(&self, work: Work) -> Answer {
        match work {
            Work::Bind { pod, node } => self.bind(&pod, &node).await,
            Work::LookAtPod { pod, node } => self.look_after_silence(&pod, &node).await,
            Work::Prepare { step, node } => self.prepare(&step, &node).await,
            Work::TakeBack { step, node } => self.take_back(&step, &node).await,
            Work::Mark { pod, reason } => self.mark(&pod, reason).await,
            Work::Delete { pod } => self.delete(&pod).await,
            Work::Group(status) => self.group(&status).await,
            Work::Condition { value, first } => self.condition(&value, first).await,
            Work::Queue(status) => self.queue(&status).await,
            Work::Shard(status) => self.shard(&status).await,
            Work::OpenGate(pod) => self.open_gate(&pod).await,
            Work::Event(write) => self.event(&write).await,
        }
    }

    /// Counts the answer to a write.
    fn count<T>(&self, kind: &str, answer: Result<T, CallError>) -> Result<T, CallError> {
        if let Some(result) = result(&answer) {
            self.metrics.api_write(kind, result);
        }
        answer
    }
}

/// How an answer is counted; not at all if nothing was sent.
pub(crate) fn result<T>(answer: &Result<T, CallError>) -> Option<&'static str> {
    Some(match answer {
        Ok(_) => "ok",
        Err(CallError::Fenced) => return None,
        Err(CallError::NoAnswer(_)) => "no-answer",
        Err(error) => match error.code() {
            403 => "forbidden",
            404 => "not-found",
            409 => "conflict",
            429 => "throttled",
            _ => "error",
        },
    })
}

impl From<CallError> for Answer {
    fn from(error: CallError) -> Self {
        match &error {
            CallError::Fenced => Answer::Fenced,
            error if error.is_not_found() => Answer::Gone,
            error if error.is_transient() => Answer::Later {
                why: error.to_string(),
                retry_after: error.retry_after(),
            },
            error => Answer::Refused {
                why: error.to_string(),
                forbidden: error.is_forbidden(),
            },
        }
    }
}

/// JSON of a value that always has one.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
