//! The server around the store: who shares it, who is woken by a write, and what a write sets off.
//!
//! ```text
//! verbs ──> commit ──> store (one short lock) ──> file, if there is one ──> watchers wake, callers get their answer
//!                        └──> chores: garbage, namespaces, endpoints
//! ```

mod file;
#[cfg(test)]
mod tests;

use file::File;
pub use file::FileError;

use crate::admission::Hooks;
use crate::chores::{Chore, events, orphans};
use crate::fault::Fault;
use crate::kinds::ClusterAddresses;
use crate::resources::{Nature, Registry, Resource, built_in, crd};
use crate::store::{Clash, Draft, Event, Expect, Happened, Object, OutOfReach, Page, Range, Store, TableId};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::warn;

/// The time, as whoever runs the server has it.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// Everything that requests share.
pub struct Server {
    store: RwLock<Store>,
    registry: RwLock<Arc<Registry>>,
    /// Where resources of CRDs are, even when they are gone for a while.
    custom_tables: Mutex<FxHashMap<String, TableId>>,
    wakers: RwLock<Vec<watch::Sender<()>>>,
    /// Where namespaces are.
    namespaces: TableId,
    /// Revisions up to this one may be seen: they survive a crash.
    settled: AtomicU64,
    settling: watch::Sender<u64>,
    file: Option<File>,
    chores: mpsc::UnboundedSender<Chore>,
    clock: Clock,
    random: Mutex<fastrand::Rng>,
    /// Addresses of Services.
    pub addresses: Mutex<ClusterAddresses>,
    /// Admission webhooks.
    pub hooks: Hooks,
    /// Where logs of pods come from.
    pub logs: RwLock<Option<Arc<dyn crate::LogSource>>>,
    /// Held while a budget is counted and an eviction written.
    pub evictions: Mutex<()>,
    /// Closed when the server stops: watches end.
    pub stopping: watch::Sender<bool>,
}

