//! Volumes of claims: what the controllers of volumes and a driver do in a cluster.
//!
//! ```text
//! watches of claims, volumes and classes ──> binder (pure) ──> writes, and directories of volumes
//! ```

mod binder;

use binder::{Binder, Key, Write};
use futures::StreamExt as _;
use futures::stream;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{debug, warn};
use volcano_api::core::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use volcano_runtime::client::{CallError, Client, Patch, Resource};
use volcano_runtime::metrics::Process;
use volcano_runtime::watch::{Family, Feed, Gone, Object, watch};

const CLAIMS: Resource = Resource::new("", "v1", "persistentvolumeclaims");
const VOLUMES: Resource = Resource::new("", "v1", "persistentvolumes");
const CLASSES: Resource = Resource::new("storage.k8s.io", "v1", "storageclasses");
/// Kinds that are watched.
const KINDS: usize = 3;
/// Says which volumes are ours to remove.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const OURS: &str = "volcano.sh/local";
/// Where volumes are that have no files.
const NOWHERE: &str = "/simulated";
/// Batches of changes that wait.
const WAITING: usize = 64;
/// Lists of writes under way at the same time, at most.
const LANES: usize = 16;
/// What failed is tried again after this long.
const AGAIN: Duration = Duration::from_secs(1);
/// Without anything to do it looks this often.
const IDLE: Duration = Duration::from_secs(3600);

/// The watches.
#[derive(Debug)]
struct Storing;

/// What a watch tells.
#[derive(Debug)]
enum Change {
    Claim(Box<PersistentVolumeClaim>),
    Volume(Box<PersistentVolume>),
    Class(Box<StorageClass>),
    Gone(&'static str, Key),
}

impl Family for Storing {
    type Kind = &'static str;
    type Change = Change;

