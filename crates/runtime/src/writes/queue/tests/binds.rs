//! Gangs: order, retries, failures, pauses.

use super::*;

#[test]
fn members_go_in_order_and_many_at_a_time() {
    let mut desk = Desk::new(4);
    desk.order(gang("j", "a:n1 b:n2 c:n1 d:n2 e:n1"));
    assert_eq!(
        desk.sent(),
        ["bind a n1", "bind b n2", "bind c n1", "bind d n2"],
        "as many as there are lanes"
    );
    assert!(desk.sent().is_empty());
    desk.done("bind b");
    assert_eq!(desk.sent(), ["bind e n1"]);
    desk.all_done();
    assert_eq!(
        desk.outcomes(),
        ["bound b", "bound a", "bound c", "bound d", "bound e"]
    );
    assert!(desk.queue.is_empty());
}

#[test]
fn gangs_are_served_first_come_first_served() {
    let mut desk = Desk::new(2);
    desk.order(gang("one", "a:n b:n c:n"));
    desk.order(gang("two", "x:n y:n"));
    desk.order(gang("three", "z:n"));
    let mut all = Vec::new();
    for _ in 0..3 {
        all.extend(desk.sent());
        desk.all_done();
    }
    assert_eq!(
        all,
        [
            "bind a n", "bind b n", "bind c n", "bind x n", "bind y n", "bind z n"
        ]
    );
}

