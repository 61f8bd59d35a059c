use super::*;
use crate::model::status::Status;

/// What `p` would have evicted: nothing if its queue has no claim, else the accepted candidates
/// of other queues.
fn reclaimed(f: &mut Fixture, p: &mut Capacity, candidates: &[&str]) -> Vec<String> {
    f.open(p);
    let reclaimer = f.task("p");
    let queue = f.m.job(f.job("p")).queue;
    if !p.preemptive(&f.m, queue, &[reclaimer]) {
        return vec!["no claim".to_owned()];
    }
    let mut others = f.tasks(candidates);
    others.retain(|&task| f.m.job(f.m.task(task).job.unwrap()).queue != queue);
    let victims = p
        .reclaimable(&f.m, reclaimer, &others)
        .expect("capacity has an opinion");
    f.groups(&victims)
}

#[test]
fn single_queues_reclaim_what_they_deserve() {
    let both = |cpu: &str, gpu: &str| json!({"cpu": cpu, "nvidia.com/gpu": gpu});
    let cases: Vec<(&str, Fixture, &[&str])> = vec![
        (
            "until the victims' queue is down to what it deserves",
            cluster()
                .queue("rich", json!({"deserved": cpu("4")}))
                .queue("poor", json!({"deserved": cpu("4")}))
                .running("a", "rich", cpu("3"))
                .running("b", "rich", cpu("3"))
                .running("c", "rich", cpu("2"))
                .pending("p", "poor", cpu("4")),
            &["a", "b"],
        ),
        (
            "one dimension within deserved is a claim",
            cluster()
                .queue("rich", json!({}))
                .queue("poor", json!({"deserved": {"cpu": "4", "memory": "1Gi"}}))
                .running("a", "rich", cpu("3"))
                .running("b", "poor", json!({"cpu": "1", "memory": "2Gi"}))
                .running("c", "rich", cpu("3"))
                .pending("p", "poor", json!({"cpu": "1", "memory": "1Gi"})),
            &["a", "c"],
        ),
        (
            "nothing within deserved is none",
            cluster()
                .queue("rich", json!({}))
                .queue("poor", json!({"deserved": cpu("1")}))
                .running("a", "rich", cpu("3"))
                .running("b", "rich", cpu("1"))
                .running("c", "poor", cpu("1"))
                .pending("p", "poor", cpu("1")),
            &["no claim"],
        ),
        (
            "nor is what the capability forbids",
            cluster()
                .queue("rich", json!({}))
                .queue("poor", json!({"deserved": cpu("8"), "capability": cpu("2")}))
                .running("a", "rich", cpu("3"))
                .running("b", "rich", cpu("1"))
                .running("c", "poor", cpu("1"))
                .pending("p", "poor", cpu("2")),
            &["no claim"],
        ),
        (
            "a victim must hold something that is wanted, and more than deserved of what it holds",
            cluster()
                .queue("rich", json!({"deserved": {"cpu": "2", "memory": "2Gi"}}))
                .queue("poor", json!({"deserved": both("2", "1")}))
                .running("a", "rich", json!({"memory": "4Gi"}))
                .running("b", "rich", cpu("1"))
                .running("c", "rich", gpu("1"))
                .pending("p", "poor", both("1", "1")),
            &["c"],
        ),
        (
            "a victim that holds what its queue deserves is judged by that alone",
            cluster()
                .queue("rich", json!({"deserved": gpu("1")}))
                .queue("poor", json!({"deserved": cpu("2")}))
                .running("a", "rich", both("4", "1"))
                .running("b", "rich", cpu("1"))
                .running("c", "rich", cpu("1"))
                .pending("p", "poor", cpu("1")),
            &["b", "c"],
        ),
        (
            "a guarantee is kept",
            cluster()
                .queue("rich", json!({"guarantee": {"resource": cpu("4")}}))
                .queue("poor", json!({"deserved": cpu("4")}))
                .running("a", "rich", cpu("3"))
                .running("b", "rich", cpu("2"))
                .running("c", "rich", cpu("2"))
                .pending("p", "poor", cpu("4")),
            &["a"],
        ),
        (
            "a guarantee of devices keeps no pod from being reclaimed",
            cluster()
                .queue(
                    "rich",
                    json!({"guarantee": {"resource": {"deviceclass/gpu": "1", "mem.deviceclass/gpu": "1"}}}),
                )
                .queue("poor", json!({"deserved": cpu("4")}))
                .running("a", "rich", cpu("3"))
                .running("b", "rich", cpu("2"))
                .running("c", "rich", cpu("2"))
                .pending("p", "poor", cpu("4")),
            &["a", "b", "c"],
        ),
    ];
    for (name, mut f, expected) in cases {
        assert_eq!(
            reclaimed(&mut f, &mut flat(), &["a", "b", "c"]),
            expected,
            "{name}"
        );
    }
}

