use super::*;
use crate::model::status::Status;
use crate::plugins::quota::fixture::{Fixture, conf, short};
use crate::resource::{CPU, MEMORY};
use serde_json::{Value, json};

fn plugin() -> Box<dyn Plugin> {
    build(&conf("proportion", false, Default::default()))
}

/// `queue cpu-milli` of every queue with a job.
fn deserved_cpu(f: &mut Fixture) -> Vec<String> {
    f.m.refresh_changed_jobs();
    let text = |(queue, amount): &(QueueId, Resource)| {
        format!("{} {}", f.m.text(f.m.queue(*queue).name), amount.cpu)
    };
    deserved(&f.m).iter().map(text).collect()
}

#[test]
fn deserved_is_filled_in_rounds_by_weight() {
    let node = || Fixture::new(json!({"cpu": "10", "memory": "100Gi", "pods": "110"}));
    let cpu = |n: u32| json!({"cpu": n.to_string()});
    let cases: Vec<(&str, Fixture, &[&str])> = vec![
        (
            "a small request is met in round one, the rest goes to the other queue",
            node()
                .queue("q1", json!({"weight": 1}))
                .queue("q2", json!({"weight": 1}))
                .pending("a", "q1", cpu(2))
                .pending("b", "q2", cpu(10)),
            &["q1 2000", "q2 8000"],
        ),
        (
            "a capability stops a queue, what is left stays unused",
            node()
                .queue("q1", json!({"weight": 1}))
                .queue("q2", json!({"weight": 1, "capability": {"cpu": "6"}}))
                .pending("a", "q1", cpu(2))
                .pending("b", "q2", cpu(10)),
            &["q1 2000", "q2 6000"],
        ),
        (
            "weights divide",
            node()
                .queue("q1", json!({"weight": 1}))
                .queue("q2", json!({"weight": 4}))
                .pending("a", "q1", cpu(10))
                .pending("b", "q2", cpu(10)),
            &["q1 2000", "q2 8000"],
        ),
        (
            "thirds are exact to the milli-core, the odd one is left",
            node()
                .queue("q1", json!({"weight": 1}))
                .queue("q2", json!({"weight": 1}))
                .queue("q3", json!({"weight": 1}))
                .pending("a", "q1", cpu(10))
                .pending("b", "q2", cpu(10))
                .pending("c", "q3", cpu(10)),
            &["q1 3333", "q2 3333", "q3 3333"],
        ),
        (
            "a guarantee is a floor, and bounds the others even while its queue is idle",
            node()
                .queue("q1", json!({"weight": 1}))
                .queue(
                    "q2",
                    json!({"weight": 1, "guarantee": {"resource": {"cpu": "4"}}}),
                )
                .pending("a", "q1", cpu(10))
                .pending("b", "q2", cpu(1)),
            &["q1 6000", "q2 4000"],
        ),
        (
            "queues without jobs and jobs without queues take no part",
            node()
                .queue("q1", json!({"weight": 1}))
                .queue("q2", json!({"weight": 100}))
                .pending("a", "q1", cpu(10))
                .pending("b", "nowhere", cpu(10)),
            &["q1 10000"],
        ),
        ("no queue at all", node(), &[]),
        (
            "extreme weights end",
            node()
                .queue("q1", json!({"weight": 2147483647, "capability": {"cpu": "1"}}))
                .queue("q2", json!({"weight": 1}))
                .pending("a", "q1", json!({"cpu": "10", "memory": "1000Gi"}))
                .pending("b", "q2", cpu(10)),
            &["q1 1000", "q2 9000"],
        ),
    ];
    for (name, mut f, expected) in cases {
        assert_eq!(deserved_cpu(&mut f), expected, "{name}");
    }
}

#[test]
fn dimensions_that_are_not_requested_are_not_deserved() {
    let mut f = Fixture::new(json!({"cpu": "10", "memory": "10", "pods": "10", "nvidia.com/gpu": "8"}))
        .queue("q1", json!({}))
        .pending("a", "q1", json!({"cpu": "4"}));
    f.m.refresh_changed_jobs();
    let deserved = deserved(&f.m)[0].1.clone();
    let names: Vec<_> = deserved.names().map(|d| f.m.dims.name(d).to_owned()).collect();
    assert_eq!(names, ["cpu", "pods"]);
}

/// Two queues with equal weights and 4 cpu each to use, `q1` with all of it in use.
fn two_queues() -> Fixture {
    Fixture::new(json!({"cpu": "8", "memory": "8Gi", "pods": "110"}))
        .queue("q1", json!({"weight": 1}))
        .queue("q2", json!({"weight": 1}))
        .running("r1", "q1", json!({"cpu": "4", "memory": "1Gi"}))
        .pending("p1", "q1", json!({"cpu": "2"}))
        .running("r2", "q2", json!({"cpu": "1", "memory": "1Gi"}))
        .pending("p2", "q2", json!({"cpu": "5", "memory": "1Gi"}))
}

