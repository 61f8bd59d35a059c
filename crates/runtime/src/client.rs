//! The connection to the API server: who and where it is, the rate limit, and calls whose failures are data.
//!
//! Requests are raw paths and bodies: the callers decode straight into slim types, and nothing is decoded twice.

mod format;
mod frames;
mod limit;
mod page;
pub mod transport;

use crate::clock::Clock;
use crate::fence::Fence;
use crate::metrics::{Calls, Process};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use volcano_api::names::Kind;
use volcano_api::protobuf::{self, Tables};

pub use format::{DecodeError, Encoded, Format};
pub use frames::Frames;
pub use limit::Tokens;
pub use page::{Page, PageMeta};

/// An answer that is larger is refused. A page of 500 pods of the largest size that etcd stores stays below it.
const LARGEST_ANSWER: usize = 1 << 30;
/// How long a call may take in all. Shorter than what is left of a lease when its holder has to stop writing
/// (15 s of duration less 10 s of renewing), so that no write of an old leader arrives in the term of a new one.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a page of a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a kind of objects is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Name in paths.
    pub plural: &'static str,
}

impl Resource {
    /// A resource.
    pub const fn new(group: &'static str, version: &'static str, plural: &'static str) -> Self {
        Resource {
            group,
            version,
            plural,
        }
    }

    /// Path of all objects, in all namespaces.
    pub fn all(&self) -> String {
        let Resource {
            group,
            version,
            plural,
        } = self;
        if group.is_empty() {
            format!("/api/{version}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }

    /// Path of the objects of a namespace; of all for a cluster-scoped kind (empty namespace).
    pub fn within(&self, namespace: &str) -> String {
        if namespace.is_empty() {
            return self.all();
        }
        let Resource {
            group,
            version,
            plural,
        } = self;
        if group.is_empty() {
            format!("/api/{version}/namespaces/{namespace}/{plural}")
        } else {
            format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}")
        }
    }

    /// Path of one object.
    pub fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.within(namespace))
    }
}

impl From<Kind> for Resource {
    fn from(kind: Kind) -> Self {
        Resource::new(kind.group, kind.version, kind.plural)
    }
}

/// Which API server, as whom, and how fast.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Address, instead of the kubeconfig's.
    pub master: Option<String>,
    /// Path of the kubeconfig; without one, where [`Search`] says.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, instead of its current one.
    pub context: Option<String>,
    /// Where to look without a path.
    pub search: Search,
    /// Calls per second over a longer time; 0 or less for no limit.
    pub qps: f64,
    /// Calls at once after a quiet time.
    pub burst: u32,
}

/// Where settings are looked for when no kubeconfig is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// A program of the cluster: the pod's own service account, then the user's files.
    #[default]
    PodFirst,
    /// A user's tool: the files of `KUBECONFIG`, merged, or `~/.kube/config`, then the pod's service account.
    UserFirst,
}

/// Why there is no connection: a mistake in the settings. An API server that does not answer is not one.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig is missing, unreadable or wrong.
    #[error("kubeconfig {path}: {problem}")]
    Kubeconfig {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// Neither a kubeconfig nor a service account was found.
    #[error("no API server: {0}; give --kubeconfig or --master, or run in a pod with a service account")]
    Nowhere(String),
    /// `--master` is not an address.
    #[error("--master {given}: {problem}")]
    Master {
        /// What was given.
        given: String,
        /// What is wrong.
        problem: String,
    },
    /// The settings cannot be used.
    #[error("cannot set up the connection to {server}: {problem}")]
    Setup {
        /// The server.
        server: String,
        /// What is wrong.
        problem: String,
    },
}

/// Why a call failed.
#[derive(Clone, Debug, Error)]
pub enum CallError {
    /// The server said no.
    #[error("{message} ({code} {reason})")]
    Refused {
        /// HTTP status.
        code: u16,
        /// Machine-readable cause, such as `NotFound`.
        reason: String,
        /// The cause in words.
        message: String,
        /// When it asks to be tried again.
        retry_after: Option<Duration>,
    },
    /// No answer: not connected, cut off, or too late. Whether the call took effect is not known.
    #[error("no answer from the API server: {0}")]
    NoAnswer(String),
    /// The answer is not what was asked for.
    #[error("cannot read the answer of the API server: {0}")]
    Unreadable(String),
    /// Not sent: the lease is not held.
    #[error("not sent, since the lease is not held")]
    Fenced,
}

