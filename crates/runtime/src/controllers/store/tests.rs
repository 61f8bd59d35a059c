//! What is known after changes, answers and lists, in whatever order they come.

use super::*;
use serde_json::{Value, json};
use volcano_api::batch::Job;
use volcano_api::names::kinds;

fn store() -> Store {
    let options = pod_group::Options {
        schedulers: vec!["volcano".to_owned()],
        inherit_owner_annotations: true,
    };
    Store::new(options, [Kind::Job, Kind::Pod], crate::clock::Clock::default())
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Box<T> {
    Box::new(serde_json::from_value(value).unwrap())
}

/// A pod of the Job `ns/j`.
fn pod(name: &str, uid: &str, version: u64, phase: &str) -> Box<Pod> {
    let owner = json!({"apiVersion": kinds::JOB.api_version(), "kind": "Job", "name": "j", "uid": "job", "controller": true});
    read(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string(),
            "ownerReferences": [owner], "labels": {"big": "label"},
            "annotations": {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "t", "a/b": "not read"}},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]},
        "status": {"phase": phase},
    }))
}

/// A pod that nobody manages.
fn bare(name: &str, scheduler: &str, group: &str, version: u64) -> Box<Pod> {
    read(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("u-{name}"), "resourceVersion": version.to_string(),
            "annotations": {"scheduling.k8s.io/group-name": group}},
        "spec": {"schedulerName": scheduler, "nodeName": "n"},
    }))
}

fn job(version: u64) -> Box<Job> {
    read(
        json!({"metadata": {"namespace": "ns", "name": "j", "uid": "job", "resourceVersion": version.to_string()},
        "spec": {"volumes": [{"mountPath": "/d", "volumeClaimName": "c"}]}}),
    )
}

fn gone(kind: Kind, name: &str, version: u64) -> Change {
    let spot = Spot {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        version,
    };
    Change::Gone(kind, spot)
}

fn told(store: &mut Store, changes: Vec<Change>) {
    store.take(Feed::Changes(changes));
}

fn answered(store: &mut Store, change: Change) {
    store.answered(Answer::Object(Box::new(change)));
}

fn leaves(store: &mut Store, name: &str, uid: &str, left: Option<Change>) {
    store.answered(Answer::Leaving {
        kind: Kind::Pod,
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        left: left.map(Box::new),
    });
}

/// `name phase` of the Job's pods; `-` before those that are leaving.
fn pods(store: &Store) -> Vec<String> {
    let entry = store.job("ns/j");
    let pods = entry.into_iter().flat_map(JobEntry::pods);
    let shown = pods.map(|pod| {
        let leaving = if pod.metadata.deletion_timestamp.is_some() {
            "-"
        } else {
            ""
        };
        format!("{leaving}{} {}", pod.metadata.name, pod.status.phase.as_str())
    });
    shown.collect()
}

fn changed(store: &mut Store) -> Vec<Key> {
    store.take_changed().into_iter().collect()
}

#[test]
fn what_was_written_is_known_before_the_watch_tells() {
    let mut store = store();
    answered(&mut store, Change::Pod(pod("p", "u1", 10, "Pending")));
    assert_eq!(pods(&store), ["p Pending"]);
    assert_eq!(changed(&mut store), [Key::Job("ns/j".to_owned())]);
    told(&mut store, vec![Change::Pod(pod("p", "u1", 10, "Pending"))]);
    assert_eq!(changed(&mut store), [], "no news");
    told(&mut store, vec![gone(Kind::Pod, "p", 12)]);
    assert_eq!(pods(&store), [""; 0]);
}

#[test]
fn an_answer_that_comes_late_is_old_news() {
    let mut store = store();
    told(
        &mut store,
        vec![
            Change::Pod(pod("p", "u1", 10, "Pending")),
            gone(Kind::Pod, "p", 12),
        ],
    );
    answered(&mut store, Change::Pod(pod("p", "u1", 10, "Pending")));
    assert_eq!(pods(&store), [""; 0], "it was made and deleted meanwhile");
    told(&mut store, vec![Change::Pod(pod("p", "u2", 20, "Pending"))]);
    told(&mut store, vec![gone(Kind::Pod, "p", 12)]);
    told(&mut store, vec![Change::Pod(pod("p", "u1", 11, "Running"))]);
    assert_eq!(pods(&store), ["p Pending"], "of two states the newer one counts");
}

