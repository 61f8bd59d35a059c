//! `volcano up`: the whole system in this process, until it is told to end.

use super::local::{Ending, Home, Local, NodeArgs, SystemArgs};
use super::{print, tell};
use crate::failure::Failure;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name of the kubeconfig where none is given.
const KUBECONFIG: &str = "kubeconfig";
/// What the contexts, clusters and so on of our kubeconfigs are called.
const OURS: &str = "volcano";

/// Start a cluster in this process: API server, admission, scheduler, controllers and nodes
///
/// It listens on the loopback address for those who have the kubeconfig, and ends with Ctrl-C; nothing is left behind but
/// the data directory, if there is one. Without --nodes this machine is the only node, and pods are processes on it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 ended as it was told to; 2 wrong usage, or it does not start.")]
pub struct UpArgs {
    /// Directory to keep everything in, for the next start [default: in memory only]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Where to write the kubeconfig [default: in the data directory, else in a temporary one]. Without a data directory
    /// it is removed at the end
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    system: SystemArgs,

    #[command(flatten)]
    nodes: NodeArgs,
}

/// Runs the command.
///
/// # Errors
/// When it does not start, or when a part of it breaks down.
pub fn run(args: &UpArgs) -> Result<ExitCode, Failure> {
    let home = Home::of(args.data_dir.as_deref())?;
    let kubeconfig = Kubeconfig::prepare(args.kubeconfig.as_deref(), &home)?;
    let threads = tokio::runtime::Runtime::new()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let outcome = threads.block_on(async {
        let mut ending = Ending::listen()?;
        let local = tokio::select! {
            local = Local::start(&args.nodes, &args.system, &home) => local?,
            _ = ending.wanted() => return Ok(()),
        };
        let served = local.system.serve(&kubeconfig.path).await;
        let address = match served {
            Ok(address) => address,
            Err(error) => {
                ending.stop(local).await;
                return Err(Failure::new(error.to_string()));
            }
        };
        print(&welcome(
            args,
            &local,
            &format!("https://{address}"),
            &kubeconfig.path,
        ))?;
        let broken = tokio::select! {
            _ = ending.wanted() => None,
            part = local.system.broken() => Some(part),
        };
        ending.stop(local).await;
        match broken {
            None => Ok(()),
            Some(part) => Err(Failure::new(format!("{part} broke down"))
                .hint("-v 3 logs what happens; this is a defect, please report it")),
        }
    });
    // A thread that waits for a name server or a pipe must not hold up the end.
    threads.shutdown_background();
    drop(kubeconfig);
    outcome?;
    tell(&"stopped");
    Ok(ExitCode::SUCCESS)
}

fn welcome(args: &UpArgs, local: &Local, address: &str, kubeconfig: &Path) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "volcano".to_owned());
    let kept = match &args.data_dir {
        Some(folder) => format!("kept in {}", folder.display()),
        None => "in memory".to_owned(),
    };
    format!(
        "volcano is up: Ctrl-C stops it\n\
         \x20 API server  {address}, with admission; state is {kept}\n\
         \x20 scheduler, controllers\n\
         \x20 nodes       {}\n\
         \x20 kubeconfig  {path}\n\
         \n\
         To use it, in another terminal:\n\
         \x20 export KUBECONFIG={path}\n\
         \x20 {program} vcctl job run -f examples/hello-gang.yaml --wait\n\
         \x20 {program} run --kubeconfig $KUBECONFIG examples/hello-gang.yaml\n\
         \x20 {program} vcctl top\n\
         \x20 kubectl get queues,podgroups,pods\n",
        local.nodes(&args.nodes),
        path = kubeconfig.display(),
    )
}

/// The kubeconfig, which goes with the process unless state is kept.
struct Kubeconfig {
    path: PathBuf,
    is_kept: bool,
}

impl Kubeconfig {
    /// Finds a place for it.
    ///
    /// # Errors
    /// When there is a file that is not ours to replace.
    fn prepare(given: Option<&Path>, home: &Home) -> Result<Kubeconfig, Failure> {
        let Some(path) = given else {
            return Ok(Kubeconfig {
                path: home.path.join(KUBECONFIG),
                is_kept: home.is_kept(),
            });
        };
        if path.exists() && !is_ours(path) {
            return Err(Failure::new(format!(
                "kubeconfig {} is there already, and not one of volcano up",
                path.display()
            ))
            .hint("--kubeconfig names a file of its own; KUBECONFIG=a:b merges several"));
        }
        Ok(Kubeconfig {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            is_kept: home.is_kept(),
        })
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.path); // It may never have been written.
        }
    }
}

/// Whether a file is a kubeconfig that `volcano up` wrote: one that has nothing but our cluster.
fn is_ours(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let value: Value = serde_saphyr::from_str(&text).unwrap_or_default();
    let is_only = |list: &str| {
        let entries = value[list].as_array();
        entries.is_some_and(|entries| matches!(entries.as_slice(), [one] if one["name"] == OURS))
    };
    is_only("clusters") && is_only("contexts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_kubeconfig_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let ours = |text: &str| {
            std::fs::write(&path, text).unwrap();
            is_ours(&path)
        };
        assert!(ours("clusters: [{name: volcano}]\ncontexts: [{name: volcano}]\n"));
        assert!(!ours(
            "clusters: [{name: volcano}, {name: work}]\ncontexts: [{name: volcano}]\n"
        ));
        assert!(!ours("notes"));
        assert!(!ours("a: ["));
    }
}
