//! What is known of the cluster, change by change, and what has to be looked at since something changed.
//!
//! ```text
//! watch ────────> take ─────┐
//!                           ├──> objects by what they belong to ──> keys to look at
//! own writes ───> answered ─┘
//! ```
//!
//! The answer to a write is in here before the watch tells of it, so that nothing is decided on what was before: no pod
//! is made twice. Within a kind the API server counts versions up, and a watch tells of changes in their order. So of
//! two states of an object the one with the higher version counts, and an answer that is not newer than what the watch
//! has told of anything of that kind is old news.

mod gangs;
mod jobs;
#[cfg(test)]
mod tests;

use super::kinds::{Change, Kind, Spot, number};
use crate::clock::Clock;
use crate::watch::{Feed, Listed};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;
use volcano_api::bus::Command;
use volcano_api::core::Pod;
use volcano_api::names::annotations;
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_reconcile::pod_group;
use volcano_reconcile::queue::Index;

pub use gangs::Gang;
pub use jobs::{JobEntry, job_of, queue_of};

use super::kinds::Controlling;

/// Something to look at: what it is, and `namespace/name` or the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A Job, its pods and its Commands.
    Job(String),
    /// A Job that is to be deleted some time after its end.
    Expiry(String),
    /// A Queue and its Commands.
    Queue(String),
    /// The PodGroup of pods that have no Job.
    Gang(String),
}

/// `namespace/name`.
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// What belongs to what, of a pod that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Job(String),
    Gang(String),
}

/// What is known of the cluster.
pub struct Store {
    options: pod_group::Options,
    clock: Clock,
    /// Jobs, by key.
    jobs: FxHashMap<String, JobEntry>,
    /// Jobs that wait for a claim, by the key of the claim.
    claim_users: FxHashMap<String, BTreeSet<String>>,
    /// Names of pods that Jobs want and that pods of others have, by the key of the Job, and until when they are not asked
    /// for again.
    strangers: BTreeMap<(String, String), Instant>,
    groups: FxHashMap<String, PodGroup>,
    gangs: FxHashMap<String, Gang>,
    /// Where the pods are that are kept, by key.
    places: FxHashMap<String, Place>,
    /// Job or Queue of a Command, and its version, by key.
    commands: FxHashMap<String, (Option<String>, u64)>,
    queues: Index,
    claims: FxHashSet<String>,
    priorities: BTreeMap<String, i32>,
    workloads: FxHashMap<(Kind, String), (String, u64)>,
    /// The newest version that the watch of a kind has told of.
    told: [u64; Kind::COUNT],
    missing: BTreeSet<Kind>,
    /// Whether everything was listed in the term that this process is in: then nothing that is known of a Job is older.
    pub is_of_term: bool,
    changed: BTreeSet<Key>,
    /// Keys and queues of Jobs that are gone.
    gone_jobs: Vec<(String, String)>,
}

impl Store {
    /// Nothing is known yet, and these kinds are to be listed.
    pub fn new(options: pod_group::Options, kinds: impl IntoIterator<Item = Kind>, clock: Clock) -> Self {
        Store {
            options,
            clock,
            jobs: FxHashMap::default(),
            claim_users: FxHashMap::default(),
            strangers: BTreeMap::new(),
            groups: FxHashMap::default(),
            gangs: FxHashMap::default(),
            places: FxHashMap::default(),
            commands: FxHashMap::default(),
            queues: Index::default(),
            claims: FxHashSet::default(),
            priorities: BTreeMap::new(),
            workloads: FxHashMap::default(),
            told: [0; Kind::COUNT],
            missing: kinds.into_iter().collect(),
            is_of_term: false,
            changed: BTreeSet::new(),
            gone_jobs: Vec::new(),
        }
    }

    /// The kinds that have not been listed yet. Nothing is decided before all of them are.
    pub fn missing(&self) -> &BTreeSet<Kind> {
        &self.missing
    }