#[test]
fn a_deletion_is_asked_for_once() {
    let mut store = store();
    told(&mut store, vec![Change::Pod(pod("p", "u1", 10, "Running"))]);
    changed(&mut store);
    leaves(&mut store, "p", "another", None);
    assert_eq!(pods(&store), ["p Running"], "another one was meant");
    leaves(&mut store, "p", "u1", None);
    assert_eq!(pods(&store), ["-p Running"]);
    assert_eq!(changed(&mut store), [Key::Job("ns/j".to_owned())]);
    told(&mut store, vec![gone(Kind::Pod, "p", 12)]);
    assert_eq!(pods(&store), [""; 0]);
    leaves(&mut store, "p", "u1", None);
    assert_eq!(pods(&store), [""; 0], "the watch was faster");
}

#[test]
fn a_new_list_takes_away_what_it_lacks_and_what_is_older() {
    let mut store = store();
    let old = Change::Pod(pod("old", "u1", 5, "Running"));
    let kept = Change::Pod(pod("kept", "u2", 6, "Running"));
    told(&mut store, vec![old, kept]);
    answered(&mut store, Change::Pod(pod("new", "u3", 30, "Pending")));
    let names = [("ns".to_owned(), "kept".to_owned())];
    let listed = Listed {
        names: names.into_iter().collect(),
        version: "20".to_owned(),
    };
    store.take(Feed::Listed(Kind::Pod, Some(listed)));
    assert_eq!(
        pods(&store),
        ["kept Running", "new Pending"],
        "what was made after the list stays"
    );
    assert_eq!(store.missing().iter().collect::<Vec<_>>(), [&Kind::Job]);
}

#[test]
fn only_what_matters_is_kept_of_pods_and_told() {
    let mut store = store();
    told(&mut store, vec![Change::Pod(pod("p", "u1", 10, "Pending"))]);
    changed(&mut store);
    let known = store.job("ns/j").unwrap().pods().next().unwrap();
    assert!(known.spec.containers.is_empty() && known.metadata.labels.is_empty());
    assert_eq!(known.metadata.annotations.len(), 2);
    let mut bound = pod("p", "u1", 11, "Pending");
    bound.spec.node_name = "n".to_owned();
    told(&mut store, vec![Change::Pod(bound)]);
    assert_eq!(changed(&mut store), [], "where it is placed does not matter");
    told(&mut store, vec![Change::Pod(pod("p", "u1", 12, "Running"))]);
    assert_eq!(changed(&mut store), [Key::Job("ns/j".to_owned())]);
}

#[test]
fn pods_without_a_job_are_kept_if_they_are_ours_to_group() {
    let cases = [
        (bare("waits", "volcano", "", 1), true),
        (bare("named", "volcano", "podgroup-u-named", 1), true),
        (bare("of-others", "volcano", "elsewhere", 1), false),
        (bare("foreign", "default-scheduler", "", 1), false),
    ];
    for (pod, is_kept) in cases {
        let mut store = store();
        let name = pod.metadata.name.clone();
        told(&mut store, vec![Change::Pod(pod)]);
        let gang = format!("ns/podgroup-u-{name}");
        assert_eq!(store.gang(&gang).is_some(), is_kept, "{name}");
        assert_eq!(changed(&mut store).len(), usize::from(is_kept), "{name}");
        told(&mut store, vec![gone(Kind::Pod, &name, 2)]);
        assert!(store.gang(&gang).is_none() && store.places.is_empty(), "{name}");
    }
    let mut store = store();
    told(&mut store, vec![Change::Pod(bare("p", "volcano", "", 1))]);
    told(
        &mut store,
        vec![Change::Pod(bare("p", "volcano", "elsewhere", 2))],
    );
    assert!(store.places.is_empty(), "somebody gave it another group");
}

/// A ReplicaSet whose template names this scheduler.
fn replica_set(scheduler: &str, replicas: i32) -> Change {
    let workload = json!({
        "metadata": {"namespace": "ns", "name": "rs", "uid": "rs", "resourceVersion": "1"},
        "spec": {"replicas": replicas, "template": {"spec": {"schedulerName": scheduler}}},
    });
    Change::Workload(Kind::ReplicaSet, read(workload))
}

/// How many pods the maker of the gang's pods is to have, if it is known.
fn replicas(store: &Store, gang: &str) -> Option<i32> {
    store.gang(gang)?.workload.as_ref()?.replicas
}

