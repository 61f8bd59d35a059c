//! How long a connection may take for what it is doing.
//!
//! ```text
//!        first byte             head is read          answer is there            written
//! Idle ────────────> Head (5 s) ───────────> Body (30 s) ───────────> Answer (60 s) ──────> Idle (120 s)
//! ```
//!
//! The API server keeps connections for 90 s after their last request. A server that closes one earlier does so now and
//! then just when a request arrives, and that request fails: admission requests are not repeated. So a connection
//! that waits is kept for longer than the client keeps it, and only one that is slow is cut off.

use crate::serve::server::HEADER_TIMEOUT;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// For the whole of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// For its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for a request.
    Idle,
    /// Reading its head.
    Head,
    /// Reading its body.
    Body,
    /// Writing the answer.
    Answer,
}

impl Phase {
    fn limit(self) -> Duration {
        match self {
            Phase::Idle => IDLE_TIMEOUT,
            Phase::Head => HEADER_TIMEOUT,
            Phase::Body => READ_TIMEOUT,
            Phase::Answer => WRITE_TIMEOUT,
        }
    }
}

/// The clock of a connection. Clones are the same clock.
#[derive(Clone)]
pub struct Clock {
    state: Arc<watch::Sender<(Phase, Instant)>>,
}

impl Clock {
    /// Of a connection that has just been made: its first request is to come at once.
    pub fn start() -> Clock {
        let state = watch::Sender::new((Phase::Head, Instant::now() + HEADER_TIMEOUT));
        Clock {
            state: Arc::new(state),
        }
    }

    /// Something else is being done.
    pub fn enter(&self, phase: Phase) {
        self.state.send_replace((phase, Instant::now() + phase.limit()));
    }

    /// The same, if something is being done.
    fn pass(&self, from: Phase, to: Phase) {
        if self.state.borrow().0 == from {
            self.enter(to);
        }
    }

    /// Waits until something took too long. What.
    pub async fn expired(&self) -> Phase {
        let mut state = self.state.subscribe();
        loop {
            let (phase, until) = *state.borrow_and_update();
            tokio::select! {
                () = sleep_until(until) => return phase,
                _ = state.changed() => {} // It cannot fail: the sender is here.
            }
        }
    }
}

/// A stream that tells the clock when a request begins and when an answer is written.
pub struct Timed<S> {
    /// The stream.
    pub stream: S,
    /// The clock.
    pub clock: Clock,
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.clock.pass(Phase::Idle, Phase::Head);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.clock.pass(Phase::Answer, Phase::Idle);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_time() {
        for (phase, seconds) in [
            (Phase::Head, 5),
            (Phase::Body, 30),
            (Phase::Answer, 60),
            (Phase::Idle, 120),
        ] {
            let clock = Clock::start();
            clock.enter(phase);
            let began = Instant::now();
            assert_eq!(clock.expired().await, phase);
            assert_eq!(began.elapsed().as_secs(), seconds, "{phase:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_time_counts_at_once() {
        let clock = Clock::start();
        clock.enter(Phase::Idle);
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.expired().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        clock.pass(Phase::Idle, Phase::Head);
        clock.pass(Phase::Idle, Phase::Answer); // Not idle any more: nothing happens.
        assert_eq!(waiting.await.unwrap(), Phase::Head);
        assert_eq!(began.elapsed().as_secs(), 5);
    }
}
