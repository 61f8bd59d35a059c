//! Random small clusters: numbers that shrink well, and the objects that they stand for.

use super::read;
use proptest::prelude::*;
use serde_json::{Value, json};
use volcano_api::time::Time;
use volcano_engine::Engine;
use volcano_engine::config::{SchedulerConf, catalog};
use volcano_engine::model::SchedulerNames;
use volcano_engine::model::delta::Delta;

/// Milli-cores, MiB, devices, pods.
pub type Amounts = [i64; 4];

/// A configuration and what it promises.
pub struct Conf {
    /// Actions, then tiers.
    pub text: &'static str,
    /// Preemption has to keep queues within their share as well, so that a victim may be needed for the queue's sake.
    pub bounds_preemption: bool,
    /// Queues stay within their capability.
    pub keeps_capability: bool,
    /// Queues form a tree.
    pub hierarchy: bool,
}

/// The configurations that random clusters run with.
pub const CONFS: &[Conf] = &[
    Conf {
        text: "enqueue allocate backfill / priority gang conformance / overcommit drf predicates proportion nodeorder",
        bounds_preemption: true,
        keeps_capability: true,
        hierarchy: false,
    },
    Conf {
        text: "allocate preempt backfill / priority gang conformance / predicates nodeorder",
        bounds_preemption: false,
        keeps_capability: false,
        hierarchy: false,
    },
    Conf {
        text: "enqueue allocate preempt backfill / priority gang{enablePreemptable: false} / drf predicates proportion binpack",
        bounds_preemption: true,
        keeps_capability: true,
        hierarchy: false,
    },
    Conf {
        text: "allocate reclaim backfill / gang conformance / predicates proportion nodeorder",
        bounds_preemption: true,
        keeps_capability: true,
        hierarchy: false,
    },
    Conf {
        text: "enqueue allocate preempt reclaim backfill / priority gang / predicates capacity nodeorder",
        bounds_preemption: true,
        keeps_capability: true,
        hierarchy: false,
    },
    Conf {
        text: "allocate reclaim backfill / priority gang / predicates capacity{enableHierarchy: true} binpack",
        bounds_preemption: true,
        keeps_capability: true,
        hierarchy: true,
    },
    Conf {
        text: "allocate preempt reclaim backfill / pdb priority gang / predicates proportion nodeorder",
        bounds_preemption: true,
        keeps_capability: true,
        hierarchy: false,
    },
    Conf {
        text: "allocate preempt(enableTopologyAwarePreemption: true) / priority gang / predicates nodeorder",
        bounds_preemption: false,
        keeps_capability: false,
        hierarchy: false,
    },
];

impl Conf {
    /// The configuration, read as a file would be.
    pub fn read(&self) -> SchedulerConf {
        let mut parts = self.text.split(" / ");
        let actions = parts.next().expect("split gives a part");
        let mut text = String::from("configurations:\n- name: preempt\n  arguments:\n");
        let compares = actions.contains("enableTopologyAwarePreemption: true");
        text.push_str(&format!("    enableTopologyAwarePreemption: {compares}\n"));
        let names: Vec<&str> = actions
            .split(' ')
            .filter(|word| !word.ends_with(')'))
            .map(|word| word.split('(').next().expect("split gives a part"))
            .collect();
        text.push_str(&format!("actions: \"{}\"\ntiers:\n", names.join(", ")));
        for tier in parts {
            text.push_str("- plugins:\n");
            for plugin in tier.replace(": ", "=").split(' ') {
                let (name, setting) = plugin.split_once('{').unwrap_or((plugin, ""));
                text.push_str(&format!("  - name: {name}\n"));
                if let Some((key, value)) = setting.trim_end_matches('}').split_once('=') {
                    text.push_str(&format!("    {key}: {value}\n"));
                }
            }
        }
        SchedulerConf::parse(&text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).expect("a good configuration")
    }

    /// An engine with this configuration.
    pub fn engine(&self) -> Engine {
        let (engine, missing) = Engine::new(self.read(), SchedulerNames::Any, "default");
        assert!(missing.is_empty(), "{missing:?}");
        engine
    }
}

