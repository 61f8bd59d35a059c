//! Watches: what the API server has, as a stream of changes that never ends.
//!
//! ```text
//!            ┌────────── 410, or a version that was never known ─────────┐
//!            v                                                           │
//! [list] ─ streaming where the server can, else by pages ─> [watch] ─ end, cut ─> resume at the last version
//! ```
//!
//! Nothing is kept here but the last version: objects are decoded into slim types and handed on. A list after the
//! first one ends with the names that it had, so that whoever keeps the state can tell what went away meanwhile.

pub mod event;
mod family;
pub mod kinds;

use crate::backoff::Backoff;
use crate::client::{CallError, Client, DecodeError, Encoded, Frames, Page};
use crate::metrics::Process;
use event::{Change, Only};
use rustc_hash::FxHashSet;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

pub use family::{Family, Gone, Object};
use kinds::Scheduling;

/// While changes pour in, they are handed on this often: each time wakes the thread that decides.
const HAND_ON: Duration = Duration::from_millis(4);
/// Changes handed on at once, at most.
const BATCH: usize = 1000;
/// Objects of a page, where the server cannot stream lists.
const PAGE: usize = 500;
/// How long the server keeps a watch open; up to twice as long, so that watches do not end together.
const WATCH_SECONDS: u64 = 290;
/// A watch without an event for so long is dead: bookmarks come about every minute.
const SILENCE: Duration = Duration::from_secs(180);
/// The annotation of the bookmark that ends a streamed list.
const LIST_END: &str = "k8s.io/initial-events-end";
/// A kind whose CRD is missing is looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Failures in a row after which one that may pass by itself is told: before the kind was listed, and when its watch
/// cannot be resumed for some twenty seconds.
const TRIES: u32 = 3;
const TRIES_TO_RESUME: u32 = 8;
/// A watch that ends before this without a word counts as failed.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The same trouble is told again after this long.
const TELL_AGAIN: Duration = Duration::from_secs(300);

/// What a watch hands on.
#[derive(Debug)]
pub enum Feed<F: Family = Scheduling> {
    /// Changes, in order.
    Changes(Vec<F::Change>),
    /// The kind is listed; on a list after the first one with the namespaces and names that there are.
    Listed(F::Kind, Option<Listed>),
    /// The kind cannot be read: one line that says why and what to do.
    Trouble(F::Kind, String),
}

/// What a list after the first one had.
#[derive(Debug, Default)]
pub struct Listed {
    /// Namespaces and names.
    pub names: FxHashSet<(String, String)>,
    /// The version that was listed; empty when the kind is not installed.
    pub version: String,
}

/// Watches a kind until the receiver goes away.
pub async fn watch<F: Family, T: Object<F>>(client: Client, metrics: Process, feed: mpsc::Sender<Feed<F>>) {
    let mut watch = Watch::<F, T> {
        client,
        metrics,
        feed,
        version: None,
        began: false,
        listed_once: false,
        can_stream: true,
        backoff: Backoff::new(Duration::from_millis(200), Duration::from_secs(5)),
        failures: 0,
        told: None,
        object: std::marker::PhantomData,
    };
    while watch.step().await.is_ok() {}
}

/// The receiver is gone.
struct Closed;

struct Watch<F: Family, T> {
    client: Client,
    metrics: Process,
    feed: mpsc::Sender<Feed<F>>,
    /// Where to resume; `None` when a list is needed.
    version: Option<String>,
    /// A list has begun at some time, so that a later one has to tell what is no longer there.
    began: bool,
    listed_once: bool,
    can_stream: bool,
    backoff: Backoff,
    /// Failures in a row.
    failures: u32,
    /// The last trouble that was told, and when.
    told: Option<(String, tokio::time::Instant)>,
    object: std::marker::PhantomData<T>,
}

impl<F: Family, T: Object<F>> Watch<F, T> {
    /// One list or one watch, until it ends, with the wait that follows a failure.
    async fn step(&mut self) -> Result<(), Closed> {
        let outcome = match self.version.clone() {
            Some(version) => self.resume(&version).await,
            None if self.can_stream => self.stream().await,
            None => self.pages().await,
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(Stop::Closed) => Err(Closed),
            Err(Stop::Failed(error)) => self.fail(error).await,
        }
    }

