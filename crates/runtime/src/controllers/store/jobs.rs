//! Jobs with what belongs to them: their pods, their Commands, and what is there of the objects of their plugins.

use super::{Key, Place, Store, key};
use crate::controllers::kinds::{Kind, number};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::batch::Job;
use volcano_api::bus::Command;
use volcano_api::core::{Pod, PodSpec};
use volcano_api::names::{annotations, conditions, kinds, labels, queues};
use volcano_api::scheduling::PodGroup;
use volcano_reconcile::job::{Footing, Known, Memory, claims_of, group_name};
use volcano_reconcile::plugins;

/// Annotations of a pod that the Job controller reads. The others are not kept.
const READ_ANNOTATIONS: [&str; 6] = [
    annotations::JOB_NAME,
    annotations::TASK_SPEC,
    annotations::JOB_VERSION,
    annotations::JOB_RETRY_COUNT,
    annotations::CONTROLLER_OUT_OF_SYNC,
    annotations::EVICTED_AT,
];

/// How long a name that somebody else's pod has is not asked for again. The watch tells when that pod is gone.
const TAKEN: Duration = Duration::from_secs(300);
/// The same for the first time: the watch may have told while the answer was on its way.
const TAKEN_AT_FIRST: Duration = Duration::from_secs(5);

/// A Job with what belongs to it. Pods and Commands may be seen before their Job.
#[derive(Default)]
pub struct JobEntry {
    job: Option<Job>,
    /// By name.
    pub(super) pods: BTreeMap<String, Pod>,
    /// By key.
    pub(super) commands: BTreeMap<String, Command>,
    /// What is remembered between two looks at it.
    pub memory: Memory,
    /// What may be relied on since this process leads.
    pub footing: Footing,
    /// The generation of the Job whose plugins' arguments were checked.
    pub checked: Option<i64>,
    objects: Option<(Instant, plugins::Observed)>,
}

impl JobEntry {
    /// The Job.
    pub fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Its pods.
    pub fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    /// Commands for it.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.commands.values()
    }

    /// What is there of the objects of its plugins, and when they were read.
    pub fn objects(&self) -> Option<&(Instant, plugins::Observed)> {
        self.objects.as_ref()
    }

    fn is_empty(&self) -> bool {
        self.job.is_none() && self.pods.is_empty() && self.commands.is_empty()
    }
}

/// Whether this is a Job of this project.
pub fn is_job(api_version: &str, kind: &str) -> bool {
    kind == kinds::JOB.kind && api_version == kinds::JOB.api_version()
}

/// The name of the Job that a pod belongs to.
pub fn job_of(pod: &Pod) -> Option<&str> {
    let owner = pod.metadata.controller()?;
    if !is_job(&owner.api_version, &owner.kind) {
        return None;
    }
    let named = pod.metadata.annotations.get(annotations::JOB_NAME);
    Some(named.map_or(&*owner.name, |name| &**name))
}

/// The name of the queue of a Job.
pub fn queue_of(job: &Job) -> &str {
    match job.spec.queue.as_str() {
        "" => queues::DEFAULT,
        queue => queue,
    }
}

/// The name in a key.
pub fn name_in(at: &str) -> &str {
    at.split_once('/').map_or(at, |(_, name)| name)
}

/// The pod without what nobody here reads. Of a hundred thousand pods, that is most of the memory.
fn trimmed(mut pod: Pod) -> Pod {
    pod.spec = PodSpec::default();
    let metadata = &mut pod.metadata;
    metadata
        .annotations
        .retain(|name, _| READ_ANNOTATIONS.contains(&&**name));
    metadata.labels.retain(|name, _| name == labels::PARTITION_ID);
    pod.status
        .conditions
        .retain(|condition| condition.kind == conditions::READY);
    pod.status.resource_claim_statuses = Vec::new();
    let statuses = &mut pod.status;
    let containers = statuses
        .container_statuses
        .iter_mut()
        .chain(&mut statuses.init_container_statuses);
    for container in containers {
        container.resources = None;
        container.allocated_resources = Default::default();
    }
    pod
}

/// Whether two states of a pod are the same but for their versions.
fn is_alike(one: &Pod, other: &mut Pod) -> bool {
    let version = std::mem::replace(
        &mut other.metadata.resource_version,
        one.metadata.resource_version.clone(),
    );
    let is_alike = one == other;
    other.metadata.resource_version = version;
    is_alike
}

/// What is known of the end of a pod from answers stays known: changes from before it may be told after it.
fn keep_end(known: &Pod, pod: &mut Pod) {
    let (known, new) = (&known.metadata, &mut pod.metadata);
    if known.uid != new.uid {
        return;
    }
    new.deletion_timestamp = new.deletion_timestamp.or(known.deletion_timestamp);
    if let Some(mark) = known.annotations.get(annotations::CONTROLLER_OUT_OF_SYNC) {
        let key = annotations::CONTROLLER_OUT_OF_SYNC.to_owned();
        new.annotations.entry(key).or_insert_with(|| mark.clone());
    }
}

