//! containerd of a node: what it keeps is in the node's directory, its socket in the node's `/run`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use serde_json::json;

use super::network::{self, Network};
use super::room::{NODE, Room};
use crate::images::Image;

/// Its socket, as programs of the node see it.
pub const SOCKET: &str = "/run/containerd/containerd.sock";
/// Where images of Kubernetes are kept apart from others.
const NAMESPACE: &str = "k8s.io";
/// Where the package has the CNI plugins.
const CNI_PLUGINS: &str = "/usr/lib/cni";

/// Writes its configuration and that of the pods' network into the node's directory; returns its arguments.
pub fn prepare(directory: &Path, network: Network, node: u8) -> anyhow::Result<Vec<String>> {
    let networks = directory.join("cni");
    fs::create_dir_all(&networks).with_context(|| format!("creating {}", networks.display()))?;
    let conf = format!("{:#}\n", pod_network(network, node));
    fs::write(networks.join("10-pods.conflist"), conf).context("writing the network of pods")?;
    fs::write(directory.join("containerd.toml"), configuration()).context("writing containerd.toml")?;
    Ok(vec![format!("--config={NODE}/containerd.toml")])
}

/// Whether it answers.
pub fn answers(room: &Room) -> bool {
    ctr(room, &["version"], Stdio::null()).is_ok()
}

/// Loads the archive of an image. It goes through standard input: a node sees other paths than the machine.
pub fn import(room: &Room, archive: &Path) -> anyhow::Result<()> {
    let file = fs::File::open(archive).with_context(|| format!("opening {}", archive.display()))?;
    ctr(
        room,
        &["--namespace", NAMESPACE, "images", "import", "-"],
        file.into(),
    )
    .with_context(|| format!("loading {}", archive.display()))
    .map(drop)
}

fn ctr(room: &Room, arguments: &[&str], input: Stdio) -> anyhow::Result<String> {
    room.run_with("ctr", &[&["--address", SOCKET], arguments].concat(), input)
}

fn configuration() -> String {
    let pause = Image::Pause.reference();
    format!(
        r#"version = 2
root = "{NODE}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# A machine may not let anybody ask for less than its own score.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{NODE}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"#
    )
}

/// How a pod gets its address: a cable to the node's bridge, and an address of the node's range.
fn pod_network(network: Network, node: u8) -> serde_json::Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": network::bridge(node),
                "isGateway": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": format!("{NODE}/addresses"),
                    "ranges": [[{"subnet": network.pods(node)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}
