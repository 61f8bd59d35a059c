//! Incarnations: an object that was deleted and made again under its name while nobody watched.

use crate::config::{SchedulerConf, catalog};
use crate::model::SchedulerNames;
use crate::model::delta::Delta;
use crate::model::job::Manager;
use crate::model::kind::Kind;
use crate::model::node::Block;
use crate::model::status::Status;
use crate::model::task::Task;
use crate::resource::CPU;
use crate::{Cycle, Effect, Engine};
use serde_json::{Value, json};
use volcano_api::time::Time;

fn read<T: for<'a> serde::Deserialize<'a>>(value: Value) -> T {
    serde_json::from_value(value).expect("a good object")
}

fn engine(actions: &str) -> Engine {
    let text = format!(
        "actions: {actions}\ntiers: [{{plugins: [{{name: priority}}, {{name: gang}}, {{name: overcommit}}, {{name: predicates}}]}}]"
    );
    let conf = SchedulerConf::parse(&text, catalog::PLANNED_PLUGINS, catalog::ACTIONS).expect("good");
    let (mut engine, missing) = Engine::new(conf, SchedulerNames::Any, "default");
    assert_eq!(missing, []);
    engine.apply(Delta::Queue(read(json!({"metadata": {"name": "default"}}))));
    let offers = json!({"cpu": "2", "memory": "4Gi", "pods": "10"});
    engine.apply(Delta::Node(read(
        json!({"metadata": {"name": "n1"}, "status": {"allocatable": offers}}),
    )));
    engine
}

fn group(engine: &mut Engine, name: &str, uid: &str, min: u32, minimum: &str) {
    engine.apply(Delta::PodGroup(read(json!({
        "metadata": {"name": name, "namespace": "ns", "uid": uid},
        "spec": {"minMember": min, "minResources": {"cpu": minimum}},
        "status": {"phase": "Pending"},
    }))));
}

fn pod(name: &str, uid: &str, group: &str, cpu: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "ns", "uid": uid, "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]},
    })
}

fn cycle(engine: &mut Engine) -> Cycle {
    engine.cycle(Time::from_unix_seconds(1_700_000_000), &mut |_| {})
}

fn task<'a>(engine: &'a Engine, name: &str) -> &'a Task {
    let m = engine.model();
    m.task(m.find_task("ns", name).expect("a known pod"))
}

fn used_cpu(engine: &Engine) -> i64 {
    let node = engine.model().find_node("n1").expect("a known node");
    engine.model().nodes.amount(node, Block::Used, CPU)
}

fn answer(failed: fn(String, String, String) -> Delta, uid: &str) -> Delta {
    failed("ns".to_owned(), "p".to_owned(), uid.to_owned())
}

fn bind_failed(namespace: String, name: String, uid: String) -> Delta {
    Delta::BindFailed { namespace, name, uid }
}

fn evict_failed(namespace: String, name: String, uid: String) -> Delta {
    Delta::EvictFailed { namespace, name, uid }
}

#[test]
fn a_pod_made_again_does_not_have_the_bind_of_the_one_before() {
    let mut engine = engine("enqueue, allocate");
    group(&mut engine, "g", "g1", 1, "1");
    engine.apply(Delta::Pod(read(pod("p", "u1", "g", "1"))));
    cycle(&mut engine);
    assert_eq!(task(&engine, "p").status, Status::Binding);
    engine.apply(Delta::Pod(read(pod("p", "u1", "g", "1"))));
    assert_eq!(
        task(&engine, "p").status,
        Status::Binding,
        "an older state of the same pod changes nothing"
    );
    engine.apply(Delta::Pod(read(pod("p", "u2", "g", "1"))));
    let again = task(&engine, "p");
    assert_eq!(
        (again.status, again.node, &*again.uid),
        (Status::Pending, None, "u2")
    );
    assert_eq!(used_cpu(&engine), 0, "its place is free again");
}

