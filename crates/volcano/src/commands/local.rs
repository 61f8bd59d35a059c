//! The whole system in this process, for `volcano up` and `volcano run`: which nodes it has, where it keeps its state, how it
//! starts and ends.

mod home;

pub use home::Home;

use super::tell;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use volcano_api::quantity::Quantity;
use volcano_local::{Nodes, Options, SimulatedNodes, System};
use volcano_node::Agent;
use volcano_runtime::client::Client;
use volcano_runtime::clock::Clock;
use volcano_runtime::logging;

/// An end that takes longer is told of.
const SLOW: Duration = Duration::from_millis(300);

/// Which nodes there are.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Nodes")]
pub struct NodeArgs {
    /// So many simulated nodes, instead of this machine: their pods take the time of the annotation
    /// volcano.sh/simulated-duration, or of their sleep
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: Option<u32>,

    /// CPUs of each node [default: of this machine what it has, of simulated ones 8]
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    cpu: Option<String>,

    /// Memory of each node [default: of this machine what it has, of simulated ones 32Gi]
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    memory: Option<String>,

    /// GPUs (nvidia.com/gpu) of each node
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: u32,
}

fn amount(text: &str) -> Result<String, String> {
    match Quantity::parse(text) {
        Ok(_) if text.starts_with('-') => Err("it is less than nothing".to_owned()),
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl NodeArgs {
    /// Whether pods are processes of this machine.
    pub fn are_real(&self) -> bool {
        self.nodes.is_none()
    }

    fn simulated(&self) -> Nodes {
        let Some(count) = self.nodes else {
            return Nodes::None;
        };
        let usual = SimulatedNodes::default();
        Nodes::Simulated(vec![SimulatedNodes {
            count: count as usize,
            cpu: self.cpu.clone().unwrap_or(usual.cpu),
            memory: self.memory.clone().unwrap_or(usual.memory),
            gpu: self.gpu,
            ..SimulatedNodes::default()
        }])
    }

    /// This machine as a node, if it is one.
    fn machine(&self, directory: &Path) -> Option<volcano_node::Options> {
        if !self.are_real() {
            return None;
        }
        let mut options = volcano_node::Options::new(host_name(), directory);
        let gpus = (self.gpu > 0).then(|| self.gpu.to_string());
        let given = [
            ("cpu", self.cpu.clone()),
            ("memory", self.memory.clone()),
            ("nvidia.com/gpu", gpus),
        ];
        let given = given
            .into_iter()
            .filter_map(|(name, amount)| Some((name.to_owned(), amount?)));
        options.capacity.extend(given);
        Some(options)
    }
}

/// The name of this machine, as a name of a Node.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let letters = name
        .trim()
        .chars()
        .map(|letter| match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9' | '.' | '-') => letter,
            _ => '-',
        });
    let name: String = letters.collect();
    match name.trim_matches(['-', '.']) {
        "" => "this-machine".to_owned(),
        name => name.to_owned(),
    }
}

/// How the scheduler decides, and what is logged.
#[derive(Clone, Debug, clap::Args)]
pub struct SystemArgs {
    /// The scheduler's configuration, instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub scheduler_conf: Option<PathBuf>,

    /// Log what the system does: 0 to 3 what happens, 4 also why, 5 also every step
    #[arg(short = 'v', long = "v", value_name = "N")]
    verbosity: Option<i32>,
}

/// The system and its nodes, at work.
pub struct Local {
    /// The system.
    pub system: System,
    /// This machine, if it is a node.
    machine: Option<Agent>,
}

impl Local {
    /// Starts everything.
    ///
    /// # Errors
    /// When something does not start; what has started is stopped.
    pub async fn start(nodes: &NodeArgs, args: &SystemArgs, home: &Home) -> Result<Local, Failure> {
        if let Some(verbosity) = args.verbosity {
            logging::start(&logging::Settings {
                verbosity,
                skip_headers: false,
            });
        }
        let scheduler_conf = match &args.scheduler_conf {
            Some(path) => Some(super::files::open(path)?.text().to_owned()),
            None => None,
        };
        let options = Options {
            data_dir: home.is_kept().then(|| home.path.clone()),
            scheduler_conf,
            nodes: nodes.simulated(),
            own_nodes: nodes.are_real().then(host_name).into_iter().collect(),
            volumes: nodes.are_real().then(|| home.path.join("volumes")),
            ..Options::default()
        };
        let system = System::start(options).await;
        let system = system.map_err(|error| Failure::new(format!("the system does not start: {error}")))?;
        let machine = match nodes.machine(&home.path.join("node")) {
            None => None,
            Some(options) => match Agent::start(system.client(), options).await {
                Ok(agent) => Some(agent),
                Err(error) => {
                    system.stop().await;
                    return Err(Failure::new(format!("this machine is no node: {error}"))
                        .hint("--nodes N has simulated nodes instead"));
                }
            },
        };
        if let Some(machine) = &machine {
            system.plane().set_logs(machine.logs());
        }
        let local = Local { system, machine };
        volcano_cli::run::wait_ready(local.client()).await;
        Ok(local)
    }

    /// A client of an administrator.
    pub fn client(&self) -> Client {
        Client::of(self.system.client(), "this process", Clock::default())
    }

    /// How far pods are set apart from this machine, if it is a node.
    pub fn isolation(&self) -> Option<&str> {
        self.machine.as_ref().map(Agent::isolation_message)
    }

    /// Whether pods are not set apart as far as they could be.
    pub fn is_open(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| !machine.is_whole())
    }

    /// What nodes there are, in words.
    pub fn nodes(&self, args: &NodeArgs) -> String {
        let Nodes::Simulated(groups) = args.simulated() else {
            let how = self.isolation().unwrap_or_default();
            return format!("{}, this machine: {how}", host_name());
        };
        let shown = groups.iter().map(|nodes| {
            let gpus = match nodes.gpu {
                0 => String::new(),
                gpus => format!(", {gpus} GPUs"),
            };
            format!(
                "{} simulated, each with {} CPUs, {}{gpus}",
                nodes.count, nodes.cpu, nodes.memory
            )
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    /// Ends everything, pods first.
    pub async fn stop(self) {
        if let Some(machine) = self.machine {
            machine.stop().await;
        }
        self.system.stop().await;
    }
}

/// Signals that ask this process to end.
pub struct Ending {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Ending {
    /// Listens from now on.
    ///
    /// # Errors
    /// When signals cannot be waited for.
    pub fn listen() -> Result<Ending, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::new(format!("cannot wait for signals: {error}")));
        Ok(Ending {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits until somebody wants this process to end. The exit code that shells give to one that a signal ended.
    pub async fn wanted(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
            _ = self.hangup.recv() => 129,
        }
    }

    /// Lets everything come to its end, unless somebody asks once more. What is dropped half way leaves no process either:
    /// those of pods end with the pipes that they hang on.
    pub async fn stop(&mut self, local: Local) {
        let ended = local.stop();
        tokio::pin!(ended);
        let mut is_told = false;
        loop {
            tokio::select! {
                () = &mut ended => return,
                () = tokio::time::sleep(SLOW), if !is_told => {
                    tell(&"stopping: pods have 2 seconds; Ctrl-C ends them at once");
                    is_told = true;
                }
                _ = self.wanted() => return tell(&"ended at once"),
            }
        }
    }
}
