//! What whoever has the logs is asked for.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Method, Request};
use serde_json::json;
use std::sync::{Arc, Mutex};
use volcano_apiserver::{LogRequest, LogSource, Options, Plane};

/// Has nothing, and notes what it was asked for.
#[derive(Default)]
struct Notes(Mutex<Vec<LogRequest>>);

impl LogSource for Notes {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<BoxStream<'static, Bytes>, String>> {
        self.0.lock().unwrap().push(request);
        Box::pin(async { Ok(stream::empty().boxed()) })
    }
}

#[tokio::test]
async fn a_log_can_be_asked_for_from_a_time_on() {
    let now: jiff::Timestamp = "2026-01-01T12:00:00.5Z".parse().unwrap();
    let options = Options {
        clock: Some(Arc::new(move || now)),
        ..Options::default()
    };
    let plane = Plane::start(options).await.unwrap();
    let notes = Arc::new(Notes::default());
    plane.set_logs(notes.clone());
    let client = plane.client();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}});
    let request = Request::post(pods)
        .header("content-type", "application/json")
        .body(pod.to_string().into_bytes())
        .unwrap();
    client.request::<serde_json::Value>(request).await.unwrap();
    let ask = async |query: &str| {
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("{pods}/p/log?{query}"));
        client.request_text(request.body(Vec::new()).unwrap()).await
    };
    for (query, since, limit) in [
        ("", None, None),
        ("sinceSeconds=7&limitBytes=9", Some(7), Some(9)),
        ("sinceTime=2026-01-01T11%3A59%3A00Z", Some(61), None),
        ("sinceTime=2027-01-01T00%3A00%3A00Z", Some(0), None),
    ] {
        ask(query).await.unwrap();
        let asked = notes.0.lock().unwrap().pop().unwrap();
        assert_eq!(
            (asked.since_seconds, asked.limit_bytes),
            (since, limit),
            "{query}"
        );
    }
    let refused = ask("sinceTime=yesterday").await.unwrap_err().to_string();
    assert!(refused.contains("sinceTime"), "{refused}");
}
