use super::*;
use crate::plugins::quota::fixture::short;

fn quarantine(f: &Fixture) -> Vec<String> {
    let text = |(queue, why): (QueueId, Arc<str>)| format!("{}: {why}", f.m.text(f.m.queue(queue).name));
    quarantined(&f.m).into_iter().map(text).collect()
}

#[test]
fn a_broken_part_of_the_tree_is_named_and_nothing_else_is() {
    let cases: Vec<(&str, Fixture, &[&str])> = vec![
        (
            "a sound tree",
            cluster().queue("root", json!({})).queue("a", json!({})),
            &[],
        ),
        ("no queue at all", cluster(), &[]),
        (
            "unknown parent, and a child of it",
            cluster()
                .queue("root", json!({}))
                .queue("child", json!({"parent": "lost"}))
                .queue("lost", json!({"parent": "nowhere"}))
                .queue("fine", json!({"parent": "root"})),
            &[
                "child: the queue lost has invalid parent queue nowhere",
                "lost: the queue lost has invalid parent queue nowhere",
            ],
        ),
        (
            "a cycle, and a child of it",
            cluster()
                .queue("root", json!({}))
                .queue("below", json!({"parent": "one"}))
                .queue("one", json!({"parent": "two"}))
                .queue("two", json!({"parent": "one"}))
                .queue("self", json!({"parent": "self"}))
                .queue("fine", json!({"parent": "root"})),
            &[
                "below: cycle detected in queue hierarchy for queue one",
                "one: cycle detected in queue hierarchy for queue one",
                "two: cycle detected in queue hierarchy for queue two",
                "self: cycle detected in queue hierarchy for queue self",
            ],
        ),
        (
            "jobs in a parent queue",
            cluster()
                .queue("root", json!({}))
                .queue("parent", json!({}))
                .queue("leaf", json!({"parent": "parent"}))
                .pending("p", "parent", cpu("1"))
                .pending("l", "leaf", cpu("1")),
            &["parent: queue parent has child queues: only leaf queues take jobs"],
        ),
        (
            "root may be left out",
            cluster().queue("a", json!({})).queue("b", json!({"parent": "a"})),
            &[],
        ),
        (
            "a parent of root is ignored",
            cluster()
                .queue("root", json!({"parent": "a"}))
                .queue("a", json!({})),
            &[],
        ),
    ];
    for (name, f, expected) in cases {
        assert_eq!(quarantine(&f), expected, "{name}");
    }
}

#[test]
fn queues_outside_the_broken_part_go_on() {
    let mut f = cluster()
        .queue("root", json!({"capability": cpu("8")}))
        .queue("lost", json!({"parent": "nowhere", "deserved": cpu("4")}))
        .queue("parent", json!({"deserved": cpu("4")}))
        .queue("leaf", json!({"parent": "parent", "deserved": cpu("4")}))
        .running("in-lost", "lost", cpu("6"))
        .pending("lost-job", "lost", cpu("1"))
        .pending("parent-job", "parent", cpu("1"))
        .pending("leaf-job", "leaf", cpu("1"))
        .pending("leaf-big", "leaf", cpu("3"));
    let mut p = tree(0);
    f.open(&mut p);
    let [lost, parent, leaf] = ["lost", "parent", "leaf"].map(|name| f.queue_id(name));
    let answer = |queue, job| short(&f.m, p.allocatable(&f.m, queue, f.task(job)));
    assert_eq!(
        answer(lost, "lost-job"),
        "queue lost is invalid: the queue lost has invalid parent queue nowhere"
    );
    assert_eq!(
        answer(parent, "parent-job"),
        "queue parent has child queues: only leaf queues take jobs"
    );
    assert_eq!(answer(leaf, "leaf-job"), "fits");
    assert_eq!(
        answer(leaf, "leaf-big"),
        "root: cpu 9000>8000",
        "what runs in a broken queue counts for the root"
    );
    for (job, expected) in [
        ("lost-job", Vote::Reject),
        ("parent-job", Vote::Reject),
        ("leaf-job", Vote::Permit),
    ] {
        assert_eq!(p.job_enqueueable(&f.m, f.job(job)).0, expected, "{job}");
    }
    assert!(!p.preemptive(&f.m, lost, &f.tasks(&["lost-job"])));
    assert!(!p.preemptive(&f.m, parent, &f.tasks(&["parent-job"])));
    assert!(p.preemptive(&f.m, leaf, &f.tasks(&["leaf-job"])));
    assert!(
        p.victims(&f.m, f.task("lost-job"), &f.tasks(&["in-lost"]))
            .is_empty()
    );
    assert!(
        p.victims(&f.m, f.task("leaf-job"), &f.tasks(&["in-lost"]))
            .is_empty(),
        "and is not evicted"
    );
    assert_eq!(p.gang_victims(&f.m, leaf, &f.tasks(&["in-lost"])), []);
}

#[test]
fn without_a_root_queue_there_is_one_without_limits() {
    let mut f = cluster()
        .queue("a", json!({"deserved": cpu("2")}))
        .queue("b", json!({"deserved": cpu("2"), "parent": "root"}))
        .running("ra", "a", cpu("3"))
        .pending("pb", "b", cpu("8"));
    let mut p = tree(0);
    f.open(&mut p);
    let (a, b) = (f.queue_id("a"), f.queue_id("b"));
    assert!(p.allocatable(&f.m, b, f.task("pb")).is_ok());
    assert_eq!(p.queue_order(&f.m, b, a), Ordering::Less);
    f.set_state(&mut p, "pb", crate::model::status::Status::Pipelined);
    assert_eq!(p.queue_order(&f.m, b, a), Ordering::Greater);
}
