//! Why a job waits, as data with numbers, and the sentence for each.

use crate::cluster::counted;
use serde::Serialize;
use std::fmt;
use volcano_api::quantity::Quantity;

/// Jobs that are named before the rest is counted.
const NAMED: usize = 5;
/// Nodes that are named for each reason before the rest is counted.
const NODES: usize = 3;

/// An amount that is needed, and what there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// The resource.
    pub resource: String,
    /// What is needed, what others have already included.
    pub needed: Quantity,
    /// What there may be.
    pub limit: Quantity,
}

impl Amount {
    /// By how much it is short.
    pub fn missing(&self) -> Quantity {
        self.needed.saturating_sub(self.limit)
    }
}

/// What is free and what is needed of a resource, on the nodes that the pods may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Room {
    /// The resource.
    pub resource: String,
    /// What one pod asks for.
    pub request: Quantity,
    /// What the pods that are missing for the gang ask for together.
    pub needed: Quantity,
    /// What is free on all these nodes together.
    pub free: Quantity,
    /// The most that is free on one of them.
    pub largest_free: Quantity,
    /// What all these nodes have.
    pub capacity: Quantity,
    /// The most that one of them has.
    pub largest_node: Quantity,
}

/// Nodes that were ruled out for a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuledOut {
    /// The reason, in the words of the scheduler.
    pub reason: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Their names, as far as they can be told; a hundred at the most.
    pub names: Vec<String>,
}

/// A job that waits and comes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    /// `namespace/name` of the Job; of the PodGroup, if no Job has made it.
    pub job: String,
    /// `namespace/name` of its PodGroup.
    pub pod_group: String,
    /// Its priority.
    pub priority: i32,
    /// It starts in the same cycle.
    pub starts: bool,
}

