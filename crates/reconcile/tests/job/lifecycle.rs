//! Lives of Jobs from their first write to their last.

use serde_json::{Value, json};

use crate::world::{World, job, task, two_pods, with};

fn on_failure(action: &str) -> Value {
    json!({"policies": [{"event": "PodFailed", "action": action}]})
}

#[test]
fn a_normal_run() {
    let mut world = World::new(two_pods(json!({})));
    world.settle();
    assert_eq!(world.phases, ["Pending"]);
    assert_eq!(world.count("minAvailable"), 2);
    assert!(world.pods.is_empty(), "no pods before the group is admitted");
    let group = world.group.clone().expect("the group is made");
    assert_eq!(group["metadata"]["name"], "j-job-uid");
    assert!(group.get("status").is_none(), "the scheduler sets the phase");

    world.group_phase("Pending");
    world.settle();
    assert!(world.pods.is_empty(), "a pending group is not admitted");
    world.admit();
    assert_eq!(world.shown_pods(), ["j-t-0 Pending", "j-t-1 Pending"]);
    assert_eq!(
        world.count("pending"),
        2,
        "counted with the write that follows their creation"
    );
    assert_eq!(world.status_writes, 2);

    world.start("j-t-0");
    world.wait(2);
    assert_eq!(world.phase(), "Pending");
    world.start("j-t-1");
    world.settle();
    assert_eq!(world.phase(), "Running");
    assert_eq!(world.count("running"), 2);

    world.succeed("j-t-0");
    world.wait(2);
    assert_eq!(world.phase(), "Running");
    world.succeed("j-t-1");
    world.settle();
    assert_eq!(world.phases, ["Pending", "Running", "Completed"]);
    assert_eq!(world.count("succeeded"), 2, "what succeeded stays counted");
    assert_eq!(
        world.job["status"]["taskStatusCount"],
        json!({"t": {"phase": {"Succeeded": 2}}})
    );
    assert_eq!(world.count("version"), 1);
    assert_eq!(world.job["status"]["runningDuration"], "14s");
    assert_eq!(world.group, None);
    assert_eq!(
        world.shown_pods(),
        ["j-t-0 Succeeded", "j-t-1 Succeeded"],
        "finished pods stay"
    );
    let conditions: Vec<_> = world.job["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .map(|condition| condition["status"].clone())
        .collect();
    assert_eq!(conditions, ["Pending", "Running", "Completed"]);
    assert_eq!(world.events, [""; 0]);

    let end = world.job["status"]["state"]["lastTransitionTime"].clone();
    let writes = world.status_writes;
    world.pods.clear();
    world.wait(60);
    assert_eq!(world.count("succeeded"), 2, "also when the pods are cleaned up");
    assert_eq!(
        (
            world.status_writes,
            &world.job["status"]["state"]["lastTransitionTime"]
        ),
        (writes, &end)
    );
}

#[test]
fn a_restart_of_the_whole_job() {
    let mut world = World::running(two_pods(on_failure("RestartJob")));
    world.fail("j-t-0", 1);
    world.settle();
    assert_eq!(world.phases, ["Restarting"]);
    assert_eq!(world.shown_pods(), ["-j-t-1 Running"], "failed pods go as well");
    assert_eq!(
        (
            world.count("version"),
            world.count("retryCount"),
            world.count("terminating")
        ),
        (1, 1, 1)
    );
    assert_eq!(world.job["status"]["state"]["reason"], "RestartJob");
    assert_eq!(
        world.job["status"]["state"]["message"],
        "PodFailed of pod j-t-0, exit code 1"
    );
    assert_eq!(
        world.events,
        ["ExecuteAction: Start to execute action RestartJob "]
    );
    let group = world.group.clone().expect("a new group is made");
    assert_eq!(group["metadata"]["annotations"]["volcano.sh/job-version"], "1");
    assert!(group.get("status").is_none(), "it has to be admitted again");

    world.admit();
    assert_eq!(
        world.shown_pods(),
        ["j-t-0 Pending", "-j-t-1 Running"],
        "one index is free already"
    );
    assert_eq!(world.phase(), "Restarting");
    world.reap();
    world.settle();
    assert_eq!(world.shown_pods(), ["j-t-0 Pending", "j-t-1 Pending"]);
    assert_eq!(world.annotation("j-t-1", "volcano.sh/job-version"), "1");
    assert_eq!(world.annotation("j-t-1", "volcano.sh/job-retry-count"), "1");
    world.start_all();
    world.settle();
    assert_eq!(world.phases, ["Restarting", "Pending", "Running"]);
    assert_eq!(world.count("retryCount"), 1);
}

#[test]
fn retries_until_it_fails() {
    let mut world = World::running(two_pods(on_failure("RestartJob")));
    for attempt in 1..=3 {
        world.fail("j-t-0", 1);
        world.settle();
        assert_eq!(world.count("retryCount"), attempt);
        if attempt < 3 {
            world.reap();
            world.settle();
            world.admit();
            world.start_all();
            world.settle();
            assert_eq!(world.phase(), "Running", "attempt {attempt}");
        }
    }
    assert_eq!(world.phases.last().map(String::as_str), Some("Failed"));
    assert_eq!(world.phases[world.phases.len() - 2], "Restarting");
    assert_eq!(
        world.shown_pods(),
        ["j-t-0 Failed", "-j-t-1 Running"],
        "the last failed pod stays"
    );
    assert_eq!(world.count("failed"), 1);
    assert_eq!(
        world.job["status"]["state"]["reason"], "RestartJob",
        "why it failed stays readable"
    );
    assert_eq!(world.group, None);
    world.reap();
    world.wait(5);
    assert_eq!(world.shown_pods(), ["j-t-0 Failed"]);
    assert_eq!(world.count("terminating"), 0);
}

#[test]
fn pods_that_fail_beside_the_last_retry_do_not_restart_it_for_ever() {
    for action in ["RestartPod", "RestartTask"] {
        let mut world = World::running(two_pods(with(on_failure(action), json!({"maxRetry": 1}))));
        world.fail("j-t-0", 1);
        world.fail("j-t-1", 1);
        world.settle();
        world.reap();
        world.settle();
        assert_eq!(world.phase(), "Failed", "{action}");
        assert_eq!(world.count("retryCount"), 1, "{action}");
    }
}

#[test]
fn suspend_and_resume() {
    let mut world = World::running(with(
        two_pods(json!({})),
        json!({"spec": {"minAvailable": 1, "tasks": [task("t", 2)]}}),
    ));
    world.succeed("j-t-0");
    world.settle();
    world.command("AbortJob");
    world.settle();
    assert_eq!(world.phases, ["Aborting"]);
    assert!(
        world.commands.is_empty(),
        "a Command is deleted once it is carried out"
    );
    assert_eq!(world.shown_pods(), ["j-t-0 Succeeded", "-j-t-1 Running"]);
    assert_eq!(world.group, None);
    assert_eq!(
        world.events,
        [
            "CommandIssued: Start to execute command AbortJob, and clean it up to make sure executed not more than once.",
            "ExecuteAction: Start to execute action AbortJob ",
        ]
    );
    world.reap();
    world.settle();
    assert_eq!(world.phase(), "Aborted");
    assert_eq!(world.count("version"), 1);
    assert_eq!(world.count("succeeded"), 1);
    world.wait(100);
    assert_eq!(world.phase(), "Aborted");
    assert_eq!(world.shown_pods(), ["j-t-0 Succeeded"]);

    world.command("ResumeJob");
    world.settle();
    world.admit();
    assert_eq!(
        world.shown_pods(),
        ["j-t-0 Succeeded", "j-t-1 Pending"],
        "what succeeded is not run again"
    );
    world.start_all();
    world.settle();
    assert_eq!(
        world.phases,
        ["Aborting", "Aborted", "Restarting", "Pending", "Running"]
    );
    assert_eq!((world.count("version"), world.count("retryCount")), (2, 1));
    world.succeed("j-t-1");
    world.settle();
    assert_eq!(world.phase(), "Completed");
    assert_eq!(world.count("succeeded"), 2);
}

#[test]
fn a_restart_of_a_task_also_takes_what_an_abort_has_left() {
    let mut world = World::running(with(
        two_pods(on_failure("RestartTask")),
        json!({"spec": {"minAvailable": 1, "tasks": [task("t", 2)]}}),
    ));
    world.succeed("j-t-0");
    world.command("AbortJob");
    world.settle();
    world.reap();
    world.settle();
    world.command("ResumeJob");
    world.settle();
    world.admit();
    world.start_all();
    world.settle();
    assert_eq!(world.shown_pods(), ["j-t-0 Succeeded", "j-t-1 Running"]);
    world.fail("j-t-1", 1);
    world.settle();
    assert_eq!(world.shown_pods(), ["j-t-0 Pending", "j-t-1 Pending"]);
}

#[test]
fn a_resumed_job_without_retries_fails() {
    let mut world = World::running(two_pods(json!({"maxRetry": 1})));
    world.command("AbortJob");
    world.settle();
    world.reap();
    world.settle();
    world.command("ResumeJob");
    world.settle();
    assert_eq!(world.phases, ["Aborting", "Aborted", "Restarting", "Failed"]);
}

#[test]
fn terminate_and_complete_by_command() {
    for (action, under_way, end) in [
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ] {
        let mut world = World::running(two_pods(json!({})));
        world.command(action);
        world.settle();
        world.reap();
        world.settle();
        assert_eq!(world.phases, [under_way, end]);
        assert_eq!(world.count("version"), 1);
        world.command("ResumeJob");
        world.command("RestartJob");
        world.settle();
        assert_eq!(world.phase(), end, "it is over");
        assert!(world.commands.is_empty());
    }
}

#[test]
fn an_abort_that_comes_while_it_restarts_is_not_lost() {
    let mut world = World::running(two_pods(on_failure("RestartJob")));
    world.fail("j-t-0", 1);
    world.settle();
    assert_eq!(world.phase(), "Restarting");
    world.command("AbortJob");
    world.settle();
    world.reap();
    world.settle();
    assert_eq!(world.phases, ["Restarting", "Aborting", "Aborted"]);
    assert_eq!(world.count("retryCount"), 1);
}

#[test]
fn a_command_for_an_earlier_job_of_the_name_is_dropped() {
    let mut world = World::running(two_pods(json!({})));
    let name = world.command("AbortJob");
    world.commands.get_mut(&name).expect("given")["target"]["uid"] = json!("earlier");
    world.settle();
    assert!(world.commands.is_empty());
    assert_eq!(world.phases, [""; 0]);
    assert_eq!(world.events, [""; 0]);
}

#[test]
fn commands_are_carried_out_in_the_order_they_were_given() {
    let mut world = World::running(two_pods(json!({})));
    let late = world.command("ResumeJob");
    world.commands.get_mut(&late).expect("given")["metadata"]["creationTimestamp"] =
        json!("2026-01-02T00:00:00Z");
    world.command("AbortJob");
    world.settle();
    assert_eq!(world.phases[..2], ["Aborting", "Restarting"]);
    assert_eq!(world.count("retryCount"), 1);
}

#[test]
fn a_command_is_carried_out_once_though_its_deletion_is_lost() {
    let mut world = World::running(two_pods(json!({})));
    world.command("RestartJob");
    let plan = world.look();
    world.apply(&plan.steps[0][0]).expect("the decision is written");
    assert_eq!(world.count("retryCount"), 1);
    world.crash();
    world.settle();
    assert!(world.commands.is_empty());
    assert_eq!((world.count("retryCount"), world.count("version")), (1, 1));
    assert_eq!(
        world.shown_pods(),
        ["-j-t-0 Running", "-j-t-1 Running"],
        "the kill goes on"
    );
}

#[test]
fn a_restart_that_was_cut_short_goes_on() {
    let mut world = World::running(two_pods(on_failure("RestartJob")));
    world.fail("j-t-0", 1);
    let plan = world.look();
    world.apply(&plan.steps[0][0]).expect("the decision is written");
    world.crash();
    world.settle();
    assert_eq!((world.count("retryCount"), world.count("version")), (1, 1));
    assert_eq!(world.shown_pods(), ["-j-t-1 Running"]);
    assert_eq!(world.group.as_ref().expect("a new group").get("status"), None);
}

#[test]
fn a_restart_that_was_cut_short_is_finished_before_it_is_aborted() {
    let mut world = World::running(two_pods(on_failure("RestartJob")));
    world.fail("j-t-0", 1);
    let plan = world.look();
    world.apply(&plan.steps[0][0]).expect("the decision is written");
    world.crash();
    world.command("AbortJob");
    world.settle();
    world.reap();
    world.settle();
    assert_eq!(world.phases, ["Restarting", "Aborting", "Aborted"]);
    assert_eq!(
        world.shown_pods(),
        [""; 0],
        "the failed pod was to be replaced, not to be kept"
    );
}

#[test]
fn a_pod_that_a_dead_process_made_late_is_deleted() {
    let mut world = World::running(two_pods(on_failure("RestartJob")));
    let late = world.pods["j-t-1"].clone();
    world.fail("j-t-0", 1);
    world.settle();
    world.reap();
    world.settle();
    let mut late = late;
    late["status"] = json!({"phase": "Pending"});
    late["metadata"]["uid"] = json!("late");
    world.pods.insert("j-t-1".into(), late);
    world.settle();
    assert_eq!(world.shown_pods(), [""; 0], "it is of an older version");
    world.admit();
    assert_eq!(world.shown_pods(), ["j-t-0 Pending", "j-t-1 Pending"]);
}

#[test]
fn minimum_success_ends_the_rest() {
    let mut world = World::running(two_pods(json!({"minSuccess": 1})));
    world.succeed("j-t-0");
    world.settle();
    assert_eq!(world.phase(), "Completed");
    assert_eq!(world.shown_pods(), ["j-t-0 Succeeded", "-j-t-1 Running"]);
    assert_eq!((world.count("succeeded"), world.count("terminating")), (1, 1));
    let end = world.job["status"]["state"]["lastTransitionTime"].clone();
    world.reap();
    world.wait(5);
    assert_eq!((world.count("succeeded"), world.count("terminating")), (1, 0));
    assert_eq!(
        world.job["status"]["state"]["lastTransitionTime"], end,
        "its end is when it ended"
    );
}

#[test]
fn scaling_up_and_down() {
    let mut world = World::running(two_pods(json!({})));
    world.edit(json!({"minAvailable": 3, "tasks": [with(task("t", 4), json!({"minAvailable": 3}))]}));
    world.settle();
    assert_eq!(
        world.shown_pods(),
        ["j-t-0 Running", "j-t-1 Running", "j-t-2 Pending", "j-t-3 Pending"]
    );
    let group = world.group.clone().expect("there is a group");
    assert_eq!(group["spec"]["minMember"], 3);
    assert_eq!(group["spec"]["minTaskMember"], json!({"t": 3}));
    assert_eq!(group["spec"]["minResources"]["pods"], "3");
    assert_eq!(group["status"]["phase"], "Inqueue", "what others wrote stays");
    assert_eq!(world.phase(), "Pending");
    world.start_all();
    world.wait(2);
    assert_eq!(world.phase(), "Running");

    world.edit(json!({"minAvailable": 1, "tasks": [with(task("t", 1), json!({"minAvailable": 1}))]}));
    world.settle();
    assert_eq!(
        world.shown_pods(),
        [
            "j-t-0 Running",
            "-j-t-1 Running",
            "-j-t-2 Running",
            "-j-t-3 Running"
        ]
    );
    assert_eq!(
        (
            world.count("running"),
            world.count("terminating"),
            world.count("version")
        ),
        (1, 3, 0)
    );
    world.reap();
    world.wait(2);
    assert_eq!(world.count("terminating"), 0);
    world.edit(json!({"minAvailable": 0, "tasks": [with(task("t", 0), json!({"minAvailable": 0}))]}));
    world.settle();
    world.reap();
    world.wait(2);
    assert_eq!(world.phase(), "Running", "a job without pods keeps its phase");
    assert_eq!(world.count("retryCount"), 0);
}

#[test]
fn pods_that_were_scaled_away_are_not_evicted() {
    let policies = json!({"policies": [{"event": "PodEvicted", "action": "RestartJob"}]});
    let mut world = World::running(two_pods(policies));
    world.edit(json!({"minAvailable": 1, "tasks": [with(task("t", 1), json!({"minAvailable": 1}))]}));
    world.settle();
    world.reap();
    world.wait(2);
    assert_eq!((world.phase(), world.count("retryCount")), ("Running".into(), 0));
}

#[test]
fn pods_that_are_wanted_again_before_they_are_gone_were_not_evicted() {
    let policies = json!({"policies": [{"event": "PodEvicted", "action": "RestartJob"}]});
    let scale = |replicas| json!({"minAvailable": 1, "tasks": [with(task("t", replicas), json!({"minAvailable": 1}))]});
    for crashes in [false, true] {
        let mut world = World::running(two_pods(policies.clone()));
        world.edit(scale(1));
        world.settle();
        assert_eq!(world.shown_pods(), ["j-t-0 Running", "-j-t-1 Running"]);
        world.edit(scale(2));
        if crashes {
            world.crash();
        }
        world.settle();
        assert_eq!(world.count("retryCount"), 0, "crashes: {crashes}");
        world.reap();
        world.settle();
        assert_eq!(world.shown_pods(), ["j-t-0 Running", "j-t-1 Pending"]);
        assert_eq!(world.count("retryCount"), 0, "crashes: {crashes}");
    }
}

#[test]
fn a_pod_that_was_evicted_is_evicted_though_it_was_scaled_away_meanwhile() {
    let policies = json!({"policies": [{"event": "PodEvicted", "action": "RestartJob"}]});
    let scale = |replicas| json!({"minAvailable": 1, "tasks": [with(task("t", replicas), json!({"minAvailable": 1}))]});
    let mut world = World::running(two_pods(policies));
    world.delete_pod("j-t-1");
    world.edit(scale(1));
    world.settle();
    assert_eq!(world.count("retryCount"), 0);
    world.edit(scale(2));
    world.settle();
    assert_eq!(world.count("retryCount"), 1);
}

#[test]
fn tasks_wait_for_those_they_depend_on() {
    let waits = |name: &str, on: Value| with(task(name, 1), json!({"dependsOn": on}));
    let chain = job(json!({"minAvailable": 3, "tasks": [
        waits("c", json!({"name": ["b"]})), waits("b", json!({"name": ["a"]})), task("a", 1)]}));
    let mut world = World::new(chain);
    world.settle();
    world.admit();
    assert_eq!(world.shown_pods(), ["j-a-0 Pending"]);
    world.report(
        "j-a-0",
        json!({"phase": "Running", "containerStatuses": [{"name": "main", "ready": false}]}),
    );
    world.settle();
    assert_eq!(
        world.shown_pods(),
        ["j-a-0 Running"],
        "it runs and does not serve yet"
    );
    world.start("j-a-0");
    world.settle();
    assert_eq!(world.shown_pods(), ["j-a-0 Running", "j-b-0 Pending"]);
    world.start("j-b-0");
    world.settle();
    world.succeed("j-b-0");
    world.settle();
    assert_eq!(
        world.shown_pods(),
        ["j-a-0 Running", "j-b-0 Succeeded", "j-c-0 Pending"],
        "done is ready too"
    );
}

#[test]
fn one_of_several_dependencies_may_be_enough() {
    let cases = [
        ("any", vec!["a", "b"], true),
        ("all", vec!["a", "b"], false),
        ("", vec!["a", "b"], false),
        ("any", vec!["b"], false),
    ];
    for (iteration, names, is_made) in cases {
        let c = with(
            task("c", 1),
            json!({"dependsOn": {"name": names, "iteration": iteration}}),
        );
        let mut world = World::new(job(
            json!({"minAvailable": 3, "tasks": [task("a", 1), task("b", 1), c]}),
        ));
        world.settle();
        world.admit();
        world.start("j-a-0");
        world.settle();
        assert_eq!(
            world.pods.contains_key("j-c-0"),
            is_made,
            "{iteration} of {names:?}"
        );
    }
}
