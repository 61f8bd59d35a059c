use super::*;
use serde_json::{Value, from_value, json};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn pod(policy: &str, init: Value, main: &[&str]) -> Pod {
    let main: Vec<Value> = main.iter().map(|name| json!({"name": name})).collect();
    from_value(json!({"spec": {"restartPolicy": policy, "initContainers": init, "containers": main}}))
        .unwrap()
}

fn state(policy: &str, init: Value, main: &[&str]) -> PodState {
    PodState::first(&pod(policy, init, main), at(0))
}

fn ended(code: i32, second: i64) -> Ended {
    Ended {
        code,
        signal: None,
        reason: "Error".to_owned(),
        message: None,
        started: None,
        finished: at(second),
        id: None,
    }
}

fn run(state: &mut PodState, index: usize, second: i64) {
    state.containers[index].run("id".to_owned(), at(second));
}

#[test]
fn init_containers_start_one_after_the_other_and_main_ones_together() {
    let mut state = state("Never", json!([{"name": "i"}, {"name": "j"}]), &["a", "b"]);
    for (index, second) in [(0, 1), (1, 2)] {
        assert_eq!(state.decide(at(second)).start, [index]);
        run(&mut state, index, second);
        assert_eq!(state.decide(at(second)), Decision::default());
        state.containers[index].end(ended(0, second));
    }
    assert_eq!(state.decide(at(3)).start, [2, 3]);
}

#[test]
fn a_failed_init_container_ends_a_pod_that_never_restarts() {
    let mut state = state("Never", json!([{"name": "i"}]), &["a"]);
    run(&mut state, 0, 1);
    state.containers[0].end(ended(1, 2));
    assert!(state.decide(at(2)).is_over);
    state.restart = Restart::OnFailure;
    assert_eq!(state.decide(at(2)).start, [0]);
}

#[test]
fn waits_double_from_the_second_end_to_five_minutes() {
    let mut state = state("Always", json!([]), &["a"]);
    let mut now = 0;
    for wait in [0, 10, 20, 40, 80, 160, 300, 300] {
        run(&mut state, 0, now);
        state.containers[0].end(ended(0, now));
        let decision = state.decide(at(now));
        let due = (wait > 0).then(|| at(now + wait));
        assert_eq!(
            (decision.start.is_empty(), decision.wake),
            (wait > 0, due),
            "after {wait} s"
        );
        now += wait;
        assert_eq!(state.decide(at(now)).start, [0]);
    }
    assert_eq!(state.containers[0].restarts, 7);
    run(&mut state, 0, now);
    state.containers[0].end(ended(1, now + 601));
    assert_eq!(state.decide(at(now + 601)).start, [0], "a long run begins anew");
}

#[test]
fn the_policy_says_who_is_started_again() {
    for (policy, code, again) in [
        ("Always", 0, true),
        ("Always", 1, true),
        ("OnFailure", 0, false),
        ("OnFailure", 1, true),
        ("Never", 1, false),
    ] {
        let mut state = state(policy, json!([]), &["a"]);
        run(&mut state, 0, 0);
        state.containers[0].end(ended(code, 0));
        let decision = state.decide(at(0));
        assert_eq!(
            (!decision.start.is_empty(), decision.is_over),
            (again, !again),
            "{policy} {code}"
        );
    }
}

