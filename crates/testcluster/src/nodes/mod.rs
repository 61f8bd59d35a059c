//! Real nodes for the control plane: kubelet, containerd, runc, a network and names. Pods really run, and really end.
//!
//! ```text
//! prerequisites   root and packages, or what to do about it
//! room            namespaces that end with a process, and everything in them
//! network         addresses; a bridge per node; a cable to the API server
//! cgroups         a root per node
//! containerd, kubelet          one per node
//! services        kube-proxy and CoreDNS, for all nodes
//! ```
//!
//! All nodes are on this machine and each claims all of its processors and memory.

mod cgroups;
mod containerd;
mod kubelet;
mod network;
mod prerequisites;
mod room;
mod services;

pub use network::Network;
pub use prerequisites::{INSTALL, PACKAGES_VARIABLE, Packages, check, ensure_program, prepare};

pub(crate) use cgroups::group;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};

use self::room::Room;
use crate::binaries::{Binaries, Program};
use crate::components::Layout;
use crate::images::Image;
use crate::process::{self, Keeper};
use crate::{cluster, objects};

/// How many nodes there can be: a node's number is a part of its address.
pub const MOST: usize = 100;
/// Who Kubernetes' scheduler is; the API server's own rules say what that one may do.
const SCHEDULER_USER: &str = "system:kube-scheduler";
/// How long nodes may take to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
/// How many lines of a log to show when a node does not get ready.
const LOG_LINES: usize = 20;

/// The nodes of a cluster.
#[derive(Clone, Debug)]
pub struct Nodes {
    directory: PathBuf,
    room: Room,
    network: Network,
    nodes: Vec<Node>,
}

/// One of them.
#[derive(Clone, Debug)]
struct Node {
    number: u8,
    name: String,
    directory: PathBuf,
    room: Room,
    cgroup: String,
    containerd: u32,
}

/// Name of a node, counted from 1.
pub fn name(node: u8) -> String {
    format!("node-{node}")
}

/// Who the kubelet of a node is.
fn user(node: u8) -> String {
    format!("system:node:{}", name(node))
}

impl Nodes {
    /// Lays the network and starts a containerd for each node. The API server, which the rest needs, is not there yet.
    pub(crate) fn lay_out(keeper: &mut impl Keeper, directory: &Path, count: usize) -> anyhow::Result<Nodes> {
        ensure!(count <= MOST, "there can be {MOST} nodes, not {count}");
        let group = cgroups::group(directory);
        let place = make(directory.join("network"))?;
        let room = Room::of_cluster(keeper, &place)?;
        let network = Network::lay(&room)?;
        let mut nodes = Nodes {
            directory: place,
            room,
            network,
            nodes: Vec::with_capacity(count),
        };
        let numbers = (1..=u8::MAX).take(count);
        for number in numbers {
            let name = name(number);
            let place = make(directory.join(&name))?;
            let node = nodes.add(keeper, number, place, cgroups::create(&group, &name)?);
            nodes
                .nodes
                .push(node.with_context(|| format!("preparing {name}"))?);
        }
        Ok(nodes)
    }

    fn add(
        &self,
        keeper: &mut impl Keeper,
        number: u8,
        directory: PathBuf,
        cgroup: String,
    ) -> anyhow::Result<Node> {
        let name = name(number);
        self.network.add_bridge(&self.room, number)?;
        let room = self.room.of_node(keeper, &name, &directory)?;
        let arguments = containerd::prepare(&directory, self.network, number)?;
        let log = directory.join("containerd.log");
        let title = format!("containerd of {name}");
        let containerd = room.start(keeper, &title, "containerd", &arguments, &log)?;
        Ok(Node {
            number,
            name,
            directory,
            room,
            cgroup,
            containerd,
        })
    }

    /// Its addresses.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Names of the nodes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// Everybody who needs a token, with their groups.
    pub(crate) fn users(&self) -> Vec<(String, &'static str)> {
        let kubelets = self.nodes.iter().map(|node| (user(node.number), "system:nodes"));
        let others = [services::PROXY_USER, services::DNS_USER, SCHEDULER_USER];
        kubelets
            .chain(others.map(|name| (name.to_owned(), "system:authenticated")))
            .collect()
    }

