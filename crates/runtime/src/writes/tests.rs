//! The writer against an API server that answers as it is told: what is sent, and what is made of the answers.

use super::order::{
    ClaimRef, ClaimState, Event, Eviction, GangBind, GroupStatus, ObjectRef, PodBind, PodCondition, PodRef,
    QueueStatus, VolumeStep,
};
use super::*;
use crate::testing::{Say, Server};
use serde_json::{Value, json};

fn ok(body: Value) -> [Say; 1] {
    [Say::Status(200, body)]
}

fn created() -> [Say; 1] {
    [Say::Status(201, json!({"kind": "Status", "status": "Success"}))]
}

/// A writer, its server, and what it tells.
struct Desk {
    writer: Writer,
    outcomes: mpsc::UnboundedReceiver<Outcome>,
    metrics: Metrics,
    fence: Fence,
}

impl Desk {
    async fn new(server: &Server, event_qps: f64) -> Self {
        let client = server.start().await;
        let (to, outcomes) = mpsc::unbounded_channel();
        let (metrics, fence) = (Metrics::default(), Fence::open());
        let settings = Settings {
            event_qps,
            tell_bound: true,
            ..Settings::default()
        };
        Desk {
            writer: Writer::start(&client, fence.clone(), metrics.clone(), &settings, to),
            outcomes,
            metrics,
            fence,
        }
    }

    async fn outcome(&mut self) -> Outcome {
        let outcome = tokio::time::timeout(Duration::from_secs(10), self.outcomes.recv()).await;
        outcome.expect("an outcome in time").unwrap()
    }

    fn counted(&self, kind: &str, result: &str) -> bool {
        let labels = format!("{{kind=\"{kind}\",result=\"{result}\"}}");
        self.metrics.text().contains(&labels)
    }
}

fn pod(name: &str) -> PodRef {
    PodRef {
        namespace: "ns".into(),
        name: name.into(),
        uid: "u1".into(),
    }
}

fn bind(name: &str, node: &str, volumes: Vec<VolumeStep>) -> Order {
    Order::Bind(GangBind {
        job: "ns/j".into(),
        binds: vec![PodBind {
            pod: pod(name),
            node: node.into(),
            created: None,
            volumes,
        }],
        ends: None,
    })
}

fn bind_failed(name: &str) -> Outcome {
    Outcome::BindFailed {
        pod: pod(name),
        job: "ns/j".into(),
        paused: None,
    }
}

fn group_status(status: Value) -> Order {
    Order::GroupStatus(GroupStatus {
        job: "ns/g".into(),
        namespace: "ns".into(),
        name: "g".into(),
        uid: "ug".into(),
        sequence: 7,
        settles: Duration::from_millis(25),
        status,
    })
}

fn written(version: Option<&str>) -> Outcome {
    Outcome::GroupWritten {
        job: "ns/g".into(),
        sequence: 7,
        resource_version: version.map(str::to_owned),
    }
}

fn condition(nominated: Option<&str>) -> Order {
    Order::PodCondition(PodCondition {
        pod: pod("a"),
        reason: "Unschedulable",
        message: "0/1 nodes are unavailable: 1 Insufficient cpu.".into(),
        nominated: nominated.map(Into::into),
    })
}

const BINDING: &str = "POST /api/v1/namespaces/ns/pods/a/binding";
const POD: &str = "GET /api/v1/namespaces/ns/pods/a";
const POD_STATUS: &str = "/api/v1/namespaces/ns/pods/a/status";
const EVENTS: &str = "/api/v1/namespaces/ns/events";
const GROUP: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g";

#[tokio::test]
async fn a_bind_names_pod_uid_and_node_and_is_told() {
    let [created_once] = created();
    let server = Server::default()
        .says(BINDING, [Say::Status(415, Value::Null), created_once])
        .says(&format!("POST {EVENTS}"), created());
    let mut desk = Desk::new(&server, 50.0).await;
    desk.writer.send(bind("a", "n1", Vec::new()));
    assert_eq!(desk.outcome().await, Outcome::Bound(pod("a")));
    let in_json = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "ns", "name": "a", "uid": "u1"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    });
    assert_eq!(
        server.bodies(BINDING),
        [Value::Null, in_json],
        "protobuf is not known"
    );
    server.wait_for("POST /api/v1/namespaces/ns/events", 1).await;
    let mut event = server.body(&format!("POST {EVENTS}"));
    for time in ["firstTimestamp", "lastTimestamp"] {
        let time = event.as_object_mut().unwrap().remove(time).unwrap();
        volcano_api::time::Time::parse(time.as_str().unwrap()).unwrap();
    }
    let name = event["metadata"]["name"].take();
    assert!(name.as_str().unwrap().starts_with("a."), "{name}");
    assert_eq!(
        event,
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": "ns", "name": null},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "a", "uid": "u1"},
            "type": "Normal",
            "reason": "Scheduled",
            "message": "Successfully assigned ns/a to n1",
            "count": 1,
            "source": {"component": "volcano"},
            "reportingComponent": "volcano",
        })
    );
    assert!(desk.counted("bind", "ok"));
}