impl CallError {
    /// HTTP status; 0 without an answer.
    pub fn code(&self) -> u16 {
        match self {
            CallError::Refused { code, .. } => *code,
            _ => 0,
        }
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// Not allowed.
    pub fn is_forbidden(&self) -> bool {
        self.code() == 403
    }

    /// Another write came first, or the object is there already.
    pub fn is_conflict(&self) -> bool {
        self.code() == 409
    }

    /// The server, or a proxy before it, does not read the format that the object is written in.
    pub fn is_unknown_format(&self) -> bool {
        self.code() == 415
    }

    /// The version that was asked for is too old.
    pub fn is_gone(&self) -> bool {
        self.code() == 410
    }

    /// The same call may succeed later: overload, a failing server, no connection.
    pub fn is_transient(&self) -> bool {
        match self {
            CallError::Refused { code, .. } => *code == 408 || *code == 429 || *code >= 500,
            CallError::NoAnswer(_) => true,
            CallError::Unreadable(_) | CallError::Fenced => false,
        }
    }

    /// When the server asks to be tried again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            CallError::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Ways to change an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// RFC 7386: objects merge, everything else is replaced.
    Merge,
    /// Kubernetes' own: lists of conditions merge by their type. Built-in kinds only.
    Strategic,
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// What was answered.
struct Answer {
    format: Format,
    body: Bytes,
}

impl Answer {
    fn encoded(&self) -> Encoded<'_> {
        Encoded {
            format: self.format,
            bytes: &self.body,
        }
    }
}

/// A connection to the API server. Clones share its connections and its rate limit.
#[derive(Clone)]
pub struct Client {
    kube: kube::Client,
    server: Arc<str>,
    tokens: Arc<Tokens>,
    fence: Option<Fence>,
    clock: Clock,
    calls: Option<Calls>,
}

impl Client {
    /// Reads the settings. Nothing is sent yet.
    ///
    /// # Errors
    /// When the settings are wrong or missing.
    pub async fn connect(options: &Options) -> Result<Client, ConnectError> {
        let mut config = configuration(options).await?;
        if let Some(master) = &options.master {
            config.cluster_url = address(master)?;
        }
        // Retries are the callers': they know what may be repeated and what is urgent.
        config.default_retry = false;
        config.connect_timeout = Some(CALL_TIMEOUT);
        // A watch is quiet for long; its own time limit and bookmarks tell a dead one.
        config.read_timeout = None;
        config.write_timeout = None;
        let server: Arc<str> = config.cluster_url.to_string().trim_end_matches('/').into();
        let kube = transport::client(config).map_err(|error| ConnectError::Setup {
            server: server.to_string(),
            problem: error.to_string(),
        })?;
        let tokens = Arc::new(Tokens::new(options.qps, options.burst));
        Ok(Client {
            kube,
            server,
            tokens,
            fence: None,
            clock: Clock::default(),
            calls: None,
        })
    }

    /// A connection that is there already, such as one to an API server in this process, whose time may be its own. There is
    /// no rate limit.
    pub fn of(kube: kube::Client, server: &str, clock: Clock) -> Client {
        Client {
            kube,
            server: server.into(),
            tokens: Arc::new(Tokens::new(0.0, 0)),
            fence: None,
            clock,
            calls: None,
        }
    }

    /// The time of day that what is written here has.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The same connection behind a fence: a call that does not pass it when its turn comes is not sent.
    #[must_use]
    pub fn behind(&self, fence: Fence) -> Client {
        Client {
            fence: Some(fence),
            ..self.clone()
        }
    }

    /// The same connection, with every call counted.
    #[must_use]
    pub fn counted(&self, metrics: &Process) -> Client {
        Client {
            calls: Some(metrics.calls()),
            ..self.clone()
        }
    }

    /// Address of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reads an object.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallError> {
        let request = request(Method::GET, path, format::JSON, None, Vec::new())?;
        let answer = self.ask(request, None, CALL_TIMEOUT).await?;
        Ok(answer.encoded().object()?)
    }

