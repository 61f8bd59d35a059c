//! The endpoints of the process: metrics, health, and a look inside.
//!
//! ```text
//! --listen-address    /metrics  /debug/snapshot  /debug/pprof/
//! --healthz-address   /healthz  /healthz/ping  /readyz
//! ```

mod health;
pub(crate) mod server;
pub(crate) mod tls;

use crate::metrics::Metrics;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::info;

pub use health::Health;

/// What is served where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Address of metrics and debugging, such as `:8080`.
    pub listen_address: String,
    /// Address of health, such as `:11251`.
    pub healthz_address: String,
    /// Whether `/metrics` is served.
    pub metrics: bool,
    /// Whether health is served.
    pub healthz: bool,
    /// Whether `/debug/pprof/` was asked for.
    pub pprof: bool,
    /// Certificates of the health endpoint; plain HTTP without.
    pub tls: Option<TlsFiles>,
}

/// Files for HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The CA that client certificates are checked against.
    pub ca: PathBuf,
    /// The server's certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Why an endpoint cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("{flag} {address}: {source}; another process may have it, give another address")]
    Listen {
        /// The flag that names it.
        flag: &'static str,
        /// The address.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The certificates cannot be used.
    #[error("{flag} {file}: {problem}")]
    Certificate {
        /// The flag that names the file.
        flag: &'static str,
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
}

/// Starts the servers. They end with the tasks.
///
/// # Errors
/// When an address or a certificate cannot be used.
pub async fn start<F, A>(
    settings: &Settings,
    metrics: &Metrics,
    health: &Arc<Health>,
    snapshot: F,
    tasks: &mut JoinSet<()>,
) -> Result<(), ServeError>
where
    F: Fn() -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Option<Vec<u8>>> + Send + 'static,
{
    let routes = inside(settings, metrics.clone(), snapshot);
    start_routes(settings, routes, health, tasks).await
}

/// Starts the servers of a program that has metrics and health, and no inside to look at.
///
/// # Errors
/// When an address or a certificate cannot be used.
pub async fn start_plain(
    settings: &Settings,
    text: impl Fn() -> String + Clone + Send + Sync + 'static,
    health: &Arc<Health>,
    tasks: &mut JoinSet<()>,
) -> Result<(), ServeError> {
    start_routes(settings, metrics_route(settings, text), health, tasks).await
}

async fn start_routes(
    settings: &Settings,
    inside: Router,
    health: &Arc<Health>,
    tasks: &mut JoinSet<()>,
) -> Result<(), ServeError> {
    if settings.metrics || settings.pprof {
        let listener = listen("--listen-address", &settings.listen_address).await?;
        tasks.spawn(server::serve(listener, None, inside));
    }
    if settings.healthz {
        let tls = settings.tls.as_ref().map(fixed).transpose()?;
        let listener = listen("--healthz-address", &settings.healthz_address).await?;
        let routes = health_routes(health.clone());
        tasks.spawn(server::serve(listener, tls, routes));
    }
    Ok(())
}

/// A certificate that stays as it is.
fn fixed(files: &TlsFiles) -> Result<server::Tls, ServeError> {
    let config = tls::from_files(files, &tls::read(files)?)?;
    Ok(tokio::sync::watch::channel(config).1)
}

pub(crate) async fn listen(flag: &'static str, address: &str) -> Result<TcpListener, ServeError> {
    // `:8080` means all addresses of the machine.
    let given = match address.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => address.to_owned(),
    };
    let listener = match TcpListener::bind(&given).await {
        Err(_) if given.starts_with("[::]") => TcpListener::bind(given.replacen("[::]", "0.0.0.0", 1)).await,
        listener => listener,
    };
    let listener = listener.map_err(|source| ServeError::Listen {
        flag,
        address: address.to_owned(),
        source,
    })?;
    info!(flag, address = ?listener.local_addr().ok(), "listening");
    Ok(listener)
}

fn metrics_route(settings: &Settings, text: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    if !settings.metrics {
        return Router::new();
    }
    // Series of some ten thousand jobs take a while: not on a thread that has writes to send.
    let text = move || {
        let making = tokio::task::spawn_blocking(text.clone());
        async move {
            match making.await {
                Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
    };
    Router::new().route("/metrics", get(text))
}

fn inside<F, A>(settings: &Settings, metrics: Metrics, snapshot: F) -> Router
where
    F: Fn() -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Option<Vec<u8>>> + Send + 'static,
{
    let mut routes = metrics_route(settings, move || metrics.text());
    let dump = move || {
        let snapshot = snapshot();
        async move {
            match snapshot.await {
                Some(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
                None => (StatusCode::SERVICE_UNAVAILABLE, "the scheduler is ending\n").into_response(),
            }
        }
    };
    routes = routes.route("/debug/snapshot", get(dump));
    if settings.pprof {
        let hint = "there are no Go profiles here; perf record -g -p PID and GET /debug/snapshot tell more\n";
        let answer = move || async move { (StatusCode::NOT_IMPLEMENTED, hint) };
        routes = routes
            .route("/debug/pprof/", get(answer))
            .route("/debug/pprof/{*profile}", get(answer));
    }
    routes
}

pub(crate) fn health_routes(health: Arc<Health>) -> Router {
    let answer = |verdict: Result<(), String>, otherwise: StatusCode| match verdict {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(why) => (otherwise, format!("{why}\n")),
    };
    let live = {
        let health = health.clone();
        move || async move { answer(health.live(), StatusCode::INTERNAL_SERVER_ERROR) }
    };
    let ready = move || async move { answer(health.ready(), StatusCode::SERVICE_UNAVAILABLE) };
    Router::new()
        .route("/healthz", get(live.clone()))
        .route("/healthz/ping", get(live))
        .route("/readyz", get(ready))
}

#[cfg(test)]
mod tests;
