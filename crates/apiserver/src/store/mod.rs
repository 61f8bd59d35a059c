//! The store: objects by resource and key, one counter of revisions, and what happened lately.
//!
//! Pure: no clock, no threads, no files; whoever owns it decides how it is shared and kept. Everything that Kubernetes
//! promises about versions is decided here: a write names the version that it was made from, a list is a state that
//! there was, a watch misses nothing or says so.
//!
//! ```text
//! put/remove ──> objects (now) + history (a ring of events, each with what was there before)
//!                    │                 │
//!         list now ──┘                 ├── watch: events after a revision
//!         list at a revision = now, with later events undone
//! ```

mod object;
#[cfg(test)]
mod tests;

pub use object::{Draft, Object, Selectable};

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Events of a resource that are kept, at most.
const HISTORY_EVENTS: usize = 32_768;
/// Bytes of objects that the history of a resource keeps, at most.
const HISTORY_BYTES: usize = 64 << 20;

/// A resource's place in the store.
pub type TableId = usize;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It was created or changed.
    Put,
    /// It is gone; the object is its last state, at the revision of the deletion.
    Removed,
}

/// A change.
#[derive(Debug)]
pub struct Event {
    /// What.
    pub happened: Happened,
    /// The object after it.
    pub object: Arc<Object>,
    /// The object before it.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    /// The revision that it made.
    pub fn revision(&self) -> u64 {
        self.object.revision
    }
}

/// What has to be there for a write to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Absent,
    /// This version.
    At(u64),
}

/// Why a write was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// There is an object already.
    Exists,
    /// There is none.
    Missing,
    /// There is another version.
    Modified,
}

/// A revision is no longer, or not yet, known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfReach {
    /// Too old; the oldest that is known.
    TooOld(u64),
    /// Not there yet; the current one.
    TooNew(u64),
}

/// A part of a list.
#[derive(Debug)]
pub struct Page {
    /// Objects, in the order of their keys.
    pub items: Vec<Arc<Object>>,
    /// The revision of the state.
    pub revision: u64,
    /// The key of the last item, if there are more.
    pub next: Option<Box<str>>,
    /// How many more, where that is known.
    pub remaining: usize,
}

/// Which part of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    /// Only this namespace; all when empty.
    pub namespace: &'a str,
    /// After this key.
    pub after: Option<&'a str>,
    /// At most so many; 0 for all.
    pub limit: usize,
    /// The state at this revision; now when 0.
    pub at: u64,
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Box<str>, Arc<Object>>,
    history: VecDeque<Arc<Event>>,
    history_bytes: usize,
    /// Events up to this revision are no longer known.
    forgotten: u64,
}

/// A place of an object.
pub type Place = (TableId, Box<str>);

/// All objects.
#[derive(Debug, Default)]
pub struct Store {
    revision: u64,
    tables: Vec<Table>,
    /// Where the object of a UID is.
    uids: FxHashMap<Box<str>, Place>,
    /// What names a UID as its owner.
    owned: FxHashMap<Box<str>, FxHashSet<Place>>,
}

impl Store {
    /// An empty store.
    pub fn new() -> Store {
        Store {
            revision: 1,
            ..Store::default()
        }
    }

    /// The last revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Room for one more resource.
    pub fn add_table(&mut self) -> TableId {
        let forgotten = self.revision;
        self.tables.push(Table {
            forgotten,
            ..Table::default()
        });
        self.tables.len() - 1
    }

    /// Takes up what a file kept: nothing of how it came about is known.
    pub fn restore(&mut self, table: TableId, object: Arc<Object>) {
        self.index(table, &object);
        self.tables[table].objects.insert(object.key.clone(), object);
    }

    /// The revision that a file kept.
    pub fn restore_revision(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
        for table in &mut self.tables {
            table.forgotten = self.revision;
        }
    }

    /// The object of a key.
    pub fn get(&self, table: TableId, key: &str) -> Option<&Arc<Object>> {
        self.tables[table].objects.get(key)
    }

    /// Where the object with a UID is.
    pub fn place_of(&self, uid: &str) -> Option<&Place> {
        self.uids.get(uid)
    }

    /// What names a UID as its owner, in a stable order.
    pub fn owned_by(&self, uid: &str) -> Vec<Place> {
        let mut places: Vec<Place> = self.owned.get(uid).into_iter().flatten().cloned().collect();
        places.sort();
        places
    }

    /// Creates or changes. `make` gets the new revision.
    pub fn put(
        &mut self,
        table: TableId,
        key: &str,
        expect: Expect,
        make: impl FnOnce(u64) -> Object,
    ) -> Result<Arc<Event>, Clash> {
        let previous = self.expected(table, key, expect)?;
        let object = Arc::new(make(self.revision + 1));
        self.revision += 1;
        if let Some(previous) = &previous {
            self.unindex(table, previous);
        }
        self.index(table, &object);
        self.tables[table].objects.insert(key.into(), object.clone());
        Ok(self.remember(table, Happened::Put, object, previous))
    }

    /// Deletes. `make` gets the revision of the deletion and makes the last state.
    pub fn remove(
        &mut self,
        table: TableId,
        key: &str,
        expect: Expect,
        make: impl FnOnce(u64) -> Object,
    ) -> Result<Arc<Event>, Clash> {
        let previous = self.expected(table, key, expect)?;
        let object = Arc::new(make(self.revision + 1));
        self.revision += 1;
        if let Some(previous) = &previous {
            self.unindex(table, previous);
        }
        self.tables[table].objects.remove(key);
        Ok(self.remember(table, Happened::Removed, object, previous))
    }