    /// Starts everything that needs the API server, and waits until all nodes are ready.
    pub(crate) fn run(
        &self,
        keeper: &mut impl Keeper,
        binaries: &Binaries,
        layout: &Layout,
        images: &[Image],
    ) -> anyhow::Result<()> {
        let client = || cluster::client(layout);
        cluster::blocking(|| async { services::allow_dns(&client()?).await })??;
        self.start_scheduler(keeper, binaries, layout)?;
        let dns = self.start_services(keeper, binaries, layout)?;
        self.load(&[&[Image::Pause], images].concat())?;
        for node in &self.nodes {
            let arguments =
                kubelet::prepare(&node.directory, layout, self.network, node.number, &node.cgroup)?;
            let program = binaries.path(Program::Kubelet).display().to_string();
            let title = format!("kubelet of {}", node.name);
            node.room
                .start(keeper, &title, &program, &arguments, &node.kubelet_log())?;
        }
        let log = self.log(Program::CoreDns);
        room::wait_for("coredns", dns, &log, || services::dns_is_ready(self.network))?;
        cluster::blocking(|| async { self.wait_until_ready(&client()?).await })?
    }

    fn start_scheduler(
        &self,
        keeper: &mut impl Keeper,
        binaries: &Binaries,
        layout: &Layout,
    ) -> anyhow::Result<()> {
        let kubeconfig = layout.kubeconfig_of(SCHEDULER_USER);
        let words = [
            binaries.path(Program::Scheduler).display().to_string(),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        keeper.start("kube-scheduler", &words, &layout.log(Program::Scheduler))?;
        Ok(())
    }

    /// The process of CoreDNS.
    fn start_services(
        &self,
        keeper: &mut impl Keeper,
        binaries: &Binaries,
        layout: &Layout,
    ) -> anyhow::Result<u32> {
        let mut start = |program: Program, arguments: &[String]| {
            let path = binaries.path(program).display().to_string();
            self.room
                .start(keeper, program.name(), &path, arguments, &self.log(program))
        };
        let proxy = services::prepare_proxy(&self.directory, layout, self.network)?;
        start(Program::KubeProxy, &proxy)?;
        let dns = services::prepare_dns(&self.directory, layout, self.network)?;
        start(Program::CoreDns, &dns)
    }

    fn log(&self, program: Program) -> PathBuf {
        self.directory.join(format!("{}.log", program.name()))
    }

    /// Makes images that are not made yet, and loads them on all nodes.
    pub(crate) fn load(&self, images: &[Image]) -> anyhow::Result<()> {
        let archives = images.iter().map(Image::ensure);
        let archives = archives.collect::<anyhow::Result<Vec<_>>>()?;
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .nodes
                .iter()
                .map(|node| scope.spawn(|| node.load(&archives)))
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a thread that loads images panicked")))
            })
        })
    }

    async fn wait_until_ready(&self, client: &kube::Client) -> anyhow::Result<()> {
        let waited = objects::wait_until("all nodes are ready", READY_TIMEOUT, || async {
            let there = objects::list(client, "/api/v1/nodes").await?;
            let is_ready = |name: &str| {
                there.iter().any(|node| {
                    let is_free = node["spec"]["taints"].as_array().is_none_or(Vec::is_empty);
                    objects::name_of(node) == name && objects::has_condition(node, "Ready") && is_free
                })
            };
            let waiting: Vec<&str> = self.names().filter(|name| !is_ready(name)).collect();
            Ok(objects::check(waiting.is_empty(), || waiting.join(", ")))
        });
        waited.await.with_context(|| {
            let log = self.nodes.first().map(Node::kubelet_log).unwrap_or_default();
            let end = process::last_lines(&log, LOG_LINES);
            format!("the end of {}:\n{end}", log.display())
        })
    }
}

impl Node {
    fn kubelet_log(&self) -> PathBuf {
        self.directory.join("kubelet.log")
    }

    fn load(&self, archives: &[PathBuf]) -> anyhow::Result<()> {
        let (title, log) = (
            format!("containerd of {}", self.name),
            self.directory.join("containerd.log"),
        );
        room::wait_for(&title, self.containerd, &log, || containerd::answers(&self.room))?;
        archives
            .iter()
            .try_for_each(|archive| containerd::import(&self.room, archive))
            .with_context(|| format!("loading images on {}", self.name))
    }
}

fn make(directory: PathBuf) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    Ok(directory)
}
