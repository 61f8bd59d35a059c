//! Signals: the end, and snapshots on request.

use super::core::Control;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, info};

/// A signal stream; without one, a stream that never gives anything.
fn on(kind: SignalKind) -> Option<Signal> {
    signal(kind)
        .map_err(|error| error!(%error, "cannot listen for signals"))
        .ok()
}

async fn next(signal: &mut Option<Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => false,
    };
    if !came {
        std::future::pending::<()>().await;
    }
}

/// Asks for the end on the first SIGINT or SIGTERM; the second one ends the process at once.
pub async fn end(shutdown: watch::Sender<bool>) {
    let (mut interrupt, mut terminate) = (on(SignalKind::interrupt()), on(SignalKind::terminate()));
    for first in [true, false] {
        tokio::select! {
            () = next(&mut interrupt) => {}
            () = next(&mut terminate) => {}
        }
        if first {
            info!("ending: what is in flight is finished first; a second signal ends at once");
            shutdown.send_replace(true);
        }
    }
    std::process::exit(1);
}

/// Writes a snapshot into the folder on SIGUSR1 and SIGUSR2.
pub async fn dump(folder: &Path, control: mpsc::Sender<Control>) {
    let mut signals = (on(SignalKind::user_defined1()), on(SignalKind::user_defined2()));
    loop {
        tokio::select! {
            () = next(&mut signals.0) => {}
            () = next(&mut signals.1) => {}
        }
        let (answer, snapshot) = oneshot::channel();
        if control.send(Control::Snapshot(answer)).await.is_err() {
            return;
        }
        let Ok(snapshot) = snapshot.await else { continue };
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let path = folder.join(format!("snapshot-{seconds}.json"));
        match write(&path, &snapshot).await {
            Ok(()) => info!(path = %path.display(), "wrote a snapshot; volcano plan -f FILE replays it"),
            Err(error) => error!(path = %path.display(), %error, "cannot write the snapshot"),
        }
    }
}

/// Writes a file for nobody else to read: it names all that runs in the cluster. A file of that name is replaced and not
/// written into, since in a folder that others write to it may be a link of theirs.
async fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    match tokio::fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .await?;
    file.write_all(content).await?;
    file.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[tokio::test]
    async fn a_snapshot_is_for_nobody_else_to_read_and_is_not_written_into_a_file_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("snapshot-1.json"), folder.path().join("other"));
        std::fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        for content in ["one", "2"] {
            write(&path, content.as_bytes()).await.unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
            let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600);
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
    }
}