#[test]
fn a_workload_whose_pods_a_webhook_gave_to_us_is_known_while_there_is_something_of_it() {
    let gang = "ns/podgroup-rs";
    let mut store = store();
    told(&mut store, vec![replica_set("default-scheduler", 1)]);
    assert!(
        store.gang(gang).is_none() && store.workloads.is_empty(),
        "another scheduler places its pods"
    );
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": true});
    let member = json!({
        "metadata": {"namespace": "ns", "name": "p", "uid": "p", "resourceVersion": "2", "ownerReferences": [owner]},
        "spec": {"schedulerName": "volcano"},
    });
    told(
        &mut store,
        vec![Change::Pod(read(member)), replica_set("default-scheduler", 0)],
    );
    let group =
        json!({"metadata": {"namespace": "ns", "name": "podgroup-rs", "uid": "g", "resourceVersion": "3"}});
    told(
        &mut store,
        vec![Change::PodGroup(read(group)), gone(Kind::Pod, "p", 4)],
    );
    assert_eq!(replicas(&store, gang), Some(0), "its PodGroup is to go");
    told(&mut store, vec![replica_set("default-scheduler", 0)]);
    assert_eq!(replicas(&store, gang), Some(0), "while it is there");
    let end = vec![
        gone(Kind::PodGroup, "podgroup-rs", 5),
        replica_set("default-scheduler", 0),
    ];
    told(&mut store, end);
    assert!(
        store.gang(gang).is_none() && store.workloads.is_empty(),
        "nothing of it is left here"
    );
    told(&mut store, vec![replica_set("volcano", 0)]);
    assert_eq!(replicas(&store, gang), Some(0), "one of ours is always known");
}

#[test]
fn a_job_is_looked_at_when_its_claim_comes() {
    let mut store = store();
    told(&mut store, vec![Change::Job(job(1))]);
    changed(&mut store);
    let known = store.job("ns/j").unwrap().job().unwrap().clone();
    let (there, missing) = store.claims_for(&known);
    assert_eq!((there.len(), &missing[..]), (0, &["ns/c".to_owned()][..]));
    store.wait_for_claims("ns/j", missing);
    let claim = Spot {
        namespace: "ns".to_owned(),
        name: "c".to_owned(),
        version: 3,
    };
    told(&mut store, vec![Change::Claim(claim)]);
    assert_eq!(changed(&mut store), [Key::Job("ns/j".to_owned())]);
    assert_eq!(store.claims_for(&known).0.into_iter().collect::<Vec<_>>(), ["c"]);
    store.wait_for_claims("ns/j", vec!["ns/c".to_owned()]);
    told(&mut store, vec![gone(Kind::Job, "j", 9)]);
    assert!(
        store.claim_users.is_empty(),
        "a Job that is gone waits for nothing"
    );
}

#[test]
fn orders_find_their_job_or_queue() {
    let mut store = store();
    let command = |name: &str, api_version: &str, kind: &str| {
        Change::Command(read(json!({
            "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "4"},
            "action": "AbortJob",
            "target": {"apiVersion": api_version, "kind": kind, "name": "j"},
        })))
    };
    told(
        &mut store,
        vec![
            command("a", "batch.volcano.sh/v1alpha1", "Job"),
            command("b", "scheduling.volcano.sh/v1beta1", "Queue"),
            command("c", "batch/v1", "Job"),
        ],
    );
    let keys = [Key::Job("ns/j".to_owned()), Key::Queue("j".to_owned())];
    assert_eq!(changed(&mut store), keys);
    assert_eq!(store.job("ns/j").unwrap().commands().count(), 1);
    store.answered(Answer::Leaving {
        kind: Kind::Command,
        namespace: "ns".to_owned(),
        name: "a".to_owned(),
        uid: "a".to_owned(),
        left: None,
    });
    assert!(store.job("ns/j").is_none(), "nothing of it is left");
    told(&mut store, vec![gone(Kind::Command, "b", 5)]);
    assert!(store.queues().order("j").is_none());
}

#[test]
fn series_and_memories_go_with_the_job() {
    let mut store = store();
    told(&mut store, vec![Change::Job(job(1))]);
    told(&mut store, vec![gone(Kind::Job, "j", 1)]);
    assert_eq!(store.take_gone_jobs(), [("ns/j".to_owned(), String::new())]);
    assert!(store.job("ns/j").is_none());
}

/// What happened to one pod name at the API server.
#[derive(Clone)]
enum Event {
    Made(u64, u64),
    Gone(u64),
}

