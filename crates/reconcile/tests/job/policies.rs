//! Policies: which event leads to which action, when, and on what.

use serde_json::{Value, json};

use crate::world::{World, job, task, with};

fn policy(event: &str, action: &str) -> Value {
    json!({"event": event, "action": action})
}

/// Two tasks, `a` of two pods and `b` of one, with these policies of the job and of `a`.
fn two_tasks(of_job: Value, of_a: Value) -> Value {
    let a = with(task("a", 2), json!({"policies": of_a}));
    job(json!({"minAvailable": 3, "policies": of_job, "tasks": [a, task("b", 1)]}))
}

/// Makes an event happen to task `a`.
fn happen(world: &mut World, event: &str) {
    match event {
        "PodFailed" => world.fail("j-a-1", 7),
        "PodEvicted" => world.delete_pod("j-a-1"),
        "TaskCompleted" => {
            world.succeed("j-a-0");
            world.succeed("j-a-1");
        }
        "TaskFailed" => world.report(
            "j-a-1",
            json!({"containerStatuses": [{"name": "main", "ready": true, "restartCount": 3}]}),
        ),
        "Unknown" => world.group_phase("Unknown"),
        // One more pod, which nobody starts for as long as the policy waits.
        "PodPending" => {
            world.job["spec"]["tasks"][0]["replicas"] = json!(3);
            world.wait(30);
        }
        other => panic!("{other} does not happen"),
    }
}

#[test]
fn every_event_leads_to_every_action() {
    let events = [
        "PodFailed",
        "PodEvicted",
        "PodPending",
        "TaskCompleted",
        "TaskFailed",
        "Unknown",
    ];
    let actions = [
        ("RestartJob", "Restarting"),
        ("RestartTask", "Restarting"),
        ("RestartPod", "Restarting"),
        ("RestartPartition", "Restarting"),
        ("AbortJob", "Aborting"),
        ("TerminateJob", "Terminating"),
        ("CompleteJob", "Completing"),
    ];
    for event in events {
        for named in [event, "*"] {
            for (action, phase) in actions {
                let mut rule = policy(named, action);
                if event == "PodPending" {
                    rule["timeout"] = json!("30s");
                }
                let mut parted = two_tasks(json!([rule]), json!([]));
                parted["spec"]["tasks"][0]["partitionPolicy"] =
                    json!({"totalPartitions": 2, "partitionSize": 1});
                let mut world = World::running(parted);
                happen(&mut world, event);
                world.settle();
                let is_about_a_part = matches!(action, "RestartTask" | "RestartPod" | "RestartPartition");
                let first = world.phases.first().map(String::as_str);
                if event == "Unknown" && is_about_a_part {
                    assert_eq!(first, None, "{named}: a group is no part of a Job");
                } else {
                    assert_eq!(first, Some(phase), "{named} leads to {action}");
                    let told = format!("ExecuteAction: Start to execute action {action} ");
                    if event == "PodPending" {
                        // What will be done when its time is over was told before.
                        world.events.retain(|told| told.contains(" Start to "));
                    }
                    assert_eq!(world.events, [told], "{named} leads to {action}");
                    assert_eq!(
                        world.count("version"),
                        i64::from(!is_about_a_part),
                        "{named}, {action}"
                    );
                    assert_eq!(
                        world.count("retryCount"),
                        i64::from(phase == "Restarting"),
                        "{named}, {action}"
                    );
                }
            }
        }
    }
}

#[test]
fn resuming_a_job_that_runs_changes_nothing() {
    let mut world = World::running(two_tasks(json!([policy("PodFailed", "ResumeJob")]), json!([])));
    world.fail("j-a-1", 1);
    world.wait(5);
    assert_eq!(world.phases, [""; 0]);
    assert_eq!(
        world.events,
        ["ExecuteAction: Start to execute action ResumeJob "]
    );
}

