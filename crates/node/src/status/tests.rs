use super::*;
use crate::lifecycle::Ending;
use jiff::SignedDuration;
use serde_json::{Value, from_value, json, to_value};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn pod(policy: &str, init: &[&str], main: &[&str]) -> Pod {
    let list = |names: &[&str]| -> Vec<Value> {
        names
            .iter()
            .map(|name| json!({"name": name, "image": "busybox"}))
            .collect()
    };
    from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"restartPolicy": policy, "initContainers": list(init), "containers": list(main)},
        "status": {"qosClass": "BestEffort", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:01Z"},
            {"type": "Other", "status": "False"},
        ]},
    }))
    .unwrap()
}

fn ended(code: i32) -> Ended {
    Ended {
        code,
        signal: None,
        reason: if code == 0 { "Completed" } else { "Error" }.to_owned(),
        message: None,
        started: None,
        finished: at(9),
        id: None,
    }
}

/// What happens to containers, in order: a number is an exit code, `run` a start, `-` nothing.
fn after(pod: &Pod, happenings: &[&str]) -> PodState {
    let mut state = PodState::first(pod, at(0));
    state.is_set_up = true;
    for (live, text) in state.containers.iter_mut().zip(happenings) {
        for word in text.split_whitespace() {
            match word.parse() {
                Ok(code) => live.end(ended(code)),
                Err(_) if word == "run" => {
                    live.run("id".to_owned(), at(5));
                    live.ready = true;
                }
                Err(_) => {}
            }
        }
    }
    state
}

#[test]
fn phases_are_those_of_the_kubelet() {
    type Words = &'static [&'static str];
    let cases: [(&str, Words, Words, Words, &str); 14] = [
        ("Never", &[], &["a", "b"], &["-", "-"], "Pending"),
        ("Never", &[], &["a", "b"], &["run", "-"], "Pending"),
        ("Never", &[], &["a", "b"], &["run", "run"], "Running"),
        ("Never", &[], &["a", "b"], &["run 1", "run"], "Running"),
        ("Never", &[], &["a", "b"], &["run 0", "run 0"], "Succeeded"),
        ("Never", &[], &["a", "b"], &["run 0", "run 3"], "Failed"),
        ("OnFailure", &[], &["a"], &["run 3"], "Running"),
        ("OnFailure", &[], &["a"], &["run 3 run 0"], "Succeeded"),
        ("Always", &[], &["a"], &["run 0"], "Running"),
        ("Never", &["i"], &["a"], &["-", "-"], "Pending"),
        ("Never", &["i"], &["a"], &["run", "-"], "Pending"),
        ("Never", &["i"], &["a"], &["run 1", "-"], "Failed"),
        ("OnFailure", &["i"], &["a"], &["run 1", "-"], "Pending"),
        ("Never", &["i"], &["a"], &["run 0", "run"], "Running"),
    ];
    for (policy, init, main, happenings, expected) in cases {
        let pod = pod(policy, init, main);
        assert_eq!(
            phase(&after(&pod, happenings)),
            expected,
            "{policy} {happenings:?}"
        );
    }
}

#[test]
fn a_pod_that_was_ended_has_succeeded_only_if_all_of_it_has() {
    let pod = pod("Always", &[], &["a"]);
    for (happening, failure, expected) in [
        ("run", None, "Running"),
        ("run 143", None, "Failed"),
        ("run 0", None, "Succeeded"),
        (
            "run 0",
            Some(("DeadlineExceeded".to_owned(), "late".to_owned())),
            "Failed",
        ),
        ("-", None, "Failed"),
    ] {
        let mut state = after(&pod, &[happening]);
        state.ending = Some(Ending {
            grace: SignedDuration::ZERO,
            until: at(9),
            at_once: false,
            failure: failure.clone(),
        });
        assert_eq!(phase(&state), expected, "{happening} {failure:?}");
        let made = status(&pod, &state, None, "1.1.1.1", at(9));
        let shown = made.reason.zip(made.message);
        assert_eq!(shown, failure, "{happening}");
    }
}

fn conditions_of(pod: &Pod, state: &PodState, now: i64) -> Vec<(String, String, Option<String>)> {
    let made = status(pod, state, None, "1.1.1.1", at(now));
    let conditions = made.conditions.unwrap_or_default().into_iter();
    conditions
        .map(|one| (one.type_, one.status, one.reason))
        .collect()
}

#[test]
fn conditions_of_others_stay_and_ours_follow_the_containers() {
    let pod = pod("Never", &["i"], &["a"]);
    let text = |list: [(&str, &str, Option<&str>); 6]| {
        list.map(|(kind, status, reason)| (kind.to_owned(), status.to_owned(), reason.map(str::to_owned)))
    };
    let others = [("PodScheduled", "True", None), ("Other", "False", None)];
    let waiting = text([
        ("PodReadyToStartContainers", "True", None),
        ("Initialized", "False", Some("ContainersNotInitialized")),
        ("Ready", "False", Some("ContainersNotReady")),
        ("ContainersReady", "False", Some("ContainersNotReady")),
        others[0],
        others[1],
    ]);
    assert_eq!(conditions_of(&pod, &after(&pod, &["run", "-"]), 5), waiting);
    let running = text([
        ("PodReadyToStartContainers", "True", None),
        ("Initialized", "True", None),
        ("Ready", "True", None),
        ("ContainersReady", "True", None),
        others[0],
        others[1],
    ]);
    assert_eq!(conditions_of(&pod, &after(&pod, &["run 0", "run"]), 5), running);
    let done = text([
        ("PodReadyToStartContainers", "False", None),
        ("Initialized", "True", Some("PodCompleted")),
        ("Ready", "False", Some("PodCompleted")),
        ("ContainersReady", "False", Some("PodCompleted")),
        others[0],
        others[1],
    ]);
    assert_eq!(conditions_of(&pod, &after(&pod, &["run 0", "run 0"]), 5), done);
}

#[test]
fn a_condition_keeps_its_time_while_it_holds() {
    let mut pod = pod("Never", &[], &["a"]);
    let state = after(&pod, &["run"]);
    pod.status = Some(status(&pod, &state, None, "1.1.1.1", at(5)));
    let later = status(&pod, &state, None, "1.1.1.1", at(50));
    assert_eq!(Some(later), pod.status);
}

#[test]
fn a_container_between_two_runs_is_shown_as_waiting() {
    let pod = pod("Always", &[], &["a"]);
    let state = after(&pod, &["run 1 run 2"]);
    let made = status(&pod, &state, Some("10.0.0.2"), "1.1.1.1", at(9));
    let shown = to_value(&made.container_statuses.unwrap()[0]).unwrap();
    assert_eq!(shown["state"]["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(
        shown["state"]["waiting"]["message"],
        "back-off 10s restarting failed container=a pod=p_ns(u)"
    );
    assert_eq!(shown["lastState"]["terminated"]["exitCode"], 2);
    assert_eq!(
        (&shown["restartCount"], &shown["image"]),
        (&json!(1), &json!("busybox"))
    );
    assert_eq!(
        (made.pod_ip.as_deref(), made.qos_class.as_deref()),
        (Some("10.0.0.2"), Some("BestEffort"))
    );
}
