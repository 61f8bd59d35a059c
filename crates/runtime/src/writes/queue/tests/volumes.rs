//! Claims that binds wait for.

use super::*;

fn claim(name: &str) -> ClaimRef {
    ClaimRef {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
    }
}

/// A member with claims: `c` for one to be made, `c=v` for one that takes a volume.
fn with_claims(name: &str, node: &str, claims: &str) -> PodBind {
    let steps = claims.split_whitespace().map(|text| {
        let (name, volume) = match text.split_once('=') {
            Some((name, volume)) => (name, Some(volume.into())),
            None => (text, None),
        };
        VolumeStep {
            claim: claim(name),
            volume,
        }
    });
    PodBind {
        volumes: steps.collect(),
        ..bind(name, node)
    }
}

fn binds(job: &str, binds: Vec<PodBind>) -> Order {
    Order::Bind(GangBind {
        job: job.into(),
        binds,
        ends: None,
    })
}

fn is_bound(name: &str) -> Order {
    Order::Claim(claim(name), ClaimState::Bound)
}

fn selected(name: &str, node: Option<&str>) -> Order {
    let selected_node = node.map(Into::into);
    Order::Claim(claim(name), ClaimState::Waiting { selected_node })
}

fn sorted(mut sent: Vec<String>) -> Vec<String> {
    sent.sort();
    sent
}

#[test]
fn the_whole_gang_waits_until_every_claim_is_bound() {
    let mut desk = Desk::new(8);
    desk.order(binds(
        "j",
        vec![
            bind("a", "n1"),
            with_claims("b", "n2", "c1 c2=v2"),
            with_claims("c", "n3", "c3"),
        ],
    ));
    desk.order(gang("k", "x:n"));
    let sent = sorted(desk.sent());
    assert_eq!(
        sent,
        [
            "bind x n",
            "prepare c1 on n2",
            "prepare c2 with v2",
            "prepare c3 on n3"
        ],
        "others need not wait"
    );
    desk.order(is_bound("c3"));
    desk.all_done();
    assert!(desk.sent().is_empty());
    desk.order(selected("c1", Some("n2")));
    desk.order(is_bound("c1"));
    assert!(desk.sent().is_empty());
    desk.order(is_bound("c2"));
    assert_eq!(desk.sent(), ["bind a n1", "bind b n2", "bind c n3"]);
    desk.all_done();
    assert!(desk.queue.is_empty());
}

#[test]
fn a_claim_that_fails_takes_back_what_was_written_for_its_pod_and_pauses_the_gang() {
    struct Case {
        name: &'static str,
        why: &'static str,
        fail: fn(&mut Desk),
    }
    let cases = [
        Case {
            name: "refused",
            why: "claim c2: no",
            fail: |desk| desk.answer("prepare c2", refused()),
        },
        Case {
            name: "the volume belongs to somebody else",
            why: "claim c2: volume v2 belongs to claim ns/other",
            fail: |desk| {
                let why = "volume v2 belongs to claim ns/other".to_owned();
                desk.answer("prepare c2", Answer::Taken { why });
            },
        },
        Case {
            name: "the volume is gone",
            why: "claim c2 or its volume is gone",
            fail: |desk| desk.answer("prepare c2", Answer::Gone),
        },
        Case {
            name: "the claim is gone",
            why: "claim c2 is gone",
            fail: |desk| {
                desk.done("prepare c2");
                desk.order(Order::Claim(claim("c2"), ClaimState::Gone));
            },
        },
    ];
    for case in cases {
        let name = case.name;
        let mut desk = Desk::new(8);
        desk.order(binds(
            "j",
            vec![
                with_claims("a", "n1", "c1 c2=v2 c3"),
                with_claims("b", "n2", "c4"),
            ],
        ));
        desk.sent();
        for claim in ["prepare c1", "prepare c3", "prepare c4"] {
            desk.done(claim);
        }
        desk.order(is_bound("c3"));
        (case.fail)(&mut desk);
        assert!(desk.outcomes().is_empty(), "not before all is taken back: {name}");
        let sent = sorted(desk.sent());
        assert_eq!(sent, ["take back c1 on n1", "take back c2 with v2"], "{name}");
        desk.all_done();
        assert_eq!(desk.outcomes(), ["failed a of j paused"], "{name}");
        assert_eq!(
            desk.sent(),
            [format!(
                "condition a SchedulerError: execute preBind for pod ns/a failed: {}, resync the task",
                case.why
            )],
            "{name}"
        );
        desk.order(is_bound("c4"));
        assert!(desk.sent().is_empty(), "{name}");
        desk.order(gang("j", "a:n3"));
        let sent = desk.sent();
        desk.all_done();
        assert_eq!(
            [sent, desk.until_sent().1].concat(),
            ["bind b n2", "bind a n3"],
            "{name}"
        );
    }
}

