//! Connections: each in a task of its own, and none for longer than it needs.
//!
//! Probes decide whether the process lives. A client that is slow or silent must not keep them waiting.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

/// For a TLS handshake, and for the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// After this long a connection takes no further request.
const CONNECTION_AGE: Duration = Duration::from_secs(30);
/// And then has this long for its last answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Connections at a time; the next ones wait.
const MOST_CONNECTIONS: usize = 256;
/// Pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves until the task is dropped.
pub(super) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, routes: Router) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        // Connections that have ended are cleared away.
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else {
            return; // The semaphore is never closed.
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (tls, routes) = (tls.clone(), routes.clone());
        connections.spawn(async move {
            connection(stream, tls, routes).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, routes: Router) {
    let Some(tls) = tls else {
        return requests(stream, routes).await;
    };
    match timeout(HEADER_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => requests(stream, routes).await,
        Ok(Err(error)) => debug!(%error, "a TLS handshake failed"),
        Err(_) => debug!("a TLS handshake took too long"),
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, routes: Router) {
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
    );
    let outcome = match timeout(CONNECTION_AGE, connection.as_mut()).await {
        Ok(outcome) => outcome,
        Err(_) => {
            connection.as_mut().graceful_shutdown();
            timeout(WRITE_TIMEOUT, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = outcome {
        debug!(%error, "a connection broke off");
    }
}
