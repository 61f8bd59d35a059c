//! Events.

use super::*;

fn desk(event_qps: f64) -> Desk {
    Desk::with(Settings {
        lanes: 64,
        event_qps,
        ..Settings::default()
    })
}

#[test]
fn what_happens_to_a_pod_is_told() {
    let mut desk = desk(50.0);
    desk.order(gang("j", "a:n b:n"));
    desk.order(evict("v"));
    desk.order(condition("w", "Unschedulable", "full"));
    desk.settle();
    desk.sent();
    desk.done("bind a");
    desk.answer("bind b", refused());
    desk.done("condition w");
    desk.sent();
    desk.done("condition b");
    desk.sent();
    let mut events = desk.flying.iter().map(|(text, _)| text.as_str());
    let mut events: Vec<&str> = events.by_ref().filter(|text| text.starts_with("event")).collect();
    events.sort_unstable();
    assert_eq!(
        events,
        [
            "event a Scheduled: Successfully assigned ns/a to n x1",
            "event b FailedScheduling: failed to bind to node n: no x1",
            "event v Evict: Pod is evicted, because of preempt x1",
            "event w FailedScheduling: full x1",
        ]
    );
}

#[test]
fn the_same_again_is_counted() {
    let mut desk = desk(50.0);
    desk.order(event("e", true, "full"));
    desk.order(event("e", true, "full"));
    assert_eq!(desk.sent(), ["event e Because: full x2"]);
    desk.order(event("e", true, "full"));
    desk.order(event("e", true, "full"));
    assert!(desk.sent().is_empty(), "one write of an event at a time");
    desk.done("event e");
    assert_eq!(desk.sent(), ["raise e Because: full x4"]);
    desk.done("raise e");
    desk.order(event("e", true, "still full"));
    desk.order(event("f", true, "full"));
    assert_eq!(
        desk.sent(),
        ["event e Because: still full x1", "event f Because: full x1"]
    );
    desk.all_done();
    desk.pass(secs(600));
    desk.order(event("e", true, "full"));
    assert_eq!(desk.sent(), ["event e Because: full x1"], "long ago");
}

#[test]
fn an_event_that_is_gone_or_refused_is_told_anew_the_next_time() {
    let mut desk = desk(50.0);
    desk.order(event("e", true, "full"));
    desk.sent();
    desk.answer("event e", forbidden());
    assert!(desk.sent().is_empty());
    desk.order(event("e", true, "full"));
    assert_eq!(desk.sent(), ["event e Because: full x1"]);
    desk.done("event e");
    desk.order(event("e", true, "full"));
    desk.sent();
    desk.answer("raise e", Answer::Gone);
    desk.order(event("e", true, "full"));
    assert_eq!(desk.sent(), ["event e Because: full x1"]);
}

#[test]
fn an_event_is_tried_three_times() {
    let mut desk = desk(50.0);
    desk.order(event("e", true, "full"));
    let mut tries = 0;
    while desk.queue.due(desk.now).is_some() || !desk.queue.is_empty() {
        if desk.sent().is_empty() {
            desk.now = desk.queue.due(desk.now).unwrap();
            continue;
        }
        tries += 1;
        desk.answer("event e", later());
    }
    assert_eq!(tries, 3);
}

#[test]
fn too_many_are_dropped_normal_ones_first() {
    let mut desk = desk(10.0);
    let mut sent = 0;
    for at in 0..200 {
        desk.order(event(&format!("e{at}"), false, "fine"));
    }
    sent += desk.sent().len();
    desk.all_done();
    while !desk.queue.is_empty() {
        sent += desk.sent().len();
        desk.all_done();
    }
    assert_eq!(sent, 80, "a fifth of the burst is kept back");
    assert_eq!(desk.queue.take_dropped_events(), 120);
    for at in 0..200 {
        desk.order(event(&format!("w{at}"), true, "bad"));
    }
    assert_eq!(desk.sent().len(), 20);
    desk.all_done();
    desk.pass(secs(1));
    for at in 0..200 {
        desk.order(event(&format!("x{at}"), true, "bad"));
    }
    assert_eq!(desk.sent().len(), 10, "the rate");
}

#[test]
fn the_line_has_an_end() {
    let mut desk = Desk::with(Settings {
        lanes: 1,
        event_qps: 100_000.0,
        ..Settings::default()
    });
    desk.order(event("flying", false, "first"));
    desk.sent();
    for at in 0..10 {
        desk.order(event(&format!("n{at}"), false, "fine"));
    }
    for at in 0..9_995 {
        desk.order(event(&format!("w{at}"), true, "bad"));
    }
    assert_eq!(desk.queue.take_dropped_events(), 5);
    let mut sent = Vec::new();
    while !desk.queue.is_empty() {
        desk.all_done();
        sent.extend(desk.sent());
    }
    assert_eq!(sent.len(), 10_000);
    assert_eq!(sent[0], "event w0 Because: bad x1", "warnings first");
    assert_eq!(
        sent[9_995], "event n5 Because: fine x1",
        "the oldest were dropped"
    );
}

#[test]
fn without_a_rate_nothing_is_told() {
    let mut desk = desk(0.0);
    desk.order(event("e", true, "bad"));
    assert!(desk.sent().is_empty() && desk.queue.is_empty());
    assert_eq!(desk.queue.take_dropped_events(), 0);
}

#[test]
fn long_messages_are_cut_at_a_character() {
    let mut desk = desk(50.0);
    desk.order(event("e", true, &"ä".repeat(1000)));
    desk.order(event("f", true, &format!("x{}", "ä".repeat(1000))));
    let sent = desk.sent();
    assert!(sent[0].contains(&format!(": {} x1", "ä".repeat(512))));
    assert!(sent[1].contains(&format!(": x{} x1", "ä".repeat(511))));
}

#[test]
fn names_of_events_fit_however_long_the_object_is_named() {
    let mut desk = desk(50.0);
    for name in ["short", &"n".repeat(253)] {
        desk.order(event(name, true, "bad"));
        let (_, work) = desk.queue.next(desk.now).unwrap();
        let Work::Event(write) = work else { panic!() };
        let (prefix, digits) = write.name.rsplit_once('.').unwrap();
        assert!(name.starts_with(prefix) && write.name.len() <= 253);
        assert!(digits.len() == 16 && u64::from_str_radix(digits, 16).is_ok());
    }
}