#[test]
fn a_gang_that_has_begun_goes_before_older_ones_that_have_not() {
    let mut desk = Desk::new(1);
    desk.order(gang("one", "a:n b:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    desk.order(gang("two", "x:n y:n"));
    assert_eq!(desk.sent(), ["bind x n"], "one is paused");
    desk.order(gang("three", "z:n"));
    assert_eq!(desk.outcomes(), ["failed a of one paused"]);
    desk.order(gang("one", "a2:n"));
    desk.done("bind x");
    let mut all = Vec::new();
    for _ in 0..4 {
        all.extend(desk.sent().into_iter().filter(|sent| sent.starts_with("bind")));
        desk.all_done();
    }
    assert_eq!(all, ["bind a2 n", "bind b n", "bind y n", "bind z n"]);
}

#[test]
fn a_failure_that_may_pass_is_tried_again_with_growing_waits_and_keeps_its_place() {
    let mut desk = Desk::new(1);
    desk.order(gang("j", "a:n b:n"));
    desk.order(gang("k", "x:n"));
    assert_eq!(desk.sent(), ["bind a n"]);
    desk.answer("bind a", later());
    let (waited, sent) = desk.until_sent();
    assert!(waited >= ms(25) && waited <= ms(100), "{waited:?}");
    assert_eq!(
        sent,
        ["bind a n"],
        "with one lane that fails nobody else is tried either"
    );
    desk.done("bind a");
    assert_eq!(desk.sent(), ["bind b n"]);
    assert_eq!(desk.outcomes(), ["bound a"]);
}

#[test]
fn others_go_on_while_one_is_tried_again() {
    let mut desk = Desk::new(8);
    desk.order(gang("j", "a:n b:n"));
    desk.order(gang("k", "x:n"));
    desk.sent();
    desk.answer("bind a", later());
    desk.done("bind b");
    desk.done("bind x");
    assert_eq!(desk.outcomes(), ["bound b", "bound x"]);
    let (_, sent) = desk.until_sent();
    assert_eq!(sent, ["bind a n"]);
}

#[test]
fn the_time_that_the_server_asks_for_is_kept() {
    let mut desk = Desk::new(8);
    desk.order(gang("j", "a:n"));
    desk.sent();
    let answer = Answer::Later {
        why: "slow down".to_owned(),
        retry_after: Some(secs(3)),
    };
    desk.answer("bind a", answer);
    assert_eq!(desk.until_sent().0, secs(3));
}

/// A bind of a pod that nobody answered for half a minute, and how often it was tried.
fn silent(desk: &mut Desk) -> u32 {
    desk.order(gang("j", "a:n"));
    let began = desk.now;
    let (mut tries, mut sent) = (0, desk.sent());
    while sent == ["bind a n"] {
        desk.answer("bind a", later());
        assert!(desk.outcomes().is_empty());
        (tries, sent) = (tries + 1, desk.until_sent().1);
    }
    let took = desk.now - began;
    assert!(took >= secs(30) && took <= secs(41), "{took:?}");
    assert_eq!(sent, ["look at a n"]);
    tries
}

#[test]
fn what_keeps_failing_is_given_up_after_half_a_minute_and_a_look_at_the_pod() {
    let failure = "condition a SchedulerError: failed to bind to node n: busy (503 ServiceUnavailable)";
    let taken = || Answer::Taken {
        why: "on m".to_owned(),
    };
    for (found, outcome, told) in [
        (refused(), "failed a of j", Some(failure)),
        (Answer::DONE, "bound a", None),
        (taken(), "failed a of j", None),
        (Answer::Gone, "failed a of j", None),
    ] {
        let case = format!("{found:?}");
        let mut desk = Desk::new(8);
        let tries = silent(&mut desk);
        assert!(tries > 8 && tries < 40, "{tries} tries");
        desk.answer("look at a", found);
        assert_eq!(desk.outcomes(), [outcome], "{case}");
        assert_eq!(desk.sent(), Vec::from_iter(told), "{case}");
        assert!(desk.queue.gangs.is_empty(), "{case}");
    }
}

#[test]
fn a_pod_that_cannot_be_looked_at_is_held_and_looked_at_again() {
    let mut desk = Desk::new(8);
    silent(&mut desk);
    for _ in 0..20 {
        desk.answer("look at a", later());
        assert!(desk.outcomes().is_empty());
        let (waited, sent) = desk.until_sent();
        assert!(waited <= secs(10), "{waited:?}");
        assert_eq!(sent, ["look at a n"]);
    }
    desk.done("look at a");
    assert_eq!(desk.outcomes(), ["bound a"]);
}

#[test]
fn what_is_told_of_a_failure() {
    let taken = || Answer::Taken {
        why: "on m".to_owned(),
    };
    let failure = "condition a SchedulerError: failed to bind to node n: no";
    for (answer, condition) in [
        (refused(), Some(failure)),
        (Answer::Gone, None),
        (taken(), None),
        (Answer::Fenced, None),
    ] {
        let case = format!("{answer:?}");
        let mut desk = Desk::new(8);
        desk.order(gang("j", "a:n"));
        desk.sent();
        desk.answer("bind a", answer);
        assert_eq!(desk.outcomes(), ["failed a of j"], "{case}");
        assert_eq!(desk.sent(), Vec::from_iter(condition), "{case}");
    }
}

#[test]
fn when_one_fails_the_unsent_wait_until_somebody_decides() {
    struct Case {
        decision: Order,
        sent: &'static [&'static str],
        told: &'static [&'static str],
    }
    let cases = [
        Case {
            decision: gang("j", "a2:m"),
            sent: &["bind a2 m", "bind c n", "bind d n"],
            told: &[],
        },
        Case {
            decision: Order::Resume("j".into(), KNOWN),
            sent: &["bind c n", "bind d n"],
            told: &[],
        },
        Case {
            decision: Order::Release("j".into(), KNOWN),
            sent: &[],
            told: &["failed c of j", "failed d of j"],
        },
    ];
    for case in cases {
        let name = format!("{:?}", case.decision);
        let mut desk = Desk::new(2);
        desk.order(gang("j", "a:n b:n c:n d:n"));
        assert_eq!(desk.sent(), ["bind a n", "bind b n"]);
        desk.answer("bind a", Answer::Gone);
        assert_eq!(desk.outcomes(), ["failed a of j paused"], "{name}");
        desk.done("bind b");
        assert_eq!(desk.outcomes(), ["bound b"], "what was sent goes on: {name}");
        desk.pass(secs(10));
        assert!(desk.sent().is_empty(), "{name}");
        desk.order(case.decision);
        assert_eq!(desk.outcomes(), case.told, "{name}");
        let mut sent = desk.sent();
        desk.all_done();
        sent.extend(desk.sent());
        assert_eq!(sent, case.sent, "{name}");
        desk.all_done();
        assert!(desk.queue.is_empty(), "{name}");
    }
}

#[test]
fn a_pause_is_not_ended_by_a_decision_that_does_not_know_of_a_later_failure() {
    struct Case {
        decision: fn(Pause) -> Order,
        /// What the decision of somebody who knows of all failures sends then, or gives back.
        then: &'static [&'static str],
        told: &'static [&'static str],
    }
    let anew = |pause| {
        let Order::Bind(gang) = gang("j", "a2:m") else {
            unreachable!()
        };
        Order::Bind(GangBind {
            ends: Some(pause),
            ..gang
        })
    };
    let cases = [
        Case {
            decision: anew,
            then: &["bind a2 m", "bind d n", "bind e n"],
            told: &[],
        },
        Case {
            decision: |pause| Order::Resume("j".into(), pause),
            then: &["bind d n", "bind e n"],
            told: &[],
        },
        Case {
            decision: |pause| Order::Release("j".into(), pause),
            then: &["bind d n", "bind e n"],
            told: &[],
        },
    ];
    for case in cases {
        let name = format!("{:?}", (case.decision)(1));
        let mut desk = Desk::new(3);
        desk.order(gang("j", "a:n b:n c:n d:n e:n"));
        assert_eq!(desk.sent().len(), 3);
        desk.answer("bind a", refused());
        assert_eq!(desk.outcomes(), ["failed a of j paused"], "{name}");
        let first = desk.paused["j"];
        // Others fail before the decision about the first comes.
        desk.answer("bind b", Answer::Gone);
        desk.answer("bind c", Answer::Gone);
        desk.order((case.decision)(first));
        let mut told = desk.outcomes();
        assert_eq!(told, ["failed b of j paused", "failed c of j paused"], "{name}");
        desk.queue.conditions.forget("uid-a");
        assert!(desk.sent().is_empty(), "{name}");
        assert!(desk.paused["j"] > first, "{name}");
        desk.order(Order::Resume("j".into(), KNOWN));
        told = desk.outcomes();
        assert_eq!(told, case.told, "{name}");
        assert_eq!(desk.sent(), case.then, "{name}");
        desk.all_done();
        assert!(desk.queue.is_empty(), "{name}");
    }
}

