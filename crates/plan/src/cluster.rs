//! The objects of a plan, completed as an API server and a starting scheduler would complete them.
//!
//! People write less than an API server stores: a pod without a priority, a node without `allocatable`, no
//! queues at all. What is filled in here is what a cluster would have filled in, no more.

use crate::fault::Fault;
use crate::input::{self, Entry, Settings};
use crate::objects::{self, Taken};
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use volcano_api::batch::Job;
use volcano_api::core::{Container, Pod, PriorityClass};
use volcano_api::meta::Resource as _;
use volcano_api::names::{annotations, critical, queues};
use volcano_api::scheduling::{Queue, QueueState};
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;

/// Priority classes that every cluster has.
const SYSTEM_CLASSES: &[(&str, i32)] = &[
    (critical::CLUSTER_PRIORITY_CLASS, 2_000_000_000),
    (critical::NODE_PRIORITY_CLASS, 2_000_001_000),
];
/// Priority of pods that name no class where no class is the default.
const DEFAULT_PRIORITY: i32 = 0;

/// The objects of a plan.
#[derive(Debug, Default)]
pub struct Cluster {
    /// The objects, each kind after those that it refers to.
    pub objects: Vec<Delta>,
    /// Jobs, if they were asked for.
    pub jobs: Vec<Job>,
    /// What came with them about how they are to be planned.
    pub settings: Settings,
    /// What the user should know about the input.
    pub notes: Vec<String>,
}

/// Numbers by priority class.
pub struct Priorities {
    by_class: BTreeMap<String, i32>,
    default: i32,
}

impl Cluster {
    /// Objects exactly as a source has them, for cases.
    pub fn exactly(source: &Source) -> Result<Self, Fault> {
        let mut cluster = Cluster::default();
        let mut collector = Collector::default();
        cluster.settings = input::read(source, &mut |entry| collector.take(&entry, false))?;
        cluster.take(collector);
        Ok(cluster)
    }

    fn take(&mut self, collector: Collector) {
        self.notes.extend(collector.notes());
        self.objects = collector.objects;
        self.jobs = collector.jobs.unwrap_or_default().into_values().collect();
        self.sort();
    }

    /// Puts the objects in the order in which they enter the model.
    pub fn sort(&mut self) {
        self.objects.sort_by_key(objects::rank);
    }

    /// Fills in what a cluster would have filled in.
    pub fn complete(&mut self, default_queue: &str) {
        let priorities = self.priorities();
        for object in &mut self.objects {
            match object {
                Delta::Pod(pod) => default_pod(pod, &priorities),
                Delta::Node(node) if node.status.allocatable.is_empty() => {
                    node.status.allocatable = node.status.capacity.clone();
                }
                _ => {}
            }
        }
        if !self.settings.complete {
            self.add_queues(default_queue);
        }
        self.sort();
    }

    /// Adds the queues that a scheduler makes when it starts.
    fn add_queues(&mut self, default_queue: &str) {
        let mut wanted = vec![queues::ROOT, queues::DEFAULT];
        if !wanted.contains(&default_queue) {
            wanted.push(default_queue);
        }
        for name in wanted {
            if self.queue(name).is_none() {
                self.objects.push(Delta::Queue(Box::new(own_queue(name))));
            }
        }
    }

    /// The queue of a name.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues().find(|queue| queue.metadata.name == name)
    }

    /// All queues.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.objects.iter().filter_map(|object| match object {
            Delta::Queue(queue) => Some(&**queue),
            _ => None,
        })
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.objects.iter().filter_map(|object| match object {
            Delta::Pod(pod) => Some(&**pod),
            _ => None,
        })
    }

    /// Whether there is an object of this kind and name.
    pub fn has(&self, kind: Kind, namespace: &str, name: &str) -> bool {
        self.objects
            .iter()
            .any(|object| object.key() == Some((kind, namespace, name)))
    }

    /// The numbers behind the priority classes.
    pub fn priorities(&self) -> Priorities {
        let classes = self.objects.iter().filter_map(|object| match object {
            Delta::PriorityClass(class) => Some(class),
            _ => None,
        });
        Priorities::of(classes)
    }

    /// What to know about pods that the scheduler leaves alone.
    pub fn note_strangers(&mut self, scheduler_names: &[String]) {
        let waiting = |pod: &&Pod| pod.spec.node_name.is_empty() && !pod.status.phase.is_terminated();
        let mut others: BTreeMap<&str, usize> = BTreeMap::new();
        let mut ungrouped = 0;
        for pod in self.pods().filter(waiting) {
            if !scheduler_names.contains(&pod.spec.scheduler_name) {
                *others.entry(pod.spec.scheduler_name.as_str()).or_default() += 1;
            } else if !pod
                .metadata
                .annotations
                .contains_key(annotations::KUBE_GROUP_NAME)
            {
                ungrouped += 1;
            }
        }
        let mut notes = Vec::new();
        for (scheduler, count) in others {
            let scheduler = if scheduler.is_empty() {
                "the default scheduler"
            } else {
                scheduler
            };
            notes.push(format!(
                "{} for {scheduler}, not for {}: left alone (--scheduler-name adds a name)",
                counted(count, "pending pod is", "pending pods are"),
                scheduler_names.join(", ")
            ));
        }
        if ungrouped > 0 {
            notes.push(format!(
                "{} no PodGroup (annotation {}): left alone; in a cluster the controller makes one",
                counted(ungrouped, "pending pod has", "pending pods have"),
                annotations::KUBE_GROUP_NAME
            ));
        }
        self.notes.extend(notes);
    }
}

