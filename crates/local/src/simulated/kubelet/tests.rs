use super::*;
use serde_json::{Value, json};

/// One node, one pod, and a time that the test moves.
struct Field {
    kubelet: Kubelet,
    began: Instant,
    now: Duration,
}

impl Field {
    fn new() -> Field {
        let nodes = [("n".to_owned(), Ipv4Addr::new(172, 16, 0, 1))];
        Field {
            kubelet: Kubelet::new(nodes.into_iter().collect()),
            began: Instant::now(),
            now: Duration::ZERO,
        }
    }

    fn wall(&self) -> Time {
        Time::from_unix_micros(i64::try_from(self.now.as_micros()).unwrap())
    }

    /// Tells of a pod; what is written.
    fn see(&mut self, pod: Value) -> Vec<String> {
        let pod = serde_json::from_value(pod).unwrap();
        self.kubelet.take(pod, self.began + self.now, self.wall());
        self.told()
    }

    /// Moves the time; what is written.
    fn pass(&mut self, seconds: f64) -> Vec<String> {
        self.now += Duration::from_secs_f64(seconds);
        self.kubelet.tick(self.began + self.now, self.wall());
        self.told()
    }

    /// Writes everything, each at once.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(write) = self.kubelet.next() {
            self.kubelet.written(write.key());
            told.push(shown(write));
        }
        told
    }
}

fn shown(write: Write) -> String {
    match write {
        Write::Status(_, patch) => {
            let patch: Value = serde_json::from_slice(&patch).unwrap();
            let status = &patch["status"];
            let state = status["containerStatuses"][0]["state"].as_object().unwrap();
            let state = state.keys().next().unwrap().clone();
            let restarts = &status["containerStatuses"][0]["restartCount"];
            format!("{} {state} {restarts}", status["phase"].as_str().unwrap())
        }
        Write::Remove((_, name), uid) => format!("remove {name} {uid}"),
        Write::Warning(_, _, what) => what,
    }
}