    fn expected(&self, table: TableId, key: &str, expect: Expect) -> Result<Option<Arc<Object>>, Clash> {
        match (self.get(table, key), expect) {
            (None, Expect::Absent) => Ok(None),
            (Some(_), Expect::Absent) => Err(Clash::Exists),
            (None, Expect::At(_)) => Err(Clash::Missing),
            (Some(object), Expect::At(revision)) if object.revision == revision => Ok(Some(object.clone())),
            (Some(_), Expect::At(_)) => Err(Clash::Modified),
        }
    }

    fn index(&mut self, table: TableId, object: &Object) {
        let place = || (table, object.key.clone());
        self.uids.insert(object.uid.clone(), place());
        for owner in &object.owners {
            self.owned.entry(owner.clone()).or_default().insert(place());
        }
    }

    fn unindex(&mut self, table: TableId, object: &Object) {
        self.uids.remove(&object.uid);
        let place = (table, object.key.clone());
        for owner in &object.owners {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(&place);
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
    }

    fn remember(
        &mut self,
        table: TableId,
        happened: Happened,
        object: Arc<Object>,
        previous: Option<Arc<Object>>,
    ) -> Arc<Event> {
        let table = &mut self.tables[table];
        table.history_bytes += object.bytes.len();
        let event = Arc::new(Event {
            happened,
            object,
            previous,
        });
        table.history.push_back(event.clone());
        while table.history.len() > HISTORY_EVENTS || table.history_bytes > HISTORY_BYTES {
            let Some(oldest) = table.history.pop_front() else {
                break;
            };
            table.history_bytes -= oldest.object.bytes.len();
            table.forgotten = oldest.revision();
        }
        event
    }

    /// The events of a resource after a revision, at most `most` of them.
    pub fn since(&self, table: TableId, revision: u64, most: usize) -> Result<Vec<Arc<Event>>, OutOfReach> {
        let table = &self.tables[table];
        self.within_reach(table, revision)?;
        let first = table
            .history
            .partition_point(|event| event.revision() <= revision);
        Ok(table.history.range(first..).take(most).cloned().collect())
    }

    fn within_reach(&self, table: &Table, revision: u64) -> Result<(), OutOfReach> {
        if revision < table.forgotten {
            return Err(OutOfReach::TooOld(table.forgotten));
        }
        if revision > self.revision {
            return Err(OutOfReach::TooNew(self.revision));
        }
        Ok(())
    }

    /// A part of a list: objects that `wanted` wants.
    pub fn list(
        &self,
        table: TableId,
        range: Range<'_>,
        wanted: impl Fn(&Object) -> bool,
    ) -> Result<Page, OutOfReach> {
        let table = &self.tables[table];
        let revision = if range.at == 0 { self.revision } else { range.at };
        self.within_reach(table, revision.max(table.forgotten))?;
        if revision < table.forgotten {
            return Err(OutOfReach::TooOld(table.forgotten));
        }
        let undone = undone(table, revision);
        let prefix = format!("{}/", range.namespace);
        let start: Bound<&str> = match (range.after, range.namespace) {
            (Some(after), _) => Bound::Excluded(after),
            (None, "") => Bound::Unbounded,
            (None, _) => Bound::Included(&prefix),
        };
        let inside = |key: &str| range.namespace.is_empty() || key.starts_with(&prefix);
        let now = table.objects.range::<str, _>((start, Bound::Unbounded));
        let now = now
            .map(|(key, object)| (&**key, object))
            .take_while(|(key, _)| inside(key));
        let mut page = Page {
            items: Vec::new(),
            revision,
            next: None,
            remaining: 0,
        };
        let mut take = |object: &Arc<Object>| {
            if !wanted(object) {
                return;
            }
            if range.limit > 0 && page.items.len() == range.limit {
                page.remaining += 1;
            } else {
                page.items.push(object.clone());
            }
        };
        if undone.is_empty() {
            now.for_each(|(_, object)| take(object));
        } else {
            let mut merged: BTreeMap<&str, &Arc<Object>> = now.collect();
            let after = range.after.unwrap_or_default();
            for (key, then) in &undone {
                match then {
                    Some(object) if *key > after && inside(key) => merged.insert(key, object),
                    _ => merged.remove(key),
                };
            }
            merged.values().for_each(|object| take(object));
        }
        if page.remaining > 0 {
            page.next = page.items.last().map(|object| object.key.clone());
        }
        Ok(page)
    }

    /// All objects of all resources.
    pub fn everything(&self) -> impl Iterator<Item = (TableId, &Arc<Object>)> {
        let tables = self.tables.iter().enumerate();
        tables.flat_map(|(id, table)| table.objects.values().map(move |object| (id, object)))
    }
}

/// What was different at a revision: the object of a key then, or that there was none.
fn undone(table: &Table, revision: u64) -> BTreeMap<&str, Option<&Arc<Object>>> {
    let mut then = BTreeMap::new();
    for event in table
        .history
        .iter()
        .rev()
        .take_while(|event| event.revision() > revision)
    {
        then.insert(&*event.object.key, event.previous.as_ref());
    }
    then
}
