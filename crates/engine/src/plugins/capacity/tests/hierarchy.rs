use super::*;
use crate::model::status::Status;
use crate::plugins::quota::fixture::short;
use crate::resource::UNLIMITED;

/// `root` with `sales` (4 cpu at most) above `east` and `west`, and `research` above `lab`.
fn company() -> Fixture {
    cluster()
        .queue("root", json!({}))
        .queue("sales", json!({"capability": cpu("4"), "deserved": cpu("4")}))
        .queue("east", json!({"parent": "sales", "deserved": cpu("2")}))
        .queue("west", json!({"parent": "sales", "deserved": cpu("2")}))
        .queue("research", json!({"parent": "root", "deserved": cpu("2")}))
        .queue("lab", json!({"parent": "research", "deserved": cpu("2")}))
}

#[test]
fn limits_hold_at_every_level() {
    let mut f = company()
        .running("re", "east", cpu("2"))
        .pending("two", "west", cpu("2"))
        .pending("three", "west", cpu("3"))
        .pending("lab", "lab", cpu("8"));
    let mut p = tree(0);
    f.open(&mut p);
    let (west, lab) = (f.queue_id("west"), f.queue_id("lab"));
    assert!(p.allocatable(&f.m, west, f.task("two")).is_ok());
    assert_eq!(
        short(&f.m, p.allocatable(&f.m, west, f.task("three"))),
        "sales: cpu 5000>4000",
        "names who is full"
    );
    assert!(
        p.allocatable(&f.m, lab, f.task("lab")).is_ok(),
        "no limit given anywhere above"
    );
    f.set_state(&mut p, "two", Status::Allocated);
    f.set_state(&mut p, "re", Status::Releasing);
    assert!(
        p.allocatable(&f.m, west, f.task("two")).is_ok(),
        "sums of ancestors follow what is in use"
    );
    f.set_state(&mut p, "re", Status::Running);
    assert_eq!(
        short(&f.m, p.allocatable(&f.m, west, f.task("two"))),
        "sales: cpu 6000>4000",
        "and come back"
    );
}

#[test]
fn limits_are_inherited_and_lowered_by_guarantees_of_siblings() {
    let cases = [
        (
            "nothing given: no limit",
            json!({}),
            json!({}),
            json!({}),
            None,
            None,
        ),
        (
            "root's capability reaches the leaves",
            cpu("6"),
            json!({}),
            json!({}),
            Some(6000),
            None,
        ),
        (
            "a partial capability of root leaves the rest open",
            gpu("2"),
            json!({}),
            json!({}),
            None,
            Some(2000),
        ),
        (
            "the parent's capability reaches the leaf",
            json!({}),
            cpu("5"),
            gpu("3"),
            Some(5000),
            Some(3000),
        ),
        (
            "the smaller one counts",
            json!({}),
            cpu("5"),
            cpu("7"),
            Some(5000),
            None,
        ),
        (
            "the smaller one counts, the other way",
            json!({}),
            cpu("5"),
            cpu("3"),
            Some(3000),
            None,
        ),
    ];
    for (name, root, parent, leaf, cpu_limit, gpu_limit) in cases {
        let mut f = cluster()
            .queue("root", json!({"capability": root}))
            .queue("parent", json!({"capability": parent}))
            .queue("leaf", json!({"parent": "parent", "capability": leaf}));
        let mut p = tree(0);
        f.open(&mut p);
        let limit = &p.tree.get(f.queue_id("leaf").index()).unwrap().limit;
        assert_eq!(
            limit.get(crate::resource::CPU),
            cpu_limit.unwrap_or(UNLIMITED),
            "{name}"
        );
        let gpus = f.m.dims.get("nvidia.com/gpu").unwrap();
        assert_eq!(limit.get(gpus), gpu_limit.unwrap_or(UNLIMITED), "{name}");
    }
    let guaranteed = json!({"resource": cpu("3")});
    let mut f = cluster()
        .queue("root", json!({}))
        .queue("parent", json!({"capability": cpu("7")}))
        .queue("a", json!({"parent": "parent", "guarantee": guaranteed}))
        .queue("b", json!({"parent": "parent"}))
        .queue(
            "c",
            json!({"parent": "parent", "guarantee": {"resource": cpu("9")}}),
        );
    f.m.refresh_changed_jobs();
    let limits: Vec<_> = standings(&f.m, true)
        .iter()
        .map(|s| s.real_capability.cpu)
        .collect();
    assert_eq!(
        limits,
        [UNLIMITED, 7000, 3000, 0, 7000],
        "more guaranteed than there is does not go below zero"
    );
}

#[test]
fn a_resource_that_no_node_has_yet_can_be_admitted() {
    let fpga = json!({"example.com/fpga": "4"});
    let mut f = cluster()
        .queue("root", json!({"capability": cpu("8")}))
        .queue("open", json!({}))
        .queue("bounded", json!({"capability": {"example.com/fpga": "2"}}))
        .group("a", "open", "Pending", fpga.clone())
        .group("b", "bounded", "Pending", fpga);
    let mut p = tree(0);
    f.open(&mut p);
    assert_eq!(p.job_enqueueable(&f.m, f.job("a")).0, Vote::Permit);
    assert_eq!(p.job_enqueueable(&f.m, f.job("b")).0, Vote::Reject);
}

