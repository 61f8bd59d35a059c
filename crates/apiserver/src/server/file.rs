//! The data file: every write is in it before anybody hears of it.
//!
//! One thread writes what has gathered as one transaction, so that a burst of writes costs one flush of the disk.

use super::{Server, locked};
use crate::resources::Resource;
use crate::store::{Event, Happened, TableId};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use thiserror::Error;
use tracing::error;

/// `group/plural` and key to the object.
const OBJECTS: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const REVISION: &str = "revision";
/// Changes of one transaction, at most.
const BATCH: usize = 4096;

/// Why there is no data file.
#[derive(Debug, Error)]
#[error("data file {path}: {problem}")]
pub struct FileError {
    path: String,
    problem: String,
}

/// What a file had.
#[derive(Debug, Default)]
pub struct Kept {
    /// The last revision.
    pub revision: u64,
    /// Resource, key and object.
    pub objects: Vec<(String, String, Value)>,
}

struct Change {
    table: TableId,
    resource: String,
    event: Arc<Event>,
}

/// An open data file.
pub struct File {
    changes: Sender<Change>,
    waiting: Mutex<Option<(Database, Receiver<Change>)>>,
    problem: Arc<Mutex<Option<String>>>,
}

impl File {
    /// Opens or creates a file.
    pub fn open(path: &Path) -> Result<(File, Kept), FileError> {
        let wrong = |problem: String| FileError {
            path: path.display().to_string(),
            problem,
        };
        let database = Database::create(path).map_err(|error| wrong(error.to_string()))?;
        let kept = read(&database).map_err(|error| wrong(error.to_string()))?;
        let (changes, taken) = channel();
        let file = File {
            changes,
            waiting: Mutex::new(Some((database, taken))),
            problem: Arc::default(),
        };
        Ok((file, kept))
    }

    /// Starts the thread that writes; it ends with the server.
    pub fn run(&self, server: &Arc<Server>) {
        let Some((database, changes)) = locked(&self.waiting).take() else {
            return;
        };
        let (server, problem) = (Arc::downgrade(server), self.problem.clone());
        let spawned = std::thread::Builder::new()
            .name("data-file".to_owned())
            .spawn(move || write_all(&database, &changes, &server, &problem));
        if let Err(error) = spawned {
            *locked(&self.problem) = Some(error.to_string());
        }
    }

    /// Takes a change; the order is that of the calls.
    pub fn take(&self, resource: &Resource, event: Arc<Event>) {
        let _ = self.changes.send(Change {
            table: resource.table,
            resource: format!("{}/{}", resource.group, resource.plural),
            event,
        });
    }

    /// Why nothing is written any more, if so.
    pub fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }
}

fn read(database: &Database) -> Result<Kept, redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(OBJECTS)?;
    transaction.open_table(NUMBERS)?;
    transaction.commit()?;
    let transaction = database.begin_read()?;
    let revision = transaction
        .open_table(NUMBERS)?
        .get(REVISION)?
        .map(|value| value.value());
    let mut kept = Kept {
        revision: revision.unwrap_or_default(),
        objects: Vec::new(),
    };
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = entry?;
        let (resource, key) = key.value();
        if let Ok(object) = serde_json::from_slice(value.value()) {
            kept.objects.push((resource.to_owned(), key.to_owned(), object));
        }
    }
    Ok(kept)
}

fn write_all(
    database: &Database,
    changes: &Receiver<Change>,
    server: &Weak<Server>,
    problem: &Mutex<Option<String>>,
) {
    while let Ok(first) = changes.recv() {
        let mut batch = vec![first];
        batch.extend(changes.try_iter().take(BATCH - 1));
        let outcome = write(database, &batch);
        let Some(server) = server.upgrade() else { return };
        match outcome {
            Ok(revision) => {
                server.settle(revision);
                let mut tables: Vec<TableId> = batch.iter().map(|change| change.table).collect();
                tables.sort_unstable();
                tables.dedup();
                tables.into_iter().for_each(|table| server.wake(table));
            }
            Err(error) => {
                error!(%error, "the data file cannot be written; no further write is acknowledged");
                *locked(problem) = Some(error.to_string());
                server.settling.send_replace(0);
                return;
            }
        }
    }
}

fn write(database: &Database, batch: &[Change]) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let mut revision = 0;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        for change in batch {
            let key = (change.resource.as_str(), &*change.event.object.key);
            match change.event.happened {
                Happened::Put => objects.insert(key, &*change.event.object.bytes)?,
                Happened::Removed => objects.remove(key)?,
            };
            revision = change.event.revision();
        }
        transaction.open_table(NUMBERS)?.insert(REVISION, revision)?;
    }
    transaction.commit()?;
    Ok(revision)
}
