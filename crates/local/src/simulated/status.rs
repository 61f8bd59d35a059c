//! Statuses of pods, as a kubelet writes them.

use super::life::Life;
use super::pod::Container;
use serde::Serialize;
use std::net::Ipv4Addr;
use volcano_api::time::Time;

/// What of a pod is in its statuses, besides what happens.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its UID: another pod of the same name is not meant.
    pub uid: String,
    /// Names and images of its containers.
    pub containers: Vec<(String, String)>,
    /// The same of those that run before.
    pub init_containers: Vec<(String, String)>,
    /// The address of its node.
    pub host: Ipv4Addr,
    /// Its own.
    pub address: Ipv4Addr,
    /// When the node took it up.
    pub taken_up: Time,
    /// When its containers started last.
    pub started: Time,
    /// How often they did before.
    pub restarts: u32,
}

/// Names and images of containers.
pub fn images(containers: &[Container]) -> Vec<(String, String)> {
    let named = containers.iter();
    named.map(|one| (one.name.clone(), one.image.clone())).collect()
}

/// A change of a status, as it is sent: it is written many thousand times, so it is written at once.
#[derive(Serialize)]
struct Patch<'a> {
    metadata: Uid<'a>,
    status: Status<'a>,
}

#[derive(Serialize)]
struct Uid<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    phase: &'a str,
    start_time: Time,
    #[serde(rename = "hostIP")]
    host_ip: Ipv4Addr,
    #[serde(rename = "hostIPs")]
    host_ips: [Address; 1],
    #[serde(rename = "podIP")]
    pod_ip: Ipv4Addr,
    #[serde(rename = "podIPs")]
    pod_ips: [Address; 1],
    conditions: Vec<Condition<'a>>,
    container_statuses: Vec<ContainerStatus<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_container_statuses: Vec<ContainerStatus<'a>>,
}

#[derive(Serialize)]
struct Address {
    ip: Ipv4Addr,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition<'a> {
    r#type: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    last_transition_time: Time,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus<'a> {
    name: &'a str,
    image: &'a str,
    #[serde(rename = "imageID")]
    image_id: &'a str,
    ready: bool,
    started: bool,
    restart_count: u32,
    state: State,
    last_state: State,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    #[serde(rename_all = "camelCase")]
    Running { started_at: Time },
    Waiting {
        reason: &'static str,
        message: &'static str,
    },
    #[serde(rename_all = "camelCase")]
    Terminated {
        exit_code: i32,
        reason: &'static str,
        started_at: Time,
        finished_at: Time,
    },
    #[serde(untagged)]
    Unknown {},
}

const BACKING_OFF: State = State::Waiting {
    reason: "CrashLoopBackOff",
    message: "back-off restarting failed container",
};

impl Subject {
    /// Its containers run.
    pub fn running(&self) -> Vec<u8> {
        let state = State::Running {
            started_at: seconds(self.started),
        };
        let conditions = conditions(self.started, None);
        self.patch("Running", conditions, true, |_| (state, State::Unknown {}))
    }

    /// Its containers ended, and are started again some time.
    pub fn backing_off(&self, life: &Life, now: Time) -> Vec<u8> {
        let conditions = conditions(now, Some("ContainersNotReady"));
        self.patch("Running", conditions, false, |at| {
            (BACKING_OFF, self.terminated(exit_code(life, at), now))
        })
    }

    /// Its containers ended for good.
    pub fn ended(&self, life: &Life, now: Time) -> Vec<u8> {
        let (phase, reason) = match life.fails() {
            true => ("Failed", "PodFailed"),
            false => ("Succeeded", "PodCompleted"),
        };
        self.patch(phase, conditions(now, Some(reason)), false, |at| {
            (self.terminated(exit_code(life, at), now), State::Unknown {})
        })
    }

    /// The change; `states` are the state of a container and that before it.
    fn patch(
        &self,
        phase: &str,
        conditions: Vec<Condition<'_>>,
        ready: bool,
        states: impl Fn(usize) -> (State, State),
    ) -> Vec<u8> {
        let containers = self.containers.iter().enumerate();
        let init = self.init_containers.iter();
        let done = (self.terminated(0, self.taken_up), State::Unknown {});
        let patch = Patch {
            metadata: Uid { uid: &self.uid },
            status: Status {
                phase,
                start_time: seconds(self.taken_up),
                host_ip: self.host,
                host_ips: [Address { ip: self.host }],
                pod_ip: self.address,
                pod_ips: [Address { ip: self.address }],
                conditions,
                container_statuses: containers
                    .map(|(at, one)| container(one, (ready, ready), self.restarts, states(at)))
                    .collect(),
                init_container_statuses: init.map(|one| container(one, (true, false), 0, done)).collect(),
            },
        };
        serde_json::to_vec(&patch).expect("JSON is written to memory")
    }