impl Store {
    /// The entry of a Job.
    pub fn job(&self, at: &str) -> Option<&JobEntry> {
        self.jobs.get(at)
    }

    /// The entry of a Job, to remember something.
    pub fn job_mut(&mut self, at: &str) -> Option<&mut JobEntry> {
        self.jobs.get_mut(at)
    }

    /// Forgets what was remembered of all Jobs: somebody else may have worked on them.
    pub fn forget_memories(&mut self) {
        self.strangers.clear();
        for entry in self.jobs.values_mut() {
            entry.memory = Memory::default();
            entry.footing = Footing::default();
            entry.objects = None;
        }
    }

    /// Whether the watches have yet to tell of what the API server was asked for.
    pub fn is_behind(&mut self, at: &str) -> bool {
        let pods = self.told[Kind::Pod as usize];
        let Some(entry) = self.jobs.get_mut(at) else {
            return false;
        };
        let job = entry.job.as_ref();
        let job = job.map_or(0, |job| number(&job.metadata.resource_version));
        entry.footing.is_behind(Known { job, pods })
    }

    /// The API server answered with a Job.
    pub(super) fn answered_job(&mut self, job: Job) {
        let at = job.metadata.key();
        if self.is_news(Kind::Job, &job.metadata.resource_version) {
            self.put_job(job);
        }
        if let Some(entry) = self.jobs.get_mut(&at) {
            entry.footing.answered();
        }
    }

    pub(super) fn put_job(&mut self, job: Job) {
        let at = job.metadata.key();
        let entry = self.jobs.entry(at.clone()).or_default();
        let version = number(&job.metadata.resource_version);
        if let Some(known) = &entry.job {
            if number(&known.metadata.resource_version) >= version {
                return;
            }
            if known.metadata.uid != job.metadata.uid {
                entry.footing = Footing::default();
                entry.checked = None;
                entry.objects = None;
            }
        }
        entry.job = Some(job);
        self.changed.insert(Key::Job(at.clone()));
        self.changed.insert(Key::Expiry(at));
    }

    pub(super) fn remove_job(&mut self, at: &str, version: u64) {
        let Some(entry) = self.jobs.get_mut(at) else {
            return;
        };
        let is_it = |job: &Job| number(&job.metadata.resource_version) <= version;
        if !entry.job.as_ref().is_some_and(is_it) {
            return;
        }
        let job = entry.job.take();
        entry.checked = None;
        entry.objects = None;
        entry.memory = Memory::default();
        entry.footing = Footing::default();
        self.strangers.retain(|(of, _), _| of != at);
        if let Some(job) = job {
            self.forget_claims(at, &job);
            self.gone_jobs.push((at.to_owned(), job.spec.queue));
        }
        self.tidy_job(at);
        self.changed.insert(Key::Job(at.to_owned()));
    }

    /// Forgets a Job of which nothing is left.
    pub(super) fn tidy_job(&mut self, at: &str) {
        if self.jobs.get(at).is_some_and(JobEntry::is_empty) {
            self.jobs.remove(at);
        }
    }

    pub(super) fn put_job_pod(&mut self, job: String, pod: Pod) {
        let at = key(&pod.metadata.namespace, &pod.metadata.name);
        let mut pod = trimmed(pod);
        let version = number(&pod.metadata.resource_version);
        if !self.strangers.is_empty() {
            self.strangers.remove(&(job.clone(), pod.metadata.name.clone()));
        }
        let entry = self.jobs.entry(job.clone()).or_default();
        if let Some(known) = entry.pods.get_mut(&pod.metadata.name) {
            if number(&known.metadata.resource_version) >= version {
                return;
            }
            keep_end(known, &mut pod);
            if is_alike(known, &mut pod) {
                known.metadata.resource_version = pod.metadata.resource_version;
                return;
            }
        }
        entry.pods.insert(pod.metadata.name.clone(), pod);
        self.places.insert(at, Place::Job(job.clone()));
        self.changed.insert(Key::Job(job));
    }

    pub(super) fn remove_job_pod(&mut self, job: &str, at: &str, name: &str, version: u64) {
        let Some(entry) = self.jobs.get_mut(job) else {
            return;
        };
        let is_it = |pod: &Pod| number(&pod.metadata.resource_version) <= version;
        if !entry.pods.get(name).is_some_and(is_it) {
            return;
        }
        entry.pods.remove(name);
        self.places.remove(at);
        self.tidy_job(job);
        self.changed.insert(Key::Job(job.to_owned()));
    }

