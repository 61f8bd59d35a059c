//! Objects as they are and as they change: a list, then a watch that goes on for as long as somebody looks.
//!
//! ```text
//! [list by pages] ─> Listed ─> [watch] ─ end, cut ─> resume at the last version
//!        ^                        │
//!        └──────── 410 ───────────┘   (only what differs from what is known is told)
//! ```

use crate::api::{Api, Meta, Pages, Scope};
use crate::failure::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use volcano_api::protobuf::Tables;
use volcano_runtime::client::{CallError, Frames};
use volcano_runtime::watch::event::{self, Change as Happened};

/// How long the server keeps a watch open.
const WATCH_SECONDS: u64 = 300;
/// A watch without an event for so long is dead: bookmarks come about every minute.
const SILENCE: Duration = Duration::from_secs(150);
/// How long to wait after the first failure and after each further one.
const WAIT: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];

/// How often to look where watching is not allowed.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// An object that can be followed: only what is wanted of it.
pub trait Item: DeserializeOwned {
    /// How it is read in protobuf, for kinds that have that.
    const TABLES: Option<Tables> = None;
    /// Namespace, name and version.
    fn key(&self) -> Key;
}

/// Which object, at which version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Namespace; empty for a cluster-scoped kind.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
}

impl From<&Meta> for Key {
    fn from(meta: &Meta) -> Self {
        Key {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            version: meta.resource_version.clone(),
        }
    }
}

/// News.
#[derive(Debug)]
pub enum Change<T> {
    /// It is there, new or changed.
    Applied(T),
    /// It is gone.
    Gone(Gone<T>),
    /// All that there is has been told, or what could not be read can be read again.
    Listed,
    /// It cannot be read for now; it is tried again.
    Trouble(Failure),
}

/// What is gone.
#[derive(Debug)]
pub struct Gone<T> {
    /// Which object it was.
    pub key: Key,
    /// How it was last; not known of one that went while nobody watched.
    pub last: Option<T>,
}

/// The objects of a scope, followed.
pub struct Live<T> {
    api: Api,
    scope: Scope,
    /// Version by namespace and name of what was told.
    known: BTreeMap<(String, String), String>,
    /// Names that the list under way had.
    seen: BTreeMap<(String, String), ()>,
    state: State<T>,
    /// What is to be told before anything else is asked for.
    waiting: std::collections::VecDeque<Change<T>>,
    version: String,
    failures: usize,
    /// Nothing is asked for until then. Kept here, as is the time by which a watch has to say something: whoever waits for
    /// news may drop the call for them at any moment and call again.
    pause: Option<Instant>,
    silence: Duration,
}

enum State<T> {
    Listing(Box<Pages<T>>),
    Resuming,
    Watching(Box<Frames>, Instant),
}

impl<T: Item> Live<T> {
    /// Begins with a list.
    pub fn new(api: &Api, scope: Scope) -> Self {
        let pages = api.pages(scope.clone(), T::TABLES);
        Live {
            api: api.clone(),
            scope,
            known: BTreeMap::new(),
            seen: BTreeMap::new(),
            state: State::Listing(Box::new(pages)),
            waiting: std::collections::VecDeque::new(),
            version: String::new(),
            failures: 0,
            pause: None,
            silence: SILENCE,
        }
    }

