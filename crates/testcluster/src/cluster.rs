//! A control plane that lives as long as the value, and at most as long as this process.

use std::env;
use std::fs::DirBuilder;
use std::future::Future;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use uuid::Uuid;

use crate::binaries::{Binaries, Program};
use crate::components::Layout;
use crate::images::Image;
use crate::kubeconfig;
use crate::nodes::{self, Nodes, Packages};
use crate::objects;
use crate::process::{self, Remover, Supervised, Supervisor};

/// Variable that keeps the data and logs of clusters when it is set: for looking into a failed test.
pub const KEEP_VARIABLE: &str = "VOLCANO_CLUSTER_KEEP";

/// How long the API server may take to be ready; about 8 s on a quiet machine.
const READY_TIMEOUT: Duration = Duration::from_secs(180);
/// How many lines of a log to show when a program does not start.
const LOG_LINES: usize = 20;
/// How often to try other ports when another program was quicker.
const PORT_TRIES: usize = 3;
/// What every program says about a port that is taken.
const PORT_TAKEN: &str = "address already in use";

/// How a cluster is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether kube-controller-manager runs: garbage collection, deletion of namespaces. Benchmarks may want its share
    /// of the processor.
    pub controllers: bool,
    /// Directory for data and logs, which stays; without one, a new one that is removed.
    pub data_directory: Option<PathBuf>,
    /// Further arguments of kube-apiserver; a flag that is there already is overridden.
    pub apiserver_arguments: Vec<String>,
    /// Variables of kube-apiserver.
    pub apiserver_environment: Vec<(&'static str, String)>,
    /// Further arguments of kube-controller-manager.
    pub controller_manager_arguments: Vec<String>,
    /// How many real nodes there are: see [`crate::nodes`]. Without any, nodes are plain objects that tests make.
    pub nodes: usize,
    /// Images that the nodes have from the start.
    pub images: Vec<Image>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            controllers: true,
            data_directory: None,
            apiserver_arguments: Vec::new(),
            apiserver_environment: Vec::new(),
            controller_manager_arguments: Vec::new(),
            nodes: 0,
            images: Vec::new(),
        }
    }
}

/// A running control plane. Dropping it stops every process and removes its data; the end of this process does too.
#[derive(Debug)]
pub struct Cluster {
    layout: Layout,
    binaries: Binaries,
    options: Options,
    nodes: Option<Nodes>,
    processes: Mutex<Processes>,
}

/// Fields are dropped in this order: clients before servers, and the data last.
#[derive(Debug)]
struct Processes {
    nodes: Supervisor,
    controller_manager: Option<Supervised>,
    api_server: Option<Supervised>,
    etcd: Supervised,
    _remover: Remover,
}

impl Cluster {
    /// Builds what is not built yet, starts everything and waits until the API server is ready. Blocks.
    ///
    /// # Errors
    /// When something cannot be built or does not start; the message has the end of the log.
    pub fn start(options: Options) -> anyhow::Result<Cluster> {
        let binaries = Binaries::locate()?;
        if options.nodes > 0 {
            nodes::prepare(Packages::from_environment())?;
            binaries.ensure_all(&Program::NODES)?;
        }
        binaries.ensure_all(&Program::CONTROL_PLANE)?;
        let mut tries = 1;
        loop {
            match Cluster::start_once(&binaries, options.clone()) {
                // Ports are free when they are picked, and may be taken when they are used.
                Err(error) if tries < PORT_TRIES && error.to_string().contains(PORT_TAKEN) => tries += 1,
                outcome => return outcome,
            }
        }
    }