#[test]
fn order_follows_priority_then_share() {
    let mut f = two_queues()
        .queue("vip", json!({"weight": 1, "priority": 7}))
        .running("rv", "vip", json!({"cpu": "1"}));
    let mut p = plugin();
    f.open(p.as_mut());
    let (q1, q2, vip) = (f.queue_id("q1"), f.queue_id("q2"), f.queue_id("vip"));
    assert_eq!(
        p.queue_order(&f.m, vip, q2),
        Ordering::Less,
        "higher priority first, whatever its share"
    );
    assert_eq!(p.queue_order(&f.m, q2, q1), Ordering::Less, "smaller share first");
    assert_eq!(p.queue_order(&f.m, q1, q2), Ordering::Greater);
    assert_eq!(p.queue_order(&f.m, q1, q1), Ordering::Equal);
    f.set_state(p.as_mut(), "r1", Status::Releasing);
    assert_eq!(
        p.queue_order(&f.m, q1, q2),
        Ordering::Less,
        "shares follow what is in use"
    );
}

#[test]
fn a_queue_stays_below_what_it_deserves() {
    let mut f = two_queues();
    let mut p = plugin();
    f.open(p.as_mut());
    let (q1, q2) = (f.queue_id("q1"), f.queue_id("q2"));
    assert_eq!(
        short(&f.m, p.allocatable(&f.m, q1, f.task("p1"))),
        "q1: cpu 6000>4000"
    );
    assert_eq!(
        short(&f.m, p.allocatable(&f.m, q2, f.task("p2"))),
        "q2: cpu 6000>4000"
    );
    assert!(!p.preemptive(&f.m, q2, &f.tasks(&["p2"])));
    assert!(!p.overused(&f.m, q1), "pods are deserved too, and one more is");
    f.set_state(p.as_mut(), "p1", Status::Allocated);
    assert!(p.overused(&f.m, q1), "every deserved dimension is used up");
}

#[test]
fn a_queue_may_take_what_it_deserves() {
    let mut f = Fixture::new(json!({"cpu": "4", "memory": "4Gi", "pods": "110"}))
        .queue("q1", json!({}))
        .queue("q2", json!({}))
        .queue("idle", json!({}))
        .closed_queue("q3", json!({}))
        .running("r1", "q1", json!({"cpu": "2", "memory": "1Gi"}))
        .more("r1", true, json!({"cpu": "2", "memory": "1Gi"}))
        .pending("p2", "q2", json!({"cpu": "1"}))
        .pending("p3", "q3", json!({"cpu": "1m"}));
    let mut p = plugin();
    f.open(p.as_mut());
    let (q2, q3, idle) = (f.queue_id("q2"), f.queue_id("q3"), f.queue_id("idle"));
    assert!(p.allocatable(&f.m, q2, f.task("p2")).is_ok());
    assert!(p.preemptive(&f.m, q2, &f.tasks(&["p2"])));
    assert_eq!(
        short(&f.m, p.allocatable(&f.m, q3, f.task("p3"))),
        "queue q3 is not open"
    );
    assert!(!p.preemptive(&f.m, q3, &f.tasks(&["p3"])));
    assert!(
        p.overused(&f.m, idle) && p.allocatable(&f.m, idle, f.task("p2")).is_err(),
        "no job: not eligible"
    );
}

#[test]
fn victims_are_taken_until_the_queue_is_down_to_what_it_deserves() {
    let mut f = Fixture::new(json!({"cpu": "4", "memory": "4Gi", "pods": "110"}))
        .queue("q1", json!({}))
        .queue("q2", json!({}))
        .running("a", "q1", json!({"cpu": "1"}))
        .running("b", "q1", json!({"cpu": "1"}))
        .running("c", "q1", json!({"cpu": "1"}))
        .running("d", "q1", json!({"cpu": "1"}))
        .running("lost", "nowhere", json!({"cpu": "1"}))
        .pending("p", "q2", json!({"cpu": "4"}));
    let mut p = plugin();
    f.open(p.as_mut());
    let candidates = f.tasks(&["lost", "d", "b", "a", "c"]);
    let victims = p.reclaimable(&f.m, f.task("p"), &candidates).unwrap();
    assert_eq!(f.groups(&victims), ["d", "b"]);
    let none = p.reclaimable(&f.m, f.task("p"), &f.tasks(&["p"])).unwrap();
    assert!(none.is_empty(), "refuses, does not abstain");
}