#[test]
fn to_go_on_as_ever_is_nothing_to_tell() {
    let started = "ExecuteAction: Start to execute action EnqueueJob ";
    for (action, told) in [("SyncJob", &[][..]), ("EnqueueJob", &[started])] {
        let mut world = World::running(two_tasks(json!([policy("PodFailed", action)]), json!([])));
        world.fail("j-a-1", 1);
        world.wait(5);
        assert_eq!(world.phases, [""; 0], "{action}");
        assert_eq!(world.events, told, "{action}");
    }
}

#[test]
fn a_timeout_that_cannot_be_read_is_never_over() {
    for (event, phases) in [
        ("PodFailed", &["Pending", "Running"][..]),
        ("PodPending", &["Pending"]),
    ] {
        let unreadable = json!({"event": event, "action": "AbortJob", "timeout": "10 minutes"});
        let next = json!({"event": event, "action": "TerminateJob", "timeout": "1s"});
        let mut world = World::new(two_tasks(json!([unreadable, next]), json!([])));
        world.settle();
        let told = "ExecuteAction: Action AbortJob of a policy is never executed: its timeout \"10 minutes\" is no \
                    duration such as 90s or 1h30m";
        assert_eq!(world.events, [told]);
        world.admit();
        if event == "PodFailed" {
            world.start_all();
            world.fail("j-a-1", 1);
        }
        world.wait(1000);
        assert_eq!(world.events, [told], "it is told once");
        assert_eq!(
            world.phases, phases,
            "{event}: nothing is done, neither now nor by the next policy"
        );
    }
}

#[test]
fn what_a_policy_does_not_name_does_not_matter() {
    for (named, event) in [
        ("PodFailed", "PodEvicted"),
        ("PodEvicted", "PodFailed"),
        ("TaskCompleted", "PodFailed"),
        ("TaskFailed", "TaskCompleted"),
        ("Unknown", "TaskFailed"),
        ("PodPending", "PodFailed"),
        ("JobUpdated", "PodFailed"),
    ] {
        let mut world = World::running(two_tasks(json!([policy(named, "AbortJob")]), json!([])));
        happen(&mut world, event);
        world.settle();
        assert!(
            !world.phases.contains(&"Aborting".to_owned()),
            "{named} is not {event}"
        );
    }
}

#[test]
fn the_policies_of_the_task_come_first_and_the_first_that_matches_counts() {
    let cases = [
        (
            "task before job",
            json!([policy("PodFailed", "AbortJob")]),
            json!([policy("PodFailed", "CompleteJob")]),
            "Completing",
        ),
        (
            "job when the task's are about something else",
            json!([policy("PodFailed", "AbortJob")]),
            json!([policy("PodEvicted", "CompleteJob")]),
            "Aborting",
        ),
        (
            "first of the job's",
            json!([policy("PodFailed", "TerminateJob"), policy("*", "AbortJob")]),
            json!([]),
            "Terminating",
        ),
        (
            "exit code in the order of the list",
            json!([{"exitCode": 7, "action": "CompleteJob"}, policy("PodFailed", "AbortJob")]),
            json!([]),
            "Completing",
        ),
        (
            "another exit code",
            json!([{"exitCode": 8, "action": "CompleteJob"}, policy("PodFailed", "AbortJob")]),
            json!([]),
            "Aborting",
        ),
        (
            "one of several events",
            json!([{"events": ["PodEvicted", "PodFailed"], "action": "CompleteJob"}]),
            json!([]),
            "Completing",
        ),
    ];
    for (name, of_job, of_a, phase) in cases {
        let mut world = World::running(two_tasks(of_job, of_a));
        happen(&mut world, "PodFailed");
        world.settle();
        assert_eq!(world.phase(), phase, "{name}");
    }
}

#[test]
fn the_policy_of_another_task_does_not_count() {
    let of_a = json!([policy("PodFailed", "CompleteJob")]);
    let mut world = World::running(two_tasks(json!([]), of_a));
    world.fail("j-b-0", 1);
    world.settle();
    assert_eq!(world.phases, [""; 0]);
}