#[test]
fn an_answer_about_the_bind_of_a_pod_that_is_gone_does_not_undo_that_of_the_next() {
    let mut engine = engine("enqueue, allocate");
    group(&mut engine, "g", "g1", 1, "1");
    engine.apply(Delta::Pod(read(pod("p", "u1", "g", "1"))));
    cycle(&mut engine);
    engine.apply(Delta::Pod(read(pod("p", "u2", "g", "1"))));
    cycle(&mut engine);
    engine.apply(answer(bind_failed, "u1"));
    assert_eq!(task(&engine, "p").status, Status::Binding);
    engine.apply(answer(bind_failed, "u2"));
    assert_eq!(task(&engine, "p").status, Status::Pending);
    assert_eq!(used_cpu(&engine), 0);
    cycle(&mut engine);
    engine.apply(answer(bind_failed, ""));
    assert_eq!(task(&engine, "p").status, Status::Pending, "whichever it is");
}

/// A pod `p` that runs and is evicted for `urgent`.
fn with_eviction() -> Engine {
    with_eviction_of(running("u1"))
}

fn with_eviction_of(victim: Value) -> Engine {
    let mut engine = engine("enqueue, allocate, preempt");
    engine.apply(Delta::PriorityClass(read(
        json!({"metadata": {"name": "high"}, "value": 10}),
    )));
    group(&mut engine, "g", "g1", 0, "1");
    engine.apply(Delta::Pod(read(victim)));
    engine.apply(Delta::PodGroup(read(json!({
        "metadata": {"name": "urgent", "namespace": "ns", "uid": "g2"},
        "spec": {"minMember": 1, "priorityClassName": "high"}, "status": {"phase": "Inqueue"},
    }))));
    let mut urgent = pod("urgent", "u9", "urgent", "2");
    urgent["spec"]["priority"] = json!(10);
    engine.apply(Delta::Pod(read(urgent)));
    let decided = cycle(&mut engine);
    let evicts = |effect: &Effect| matches!(effect, Effect::Evict { .. });
    assert_eq!(decided.effects.iter().filter(|e| evicts(e)).count(), 1);
    engine
}

fn running(uid: &str) -> Value {
    let mut pod = pod("p", uid, "g", "2");
    pod["spec"]["nodeName"] = json!("n1");
    pod["spec"]["priority"] = json!(1);
    pod["status"] = json!({"phase": "Running"});
    pod
}

#[test]
fn a_pod_made_again_is_not_being_evicted() {
    let mut engine = with_eviction();
    engine.apply(Delta::Pod(read(running("u1"))));
    assert_eq!(
        task(&engine, "p").status,
        Status::Releasing,
        "the object of the victim may not show it yet"
    );
    engine.apply(Delta::Pod(read(running("u2"))));
    let again = task(&engine, "p");
    assert_eq!((again.status, again.evicting), (Status::Running, false));
}

#[test]
fn an_answer_about_the_eviction_of_a_pod_that_is_gone_is_not_about_the_next() {
    let mut engine = with_eviction();
    engine.apply(answer(evict_failed, "u0"));
    assert_eq!(task(&engine, "p").status, Status::Releasing);
    engine.apply(answer(evict_failed, "u1"));
    assert_eq!(task(&engine, "p").status, Status::Running);
}

#[test]
fn a_pod_that_could_not_be_evicted_is_what_it_was_before() {
    for (phase, status) in [("Pending", Status::Bound), ("Running", Status::Running)] {
        let mut victim = running("u1");
        victim["status"]["phase"] = json!(phase);
        let mut engine = with_eviction_of(victim);
        engine.apply(answer(evict_failed, "u1"));
        assert_eq!(task(&engine, "p").status, status);
    }
}

#[test]
fn a_pod_made_again_has_neither_condition_nor_nominated_node() {
    let mut engine = with_eviction();
    let before = task(&engine, "urgent");
    assert!(before.condition.is_some() && before.nominated.is_some());
    let mut again = pod("urgent", "u10", "urgent", "2");
    again["spec"]["priority"] = json!(10);
    engine.apply(Delta::Pod(read(again)));
    let again = task(&engine, "urgent");
    assert_eq!((&again.condition, again.nominated), (&None, None));
    // The engine says it of the new one, too.
    let told = |effect: &Effect| matches!(effect, Effect::PodCondition { .. });
    assert!(cycle(&mut engine).effects.iter().any(told));
}

