//! What the rules ask of the cluster, kept in memory by watches.

use crate::client::Client;
use crate::metrics::Process;
use crate::serve::Health;
use crate::watch::kinds::Scheduling;
use crate::watch::{Feed, watch};
use prometheus::Registry;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use volcano_admission::Lookups;
use volcano_api::core::{Labels, Namespace};
use volcano_api::scheduling::Queue;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;

/// Batches of changes that wait.
const WAITING: usize = 64;

/// Queues and Namespaces.
#[derive(Default)]
pub struct Cache {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    queues: BTreeMap<String, Arc<Queue>>,
    /// Names of queues by that of their parent.
    children: BTreeMap<String, BTreeSet<String>>,
    /// Annotations by name of the namespace.
    namespaces: BTreeMap<String, Labels>,
}

/// The watches that feed a cache.
pub struct Feeding {
    feed: mpsc::Receiver<Feed>,
    missing: Vec<Kind>,
}

impl Feeding {
    /// Starts to watch Queues, and Namespaces if somebody asks for them.
    pub fn start(client: &Client, namespaces: bool, tasks: &mut JoinSet<()>) -> Feeding {
        // Nobody asks for metrics here.
        let metrics = Process::new(&Registry::new());
        let (sender, feed) = mpsc::channel(WAITING);
        let mut missing = vec![Kind::Queue];
        if namespaces {
            tasks.spawn(watch::<Scheduling, Namespace>(
                client.clone(),
                metrics.clone(),
                sender.clone(),
            ));
            missing.push(Kind::Namespace);
        }
        tasks.spawn(watch::<Scheduling, Queue>(client.clone(), metrics, sender));
        Feeding { feed, missing }
    }

    /// Takes in changes until every kind is listed.
    pub async fn list(&mut self, cache: &Cache, health: &Health) {
        while !self.missing.is_empty() {
            health.missing(self.missing.iter().map(|kind| format!("{kind:?}")).collect());
            let Some(feed) = self.feed.recv().await else {
                return;
            };
            self.take(feed, cache, health);
        }
    }

    /// Takes in changes from then on.
    pub async fn follow(mut self, cache: Arc<Cache>, health: Arc<Health>) {
        while let Some(feed) = self.feed.recv().await {
            self.take(feed, &cache, &health);
        }
    }

    fn take(&mut self, feed: Feed, cache: &Cache, health: &Health) {
        match feed {
            Feed::Changes(changes) => cache.apply(changes),
            Feed::Listed(kind, listed) => {
                self.missing.retain(|missing| *missing != kind);
                if let Some(listed) = listed {
                    cache.retain(kind, &listed.names);
                }
            }
            Feed::Trouble(_, line) => {
                tracing::error!("{line}");
                health.trouble(&line);
            }
        }
    }
}

impl Cache {
    /// Takes in changes.
    pub fn apply(&self, changes: Vec<Delta>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            match change {
                Delta::Queue(queue) => known.add_queue(*queue),
                Delta::Namespace(namespace) => {
                    let meta = namespace.metadata;
                    known.namespaces.insert(meta.name, meta.annotations);
                }
                Delta::QueueGone { name } => known.remove_queue(&name),
                Delta::NamespaceGone { name } => drop(known.namespaces.remove(&name)),
                _ => {} // Nothing else is watched.
            }
        }
    }

    /// Only these are there.
    fn retain(&self, kind: Kind, names: &FxHashSet<(String, String)>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |name: &&String| !names.contains(&(String::new(), (*name).clone()));
        match kind {
            Kind::Queue => {
                let gone: Vec<_> = known.queues.keys().filter(is_gone).cloned().collect();
                gone.iter().for_each(|name| known.remove_queue(name));
            }
            Kind::Namespace => known.namespaces.retain(|name, _| !is_gone(&name)),
            _ => {}
        }
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn add_queue(&mut self, queue: Queue) {
        let name = queue.metadata.name.clone();
        self.remove_queue(&name);
        self.children
            .entry(queue.spec.parent.clone())
            .or_default()
            .insert(name.clone());
        self.queues.insert(name, Arc::new(queue));
    }

    fn remove_queue(&mut self, name: &str) {
        let Some(queue) = self.queues.remove(name) else {
            return;
        };
        let parent = &queue.spec.parent;
        if let Some(siblings) = self.children.get_mut(parent) {
            siblings.remove(name);
            if siblings.is_empty() {
                self.children.remove(parent);
            }
        }
    }
}