/// Where a pod is at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a node.
    Pending,
    /// On a node, in the order of the variants' names.
    Running,
    /// On a node, not started yet.
    Bound,
    /// On a node, being deleted.
    Deleting,
    /// Ended.
    Succeeded,
    /// Waits, and is not to be placed.
    Gated,
}

/// A pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// What it asks for, its own place among the pods included.
    pub request: Amounts,
    /// Where it is.
    pub state: State,
    /// Its node, if it is on one.
    pub node: usize,
    /// Label `zone` that its node must have.
    pub zone: Option<usize>,
    /// Tolerates the taint.
    pub tolerates: bool,
    /// Its priority.
    pub priority: i32,
    /// May be evicted.
    pub preemptable: bool,
    /// A host port.
    pub port: bool,
    /// Its role.
    pub role: Option<usize>,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its queue.
    pub queue: usize,
    /// Gang size.
    pub min: usize,
    /// Minimum of each of two roles.
    pub roles: [usize; 2],
    /// Priority class, of four.
    pub class: usize,
    /// Not admitted yet.
    pub waits: bool,
    /// Says what it needs.
    pub says_minimum: bool,
    /// Seconds; several may be equal.
    pub created: i64,
    /// Its pods.
    pub pods: Vec<Pod>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it offers.
    pub offers: Amounts,
    /// Its label `zone`.
    pub zone: usize,
    /// 0 none, 1 keeps pods away, 2 discourages them.
    pub taint: usize,
    /// Takes nothing.
    pub cordoned: bool,
}

/// A queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Its weight.
    pub weight: i32,
    /// Cores and GiB that it may use.
    pub capability: Option<(i64, i64)>,
    /// Cores and GiB that it deserves.
    pub deserved: Option<(i64, i64)>,
    /// Cores that are kept for it; never more than it may use.
    pub guarantee: i64,
    /// Its priority.
    pub priority: i32,
    /// Others may reclaim from it.
    pub reclaimable: bool,
    /// Takes no work.
    pub closed: bool,
    /// The earlier queue that it is a child of, in a hierarchy.
    pub parent: Option<usize>,
}

/// A cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Index into `CONFS`.
    pub conf: usize,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Jobs.
    pub jobs: Vec<Job>,
}

fn some<T: Clone + std::fmt::Debug + 'static>(
    of: u32,
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Option<T>> {
    prop_oneof![of => Just(None), 1 => value.prop_map(Some)].boxed()
}

fn node() -> impl Strategy<Value = Node> {
    (
        0..9i64,
        0..9i64,
        0..3i64,
        1..9i64,
        0..3usize,
        0..6usize,
        0..12usize,
    )
        .prop_map(|(cpu, memory, gpu, pods, zone, taint, cordoned)| Node {
            offers: [cpu * 1000, memory * 1024, gpu, pods],
            zone,
            taint: if taint < 3 { taint } else { 0 },
            cordoned: cordoned == 11,
        })
}

fn pod() -> impl Strategy<Value = Pod> {
    let request = (0..7i64, 0..5i64, 0..8i64);
    let state = prop_oneof![
        5 => Just(State::Pending),
        4 => Just(State::Running),
        1 => Just(State::Bound),
        1 => Just(State::Deleting),
        1 => Just(State::Succeeded),
        1 => Just(State::Gated),
    ];
    let marks = (any::<bool>(), 0..3i32, 0..8usize, 0..10usize);
    (
        request,
        state,
        0..8usize,
        some(4, 0..3usize),
        marks,
        some(1, 0..2usize),
    )
        .prop_map(
            |((cpu, memory, gpu), state, node, zone, (tolerates, priority, stays, port), role)| Pod {
                request: [cpu * 500, memory * 512, i64::from(gpu == 7), 1],
                state,
                node,
                zone,
                tolerates,
                priority,
                preemptable: stays != 7,
                port: port == 9,
                role,
            },
        )
}

fn job() -> impl Strategy<Value = Job> {
    let head = (
        0..4usize,
        0..7usize,
        [0..3usize, 0..3usize],
        0..4usize,
        any::<bool>(),
        any::<bool>(),
        0..4i64,
    );
    (head, prop::collection::vec(pod(), 0..7)).prop_map(
        |((queue, min, roles, class, waits, says_minimum, created), pods)| Job {
            queue,
            min: min.min(pods.len() + 1),
            roles,
            class,
            waits,
            says_minimum,
            created,
            pods,
        },
    )
}

