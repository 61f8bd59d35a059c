//! What becomes of what is under way when another term begins.

use super::*;
use crate::controllers::kinds::{Kind, Spot};
use crate::controllers::options::Options;
use crate::controllers::selection::{DEFAULT, Selection};
use crate::gates::FeatureGates;
use crate::testing::{Say, Server};
use crate::{client, logging, serve};
use serde_json::json;
use tokio::task::JoinSet;
use volcano_api::names::kinds::POD;

/// How long something that does not happen is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

fn options() -> Options {
    Options {
        client: client::Options::default(),
        scheduler_names: vec!["volcano".to_owned()],
        inherit_owner_annotations: true,
        max_requeue_num: 15,
        controllers: Selection::parse(DEFAULT.split(',')).unwrap(),
        feature_gates: FeatureGates::default(),
        serve: serve::Settings::default(),
        leader_election: None,
        logging: logging::Settings::default(),
        unused: Vec::new(),
        ignored: Vec::new(),
    }
}

fn job(version: &str, status: &Value) -> Value {
    json!({"metadata": {"namespace": "ns", "name": "j", "uid": "job", "resourceVersion": version,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"queue": "q", "minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": {}}]}, "status": status})
}

/// A heart that has read a Job whose PodGroup is admitted, and who says whether it leads.
struct Bench {
    core: Core,
    inputs: Inputs,
    leads: watch::Sender<Leadership>,
    _tasks: JoinSet<()>,
}

impl Bench {
    async fn new(server: &Server, status: &Value, first_term: Option<u64>) -> Self {
        let mut tasks = JoinSet::new();
        let shared = Shared::of(server.start().await, options(), &mut tasks);
        let mut core = Core::new(Arc::new(shared), first_term);
        let job = serde_json::from_value(job("5", status)).unwrap();
        let queue = json!({"metadata": {"name": "q", "resourceVersion": "2"}, "status": {"state": "Open"}});
        let admitted = json!({"phase": "Inqueue"});
        let version = json!({"volcano.sh/job-version": "0"});
        let group = json!({"metadata": {"namespace": "ns", "name": "j-job", "uid": "g", "resourceVersion": "3",
            "annotations": version}, "status": admitted});
        core.take_feed(Feed::Changes(vec![
            Change::Job(Box::new(job)),
            Change::Queue(Box::new(serde_json::from_value(queue).unwrap())),
            Change::PodGroup(Box::new(serde_json::from_value(group).unwrap())),
        ]));
        for kind in feeds::kinds(&options()) {
            core.take_feed(Feed::Listed(kind, None));
        }
        let (leads, leadership) = watch::channel(Leadership::default());
        let (messages_to, messages) = mpsc::unbounded_channel();
        let inputs = Inputs {
            feed: mpsc::channel(1).1,
            messages,
            messages_to,
            leadership,
            shutdown: watch::channel(false).1,
        };
        Bench {
            core,
            inputs,
            leads,
            _tasks: tasks,
        }
    }

    /// The election says so.
    fn is_said(&mut self, leadership: Leadership) {
        self.leads.send_replace(leadership);
        self.core.lead_or_follow(&mut self.inputs);
    }

    /// Works until so many requests have come that start like this.
    async fn works_until(&mut self, server: &Server, request: &str, times: usize) {
        let until = Instant::now() + 4 * PATIENCE;
        let count = || {
            let heard = server.heard();
            heard.iter().filter(|text| text.starts_with(request)).count()
        };
        while count() < times {
            assert!(Instant::now() < until, "{request}: {:?}", server.heard());
            while self.core.work_on() {}
            let message = tokio::time::timeout(Duration::from_millis(5), self.inputs.messages.recv()).await;
            if let Ok(Some(message)) = message {
                self.core.take_message(message);
            }
            self.core.look_at_changed();
        }
    }

    fn phase(&self) -> &str {
        let job = self.core.store.job("ns/j").and_then(|entry| entry.job());
        job.unwrap().status.state.phase.as_str()
    }
}

fn term(term: u64) -> Leadership {
    Leadership::Leading { transitions: 0, term }
}

#[tokio::test]
async fn what_was_sent_in_one_term_is_known_before_the_next_one_begins() {
    let pending = json!({"state": {"phase": "Pending"}});
    let server = Server::default().says("PATCH", [Say::Status(200, job("6", &pending))]);
    let mut bench = Bench::new(&server, &json!({}), None).await;
    bench.is_said(term(1));
    while bench.core.work_on() {}
    server
        .wait_for(
            "PATCH /apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j/status",
            1,
        )
        .await;
    bench.is_said(Leadership::default());
    bench.is_said(term(2));
    assert!(!bench.core.is_at_work(), "answers are still to come");
    assert!(!bench.core.work_on());
    while !bench.core.is_at_work() {
        let message = tokio::time::timeout(Duration::from_secs(20), bench.inputs.messages.recv()).await;
        bench
            .core
            .take_message(message.expect("a message in time").unwrap());
        bench.core.take_over(&bench.inputs.messages_to);
    }
    assert_eq!(bench.phase(), "Pending", "the answer is known");
    assert!(bench.core.work.waiting() > 0, "everything is looked at");
}