/// A lock that a panic elsewhere does not take away: what it guards is whole between two calls.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// A server, with what the file has; and what there is to do.
    pub fn new(
        clock: Clock,
        seed: Option<u64>,
        path: Option<&Path>,
    ) -> Result<(Arc<Server>, mpsc::UnboundedReceiver<Chore>), FileError> {
        let opened = path.map(File::open).transpose()?;
        let (server, to_do) = Server::with(clock, seed, opened);
        server.run_file();
        Ok((server, to_do))
    }

    /// A server with an open file that nothing is written to yet.
    fn with(
        clock: Clock,
        seed: Option<u64>,
        opened: Option<(File, file::Kept)>,
    ) -> (Arc<Server>, mpsc::UnboundedReceiver<Chore>) {
        let mut store = Store::new();
        let registry = built_in(|| store.add_table());
        let (chores, to_do) = mpsc::unbounded_channel();
        let (settling, _) = watch::channel(0);
        let (stopping, _) = watch::channel(false);
        let tables = registry.all().len();
        let namespaces = registry.of_nature(Nature::Namespace).table;
        let (file, kept) = match opened {
            Some((file, kept)) => (Some(file), kept),
            None => (None, file::Kept::default()),
        };
        let random = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let server = Arc::new(Server {
            store: RwLock::new(store),
            registry: RwLock::new(Arc::new(registry)),
            custom_tables: Mutex::default(),
            namespaces,
            wakers: RwLock::new((0..tables).map(|_| watch::channel(()).0).collect()),
            settled: AtomicU64::new(if file.is_some() { 0 } else { u64::MAX }),
            settling,
            file,
            chores,
            clock,
            random: Mutex::new(random),
            addresses: Mutex::default(),
            hooks: Hooks::default(),
            logs: RwLock::default(),
            evictions: Mutex::default(),
            stopping,
        });
        server.take_up(kept);
        if server.file.is_some() {
            server.settled.store(server.revision(), Ordering::Release);
        }
        (server, to_do)
    }

    /// Starts to write what there is to write.
    fn run_file(self: &Arc<Server>) {
        if let Some(file) = &self.file {
            file.run(self);
        }
    }

    /// Why nothing is kept any more, if so.
    pub fn problem(&self) -> Option<String> {
        self.file.as_ref().and_then(File::problem)
    }

    /// Waits for that problem; without a file there is none, ever.
    pub fn failed(&self) -> impl Future<Output = String> + Send + use<> {
        let failing = self.file.as_ref().map(File::failing);
        async move {
            let mut problem = None;
            if let Some(mut failing) = failing {
                let told = failing.wait_for(Option::is_some).await;
                problem = told.ok().and_then(|problem| problem.clone());
            }
            match problem {
                Some(problem) => format!("the data file cannot be written: {problem}"),
                None => std::future::pending().await,
            }
        }
    }

    /// Puts what a file kept in its places; definitions first, as they make places.
    fn take_up(&self, kept: file::Kept) {
        let is_definition = |resource: &str| resource == "apiextensions.k8s.io/customresourcedefinitions";
        let (definitions, others): (Vec<_>, Vec<_>) =
            kept.objects.into_iter().partition(|(of, ..)| is_definition(of));
        for (of, key, value) in definitions.into_iter().chain(others) {
            let registry = self.registry();
            let (group, plural) = of.split_once('/').unwrap_or(("", &of));
            let Some(resource) = registry
                .all()
                .iter()
                .find(|known| known.group == group && known.plural == plural && known.is_storage)
            else {
                continue;
            };
            if resource.nature == Nature::Definition {
                self.define(&value);
            }
            let revision = value["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|text| text.parse().ok());
            let object = Object::new(&key, value, revision.unwrap_or_default(), &resource.selectable);
            self.write().restore(resource.table, Arc::new(object));
        }
        self.write().restore_revision(kept.revision);
        self.reload_hooks();
        self.go_on();
    }

    /// What was under way when it stopped, or was still to follow from a write, goes on.
    fn go_on(&self) {
        let registry = self.registry();
        let event_table = registry.of_nature(Nature::Event).table;
        let (now, instant) = (self.timestamp(), Instant::now());
        let store = self.read();
        for (table, object) in store.everything() {
            if object.deleting || !object.owners.is_empty() {
                self.chore(Chore::Look(table, object.key.clone()));
            }
            if table == self.namespaces {
                self.chore(Chore::Namespace(object.key.clone()));
                self.chore(Chore::Endpoints(object.key.clone()));
            }
            if table == event_table {
                let due = instant + events::remaining(&object.value(), now);
                self.chore(Chore::Expire(due, object.key.clone(), object.revision));
            }
        }
        drop(store);
        let (resource, pods) = (registry.of_nature(Nature::Pod), self.all(Nature::Pod, ""));
        let nodes: FxHashSet<&str> = pods.iter().map(|pod| orphans::node_of(resource, pod)).collect();
        for node in nodes.into_iter().filter(|node| !node.is_empty()) {
            // One that is there keeps its pods.
            self.chore(Chore::Orphans(instant + orphans::QUARANTINE, node.into()));
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is served now.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The last revision.
    pub fn revision(&self) -> u64 {
        self.read().revision()
    }

    /// The time, as objects have it: whole seconds.
    pub fn now(&self) -> String {
        let seconds = (self.clock)().as_second();
        jiff::Timestamp::from_second(seconds)
            .unwrap_or_default()
            .to_string()
    }

    /// The time.
    pub fn timestamp(&self) -> jiff::Timestamp {
        (self.clock)()
    }

    /// A new UID.
    pub fn uid(&self) -> String {
        let bytes = locked(&self.random).u128(..).to_le_bytes();
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Five letters behind a generated name: none that make words.
    pub fn suffix(&self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = locked(&self.random);
        (0..5)
            .map(|_| char::from(LETTERS[random.usize(..LETTERS.len())]))
            .collect()
    }

    /// An object.
    pub fn get(&self, table: TableId, key: &str) -> Option<Arc<Object>> {
        self.read().get(table, key).cloned()
    }

    /// A part of a list.
    pub fn list(
        &self,
        table: TableId,
        range: Range<'_>,
        wanted: impl Fn(&Object) -> bool,
    ) -> Result<Page, OutOfReach> {
        self.read().list(table, range, wanted)
    }

    /// All objects of a resource, of one namespace or of all.
    pub fn all(&self, nature: Nature, namespace: &str) -> Vec<Arc<Object>> {
        let table = self.registry().of_nature(nature).table;
        let range = Range {
            namespace,
            ..Range::default()
        };
        self.list(table, range, |_| true)
            .map(|page| page.items)
            .unwrap_or_default()
    }

    /// Events after a revision that may be seen.
    pub fn since(&self, table: TableId, revision: u64, most: usize) -> Result<Vec<Arc<Event>>, OutOfReach> {
        let mut events = self.read().since(table, revision, most)?;
        let settled = self.settled.load(Ordering::Acquire);
        let seen = events.partition_point(|event| event.revision() <= settled);
        events.truncate(seen);
        Ok(events)
    }

    /// Tells of writes to a resource.
    pub fn waker(&self, table: TableId) -> watch::Receiver<()> {
        let wakers = self.wakers.read().unwrap_or_else(PoisonError::into_inner);
        wakers[table].subscribe()
    }

    pub(crate) fn wake(&self, table: TableId) {
        let wakers = self.wakers.read().unwrap_or_else(PoisonError::into_inner);
        wakers[table].send_replace(());
    }

    /// Up to this revision everything is kept.
    pub(crate) fn settle(&self, revision: u64) {
        self.settled.store(revision, Ordering::Release);
        self.settling.send_replace(revision);
    }

    /// Waits until a revision survives a crash; at once when nothing is kept in a file.
    pub async fn settled(&self, revision: u64) -> Result<(), Fault> {
        let Some(file) = &self.file else { return Ok(()) };
        if self.settled.load(Ordering::Acquire) >= revision {
            return Ok(());
        }
        let mut settling = self.settling.subscribe();
        loop {
            // In this order: a problem comes with a change, which must not be taken for seen before the problem is.
            if *settling.borrow_and_update() >= revision {
                return Ok(());
            }
            if let Some(problem) = file.problem() {
                return Err(Fault::internal(format!(
                    "the data file cannot be written: {problem}"
                )));
            }
            if settling.changed().await.is_err() {
                return Err(Fault::internal("the server is stopping"));
            }
        }
    }

    /// The highest revision that may be seen now.
    pub fn visible(&self) -> u64 {
        self.revision().min(self.settled.load(Ordering::Acquire))
    }

    /// Creates or changes.
    pub fn put(
        &self,
        resource: &Resource,
        key: &str,
        expect: Expect,
        value: Value,
    ) -> Result<Arc<Event>, Clash> {
        let draft = Draft::new(key, value, &resource.selectable);
        let mut store = self.write();
        let event = store.put(resource.table, key, expect, |revision| draft.at(revision))?;
        self.committed(resource, &store, &event);
        drop(store);
        self.announce(resource, &event);
        Ok(event)
    }

    /// Deletes; `value` is the last state.
    pub fn remove(
        &self,
        resource: &Resource,
        key: &str,
        expect: Expect,
        value: Value,
    ) -> Result<Arc<Event>, Clash> {
        let draft = Draft::new(key, value, &resource.selectable);
        let mut store = self.write();
        let event = store.remove(resource.table, key, expect, |revision| draft.at(revision))?;
        self.committed(resource, &store, &event);
        drop(store);
        self.announce(resource, &event);
        Ok(event)
    }

    /// Under the lock, so that the order is that of the revisions.
    fn committed(&self, resource: &Resource, store: &Store, event: &Arc<Event>) {
        if let Some(file) = &self.file {
            file.take(resource, event.clone());
        }
        let object = &event.object;
        let removed = event.happened == Happened::Removed;
        let look = |place: &(TableId, Box<str>)| self.chore(Chore::Look(place.0, place.1.clone()));
        if removed {
            store.owned_by(&object.uid).iter().for_each(look);
        } else if object.deleting {
            self.chore(Chore::Look(resource.table, object.key.clone()));
        }
        for owner in &object.owners {
            match store.place_of(owner) {
                // An owner that waits for what it owns.
                Some(place)
                    if removed && store.get(place.0, &place.1).is_some_and(|owner| owner.deleting) =>
                {
                    look(place)
                }
                None if !removed => self.chore(Chore::Look(resource.table, object.key.clone())),
                _ => {}
            }
        }
        match resource.nature {
            Nature::Namespace if !removed => self.chore(Chore::Namespace(object.key.clone())),
            Nature::Service | Nature::Pod | Nature::Budget => {
                self.chore(Chore::Endpoints(object.namespace().into()))
            }
            Nature::Node if removed => {
                let due = Instant::now() + orphans::QUARANTINE;
                self.chore(Chore::Orphans(due, object.key.clone()));
            }
            Nature::Event if !removed => {
                let due = Instant::now() + events::KEPT;
                self.chore(Chore::Expire(due, object.key.clone(), object.revision));
            }
            _ => {}
        }
        if removed && resource.namespaced {
            let ending = store
                .get(self.namespaces, object.namespace())
                .is_some_and(|namespace| namespace.deleting);
            if ending {
                self.chore(Chore::Namespace(object.namespace().into()));
            }
        }
    }

    fn announce(&self, resource: &Resource, event: &Event) {
        if matches!(resource.nature, Nature::Mutating | Nature::Validating) {
            self.reload_hooks();
        }
        if resource.nature == Nature::Definition {
            match event.happened {
                Happened::Put => self.define(&event.object.value()),
                Happened::Removed => self.undefine(&event.object.value()),
            }
        }
        if self.file.is_none() {
            self.wake(resource.table);
        }
    }

    fn chore(&self, chore: Chore) {
        // Nobody is left to do it when the server stops.
        let _ = self.chores.send(chore);
    }

    /// What names an object as its owner.
    pub fn owned_by(&self, uid: &str) -> Vec<(TableId, Box<str>)> {
        self.read().owned_by(uid)
    }

    /// Where the object with this UID is.
    pub fn place_of(&self, uid: &str) -> Option<(TableId, Box<str>)> {
        self.read().place_of(uid).cloned()
    }

    /// Serves what a definition defines.
    fn define(&self, definition: &Value) {
        let name = definition["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if defines_built_in(definition) {
            // New ones are refused; a data file may have one from before.
            warn!(name, "a definition of a built-in resource is left out");
            return;
        }
        let mut tables = locked(&self.custom_tables);
        let table = *tables.entry(name).or_insert_with(|| {
            let mut wakers = self.wakers.write().unwrap_or_else(PoisonError::into_inner);
            wakers.push(watch::channel(()).0);
            self.write().add_table()
        });
        drop(tables);
        let served = crd::resources(definition, table);
        self.change_registry(|registry| {
            if let Some(first) = served.first() {
                registry.remove(&first.group, &first.plural);
            }
            served.into_iter().for_each(|resource| registry.add(resource));
        });
    }

    fn undefine(&self, definition: &Value) {
        if defines_built_in(definition) {
            return;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let spec = &definition["spec"];
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let registry = self.registry();
        let storage = registry
            .all()
            .iter()
            .find(|one| one.group == group && one.plural == plural && one.is_storage);
        if let Some(resource) = storage {
            // Its objects go with it.
            let items = self
                .list(resource.table, Range::default(), |_| true)
                .map(|page| page.items)
                .unwrap_or_default();
            for object in items {
                let _ = self.remove(resource, &object.key, Expect::At(object.revision), object.value());
            }
        }
        self.change_registry(|registry| registry.remove(&group, &plural));
    }

    fn change_registry(&self, change: impl FnOnce(&mut Registry)) {
        let mut current = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        let mut registry = (**current).clone();
        change(&mut registry);
        *current = Arc::new(registry);
    }

    /// Reads the webhooks that are registered.
    fn reload_hooks(&self) {
        let of = |nature| {
            self.all(nature, "")
                .iter()
                .map(|object| object.value())
                .collect::<Vec<_>>()
        };
        self.hooks.load(&of(Nature::Mutating), &of(Nature::Validating));
    }
}

/// Whether a definition names a resource that is there without it.
fn defines_built_in(definition: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &definition["spec"];
    crd::is_built_in(&text(&spec["group"]), &text(&spec["names"]["plural"]))
}
