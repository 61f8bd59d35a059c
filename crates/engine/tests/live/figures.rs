//! The numbers that a shell publishes as metrics.

use super::{cycle, engine, group, node, pod, queue, read, running_on};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use volcano_engine::Engine;
use volcano_engine::figures::{Amounts, CycleFigures, QueueFigures, UNLIMITED};
use volcano_engine::model::delta::Delta;

fn in_queue(name: &str) -> Value {
    json!({"spec": {"queue": name}, "status": {"phase": "Running"}})
}

fn of<'a>(figures: &'a [QueueFigures], name: &str) -> &'a QueueFigures {
    figures
        .iter()
        .find(|queue| &*queue.queue == name)
        .expect("a known queue")
}

fn amounts(list: &Amounts) -> BTreeMap<&str, i64> {
    list.iter().map(|(name, amount)| (&**name, *amount)).collect()
}

/// 4 cpu and 2 devices; `q1` uses 1 cpu and a device and wants 2 cpu more, `q2` wants 1 cpu.
fn two_queues(plugins: &[&str]) -> Engine {
    let mut engine = engine("enqueue", plugins);
    let waiting = json!({
        "spec": {"queue": "q1", "minResources": {"cpu": "2"}, "minMember": 2},
        "status": {"phase": "Inqueue"},
    });
    let device = json!({"cpu": "1", "nvidia.com/gpu": "1"});
    let mut running = running_on("n1");
    running["spec"]["containers"] = json!([{"name": "main", "resources": {"requests": device}}]);
    let objects = [
        node(
            "n1",
            "4",
            json!({"status": {"allocatable": {"nvidia.com/gpu": "2", "memory": "8Gi"}}}),
        ),
        queue("root", json!({})),
        queue(
            "q1",
            json!({"spec": {"weight": 3, "parent": "up", "capability": {"nvidia.com/gpu": "2"}, "deserved": {"cpu": "2"}}}),
        ),
        queue("q2", json!({"spec": {"weight": 1}})),
        queue("up", json!({"spec": {"weight": 1}})),
        group("a", in_queue("q1")),
        pod("a", "a", "1", running),
        group("b", waiting),
        pod("b0", "b", "1", json!({})),
        pod("b1", "b", "1", json!({})),
        group("c", in_queue("q2")),
        pod("c", "c", "1", json!({})),
    ];
    objects.into_iter().for_each(|object| engine.apply(object));
    cycle(&mut engine);
    engine
}

#[test]
fn proportion_says_what_queues_use_want_and_deserve() {
    let figures = two_queues(&["gang", "proportion"]).queue_figures();
    let names: Vec<&str> = figures.iter().map(|queue| &*queue.queue).collect();
    assert_eq!(names, ["default", "q1", "q2", "root", "up"]);
    let q1 = of(&figures, "q1");
    let uses = [
        ("cpu", 1000),
        ("memory", 0),
        ("nvidia.com/gpu", 1000),
        ("pods", 1),
    ];
    assert_eq!(amounts(&q1.allocated), BTreeMap::from(uses));
    let wants = [
        ("cpu", 3000),
        ("memory", 0),
        ("nvidia.com/gpu", 1000),
        ("pods", 3),
    ];
    assert_eq!(amounts(&q1.request), BTreeMap::from(wants));
    let deserved = q1.deserved.as_ref().map(amounts).unwrap_or_default();
    assert_eq!([deserved["cpu"], deserved["nvidia.com/gpu"]], [3000, 1000]);
    assert_eq!(q1.inqueue.as_ref().map(|list| amounts(list)["cpu"]), Some(2000));
    assert_eq!(
        (q1.share, q1.weight, q1.overused),
        (Some(1.0), 3, Some(false)),
        "all its devices"
    );
    assert_eq!((&q1.capacity, &q1.real_capacity), (&None, &None));
    let idle = of(&figures, "up");
    assert_eq!(
        idle.deserved.as_ref().map(|list| amounts(list)["cpu"]),
        Some(0),
        "it owns no job"
    );
    assert_eq!((idle.share, idle.overused), (Some(0.0), Some(false)));
}

#[test]
fn capacity_says_what_queues_may_have() {
    let figures = two_queues(&["gang", "capacity"]).queue_figures();
    let q1 = of(&figures, "q1");
    let capacity = q1.capacity.as_ref().map(amounts).unwrap_or_default();
    assert_eq!(
        capacity,
        BTreeMap::from([
            ("cpu", UNLIMITED),
            ("memory", UNLIMITED),
            ("nvidia.com/gpu", 2000)
        ]),
        "no limit is said as such"
    );
    let real = q1.real_capacity.as_ref().map(amounts).unwrap_or_default();
    assert_eq!([real["cpu"], real["nvidia.com/gpu"]], [4000, 2000]);
    assert_eq!(q1.deserved.as_ref().map(|list| amounts(list)["cpu"]), Some(2000));
    assert_eq!((q1.overused, of(&figures, "q2").capacity.is_none()), (None, true));
}

