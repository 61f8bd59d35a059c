//! One who sees everything that happens to the pods of a namespace, in the order in which it happened, and remembers
//! what must never happen: a pod that changes its node, a node with more on it than it has.
//!
//! One watch from the beginning to the end. Only a restart of the API server breaks it; what a new list shows is then
//! held against what was seen before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use volcano_api::names::annotations;
use volcano_api::quantity::Quantity;

/// Before a broken watch is begun anew.
const AGAIN: Duration = Duration::from_millis(200);
/// As long as the API server lets one be.
const WATCH_SECONDS: u32 = 290;

/// A pod as it was seen last.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Its name.
    pub name: String,
    /// The PodGroup that it belongs to; empty for none.
    pub group: String,
    /// Its node.
    pub node: Option<String>,
    /// Processor that it asks for, in thousandths.
    pub milli_cpu: i64,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Processor of a node, in thousandths; all nodes are alike.
    milli_cpu_per_node: i64,
    /// The pods that are there, by uid.
    pods: BTreeMap<String, Sighting>,
    /// The node of each pod that ever had one, by uid.
    placed: HashMap<String, String>,
    /// Processor in use, by node.
    used: BTreeMap<String, i64>,
    wrong: Vec<String>,
}

/// How many members of a gang are there, and how many of them are on nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// On nodes.
    pub bound: usize,
    /// In all.
    pub there: usize,
}

impl Seen {
    /// The pods that are there.
    pub fn pods(&self) -> impl Iterator<Item = &Sighting> {
        self.pods.values()
    }

    /// How many pods are on nodes.
    pub fn bound(&self) -> usize {
        self.pods.values().filter(|pod| pod.node.is_some()).count()
    }

    /// How many pods ever came to a node.
    pub fn ever_bound(&self) -> usize {
        self.placed.len()
    }

    /// The members of each gang.
    pub fn gangs(&self) -> BTreeMap<String, Members> {
        let mut gangs: BTreeMap<String, Members> = BTreeMap::new();
        for pod in self.pods.values() {
            let members = gangs.entry(pod.group.clone()).or_default();
            members.there += 1;
            members.bound += usize::from(pod.node.is_some());
        }
        gangs
    }

    /// Of a gang.
    pub fn gang(&self, group: &str) -> Members {
        self.gangs().get(group).copied().unwrap_or_default()
    }

    /// The gangs of which fewer than `minimum` members are on nodes, and some are.
    pub fn partly_bound(&self, minimum: impl Fn(&str) -> usize) -> Vec<(String, Members)> {
        let partly = |(group, members): &(String, Members)| (1..minimum(group)).contains(&members.bound);
        self.gangs().into_iter().filter(partly).collect()
    }

    fn arrive(&mut self, uid: &str, name: &str, node: String, milli_cpu: i64) {
        let used = self.used.entry(node.clone()).or_default();
        *used += milli_cpu;
        if *used > self.milli_cpu_per_node {
            let allocatable = self.milli_cpu_per_node;
            self.wrong.push(format!(
                "with pod {name} node {node} carries {used}m of {allocatable}m"
            ));
        }
        if let Some(before) = self.placed.insert(uid.to_owned(), node.clone())
            && before != node
        {
            self.wrong
                .push(format!("pod {name} ({uid}) was on {before} and is on {node}"));
        }
    }

    fn leave(&mut self, node: &str, milli_cpu: i64) {
        if let Some(used) = self.used.get_mut(node) {
            *used -= milli_cpu;
        }
    }
}

impl Notes for Seen {
    /// Whether it says anything new about where pods are.
    fn see(&mut self, pod: &Pod) -> bool {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let spec = pod.spec.as_ref();
        let node = spec.and_then(|spec| spec.node_name.clone());
        let node = node.filter(|node| !node.is_empty());
        let sighting = Sighting {
            name: pod.metadata.name.clone().unwrap_or_default(),
            group: group(pod),
            node: node.clone(),
            milli_cpu: milli_cpu(pod),
        };
        let (name, milli_cpu) = (sighting.name.clone(), sighting.milli_cpu);
        let before = self.pods.insert(uid.clone(), sighting);
        let before = match before {
            Some(before) if before.node == node => return false,
            Some(before) => before.node,
            None => None,
        };
        if let Some(before) = before {
            self.wrong
                .push(format!("pod {name} ({uid}) was on {before} and is on {node:?}"));
            self.leave(&before, milli_cpu);
        }
        if let Some(node) = node {
            self.arrive(&uid, &name, node, milli_cpu);
        }
        true
    }

    fn lose(&mut self, uid: &str) -> bool {
        let Some(pod) = self.pods.remove(uid) else {
            return false;
        };
        if let Some(node) = pod.node {
            self.leave(&node, pod.milli_cpu);
        }
        true
    }

    fn there(&self) -> Vec<String> {
        self.pods.keys().cloned().collect()
    }

    fn wrong(&self) -> &[String] {
        &self.wrong
    }

    fn summary(&self) -> String {
        format!(
            "{} of {} pods are on nodes: {:?}",
            self.bound(),
            self.pods.len(),
            self.gangs()
        )
    }
}

fn group(pod: &Pod) -> String {
    let annotations = pod.metadata.annotations.as_ref();
    let group = annotations.and_then(|all| all.get(annotations::KUBE_GROUP_NAME));
    group.cloned().unwrap_or_default()
}

fn milli_cpu(pod: &Pod) -> i64 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let requests = containers.filter_map(|container| container.resources.as_ref()?.requests.as_ref());
    requests
        .filter_map(|amounts| amounts.get("cpu"))
        .filter_map(|amount| Quantity::parse(&amount.0).ok())
        .map(Quantity::milli_value)
        .sum()
}

