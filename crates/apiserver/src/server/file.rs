//! The data file: every write is in it before anybody hears of it.
//!
//! One thread writes what has gathered as one transaction, so that a burst of writes costs one flush of the disk.

use super::{Server, locked};
use crate::resources::Resource;
use crate::store::{Event, Happened, TableId};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use thiserror::Error;
use tokio::sync::watch;
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
    problem: watch::Sender<Option<String>>,
}

impl File {
    /// Opens or creates a file that only its owner can read: it holds Secrets.
    pub fn open(path: &Path) -> Result<(File, Kept), FileError> {
        let wrong = |problem: String| FileError {
            path: path.display().to_string(),
            problem,
        };
        let file = private(path).map_err(|error| wrong(error.to_string()))?;
        let database = Database::builder().create_file(file);
        let database = database.map_err(|error| wrong(error.to_string()))?;
        File::over(database).map_err(wrong)
    }

    /// Reads a database, which is to be written to.
    pub(super) fn over(database: Database) -> Result<(File, Kept), String> {
        let kept = read(&database)?;
        let (changes, taken) = channel();
        let file = File {
            changes,
            waiting: Mutex::new(Some((database, taken))),
            problem: watch::channel(None).0,
        };
        Ok((file, kept))
    }

    /// Starts the thread that writes; it ends with the server.
    pub fn run(&self, server: &Arc<Server>) {
        let Some((database, changes)) = locked(&self.waiting).take() else {
            return;
        };
        let (server, problem) = (Arc::downgrade(server), self.problem.clone());
        let write = move || {
            let written = catch_unwind(AssertUnwindSafe(|| write_all(&database, &changes, &server)));
            let Err(failure) = written.unwrap_or_else(|_| Err("its writer ended in a panic".to_owned()))
            else {
                return;
            };
            error!(
                error = failure,
                "the data file cannot be written; no further write is acknowledged"
            );
            problem.send_replace(Some(failure));
            if let Some(server) = server.upgrade() {
                // Whoever waits looks for the problem.
                server.settling.send_modify(|_| {});
            }
        };
        let spawned = std::thread::Builder::new()
            .name("data-file".to_owned())
            .spawn(write);
        if let Err(error) = spawned {
            self.problem.send_replace(Some(error.to_string()));
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
        self.problem.borrow().clone()
    }

    /// Tells when nothing is written any more, and why.
    pub fn failing(&self) -> watch::Receiver<Option<String>> {
        self.problem.subscribe()
    }
}

/// The file, for its owner alone; one that is there from before is made so.
fn private(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

fn read(database: &Database) -> Result<Kept, String> {
    let (revision, objects) = entries(database).map_err(|error| error.to_string())?;
    let mut kept = Kept {
        revision,
        objects: Vec::with_capacity(objects.len()),
    };
    for (resource, key, bytes) in objects {
        // To go on without it would be to lose what was acknowledged.
        let object = serde_json::from_slice(&bytes)
            .map_err(|error| format!("{resource} {key:?} cannot be read: {error}"))?;
        kept.objects.push((resource, key, object));
    }
    Ok(kept)
}

/// The revision, and resource, key and bytes of all objects.
type Entries = (u64, Vec<(String, String, Vec<u8>)>);

fn entries(database: &Database) -> Result<Entries, redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(OBJECTS)?;
    transaction.open_table(NUMBERS)?;
    transaction.commit()?;
    let transaction = database.begin_read()?;
    let revision = transaction
        .open_table(NUMBERS)?
        .get(REVISION)?
        .map(|value| value.value());
    let mut objects = Vec::new();
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = entry?;
        let (resource, key) = key.value();
        objects.push((resource.to_owned(), key.to_owned(), value.value().to_vec()));
    }
    Ok((revision.unwrap_or_default(), objects))
}

/// Writes until the server is gone, or says why it cannot.
fn write_all(database: &Database, changes: &Receiver<Change>, server: &Weak<Server>) -> Result<(), String> {
    while let Ok(first) = changes.recv() {
        let mut batch = vec![first];
        batch.extend(changes.try_iter().take(BATCH - 1));
        let revision = write(database, &batch).map_err(|error| error.to_string())?;
        let Some(server) = server.upgrade() else {
            return Ok(());
        };
        server.settle(revision);
        let mut tables: Vec<TableId> = batch.iter().map(|change| change.table).collect();
        tables.sort_unstable();
        tables.dedup();
        tables.into_iter().for_each(|table| server.wake(table));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut objects = transaction.open_table(OBJECTS).unwrap();
        objects
            .insert(("/configmaps", "default/a"), b"{".as_slice())
            .unwrap();
        drop(objects);
        transaction.commit().unwrap();
        drop(database);
        let Err(error) = File::open(&path) else {
            panic!("the object is left out without a word");
        };
        let said = error.to_string();
        assert!(
            said.contains("/configmaps \"default/a\" cannot be read"),
            "{said}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        drop(File::open(&path).unwrap());
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        drop(File::open(&path).unwrap());
        assert_eq!(mode(), 0o600, "one from before too");
    }
}
