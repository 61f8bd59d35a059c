//! Generated clusters: the same objects in the same order every time, made one by one, so that a million pods need
//! not be in memory twice.
//!
//! Pods look like those of the job controller: own names, index and job in labels and annotations, an owner, one
//! container with requests, the tolerations that the API server adds.

use volcano_api::core::{Node, Pod};
use volcano_api::names::{annotations, labels};
use volcano_api::quantity::Quantity;
use volcano_api::scheduling::PodGroup;
use volcano_api::time::Time;
use volcano_engine::model::delta::Delta;

use crate::build;

/// The moment at which generated clusters begin.
pub const BEGIN: Time = Time::from_unix_seconds(1_700_000_000);

/// Label of a node: the pool that it belongs to.
pub const POOL: &str = "node.example.com/pool";

/// Taint of nodes with GPUs.
const GPU: &str = "nvidia.com/gpu";

/// Priority classes of generated clusters.
const PRIORITY_CLASSES: [(&str, i32); 2] = [("batch-low", 100), ("batch-high", 10_000)];

/// Zones that nodes are spread over.
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// Gang sizes of a mixed workload: ten gangs have 1,000 pods.
const MIXED_SIZES: [usize; 10] = [8, 16, 32, 64, 80, 100, 120, 130, 150, 300];

/// A cluster and the work that waits in it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of gangs.
    pub gangs: usize,
    /// Queues beside `root` and `default`, each with its weight.
    pub queues: Vec<(String, i32)>,
    node: fn(usize) -> Node,
    gang: fn(usize) -> Gang,
}

/// A gang: a PodGroup and the pods of its tasks.
#[derive(Clone, Debug)]
pub struct Gang {
    /// Namespace.
    pub namespace: String,
    /// Name of the job and of its PodGroup.
    pub name: String,
    /// The queue that it waits in.
    pub queue: String,
    /// Pods that must start together.
    pub min_member: usize,
    /// Name of the priority class; empty for none.
    pub priority_class: &'static str,
    /// When it was made.
    pub created: Time,
    /// Its tasks.
    pub tasks: Vec<TaskTemplate>,
}

/// Equal pods of a gang.
#[derive(Clone, Debug)]
pub struct TaskTemplate {
    /// Name of the task.
    pub name: &'static str,
    /// Number of pods.
    pub replicas: usize,
    /// CPU of a pod.
    pub cpu: &'static str,
    /// Memory of a pod.
    pub memory: &'static str,
    /// GPUs of a pod; empty for none.
    pub gpus: &'static str,
    /// The pool that it must run in; empty for any.
    pub pool: &'static str,
}

impl TaskTemplate {
    /// Pods that request CPU and memory and may run anywhere.
    #[must_use]
    pub fn new(name: &'static str, replicas: usize, cpu: &'static str, memory: &'static str) -> Self {
        TaskTemplate {
            name,
            replicas,
            cpu,
            memory,
            gpus: "",
            pool: "",
        }
    }

    fn requests(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = [("cpu", self.cpu), ("memory", self.memory), (GPU, self.gpus)];
        all.into_iter().filter(|(_, amount)| !amount.is_empty())
    }
}

impl Gang {
    /// A gang in a namespace, without tasks, to be admitted to a queue.
    #[must_use]
    pub fn new(namespace: &str, name: &str, queue: &str, created: Time) -> Self {
        Gang {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            queue: queue.to_owned(),
            min_member: 0,
            priority_class: "",
            created,
            tasks: Vec::new(),
        }
    }

    /// Adds pods, all of which must start with the others.
    #[must_use]
    pub fn task(mut self, task: TaskTemplate) -> Self {
        self.min_member += task.replicas;
        self.tasks.push(task);
        self
    }

    /// The number of its pods.
    #[must_use]
    pub fn size(&self) -> usize {
        self.tasks.iter().map(|task| task.replicas).sum()
    }

    /// Its PodGroup, with the resources that its minimum needs.
    #[must_use]
    pub fn pod_group(&self) -> PodGroup {
        let mut group = build::pod_group(&self.namespace, &self.name)
            .queue(&self.queue)
            .min_member(i32::try_from(self.min_member).unwrap_or(i32::MAX))
            .priority_class(self.priority_class)
            .created(self.created);
        let mut left = self.min_member;
        for task in &self.tasks {
            let pods = task.replicas.min(left);
            left -= pods;
            for (name, amount) in task.requests() {
                group = group.min_resource(name, times(build::quantity(amount), pods));
            }
        }
        group.build()
    }