#[tokio::test]
async fn what_a_conflict_means_is_read_from_the_pod() {
    let pod_is = |uid: &str, node: &str| json!({"metadata": {"uid": uid}, "spec": {"nodeName": node}});
    let going = json!({"metadata": {"uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let cases = [
        ("ours", pod_is("u1", "n1"), Outcome::Bound(pod("a"))),
        ("elsewhere", pod_is("u1", "n2"), bind_failed("a")),
        ("another pod", pod_is("u2", "n1"), bind_failed("a")),
        ("going", going, bind_failed("a")),
    ];
    for (case, found, outcome) in cases {
        let server = Server::default()
            .says(BINDING, [Say::Status(409, Value::Null)])
            .says(POD, ok(found));
        let mut desk = Desk::new(&server, 0.0).await;
        desk.writer.send(bind("a", "n1", Vec::new()));
        assert_eq!(desk.outcome().await, outcome, "{case}");
        assert_eq!(server.heard(), [BINDING, POD], "{case}");
        assert!(desk.counted("bind", "conflict"), "{case}");
    }
}

#[tokio::test]
async fn a_conflict_over_a_pod_that_is_still_unbound_is_tried_again() {
    let unbound = json!({"metadata": {"uid": "u1"}, "spec": {}});
    let server = Server::default()
        .says(
            BINDING,
            [Say::Status(409, Value::Null), Say::Status(201, json!({}))],
        )
        .says(POD, ok(unbound));
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer.send(bind("a", "n1", Vec::new()));
    assert_eq!(desk.outcome().await, Outcome::Bound(pod("a")));
    assert_eq!(server.heard(), [BINDING, POD, BINDING]);
}

#[tokio::test]
async fn a_lost_answer_is_found_out_about() {
    let ours = json!({"metadata": {"uid": "u1"}, "spec": {"nodeName": "n1"}});
    let server = Server::default()
        .says(BINDING, [Say::CutOff, Say::Status(409, Value::Null)])
        .says(POD, ok(ours));
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer.send(bind("a", "n1", Vec::new()));
    assert_eq!(desk.outcome().await, Outcome::Bound(pod("a")));
    assert_eq!(server.heard(), [BINDING, BINDING, POD]);
    assert!(desk.counted("bind", "no-answer") && desk.counted("bind", "conflict"));
}

#[tokio::test]
async fn after_silence_the_pod_says_what_became_of_its_bind() {
    let found = |uid: &str, spec: Value| Say::Status(200, json!({"metadata": {"uid": uid}, "spec": spec}));
    let is_refused = |answer: &Answer| matches!(answer, Answer::Refused { .. });
    type Case = (&'static str, Say, fn(&Answer) -> bool);
    let cases: [Case; 7] = [
        ("ours", found("u1", json!({"nodeName": "n1"})), |answer| {
            *answer == Answer::DONE
        }),
        ("elsewhere", found("u1", json!({"nodeName": "n2"})), |answer| {
            matches!(answer, Answer::Taken { .. })
        }),
        ("unbound", found("u1", json!({})), is_refused),
        ("another pod", found("u2", json!({})), |answer| {
            *answer == Answer::Gone
        }),
        ("no pod", Say::Status(404, Value::Null), |answer| {
            *answer == Answer::Gone
        }),
        ("not allowed", Say::Status(403, Value::Null), is_refused),
        ("no answer", Say::Status(503, Value::Null), |answer| {
            matches!(answer, Answer::Later { .. })
        }),
    ];
    for (case, found, expected) in cases {
        let server = Server::default().says(POD, [found]);
        let client = server.start().await;
        let metrics = Metrics::default();
        let sender = Sender::new(
            &client,
            Fence::open(),
            metrics.process().clone(),
            "volcano".into(),
        );
        let (pod, node) = (pod("a"), "n1".into());
        let answer = sender.send(work::Work::LookAtPod { pod, node }).await;
        assert!(expected(&answer), "{case}: {answer:?}");
        assert_eq!(server.heard(), [POD], "{case}");
    }
}

#[tokio::test]
async fn a_busy_or_failing_server_is_asked_again() {
    let server = Server::default().says(
        BINDING,
        [
            Say::Status(500, Value::Null),
            Say::Busy(429, "1"),
            Say::Status(201, json!({})),
        ],
    );
    let mut desk = Desk::new(&server, 0.0).await;
    let began = Instant::now();
    desk.writer.send(bind("a", "n1", Vec::new()));
    assert_eq!(desk.outcome().await, Outcome::Bound(pod("a")));
    assert_eq!(server.heard(), [BINDING, BINDING, BINDING]);
    assert!(began.elapsed() >= Duration::from_secs(1), "as it asked");
    assert!(desk.counted("bind", "error") && desk.counted("bind", "throttled"));
}

#[tokio::test]
async fn a_refused_bind_is_reported_with_its_reason() {
    let refusal = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "webhook says no"});
    let server = Server::default()
        .says(BINDING, [Say::Status(403, refusal)])
        .says(&format!("PATCH {POD_STATUS}"), ok(json!({})))
        .says(&format!("POST {EVENTS}"), created());
    let mut desk = Desk::new(&server, 50.0).await;
    desk.writer.send(bind("a", "n1", Vec::new()));
    assert_eq!(desk.outcome().await, bind_failed("a"));
    server.wait_for(&format!("POST {EVENTS}"), 1).await;
    let patch = server.body(&format!("PATCH {POD_STATUS} strategic"));
    assert_eq!(patch["metadata"], json!({"uid": "u1"}));
    let told = &patch["status"]["conditions"][0];
    assert_eq!(told["reason"], "SchedulerError");
    let message = "failed to bind to node n1: webhook says no (403 Forbidden)";
    assert_eq!(told["message"], message);
    let event = server.body(&format!("POST {EVENTS}"));
    assert_eq!(
        (&event["type"], &event["reason"], &event["message"]),
        (&json!("Warning"), &json!("FailedScheduling"), &json!(message))
    );
}

#[tokio::test]
async fn an_eviction_tells_the_pod_and_deletes_that_very_pod() {
    let server = Server::default()
        .says(&format!("PATCH {POD_STATUS}"), ok(json!({})))
        .says("DELETE", ok(json!({})))
        .says(&format!("POST {EVENTS}"), created());
    let desk = Desk::new(&server, 50.0).await;
    desk.writer.send(Order::Evict(Eviction {
        pod: pod("a"),
        reason: "reclaim",
    }));
    server.wait_for("DELETE /api/v1/namespaces/ns/pods/a", 1).await;
    server.wait_for("POST", 1).await;
    let mut conditions = server.body("PATCH")["status"]["conditions"].take();
    for condition in conditions.as_array_mut().unwrap() {
        assert!(
            condition
                .as_object_mut()
                .unwrap()
                .remove("lastTransitionTime")
                .is_some()
        );
    }
    assert_eq!(
        conditions,
        json!([
            {"type": "Ready", "status": "False", "reason": "Evict",
             "message": "Pod is evicted, because of reclaim"},
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
             "message": "volcano: preempting to accommodate a higher priority pod"},
        ])
    );
    assert_eq!(server.body("DELETE")["preconditions"], json!({"uid": "u1"}));
    assert_eq!(
        server.body("POST")["message"],
        "Pod is evicted, because of reclaim"
    );
}

