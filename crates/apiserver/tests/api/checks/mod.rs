//! What clients of the API rely on, as checks that hold on Kubernetes and on the embedded plane alike.
//!
//! A check is a sentence and whether it holds. Where the two differ on purpose, the check says what each does
//! (`Tally::differs`), and docs/apiserver.md lists it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

mod applied;
mod crds;
mod differences;
mod discovery;
mod endpoint;
mod garbage;
mod hooks;
mod lists;
mod patches;
mod pods;
mod verbs;
mod watches;

use bytes::Bytes;
use futures::FutureExt as _;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Checks that there have to be, so that none gets lost.
const FEWEST: usize = 390;
/// How long something that happens by itself may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Which API server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each test program has one of them")]
pub enum Side {
    /// Ours.
    Embedded,
    /// kube-apiserver with kube-controller-manager.
    Kubernetes,
}

/// An API server, and how to ask it.
pub struct World {
    client: kube::Client,
    pub side: Side,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    pub fn reason(&self) -> &str {
        self.body["reason"].as_str().unwrap_or_default()
    }

    pub fn version(&self) -> String {
        self.body["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn uid(&self) -> String {
        self.body["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

impl World {
    pub fn new(client: kube::Client, side: Side) -> World {
        World { client, side }
    }

    /// Sends a request as it is.
    pub async fn raw(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> (u16, HeaderMap, Bytes) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self
            .client
            .send(request.body(Body::from(body)).unwrap())
            .await
            .unwrap();
        let (code, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (code, headers, body)
    }

    /// Asks with a JSON body.
    pub async fn ask(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Answer {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(body).unwrap()
        };
        let headers = [
            (CONTENT_TYPE.as_str(), content_type),
            (ACCEPT.as_str(), "application/json"),
        ];
        let (code, headers, bytes) = self.raw(method, path, &headers, bytes).await;
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
        Answer { code, headers, body }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, "application/json", &Value::Null)
            .await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::POST, path, "application/json", body).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::PUT, path, "application/json", body).await
    }

    pub async fn delete(&self, path: &str, options: &Value) -> Answer {
        self.ask(Method::DELETE, path, "application/json", options).await
    }

    pub async fn merge(&self, path: &str, patch: &Value) -> Answer {
        self.ask(Method::PATCH, path, "application/merge-patch+json", patch)
            .await
    }

    pub async fn strategic(&self, path: &str, patch: &Value) -> Answer {
        self.ask(
            Method::PATCH,
            path,
            "application/strategic-merge-patch+json",
            patch,
        )
        .await
    }

    pub async fn json_patch(&self, path: &str, patch: &Value) -> Answer {
        self.ask(Method::PATCH, path, "application/json-patch+json", patch)
            .await
    }

    pub async fn apply(&self, path: &str, configuration: &Value) -> Answer {
        self.ask(Method::PATCH, path, "application/apply-patch+yaml", configuration)
            .await
    }

    /// A namespace of its own.
    pub async fn namespace(&self, name: &str) -> String {
        let name = format!("conf-{name}");
        let answer = self
            .post("/api/v1/namespaces", &json!({"metadata": {"name": name}}))
            .await;
        assert_eq!(answer.code, 201, "{answer:?}");
        name
    }

    /// Starts a watch.
    pub async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    /// Starts a watch whose events have a form.
    pub async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::get(path)
            .header(ACCEPT, accept)
            .body(Body::empty())
            .unwrap();
        let answer = self.client.send(request).await.unwrap();
        Events {
            code: answer.status().as_u16(),
            body: answer.into_body(),
            buffer: Vec::new(),
        }
    }

    /// Waits until something holds.
    pub async fn eventually<F: Future<Output = bool>>(&self, holds: impl Fn() -> F) -> bool {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if holds().await {
                return true;
            }
            if tokio::time::Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, path: &str) -> bool {
        self.eventually(|| async { self.get(path).await.code == 404 })
            .await
    }
}

/// The events of a watch.
pub struct Events {
    pub code: u16,
    body: Body,
    buffer: Vec<u8>,
}

impl Events {
    /// The next one; `Null` when none comes in time or the watch is over.
    pub async fn next(&mut self) -> Value {
        let next = tokio::time::timeout(PATIENCE, self.line());
        next.await.unwrap_or_default()
    }

    /// Type and name of the next one.
    pub async fn told(&mut self) -> (String, String) {
        let event = self.next().await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }

    async fn line(&mut self) -> Value {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self
                    .buffer
                    .extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                _ => return Value::Null,
            }
        }
    }
}

/// What held and what did not.
pub struct Tally {
    side: Side,
    subject: &'static str,
    checks: usize,
    failures: Vec<String>,
}

impl Tally {
    /// One check.
    pub fn check(&mut self, sentence: &str, holds: bool, seen: impl std::fmt::Debug) {
        self.checks += 1;
        if !holds {
            let shown: String = format!("{seen:?}").chars().take(900).collect();
            self.failures
                .push(format!("{}: {sentence}\n      seen: {shown}", self.subject));
        }
    }

    /// A code and words of a message.
    pub fn refused(&mut self, sentence: &str, answer: &Answer, code: u16, words: &str) {
        self.check(
            sentence,
            answer.code == code && answer.message().contains(words),
            (answer.code, answer.message()),
        );
    }

    /// Something that the two do differently, on purpose.
    pub fn differs<T: PartialEq + std::fmt::Debug>(
        &mut self,
        sentence: &str,
        seen: T,
        kubernetes: T,
        embedded: T,
    ) {
        let expected = if self.side == Side::Embedded {
            embedded
        } else {
            kubernetes
        };
        self.check(sentence, seen == expected, seen);
    }

    /// Fails with everything that did not hold.
    pub fn conclude(self) {
        println!("{} checks, {} failed", self.checks, self.failures.len());
        assert!(
            self.failures.is_empty(),
            "{} of {} checks failed:\n  {}",
            self.failures.len(),
            self.checks,
            self.failures.join("\n  ")
        );
        assert!(self.checks >= FEWEST, "only {} checks", self.checks);
    }
}

/// Runs all checks.
pub async fn run(world: &World) -> Tally {
    let mut tally = Tally {
        side: world.side,
        subject: "",
        checks: 0,
        failures: Vec::new(),
    };
    macro_rules! subjects {
        ($($subject:ident),*) => {
            $(
                tally.subject = stringify!($subject);
                let checked = AssertUnwindSafe($subject::check(world, &mut tally)).catch_unwind().await;
                if checked.is_err() {
                    tally.check("all checks are made", false, "it broke off: see the panic above");
                }
            )*
        };
    }
    subjects!(
        verbs,
        lists,
        watches,
        patches,
        applied,
        crds,
        pods,
        garbage,
        discovery,
        hooks,
        differences
    );
    tally
}
