//! Endpoints: the addresses of the pods behind a Service. Names of headless Services are resolved by them.

use crate::resources::Nature;
use crate::selector::LabelSelector;
use crate::server::Server;
use crate::verbs::{Call, Caller, DeleteOptions};
use serde_json::{Map, Value, json};

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

/// The Endpoints that a Service should have.
fn endpoints_of(service: &Value, pods: &[Value]) -> Value {
    let selector = LabelSelector::equal(&service["spec"]["selector"]);
    let all_are_ready = service["spec"]["publishNotReadyAddresses"] == true;
    let (mut ready, mut unready) = (Vec::new(), Vec::new());
    for pod in pods.iter().filter(|pod| selector.matches_value(pod)) {
        let status = &pod["status"];
        let ended = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
        let Some(ip) = status["podIP"].as_str().filter(|ip| !ip.is_empty() && !ended) else {
            continue;
        };
        if !pod["metadata"]["deletionTimestamp"].is_null() && !all_are_ready {
            continue;
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
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let is_ready = conditions
            .filter(|one| one["type"] == "Ready")
            .any(|one| one["status"] == "True");
        if is_ready || all_are_ready {
            ready.push(address)
        } else {
            unready.push(address)
        }
    }
    let by_address = |list: &mut Vec<Value>| {
        list.sort_by_key(|address| address["ip"].as_str().unwrap_or_default().to_owned())
    };
    by_address(&mut ready);
    by_address(&mut unready);
    let mut endpoints = json!({
        "metadata": {
            "name": service["metadata"]["name"],
            "labels": {MANAGED: CONTROLLER},
        },
    });
    if service["spec"]["clusterIP"] == "None" {
        endpoints["metadata"]["labels"]["service.kubernetes.io/headless"] = "".into();
    }
    if ready.is_empty() && unready.is_empty() {
        return endpoints;
    }
    let mut subset = Map::new();
    for (name, list) in [("addresses", ready), ("notReadyAddresses", unready)] {
        if !list.is_empty() {
            subset.insert(name.to_owned(), list.into());
        }
    }
    let ports = ports_of(service);
    if !ports.is_empty() {
        subset.insert("ports".to_owned(), ports.into());
    }
    endpoints["subsets"] = json!([subset]);
    endpoints
}

fn ports_of(service: &Value) -> Vec<Value> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports
        .map(|port| {
            let number = port["targetPort"]
                .as_i64()
                .or(port["port"].as_i64())
                .unwrap_or_default();
            let mut value = json!({"port": number, "protocol": port["protocol"]});
            if port["name"].is_string() {
                value["name"] = port["name"].clone();
            }
            value
        })
        .collect()
}
