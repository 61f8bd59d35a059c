//! Signals: the end, and snapshots on request.

use super::core::Control;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
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
        match tokio::fs::write(&path, snapshot).await {
            Ok(()) => info!(path = %path.display(), "wrote a snapshot; volcano plan -f FILE replays it"),
            Err(error) => error!(path = %path.display(), %error, "cannot write the snapshot"),
        }
    }
}