/// What is noted of the pods that are seen.
pub trait Notes: Send + Sync + 'static {
    /// A pod is there, new or changed. Whether that is worth telling.
    fn see(&mut self, pod: &Pod) -> bool;

    /// The pod with this UID is gone. Whether that is worth telling.
    fn lose(&mut self, uid: &str) -> bool;

    /// UIDs of the pods that are there.
    fn there(&self) -> Vec<String>;

    /// What must never happen and was seen.
    fn wrong(&self) -> &[String];

    /// What there is, in short.
    fn summary(&self) -> String;

    /// All pods that are there. What is not among them is gone.
    fn list(&mut self, pods: &[Pod]) {
        let there: BTreeSet<&str> = pods
            .iter()
            .filter_map(|pod| pod.metadata.uid.as_deref())
            .collect();
        for uid in self.there() {
            if !there.contains(uid.as_str()) {
                self.lose(&uid);
            }
        }
        for pod in pods {
            self.see(pod);
        }
    }
}

/// Watches until it is dropped.
pub struct Witness<N: Notes = Seen> {
    seen: watch::Receiver<N>,
    task: AbortHandle,
}

impl Witness {
    /// Begins to watch a namespace; each node has that many processors.
    ///
    /// # Errors
    /// When the pods cannot be listed.
    pub async fn call(client: &kube::Client, namespace: &str, cpu_per_node: i64) -> anyhow::Result<Witness> {
        let seen = Seen {
            milli_cpu_per_node: cpu_per_node * 1000,
            ..Seen::default()
        };
        Witness::with(client, namespace, seen).await
    }
}

impl<N: Notes> Witness<N> {
    /// Begins to watch a namespace and to take notes.
    ///
    /// # Errors
    /// When the pods cannot be listed.
    pub async fn with(client: &kube::Client, namespace: &str, notes: N) -> anyhow::Result<Witness<N>> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let (sender, receiver) = watch::channel(notes);
        let version = list(&pods, &sender).await.context("listing pods")?;
        let task = tokio::spawn(async move { follow(&pods, &sender, version).await });
        Ok(Witness {
            seen: receiver,
            task: task.abort_handle(),
        })
    }

    /// What was seen so far. Nothing more is seen while it is looked at.
    pub fn seen(&self) -> watch::Ref<'_, N> {
        self.seen.borrow()
    }

    /// Waits until something is seen.
    ///
    /// # Errors
    /// When it is not seen in time; the message says `what` was waited for, and what there was instead.
    pub async fn until(
        &self,
        what: &str,
        timeout: Duration,
        holds: impl FnMut(&N) -> bool,
    ) -> anyhow::Result<()> {
        let mut seen = self.seen.clone();
        match tokio::time::timeout(timeout, seen.wait_for(holds)).await {
            Ok(waited) => waited.map(drop).context("the witness has ended"),
            Err(_) => bail!("waited {timeout:?} until {what}; at the end: {}", self.summary()),
        }
    }

    /// Waits until for so long no pod came, went or was bound.
    ///
    /// # Errors
    /// When there is no rest in time.
    pub async fn at_rest(&self, quiet: Duration, timeout: Duration) -> anyhow::Result<()> {
        let mut seen = self.seen.clone();
        let rest = async {
            loop {
                seen.borrow_and_update();
                if tokio::time::timeout(quiet, seen.changed()).await.is_err() {
                    return;
                }
            }
        };
        let rested = tokio::time::timeout(timeout, rest).await;
        ensure!(rested.is_ok(), "no rest within {timeout:?}: {}", self.summary());
        Ok(())
    }

    /// Nothing was seen that must never happen.
    ///
    /// # Errors
    /// When something was: what it was.
    pub fn all_right(&self) -> anyhow::Result<()> {
        let seen = self.seen();
        let wrong = seen.wrong();
        ensure!(wrong.is_empty(), "seen: {}", wrong.join("; "));
        Ok(())
    }

    fn summary(&self) -> String {
        self.seen().summary()
    }
}

impl<N: Notes> Drop for Witness<N> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn list<N: Notes>(pods: &Api<Pod>, sender: &watch::Sender<N>) -> anyhow::Result<String> {
    let there = pods.list(&ListParams::default()).await?;
    sender.send_modify(|seen| seen.list(&there.items));
    there.metadata.resource_version.context("a list has a version")
}

/// Goes on after every break; from a new list if the version is too old by then.
async fn follow<N: Notes>(pods: &Api<Pod>, sender: &watch::Sender<N>, version: String) {
    let mut version = Some(version);
    loop {
        let from = match version.take() {
            Some(version) => Ok(version),
            None => list(pods, sender).await,
        };
        if let Ok(from) = from {
            version = read(pods, sender, from).await;
        }
        if version.is_none() {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Reads one watch to its end; where to go on, unless a list is needed.
async fn read<N: Notes>(pods: &Api<Pod>, sender: &watch::Sender<N>, from: String) -> Option<String> {
    let mut version = from;
    let settings = WatchParams::default().timeout(WATCH_SECONDS);
    let events = pods.watch(&settings, &version).await.ok()?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event.ok()? {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                version = pod.metadata.resource_version.clone()?;
                sender.send_if_modified(|seen| seen.see(&pod));
            }
            WatchEvent::Deleted(pod) => {
                version = pod.metadata.resource_version.clone()?;
                let uid = pod.metadata.uid.unwrap_or_default();
                sender.send_if_modified(|seen| seen.lose(&uid));
            }
            WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
            WatchEvent::Error(_) => return None,
        }
    }
    Some(version)
}