#[tokio::test]
async fn a_pod_is_told_the_first_name_of_the_scheduler_that_evicts_it() {
    let server = Server::default()
        .says("PATCH", ok(json!({})))
        .says("DELETE", ok(json!({})));
    let client = server.start().await;
    let (to, _outcomes) = mpsc::unbounded_channel();
    let settings = Settings {
        scheduler_name: "first".to_owned(),
        ..Settings::default()
    };
    let writer = Writer::start(&client, Fence::open(), Metrics::default(), &settings, to);
    writer.send(Order::Evict(Eviction {
        pod: pod("a"),
        reason: "preempt",
    }));
    server.wait_for("PATCH", 1).await;
    let message = "first: preempting to accommodate a higher priority pod";
    assert_eq!(
        server.body("PATCH")["status"]["conditions"][1]["message"],
        message
    );
}

#[tokio::test]
async fn an_eviction_that_is_not_allowed_fails() {
    let server = Server::default()
        .says("DELETE", [Say::Status(403, Value::Null)])
        .says("PATCH", [Say::Status(403, Value::Null)])
        .says("GET", [Say::Status(403, Value::Null)]);
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer.send(Order::Evict(Eviction {
        pod: pod("a"),
        reason: "preempt",
    }));
    assert_eq!(desk.outcome().await, Outcome::EvictFailed(pod("a")));
}

