//! An API server for tests that answers as it is told.

use crate::client::{Client, Options};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server says to a request.
pub enum Say {
    /// This status and body.
    Status(u16, Value),
    /// This status, and when to come again.
    Busy(u16, &'static str),
    /// These events of a watch, all at once, and the end of it.
    Events(Vec<Value>),
    /// It does what it is asked, and the answer gets lost.
    CutOff,
    /// Nothing, for as long as anybody waits.
    Nothing,
}

#[derive(Default)]
struct Script {
    /// By the start of a request, in the order they are looked at.
    says: Vec<(String, VecDeque<Say>)>,
    heard: Vec<(String, Value)>,
}

/// An API server with a script.
#[derive(Clone, Default)]
pub struct Server(Arc<Mutex<Script>>);

impl Server {
    /// What it says to requests that start like this, one after the other. The last is said again and again.
    pub fn says(self, request: &str, says: impl IntoIterator<Item = Say>) -> Self {
        let says = says.into_iter().collect();
        self.0.lock().unwrap().says.push((request.to_owned(), says));
        self
    }

    /// A client of the server, which runs from now on.
    pub async fn start(&self) -> Client {
        let server = self.clone();
        let app = Router::new().fallback(move |request| server.clone().answer(request));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let options = Options {
            master: Some(format!("http://{address}")),
            ..Options::default()
        };
        Client::connect(&options).await.unwrap()
    }

    async fn answer(self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let content = parts.headers.get("content-type");
        let content = content
            .and_then(|content| content.to_str().ok())
            .unwrap_or_default();
        let kind = match content {
            "application/merge-patch+json" => " merge",
            "application/strategic-merge-patch+json" => " strategic",
            _ => "",
        };
        let text = format!("{} {}{kind}", parts.method, parts.uri);
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        self.say(text, body).response().await
    }

    fn say(&self, text: String, body: Value) -> Say {
        let mut script = self.0.lock().unwrap();
        let says = script.says.iter_mut().find(|(start, _)| text.starts_with(start));
        let say = match says {
            Some((_, says)) if says.len() > 1 => says.pop_front(),
            Some((_, says)) => says.front().map(Say::again),
            None => None,
        };
        script.heard.push((text, body));
        say.unwrap_or(Say::Status(404, Value::Null))
    }

    /// The requests so far, without their bodies.
    pub fn heard(&self) -> Vec<String> {
        let script = self.0.lock().unwrap();
        script.heard.iter().map(|(text, _)| text.clone()).collect()
    }

    /// The body of the first request that starts like this.
    pub fn body(&self, request: &str) -> Value {
        let mut found = self.bodies(request).into_iter();
        found.next().unwrap_or_else(|| panic!("no {request}"))
    }

    /// The bodies of the requests that start like this.
    pub fn bodies(&self, request: &str) -> Vec<Value> {
        let script = self.0.lock().unwrap();
        let found = script.heard.iter().filter(|(text, _)| text.starts_with(request));
        found.map(|(_, body)| body.clone()).collect()
    }

    /// Waits until so many requests that start like this have come.
    pub async fn wait_for(&self, request: &str, times: usize) {
        for _ in 0..500 {
            let heard = self.heard();
            if heard.iter().filter(|text| text.starts_with(request)).count() >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{request} did not come {times} times, but {:?}", self.heard());
    }
}

impl Say {
    fn again(&self) -> Say {
        match self {
            Say::Status(status, body) => Say::Status(*status, body.clone()),
            Say::Busy(status, after) => Say::Busy(*status, after),
            Say::Events(events) => Say::Events(events.clone()),
            Say::CutOff => Say::CutOff,
            Say::Nothing => Say::Nothing,
        }
    }

    async fn response(self) -> Response {
        match self {
            Say::Status(status, body) => {
                let body = match (status, body) {
                    (200..300, body) => body,
                    (code, Value::Null) => json!({"kind": "Status", "code": code, "message": "no"}),
                    (_, body) => body,
                };
                Response::builder()
                    .status(status)
                    .body(Body::from(body.to_string()))
            }
            Say::Busy(status, after) => Response::builder()
                .status(status)
                .header("retry-after", after)
                .body(Body::empty()),
            Say::Events(events) => {
                let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
                Response::builder().status(200).body(Body::from(lines))
            }
            Say::CutOff => {
                let broken = futures::stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("cut off"))]);
                Response::builder().status(201).body(Body::from_stream(broken))
            }
            Say::Nothing => std::future::pending().await,
        }
        .unwrap()
    }
}
