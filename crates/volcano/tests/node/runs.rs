//! What a pod does, and what is reported of it.

use crate::machine::not_run;
use crate::stage::{Stage, container, holds, isolations};
use futures::{AsyncBufReadExt, TryStreamExt};
use kube::api::LogParams;
use serde_json::json;
use volcano_node::Isolation;

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_and_signals_are_reported() {
    for isolation in isolations() {
        let mut stage = Stage::with(|options| options.isolation = Some(isolation)).await;
        for (name, script, code, phase) in [
            ("good", "echo out; echo err >&2", 0, "Succeeded"),
            ("bad", "exit 7", 7, "Failed"),
            ("killed", "kill -KILL $$$$", 137, "Failed"),
        ] {
            stage.script(name, script).await;
            let pod = stage.phase(name, phase).await;
            let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
            assert_eq!(ended["exitCode"], code, "{isolation:?} {name}: {ended}");
            let reason = if code == 0 { "Completed" } else { "Error" };
            assert_eq!(ended["reason"], reason);
        }
        assert_eq!(stage.log("good").await, "out\nerr\n");
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_pod_is_reported_as_a_kubelet_does() {
    let mut stage = Stage::start().await;
    stage
        .script("p", "echo bye > /dev/termination-log; sleep 0.3; exit 3")
        .await;
    let pod = stage.phase("p", "Running").await;
    let status = &pod["status"];
    let container = &status["containerStatuses"][0];
    assert_eq!(
        (&container["ready"], &container["started"]),
        (&json!(true), &json!(true)),
        "{status}"
    );
    assert!(container["state"]["running"]["startedAt"].is_string(), "{status}");
    assert!(
        container["containerID"]
            .as_str()
            .unwrap()
            .starts_with("volcano://"),
        "{status}"
    );
    let conditions = status["conditions"].as_array().unwrap();
    for kind in [
        "PodScheduled",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodReadyToStartContainers",
    ] {
        let found = conditions.iter().find(|one| one["type"] == kind).unwrap();
        assert_eq!(found["status"], "True", "{kind}");
    }
    assert!(status["podIP"].is_string() && status["hostIP"].is_string() && status["startTime"].is_string());
    let pod = stage.phase("p", "Failed").await;
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    if stage.agent().isolation() != Isolation::None {
        assert_eq!(ended["message"], "bye\n", "{ended}");
    }
    for (reason, message) in [
        ("Created", "Created container: main"),
        ("Started", "Started container main"),
    ] {
        assert_eq!(stage.event("p", reason).await, message);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn init_containers_run_in_order_before_the_others() {
    let mut stage = Stage::start().await;
    let write = |name: &str, script: &str| {
        let mut one = container(script);
        one["name"] = name.into();
        one["volumeMounts"] = json!([{"name": "shared", "mountPath": "/shared-by-test"}]);
        one
    };
    stage
        .pod(
            "p",
            json!({
                "volumes": [{"name": "shared", "emptyDir": {}}],
                "initContainers": [
                    write("one", "sleep 0.2; echo one >> /shared-by-test/order"),
                    write("two", "echo two >> /shared-by-test/order"),
                ],
                "containers": [write("main", "cat /shared-by-test/order")],
            }),
        )
        .await;
    let pod = stage.phase("p", "Succeeded").await;
    assert_eq!(stage.log("p").await, "one\ntwo\n");
    let first = pod["status"]["initContainerStatuses"].as_array().unwrap();
    assert!(
        first
            .iter()
            .all(|one| one["state"]["terminated"]["exitCode"] == 0 && one["ready"] == true),
        "{first:?}"
    );
    assert!(!std::path::Path::new("/shared-by-test").exists());
    stage.pod("q", json!({"initContainers": [{"name": "i", "image": "x", "command": ["false"]}], "containers": [container("true")]})).await;
    let pod = stage.phase("q", "Failed").await;
    assert!(
        pod["status"]["containerStatuses"][0]["state"]["waiting"].is_object(),
        "{}",
        pod["status"]
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_behind_another_one_waits_for_it_and_so_says_its_log() {
    let mut stage = Stage::start().await;
    let init = json!([{"name": "i", "image": "x", "command": ["sleep", "1000"]}]);
    let spec = json!({"initContainers": init, "containers": [container("true")]});
    stage.pod("p", spec).await;
    stage
        .until("p", "waiting for its first container", |pod| {
            pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
        })
        .await;
    let main = LogParams {
        container: Some("main".to_owned()),
        ..LogParams::default()
    };
    let problem = stage.pods().logs("p", &main).await.unwrap_err().to_string();
    let expected = "container \"main\" in pod \"p\" is waiting to start: PodInitializing";
    assert!(problem.contains(expected), "{problem}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_starts_whole_before_the_others_and_ends_after_them() {
    let mut stage = Stage::start().await;
    if stage.agent().isolation() == Isolation::None {
        return not_run("volumes need namespaces");
    }
    let shared = |name: &str, script: &str| {
        let mut one = container(script);
        one["name"] = name.into();
        one["volumeMounts"] = json!([{"name": "shared", "mountPath": "/shared-by-test"}]);
        one
    };
    let mut sidecar = shared(
        "side",
        "cd /shared-by-test; trap 'cat order; exit 0' TERM; sleep 0.5; echo side >> order; touch up; \
         while :; do sleep 0.05; done",
    );
    sidecar["restartPolicy"] = "Always".into();
    sidecar["startupProbe"] =
        json!({"exec": {"command": ["test", "-e", "/shared-by-test/up"]}, "periodSeconds": 1});
    let main = shared(
        "main",
        "cd /shared-by-test; trap 'sleep 0.5; echo ended >> order; exit 0' TERM; echo main >> order; echo up; \
         while :; do sleep 0.05; done",
    );
    let spec = json!({
        "volumes": [{"name": "shared", "emptyDir": {}}],
        "initContainers": [sidecar],
        "containers": [main],
    });
    stage.pod("p", spec).await;
    stage.log_with("p", "up").await;
    let follow = LogParams {
        container: Some("side".to_owned()),
        follow: true,
        ..LogParams::default()
    };
    let lines = stage.pods().log_stream("p", &follow).await.unwrap().lines();
    stage.delete("p").await;
    let lines: Vec<String> = lines.try_collect().await.unwrap();
    assert_eq!(lines, ["side", "main", "ended"]);
    stage.gone("p").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_fails_without_a_message_may_say_the_end_of_its_log() {
    let mut stage = Stage::start().await;
    for (name, code, phase, message) in [
        ("bad", 3, "Failed", json!("first\nwhy\n")),
        ("good", 0, "Succeeded", json!(null)),
    ] {
        let mut one = container(&format!("echo first; echo why >&2; exit {code}"));
        one["terminationMessagePolicy"] = "FallbackToLogsOnError".into();
        stage.pod(name, json!({"containers": [one]})).await;
        let pod = stage.phase(name, phase).await;
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(ended["message"], message, "{name}: {ended}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_has_the_names_that_it_gives() {
    let mut stage = Stage::start().await;
    if stage.agent().isolation() == Isolation::None {
        return not_run("names need namespaces");
    }
    let spec = json!({
        "hostAliases": [{"ip": "10.9.8.7", "hostnames": ["other", "db.example.com"]}],
        "hostname": "h",
        "subdomain": "sub",
        "setHostnameAsFQDN": true,
        "containers": [container("getent hosts db.example.com | cut -d' ' -f1; hostname")],
    });
    stage.pod("p", spec).await;
    stage.phase("p", "Succeeded").await;
    assert_eq!(
        stage.log("p").await,
        "10.9.8.7\nh.sub.default.svc.cluster.local\n"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_container_is_started_again_at_once_and_then_later() {
    let mut stage = Stage::start().await;
    stage
        .pod(
            "p",
            json!({"restartPolicy": "OnFailure", "containers": [container("echo run; exit 1")]}),
        )
        .await;
    let pod = stage
        .until("p", "waiting for its third run", |pod| {
            pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        })
        .await;
    let container = &pod["status"]["containerStatuses"][0];
    assert_eq!(
        (&container["restartCount"], &pod["status"]["phase"]),
        (&json!(1), &json!("Running"))
    );
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
    assert!(
        stage
            .event("p", "BackOff")
            .await
            .starts_with("back-off 10s restarting failed container=main")
    );
    let previous = LogParams {
        previous: true,
        ..LogParams::default()
    };
    assert_eq!(stage.pods().logs("p", &previous).await.unwrap(), "run\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn environments_are_expanded_and_wait_for_what_they_name() {
    let mut stage = Stage::start().await;
    let spec = json!({"hostname": "named", "containers": [{
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", "echo $(GREETING) $NAME $HOSTNAME $(hostname) $TOKEN"],
        "env": [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "GREETING", "value": "hello-$(NAME)"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "late", "key": "token"}}},
        ],
    }]});
    stage.pod("p", spec).await;
    let pod = stage
        .until("p", "waiting for its Secret", |pod| {
            pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
                == "CreateContainerConfigError"
        })
        .await;
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["message"], "secret \"late\" not found");
    let _: k8s_openapi::api::core::v1::Secret = stage
        .create(json!({"metadata": {"name": "late"}, "stringData": {"token": "t0k"}}))
        .await;
    stage.phase("p", "Succeeded").await;
    let host = if stage.agent().isolation() == Isolation::None {
        None
    } else {
        Some("named")
    };
    if let Some(host) = host {
        assert_eq!(stage.log("p").await, format!("hello-p p named {host} t0k\n"));
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_while_they_are_written() {
    let mut stage = Stage::start().await;
    stage
        .script("p", "for i in 1 2 3; do echo line $i; sleep 0.1; done")
        .await;
    stage.phase("p", "Running").await;
    let follow = LogParams {
        follow: true,
        ..LogParams::default()
    };
    let lines = stage.pods().log_stream("p", &follow).await.unwrap().lines();
    let lines: Vec<String> = lines.try_collect().await.unwrap();
    assert_eq!(lines, ["line 1", "line 2", "line 3"]);
    let tail = LogParams {
        tail_lines: Some(1),
        timestamps: true,
        ..LogParams::default()
    };
    let last = stage.pods().logs("p", &tail).await.unwrap();
    assert!(last.ends_with("Z line 3\n"), "{last}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_cannot_run_say_why() {
    let mut stage = Stage::start().await;
    let main = |change: serde_json::Value| {
        let mut one = json!({"name": "main", "image": "busybox"});
        one.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        json!({"containers": [one]})
    };
    for (name, spec, part) in [
        ("silent", main(json!({})), "has no command"),
        ("argued", main(json!({"args": ["x"]})), "has no command"),
        (
            "missing",
            main(json!({"command": ["no-such-program"]})),
            "executable file not found in $PATH",
        ),
        (
            "nowhere",
            main(json!({"command": ["/no/such"]})),
            "no such file or directory",
        ),
        (
            "plain",
            main(json!({"command": ["/etc/passwd"]})),
            "permission denied",
        ),
    ] {
        stage.pod(name, spec).await;
        let pod = stage.phase(name, "Failed").await;
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(
            (&ended["reason"], &ended["exitCode"]),
            (&json!("StartError"), &json!(128)),
            "{name}"
        );
        assert!(
            ended["message"].as_str().unwrap().contains(part),
            "{name}: {ended}"
        );
    }
    let spec = json!({
        "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}],
        "containers": [container("true")],
    });
    stage.pod("volume", spec).await;
    assert!(
        stage
            .event("volume", "FailedMount")
            .await
            .contains("no volumes of this kind")
    );
    stage.phase("volume", "Pending").await;
    stage.delete("volume").await;
    stage.gone("volume").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_hooks_are_asked_in_the_container() {
    let mut stage = Stage::start().await;
    if stage.agent().isolation() == Isolation::None {
        return not_run("probes within a container need namespaces");
    }
    let mut one = container("trap 'echo term; exit 0' TERM; while :; do sleep 0.05; done");
    one["readinessProbe"] =
        json!({"exec": {"command": ["test", "-e", "/tmp/ready-by-test"]}, "periodSeconds": 1});
    one["lifecycle"] = json!({
        "postStart": {"exec": {"command": ["touch", "/tmp/ready-by-test"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo asked > /dev/termination-log"]}},
    });
    one["livenessProbe"] = json!({"grpc": {"port": 1}});
    stage.pod("p", json!({"containers": [one]})).await;
    stage
        .until("p", "ready", |pod| {
            pod["status"]["containerStatuses"][0]["ready"] == true
        })
        .await;
    assert!(
        stage
            .event("p", "Unsupported")
            .await
            .starts_with("livenessProbe of container main")
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pods_run_side_by_side() {
    let mut stage = Stage::start().await;
    let begin = std::time::Instant::now();
    for index in 0..100 {
        stage.script(&format!("p{index}"), "hostname; sleep 1").await;
    }
    for index in 0..100 {
        stage.phase(&format!("p{index}"), "Succeeded").await;
    }
    eprintln!("100 pods of one second: {:?}", begin.elapsed());
    stage.stop().await;
    let left = stage.directory.path().to_owned();
    holds("directories are left", || !contains_work(&left)).await;
}

fn contains_work(directory: &std::path::Path) -> bool {
    let pods = std::fs::read_dir(directory.join("node")).unwrap().flatten();
    pods.into_iter()
        .any(|pod| pod.path().join("containers").exists() || pod.path().join("volumes").exists())
}