    /// A list that comes as a watch: every object as an event, then a bookmark, then the changes.
    async fn stream(&mut self) -> Result<(), Stop> {
        let path = format!(
            "{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds={}",
            T::RESOURCE.all(),
            timeout_seconds()
        );
        let frames = match self.client.stream(&path, T::PROTOBUF).await {
            Ok(frames) => frames,
            Err(error) if matches!(error.code(), 400 | 422) => {
                debug!(kind = ?T::KIND, %error, "the API server does not stream lists; listing by pages");
                self.can_stream = false;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let names = self.begin();
        self.read(frames, Listing::Now(names)).await
    }

    /// A list by pages; the watch follows from its version.
    async fn pages(&mut self) -> Result<(), Stop> {
        let mut names = self.begin();
        let mut next = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE}", T::RESOURCE.all());
            if !next.is_empty() {
                path = format!("{path}&continue={next}");
            }
            let page: Page<T> = self.client.list(&path, T::PROTOBUF).await?;
            if let Some(names) = &mut names {
                names.extend(page.items.iter().map(owned_name::<F, T>));
            }
            let changes = page.items.into_iter().map(T::change).collect();
            self.send(Feed::Changes(changes)).await?;
            next = page.metadata.r#continue;
            if next.is_empty() {
                self.listed(names, &page.metadata.resource_version).await?;
                self.version = Some(page.metadata.resource_version);
                return Ok(());
            }
        }
    }

    /// A list begins. After an earlier one, even one that broke off, its names are kept.
    fn begin(&mut self) -> Option<FxHashSet<(String, String)>> {
        std::mem::replace(&mut self.began, true).then(FxHashSet::default)
    }

    async fn resume(&mut self, version: &str) -> Result<(), Stop> {
        let path = format!(
            "{}?watch=true&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds={}",
            T::RESOURCE.all(),
            timeout_seconds()
        );
        let frames = self.client.stream(&path, T::PROTOBUF).await?;
        self.read(frames, Listing::Done).await
    }

    /// Hands on what comes until the server ends it, however it ends: the watch is resumed after the last event that was
    /// taken, so none of them may be left behind.
    async fn read(&mut self, frames: Frames, listing: Listing) -> Result<(), Stop> {
        let mut batch = Vec::new();
        let outcome = self.read_into(&mut batch, frames, listing).await;
        self.send_batch(&mut batch).await?;
        outcome
    }

    /// Events that have arrived together go on together; those that have not gone on yet are in the batch.
    async fn read_into(
        &mut self,
        batch: &mut Vec<F::Change>,
        mut frames: Frames,
        mut listing: Listing,
    ) -> Result<(), Stop> {
        let began = tokio::time::Instant::now();
        let (mut silent, mut handed_on) = (true, began);
        loop {
            let frame = match frames.ready()? {
                Some(frame) => Some(frame),
                None => {
                    let rest = HAND_ON.saturating_sub(handed_on.elapsed());
                    if !batch.is_empty() && rest.is_zero() {
                        self.send_batch(batch).await?;
                        handed_on = tokio::time::Instant::now();
                    }
                    let patience = if batch.is_empty() { SILENCE } else { rest };
                    match tokio::time::timeout(patience, frames.next()).await {
                        Ok(frame) => frame?,
                        Err(_) if !batch.is_empty() => continue,
                        Err(_) => {
                            return Err(CallError::NoAnswer("the watch has gone silent".to_owned()).into());
                        }
                    }
                }
            };
            let Some(frame) = frame else {
                return match listing {
                    Listing::Done if silent && began.elapsed() < AT_ONCE => {
                        Err(CallError::NoAnswer("the watch ended at once".to_owned()).into())
                    }
                    Listing::Done => Ok(()),
                    Listing::Now(_) => Err(CallError::NoAnswer("the list broke off".to_owned()).into()),
                };
            };
            match event::split(frames.format(), &frame) {
                Some((change, object)) => self.take(change, object, &mut listing, batch).await?,
                None if frame.iter().all(u8::is_ascii_whitespace) => {}
                None => {
                    return Err(CallError::Unreadable("something that is no watch event".to_owned()).into());
                }
            }
            if std::mem::take(&mut silent) && matches!(listing, Listing::Done) {
                self.succeeded();
            }
            if batch.len() >= BATCH {
                self.send_batch(batch).await?;
            }
        }
    }

    async fn take(
        &mut self,
        change: Change,
        encoded: Encoded<'_>,
        listing: &mut Listing,
        batch: &mut Vec<F::Change>,
    ) -> Result<(), Stop> {
        match change {
            Change::Applied => match T::read(encoded) {
                Ok(object) => {
                    if let Listing::Now(Some(names)) = listing {
                        names.insert(owned_name::<F, T>(&object));
                    }
                    self.passed(object.version(), listing);
                    batch.push(object.change());
                }
                Err(error) => self.skip(encoded, &error, listing),
            },
            Change::Deleted => {
                let Only { metadata } = encoded.object().map_err(CallError::from)?;
                self.passed(&metadata.resource_version, listing);
                let gone = Gone {
                    namespace: &metadata.namespace,
                    name: &metadata.name,
                    version: &metadata.resource_version,
                };
                batch.push(F::gone(T::KIND, &gone));
            }
            Change::Bookmark => {
                let Only { metadata } = encoded.object().map_err(CallError::from)?;
                let ends_list = metadata.annotations.get(LIST_END).is_some_and(|v| v == "true");
                if ends_list && let Listing::Now(names) = std::mem::replace(listing, Listing::Done) {
                    self.send_batch(batch).await?;
                    self.listed(names, &metadata.resource_version).await?;
                }
                self.passed(&metadata.resource_version, listing);
            }
            Change::Error => return Err(encoded.status().refusal(None).into()),
        }
        Ok(())
    }

