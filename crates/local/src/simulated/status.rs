//! Statuses of pods, as a kubelet writes them.

use super::life::Life;
use super::pod::Container;
use serde_json::{Value, json};
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

impl Subject {
    /// Its containers run.
    pub fn running(&self) -> Value {
        let conditions = conditions(self.started, None);
        let state = |_| json!({"running": {"startedAt": seconds(self.started)}});
        self.patch("Running", conditions, self.statuses(true, &state, None))
    }

    /// Its containers ended, and are started again some time.
    pub fn backing_off(&self, life: &Life, now: Time) -> Value {
        let conditions = conditions(now, Some("ContainersNotReady"));
        let waiting = json!({"waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off restarting failed container",
        }});
        let last = |at: usize| self.terminated(life.exit_codes.get(at).copied().unwrap_or_default(), now);
        let statuses = self.statuses(false, &|_| waiting.clone(), Some(&last));
        self.patch("Running", conditions, statuses)
    }

    /// Its containers ended for good.
    pub fn ended(&self, life: &Life, now: Time) -> Value {
        let (phase, reason) = match life.fails() {
            true => ("Failed", "PodFailed"),
            false => ("Succeeded", "PodCompleted"),
        };
        let state = |at: usize| self.terminated(life.exit_codes.get(at).copied().unwrap_or_default(), now);
        let statuses = self.statuses(false, &state, None);
        self.patch(phase, conditions(now, Some(reason)), statuses)
    }

    fn patch(&self, phase: &str, conditions: Value, container_statuses: Vec<Value>) -> Value {
        let mut status = json!({
            "phase": phase,
            "startTime": seconds(self.taken_up),
            "hostIP": self.host,
            "hostIPs": [{"ip": self.host}],
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": conditions,
            "containerStatuses": container_statuses,
        });
        if !self.init_containers.is_empty() {
            let done = self.init_containers.iter().map(|(name, image)| {
                let state = self.terminated(0, self.taken_up);
                container(name, image, true, false, 0, state)
            });
            status["initContainerStatuses"] = done.collect();
        }
        json!({"metadata": {"uid": self.uid}, "status": status})
    }

    fn statuses(
        &self,
        ready: bool,
        state: &dyn Fn(usize) -> Value,
        last: Option<&dyn Fn(usize) -> Value>,
    ) -> Vec<Value> {
        let one = |(at, (name, image)): (usize, &(String, String))| {
            let mut status = container(name, image, ready, ready, self.restarts, state(at));
            if let Some(last) = last {
                status["lastState"] = last(at);
            }
            status
        };
        self.containers.iter().enumerate().map(one).collect()
    }

    fn terminated(&self, code: i32, now: Time) -> Value {
        json!({"terminated": {
            "exitCode": code,
            "reason": if code == 0 { "Completed" } else { "Error" },
            "startedAt": seconds(self.started.min(now)),
            "finishedAt": seconds(now),
        }})
    }
}

fn container(name: &str, image: &str, ready: bool, started: bool, restarts: u32, state: Value) -> Value {
    json!({
        "name": name,
        "image": image,
        "imageID": "",
        "ready": ready,
        "started": started,
        "restartCount": restarts,
        "state": state,
        "lastState": {},
    })
}

/// Conditions of a pod whose containers run, or do not for a reason.
fn conditions(since: Time, unready: Option<&str>) -> Value {
    let since = seconds(since);
    let condition = |name: &str| match unready {
        None => json!({"type": name, "status": "True", "lastTransitionTime": since}),
        Some(reason) => {
            json!({"type": name, "status": "False", "reason": reason, "lastTransitionTime": since})
        }
    };
    let mut all = vec![condition("Ready"), condition("ContainersReady")];
    if unready.is_none() {
        let reached = |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": since});
        all.extend([reached("Initialized"), reached("PodReadyToStartContainers")]);
    }
    all.into()
}

/// Times of the API are whole seconds.
fn seconds(time: Time) -> Time {
    Time::from_unix_seconds(time.unix_seconds())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
        let status = subject().running()["status"].take();
        assert_eq!(status["phase"], "Running");
        assert_eq!(status["podIP"], "10.0.0.7");
        assert_eq!(status["startTime"], "1970-01-01T00:00:01Z");
        assert_eq!(
            status["containerStatuses"][1]["state"]["running"]["startedAt"],
            "1970-01-01T00:00:02Z"
        );
        assert_eq!(status["containerStatuses"][0]["restartCount"], 2);
        let ready = status["conditions"].as_array().unwrap();
        assert!(ready.iter().all(|condition| condition["status"] == "True"));
    }

    #[test]
    fn one_container_that_fails_makes_the_pod_fail() {
        let now = Time::from_unix_micros(9_000_000);
        let failed = subject().ended(&life(&[0, 3]), now)["status"].take();
        assert_eq!(failed["phase"], "Failed");
        let states: Vec<_> = (0..2)
            .map(|at| failed["containerStatuses"][at]["state"]["terminated"]["exitCode"].clone())
            .collect();
        assert_eq!(states, [0, 3]);
        assert_eq!(
            failed["containerStatuses"][1]["state"]["terminated"]["reason"],
            "Error"
        );
        let done = subject().ended(&life(&[0, 0]), now)["status"].take();
        assert_eq!(done["phase"], "Succeeded");
        assert_eq!(done["conditions"][0]["reason"], "PodCompleted");
    }

    #[test]
    fn a_container_that_waits_to_be_restarted_shows_how_it_ended() {
        let waits = subject().backing_off(&life(&[1, 1]), Time::from_unix_micros(9_000_000));
        let first = &waits["status"]["containerStatuses"][0];
        assert_eq!(first["state"]["waiting"]["reason"], "CrashLoopBackOff");
        assert_eq!(first["lastState"]["terminated"]["exitCode"], 1);
        assert_eq!(waits["status"]["phase"], "Running");
    }
}