/// Own writes, the writes of others, a watch that lags and answers that come late: at no time does the store lack a pod
/// that an own write made, unless something says that it is gone; in the end it is as the API server has it.
#[test]
fn whatever_the_order_nothing_is_made_twice() {
    for seed in 0..2_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut store = store();
        let (mut version, mut there) = (0, false);
        let mut watch: std::collections::VecDeque<Event> = Default::default();
        let mut late: Vec<(u64, u64)> = Vec::new();
        for _ in 0..60 {
            match random.u8(0..5) {
                // An own write: only when the store says that the name is free.
                0 if pods(&store).is_empty() && late.is_empty() => {
                    assert!(!there || !watch.is_empty(), "seed {seed}: made twice");
                    if !there {
                        version += 1;
                        there = true;
                        watch.push_back(Event::Made(version, version));
                        late.push((version, version));
                    }
                }
                // Somebody deletes it.
                1 if there => {
                    version += 1;
                    there = false;
                    watch.push_back(Event::Gone(version));
                }
                2 | 3 => match watch.pop_front() {
                    Some(Event::Made(uid, at)) => {
                        told(
                            &mut store,
                            vec![Change::Pod(pod("p", &uid.to_string(), at, "Pending"))],
                        );
                    }
                    Some(Event::Gone(at)) => told(&mut store, vec![gone(Kind::Pod, "p", at)]),
                    None => {}
                },
                _ => {
                    if let Some((uid, at)) = late.pop() {
                        let is_known = !watch
                            .iter()
                            .any(|event| matches!(event, Event::Made(_, made) if *made == at));
                        answered(&mut store, Change::Pod(pod("p", &uid.to_string(), at, "Pending")));
                        assert!(
                            is_known || !pods(&store).is_empty(),
                            "seed {seed}: own write forgotten"
                        );
                    }
                }
            }
        }
        for event in watch {
            match event {
                Event::Made(uid, at) => {
                    told(
                        &mut store,
                        vec![Change::Pod(pod("p", &uid.to_string(), at, "Pending"))],
                    );
                }
                Event::Gone(at) => told(&mut store, vec![gone(Kind::Pod, "p", at)]),
            }
        }
        for (uid, at) in late {
            answered(&mut store, Change::Pod(pod("p", &uid.to_string(), at, "Pending")));
        }
        assert_eq!(!pods(&store).is_empty(), there, "seed {seed}");
    }
}

#[test]
fn the_end_of_a_pod_that_cannot_be_marked_any_more_says_nothing() {
    let mut store = store();
    told(
        &mut store,
        vec![Change::Job(job(1)), Change::Pod(pod("p", "u", 2, "Failed"))],
    );
    changed(&mut store);
    let gone = |uid: &str| Answer::PodGone {
        namespace: "ns".to_owned(),
        name: "p".to_owned(),
        uid: uid.to_owned(),
    };
    store.answered(gone("another"));
    assert_eq!(pods(&store), ["p Failed"]);
    store.answered(gone("u"));
    assert_eq!(pods(&store), ["-p Failed"]);
    let annotations = &store
        .job("ns/j")
        .unwrap()
        .pods()
        .next()
        .unwrap()
        .metadata
        .annotations;
    assert_eq!(annotations["volcano.sh/controller-out-of-sync"], "true");
    assert_eq!(changed(&mut store), [Key::Job("ns/j".to_owned())]);
}

#[test]
fn what_is_known_of_the_end_of_a_pod_stays_known() {
    let mut store = store();
    told(
        &mut store,
        vec![Change::Job(job(1)), Change::Pod(pod("p", "u", 10, "Running"))],
    );
    store.answered(Answer::PodGone {
        namespace: "ns".to_owned(),
        name: "p".to_owned(),
        uid: "u".to_owned(),
    });
    told(&mut store, vec![Change::Pod(pod("p", "u", 11, "Failed"))]);
    let known = |store: &Store| {
        let pod = store.job("ns/j").unwrap().pods().next().unwrap().clone();
        let marks = &pod.metadata.annotations;
        (
            pods(store).join(" "),
            marks.contains_key("volcano.sh/controller-out-of-sync"),
        )
    };
    assert_eq!(
        known(&store),
        ("-p Failed".to_owned(), true),
        "the change is from before its end"
    );
    told(&mut store, vec![Change::Pod(pod("p", "u2", 20, "Pending"))]);
    assert_eq!(
        known(&store),
        ("p Pending".to_owned(), false),
        "another one of its name"
    );
}

