//! The process: what starts in which order, and how it ends.
//!
//! ```text
//! settings ─> endpoints ─> watches, heart, election ─> drain ─> release the lease
//! ```

use super::core::{Core, Inputs};
use super::execute::{Executor, Message};
use super::metrics::Metrics;
use super::options::Options;
use super::recorder::Recorder;
use super::{feeds, selection};
use crate::client::{Client, ConnectError};
use crate::embed::{Embedding, Heart, Panicked};
use crate::fence::Fence;
use crate::lease::Campaign;
use crate::scheduler::signals;
use crate::serve::{self, Health};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};
use volcano_api::names::CONTROLLER_MANAGER;

/// Events per second over a longer time.
const EVENTS_PER_SECOND: f64 = 50.0;

/// Why the controller manager could not start.
#[derive(Debug, Error)]
pub enum RunError {
    /// The API server cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// An endpoint cannot be served.
    #[error(transparent)]
    Serve(#[from] serve::ServeError),
    /// The settings of the election contradict each other.
    #[error("{0}")]
    Election(String),
}

/// What the parts of the process share.
pub struct Shared {
    /// The command line.
    pub options: Options,
    /// Metrics.
    pub metrics: Metrics,
    /// Health.
    pub health: Arc<Health>,
    /// Tells users.
    pub recorder: Recorder,
    /// The API server.
    pub client: Client,
    fence: Fence,
}

impl Shared {
    /// Carries out plans, as long as the lease is held.
    pub fn executor(&self, to: mpsc::UnboundedSender<Message>) -> Executor {
        let client = self.client.behind(self.fence.in_this_epoch());
        let metrics = self.metrics.process().clone();
        Executor::new(client, metrics, self.recorder.clone(), to)
    }

    /// What a test needs: all controllers, which may write, and nobody who listens to events.
    #[cfg(test)]
    pub fn of(client: Client, options: Options, tasks: &mut JoinSet<()>) -> Self {
        let (metrics, fence) = (Metrics::default(), Fence::open());
        let process = metrics.process().clone();
        Shared {
            recorder: Recorder::start(&client, fence.clone(), process, "test", EVENTS_PER_SECOND, tasks),
            options,
            metrics,
            health: Arc::default(),
            client,
            fence,
        }
    }
}

/// Runs the controllers until they are told to end.
///
/// # Errors
/// When they cannot start: wrong settings. Whatever happens later is waited out.
pub async fn run(options: Options) -> Result<(), RunError> {
    tell_settings(&options);
    if let Some(election) = &options.leader_election {
        election.validate().map_err(RunError::Election)?;
    }
    let (metrics, health) = (Metrics::default(), Arc::<Health>::default());
    let client = Client::connect(&options.client).await?.counted(metrics.process());
    // Renewals have a connection of their own: they must not wait behind writes at the rate limit.
    let election_client = Client::connect(&options.client).await?.counted(metrics.process());
    let fence = match options.leader_election {
        Some(_) => Fence::closed(),
        None => Fence::open(),
    };
    let mut tasks = JoinSet::new();
    let text = {
        let metrics = metrics.clone();
        move || metrics.text()
    };
    serve::start_plain(&options.serve, text, &health, &mut tasks).await?;
    let (shutdown, ending) = watch::channel(false);
    tasks.spawn(signals::end(shutdown));
    let process = metrics.process().clone();
    let recorder = Recorder::start(
        &client,
        fence.clone(),
        process,
        CONTROLLER_MANAGER,
        EVENTS_PER_SECOND,
        &mut tasks,
    );
    let shared = Arc::new(Shared {
        options,
        metrics,
        health,
        recorder,
        client,
        fence,
    });
    if let Err(panic) = control(&shared, election_client, ending, Heart::OwnThread).await {
        error!(%panic, "the controllers' thread died");
        std::process::exit(2);
    }
    tasks.shutdown().await;
    info!("ended");
    Ok(())
}

/// Runs the controllers inside another process until that tells them to end. They lead, and serve nothing.
///
/// # Errors
/// When they panicked beyond recovery.
pub async fn embedded(options: Options, metrics: Metrics, within: Embedding) -> Result<(), Panicked> {
    let Embedding {
        client,
        ending,
        heart,
    } = within;
    let fence = Fence::open();
    let mut tasks = JoinSet::new();
    let recorder = Recorder::start(
        &client,
        fence.clone(),
        metrics.process().clone(),
        CONTROLLER_MANAGER,
        EVENTS_PER_SECOND,
        &mut tasks,
    );
    let shared = Arc::new(Shared {
        options,
        metrics,
        health: Arc::default(),
        recorder,
        client: client.clone(),
        fence,
    });
    let controlled = control(&shared, client, ending, heart).await;
    tasks.shutdown().await;
    controlled
}

fn tell_settings(options: &Options) {
    for unused in &options.unused {
        warn!(
            flag = unused.flag,
            reason = unused.reason,
            "the flag has no effect"
        );
    }
    for ignored in &options.ignored {
        warn!(argument = ignored, "the argument is no flag and is ignored");
    }
    for unknown in options.controllers.unknown() {
        let known = selection::AVAILABLE.join(", ");
        warn!(
            controller = unknown,
            known, "there is no such controller; the entry in --controllers is ignored"
        );
    }
    let lacking = options.controllers.lacking();
    if !lacking.is_empty() {
        let controllers = lacking.join(", ");
        info!(controllers, "these controllers are not available yet");
    }
}

/// Watches, campaigns and works until the end.
async fn control(
    shared: &Arc<Shared>,
    election_client: Client,
    ending: watch::Receiver<bool>,
    heart: Heart,
) -> Result<(), Panicked> {
    let election = shared.options.leader_election.as_ref();
    let mut campaign = Campaign::start(election, election_client, CONTROLLER_MANAGER, &shared.fence);
    // What is listed after the lease was taken is not asked for again.
    let first_term = campaign.first_term().await;
    let mut watches = JoinSet::new();
    let process = shared.metrics.process();
    let feed = feeds::start(&shared.client, process, &shared.options, &mut watches);
    let (messages_to, messages) = mpsc::unbounded_channel();
    let inputs = Inputs {
        feed,
        messages,
        messages_to,
        leadership: campaign.leadership.clone(),
        shutdown: ending,
    };
    heart
        .run(Core::new(shared.clone(), first_term).run(inputs))
        .await?;
    watches.shutdown().await;
    campaign.end().await;
    Ok(())
}
