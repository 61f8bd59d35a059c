//! Evictions: two steps, each with its own failures.

use super::*;

#[test]
fn a_pod_is_told_and_then_deleted() {
    let mut desk = Desk::new(4);
    desk.order(evict("v"));
    desk.order(evict("v"));
    assert_eq!(
        desk.sent(),
        ["mark v preempt"],
        "once, however often it is ordered"
    );
    desk.done("mark v");
    assert_eq!(desk.sent(), ["delete v"]);
    desk.done("delete v");
    assert!(desk.outcomes().is_empty() && desk.queue.is_empty());
}

#[test]
fn a_pod_that_cannot_be_told_is_deleted_all_the_same() {
    let mut desk = Desk::new(4);
    desk.order(evict("v"));
    desk.sent();
    desk.answer("mark v", forbidden());
    assert_eq!(desk.sent(), ["delete v"]);
}

#[test]
fn a_pod_that_is_gone_needs_nothing_more() {
    for step in ["mark v", "delete v"] {
        let mut desk = Desk::new(4);
        desk.order(evict("v"));
        desk.sent();
        if step == "delete v" {
            desk.done("mark v");
            desk.sent();
        }
        desk.answer(step, Answer::Gone);
        assert!(desk.sent().is_empty() && desk.outcomes().is_empty(), "{step}");
        assert!(desk.queue.is_empty(), "{step}");
    }
}

#[test]
fn telling_is_tried_for_a_few_seconds_and_deleting_for_longer() {
    let mut desk = Desk::new(4);
    desk.order(evict("v"));
    let began = desk.now;
    desk.sent();
    while !desk.flying.iter().any(|(text, _)| text == "delete v") {
        desk.answer("mark v", later());
        desk.until_sent();
    }
    let told = desk.now - began;
    assert!(told >= secs(3) && told <= secs(8) + ms(500), "{told:?}");
    let began = desk.now;
    while desk.outcomes().is_empty() {
        desk.answer("delete v", later());
        if !desk.queue.is_empty() {
            desk.until_sent();
        }
    }
    let tried = desk.now - began;
    assert!(tried >= secs(30) && tried <= secs(36), "{tried:?}");
    assert!(desk.queue.is_empty());
}

#[test]
fn a_pod_that_cannot_be_deleted_stays_and_can_be_evicted_again() {
    let mut desk = Desk::new(4);
    desk.order(evict("v"));
    desk.sent();
    desk.done("mark v");
    desk.sent();
    desk.answer("delete v", forbidden());
    assert_eq!(desk.outcomes(), ["stays v"]);
    desk.order(evict("v"));
    assert_eq!(desk.sent(), ["mark v preempt"]);
}