    fn terminated(&self, exit_code: i32, now: Time) -> State {
        State::Terminated {
            exit_code,
            reason: if exit_code == 0 { "Completed" } else { "Error" },
            started_at: seconds(self.started.min(now)),
            finished_at: seconds(now),
        }
    }
}

fn exit_code(life: &Life, at: usize) -> i32 {
    life.exit_codes.get(at).copied().unwrap_or_default()
}

fn container<'a>(
    (name, image): &'a (String, String),
    (ready, started): (bool, bool),
    restart_count: u32,
    (state, last_state): (State, State),
) -> ContainerStatus<'a> {
    ContainerStatus {
        name,
        image,
        image_id: "",
        ready,
        started,
        restart_count,
        state,
        last_state,
    }
}

/// Conditions of a pod whose containers run, or do not for a reason.
fn conditions(since: Time, unready: Option<&str>) -> Vec<Condition<'_>> {
    let condition = |name: &'static str, reason| Condition {
        r#type: name,
        status: if unready.is_none() { "True" } else { "False" },
        reason,
        last_transition_time: seconds(since),
    };
    let mut all = vec![condition("Ready", unready), condition("ContainersReady", unready)];
    if unready.is_none() {
        all.extend(["Initialized", "PodReadyToStartContainers"].map(|name| condition(name, None)));
    }
    all
}

/// Times of the API are whole seconds.
fn seconds(time: Time) -> Time {
    Time::from_unix_seconds(time.unix_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn status_of(patch: &[u8]) -> Value {
        let mut patch: Value = serde_json::from_slice(patch).unwrap();
        assert_eq!(patch["metadata"], json!({"uid": "u"}));
        patch["status"].take()
    }

    fn subject() -> Subject {
        Subject {
            uid: "u".to_owned(),
            containers: vec![
                ("a".to_owned(), "busybox:1".to_owned()),
                ("b".to_owned(), "x".to_owned()),
            ],
            init_containers: Vec::new(),
            host: [172, 16, 0, 1].into(),
            address: [10, 0, 0, 7].into(),
            taken_up: Time::from_unix_micros(1_500_000),
            started: Time::from_unix_micros(2_000_000),
            restarts: 2,
        }
    }

    fn life(exit_codes: &[i32]) -> Life {
        Life {
            runs: None,
            exit_codes: exit_codes.to_vec(),
            termination: Duration::ZERO,
        }
    }

    #[test]
    fn a_running_pod_is_ready_and_has_an_address() {
        let status = status_of(&subject().running());
        assert_eq!(status["phase"], "Running");
        assert_eq!(status["podIP"], "10.0.0.7");
        assert_eq!(status["startTime"], "1970-01-01T00:00:01Z");
        assert_eq!(
            status["containerStatuses"][1]["state"]["running"]["startedAt"],
            "1970-01-01T00:00:02Z"
        );
        assert_eq!(status["containerStatuses"][0]["restartCount"], 2);
        assert_eq!(status["containerStatuses"][0]["lastState"], json!({}));
        let ready = status["conditions"].as_array().unwrap();
        assert!(ready.iter().all(|condition| condition["status"] == "True"));
    }

    #[test]
    fn one_container_that_fails_makes_the_pod_fail() {
        let now = Time::from_unix_micros(9_000_000);
        let failed = status_of(&subject().ended(&life(&[0, 3]), now));
        assert_eq!(failed["phase"], "Failed");
        let states: Vec<_> = (0..2)
            .map(|at| failed["containerStatuses"][at]["state"]["terminated"]["exitCode"].clone())
            .collect();
        assert_eq!(states, [0, 3]);
        assert_eq!(
            failed["containerStatuses"][1]["state"]["terminated"]["reason"],
            "Error"
        );
        let done = status_of(&subject().ended(&life(&[0, 0]), now));
        assert_eq!(done["phase"], "Succeeded");
        assert_eq!(done["conditions"][0]["reason"], "PodCompleted");
    }

    #[test]
    fn a_container_that_waits_to_be_restarted_shows_how_it_ended() {
        let waits = subject().backing_off(&life(&[1, 1]), Time::from_unix_micros(9_000_000));
        let waits = status_of(&waits);
        let first = &waits["containerStatuses"][0];
        assert_eq!(first["state"]["waiting"]["reason"], "CrashLoopBackOff");
        assert_eq!(first["lastState"]["terminated"]["exitCode"], 1);
        assert_eq!(waits["phase"], "Running");
    }
}
