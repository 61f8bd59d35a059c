//! Jobs made of flags, for `vcctl job run` and `vsub`.

use crate::api::Api;
use crate::args::number;
use crate::failure::Failure;
use crate::output::Out;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use volcano_api::names::{SCHEDULER, kinds, labels};
use volcano_api::quantity::{Quantity, QuantityError};

/// What a container asks for when nothing is said.
const RESOURCES: &str = "cpu=1000m,memory=100Mi";
/// What Go says about an amount that is none: of another form, with an unknown unit, without a number.
const GO_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const GO_SUFFIX: &str = "unable to parse quantity's suffix";
const GO_NUMERIC: &str = "unable to parse numeric part of quantity";
/// The letters of units.
const UNITS: &[char] = &['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P'];
/// What is said without a name.
pub const MISSING_NAME: &str = "job name cannot be left blank";

/// A Job of one task with one container; its name has another letter in each tool.
#[derive(Clone, Debug, clap::Args)]
pub struct SimpleArgs {
    /// Image of the container
    #[arg(long, short = 'i', value_name = "IMAGE", default_value = "busybox")]
    image: String,
    /// Pods that must be placed for any of them to start
    #[arg(long, short = 'm', value_name = "N", value_parser = number, default_value = "1")]
    min: i32,
    /// Pods
    #[arg(long, short = 'r', value_name = "N", value_parser = number, default_value = "1")]
    replicas: i32,
    /// What each pod asks for
    #[arg(long, short = 'R', value_name = "AMOUNTS", default_value = RESOURCES)]
    requests: String,
    /// What each pod may use
    #[arg(long, short = 'L', value_name = "AMOUNTS", default_value = RESOURCES)]
    limits: String,
    /// The scheduler
    #[arg(long, short = 'S', value_name = "NAME", default_value = SCHEDULER)]
    scheduler: String,
}

impl SimpleArgs {
    /// The Job. `command` is what the container runs; what its image says when empty.
    ///
    /// # Errors
    /// When amounts are none.
    pub fn job(&self, name: &str, namespace: &str, command: &[String]) -> Result<Value, Failure> {
        let mut container = json!({
            "name": name,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "resources": {},
        });
        for (field, text) in [("requests", &self.requests), ("limits", &self.limits)] {
            let amounts = resources(text)?;
            if !amounts.is_empty() {
                container["resources"][field] = json!(amounts);
            }
        }
        if !command.is_empty() {
            container["command"] = json!(command);
        }
        Ok(json!({
            "apiVersion": kinds::JOB.api_version(),
            "kind": kinds::JOB.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "minAvailable": self.min,
                "schedulerName": self.scheduler,
                "tasks": [{
                    "replicas": self.replicas,
                    "template": {
                        "metadata": {"name": name, "labels": {labels::CLI_JOB: name}},
                        "spec": {"restartPolicy": "Never", "containers": [container]},
                    },
                }],
            },
        }))
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
fn resources(text: &str) -> Result<Map<String, Value>, Failure> {
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
            Quantity::parse(amount).map_err(|error| Failure::new(in_go(amount)).hint(error.to_string()))?;
        amounts.insert(name.to_owned(), json!(quantity));
    }
    Ok(amounts)
}

/// What Go says about an amount that cannot be read.
fn in_go(amount: &str) -> &'static str {
    let digits = |text: &'_ str| -> usize { text.bytes().take_while(u8::is_ascii_digit).count() };
    let mut rest = amount.strip_prefix(['+', '-']).unwrap_or(amount);
    rest = &rest[digits(rest)..];
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = &fraction[digits(fraction)..];
    }
    let exponent = rest.trim_start_matches(UNITS);
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if amount.is_empty() || digits(exponent) < exponent.len() {
        return GO_FORMAT;
    }
    match Quantity::parse(&format!("1{rest}")) {
        Err(QuantityError::Suffix { .. }) => GO_SUFFIX,
        _ => GO_NUMERIC,
    }
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
        // What Go's resource.ParseQuantity says of each. It takes `m` and `.` for zero, which nobody means.
        let cases = [
            (
                GO_FORMAT,
                &["", "x", "many", "1 ", " 1", "1Gb", "1.1.M", "1+1.0M", "0.1am"][..],
            ),
            (
                GO_SUFFIX,
                &["100K", "1mi", "1i", "1e", "1k5", "-3.01e-", "1+", "K"],
            ),
            (GO_NUMERIC, &["Ei", "e-10", "m", "."]),
        ];
        for (expected, amounts) in cases {
            for amount in amounts {
                assert_eq!(told(&format!("cpu={amount}")).to_string(), expected, "{amount:?}");
            }
        }
    }

    #[test]
    fn a_job_of_flags_has_one_task() {
        let flags = SimpleArgs {
            image: "busybox".to_owned(),
            min: 2,
            replicas: 3,
            requests: "cpu=1".to_owned(),
            limits: String::new(),
            scheduler: "volcano".to_owned(),
        };
        let job = flags.job("j", "ns", &["sleep".to_owned(), "1".to_owned()]);
        assert_eq!(
            job.unwrap(),
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