fn queue() -> impl Strategy<Value = Queue> {
    let amounts = || (1..12i64, 1..12i64);
    (
        1..5i32,
        some(1, amounts()),
        some(1, amounts()),
        0..3i64,
        0..6i32,
        0..5usize,
        0..12usize,
        some(1, 0..4usize),
    )
        .prop_map(
            |(weight, capability, deserved, guarantee, priority, kept, closed, parent)| Queue {
                weight,
                capability,
                deserved,
                guarantee: guarantee.min(capability.map_or(2, |(cpu, _)| cpu)),
                priority: priority.max(3) - 3,
                reclaimable: kept != 4,
                closed: closed == 11,
                parent,
            },
        )
}

/// A random cluster for one of the configurations that `wanted` picks.
pub fn cluster(wanted: impl Fn(&Conf) -> bool) -> impl Strategy<Value = Cluster> {
    drawn(wanted).prop_map(|mut cluster| {
        cluster.settle();
        cluster
    })
}

/// A random cluster where all pods of a job ask for the same.
pub fn uniform_cluster(wanted: impl Fn(&Conf) -> bool) -> impl Strategy<Value = Cluster> {
    drawn(wanted).prop_map(|mut cluster| {
        for job in &mut cluster.jobs {
            job.roles = [0, 0];
            job.pods.iter_mut().for_each(|pod| pod.role = Some(0));
        }
        cluster.settle();
        cluster
    })
}

/// A random cluster where the first half of the jobs runs, and the second half waits and matters more.
pub fn contended_cluster(wanted: impl Fn(&Conf) -> bool) -> impl Strategy<Value = Cluster> {
    drawn(wanted).prop_map(|mut cluster| {
        cluster.nodes.truncate(2);
        let half = cluster.jobs.len().div_ceil(2);
        for (at, job) in cluster.jobs.iter_mut().enumerate() {
            let runs = at < half;
            job.min = if runs { job.min.min(1) } else { job.min.clamp(1, 2) };
            job.class = if runs { job.class.min(1) } else { job.class.max(2) };
            job.roles = if at % 3 > 0 { [0, 0] } else { job.roles };
            job.waits = false;
            for pod in &mut job.pods {
                pod.zone = pod.zone.filter(|_| runs);
                pod.state = match pod.state {
                    State::Pending if runs => State::Running,
                    State::Running if !runs => State::Pending,
                    state => state,
                };
            }
        }
        cluster.settle();
        cluster
    })
}

fn drawn(wanted: impl Fn(&Conf) -> bool) -> impl Strategy<Value = Cluster> {
    let confs: Vec<usize> = (0..CONFS.len()).filter(|&at| wanted(&CONFS[at])).collect();
    let parts = (
        prop::sample::select(confs),
        prop::collection::vec(node(), 1..9),
        prop::collection::vec(queue(), 1..5),
        prop::collection::vec(job(), 1..7),
    );
    parts.prop_map(|(conf, nodes, queues, jobs)| Cluster {
        conf,
        nodes,
        queues,
        jobs,
    })
}

impl Cluster {
    /// Makes what was drawn at random possible: pods of a role are made from one template, pods are on nodes that have room for them, queues have parents that
    /// come before them, and jobs are in queues without children.
    fn settle(&mut self) {
        let hierarchy = CONFS[self.conf].hierarchy;
        for at in 0..self.queues.len() {
            let parent = self.queues[at].parent.filter(|&parent| hierarchy && parent < at);
            self.queues[at].parent = parent;
        }
        let has_children = |at: usize| self.queues.iter().any(|queue| queue.parent == Some(at));
        let leaves: Vec<usize> = (0..self.queues.len()).filter(|&at| !has_children(at)).collect();
        let mut left: Vec<Amounts> = self.nodes.iter().map(|node| node.offers).collect();
        let mut ports: Vec<bool> = vec![false; self.nodes.len()];
        for job in &mut self.jobs {
            job.queue = leaves[job.queue % leaves.len()];
            make_roles_alike(&mut job.pods);
            for pod in &mut job.pods {
                if matches!(pod.state, State::Pending | State::Gated) {
                    continue;
                }
                pod.node %= self.nodes.len();
                if pod.state == State::Succeeded {
                    continue;
                }
                let nodes = self.nodes.len();
                let takes = |node: &usize| {
                    (0..4).all(|d| pod.request[d] <= left[*node][d]) && !(pod.port && ports[*node])
                };
                let Some(node) = (0..nodes).map(|by| (pod.node + by) % nodes).find(takes) else {
                    pod.state = State::Pending;
                    continue;
                };
                pod.node = node;
                ports[node] |= pod.port;
                (0..4).for_each(|d| left[node][d] -= pod.request[d]);
            }
        }
    }