impl Lookups for Cache {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.known().queues.get(name).cloned()
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        self.known().queues.values().cloned().collect()
    }

    fn children(&self, parent: &str) -> Vec<Arc<Queue>> {
        let known = self.known();
        let names = known.children.get(parent).into_iter().flatten();
        names.filter_map(|name| known.queues.get(name).cloned()).collect()
    }

    fn namespace_annotations(&self, name: &str) -> Option<Labels> {
        self.known().namespaces.get(name).cloned()
    }

    fn has_time_zone(&self, name: &str) -> bool {
        has_time_zone(name)
    }
}

/// Whether a time zone of this name is in the database.
pub fn has_time_zone(name: &str) -> bool {
    // Names are found whatever their case, but the database of the pod that runs may tell cases apart.
    let zone = jiff::tz::db().get(name);
    zone.is_ok_and(|zone| zone.iana_name() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn queue(name: &str, parent: &str) -> Delta {
        let queue = json!({"metadata": {"name": name}, "spec": {"parent": parent}});
        Delta::Queue(Box::new(serde_json::from_value(queue).unwrap()))
    }

    fn children(cache: &Cache, parent: &str) -> Vec<String> {
        let children = cache.children(parent);
        children.iter().map(|queue| queue.metadata.name.clone()).collect()
    }

    #[test]
    fn queues_are_found_by_name_and_by_parent() {
        let cache = Cache::default();
        cache.apply(vec![queue("root", ""), queue("b", "root"), queue("a", "root")]);
        assert_eq!(children(&cache, "root"), ["a", "b"]);
        cache.apply(vec![queue("b", "a")]);
        assert_eq!(
            (children(&cache, "root"), children(&cache, "a")),
            (vec!["a".to_owned()], vec!["b".to_owned()])
        );
        assert_eq!(cache.queue("b").unwrap().spec.parent, "a");
        cache.apply(vec![Delta::gone(Kind::Queue, "", "b")]);
        assert!(cache.queue("b").is_none() && children(&cache, "a").is_empty());
        assert_eq!(cache.queues().len(), 2);
    }

    #[test]
    fn what_a_later_list_does_not_have_is_gone() {
        let cache = Cache::default();
        let namespace = |name: &str| {
            let object = json!({"metadata": {"name": name, "annotations": {"k": "v"}}});
            Delta::Namespace(serde_json::from_value(object).unwrap())
        };
        cache.apply(vec![
            queue("a", ""),
            queue("b", "a"),
            namespace("n"),
            namespace("m"),
        ]);
        let names = |list: &[&str]| {
            list.iter()
                .map(|name| (String::new(), (*name).to_owned()))
                .collect()
        };
        cache.retain(Kind::Queue, &names(&["a"]));
        cache.retain(Kind::Namespace, &names(&["m"]));
        assert!(cache.queue("b").is_none() && children(&cache, "a").is_empty());
        assert_eq!(cache.namespace_annotations("n"), None);
        assert_eq!(cache.namespace_annotations("m").unwrap()["k"], "v");
    }

    #[test]
    fn time_zones_are_those_of_the_database() {
        let cache = Cache::default();
        for (name, is_there) in [
            ("Europe/Berlin", true),
            ("UTC", true),
            ("Etc/UTC", true),
            ("America/Argentina/Buenos_Aires", true),
            ("Asia/Calcutta", true),
            ("europe/berlin", false),
            ("Mars/Olympus", false),
        ] {
            assert_eq!(cache.has_time_zone(name), is_there, "{name}");
        }
    }
}