/// What limits a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum QueueLimit {
    /// The queue's capability.
    Capability,
    /// What it deserves beside the other queues.
    Deserved,
    /// What the cluster leaves it beside the guarantees of others.
    Rest,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// Its queue is not there.
    QueueMissing {
        /// The queue.
        queue: String,
    },
    /// Its queue takes no new work.
    QueueNotOpen {
        /// The queue.
        queue: String,
        /// `Closed`, `Closing` or `Unknown`.
        state: String,
    },
    /// Its queue cannot take jobs.
    QueueInvalid {
        /// The queue.
        queue: String,
        /// Why.
        why: String,
    },
    /// It was aborted, or is being ended.
    Suspended {
        /// The phase of the Job.
        phase: String,
    },
    /// Its pods are for another scheduler.
    OtherScheduler {
        /// How many.
        pods: u32,
    },
    /// Pods are held back by scheduling gates.
    Gated {
        /// How many.
        pods: u32,
        /// The gates.
        gates: Vec<String>,
    },
    /// A quota of the namespace has no room for its pods.
    Quota {
        /// The ResourceQuota.
        quota: String,
        /// The task whose pods are refused.
        task: String,
        /// Pods of it that are not made.
        pods: i32,
        /// What is short, all the missing pods of the gang counted.
        short: Vec<Amount>,
    },
    /// A task waits for others to run, and the gang cannot start without its pods.
    DependsOn {
        /// The task.
        task: String,
        /// Its pods, which are not made yet.
        pods: i32,
        /// The tasks that have to run first.
        waits_for: Vec<String>,
        /// Pods that have to start together.
        minimum: u32,
        /// Pods that there are.
        total: u32,
    },
    /// Its pods cannot be made.
    PodsNotMade {
        /// How many.
        pods: i32,
        /// Why.
        why: String,
    },
    /// Other jobs that wait come first, and there is not room for both.
    Behind {
        /// Its own priority.
        priority: i32,
        /// Those that come first.
        ahead: Vec<Ahead>,
    },
    /// Its queue may not use as much.
    QueueFull {
        /// The queue: its own, or one above it.
        queue: String,
        /// What limits it.
        limit: QueueLimit,
        /// What is short.
        short: Vec<Amount>,
    },
    /// The gang asks for more than the nodes have that it may use, even if they were empty.
    GangTooLarge {
        /// The role that does not fit; empty for one without a name.
        role: String,
        /// Pods that have to start together.
        minimum: u32,
        /// How many fit now.
        fits: u32,
        /// By resource.
        room: Vec<Room>,
    },
    /// One pod asks for more than any node has.
    PodTooLarge {
        /// The role.
        role: String,
        /// By resource.
        room: Vec<Room>,
    },
    /// There is too little free.
    Short {
        /// The role that does not fit.
        role: String,
        /// Pods that are missing for the gang.
        minimum: u32,
        /// How many fit now.
        fits: u32,
        /// By resource.
        room: Vec<Room>,
    },
    /// There is enough free in all, but not in one place.
    Fragmented {
        /// The role that does not fit.
        role: String,
        /// Pods that are missing for the gang.
        minimum: u32,
        /// How many fit now.
        fits: u32,
        /// By resource.
        room: Vec<Room>,
    },
    /// More is admitted than the cluster may be overcommitted to.
    Overcommitted {
        /// What is short.
        short: Vec<Amount>,
    },
    /// No node may take the pods of a role, whatever is free on it.
    NoNode {
        /// The role.
        role: String,
        /// Nodes that there are.
        nodes: u32,
        /// Why each was ruled out.
        ruled_out: Vec<RuledOut>,
    },
    /// Nodes that were ruled out, beside what was said before.
    RuledOut {
        /// The role.
        role: String,
        /// Nodes that there are.
        nodes: u32,
        /// Why each was ruled out.
        ruled_out: Vec<RuledOut>,
    },
    /// What the scheduler says, where nothing above is the case.
    Other {
        /// In its words.
        message: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::QueueMissing { queue } => write!(f, "queue {queue} does not exist"),
            Reason::QueueNotOpen { queue, state } => {
                write!(
                    f,
                    "queue {queue} is {}: it takes no new work",
                    state.to_lowercase()
                )
            }
            Reason::QueueInvalid { queue, why } => write!(f, "queue {queue} cannot take it: {why}"),
            Reason::Suspended { phase } => write!(f, "the job is {}", phase.to_lowercase()),
            Reason::OtherScheduler { pods } => write!(
                f,
                "{} for another scheduler",
                counted(*pods as usize, "of its pods is", "of its pods are")
            ),
            Reason::Gated { pods, gates } => write!(
                f,
                "{} held back by {} {}",
                counted(*pods as usize, "pod is", "pods are"),
                if gates.len() == 1 {
                    "the scheduling gate"
                } else {
                    "the scheduling gates"
                },
                gates.join(", ")
            ),
            Reason::Quota {
                quota,
                task,
                pods,
                short,
            } => write!(
                f,
                "ResourceQuota {quota} has no room for {} of task {task}: {}",
                counted(pods.unsigned_abs() as usize, "pod", "pods"),
                amounts(short, "used and asked for", "allowed")
            ),
            Reason::DependsOn {
                task,
                pods,
                waits_for,
                minimum,
                total,
            } => write!(
                f,
                "task {task} waits for {} to run (dependsOn), and the gang of {minimum} cannot start without its {}: \
                 only {} there",
                waits_for.join(", "),
                counted(pods.unsigned_abs() as usize, "pod", "pods"),
                counted(*total as usize, "pod is", "pods are")
            ),
            Reason::PodsNotMade { pods, why } => write!(
                f,
                "{} not made: {why}",
                counted(pods.unsigned_abs() as usize, "pod is", "pods are")
            ),
            Reason::Behind { priority, ahead } => behind(f, *priority, ahead),
            Reason::QueueFull { queue, limit, short } => {
                let (what, word) = match limit {
                    QueueLimit::Capability => ("over its capability", "capability"),
                    QueueLimit::Deserved => ("over what it deserves", "deserved"),
                    QueueLimit::Rest => ("over what the cluster has for it", "left for it"),
                };
                write!(
                    f,
                    "queue {queue} would be {what}: {}",
                    amounts(short, "with this job", word)
                )
            }
            Reason::GangTooLarge {
                role,
                minimum,
                fits,
                room,
            } => write!(
                f,
                "the gang is too large for the cluster: {}, {}: {}",
                together(*minimum, role),
                fit(*fits),
                rooms(room, |r| format!("{} needed, {} in all", r.needed, r.capacity))
            ),
            Reason::PodTooLarge { role, room } => write!(
                f,
                "no node is large enough for a pod{}: {}",
                of_role(role),
                rooms(room, |r| format!(
                    "{} asked for, at most {} on a node",
                    r.request, r.largest_node
                ))
            ),
            Reason::Short {
                role,
                minimum,
                fits,
                room,
            } => write!(
                f,
                "too little is free: {}, {}: {}",
                together(*minimum, role),
                fit(*fits),
                rooms(room, |r| format!(
                    "{} needed, {} free of {}",
                    r.needed, r.free, r.capacity
                ))
            ),
            Reason::Fragmented {
                role,
                minimum,
                fits,
                room,
            } => write!(
                f,
                "what is free is scattered: {}, {}: {}",
                together(*minimum, role),
                fit(*fits),
                rooms(room, |r| format!(
                    "a pod asks for {}, {} free in all, at most {} on a node",
                    r.request, r.free, r.largest_free
                ))
            ),
            Reason::Overcommitted { short } => write!(
                f,
                "the cluster is full, and takes no more jobs in: {}",
                amounts(short, "asked for", "left to admit")
            ),
            Reason::NoNode {
                role,
                nodes,
                ruled_out,
            } => write!(
                f,
                "none of {} may take a pod{}: {}",
                counted(*nodes as usize, "node", "nodes"),
                of_role(role),
                ruled(ruled_out)
            ),
            Reason::RuledOut {
                role,
                nodes,
                ruled_out,
            } => write!(
                f,
                "of {}, for a pod{}: {}",
                counted(*nodes as usize, "node", "nodes"),
                of_role(role),
                ruled(ruled_out)
            ),
            Reason::Other { message } => f.write_str(message),
        }
    }
}

