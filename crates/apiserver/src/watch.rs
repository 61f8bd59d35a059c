//! Watches: a place in the history of a resource, and whoever reads from there.
//!
//! Nothing is queued for a watcher. It wakes when something was written, reads the events after its place and sends them
//! together. One that is slower than the history is long gets 410 and lists again.

use crate::fault::Fault;
use crate::http::{Body, Format};
use crate::resources::Resource;
use crate::server::Server;
use crate::store::{Event, Happened, Object, Range};
use crate::verbs::{ListOptions, out_of_reach, rendered};
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Events that are sent at once, at most.
const BATCH: usize = 512;
/// Bytes of one piece of an answer, unless one event is longer. Allocators give out larger ones page by page.
const PIECE: usize = 64 << 10;
/// Bytes around the object of an event, at most.
const AROUND: usize = 40;
/// A quiet watch gets a bookmark this often.
const BOOKMARK: Duration = Duration::from_secs(60);
/// A watch that says nothing of it is open at least this long.
const OPEN_SECONDS: u64 = 1800;
/// No watch is open for longer.
const LONGEST_SECONDS: u64 = 3 * 3600;

struct Watcher {
    server: Arc<Server>,
    resource: Arc<Resource>,
    namespace: String,
    options: ListOptions,
    format: Format,
    position: u64,
    waker: watch::Receiver<()>,
    stopping: watch::Receiver<bool>,
    deadline: Instant,
    bookmark: Instant,
    pieces: VecDeque<Bytes>,
    ended: bool,
    /// Tables say what their columns are once.
    told_columns: bool,
}

/// Starts a watch; the body of its answer.
pub async fn watch(
    server: &Arc<Server>,
    resource: &Arc<Resource>,
    namespace: &str,
    options: ListOptions,
    format: Format,
) -> Result<Body, Fault> {
    let asked = options.revision()?;
    let waker = server.waker(resource.table);
    let begins_with_state =
        options.initial_events == Some(true) || options.initial_events.is_none() && asked == 0;
    let current = server.revision();
    if asked > current {
        return Err(out_of_reach(crate::store::OutOfReach::TooNew(current), asked));
    }
    let jitter = current % 300;
    let seconds = options
        .timeout
        // No time at all is as if nothing were said of it.
        .filter(|seconds| *seconds > 0)
        .unwrap_or(OPEN_SECONDS + jitter)
        .min(LONGEST_SECONDS);
    let mut watcher = Watcher {
        server: server.clone(),
        resource: resource.clone(),
        namespace: namespace.to_owned(),
        options,
        format,
        position: if asked == 0 { current } else { asked },
        waker,
        stopping: server.stopping.subscribe(),
        deadline: Instant::now() + Duration::from_secs(seconds),
        bookmark: Instant::now() + BOOKMARK,
        pieces: VecDeque::new(),
        ended: false,
        told_columns: false,
    };
    if begins_with_state {
        watcher.send_state().await?;
    } else {
        // A version that is no longer known is told as an event, once the watch is open.
        server.settled(watcher.position.min(current)).await?;
    }
    let stream = futures::stream::unfold(watcher, |mut watcher| async move {
        let piece = watcher.next().await?;
        Some((Ok::<_, std::convert::Infallible>(Frame::data(piece)), watcher))
    });
    Ok(StreamBody::new(stream).boxed_unsync())
}

