//! Connections: each in a task of its own, and none for longer than it needs.
//!
//! Probes decide whether the process lives. A client that is slow or silent must not keep them waiting.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

/// For a TLS handshake, and for the head of a request.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// After this long a connection takes no further request.
const CONNECTION_AGE: Duration = Duration::from_secs(30);
/// And then has this long for its last answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Connections at a time; the next ones wait.
const MOST_CONNECTIONS: usize = 256;
/// Pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Certificate and key of a server, which may change: new connections use the latest.
pub(crate) type Tls = watch::Receiver<Arc<ServerConfig>>;

/// Serves until the task is dropped.
pub(crate) async fn serve(listener: TcpListener, tls: Option<Tls>, routes: Router) {
    let mut connections = JoinSet::new();
    accept(&listener, MOST_CONNECTIONS, &mut connections, |stream| {
        let (tls, routes) = (tls.clone(), routes.clone());
        async move { connection(stream, tls, routes).await }
    })
    .await;
}

/// Hands out connections, each in a task of its own and so many at a time, until it is dropped.
pub(crate) async fn accept<F, A>(
    listener: &TcpListener,
    most: usize,
    connections: &mut JoinSet<()>,
    mut handle: F,
) where
    F: FnMut(TcpStream) -> A,
    A: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(most));
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
        let handled = handle(stream);
        connections.spawn(async move {
            handled.await;
            drop(place);
        });
    }
}

/// The TLS handshake; `None` for a client that fails at it or is slow.
pub(crate) async fn handshake(stream: TcpStream, tls: &Tls) -> Option<TlsStream<TcpStream>> {
    let acceptor = TlsAcceptor::from(tls.borrow().clone());
    match timeout(HEADER_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => debug!(%error, "a TLS handshake failed"),
        Err(_) => debug!("a TLS handshake took too long"),
    }
    None
}

async fn connection(stream: TcpStream, tls: Option<Tls>, routes: Router) {
    match tls {
        None => requests(stream, routes).await,
        Some(tls) => {
            if let Some(stream) = handshake(stream, &tls).await {
                requests(stream, routes).await;
            }
        }
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