#[test]
fn a_claim_that_loses_our_node_was_given_up() {
    let mut desk = Desk::new(8);
    desk.order(binds("j", vec![with_claims("a", "n1", "c1")]));
    desk.sent();
    desk.done("prepare c1");
    desk.order(selected("c1", None));
    assert!(desk.sent().is_empty(), "an older state of the claim");
    desk.order(selected("c1", Some("n1")));
    desk.order(selected("c1", Some("n1")));
    assert!(desk.sent().is_empty());
    desk.order(selected("c1", None));
    assert_eq!(desk.sent(), ["take back c1 on n1"]);
    desk.all_done();
    assert_eq!(desk.outcomes(), ["failed a of j"]);
    let sent = desk.sent();
    assert!(
        sent[0].contains("provisioning for claim c1 on node n1 was given up"),
        "{sent:?}"
    );
}

#[test]
fn a_claim_that_is_never_seen_with_our_node_was_given_up_too() {
    let mut desk = Desk::new(8);
    desk.order(binds(
        "j",
        vec![with_claims("a", "n1", "c1"), with_claims("b", "n1", "c2")],
    ));
    desk.sent();
    desk.all_done();
    desk.order(selected("c1", Some("other")));
    let (waited, sent) = desk.until_sent();
    assert_eq!(waited, secs(10));
    assert_eq!(sent, ["take back c1 on n1"], "nothing was heard of the other");
}

#[test]
fn a_claim_that_takes_too_long_fails() {
    let mut desk = Desk::with(Settings {
        event_qps: 0.0,
        bind_timeout: secs(60),
        ..Settings::default()
    });
    desk.order(binds(
        "j",
        vec![with_claims("a", "n1", "c1=v1 c2"), bind("b", "n2")],
    ));
    desk.sent();
    desk.all_done();
    desk.order(is_bound("c1"));
    let (waited, sent) = desk.until_sent();
    assert_eq!(waited, secs(60));
    assert_eq!(sent, ["take back c2 on n1"], "the other has its volume");
    desk.all_done();
    assert_eq!(desk.outcomes(), ["failed a of j paused"]);
    let sent = desk.sent();
    assert!(
        sent[0].contains("timed out after 60 s, claims not bound: c2,"),
        "{sent:?}"
    );
}

#[test]
fn a_write_without_an_answer_is_tried_again_and_given_up_in_the_end() {
    let mut desk = Desk::new(8);
    desk.order(binds("j", vec![with_claims("a", "n1", "c1")]));
    desk.sent();
    desk.answer("prepare c1", later());
    assert_eq!(desk.until_sent().1, ["prepare c1 on n1"]);
    let began = desk.now;
    while desk.flying.iter().any(|(text, _)| text.starts_with("prepare")) {
        desk.answer("prepare c1", later());
        desk.until_sent();
    }
    assert!(desk.now - began >= secs(29));
    assert_eq!(desk.flying[0].0, "take back c1 on n1", "it may have taken effect");
    let began = desk.now;
    loop {
        desk.answer("take back", later());
        if !desk.outcomes().is_empty() {
            break;
        }
        desk.until_sent();
    }
    assert!(desk.now - began <= secs(12), "taking back is not tried for ever");
}

#[test]
fn a_released_gang_takes_back_its_claims_before_they_are_given_back() {
    let mut desk = Desk::new(8);
    desk.order(binds(
        "j",
        vec![
            bind("a", "n1"),
            with_claims("b", "n2", "c1"),
            with_claims("c", "n2", "c2"),
            bind("d", "n1"),
        ],
    ));
    desk.sent();
    desk.done("prepare c1");
    desk.order(Order::PodGone("uid-d".into()));
    assert_eq!(desk.outcomes(), ["failed d of j paused"]);
    desk.order(Order::Release("j".into(), KNOWN));
    assert_eq!(desk.outcomes(), ["failed a of j"]);
    assert_eq!(desk.sent(), ["take back c1 on n2"]);
    desk.done("take back c1");
    assert_eq!(desk.outcomes(), ["failed b of j"]);
    desk.done("prepare c2");
    assert_eq!(
        desk.sent(),
        ["take back c2 on n2"],
        "once it is known what became of it"
    );
    desk.done("take back c2");
    assert_eq!(desk.outcomes(), ["failed c of j"]);
    assert!(desk.sent().is_empty() && desk.queue.is_empty());
}

