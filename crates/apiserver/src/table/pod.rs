//! What a table says of a pod: how many of its containers are ready, what they do, and how often they began anew.

use super::age;
use jiff::Timestamp;
use serde_json::Value;

/// What is said of a pod's containers.
pub struct Shown {
    /// How many are ready, of all.
    pub ready: String,
    /// What it does.
    pub status: String,
    /// How often its containers began anew, and when the last time was.
    pub restarts: String,
}

/// How often containers began anew, and when the last of them ended before it did.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += container["restartCount"].as_i64().unwrap_or_default();
        let ended = container["lastState"]["terminated"]["finishedAt"].as_str();
        self.last = self.last.max(ended.and_then(|time| time.parse().ok()));
    }
}

/// What init containers come to. Of those that go on beside the others, sidecars, some may be ready.
#[derive(Default)]
struct Beginning {
    /// What is said while one of them is not done.
    word: Option<String>,
    ready: usize,
    all: Restarts,
    sidecars: Restarts,
}

/// What is said of a pod.
pub fn shown(pod: &Value, now: Timestamp) -> Shown {
    let begun = beginning(pod);
    let (mut ready, mut restarts) = (begun.ready, begun.all);
    let begins = begun.word.is_some();
    let mut status = begun.word.unwrap_or_else(|| first_word(pod));
    if !begins || has_condition(pod, "Initialized") {
        restarts = begun.sidecars;
        ready += main_part(pod, &mut status, &mut restarts);
    }
    let over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        if pod["status"]["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut status);
        } else if !over {
            "Terminating".clone_into(&mut status);
        }
    }
    let restarts = match restarts.last {
        Some(last) if restarts.count > 0 => {
            format!("{} ({} ago)", restarts.count, age(&last.to_string(), now))
        }
        _ => restarts.count.to_string(),
    };
    let sidecars = items(&pod["spec"]["initContainers"]).filter(|container| goes_on(container));
    let all = items(&pod["spec"]["containers"]).count() + sidecars.count();
    Shown {
        ready: format!("{ready}/{all}"),
        status,
        restarts,
    }
}

/// How many of the conditions that a pod names for its readiness hold.
pub fn readiness_gates(pod: &Value) -> String {
    let gates: Vec<&str> = items(&pod["spec"]["readinessGates"])
        .filter_map(|gate| gate["conditionType"].as_str())
        .collect();
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| has_condition(pod, gate)).count();
    format!("{open}/{}", gates.len())
}

/// What is said before one looks at the containers.
fn first_word(pod: &Value) -> String {
    let status = &pod["status"];
    let phase = status["phase"].as_str().unwrap_or("Unknown");
    let is_held = items(&pod["spec"]["schedulingGates"]).next().is_some() && phase == "Pending";
    let is_gated =
        |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
    if is_held || items(&status["conditions"]).any(is_gated) {
        return "SchedulingGated".to_owned();
    }
    let reason = status["reason"].as_str().filter(|reason| !reason.is_empty());
    reason.unwrap_or(phase).to_owned()
}

fn beginning(pod: &Value) -> Beginning {
    let of_spec = || items(&pod["spec"]["initContainers"]);
    let mut begun = Beginning::default();
    for (at, container) in items(&pod["status"]["initContainerStatuses"]).enumerate() {
        let is_sidecar = of_spec().any(|one| one["name"] == container["name"] && goes_on(one));
        begun.all.add(container);
        if is_sidecar {
            begun.sidecars.add(container);
        }
        let (ended, waiting) = (&container["state"]["terminated"], &container["state"]["waiting"]);
        if ended.is_object() && exit_code(ended) == 0 {
            continue;
        }
        if is_sidecar && container["started"] == true {
            begun.ready += usize::from(container["ready"] == true);
            continue;
        }
        let reason = waiting["reason"].as_str().unwrap_or_default();
        begun.word = Some(match (ended.is_object(), reason) {
            (true, _) => format!("Init:{}", end_of(ended)),
            (false, "" | "PodInitializing") => format!("Init:{at}/{}", of_spec().count()),
            (false, reason) => format!("Init:{reason}"),
        });
        break;
    }
    begun
}

/// Looks at the containers that make up the pod; how many of them are ready.
fn main_part(pod: &Value, status: &mut String, restarts: &mut Restarts) -> usize {
    let (mut ready, mut failure) = (0, None);
    let containers: Vec<&Value> = items(&pod["status"]["containerStatuses"]).collect();
    for container in containers.into_iter().rev() {
        restarts.add(container);
        let state = &container["state"];
        let waits = state["waiting"]["reason"].as_str().unwrap_or_default();
        let ended = &state["terminated"];
        if !waits.is_empty() {
            waits.clone_into(status);
        } else if ended.is_object() {
            *status = end_of(ended);
            if exit_code(ended) != 0 {
                failure = Some(status.clone());
            }
        } else if container["ready"] == true && state["running"].is_object() {
            ready += 1;
        }
    }
    // One that is done is not the end of the pod while others run.
    if status == "Completed" {
        let runs = ready > 0;
        if runs && has_condition(pod, "Ready") {
            "Running".clone_into(status);
        } else if let Some(failure) = failure {
            *status = failure;
        } else if runs {
            "NotReady".clone_into(status);
        }
    }
    ready
}

fn end_of(ended: &Value) -> String {
    let signal = ended["signal"].as_i64().unwrap_or_default();
    match ended["reason"].as_str().unwrap_or_default() {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", exit_code(ended)),
        reason => reason.to_owned(),
    }
}

fn exit_code(ended: &Value) -> i64 {
    ended["exitCode"].as_i64().unwrap_or_default()
}

/// Whether an init container goes on beside the others.
fn goes_on(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn has_condition(pod: &Value, name: &str) -> bool {
    items(&pod["status"]["conditions"]).any(|one| one["type"] == name && one["status"] == "True")
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
