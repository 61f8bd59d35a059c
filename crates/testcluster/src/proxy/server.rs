//! Connections and requests of the proxy.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING,
};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Counters;
use super::faults::{Fate, Faults, Intent, Outcome, Refusal, Schedule};

/// What ends a connection without an answer.
type Broken = Box<dyn Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Broken>;

/// The beginning of an event whose end never comes.
const TORN_EVENT: &[u8] = br#"{"type":"MODIFIED","object":{"kind":"#;
/// Time for what was written to leave before the connection is cut.
const FLUSH_TIME: Duration = Duration::from_millis(20);
/// Sets the draw of an open watch apart from those of new requests.
const OPEN_WATCH: &[u8] = b"open watch";
/// As good as never.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the proxy and its owner share.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// Open watches follow what is set.
    faults: watch::Sender<Faults>,
}

#[derive(Debug, Default)]
struct State {
    schedule: Schedule,
    counters: Counters,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            state: Mutex::default(),
            faults: watch::Sender::new(Faults::default()),
        }
    }
}

impl Shared {
    /// Draws from these faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().schedule = Schedule::new(faults.clone());
        self.faults.send_replace(faults);
    }

    /// The counts so far.
    pub fn counters(&self) -> Counters {
        self.state().counters
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, count: impl FnOnce(&mut Counters)) {
        count(&mut self.state().counters);
    }

    /// The fate of a request, counted.
    fn fate<B>(&self, request: &Request<B>) -> Fate {
        let mut state = self.state();
        let fate = state.schedule.next(request.method(), request.uri());
        let counters = &mut state.counters;
        counters.requests += 1;
        counters.watches += u64::from(Intent::of(request.method(), request.uri()) == Intent::Watch);
        counters.delays += u64::from(fate.delay.is_some());
        match fate.outcome {
            Outcome::Pass | Outcome::Cut { .. } => {}
            Outcome::Refused(Refusal::Conflict) => counters.conflicts += 1,
            Outcome::Refused(Refusal::TooMany) => counters.too_many += 1,
            Outcome::Refused(Refusal::Internal) => counters.internal += 1,
            Outcome::Refused(Refusal::Gone) => counters.gone_status += 1,
            Outcome::GoneInStream => counters.gone_events += 1,
            Outcome::AppliedThenDead | Outcome::AppliedThenFailed => counters.drops += 1,
            Outcome::Dead => counters.outages += 1,
        }
        fate
    }
}

/// Takes connections until it is dropped.
pub async fn accept(listener: &TcpListener, client: &Client, shared: &Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file handles, say; it passes.
            sleep(FLUSH_TIME).await;
            continue;
        };
        // Small answers must not wait for more.
        let _ = stream.set_nodelay(true);
        let (client, shared) = (client.clone(), shared.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&client, &shared, request));
            // That connections break is what this is for.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    client: &Client,
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Broken> {
    let fate = shared.fate(&request);
    if let Some(delay) = fate.delay {
        sleep(delay).await;
    }
    match fate.outcome {
        Outcome::Pass => {
            let uri = request.uri().clone();
            let intent = Intent::of(request.method(), &uri);
            let response = forward(client, request).await?;
            match intent {
                Intent::Watch => Ok(watched(response, uri, shared, FOREVER, false)),
                Intent::Read | Intent::Write => Ok(response.map(passed)),
            }
        }
        Outcome::Refused(refusal) => Ok(refused(
            refusal,
            shared.state().schedule.faults().retry_after_secs,
        )),
        Outcome::GoneInStream => Ok(gone_in_stream()),
        Outcome::Cut { after, torn } => {
            let uri = request.uri().clone();
            let response = forward(client, request).await?;
            Ok(watched(response, uri, shared, after, torn))
        }
        Outcome::AppliedThenDead => {
            finish(client, request).await?;
            Err("the answer is dropped".into())
        }
        Outcome::AppliedThenFailed => {
            finish(client, request).await?;
            Ok(refused(Refusal::Internal, 0))
        }
        Outcome::Dead => Err("an outage".into()),
    }
}

/// Passes a request on. An API server that cannot be reached is a connection that dies, as it would be without a proxy.
async fn forward(
    client: &Client,
    request: Request<Incoming>,
) -> Result<Response<kube::client::Body>, Broken> {
    let (mut parts, body) = request.into_parts();
    for name in [AUTHORIZATION, HOST, CONNECTION, TRANSFER_ENCODING, CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    parts.version = http::Version::HTTP_11;
    // Requests are small, unlike answers, so that they may as well be read first.
    let body = body.collect().await?.to_bytes();
    let mut response = client
        .send(Request::from_parts(parts, kube::client::Body::from(body)))
        .await?;
    remove_hops(response.headers_mut());
    *response.version_mut() = http::Version::HTTP_11;
    Ok(response)
}

/// Passes a request on and waits for the whole answer, which nobody gets.
async fn finish(client: &Client, request: Request<Incoming>) -> Result<(), Broken> {
    let response = forward(client, request).await?;
    response.into_body().collect().await?;
    Ok(())
}

fn remove_hops(headers: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING] {
        headers.remove(name);
    }
}