#[test]
fn what_happened_first_counts() {
    let of_job = json!([{"exitCode": 1, "action": "AbortJob"}, {"exitCode": 2, "action": "CompleteJob"}]);
    for (first, second, phase) in [(1, 2, "Aborting"), (2, 1, "Completing")] {
        let mut world = World::running(two_tasks(of_job.clone(), json!([])));
        world.fail("j-b-0", first);
        world.now = world
            .now
            .saturating_add(volcano_api::time::GoDuration::from_seconds(2));
        world.fail("j-a-0", second);
        world.settle();
        assert_eq!(world.phase(), phase);
    }
}

#[test]
fn a_restart_of_a_task_leaves_the_others_alone() {
    let mut world = World::running(two_tasks(json!([policy("PodFailed", "RestartTask")]), json!([])));
    let group = world.group.clone();
    world.fail("j-a-1", 1);
    world.settle();
    assert_eq!(
        world.shown_pods(),
        ["-j-a-0 Running", "j-a-1 Pending", "j-b-0 Running"]
    );
    assert_eq!(world.job["status"]["state"]["reason"], "RestartTask/a");
    assert_eq!((world.count("version"), world.count("retryCount")), (0, 1));
    assert_eq!(world.group, group, "the group stays");
    world.reap();
    world.settle();
    world.start_all();
    world.settle();
    assert_eq!(world.phases, ["Restarting", "Pending", "Running"]);
    assert_eq!(world.annotation("j-a-0", "volcano.sh/job-retry-count"), "1");
    assert_eq!(world.annotation("j-b-0", "volcano.sh/job-retry-count"), "0");
    world.fail("j-b-0", 1);
    world.settle();
    assert_eq!(
        world.count("retryCount"),
        2,
        "a pod of an earlier attempt that was not restarted matters"
    );
    assert_eq!(
        world.shown_pods(),
        ["j-a-0 Running", "j-a-1 Running", "j-b-0 Pending"]
    );
}

#[test]
fn a_restart_of_a_pod_leaves_the_others_alone() {
    let mut world = World::running(two_tasks(json!([policy("PodFailed", "RestartPod")]), json!([])));
    world.fail("j-a-1", 1);
    world.settle();
    assert_eq!(
        world.shown_pods(),
        ["j-a-0 Running", "j-a-1 Pending", "j-b-0 Running"]
    );
    assert_eq!(world.job["status"]["state"]["reason"], "RestartPod/j-a-1");
    world.start_all();
    world.settle();
    assert_eq!(world.phase(), "Running");
    assert_eq!(world.count("retryCount"), 1);
}

#[test]
fn pods_that_fail_together_cost_one_retry() {
    let mut world = World::running(two_tasks(json!([policy("PodFailed", "RestartPod")]), json!([])));
    world.fail("j-a-0", 1);
    world.fail("j-a-1", 1);
    world.settle();
    assert_eq!(
        world.shown_pods(),
        ["j-a-0 Pending", "j-a-1 Pending", "j-b-0 Running"]
    );
    assert!(world.count("retryCount") <= 2);
}

#[test]
fn a_restart_of_a_partition_leaves_the_others_alone() {
    let a = with(
        task("a", 4),
        json!({"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2},
        "policies": [policy("PodFailed", "RestartPartition")]}),
    );
    let mut world = World::running(job(json!({"minAvailable": 5, "tasks": [a, task("b", 1)]})));
    world.fail("j-a-2", 1);
    world.settle();
    assert_eq!(
        world.shown_pods(),
        [
            "j-a-0 Running",
            "j-a-1 Running",
            "j-a-2 Pending",
            "-j-a-3 Running",
            "j-b-0 Running"
        ]
    );
    assert_eq!(world.job["status"]["state"]["reason"], "RestartPartition/a/1");
    world.reap();
    world.settle();
    world.start_all();
    world.settle();
    assert_eq!((world.phase(), world.count("retryCount")), ("Running".into(), 1));
}