    /// Versions count once the list is complete: before that there is nothing to resume from.
    fn passed(&mut self, version: &str, listing: &Listing) {
        if matches!(listing, Listing::Done) && !version.is_empty() {
            self.version = Some(version.to_owned());
        }
    }

    /// One object that cannot be read must not keep all others away.
    fn skip(&mut self, encoded: Encoded<'_>, error: &DecodeError, listing: &mut Listing) {
        let Only { metadata } = encoded.object().unwrap_or_default();
        warn!(
            kind = ?T::KIND, namespace = metadata.namespace, name = metadata.name, %error,
            "an object cannot be read and is left as it was known before"
        );
        self.passed(&metadata.resource_version, listing);
        if let Listing::Now(Some(names)) = listing {
            names.insert((metadata.namespace, metadata.name));
        }
    }

    fn succeeded(&mut self) {
        self.backoff.reset();
        self.failures = 0;
        if self.told.take().is_some() {
            info!(kind = ?T::KIND, "the kind can be read again");
        }
    }

    async fn listed(
        &mut self,
        names: Option<FxHashSet<(String, String)>>,
        version: &str,
    ) -> Result<(), Stop> {
        self.listed_once = true;
        self.succeeded();
        let version = version.to_owned();
        let listed = names.map(|names| Listed { names, version });
        self.send(Feed::Listed(T::KIND, listed)).await
    }

    async fn send_batch(&mut self, batch: &mut Vec<F::Change>) -> Result<(), Stop> {
        if batch.is_empty() {
            return Ok(());
        }
        self.send(Feed::Changes(std::mem::take(batch))).await
    }

    async fn send(&mut self, feed: Feed<F>) -> Result<(), Stop> {
        self.feed.send(feed).await.map_err(|_| Stop::Closed)
    }

    async fn fail(&mut self, error: CallError) -> Result<(), Closed> {
        let reason = if error.is_gone() { "gone" } else { "failed" };
        self.metrics.watch_restarted(T::RESOURCE.plural, reason);
        if error.is_gone() {
            info!(kind = ?T::KIND, "the watch is too far behind; listing again");
            self.version = None;
            tokio::time::sleep(self.backoff.wait()).await;
            return Ok(());
        }
        if error.is_not_found() && T::OPTIONAL {
            return self.do_without().await;
        }
        self.failures += 1;
        let may_pass = error.is_transient();
        // A watch that the server ends or that is cut is resumed; what lasts is trouble.
        let tries = match self.version {
            Some(_) => TRIES_TO_RESUME,
            None => TRIES,
        };
        if !may_pass {
            self.version = None;
        }
        if !may_pass || self.failures >= tries {
            let told = self.tell(&error);
            if let Some(line) = told
                && self.send(Feed::Trouble(T::KIND, line)).await.is_err()
            {
                return Err(Closed);
            }
        } else {
            debug!(kind = ?T::KIND, %error, "the watch broke off; resuming");
        }
        let wait = error.retry_after().unwrap_or_default().max(self.backoff.wait());
        tokio::select! {
            () = tokio::time::sleep(wait) => Ok(()),
            () = self.feed.closed() => Err(Closed),
        }
    }

    /// The CRD of an optional kind is missing: there are no such objects, for now.
    async fn do_without(&mut self) -> Result<(), Closed> {
        if !self.listed_once {
            info!(kind = ?T::KIND, "the kind is not installed; going on without it");
        }
        // What comes once it is installed has to be listed.
        self.version = None;
        let names = self.begin();
        if self.listed(names, "").await.is_err() {
            return Err(Closed);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => Ok(()),
            () = self.feed.closed() => Err(Closed),
        }
    }

    /// The line that says why a kind cannot be read; `None` while that is no news.
    fn tell(&mut self, error: &CallError) -> Option<String> {
        let line = trouble(T::RESOURCE, self.client.server(), error);
        let is_known =
            |(told, at): &(String, tokio::time::Instant)| *told == line && at.elapsed() < TELL_AGAIN;
        if self.told.as_ref().is_some_and(is_known) {
            return None;
        }
        self.told = Some((line.clone(), tokio::time::Instant::now()));
        Some(line)
    }
}