/// `1 pod is`, `2 pods are`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Takes in sources, one after the other; an object that comes twice replaces the first.
#[derive(Default)]
pub struct Reader {
    collector: Collector,
    settings: Settings,
}

impl Reader {
    /// Keeps Jobs as well, for explaining them; a plan looks at their PodGroups and pods alone.
    #[must_use]
    pub fn with_jobs() -> Self {
        let mut reader = Reader::default();
        reader.collector.jobs = Some(BTreeMap::new());
        reader
    }

    /// Takes the objects of a source in.
    ///
    /// # Errors
    /// When it holds something that is not an object, or an object that cannot be read.
    pub fn add(&mut self, source: &Source) -> Result<(), Fault> {
        let collector = &mut self.collector;
        let settings = input::read(source, &mut |entry| collector.take(&entry, true))?;
        self.settings.merge(settings);
        Ok(())
    }

    /// The cluster, if there was any object at all.
    ///
    /// # Errors
    /// When there was none.
    pub fn finish(self) -> Result<Cluster, Fault> {
        if self.collector.seen == 0 {
            return Err(Fault::new("no objects in the input")
                .hint("a plan needs nodes, pods, PodGroups and queues: kubectl get nodes,pods,podgroups,queues -A -o json | volcano plan -f -"));
        }
        let mut cluster = Cluster {
            settings: self.settings,
            ..Cluster::default()
        };
        cluster.take(self.collector);
        Ok(cluster)
    }
}

/// What is read, before it is put in order.
#[derive(Default)]
struct Collector {
    objects: Vec<Delta>,
    jobs: Option<BTreeMap<String, Job>>,
    known: BTreeSet<(Kind, String, String)>,
    replaced: Vec<String>,
    skipped: BTreeMap<(String, &'static str), usize>,
    seen: usize,
}

impl Collector {
    fn take(&mut self, entry: &Entry<'_>, watch_repeats: bool) -> Result<(), Fault> {
        self.seen += 1;
        if let Some(jobs) = &mut self.jobs
            && objects::is_job(entry)
        {
            let job = objects::job(entry)?;
            jobs.insert(job.metadata.key(), job);
            return Ok(());
        }
        let object = match objects::take(entry)? {
            Taken::Object(object) => object,
            Taken::Skipped(why) => {
                *self.skipped.entry((entry.full_kind(), why)).or_default() += 1;
                return Ok(());
            }
        };
        if watch_repeats && let Some((kind, namespace, name)) = object.key() {
            let key = (kind, namespace.to_owned(), name.to_owned());
            if !self.known.insert(key) {
                self.replaced.push(format!(
                    "{}: replaces the one of the same name before it",
                    entry.title()
                ));
            }
        }
        self.objects.push(object);
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let skipped = self.skipped.iter().map(|((kind, why), &count)| {
            format!(
                "skipped {} of kind {kind}: {why}",
                counted(count, "object", "objects")
            )
        });
        self.replaced.iter().cloned().chain(skipped).collect()
    }
}

impl Priorities {
    /// Numbers by the names of classes.
    pub fn by_class(&self) -> &BTreeMap<String, i32> {
        &self.by_class
    }

    fn of<'a>(classes: impl Iterator<Item = &'a PriorityClass>) -> Self {
        let system = SYSTEM_CLASSES
            .iter()
            .map(|&(name, value)| (name.to_owned(), value));
        let mut priorities = Priorities {
            by_class: system.collect(),
            default: DEFAULT_PRIORITY,
        };
        for class in classes {
            priorities
                .by_class
                .insert(class.metadata.name.clone(), class.value);
            if class.global_default {
                priorities.default = class.value;
            }
        }
        priorities
    }