#[test]
fn a_pause_that_holds_nothing_back_any_more_does_not_hold_new_members_back() {
    let mut desk = Desk::new(2);
    desk.order(gang("j", "a:n b:n c:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    desk.order(Order::PodGone("uid-c".into()));
    assert_eq!(desk.outcomes(), ["failed a of j paused", "failed c of j"]);
    let unaware = gang("j", "d:n");
    desk.queue.order(unaware, desk.now);
    assert_eq!(desk.sent(), ["bind d n"]);
}

#[test]
fn unsent_members_whose_pod_or_node_is_gone_are_given_back_and_the_gang_waits() {
    let failure =
        |pod: &str| format!("condition {pod} SchedulerError: failed to bind to node m: node m is gone");
    for (gone, failed, told) in [
        (Order::PodGone("uid-c".into()), vec!["c"], vec![]),
        (
            Order::NodeGone("m".into()),
            vec!["b", "c"],
            vec![failure("b"), failure("c")],
        ),
        (Order::PodGone("uid-a".into()), vec![], vec![]),
        (Order::PodGone("uid-other".into()), vec![], vec![]),
        (Order::NodeGone("other".into()), vec![], vec![]),
    ] {
        let case = format!("{gone:?}");
        let mut desk = Desk::new(1);
        desk.order(gang("j", "a:m b:m c:m d:n"));
        assert_eq!(desk.sent(), ["bind a m"]);
        desk.order(gone);
        let failed_of: Vec<_> = failed
            .iter()
            .map(|pod| format!("failed {pod} of j paused"))
            .collect();
        assert_eq!(desk.outcomes(), failed_of, "{case}");
        desk.done("bind a");
        assert_eq!(
            desk.outcomes(),
            ["bound a"],
            "what is under way is answered: {case}"
        );
        let mut sent = Vec::new();
        for _ in 0..4 {
            sent.extend(desk.sent());
            desk.all_done();
        }
        if failed.is_empty() {
            assert_eq!(sent, ["bind b m", "bind c m", "bind d n"], "{case}");
            continue;
        }
        assert_eq!(sent, told, "{case}");
        desk.order(Order::Release("j".into(), KNOWN));
        let mut back = desk.outcomes();
        back.sort();
        let rest = ["b", "c", "d"].into_iter().filter(|pod| !failed.contains(pod));
        let rest: Vec<_> = rest.map(|pod| format!("failed {pod} of j")).collect();
        assert_eq!(back, rest, "{case}");
        assert!(desk.queue.gangs.is_empty(), "{case}");
    }
}

#[test]
fn a_gang_without_unsent_members_is_not_paused() {
    let mut desk = Desk::new(4);
    desk.order(gang("j", "a:n b:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    assert_eq!(desk.outcomes(), ["failed a of j"]);
    desk.order(gang("j", "c:n"));
    assert_eq!(desk.sent(), ["bind c n"]);
}

#[test]
fn a_gang_that_nobody_decides_for_is_given_back() {
    let mut desk = Desk::new(1);
    desk.order(gang("j", "a:n b:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    assert_eq!(desk.outcomes(), ["failed a of j paused"]);
    desk.pass(secs(59));
    desk.sent();
    assert!(desk.outcomes().is_empty());
    desk.pass(secs(1));
    desk.sent();
    assert_eq!(desk.outcomes(), ["failed b of j"]);
    assert!(desk.queue.is_empty());
}

#[test]
fn an_old_pause_does_not_end_a_new_one() {
    let mut desk = Desk::new(1);
    desk.order(gang("j", "a:n b:n c:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    desk.outcomes();
    desk.pass(secs(59));
    desk.order(Order::Resume("j".into(), KNOWN));
    desk.sent();
    desk.answer("bind b", Answer::Gone);
    desk.outcomes();
    desk.pass(secs(30));
    desk.sent();
    assert!(desk.outcomes().is_empty());
    desk.pass(secs(30));
    desk.sent();
    assert_eq!(desk.outcomes(), ["failed c of j"]);
}

#[test]
fn a_pod_that_fails_again_is_held_longer_each_time() {
    let mut desk = Desk::new(8);
    let mut holds = Vec::new();
    for _ in 0..12 {
        desk.order(gang("j", "a:n"));
        desk.sent();
        desk.answer("bind a", Answer::Gone);
        let failed = desk.now;
        while desk.outcomes().is_empty() {
            desk.now = desk.queue.due(desk.now).unwrap();
            desk.sent();
        }
        holds.push(desk.now - failed);
    }
    assert_eq!(holds[0], Duration::ZERO);
    for (at, hold) in holds.iter().enumerate().skip(1) {
        let step = ms(100 << (at - 1)).min(secs(10));
        assert!(*hold >= step / 2 && *hold <= step, "{at}: {hold:?}");
    }
    desk.order(gang("j", "a:n"));
    desk.sent();
    desk.done("bind a");
    desk.order(gang("j", "a:n"));
    desk.sent();
    desk.outcomes();
    desk.answer("bind a", Answer::Gone);
    assert_eq!(desk.outcomes(), ["failed a of j"], "a success ends the row");
}

#[test]
fn while_a_pod_is_held_its_gang_waits_too() {
    let mut desk = Desk::new(1);
    desk.order(gang("j", "a:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    desk.outcomes();
    desk.order(gang("j", "a:n b:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    assert!(desk.outcomes().is_empty() && desk.sent().is_empty());
    desk.pass(ms(100));
    assert!(desk.sent().is_empty());
    assert_eq!(desk.outcomes(), ["failed a of j paused"]);
}

#[test]
fn a_bind_that_is_under_way_is_not_sent_twice() {
    let mut desk = Desk::new(8);
    desk.order(gang("j", "a:n"));
    desk.order(gang("j", "a:m b:m"));
    assert_eq!(desk.sent(), ["bind a n", "bind b m"]);
}

#[test]
fn an_empty_gang_leaves_nothing_behind() {
    let mut desk = Desk::new(8);
    desk.order(gang("j", ""));
    desk.order(Order::Resume("other".into(), KNOWN));
    desk.order(Order::Release("other".into(), KNOWN));
    assert!(desk.sent().is_empty() && desk.outcomes().is_empty());
    assert!(desk.queue.is_empty());
}

#[test]
fn without_the_lease_nothing_is_sent_and_what_waited_is_given_back() {
    let mut desk = Desk::new(1);
    desk.order(gang("j", "a:n b:n"));
    desk.order(gang("k", "x:n"));
    desk.order(evict("v"));
    desk.order(condition("w", "Unschedulable", "full"));
    desk.order(group("g", 1, json!({})));
    let sent = desk.sent();
    assert_eq!(sent.len(), 1);
    desk.queue.set_open(false, desk.now);
    assert!(desk.sent().is_empty());
    let mut told = desk.outcomes();
    desk.order(gang("l", "y:n"));
    desk.order(evict("u"));
    told.extend(desk.outcomes());
    let flying = desk.flying[0].0.clone();
    desk.answer(&flying, Answer::Fenced);
    told.extend(desk.outcomes());
    told.sort();
    assert_eq!(
        told,
        [
            "failed a of j",
            "failed b of j",
            "failed x of k",
            "failed y of l",
            "stays u",
            "stays v"
        ]
    );
    assert!(desk.queue.is_empty());
    desk.queue.set_open(true, desk.now);
    desk.order(gang("j", "a:n"));
    assert_eq!(desk.sent(), ["bind a n"]);
}

#[test]
fn a_bind_under_way_when_the_lease_is_lost_counts_when_it_got_through() {
    let mut desk = Desk::new(1);
    desk.order(gang("j", "a:n b:n"));
    desk.sent();
    desk.queue.set_open(false, desk.now);
    assert_eq!(desk.outcomes(), ["failed b of j"]);
    desk.done("bind a");
    assert_eq!(desk.outcomes(), ["bound a"]);
    assert!(desk.queue.is_empty());
}

#[test]
fn at_the_end_nothing_waits_for_its_time() {
    let mut desk = Desk::new(2);
    desk.order(gang("j", "a:n b:n c:n"));
    desk.order(gang("k", "x:n"));
    desk.sent();
    desk.answer("bind a", Answer::Gone);
    desk.done("bind b");
    desk.outcomes();
    desk.order(group("k", 1, json!({"phase": "Running"})));
    desk.queue.hurry(desk.now);
    assert_eq!(desk.outcomes(), ["failed c of j"], "nobody is left to decide");
    assert_eq!(desk.sent(), ["bind x n", r#"group k {"phase":"Running"}"#]);
}
