//! The process: what starts in which order, what starts again, and how it ends.
//!
//! ```text
//! settings ─> endpoints ─> queues ─> ┌ watches, engine, election ┐ ─> drain ─> release the lease
//!                                    └── anew on a lost lease ───┘
//! ```

use super::core::{Control, Core, End, Inputs};
use super::options::Options;
use super::shared::Shared;
use super::{feeds, queues, signals};
use crate::client::{Client, ConnectError};
use crate::embed::{Embedding, Heart, Panicked};
use crate::fence::Fence;
use crate::lease::Campaign;
use crate::metrics::Metrics;
use crate::ownership::Ownership;
use crate::reload::{self, Conf, Content, Start, Unusable};
use crate::serve;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

/// Requests to the heart that wait.
const CONTROL: usize = 16;

/// Why the scheduler could not start.
#[derive(Debug, Error)]
pub enum RunError {
    /// The API server cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The configuration cannot be used, and the default is not wanted.
    #[error("scheduler configuration: {0}")]
    Conf(#[from] Unusable),
    /// An endpoint cannot be served.
    #[error(transparent)]
    Serve(#[from] serve::ServeError),
    /// The settings of the election contradict each other.
    #[error("{0}")]
    Election(String),
}

/// Runs the scheduler until it is told to end.
///
/// # Errors
/// When it cannot start: wrong settings. Whatever happens later is waited out.
pub async fn run(options: Options) -> Result<(), RunError> {
    for unused in &options.unused {
        warn!(
            flag = unused.flag,
            reason = unused.reason,
            "the flag has no effect"
        );
    }
    if let Some(election) = &options.leader_election {
        election.validate().map_err(RunError::Election)?;
    }
    let start = reload::at_start(options.scheduler_conf.as_deref(), options.disable_default_conf)?;
    let client = Client::connect(&options.client).await?;
    // Renewals have a connection of their own: they must not wait behind writes at the rate limit.
    let election_client = Client::connect(&options.client).await?;
    let metrics = Metrics::default();
    let ownership = Ownership::new(&options.scheduler_names, &options.node_selector)
        .with_replicas(|name| std::env::var(name).ok());
    let fence = match options.leader_election {
        Some(_) => Fence::closed(),
        None => Fence::open(),
    };
    let shared = Arc::new(Shared::new(
        options,
        client,
        metrics,
        ownership,
        fence,
        start.conf.text.clone(),
    ));
    let (control, requests) = mpsc::channel(CONTROL);
    let mut tasks = JoinSet::new();
    shared.serve(&control, &mut tasks).await?;
    let (shutdown, ending) = watch::channel(false);
    tasks.spawn(signals::end(shutdown));
    if shared.options.cache_dumper {
        let (shared, control) = (shared.clone(), control.clone());
        tasks.spawn(async move { signals::dump(&shared.options.cache_dump_dir, control).await });
    }
    if let Some(wrong) = &start.wrong {
        shared
            .conf_refused(wrong, &control, "the built-in default is used")
            .await;
    }
    tasks.spawn(follow_file(shared.clone(), start.content, control.clone()));
    let scheduled = schedule(
        &shared,
        election_client,
        start.conf,
        requests,
        ending,
        Heart::OwnThread,
    );
    if let Err(panic) = scheduled.await {
        error!(%panic, "the scheduler's thread died");
        std::process::exit(2);
    }
    tasks.shutdown().await;
    info!("ended");
    Ok(())
}

/// Runs the scheduler inside another process until that tells it to end. It leads, and serves nothing.
///
/// # Errors
/// When it panicked beyond recovery.
pub async fn embedded(
    options: Options,
    conf: Conf,
    metrics: Metrics,
    within: Embedding,
) -> Result<(), Panicked> {
    let ownership = Ownership::new(&options.scheduler_names, &options.node_selector);
    let Embedding {
        client,
        ending,
        heart,
    } = within;
    let text = conf.text.clone();
    let shared = Arc::new(Shared::new(
        options,
        client.clone(),
        metrics,
        ownership,
        Fence::open(),
        text,
    ));
    // Nobody sends: what is asked of it comes from endpoints and signals.
    let (_control, requests) = mpsc::channel(CONTROL);
    schedule(&shared, client, conf, requests, ending, heart).await
}

/// Follows the configuration file.
async fn follow_file(shared: Arc<Shared>, content: Content, control: mpsc::Sender<Control>) {
    let Some(path) = shared.options.scheduler_conf.clone() else {
        return;
    };
    let (sender, mut changes) = mpsc::channel(1);
    let watching = reload::watch(path, content, sender);
    let applying = async {
        while let Some(change) = changes.recv().await {
            match change {
                Ok(Conf { conf, text }) => {
                    info!("the configuration changed");
                    shared.metrics.config_reloaded(true);
                    let _ = control.send(Control::Reconfigure(Box::new(conf), text)).await;
                }
                Err(wrong) => {
                    shared
                        .conf_refused(&wrong, &control, "the last good one stays")
                        .await
                }
            }
        }
    };
    tokio::join!(watching, applying);
}

/// Schedules until the end, anew whenever what is known can no longer be trusted.
async fn schedule(
    shared: &Arc<Shared>,
    election_client: Client,
    mut conf: Conf,
    mut requests: mpsc::Receiver<Control>,
    mut ending: watch::Receiver<bool>,
    heart: Heart,
) -> Result<(), Panicked> {
    // Before the watches: an API server that does not answer is told once, and not by each of them.
    let health = shared.health.clone();
    tokio::select! {
        () = queues::ensure(&shared.client, &shared.options.default_queue, |line| health.trouble(line)) => {}
        _ = ending.changed() => return Ok(()),
    }
    let election = shared.options.leader_election.as_ref();
    let campaign = Campaign::start(election, election_client, &shared.fence);
    loop {
        let mut watches = JoinSet::new();
        let feed = feeds::start(
            &shared.client,
            shared.metrics.process(),
            &shared.options,
            &mut watches,
        );
        let (outcomes_to, outcomes) = mpsc::unbounded_channel();
        let inputs = Inputs {
            feed,
            outcomes,
            outcomes_to,
            leadership: campaign.leadership.clone(),
            shutdown: ending.clone(),
        };
        let core = Core::new(shared.clone(), conf.conf.clone());
        let body = async move {
            let end = core.run(inputs, &mut requests).await;
            (end, requests)
        };
        let end;
        (end, requests) = heart.run(body).await?;
        watches.shutdown().await;
        match end {
            End::Stopped => break,
            End::LostLease => warn!("the lease is lost; reading the cluster anew and standing by"),
            End::Broken => error!("starting anew"),
        }
        // Without a file the configuration is the one that was given.
        let Some(path) = shared.options.scheduler_conf.as_deref() else {
            continue;
        };
        if let Ok(Start {
            conf: current,
            wrong: None,
            ..
        }) = reload::at_start(Some(path), false)
        {
            conf = current;
        }
    }
    campaign.end().await;
    Ok(())
}
