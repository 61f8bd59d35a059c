//! Plans against an API server that answers as it is told: what is sent in which order, and what is made of the answers.

use super::*;
use crate::controllers::kinds::Change;
use crate::fence::Fence;
use crate::testing::{Say, Server};
use serde_json::json;
use volcano_api::names::kinds::{COMMAND, CONFIG_MAP, JOB, POD, POD_GROUP, QUEUE, SECRET, SERVICE};
use volcano_reconcile::write::Fill;

/// An executor and what it tells.
struct Desk {
    executor: Executor,
    messages: mpsc::UnboundedReceiver<Message>,
    _tasks: JoinSet<()>,
}

impl Desk {
    async fn new(server: &Server, fence: Fence) -> Self {
        let client = server.start().await;
        let metrics = Process::new(&prometheus::Registry::new());
        let mut tasks = JoinSet::new();
        let recorder = Recorder::start(&client, fence.clone(), metrics.clone(), "test", 50.0, &mut tasks);
        let (to, messages) = mpsc::unbounded_channel();
        Desk {
            executor: Executor::new(client.behind(fence), metrics, recorder, to),
            messages,
            _tasks: tasks,
        }
    }

    /// Carries out a plan. What its writes changed, and what failed.
    async fn run(&mut self, steps: Vec<Vec<Write>>) -> (Vec<Effect>, Vec<Failed>) {
        self.executor.start(key(), Plan::of(steps), false);
        let mut effects = Vec::new();
        loop {
            let message = tokio::time::timeout(Duration::from_secs(20), self.messages.recv()).await;
            match message.expect("a message in time").unwrap() {
                Message::Written(of, effect) => {
                    assert_eq!(of, key());
                    effects.push(effect);
                }
                Message::Done(_, writes, ended) => {
                    self.executor.ended(writes);
                    return (effects, failed(ended));
                }
                Message::Read(..) | Message::Asked(..) => unreachable!("nothing is to be read"),
            }
        }
    }
}

/// What failed of a plan that was not put off.
fn failed(ended: Ended) -> Vec<Failed> {
    match ended {
        Ended::Whole => Vec::new(),
        Ended::Failed(failed) => failed,
        Ended::PutOff => panic!("there were lanes to spare"),
    }
}

fn key() -> Key {
    Key::Job("ns/j".to_owned())
}

async fn desk(server: &Server) -> Desk {
    Desk::new(server, Fence::open()).await
}

fn target(kind: Kind, name: &str) -> Target {
    Target::named(kind, "ns", name)
}

fn create(kind: Kind, name: &str) -> Write {
    let owner = json!({"kind": "Job", "name": "j", "uid": "job", "controller": true});
    Write::Create {
        target: target(kind, name),
        body: json!({"metadata": {"name": name, "ownerReferences": [owner]}}),
        fill: None,
    }
}

fn delete(kind: Kind, name: &str, uid: &str) -> Write {
    Write::Delete {
        target: Target {
            uid: uid.to_owned(),
            ..target(kind, name)
        },
        foreground: false,
    }
}

fn patch(kind: Kind, name: &str, status: bool, version: Option<&str>) -> Write {
    Write::Patch {
        target: Target {
            uid: "u".to_owned(),
            ..target(kind, name)
        },
        patch: if status {
            json!({"status": {"a": 1}})
        } else {
            json!({"data": {"a": "1", "b": null}})
        },
        status,
        resource_version: version.map(str::to_owned),
    }
}

fn object(name: &str, owner: &str) -> Value {
    let owner = json!({"kind": "Job", "name": "other", "uid": owner, "controller": true});
    json!({"metadata": {"namespace": "ns", "name": name, "uid": "u", "resourceVersion": "7",
        "ownerReferences": [owner]}, "data": {"b": "2", "c": "3"}})
}

fn made(name: &str) -> [Say; 1] {
    [Say::Status(201, object(name, "job"))]
}

fn refusal(code: u16, reason: &str) -> Say {
    Say::Status(
        code,
        json!({"kind": "Status", "code": code, "reason": reason, "message": "no"}),
    )
}

