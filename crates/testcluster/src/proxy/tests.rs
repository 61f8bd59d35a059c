use super::*;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What the server behind the proxy was asked.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    line: String,
    token: Option<String>,
    body: String,
}

/// A stand-in for the API server: keeps what it is asked, answers at once, and streams to watches without end.
struct Server {
    proxy: Proxy,
    asked: Arc<Mutex<Vec<Asked>>>,
    _directory: tempfile::TempDir,
}

impl Server {
    async fn start() -> Server {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let keep = asked.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let keep = keep.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(&keep, request));
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        let mut config = kube::Config::new(url.parse().unwrap());
        config.auth_info.token = Some("secret".to_owned().into());
        config.default_retry = false;
        let directory = tempfile::tempdir().unwrap();
        Server {
            proxy: Proxy::in_front_of(config, directory.path()).unwrap(),
            asked,
            _directory: directory,
        }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Sends a request through the proxy.
    async fn send(&self, method: &str, path: &str) -> Result<Response<kube::client::Body>, kube::Error> {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(kube::client::Body::from(b"hello".to_vec())).unwrap();
        self.proxy.client().unwrap().send(request).await
    }

    async fn status(&self, method: &str, path: &str) -> u16 {
        self.send(method, path).await.unwrap().status().as_u16()
    }
}

async fn answer(
    keep: &Mutex<Vec<Asked>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let line = format!("{} {}", request.method(), request.uri());
    let token = request.headers().get("authorization");
    let token = token.map(|value| value.to_str().unwrap().to_owned());
    let watch = line.contains("watch=true");
    let body = request.into_body().collect().await?.to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    keep.lock().unwrap().push(Asked { line, token, body });
    let body = if watch {
        // One event at once, and never an end.
        let event = stream::iter([Ok(Frame::data(Bytes::from_static(b"{\"type\":\"ADDED\"}\n")))]);
        StreamBody::new(futures::StreamExt::chain(event, stream::pending())).boxed_unsync()
    } else {
        let whole = stream::iter([Ok(Frame::data(Bytes::from_static(b"{\"kind\":\"Pod\"}")))]);
        StreamBody::new(whole).boxed_unsync()
    };
    Ok(Response::new(body))
}

/// Everything until the stream ends, and whether it was cut.
async fn read(response: Response<kube::client::Body>) -> (String, bool) {
    let mut body = response.into_body();
    let mut text = Vec::new();
    loop {
        match within(body.frame()).await {
            Some(Ok(frame)) => text.extend(frame.into_data().unwrap_or_default()),
            Some(Err(_)) => return (String::from_utf8(text).unwrap(), true),
            None => return (String::from_utf8(text).unwrap(), false),
        }
    }
}

/// A test must fail rather than hang.
async fn within<T>(future: impl Future<Output = T>) -> T {
    let timeout = Duration::from_secs(20);
    tokio::time::timeout(timeout, future)
        .await
        .expect("an end in time")
}

const PODS: &str = "/api/v1/namespaces/ns/pods";
const WATCH: &str = "/api/v1/pods?watch=true&resourceVersion=7";
const EVENT: &str = "{\"type\":\"ADDED\"}\n";

#[tokio::test]
async fn without_faults_requests_arrive_whole_and_with_the_token() {
    let server = Server::start().await;
    let response = server
        .send("POST", "/api/v1/namespaces/ns/pods?fieldManager=x")
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(read(response).await, ("{\"kind\":\"Pod\"}".to_owned(), false));
    let expected = Asked {
        line: "POST /api/v1/namespaces/ns/pods?fieldManager=x".to_owned(),
        token: Some("Bearer secret".to_owned()),
        body: "hello".to_owned(),
    };
    assert_eq!(server.asked(), [expected]);
    assert_eq!(
        server.proxy.counters(),
        Counters {
            requests: 1,
            ..Counters::default()
        }
    );
}

#[tokio::test]
async fn its_kubeconfig_leads_to_it() {
    let server = Server::start().await;
    let text = std::fs::read_to_string(server.proxy.kubeconfig_path()).unwrap();
    assert!(text.contains(&server.proxy.url()), "{text}");
}

#[tokio::test]
async fn events_of_a_watch_pass_before_it_ends() {
    let server = Server::start().await;
    let mut body = server.send("GET", WATCH).await.unwrap().into_body();
    let frame = within(body.frame()).await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), EVENT);
}

