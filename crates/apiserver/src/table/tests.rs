use super::*;
use crate::resources::{Nature, built_in};

#[test]
fn ages_are_said_as_kubectl_says_them() {
    for (seconds, expected) in [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (121, "2m1s"),
        (300, "5m"),
        (601, "10m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (30_000, "8h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (864_000, "10d"),
        (63_072_000, "2y"),
        (400_000_000, "12y"),
    ] {
        assert_eq!(duration(seconds), expected, "{seconds}");
    }
}

#[test]
fn paths_lead_to_values() {
    let object = json!({"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}],
        "list": [1, 2]}, "a.b": 5});
    for (path, expected) in [
        (
            ".status.conditions[?(@.type==\"Ready\")].status",
            Some(json!("True")),
        ),
        (".status.list[1]", Some(json!(2))),
        (".status.list[*]", Some(json!(1))),
        (".a\\.b", Some(json!(5))),
        (".nothing.x", None),
        ("$.status.list[0]", Some(json!(1))),
    ] {
        assert_eq!(path::find(&object, path), expected, "{path}");
    }
}

#[test]
fn a_pod_is_told_by_what_its_containers_do() {
    let mut next = 0;
    let registry = built_in(|| {
        next += 1;
        next
    });
    let pods = registry.of_nature(Nature::Pod);
    let row = |status: Value, deleting: bool| {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{}, {}]}, "status": status});
        if deleting {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let object = Object::new("ns/p", pod, 1, &pods.selectable);
        let table = table(pods, &[&object], json!({}), jiff::Timestamp::UNIX_EPOCH);
        let cells = &table["rows"][0]["cells"];
        (
            cells[1].as_str().unwrap().to_owned(),
            cells[2].as_str().unwrap().to_owned(),
        )
    };
    let waiting = json!({"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let running = json!({"ready": true, "state": {"running": {}}});
    let ended = json!({"ready": false, "state": {"terminated": {"exitCode": 3}}});
    for (status, deleting, expected) in [
        (json!({"phase": "Pending"}), false, ("0/2", "Pending")),
        (
            json!({"phase": "Running", "containerStatuses": [running, running]}),
            false,
            ("2/2", "Running"),
        ),
        (
            json!({"phase": "Running", "containerStatuses": [waiting, running]}),
            false,
            ("1/2", "CrashLoopBackOff"),
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [ended]}),
            false,
            ("0/2", "ExitCode:3"),
        ),
        (json!({"phase": "Running"}), true, ("0/2", "Terminating")),
    ] {
        let (ready, said) = row(status.clone(), deleting);
        assert_eq!((ready.as_str(), said.as_str()), expected, "{status}");
    }
}
