//! Statuses: the latest wins, and not too often.

use super::*;

#[test]
fn only_the_latest_status_is_written() {
    let mut desk = Desk::new(1);
    desk.order(gang("x", "x:n"));
    desk.sent();
    for sequence in 1..=3 {
        desk.order(group("g", sequence, json!({"running": sequence})));
    }
    desk.pass(ms(25));
    desk.all_done();
    assert_eq!(desk.sent(), [r#"group g {"running":3}"#]);
    desk.order(group("g", 4, json!({"running": 4})));
    assert!(desk.sent().is_empty(), "one write of an object at a time");
    desk.answer("group g", version("17"));
    assert_eq!(desk.outcomes(), ["bound x", "written g 3 17"]);
    let (waited, sent) = desk.until_sent();
    assert_eq!(
        (waited, sent),
        (secs(1), vec![r#"group g {"running":4}"#.to_owned()])
    );
    desk.done("group g");
    desk.order(group("g", 5, json!({"running": 4, "phase": "Running"})));
    assert_eq!(desk.sent().len(), 1, "another phase at once");
}

#[test]
fn the_first_status_of_a_group_waits_as_long_as_it_says_and_the_next_ones_do_not() {
    for settles in [ms(0), ms(250)] {
        let mut desk = Desk::new(1);
        let order = |sequence, phase: &str| {
            let mut order = group("g", sequence, json!({"phase": phase}));
            if let Order::GroupStatus(status) = &mut order {
                status.settles = settles;
            }
            order
        };
        desk.order(order(1, "Pending"));
        desk.order(order(2, "Inqueue"));
        let (waited, sent) = desk.until_sent();
        assert_eq!((waited, sent.len()), (settles, 1), "{sent:?}");
        desk.all_done();
        desk.order(order(3, "Running"));
        assert_eq!(desk.until_sent().0, ms(0));
    }
}

#[test]
fn a_group_that_is_gone_is_told_so() {
    let mut desk = Desk::new(1);
    desk.order(group("g", 1, json!({})));
    desk.until_sent();
    desk.answer("group g", Answer::Gone);
    assert_eq!(desk.outcomes(), ["written g 1 -"]);
    assert!(desk.queue.is_empty());
}

#[test]
fn a_status_waits_for_the_binds_of_its_gang() {
    let mut desk = Desk::new(4);
    desk.order(gang("j", "a:n b:n"));
    desk.order(group("j", 1, json!({"phase": "Inqueue"})));
    desk.order(group("other", 2, json!({})));
    assert_eq!(desk.sent(), ["bind a n", "bind b n"]);
    desk.pass(ms(25));
    assert_eq!(desk.sent(), ["group other {}"]);
    desk.pass(ms(275));
    desk.done("bind a");
    assert!(desk.sent().is_empty());
    desk.pass(ms(300));
    desk.done("bind b");
    assert!(desk.sent().is_empty());
    desk.pass(ms(100));
    desk.order(group("j", 3, json!({"phase": "Running"})));
    assert!(desk.sent().is_empty());
    desk.pass(ms(50));
    assert_eq!(
        desk.sent(),
        [r#"group j {"phase":"Running"}"#],
        "one write instead of two"
    );
}

#[test]
fn a_status_that_comes_right_after_the_binds_waits_a_moment() {
    let mut desk = Desk::new(4);
    desk.order(gang("j", "a:n"));
    desk.sent();
    desk.done("bind a");
    desk.pass(ms(50));
    desk.order(group("j", 1, json!({})));
    assert!(desk.sent().is_empty());
    let (waited, sent) = desk.until_sent();
    assert_eq!((waited, sent.len()), (ms(100), 1));
    desk.all_done();
    desk.pass(secs(6));
    desk.order(group("j", 2, json!({})));
    assert_eq!(desk.sent().len(), 1, "binds of long ago do not matter");
}

#[test]
fn a_status_does_not_wait_for_binds_for_ever() {
    let mut desk = Desk::new(4);
    desk.order(gang("j", "a:n"));
    desk.sent();
    desk.order(group("j", 1, json!({"at": 1})));
    desk.pass(ms(1500));
    desk.order(group("j", 2, json!({"at": 2})));
    assert!(desk.sent().is_empty());
    let (waited, sent) = desk.until_sent();
    assert_eq!((waited, sent), (ms(500), vec![r#"group j {"at":2}"#.to_owned()]));
}

#[test]
fn a_status_waits_for_binds_that_had_to_wait_for_their_turn() {
    let mut desk = Desk::new(2);
    for job in ["a", "b", "c"] {
        desk.order(gang(job, &format!("{job}:n")));
        desk.order(group(job, 1, json!({"phase": "Inqueue"})));
    }
    assert_eq!(desk.sent(), ["bind a n", "bind b n"]);
    desk.pass(secs(3));
    desk.done("bind a");
    assert_eq!(desk.sent(), ["bind c n"]);
    desk.pass(secs(1));
    desk.done("bind b");
    assert_eq!(desk.sent(), [r#"group a {"phase":"Inqueue"}"#]);
    desk.done("group a");
    assert!(desk.sent().is_empty(), "the bind of c was sent a moment ago");
    desk.done("bind c");
    desk.order(group("c", 2, json!({"phase": "Running"})));
    desk.pass(ms(150));
    assert_eq!(
        desk.sent(),
        [r#"group c {"phase":"Running"}"#, r#"group b {"phase":"Inqueue"}"#],
        "once each"
    );
}

#[test]
fn a_status_that_equals_the_last_one_is_written_again_only_after_a_while() {
    let mut desk = Desk::new(4);
    desk.order(group("g", 1, json!({"phase": "Inqueue"})));
    assert_eq!(desk.until_sent().0, ms(25), "the pods may come right behind");
    desk.answer("group g", version("1"));
    desk.pass(secs(1));
    desk.order(group("g", 2, json!({"phase": "Inqueue"})));
    assert_eq!(desk.until_sent().0, secs(4));
    desk.answer("group g", version("1"));
    assert_eq!(desk.outcomes(), ["written g 1 1", "written g 2 1"]);
    desk.order(group("g", 3, json!({"phase": "Inqueue"})));
    desk.order(group("g", 4, json!({"phase": "Running"})));
    assert_eq!(
        desk.sent(),
        [r#"group g {"phase":"Running"}"#],
        "a change goes at once"
    );
}

#[test]
fn conditions_with_the_same_reason_keep_their_distance() {
    let mut desk = Desk::new(4);
    desk.order(condition("a", "Unschedulable", "0 of 9"));
    desk.pass(ms(200));
    desk.order(condition("a", "Unschedulable", "1 of 9"));
    let (waited, sent) = desk.until_sent();
    assert_eq!(
        (waited, sent),
        (ms(100), vec!["condition a Unschedulable: 1 of 9".to_owned()]),
        "a moment after the first"
    );
    desk.order(condition("a", "Unschedulable", "2 of 9"));
    desk.done("condition a");
    assert!(desk.sent().is_empty());
    desk.pass(ms(1700));
    desk.order(condition("a", "Unschedulable", "3 of 9"));
    desk.order(condition("b", "Unschedulable", "3 of 9"));
    desk.settle();
    assert_eq!(desk.sent(), ["condition b Unschedulable: 3 of 9"], "per pod");
    let (waited, sent) = desk.until_sent();
    assert_eq!(waited, secs(3));
    assert_eq!(sent, ["condition a Unschedulable: 3 of 9 again"]);
    desk.all_done();
    desk.order(condition("a", "Schedulable", "soon"));
    assert_eq!(
        desk.sent(),
        ["condition a Schedulable: soon again"],
        "another reason at once"
    );
    desk.all_done();
    let nominated = Order::PodCondition(PodCondition {
        pod: pod("a"),
        reason: "Schedulable",
        message: "soon".into(),
        nominated: Some("n".into()),
    });
    desk.order(nominated);
    assert_eq!(
        desk.sent(),
        ["condition a Schedulable: soon -> n again"],
        "so does a nomination"
    );
}

#[test]
fn a_pod_that_waits_for_a_moment_only_is_told_nothing() {
    let mut desk = Desk::new(4);
    desk.order(condition("a", "Unschedulable", "full"));
    desk.pass(ms(200));
    assert!(desk.sent().is_empty());
    desk.order(gang("j", "a:n"));
    assert_eq!(desk.sent(), ["bind a n"]);
    desk.all_done();
    desk.settle();
    assert!(desk.sent().is_empty() && desk.queue.is_empty());
}

#[test]
fn a_node_that_is_freed_for_a_pod_is_told_at_once() {
    let mut desk = Desk::new(4);
    let nominated = Order::PodCondition(PodCondition {
        pod: pod("a"),
        reason: "Unschedulable",
        message: "full".into(),
        nominated: Some("n".into()),
    });
    desk.order(nominated);
    assert_eq!(desk.sent(), ["condition a Unschedulable: full -> n"]);
}

#[test]
fn a_nomination_and_its_removal_outlive_a_newer_condition_that_says_nothing_of_them() {
    let nominating = |message: &str, node: &str| {
        let Order::PodCondition(value) = condition("a", "Unschedulable", message) else {
            unreachable!()
        };
        let nominated = Some(node.into());
        Order::PodCondition(PodCondition { nominated, ..value })
    };
    for (node, newer, expected) in [
        ("n1", condition("a", "Unschedulable", "more"), "more -> n1"),
        ("", condition("a", "Unschedulable", "more"), "more -> "),
        ("n1", nominating("more", "n2"), "more -> n2"),
        ("n1", nominating("more", ""), "more -> "),
    ] {
        // While it waits for a lane.
        let mut desk = Desk::new(1);
        desk.order(gang("x", "x:n"));
        desk.sent();
        desk.order(nominating("full", node));
        desk.order(newer.clone());
        desk.all_done();
        let written = format!("condition a Unschedulable: {expected}");
        assert_eq!(desk.sent(), std::slice::from_ref(&written), "{newer:?}");
        // While it is being written, which fails.
        let mut desk = Desk::new(1);
        desk.order(nominating("full", node));
        desk.sent();
        desk.order(newer.clone());
        desk.answer("condition a", later());
        assert_eq!(desk.until_sent().1, [written], "{newer:?}");
    }
}

#[test]
fn a_pod_that_is_being_bound_gets_no_condition() {
    let mut desk = Desk::new(1);
    desk.order(gang("x", "x:n"));
    desk.sent();
    desk.order(condition("a", "Unschedulable", "full"));
    desk.order(gang("j", "a:n"));
    desk.order(condition("a", "Unschedulable", "full"));
    desk.all_done();
    assert_eq!(desk.sent(), ["bind a n"]);
    desk.all_done();
    assert!(desk.sent().is_empty() && desk.queue.is_empty());
}

#[test]
fn a_bind_does_not_overtake_the_condition_of_its_pod() {
    let mut desk = Desk::new(4);
    desk.order(condition("a", "Unschedulable", "full"));
    desk.settle();
    assert_eq!(desk.sent().len(), 1);
    desk.order(gang("j", "a:n b:n"));
    assert_eq!(desk.sent(), ["bind b n"]);
    desk.pass(ms(20));
    assert!(desk.sent().is_empty());
    desk.done("condition a");
    assert_eq!(desk.until_sent().1, ["bind a n"]);
}

#[test]
fn a_queue_is_written_once_a_second() {
    let mut desk = Desk::new(4);
    desk.order(queue_status("q", json!({"cpu": "1"})));
    assert_eq!(desk.sent(), [r#"queue q {"cpu":"1"}"#]);
    desk.done("queue q");
    for cpu in 2..5 {
        desk.order(queue_status("q", json!({"cpu": cpu.to_string()})));
        desk.pass(ms(100));
        assert!(desk.sent().is_empty());
    }
    let (waited, sent) = desk.until_sent();
    assert_eq!(
        (waited, sent),
        (ms(700), vec![r#"queue q {"cpu":"4"}"#.to_owned()])
    );
}

#[test]
fn a_gate_is_opened_at_once_and_again_until_that_is_done() {
    let mut desk = Desk::new(4);
    desk.order(Order::OpenGate(pod("p")));
    assert_eq!(desk.sent(), ["open p"]);
    desk.answer("open p", later());
    assert_eq!(desk.until_sent().1, ["open p"]);
    desk.done("open p");
    desk.pass(ms(60_000));
    assert!(desk.sent().is_empty() && desk.queue.is_empty());
}

#[test]
fn a_shard_is_written_once_a_second_with_its_latest_nodes() {
    let shard = |nodes: &[&str]| {
        Order::ShardStatus(ShardStatus {
            name: "s".into(),
            in_use: nodes.iter().map(|&node| node.to_owned()).collect(),
            to_add: Vec::new(),
            to_remove: Vec::new(),
        })
    };
    let mut desk = Desk::new(4);
    desk.order(shard(&["a"]));
    assert_eq!(desk.sent(), [r#"shard s ["a"]"#]);
    desk.done("shard s");
    desk.order(shard(&[]));
    desk.order(shard(&["a", "b"]));
    assert_eq!(
        desk.until_sent(),
        (ms(1000), vec![r#"shard s ["a", "b"]"#.to_owned()])
    );
}

#[test]
fn a_resource_to_be_removed_from_a_queue_is_not_forgotten() {
    let mut desk = Desk::new(4);
    desk.order(queue_status("q", json!({"cpu": "1", "gpu": "1"})));
    desk.sent();
    desk.done("queue q");
    desk.order(queue_status("q", json!({"cpu": "1", "gpu": null})));
    desk.order(queue_status("q", json!({"cpu": "2"})));
    let (_, sent) = desk.until_sent();
    assert_eq!(sent, [r#"queue q {"cpu":"2","gpu":null}"#]);
    desk.order(queue_status("q", json!({"cpu": "3"})));
    desk.answer("queue q", later());
    let (_, sent) = desk.until_sent();
    assert_eq!(sent, [r#"queue q {"cpu":"3","gpu":null}"#], "it was not written");
    desk.order(queue_status("q", json!({"gpu": "2"})));
    desk.done("queue q");
    assert_eq!(
        desk.until_sent().1,
        [r#"queue q {"gpu":"2"}"#],
        "it is used again"
    );
}

#[test]
fn a_status_that_may_be_written_later_is_with_the_latest_value() {
    let mut desk = Desk::new(4);
    desk.order(group("g", 1, json!({"at": 1})));
    desk.until_sent();
    desk.answer("group g", later());
    desk.order(group("g", 2, json!({"at": 2})));
    assert!(desk.sent().is_empty());
    let (waited, sent) = desk.until_sent();
    assert!(waited >= ms(50) && waited <= ms(200), "{waited:?}");
    assert_eq!(sent, [r#"group g {"at":2}"#]);
}

#[test]
fn a_refused_status_is_tried_again_much_later_and_a_newer_one_at_once_unless_it_is_forbidden() {
    for (answer, newer_waits) in [(refused(), false), (forbidden(), true)] {
        let mut desk = Desk::new(4);
        desk.order(group("g", 1, json!({"at": 1})));
        desk.until_sent();
        desk.answer("group g", answer.clone());
        assert!(desk.outcomes().is_empty());
        let (waited, sent) = desk.until_sent();
        assert!(waited >= secs(15) && waited <= secs(30), "{waited:?}");
        assert_eq!(sent, [r#"group g {"at":1}"#]);
        desk.answer("group g", answer.clone());
        desk.order(group("g", 2, json!({"at": 2})));
        desk.pass(ms(25));
        assert_eq!(desk.sent().is_empty(), newer_waits, "{answer:?}");
    }
}

#[test]
fn after_the_lease_was_lost_nothing_is_remembered_as_written() {
    let mut desk = Desk::new(4);
    desk.order(group("g", 1, json!({})));
    desk.until_sent();
    desk.answer("group g", version("1"));
    desk.queue.set_open(false, desk.now);
    desk.queue.set_open(true, desk.now);
    desk.order(group("g", 2, json!({})));
    assert_eq!(desk.until_sent().0, ms(25), "as the first one");
}
