//! The Node object and its lease: this machine, told to the cluster.

use crate::agent::Options;
use crate::machine;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Leases are renewed this often, and hold for as many seconds as the kubelet's do.
const RENEW: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
/// The conditions are told anew this often.
const HEARTBEAT: u32 = 30;
const LEASES: &str = "kube-node-lease";

/// The condition that says how far pods are set apart from the machine and from each other.
pub(crate) const ISOLATION: &str = "PodIsolation";

/// How far pods are set apart: whether wholly, a reason, a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Apartness {
    pub is_whole: bool,
    pub reason: &'static str,
    pub message: String,
}

/// What the node has, with what its options say.
pub(crate) fn capacity(options: &Options) -> BTreeMap<String, Quantity> {
    let mut capacity = machine::capacity(&options.directory, options.pods);
    for (name, amount) in &options.capacity {
        capacity.insert(name.clone(), Quantity(amount.clone()));
    }
    capacity
}

/// Tells the cluster of the node.
pub(crate) async fn register(
    client: &kube::Client,
    options: &Options,
    capacity: &BTreeMap<String, Quantity>,
    address: &str,
    apart: &Apartness,
) -> Result<Node, kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let name = &options.node_name;
    let mut labels = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), name.clone()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        (
            "kubernetes.io/arch".to_owned(),
            machine::architecture().to_owned(),
        ),
    ]);
    labels.extend(options.labels.clone());
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    let node = match nodes.get_opt(name).await? {
        Some(_) => {
            let patch = Patch::Merge(&object);
            nodes.patch(name, &PatchParams::default(), &patch).await?
        }
        None => {
            let node = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
            nodes.create(&PostParams::default(), &node).await?
        }
    };
    let before = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone())
        .unwrap_or_default();
    let status = status(
        options,
        capacity,
        address,
        &conditions(apart, &before, Timestamp::now()),
    );
    let patch = Patch::Strategic(json!({"status": status}));
    nodes.patch_status(name, &PatchParams::default(), &patch).await
}

fn status(
    options: &Options,
    capacity: &BTreeMap<String, Quantity>,
    address: &str,
    conditions: &[NodeCondition],
) -> Value {
    json!({
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": options.node_name},
        ],
        "nodeInfo": {
            "architecture": machine::architecture(),
            "bootID": "",
            "containerRuntimeVersion": concat!("volcano://", env!("CARGO_PKG_VERSION")),
            "kernelVersion": machine::kernel(),
            "kubeProxyVersion": "",
            "kubeletVersion": concat!("volcano-", env!("CARGO_PKG_VERSION")),
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": machine::system(),
            "systemUUID": "",
        },
    })
}

fn conditions(apart: &Apartness, before: &[NodeCondition], now: Timestamp) -> Vec<NodeCondition> {
    let good = [
        (
            "MemoryPressure",
            false,
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            false,
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            false,
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        (ISOLATION, apart.is_whole, apart.reason, &apart.message),
        ("Ready", true, "KubeletReady", "kubelet is posting ready status"),
    ];
    good.map(|(kind, holds, reason, message)| {
        let status = if holds { "True" } else { "False" };
        let known = before
            .iter()
            .find(|one| one.type_ == kind && one.status == status);
        let since = known.and_then(|one| one.last_transition_time.clone());
        NodeCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(since.unwrap_or(Time(now))),
        }
    })
    .into()
}

/// Renews the lease and the conditions for as long as it is polled.
pub(crate) async fn keep(client: kube::Client, name: String, apart: Apartness) {
    let mut count: u32 = 0;
    loop {
        if let Err(error) = renew(&client, &name).await {
            tracing::warn!(%error, "lease of the node not renewed");
        }
        if count > 0
            && count.is_multiple_of(HEARTBEAT)
            && let Err(error) = beat(&client, &name, &apart).await
        {
            tracing::warn!(%error, "conditions of the node not told");
        }
        count = count.wrapping_add(1);
        tokio::time::sleep(RENEW).await;
    }
}

async fn renew(client: &kube::Client, name: &str) -> Result<(), kube::Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let spec = json!({
        "holderIdentity": name,
        "leaseDurationSeconds": LEASE_SECONDS,
        "renewTime": MicroTime(Timestamp::now()),
    });
    let patch = Patch::Merge(json!({"spec": spec}));
    match leases.patch(name, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let lease = json!({"metadata": {"name": name, "namespace": LEASES}, "spec": spec});
            let lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
            leases.create(&PostParams::default(), &lease).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

async fn beat(client: &kube::Client, name: &str, apart: &Apartness) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = nodes.get(name).await?;
    let before = node
        .status
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    let conditions = conditions(apart, &before, Timestamp::now());
    let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
    nodes
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut apart = Apartness {
            is_whole: true,
            reason: "Root",
            message: String::new(),
        };
        let first = conditions(&apart, &[], at(1));
        apart.is_whole = false;
        let second = conditions(&apart, &first, at(2));
        let time = |list: &[NodeCondition], kind: &str| {
            let found = list.iter().find(|one| one.type_ == kind).unwrap();
            (
                found.status.clone(),
                found.last_transition_time.clone().unwrap().0,
            )
        };
        assert_eq!(time(&second, "Ready"), ("True".to_owned(), at(1)));
        assert_eq!(time(&second, ISOLATION), ("False".to_owned(), at(2)));
    }
}