#[test]
fn a_claim_that_two_pods_share_is_not_taken_back_while_one_needs_it() {
    let mut desk = Desk::new(8);
    desk.order(binds(
        "j",
        vec![
            with_claims("a", "n1", "shared c1=v1"),
            with_claims("b", "n1", "shared"),
        ],
    ));
    desk.sent();
    desk.done("prepare shared");
    desk.done("prepare shared");
    desk.answer("prepare c1", refused());
    assert_eq!(desk.sent(), ["take back c1 with v1"]);
    desk.all_done();
    assert_eq!(desk.outcomes(), ["failed a of j paused"]);
    desk.sent();
    desk.order(is_bound("shared"));
    desk.order(Order::Resume("j".into(), KNOWN));
    assert_eq!(desk.sent(), ["bind b n1"]);
}

#[test]
fn a_pod_whose_claims_failed_can_be_bound_with_others() {
    let mut desk = Desk::new(8);
    desk.order(binds("j", vec![with_claims("a", "n1", "c1")]));
    desk.sent();
    desk.answer("prepare c1", refused());
    desk.sent();
    desk.done("take back");
    desk.outcomes();
    desk.order(binds("j", vec![with_claims("a", "n2", "c1=v1")]));
    assert_eq!(
        desk.sent(),
        ["prepare c1 with v1"],
        "and its failure is no longer told"
    );
    desk.done("prepare c1");
    desk.order(is_bound("c1"));
    assert_eq!(desk.sent(), ["bind a n2"]);
    desk.pass(secs(700));
    desk.sent();
    assert!(
        desk.outcomes().is_empty(),
        "the time limit of the first attempt is over"
    );
}

#[test]
fn without_the_lease_claims_are_left_as_they_are() {
    let mut desk = Desk::new(8);
    desk.order(binds("j", vec![with_claims("a", "n1", "c1 c2"), bind("b", "n1")]));
    desk.sent();
    desk.done("prepare c1");
    desk.queue.set_open(false, desk.now);
    assert_eq!(desk.outcomes(), ["failed a of j", "failed b of j"]);
    desk.answer("prepare c2", Answer::Fenced);
    desk.queue.set_open(true, desk.now);
    assert!(desk.sent().is_empty() && desk.outcomes().is_empty() && desk.queue.is_empty());
}

#[test]
fn a_claim_that_waits_is_given_up_with_its_pod_or_node() {
    let told =
        "condition a SchedulerError: execute preBind for pod ns/a failed: node n1 is gone, resync the task";
    for (gone, told) in [
        (Order::PodGone("uid-a".into()), None),
        (Order::NodeGone("n1".into()), Some(told)),
    ] {
        let case = format!("{gone:?}");
        let mut desk = Desk::new(8);
        desk.order(binds(
            "j",
            vec![with_claims("a", "n1", "c1"), bind("b", "n2"), bind("c", "n2")],
        ));
        assert_eq!(desk.sent(), ["prepare c1 on n1"], "{case}");
        desk.done("prepare c1");
        desk.order(gone);
        assert_eq!(desk.sent(), ["take back c1 on n1"], "{case}");
        desk.all_done();
        assert_eq!(desk.outcomes(), ["failed a of j paused"], "{case}");
        desk.order(is_bound("c1"));
        assert_eq!(desk.sent(), Vec::from_iter(told), "nobody is bound: {case}");
        desk.all_done();
        desk.order(Order::Release("j".into(), KNOWN));
        assert_eq!(desk.outcomes(), ["failed b of j", "failed c of j"], "{case}");
        assert!(desk.queue.is_empty(), "{case}");
    }
}

#[test]
fn a_member_with_claims_that_are_ready_is_given_up_with_its_node_too() {
    let mut desk = Desk::new(8);
    desk.order(binds(
        "j",
        vec![with_claims("a", "n1", "c1"), with_claims("b", "n2", "c2")],
    ));
    desk.sent();
    desk.done("prepare c1");
    desk.done("prepare c2");
    desk.order(is_bound("c1"));
    desk.order(Order::NodeGone("n1".into()));
    assert_eq!(desk.outcomes(), ["failed a of j paused"]);
    desk.order(Order::Resume("j".into(), KNOWN));
    assert_eq!(
        desk.sent(),
        ["condition a SchedulerError: failed to bind to node n1: node n1 is gone"],
        "b still waits for its claim"
    );
    desk.order(is_bound("c2"));
    assert_eq!(desk.sent(), ["bind b n2"]);
}