fn pod(policy: &str, script: &str) -> Value {
    json!({
        "metadata": {"namespace": "d", "name": "p", "uid": "u"},
        "spec": {
            "nodeName": "n",
            "restartPolicy": policy,
            "containers": [{"name": "c", "command": ["sh", "-c", script]}],
        },
        "status": {"phase": "Pending"},
    })
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_pod_runs_for_its_time_and_ends_as_it_says() {
    for (script, end) in [("sleep 5", "Succeeded"), ("sleep 5; exit 3", "Failed")] {
        let mut field = Field::new();
        assert_eq!(field.see(pod("Never", script)), ["Running running 0"]);
        assert_eq!(field.pass(4.9), NOTHING);
        assert_eq!(field.pass(0.2), [format!("{end} terminated 0")]);
        assert_eq!(field.pass(1e6), NOTHING);
    }
}

#[test]
fn pods_that_are_not_on_a_node_of_ours_are_left_alone() {
    let mut field = Field::new();
    for node in ["", "other"] {
        let mut pod = pod("Never", "sleep 1");
        pod["spec"]["nodeName"] = node.into();
        assert_eq!(field.see(pod), NOTHING);
    }
    assert_eq!(field.pass(10.0), NOTHING);
}

#[test]
fn a_pod_is_taken_up_once() {
    let mut field = Field::new();
    field.see(pod("Never", "sleep 5"));
    assert_eq!(field.see(pod("Never", "sleep 5")), NOTHING);
    field.pass(5.0);
    let mut next = pod("Never", "sleep 5");
    next["metadata"]["uid"] = "v".into();
    assert_eq!(
        field.see(next),
        ["Running running 0"],
        "another pod of the same name"
    );
}

#[test]
fn restarts_wait_longer_each_time_if_the_policy_wants_them() {
    let mut field = Field::new();
    field.see(pod("OnFailure", "sleep 1; exit 1"));
    assert_eq!(
        field.pass(1.0),
        ["Running waiting 0", "Running running 1"],
        "the first restart comes at once"
    );
    assert_eq!(field.pass(1.0), ["Running waiting 1"]);
    assert_eq!(field.pass(9.9), NOTHING);
    assert_eq!(field.pass(0.2), ["Running running 2"]);
    let mut good = Field::new();
    good.see(pod("OnFailure", "sleep 1"));
    assert_eq!(good.pass(1.0), ["Succeeded terminated 0"]);
    let mut always = Field::new();
    always.see(pod("Always", "sleep 1"));
    assert_eq!(always.pass(1.0)[0], "Running waiting 0");
    assert_eq!([0, 1, 2, 6, 99].map(|n| wait(n).as_secs()), [0, 10, 20, 300, 300]);
}

#[test]
fn a_deleted_pod_goes_after_its_termination_within_its_grace() {
    let deleted = |termination: Option<&str>, grace: u64| {
        let mut pod = pod("Never", "sleep 1000");
        if let Some(termination) = termination {
            pod["metadata"]["annotations"] = json!({"volcano.sh/simulated-termination": termination});
        }
        let alive = pod.clone();
        pod["metadata"]["deletionTimestamp"] = "1970-01-01T00:01:00Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = grace.into();
        (alive, pod)
    };
    for (termination, grace, leaves_after) in [
        (None, 30, 0.0),
        (Some("5s"), 30, 5.0),
        (Some("50s"), 30, 30.0),
        (Some("5s"), 0, 0.0),
    ] {
        let mut field = Field::new();
        let (alive, pod) = deleted(termination, grace);
        field.see(alive);
        let mut told = field.see(pod);
        if leaves_after > 0.0 {
            assert_eq!(told, NOTHING, "{termination:?}");
            assert_eq!(field.pass(leaves_after - 0.1), NOTHING, "{termination:?}");
            told = field.pass(0.2);
        }
        assert_eq!(told, ["remove p u"], "{termination:?} {grace}");
        assert_eq!(field.pass(10000.0), NOTHING, "once is enough");
    }
}

#[test]
fn a_pod_that_ran_before_a_restart_of_ours_has_only_the_rest_of_its_time() {
    let mut field = Field::new();
    field.now = Duration::from_secs(100);
    let mut ran = pod("Never", "sleep 60");
    ran["status"] = json!({
        "phase": "Running",
        "podIP": "10.128.0.9",
        "startTime": "1970-01-01T00:01:00Z",
        "containerStatuses": [{"restartCount": 0, "state": {"running": {"startedAt": "1970-01-01T00:01:00Z"}}}],
    });
    assert_eq!(field.see(ran), NOTHING, "its status is right as it is");
    assert_eq!(field.pass(19.0), NOTHING);
    assert_eq!(field.pass(1.5), ["Succeeded terminated 0"]);
    let mut next = pod("Never", "sleep 60");
    next["metadata"]["name"] = "q".into();
    field.see(next);
    let address = field.kubelet.pods[&("d".to_owned(), "q".to_owned())]
        .subject
        .address;
    assert_eq!(
        address,
        Ipv4Addr::new(10, 128, 0, 10),
        "addresses go on after the known ones"
    );
}

#[test]
fn what_failed_is_tried_again() {
    let mut field = Field::new();
    let write = Write::Remove(("d".to_owned(), "p".to_owned()), "u".to_owned());
    field.kubelet.failed(write, field.began);
    assert_eq!(field.kubelet.wakes(), Some(field.began + AGAIN));
    assert_eq!(field.pass(0.5), NOTHING);
    assert_eq!(field.pass(0.6), ["remove p u"]);
}

#[test]
fn writes_of_a_pod_do_not_overtake_each_other() {
    let mut field = Field::new();
    let mut other = pod("Never", "sleep 60");
    other["metadata"]["name"] = "q".into();
    let now = field.began;
    for pod in [pod("Never", "sleep 1"), other] {
        let pod = serde_json::from_value(pod).unwrap();
        field.kubelet.take(pod, now, field.wall());
    }
    let first = field.kubelet.next().unwrap();
    let (_, name) = field.kubelet.next().unwrap().key().clone();
    assert_eq!(name, "q", "other pods do not wait");

    // It ends while the first write is under way, and that has to be made again besides.
    assert_eq!(field.pass(2.0), NOTHING);
    field.kubelet.failed(first, now + field.now);
    assert_eq!(field.pass(0.5), NOTHING);
    assert_eq!(field.pass(1.0), ["Running running 0", "Succeeded terminated 0"]);
    assert!(
        !field
            .kubelet
            .behind
            .contains_key(&("d".to_owned(), "p".to_owned()))
    );
}

#[test]
fn what_a_list_does_not_have_is_forgotten() {
    let mut field = Field::new();
    field.see(pod("Never", "sleep 5"));
    field.kubelet.retain(&FxHashSet::default());
    assert_eq!(field.pass(10.0), NOTHING);
}