#[tokio::test]
async fn steps_come_one_after_the_other_and_what_is_made_is_told() {
    let server = Server::default()
        .says("POST /api/v1/namespaces/ns/services", made("s"))
        .says("POST /api/v1/namespaces/ns/pods", made("p"))
        .says(
            "DELETE /api/v1/namespaces/ns/pods/q",
            [Say::Status(200, json!({}))],
        );
    let mut desk = desk(&server).await;
    let steps = vec![
        vec![create(SERVICE, "s")],
        vec![create(POD, "p")],
        vec![delete(POD, "q", "uq")],
    ];
    let (effects, failed) = desk.run(steps).await;
    assert!(failed.is_empty() && desk.executor.is_idle());
    assert!(matches!(&effects[0], Effect::Made(SERVICE, object) if object["metadata"]["name"] == "s"));
    assert!(
        matches!(&effects[1], Effect::PodMade(Answer::Object(change)) if matches!(&**change, Change::Pod(_)))
    );
    assert!(matches!(&effects[2], Effect::Watched(Answer::Leaving { uid, left: None, .. }) if uid == "uq"));
    assert_eq!(
        server.heard(),
        [
            "POST /api/v1/namespaces/ns/services?fieldValidation=Ignore",
            "POST /api/v1/namespaces/ns/pods?fieldValidation=Ignore",
            "DELETE /api/v1/namespaces/ns/pods/q"
        ]
    );
    let options = server.body("DELETE");
    assert_eq!(options["preconditions"]["uid"], "uq");
    assert_eq!(options["propagationPolicy"], "Background");
}

#[tokio::test]
async fn after_a_failure_the_rest_is_dropped() {
    let server = Server::default()
        .says(
            "POST /api/v1/namespaces/ns/pods",
            [Say::Status(201, object("p", "job")), refusal(403, "Forbidden")],
        )
        .says("POST /api/v1/namespaces/ns/services", made("s"));
    let mut desk = desk(&server).await;
    let steps = vec![
        vec![create(POD, "p")],
        vec![create(POD, "q"), create(POD, "r")],
        vec![create(SERVICE, "s")],
    ];
    let (effects, failed) = desk.run(steps).await;
    assert_eq!((effects.len(), failed.len()), (1, 2));
    assert!(
        failed
            .iter()
            .all(|failed| failed.problem.sort == Sort::Refused && failed.problem.text == "no")
    );
    assert_eq!(server.heard().len(), 3, "the last step is not begun");
}

#[tokio::test]
async fn failures_are_sorted() {
    let cases = [
        (Say::Busy(429, "3"), Sort::Passing, 3),
        (refusal(500, "InternalError"), Sort::Passing, 0),
        (refusal(409, "Conflict"), Sort::Passing, 0),
        (refusal(422, "Invalid"), Sort::Refused, 0),
        (Say::CutOff, Sort::Passing, 0),
    ];
    for (say, sort, seconds) in cases {
        let server = Server::default().says("POST", [say]);
        let mut desk = desk(&server).await;
        let (_, failed) = desk.run(vec![vec![create(POD_GROUP, "g")]]).await;
        assert_eq!(failed[0].problem.sort, sort, "{failed:?}");
        assert_eq!(failed[0].problem.retry_after, Duration::from_secs(seconds));
    }
}

#[tokio::test]
async fn what_is_there_already_is_taken_if_it_is_the_jobs_own() {
    let cases = [
        (POD, "job", None),
        (POD, "another", Some(Sort::Taken)),
        (SERVICE, "job", None),
        (SERVICE, "another", Some(Sort::Refused)),
    ];
    for (kind, owner, sort) in cases {
        let server = Server::default()
            .says("POST", [refusal(409, "AlreadyExists")])
            .says("GET", [Say::Status(200, object("p", owner))]);
        let mut desk = desk(&server).await;
        let (effects, failed) = desk.run(vec![vec![create(kind, "p")]]).await;
        let problem = failed.first().map(|failed| &failed.problem);
        assert_eq!(problem.map(|problem| problem.sort), sort, "{kind:?}");
        let text = format!(
            "{} \"p\" already exists and belongs to the Job other",
            kind.plural
        );
        assert!(problem.is_none_or(|problem| problem.text == text), "{problem:?}");
        let is_made = |effect: &Effect| matches!(effect, Effect::PodMade(_));
        assert!(!effects.iter().any(is_made), "it was made before");
        assert_eq!(effects.len(), usize::from(sort.is_none()));
    }
}