    /// Reads a page of a list, in protobuf if there are tables and the server has it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        tables: Option<Tables>,
    ) -> Result<T, CallError> {
        let request = request(Method::GET, path, Format::accept(tables), None, Vec::new())?;
        let answer = self.ask(request, tables, LIST_TIMEOUT).await?;
        Ok(answer.encoded().list()?)
    }

    /// Creates.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Result<Bytes, CallError> {
        let json = Some(format::JSON);
        self.call(Method::POST, path, json, body, CALL_TIMEOUT).await
    }

    /// Creates, and reads what the server made of it, in protobuf if there are tables and the server has it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn create<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Vec<u8>,
        tables: Option<Tables>,
    ) -> Result<T, CallError> {
        let accept = Format::accept(tables);
        let request = request(Method::POST, path, accept, Some(format::JSON), body)?;
        let answer = self.ask(request, tables, CALL_TIMEOUT).await?;
        Ok(answer.encoded().object()?)
    }

    /// Creates from an object in protobuf. The answer is not of interest.
    ///
    /// # Errors
    /// See [`CallError`]; [`CallError::is_unknown_format`] where JSON is all that is known.
    pub async fn post_protobuf(&self, path: &str, body: Vec<u8>) -> Result<(), CallError> {
        let tables = Some(Tables {
            object: protobuf::STATUS,
            list: protobuf::STATUS,
        });
        let content = Some(protobuf::MEDIA_TYPE);
        let request = request(Method::POST, path, Format::accept(tables), content, body)?;
        self.ask(request, tables, CALL_TIMEOUT).await.map(drop)
    }

    /// Replaces.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn put(&self, path: &str, body: Vec<u8>) -> Result<Bytes, CallError> {
        let json = Some(format::JSON);
        self.call(Method::PUT, path, json, body, CALL_TIMEOUT).await
    }

    /// Changes a part.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn patch(&self, path: &str, patch: Patch, body: Vec<u8>) -> Result<Bytes, CallError> {
        let content = Some(patch.content_type());
        self.call(Method::PATCH, path, content, body, CALL_TIMEOUT).await
    }

    /// Deletes; `body` holds the options.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn delete(&self, path: &str, body: Vec<u8>) -> Result<Bytes, CallError> {
        let json = Some(format::JSON);
        self.call(Method::DELETE, path, json, body, CALL_TIMEOUT).await
    }

    /// Opens a stream of events that goes on until the server ends it, in protobuf if there are tables and the server
    /// has it. Outside the rate limit, as in client-go.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn stream(&self, path: &str, tables: Option<Tables>) -> Result<Frames, CallError> {
        let request = request(Method::GET, path, Format::accept(tables), None, Vec::new())?;
        self.open(request, tables).await
    }

    async fn open(&self, request: Request<Body>, tables: Option<Tables>) -> Result<Frames, CallError> {
        let answer = self.send(request, LIST_TIMEOUT).await?;
        if answer.status().is_success() {
            let format = Format::of(answer.headers(), tables);
            return Ok(Frames::new(format, answer.into_body()));
        }
        Err(refused(answer, tables, LIST_TIMEOUT).await)
    }

    /// Opens a text that goes on until the server ends it, line by line: the log of a container. Outside the rate limit.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn text(&self, path: &str) -> Result<Frames, CallError> {
        let request = request(Method::GET, path, format::TEXT, None, Vec::new())?;
        self.open(request, None).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&'static str>,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Bytes, CallError> {
        let request = request(method, path, format::JSON, content_type, body)?;
        Ok(self.ask(request, None, limit).await?.body)
    }

    async fn ask(
        &self,
        request: Request<Body>,
        tables: Option<Tables>,
        limit: Duration,
    ) -> Result<Answer, CallError> {
        self.tokens.take().await;
        if self.fence.as_ref().is_some_and(|fence| !fence.passes()) {
            return Err(CallError::Fenced);
        }
        let answer = self.send(request, limit).await?;
        if !answer.status().is_success() {
            return Err(refused(answer, tables, limit).await);
        }
        let format = Format::of(answer.headers(), tables);
        let body = read(answer, limit).await?;
        Ok(Answer { format, body })
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(&self, request: Request<Body>, limit: Duration) -> Result<http::Response<Body>, CallError> {
        let method = request.method().clone();
        let answer = tokio::time::timeout(limit, self.kube.send(request))
            .await
            .map_err(|_| CallError::NoAnswer(format!("timed out after {} s", limit.as_secs())))
            .and_then(|answer| answer.map_err(|error| no_answer(&error)));
        if let Some(calls) = &self.calls {
            let code = answer.as_ref().ok().map(http::Response::status);
            calls.count(code, &method, &self.server);
        }
        answer
    }
}