fn passed(body: kube::client::Body) -> Body {
    body.map_err(Broken::from).boxed_unsync()
}

/// A stream that ends with the API server's, or after a time, or with an outage.
fn watched(
    response: Response<kube::client::Body>,
    uri: Uri,
    shared: &Arc<Shared>,
    lifetime: Duration,
    torn: bool,
) -> Response<Body> {
    let shared = shared.clone();
    let faults = shared.faults.subscribe();
    let end = Instant::now() + lifetime;
    response.map(|body| {
        let state = Watched {
            body,
            uri,
            shared,
            faults,
            end,
            torn,
        };
        let frames = futures::stream::unfold(Some(state), |state| async move { state?.step().await });
        StreamBody::new(frames).boxed_unsync()
    })
}

struct Watched {
    body: kube::client::Body,
    uri: Uri,
    shared: Arc<Shared>,
    faults: watch::Receiver<Faults>,
    end: Instant,
    torn: bool,
}

/// What comes next in a watch.
enum Next {
    Faults(Faults),
    Cut,
    Frame(Option<Result<Frame<Bytes>, kube::Error>>),
}

impl Watched {
    /// The next piece of the stream; none at its end. What follows an error is never asked for.
    async fn step(mut self) -> Option<(Result<Frame<Bytes>, Broken>, Option<Watched>)> {
        loop {
            match self.next().await {
                Next::Faults(faults) if faults.reach(&self.uri) && faults.outage => {
                    self.shared.count(|counters| counters.outages += 1);
                    return Some((Err("an outage".into()), None));
                }
                Next::Faults(faults) => self.follow(&faults),
                Next::Cut => return Some(self.cut().await),
                Next::Frame(frame) => return Some((frame?.map_err(Broken::from), Some(self))),
            }
        }
    }

    async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Ok(()) = self.faults.changed() => Next::Faults(self.faults.borrow_and_update().clone()),
            () = sleep_until(self.end) => Next::Cut,
            frame = self.body.frame() => Next::Frame(frame),
        }
    }

    /// Faults that are set while the watch is open apply to it too.
    fn follow(&mut self, faults: &Faults) {
        let lifetime = match faults.cut {
            Some(longest) if faults.reach(&self.uri) => {
                longest.mul_f64(faults.random(&self.uri, OPEN_WATCH).f64())
            }
            _ => FOREVER,
        };
        self.end = Instant::now() + lifetime;
    }

    async fn cut(mut self) -> (Result<Frame<Bytes>, Broken>, Option<Watched>) {
        if self.torn {
            self.torn = false;
            return (Ok(Frame::data(Bytes::from_static(TORN_EVENT))), Some(self));
        }
        sleep(FLUSH_TIME).await;
        self.shared.count(|counters| counters.cuts += 1);
        (Err("the watch is cut".into()), None)
    }
}

fn gone_in_stream() -> Response<Body> {
    let event = json!({"type": "ERROR", "object": status(Refusal::Gone)});
    json_response(StatusCode::OK, format!("{event}\n"))
}

fn refused(refusal: Refusal, retry_after_secs: u32) -> Response<Body> {
    let (code, _, _) = described(refusal);
    let mut response = json_response(code, status(refusal).to_string());
    if refusal == Refusal::TooMany {
        response
            .headers_mut()
            .insert(RETRY_AFTER, retry_after_secs.into());
    }
    response
}

/// Status, reason and message, as the API server words them.
fn described(refusal: Refusal) -> (StatusCode, &'static str, &'static str) {
    match refusal {
        Refusal::Conflict => (
            StatusCode::CONFLICT,
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest \
             version and try again (injected)",
        ),
        Refusal::TooMany => (
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            "too many requests, please try again later (injected)",
        ),
        Refusal::Internal => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            "Internal error occurred (injected)",
        ),
        Refusal::Gone => (StatusCode::GONE, "Expired", "too old resource version (injected)"),
    }
}

fn status(refusal: Refusal) -> Value {
    let (code, reason, message) = described(refusal);
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    })
}

fn json_response(code: StatusCode, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