fn behind(f: &mut fmt::Formatter<'_>, priority: i32, ahead: &[Ahead]) -> fmt::Result {
    let higher = ahead.iter().filter(|job| job.priority > priority).count();
    let names: Vec<String> = ahead
        .iter()
        .take(NAMED)
        .map(|job| format!("{} (priority {})", job.job, job.priority))
        .collect();
    let rest = match ahead.len().saturating_sub(NAMED) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let why = if higher == ahead.len() {
        format!("of higher priority than its {priority}")
    } else if higher > 0 {
        format!("of which {higher} of higher priority than its {priority}")
    } else {
        "that wait longer or whose queue has the first claim".to_owned()
    };
    let jobs = counted(ahead.len(), "waiting job comes", "waiting jobs come");
    write!(f, "{jobs} first, {why}: {}{rest}", names.join(", "))
}

fn of_role(role: &str) -> String {
    match role {
        "" => String::new(),
        role => format!(" of task {role}"),
    }
}

/// `3 pods of task w have to start together`.
fn together(pods: u32, role: &str) -> String {
    let role = of_role(role);
    match pods {
        1 => format!("1 pod{role} has to start"),
        pods => format!("{pods} pods{role} have to start together"),
    }
}

fn fit(fits: u32) -> String {
    match fits {
        0 => "none fits now".to_owned(),
        1 => "1 fits now".to_owned(),
        fits => format!("{fits} fit now"),
    }
}

fn amounts(short: &[Amount], needed: &str, limit: &str) -> String {
    let parts: Vec<String> = short
        .iter()
        .map(|amount| {
            format!(
                "{} {} {needed}, {} {limit} ({} too much)",
                amount.needed,
                amount.resource,
                amount.limit,
                amount.missing()
            )
        })
        .collect();
    parts.join("; ")
}

fn rooms(room: &[Room], text: impl Fn(&Room) -> String) -> String {
    let parts: Vec<String> = room
        .iter()
        .map(|room| format!("{}: {}", room.resource, text(room)))
        .collect();
    parts.join("; ")
}

fn ruled(ruled_out: &[RuledOut]) -> String {
    let parts: Vec<String> = ruled_out
        .iter()
        .map(|out| format!("{} {}{}", out.nodes, out.reason, named(out)))
        .collect();
    parts.join(", ")
}

/// ` (n1, n2, n3 and 97 more)`.
fn named(out: &RuledOut) -> String {
    let shown: Vec<&str> = out.names.iter().take(NODES).map(String::as_str).collect();
    match (shown.len(), (out.nodes as usize).saturating_sub(shown.len())) {
        (0, _) => String::new(),
        (_, 0) => format!(" ({})", shown.join(", ")),
        (_, rest) => format!(" ({} and {rest} more)", shown.join(", ")),
    }
}
