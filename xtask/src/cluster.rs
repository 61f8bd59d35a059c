//! `cargo xtask cluster`: a real control plane in the background, for trying things out by hand; with real nodes if wished.

use std::io::Write as _;

use anyhow::bail;
use volcano_testcluster::background::{Background, Started, Wanted};
use volcano_testcluster::binaries::{Binaries, KUBERNETES_VERSION, Program};
use volcano_testcluster::images::Image;
use volcano_testcluster::nodes::Packages;

/// What to do with the control plane.
#[derive(clap::Subcommand)]
pub enum ClusterCommand {
    /// Build the programs, and with --nodes what real nodes need besides, without starting anything.
    Build {
        /// Also the programs and images of real nodes.
        #[arg(long)]
        nodes: bool,
    },
    /// Build and start a control plane with the CRDs of this project; it runs until `down`.
    Up(UpArgs),
    /// Stop the control plane and remove its data.
    Down,
    /// Print the path of its kubeconfig.
    Kubeconfig,
    /// Say what runs.
    Status,
}

/// What to start.
#[derive(clap::Args)]
pub struct UpArgs {
    /// Build kubectl too, and print its path.
    #[arg(long)]
    kubectl: bool,
    /// Start this many real nodes, which run pods: needs root and some packages of Debian. Without any, nodes are plain
    /// objects, and pods on them do not run.
    #[arg(long, value_name = "N", default_value_t = 0)]
    nodes: usize,
    /// Install the packages that nodes need, with apt-get.
    #[arg(long, requires = "nodes")]
    install_packages: bool,
}

/// Carries out a command.
///
/// # Errors
/// When something cannot be built, started or stopped, or when it does not run but has to.
pub fn run(command: &ClusterCommand) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Build { nodes } => build(*nodes),
        ClusterCommand::Up(args) => up(&Background::locate()?, args),
        ClusterCommand::Down => down(&Background::locate()?),
        ClusterCommand::Kubeconfig => kubeconfig(&Background::locate()?),
        ClusterCommand::Status => status(&Background::locate()?),
    }
}

/// Builds what a control plane needs, and what real nodes need besides.
///
/// # Errors
/// When something cannot be built.
pub fn build(nodes: bool) -> anyhow::Result<()> {
    let binaries = Binaries::locate()?;
    binaries.ensure_all(&Program::CONTROL_PLANE)?;
    binaries.ensure(Program::Kubectl)?;
    if nodes {
        binaries.ensure_all(&Program::NODES)?;
        for image in [Image::Pause, Image::Busybox, Image::Debian] {
            image.ensure()?;
        }
    }
    Ok(())
}

fn up(background: &Background, args: &UpArgs) -> anyhow::Result<()> {
    let kubectl = match args.kubectl {
        true => Binaries::locate()?
            .ensure(Program::Kubectl)?
            .display()
            .to_string(),
        false => "kubectl".to_owned(),
    };
    let images = vec![Image::Busybox, Image::Debian];
    let wanted = Wanted {
        crds: volcano_api::crd::all(),
        nodes: args.nodes,
        packages: match args.install_packages {
            true => Packages::Install,
            false => Packages::from_environment(),
        },
        images: images.clone(),
    };
    let what = match background.up(&wanted)? {
        Started::Now => "is running, with the CRDs installed",
        Started::Before => "is running already; all checkouts with this cache share it",
    };
    let (kubeconfig, directory) = (background.kubeconfig_path(), background.directory());
    print(&format!(
        "Kubernetes {KUBERNETES_VERSION} {what}.\n\n  \
           kubeconfig  {}\n  \
           logs        {}/*.log\n",
        kubeconfig.display(),
        directory.display(),
    ));
    if args.nodes > 0 {
        let names: Vec<String> = images.iter().flat_map(Image::references).collect();
        print(&format!(
            "  nodes       {}, with logs in {}/node-*/*.log\n  \
               images      {}\n",
            args.nodes,
            directory.display(),
            names.join("\n              "),
        ));
    }
    let first = match args.nodes {
        0 => "get crds",
        _ => "run hello --image busybox:1 --restart Never -it --rm -- echo hello",
    };
    print(&format!(
        "\nNext:\n  \
           export KUBECONFIG={}\n  \
           {kubectl} {first}\n  \
           cargo xtask cluster down\n",
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
    for process in background.processes() {
        let state = process
            .id
            .map_or("not running".to_owned(), |id| format!("running, process {id}"));
        text += &format!("{:<24} {state}\n", process.title);
    }
    if text.is_empty() {
        text = "nothing is running\n".to_owned();
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