    /// The configuration.
    pub fn conf(&self) -> &'static Conf {
        &CONFS[self.conf]
    }

    /// Name of a pod.
    pub fn pod_name(job: usize, pod: usize) -> String {
        format!("j{job}-p{pod}")
    }

    /// The pod of a name.
    pub fn find(&self, name: &str) -> (usize, usize) {
        let (job, pod) = name.split_once("-p").expect("the name of a pod");
        (job[1..].parse().expect("a job"), pod.parse().expect("a pod"))
    }

    /// The pod of a name.
    pub fn pod(&self, name: &str) -> &Pod {
        let (job, pod) = self.find(name);
        &self.jobs[job].pods[pod]
    }

    /// All objects.
    pub fn deltas(&self) -> Vec<Delta> {
        let mut list = Vec::new();
        for (class, value) in [0, 5, 100].into_iter().enumerate().skip(1) {
            let class = json!({"metadata": {"name": format!("c{class}")}, "value": value});
            list.push(Delta::PriorityClass(read(class)));
        }
        let root = json!({"metadata": {"name": "root"}, "status": {"state": "Open"}});
        list.push(Delta::Queue(Box::new(read(root))));
        list.extend(
            self.nodes
                .iter()
                .enumerate()
                .map(|(at, node)| Delta::Node(Box::new(read(node_object(at, node))))),
        );
        list.extend(
            self.queues
                .iter()
                .enumerate()
                .map(|(at, queue)| Delta::Queue(Box::new(read(queue_object(at, queue))))),
        );
        for (at, job) in self.jobs.iter().enumerate() {
            list.push(Delta::PodGroup(Box::new(read(group_object(at, job)))));
            for (of, pod) in job.pods.iter().enumerate() {
                list.push(Delta::Pod(Box::new(read(pod_object(at, of, job, pod)))));
            }
        }
        list
    }
}

/// Pods of a role ask for the same: a template makes them.
fn make_roles_alike(pods: &mut [Pod]) {
    for role in 0..2 {
        let Some(first) = pods.iter().find(|pod| pod.role == Some(role)).cloned() else {
            continue;
        };
        for pod in pods.iter_mut().filter(|pod| pod.role == Some(role)) {
            (pod.request, pod.zone) = (first.request, first.zone);
            (pod.tolerates, pod.port) = (first.tolerates, first.port);
        }
    }
}

fn seconds(seconds: i64) -> String {
    Time::from_unix_seconds(1_700_000_000 + seconds).to_string()
}

fn amounts(of: &Amounts) -> Value {
    let [cpu, memory, gpu, pods] = of;
    json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "nvidia.com/gpu": gpu, "pods": pods})
}

fn node_object(at: usize, node: &Node) -> Value {
    let taints = match node.taint {
        1 => json!([{"key": "t", "value": "v", "effect": "NoSchedule"}]),
        2 => json!([{"key": "t", "value": "v", "effect": "PreferNoSchedule"}]),
        _ => json!([]),
    };
    json!({
        "metadata": {"name": format!("n{at}"), "labels": {"zone": format!("z{}", node.zone)}},
        "spec": {"taints": taints, "unschedulable": node.cordoned},
        "status": {"allocatable": amounts(&node.offers)},
    })
}

