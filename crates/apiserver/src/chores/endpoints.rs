//! Endpoints: the addresses of the pods behind a Service. Names of headless Services are resolved by them.

use super::budgets::is_ready;
use crate::resources::Nature;
use crate::selector::LabelSelector;
use crate::server::Server;
use crate::verbs::{Call, Caller, DeleteOptions};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Marks what is written here, so that nothing else is removed.
const MANAGED: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

impl Server {
    pub(super) async fn follow_pods(&self, namespace: &str) {
        let services = self.all(Nature::Service, namespace);
        let endpoints = self.all(Nature::Endpoints, namespace);
        if services.is_empty() && endpoints.is_empty() {
            return;
        }
        let caller = Caller {
            user: "system:serviceaccount:kube-system:endpoint-controller".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
        };
        let registry = self.registry();
        let resource = registry.of_nature(Nature::Endpoints);
        for object in &endpoints {
            let is_ours = object
                .labels
                .iter()
                .any(|(key, value)| &**key == MANAGED && &**value == CONTROLLER);
            if is_ours && !services.iter().any(|service| service.key == object.key) {
                let call = Call::own(resource, namespace, object.name(), &caller);
                let _ = self.delete(&call, &DeleteOptions::default()).await;
            }
        }
        let services: Vec<Value> = services.iter().map(|service| service.value()).collect();
        let selecting: Vec<&Value> = services.iter().filter(|service| has_selector(service)).collect();
        if selecting.is_empty() {
            return;
        }
        let pods: Vec<Value> = self
            .all(Nature::Pod, namespace)
            .iter()
            .map(|pod| pod.value())
            .collect();
        for service in selecting {
            let name = service["metadata"]["name"].as_str().unwrap_or_default();
            let wanted = endpoints_of(service, &pods);
            let call = Call::own(resource, namespace, name, &caller);
            match endpoints.iter().find(|object| object.name() == name) {
                None => {
                    let _ = self.create(&call, wanted).await;
                }
                Some(known) if known.value()["subsets"] != wanted["subsets"] => {
                    let replaced = self.modify(&call, |old| {
                        let mut new = old.clone();
                        match wanted.get("subsets") {
                            Some(subsets) => new["subsets"] = subsets.clone(),
                            None => {
                                if let Some(fields) = new.as_object_mut() {
                                    fields.remove("subsets");
                                }
                            }
                        }
                        Ok(new)
                    });
                    let _ = replaced.await;
                }
                Some(_) => {}
            }
        }
    }
}

fn has_selector(service: &Value) -> bool {
    service["spec"]["selector"]
        .as_object()
        .is_some_and(|selector| !selector.is_empty())
}

/// Addresses with the same ports.
#[derive(Default)]
struct Subset {
    ready: Vec<Value>,
    unready: Vec<Value>,
}

/// The Endpoints that a Service should have.
fn endpoints_of(service: &Value, pods: &[Value]) -> Value {
    let selector = LabelSelector::equal(&service["spec"]["selector"]);
    let all_are_ready = service["spec"]["publishNotReadyAddresses"] == true;
    // A port with a name may have another number in each pod. By their text, so that the order is always the same.
    let mut by_ports: BTreeMap<String, (Vec<Value>, Subset)> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| selector.matches_value(pod)) {
        let Some(address) = address_of(service, pod, all_are_ready) else {
            continue;
        };
        let Some(ports) = ports_of(service, pod) else {
            continue;
        };
        let key = Value::from(ports.clone()).to_string();
        let (_, subset) = by_ports.entry(key).or_insert((ports, Subset::default()));
        match all_are_ready || is_ready(pod) {
            true => subset.ready.push(address),
            false => subset.unready.push(address),
        }
    }
    let mut endpoints = json!({
        "metadata": {
            "name": service["metadata"]["name"],
            "labels": {MANAGED: CONTROLLER},
        },
    });
    if service["spec"]["clusterIP"] == "None" {
        endpoints["metadata"]["labels"]["service.kubernetes.io/headless"] = "".into();
    }
    let subsets: Vec<Value> = by_ports
        .into_values()
        .map(|(ports, subset)| subset.write(ports))
        .collect();
    if !subsets.is_empty() {
        endpoints["subsets"] = subsets.into();
    }
    endpoints
}

impl Subset {
    fn write(self, ports: Vec<Value>) -> Value {
        let mut written = Map::new();
        for (name, mut list) in [("addresses", self.ready), ("notReadyAddresses", self.unready)] {
            if !list.is_empty() {
                list.sort_by_key(|address| address["ip"].as_str().unwrap_or_default().to_owned());
                written.insert(name.to_owned(), list.into());
            }
        }
        if !ports.is_empty() {
            written.insert("ports".to_owned(), ports.into());
        }
        written.into()
    }
}

