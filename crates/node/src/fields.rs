//! What a pod may ask about itself: fields and resources, for environments and for files.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use std::collections::BTreeMap;
use volcano_api::quantity::Quantity;

/// What is known of a pod beside its object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub pod_address: String,
    pub host_address: String,
    /// What the node has; a container without a limit may use all of it.
    pub allocatable: BTreeMap<String, Text>,
}

/// The text of a field.
pub(crate) fn field(path: &str, pod: &Pod, facts: &Facts) -> Result<String, String> {
    let (metadata, spec) = (&pod.metadata, pod.spec.as_ref());
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    if let Some((map, key)) = subscript(path) {
        let map = match map {
            "metadata.labels" => &metadata.labels,
            "metadata.annotations" => &metadata.annotations,
            _ => return Err(unknown(path)),
        };
        let value = map.as_ref().and_then(|map| map.get(key));
        return Ok(value.cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => text(&metadata.name),
        "metadata.namespace" => text(&metadata.namespace),
        "metadata.uid" => text(&metadata.uid),
        "metadata.labels" => lines(metadata.labels.as_ref()),
        "metadata.annotations" => lines(metadata.annotations.as_ref()),
        "spec.nodeName" => spec.map(|spec| text(&spec.node_name)).unwrap_or_default(),
        "spec.serviceAccountName" => spec
            .map(|spec| text(&spec.service_account_name))
            .unwrap_or_default(),
        "status.hostIP" | "status.hostIPs" => facts.host_address.clone(),
        "status.podIP" | "status.podIPs" => facts.pod_address.clone(),
        _ => return Err(unknown(path)),
    })
}

fn unknown(path: &str) -> String {
    format!("unsupported fieldPath: {path}")
}

/// `metadata.labels['key']` in its parts.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    Some((map, key))
}

/// A map as the lines of a file.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines = map.into_iter().flatten();
    let lines: Vec<String> = lines.map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

/// The text of a resource of a container.
pub(crate) fn resource(
    selector: &ResourceFieldSelector,
    container: &Container,
    facts: &Facts,
) -> Result<String, String> {
    let refusal = || format!("unsupported container resource : {}", selector.resource);
    let (kind, name) = selector.resource.split_once('.').ok_or_else(refusal)?;
    let resources = container.resources.as_ref();
    let amount = match kind {
        "limits" => {
            let limit = resources.and_then(|resources| resources.limits.as_ref()?.get(name));
            limit.or_else(|| facts.allocatable.get(name))
        }
        "requests" => resources.and_then(|resources| resources.requests.as_ref()?.get(name)),
        _ => return Err(refusal()),
    };
    let amount = match amount {
        Some(text) => Quantity::parse(&text.0).map_err(|error| error.to_string())?,
        None => Quantity::ZERO,
    };
    let divisor = match &selector.divisor {
        Some(text) if text.0 != "0" && !text.0.is_empty() => {
            Quantity::parse(&text.0).map_err(|error| error.to_string())?
        }
        _ => Quantity::from_value(1, volcano_api::quantity::Format::DecimalSi),
    };
    if divisor.is_zero() || divisor.is_negative() {
        return Err(format!("divisor of {} must be above zero", selector.resource));
    }
    let (amount, divisor) = (amount.nanos(), divisor.nanos());
    let rest = i128::from(amount % divisor > 0);
    Ok((amount / divisor + rest).to_string())
}

/// The container of a pod with a name.
pub(crate) fn container_named<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.into_iter().find(|container| container.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    fn pod() -> Pod {
        from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"a.b/c": "d", "e": "\"f\""}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {
                "limits": {"cpu": "1500m"}, "requests": {"memory": "1Ki"},
            }}]},
        }))
        .unwrap()
    }

    #[test]
    fn fields_are_found() {
        let facts = Facts {
            pod_address: "10.0.0.1".to_owned(),
            ..Facts::default()
        };
        let cases = [
            ("metadata.name", "p"),
            ("metadata.labels['a.b/c']", "d"),
            ("metadata.annotations['none']", ""),
            ("metadata.labels", "a.b/c=\"d\"\ne=\"\\\"f\\\"\""),
            ("spec.nodeName", "n"),
            ("status.podIP", "10.0.0.1"),
        ];
        for (path, expected) in cases {
            assert_eq!(field(path, &pod(), &facts).as_deref(), Ok(expected), "{path}");
        }
        assert!(field("spec.containers", &pod(), &facts).is_err());
    }

    #[test]
    fn resources_are_divided_and_rounded_up() {
        let facts = Facts {
            allocatable: BTreeMap::from([("memory".to_owned(), Text("8Gi".to_owned()))]),
            ..Facts::default()
        };
        let pod = pod();
        let container = container_named(&pod, "c").unwrap();
        let cases = [
            ("limits.cpu", "0", Ok("2")),
            ("limits.cpu", "1m", Ok("1500")),
            ("limits.memory", "1Gi", Ok("8")),
            ("requests.memory", "1000", Ok("2")),
            ("requests.cpu", "1", Ok("0")),
            ("limits.cpu", "-1", Err(())),
            ("cpu", "1", Err(())),
        ];
        for (resource_name, divisor, expected) in cases {
            let selector = from_value(json!({"resource": resource_name, "divisor": divisor})).unwrap();
            let found = resource(&selector, container, &facts);
            assert_eq!(
                found.as_deref().map_err(|_| ()),
                expected,
                "{resource_name} by {divisor}"
            );
        }
    }
}
