//! The process: what starts in which order, and how it ends.
//!
//! ```text
//! health ─> certificate ─> lists are in ─> requests are answered ─> authority is in the configurations: ready
//! ```

use super::bundle::Bundles;
use super::cache::{Cache, Feeding};
use super::certificates::{Certificate, Source};
use super::events;
use super::handler::Handler;
use super::options::Options;
use super::server;
use crate::client::{Client, ConnectError};
use crate::reload::{self, Content};
use crate::scheduler::signals;
use crate::serve::server::Tls;
use crate::serve::{self, Health, ServeError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::rustls::ServerConfig;
use tracing::{error, info, warn};
use volcano_admission::ResourceGroups;
use volcano_admission::webhooks::Webhook;
use volcano_api::names::admission::paths;

/// How long webhook configurations are waited for at the start.
const CONFIGURATIONS: Duration = Duration::from_secs(300);
/// How long a new authority may take to get into them before its certificate is served anyhow.
const HANDOVER: Duration = Duration::from_secs(30);
/// Events that wait to be written.
const EVENTS: usize = 256;

/// Why the webhook manager could not start.
#[derive(Debug, Error)]
pub enum RunError {
    /// The API server cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// An address or certificate cannot be used.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Nobody has registered the webhooks.
    #[error("no webhook configuration {0} within {limit} s: install it, volcano manifests | kubectl apply -f -, or leave its path out of --enabled-admission", limit = CONFIGURATIONS.as_secs())]
    Unregistered(String),
}

/// Runs the webhook manager until it is told to end.
///
/// # Errors
/// When it cannot start. Whatever happens later is waited out.
pub async fn run(options: Options) -> Result<(), RunError> {
    for unused in &options.unused {
        warn!(
            flag = unused.flag,
            reason = unused.reason,
            "the flag has no effect"
        );
    }
    let client = Client::connect(&options.client).await?;
    let source = Source::of(&options, &client)?;
    let (shutdown, mut ending) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(signals::end(shutdown));
    let outcome = tokio::select! {
        outcome = start(&options, client, source, &mut tasks, ending.clone()) => outcome,
        // Ended before anything was served.
        _ = ending.wait_for(|ending| *ending) => Ok(None),
    };
    let served = match outcome? {
        Some(serving) => serving,
        None => return Ok(()),
    };
    let _ = served.await; // It ends with the signal, after the last request.
    tasks.shutdown().await;
    info!("ended");
    Ok(())
}

/// Starts everything. The task of the server, which ends after the last request.
async fn start(
    options: &Options,
    client: Client,
    source: Source,
    tasks: &mut JoinSet<()>,
    ending: watch::Receiver<bool>,
) -> Result<Option<tokio::task::JoinHandle<()>>, RunError> {
    let health: Arc<Health> = Arc::default();
    let (configs, tls) = watch::channel(source.at_once()?.config);
    if let Some(address) = &options.healthz_address {
        let listener = serve::listen("--healthz-address", address).await?;
        let routes = serve::health_routes(health.clone());
        tasks.spawn(serve::server::serve(listener, Some(tls.clone()), routes));
    }
    let certificate = source.first(&health).await?;
    configs.send_replace(certificate.config.clone());
    let rules = follow_groups(options, tasks);
    let cache: Arc<Cache> = Arc::default();
    let namespaces = options
        .enabled
        .iter()
        .any(|webhook| webhook.path == paths::PODGROUPS_MUTATE);
    let mut feeding = Feeding::start(&client, namespaces, tasks);
    feeding.list(&cache, &health).await;
    tasks.spawn(feeding.follow(cache.clone(), health.clone()));

    let (events, waiting) = mpsc::channel(EVENTS);
    tasks.spawn(events::write(client.clone(), waiting));
    let handler = Arc::new(Handler {
        enabled: options.enabled.clone(),
        cache,
        rules,
        events,
        panics: AtomicU64::new(0),
    });
    let serving = listen(options, tls, handler, ending).await?;
    register(options, &client, source, certificate, configs, &health, tasks).await?;
    Ok(Some(serving))
}

async fn listen(
    options: &Options,
    tls: Tls,
    handler: Arc<Handler<Cache>>,
    ending: watch::Receiver<bool>,
) -> Result<tokio::task::JoinHandle<()>, ServeError> {
    let address = match options.listen_address.as_str() {
        host if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{}", options.port),
        host => format!("{host}:{}", options.port),
    };
    let listener = serve::listen("--listen-address", &address).await?;
    let graceful = options.graceful_shutdown;
    Ok(tokio::spawn(server::serve(
        listener, tls, handler, ending, graceful,
    )))
}

/// Puts the authority into the webhook configurations, and follows the certificate from then on.
async fn register(
    options: &Options,
    client: &Client,
    source: Source,
    certificate: Certificate,
    configs: watch::Sender<Arc<ServerConfig>>,
    health: &Health,
    tasks: &mut JoinSet<()>,
) -> Result<(), RunError> {
    let waits_for = |webhooks: &[&'static Webhook]| {
        let names: Vec<_> = webhooks
            .iter()
            .map(|webhook| webhook.configuration_name())
            .collect();
        names.join(", ")
    };
    let authority = certificate.pem.ca.as_slice().into();
    let mut bundles = Bundles::start(client, &options.enabled, authority, tasks);
    health.missing(vec![format!("authority in {}", waits_for(&options.enabled))]);
    let missing = bundles.wait(CONFIGURATIONS).await;
    if !missing.is_empty() {
        return Err(RunError::Unregistered(waits_for(&missing)));
    }
    health.missing(Vec::new());
    info!("ready");
    tasks.spawn(follow_certificate(source, certificate, bundles, configs));
    Ok(())
}

/// Serves each new certificate once the API server has been told of its authority.
async fn follow_certificate(
    source: Source,
    mut current: Certificate,
    mut bundles: Bundles,
    configs: watch::Sender<Arc<ServerConfig>>,
) {
    loop {
        let next = source.next(&current.pem).await;
        if next.pem.ca != current.pem.ca {
            bundles.change(next.pem.ca.as_slice().into());
            for webhook in bundles.wait(HANDOVER).await {
                let configuration = webhook.configuration_name();
                warn!(
                    configuration,
                    "the new authority is not in the webhook configuration yet"
                );
            }
        }
        configs.send_replace(next.config.clone());
        info!("the new certificate is served");
        current = next;
    }
}

/// The settings of the rules, with the resource groups of the file as it changes.
fn follow_groups(
    options: &Options,
    tasks: &mut JoinSet<()>,
) -> watch::Receiver<Arc<volcano_admission::Options>> {
    let mut rules = options.rules.clone();
    let Some(path) = options.admission_conf.clone() else {
        return watch::channel(Arc::new(rules)).1;
    };
    let mut content = reload::content(&path);
    match groups(&path, &content) {
        Ok(groups) => rules.resource_groups = Some(groups),
        Err(wrong) => error!("the resource groups cannot be used, pods are not changed: {wrong}"),
    }
    let (sender, receiver) = watch::channel(Arc::new(rules.clone()));
    tasks.spawn(async move {
        loop {
            reload::change(&path, &mut content).await;
            match groups(&path, &content) {
                Ok(groups) => {
                    info!("the resource groups changed");
                    rules.resource_groups = Some(groups);
                    sender.send_replace(Arc::new(rules.clone()));
                }
                Err(wrong) => {
                    error!("the resource groups cannot be used and the last good ones stay: {wrong}")
                }
            }
        }
    });
    receiver
}

fn groups(path: &Path, content: &Content) -> Result<ResourceGroups, String> {
    let text = content.as_ref().map_err(ToString::to_string)?;
    let groups = ResourceGroups::parse(text).map_err(|error| format!("{}: {error}", path.display()))?;
    for note in groups.notes() {
        warn!(file = %path.display(), "{note}");
    }
    Ok(groups)
}

#[cfg(test)]
mod tests;