#[tokio::test]
async fn a_group_status_is_merged_and_its_version_told() {
    let server = Server::default().says(
        &format!("PATCH {GROUP} merge"),
        ok(json!({"metadata": {"resourceVersion": "42"}, "status": {"phase": "Running"}})),
    );
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer
        .send(group_status(json!({"phase": "Running", "failed": null})));
    assert_eq!(desk.outcome().await, written(Some("42")));
    assert_eq!(
        server.body("PATCH"),
        json!({"metadata": {"uid": "ug"}, "status": {"phase": "Running", "failed": null}})
    );
}

#[tokio::test]
async fn what_others_wrote_into_the_conditions_of_a_group_stays() {
    let own = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let group = |version: &str, others: &[Value]| {
        let conditions = [&[own("Scheduled", "False")], others].concat();
        json!({"metadata": {"uid": "ug", "resourceVersion": version}, "status": {"conditions": conditions}})
    };
    let (theirs, late) = (json!({"type": "Theirs", "since": 1}), json!({"type": "Late"}));
    let server = Server::default()
        .says(
            &format!("GET {GROUP}"),
            [
                Say::Status(200, group("5", std::slice::from_ref(&theirs))),
                Say::Status(200, group("6", &[theirs.clone(), late.clone()])),
            ],
        )
        .says(
            &format!("PATCH {GROUP} merge"),
            [
                Say::Status(409, Value::Null),
                Say::Status(200, json!({"metadata": {"resourceVersion": "7"}})),
            ],
        );
    let mut desk = Desk::new(&server, 0.0).await;
    let decided = [own("Scheduled", "True"), json!({"type": "Theirs", "since": 0})];
    desk.writer
        .send(group_status(json!({"phase": "Running", "conditions": decided})));
    assert_eq!(desk.outcome().await, written(Some("7")));
    let patches = server.bodies("PATCH");
    // The look at what a conflict means comes between the two, and finds the newer version.
    assert_eq!(
        patches[0]["metadata"],
        json!({"uid": "ug", "resourceVersion": "5"})
    );
    assert_eq!(
        *patches.last().unwrap(),
        json!({"metadata": {"uid": "ug", "resourceVersion": "6"}, "status": {
            "phase": "Running", "conditions": [theirs, late, own("Scheduled", "True")],
        }})
    );
}

#[tokio::test]
async fn a_group_that_is_gone_or_another_one_is_told_as_gone() {
    let other = json!({"metadata": {"uid": "other"}});
    let cases = [
        (404, None, 1),
        (422, Some(other.clone()), 2),
        (409, Some(other), 2),
        (409, None, 2),
    ];
    for (status, found, requests) in cases {
        let read = match found {
            Some(found) => ok(found),
            None => [Say::Status(404, Value::Null)],
        };
        let server = Server::default()
            .says("PATCH", [Say::Status(status, Value::Null)])
            .says("GET", read);
        let mut desk = Desk::new(&server, 0.0).await;
        desk.writer.send(group_status(json!({})));
        assert_eq!(desk.outcome().await, written(None), "{status}");
        assert_eq!(server.heard().len(), requests, "{status}");
    }
}

#[tokio::test]
async fn a_queue_status_that_others_were_quicker_than_is_written_soon_again() {
    let patch = "PATCH /apis/scheduling.volcano.sh/v1beta1/queues/q/status merge";
    let server = Server::default().says(
        patch,
        [Say::Status(409, Value::Null), Say::Status(200, json!({}))],
    );
    let desk = Desk::new(&server, 0.0).await;
    desk.writer.send(Order::QueueStatus(QueueStatus {
        name: "q".into(),
        allocated: json!({"cpu": "1"}),
    }));
    // A refusal would wait for half a minute, and this waits for less.
    server.wait_for(patch, 2).await;
    assert_eq!(server.heard(), [patch, patch]);
}