/// Why a list or watch ended early.
enum Stop {
    Closed,
    Failed(CallError),
}

impl From<CallError> for Stop {
    fn from(error: CallError) -> Self {
        Stop::Failed(error)
    }
}

/// Where a stream is.
enum Listing {
    /// Objects of the list are coming; their names are kept if a list came before.
    Now(Option<FxHashSet<(String, String)>>),
    /// Changes are coming.
    Done,
}

/// What cannot be read, why, and what to do about it.
pub fn trouble(resource: crate::client::Resource, server: &str, error: &CallError) -> String {
    let crd = format!("{}.{}", resource.plural, resource.group);
    match error {
        error if error.is_not_found() => format!(
            "the API server at {server} has no {crd}: install the CustomResourceDefinitions, volcano crds | kubectl apply -f -"
        ),
        error if error.is_forbidden() => format!(
            "not allowed to list and watch {}: {error}; grant both verbs to its ClusterRole",
            resource.plural
        ),
        error if error.code() == 401 => format!(
            "the API server at {server} does not accept the credentials: {error}; check the kubeconfig or service account"
        ),
        CallError::NoAnswer(problem) => format!(
            "the API server at {server} does not answer: {problem}; check the address (--master, --kubeconfig) and the network"
        ),
        error => format!("cannot list {}: {error}", resource.plural),
    }
}

fn timeout_seconds() -> u64 {
    WATCH_SECONDS + fastrand::u64(0..WATCH_SECONDS)
}

fn owned_name<F: Family, T: Object<F>>(object: &T) -> (String, String) {
    let (namespace, name) = object.name();
    (namespace.to_owned(), name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Resource;
    use crate::testing::{Say, Server};
    use serde_json::{Value, json};
    use volcano_api::scheduling::Queue;
    use volcano_engine::model::delta::Delta;

    const QUEUES: &str = "GET /apis/scheduling.volcano.sh/v1beta1/queues?watch=true";

    fn added(name: &str, version: &str) -> Value {
        json!({"type": "ADDED", "object": {"metadata": {"name": name, "resourceVersion": version}}})
    }

    /// The queues that a watch hands on before it has asked for the second time, and what it asked for then.
    async fn handed_on(events: Vec<Value>) -> (Vec<String>, String) {
        let server = Server::default().says(QUEUES, [Say::Events(events), Say::Status(500, Value::Null)]);
        let client = server.start().await;
        let (feed, mut fed) = mpsc::channel(100);
        let metrics = Process::new(&prometheus::Registry::new());
        let watch = tokio::spawn(watch::<Scheduling, Queue>(client, metrics, feed));
        server.wait_for(QUEUES, 2).await;
        watch.abort();
        let mut names = Vec::new();
        while let Ok(feed) = fed.try_recv() {
            let Feed::Changes(changes) = feed else { continue };
            names.extend(changes.into_iter().map(|change| match change {
                Delta::Queue(queue) => queue.metadata.name,
                other => panic!("{other:?}"),
            }));
        }
        (names, server.heard().swap_remove(1))
    }

    #[tokio::test]
    async fn events_just_before_a_watch_ends_are_handed_on() {
        let end = json!({"k8s.io/initial-events-end": "true"});
        let listed =
            json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5", "annotations": end}}});
        let broken =
            json!({"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd is away"}});
        let whole = vec![added("first", "4"), listed, added("second", "7")];
        let cut: Vec<_> = whole.iter().cloned().chain([broken]).collect();
        for events in [whole, cut] {
            let (names, asked) = handed_on(events).await;
            assert_eq!(names, ["first", "second"]);
            assert!(asked.contains("&resourceVersion=7&"), "{asked}");
        }
    }

    #[test]
    fn trouble_says_what_to_do() {
        let refused = |code: u16| CallError::Refused {
            code,
            reason: String::new(),
            message: "no".to_owned(),
            retry_after: None,
        };
        let queues = Resource::new("scheduling.volcano.sh", "v1beta1", "queues");
        let cases = [
            (refused(404), "has no queues.scheduling.volcano.sh: install"),
            (refused(403), "grant both verbs"),
            (refused(401), "check the kubeconfig"),
            (
                CallError::NoAnswer("connection refused".to_owned()),
                "https://k does not answer: connection refused; check the address",
            ),
            (refused(500), "cannot list queues: no (500 )"),
        ];
        for (error, expected) in cases {
            let line = trouble(queues, "https://k", &error);
            assert!(line.contains(expected), "{line}");
            assert!(!line.contains('\n'));
        }
    }
}