#[test]
fn a_task_without_partitions_has_none_to_restart() {
    let mut world = World::running(two_tasks(
        json!([policy("PodFailed", "RestartPartition")]),
        json!([]),
    ));
    world.fail("j-a-1", 1);
    world.settle();
    assert_eq!(world.phases, [""; 0]);
    assert_eq!(world.count("retryCount"), 0);
}

#[test]
fn a_timeout_runs_from_what_happened_and_survives_a_crash() {
    let later = json!([{"event": "PodFailed", "action": "RestartJob", "timeout": "30s"}]);
    let mut world = World::running(two_tasks(later, json!([])));
    world.fail("j-a-1", 1);
    world.wait(10);
    assert_eq!(
        world.events,
        ["ExecuteAction: Execute action RestartJob after 30s"]
    );
    assert_eq!(world.phases, [""; 0]);
    world.crash();
    world.wait(19);
    assert_eq!(world.phases, [""; 0]);
    world.wait(1);
    assert_eq!(
        world.phases.first().map(String::as_str),
        Some("Restarting"),
        "thirty seconds in all"
    );
    assert_eq!(world.count("retryCount"), 1);
}

#[test]
fn a_job_has_not_failed_while_something_will_be_done_about_it() {
    let later = json!([{"event": "PodFailed", "action": "RestartJob", "timeout": "30s"}]);
    let mut world = World::running(job(
        json!({"minAvailable": 1, "policies": later, "tasks": [task("a", 1)]}),
    ));
    world.fail("j-a-0", 1);
    world.wait(29);
    assert_eq!(world.phase(), "Running");
    world.wait(1);
    assert!(world.phases.contains(&"Restarting".to_owned()));
}

#[test]
fn a_pod_that_waits_too_long() {
    let later = json!([{"event": "PodPending", "action": "AbortJob", "timeout": "60s"}]);
    let mut world = World::new(two_tasks(later, json!([])));
    world.settle();
    world.admit();
    world.start("j-a-0");
    world.start("j-a-1");
    world.wait(59);
    assert_eq!(world.phase(), "Pending");
    let mut other = World::new(two_tasks(
        json!([{"event": "PodPending", "action": "AbortJob", "timeout": "60s"}]),
        json!([]),
    ));
    other.settle();
    other.admit();
    other.wait(59);
    other.start_all();
    other.wait(100);
    assert_eq!(
        other.phase(),
        "Running",
        "a pod that runs has not waited too long"
    );
    world.wait(1);
    assert_eq!(world.phase(), "Aborting");
}

#[test]
fn waiting_without_a_timeout_is_no_reason() {
    for event in ["PodPending", "*"] {
        let mut world = World::new(two_tasks(json!([policy(event, "AbortJob")]), json!([])));
        world.settle();
        world.admit();
        world.wait(1000);
        assert_eq!(world.phase(), "Pending", "{event}");
    }
}

#[test]
fn an_evicted_pod_is_waited_for() {
    let later = json!([{"event": "PodEvicted", "action": "RestartJob", "timeout": "60s"}]);
    let evicted = |world: &mut World| {
        world.delete_pod("j-a-1");
        world.settle();
        world.wait(30);
        world.reap();
        world.settle();
        assert_eq!(
            world.shown_pods(),
            ["j-a-0 Running", "j-a-1 Pending", "j-b-0 Running"]
        );
        assert_eq!(world.count("retryCount"), 0);
    };
    let mut back = World::running(two_tasks(later.clone(), json!([])));
    evicted(&mut back);
    back.wait(30);
    back.start_all();
    back.wait(100);
    assert_eq!(
        (back.phase(), back.count("retryCount")),
        ("Running".into(), 0),
        "it is back in time"
    );

    let mut gone = World::running(two_tasks(later, json!([])));
    evicted(&mut gone);
    gone.crash();
    gone.wait(59);
    assert_eq!(gone.count("retryCount"), 0);
    gone.wait(2);
    assert_eq!(
        gone.count("retryCount"),
        1,
        "it is not, and the crash has not changed when"
    );
}

