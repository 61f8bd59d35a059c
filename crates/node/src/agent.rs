//! The agent: one node, its pods, and what they need in common.

use crate::container::Isolation;
use crate::events::Recorder;
use crate::feed::{self, Change};
use crate::isolation::{apartness, probe};
use crate::limits;
use crate::logs::{self, Logs};
use crate::machine;
use crate::names::Names;
use crate::network::Switch;
use crate::register;
use crate::worker::{Context, News, Worker};
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::{Api, ResourceExt};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use volcano_apiserver::LogSource;

/// When the agent stops, pods have at most this long to end by themselves.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// What has not ended by then is not waited for: a process that the kernel does not let go, a disk that does not answer.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// How a node is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name.
    pub node_name: String,
    /// Where pods have their directories. It belongs to the node alone.
    pub directory: PathBuf,
    /// Labels of the Node beside those of every node.
    pub labels: BTreeMap<String, String>,
    /// What the node has (`cpu`, `memory`, `nvidia.com/gpu`, …), if it is not what the machine has.
    pub capacity: BTreeMap<String, String>,
    /// How many pods may be on it.
    pub pods: u32,
    /// The binary whose `main` calls [`crate::container::main`] first; this process's own without.
    pub program: Option<PathBuf>,
    /// How far pods are set apart at most; as far as possible without.
    pub isolation: Option<Isolation>,
    /// Pods have the network of the host, even where they could have their own.
    pub host_network: bool,
}

impl Options {
    /// A node of this machine.
    pub fn new(node_name: impl Into<String>, directory: impl Into<PathBuf>) -> Options {
        Options {
            node_name: node_name.into(),
            directory: directory.into(),
            labels: BTreeMap::new(),
            capacity: BTreeMap::new(),
            pods: 250,
            program: None,
            isolation: None,
            host_network: false,
        }
    }
}

/// Why a node does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its directory cannot be used.
    #[error("directory {path} of the node: {source}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The amount of a resource is not one.
    #[error("capacity {name} of the node: {problem}")]
    Capacity {
        /// Which resource.
        name: String,
        /// Why.
        problem: String,
    },
    /// Not even an ordinary process can be started.
    #[error("containers cannot be started: {0}")]
    Containers(String),
    /// The cluster does not take it.
    #[error("registering the node: {0}")]
    Register(#[source] Box<kube::Error>),
}

/// A running node. Dropping it without [`Agent::stop`] ends its pods at once.
pub struct Agent {
    pods: Arc<Pods>,
    tasks: Vec<JoinHandle<()>>,
    logs: Arc<Logs>,
    switch: Option<Arc<Switch>>,
    isolation: Isolation,
    is_whole: bool,
    message: String,
    /// Two nodes with one directory would remove what the other one needs.
    _lock: fs::File,
}