#[tokio::test]
async fn what_is_gone_needs_no_deletion_and_no_change() {
    let server = Server::default().says(
        "DELETE /api/v1/namespaces/ns/pods/other",
        [refusal(409, "Conflict")],
    );
    let mut desk = desk(&server).await;
    let steps = vec![
        vec![delete(POD, "p", "u1"), delete(POD, "other", "u2")],
        vec![delete(COMMAND, "c", "u3"), patch(JOB, "j", true, None)],
    ];
    let (effects, failed) = desk.run(steps).await;
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(effects.len(), 3, "three that are gone");
}

#[tokio::test]
async fn objects_are_patched_or_replaced_as_the_role_has_it() {
    let server = Server::default()
        .says("PATCH", [Say::Status(200, object("x", "job"))])
        .says("GET", [Say::Status(200, object("x", "job"))])
        .says("PUT", [Say::Status(200, object("x", "job"))]);
    let mut desk = desk(&server).await;
    let steps = vec![
        vec![patch(JOB, "j", true, Some("5"))],
        vec![patch(CONFIG_MAP, "m", false, None)],
        vec![patch(POD_GROUP, "g", false, None)],
        vec![Write::Patch {
            target: Target::named(QUEUE, "", "q"),
            patch: json!({"status": {"state": "Open"}}),
            status: true,
            resource_version: None,
        }],
    ];
    let (effects, failed) = desk.run(steps).await;
    assert!(failed.is_empty() && effects.len() == 4, "{failed:?}");
    assert_eq!(
        server.heard(),
        [
            "PATCH /apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j/status merge",
            "GET /api/v1/namespaces/ns/configmaps/m",
            "PUT /api/v1/namespaces/ns/configmaps/m",
            "PATCH /apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g merge",
            "PATCH /apis/scheduling.volcano.sh/v1beta1/queues/q/status?fieldManager=queue-controller merge",
        ]
    );
    let precondition = json!({"uid": "u", "resourceVersion": "5"});
    assert_eq!(server.body("PATCH")["metadata"], precondition);
    let replaced = server.body("PUT");
    assert_eq!(replaced["data"], json!({"a": "1", "c": "3"}));
    assert_eq!(replaced["metadata"]["resourceVersion"], "7");
}

