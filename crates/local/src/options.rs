//! How a system is started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use volcano_apiserver::Clock;

/// How a system is started. The default is one in memory, without nodes.
#[derive(Clone, Default)]
pub struct Options {
    /// Directory in which state is kept, made if it is not there; in memory only without.
    pub data_dir: Option<PathBuf>,
    /// Text of the scheduler configuration, instead of the built-in default.
    pub scheduler_conf: Option<String>,
    /// Nodes that the system brings along. Others are attached through [`System::client`](crate::System::client).
    pub nodes: Nodes,
    /// Names of nodes that the caller attaches. Nodes of an earlier start that are neither these nor among `nodes` are removed.
    pub own_nodes: Vec<String>,
    /// Directory in which volumes are made for claims. Without it they have no files, as on simulated nodes.
    pub volumes: Option<PathBuf>,
    /// The time, if it is not that of the machine: see [`virtual_clock`](crate::virtual_clock).
    pub clock: Option<Clock>,
    /// Makes names and UIDs the same every time, for tests.
    pub seed: Option<u64>,
}

/// Nodes that a system brings along.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Nodes {
    /// None: the caller runs pods, or nobody does.
    #[default]
    None,
    /// Nodes without machines: pods on them run for the time that they say.
    Simulated(Vec<SimulatedNodes>),
}

/// A number of equal nodes, named `PREFIX-0`, `PREFIX-1`, ….
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedNodes {
    /// Beginning of their names.
    pub prefix: String,
    /// How many.
    pub count: usize,
    /// CPUs of each, as a quantity.
    pub cpu: String,
    /// Memory of each, as a quantity.
    pub memory: String,
    /// GPUs of each (`nvidia.com/gpu`).
    pub gpu: u32,
    /// Pods that each takes.
    pub pods: u32,
    /// Labels, beside those that every node has.
    pub labels: BTreeMap<String, String>,
}

impl Default for SimulatedNodes {
    fn default() -> Self {
        SimulatedNodes {
            prefix: "node".to_owned(),
            count: 1,
            cpu: "8".to_owned(),
            memory: "32Gi".to_owned(),
            gpu: 0,
            pods: 110,
            labels: BTreeMap::new(),
        }
    }
}