    fn gone(kind: &'static str, object: &Gone<'_>) -> Change {
        Change::Gone(kind, (object.namespace.to_owned(), object.name.to_owned()))
    }
}

macro_rules! watched {
    ($($type:ident in $resource:ident => $change:ident;)*) => {$(
        impl Object<Storing> for $type {
            const KIND: &'static str = stringify!($change);
            const RESOURCE: Resource = $resource;

            fn name(&self) -> (&str, &str) {
                (&self.metadata.namespace, &self.metadata.name)
            }

            fn version(&self) -> &str {
                &self.metadata.resource_version
            }

            fn change(self) -> Change {
                Change::$change(Box::new(self))
            }
        }
    )*};
}

watched! {
    PersistentVolumeClaim in CLAIMS => Claim;
    PersistentVolume in VOLUMES => Volume;
    StorageClass in CLASSES => Class;
}

/// Binds claims until it is aborted. Volumes that are made are directories of this one; without it they are nowhere.
pub async fn run(client: Client, metrics: Process, place: Option<PathBuf>) {
    let (to, mut feed) = mpsc::channel(WAITING);
    let mut watching = JoinSet::new();
    let (own, metrics) = (|| client.clone(), || metrics.clone());
    watching.spawn(watch::<Storing, PersistentVolumeClaim>(
        own(),
        metrics(),
        to.clone(),
    ));
    watching.spawn(watch::<Storing, PersistentVolume>(own(), metrics(), to.clone()));
    watching.spawn(watch::<Storing, StorageClass>(own(), metrics(), to));
    let (mut binder, mut listed) = (Binder::default(), BTreeSet::new());
    let mut look = IDLE;
    loop {
        tokio::select! {
            fed = feed.recv() => match fed {
                Some(fed) => take(&mut binder, &mut listed, fed),
                None => return,
            },
            () = tokio::time::sleep(look) => {}
        }
        while let Ok(fed) = feed.try_recv() {
            take(&mut binder, &mut listed, fed);
        }
        // Until everything is known, a claim may only seem to be gone.
        if listed.len() == KINDS {
            let done =
                stream::iter(binder.decide()).map(|writes| carry_out(&client, place.as_deref(), writes));
            let done: Vec<bool> = done.buffer_unordered(LANES).collect().await;
            look = if done.contains(&false) { AGAIN } else { IDLE };
        }
    }
}

fn take(binder: &mut Binder, listed: &mut BTreeSet<&'static str>, fed: Feed<Storing>) {
    match fed {
        Feed::Changes(changes) => changes.into_iter().for_each(|change| set(binder, change)),
        Feed::Listed(kind, there) => {
            listed.insert(kind);
            let Some(there) = there else { return };
            let is_there = |key: &Key| there.names.contains(key);
            let has_name = |name: &String| is_there(&(String::new(), name.clone()));
            match kind {
                "Claim" => binder.claims.retain(|key, _| is_there(key)),
                "Volume" => binder.volumes.retain(|name, _| has_name(name)),
                _ => binder.classes.retain(|name, _| has_name(name)),
            }
        }
        Feed::Trouble(_, line) => warn!("{line}"),
    }
}

fn set(binder: &mut Binder, change: Change) {
    match change {
        Change::Claim(claim) => {
            let key = (claim.metadata.namespace.clone(), claim.metadata.name.clone());
            binder.claims.insert(key, *claim);
        }
        Change::Volume(volume) => {
            binder.volumes.insert(volume.metadata.name.clone(), *volume);
        }
        Change::Class(class) => {
            binder.classes.insert(class.metadata.name.clone(), *class);
        }
        Change::Gone("Claim", key) => drop(binder.claims.remove(&key)),
        Change::Gone("Volume", (_, name)) => drop(binder.volumes.remove(&name)),
        Change::Gone(_, (_, name)) => drop(binder.classes.remove(&name)),
    }
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("directory of a volume: {0}")]
    Directory(#[from] io::Error),
}

/// Writes in order. `false` if it is to be tried again; what was refused is decided anew when the change is seen.
async fn carry_out(client: &Client, place: Option<&Path>, writes: Vec<Write>) -> bool {
    for write in writes {
        match carry_out_one(client, place, &write).await {
            Ok(()) => {}
            Err(Problem::Call(error)) if !error.is_transient() => {
                debug!(%error, ?write, "a write about a volume was refused");
                return true;
            }
            Err(problem) => {
                warn!(%problem, ?write, "a volume has to wait");
                return false;
            }
        }
    }
    true
}

async fn carry_out_one(client: &Client, place: Option<&Path>, write: &Write) -> Result<(), Problem> {
    let path = |path: String, status: bool| if status { format!("{path}/status") } else { path };
    match write {
        Write::Volume { name, status, patch } => {
            let path = path(VOLUMES.object("", name), *status);
            client.patch(&path, Patch::Merge, bytes(patch)).await?;
        }
        Write::Claim {
            key: (namespace, name),
            status,
            patch,
        } => {
            let path = path(CLAIMS.object(namespace, name), *status);
            client.patch(&path, Patch::Merge, bytes(patch)).await?;
        }
        Write::Make { name, class, object } => make(client, place, name, class, object.clone()).await?,
        Write::Release(name) => release(client, place, name).await?,
    }
    Ok(())
}

async fn make(
    client: &Client,
    place: Option<&Path>,
    name: &str,
    class: &str,
    mut object: Value,
) -> Result<(), Problem> {
    let folder = place.unwrap_or(Path::new(NOWHERE)).join(name);
    if place.is_some() {
        make_folder(&folder)?;
    }
    let class = client
        .get::<Value>(&CLASSES.object("", class))
        .await
        .unwrap_or_default();
    let policy = class["reclaimPolicy"].as_str().unwrap_or("Delete");
    object["metadata"]["annotations"] = json!({PROVISIONED_BY: OURS});
    object["spec"]["persistentVolumeReclaimPolicy"] = policy.into();
    // It is there, or it is lost: nobody else makes it.
    object["spec"]["hostPath"] = json!({"path": folder, "type": "Directory"});
    client.post(&VOLUMES.all(), bytes(&object)).await?;
    Ok(())
}

/// Whoever a pod runs as may write in its volumes; others of this machine do not come as far.
fn make_folder(folder: &Path) -> io::Result<()> {
    let above = folder.parent().unwrap_or(folder);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(above)?;
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))
}

/// The claim of a volume seems to be gone. What we made goes with it, unless it is to be kept.
async fn release(client: &Client, place: Option<&Path>, name: &str) -> Result<(), Problem> {
    let path = VOLUMES.object("", name);
    let volume: Value = client.get(&path).await?;
    let text = |path: &str| volume.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let claim = CLAIMS.object(text("/spec/claimRef/namespace"), text("/spec/claimRef/name"));
    // Watches of claims and of volumes are not in step: one that was just made may not have been told of.
    match client.get::<Value>(&claim).await {
        Ok(claim) if claim["metadata"]["uid"] == volume["spec"]["claimRef"]["uid"] => return Ok(()),
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let is_ours = volume["metadata"]["annotations"][PROVISIONED_BY] == OURS;
    if !is_ours || text("/spec/persistentVolumeReclaimPolicy") != "Delete" {
        let patch = json!({"metadata": {"uid": text("/metadata/uid")}, "status": {"phase": "Released"}});
        client
            .patch(&format!("{path}/status"), Patch::Merge, bytes(&patch))
            .await?;
        return Ok(());
    }
    if let Some(place) = place {
        let folder = place.join(name);
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
        match removed.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    client.delete(&path, Vec::new()).await?;
    Ok(())
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
