//! What is to be written, decided but not done.
//!
//! The executor that carries a plan out is the same for all controllers:
//!
//! ```text
//! Plan { steps: [ [w w w] -> [w] -> [w w] ], again_at }
//! ```
//!
//! Writes of one step are done side by side; the next step starts when all of them have succeeded. After a failure the
//! rest is dropped and the plan made again from what is observed then.

use serde_json::Value;
use volcano_api::meta::{OwnerReference, Resource};
use volcano_api::names::Kind;
use volcano_api::time::Time;

/// The object that a write is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for a cluster-scoped kind.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The incarnation that is meant; empty when any is. The executor makes it a precondition of the write.
    pub uid: String,
}

impl Target {
    /// Any incarnation of a name.
    pub fn named(kind: Kind, namespace: &str, name: &str) -> Self {
        Target {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: String::new(),
        }
    }

    /// This very object.
    pub fn of<R: Resource>(object: &R) -> Self {
        let metadata = object.metadata();
        Target {
            uid: metadata.uid.clone(),
            ..Target::named(R::KIND, &metadata.namespace, &metadata.name)
        }
    }
}

/// A reference to the owner that manages an object and that waits for it when it is deleted itself.
pub fn controller<R: Resource>(owner: &R) -> OwnerReference {
    OwnerReference {
        api_version: R::KIND.api_version(),
        kind: R::KIND.kind.to_owned(),
        name: owner.metadata().name.clone(),
        uid: owner.metadata().uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..OwnerReference::default()
    }
}

/// One write. Each can be repeated without harm.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Make an object; `body` is the whole of it, with type and name. One that exists already is taken for it if it has
    /// the same controller (or none is asked for); one of somebody else is an error.
    Create {
        /// What is made.
        target: Target,
        /// The object.
        body: Value,
        /// What the executor has to fill in first.
        fill: Option<Fill>,
    },
    /// Change an object by a JSON merge patch.
    Patch {
        /// What is changed.
        target: Target,
        /// The changes.
        patch: Value,
        /// Whether it goes to the status subresource.
        status: bool,
        /// The version that the change was decided on. A newer one makes the write a conflict: it is decided anew.
        resource_version: Option<String>,
    },
    /// Delete an object; one that is gone already is as good.
    Delete {
        /// What is deleted.
        target: Target,
        /// Whether its dependents go first.
        foreground: bool,
    },
    /// Tell users something.
    Event(Event),
}

/// What cannot be decided from what is observed, since it is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// `data` of a Secret gets a fresh RSA key pair: `id_rsa`, `id_rsa.pub` and `authorized_keys`.
    SshKeyPair,
}

/// A Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is about.
    pub about: Target,
    /// Whether it is a warning.
    pub warning: bool,
    /// A word for programs.
    pub reason: String,
    /// The words for people.
    pub message: String,
}

impl Event {
    /// Something to know.
    pub fn normal(about: Target, reason: &str, message: impl Into<String>) -> Self {
        Event {
            about,
            warning: false,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Something to act on.
    pub fn warning(about: Target, reason: &str, message: impl Into<String>) -> Self {
        Event {
            warning: true,
            ..Event::normal(about, reason, message)
        }
    }
}

/// What is to be done, and when to look again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Writes by step.
    pub steps: Vec<Vec<Write>>,
    /// When to decide anew although nothing changes.
    pub again_at: Option<Time>,
}

impl Plan {
    /// These steps, without those in which nothing is written.
    pub fn of(steps: Vec<Vec<Write>>) -> Self {
        let mut plan = Plan::default();
        steps.into_iter().for_each(|step| plan.then(step));
        plan
    }

    /// Adds a step, unless nothing is written in it.
    pub fn then(&mut self, step: Vec<Write>) {
        if !step.is_empty() {
            self.steps.push(step);
        }
    }

    /// Adds the steps of another plan.
    pub fn append(&mut self, other: Plan) {
        other.steps.into_iter().for_each(|step| self.then(step));
        other.again_at.into_iter().for_each(|at| self.wake(at));
    }

    /// Looks again at this time at the latest.
    pub fn wake(&mut self, at: Time) {
        self.again_at = Some(self.again_at.map_or(at, |other| other.min(at)));
    }
}