    /// Takes in what a watch hands on.
    pub fn take(&mut self, feed: Feed<Controlling>) {
        match feed {
            Feed::Changes(changes) => changes.into_iter().for_each(|change| self.change(change)),
            Feed::Listed(kind, listed) => {
                if let Some(listed) = listed {
                    self.forget_others(kind, &listed);
                    // What came and went between two lists is told by none of their objects.
                    self.heard(kind, &listed.version);
                }
                self.missing.remove(&kind);
            }
            Feed::Trouble(..) => {}
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Job(job) => {
                self.heard(Kind::Job, &job.metadata.resource_version);
                self.put_job(*job);
            }
            Change::PodGroup(group) => {
                self.heard(Kind::PodGroup, &group.metadata.resource_version);
                self.put_group(*group);
            }
            Change::Queue(queue) => {
                self.heard(Kind::Queue, &queue.metadata.resource_version);
                self.put_queue(*queue);
            }
            Change::Command(command) => {
                self.heard(Kind::Command, &command.metadata.resource_version);
                self.put_command(*command);
            }
            Change::Pod(pod) => {
                self.heard(Kind::Pod, &pod.metadata.resource_version);
                self.put_pod(*pod);
            }
            Change::Claim(spot) => {
                self.told[Kind::Claim as usize] = self.told[Kind::Claim as usize].max(spot.version);
                self.put_claim(&spot.namespace, &spot.name);
            }
            Change::PriorityClass(class) => {
                self.priorities.insert(class.metadata.name, class.value);
            }
            Change::Workload(kind, workload) => self.put_workload(kind, *workload),
            Change::Gone(kind, spot) => {
                self.told[kind as usize] = self.told[kind as usize].max(spot.version);
                self.gone(kind, &spot);
            }
        }
    }

    fn heard(&mut self, kind: Kind, version: &str) {
        let told = &mut self.told[kind as usize];
        *told = (*told).max(number(version));
    }

    /// Whether an answer with this version is newer than all that the watch of its kind has told.
    fn is_news(&self, kind: Kind, version: &str) -> bool {
        number(version) > self.told[kind as usize]
    }

    /// What a new list of a kind lacks is gone, unless it was made after the list.
    fn forget_others(&mut self, kind: Kind, listed: &Listed) {
        let known: Vec<String> = match kind {
            Kind::Job => self
                .jobs
                .iter()
                .filter(|(_, entry)| entry.job().is_some())
                .map(|(key, _)| key.clone())
                .collect(),
            Kind::PodGroup => self.groups.keys().cloned().collect(),
            Kind::Pod => self
                .places
                .keys()
                .cloned()
                .chain(self.names_of_strangers())
                .collect(),
            Kind::Command => self.commands.keys().cloned().collect(),
            Kind::Claim => self.claims.iter().cloned().collect(),
            Kind::Queue => self.queues.counts().map(|(name, _)| key("", name)).collect(),
            Kind::PriorityClass => self.priorities.keys().map(|name| key("", name)).collect(),
            Kind::ReplicaSet | Kind::StatefulSet => {
                let of_kind = self.workloads.keys().filter(|(other, _)| *other == kind);
                of_kind.map(|(_, key)| key.clone()).collect()
            }
        };
        let version = match listed.version.as_str() {
            "" => u64::MAX,
            version => number(version),
        };
        for known in known {
            let Some((namespace, name)) = known.split_once('/') else {
                continue;
            };
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            if !listed.names.contains(&(namespace.clone(), name.clone())) {
                let spot = Spot {
                    namespace,
                    name,
                    version,
                };
                self.gone(kind, &spot);
            }
        }
    }

