//! The system: what starts in which order, and how it ends.
//!
//! ```text
//! API server ─> namespace, webhooks, queues, nodes ─> scheduler, controllers, volumes, kubelet of simulated nodes
//! ```

use crate::admission::Admission;
use crate::installed::{self, ADMISSION_SERVICE, NAMESPACE};
use crate::options::{Nodes, Options};
use crate::{leftover, simulated, volumes};
use rustc_hash::FxHashSet;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{error, info};
use volcano_api::names::kinds::QUEUE;
use volcano_api::names::{SCHEDULER, queues};
use volcano_api::scheduling::{Queue, QueueState};
use volcano_api::time::Time;
use volcano_apiserver::Plane;
use volcano_engine::config::SchedulerConf;
use volcano_engine::model::features::Features;
use volcano_runtime::client::{CallError, Client};
use volcano_runtime::clock::Clock;
use volcano_runtime::controllers::selection::{DEFAULT as ALL_CONTROLLERS, Selection};
use volcano_runtime::embed::{Embedding, Heart, Panicked};
use volcano_runtime::gates::FeatureGates;
use volcano_runtime::reload::{self, Conf};
use volcano_runtime::{controllers, metrics, scheduler, webhooks};

/// The data file in the data directory.
const DATA_FILE: &str = "volcano.redb";
/// What clients of this process see as the address of the API server.
const ADDRESS: &str = "this process";
/// The scheduler that pods name who name none. Somebody has to serve them, and here is no other.
const KUBERNETES_SCHEDULER: &str = "default-scheduler";
/// Events of admission that wait to be written.
const EVENTS: usize = 256;
/// How long the controllers may take to open the default queue.
const OPENS: Duration = Duration::from_secs(30);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(1);
/// How long the end may take. What is to be written has 10 s.
const END: Duration = Duration::from_secs(12);
/// How long the data file may be in use after that. It is free at once, unless somebody holds a client.
const RELEASE: Duration = Duration::from_secs(5);

