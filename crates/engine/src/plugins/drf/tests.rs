use super::*;
use crate::model::status::Status;
use crate::plugins::fixture::{Fixture, conf};
use proptest::prelude::*;
use serde_json::{Value, json};

fn flat() -> Box<dyn Plugin> {
    build(&conf("drf", json!({})))
}

fn hierarchical() -> Box<dyn Plugin> {
    let mut conf = conf("drf", json!({}));
    conf.switches.hierarchy = true;
    build(&conf)
}

/// A cluster of one node `n`.
fn cluster(allocatable: Value) -> Fixture {
    let mut f = Fixture::new();
    f.node("n", allocatable);
    f
}

fn job(
    f: &mut Fixture,
    name: &str,
    queue: &str,
    running: usize,
    pending: usize,
    requests: &Value,
) -> Vec<TaskId> {
    f.group(name, json!({"spec": {"minMember": 1, "queue": queue}}));
    let mut tasks: Vec<_> = (0..running)
        .map(|at| f.running(&format!("{name}-r-{at}"), name, "n", requests.clone()))
        .collect();
    tasks.extend((0..pending).map(|at| f.pod(&format!("{name}-p-{at}"), name, requests.clone(), json!({}))));
    tasks
}

fn tree_queue(f: &mut Fixture, name: &str, path: &str, weights: &str) {
    let annotations = json!({"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights});
    f.queue(name, annotations, json!({}));
}

#[test]
fn the_job_with_the_smaller_dominant_share_comes_first() {
    let mut f = cluster(json!({"cpu": "9", "memory": "18G", "pods": "1000"}));
    job(&mut f, "a", "default", 3, 0, &json!({"cpu": "1", "memory": "4G"})); // 12/18 of memory
    job(&mut f, "b", "default", 3, 0, &json!({"cpu": "3", "memory": "1G"})); // 9/9 of cpu
    job(&mut f, "c", "default", 0, 1, &json!({"cpu": "1"}));
    let p = f.open(flat(), 0);
    let (a, b, c) = (f.job_id("a"), f.job_id("b"), f.job_id("c"));
    assert_eq!(p.job_order(&f.m, a, b), Ordering::Less);
    assert_eq!(p.job_order(&f.m, b, a), Ordering::Greater);
    assert_eq!(p.job_order(&f.m, c, a), Ordering::Less, "nothing allocated");
    assert_eq!(p.job_order(&f.m, c, c), Ordering::Equal);
}

#[test]
fn pods_are_a_resource_too() {
    let mut f = cluster(json!({"cpu": "100", "memory": "100G", "pods": "10"}));
    job(&mut f, "many", "default", 4, 0, &json!({"cpu": "1"})); // 4/10 of pods
    job(&mut f, "large", "default", 1, 0, &json!({"cpu": "30"})); // 30/100 of cpu
    let p = f.open(flat(), 0);
    assert_eq!(
        p.job_order(&f.m, f.job_id("large"), f.job_id("many")),
        Ordering::Less
    );
}

#[test]
fn shares_follow_what_happens_in_the_cycle() {
    let mut f = cluster(json!({"cpu": "10", "pods": "1000"}));
    job(&mut f, "a", "default", 2, 0, &json!({"cpu": "1"}));
    let tasks = job(&mut f, "b", "default", 1, 1, &json!({"cpu": "2"}));
    let mut p = f.open(flat(), 0);
    let (a, b) = (f.job_id("a"), f.job_id("b"));
    assert_eq!(p.job_order(&f.m, a, b), Ordering::Equal);
    f.set_status(tasks[1], Status::Pipelined, Some("n"));
    p.on_allocate(&f.m, tasks[1]);
    assert_eq!(p.job_order(&f.m, a, b), Ordering::Less, "b has 4 of 10 now");
    f.set_status(tasks[1], Status::Pending, None);
    p.on_deallocate(&f.m, tasks[1]);
    assert_eq!(p.job_order(&f.m, a, b), Ordering::Equal);
}

#[test]
fn a_preemptor_takes_from_jobs_that_keep_the_larger_share() {
    let mut f = cluster(json!({"cpu": "10", "pods": "1000"}));
    let mine = job(&mut f, "mine", "default", 1, 1, &json!({"cpu": "1"})); // would have 2
    let rich = job(&mut f, "rich", "default", 4, 0, &json!({"cpu": "1"})); // 4, then 3, 2, 1, 0
    let poor = job(&mut f, "poor", "default", 2, 0, &json!({"cpu": "1"}));
    let orphan = f.running("orphan", "", "n", json!({"cpu": "1"}));
    let p = f.open(flat(), 0);
    let all: Vec<_> = rich.iter().chain(&poor).chain([&orphan]).copied().collect();
    assert_eq!(
        p.preemptable(&f.m, mine[1], &all),
        Some(vec![rich[0], rich[1]]),
        "equal shares are enough"
    );
    assert_eq!(
        p.preemptable(&f.m, orphan, &all),
        Some(vec![]),
        "a preemptor without a job"
    );
    let big = f.pod("big", "mine", json!({"cpu": "3"}), json!({}));
    assert_eq!(p.preemptable(&f.m, big, &all), Some(vec![]));
}

#[test]
fn an_empty_cluster_has_no_shares() {
    let mut f = Fixture::new();
    let tasks = job(&mut f, "a", "default", 0, 2, &json!({"cpu": "1"}));
    let p = f.open(hierarchical(), 0);
    let (job, queue) = (f.job_id("a"), f.queue_id("default"));
    assert_eq!(p.job_order(&f.m, job, job), Ordering::Equal);
    assert_eq!(p.queue_order(&f.m, queue, queue), Ordering::Equal);
    assert_eq!(p.preemptable(&f.m, tasks[0], &tasks), Some(tasks.clone()));
}

#[test]
fn hierarchy_adds_the_points_between_queues() {
    assert_eq!(
        flat().points(),
        [Point::JobOrder, Point::Preemptable, Point::Events]
    );
    for point in [
        Point::QueueOrder,
        Point::Reclaimable,
        Point::JobOrder,
        Point::Preemptable,
        Point::Events,
    ] {
        assert!(hierarchical().points().contains(&point), "{point:?}");
    }
}

/// Order of two queues that run `used` cpu of 100 each, with pending work behind.
fn order(paths: [(&str, &str); 2], used: [usize; 2]) -> Ordering {
    let mut f = cluster(json!({"cpu": "100", "pods": "10000"}));
    for ((name, (path, weights)), used) in ["qa", "qb"].into_iter().zip(paths).zip(used) {
        tree_queue(&mut f, name, path, weights);
        job(
            &mut f,
            &format!("job-{name}"),
            name,
            used,
            5,
            &json!({"cpu": "1"}),
        );
    }
    let p = f.open(hierarchical(), 0);
    let (a, b) = (f.queue_id("qa"), f.queue_id("qb"));
    let order = p.queue_order(&f.m, a, b);
    assert_eq!(p.queue_order(&f.m, b, a), order.reverse(), "{paths:?} {used:?}");
    order
}

#[test]
fn queues_are_served_by_share_for_their_weight() {
    use Ordering::{Equal, Greater, Less};
    let cases = [
        (
            "smaller share first",
            [("root/a", "1/1"), ("root/b", "1/1")],
            [2, 3],
            Less,
        ),
        (
            "weights divide",
            [("root/a", "1/1"), ("root/b", "1/2")],
            [2, 3],
            Greater,
        ),
        (
            "equal for their weights",
            [("root/a", "1/1"), ("root/b", "1/2")],
            [2, 4],
            Equal,
        ),
        (
            "weights below 1 count as given",
            [("root/a", "1/0.5"), ("root/b", "1/1")],
            [2, 3],
            Greater,
        ),
        (
            "the upper level decides first",
            [("root/a/x", "1/1/1"), ("root/b/y", "1/1/9")],
            [2, 3],
            Less,
        ),
        (
            "siblings are compared below",
            [("root/a/x", "1/1/1"), ("root/a/y", "1/1/2")],
            [2, 3],
            Greater,
        ),
        (
            "missing weights are 1",
            [("root/a/x", ""), ("root/a/y", "1")],
            [2, 3],
            Less,
        ),
        (
            "bad weights are 1",
            [("root/a", "1/x"), ("root/b", "1/-3")],
            [2, 3],
            Less,
        ),
        (
            "without annotation all are equal",
            [("", ""), ("", "")],
            [2, 3],
            Equal,
        ),
        (
            "one without annotation is equal to all",
            [("", ""), ("root/b", "1/1")],
            [2, 30],
            Equal,
        ),
    ];
    for (case, paths, used, expected) in cases {
        assert_eq!(order(paths, used), expected, "{case}");
    }
}

#[test]
fn conflicting_weights_are_those_of_the_smallest_queue_name() {
    for names in [["q1", "q2"], ["q2", "q1"]] {
        let mut f = cluster(json!({"cpu": "100", "pods": "10000"}));
        for name in names {
            let weights = if name == "q1" { "1/4/1" } else { "1/1/1" };
            tree_queue(&mut f, name, &format!("root/a/{name}"), weights);
        }
        tree_queue(&mut f, "q0", "root/b", "1/1");
        job(&mut f, "in-a", "q2", 8, 5, &json!({"cpu": "1"}));
        job(&mut f, "in-b", "q0", 3, 5, &json!({"cpu": "1"}));
        let p = f.open(hierarchical(), 0);
        let order = p.queue_order(&f.m, f.queue_id("q2"), f.queue_id("q0"));
        assert_eq!(order, Ordering::Less, "8/4 is less than 3/1");
    }
}

#[test]
fn queues_that_have_all_they_ask_for_come_last() {
    let mut f = cluster(json!({"cpu": "100", "pods": "10000"}));
    tree_queue(&mut f, "done", "root/done", "1/1");
    tree_queue(&mut f, "wants", "root/wants", "1/1");
    job(&mut f, "small", "done", 1, 0, &json!({"cpu": "1"}));
    job(&mut f, "large", "wants", 50, 1, &json!({"cpu": "1"}));
    let p = f.open(hierarchical(), 0);
    assert_eq!(
        p.queue_order(&f.m, f.queue_id("wants"), f.queue_id("done")),
        Ordering::Less
    );
}

#[test]
fn a_used_up_resource_saturates_those_who_want_more_of_it() {
    let mut f = cluster(json!({"cpu": "10", "memory": "10G", "pods": "10000"}));
    tree_queue(&mut f, "cpu", "root/cpu", "1/1");
    tree_queue(&mut f, "memory", "root/memory", "1/1");
    let tasks = job(&mut f, "c", "cpu", 9, 2, &json!({"cpu": "1"}));
    job(&mut f, "m", "memory", 9, 2, &json!({"memory": "1G"}));
    let mut p = f.open(hierarchical(), 0);
    let (cpu, memory) = (f.queue_id("cpu"), f.queue_id("memory"));
    assert_eq!(p.queue_order(&f.m, cpu, memory), Ordering::Equal, "9/10 each");
    f.set_status(tasks[9], Status::Allocated, Some("n"));
    p.on_allocate(&f.m, tasks[9]);
    assert_eq!(p.queue_order(&f.m, memory, cpu), Ordering::Less, "cpu is used up");
    f.set_status(tasks[9], Status::Pending, None);
    p.on_deallocate(&f.m, tasks[9]);
    assert_eq!(p.queue_order(&f.m, cpu, memory), Ordering::Equal);
}

#[test]
fn reclaims_from_queues_that_still_come_later() {
    let mut f = cluster(json!({"cpu": "10", "pods": "10000"}));
    tree_queue(&mut f, "rich", "root/rich", "1/1");
    tree_queue(&mut f, "fair", "root/fair", "1/1");
    tree_queue(&mut f, "mine", "root/mine", "1/1");
    let rich = job(&mut f, "r", "rich", 6, 4, &json!({"cpu": "1"}));
    let fair = job(&mut f, "f", "fair", 2, 4, &json!({"cpu": "1"}));
    let mine = job(&mut f, "m", "mine", 2, 4, &json!({"cpu": "1"}));
    let orphan = f.running("orphan", "", "n", json!({"cpu": "0"}));
    let p = f.open(hierarchical(), 0);
    let all: Vec<_> = fair[..2]
        .iter()
        .chain(&rich[..6])
        .chain([&orphan])
        .copied()
        .collect();
    let expected = Some(rich[..6].to_vec());
    assert_eq!(
        p.reclaimable(&f.m, mine[2], &all),
        expected,
        "3 against 5 and 1; each victim is judged alone"
    );
    assert_eq!(
        p.reclaimable(&f.m, mine[2], &all),
        expected,
        "asking leaves no trace"
    );
    assert_eq!(
        p.queue_order(&f.m, f.queue_id("fair"), f.queue_id("mine")),
        Ordering::Equal,
        "2 each, as before"
    );
    assert_eq!(
        p.reclaimable(&f.m, orphan, &all),
        Some(vec![]),
        "a reclaimer without a job"
    );
}

/// The rules of the tree, written down naively: every node anew from plain numbers.
fn naive(f: &Fixture, total: &[(DimId, i64)], children: &[Child]) -> (Vec<f64>, f64, bool) {
    let vector = |r: &Resource| total.iter().map(|&(d, _)| r.get(d) as f64).collect::<Vec<_>>();
    let dominant = |v: &[f64]| {
        v.iter()
            .zip(total)
            .map(|(x, t)| x / t.1 as f64)
            .fold(0.0, f64::max)
    };
    let mut used = Resource::default();
    f.m.queue_ids().for_each(|q| used.add(&f.m.queue(q).charged));
    let values: Vec<_> = children
        .iter()
        .map(|child| match child {
            Child::Inner(children) => naive(f, total, children),
            Child::Job(name) => {
                let id = f.job_id(name);
                let has = &f.m.job(id).charged;
                let mut wants = Resource::default();
                f.m.job(id).tasks.iter().for_each(|&t| wants.add(f.m.request(t)));
                let free = |d: DimId| total.iter().any(|t| t.0 == d && used.get(d) < t.1);
                let saturated = has
                    .names()
                    .any(|d| wants.get(d) != 0 && (has.get(d) >= wants.get(d) || !free(d)));
                let vector = vector(has);
                let share = dominant(&vector);
                (vector, share, saturated)
            }
        })
        .collect();
    let open = values.iter().filter(|v| v.1 != 0.0 && !v.2).map(|v| v.1);
    let smallest = open.fold(1.0, f64::min);
    let mut sum = vec![0.0; total.len()];
    for (vector, share, saturated) in values.iter().filter(|v| v.1 != 0.0) {
        let scale = if *saturated { 1.0 } else { smallest / share };
        sum.iter_mut().zip(vector).for_each(|(s, x)| *s += x * scale);
    }
    let share = dominant(&sum);
    (sum, share, values.iter().all(|v| v.2))
}

enum Child {
    Inner(Vec<Child>),
    Job(&'static str),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Following changes one path at a time gives the very tree that is built anew, and the one that the rules give.
    #[test]
    fn following_changes_equals_building_anew(steps in prop::collection::vec((0_usize..40, any::<bool>()), 1..60)) {
        let mut f = cluster(json!({"cpu": "12", "memory": "20G", "pods": "30"}));
        tree_queue(&mut f, "q1", "root/a/x", "1/2/1");
        tree_queue(&mut f, "q2", "root/a/y", "1/2/3");
        tree_queue(&mut f, "q3", "root/b", "1/1");
        let mut tasks = Vec::new();
        let jobs = [("j1", "q1", "700m", "1G"), ("j2", "q1", "100m", "3G"), ("j3", "q2", "1", "1G"), ("j4", "q3", "900m", "700M")];
        for (name, queue, cpu, memory) in jobs {
            tasks.extend(job(&mut f, name, queue, 0, 10, &json!({"cpu": cpu, "memory": memory})));
        }
        f.m.refresh_changed_jobs();
        let total: Vec<_> = f.m.nodes.total().iter().collect();
        let mut followed = Tree::new(&f.m, &total);
        for (at, on) in steps {
            let (status, node) = if on { (Status::Allocated, Some("n")) } else { (Status::Pending, None) };
            f.set_status(tasks[at], status, node);
            followed.mark(f.m.task(tasks[at]).job.expect("a member"));
            followed.follow(&f.m);
            followed.settle();
            let mut anew = Tree::new(&f.m, &total);
            anew.settle();
            prop_assert_eq!(followed.values(), anew.values());
        }
        let x = || Child::Inner(vec![Child::Job("j1"), Child::Job("j2")]);
        let y = || Child::Inner(vec![Child::Job("j3")]);
        let a = || Child::Inner(vec![x(), y()]);
        let b = || Child::Inner(vec![Child::Job("j4")]);
        // Nodes in the order in which the queues' paths first name them.
        let expected = [vec![a(), b()], vec![x(), y()], vec![Child::Job("j1"), Child::Job("j2")],
            vec![Child::Job("j3")], vec![Child::Job("j4")]];
        for ((share, saturated), children) in followed.values().into_iter().zip(&expected) {
            let (_, expected_share, expected_saturated) = naive(&f, &total, children);
            prop_assert!((share - expected_share).abs() < 1e-9, "{share} {expected_share}");
            prop_assert_eq!(saturated, expected_saturated);
        }
    }
}
