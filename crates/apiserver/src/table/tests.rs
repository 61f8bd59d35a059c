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
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let table = table(pods, &[&object], Include::None, json!({}), now);
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

#[test]
fn what_comes_before_the_containers_of_a_pod_is_told_too() {
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let (setup, side) = (
        json!({"name": "setup"}),
        json!({"name": "side", "restartPolicy": "Always"}),
    );
    let state = |name: &str, state: Value| json!({"name": name, "restartCount": 0, "state": state});
    let done = |name: &str| {
        state(
            name,
            json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
        )
    };
    let mut up = state("side", json!({"running": {}}));
    (up["started"], up["ready"]) = (json!(true), json!(true));
    let mut main = state("main", json!({"running": {}}));
    main["ready"] = json!(true);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let mut again = state("main", json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    again["restartCount"] = json!(3);
    again["lastState"] = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:50Z"}});
    for (status, expected) in [
        (
            json!({"phase": "Pending", "initContainerStatuses": [state("setup", json!({"running": {}}))]}),
            ("0/2", "Init:0/2", "0"),
        ),
        (
            json!({"initContainerStatuses": [state("setup", json!({"terminated": {"exitCode": 1, "reason": "Error"}}))]}),
            ("0/2", "Init:Error", "0"),
        ),
        (
            json!({"initContainerStatuses": [state("setup", json!({"terminated": {"exitCode": 137, "signal": 9}}))]}),
            ("0/2", "Init:Signal:9", "0"),
        ),
        (
            json!({"phase": "Running", "initContainerStatuses": [done("setup"), up], "containerStatuses": [main]}),
            ("2/2", "Running", "0"),
        ),
        (
            json!({"phase": "Running", "initContainerStatuses": [done("setup"), up], "containerStatuses": [again]}),
            ("1/2", "CrashLoopBackOff", "3 (10s ago)"),
        ),
        (
            json!({"phase": "Running", "containerStatuses": [done("a"), main]}),
            ("1/2", "NotReady", "0"),
        ),
        (
            json!({"phase": "Running", "containerStatuses": [done("a"), main], "conditions": ready}),
            ("1/2", "Running", "0"),
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [done("a"), state("b", json!({"terminated": {"exitCode": 2}}))]}),
            ("0/2", "ExitCode:2", "0"),
        ),
    ] {
        let spec = json!({"containers": [{"name": "main"}], "initContainers": [setup, side]});
        let found = pod::shown(&json!({"metadata": {}, "spec": spec, "status": status}), now);
        let found = (
            found.ready.as_str(),
            found.status.as_str(),
            found.restarts.as_str(),
        );
        assert_eq!(found, expected, "{status}");
    }
}

#[test]
fn cells_say_what_kubernetes_says() {
    let mut next = 0;
    let registry = built_in(|| {
        next += 1;
        next
    });
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let class = json!({"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "x", "allowVolumeExpansion": true});
    let quota = json!({"metadata": {"name": "q"}, "status": {"hard": {"limits.cpu": "2", "pods": "4", "requests.cpu": "1"},
        "used": {"limits.cpu": "1", "pods": "3", "requests.cpu": "500m"}}});
    let job = json!({"metadata": {"name": "j"}, "spec": {"completions": 3, "selector": {"matchLabels": {"a": "1"}},
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "k"}]}}},
        "status": {"succeeded": 1, "startTime": "2026-01-01T00:00:30Z"}});
    let cron = json!({"metadata": {"name": "n"}, "spec": {"schedule": "* * * * *", "suspend": false}});
    for (path, object, expected) in [
        (
            ("storage.k8s.io", "storageclasses"),
            class,
            json!(["fast (default)", "x", "<none>", "<none>", true, "<unknown>"]),
        ),
        (
            ("", "resourcequotas"),
            quota,
            json!([
                "q",
                "pods: 3/4, requests.cpu: 500m/1",
                "limits.cpu: 1/2",
                "<unknown>"
            ]),
        ),
        (
            ("batch", "jobs"),
            job,
            json!(["j", "Running", "1/3", "30s", "<unknown>", "c,d", "i,k", "a=1"]),
        ),
        (
            ("batch", "cronjobs"),
            cron,
            json!([
                "n",
                "* * * * *",
                "<none>",
                "False",
                0,
                "<none>",
                "<unknown>",
                "",
                "",
                "<none>"
            ]),
        ),
    ] {
        let resource = registry.find(path.0, "v1", path.1).unwrap();
        let object = Object::new("x", object, 1, &resource.selectable);
        let table = table(resource, &[&object], Include::None, json!({}), now);
        assert_eq!(table["rows"][0]["cells"], expected);
        assert!(table["rows"][0]["object"].is_null());
    }
}