#[test]
fn admission_counts_at_every_level() {
    let mut f = cluster()
        .queue("root", json!({}))
        .queue("parent", json!({"capability": cpu("2")}))
        .queue("a", json!({"parent": "parent"}))
        .queue("b", json!({"parent": "parent"}))
        .group("first", "a", "Pending", cpu("2"))
        .group("second", "b", "Pending", cpu("2"));
    let mut p = tree(0);
    f.open(&mut p);
    assert_eq!(p.job_enqueueable(&f.m, f.job("first")).0, Vote::Permit);
    p.job_enqueued(&f.m, f.job("first"));
    let (vote, reason) = p.job_enqueueable(&f.m, f.job("second"));
    assert_eq!(vote, Vote::Reject);
    assert_eq!(short(&f.m, Err(reason.unwrap())), "parent: cpu 4000>2000");
}

#[test]
fn what_the_last_cycle_admitted_counts_at_every_level() {
    let mut f = cluster()
        .queue("root", json!({}))
        .queue("parent", json!({"capability": cpu("4")}))
        .queue("a", json!({"parent": "parent"}))
        .queue("b", json!({"parent": "parent"}))
        .group("admitted", "a", "Inqueue", cpu("2"))
        .group("elastic", "a", "Running", cpu("1"))
        .more("elastic", true, cpu("3"))
        .group("one", "b", "Pending", cpu("1"))
        .group("two", "b", "Pending", cpu("2"));
    let mut p = tree(0);
    f.open(&mut p);
    assert_eq!(
        p.job_enqueueable(&f.m, f.job("one")).0,
        Vote::Permit,
        "1 + 3 in use + 2 admitted - 2 elastic"
    );
    assert_eq!(p.job_enqueueable(&f.m, f.job("two")).0, Vote::Reject);
}

#[test]
fn queues_are_ordered_by_the_shares_of_their_ancestors_where_they_part() {
    let mut f = company()
        .running("re", "east", cpu("1"))
        .running("rw", "west", cpu("2"))
        .running("rl", "lab", cpu("1"));
    let mut p = tree(0);
    f.open(&mut p);
    let at = |f: &Fixture, name: &str| f.queue_id(name);
    let order = |p: &Capacity, f: &Fixture, a: &str, b: &str| p.queue_order(&f.m, at(f, a), at(f, b));
    assert_eq!(
        order(&p, &f, "east", "west"),
        Ordering::Less,
        "siblings by their own shares"
    );
    assert_eq!(
        order(&p, &f, "lab", "east"),
        Ordering::Less,
        "research uses 1 of 2, sales 3 of 4"
    );
    assert_eq!(
        order(&p, &f, "lab", "sales"),
        Ordering::Less,
        "leaves before parents"
    );
    assert_eq!(
        order(&p, &f, "research", "sales"),
        Ordering::Less,
        "parents by their own shares"
    );
    f.set_state(&mut p, "rw", Status::Releasing);
    assert_eq!(
        order(&p, &f, "east", "lab"),
        Ordering::Less,
        "shares of ancestors follow: sales uses 1 of 4 now"
    );
}

#[test]
fn a_queues_own_priority_comes_first_then_that_of_the_ancestors() {
    let mut f = cluster()
        .queue("root", json!({}))
        .queue("gold", json!({"priority": 5}))
        .queue("plain", json!({}))
        .queue("gold-leaf", json!({"parent": "gold", "deserved": cpu("1")}))
        .queue("plain-leaf", json!({"parent": "plain", "deserved": cpu("1")}))
        .queue("plain-vip", json!({"parent": "plain", "priority": 1}))
        .running("r", "gold-leaf", cpu("4"));
    let mut p = tree(0);
    f.open(&mut p);
    let order = |a: &str, b: &str| p.queue_order(&f.m, f.queue_id(a), f.queue_id(b));
    assert_eq!(
        order("plain-vip", "gold-leaf"),
        Ordering::Less,
        "the queue's own priority counts first"
    );
    assert_eq!(
        order("gold-leaf", "plain-leaf"),
        Ordering::Less,
        "then the ancestors', before any share"
    );
}

#[test]
fn near_relatives_lose_tasks_first() {
    let mut f = company();
    let mut p = tree(0);
    f.open(&mut p);
    let [east, west, lab] = ["east", "west", "lab"].map(|name| f.queue_id(name));
    assert_eq!(p.victim_queue_order(&f.m, west, lab, east), Ordering::Less);
    assert_eq!(p.victim_queue_order(&f.m, lab, west, east), Ordering::Greater);
    assert_eq!(
        p.victim_queue_order(&f.m, east, west, lab),
        Ordering::Equal,
        "both only share the root"
    );
}

#[test]
fn sums_of_ancestors_are_those_of_a_fresh_start_after_any_change() {
    let mut f = company()
        .running("re", "east", cpu("1"))
        .running("rw", "west", json!({"cpu": "1", "nvidia.com/gpu": "2"}))
        .pending("pl", "lab", gpu("1"))
        .pending("ps", "sales", cpu("1"));
    let mut p = tree(0);
    f.open(&mut p);
    let steps = [
        ("pl", Status::Allocated),
        ("rw", Status::Releasing),
        ("ps", Status::Pipelined),
        ("pl", Status::Pending),
        ("rw", Status::Running),
        ("ps", Status::Pending),
        ("re", Status::Releasing),
    ];
    for (group, status) in steps {
        f.set_state(&mut p, group, status);
        let fresh = Tree::hierarchical(&f.m);
        for queue in f.m.queue_ids() {
            let (kept, again) = (
                p.tree.get(queue.index()).unwrap(),
                fresh.get(queue.index()).unwrap(),
            );
            let name = f.m.text(f.m.queue(queue).name);
            let (kept, again) = (
                p.tree.charged(&f.m, queue.index(), kept),
                fresh.charged(&f.m, queue.index(), again),
            );
            assert_eq!(kept, again, "{name} after {group} became {status:?}");
        }
    }
}