/// A running system. Dropping it stops everything at once; [`System::stop`] lets what is under way come to its end.
pub struct System {
    plane: Plane,
    data_file: Option<PathBuf>,
    ending: watch::Sender<bool>,
    /// The scheduler and the controllers, which end by themselves when they are told.
    servers: Mutex<JoinSet<(&'static str, Result<(), Panicked>)>>,
    /// Whatever else runs.
    helpers: JoinSet<()>,
    scheduler_metrics: metrics::Metrics,
    controller_metrics: controllers::Metrics,
    kubeconfig: OnceLock<PathBuf>,
}

/// Why a system does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The embedded API server does not start.
    #[error(transparent)]
    Plane(#[from] volcano_apiserver::StartError),
    /// The data directory cannot be used.
    #[error("data directory {path}: {problem}; name a directory that can be written to")]
    DataDir {
        /// The directory.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The scheduler configuration cannot be used.
    #[error("scheduler configuration: {0}")]
    SchedulerConf(#[from] reload::Unusable),
    /// The controllers do not open the default queue.
    #[error("the default queue was not opened within {0} s; the log says why")]
    NotReady(u64),
    /// Something that has to be there from the start was refused.
    #[error("{what}: {problem}")]
    Refused {
        /// What.
        what: String,
        /// Why.
        problem: CallError,
    },
}

impl From<(String, CallError)> for StartError {
    fn from((what, problem): (String, CallError)) -> Self {
        StartError::Refused { what, problem }
    }
}

impl System {
    /// Starts everything in the runtime that this is called in, and returns when Jobs are taken. In a runtime with one
    /// thread everything runs on that thread, so that a paused clock works; otherwise the scheduler and the controllers
    /// have threads of their own.
    ///
    /// # Errors
    /// When something cannot be used or is refused; what has been started is stopped.
    pub async fn start(options: Options) -> Result<System, StartError> {
        let text = options.scheduler_conf.as_deref();
        let conf = reload::parse(text.unwrap_or(SchedulerConf::default_text()))?;
        let data_file = options.data_dir.as_deref().map(data_file).transpose()?;
        let plane = Plane::start(volcano_apiserver::Options {
            data_file: data_file.clone(),
            clock: options.clock.clone(),
            seed: options.seed,
            crds: volcano_api::crd::all(),
        })
        .await?;
        let clock = options.clock.map_or_else(Clock::default, as_runtime_clock);
        let mut helpers = JoinSet::new();
        let client = |user: &str| Client::of(plane.client_as(user), ADDRESS, clock.clone());
        let own = client("system:volcano");

        let (events, waiting) = mpsc::channel(EVENTS);
        helpers.spawn(webhooks::write_events(own.clone(), waiting));
        let admission = Admission::new(plane.reader(), volcano_admission::Options::default(), events);
        plane.serve_webhooks(NAMESPACE, ADMISSION_SERVICE, Arc::new(admission));
        installed::install(&own).await?;
        installed::make_queues(&own).await?;

        let (scheduler_metrics, controller_metrics) =
            (metrics::Metrics::default(), controllers::Metrics::default());
        let mut ours: FxHashSet<String> = options.own_nodes.into_iter().collect();
        ours.extend(simulated::names(&options.nodes));
        leftover::remove(&own, &ours).await?;
        let process = scheduler_metrics.process().clone();
        helpers.spawn(volumes::run(own.clone(), process.clone(), options.volumes));
        if let Nodes::Simulated(groups) = &options.nodes {
            let addresses = simulated::make(&own, groups).await;
            let addresses = addresses.map_err(|(name, problem)| (format!("Node {name}"), problem))?;
            let nodes = client("system:node:simulated");
            helpers.spawn(simulated::run(nodes, process, addresses));
        }
        let (ending, _) = watch::channel(false);
        let mut system = System {
            ending,
            servers: Mutex::default(),
            helpers,
            scheduler_metrics,
            controller_metrics,
            kubeconfig: OnceLock::new(),
            data_file,
            plane,
        };
        system.start_servers(conf, &clock);
        system.takes_jobs().await?;
        info!("started");
        Ok(system)
    }

    /// Waits until the default queue has a state: before that, admission takes no Jobs.
    async fn takes_jobs(&self) -> Result<(), StartError> {
        let reader = self.plane.reader();
        let until = Instant::now() + OPENS;
        loop {
            let queue = reader.get(QUEUE.group, QUEUE.plural, "", queues::DEFAULT);
            let queue = queue.and_then(|bytes| serde_json::from_slice::<Queue>(&bytes).ok());
            if queue.is_some_and(|queue| queue.status.state != QueueState::default()) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(StartError::NotReady(OPENS.as_secs()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn start_servers(&mut self, conf: Conf, clock: &Clock) {
        let heart = match Handle::current().runtime_flavor() {
            RuntimeFlavor::CurrentThread => Heart::Here,
            _ => Heart::OwnThread,
        };
        let account = |name: &str| format!("system:serviceaccount:{NAMESPACE}:volcano-{name}");
        let within = |name: &str| Embedding {
            client: Client::of(self.plane.client_as(&account(name)), ADDRESS, clock.clone()),
            ending: self.ending.subscribe(),
            heart,
        };
        let scheduling = scheduler::embedded(
            scheduler_options(),
            conf,
            self.scheduler_metrics.clone(),
            within("scheduler"),
        );
        let controlling = controllers::embedded(
            controller_options(),
            self.controller_metrics.clone(),
            within("controllers"),
        );
        let servers = self.servers.get_mut();
        servers.spawn(async { ("the scheduler", scheduling.await) });
        servers.spawn(async { ("the controllers", controlling.await) });
    }

    /// A client of an administrator, without a socket.
    pub fn client(&self) -> kube::Client {
        self.plane.client()
    }

    /// The embedded API server.
    pub fn plane(&self) -> &Plane {
        &self.plane
    }

    /// Listens on the loopback address for those with the token of the kubeconfig, which is written to the path (mode 0600).
    /// The address.
    ///
    /// # Errors
    /// When the kubeconfig cannot be written, or when no port is free.
    pub async fn serve(&self, kubeconfig: &Path) -> Result<SocketAddr, StartError> {
        let address = self.plane.serve(kubeconfig).await?;
        let _ = self.kubeconfig.set(kubeconfig.to_owned()); // A second one is as good as the first.
        Ok(address)
    }

    /// Path of the kubeconfig, once it is served.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.get().map(PathBuf::as_path)
    }

    /// Metrics of the scheduler and of the controllers, in the text form of Prometheus.
    pub fn metrics(&self) -> (String, String) {
        (self.scheduler_metrics.text(), self.controller_metrics.text())
    }

    /// Waits until a part has ended that should not have: a defect, which is logged. Its name.
    pub async fn broken(&self) -> &'static str {
        let mut servers = self.servers.lock().await;
        let ended = tokio::select! {
            ended = servers.join_next() => ended,
            problem = self.plane.failed() => {
                error!(problem, "nothing can be kept any more");
                return "the data file";
            }
        };
        match ended {
            Some(Ok((name, outcome))) => {
                if let Err(panic) = outcome {
                    error!(%panic, "{name} broke down");
                }
                name
            }
            Some(Err(_)) => "a server",
            None => std::future::pending().await,
        }
    }

    /// Stops: nothing new is decided, and what is under way is written, within 12 s. Another system may then
    /// use the data directory. Nodes of the caller are the caller's to stop before.
    pub async fn stop(mut self) {
        self.ending.send_replace(true);
        let servers = self.servers.get_mut();
        let ended = async { while servers.join_next().await.is_some() {} };
        if tokio::time::timeout(END, ended).await.is_err() {
            error!("the end took too long and is not waited for any more");
        }
        servers.shutdown().await;
        self.helpers.shutdown().await;
        drop(self.plane);
        if let Some(path) = self.data_file {
            released(&path).await;
        }
    }
}

/// Waits until a data file may be opened: what uses it ends a moment after the plane.
async fn released(path: &Path) {
    let is_used = || std::fs::File::open(path).is_ok_and(|file| file.try_lock().is_err());
    let until = Instant::now() + RELEASE;
    while is_used() && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
    }
}

fn data_file(folder: &Path) -> Result<PathBuf, StartError> {
    // What is kept has Secrets.
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.map_err(|error| StartError::DataDir {
        path: folder.display().to_string(),
        problem: error.to_string(),
    })?;
    Ok(folder.join(DATA_FILE))
}

fn as_runtime_clock(clock: volcano_apiserver::Clock) -> Clock {
    Clock::new(move || Time::from_unix_micros(clock().as_microsecond()))
}

/// Whose pods are placed and, if they have no PodGroup, get one.
fn scheduler_names() -> Vec<String> {
    [SCHEDULER, KUBERNETES_SCHEDULER].map(str::to_owned).into()
}

/// What the flags of `vc-scheduler` are when none is given, without endpoints and an election.
fn scheduler_options() -> scheduler::options::Options {
    scheduler::options::Options {
        client: Default::default(),
        scheduler_names: scheduler_names(),
        scheduler_conf: None,
        disable_default_conf: false,
        schedule_period: Duration::from_secs(1),
        default_queue: queues::DEFAULT.to_owned(),
        priority_class: true,
        csi_storage: true,
        node_selector: Vec::new(),
        features: Features::default(),
        feature_gates: FeatureGates::default(),
        serve: Default::default(),
        cache_dumper: false,
        cache_dump_dir: PathBuf::new(),
        leader_election: None,
        event_qps: 50.0,
        logging: Default::default(),
        unused: Vec::new(),
        ignored: Vec::new(),
    }
}

/// The same of `vc-controller-manager`.
fn controller_options() -> controllers::options::Options {
    controllers::options::Options {
        client: Default::default(),
        scheduler_names: scheduler_names(),
        inherit_owner_annotations: true,
        max_requeue_num: 15,
        controllers: Selection::parse(ALL_CONTROLLERS.split(',')).expect("the default makes sense"),
        feature_gates: FeatureGates::default(),
        serve: Default::default(),
        leader_election: None,
        logging: Default::default(),
        unused: Vec::new(),
        ignored: Vec::new(),
    }
}