#[test]
fn a_pod_that_is_evicted_while_nobody_looks_is_missed() {
    let mut world = World::running(two_tasks(json!([policy("PodEvicted", "RestartJob")]), json!([])));
    world.pods.remove("j-a-1");
    world.crash();
    world.settle();
    assert_eq!(world.count("retryCount"), 1);
    assert_eq!(world.job["status"]["state"]["message"], "PodEvicted of pod j-a-1");
}

#[test]
fn what_the_controller_deletes_itself_is_not_evicted() {
    let of_job = json!([
        policy("PodFailed", "RestartTask"),
        policy("PodEvicted", "AbortJob")
    ]);
    for crashes in [false, true] {
        let mut world = World::running(two_tasks(of_job.clone(), json!([])));
        world.fail("j-a-1", 1);
        world.settle();
        assert_eq!(world.shown_pods()[0], "-j-a-0 Running");
        if crashes {
            world.crash();
        }
        world.fail("j-b-0", 1);
        world.settle();
        assert_eq!(
            world.count("retryCount"),
            1,
            "b failed while the job restarts for a"
        );
        if crashes {
            world.crash();
            world.settle();
        }
        world.reap();
        world.settle();
        world.start_all();
        world.settle();
        assert_eq!(world.phase(), "Running", "crashes: {crashes}");
    }
}

#[test]
fn a_group_that_is_unknown_matters_in_every_version() {
    let mut world = World::running(two_tasks(json!([policy("Unknown", "RestartJob")]), json!([])));
    for attempt in 1..=2 {
        world.group_phase("Unknown");
        world.settle();
        assert_eq!(
            (world.count("retryCount"), world.count("version")),
            (attempt, attempt)
        );
        world.reap();
        world.settle();
        world.admit();
        world.start_all();
        world.settle();
        assert_eq!(world.phase(), "Running");
    }
}

#[test]
fn an_event_of_an_older_version_does_not_matter() {
    let mut world = World::running(two_tasks(json!([policy("PodFailed", "RestartJob")]), json!([])));
    world.fail("j-a-0", 1);
    world.settle();
    // A pod that is being killed ends badly.
    world.report("j-a-1", json!({"phase": "Failed"}));
    world.settle();
    assert_eq!(world.count("retryCount"), 1);
}

#[test]
fn a_new_failure_while_it_restarts_costs_a_retry() {
    let mut world = World::running(two_tasks(json!([policy("PodFailed", "RestartJob")]), json!([])));
    world.fail("j-a-0", 1);
    world.settle();
    world.admit();
    assert_eq!(world.phase(), "Restarting", "old pods are still leaving");
    world.fail("j-a-0", 1);
    world.settle();
    assert_eq!((world.count("retryCount"), world.count("version")), (2, 2));
}

#[test]
fn restarts_of_containers_add_up_to_the_budget_of_their_task() {
    let cases = [
        ("the budget", json!(5), [3, 2], true),
        ("below it", json!(5), [2, 2], false),
        ("three when it is not said", json!(0), [1, 2], true),
        ("no limit", json!(-1), [100, 100], false),
    ];
    for (name, max_retry, restarts, is_over) in cases {
        let a = with(
            task("a", 2),
            json!({"maxRetry": max_retry, "policies": [policy("TaskFailed", "AbortJob")]}),
        );
        let mut world = World::running(job(json!({"minAvailable": 2, "tasks": [a]})));
        for (index, count) in restarts.into_iter().enumerate() {
            let status =
                json!({"containerStatuses": [{"name": "main", "ready": true, "restartCount": count}]});
            world.report(&format!("j-a-{index}"), status);
        }
        world.settle();
        assert_eq!(world.phase() == "Aborting", is_over, "{name}");
    }
}