fn queue(name: &str, version: u64) -> Change {
    let version = version.to_string();
    Change::Queue(read(
        json!({"metadata": {"name": name, "uid": name, "resourceVersion": version}}),
    ))
}

#[test]
fn a_job_is_looked_at_when_its_queue_comes() {
    let mut store = store();
    told(&mut store, vec![Change::Job(job(1)), queue("early", 2)]);
    for kind in [Kind::Job, Kind::Pod] {
        store.take(Feed::Listed(kind, None));
    }
    changed(&mut store);
    told(&mut store, vec![queue("another", 3)]);
    assert_eq!(changed(&mut store), [Key::Queue("another".to_owned())]);
    told(&mut store, vec![queue("default", 4)]);
    assert!(changed(&mut store).contains(&Key::Job("ns/j".to_owned())));
    told(&mut store, vec![queue("default", 5)]);
    assert_eq!(
        changed(&mut store),
        [Key::Queue("default".to_owned())],
        "it was there"
    );
}

#[test]
fn who_begins_to_lead_looks_at_orders_for_queues_that_are_not_there() {
    let mut store = store();
    let target = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "gone"});
    let command = json!({"metadata": {"namespace": "ns", "name": "c", "resourceVersion": "4"},
        "action": "OpenQueue", "target": target});
    told(&mut store, vec![Change::Command(read(command)), queue("q", 5)]);
    let all: Vec<_> = store.all().into_iter().collect();
    assert_eq!(all, [Key::Queue("gone".to_owned()), Key::Queue("q".to_owned())]);
}

#[test]
fn a_new_leader_waits_for_what_the_api_server_has() {
    let mut store = store();
    told(
        &mut store,
        vec![Change::Job(job(10)), Change::Pod(pod("p", "u", 11, "Running"))],
    );
    let read = |store: &mut Store, job, pods| {
        let entry = store.job_mut("ns/j").unwrap();
        entry.footing.read(volcano_reconcile::job::Reading { job, pods });
    };
    read(&mut store, 12, None);
    assert!(store.is_behind("ns/j"));
    told(&mut store, vec![Change::Job(job(12))]);
    assert!(!store.is_behind("ns/j"));
    read(&mut store, 12, Some(15));
    assert!(store.is_behind("ns/j"));
    told(
        &mut store,
        vec![Change::Pod(bare("other", "default-scheduler", "", 16))],
    );
    assert!(!store.is_behind("ns/j"), "the pod of version 15 came and went");
    read(&mut store, 12, Some(20));
    let listed = Listed {
        names: Default::default(),
        version: "30".to_owned(),
    };
    store.take(Feed::Listed(Kind::Pod, Some(listed)));
    assert!(!store.is_behind("ns/j"), "a newer list lacks it");
    read(&mut store, 99, None);
    store.forget_memories();
    assert!(!store.is_behind("ns/j"), "that was another term");
}

#[test]
fn a_name_that_others_have_is_known_until_it_is_free() {
    type Free = fn(&mut Store);
    let frees: [(&str, Free); 3] = [
        ("its pod is gone", |store| {
            told(store, vec![gone(Kind::Pod, "p", 9)])
        }),
        ("its pod is in no list", |store| {
            let listed = Listed {
                version: "9".to_owned(),
                ..Listed::default()
            };
            store.take(Feed::Listed(Kind::Pod, Some(listed)));
        }),
        ("it was made after all", |store| {
            answered(store, Change::Pod(pod("p", "u", 9, "Pending")));
        }),
    ];
    let now = Instant::now();
    for (name, free) in frees {
        let mut store = store();
        assert!(!store.put_stranger("ns/j", "p", now), "there is no such Job");
        told(&mut store, vec![Change::Job(job(1))]);
        changed(&mut store);
        assert!(store.put_stranger("ns/j", "p", now), "{name}");
        assert!(!store.put_stranger("ns/j", "p", now), "{name}: it is known");
        let names = |store: &Store, job: &str, at: Instant| {
            let names = store.strangers(job, at).map(|(name, _)| name.to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&store, "ns/j", now), ["p"]);
        assert_eq!(names(&store, "ns/jj", now), [""; 0]);
        let later = now + std::time::Duration::from_secs(600);
        assert_eq!(names(&store, "ns/j", later), [""; 0], "it is asked for again");
        free(&mut store);
        assert_eq!(names(&store, "ns/j", now), [""; 0], "{name}");
        assert_eq!(changed(&mut store), [Key::Job("ns/j".to_owned())], "{name}");
    }
}
