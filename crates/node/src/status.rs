//! The status of a pod, as a kubelet reports it. Pure: what is known in, the status out.

use crate::lifecycle::{Ended, Live, PodState, Restart, Role, State};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Images are not pulled: every container has the host's files.
const IMAGE_ID: &str = "host";

/// The conditions that a node decides.
pub(crate) const CONDITIONS: [&str; 4] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
];

/// Makes the status of a pod. What others have written into it stays.
pub(crate) fn status(
    pod: &Pod,
    state: &PodState,
    pod_address: Option<&str>,
    host_address: &str,
    now: Timestamp,
) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    let phase = phase(state);
    let failure = state.ending.as_ref().and_then(|ending| ending.failure.clone());
    let failure = failure.filter(|_| phase == "Failed");
    let (reason, message) = failure.unzip();
    let lists = |roles: &[Role]| -> Vec<ContainerStatus> {
        let of_role = state.containers.iter().filter(|live| roles.contains(&live.role));
        of_role.map(|live| container_status(pod, state, live)).collect()
    };
    let (first, main) = (lists(&[Role::Init, Role::Sidecar]), lists(&[Role::Main]));
    PodStatus {
        conditions: Some(conditions(pod, state, phase, now)),
        container_statuses: Some(main),
        init_container_statuses: (!first.is_empty()).then_some(first),
        host_ip: Some(host_address.to_owned()),
        host_ips: Some(vec![HostIP {
            ip: host_address.to_owned(),
        }]),
        pod_ip: pod_address.map(str::to_owned),
        pod_ips: pod_address.map(|ip| vec![PodIP { ip: ip.to_owned() }]),
        phase: Some(phase.to_owned()),
        reason,
        message,
        start_time: Some(Time(whole(state.started))),
        ..before
    }
}

/// Times of the API have whole seconds.
fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The phase, by the rules of the kubelet.
pub(crate) fn phase(state: &PodState) -> &'static str {
    let mains = || state.containers.iter().filter(|live| live.role == Role::Main);
    if state.ending.is_some() && !state.is_any_running() {
        let failed = state
            .ending
            .as_ref()
            .is_some_and(|ending| ending.failure.is_some());
        let mut codes = mains().map(|live| match &live.state {
            State::Ended(ended) => Some(ended.code),
            State::Waiting { .. } | State::Running { .. } => None,
        });
        return if !failed && codes.all(|code| code == Some(0)) {
            "Succeeded"
        } else {
            "Failed"
        };
    }
    if state.has_failed_init() {
        return if state.is_any_running() {
            "Running"
        } else {
            "Failed"
        };
    }
    if !state.is_initialized() {
        return "Pending";
    }
    let (mut running, mut waiting, mut stopped, mut succeeded) = (0, 0, 0, 0);
    for live in mains() {
        match &live.state {
            State::Running { .. } => running += 1,
            State::Waiting { .. } if live.last.is_some() => stopped += 1,
            State::Waiting { .. } => waiting += 1,
            State::Ended(ended) => {
                stopped += 1;
                succeeded += i32::from(ended.code == 0);
            }
        }
    }
    // Sidecars that are still ending keep the pod from being done.
    let sidecar_runs = state
        .containers
        .iter()
        .any(|live| live.role == Role::Sidecar && live.is_running());
    match state.restart {
        _ if waiting > 0 => "Pending",
        _ if running > 0 || (sidecar_runs && stopped > 0) => "Running",
        Restart::Always => "Running",
        _ if stopped == succeeded => "Succeeded",
        Restart::Never => "Failed",
        Restart::OnFailure => "Running",
    }
}

fn container_status(pod: &Pod, state: &PodState, live: &Live) -> ContainerStatus {
    let image = crate::fields::container_named(pod, &live.name).and_then(|container| container.image.clone());
    let (now, last) = states(pod, state, live);
    let succeeded = matches!(&live.state, State::Ended(ended) if ended.code == 0);
    ContainerStatus {
        name: live.name.clone(),
        image: image.unwrap_or_default(),
        image_id: if live.id.is_some() {
            IMAGE_ID.to_owned()
        } else {
            String::new()
        },
        container_id: live.id.clone(),
        ready: live.ready || (live.role == Role::Init && succeeded),
        started: Some(live.started),
        restart_count: live.restarts,
        state: Some(now),
        last_state: last,
        ..ContainerStatus::default()
    }
}

/// The state of a container and the one before. One that waits for its restart is shown as waiting.
fn states(pod: &Pod, state: &PodState, live: &Live) -> (ContainerState, Option<ContainerState>) {
    let last = live.last.as_ref().map(terminated);
    match &live.state {
        State::Waiting { reason, message, .. } => (waiting(reason, message.clone()), last),
        State::Running { since } => {
            let running = ContainerStateRunning {
                started_at: Some(Time(whole(*since))),
            };
            let now = ContainerState {
                running: Some(running),
                ..ContainerState::default()
            };
            (now, last)
        }
        State::Ended(ended) => {
            let is_over = state.ending.is_some() || state.has_failed_init();
            if is_over || state.is_final(live) || live.wait().is_zero() {
                return (terminated(ended), last);
            }
            (
                waiting("CrashLoopBackOff", Some(back_off(pod, live))),
                Some(terminated(ended)),
            )
        }
    }
}

