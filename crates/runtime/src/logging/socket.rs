//! The socket that changes the level of the logs of a running process:
//!
//! ```text
//! curl --unix-socket /tmp/klog-socks/klog-klog.sock 'http://localhost/setlevel?level=5&duration=60s'
//! curl --unix-socket /tmp/klog-socks/klog-klog.sock 'http://localhost/getlevel'
//! ```

use super::Level;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixListener;
use tracing::{info, warn};
use volcano_api::time::GoDuration;

/// Only the user that the process runs as.
const MODE: u32 = 0o700;
const NAME: &str = "klog-klog.sock";
const USAGE: &str =
    "write /setlevel?level=N&duration=D with a whole number above 0 and a duration such as 60s\n";

/// Where the socket is: `DEBUG_SOCKET_DIR`, or `/tmp/klog-socks`.
pub fn socket_directory() -> PathBuf {
    let given = std::env::var_os("DEBUG_SOCKET_DIR").filter(|given| !given.is_empty());
    given.map_or_else(|| "/tmp/klog-socks".into(), PathBuf::from)
}

/// Serves the socket until the task is dropped. Without it the process works as well, so that a failure is a warning.
pub async fn socket(level: Level, directory: PathBuf) {
    let path = directory.join(NAME);
    let outcome = match listen(&directory, &path) {
        Ok(listener) => axum::serve(listener, routes(level)).await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        warn!(path = %path.display(), %error, "the log level cannot be changed while running");
    }
}

fn listen(directory: &Path, path: &Path) -> io::Result<UnixListener> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(MODE)
        .create(directory)?;
    // What an earlier process left behind.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE))?;
    Ok(listener)
}

fn routes(level: Level) -> Router {
    Router::new()
        .route("/setlevel", get(set_level).post(set_level).put(set_level))
        .route("/getlevel", get(get_level))
        .with_state(level)
}

async fn get_level(State(level): State<Level>) -> String {
    format!("Current klog log level: {}\n", level.verbosity())
}

async fn set_level(State(level): State<Level>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let query = query.unwrap_or_default();
    let Some((verbosity, duration)) = request(&query) else {
        return (StatusCode::BAD_REQUEST, USAGE.to_owned());
    };
    level.set_for(verbosity, duration);
    let for_how_long = GoDuration::from(duration);
    info!(verbosity, duration = %for_how_long, "the log level was changed");
    (
        StatusCode::OK,
        format!("klog log level is {verbosity} for {for_how_long}\n"),
    )
}

/// The level and how long it is wanted. Neither has characters that a query would have to escape, but for `+`.
fn request(query: &str) -> Option<(i32, Duration)> {
    let value = |key: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .into_iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    };
    let verbosity: i32 = value("level")?.parse().ok()?;
    let duration = GoDuration::parse(value("duration")?).ok()?.to_std()?;
    (verbosity > 0 && duration >= Duration::from_millis(1)).then_some((verbosity, duration))
}
