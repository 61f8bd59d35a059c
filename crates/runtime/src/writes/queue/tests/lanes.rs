//! Who gets the lanes.

use super::*;

fn count(sent: &[String], what: &str) -> usize {
    sent.iter().filter(|sent| sent.starts_with(what)).count()
}

fn many(desk: &mut Desk, binds: usize, conditions: usize) {
    for at in 0..binds {
        desk.order(gang(&format!("j{at}"), &format!("p{at}:n")));
    }
    for at in 0..conditions {
        desk.order(condition(&format!("w{at}"), "Unschedulable", "full"));
    }
    desk.settle();
}

#[test]
fn while_binds_wait_statuses_wait_for_five_seconds_and_then_get_one_lane_of_thirty_two() {
    let mut desk = Desk::new(64);
    many(&mut desk, 1000, 1000);
    let sent = desk.sent();
    assert_eq!((count(&sent, "bind"), count(&sent, "condition")), (64, 0));
    desk.pass(ms(4_999));
    desk.done("bind");
    assert_eq!(count(&desk.sent(), "bind"), 1);
    desk.pass(ms(1));
    desk.done("bind");
    desk.done("bind");
    assert_eq!(count(&desk.sent(), "condition"), 2);
    for _ in 0..10 {
        let (text, ticket) = desk.flying.remove(0);
        desk.queue.answered(ticket, Answer::DONE, desk.now);
        let sent = desk.sent();
        assert_eq!(sent.len(), 1);
        assert_eq!(text[..4], sent[0][..4], "the shares stay as they are");
    }
}

#[test]
fn statuses_that_have_all_lanes_give_them_up_when_binds_come() {
    let mut desk = Desk::new(64);
    many(&mut desk, 0, 1000);
    let sent = desk.sent();
    assert_eq!(count(&sent, "condition"), 48, "a quarter stays free");
    many(&mut desk, 1000, 0);
    assert_eq!(count(&desk.sent(), "bind"), 16, "which binds get at once");
    for _ in 0..46 {
        desk.done("condition");
        assert_eq!(count(&desk.sent(), "bind"), 1);
    }
    desk.pass(secs(5));
    desk.done("condition");
    assert_eq!(count(&desk.sent(), "condition"), 1);
}

#[test]
fn a_burst_of_binds_that_is_over_is_forgotten() {
    let mut desk = Desk::new(4);
    many(&mut desk, 4, 0);
    desk.sent();
    desk.all_done();
    assert!(desk.sent().is_empty());
    desk.pass(secs(60));
    many(&mut desk, 8, 8);
    assert_eq!(count(&desk.sent(), "bind"), 4, "the wait begins anew");
}

#[test]
fn one_lane_serves_everybody_in_the_end() {
    let mut desk = Desk::new(1);
    many(&mut desk, 3, 3);
    desk.order(evict("v"));
    let mut all = Vec::new();
    loop {
        let sent = desk.sent();
        assert!(sent.len() <= 1);
        if sent.is_empty() {
            break;
        }
        all.extend(sent);
        desk.all_done();
    }
    assert_eq!(all.len(), 3 + 3 + 2);
}

#[test]
fn binds_and_evictions_take_turns() {
    let mut desk = Desk::new(2);
    many(&mut desk, 4, 0);
    for name in ["u", "v", "w"] {
        desk.order(evict(name));
    }
    let sent = desk.sent();
    assert_eq!(sent, ["mark u preempt", "bind p0 n"]);
}

#[test]
fn events_come_last() {
    let mut desk = Desk::with(Settings {
        lanes: 1,
        ..Settings::default()
    });
    desk.order(event("e", true, "happened"));
    desk.order(condition("w", "Unschedulable", "full"));
    desk.order(group("g", 1, json!({})));
    desk.order(queue_status("q", json!({})));
    desk.settle();
    let mut all = Vec::new();
    for _ in 0..4 {
        let sent = desk.sent();
        all.push(sent[0].split(' ').next().unwrap().to_owned());
        desk.all_done();
    }
    assert_eq!(all, ["group", "condition", "queue", "event"]);
}

#[test]
fn while_binds_wait_events_wait_for_ten_seconds_and_then_get_one_lane_of_sixty_four() {
    let mut desk = Desk::with(Settings {
        lanes: 64,
        event_qps: 100.0,
        ..Settings::default()
    });
    many(&mut desk, 1000, 0);
    for at in 0..100 {
        desk.order(event(&format!("e{at}"), true, "happened"));
    }
    assert_eq!(count(&desk.sent(), "bind"), 64);
    desk.pass(secs(9));
    desk.done("bind");
    assert_eq!(count(&desk.sent(), "bind"), 1);
    desk.pass(secs(1));
    desk.done("bind");
    assert_eq!(count(&desk.sent(), "event"), 1);
    while !desk.flying.is_empty() {
        desk.all_done();
        let sent = desk.sent();
        assert!(count(&sent, "event") <= 1 || count(&sent, "bind") < 60);
    }
    assert!(desk.queue.is_empty(), "all of them in the end");
}

#[test]
fn writes_of_one_kind_that_fail_do_not_slow_down_another() {
    let mut desk = Desk::new(8);
    many(&mut desk, 0, 100);
    let mut tried = 0;
    for _ in 0..200 {
        tried += desk.sent().len();
        while !desk.flying.is_empty() {
            desk.answer("condition", later());
        }
        desk.pass(ms(1));
    }
    assert!(tried < 30, "{tried} requests to a server that fails");
    many(&mut desk, 20, 0);
    assert!(count(&desk.sent(), "bind") >= 7);
}

#[test]
fn a_server_in_trouble_is_not_sent_everything_that_waits() {
    let mut desk = Desk::new(64);
    many(&mut desk, 10_000, 0);
    let (mut tried, began) = (0, desk.now);
    while desk.now < began + secs(20) {
        tried += desk.sent().len();
        while !desk.flying.is_empty() {
            desk.answer("bind", later());
        }
        desk.now = desk.queue.due(desk.now).unwrap().max(desk.now + ms(1));
    }
    assert!(tried > 64 && tried < 400, "{tried} requests in 20 s");
    let (mut bound, recovered) = (0, desk.now);
    while bound < 1000 {
        bound += desk.sent().len();
        desk.all_done();
        desk.pass(ms(5));
    }
    let took = desk.now - recovered;
    assert!(took < secs(6), "a thousand binds {took:?} after the end of it");
}

#[test]
fn what_waits_for_a_lane_wakes_nobody() {
    let mut desk = Desk::new(4);
    many(&mut desk, 100, 100);
    assert_eq!(desk.sent().len(), 4);
    desk.pass(ms(10));
    assert_eq!(desk.queue.due(desk.now), None, "an answer will");
}