#[test]
fn a_sidecar_lets_others_start_and_ends_with_the_last_of_them() {
    let init = json!([{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]);
    let mut state = state("Never", init, &["a"]);
    assert_eq!(state.decide(at(0)).start, [0]);
    run(&mut state, 0, 0);
    assert_eq!(
        state.decide(at(0)),
        Decision::default(),
        "its startup probe has not passed"
    );
    assert!(!state.is_passed(&state.containers[0]));
    state.containers[0].started = true;
    assert_eq!(state.decide(at(0)).start, [1]);
    run(&mut state, 1, 0);
    state.containers[1].end(ended(0, 0));
    run(&mut state, 2, 0);
    state.containers[0].end(ended(0, 1));
    assert_eq!(state.decide(at(1)).start, [0]);
    run(&mut state, 0, 1);
    assert!(state.is_initialized(), "it was before the sidecar ran again");
    state.containers[2].end(ended(0, 2));
    let decision = state.decide(at(2));
    assert_eq!((decision.terminate, decision.is_over), (vec![0], false));
    state.containers[0].end(ended(143, 2));
    assert!(state.decide(at(2)).is_over);
}

#[test]
fn who_is_told_to_end_is_killed_when_the_grace_is_over() {
    let mut state = state("Always", json!([]), &["a"]);
    run(&mut state, 0, 0);
    state.ending = Some(ending(5, 6));
    assert_eq!(state.decide(at(1)).terminate, [0]);
    state.containers[0].told = Some(Told {
        until: at(6),
        killed: false,
    });
    let decision = state.decide(at(2));
    assert_eq!((decision.kill.is_empty(), decision.wake), (true, Some(at(6))));
    assert_eq!(state.decide(at(6)).kill, [0]);
    state.containers[0].end(ended(137, 6));
    let decision = state.decide(at(6));
    assert_eq!((decision.start.is_empty(), decision.is_over), (true, true));
}

fn ending(grace: i64, until: i64) -> Ending {
    Ending {
        grace: SignedDuration::from_secs(grace),
        until: at(until),
        at_once: false,
        failure: None,
    }
}

/// Two sidecars and a main container, all of which run.
fn with_sidecars(policy: &str) -> PodState {
    let init = json!([{"name": "s", "restartPolicy": "Always"}, {"name": "t", "restartPolicy": "Always"}]);
    let mut state = state(policy, init, &["a"]);
    for index in 0..3 {
        run(&mut state, index, 0);
        state.containers[index].started = true;
    }
    state
}

#[test]
fn a_sidecar_that_fails_before_it_has_started_lets_nobody_start() {
    let init = json!([{"name": "s", "restartPolicy": "Always"}]);
    let mut state = state("Never", init, &["a"]);
    run(&mut state, 0, 0);
    state.containers[0].end(ended(1, 0));
    assert_eq!(state.decide(at(0)).start, [0]);
    run(&mut state, 0, 0);
    state.containers[0].started = true;
    assert_eq!(state.decide(at(0)).start, [1]);
}

#[test]
fn sidecars_of_a_pod_that_ends_go_after_the_others_and_the_last_one_first() {
    let mut state = with_sidecars("Always");
    state.ending = Some(ending(30, 31));
    for (at_second, index) in [(1, 2), (2, 1), (3, 0)] {
        let decision = state.decide(at(at_second));
        assert_eq!((decision.terminate, decision.is_over), (vec![index], false));
        let own = SignedDuration::from_secs(30);
        assert_eq!(
            state.killed_at(index, own, at(at_second)),
            at(31),
            "the grace is the pod's"
        );
        state.containers[index].told = Some(Told {
            until: at(31),
            killed: false,
        });
        assert!(state.decide(at(at_second)).terminate.is_empty());
        state.containers[index].end(ended(143, at_second));
    }
    assert!(state.decide(at(3)).is_over);
}

#[test]
fn a_sidecar_whose_turn_comes_too_late_has_a_moment() {
    let mut state = with_sidecars("Always");
    let own = SignedDuration::from_secs(30);
    state.ending = Some(ending(30, 31));
    assert_eq!(state.killed_at(1, own, at(31)), at(33));
    state.ending = Some(ending(0, 1));
    assert_eq!(state.killed_at(1, own, at(1)), at(1));
}

#[test]
fn nobody_waits_for_others_when_the_node_stops() {
    let mut state = with_sidecars("Always");
    state.ending = Some(Ending {
        at_once: true,
        ..ending(2, 3)
    });
    assert_eq!(state.decide(at(1)).terminate, [0, 1, 2]);
}

#[test]
fn sidecars_share_the_grace_that_begins_with_the_end_of_the_main_containers() {
    let mut state = with_sidecars("Never");
    let own = SignedDuration::from_secs(30);
    state.containers[2].end(ended(0, 10));
    assert_eq!(state.decide(at(10)).terminate, [1]);
    assert_eq!(state.killed_at(1, own, at(10)), at(40));
    state.containers[1].end(ended(143, 20));
    assert_eq!(state.decide(at(20)).terminate, [0]);
    assert_eq!(state.killed_at(0, own, at(20)), at(40));
}

#[test]
fn containers_wait_for_their_creation_or_for_those_that_run_first() {
    let reasons = |init: Value| -> Vec<String> {
        let state = state("Never", init, &["a"]);
        let reason = |live: &Live| match &live.state {
            State::Waiting { reason, .. } => reason.clone(),
            other => panic!("{other:?}"),
        };
        state.containers.iter().map(reason).collect()
    };
    assert_eq!(reasons(json!([])), ["ContainerCreating"]);
    assert_eq!(
        reasons(json!([{"name": "i"}])),
        ["PodInitializing", "PodInitializing"]
    );
}

#[test]
fn an_unhealthy_container_ends_and_starts_again() {
    let mut state = state("Always", json!([]), &["a", "b"]);
    run(&mut state, 0, 0);
    run(&mut state, 1, 0);
    state.containers[1].unhealthy = true;
    assert_eq!(state.decide(at(1)).terminate, [1]);
    state.containers[1].end(ended(143, 1));
    assert_eq!(state.decide(at(1)).start, [1]);
}

#[test]
fn the_deadline_counts_from_the_start_of_the_pod() {
    let mut pod = pod("Never", json!([]), &["a"]);
    pod.spec.as_mut().unwrap().active_deadline_seconds = Some(30);
    let state = PodState::first(&pod, at(100));
    assert_eq!(state.decide(at(100)).wake, Some(at(130)));
    assert!(!state.is_past_deadline(at(129)));
    assert!(state.is_past_deadline(at(130)));
}

#[test]
fn what_ran_before_a_restart_of_the_node_is_lost() {
    let mut pod = pod("Never", json!([{"name": "i"}]), &["a", "b"]);
    pod.status = Some(
        from_value(json!({
            "initContainerStatuses": [
                {"name": "i", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                 "state": {"terminated": {"exitCode": 0}}},
            ],
            "containerStatuses": [
                {"name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 2,
                 "state": {"running": {"startedAt": "1970-01-01T00:00:05Z"}}},
                {"name": "b", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                 "state": {"terminated": {"exitCode": 0}}},
            ],
        }))
        .unwrap(),
    );
    let state = PodState::first(&pod, at(9));
    assert!(state.decide(at(9)).is_over);
    let State::Ended(lost) = &state.containers[1].state else {
        panic!()
    };
    assert_eq!(
        (lost.code, lost.reason.as_str(), lost.started),
        (137, LOST, Some(at(5)))
    );
    pod.spec.as_mut().unwrap().restart_policy = Some("OnFailure".to_owned());
    let mut state = PodState::first(&pod, at(9));
    assert_eq!(
        state.decide(at(9)).start,
        [0],
        "volumes are empty: init containers run again"
    );
    run(&mut state, 0, 9);
    state.containers[0].end(ended(0, 9));
    assert_eq!(state.decide(at(9)).start, [1]);
    run(&mut state, 1, 9);
    assert_eq!(state.containers[1].restarts, 3);
}
