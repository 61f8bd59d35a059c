//! Jobs made of flags, for `vcctl job run` and `vsub`.

use crate::api::Api;
use crate::failure::Failure;
use crate::output::Out;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use volcano_api::names::{kinds, labels};
use volcano_api::quantity::Quantity;

/// What a container asks for when nothing is said.
pub const RESOURCES: &str = "cpu=1000m,memory=100Mi";
/// What Go says about an amount that is none.
const GO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// What is said without a name.
pub const MISSING_NAME: &str = "job name cannot be left blank";

/// A Job of one task with one container.
#[derive(Debug)]
pub struct Simple<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The image.
    pub image: &'a str,
    /// Pods that must be placed for any to start.
    pub min: i32,
    /// Pods.
    pub replicas: i32,
    /// What the container asks for.
    pub requests: &'a Map<String, Value>,
    /// What it may use.
    pub limits: &'a Map<String, Value>,
    /// The scheduler.
    pub scheduler: &'a str,
    /// What the container runs; what its image says when empty.
    pub command: &'a [String],
}

impl Simple<'_> {
    /// The Job.
    pub fn object(&self) -> Value {
        let mut container = json!({
            "name": self.name,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "resources": {},
        });
        for (field, amounts) in [("limits", self.limits), ("requests", self.requests)] {
            if !amounts.is_empty() {
                container["resources"][field] = json!(amounts);
            }
        }
        if !self.command.is_empty() {
            container["command"] = json!(self.command);
        }
        json!({
            "apiVersion": kinds::JOB.api_version(),
            "kind": kinds::JOB.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "minAvailable": self.min,
                "schedulerName": self.scheduler,
                "tasks": [{
                    "replicas": self.replicas,
                    "template": {
                        "metadata": {"name": self.name, "labels": {labels::CLI_JOB: self.name}},
                        "spec": {"restartPolicy": "Never", "containers": [container]},
                    },
                }],
            },
        })
    }
}

/// Creates a Job and says so. It as it is stored.
pub async fn submit(api: &Api, namespace: &str, job: &Value, out: &mut Out) -> Result<Value, Failure> {
    let created = api.create(kinds::JOB, namespace, job).await?;
    let name = created["metadata"]["name"].as_str().unwrap_or_default();
    writeln!(out, "run job {name} successfully")?;
    out.flush()?;
    Ok(created)
}

/// Amounts of a list such as `cpu=1000m,memory=100Mi`.
pub fn resources(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut amounts = Map::new();
    if text.is_empty() {
        return Ok(amounts);
    }
    for part in text.split(',') {
        let pieces: Vec<_> = part.split('=').collect();
        let [name, amount] = pieces[..] else {
            return Err(Failure::new(format!(
                "invalid argument syntax {part}, expected <resource>=<value>"
            )));
        };
        let quantity =
            Quantity::parse(amount).map_err(|error| Failure::new(GO_QUANTITY).hint(error.to_string()))?;
        amounts.insert(name.to_owned(), json!(quantity));
    }
    Ok(amounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_or_told() {
        let amounts = resources("cpu=1000m,memory=100Mi").unwrap();
        assert_eq!(json!(amounts), json!({"cpu": "1", "memory": "100Mi"}));
        assert!(resources("").unwrap().is_empty());
        let told = |text: &str| resources(text).unwrap_err();
        assert_eq!(
            told("cpu"),
            Failure::new("invalid argument syntax cpu, expected <resource>=<value>")
        );
        assert_eq!(
            told("cpu=1=2"),
            Failure::new("invalid argument syntax cpu=1=2, expected <resource>=<value>")
        );
        assert!(matches!(told("cpu=x"), Failure::Told { .. }));
    }

    #[test]
    fn a_job_of_flags_has_one_task() {
        let (requests, limits) = (resources("cpu=1").unwrap(), Map::new());
        let job = Simple {
            name: "j",
            namespace: "ns",
            image: "busybox",
            min: 2,
            replicas: 3,
            requests: &requests,
            limits: &limits,
            scheduler: "volcano",
            command: &["sleep".to_owned(), "1".to_owned()],
        };
        assert_eq!(
            job.object(),
            json!({
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "ns"},
                "spec": {
                    "minAvailable": 2,
                    "schedulerName": "volcano",
                    "tasks": [{
                        "replicas": 3,
                        "template": {
                            "metadata": {"name": "j", "labels": {"job.volcano.sh": "j"}},
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{
                                    "name": "j",
                                    "image": "busybox",
                                    "imagePullPolicy": "IfNotPresent",
                                    "resources": {"requests": {"cpu": "1"}},
                                    "command": ["sleep", "1"],
                                }],
                            },
                        },
                    }],
                },
            })
        );
    }
}