#[tokio::test]
async fn a_replacement_is_refused_when_the_object_is_another() {
    let mut other = object("m", "job");
    other["metadata"]["uid"] = json!("another");
    let server = Server::default().says("GET", [Say::Status(200, other)]);
    let mut desk = desk(&server).await;
    let (_, failed) = desk.run(vec![vec![patch(CONFIG_MAP, "m", false, None)]]).await;
    assert_eq!(failed[0].problem.sort, Sort::Passing);
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_secret_is_filled_with_a_pair_of_keys() {
    let server = Server::default().says("POST", made("s"));
    let mut desk = desk(&server).await;
    let secret = Write::Create {
        target: target(SECRET, "s"),
        body: json!({"data": {"config": "x"}}),
        fill: Some(Fill::SshKeyPair),
    };
    let (_, failed) = desk.run(vec![vec![secret]]).await;
    assert!(failed.is_empty(), "{failed:?}");
    let data = server.body("POST")["data"].clone();
    let names: Vec<_> = data.as_object().unwrap().keys().collect();
    assert_eq!(names, ["authorized_keys", "config", "id_rsa", "id_rsa.pub"]);
}

#[tokio::test]
async fn nothing_is_sent_without_the_lease() {
    let server = Server::default();
    let mut desk = Desk::new(&server, Fence::closed()).await;
    let (_, failed) = desk.run(vec![vec![create(POD, "p")]]).await;
    assert_eq!(failed[0].problem.sort, Sort::Fenced);
    assert_eq!(server.heard(), [""; 0]);
}

#[tokio::test]
async fn one_that_is_stopped_sends_nothing_more_and_tells_what_was_answered() {
    const PODS: usize = 200;
    let server = Server::default().says("POST", made("p"));
    let mut desk = desk(&server).await;
    let pods = (0..PODS).map(|at| create(POD, &format!("p{at}")));
    desk.executor.start(key(), Plan::of(vec![pods.collect()]), false);
    let mut answered = 0;
    let failed = loop {
        match desk.messages.recv().await.unwrap() {
            Message::Written(..) => {
                answered += 1;
                desk.executor.stop();
            }
            Message::Done(_, writes, ended) => {
                desk.executor.ended(writes);
                break failed(ended);
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(desk.executor.is_idle() && desk.executor.is_stopped());
    assert!(answered < PODS, "they were not all under way");
    assert_eq!(answered, server.heard().len(), "what was sent comes to its end");
    assert_eq!(answered + failed.len(), PODS);
    assert!(failed.iter().all(|failed| failed.problem.sort == Sort::Fenced));
}

#[tokio::test]
async fn counts_are_put_off_while_all_lanes_are_taken_and_phases_are_not() {
    let jobs = "PATCH /apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j/status";
    let server = Server::default().says("POST", [Say::Nothing]);
    let mut desk = desk(&server).await;
    assert_eq!(desk.executor.spare(), LANES);
    for plan in 0..ENOUGH / LANES_PER_PLAN {
        assert!(!desk.executor.is_busy(), "with {plan} plans under way");
        let pods = (0..LANES_PER_PLAN + 1).map(|at| create(POD, &format!("p{plan}-{at}")));
        desk.executor.start(key(), Plan::of(vec![pods.collect()]), false);
    }
    assert!(desk.executor.is_busy());
    server.wait_for("POST", LANES).await;
    assert_eq!(desk.executor.spare(), 0);
    let status = || Plan::of(vec![vec![patch(JOB, "j", true, None)]]);
    let phase = Key::Job("ns/phase".to_owned());
    desk.executor.start(phase, status(), true);
    desk.executor.start(key(), status(), false);
    let message = tokio::time::timeout(Duration::from_secs(20), desk.messages.recv()).await;
    let message = message.expect("a message in time").unwrap();
    // The phase was there first: it would have been told of first.
    assert!(
        matches!(&message, Message::Done(of, 1, Ended::PutOff) if *of == key()),
        "{message:?}"
    );
    let heard = server.heard();
    assert!(
        !heard.iter().any(|request| request.starts_with(jobs)),
        "{heard:?}"
    );
    desk.executor.ended(LANES_PER_PLAN + 1);
    assert!(!desk.executor.is_busy());
}

#[tokio::test]
async fn the_newest_versions_of_a_job_and_its_pods_are_asked_for() {
    let page = |versions: &[&str], next: &str| {
        let pods = versions
            .iter()
            .map(|version| json!({"metadata": {"resourceVersion": version}}));
        let items: Vec<_> = pods.collect();
        Say::Status(200, json!({"metadata": {"continue": next}, "items": items}))
    };
    let pods = "GET /api/v1/namespaces/ns/pods?labelSelector=volcano.sh/job-name%3Dj&limit=500";
    let job = "GET /apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j";
    let server = Server::default()
        .says(&format!("{pods}&continue=more"), [page(&["9"], "")])
        .says(pods, [page(&["12", "8"], "more")])
        .says(
            job,
            [Say::Status(200, object("j", "job")), refusal(404, "NotFound")],
        );
    let mut desk = desk(&server).await;
    let mut asked = async |pods| {
        desk.executor.ask(key(), target(JOB, "j"), Ask { pods });
        match desk.messages.recv().await.unwrap() {
            Message::Asked(_, asked) => asked.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let newest = Reading {
        job: 7,
        pods: Some(12),
    };
    assert_eq!(asked(true).await, Some(newest));
    assert_eq!(asked(false).await, None, "it is gone");
    assert_eq!(server.heard(), [job, pods, &format!("{pods}&continue=more"), job]);
}
