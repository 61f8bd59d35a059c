//! `cargo xtask cluster`: a real control plane in the background, for trying things out by hand.

use std::io::Write as _;

use anyhow::bail;
use volcano_testcluster::background::{Background, Started};
use volcano_testcluster::binaries::{Binaries, KUBERNETES_VERSION, Program};

/// What to do with the control plane.
#[derive(clap::Subcommand)]
pub enum ClusterCommand {
    /// Build and start a control plane with the CRDs of this project; it runs until `down`.
    Up {
        /// Build kubectl too, and print its path.
        #[arg(long)]
        kubectl: bool,
    },
    /// Stop the control plane and remove its data.
    Down,
    /// Print the path of its kubeconfig.
    Kubeconfig,
    /// Say what runs.
    Status,
}

/// Carries out a command.
///
/// # Errors
/// When something cannot be built, started or stopped, or when it does not run but has to.
pub fn run(command: &ClusterCommand) -> anyhow::Result<()> {
    let background = Background::locate()?;
    match command {
        ClusterCommand::Up { kubectl } => up(&background, *kubectl),
        ClusterCommand::Down => down(&background),
        ClusterCommand::Kubeconfig => kubeconfig(&background),
        ClusterCommand::Status => status(&background),
    }
}

fn up(background: &Background, kubectl: bool) -> anyhow::Result<()> {
    let kubectl = match kubectl {
        true => Binaries::locate()?
            .ensure(Program::Kubectl)?
            .display()
            .to_string(),
        false => "kubectl".to_owned(),
    };
    let what = match background.up(&volcano_api::crd::all())? {
        Started::Now => "is running, with the CRDs installed",
        Started::Before => "is running already; all checkouts with this cache share it",
    };
    let (kubeconfig, directory) = (background.kubeconfig_path(), background.directory());
    print(&format!(
        "Kubernetes {KUBERNETES_VERSION} {what}.\n\n  \
           kubeconfig  {}\n  \
           logs        {}/*.log\n\n\
         Next:\n  \
           export KUBECONFIG={}\n  \
           {kubectl} get crds\n  \
           cargo xtask cluster down\n",
        kubeconfig.display(),
        directory.display(),
        kubeconfig.display(),
    ));
    Ok(())
}

fn down(background: &Background) -> anyhow::Result<()> {
    if background.down()? {
        print("Stopped, and its data removed.\n");
    } else {
        print("Nothing was running.\n");
    }
    Ok(())
}

fn kubeconfig(background: &Background) -> anyhow::Result<()> {
    if !background.is_running() {
        bail!("no control plane is running: `cargo xtask cluster up` starts one");
    }
    print(&format!("{}\n", background.kubeconfig_path().display()));
    Ok(())
}

fn status(background: &Background) -> anyhow::Result<()> {
    let mut text = String::new();
    for (program, id) in background.processes() {
        let state = id.map_or("not running".to_owned(), |id| format!("running, process {id}"));
        text += &format!("{:<24} {state}\n", program.name());
    }
    if background.is_running() {
        text += &format!("kubeconfig {}\n", background.kubeconfig_path().display());
    }
    print(&text);
    Ok(())
}

/// Prints; that nobody reads it is no error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
