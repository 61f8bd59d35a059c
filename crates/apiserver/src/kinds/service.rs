//! Services: defaults, rules and addresses.

use super::default;
use crate::fault::FieldError;
use serde_json::{Value, json};

/// Fills in what a Service leaves out.
pub fn fill(service: &mut Value) {
    let spec = &mut service["spec"];
    if !spec.is_object() {
        return;
    }
    default(spec, "type", json!("ClusterIP"));
    default(spec, "sessionAffinity", json!("None"));
    if spec["type"] == "ExternalName" {
        return;
    }
    default(spec, "ipFamilies", json!(["IPv4"]));
    default(spec, "ipFamilyPolicy", json!("SingleStack"));
    default(spec, "internalTrafficPolicy", json!("Cluster"));
    if spec["clusterIP"].is_string() && spec["clusterIP"] != "" {
        let address = spec["clusterIP"].clone();
        default(spec, "clusterIPs", json!([address]));
    }
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        default(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        default(port, "targetPort", number);
    }
}

/// What is wrong with a Service.
pub fn check(service: &Value) -> Vec<FieldError> {
    let spec = &service["spec"];
    let headless = spec["clusterIP"] == "None";
    let mut errors = Vec::new();
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && !headless && spec["type"] != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    for (at, port) in ports.iter().enumerate() {
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let detail = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(
                format!("spec.ports[{at}].port"),
                number,
                detail,
            ));
        }
        if ports.len() > 1 && port["name"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("spec.ports[{at}].name"), ""));
        }
    }
    errors
}

/// Gives addresses to Services, from the range that Kubernetes' own tools take by default.
#[derive(Debug, Default)]
pub struct ClusterAddresses {
    next: u16,
}

impl ClusterAddresses {
    /// Gives a Service that wants an address one that `taken` does not know.
    pub fn give(&mut self, service: &mut Value, taken: impl Fn(&str) -> bool) {
        let spec = &mut service["spec"];
        if spec["type"] == "ExternalName"
            || spec["clusterIP"]
                .as_str()
                .is_some_and(|address| !address.is_empty())
        {
            return;
        }
        for _ in 0..u16::MAX {
            // The first ten are for those that are known by their address.
            self.next = self.next.checked_add(1).unwrap_or(10).max(10);
            let address = format!("10.96.{}.{}", self.next >> 8, self.next & 0xff);
            if !taken(&address) {
                spec["clusterIP"] = address.as_str().into();
                spec["clusterIPs"] = json!([address]);
                return;
            }
        }
    }
}