#[test]
fn jobs_are_admitted_up_to_the_real_capability() {
    let minimum = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let mut f = Fixture::new(json!({"cpu": "4", "memory": "4G", "pods": "20"}))
        .queue("q1", json!({"capability": {"cpu": "2", "memory": "2G"}}))
        .closed_queue("q3", json!({}))
        .group("pg1", "q1", "Running", minimum("1", "2G"))
        .more("pg1", true, minimum("1", "2G"))
        .group("cpu-only", "q1", "Pending", minimum("1", "0"))
        .group("both", "q1", "Pending", minimum("1", "1G"))
        .group("no-minimum", "q1", "Pending", Value::Null)
        .group("closed", "q3", "Pending", minimum("1", "1G"));
    let mut p = plugin();
    f.open(p.as_mut());
    assert_eq!(
        p.job_enqueueable(&f.m, f.job("cpu-only")),
        (Vote::Permit, None),
        "memory is full but not asked for"
    );
    assert_eq!(p.job_enqueueable(&f.m, f.job("no-minimum")), (Vote::Permit, None));
    let (vote, reason) = p.job_enqueueable(&f.m, f.job("both"));
    assert_eq!(vote, Vote::Reject);
    assert_eq!(
        reason.unwrap().text(&f.m),
        "queue resource quota insufficient: insufficient memory"
    );
    let closed = AdmissionReason::QueueNotOpen(f.queue_id("q3"));
    assert_eq!(
        p.job_enqueueable(&f.m, f.job("closed")),
        (Vote::Reject, Some(closed))
    );
    p.job_enqueued(&f.m, f.job("cpu-only"));
    assert_eq!(
        p.job_enqueueable(&f.m, f.job("cpu-only")).0,
        Vote::Reject,
        "admitted work counts"
    );
}

#[test]
fn work_beyond_the_minimum_of_jobs_does_not_block_admission() {
    let mut f = Fixture::new(json!({"cpu": "4", "memory": "4G", "pods": "20"}))
        .queue("q1", json!({}))
        .group("big", "q1", "Running", json!({"cpu": "1"}))
        .more("big", true, json!({"cpu": "4"}))
        .group("new", "q1", "Pending", json!({"cpu": "3"}))
        .group("too-big", "q1", "Pending", json!({"cpu": "3001m"}));
    let mut p = plugin();
    f.open(p.as_mut());
    assert_eq!(p.job_enqueueable(&f.m, f.job("new")).0, Vote::Permit);
    assert_eq!(p.job_enqueueable(&f.m, f.job("too-big")).0, Vote::Reject);
}

#[test]
fn the_number_of_pods_is_limited_where_the_capability_names_it() {
    let mut f = Fixture::new(json!({"cpu": "8", "memory": "8Gi", "pods": "110"}))
        .queue("one", json!({"capability": {"pods": "1"}}))
        .queue("many", json!({"capability": {"cpu": "8"}}))
        .running("r1", "one", json!({"cpu": "1"}))
        .pending("p1", "one", json!({"cpu": "1"}))
        .running("r2", "many", json!({"cpu": "1"}))
        .pending("p2", "many", json!({"cpu": "1"}));
    let mut p = plugin();
    f.open(p.as_mut());
    let (one, many) = (f.queue_id("one"), f.queue_id("many"));
    assert_eq!(
        short(&f.m, p.allocatable(&f.m, one, f.task("p1"))),
        "one: pods 2>1"
    );
    assert!(p.allocatable(&f.m, many, f.task("p2")).is_ok());
}

proptest::proptest! {
    #[test]
    fn the_cluster_is_divided_without_loss_or_excess(
        queues in proptest::collection::vec((1u32..50, 1u32..20, 0u32..40, proptest::option::of(1u32..12)), 1..12),
    ) {
        let mut f = Fixture::new(json!({"cpu": "16", "memory": "64Gi", "pods": "1000"}));
        for (index, (weight, cpu, memory, capability)) in queues.iter().enumerate() {
            let name = format!("q{index}");
            let capability = capability.map_or(json!({}), |cpu| json!({"cpu": cpu.to_string()}));
            let request = json!({"cpu": cpu.to_string(), "memory": format!("{memory}Gi")});
            f = f.queue(&name, json!({"weight": weight, "capability": capability})).pending(&name, &name, request);
        }
        f.m.refresh_changed_jobs();
        let mut candidates = candidates(&f.m);
        fill(&f.m, &mut candidates);
        for dim in [CPU, MEMORY] {
            let deserved: i64 = candidates.iter().map(|c| c.deserved.get(dim)).sum();
            let left = f.m.nodes.total().get(dim) - deserved;
            let wanting: Vec<_> = candidates.iter().filter(|c| c.room(dim) > 0).collect();
            proptest::prop_assert!(left >= 0, "no more than there is");
            let crumbs = left < i64::try_from(candidates.len()).unwrap();
            proptest::prop_assert!(wanting.is_empty() || crumbs, "{left} left while somebody wants more");
            for (a, b) in wanting.iter().zip(wanting.iter().skip(1)) {
                let (level_a, level_b) = (a.deserved.get(dim) / a.weight, b.deserved.get(dim) / b.weight);
                proptest::prop_assert!((level_a - level_b).abs() <= 16, "wanting queues have parts by weight");
            }
        }
        proptest::prop_assert!(candidates.iter().all(|c| c.deserved.le(&c.ceiling, Missing::Zero)));
    }
}