#[tokio::test]
async fn where_patching_is_forbidden_objects_are_read_and_replaced() {
    let group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "g", "uid": "ug", "resourceVersion": "5", "labels": {"keep": "me"}},
        "spec": {"minMember": 3, "unknown": [1]},
        "status": {"phase": "Pending", "failed": 2},
    });
    let list = format!(
        "GET {}?fieldSelector=metadata.name%3Dg&limit=1",
        GROUP.trim_end_matches("/g")
    );
    let server = Server::default()
        .says("PATCH", [Say::Status(403, Value::Null)])
        .says(&format!("GET {GROUP}"), [Say::Status(403, Value::Null)])
        .says(&list, ok(json!({"items": [group.clone()]})))
        .says(
            "PUT",
            [
                Say::Status(409, Value::Null),
                Say::Status(200, json!({"metadata": {"resourceVersion": "6"}})),
            ],
        );
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer
        .send(group_status(json!({"phase": "Running", "failed": null})));
    assert_eq!(desk.outcome().await, written(Some("6")));
    let put = format!("PUT {GROUP}");
    assert_eq!(
        server.heard(),
        [
            format!("PATCH {GROUP} merge"),
            format!("GET {GROUP}"),
            list.clone(),
            put.clone(),
            list.clone(),
            put.clone()
        ]
    );
    let mut wanted = group;
    wanted["status"] = json!({"phase": "Running"});
    assert_eq!(server.body("PUT"), wanted);
    desk.writer
        .send(group_status(json!({"phase": "Pending", "failed": 2})));
    assert_eq!(desk.outcome().await, written(Some("5")), "it is so already");
    assert_eq!(server.heard()[6..], [list], "the role is not tried out each time");
}

#[tokio::test]
async fn conditions_are_merged_into_a_pod_that_is_replaced() {
    let found = json!({
        "metadata": {"name": "a", "uid": "u1", "resourceVersion": "5"},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "PodScheduled", "status": "False", "reason": "Old", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        ]},
    });
    let server = Server::default()
        .says("PATCH", [Say::Status(403, Value::Null)])
        .says(POD, ok(found.clone()))
        .says("PUT", ok(json!({})));
    let desk = Desk::new(&server, 0.0).await;
    desk.writer.send(condition(Some("n2")));
    server.wait_for(&format!("PUT {POD_STATUS}"), 1).await;
    let mut wanted = found;
    wanted["apiVersion"] = "v1".into();
    wanted["kind"] = "Pod".into();
    wanted["status"]["nominatedNodeName"] = "n2".into();
    let condition = &mut wanted["status"]["conditions"][1];
    condition["reason"] = "Unschedulable".into();
    condition["message"] = "0/1 nodes are unavailable: 1 Insufficient cpu.".into();
    assert_eq!(server.body("PUT"), wanted);
}

#[tokio::test]
async fn a_role_that_allows_nothing_is_tried_anew_later() {
    let server = Server::default()
        .says(
            "PATCH",
            [Say::Status(403, Value::Null), Say::Status(200, json!({}))],
        )
        .says(POD, ok(json!({"metadata": {"uid": "u1"}, "status": {}})))
        .says("PUT", [Say::Status(403, Value::Null)]);
    let desk = Desk::new(&server, 0.0).await;
    desk.writer.send(condition(None));
    server.wait_for("PUT", 1).await;
    desk.writer.send(Order::Evict(Eviction {
        pod: pod("a"),
        reason: "preempt",
    }));
    server.wait_for("DELETE", 1).await;
    let patch = format!("PATCH {POD_STATUS} strategic");
    assert_eq!(
        server.heard(),
        [
            &patch,
            POD,
            &format!("PUT {POD_STATUS}"),
            &patch,
            "DELETE /api/v1/namespaces/ns/pods/a"
        ]
    );
    assert!(desk.counted("pod-status", "forbidden") && desk.counted("pod-status", "ok"));
}

