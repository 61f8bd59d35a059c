//! Servers that run inside another process: without a command line, endpoints, signals, an election, or an end of the
//! process.

use crate::client::Client;
use futures::FutureExt as _;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// What a server is given by the process that it runs in.
pub struct Embedding {
    /// The API server.
    pub client: Client,
    /// Turns true when the server is to end.
    pub ending: watch::Receiver<bool>,
    /// Where it decides.
    pub heart: Heart,
}

/// Where the part of a server runs that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heart {
    /// On a thread of its own, so that a long decision never holds up connections.
    OwnThread,
    /// In the task of the server. Whoever has a paused clock needs that: other threads keep it from going on.
    Here,
}

/// The part that decides ended in a panic. What it knew is lost.
#[derive(Clone, Debug, Error)]
#[error("ended in a panic: {0}")]
pub struct Panicked(String);

impl Panicked {
    /// A part ended without a word of what happened; the log has it.
    pub(crate) fn of(part: &str) -> Self {
        Panicked(part.to_owned())
    }
}

impl Heart {
    /// Runs the part that decides.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        body: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Panicked> {
        match self {
            Heart::OwnThread => {
                let handle = Handle::current();
                let joined = tokio::task::spawn_blocking(move || handle.block_on(body)).await;
                joined.map_err(|error| Panicked(error.to_string()))
            }
            Heart::Here => {
                let caught = AssertUnwindSafe(body).catch_unwind().await;
                caught.map_err(|panic| Panicked(said(&*panic)))
            }
        }
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a word".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_outcome_wherever_it_happens() {
        for heart in [Heart::OwnThread, Heart::Here] {
            assert_eq!(heart.run(async { 7 }).await.unwrap(), 7);
            let died = heart.run(async { panic!("on purpose") }).await;
            let died: Result<(), _> = died;
            assert!(died.unwrap_err().to_string().contains("on purpose"), "{heart:?}");
        }
    }
}