#[tokio::test]
async fn what_was_listed_before_the_term_is_asked_for_and_what_was_listed_in_it_is_not() {
    let asked = "GET /apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j";
    let made = "POST /api/v1/namespaces/ns/pods";
    let pending = json!({"state": {"phase": "Pending"}});
    for (first_term, now_in, begins_with) in [(None, 1, asked), (Some(1), 2, asked), (Some(1), 1, made)] {
        let server = Server::default();
        let mut bench = Bench::new(&server, &pending, first_term).await;
        bench.is_said(term(now_in));
        while bench.core.work_on() {}
        server.wait_for(begins_with, 1).await;
        let heard = server.heard();
        let first = heard
            .iter()
            .find(|request| [asked, made].iter().any(|start| request.starts_with(start)));
        assert!(
            first.is_some_and(|first| first.starts_with(begins_with)),
            "{heard:?}"
        );
    }
}

/// A heart that leads, and its Job's key.
async fn leading(server: &Server) -> (Bench, Key) {
    let pending = json!({"state": {"phase": "Pending"}});
    let mut bench = Bench::new(server, &pending, Some(1)).await;
    bench.is_said(term(1));
    (bench, Key::Job("ns/j".to_owned()))
}

#[tokio::test]
async fn a_job_that_would_make_pods_is_held_while_there_are_enough_to_be_made() {
    let server = Server::default().says("POST", [Say::Nothing]);
    let (mut bench, key) = leading(&server).await;
    let core = &mut bench.core;
    let other = || Key::Job("ns/other".to_owned());
    let mut others = 0;
    while let Some(executor) = core.executor.as_mut().filter(|executor| !executor.is_busy()) {
        let pod = |at: usize| Write::Create {
            target: Target::named(POD, "ns", &format!("p{at}")),
            body: json!({}),
            fill: None,
        };
        executor.start(other(), Plan::of(vec![(0..32).map(pod).collect()]), false);
        others += 1;
    }
    while core.work_on() {}
    assert!(core.held.iter().eq([&key]));
    assert!(
        core.executor.as_ref().is_some_and(Executor::has_room),
        "others have room"
    );
    core.take_message(Message::Done(other(), 32, Ended::Whole));
    while core.work_on() {}
    assert!(
        core.held.is_empty() && core.after.contains_key(&key),
        "after one of {others}"
    );
}

#[tokio::test]
async fn a_job_whose_counts_were_put_off_is_looked_at_again_when_there_is_room() {
    let server = Server::default().says("POST", [Say::Nothing]);
    let (mut bench, key) = leading(&server).await;
    let core = &mut bench.core;
    while core.work_on() {}
    assert!(core.after.contains_key(&key));
    core.take_message(Message::Done(key.clone(), 1, Ended::PutOff));
    assert!(!core.after.contains_key(&key));
    assert_eq!((core.untold.waiting(), core.work.waiting()), (1, 0));
    core.work_on();
    assert_eq!(core.untold.waiting(), 0);
    // A look that took long on a busy machine is followed by a rest.
    let until = Instant::now() + PATIENCE;
    while !core.after.contains_key(&key) && Instant::now() < until {
        tokio::task::yield_now().await;
        core.work_on();
    }
    assert!(core.after.contains_key(&key), "it is worked on again");
}

#[tokio::test]
async fn a_pod_of_somebody_else_is_told_of_once_and_waited_for() {
    let made = "POST /api/v1/namespaces/ns/pods";
    let told = "POST /api/v1/namespaces/ns/events";
    let status = "PATCH /apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/j/status";
    let exists = json!({"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "no"});
    let owner = json!({"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true});
    let pod = json!({"metadata": {"namespace": "ns", "name": "j-t-0", "uid": "p", "resourceVersion": "4",
        "ownerReferences": [owner]}});
    let counted = json!({"state": {"phase": "Pending"}, "minAvailable": 1});
    let server = Server::default()
        .says(made, [Say::Status(409, exists)])
        .says("GET /api/v1/namespaces/ns/pods/j-t-0", [Say::Status(200, pod)])
        .says(status, [Say::Status(200, job("6", &counted))]);
    let (mut bench, key) = leading(&server).await;
    bench.works_until(&server, told, 1).await;
    let message = server.body(told)["message"].clone();
    assert_eq!(
        message,
        "Error creating pods: [pods \"j-t-0\" already exists and belongs to the ReplicaSet r]"
    );
    assert_eq!(bench.core.work.refusals(&key), 0);
    bench.works_until(&server, status, 1).await;
    let count = |start: &str| {
        let heard = server.heard();
        heard.iter().filter(|request| request.starts_with(start)).count()
    };
    assert_eq!((count(made), count(told)), (1, 1), "{:?}", server.heard());
    let gone = Spot {
        namespace: "ns".to_owned(),
        name: "j-t-0".to_owned(),
        version: 9,
    };
    let gone = Change::Gone(Kind::Pod, gone);
    bench.core.take_feed(Feed::Changes(vec![gone]));
    bench.core.look_at_changed();
    bench.works_until(&server, made, 2).await;
}

#[tokio::test]
async fn only_a_pod_that_was_made_counts_as_made() {
    let (mut bench, key) = leading(&Server::default()).await;
    let core = &mut bench.core;
    let answer = || Answer::Object(Box::new(Change::Pod(Box::default())));
    let samples = |core: &Core| {
        let text = core.shared.metrics.text();
        let name = "volcano_controller_job_to_pod_creation_latency_milliseconds_count ";
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().to_owned()
    };
    // A mark on a pod, or one that an earlier attempt has made.
    core.take_message(Message::Written(key.clone(), Effect::Watched(answer())));
    assert_eq!(samples(core), "0");
    core.take_message(Message::Written(key, Effect::PodMade(answer())));
    assert_eq!(samples(core), "1");
}