#[tokio::test]
async fn a_queue_gets_what_it_uses_in_its_status() {
    let path = "PATCH /apis/scheduling.volcano.sh/v1beta1/queues/q/status merge";
    let server = Server::default().says(path, ok(json!({})));
    let desk = Desk::new(&server, 0.0).await;
    desk.writer.send(Order::QueueStatus(QueueStatus {
        name: "q".into(),
        allocated: json!({"cpu": "4", "gpu": null}),
    }));
    server.wait_for(path, 1).await;
    assert_eq!(
        server.body(path),
        json!({"status": {"allocated": {"cpu": "4", "gpu": null}}})
    );
}

fn event(namespace: &str) -> Order {
    Order::Event(Event {
        object: ObjectRef {
            api_version: "scheduling.volcano.sh/v1beta1".into(),
            kind: "Queue",
            namespace: namespace.into(),
            name: "q".into(),
            uid: "uq".into(),
        },
        warning: true,
        reason: "Because".into(),
        message: "of this".into(),
    })
}

#[tokio::test]
async fn events_of_objects_without_a_namespace_are_in_the_default_one_and_are_counted() {
    let post = "POST /api/v1/namespaces/default/events";
    let server = Server::default()
        .says(post, created())
        .says("PATCH", ok(json!({})));
    let desk = Desk::new(&server, 50.0).await;
    desk.writer.send(event(""));
    server.wait_for(post, 1).await;
    let created = server.body(post);
    assert_eq!(created["metadata"]["namespace"], "default");
    assert!(created["involvedObject"].get("namespace").is_none());
    desk.writer.send(event(""));
    let name = created["metadata"]["name"].as_str().unwrap();
    let patch = format!("PATCH /api/v1/namespaces/default/events/{name} merge");
    server.wait_for(&patch, 1).await;
    let raised = server.body(&patch);
    assert_eq!(raised["count"], 2);
    assert!(raised["lastTimestamp"].is_string());
}

fn claim(name: &str) -> ClaimRef {
    ClaimRef {
        namespace: "ns".into(),
        name: name.into(),
        uid: "uc".into(),
    }
}

fn step(volume: Option<&str>) -> VolumeStep {
    VolumeStep {
        claim: claim("c"),
        volume: volume.map(Into::into),
    }
}

const VOLUME: &str = "/api/v1/persistentvolumes/v";
const CLAIM: &str = "/api/v1/namespaces/ns/persistentvolumeclaims/c";

