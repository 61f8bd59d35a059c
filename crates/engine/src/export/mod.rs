//! The model turned back into Kubernetes objects: a snapshot of what the engine believes, that replays to the same
//! decisions.
//!
//! ```text
//! Engine -> objects -> {"conf", "schedulerNames", …, "objects", "underway"} -> volcano plan -f
//! ```
//!
//! The objects show what the engine believes, not what an API server last said: a pod whose bind is on its way has its
//! node, one whose eviction is on its way is being deleted, and PodGroups have the status that was decided. They hold
//! what decisions depend on and nothing else; commands, environment values and the like never were in the model. Of the
//! configuration, what holds passwords is left out.
//!
//! **Invariant:** taken in by an empty engine with the same configuration, scheduler names, features and default queue,
//! and followed by what is [`Underway`], they make
//! the next cycle decide the same. Not part of it are events about what users were told before, and that a bind is
//! still on its way: such a pod counts as bound.

mod document;
mod groups;
mod lookups;
mod nodes;
mod pods;
mod queues;
mod underway;

pub use document::Document;
pub use underway::Underway;

use crate::model::delta::Delta;
use crate::model::{Model, SchedulerNames};
use crate::resource::{Dims, Resource};
use crate::{Engine, ids::Sym};
use serde::ser::{Serialize, SerializeSeq as _, SerializeStruct as _, Serializer};
use volcano_api::core::ResourceList;
use volcano_api::names::SCHEDULER;
use volcano_api::quantity::Quantity;
use volcano_api::time::{MicroTime, Time};

/// The objects of a model, each kind after those that it refers to, sorted by namespace and name. What plugins have
/// decided about volumes is not in the model: [`Engine::objects`] has it too.
pub fn objects(m: &Model) -> impl Iterator<Item = Delta> + '_ {
    lookups::before_nodes(m)
        .chain(queues::objects(m))
        .chain(lookups::hyper_nodes(m))
        .chain(lookups::node_shards(m))
        .chain(nodes::objects(m))
        .chain(lookups::after_nodes(m))
        .chain(groups::objects(m))
        .chain(pods::objects(m))
}

/// What `volcano plan -f` reads and plans as the engine would. It is written object by object:
/// `serde_json::to_writer(out, &engine.snapshot(conf, now))`.
pub struct Snapshot<'a> {
    engine: &'a Engine,
    conf: &'a str,
    now: Time,
}

impl<'a> Snapshot<'a> {
    /// A snapshot with the text of the engine's configuration and the moment of its next cycle.
    pub fn new(engine: &'a Engine, conf: &'a str, now: Time) -> Self {
        Snapshot { engine, conf, now }
    }
}

impl Serialize for Snapshot<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let m = self.engine.model();
        let mut map = serializer.serialize_struct("Snapshot", 8)?;
        map.serialize_field("conf", &crate::config::shown(self.conf))?;
        map.serialize_field("schedulerNames", &names(m))?;
        map.serialize_field("defaultQueue", m.text(m.default_queue))?;
        map.serialize_field("features", &m.features)?;
        map.serialize_field("now", &MicroTime(self.now))?;
        map.serialize_field("complete", &true)?;
        map.serialize_field("objects", &Objects(self.engine))?;
        map.serialize_field("underway", &Underway::of(m))?;
        map.end()
    }
}

struct Objects<'a>(&'a Engine);

impl Serialize for Objects<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for object in self.0.objects() {
            list.serialize_element(&Document(&object))?;
        }
        list.end()
    }
}

/// The names of the scheduler whose pods are its own. Where every pod is, all are written with the usual one.
fn names(m: &Model) -> Vec<&str> {
    match &m.scheduler_names {
        SchedulerNames::Any => vec![SCHEDULER],
        SchedulerNames::Only(names) => names.iter().map(String::as_str).collect(),
    }
}

/// Creation time; the model has 0 for none.
fn created(micros: i64) -> Option<Time> {
    (micros != 0).then(|| Time::from_unix_micros(micros))
}

/// The amounts of a vector that an object named. `cpu` and `memory` are always there in a vector, and left out if zero.
fn amounts(dims: &Dims, vector: &Resource) -> ResourceList {
    let mut list = dims.quantities(vector);
    for name in ["cpu", "memory"] {
        if list
            .get(name)
            .is_some_and(|amount| *amount == Quantity::default())
        {
            list.remove(name);
        }
    }
    list
}

/// Labels as objects have them.
fn labels(m: &Model, labels: &[(Sym, Sym)]) -> volcano_api::core::Labels {
    let pair = |&(key, value): &(Sym, Sym)| (m.text(key).to_owned(), m.text(value).to_owned());
    labels.iter().map(pair).collect()
}

#[cfg(test)]
mod tests;
