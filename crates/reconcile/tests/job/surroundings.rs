//! What a Job needs beside its pods, and what it tells: claims, plugins, PodGroups, queues, counters.

use serde_json::{Value, json};
use volcano_api::batch::Job;
use volcano_reconcile::job::objects_of;
use volcano_reconcile::write::Write;

use crate::world::{World, job, task, two_pods, with};

#[test]
fn claims_come_before_the_group() {
    let volumes = json!({"volumes": [{"mountPath": "/a", "volumeClaimName": "mine"}]});
    let mut world = World::new(two_pods(volumes));
    world.settle();
    let message = "pvc mine is not found, the job will be in the Pending state until the PVC is created";
    assert_eq!(
        world.events,
        [format!("PVCError: Failed to create PVC, err: {message}")]
    );
    assert_eq!(world.phase(), "Pending");
    assert_eq!(world.group, None);
    world.wait(60);
    assert_eq!(world.events.len(), 1, "it is told once");
    world.claims.insert("mine".into(), json!({}));
    world.wait(60);
    assert!(world.group.is_some(), "it is looked for again");
    assert_eq!(
        world.job["status"]["controlledResources"],
        json!({"volume-pvc-mine": "mine"})
    );
}

#[test]
fn the_objects_of_plugins_do_not_wait_for_a_claim() {
    let waiting = |plugin: &str| {
        let volumes = json!([{"mountPath": "/a", "volumeClaimName": "mine"}]);
        World::new(two_pods(json!({"plugins": {plugin: []}, "volumes": volumes})))
    };
    let mut world = waiting("svc");
    let plan = world.look();
    assert!(
        matches!(&plan.steps[0][..], [Write::Patch { status: true, .. }]),
        "it is Pending first: {plan:?}"
    );
    world.crash();
    world.settle();
    assert_eq!(world.events.len(), 1, "the claim is missing: {:?}", world.events);
    let objects: Vec<_> = world.others.keys().cloned().collect();
    assert_eq!(objects, ["ConfigMap/j-svc", "NetworkPolicy/j", "Service/j"]);
    let noted = |world: &World| world.job["status"]["controlledResources"].clone();
    assert_eq!(noted(&world), json!({"plugin-svc": "svc"}));
    world.wait(60);
    assert_eq!((world.phase().as_str(), &world.group), ("Pending", &None));
    assert!(world.pods.is_empty());
    world.claims.insert("mine".into(), json!({}));
    world.wait(5);
    world.admit();
    assert_eq!(world.pods.len(), 2);
    assert_eq!(
        noted(&world),
        json!({"plugin-svc": "svc", "volume-pvc-mine": "mine"})
    );

    let mut world = waiting("magic");
    world.wait(30);
    assert_eq!(
        world.events,
        ["PluginError: Execute plugin when job add failed, err: failed to get plugin magic"],
        "plugins come before claims"
    );
}

#[test]
fn a_job_waits_for_its_queue() {
    let mut world = World::new(two_pods(json!({})));
    world.queue = None;
    world.settle();
    let told = ["PodGroupError: Failed to create PodGroup, err: queue default is not found"];
    assert_eq!((world.phase(), &world.group), ("Pending".to_owned(), &None));
    assert_eq!(world.events, told);
    world.wait(60);
    assert_eq!((&world.group, world.events.len()), (&None, 1), "it is told once");
    world.queue = Some(json!({"metadata": {"name": "default"}}));
    world.wait(5);
    assert!(world.group.is_some(), "it is looked for again");
    world.queue = None;
    world.admit();
    assert_eq!(world.pods.len(), 2, "what was admitted does not wait");
}

#[test]
fn a_claim_is_made_once_and_its_name_kept() {
    let volumes = json!({"volumes": [{"mountPath": "/a", "volumeClaim": {"storageClassName": "fast"}}]});
    let mut world = World::new(two_pods(volumes));
    world.settle();
    let names: Vec<_> = world.claims.keys().cloned().collect();
    let [name] = &names[..] else {
        panic!("one claim: {names:?}")
    };
    assert_eq!(world.job["spec"]["volumes"][0]["volumeClaimName"], name.as_str());
    world.admit();
    let pod = &world.pods["j-t-0"]["spec"];
    assert_eq!(
        pod["volumes"][0]["persistentVolumeClaim"]["claimName"],
        name.as_str()
    );
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/a");
}