impl Agent {
    /// Starts a node in the runtime that this is called in.
    ///
    /// # Errors
    /// When the directory cannot be used, no container can be started, or the API server refuses the node.
    pub async fn start(client: kube::Client, options: Options) -> Result<Agent, StartError> {
        check(&options)?;
        limits::raise(options.pods);
        let (root, lock) = private_directory(&options.directory)?;
        let program = options.program.clone().unwrap_or_else(|| "/proc/self/exe".into());
        let probed = probe(&program, &root, options.isolation).await;
        let (isolation, layered, why) = probed.map_err(StartError::Containers)?;
        let mut network_problem = None;
        let mut switch = None;
        if isolation == Isolation::Root && !options.host_network {
            match Switch::start().await {
                Ok(started) => switch = Some(Arc::new(started)),
                Err(error) => network_problem = Some(error.to_string()),
            }
        }
        let apart = apartness(isolation, layered, &why, options.host_network, network_problem);
        if apart.is_whole {
            tracing::info!(node = options.node_name, "{}", apart.message);
        } else {
            tracing::warn!(node = options.node_name, "{}", apart.message);
        }
        let address = machine::address().to_string();
        let capacity = register::capacity(&options);
        let node = register::register(&client, &options, &capacity, &address, &apart)
            .await
            .map_err(|error| StartError::Register(Box::new(error)))?;
        let recorder = Recorder::start(client.clone(), options.node_name.clone());
        recorder.node(
            &node,
            false,
            "Starting",
            format!("Starting node: {}", apart.message),
        );
        let (logs, names) = (Arc::new(Logs::new(&root)), Arc::new(Names::default()));
        let context = Arc::new(Context {
            client: client.clone(),
            directory: root,
            program,
            isolation,
            switch: switch.clone(),
            names: names.clone(),
            logs: logs.clone(),
            recorder,
            host_address: address,
            allocatable: capacity,
            host_names: fs::read_to_string("/etc/hosts").unwrap_or_default(),
            shm_bytes: machine::memory().unwrap_or(1 << 30) / 2,
        });
        let pods = Arc::new(Pods {
            context,
            workers: Mutex::default(),
            stopping: watch::Sender::new(false),
        });
        let name = options.node_name;
        let tasks = vec![
            tokio::spawn(register::keep(client.clone(), name.clone(), apart.clone())),
            tokio::spawn(follow_pods(client.clone(), name, pods.clone())),
            tokio::spawn(follow_services(client.clone(), names.clone())),
            tokio::spawn(follow_endpoints(client, names.clone())),
            tokio::spawn(async move { names.keep().await }),
        ];
        Ok(Agent {
            pods,
            tasks,
            logs,
            switch,
            isolation,
            is_whole: apart.is_whole,
            message: apart.message,
            _lock: lock,
        })
    }

    /// The logs of its pods.
    pub fn logs(&self) -> Arc<dyn LogSource> {
        logs::source(&self.logs)
    }

    /// How far pods are set apart from the machine.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether that is as far as it can be: files, processes, names and networks.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The same in words, for users.
    pub fn isolation_message(&self) -> &str {
        &self.message
    }

    /// The host's address in the network of the pods, if they have one.
    pub fn gateway(&self) -> Option<std::net::Ipv4Addr> {
        self.switch.as_ref().map(|switch| switch.gateway())
    }

    /// Ends all pods, with at most two seconds of grace, and everything that was set up for them. What they were is not
    /// reported: whoever starts the node again with the same state finds them lost, as after a reboot.
    pub async fn stop(mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        let workers: Vec<Running> = {
            let mut workers = self.pods.workers.lock().unwrap_or_else(PoisonError::into_inner);
            self.pods.stopping.send_replace(true);
            workers.drain().map(|(_, running)| running).collect()
        };
        for running in &workers {
            let _ = running.news.send(News::Stop { grace: STOP_GRACE });
        }
        let left = wait(workers, STOP_LIMIT).await;
        if left > 0 {
            tracing::warn!(pods = left, "pods do not end and are left to the kernel");
        }
        if let Some(switch) = &self.switch {
            let _ = tokio::time::timeout(STOP_GRACE, switch.stop()).await; // It goes with this process all the same.
        }
    }
}

/// Waits for the ends of pods, at most for some time. How many have not ended: they are dropped, which closes the pipes that
/// their containers hang on.
async fn wait(mut workers: Vec<Running>, limit: Duration) -> usize {
    let until = tokio::time::Instant::now() + limit;
    let mut left = 0;
    for running in &mut workers {
        if tokio::time::timeout_at(until, &mut running.task).await.is_err() {
            running.task.abort();
            left += 1;
        }
    }
    left
}

impl Drop for Agent {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        let mut workers = self.pods.workers.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, running) in workers.drain() {
            running.task.abort();
        }
    }
}

fn check(options: &Options) -> Result<(), StartError> {
    for (name, amount) in &options.capacity {
        let problem = match volcano_api::quantity::Quantity::parse(amount) {
            Ok(amount) if !amount.is_negative() => continue,
            Ok(_) => "must not be negative".to_owned(),
            Err(error) => error.to_string(),
        };
        let name = name.clone();
        return Err(StartError::Capacity { name, problem });
    }
    Ok(())
}

/// Nobody else may look into the directories of pods: Secrets are there.
fn private_directory(path: &Path) -> Result<(PathBuf, fs::File), StartError> {
    let make = || -> std::io::Result<(PathBuf, fs::File)> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        let lock = fs::File::create(path.join("lock"))?;
        lock.try_lock()
            .map_err(|error| std::io::Error::other(format!("another node uses it ({error})")))?;
        Ok((path.canonicalize()?, lock))
    };
    make().map_err(|source| StartError::Directory {
        path: path.to_owned(),
        source,
    })
}