/// Two grandparents with a chain of queues each; `b` runs a pod of 2 cpu, `p` in `a` wants it.
fn two_chains(grand_b: &str, parent_b: &str, leaf_b: Value) -> Fixture {
    Fixture::new(json!({"cpu": "2", "memory": "2Gi", "pods": "10"}))
        .queue("root", json!({}))
        .queue("grand-a", json!({"deserved": cpu("2")}))
        .queue("parent-a", json!({"parent": "grand-a", "deserved": cpu("2")}))
        .queue("a", json!({"parent": "parent-a", "deserved": cpu("2")}))
        .queue("grand-b", json!({"deserved": cpu(grand_b)}))
        .queue(
            "parent-b",
            json!({"parent": "grand-b", "deserved": cpu(parent_b)}),
        )
        .queue("b", json!({"parent": "parent-b", "deserved": leaf_b}))
        .running("victim", "b", cpu("2"))
        .pending("p", "a", cpu("2"))
}

#[test]
fn ancestors_of_the_victim_agree_up_to_the_level() {
    for (level, grand_b, parent_b, leaf_b, expected) in [
        (0, "3", "1", cpu("1"), Some("victim")),
        (1, "3", "1", cpu("1"), Some("victim")),
        (2, "3", "1", cpu("1"), None),
        (9, "1", "1", cpu("1"), Some("victim")),
        (0, "3", "3", cpu("1"), Some("victim")),
        (1, "3", "3", cpu("1"), None),
        (0, "1", "1", cpu("2"), None),
        (-4, "3", "3", cpu("1"), Some("victim")),
        (1, "3", "0", json!({}), Some("victim")),
    ] {
        let name = format!("level {level}, deserved {grand_b} > {parent_b} > {leaf_b}");
        let mut f = two_chains(grand_b, parent_b, leaf_b);
        let victims = reclaimed(&mut f, &mut tree(level), &["victim"]);
        assert_eq!(victims.first().map(String::as_str), expected, "{name}");
    }
}

#[test]
fn a_claim_may_come_from_an_ancestor_within_the_level() {
    let fixture = || {
        cluster()
            .queue("root", json!({}))
            .queue("grand", json!({"deserved": cpu("4")}))
            .queue("parent", json!({"parent": "grand"}))
            .queue("leaf", json!({"parent": "parent"}))
            .queue("other", json!({}))
            .running("victim", "other", cpu("8"))
            .pending("p", "leaf", cpu("2"))
    };
    assert_eq!(reclaimed(&mut fixture(), &mut tree(0), &["victim"]), ["no claim"]);
    assert_eq!(reclaimed(&mut fixture(), &mut tree(1), &["victim"]), ["no claim"]);
    assert_eq!(reclaimed(&mut fixture(), &mut tree(2), &["victim"]), ["victim"]);
    assert_eq!(
        reclaimed(&mut fixture(), &mut tree(3), &["victim"]),
        ["victim"],
        "the root has no claims"
    );
}