    fn start_once(binaries: &Binaries, options: Options) -> anyhow::Result<Cluster> {
        let (directory, is_kept) = match &options.data_directory {
            Some(directory) => {
                let directory = std::path::absolute(directory).context("data directory")?;
                std::fs::create_dir_all(&directory)
                    .with_context(|| format!("creating {}", directory.display()))?;
                (directory, true)
            }
            None => temporary_directory()?,
        };
        let group = (options.nodes > 0).then(|| nodes::group(&directory));
        let remover = Remover::of((!is_kept).then_some(directory.as_path()), group.as_deref())?;
        let mut supervisor = Supervisor::default();
        let nodes = match options.nodes {
            0 => None,
            count => Some(Nodes::lay_out(&mut supervisor, &directory, count)?),
        };
        let layout = Layout::create(&directory, nodes.as_ref())?;
        let run = |program| run(binaries, &layout, program, &options);
        let processes = Processes {
            nodes: supervisor,
            etcd: run(Program::Etcd)?,
            api_server: Some(run(Program::ApiServer)?),
            controller_manager: None,
            _remover: remover,
        };
        let cluster = Cluster {
            layout,
            binaries: binaries.clone(),
            options,
            nodes,
            processes: Mutex::new(processes),
        };
        cluster.wait_until_ready()?;
        if cluster.options.controllers {
            // After the API server: it gives up on one that is not there.
            cluster.processes().controller_manager = Some(cluster.run(Program::ControllerManager)?);
        }
        if let Some(nodes) = &cluster.nodes {
            let mut processes = cluster.processes();
            let images = &cluster.options.images;
            nodes.run(&mut processes.nodes, &cluster.binaries, &cluster.layout, images)?;
        }
        Ok(cluster)
    }

    /// Path of a kubeconfig for an administrator.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// Writes a kubeconfig for somebody else: whoever the token is of. Its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of(&self, name: &str, token: &str) -> anyhow::Result<PathBuf> {
        let path = self.data_directory().join(format!("kubeconfig-{name}"));
        let text = kubeconfig::text(&self.url(), Some(&self.authority_path()), Some(token));
        kubeconfig::write_secret(&path, &text)?;
        Ok(path)
    }

    /// Address of the API server.
    pub fn url(&self) -> String {
        self.layout.url()
    }

    /// Bearer token of an administrator.
    pub fn token(&self) -> &str {
        self.layout.token()
    }

    /// Path of the certificate authority of the API server.
    pub fn authority_path(&self) -> PathBuf {
        self.layout.authority()
    }

    /// Directory of data and logs.
    pub fn data_directory(&self) -> &Path {
        self.layout.directory()
    }

    /// A client of the runtime that this is called in, as an administrator. It does not repeat what fails.
    ///
    /// # Errors
    /// When it cannot be set up.
    pub fn client(&self) -> anyhow::Result<kube::Client> {
        client(&self.layout)
    }

    /// How the client connects, for one that differs in something.
    ///
    /// # Errors
    /// When the address is none.
    pub fn client_config(&self) -> anyhow::Result<kube::Config> {
        client_config(&self.layout)
    }

    /// Installs CRDs and waits until they are served. Blocks; for use outside of a runtime.
    ///
    /// # Errors
    /// When the API server refuses one, or when one is not served in time.
    pub fn install_crds(&self, crds: &[Value]) -> anyhow::Result<()> {
        blocking(|| async { objects::install_crds(&self.client()?, crds).await })?
    }

    /// The real nodes, if there are any.
    pub fn nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()
    }

    /// Makes an image that is not made yet, and loads it on all real nodes. Blocks.
    ///
    /// # Errors
    /// When it cannot be made, or when a node does not take it.
    pub fn load_image(&self, image: &Image) -> anyhow::Result<()> {
        let nodes = self.nodes.as_ref().context("images are for real nodes")?;
        nodes.load(std::slice::from_ref(image))
    }

    /// Kills the API server, as a crash would; what was written stays in etcd.
    pub fn stop_apiserver(&self) {
        self.processes().api_server = None;
    }

    /// Starts the API server again, at the same address, and waits until it is ready. Blocks.
    ///
    /// # Errors
    /// When it does not start; the message has the end of its log.
    pub fn start_apiserver(&self) -> anyhow::Result<()> {
        let mut processes = self.processes();
        if processes.api_server.is_none() {
            processes.api_server = Some(self.run(Program::ApiServer)?);
        }
        drop(processes);
        self.wait_until_ready()
    }

    /// Kills the API server and starts it again. Blocks until it is ready.
    ///
    /// # Errors
    /// When it does not start; the message has the end of its log.
    pub fn restart_apiserver(&self) -> anyhow::Result<()> {
        self.stop_apiserver();
        self.start_apiserver()
    }

    /// Runs kubectl as an administrator, built if it is not there, and returns what it prints.
    ///
    /// # Errors
    /// When it cannot be built, or when it fails; the message has what it said.
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.kubectl_reading(arguments, "")
    }

    /// The same with a text on standard input: `apply -f -`.
    ///
    /// # Errors
    /// When it cannot be built, or when it fails; the message has what it said.
    pub fn kubectl_reading(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let program = self.binaries.ensure(Program::Kubectl)?;
        let mut child = Command::new(program)
            .args(self.layout.arguments(Program::Kubectl, &[]))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting kubectl")?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read its input says so itself.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().context("waiting for kubectl")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {}: {}", arguments.join(" "), said.trim_end());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        // A test that panics while it holds the lock leaves whole values behind.
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, program: Program) -> anyhow::Result<Supervised> {
        run(&self.binaries, &self.layout, program, &self.options)
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        wait_until_ready(&self.layout, || {
            let mut processes = self.processes();
            if processes.etcd.ended().is_some() {
                return Some(Program::Etcd);
            }
            let api_server = processes.api_server.as_mut();
            let ended = api_server.is_none_or(|process| process.ended().is_some());
            ended.then_some(Program::ApiServer)
        })
    }
}