impl Watcher {
    /// Everything that is there, as if it were new.
    async fn send_state(&mut self) -> Result<(), Fault> {
        let range = Range {
            namespace: &self.namespace,
            ..Range::default()
        };
        let selector = &self.options.selector;
        let page = self
            .server
            .list(self.resource.table, range, |object| selector.matches(object));
        let page = page.map_err(|reach| out_of_reach(reach, 0))?;
        self.server.settled(page.revision).await?;
        self.position = page.revision;
        let mut piece = BytesMut::new();
        let mut ahead = page.items.iter().map(|object| length_of(object)).sum();
        for object in &page.items {
            self.make_room(&mut piece, object, &mut ahead);
            self.line(&mut piece, "ADDED", object);
        }
        if self.options.initial_events == Some(true) && self.options.bookmarks {
            self.bookmark_line(&mut piece, page.revision, true);
        }
        self.lay_aside(&mut piece);
        Ok(())
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(piece);
            }
            if self.ended || *self.stopping.borrow() {
                return None;
            }
            self.waker.borrow_and_update();
            let seen = self.server.visible();
            let is_all = self.gather(seen);
            if !self.pieces.is_empty() {
                continue;
            }
            if !is_all {
                // Nothing of a whole batch was wanted; nobody wakes us for what comes after it.
                tokio::task::yield_now().await;
                continue;
            }
            let quiet = tokio::select! {
                woken = self.waker.changed() => if woken.is_err() { return None } else { false },
                () = tokio::time::sleep_until(self.deadline) => return None,
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                () = tokio::time::sleep_until(self.bookmark) => true,
            };
            if quiet {
                self.bookmark = Instant::now() + BOOKMARK;
                if self.options.bookmarks {
                    let mut piece = BytesMut::new();
                    self.bookmark_line(&mut piece, self.position, false);
                    return Some(piece.freeze());
                }
            }
        }
    }

    /// Makes the events that are new into pieces; whether these were all.
    fn gather(&mut self, seen: u64) -> bool {
        let mut piece = BytesMut::new();
        let events = match self.server.since(self.resource.table, self.position, BATCH) {
            Ok(events) => events,
            Err(reach) => {
                let fault = out_of_reach(reach, self.position);
                let line = json!({"type": "ERROR", "object": fault.status()});
                piece.put_slice(line.to_string().as_bytes());
                piece.put_u8(b'\n');
                self.pieces.push_back(piece.freeze());
                self.ended = true;
                return true;
            }
        };
        let is_all = events.len() < BATCH;
        let mut ahead = events.iter().map(|event| length_of(&event.object)).sum();
        for event in events {
            self.make_room(&mut piece, &event.object, &mut ahead);
            self.event(&mut piece, &event);
            self.position = event.revision();
        }
        self.lay_aside(&mut piece);
        if is_all && self.pieces.is_empty() {
            // Nothing of it was wanted; a bookmark may say how far it went.
            self.position = self.position.max(seen);
        }
        is_all
    }

    /// Begins another piece if an object would make this one too long. A new one has room for what is `ahead`: one that
    /// grows is copied each time.
    fn make_room(&mut self, piece: &mut BytesMut, object: &Object, ahead: &mut usize) {
        let size = length_of(object);
        if piece.len() + size > PIECE {
            self.lay_aside(piece);
        }
        if piece.is_empty() {
            piece.reserve(size.max(PIECE.min(*ahead)));
        }
        *ahead = ahead.saturating_sub(size);
    }

    fn lay_aside(&mut self, piece: &mut BytesMut) {
        if !piece.is_empty() {
            self.pieces.push_back(std::mem::take(piece).freeze());
        }
    }

    fn event(&mut self, piece: &mut BytesMut, event: &Event) {
        let object = &event.object;
        if !self.namespace.is_empty() && object.namespace() != self.namespace {
            return;
        }
        let selector = &self.options.selector;
        let wanted = |object: &Object| selector.matches(object);
        let before = event.previous.as_deref().is_some_and(wanted);
        let after = event.happened == Happened::Put && wanted(object);
        match (before, after) {
            (false, false) => {}
            (false, true) => self.line(piece, "ADDED", object),
            (true, true) => self.line(piece, "MODIFIED", object),
            (true, false) if event.happened == Happened::Removed => self.line(piece, "DELETED", object),
            (true, false) => {
                // To this watcher it is gone: its last state there, at the version that it left with.
                if let Some(previous) = &event.previous {
                    let selectable = &self.resource.selectable;
                    let last = Object::new(&previous.key, previous.value(), event.revision(), selectable);
                    self.line(piece, "DELETED", &last);
                }
            }
        }
    }

    fn line(&mut self, piece: &mut BytesMut, happened: &str, object: &Object) {
        let bytes = match self.format {
            Format::Json => rendered(&self.resource, object),
            Format::Metadata => crate::http::partial(&object.value()).to_string().into(),
            Format::Table(include) => {
                let with_columns = !std::mem::replace(&mut self.told_columns, true);
                let now = self.server.timestamp();
                let metadata = json!({"resourceVersion": object.revision.to_string()});
                let mut table = crate::table::table(&self.resource, &[object], include, metadata, now);
                if !with_columns {
                    table["columnDefinitions"] = Value::Null;
                }
                table.to_string().into()
            }
        };
        piece.reserve(bytes.len() + AROUND);
        // The type comes first: readers that are in a hurry look there.
        piece.put_slice(b"{\"type\":\"");
        piece.put_slice(happened.as_bytes());
        piece.put_slice(b"\",\"object\":");
        piece.put_slice(&bytes);
        piece.put_slice(b"}\n");
    }

    /// An object that has a version only, in the form of the others.
    fn bookmark_line(&mut self, piece: &mut BytesMut, revision: u64, ends_state: bool) {
        let mut metadata = json!({});
        if ends_state {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let value = json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
        let object = Object::new("", value, revision, &[]);
        self.line(piece, "BOOKMARK", &object);
    }
}

/// Bytes of an event with this object, at most.
fn length_of(object: &Object) -> usize {
    object.bytes.len() + AROUND
}