#[tokio::test]
async fn refused_writes_do_not_arrive_and_reads_do() {
    let server = Server::start().await;
    let certain = |refuse: fn(&mut Rejections)| {
        let mut faults = Faults {
            retry_after_secs: 3,
            ..Faults::default()
        };
        refuse(&mut faults.writes);
        faults
    };
    server.proxy.set_faults(certain(|writes| writes.conflict = 1.0));
    assert_eq!(server.status("PUT", PODS).await, 409);
    server.proxy.set_faults(certain(|writes| writes.internal = 1.0));
    assert_eq!(server.status("DELETE", PODS).await, 500);
    server.proxy.set_faults(certain(|writes| writes.too_many = 1.0));
    let response = server.send("POST", PODS).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "3");
    let (text, _) = read(response).await;
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&status["code"], &status["reason"]),
        (&429.into(), &"TooManyRequests".into())
    );
    assert_eq!(server.asked(), []);
    assert_eq!(server.status("GET", PODS).await, 200);
    let counters = server.proxy.counters();
    assert_eq!(
        (counters.conflicts, counters.internal, counters.too_many),
        (1, 1, 1)
    );
    assert_eq!(counters.faults(), 3);
}

#[tokio::test]
async fn a_dropped_write_arrives_while_its_client_sees_a_failure() {
    let server = Server::start().await;
    server.proxy.set_faults(Faults {
        drop_after: 1.0,
        ..Faults::default()
    });
    let (mut dead, mut failed) = (0, 0);
    for _ in 0..20 {
        match within(server.send("POST", PODS)).await {
            Ok(response) => {
                assert_eq!(response.status(), 500);
                failed += 1;
            }
            Err(_) => dead += 1,
        }
    }
    assert!(dead > 0 && failed > 0, "{dead} dead, {failed} failed");
    assert_eq!(server.asked().len(), 20, "each took effect once");
    assert_eq!(server.proxy.counters().drops, 20);
}

#[tokio::test]
async fn a_watch_is_gone_in_both_ways() {
    let server = Server::start().await;
    server.proxy.set_faults(Faults {
        gone: 1.0,
        ..Faults::default()
    });
    for _ in 0..20 {
        let response = server.send("GET", WATCH).await.unwrap();
        let code = response.status().as_u16();
        let (text, cut) = read(response).await;
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(!cut);
        match code {
            410 => assert_eq!(answer["reason"], "Expired"),
            _ => assert_eq!(
                (&answer["type"], &answer["object"]["code"]),
                (&"ERROR".into(), &410.into())
            ),
        }
    }
    let counters = server.proxy.counters();
    assert!(
        counters.gone_status > 0 && counters.gone_events > 0,
        "{counters:?}"
    );
    assert_eq!(counters.gone_status + counters.gone_events, 20);
    assert_eq!(server.asked(), [], "the API server was not asked");
}

#[tokio::test]
async fn watches_are_cut_also_in_the_middle_of_an_event() {
    let server = Server::start().await;
    server.proxy.set_faults(Faults {
        cut: Some(Duration::from_millis(40)),
        ..Faults::default()
    });
    let (mut torn, mut clean) = (0, 0);
    for _ in 0..20 {
        let (text, cut) = read(server.send("GET", WATCH).await.unwrap()).await;
        assert!(cut, "{text}");
        if text.is_empty() || text.ends_with('\n') {
            clean += 1;
        } else {
            torn += 1;
        }
    }
    assert!(torn > 0 && clean > 0, "{torn} torn, {clean} clean");
    assert_eq!(server.proxy.counters().cuts, 20);
}

#[tokio::test]
async fn faults_reach_watches_that_are_open() {
    let server = Server::start().await;
    for faults in [
        Faults {
            cut: Some(Duration::from_millis(1)),
            ..Faults::default()
        },
        Faults {
            outage: true,
            ..Faults::default()
        },
    ] {
        server.proxy.clear();
        let mut body = server.send("GET", WATCH).await.unwrap().into_body();
        within(body.frame()).await.unwrap().unwrap();
        server.proxy.set_faults(faults.clone());
        assert!(within(body.frame()).await.unwrap().is_err(), "{faults:?}");
    }
}

#[tokio::test]
async fn nothing_gets_through_in_an_outage_until_it_is_cleared() {
    let server = Server::start().await;
    server.proxy.set_faults(Faults {
        outage: true,
        ..Faults::default()
    });
    for method in ["GET", "POST"] {
        assert!(within(server.send(method, PODS)).await.is_err());
    }
    server.proxy.clear();
    assert_eq!(server.status("GET", PODS).await, 200);
    assert_eq!(server.proxy.counters().outages, 2);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_connection_that_dies() {
    let directory = tempfile::tempdir().unwrap();
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let proxy = Proxy::in_front_of(config, directory.path()).unwrap();
    let request = Request::get(PODS).body(kube::client::Body::empty()).unwrap();
    assert!(within(proxy.client().unwrap().send(request)).await.is_err());
}