    /// The next news. Never ends.
    pub async fn next(&mut self) -> Change<T> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                return change;
            }
            if let Some(until) = self.pause {
                tokio::time::sleep_until(until).await;
                self.pause = None;
            }
            if let Err(error) = self.step().await {
                return self.trouble(&error);
            }
        }
    }

    async fn step(&mut self) -> Result<(), CallError> {
        match &mut self.state {
            State::Listing(pages) => match pages.next().await? {
                Some(items) => {
                    for item in items {
                        self.take(item);
                    }
                }
                None => {
                    pages.version().clone_into(&mut self.version);
                    self.end_of_list();
                }
            },
            State::Resuming => {
                let path = self.scope.path(&format!(
                    "watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
                    self.version
                ));
                let frames = Box::new(self.api.watch(&path, T::TABLES).await?);
                self.state = State::Watching(frames, Instant::now() + self.silence);
                if self.failures > 0 {
                    self.waiting.push_back(Change::Listed);
                }
            }
            State::Watching(frames, until) => {
                let frame = tokio::time::timeout_at(*until, frames.next())
                    .await
                    .map_err(|_| CallError::NoAnswer("the watch has gone silent".to_owned()))??;
                *until = Instant::now() + self.silence;
                let Some(frame) = frame else {
                    self.state = State::Resuming;
                    return Ok(());
                };
                let format = frames.format();
                if let Some((happened, object)) = event::split(format, &frame) {
                    self.happened(happened, object)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, item: T) {
        let key = item.key();
        let name = (key.namespace, key.name);
        self.seen.insert(name.clone(), ());
        if self.known.insert(name, key.version.clone()) != Some(key.version) {
            self.waiting.push_back(Change::Applied(item));
        }
    }

    /// What was known and is not in the list is gone.
    fn end_of_list(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        let gone: Vec<_> = self
            .known
            .keys()
            .filter(|name| !seen.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            self.forget(name, None);
        }
        self.waiting.push_back(Change::Listed);
        self.state = State::Resuming;
        self.failures = 0;
    }

    fn forget(&mut self, name: (String, String), last: Option<T>) {
        if let Some(version) = self.known.remove(&name) {
            let (namespace, name) = name;
            let key = Key {
                namespace,
                name,
                version,
            };
            self.waiting.push_back(Change::Gone(Gone { key, last }));
        }
    }

    fn happened(
        &mut self,
        happened: Happened,
        object: volcano_runtime::client::Encoded<'_>,
    ) -> Result<(), CallError> {
        match happened {
            Happened::Applied => {
                let item: T = object.object()?;
                self.version = item.key().version;
                self.take(item);
                self.seen.clear();
            }
            Happened::Deleted => {
                let item: T = object.object()?;
                let key = item.key();
                self.version = key.version;
                self.forget((key.namespace, key.name), Some(item));
            }
            Happened::Bookmark => {
                let only: event::Only = object.object()?;
                self.version = only.metadata.resource_version;
            }
            Happened::Error => return Err(object.refusal()),
        }
        self.failures = 0;
        Ok(())
    }

    /// Goes on where that is possible, after a little while.
    fn trouble(&mut self, error: &CallError) -> Change<T> {
        let may_not_watch = error.is_forbidden() && matches!(self.state, State::Resuming);
        if may_not_watch {
            // Many users may list and not watch: looking again does, only later.
            self.state = self.listing();
            self.pause = Some(Instant::now() + LOOK_AGAIN);
            return Change::Listed;
        }
        self.state = match &self.state {
            State::Listing(_) => self.listing(),
            _ if error.is_gone() => self.listing(),
            _ => State::Resuming,
        };
        self.pause = Some(Instant::now() + WAIT[self.failures.min(WAIT.len() - 1)]);
        self.failures += 1;
        Change::Trouble(self.api.failure(error))
    }

    fn listing(&mut self) -> State<T> {
        self.seen.clear();
        State::Listing(Box::new(self.api.pages(self.scope.clone(), T::TABLES)))
    }
}

/// An object of which everything is wanted, as it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Whole(pub serde_json::Value);

impl From<Key> for Whole {
    /// One of which nothing else is known.
    fn from(key: Key) -> Self {
        let mut metadata = json!({"name": key.name, "resourceVersion": key.version});
        if !key.namespace.is_empty() {
            metadata["namespace"] = json!(key.namespace);
        }
        Whole(json!({"metadata": metadata}))
    }
}

impl Item for Whole {
    fn key(&self) -> Key {
        let text = |field: &str| self.0["metadata"][field].as_str().unwrap_or_default().to_owned();
        Key {
            namespace: text("namespace"),
            name: text("name"),
            version: text("resourceVersion"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Answer, Fake};
    use volcano_api::names::kinds;

    #[tokio::test]
    async fn a_watch_that_has_gone_silent_is_noticed_by_those_who_do_other_things_meanwhile() {
        let fake = Fake::serve(|path| match path.contains("watch=true") {
            true => Answer::stream(&[]),
            false => Answer::list(&[]),
        })
        .await;
        let mut live = Live::<Whole>::new(&fake.api().await, Scope::new(kinds::JOB, "ns"));
        live.silence = Duration::from_millis(200);
        let mut other = tokio::time::interval(Duration::from_millis(50));
        let mut silent = 0;
        for _ in 0..200 {
            tokio::select! {
                change = live.next() => if let Change::Trouble(failure) = change {
                    assert!(failure.to_string().contains("gone silent"), "{failure}");
                    silent += 1;
                },
                _ = other.tick() => {}
            }
            // The wait after a failure is longer than what the others do, and passes all the same.
            if silent == 3 {
                return;
            }
        }
        panic!("told {silent} times");
    }
}
