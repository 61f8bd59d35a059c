//! What the parts of the process share.

use super::core::Control;
use super::options::Options;
use crate::client::Client;
use crate::fence::Fence;
use crate::metrics::Metrics;
use crate::ownership::Ownership;
use crate::reload::{Conf, Unusable};
use crate::serve::{self, Health, ServeError};
use crate::writes::order::{Event, ObjectRef, Outcome};
use crate::writes::{Settings, Writer};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::error;
use volcano_api::names::kinds;

/// Where a pod finds the name of its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Reason of the event about a configuration that cannot be used.
const CONF_REFUSED: &str = "InvalidConfiguration";

/// Settings, connections and meters of the process.
pub struct Shared {
    /// The command line.
    pub options: Options,
    /// The API server.
    pub client: Client,
    /// Metrics.
    pub metrics: Metrics,
    /// Health.
    pub health: Arc<Health>,
    /// What is this instance's.
    pub ownership: Ownership,
    /// Whether writes pass.
    pub fence: Fence,
    conf: Mutex<Conf>,
}

impl Shared {
    /// All of it.
    pub fn new(
        options: Options,
        client: Client,
        metrics: Metrics,
        ownership: Ownership,
        fence: Fence,
        conf: Conf,
    ) -> Self {
        Shared {
            options,
            client,
            metrics,
            health: Arc::default(),
            ownership,
            fence,
            conf: Mutex::new(conf),
        }
    }

    /// The configuration in use: the last good one, whatever the file says by now.
    pub fn conf(&self) -> Conf {
        self.conf.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another configuration is in use.
    pub fn set_conf(&self, conf: Conf) {
        *self.conf.lock().unwrap_or_else(PoisonError::into_inner) = conf;
    }

    /// A writer for a term of leading.
    pub fn start_writer(
        &self,
        bind_timeout: Option<Duration>,
        outcomes: mpsc::UnboundedSender<Outcome>,
    ) -> Writer {
        let default = Settings::default();
        let settings = Settings {
            component: self.options.component().into(),
            scheduler_name: self.options.first_name().into(),
            event_qps: self.options.event_qps,
            bind_timeout: bind_timeout.unwrap_or(default.bind_timeout),
            ..default
        };
        let (fence, metrics) = (self.fence.in_this_epoch(), self.metrics.clone());
        Writer::start(&self.client, fence, metrics, &settings, outcomes)
    }

    /// Serves metrics, health and snapshots.
    pub async fn serve(
        &self,
        control: &mpsc::Sender<Control>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), ServeError> {
        let control = control.clone();
        let snapshot = move || {
            let control = control.clone();
            async move {
                let (answer, snapshot) = oneshot::channel();
                control.send(Control::Snapshot(answer)).await.ok()?;
                snapshot.await.ok()
            }
        };
        serve::start(&self.options.serve, &self.metrics, &self.health, snapshot, tasks).await
    }

    /// A configuration cannot be used: tells the log, the metric and, through the leader, the users.
    pub async fn conf_refused(&self, wrong: &Unusable, control: &mpsc::Sender<Control>, instead: &str) {
        error!("the configuration cannot be used and {instead}: {wrong}");
        self.metrics.config_reloaded(false);
        let event = Event {
            object: this_process(&self.options.default_queue),
            warning: true,
            reason: CONF_REFUSED.into(),
            message: format!("the scheduler configuration cannot be used and {instead}: {wrong}").into(),
        };
        let _ = control.send(Control::Tell(event)).await; // Nobody is left to tell when the process ends.
    }
}

/// What events about the scheduler itself are about: its pod, or outside a cluster the default queue.
fn this_process(default_queue: &str) -> ObjectRef {
    let namespace = std::fs::read_to_string(NAMESPACE_FILE).map(|text| text.trim().to_owned());
    match namespace {
        Ok(namespace) if !namespace.is_empty() => ObjectRef {
            api_version: "v1".into(),
            kind: "Pod",
            namespace: namespace.into(),
            name: crate::lease::hostname().into(),
            uid: "".into(),
        },
        _ => ObjectRef {
            api_version: "scheduling.volcano.sh/v1beta1".into(),
            kind: kinds::QUEUE.kind,
            namespace: "".into(),
            name: default_queue.into(),
            uid: "".into(),
        },
    }
}
