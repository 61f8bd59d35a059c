//! A real Kubernetes control plane for tests, benchmarks and developers: built, started, stopped.
//!
//! What the API server really does with conflicts, defaults, watches and deletions cannot be guessed by a stand-in, so
//! tests run against etcd, kube-apiserver and kube-controller-manager themselves. Nothing is downloaded as a binary:
//! they are built from pinned Go modules, once per machine.
//!
//! ```text
//! binaries  go build ──> cache directory, one lock
//! components  command lines  ─┐
//! certificates, kubeconfig ───┼──> Cluster: etcd -> kube-apiserver -> kube-controller-manager, ends with the process
//! process  supervisors ───────┘    background: the same, stays until it is told to stop
//!                                        │
//! client ──http──> Proxy (faults) ──https┘      objects: nodes, pods, PodGroups, waiting
//!
//! nodes   real ones, if wished: kubelet, containerd, network, names <── images, made here
//! ```
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use std::time::Duration;
//! use volcano_testcluster::{Cluster, Options, objects};
//!
//! let cluster = Cluster::start(Options::default())?;
//! let client = cluster.client()?;
//! objects::create_node(&client, &objects::Node::new("n1").cpu("8").memory("32Gi")).await?;
//! let namespace = objects::unique_namespace(&client, "demo").await?;
//! objects::create_pod(&client, &objects::Pod::new(&namespace, "p").cpu("1")).await?;
//! objects::wait_until("the pod is on a node", Duration::from_secs(30), || async {
//!     let nodes = objects::pod_nodes(&client, &namespace).await?;
//!     Ok(objects::check(nodes.values().all(Option::is_some), || format!("{nodes:?}")))
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```

pub mod background;
pub mod binaries;
mod cargo;
pub mod certificates;
mod cluster;
mod components;
pub mod images;
mod kubeconfig;
mod modules;
pub mod nodes;
pub mod objects;
pub mod ports;
mod process;
mod proxy;

pub use cargo::cargo;
pub use cluster::{Cluster, KEEP_VARIABLE, Options};
pub use proxy::{Counters, Delay, Faults, Proxy, Rejections};