    /// Its pods, task by task.
    pub fn pods(&self) -> impl Iterator<Item = Pod> + '_ {
        let indexed = self
            .tasks
            .iter()
            .flat_map(|task| (0..task.replicas).map(move |index| (task, index)));
        indexed.map(|(task, index)| self.pod(task, index))
    }

    fn pod(&self, task: &TaskTemplate, index: usize) -> Pod {
        let mut pod = build::pod(&self.namespace, &format!("{}-{}-{index}", self.name, task.name))
            .group(&self.name)
            .marked(labels::JOB_NAME, &self.name)
            .marked(labels::QUEUE_NAME, &self.queue)
            .marked(labels::TASK_SPEC, task.name)
            .marked(labels::TASK_INDEX, &index.to_string())
            .label(labels::JOB_NAMESPACE, &self.namespace)
            .annotation(annotations::JOB_VERSION, "0")
            .annotation(annotations::JOB_RETRY_COUNT, "0")
            .annotation(annotations::TEMPLATE_UID, &format!("{}-{}", self.name, task.name))
            .owner("Job", &self.name)
            .created(self.created)
            .image("registry.example.com/train:1.4")
            .tolerates("node.kubernetes.io/not-ready", "NoExecute")
            .tolerates("node.kubernetes.io/unreachable", "NoExecute");
        for (name, amount) in task.requests() {
            pod = pod.request(name, amount);
        }
        if !task.gpus.is_empty() {
            pod = pod.tolerates(GPU, "NoSchedule");
        }
        if !task.pool.is_empty() {
            pod = pod.node_selector(POOL, task.pool);
        }
        if let Some((class, value)) = PRIORITY_CLASSES
            .iter()
            .find(|(name, _)| *name == self.priority_class)
        {
            pod = pod.priority(class, *value);
        }
        pod.build()
    }

    /// Its PodGroup and its pods as changes.
    pub fn deltas(&self) -> impl Iterator<Item = Delta> + '_ {
        let group = std::iter::once_with(|| Delta::PodGroup(Box::new(self.pod_group())));
        group.chain(self.pods().map(|pod| Delta::Pod(Box::new(pod))))
    }
}

fn times(amount: Quantity, count: usize) -> Quantity {
    amount.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
}

impl Workload {
    /// Equal nodes of 32 CPUs, one queue, and gangs of 1,000 equal pods: one for each 100 nodes.
    #[must_use]
    pub fn gangs(nodes: usize) -> Self {
        Workload {
            nodes,
            gangs: nodes.div_ceil(100),
            queues: Vec::new(),
            node: |at| machine(at, "general", "32", "128Gi").build(),
            gang: |at| {
                Gang::new("training", &format!("train-{at}"), "default", made(at))
                    .task(TaskTemplate::new("worker", 1_000, "1", "2Gi"))
            },
        }
    }

    /// Four pools of nodes, one of them with GPUs, 50 queues, and gangs of 8 to 300 pods with and without node
    /// selectors: one gang for each 10 nodes, 100 pods each on average. Everything fits.
    #[must_use]
    pub fn mixed(nodes: usize) -> Self {
        Workload {
            nodes,
            gangs: nodes.div_ceil(10),
            queues: (0..50).map(|at| (format!("team-{at}"), 1 + at % 5)).collect(),
            node: mixed_node,
            gang: mixed_gang,
        }
    }

    /// Nodes with room for exactly 10 pods of the work in one queue, and that many pods, of low priority and in
    /// groups of 100 of which one must run.
    #[must_use]
    pub fn full(nodes: usize) -> Self {
        Workload {
            nodes,
            gangs: nodes.div_ceil(10),
            queues: vec![("busy".to_owned(), 1), ("waiting".to_owned(), 1)],
            node: |at| machine(at, "general", "40", "80Gi").build(),
            gang: |at| {
                let gang = Gang::new("batch", &format!("fill-{at}"), "busy", made(at))
                    .task(TaskTemplate::new("worker", 100, "4", "8Gi"));
                Gang {
                    min_member: 1,
                    priority_class: "batch-low",
                    ..gang
                }
            },
        }
    }

    /// A gang of the pods that [`Workload::full`] is full of, of high priority, made after all others.
    #[must_use]
    pub fn urgent(name: &str, queue: &str, size: usize) -> Gang {
        let gang = Gang::new(
            "batch",
            name,
            queue,
            Time::from_unix_seconds(BEGIN.unix_seconds() + 100_000),
        );
        let gang = gang.task(TaskTemplate::new("worker", size, "4", "8Gi"));
        Gang {
            priority_class: "batch-high",
            ..gang
        }
    }

    /// One of the gangs.
    #[must_use]
    pub fn gang(&self, at: usize) -> Gang {
        (self.gang)(at)
    }

    /// The number of pods of all gangs.
    #[must_use]
    pub fn pods(&self) -> usize {
        (0..self.gangs).map(|at| self.gang(at).size()).sum()
    }

    /// Priority classes, queues and nodes, then gang by gang.
    pub fn deltas(&self) -> impl Iterator<Item = Delta> + '_ {
        let classes = PRIORITY_CLASSES
            .iter()
            .map(|(name, value)| build::priority_class(name, *value));
        let fixed = [build::queue("root"), build::queue("default")]
            .into_iter()
            .map(Delta::from);
        let queues = self
            .queues
            .iter()
            .map(|(name, weight)| build::queue(name).weight(*weight).into());
        let nodes = (0..self.nodes).map(|at| Delta::Node(Box::new((self.node)(at))));
        let gangs = (0..self.gangs).flat_map(|at| {
            let gang = self.gang(at);
            gang.deltas().collect::<Vec<_>>()
        });
        classes.chain(fixed).chain(queues).chain(nodes).chain(gangs)
    }
}