    /// An object was gone at a version. One that is newer is another one.
    fn gone(&mut self, kind: Kind, spot: &Spot) {
        let at = key(&spot.namespace, &spot.name);
        match kind {
            Kind::Job => self.remove_job(&at, spot.version),
            Kind::PodGroup => self.remove_group(&at, spot.version),
            Kind::Pod => {
                self.remove_pod(&at, &spot.name, spot.version);
                self.free_name(&spot.namespace, &spot.name);
            }
            Kind::Command => self.remove_command(&at, spot.version),
            Kind::Claim => {
                self.claims.remove(&at);
            }
            Kind::Queue => {
                let known = self.queues.queue(&spot.name);
                if known.is_some_and(|queue| number(&queue.metadata.resource_version) <= spot.version) {
                    self.queues.remove_queue(&spot.name);
                    self.changed.insert(Key::Queue(spot.name.clone()));
                    self.look_at_queues();
                }
            }
            Kind::PriorityClass => {
                self.priorities.remove(&spot.name);
            }
            Kind::ReplicaSet | Kind::StatefulSet => self.remove_workload(kind, &at),
        }
    }

    fn put_queue(&mut self, queue: Queue) {
        let version = number(&queue.metadata.resource_version);
        let known = self.queues.queue(&queue.metadata.name);
        if known.is_some_and(|known| number(&known.metadata.resource_version) >= version) {
            return;
        }
        // Jobs wait for their queue. Before everything is listed none of them has been looked at.
        if known.is_none() && self.missing.is_empty() {
            let name = &queue.metadata.name;
            let wait = |entry: &JobEntry| entry.job().is_some_and(|job| jobs::queue_of(job) == name);
            let waiting = self.jobs.iter().filter(|(_, entry)| wait(entry));
            self.changed.extend(waiting.map(|(at, _)| Key::Job(at.clone())));
        }
        self.queues.put_queue(queue);
        self.look_at_queues();
    }

    fn look_at_queues(&mut self) {
        let changed = self.queues.take_changed().into_iter();
        self.changed.extend(changed.map(Key::Queue));
    }

    fn put_group(&mut self, mut group: PodGroup) {
        let at = group.metadata.key();
        let version = number(&group.metadata.resource_version);
        let known = self.groups.get(&at);
        if known.is_some_and(|known| number(&known.metadata.resource_version) >= version) {
            return;
        }
        if let Some(known) = known.filter(|known| known.metadata.uid == group.metadata.uid) {
            // A deletion that was asked for stays so: changes from before it may be told after it.
            let metadata = &mut group.metadata;
            metadata.deletion_timestamp = metadata.deletion_timestamp.or(known.metadata.deletion_timestamp);
        }
        let is_news = known.is_none_or(|known| !is_alike(known, &group));
        self.queues.put_group(&group);
        self.look_at_queues();
        if is_news {
            self.changed.extend(self.keys_of_group(&group));
        }
        self.groups.insert(at, group);
    }

    fn remove_group(&mut self, at: &str, version: u64) {
        let is_it = |group: &PodGroup| number(&group.metadata.resource_version) <= version;
        if !self.groups.get(at).is_some_and(is_it) {
            return;
        }
        let Some(group) = self.groups.remove(at) else {
            return;
        };
        self.queues.remove_group(at);
        self.look_at_queues();
        self.changed.extend(self.keys_of_group(&group));
    }

    /// What is looked at when a PodGroup changes: its Job, and the pods that it was made for.
    fn keys_of_group(&self, group: &PodGroup) -> Vec<Key> {
        let metadata = &group.metadata;
        let owner = metadata.controller();
        let job = owner.filter(|owner| jobs::is_job(&owner.api_version, &owner.kind));
        let job = job.map(|owner| Key::Job(key(&metadata.namespace, &owner.name)));
        let at = metadata.key();
        let gang = self.gangs.contains_key(&at).then_some(Key::Gang(at.clone()));
        job.into_iter().chain(gang).collect()
    }