#[test]
fn plugins_are_noted_until_their_objects_are_gone() {
    let noted = |world: &World| !world.job["status"]["controlledResources"]["plugin-svc"].is_null();
    let to_read = |world: &World| {
        let job: Job = serde_json::from_value(world.job.clone()).expect("readable");
        objects_of(&job).len()
    };
    let mut world = World::running(two_pods(json!({"plugins": {"svc": []}})));
    assert_eq!((noted(&world), to_read(&world)), (true, 3));
    world.succeed("j-t-0");
    world.succeed("j-t-1");
    // The process dies after the first write, which says how the Job ended.
    let plan = world.look();
    let first = &plan.steps[0][0];
    world.apply(first).expect("it is taken");
    world.crash();
    assert_eq!(world.phase(), "Completed");
    assert_eq!(
        (noted(&world), to_read(&world)),
        (true, 3),
        "whoever comes knows where to look"
    );
    world.settle();
    world.wait(5);
    assert!(world.others.is_empty());
    assert_eq!(
        (noted(&world), to_read(&world)),
        (false, 0),
        "a finished Job costs nothing"
    );
}

#[test]
fn plugins_are_noted_while_it_is_active() {
    let mut world = World::new(two_pods(json!({"plugins": {"env": [], "hcclrank": []}})));
    world.settle();
    assert_eq!(
        world.job["status"]["controlledResources"],
        json!({"plugin-env": "env"})
    );
    world.admit();
    world.start_all();
    world.command("AbortJob");
    world.settle();
    assert_eq!(
        world.job["status"]["controlledResources"],
        json!({"plugin-env": "env"})
    );
    world.reap();
    world.settle();
    assert_eq!(
        world.job["status"].get("controlledResources"),
        Some(&json!({})).filter(|_| false)
    );
    world.command("ResumeJob");
    world.settle();
    assert_eq!(
        world.job["status"]["controlledResources"],
        json!({"plugin-env": "env"})
    );
}

#[test]
fn the_objects_of_plugins_are_there_while_it_is_active() {
    let svc = json!({"plugins": {"svc": []}, "policies": [{"event": "PodFailed", "action": "RestartJob"}]});
    let mut world = World::new(two_pods(svc));
    world.settle();
    let objects = |world: &World| world.others.keys().cloned().collect::<Vec<_>>();
    let all = ["ConfigMap/j-svc", "NetworkPolicy/j", "Service/j"];
    assert_eq!(objects(&world), all, "before the first pod");
    world.admit();
    assert_eq!(world.pods["j-t-1"]["spec"]["hostname"], "j-t-1");
    world.start_all();
    world.settle();
    let hosts = |world: &World| world.others["ConfigMap/j-svc"].1["data"]["t.host"].clone();
    assert_eq!(hosts(&world), "j-t-0.j\nj-t-1.j");
    world.edit(json!({"tasks": [with(task("t", 3), json!({"minAvailable": 2}))]}));
    world.settle();
    assert_eq!(hosts(&world), "j-t-0.j\nj-t-1.j\nj-t-2.j", "it follows the scale");
    world.fail("j-t-0", 1);
    world.settle();
    assert!(world.phases.contains(&"Restarting".to_owned()));
    assert_eq!(objects(&world), all, "a restart leaves them");
    world.command("TerminateJob");
    world.settle();
    assert_eq!(objects(&world), [""; 0]);
}

#[test]
fn a_plugin_that_is_not_known_is_told() {
    let mut world = World::new(two_pods(json!({"plugins": {"magic": []}})));
    world.settle();
    world.wait(30);
    assert_eq!(
        world.events,
        ["PluginError: Execute plugin when job add failed, err: failed to get plugin magic"]
    );
    assert_eq!((world.phase().as_str(), &world.group), ("Pending", &None));
}

#[test]
fn what_stands_in_the_way_of_pods_does_not_stand_in_the_way_of_the_end() {
    let mut world = World::running(two_pods(json!({})));
    world.edit(json!({"plugins": {"magic": []}}));
    world.succeed("j-t-0");
    world.succeed("j-t-1");
    world.settle();
    assert_eq!(world.phase(), "Completed");
}

#[test]
fn what_the_scheduler_says_is_told_when_it_changes() {
    let mut world = World::new(two_pods(json!({})));
    world.settle();
    let condition = |kind: &str, message: &str, at: &str| json!({"type": kind, "status": "True", "message": message, "lastTransitionTime": at});
    let mut say = |conditions: Value| {
        world.group.as_mut().expect("there is a group")["status"] =
            json!({"phase": "Pending", "conditions": conditions});
        world.settle();
        std::mem::take(&mut world.events)
    };
    let first = condition("Unschedulable", "no room", "2026-01-01T00:00:11Z");
    let told = ["PodGroupPending: PodGroup ns:j unschedulable, reason: no room"];
    assert_eq!(say(json!([first])), told);
    assert_eq!(say(json!([first])), [""; 0]);
    let second = condition("Unschedulable", "still no room", "2026-01-01T00:00:12Z");
    assert_eq!(say(json!([second, first])).len(), 1, "the newest counts");
    assert_eq!(
        say(json!([
            second,
            condition("Scheduled", "", "2026-01-01T00:00:13Z")
        ])),
        [""; 0]
    );
}

