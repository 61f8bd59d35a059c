//! Which queues have to be looked at, and what is counted.

use super::*;

fn seen() -> Index {
    let mut index = index(
        &[
            queue("root", "Open"),
            queue("a", "Open"),
            below("a", queue("b", "Open")),
            below("b", queue("c", "Open")),
            queue("other", "Open"),
        ],
        &[group("g", "c", "Running")],
        &[],
    );
    assert_eq!(index.take_changed(), ["a", "b", "c", "other", "root"]);
    index
}

#[test]
fn a_change_has_those_looked_at_that_it_bears_on() {
    type Change = fn(&mut Index);
    let cases: [(&str, Change, &[&str]); 12] = [
        ("nothing", |_| {}, &[]),
        (
            "a queue's numbers",
            |index| index.put_queue(queue("a", "Open")),
            &["a"],
        ),
        (
            "a queue's state: its children too",
            |index| index.put_queue(queue("a", "Closed")),
            &["a", "b"],
        ),
        (
            "a queue's place: all below it too",
            |index| index.put_queue(below("other", queue("a", "Open"))),
            &["a", "b", "c"],
        ),
        ("a new queue", |index| index.put_queue(queue("new", "")), &["new"]),
        (
            "a queue that goes: all below it too",
            |index| index.remove_queue("a"),
            &["a", "b", "c"],
        ),
        (
            "a queue that nobody knows goes",
            |index| index.remove_queue("x"),
            &[],
        ),
        (
            "a PodGroup",
            |index| index.put_group(&group("h", "b", "Pending")),
            &["b"],
        ),
        (
            "the same PodGroup",
            |index| index.put_group(&group("g", "c", "Running")),
            &[],
        ),
        (
            "a PodGroup's queue",
            |index| index.put_group(&group("g", "a", "Running")),
            &["a", "c"],
        ),
        ("a PodGroup that goes", |index| index.remove_group("ns/g"), &["c"]),
        (
            "a Command, given and gone",
            |index| {
                index.put_command(command("x", "b", "CloseQueue", 0));
                index.remove_command("ns/x");
            },
            &["b"],
        ),
    ];
    for (name, change, expected) in cases {
        let mut index = seen();
        change(&mut index);
        assert_eq!(index.take_changed(), expected, "{name}");
        assert_eq!(index.take_changed(), [""; 0], "{name}: once");
    }
}

#[test]
fn gauges_are_there_for_queues_that_exist() {
    let mut index = seen();
    index.put_group(&group("h", "", "Pending"));
    index.put_group(&group("g", "c", "Completed"));
    let shown = |index: &Index| -> Vec<_> {
        let counts = index.counts().filter(|(_, counts)| counts.total() > 0);
        counts
            .map(|(name, counts)| format!("{name} {:?}", counts.named()))
            .collect()
    };
    let of_c = r#"c [("pending", 0), ("inqueue", 0), ("running", 0), ("unknown", 0), ("completed", 1)]"#;
    assert_eq!(shown(&index), [of_c]);
    index.put_queue(queue("default", "Open"));
    assert_eq!(
        shown(&index).len(),
        2,
        "a PodGroup without a queue is in the default one"
    );
    index.remove_queue("c");
    assert_eq!(shown(&index).len(), 1, "the series of a queue ends with it");
    assert_eq!(index.counts().count(), 5);
}

#[test]
fn queues_above_each_other_in_a_circle_do_not_hold_each_other_closed() {
    let a = marked("true", below("b", queue("a", "Closed")));
    let b = below("a", queue("b", "Closed"));
    let itself = marked("true", below("c", queue("c", "Closed")));
    let outside = below("a", queue("d", "Open"));
    let index = index(
        &[a, b, itself, outside],
        &[],
        &[command("x", "b", "OpenQueue", 0)],
    );
    let plan = |name| show(&index.plan(name, Time::from_unix_seconds(0)));
    assert_eq!(plan("a"), [r#"status a {"state":"Open"} if 5"#]);
    assert_eq!(plan("b"), [r#"status b {"state":"Open"} if 5"#]);
    assert_eq!(plan("c"), [r#"status c {"state":"Open"} if 5"#]);
    assert!(
        plan("d")[0].contains("closed-by-parent"),
        "those below the circle follow their parent"
    );
}

#[test]
fn what_nobody_speaks_of_is_forgotten() {
    let mut index = seen();
    index.put_group(&group("h", "ghost", "Pending"));
    index.put_command(command("x", "phantom", "CloseQueue", 0));
    for name in ["root", "a", "b", "c", "other"] {
        index.remove_queue(name);
    }
    index.remove_group("ns/g");
    index.remove_group("ns/h");
    index.remove_command("ns/x");
    assert_eq!(index.size(), 0);
}