/// The address of a pod, if it has one and is not on its way out.
fn address_of(service: &Value, pod: &Value, all_are_ready: bool) -> Option<Value> {
    let status = &pod["status"];
    let ended = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    let ip = status["podIP"].as_str().filter(|ip| !ip.is_empty() && !ended)?;
    if !pod["metadata"]["deletionTimestamp"].is_null() && !all_are_ready {
        return None;
    }
    let mut address = json!({
        "ip": ip,
        "targetRef": {
            "kind": "Pod",
            "namespace": pod["metadata"]["namespace"],
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        },
    });
    if pod["spec"]["nodeName"].is_string() {
        address["nodeName"] = pod["spec"]["nodeName"].clone();
    }
    if pod["spec"]["hostname"].is_string() && pod["spec"]["subdomain"] == service["metadata"]["name"] {
        address["hostname"] = pod["spec"]["hostname"].clone();
    }
    Some(address)
}

/// The ports of a Service at a pod; nothing if the pod has none of them.
fn ports_of(service: &Value, pod: &Value) -> Option<Vec<Value>> {
    let all = service["spec"]["ports"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let ports: Vec<Value> = all
        .iter()
        .filter_map(|port| {
            let number = match port["targetPort"].as_str() {
                Some(name) => named_port(pod, name, &port["protocol"])?,
                None => port["targetPort"]
                    .as_i64()
                    .or(port["port"].as_i64())
                    .unwrap_or_default(),
            };
            let mut value = json!({"port": number, "protocol": port["protocol"]});
            if port["name"].is_string() {
                value["name"] = port["name"].clone();
            }
            Some(value)
        })
        .collect();
    (all.is_empty() || !ports.is_empty()).then_some(ports)
}

/// The number that a pod gives to the name of a port, in a container or in a sidecar.
fn named_port(pod: &Value, name: &str, protocol: &Value) -> Option<i64> {
    let containers = |list: &str| pod["spec"][list].as_array().into_iter().flatten();
    let sidecars = containers("initContainers").filter(|container| container["restartPolicy"] == "Always");
    let mut ports = containers("containers")
        .chain(sidecars)
        .flat_map(|container| container["ports"].as_array().into_iter().flatten());
    let port = ports.find(|port| port["name"] == name && port["protocol"] == *protocol)?;
    port["containerPort"].as_i64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(ip: &str, ready: bool, port: i64) -> Value {
        json!({
            "metadata": {"name": ip, "labels": {"app": "x"}},
            "spec": {"containers": [{"ports": [
                {"name": "web", "containerPort": 1, "protocol": "UDP"},
                {"name": "web", "containerPort": port, "protocol": "TCP"},
            ]}]},
            "status": {"phase": "Running", "podIP": ip,
                "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        })
    }

    #[test]
    fn a_named_port_is_the_one_that_each_pod_has_under_the_name() {
        let port = |target: Value| json!({"port": 80, "protocol": "TCP", "targetPort": target});
        let service = |ports: &[Value]| {
            let spec = json!({"selector": {"app": "x"}, "ports": ports});
            json!({"metadata": {"name": "s"}, "spec": spec})
        };
        let pods = [
            pod("10.0.0.2", true, 8080),
            pod("10.0.0.1", true, 8080),
            pod("10.0.0.3", false, 9090),
        ];
        let found = |ports: &[Value]| {
            let endpoints = endpoints_of(&service(ports), &pods);
            let subsets = endpoints["subsets"].as_array().cloned().unwrap_or_default();
            let ips = |subset: &Value, field: &str| {
                let list = subset[field].as_array().cloned().unwrap_or_default();
                list.iter()
                    .map(|one| one["ip"].as_str().unwrap().to_owned())
                    .collect::<Vec<_>>()
            };
            subsets
                .iter()
                .map(|subset| {
                    (
                        ips(subset, "addresses"),
                        ips(subset, "notReadyAddresses"),
                        subset["ports"][0]["port"].clone(),
                    )
                })
                .collect::<Vec<_>>()
        };
        let text = str::to_owned;
        let (first, second, third) = (text("10.0.0.1"), text("10.0.0.2"), text("10.0.0.3"));
        assert_eq!(
            found(&[port(json!("web"))]),
            [
                (vec![first.clone(), second.clone()], vec![], json!(8080)),
                (vec![], vec![third.clone()], json!(9090)),
            ]
        );
        assert_eq!(
            found(&[port(json!(7))]),
            [(vec![first, second], vec![third], json!(7))]
        );
        assert_eq!(found(&[port(json!("none"))]), []);
    }
}