/// Gangs are made one second apart.
fn made(at: usize) -> Time {
    Time::from_unix_seconds(BEGIN.unix_seconds() + i64::try_from(at).unwrap_or(0))
}

fn machine(at: usize, pool: &str, cpu: &str, memory: &str) -> build::NodeBuilder {
    let name = format!("node-{at:06}");
    build::node(&name)
        .resource("cpu", cpu)
        .resource("memory", memory)
        .resource("ephemeral-storage", "500Gi")
        .label(labels::HOSTNAME, &name)
        .label("kubernetes.io/os", "linux")
        .label("kubernetes.io/arch", "amd64")
        .label("topology.kubernetes.io/zone", ZONES[at % ZONES.len()])
        .label(POOL, pool)
}

fn mixed_node(at: usize) -> Node {
    match at % 10 {
        0..4 => machine(at, "general", "48", "192Gi").build(),
        4..6 => machine(at, "highmem", "48", "384Gi").build(),
        6..8 => machine(at, "spot", "64", "128Gi").build(),
        _ => machine(at, "gpu", "64", "256Gi")
            .resource(GPU, "8")
            .taint(GPU, "present", "NoSchedule")
            .build(),
    }
}

/// Ten gangs in a row (1,000 pods) are of one kind, so that the parts of the kinds hold at every size.
fn mixed_gang(at: usize) -> Gang {
    let size = MIXED_SIZES[at % MIXED_SIZES.len()];
    let gang = Gang::new(
        &format!("team-{}", at % 10),
        &format!("job-{at}"),
        &format!("team-{}", (at * 7) % 50),
        made(at),
    );
    let workers = size - 1;
    let worker = |cpu, memory| TaskTemplate::new("worker", workers, cpu, memory);
    let gang = gang.task(TaskTemplate::new("master", 1, "1", "2Gi"));
    gang.task(match (at / 10) % 20 {
        0..6 => worker("1", "2Gi"),
        8 | 13 | 19 => TaskTemplate {
            gpus: "1",
            pool: "gpu",
            ..worker("4", "16Gi")
        },
        6 | 7 | 9 => TaskTemplate {
            pool: "highmem",
            ..worker("2", "24Gi")
        },
        10..13 => TaskTemplate {
            pool: "general",
            ..worker("2", "4Gi")
        },
        14 | 15 => TaskTemplate {
            pool: "spot",
            ..worker("4", "4Gi")
        },
        _ => worker("2", "8Gi"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn count(workload: &Workload) -> [usize; 4] {
        let mut counts = [0; 4];
        for delta in workload.deltas() {
            match delta {
                Delta::Node(_) => counts[0] += 1,
                Delta::PodGroup(_) => counts[1] += 1,
                Delta::Pod(_) => counts[2] += 1,
                _ => counts[3] += 1,
            }
        }
        counts
    }

    #[test]
    fn sizes_are_those_that_the_names_say() {
        assert_eq!(count(&Workload::gangs(1_000)), [1_000, 10, 10_000, 4]);
        assert_eq!(count(&Workload::mixed(1_000)), [1_000, 100, 10_000, 54]);
        assert_eq!(count(&Workload::full(100)), [100, 10, 1_000, 6]);
        assert_eq!(Workload::mixed(1_000).pods(), 10_000);
    }

    #[test]
    fn pods_have_names_of_their_own_and_carry_what_the_job_controller_writes() {
        let workload = Workload::mixed(200);
        let mut names = BTreeSet::new();
        for at in 0..workload.gangs {
            for pod in workload.gang(at).pods() {
                assert_eq!(
                    pod.metadata.labels.get(labels::TASK_INDEX),
                    pod.metadata.annotations.get(labels::TASK_INDEX)
                );
                assert!(
                    pod.metadata
                        .annotations
                        .contains_key(annotations::KUBE_GROUP_NAME)
                );
                assert!(pod.spec.containers[0].resources.requests.contains_key("cpu"));
                assert!(names.insert((pod.metadata.namespace, pod.metadata.name)));
            }
        }
        assert_eq!(names.len(), workload.pods());
    }

    #[test]
    fn the_minimum_of_a_gang_is_the_sum_of_its_pods() {
        let gang = Workload::urgent("urgent", "busy", 500);
        let resources = gang.pod_group().spec.min_resources.unwrap();
        assert_eq!(resources["cpu"], build::quantity("2000"));
        assert_eq!(resources["memory"], build::quantity("4000Gi"));
        let elastic = Workload::full(10).gang(0).pod_group();
        assert_eq!(elastic.spec.min_resources.unwrap()["cpu"], build::quantity("4"));
    }

    #[test]
    fn two_runs_give_the_same_objects() {
        let text = |workload: Workload| {
            workload
                .deltas()
                .map(|delta| format!("{delta:?}\n"))
                .collect::<String>()
        };
        assert_eq!(text(Workload::mixed(100)), text(Workload::mixed(100)));
    }
}