#[test]
fn a_group_made_again_is_told_why_it_waits_and_has_its_own_status() {
    let mut engine = engine("enqueue, allocate");
    let told = |engine: &mut Engine| {
        let event = |effect: &Effect| matches!(effect, Effect::GroupEvent { warning: false, .. });
        cycle(engine).effects.into_iter().filter(event).count()
    };
    group(&mut engine, "g", "g1", 1, "100");
    assert_eq!(told(&mut engine), 1);
    group(&mut engine, "g", "g1", 1, "100");
    assert_eq!(told(&mut engine), 0, "it was told");
    group(&mut engine, "g", "g2", 1, "100");
    assert_eq!(told(&mut engine), 1, "this one was not");
    group(&mut engine, "g", "g2", 1, "1");
    cycle(&mut engine);
    let phase = |engine: &Engine| {
        let m = engine.model();
        m.job(m.find_job("ns", "g").expect("a known group"))
            .phase()
            .name()
    };
    assert_eq!(phase(&engine), "Inqueue");
    group(&mut engine, "g", "g3", 1, "100");
    assert_eq!(phase(&engine), "Pending", "it was not admitted");
}

#[test]
fn who_manages_a_group_is_known_by_its_controller() {
    let manager = |owners: Value| {
        let mut engine = engine("enqueue, allocate");
        engine.apply(Delta::PodGroup(read(json!({
            "metadata": {"name": "g", "namespace": "ns", "uid": "g1", "ownerReferences": owners},
        }))));
        let m = engine.model();
        let job = m.job(m.find_job("ns", "g").expect("a known group"));
        job.group.as_ref().expect("it was told").manager
    };
    let owner = |version: &str, kind: &str, controller: bool| json!({"apiVersion": version, "kind": kind, "name": "o", "uid": "o1", "controller": controller});
    assert_eq!(manager(json!([])), Manager::Nobody);
    assert_eq!(
        manager(json!([owner("batch.volcano.sh/v1alpha1", "Job", false)])),
        Manager::Nobody
    );
    assert_eq!(
        manager(json!([
            owner("v1", "ConfigMap", false),
            owner("batch.volcano.sh/v1alpha1", "Job", true)
        ])),
        Manager::Job
    );
    assert_eq!(manager(json!([owner("batch/v1", "Job", true)])), Manager::Other);
}

#[test]
fn a_pod_that_is_deleted_for_another_says_so_to_a_scheduler_that_has_just_started() {
    let mut engine = engine("enqueue, allocate");
    group(&mut engine, "g", "g1", 0, "1");
    let mut leaving = running("u1");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    engine.apply(Delta::Pod(read(leaving.clone())));
    assert!(!task(&engine, "p").evicting, "somebody deleted it");
    leaving["status"]["conditions"] =
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
    engine.apply(Delta::Pod(read(leaving)));
    assert!(task(&engine, "p").evicting);
    assert_eq!(task(&engine, "p").status, Status::Releasing);
}

#[test]
fn pods_whose_resize_differs_are_not_of_one_class() {
    let mut engine = engine("enqueue, allocate");
    group(&mut engine, "g", "g1", 0, "1");
    let resized = |name: &str, reason: &str| {
        let mut pod = pod(name, name, "g", "4");
        pod["spec"]["containers"][0]["name"] = json!("main");
        pod["status"] = json!({
            "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        });
        Delta::Pod(read(pod))
    };
    engine.apply(resized("wanted", "Deferred"));
    engine.apply(resized("hopeless", "Infeasible"));
    let request = |name: &str| {
        let m = engine.model();
        m.request(m.find_task("ns", name).expect("a known pod")).cpu
    };
    assert_eq!((request("wanted"), request("hopeless")), (4000, 1000));
}

#[test]
fn a_queue_that_comes_to_be_brings_its_jobs_with_it() {
    let mut engine = engine("enqueue, allocate");
    engine.apply(Delta::gone(Kind::Queue, "", "default"));
    group(&mut engine, "g", "g1", 1, "1");
    let mut done = running("u1");
    done["status"] = json!({"phase": "Running"});
    engine.apply(Delta::Pod(read(done)));
    let written = |engine: &mut Engine| {
        let status = |effect: &Effect| matches!(effect, Effect::GroupStatus { .. });
        cycle(engine).effects.into_iter().filter(status).count()
    };
    assert_eq!(written(&mut engine), 0, "no queue");
    engine.apply(Delta::Queue(read(json!({"metadata": {"name": "default"}}))));
    assert_eq!(written(&mut engine), 1);
}