fn run(
    binaries: &Binaries,
    layout: &Layout,
    program: Program,
    options: &Options,
) -> anyhow::Result<Supervised> {
    let extra: &[String] = match program {
        Program::ApiServer => &options.apiserver_arguments,
        Program::ControllerManager => &options.controller_manager_arguments,
        _ => &[],
    };
    let arguments = layout.arguments(program, extra);
    let (path, log) = (binaries.path(program), layout.log(program));
    if program != Program::ApiServer || options.apiserver_environment.is_empty() {
        return Supervised::start(&path, &arguments, &log);
    }
    let variables = options.apiserver_environment.iter();
    let variables = variables.map(|(name, value)| format!("{name}={value}"));
    let words = variables
        .chain([path.display().to_string()])
        .chain(arguments)
        .collect::<Vec<_>>();
    Supervised::start(Path::new("env"), &words, &log)
}

/// A new directory for its owner only, and whether it is to be kept.
fn temporary_directory() -> anyhow::Result<(PathBuf, bool)> {
    let name = format!("volcano-testcluster-{}", Uuid::new_v4().simple());
    let directory = env::temp_dir().join(name);
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("creating {}", directory.display()))?;
    let keep = env::var_os(KEEP_VARIABLE).is_some_and(|value| !value.is_empty());
    Ok((directory, keep))
}

/// How an administrator connects.
fn client_config(layout: &Layout) -> anyhow::Result<kube::Config> {
    let mut config = kube::Config::new(layout.url().parse().context("address of the API server")?);
    config.root_cert = Some(vec![layout.authority_der().to_vec()]);
    config.auth_info.token = Some(layout.token().to_owned().into());
    // A test has to see what fails.
    config.default_retry = false;
    Ok(config)
}

/// A client as an administrator, in the runtime that this is called in.
pub(crate) fn client(layout: &Layout) -> anyhow::Result<kube::Client> {
    kube::Client::try_from(client_config(layout)?).context("setting up a client")
}

/// Waits until the API server answers that it is ready. `ended` names a program that does not run any more.
pub(crate) fn wait_until_ready(
    layout: &Layout,
    mut ended: impl FnMut() -> Option<Program> + Send,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let waited = blocking(|| async {
        let client = client(layout)?;
        loop {
            if let Some(program) = ended() {
                return Err(not_started(layout, program, "ended"));
            }
            if is_ready(&client).await {
                return Ok(());
            }
            if began.elapsed() > READY_TIMEOUT {
                let waited = format!("was not ready after {} s", READY_TIMEOUT.as_secs());
                return Err(not_started(layout, Program::ApiServer, &waited));
            }
            tokio::time::sleep(process::POLL).await;
        }
    });
    waited?
}

async fn is_ready(client: &kube::Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    let asked = tokio::time::timeout(Duration::from_secs(5), client.request_text(request)).await;
    matches!(asked, Ok(Ok(_)))
}

fn not_started(layout: &Layout, program: Program, what: &str) -> anyhow::Error {
    let log = layout.log(program);
    anyhow!(
        "{} {what}; the end of {}:\n{}",
        program.name(),
        log.display(),
        process::last_lines(&log, LOG_LINES)
    )
}

/// Runs a future to its end in a thread and runtime of its own, so that it works inside and outside of a runtime.
pub(crate) fn blocking<T: Send, F: Future<Output = T>>(make: impl FnOnce() -> F + Send) -> anyhow::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("starting a runtime")?;
            Ok(runtime.block_on(make()))
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(anyhow!("a thread of the cluster panicked")))
    })
}