async fn configuration(options: &Options) -> Result<kube::Config, ConnectError> {
    if let Some(path) = &options.kubeconfig {
        return from_files(std::slice::from_ref(path), options).await;
    }
    let files = user_files();
    // A context is one of the user's; a pod has none.
    if !files.is_empty() && (options.search == Search::UserFirst || options.context.is_some()) {
        return from_files(&files, options).await;
    }
    match (kube::Config::incluster(), &options.master) {
        (Ok(config), _) => Ok(config),
        // As with client-go: an address alone is enough, without credentials.
        (Err(_), Some(master)) => Ok(kube::Config::new(address(master)?)),
        (Err(_), None) if !files.is_empty() => from_files(&files, options).await,
        (Err(error), None) => Err(ConnectError::Nowhere(chain(&error))),
    }
}

/// The user's kubeconfig files that are there: those of `KUBECONFIG`, or the one at home. As with client-go, files of the
/// list that are missing do not count.
fn user_files() -> Vec<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty());
    let paths: Vec<PathBuf> = match listed {
        Some(list) => std::env::split_paths(&list).collect(),
        None => std::env::home_dir()
            .map(|home| home.join(".kube").join("config"))
            .into_iter()
            .collect(),
    };
    paths.into_iter().filter(|path| path.exists()).collect()
}

/// The contexts that a user can choose from, by the kubeconfig that the options name or the user's own files. What cannot
/// be read has none.
pub fn contexts(options: &Options) -> Vec<String> {
    let files = match &options.kubeconfig {
        Some(path) => vec![path.clone()],
        None => user_files(),
    };
    let read = files.iter().filter_map(|path| Kubeconfig::read_from(path).ok());
    read.flat_map(|file| file.contexts)
        .map(|context| context.name)
        .collect()
}

/// The settings of files that are merged: the first that says something counts.
async fn from_files(paths: &[PathBuf], options: &Options) -> Result<kube::Config, ConnectError> {
    let wrong = |path: &dyn std::fmt::Display, error: &dyn std::error::Error| ConnectError::Kubeconfig {
        path: path.to_string(),
        problem: chain(error),
    };
    let mut merged = Kubeconfig::default();
    for path in paths {
        let file = Kubeconfig::read_from(path).map_err(|error| wrong(&path.display(), &error))?;
        merged = merged
            .merge(file)
            .map_err(|error| wrong(&path.display(), &error))?;
    }
    let wanted = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    kube::Config::from_custom_kubeconfig(merged, &wanted)
        .await
        .map_err(|error| wrong(&names.join(":"), &error))
}

fn address(given: &str) -> Result<Uri, ConnectError> {
    let with_scheme = if given.contains("://") {
        given.to_owned()
    } else {
        format!("http://{given}")
    };
    let wrong = |problem: &str| ConnectError::Master {
        given: given.to_owned(),
        problem: problem.to_owned(),
    };
    let uri: Uri = with_scheme.parse().map_err(|_| wrong("not an address"))?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(wrong("no host"));
    }
    Ok(uri)
}

fn request(
    method: Method,
    path: &str,
    accept: &'static str,
    content_type: Option<&'static str>,
    body: Vec<u8>,
) -> Result<Request<Body>, CallError> {
    let mut builder = Request::builder().method(method).uri(path).header(ACCEPT, accept);
    if let Some(content_type) = content_type {
        builder = builder.header(CONTENT_TYPE, content_type);
    }
    builder
        .body(Body::from(body))
        .map_err(|error| CallError::Unreadable(format!("{path}: {error}")))
}