#[test]
fn a_job_of_a_forwarding_queue_is_marked() {
    for before in [json!({}), json!({"volcano.sh/job-forwarding": "false"})] {
        let mut world = World::new(two_pods(json!({})));
        world.job["metadata"]["annotations"] = before;
        world.queue =
            Some(json!({"metadata": {"name": "default"}, "spec": {"extendClusters": [{"name": "other"}]}}));
        world.settle();
        assert_eq!(
            world.job["metadata"]["annotations"]["volcano.sh/job-forwarding"],
            "true"
        );
        world.admit();
        for part in ["annotations", "labels"] {
            assert_eq!(
                world.pods["j-t-0"]["metadata"][part]["volcano.sh/job-forwarding"],
                "true"
            );
        }
    }
}

#[test]
fn a_job_that_cannot_be_written_for_is_terminated() {
    let mut world = World::running(two_pods(json!({})));
    world.is_exhausted = true;
    world.settle();
    assert_eq!(world.phases, ["Terminating"]);
    assert_eq!(
        world.events,
        ["ExecuteAction: Job failed on action SyncJob for retry limit reached"]
    );
}

#[test]
fn a_command_that_cannot_be_carried_out_is_named() {
    let mut world = World::running(two_pods(json!({})));
    let earlier = world.command("AbortJob");
    world.is_exhausted = true;
    let told = |world: &mut World| {
        let plan = world.look();
        let Write::Event(event) = &plan.steps[1][0] else {
            panic!("it is told");
        };
        event.message.clone()
    };
    assert_eq!(
        told(&mut world),
        "Job failed on action AbortJob for retry limit reached"
    );
    world.commands.get_mut(&earlier).expect("given")["target"]["uid"] = json!("earlier");
    assert_eq!(
        told(&mut world),
        "Job failed on action SyncJob for retry limit reached",
        "it is not for this Job"
    );
}

#[test]
fn a_job_that_is_being_deleted_is_left_alone() {
    let mut world = World::running(two_pods(
        json!({"policies": [{"event": "PodFailed", "action": "RestartJob"}]}),
    ));
    world.fail("j-t-0", 1);
    world.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
    let plan = world.look();
    assert_eq!((plan.steps.len(), plan.again_at), (0, None));
}

#[test]
fn a_pod_of_an_earlier_job_holds_its_name_until_it_is_gone() {
    let mut world = World::new(two_pods(json!({})));
    world.pods.insert(
        "j-t-0".into(),
        json!({"metadata": {"name": "j-t-0", "uid": "old", "annotations": {"volcano.sh/job-name": "j",
                "volcano.sh/task-spec": "t", "volcano.sh/job-version": "0"},
            "ownerReferences": [{"kind": "Job", "name": "j", "uid": "earlier", "controller": true}]},
            "status": {"phase": "Running"}}),
    );
    world.settle();
    world.admit();
    assert_eq!(
        world.shown_pods(),
        ["j-t-0 Running", "j-t-1 Pending"],
        "it is not ours to delete"
    );
    assert_eq!((world.count("running"), world.count("pending")), (0, 1));
    world.pods.remove("j-t-0");
    world.settle();
    assert_eq!(world.shown_pods(), ["j-t-0 Pending", "j-t-1 Pending"]);
}

#[test]
fn a_group_of_an_older_controller_is_taken_over_and_replaced_with_the_version() {
    let mut world = World::running(two_pods(json!({})));
    let annotations = world.group.as_mut().expect("a group")["metadata"]["annotations"].as_object_mut();
    annotations.expect("annotations").clear();
    world.settle();
    let version = |world: &World| {
        world.group.as_ref().expect("a group")["metadata"]["annotations"]["volcano.sh/job-version"].clone()
    };
    assert_eq!(version(&world), "0");
    let annotations = world.group.as_mut().expect("a group")["metadata"]["annotations"].as_object_mut();
    annotations.expect("annotations").clear();
    world.command("RestartJob");
    world.settle();
    assert_eq!(version(&world), "1");
    assert_eq!(world.group.as_ref().expect("a group").get("status"), None);
}

#[test]
fn counters_are_written_once_a_second() {
    let many = job(json!({"minAvailable": 1, "tasks": [with(task("t", 10), json!({"minAvailable": 1}))]}));
    let mut world = World::new(many);
    world.settle();
    world.admit();
    world.start("j-t-0");
    world.settle();
    let before = world.status_writes;
    for index in 1..10 {
        world.start(&format!("j-t-{index}"));
        world.settle();
    }
    assert_eq!(world.status_writes, before, "nine changes within a second");
    world.wait(3);
    assert_eq!(world.status_writes, before + 1);
    assert_eq!(world.count("running"), 10);
}