    /// The number of a class that exists.
    pub fn get(&self, class: &str) -> Option<i32> {
        self.by_class.get(class).copied()
    }
}

/// What the API server fills in when a pod is created.
pub fn default_pod(pod: &mut Pod, priorities: &Priorities) {
    let spec = &mut pod.spec;
    for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
        request_limits(container);
    }
    if spec.priority.is_none() {
        let named = (!spec.priority_class_name.is_empty()).then(|| priorities.get(&spec.priority_class_name));
        spec.priority = Some(named.flatten().unwrap_or(priorities.default));
    }
}

/// A limit without a request is a request as well.
fn request_limits(container: &mut Container) {
    let resources = &mut container.resources;
    for (name, amount) in &resources.limits {
        resources.requests.entry(name.clone()).or_insert(*amount);
    }
}

/// A queue that the scheduler makes when it starts.
fn own_queue(name: &str) -> Queue {
    let mut queue = Queue::named("", name);
    queue.metadata.uid = objects::made_uid("", name);
    queue.spec.weight = 1;
    queue.spec.reclaimable = Some(name != queues::ROOT);
    queue.status.state = QueueState::Open;
    queue
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Cluster {
        let mut cluster = Cluster::exactly(&Source::from_text("t", text)).unwrap();
        cluster.complete(queues::DEFAULT);
        cluster
    }

    #[test]
    fn pods_are_completed_as_by_the_api_server() {
        let cluster = read(
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priorityClassName: high, \
              containers: [{resources: {limits: {cpu: 2}}}]}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: x}, spec: {priority: 3, priorityClassName: high, \
              containers: [{resources: {limits: {cpu: 2}, requests: {cpu: 1}}}]}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {priorityClassName: system-node-critical}}",
        );
        let pods: Vec<_> = cluster.pods().collect();
        assert_eq!(
            (pods[0].metadata.namespace.as_str(), pods[0].metadata.uid.as_str()),
            ("default", "default-p")
        );
        assert_eq!(pods[0].spec.priority, Some(7));
        assert_eq!(
            pods[0].spec.containers[0].resources.requests["cpu"].to_string(),
            "2"
        );
        assert_eq!(pods[1].spec.priority, Some(3));
        assert_eq!(
            pods[1].spec.containers[0].resources.requests["cpu"].to_string(),
            "1"
        );
        assert_eq!(pods[2].spec.priority, Some(2_000_001_000));
    }

    #[test]
    fn the_queues_that_always_exist_are_there_once() {
        let cluster = read(
            "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 5}}",
        );
        let queues: Vec<_> = cluster
            .queues()
            .map(|q| (q.metadata.name.as_str(), q.spec.weight, q.spec.reclaimable))
            .collect();
        assert_eq!(queues, [("default", 5, None), ("root", 1, Some(false))]);
    }

    #[test]
    fn no_queue_is_added_to_a_cluster_that_says_that_it_is_complete() {
        let cluster = read(
            r#"{"complete": true, "objects": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}]}"#,
        );
        assert_eq!(cluster.queues().count(), 0);
    }

    #[test]
    fn allocatable_defaults_to_capacity() {
        let cluster = read("{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: {cpu: 4}}}");
        let allocatable = cluster.objects.iter().find_map(|object| match object {
            Delta::Node(node) => Some(node.status.allocatable["cpu"].to_string()),
            _ => None,
        });
        assert_eq!(allocatable.as_deref(), Some("4"));
    }

    #[test]
    fn what_is_not_used_is_counted_by_kind() {
        let cluster = read(
            "{apiVersion: apps/v1, kind: Deployment}\n---\n{apiVersion: apps/v1, kind: Deployment}\n---\n\
             {apiVersion: batch.volcano.sh/v1alpha1, kind: Job}",
        );
        assert_eq!(
            cluster.notes[0],
            "skipped 2 objects of kind apps/v1 Deployment: not used by scheduling"
        );
        assert!(
            cluster.notes[1].contains("1 object of kind batch.volcano.sh/v1alpha1 Job"),
            "{:?}",
            cluster.notes
        );
    }

    #[test]
    fn pods_that_are_left_alone_are_told() {
        let mut cluster = read(
            "{apiVersion: v1, kind: Pod, metadata: {name: p}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {schedulerName: volcano}}\n---\n\
             {apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {nodeName: n}}",
        );
        cluster.note_strangers(&["volcano".to_owned()]);
        assert_eq!(cluster.notes.len(), 2, "{:?}", cluster.notes);
        assert!(cluster.notes[0].starts_with("1 pending pod is for the default scheduler, not for volcano"));
        assert!(cluster.notes[1].starts_with("1 pending pod has no PodGroup"));
    }
}