    /// A pod of somebody else has the name of one that a Job wants. Whether that is news.
    pub fn put_stranger(&mut self, job: &str, name: &str, now: Instant) -> bool {
        if !self.jobs.contains_key(job) {
            return false;
        }
        let at = (job.to_owned(), name.to_owned());
        let is_news = !self.strangers.contains_key(&at);
        let lasts = if is_news { TAKEN_AT_FIRST } else { TAKEN };
        self.strangers.insert(at, now + lasts);
        is_news
    }

    /// Names of pods of a Job that others have, and until when that is taken for granted.
    pub fn strangers(&self, job: &str, now: Instant) -> impl Iterator<Item = (&str, Instant)> {
        let of_job = self.strangers.range((job.to_owned(), String::new())..);
        let of_job = of_job.take_while(move |((of, _), _)| of == job);
        let names = of_job.map(|((_, name), until)| (name.as_str(), *until));
        names.filter(move |(_, until)| *until > now)
    }

    /// Those names as keys of pods.
    pub(super) fn names_of_strangers(&self) -> impl Iterator<Item = String> {
        let names = self.strangers.keys();
        names.filter_map(|(job, name)| Some(key(job.split_once('/')?.0, name)))
    }

    /// The pod of a name is gone: Jobs that want one of that name can make it.
    pub(super) fn free_name(&mut self, namespace: &str, name: &str) {
        let changed = &mut self.changed;
        self.strangers.retain(|(job, taken), _| {
            let is_it = taken == name && job.split_once('/').is_some_and(|(of, _)| of == namespace);
            if is_it {
                changed.insert(Key::Job(job.clone()));
            }
            !is_it
        });
    }

    /// The PodGroup of a Job: its own, or one of the Job's name that an old controller made for it.
    pub fn group_of_job(&self, job: &Job) -> Option<&PodGroup> {
        let metadata = &job.metadata;
        let own = self.groups.get(&key(&metadata.namespace, &group_name(job)));
        let is_ours = |group: &&PodGroup| {
            let owner = group.metadata.controller();
            owner.is_some_and(|owner| owner.uid == metadata.uid)
        };
        own.or_else(|| self.groups.get(&metadata.key()).filter(is_ours))
    }

    /// The claims that a Job uses and that are there, and the keys of those that are not.
    pub fn claims_for(&self, job: &Job) -> (BTreeSet<String>, Vec<String>) {
        let (mut there, mut missing) = (BTreeSet::new(), Vec::new());
        for name in claims_of(job) {
            let at = key(&job.metadata.namespace, &name);
            if self.claims.contains(&at) {
                there.insert(name);
            } else {
                missing.push(at);
            }
        }
        (there, missing)
    }

    /// Has a Job looked at when one of these claims comes.
    pub fn wait_for_claims(&mut self, job: &str, claims: Vec<String>) {
        for claim in claims {
            self.claim_users.entry(claim).or_default().insert(job.to_owned());
        }
    }

    /// A Job that is gone waits for nothing.
    fn forget_claims(&mut self, at: &str, job: &Job) {
        for name in claims_of(job) {
            let claim = key(&job.metadata.namespace, &name);
            if let Some(users) = self.claim_users.get_mut(&claim) {
                users.remove(at);
                if users.is_empty() {
                    self.claim_users.remove(&claim);
                }
            }
        }
    }

    /// What was read of the objects of a Job's plugins.
    pub fn put_objects(&mut self, at: &str, objects: plugins::Observed, read: Instant) {
        if let Some(entry) = self.jobs.get_mut(at) {
            entry.objects = Some((read, objects));
        }
    }

    /// An object of a Job's plugins was written.
    pub fn put_object(&mut self, at: &str, kind: volcano_api::names::Kind, object: &serde_json::Value) {
        let entry = self.jobs.get_mut(at);
        if let Some((_, objects)) = entry.and_then(|entry| entry.objects.as_mut()) {
            objects.insert(kind, object);
            self.changed.insert(Key::Job(at.to_owned()));
        }
    }

    /// An object of a Job's plugins was deleted.
    pub fn remove_object(&mut self, at: &str, kind: volcano_api::names::Kind, name: &str) {
        let entry = self.jobs.get_mut(at);
        if let Some((_, objects)) = entry.and_then(|entry| entry.objects.as_mut()) {
            objects.remove(kind, name);
            self.changed.insert(Key::Job(at.to_owned()));
        }
    }

    /// What is there of the objects of a Job's plugins is not known any more.
    pub fn forget_objects(&mut self, at: &str) {
        if let Some(entry) = self.jobs.get_mut(at) {
            entry.objects = None;
        }
    }
}