#[tokio::test]
async fn a_volume_is_set_aside_before_the_bind() {
    let volume =
        json!({"metadata": {"name": "v", "resourceVersion": "3"}, "spec": {"capacity": {"storage": "1Gi"}}});
    let server = Server::default()
        .says(BINDING, created())
        .says(&format!("GET {VOLUME}"), ok(volume))
        .says(&format!("PUT {VOLUME}"), ok(json!({})));
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer.send(bind("a", "n1", vec![step(Some("v"))]));
    server.wait_for("PUT", 1).await;
    let put = server.body("PUT");
    assert_eq!(
        put["spec"]["claimRef"],
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "ns", "name": "c", "uid": "uc"})
    );
    assert_eq!(
        put["metadata"],
        json!({"name": "v", "resourceVersion": "3",
               "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}})
    );
    assert!(!server.heard().contains(&BINDING.to_owned()));
    desk.writer.send(Order::Claim(claim("c"), ClaimState::Bound));
    assert_eq!(desk.outcome().await, Outcome::Bound(pod("a")));
}

#[tokio::test]
async fn a_claim_names_the_node_and_forgets_it_when_provisioning_is_given_up() {
    let fresh = json!({"metadata": {"name": "c", "uid": "uc", "annotations": {"keep": "me"}}, "spec": {}});
    let mut selected = fresh.clone();
    selected["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "n1".into();
    let get = format!("GET {CLAIM}");
    let server = Server::default()
        .says(
            &get,
            [
                Say::Status(200, fresh.clone()),
                Say::Status(200, selected.clone()),
            ],
        )
        .says(&format!("PUT {CLAIM}"), ok(json!({})));
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer.send(bind("a", "n1", vec![step(None)]));
    server.wait_for("PUT", 1).await;
    let waits = |node: Option<&str>| {
        let selected_node = node.map(Into::into);
        Order::Claim(claim("c"), ClaimState::Waiting { selected_node })
    };
    desk.writer.send(waits(Some("n1")));
    desk.writer.send(waits(None));
    assert_eq!(desk.outcome().await, bind_failed("a"));
    let puts = server.bodies("PUT");
    let puts: Vec<_> = puts.iter().map(|body| &body["metadata"]).collect();
    assert_eq!(puts, [&selected["metadata"], &fresh["metadata"]]);
}

#[tokio::test]
async fn a_volume_of_another_claim_is_left_alone() {
    let taken = json!({"metadata": {"name": "v"}, "spec": {"claimRef": {"namespace": "ns", "name": "other", "uid": "x"}}});
    let server = Server::default()
        .says(&format!("GET {VOLUME}"), ok(taken))
        .says("PATCH", ok(json!({})));
    let mut desk = Desk::new(&server, 0.0).await;
    desk.writer.send(bind("a", "n1", vec![step(Some("v"))]));
    assert_eq!(desk.outcome().await, bind_failed("a"));
    server.wait_for("PATCH", 1).await;
    let message = &server.body("PATCH")["status"]["conditions"][0]["message"];
    assert_eq!(
        message,
        "execute preBind for pod ns/a failed: claim c: volume v belongs to claim ns/other, resync the task"
    );
    assert!(server.heard().iter().all(|text| !text.starts_with("PUT")));
}

#[tokio::test]
async fn nothing_is_sent_without_the_lease() {
    let server = Server::default();
    let mut desk = Desk::new(&server, 50.0).await;
    desk.fence.close();
    desk.writer.send(bind("a", "n1", Vec::new()));
    desk.writer.send(group_status(json!({})));
    desk.writer.send(event("ns"));
    assert_eq!(desk.outcome().await, bind_failed("a"));
    desk.writer.drain(Duration::from_secs(5)).await;
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn draining_writes_what_waits_and_ends() {
    let server = Server::default()
        .says("POST", created())
        .says("PATCH", ok(json!({"metadata": {"resourceVersion": "1"}})));
    let desk = Desk::new(&server, 50.0).await;
    for at in 0..200 {
        let name = format!("p{at}");
        desk.writer.send(Order::Bind(GangBind {
            job: "ns/g".into(),
            binds: vec![PodBind {
                pod: PodRef {
                    uid: name.as_str().into(),
                    ..pod(&name)
                },
                node: "n".into(),
                created: None,
                volumes: Vec::new(),
            }],
            ends: None,
        }));
    }
    desk.writer.send(group_status(json!({"phase": "Running"})));
    desk.writer.drain(Duration::from_secs(20)).await;
    let heard = server.heard();
    let count = |end: &str| heard.iter().filter(|text| text.ends_with(end)).count();
    assert_eq!((count("/binding"), count("podgroups/g merge")), (200, 1));
    desk.writer.send(bind("late", "n", Vec::new()));
    desk.writer.drain(Duration::from_secs(1)).await;
    assert_eq!(server.heard().len(), heard.len());
}

#[tokio::test]
async fn draining_does_not_wait_for_a_server_that_fails() {
    let server = Server::default().says("POST", [Say::Status(503, Value::Null)]);
    let desk = Desk::new(&server, 0.0).await;
    desk.writer.send(bind("a", "n", Vec::new()));
    let began = Instant::now();
    desk.writer.drain(Duration::from_millis(300)).await;
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn no_more_is_under_way_than_there_are_lanes() {
    let server = Server::default().says("POST", created());
    let client = server.start().await;
    let (to, mut outcomes) = mpsc::unbounded_channel();
    let settings = Settings {
        lanes: 2,
        event_qps: 0.0,
        tell_bound: true,
        ..Settings::default()
    };
    let writer = Writer::start(&client, Fence::open(), Metrics::default(), &settings, to);
    let binds = (0..50).map(|at| PodBind {
        pod: PodRef {
            uid: at.to_string().into(),
            ..pod(&format!("p{at}"))
        },
        node: "n".into(),
        created: None,
        volumes: Vec::new(),
    });
    writer.send(Order::Bind(GangBind {
        job: "ns/g".into(),
        binds: binds.collect(),
        ends: None,
    }));
    for _ in 0..50 {
        assert!(matches!(outcomes.recv().await, Some(Outcome::Bound(_))));
    }
    let heard = server.heard();
    for (at, text) in heard.iter().enumerate() {
        let number: usize = text
            .trim_start_matches("POST /api/v1/namespaces/ns/pods/p")
            .trim_end_matches("/binding")
            .parse()
            .unwrap();
        assert!(number.abs_diff(at) <= 1, "in order, two at a time: {heard:?}");
    }
}