#[test]
fn in_a_hierarchy_a_queue_counts_those_below_it() {
    let mut engine = two_queues(&["gang"]);
    let text = json!({"actions": "enqueue", "tiers": [{"plugins": [{"name": "capacity", "enableHierarchy": true}]}]});
    let conf = volcano_engine::config::SchedulerConf::parse(
        &text.to_string(),
        volcano_engine::config::catalog::PLANNED_PLUGINS,
        volcano_engine::config::catalog::ACTIONS,
    );
    engine.reconfigure(conf.expect("a good one"));
    cycle(&mut engine);
    let figures = engine.queue_figures();
    for (queue, uses, wants) in [("q1", 1000, 3000), ("up", 1000, 3000), ("root", 1000, 4000)] {
        let queue = of(&figures, queue);
        let cpu = [amounts(&queue.allocated)["cpu"], amounts(&queue.request)["cpu"]];
        assert_eq!(cpu, [uses, wants], "{}", queue.queue);
    }
}

#[test]
fn without_a_plugin_that_divides_the_cluster_only_use_is_known() {
    let engine = two_queues(&["gang"]);
    let figures = engine.queue_figures();
    let q1 = of(&figures, "q1");
    assert_eq!(amounts(&q1.allocated)["cpu"], 1000);
    assert_eq!(amounts(&q1.request)["cpu"], 3000);
    assert_eq!((&q1.deserved, &q1.inqueue, q1.share), (&None, &None, None));
    assert_eq!(shares(&engine), []);
}

#[test]
fn drf_says_the_shares_of_jobs() {
    let engine = two_queues(&["drf"]);
    assert_eq!(
        shares(&engine),
        [("ns/a", 0.5), ("ns/b", 0.0), ("ns/c", 0.0)],
        "one of two devices"
    );
}

fn shares(engine: &Engine) -> Vec<(&str, f64)> {
    let m = engine.model();
    let jobs = m.jobs_by_name().into_iter();
    jobs.filter_map(|job| Some((&*m.job(job).id, engine.job_share(job)?)))
        .collect()
}

fn lacking(engine: &Engine, figures: &CycleFigures) -> Vec<(String, u32)> {
    let name = |&(job, count): &(_, u32)| (engine.model().job(job).id.to_string(), count);
    figures.unschedulable_tasks.iter().map(name).collect()
}

#[test]
fn jobs_that_are_not_ready_are_counted_with_what_they_lack() {
    let mut engine = engine("allocate", &["gang", "predicates"]);
    let gang = json!({"spec": {"minMember": 2}, "status": {"phase": "Running"}});
    let objects = [
        node("n1", "2", json!({})),
        group("broken", gang),
        pod("broken", "broken", "1", running_on("n1")),
        group("ready", json!({})),
        pod("ready", "ready", "1", running_on("n1")),
        group("waits", json!({"spec": {"minMember": 2}})),
        pod("w0", "waits", "1", json!({})),
        pod("w1", "waits", "1", json!({})),
        group("empty", json!({})),
    ];
    objects.into_iter().for_each(|object| engine.apply(object));
    let first = cycle(&mut engine).figures;
    let mut all = lacking(&engine, &first);
    all.sort();
    let expected = [("ns/broken", 1), ("ns/ready", 0), ("ns/waits", 2)];
    assert_eq!(all, expected.map(|(job, count)| (job.to_owned(), count)));
    assert_eq!(first.unschedulable_jobs, 2);
    for _ in 0..2 {
        let again = cycle(&mut engine).figures;
        assert_eq!(
            again.unschedulable_jobs, 2,
            "the broken one is not looked at and still counts"
        );
    }
    engine.apply(Delta::PodGroupGone {
        namespace: "ns".to_owned(),
        name: "broken".to_owned(),
    });
    assert_eq!(cycle(&mut engine).figures.unschedulable_jobs, 1);
}

#[test]
fn preemption_is_counted() {
    let mut engine = engine("allocate, preempt", &["priority", "gang", "predicates"]);
    engine.apply(Delta::PriorityClass(read(
        json!({"metadata": {"name": "high"}, "value": 9}),
    )));
    let objects = [
        node("n1", "1", json!({})),
        node("n2", "2", json!({})),
        group(
            "low",
            json!({"spec": {"minMember": 0}, "status": {"phase": "Running"}}),
        ),
        pod("l0", "low", "1", running_on("n1")),
        pod("l1", "low", "1", running_on("n2")),
        pod("l2", "low", "1", running_on("n2")),
        group("high", json!({"spec": {"priorityClassName": "high"}})),
        pod("h", "high", "2", json!({})),
    ];
    objects.into_iter().for_each(|object| engine.apply(object));
    let decided = cycle(&mut engine).figures;
    assert_eq!(decided.eviction_transactions, BTreeMap::from([("preempt", 1)]));
    assert_eq!(decided.preemption_attempts, 2, "n1 is too small, n2 will do");
    assert_eq!(decided.preemption_victims, Some(2));
    let quiet = cycle(&mut engine).figures;
    assert_eq!((quiet.preemption_attempts, quiet.preemption_victims), (0, None));
    assert!(quiet.eviction_transactions.is_empty());
}
