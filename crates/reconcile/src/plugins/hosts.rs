//! Names under which the pods of a job find each other.
//!
//! ```text
//! host       hostname of the template, or <job>-<task>-<index>
//! subdomain  subdomain of the template, or <job>
//! domain     <host>.<subdomain>
//! ```

use serde_json::Value;
use volcano_api::batch::{Job, TaskSpec};

use super::{MAX_BYTES, PluginError};

/// Name of a pod of a job.
pub fn pod_name(job: &Job, task: &TaskSpec, index: i32) -> String {
    format!("{}-{}-{index}", job.metadata.name, task.name)
}

/// Name of the pod's host.
pub fn host(job: &Job, task: &TaskSpec, index: i32) -> String {
    match field(task, "hostname") {
        Some(host) => host.to_owned(),
        None => pod_name(job, task, index),
    }
}

/// The part of a pod's address that names the job.
pub fn subdomain<'a>(job: &'a Job, task: &'a TaskSpec) -> &'a str {
    field(task, "subdomain").unwrap_or(&job.metadata.name)
}

/// Address of a pod in its namespace.
pub fn domain(job: &Job, task: &TaskSpec, index: i32) -> String {
    format!("{}.{}", host(job, task, index), subdomain(job, task))
}

/// Indexes of the pods of a task that have a host of their own: one, when the template gives all the same.
pub fn indexes(task: &TaskSpec) -> std::ops::Range<i32> {
    match field(task, "hostname") {
        Some(_) => 0..task.replicas.min(1),
        None => 0..task.replicas,
    }
}

/// Joins what `entry` makes of each index.
///
/// # Errors
/// When the text, which goes into the object or variable `what`, is longer than any of these can be.
pub fn joined(
    job: &Job,
    indexes: std::ops::Range<i32>,
    separator: &str,
    what: &str,
    entry: impl Fn(i32) -> String,
) -> Result<String, PluginError> {
    let mut text = String::new();
    for index in indexes.clone() {
        if index > indexes.start {
            text.push_str(separator);
        }
        text.push_str(&entry(index));
        // Checked on the way: nobody can hold the hosts of two thousand million replicas.
        if text.len() > MAX_BYTES {
            return Err(too_many(job, what));
        }
    }
    Ok(text)
}

/// The job has more hosts than `what` can list.
pub fn too_many(job: &Job, what: &str) -> PluginError {
    PluginError::TooManyHosts {
        what: what.to_owned(),
        job: job.metadata.key(),
    }
}

/// A text of the template's spec that is not empty.
fn field<'a>(task: &'a TaskSpec, name: &str) -> Option<&'a str> {
    let text = task.template.spec()?.get(name).and_then(Value::as_str)?;
    Some(text).filter(|text| !text.is_empty())
}
