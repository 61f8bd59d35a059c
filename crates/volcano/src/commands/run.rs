//! `volcano run`: manifests run to their end, in a system that lives as long as the command, or in a cluster.

use super::local::{Ending, Home, Local, NodeArgs, SystemArgs};
use super::{files, tell};
use crate::failure::Failure;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use volcano_cli::go_flags::duration;
use volcano_cli::run::{Manifest, Manifests, Settings, Stop};
use volcano_cli::{Failure as CliFailure, exit, run};
use volcano_runtime::client::{self, Client, Search};

/// Flags that say how a system of its own is: those who run in a cluster would be wrong to believe in them.
const OF_OWN_SYSTEM: [&str; 5] = ["nodes", "cpu", "memory", "gpu", "scheduler_conf"];

/// Run Jobs and pods of manifests to their end, and show how they get on
///
/// Starts a system of its own for as long as the command runs: API server, scheduler, controllers, and this machine as
/// the node, on which pods are processes. With --kubeconfig or --context the manifests are run in that cluster instead.
/// What the master task prints (or the first task) goes to standard output, progress to standard error.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 everything completed; 1 wrong usage or manifests, nothing was run; of the first that did not \
complete: 2 it failed, 3 it was terminated, 4 it was aborted, 5 it was deleted, 6 it, or what is left of it, would \
never start, 124 it was not over within --timeout; 130 interrupted; 255 the system or the cluster failed."
)]
pub struct RunArgs {
    /// Manifests: YAML or JSON, several documents, objects of any kind; a directory means its *.yaml, *.yml and *.json
    /// files; - reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The namespace of objects that name none
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    namespace: String,

    /// How long it may take, such as 30m; 0 for as long as it takes
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s", hide_default_value = true)]
    timeout: Duration,

    /// How long something may wait before it is said why. In a system of its own, what waits and would never start is given
    /// up once nothing has run for so long
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15s")]
    patience: Duration,

    /// Run in the cluster of this kubeconfig
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_OWN_SYSTEM)]
    kubeconfig: Option<PathBuf>,

    /// Run in the cluster of this context of the kubeconfig
    #[arg(long, value_name = "CONTEXT", conflicts_with_all = OF_OWN_SYSTEM)]
    context: Option<String>,

    #[command(flatten)]
    system: SystemArgs,

    #[command(flatten)]
    nodes: NodeArgs,
}

impl RunArgs {
    fn is_own(&self) -> bool {
        self.kubeconfig.is_none() && self.context.is_none()
    }

    fn settings(&self) -> Settings {
        let conf = self.system.scheduler_conf.clone();
        Settings {
            namespace: self.namespace.clone(),
            timeout: Some(self.timeout).filter(|timeout| !timeout.is_zero()),
            patience: self.patience,
            is_own: self.is_own(),
            has_logs: !self.is_own() || self.nodes.are_real(),
            scheduler_conf: conf.map(Into::into).unwrap_or_default(),
        }
    }
}

/// Runs the command.
pub fn run(args: &RunArgs) -> ExitCode {
    let manifests = match read(args) {
        Ok(manifests) => manifests,
        Err(failure) => {
            tell(&failure);
            return ExitCode::from(exit::USAGE);
        }
    };
    match start(args, manifests) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            tell(&failure);
            ExitCode::from(exit::FAILED)
        }
    }
}

fn read(args: &RunArgs) -> Result<Vec<Manifest>, Failure> {
    let mut manifests = Manifests::default();
    for path in files::expand(&args.files)? {
        let source = files::open(&path)?;
        manifests.add(&source.name, source.text());
    }
    manifests.finish().map_err(of_cli)
}

fn start(args: &RunArgs, manifests: Vec<Manifest>) -> Result<u8, Failure> {
    let threads = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let outcome = threads.block_on(async {
        match args.is_own() {
            true => in_own_system(args, manifests).await,
            false => in_cluster(args, manifests).await,
        }
    });
    // A thread that waits for a name server or a pipe must not hold up the end.
    threads.shutdown_background();
    outcome
}

async fn in_own_system(args: &RunArgs, manifests: Vec<Manifest>) -> Result<u8, Failure> {
    let mut ending = Ending::listen()?;
    let home = Home::of(None)?;
    let local = tokio::select! {
        local = Local::start(&args.nodes, &args.system, &home) => local?,
        code = ending.wanted() => return Ok(code),
    };
    if let Some(how) = local.isolation().filter(|_| local.is_open()) {
        tell(&format_args!("note: {how}"));
    }
    let outcome = tokio::select! {
        outcome = follow(local.client(), manifests, args, &mut ending) => outcome,
        part = local.system.broken() => Err(Failure::new(format!("{part} broke down"))
            .hint("-v 3 logs what happens; this is a defect, please report it")),
    };
    ending.stop(local).await;
    outcome
}

async fn in_cluster(args: &RunArgs, manifests: Vec<Manifest>) -> Result<u8, Failure> {
    let mut ending = Ending::listen()?;
    let options = client::Options {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        search: Search::UserFirst,
        ..client::Options::default()
    };
    let connected = Client::connect(&options).await;
    let client = connected.map_err(|error| of_cli(CliFailure::from(error)))?;
    follow(client, manifests, args, &mut ending).await
}

async fn follow(
    client: Client,
    manifests: Vec<Manifest>,
    args: &RunArgs,
    ending: &mut Ending,
) -> Result<u8, Failure> {
    let wanted = AtomicU8::new(exit::INTERRUPTED);
    let interrupted = async { wanted.store(ending.wanted().await, Ordering::Relaxed) };
    match run::run(client, manifests, &args.settings(), interrupted).await {
        Ok(code) => Ok(code),
        Err(Stop::Refused(failure)) => {
            tell(&of_cli(failure));
            Ok(exit::USAGE)
        }
        Err(Stop::Failed(CliFailure::Interrupted)) => Ok(wanted.load(Ordering::Relaxed)),
        Err(Stop::Failed(CliFailure::ClosedPipe)) => Ok(0),
        Err(Stop::Failed(failure)) => Err(of_cli(failure)),
    }
}

fn of_cli(failure: CliFailure) -> Failure {
    match failure {
        CliFailure::Told {
            message,
            hint: Some(hint),
        } => Failure::new(message).hint(hint),
        CliFailure::Told { message, hint: None } => Failure::new(message),
        CliFailure::ClosedPipe | CliFailure::Interrupted => Failure::new("interrupted"),
    }
}
