//! The cluster as it is being read, and the proof that it is whole. Only a whole one can be decided about.
//!
//! A scheduler that decides on half a cluster double-books nodes whose pods it has not seen and evicts for queues
//! whose limits it does not know. So a cycle is a method of [`Whole`], and there is no other way to come by one than
//! [`Cluster::whole`], which looks at what is still missing.

use crate::watch::{Feed, Listed};
use std::collections::BTreeSet;
use volcano_api::time::Time;
use volcano_engine::Engine;
use volcano_engine::config::SchedulerConf;
use volcano_engine::dispatch::Unavailable;
use volcano_engine::effect::{Cycle, Step};
use volcano_engine::model::SchedulerNames;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::features::Features;
use volcano_engine::model::kind::Kind;

/// The cluster as far as it is known.
pub struct Cluster {
    engine: Engine,
    missing: BTreeSet<Kind>,
}

/// A cluster of which every kind has been listed.
pub struct Whole<'a>(&'a mut Engine);

impl Cluster {
    /// Nothing is known yet, and these kinds are to be listed. What the configuration names and the engine lacks is
    /// returned.
    pub fn new(
        conf: SchedulerConf,
        names: SchedulerNames,
        default_queue: &str,
        features: Features,
        kinds: impl IntoIterator<Item = Kind>,
    ) -> (Self, Vec<Unavailable>) {
        let (engine, unavailable) = Engine::new(conf, names, default_queue);
        let engine = engine.with_features(features);
        let missing = kinds.into_iter().collect();
        (Cluster { engine, missing }, unavailable)
    }

    /// Takes in what a watch hands on; `admit` sees each change before it enters.
    pub fn take(&mut self, feed: Feed, mut admit: impl FnMut(Delta) -> Delta) {
        match feed {
            Feed::Changes(deltas) => deltas
                .into_iter()
                .for_each(|delta| self.engine.apply(admit(delta))),
            Feed::Listed(kind, listed) => {
                self.forget_others(kind, listed, admit);
                self.missing.remove(&kind);
            }
            Feed::Trouble(..) => {}
        }
    }

    /// What a new list of a kind lacks is gone.
    fn forget_others(&mut self, kind: Kind, listed: Option<Listed>, mut admit: impl FnMut(Delta) -> Delta) {
        let Some(Listed { names, .. }) = listed else {
            return;
        };
        for known in self.engine.model().names(kind) {
            if !names.contains(&known) {
                self.engine.apply(admit(Delta::gone(kind, &known.0, &known.1)));
            }
        }
    }

    /// Takes a change in.
    pub fn apply(&mut self, delta: Delta) {
        self.engine.apply(delta);
    }

    /// Swaps the configuration.
    pub fn reconfigure(&mut self, conf: SchedulerConf) -> Vec<Unavailable> {
        self.engine.reconfigure(conf)
    }

    /// What is known, to be looked at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The kinds that have not been listed yet.
    pub fn missing(&self) -> &BTreeSet<Kind> {
        &self.missing
    }

    /// The cluster, if every kind has been listed.
    pub fn whole(&mut self) -> Option<Whole<'_>> {
        self.missing.is_empty().then_some(Whole(&mut self.engine))
    }
}

impl Whole<'_> {
    /// Decides.
    pub fn cycle(self, now: Time, probe: &mut dyn FnMut(Step<'_>)) -> Cycle {
        self.0.cycle(now, probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use volcano_engine::config::catalog;

    fn cluster() -> Cluster {
        let conf = SchedulerConf::parse("actions: allocate", catalog::PLANNED_PLUGINS, catalog::ACTIONS);
        let names = SchedulerNames::Only(vec!["volcano".to_owned()]);
        let features = Features::default();
        Cluster::new(conf.unwrap(), names, "default", features, [Kind::Node, Kind::Pod]).0
    }

    fn node(name: &str) -> Delta {
        Delta::Node(Box::new(
            serde_json::from_value(json!({"metadata": {"name": name}})).unwrap(),
        ))
    }

    #[test]
    fn nothing_is_decided_before_every_kind_is_listed() {
        let mut cluster = cluster();
        assert!(cluster.whole().is_none());
        cluster.take(Feed::Listed(Kind::Pod, None), |delta| delta);
        assert!(cluster.whole().is_none());
        assert_eq!(cluster.missing().iter().collect::<Vec<_>>(), [&Kind::Node]);
        cluster.take(Feed::Listed(Kind::Node, None), |delta| delta);
        assert!(cluster.whole().is_some());
    }

    #[test]
    fn what_a_second_list_lacks_is_gone() {
        let mut cluster = cluster();
        cluster.take(Feed::Changes(vec![node("a"), node("b")]), |delta| delta);
        cluster.take(Feed::Listed(Kind::Node, None), |delta| delta);
        let names = |cluster: &Cluster| -> Vec<String> {
            let mut names: Vec<_> = cluster
                .engine()
                .model()
                .names(Kind::Node)
                .into_iter()
                .map(|n| n.1)
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(&cluster), ["a", "b"]);
        let listed = Listed {
            names: FromIterator::from_iter([(String::new(), "b".to_owned())]),
            version: String::new(),
        };
        let mut admitted = Vec::new();
        cluster.take(Feed::Listed(Kind::Node, Some(listed)), |delta| {
            admitted.push(format!("{delta:?}"));
            delta
        });
        assert_eq!(names(&cluster), ["b"]);
        let gone = Delta::gone(Kind::Node, "", "a");
        assert_eq!(admitted, [format!("{gone:?}")], "and others learn of it");
    }
}
