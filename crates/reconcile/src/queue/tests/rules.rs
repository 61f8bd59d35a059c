//! The state of a queue under orders, parents and PodGroups.

use volcano_api::bus::Action;

use super::*;

const NOW: i64 = 100;

/// What is done with `q`.
fn plan(queues: &[Queue], groups: &[PodGroup], commands: &[Command]) -> Vec<String> {
    let index = index(queues, groups, commands);
    show(&index.plan("q", Time::from_unix_seconds(NOW)))
}

#[test]
fn the_table_of_states_and_orders() {
    let close = "Normal CloseQueue on q: Close queue succeed";
    // State, order, whether it has a PodGroup, and what is done.
    let cases: &[(&str, &str, bool, &[&str])] = &[
        ("", "", false, &[r#"status q {"state":"Open"} if 5"#]),
        ("", "OpenQueue", false, &[r#"status q {"state":"Open"} if 5"#]),
        (
            "",
            "CloseQueue",
            false,
            &[r#"status q {"state":"Closed"} if 5"#, close],
        ),
        ("Open", "", false, &[]),
        ("Open", "SyncQueue", false, &["delete Command c"]),
        ("Open", "OpenQueue", true, &["delete Command c"]),
        (
            "Open",
            "CloseQueue",
            false,
            &[r#"status q {"state":"Closed"} if 5"#, close],
        ),
        (
            "Open",
            "CloseQueue",
            true,
            &[r#"status q {"state":"Closing"} if 5"#, close],
        ),
        ("Closing", "", false, &[r#"status q {"state":"Closed"} if 5"#]),
        ("Closing", "", true, &[]),
        (
            "Closing",
            "OpenQueue",
            true,
            &[r#"status q {"state":"Open"} if 5"#],
        ),
        ("Closing", "CloseQueue", true, &["delete Command c"]),
        (
            "Closing",
            "CloseQueue",
            false,
            &[r#"status q {"state":"Closed"} if 5"#, "delete Command c"],
        ),
        ("Closed", "", false, &[]),
        ("Closed", "", true, &[]),
        (
            "Closed",
            "OpenQueue",
            false,
            &[r#"status q {"state":"Open"} if 5"#],
        ),
        ("Closed", "CloseQueue", true, &["delete Command c"]),
        ("Unknown", "", false, &[]),
        (
            "Unknown",
            "OpenQueue",
            false,
            &[r#"status q {"state":"Open"} if 5"#],
        ),
        (
            "Unknown",
            "CloseQueue",
            true,
            &[r#"status q {"state":"Closing"} if 5"#, close],
        ),
        ("Odd", "", false, &[]),
        ("Odd", "AbortJob", false, &["delete Command c"]),
        (
            "Odd",
            "OpenQueue",
            false,
            &[
                "Warning OpenQueue on q: OpenQueue queue failed for queue q state Odd is invalid",
                "delete Command c",
            ],
        ),
    ];
    for (state, order, has_group, expected) in cases {
        let mut queue = queue("q", state);
        let groups = if *has_group {
            vec![group("g", "q", "Running")]
        } else {
            Vec::new()
        };
        queue.status.running = groups.len() as i32;
        let commands = match *order {
            "" => Vec::new(),
            action => vec![command("c", "q", action, NOW)],
        };
        let done = plan(&[queue], &groups, &commands);
        assert_eq!(done, lines(expected), "{state} + {order}, group {has_group}");
    }
}

#[test]
fn a_queue_follows_its_parent() {
    let mark = |value: &str| {
        format!(
            r#"queue q {{"metadata":{{"annotations":{{"volcano.sh/closed-by-parent":"{value}"}}}}}} if 5"#
        )
    };
    let open = r#"status q {"state":"Open"} if 5"#.to_owned();
    let closed = [
        r#"status q {"state":"Closed"} if 5"#.to_owned(),
        "Normal CloseQueue on q: Close queue succeed".to_owned(),
    ];
    let q = |state: &str| below("p", queue("q", state));
    // The queue, the state of its parent, and what is done.
    let cases = [
        (
            "it is noted first on whose behalf it is closed",
            q("Open"),
            "Closed",
            vec![mark("true")],
        ),
        (
            "then it is closed",
            marked("true", q("Open")),
            "Closed",
            closed.to_vec(),
        ),
        (
            "a closing parent is a closed one",
            q("Open"),
            "Closing",
            vec![mark("true")],
        ),
        (
            "a queue that is not known to be open is opened first, so that it can be marked",
            q("Unknown"),
            "Closed",
            vec![open.clone()],
        ),
        ("a new queue too", q(""), "Closed", vec![mark("true")]),
        ("one that is closed stays as it is", q("Closed"), "Closed", none()),
        (
            "it is opened with the parent that closed it",
            marked("true", q("Closed")),
            "Open",
            vec![open.clone()],
        ),
        (
            "also when it was still closing",
            marked("true", q("Closing")),
            "Open",
            vec![open.clone()],
        ),
        (
            "then the note goes",
            marked("true", q("Open")),
            "Open",
            vec![mark("false")],
        ),
        ("and that is all", marked("false", q("Open")), "Open", none()),
        (
            "one that a user closed stays closed",
            marked("false", q("Closed")),
            "Open",
            none(),
        ),
        ("one without a note too", q("Closed"), "Open", none()),
        (
            "a parent whose state is not known says nothing",
            marked("true", q("Closed")),
            "Unknown",
            none(),
        ),
        ("nor does a new parent", marked("true", q("Closed")), "", none()),
    ];
    for (name, queue, parent, expected) in cases {
        let queues = [queue, self::queue("p", parent)];
        assert_eq!(plan(&queues, &[], &[]), expected, "{name}");
    }
    let alone = marked("true", q("Closed"));
    assert_eq!(
        plan(&[alone], &[], &[]),
        none(),
        "a parent that is missing says nothing"
    );
    let root = queue("root", "Closed");
    assert_eq!(
        plan(&[queue("q", "Open"), root], &[], &[]),
        none(),
        "root is always open"
    );
}

#[test]
fn orders_below_a_closed_parent() {
    let q = |state: &str| below("p", queue("q", state));
    let parent = queue("p", "Closed");
    let refused = "Warning OpenQueue on q: OpenQueue queue failed for Failed to open queue q because its parent queue p \
                   is closing or closed. Open the parent queue first.";
    let unmark = r#"queue q {"metadata":{"annotations":{"volcano.sh/closed-by-parent":"false"}}} if 5"#;
    let open = |at| command("c", "q", "OpenQueue", at);
    let close = |at| command("d", "q", "CloseQueue", at);
    let cases = [
        (
            "an order to open waits for the parent",
            q("Closed"),
            vec![open(NOW - 29)],
            lines(&["again at 101"]),
        ),
        (
            "and is refused after some time",
            q("Closed"),
            vec![open(NOW - 30)],
            lines(&[refused, "delete Command c"]),
        ),
        (
            "or when another order follows",
            q("Closed"),
            vec![open(NOW - 1), close(NOW)],
            lines(&[refused, "delete Command c"]),
        ),
        (
            "an order to close a queue that its parent closed makes it the user's",
            marked("true", q("Closed")),
            vec![close(NOW)],
            lines(&[unmark]),
        ),
        (
            "and is then carried out",
            marked("false", q("Closed")),
            vec![close(NOW)],
            lines(&["delete Command d"]),
        ),
    ];
    for (name, queue, commands, expected) in cases {
        assert_eq!(plan(&[queue, parent.clone()], &[], &commands), expected, "{name}");
    }
}

/// Admission refuses every change of a queue that is closing or in no known state, its status apart.
#[test]
fn a_queue_that_cannot_be_edited_gets_its_state_first() {
    let q = |state: &str| below("p", queue("q", state));
    let parent = queue("p", "Closed");
    let (close, open) = (
        command("c", "q", "CloseQueue", NOW - 1),
        command("d", "q", "OpenQueue", NOW),
    );
    let closing = || {
        let mut queue = marked("true", q("Closing"));
        queue.status.running = 1;
        queue
    };
    let mut above_none = queue("q", "Closing");
    above_none.spec.parent = String::new();
    let groups = [group("g", "q", "Running")];
    let cases = [
        (
            "an order to close waits until the queue that its parent is closing is closed",
            closing(),
            &groups[..],
            vec![close.clone()],
            none(),
        ),
        (
            "unless another order follows",
            closing(),
            &groups,
            vec![close.clone(), open],
            lines(&["delete Command c"]),
        ),
        (
            "it is closed when the last PodGroup is gone",
            marked("true", q("Closing")),
            &[],
            vec![close.clone()],
            lines(&[r#"status q {"state":"Closed"} if 5"#]),
        ),
        (
            "a queue in no known state is closed before it is the user's",
            marked("true", q("Unknown")),
            &[],
            vec![close],
            lines(&[
                r#"status q {"state":"Closed"} if 5"#,
                "Normal CloseQueue on q: Close queue succeed",
            ]),
        ),
        (
            "and below a closed parent it is opened, to be closed on its behalf",
            q("Unknown"),
            &[],
            vec![],
            lines(&[r#"status q {"state":"Open"} if 5"#]),
        ),
        (
            "a queue without a parent is closed before it gets one",
            above_none,
            &[],
            vec![],
            lines(&[r#"status q {"state":"Closed"} if 5"#]),
        ),
    ];
    for (name, queue, groups, commands, expected) in cases {
        let done = plan(&[queue, parent.clone()], groups, &commands);
        assert_eq!(done, expected, "{name}");
    }
}

#[test]
fn orders_are_carried_out_one_by_one_as_they_were_given() {
    let commands = [
        command("b", "q", "OpenQueue", 3),
        command("c", "q", "CloseQueue", 2),
        command("a", "q", "CloseQueue", 3),
    ];
    let done = plan(&[queue("q", "Closed")], &[], &commands);
    assert_eq!(done, lines(&["delete Command c"]), "the oldest first");
    let done = plan(
        &[queue("q", "Open")],
        &[],
        &[commands[0].clone(), commands[2].clone()],
    );
    assert_eq!(
        done[0], r#"status q {"state":"Closed"} if 5"#,
        "of two at the same time, the one with the smaller name"
    );
}

#[test]
fn orders_for_another_incarnation_or_no_queue_go_after_a_while() {
    let mut stray = command("c", "q", "CloseQueue", NOW - 10);
    stray.target.as_mut().expect("a target").uid = "another".to_owned();
    let queues = [queue("q", "Open")];
    assert_eq!(
        plan(&queues, &[], &[stray.clone()]),
        lines(&["again at 120"]),
        "it may be about to be seen"
    );
    stray.metadata.creation_timestamp = Some(Time::from_unix_seconds(NOW - 30));
    assert_eq!(
        plan(&queues, &[], &[stray.clone()]),
        lines(&["delete Command c"]),
        "it is gone"
    );
    assert_eq!(
        plan(&[], &[], &[stray.clone()]),
        lines(&["delete Command c"]),
        "there is none"
    );
    stray.target.as_mut().expect("a target").uid = String::new();
    let any = plan(&queues, &[], &[stray]);
    assert_eq!(
        any[0], r#"status q {"state":"Closed"} if 5"#,
        "an order without a UID is for any"
    );
}

#[test]
fn orders_for_others_are_not_looked_at() {
    let mut job = command("c", "q", "CloseQueue", 0);
    job.target.as_mut().expect("a target").kind = "Job".to_owned();
    let mut old = command("d", "q", "CloseQueue", 0);
    old.target.as_mut().expect("a target").api_version = "scheduling.volcano.sh/v1alpha1".to_owned();
    let mut nobody = command("e", "q", "CloseQueue", 0);
    nobody.target = None;
    assert_eq!(plan(&[queue("q", "Open")], &[], &[job, old, nobody]), none());
}

#[test]
fn root_is_open_and_cannot_be_closed() {
    let plan = |state: &str, commands: &[Command]| {
        let index = index(&[queue("root", state)], &[], commands);
        show(&index.plan("root", Time::from_unix_seconds(NOW)))
    };
    assert_eq!(plan("Open", &[]), none());
    assert_eq!(
        plan("Closing", &[]),
        lines(&[r#"status root {"state":"Open"} if 5"#])
    );
    assert_eq!(
        plan("Open", &[command("c", "root", "CloseQueue", 0)]),
        lines(&[
            "Warning CloseQueue on root: CloseQueue queue failed for queue root cannot be closed",
            "delete Command c",
        ])
    );
}

#[test]
fn a_queue_without_a_parent_is_below_root() {
    let mut orphan = queue("q", "");
    orphan.spec.parent = String::new();
    assert_eq!(
        plan(&[orphan], &[], &[]),
        lines(&[r#"queue q {"spec":{"parent":"root"}} if 5"#]),
        "the state has to wait, as the version changes"
    );
}

#[test]
fn numbers_of_pod_groups_are_written_when_they_differ() {
    let groups = [
        group("a", "q", "Pending"),
        group("b", "q", ""),
        group("c", "q", "Inqueue"),
        group("d", "q", "Running"),
        group("e", "q", "Unknown"),
        group("f", "q", "Paused"),
        group("g", "q", "Completed"),
        group("h", "other", "Completed"),
    ];
    let mut q = queue("q", "Open");
    q.status.running = 1;
    q.status.completed = 3;
    assert_eq!(
        plan(&[q.clone()], &groups, &[]),
        lines(&[r#"status q {"completed":1,"inqueue":1,"pending":2,"unknown":2}"#]),
        "whatever version there is"
    );
    let closing = plan(&[q.clone()], &groups[3..4], &[command("c", "q", "CloseQueue", 0)]);
    assert_eq!(closing[0], r#"status q {"completed":0,"state":"Closing"} if 5"#);
    q.spec.parent = String::new();
    assert_eq!(
        plan(&[q], &[], &[]),
        lines(&[r#"queue q {"spec":{"parent":"root"}} if 5 & status q {"completed":0,"running":0}"#])
    );
}

#[test]
fn plans_that_can_wait_are_those_of_numbers() {
    let groups = [group("g", "q", "Running")];
    let close = [command("c", "q", "CloseQueue", 0)];
    let mut counted = queue("q", "Closed");
    counted.status.running = 1;
    let cases = [
        ("numbers", index(&[queue("q", "Open")], &groups, &[]), true),
        (
            "a state with them",
            index(&[queue("q", "Open")], &groups, &close),
            false,
        ),
        ("a state", index(&[queue("q", "")], &[], &[]), false),
        ("an order that is done", index(&[counted], &groups, &close), false),
    ];
    for (name, index, expected) in cases {
        let plan = index.plan("q", Time::from_unix_seconds(NOW));
        assert_ne!(plan, Plan::default(), "{name}");
        assert_eq!(is_only_numbers(&plan), expected, "{name}");
    }
}

#[test]
fn a_queue_that_is_being_deleted_is_left_alone() {
    let mut q = queue("q", "");
    q.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1));
    assert_eq!(plan(&[q], &[], &[command("c", "q", "CloseQueue", 0)]), none());
}

#[test]
fn failures_are_told() {
    let q = queue("q", "Open");
    let shown = |event| show_write(&Write::Event(event));
    assert_eq!(
        shown(gave_up(&q, &Action::SyncQueue, "boom")),
        "Warning SyncQueue on q: SyncQueue queue failed for boom"
    );
    assert_eq!(
        shown(write_failed(&q, &QueueState::Closing, "boom")),
        "Warning CloseQueue on q: Close queue failed for boom"
    );
    assert_eq!(
        shown(write_failed(&queue("q", "Closed"), &QueueState::Open, "boom")),
        "Warning OpenQueue on q: Update queue status from Closed to Open failed for boom"
    );
}
