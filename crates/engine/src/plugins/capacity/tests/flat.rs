use super::*;
use crate::model::status::Status;
use crate::plugins::quota::fixture::short;

#[test]
fn takes_part_in_events_and_victim_queue_order_only_with_hierarchy() {
    let (flat, tree) = (flat(), tree(0));
    for point in [Point::Events, Point::VictimQueueOrder] {
        assert!(!flat.points().contains(&point) && tree.points().contains(&point));
    }
    assert!(
        !tree.points().contains(&Point::Overused),
        "a queue may borrow beyond what it deserves"
    );
}

#[test]
fn order_follows_priority_then_share_then_who_deserves_something() {
    let mut f = cluster()
        .queue("half", json!({"deserved": cpu("4")}))
        .queue("full", json!({"deserved": cpu("2")}))
        .queue("nothing", json!({}))
        .queue("vip", json!({"priority": 3}))
        .running("a", "half", cpu("2"))
        .running("b", "full", cpu("2"))
        .pending("c", "nothing", cpu("1"))
        .running("d", "vip", cpu("2"));
    let mut p = flat();
    f.open(&mut p);
    let order = |a: &str, b: &str| p.queue_order(&f.m, f.queue_id(a), f.queue_id(b));
    assert_eq!(order("vip", "half"), Ordering::Less, "priority before share");
    assert_eq!(order("half", "full"), Ordering::Less, "smaller share first");
    assert_eq!(
        order("full", "nothing"),
        Ordering::Less,
        "both shares are 1, one deserves something"
    );
    assert_eq!(order("nothing", "full"), Ordering::Greater);
    assert_eq!(order("full", "full"), Ordering::Equal);
}

#[test]
fn shares_follow_what_is_in_use() {
    let mut f = cluster()
        .queue("a", json!({"deserved": cpu("4")}))
        .queue("b", json!({"deserved": cpu("4")}))
        .running("ra", "a", cpu("3"))
        .running("rb", "b", cpu("2"));
    let mut p = flat();
    f.open(&mut p);
    let (a, b) = (f.queue_id("a"), f.queue_id("b"));
    assert_eq!(p.queue_order(&f.m, a, b), Ordering::Greater);
    f.set_state(&mut p, "ra", Status::Releasing);
    assert_eq!(p.queue_order(&f.m, a, b), Ordering::Less);
}

#[test]
fn a_queue_borrows_up_to_its_real_capability() {
    let spec = json!({"deserved": cpu("1"), "capability": {"cpu": "3", "nvidia.com/gpu": "2", "pods": "2"}});
    let cases = [
        ("beyond what it deserves", cpu("2"), "fits"),
        ("beyond its capability", cpu("2001m"), "q: cpu 3001>3000"),
        (
            "two resources short",
            json!({"cpu": "4", "nvidia.com/gpu": "3"}),
            "q: cpu 5000>3000, nvidia.com/gpu 3000>2000",
        ),
        (
            "a resource that the capability does not name",
            json!({"memory": "8Gi"}),
            "fits",
        ),
        (
            "a resource that no node has",
            json!({"example.com/fpga": "1"}),
            "q: example.com/fpga 1000>0",
        ),
    ];
    for (name, request, expected) in cases {
        let mut f = cluster()
            .queue("q", spec.clone())
            .running("r", "q", cpu("1"))
            .pending("p", "q", request);
        let mut p = flat();
        f.open(&mut p);
        assert_eq!(
            short(&f.m, p.allocatable(&f.m, f.queue_id("q"), f.task("p"))),
            expected,
            "{name}"
        );
    }
}

#[test]
fn the_number_of_pods_is_limited_where_the_capability_names_it() {
    let mut f = cluster()
        .queue("q", json!({"deserved": cpu("8"), "capability": {"pods": "1"}}))
        .running("r", "q", cpu("1"))
        .pending("p", "q", cpu("1"));
    let mut p = flat();
    f.open(&mut p);
    let q = f.queue_id("q");
    assert_eq!(short(&f.m, p.allocatable(&f.m, q, f.task("p"))), "q: pods 2>1");
    assert!(!p.preemptive(&f.m, q, &f.tasks(&["p"])));
}

#[test]
fn guarantees_of_others_lower_the_real_capability() {
    let mut f = cluster()
        .queue("q", json!({}))
        .queue("kept", json!({"guarantee": {"resource": cpu("3")}}))
        .pending("five", "q", cpu("5"))
        .pending("six", "q", cpu("6"))
        .pending("all", "kept", cpu("8"));
    let mut p = flat();
    f.open(&mut p);
    let (q, kept) = (f.queue_id("q"), f.queue_id("kept"));
    assert!(p.allocatable(&f.m, q, f.task("five")).is_ok());
    assert!(p.allocatable(&f.m, q, f.task("six")).is_err());
    assert!(p.allocatable(&f.m, kept, f.task("all")).is_ok());
    let deserved: Vec<_> = standings(&f.m, false).iter().map(|s| s.deserved.cpu).collect();
    assert_eq!(deserved, [0, 3000], "a guarantee is deserved");
}

#[test]
fn closed_and_unknown_queues_take_nothing() {
    let mut f = cluster()
        .closed_queue("closed", json!({"deserved": cpu("8")}))
        .queue("idle", json!({}))
        .pending("p", "closed", cpu("1"))
        .pending("lost", "nowhere", cpu("1"));
    let mut p = flat();
    f.open(&mut p);
    let closed = f.queue_id("closed");
    assert_eq!(
        short(&f.m, p.allocatable(&f.m, closed, f.task("p"))),
        "queue closed is not open"
    );
    assert!(!p.preemptive(&f.m, closed, &f.tasks(&["p"])));
    assert_eq!(p.job_enqueueable(&f.m, f.job("p")).0, Vote::Reject);
    for unknown in ["idle", "nowhere"] {
        let queue = f.queue_id(unknown);
        assert!(p.allocatable(&f.m, queue, f.task("lost")).is_err());
        assert!(!p.preemptive(&f.m, queue, &f.tasks(&["lost"])));
        assert_eq!(p.queue_order(&f.m, queue, closed), Ordering::Equal);
    }
    assert_eq!(p.job_enqueueable(&f.m, f.job("lost")).0, Vote::Reject);
    assert!(p.victims(&f.m, f.task("lost"), &f.tasks(&["p"])).is_empty());
}

#[test]
fn jobs_are_admitted_up_to_the_real_capability() {
    let mut f = cluster()
        .queue("q", json!({"deserved": cpu("1"), "capability": cpu("4")}))
        .group("old", "q", "Running", cpu("1"))
        .more("old", true, cpu("2"))
        .group("three", "q", "Pending", cpu("3"))
        .group("four", "q", "Pending", cpu("4"))
        .group("no-minimum", "q", "Pending", Value::Null);
    let mut p = flat();
    f.open(&mut p);
    assert_eq!(
        p.job_enqueueable(&f.m, f.job("three")),
        (Vote::Permit, None),
        "1 of the 2 cpu in use is elastic"
    );
    let (vote, reason) = p.job_enqueueable(&f.m, f.job("four"));
    assert_eq!(vote, Vote::Reject);
    assert_eq!(
        reason.unwrap().text(&f.m),
        "queue resource quota insufficient: insufficient cpu"
    );
    p.job_enqueued(&f.m, f.job("three"));
    assert_eq!(
        p.job_enqueueable(&f.m, f.job("three")).0,
        Vote::Reject,
        "admitted work counts"
    );
    assert_eq!(p.job_enqueueable(&f.m, f.job("no-minimum")).0, Vote::Permit);
}