async fn read(answer: http::Response<Body>, limit: Duration) -> Result<Bytes, CallError> {
    let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect();
    tokio::time::timeout(limit, body)
        .await
        .map_err(|_| CallError::NoAnswer("timed out".to_owned()))?
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| CallError::NoAnswer(error.to_string()))
}

fn retry_after(answer: &http::Response<Body>) -> Option<Duration> {
    let text = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.parse().ok().map(Duration::from_secs)
}

/// What an answer without success says.
async fn refused(answer: http::Response<Body>, tables: Option<Tables>, limit: Duration) -> CallError {
    let (status, retry_after) = (answer.status(), retry_after(&answer));
    let format = Format::of(answer.headers(), tables);
    match read(answer, limit).await {
        Ok(body) => refusal(status, retry_after, Answer { format, body }.encoded()),
        Err(error) => error,
    }
}

fn refusal(status: StatusCode, retry_after: Option<Duration>, body: Encoded<'_>) -> CallError {
    let mut said = body.status();
    if said.message.is_empty() {
        let text = String::from_utf8_lossy(body.bytes);
        said.message = text.trim().chars().take(300).collect();
    }
    if said.reason.is_empty() {
        said.reason = status.canonical_reason().unwrap_or_default().to_owned();
    }
    if said.code == 0 {
        said.code = status.as_u16();
    }
    said.refusal(retry_after)
}

fn no_answer(error: &kube::Error) -> CallError {
    CallError::NoAnswer(chain(error))
}

/// An error and its causes on one line, without what a cause repeats.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        let pods = Resource::new("", "v1", "pods");
        let groups = Resource::new("scheduling.volcano.sh", "v1beta1", "podgroups");
        assert_eq!(pods.all(), "/api/v1/pods");
        assert_eq!(pods.object("ns", "p"), "/api/v1/namespaces/ns/pods/p");
        assert_eq!(
            groups.object("ns", "g"),
            "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g"
        );
        let queues = Resource::new("scheduling.volcano.sh", "v1beta1", "queues");
        assert_eq!(
            queues.object("", "q"),
            "/apis/scheduling.volcano.sh/v1beta1/queues/q"
        );
    }

    #[test]
    fn refusals_say_what_the_server_said() {
        let body = br#"{"kind":"Status","message":"pods \"p\" not found","reason":"NotFound","code":404}"#;
        let json = |bytes| Encoded {
            format: Format::Json,
            bytes,
        };
        let error = refusal(StatusCode::NOT_FOUND, None, json(body));
        assert!(error.is_not_found() && !error.is_transient());
        assert_eq!(error.to_string(), "pods \"p\" not found (404 NotFound)");
        let error = refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            Some(Duration::from_secs(1)),
            json(b"busy\n"),
        );
        assert!(error.is_transient());
        assert_eq!(error.to_string(), "busy (503 Service Unavailable)");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
        let error = refusal(StatusCode::TOO_MANY_REQUESTS, None, json(b""));
        assert!(error.is_transient());
    }

    #[tokio::test]
    async fn wrong_settings_are_told_with_the_way_out() {
        let options = |master: Option<&str>, kubeconfig: Option<&str>| Options {
            master: master.map(str::to_owned),
            kubeconfig: kubeconfig.map(PathBuf::from),
            ..Options::default()
        };
        let told = |result: Result<Client, ConnectError>| result.err().unwrap().to_string();
        let missing = told(Client::connect(&options(None, Some("/nowhere/config"))).await);
        assert!(missing.starts_with("kubeconfig /nowhere/config: "), "{missing}");
        let wrong = told(Client::connect(&options(Some("http://"), None)).await);
        assert!(wrong.starts_with("--master http://: "), "{wrong}");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_no_answer() {
        let options = Options {
            master: Some("http://127.0.0.1:1".to_owned()),
            ..Options::default()
        };
        let client = Client::connect(&options).await.unwrap();
        let error = client.get::<serde_json::Value>("/version").await.unwrap_err();
        assert!(
            matches!(error, CallError::NoAnswer(_)) && error.is_transient(),
            "{error}"
        );
        assert_eq!(client.server(), "http://127.0.0.1:1");
    }
}
