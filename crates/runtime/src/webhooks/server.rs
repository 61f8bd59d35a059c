//! The HTTPS server: connections in tasks of their own, none of which is kept for longer than it needs.

use super::cache::Cache;
use super::clock::{Clock, Phase, Timed};
use super::handler::Handler;
use crate::serve::server::{Tls, accept, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// Connections at a time; the next ones wait. API servers keep 25 each, and have at most some hundred requests under way.
const MOST_CONNECTIONS: usize = 512;

/// Serves until the end, and then lets the requests finish that are under way.
pub async fn serve(
    listener: TcpListener,
    tls: Tls,
    handler: Arc<Handler<Cache>>,
    mut ending: watch::Receiver<bool>,
    graceful: Duration,
) {
    let mut connections = JoinSet::new();
    let closing = ending.clone();
    let handle = |stream| connection(stream, tls.clone(), handler.clone(), closing.clone());
    tokio::select! {
        () = accept(&listener, MOST_CONNECTIONS, &mut connections, handle) => {}
        _ = ending.wait_for(|ending| *ending) => {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(graceful, all).await.is_err() {
        warn!("requests were still under way when the time for the shutdown was up");
    }
}

async fn connection(
    stream: TcpStream,
    tls: Tls,
    handler: Arc<Handler<Cache>>,
    mut ending: watch::Receiver<bool>,
) {
    let Some(stream) = handshake(stream, &tls).await else {
        return;
    };
    let clock = Clock::start();
    let service = service_fn(|request| {
        clock.enter(Phase::Body);
        let (handler, clock) = (handler.clone(), clock.clone());
        async move {
            let answer = handler.answer(request).await;
            clock.enter(Phase::Answer);
            Ok::<_, Infallible>(answer)
        }
    });
    let stream = TokioIo::new(Timed {
        stream,
        clock: clock.clone(),
    });
    // The clock has the time limits; hyper's own would close connections that wait for a request.
    let served = http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(stream, service);
    let mut served = pin!(served);
    let mut is_ending = false;
    loop {
        tokio::select! {
            outcome = served.as_mut() => {
                if let Err(error) = outcome {
                    debug!(%error, "a connection broke off");
                }
                return;
            }
            phase = clock.expired() => {
                debug!(?phase, "a connection was too slow");
                return;
            }
            _ = ending.wait_for(|ending| *ending), if !is_ending => {
                is_ending = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}
