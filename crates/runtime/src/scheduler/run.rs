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
use crate::backoff::Backoff;
use crate::client::{Client, ConnectError};
use crate::embed::{Embedding, Heart, Panicked};
use crate::fence::Fence;
use crate::lease::Campaign;
use crate::metrics::Metrics;
use crate::ownership::Ownership;
use crate::reload::{self, Conf, Content, Unusable};
use crate::serve;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

/// Requests to the heart that wait.
const CONTROL: usize = 16;
/// Waits before the cluster is read anew after a cycle panicked. What made it panic may still be there.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

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
    for word in &options.ignored {
        warn!(argument = word, "the argument is no flag and is ignored");
    }
    if let Some(election) = &options.leader_election {
        election.validate().map_err(RunError::Election)?;
    }
    let start = reload::at_start(options.scheduler_conf.as_deref(), options.disable_default_conf)?;
    let metrics = Metrics::default();
    let client = Client::connect(&options.client).await?.counted(metrics.process());
    // Renewals have a connection of their own: they must not wait behind writes at the rate limit.
    let election_client = Client::connect(&options.client).await?.counted(metrics.process());
    let ownership = Ownership::new(&options.scheduler_names, &options.node_selector)
        .with_replicas(|name| std::env::var(name).ok());
    let fence = match options.leader_election {
        Some(_) => Fence::closed(),
        None => Fence::open(),
    };
    let shared = Arc::new(Shared::new(
        options, client, metrics, ownership, fence, start.conf,
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
    match &start.wrong {
        Some(wrong) => {
            let instead = "the built-in default is used";
            shared.conf_refused(wrong, &control, instead).await;
        }
        None => shared.metrics.config_loaded(),
    }
    tasks.spawn(follow_file(shared.clone(), start.content, control.clone()));
    let scheduled = schedule(&shared, election_client, requests, ending, Heart::OwnThread);
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
    let shared = Arc::new(Shared::new(
        options,
        client.clone(),
        metrics,
        ownership,
        Fence::open(),
        conf,
    ));
    // Nobody sends: what is asked of it comes from endpoints and signals.
    let (_control, requests) = mpsc::channel(CONTROL);
    schedule(&shared, client, requests, ending, heart).await
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
                Ok(conf) => {
                    info!("the configuration changed");
                    shared.metrics.config_reloaded(true);
                    let _ = control.send(Control::Reconfigure(Box::new(conf))).await;
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
    let component = shared.options.component();
    let campaign = Campaign::start(election, election_client, component, &shared.fence);
    let mut rests = Backoff::new(FIRST_REST, LONGEST_REST);
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
        let core = Core::new(shared.clone(), shared.conf().conf);
        let body = async move {
            let end = core.run(inputs, &mut requests).await;
            (end, requests)
        };
        let end;
        (end, requests) = heart.run(body).await?;
        watches.shutdown().await;
        match end {
            End::Stopped => break,
            End::NoElection => return Err(Panicked::of("the election")),
            End::LostLease => {
                warn!("the lease is lost; reading the cluster anew and standing by");
                rests.reset();
            }
            End::Broken => {
                let rest = rests.wait();
                error!(after_s = rest.as_secs_f64(), "starting anew");
                tokio::select! {
                    () = tokio::time::sleep(rest) => {}
                    _ = ending.changed() => break,
                }
            }
        }
    }
    campaign.end().await;
    Ok(())
}