/// What is said of a container that waits for its restart.
pub(crate) fn back_off(pod: &Pod, live: &Live) -> String {
    let metadata = &pod.metadata;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let wait = match live.wait().as_secs() {
        seconds if seconds >= 60 => format!("{}m{}s", seconds / 60, seconds % 60),
        seconds => format!("{seconds}s"),
    };
    format!(
        "back-off {wait} restarting failed container={} pod={}_{}({})",
        live.name,
        text(&metadata.name),
        text(&metadata.namespace),
        text(&metadata.uid)
    )
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        }),
        ..ContainerState::default()
    }
}

fn terminated(ended: &Ended) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            container_id: ended.id.clone(),
            exit_code: ended.code,
            finished_at: Some(Time(whole(ended.finished))),
            message: ended.message.clone(),
            reason: Some(ended.reason.clone()),
            signal: None,
            started_at: ended.started.map(|time| Time(whole(time))),
        }),
        ..ContainerState::default()
    }
}

fn conditions(pod: &Pod, state: &PodState, phase: &str, now: Timestamp) -> Vec<PodCondition> {
    let before = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone())
        .unwrap_or_default();
    let is_over = phase == "Succeeded" || phase == "Failed";
    let names = |unfit: &dyn Fn(&Live) -> bool| -> Option<String> {
        let names: Vec<&str> = state
            .containers
            .iter()
            .filter(|live| unfit(live))
            .map(|live| live.name.as_str())
            .collect();
        (!names.is_empty()).then(|| names.join(" "))
    };
    let unready = names(&|live| live.role != Role::Init && !live.ready);
    let uninitialized = names(&|live| !state.is_passed(live));
    let containers = match (phase, unready) {
        ("Succeeded", _) => Err(("PodCompleted", None)),
        ("Failed", _) => Err(("PodFailed", None)),
        (_, Some(names)) => Err((
            "ContainersNotReady",
            Some(format!("containers with unready status: [{names}]")),
        )),
        (_, None) => Ok(None),
    };
    let gates = pod
        .spec
        .iter()
        .flat_map(|spec| spec.readiness_gates.iter().flatten());
    let closed = gates.into_iter().find(|gate| {
        !before
            .iter()
            .any(|one| one.type_ == gate.condition_type && one.status == "True")
    });
    let ready = match (&containers, closed) {
        (Ok(_), Some(gate)) => {
            let message = format!(
                "corresponding condition of pod readiness gate {:?} does not exist or is not True.",
                gate.condition_type
            );
            Err(("ReadinessGatesNotReady", Some(message)))
        }
        _ => containers.clone(),
    };
    let initialized = match uninitialized {
        _ if phase == "Succeeded" => Ok(Some("PodCompleted")),
        Some(names) => Err((
            "ContainersNotInitialized",
            Some(format!("containers with incomplete status: [{names}]")),
        )),
        None => Ok(None),
    };
    let sandbox = if state.is_set_up && !is_over {
        Ok(None)
    } else {
        Err(("", None))
    };
    let holds = [sandbox, initialized, ready, containers];
    let mut all: Vec<PodCondition> = CONDITIONS
        .into_iter()
        .zip(holds)
        .map(|(kind, holds)| condition(kind, holds, &before, now))
        .collect();
    if !before.iter().any(|one| one.type_ == "PodScheduled") {
        all.push(condition("PodScheduled", Ok(None), &before, now));
    }
    let others = before
        .iter()
        .filter(|one| ours_not(&all, one))
        .cloned()
        .collect::<Vec<_>>();
    all.extend(others);
    all
}

fn ours_not(all: &[PodCondition], one: &PodCondition) -> bool {
    !all.iter().any(|ours| ours.type_ == one.type_)
}

type Holds = Result<Option<&'static str>, (&'static str, Option<String>)>;

/// A condition; its time changes with its status only.
fn condition(kind: &str, holds: Holds, before: &[PodCondition], now: Timestamp) -> PodCondition {
    let (status, reason, message) = match holds {
        Ok(reason) => ("True", reason.unwrap_or_default(), None),
        Err((reason, message)) => ("False", reason, message),
    };
    let known = before
        .iter()
        .find(|one| one.type_ == kind && one.status == status);
    let since = known.and_then(|one| one.last_transition_time.clone());
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: (!reason.is_empty()).then(|| reason.to_owned()),
        message,
        last_transition_time: Some(since.unwrap_or(Time(whole(now)))),
        ..PodCondition::default()
    }
}

#[cfg(test)]
mod tests;