fn queue_object(at: usize, queue: &Queue) -> Value {
    let list = |of: Option<(i64, i64)>| match of {
        Some((cpu, memory)) => json!({"cpu": cpu, "memory": format!("{memory}Gi")}),
        None => json!({}),
    };
    let mut spec = json!({
        "weight": queue.weight,
        "capability": list(queue.capability),
        "deserved": list(queue.deserved),
        "priority": queue.priority,
        "reclaimable": queue.reclaimable,
    });
    if queue.guarantee > 0 {
        spec["guarantee"] = json!({"resource": {"cpu": queue.guarantee}});
    }
    if let Some(parent) = queue.parent {
        spec["parent"] = json!(format!("q{parent}"));
    }
    let state = if queue.closed { "Closed" } else { "Open" };
    json!({
        "metadata": {"name": format!("q{at}"), "creationTimestamp": seconds(at as i64 / 2)},
        "spec": spec,
        "status": {"state": state},
    })
}

fn group_object(at: usize, job: &Job) -> Value {
    let mut roles = json!({});
    for (role, &minimum) in job.roles.iter().enumerate().filter(|(_, minimum)| **minimum > 0) {
        roles[format!("r{role}")] = json!(minimum);
    }
    let mut spec = json!({
        "minMember": job.min,
        "queue": format!("q{}", job.queue),
        "minTaskMember": roles,
    });
    if job.class > 0 {
        spec["priorityClassName"] = json!(format!("c{}", job.class));
    }
    if job.says_minimum {
        let mut sum = [0; 4];
        for pod in job.pods.iter().take(job.min) {
            (0..4).for_each(|d| sum[d] += pod.request[d]);
        }
        spec["minResources"] = amounts(&sum);
    }
    let ran = job
        .pods
        .iter()
        .any(|pod| !matches!(pod.state, State::Pending | State::Gated));
    let phase = if ran {
        "Running"
    } else if job.waits {
        "Pending"
    } else {
        "Inqueue"
    };
    let metadata = json!({
        "name": format!("j{at}"), "namespace": "default", "uid": format!("g{at}"),
        "creationTimestamp": seconds(job.created),
    });
    json!({"metadata": metadata, "spec": spec, "status": {"phase": phase}})
}

fn pod_object(at: usize, of: usize, job: &Job, pod: &Pod) -> Value {
    let mut requests = amounts(&pod.request);
    let list = requests.as_object_mut().expect("a list");
    list.remove("pods");
    for (name, amount) in [("cpu", 0), ("memory", 1), ("nvidia.com/gpu", 2)] {
        if pod.request[amount] == 0 {
            list.remove(name);
        }
    }
    let mut container = json!({"name": "main", "resources": {"requests": requests}});
    if pod.port {
        container["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
    }
    let mut spec = json!({"schedulerName": "volcano", "containers": [container], "priority": pod.priority});
    if pod.tolerates {
        spec["tolerations"] = json!([{"operator": "Exists"}]);
    }
    if let Some(zone) = pod.zone {
        spec["nodeSelector"] = json!({"zone": format!("z{zone}")});
    }
    if pod.state == State::Gated {
        spec["schedulingGates"] = json!([{"name": "wait"}]);
    } else if pod.state != State::Pending {
        spec["nodeName"] = json!(format!("n{}", pod.node));
    }
    let phase = match pod.state {
        State::Pending | State::Gated | State::Bound => "Pending",
        State::Running | State::Deleting => "Running",
        State::Succeeded => "Succeeded",
    };
    let mut metadata = json!({
        "name": Cluster::pod_name(at, of), "namespace": "default", "uid": format!("u{at}-{of}"),
        "creationTimestamp": seconds(job.created + of as i64 % 2),
        "annotations": {"scheduling.k8s.io/group-name": format!("j{at}")},
    });
    if !pod.preemptable {
        metadata["annotations"]["volcano.sh/preemptable"] = json!("false");
    }
    if let Some(role) = pod.role {
        metadata["annotations"]["volcano.sh/task-spec"] = json!(format!("r{role}"));
    }
    if pod.state == State::Deleting {
        metadata["deletionTimestamp"] = json!(seconds(100));
    }
    json!({"metadata": metadata, "spec": spec, "status": {"phase": phase}})
}