    fn put_command(&mut self, command: Command) {
        let at = command.metadata.key();
        let version = number(&command.metadata.resource_version);
        if self.commands.get(&at).is_some_and(|(_, known)| *known >= version) {
            return;
        }
        let Some(target) = &command.target else { return };
        let job = jobs::is_job(&target.api_version, &target.kind)
            .then(|| key(&command.metadata.namespace, &target.name));
        self.commands.insert(at.clone(), (job.clone(), version));
        match job {
            Some(job) => {
                self.jobs
                    .entry(job.clone())
                    .or_default()
                    .commands
                    .insert(at, command);
                self.changed.insert(Key::Job(job));
            }
            None => {
                self.queues.put_command(command);
                self.look_at_queues();
            }
        }
    }

    fn remove_command(&mut self, at: &str, version: u64) {
        if self.commands.get(at).is_none_or(|(_, known)| *known > version) {
            return;
        }
        match self.commands.remove(at) {
            Some((Some(job), _)) => {
                if let Some(entry) = self.jobs.get_mut(&job) {
                    entry.commands.remove(at);
                }
                self.tidy_job(&job);
                self.changed.insert(Key::Job(job));
            }
            _ => {
                self.queues.remove_command(at);
                self.look_at_queues();
            }
        }
    }

    fn put_claim(&mut self, namespace: &str, name: &str) {
        let at = key(namespace, name);
        if let Some(users) = self.claim_users.remove(&at) {
            self.changed.extend(users.into_iter().map(Key::Job));
        }
        self.claims.insert(at);
    }

    fn put_pod(&mut self, pod: Pod) {
        let at = key(&pod.metadata.namespace, &pod.metadata.name);
        let place = self.place_of(&pod);
        let before = self.places.get(&at).cloned();
        if before != place && before.is_some() {
            let version = number(&pod.metadata.resource_version);
            self.remove_pod(&at, &pod.metadata.name, version);
            if self.places.contains_key(&at) {
                return; // What is known is newer.
            }
        }
        match place {
            Some(Place::Job(job)) => self.put_job_pod(job, pod),
            Some(Place::Gang(gang)) => self.put_gang_pod(gang, pod),
            None => {}
        }
    }

    /// Where a pod belongs; nowhere when nobody here needs it. A cluster has a hundred thousand of those.
    fn place_of(&self, pod: &Pod) -> Option<Place> {
        let metadata = &pod.metadata;
        if let Some(job) = jobs::job_of(pod) {
            return Some(Place::Job(key(&metadata.namespace, job)));
        }
        if !self.options.schedulers.contains(&pod.spec.scheduler_name) {
            return None;
        }
        let own = gangs::group_of(pod);
        let named = metadata.annotations.get(annotations::KUBE_GROUP_NAME);
        let is_ours = named.is_none_or(|named| named.is_empty() || *named == own);
        is_ours.then(|| Place::Gang(key(&metadata.namespace, &own)))
    }

    fn remove_pod(&mut self, at: &str, name: &str, version: u64) {
        match self.places.get(at).cloned() {
            Some(Place::Job(job)) => self.remove_job_pod(&job, at, name, version),
            Some(Place::Gang(gang)) => self.remove_gang_pod(&gang, at, name, version),
            None => {}
        }
    }

    /// What has to be looked at since something changed for it; each is named once.
    pub fn take_changed(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.changed)
    }

    /// Keys and queues of the Jobs that are gone since this was asked last.
    pub fn take_gone_jobs(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.gone_jobs)
    }

    /// Everything: who begins to lead has to look at all of it.
    pub fn all(&self) -> BTreeSet<Key> {
        let jobs = self.jobs.keys();
        let jobs = jobs.flat_map(|job| [Key::Job(job.clone()), Key::Expiry(job.clone())]);
        let queues = self.queues.names().map(|name| Key::Queue(name.to_owned()));
        let gangs = self.gangs.keys().cloned().map(Key::Gang);
        jobs.chain(queues).chain(gangs).collect()
    }

    /// The queues.
    pub fn queues(&self) -> &Index {
        &self.queues
    }

    /// Values of priority classes by name.
    pub fn priorities(&self) -> &BTreeMap<String, i32> {
        &self.priorities
    }

    /// The PodGroup `namespace/name`.
    pub fn group(&self, at: &str) -> Option<&PodGroup> {
        self.groups.get(at)
    }

    /// Settings of the PodGroup controller.
    pub fn options(&self) -> &pod_group::Options {
        &self.options
    }
}

