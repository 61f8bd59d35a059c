//! kubelet of a node: its configuration and command line.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::containerd;
use super::network::Network;
use super::room::NODE;
use crate::components::Layout;
use crate::kubeconfig;

/// The domain of Services.
pub const DOMAIN: &str = "cluster.local";

/// Writes its files into the node's directory; returns its arguments.
pub fn prepare(
    directory: &Path,
    layout: &Layout,
    network: Network,
    node: u8,
    cgroup: &str,
) -> anyhow::Result<Vec<String>> {
    let name = super::name(node);
    fs::copy(layout.authority(), directory.join("ca.crt")).context("copying ca.crt")?;
    let token = layout.token_of(&super::user(node))?;
    let authority = format!("{NODE}/ca.crt");
    let text = kubeconfig::text(&layout.url(), Some(Path::new(&authority)), Some(token));
    kubeconfig::write_secret(&directory.join("kubeconfig"), &text)?;
    let resolv = format!("nameserver {}\n", network.dns());
    fs::write(directory.join("resolv.conf"), resolv).context("writing resolv.conf")?;
    let text = format!("{:#}\n", configuration(network, node, cgroup));
    fs::write(directory.join("kubelet.json"), text).context("writing kubelet.json")?;
    Ok(vec![
        format!("--config={NODE}/kubelet.json"),
        format!("--kubeconfig={NODE}/kubeconfig"),
        format!("--hostname-override={name}"),
        format!("--node-ip={}", network.node(node)),
        format!("--root-dir={NODE}/kubelet"),
        format!("--cert-dir={NODE}/kubelet-certificates"),
    ])
}

fn configuration(network: Network, node: u8, cgroup: &str) -> Value {
    let address = network.node(node);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // All kubelets share the cluster's network and differ in their address.
        "address": address,
        "healthzBindAddress": address,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": format!("{NODE}/ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": format!("unix://{}", containerd::SOCKET),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": false,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "clusterDNS": [network.dns()],
        "clusterDomain": DOMAIN,
        "resolvConf": format!("{NODE}/resolv.conf"),
        "volumePluginDir": format!("{NODE}/volume-plugins"),
        // The disk is the machine's: how full it is says nothing about this cluster.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        // Tests look at restarts and at ends: what is seen late makes them slow.
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
        "featureGates": {"KubeletCrashLoopBackOffMax": true},
    })
}
