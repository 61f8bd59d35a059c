//! Both forms in which the API server writes the built-in kinds mean the same to the scheduler.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

mod full;
mod stage;

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use volcano_api::core;
use volcano_api::protobuf;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;
use volcano_runtime::client::{self, Format};
use volcano_runtime::metrics::Metrics;
use volcano_runtime::watch::Object;
use volcano_runtime::watch::kinds::Scheduling;
use volcano_runtime::watch::{Feed, watch};
use volcano_testcluster::{Cluster, Options, objects};

const TIMEOUT: Duration = Duration::from_secs(60);
const NAMESPACE: &str = "both";

#[derive(Deserialize)]
struct List<T> {
    metadata: Version,
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_reads_the_same_in_both_forms() {
    // Without controllers, so that what was written stays.
    let cluster = Cluster::start(Options {
        controllers: false,
        ..Options::default()
    })
    .unwrap();
    let kube = cluster.client().unwrap();
    stage::set(&kube, NAMESPACE).await;
    let client = client::Client::connect(&client::Options {
        kubeconfig: Some(cluster.kubeconfig_path()),
        ..client::Options::default()
    })
    .await
    .unwrap();

    let mut missing = BTreeSet::new();
    macro_rules! check {
        ($($type:ident)*) => {$(
            let json = lists_agree::<core::$type>(&kube).await;
            missing.extend(not_covered(&json).into_iter().map(|path| format!("{}{path}", stringify!($type))));
            watch_agrees(&client, json).await;
        )*};
    }
    check! {
        Pod Node Namespace PersistentVolumeClaim PersistentVolume ResourceQuota StorageClass CsiNode
        PodDisruptionBudget PriorityClass
    }
    // Metadata is one type and one table for all kinds; the pods' is whole.
    missing.retain(|path| path.starts_with("Pod.") || !path.contains(".metadata."));
    assert_eq!(
        missing,
        BTreeSet::new(),
        "no object has these, so nothing was compared"
    );
    changes_come(&kube, &client).await;
    refusals_are_readable(&client).await;
}

/// One version of a list in both forms.
async fn lists_agree<T>(kube: &kube::Client) -> Vec<T>
where
    T: Object<Scheduling> + PartialEq + std::fmt::Debug,
{
    let path = T::RESOURCE.all();
    let bytes = get(kube, &path, "application/json").await;
    let json: List<T> = serde_json::from_slice(&bytes).unwrap();
    let exact = format!(
        "{path}?resourceVersion={}&resourceVersionMatch=Exact",
        json.metadata.resource_version
    );
    let bytes = get(kube, &exact, protobuf::MEDIA_TYPE).await;
    let table = T::PROTOBUF.expect("it is a built-in kind").list;
    let protobuf: List<T> = protobuf::from_slice(table, &bytes).unwrap();
    assert_eq!(protobuf.items, json.items, "{path}");
    assert_eq!(protobuf.metadata.resource_version, json.metadata.resource_version);
    assert!(!json.items.is_empty(), "{path}: nothing was compared");
    json.items
}

async fn get(kube: &kube::Client, path: &str, media_type: &str) -> Vec<u8> {
    let request = Request::get(path).header(ACCEPT, media_type);
    let answer = kube.send(request.body(Body::empty()).unwrap()).await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    assert_eq!(answer.headers()[CONTENT_TYPE], media_type, "{path}");
    answer.into_body().collect().await.unwrap().to_bytes().to_vec()
}

/// Fields that no object has.
fn not_covered<T: Object<Scheduling> + Serialize>(objects: &[T]) -> Vec<String> {
    let wanted = full::paths(&serde_json::to_value(full::full::<T>()).unwrap());
    let there: BTreeSet<String> = objects
        .iter()
        .flat_map(|object| full::paths(&serde_json::to_value(object).unwrap()))
        .collect();
    wanted.difference(&there).cloned().collect()
}

/// The scheduler's own watch is answered in protobuf, and hands on what a list in JSON has.
async fn watch_agrees<T: Object<Scheduling>>(client: &client::Client, expected: Vec<T>) {
    let path = format!("{}?watch=true", T::RESOURCE.all());
    let stream = client.stream(&path, T::PROTOBUF).await.unwrap();
    assert!(matches!(stream.format(), Format::Protobuf(_)), "{path}");

    let (sender, mut feed) = mpsc::channel(16);
    let watching = tokio::spawn(watch::<Scheduling, T>(
        client.clone(),
        Metrics::default().process().clone(),
        sender,
    ));
    let deltas = listed(&mut feed).await;
    watching.abort();
    let text = |delta: &Delta| format!("{delta:?}");
    let got: BTreeSet<_> = deltas.iter().map(text).collect();
    let wanted: BTreeSet<_> = expected
        .into_iter()
        .map(|object| text(&object.change()))
        .collect();
    assert_eq!(got, wanted, "{path}");
}

async fn listed(feed: &mut mpsc::Receiver<Feed>) -> Vec<Delta> {
    let mut deltas = Vec::new();
    loop {
        match next(feed).await {
            Feed::Changes(changes) => deltas.extend(changes),
            Feed::Listed(..) => return deltas,
            Feed::Trouble(_, line) => unreachable!("{line}"),
        }
    }
}

async fn next(feed: &mut mpsc::Receiver<Feed>) -> Feed {
    let next = tokio::time::timeout(TIMEOUT, feed.recv()).await;
    next.expect("something comes in time").expect("the watch goes on")
}

async fn next_changes(feed: &mut mpsc::Receiver<Feed>) -> Vec<Delta> {
    match next(feed).await {
        Feed::Changes(changes) => changes,
        other => unreachable!("{other:?}"),
    }
}

/// What happens after the list comes as well: creating, changing, deleting.
async fn changes_come(kube: &kube::Client, client: &client::Client) {
    let (sender, mut feed) = mpsc::channel(16);
    let watching = tokio::spawn(watch::<Scheduling, core::PriorityClass>(
        client.clone(),
        Metrics::default().process().clone(),
        sender,
    ));
    listed(&mut feed).await;
    let classes = objects::path("scheduling.k8s.io/v1", "", "priorityclasses", "");
    let one = format!("{classes}/changing");
    let class = json!({"metadata": {"name": "changing"}, "value": 5});
    objects::create(kube, &classes, &class).await.unwrap();
    assert_eq!(label_of(&next_changes(&mut feed).await), None);
    let step = json!({"metadata": {"labels": {"step": "two"}}});
    objects::merge_patch(kube, &one, &step).await.unwrap();
    assert_eq!(label_of(&next_changes(&mut feed).await).as_deref(), Some("two"));
    objects::delete(kube, &one).await.unwrap();
    let gone = format!("{:?}", next_changes(&mut feed).await);
    let expected = Delta::gone(Kind::PriorityClass, "", "changing");
    assert_eq!(gone, format!("{:?}", [expected]));
    watching.abort();
}

/// The label `step` of the one class that has changed.
fn label_of(changes: &[Delta]) -> Option<String> {
    match changes {
        [Delta::PriorityClass(class)] if class.metadata.name == "changing" => {
            class.metadata.labels.get("step").cloned()
        }
        other => unreachable!("{other:?}"),
    }
}

/// The status of a refusal is written in protobuf as well.
async fn refusals_are_readable(client: &client::Client) {
    let nonsense = "/api/v1/pods?watch=true&resourceVersion=nonsense";
    let error = client.stream(nonsense, Some(protobuf::POD)).await.err().unwrap();
    let expected = r#"resourceVersion: Invalid value: "nonsense""#;
    assert!(error.to_string().starts_with(expected), "{error}");
    let error = client
        .list::<Value>("/api/v1/namespaces/both/pods/missing", Some(protobuf::POD))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "pods \"missing\" not found (404 NotFound)");
}