/// What came of a write: an object as the API server answered with it, or that one is on its way out.
#[derive(Debug)]
pub enum Answer {
    /// An object of a kind that is watched.
    Object(Box<Change>),
    /// The deletion of an object was asked for; it may be gone.
    Leaving {
        /// Its kind.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// As the API server left it, if it is still there.
        left: Option<Box<Change>>,
    },
    /// A pod that was to be changed is gone.
    PodGone {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
}

impl Store {
    /// Takes in what the API server answered to a write.
    pub fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Object(change) => self.put_answer(*change),
            Answer::Leaving {
                kind,
                namespace,
                name,
                uid,
                left,
            } => {
                if let Some(left) = left {
                    self.put_answer(*left);
                }
                self.leave(kind, &key(&namespace, &name), &uid);
            }
            Answer::PodGone { namespace, name, uid } => self.leave_pod(&key(&namespace, &name), &uid, true),
        }
    }

    fn put_answer(&mut self, change: Change) {
        match change {
            Change::Job(job) => self.answered_job(*job),
            Change::PodGroup(group) if self.is_news(Kind::PodGroup, &group.metadata.resource_version) => {
                self.put_group(*group);
            }
            Change::Queue(queue) if self.is_news(Kind::Queue, &queue.metadata.resource_version) => {
                self.put_queue(*queue);
            }
            Change::Pod(pod) if self.is_news(Kind::Pod, &pod.metadata.resource_version) => {
                self.put_pod(*pod);
            }
            Change::Claim(spot) if spot.version > self.told[Kind::Claim as usize] => {
                self.put_claim(&spot.namespace, &spot.name);
            }
            _ => {}
        }
    }

    /// An object that is still known under its UID is on its way out, whenever the watch tells that it is gone.
    fn leave(&mut self, kind: Kind, at: &str, uid: &str) {
        match kind {
            Kind::Pod => self.leave_pod(at, uid, false),
            Kind::PodGroup => {
                let group = self.groups.get_mut(at).filter(|group| group.metadata.uid == uid);
                if let Some(group) = group {
                    let metadata = &mut group.metadata;
                    metadata.deletion_timestamp.get_or_insert(self.clock.now());
                    let group = group.clone();
                    self.changed.extend(self.keys_of_group(&group));
                }
            }
            Kind::Command => self.remove_command(at, u64::MAX),
            _ => {}
        }
    }

    /// A pod is on its way out; a `marked` one has said all that it had to say.
    fn leave_pod(&mut self, at: &str, uid: &str, marked: bool) {
        if let Some(Place::Job(job)) = self.places.get(at).cloned() {
            let entry = self.jobs.get_mut(&job);
            let pod = entry.and_then(|entry| entry.pods.get_mut(jobs::name_in(at)));
            if let Some(pod) = pod.filter(|pod| pod.metadata.uid == uid) {
                pod.metadata.deletion_timestamp.get_or_insert(self.clock.now());
                if marked {
                    let mark = annotations::CONTROLLER_OUT_OF_SYNC.to_owned();
                    pod.metadata.annotations.insert(mark, "true".to_owned());
                }
                self.changed.insert(Key::Job(job));
            }
        }
    }
}

/// Whether two states of a PodGroup are the same to whoever made it: the scheduler's counters are not looked at.
fn is_alike(one: &PodGroup, other: &PodGroup) -> bool {
    let (a, b) = (&one.metadata, &other.metadata);
    a.uid == b.uid
        && a.deletion_timestamp == b.deletion_timestamp
        && a.annotations == b.annotations
        && a.labels == b.labels
        && one.spec == other.spec
        && one.status.phase == other.status.phase
        && one.status.conditions == other.status.conditions
}
