//! Whoever begins to lead sees the Job, or its pods, as they were before: nothing is made of that.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use volcano_reconcile::job::{Ask, Footing, Known, Memory, Reading};
use volcano_reconcile::write::Plan;

use crate::world::{World, two_pods};

fn restarts_on(event: &str) -> Value {
    two_pods(json!({"policies": [{"event": event, "action": "RestartJob"}]}))
}

/// What a new leader decides on a Job and pods as it sees them, and what it asks for first.
fn taken_over(world: &mut World, job: &Value, pods: &BTreeMap<String, Value>) -> (Plan, Option<Ask>) {
    world.memory = Memory::default();
    let plan = world.look_at(job, pods);
    let job = serde_json::from_value(job.clone()).expect("a job");
    let ask = Footing::default().asks(&job, &plan, &world.memory);
    (plan, ask)
}

#[test]
fn pods_that_are_not_told_yet_are_asked_for_before_they_are_taken_for_lost() {
    let mut world = World::running(restarts_on("PodEvicted"));
    let (job, mut pods) = (world.job.clone(), world.pods.clone());
    pods.remove("j-t-1");
    let (plan, ask) = taken_over(&mut world, &job, &pods);
    assert!(!plan.steps.is_empty(), "it would be restarted");
    assert_eq!(ask, Some(Ask { pods: true }));
    let all = world.pods.clone();
    let (plan, ask) = taken_over(&mut world, &job, &all);
    assert_eq!((plan.steps.len(), ask), (0, None), "all are there");
}

#[test]
fn pods_are_not_made_for_a_job_of_which_less_is_told_than_of_its_pods() {
    let mut world = World::running(restarts_on("PodFailed"));
    let (before, group) = (world.job.clone(), world.group.clone());
    world.fail("j-t-0", 1);
    world.settle();
    world.reap();
    assert_eq!(world.count("version"), 1);
    // Of the PodGroup as much is told as of the Job.
    world.group = group;
    let none = BTreeMap::new();
    let (_, ask) = taken_over(&mut world, &before, &none);
    assert_eq!(ask, Some(Ask { pods: true }), "both pods are missing");
    // The counts say nothing while pods are not counted.
    let mut uncounted = before;
    uncounted["status"]["taskStatusCount"] = json!({});
    let (_, ask) = taken_over(&mut world, &uncounted, &none);
    assert_eq!(ask, Some(Ask { pods: false }), "pods would be made for version 0");
}

#[test]
fn an_order_is_not_dropped_on_what_was_before() {
    let mut world = World::running(two_pods(json!({})));
    let before = world.job.clone();
    world.command("AbortJob");
    world.settle();
    world.reap();
    world.settle();
    assert_eq!(world.phase(), "Aborted");
    world.command("ResumeJob");
    let pods = world.pods.clone();
    let (_, ask) = taken_over(&mut world, &before, &pods);
    assert!(ask.is_some(), "a Job that runs cannot be resumed");
}

#[test]
fn who_has_begun_with_a_job_asks_for_nothing() {
    let mut world = World::new(restarts_on("PodEvicted"));
    let mut footing = Footing::default();
    for _ in 0..10 {
        let plan = world.look();
        let job = serde_json::from_value(world.job.clone()).expect("a job");
        assert_eq!(footing.asks(&job, &plan, &world.memory), None);
        for write in plan.steps.iter().flatten() {
            world.apply(write).expect("it is taken");
            footing.answered();
        }
        if world.group.is_some() {
            world.group_phase("Inqueue");
        }
    }
    assert_eq!(world.made.len(), 2);
}

#[test]
fn a_job_that_has_ended_is_not_asked_about() {
    let mut world = World::running(restarts_on("PodEvicted"));
    world.succeed("j-t-0");
    world.succeed("j-t-1");
    world.settle();
    assert_eq!(world.phase(), "Completed");
    let (job, none) = (world.job.clone(), BTreeMap::new());
    let (_, ask) = taken_over(&mut world, &job, &none);
    assert_eq!(ask, None, "its pods may be gone, by the thousand");
}

#[test]
fn it_goes_on_when_the_watches_have_told_of_what_was_read() {
    let mut footing = Footing::default();
    let known = |job, pods| Known { job, pods };
    assert!(!footing.is_behind(known(1, 1)), "nothing was read");
    footing.read(Reading {
        job: 5,
        pods: Some(7),
    });
    assert!(footing.is_behind(known(4, 9)));
    assert!(footing.is_behind(known(5, 6)));
    assert!(!footing.is_behind(known(5, 7)));
    assert!(!footing.is_behind(known(1, 1)), "once is enough");
    let mut world = World::running(restarts_on("PodEvicted"));
    world.pods.remove("j-t-1");
    world.crash();
    let plan = world.look();
    let job = serde_json::from_value(world.job.clone()).expect("a job");
    assert_eq!(footing.asks(&job, &plan, &world.memory), None);
}
