//! The Node objects of simulated nodes.

use crate::options::SimulatedNodes;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use volcano_api::time::Time;

/// The resource of GPUs.
const GPU: &str = "nvidia.com/gpu";
/// Addresses of nodes begin after this one.
const ADDRESSES: u32 = u32::from_be_bytes([172, 16, 0, 0]);

/// The address of a node by its place among all.
pub fn address(place: usize) -> Ipv4Addr {
    let place = u32::try_from(place).unwrap_or_default() % (1 << 20);
    Ipv4Addr::from(ADDRESSES + place + 1)
}

/// Names of the nodes of a group.
pub fn names(group: &SimulatedNodes) -> impl Iterator<Item = String> {
    (0..group.count).map(|place| format!("{}-{place}", group.prefix))
}

/// The Node of a name.
pub fn object(group: &SimulatedNodes, name: &str, address: Ipv4Addr, now: Time) -> Value {
    let now = Time::from_unix_seconds(now.unix_seconds());
    let mut capacity = json!({"cpu": group.cpu, "memory": group.memory, "pods": group.pods.to_string()});
    if group.gpu > 0 {
        capacity[GPU] = group.gpu.to_string().into();
    }
    let mut labels = json!({
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    });
    for (key, value) in &group.labels {
        labels[key] = value.as_str().into();
    }
    let condition = |name: &str, status: &str, reason: &str| {
        json!({
            "type": name,
            "status": status,
            "reason": reason,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "osImage": "simulated",
                "kernelVersion": "",
                "containerRuntimeVersion": "simulated://",
                "kubeletVersion": concat!("v", env!("CARGO_PKG_VERSION"), "+simulated"),
                "kubeProxyVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_what_they_are_told_to_have() {
        let group = SimulatedNodes {
            prefix: "gpu".to_owned(),
            count: 2,
            cpu: "500m".to_owned(),
            gpu: 4,
            labels: [("zone".to_owned(), "a".to_owned())].into(),
            ..SimulatedNodes::default()
        };
        assert_eq!(names(&group).collect::<Vec<_>>(), ["gpu-0", "gpu-1"]);
        let node = object(&group, "gpu-1", address(1), Time::from_unix_seconds(0));
        assert_eq!(node["status"]["allocatable"]["cpu"], "500m");
        assert_eq!(node["status"]["capacity"]["nvidia.com/gpu"], "4");
        assert_eq!(node["metadata"]["labels"]["zone"], "a");
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "gpu-1");
        assert_eq!(node["status"]["addresses"][0]["address"], "172.16.0.2");
    }

    #[test]
    fn no_two_nodes_have_the_same_address() {
        let addresses: std::collections::BTreeSet<_> = (0..5000).map(address).collect();
        assert_eq!(addresses.len(), 5000);
    }
}