#[test]
fn close_relatives_that_deserve_nothing_do_not_take_from_each_other() {
    let fixture = |deserved: Value| {
        cluster()
            .queue("root", json!({}))
            .queue("grand", json!({"deserved": cpu("4")}))
            .queue("parent", json!({"parent": "grand", "deserved": cpu("1")}))
            .queue("deep", json!({"parent": "parent"}))
            .queue("shallow", json!({"parent": "grand", "deserved": deserved}))
            .running("victim", "deep", cpu("2"))
            .pending("p", "shallow", cpu("2"))
    };
    let nothing: Vec<String> = Vec::new();
    assert_eq!(
        reclaimed(&mut fixture(json!({})), &mut tree(2), &["victim"]),
        nothing,
        "grand is above both"
    );
    assert_eq!(
        reclaimed(&mut fixture(cpu("2")), &mut tree(2), &["victim"]),
        nothing,
        "grand is not over: it agrees not"
    );
    assert_eq!(
        reclaimed(&mut fixture(cpu("2")), &mut tree(1), &["victim"]),
        ["victim"],
        "it deserves what it takes"
    );
    assert_eq!(
        reclaimed(&mut fixture(cpu("2")), &mut tree(0), &["victim"]),
        ["victim"]
    );
}

#[test]
fn guarantees_of_ancestors_are_kept_too() {
    let mut f = cluster()
        .queue("root", json!({}))
        .queue(
            "rich",
            json!({"guarantee": {"resource": {"cpu": "3", "nvidia.com/gpu": "1"}}}),
        )
        .queue("x", json!({"parent": "rich"}))
        .queue("y", json!({"parent": "rich"}))
        .queue("poor", json!({"deserved": cpu("8")}))
        .running("a", "x", cpu("2"))
        .running("b", "y", cpu("2"))
        .running("c", "y", cpu("1"))
        .pending("p", "poor", cpu("4"));
    assert_eq!(reclaimed(&mut f, &mut tree(0), &["a", "b", "c"]), ["a"]);
    let mut sibling = f
        .queue("z", json!({"parent": "rich", "deserved": cpu("8")}))
        .pending("p", "z", cpu("4"));
    sibling.m.apply(crate::model::delta::Delta::PodGone {
        namespace: "ns".into(),
        name: "p-3".into(),
    });
    let all = reclaimed(&mut sibling, &mut tree(0), &["a", "b", "c"]);
    assert_eq!(
        all,
        ["a", "b", "c"],
        "what stays below the ancestor does not lower its use"
    );
}

#[test]
fn whole_gangs_are_judged_by_their_own_queue() {
    let mut f = two_chains("3", "3", cpu("1")).running("lost", "nowhere", cpu("1"));
    let mut p = tree(2);
    f.open(&mut p);
    let candidates = f.tasks(&["lost", "victim"]);
    let evicted = |kind| {
        p.unified_evictable(&f.m, kind, f.job("p"), &candidates)
            .expect("an opinion")
    };
    assert_eq!(
        f.groups(&evicted(EvictionKind::Preempt)),
        ["lost", "victim"],
        "inside a queue all may go"
    );
    assert_eq!(f.groups(&evicted(EvictionKind::Reclaim)), ["victim"]);
}

#[test]
fn pipelined_tasks_use_up_a_claim() {
    let mut f = cluster()
        .queue("rich", json!({}))
        .queue("poor", json!({"deserved": cpu("4")}))
        .running("a", "rich", cpu("8"))
        .pending("p", "poor", cpu("4"))
        .pending("q", "poor", cpu("4"));
    let mut p = flat();
    f.open(&mut p);
    let poor = f.queue_id("poor");
    assert!(p.preemptive(&f.m, poor, &f.tasks(&["q"])));
    f.set_state(&mut p, "p", Status::Pipelined);
    assert!(!p.preemptive(&f.m, poor, &f.tasks(&["q"])));
}