struct Running {
    news: mpsc::UnboundedSender<News>,
    task: JoinHandle<()>,
}

/// The pods of the node, by UID.
struct Pods {
    context: Arc<Context>,
    workers: Mutex<HashMap<String, Running>>,
    stopping: watch::Sender<bool>,
}

impl Pods {
    fn change(self: &Arc<Self>, change: Change<Pod>) {
        match change {
            Change::All(all) => {
                let uids: HashSet<String> = all.iter().filter_map(|pod| pod.uid()).collect();
                let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
                for (uid, running) in workers.iter() {
                    if !uids.contains(uid) {
                        let _ = running.news.send(News::Gone);
                    }
                }
                drop(workers);
                clean(&self.context.directory, &uids);
                for pod in all {
                    self.set(pod);
                }
            }
            Change::Set(pod) => self.set(pod),
            Change::Gone(pod) => {
                let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(running) = pod.uid().and_then(|uid| workers.get(&uid)) {
                    let _ = running.news.send(News::Gone);
                }
            }
        }
    }

    fn set(self: &Arc<Self>, pod: Pod) {
        let Some(uid) = pod.uid() else { return };
        let pod = Arc::new(pod);
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if *self.stopping.borrow() {
            return;
        }
        if let Some(running) = workers.get(&uid) {
            let _ = running.news.send(News::Pod(pod));
            return;
        }
        let (news, receiver) = mpsc::unbounded_channel();
        let worker = Worker::new(self.context.clone(), pod, news.clone(), receiver);
        let (pods, key) = (Arc::downgrade(self), uid.clone());
        let task = tokio::spawn(async move {
            worker.run().await;
            if let Some(pods) = pods.upgrade() {
                pods.workers
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&key);
            }
        });
        workers.insert(uid, Running { news, task });
    }
}

/// Removes what earlier agents left: everything of pods that are gone, all but the logs of others.
fn clean(directory: &Path, pods: &HashSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_known = entry.file_name().to_str().is_some_and(|uid| pods.contains(uid));
        if !is_known {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

async fn follow_pods(client: kube::Client, node: String, pods: Arc<Pods>) {
    let all: Api<Pod> = Api::all(client);
    let fields = format!("spec.nodeName={node}");
    feed::follow(all, Some(fields), |change| pods.change(change)).await;
}

async fn follow_services(client: kube::Client, names: Arc<Names>) {
    let mut known = HashMap::new();
    feed::follow(Api::<Service>::all(client), None, |change| {
        apply(&mut known, change);
        names.set_services(&known);
    })
    .await;
}

async fn follow_endpoints(client: kube::Client, names: Arc<Names>) {
    let mut known = HashMap::new();
    feed::follow(Api::<Endpoints>::all(client), None, |change| {
        apply(&mut known, change);
        names.set_endpoints(&known);
    })
    .await;
}

fn apply<K: kube::Resource>(known: &mut HashMap<String, Arc<K>>, change: Change<K>) {
    let key = |object: &K| {
        let meta = object.meta();
        format!(
            "{}/{}",
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default()
        )
    };
    match change {
        Change::All(all) => *known = all.into_iter().map(|one| (key(&one), Arc::new(one))).collect(),
        Change::Set(one) => {
            known.insert(key(&one), Arc::new(one));
        }
        Change::Gone(one) => {
            known.remove(&key(&one));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pods_that_do_not_end_are_not_waited_for() {
        let running = |task: JoinHandle<()>| Running {
            news: mpsc::unbounded_channel().0,
            task,
        };
        let (kept, mut dropped) = mpsc::channel::<()>(1);
        let stuck = tokio::spawn(async move {
            let _kept = kept;
            std::future::pending().await
        });
        let workers = vec![running(stuck), running(tokio::spawn(async {}))];
        assert_eq!(wait(workers, STOP_LIMIT).await, 1);
        // What it held is let go.
        assert_eq!(dropped.recv().await, None);
    }
}
