//! The columns of Deployments, batch Jobs and the like.

use super::columns::{AGE, Column, at, column, integer, or_none, selector, wide};
use super::{age, duration};
use jiff::Timestamp;
use serde_json::Value;

/// The columns of a kind, if it is one of these.
pub fn of(plural: &str) -> Option<Vec<Column>> {
    let (mut columns, has_selector) = match plural {
        "deployments" => (
            vec![
                column("Ready", |object, _| of_wished(object).into()),
                column("Up-to-date", |object, _| {
                    number(object, "/status/updatedReplicas")
                }),
                column("Available", |object, _| {
                    number(object, "/status/availableReplicas")
                }),
                AGE,
            ],
            true,
        ),
        "replicasets" | "replicationcontrollers" => (
            vec![
                integer("Desired", |object, _| number(object, "/spec/replicas")),
                integer("Current", |object, _| number(object, "/status/replicas")),
                integer("Ready", |object, _| number(object, "/status/readyReplicas")),
                AGE,
            ],
            true,
        ),
        "statefulsets" => (
            vec![column("Ready", |object, _| of_wished(object).into()), AGE],
            false,
        ),
        "daemonsets" => (
            vec![
                integer("Desired", |object, _| {
                    number(object, "/status/desiredNumberScheduled")
                }),
                integer("Current", |object, _| {
                    number(object, "/status/currentNumberScheduled")
                }),
                integer("Ready", |object, _| number(object, "/status/numberReady")),
                integer("Up-to-date", |object, _| {
                    number(object, "/status/updatedNumberScheduled")
                }),
                integer("Available", |object, _| number(object, "/status/numberAvailable")),
                column("Node Selector", |object, _| {
                    selector(&object["spec"]["template"]["spec"]["nodeSelector"]).into()
                }),
                AGE,
            ],
            true,
        ),
        "jobs" => (
            vec![
                column("Status", |job, _| job_status(job).into()),
                column("Completions", |job, _| completions(job).into()),
                column("Duration", |job, now| took(job, now).into()),
                AGE,
            ],
            true,
        ),
        "cronjobs" => (
            vec![
                column("Schedule", |object, _| at(object, "/spec/schedule")),
                column("Timezone", |object, _| at(object, "/spec/timeZone")),
                column("Suspend", |object, _| suspended(object).into()),
                integer("Active", |object, _| {
                    object["status"]["active"].as_array().map_or(0, Vec::len).into()
                }),
                column("Last Schedule", |object, now| {
                    or_none(
                        object["status"]["lastScheduleTime"]
                            .as_str()
                            .map(|time| age(time, now)),
                    )
                }),
                AGE,
            ],
            true,
        ),
        _ => return None,
    };
    columns.push(wide("Containers", |object, _| of_containers(object, "name")));
    columns.push(wide("Images", |object, _| of_containers(object, "image")));
    if has_selector {
        columns.push(wide("Selector", |object, _| selected(object).into()));
    }
    Some(columns)
}

fn number(object: &Value, pointer: &str) -> Value {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
        .into()
}

/// Those that are ready, of all that are wished for.
fn of_wished(object: &Value) -> String {
    let (ready, wished) = (
        number(object, "/status/readyReplicas"),
        number(object, "/spec/replicas"),
    );
    format!("{ready}/{wished}")
}

/// The spec of whatever makes the pods: for a CronJob that of its Jobs.
fn maker(object: &Value) -> &Value {
    object
        .pointer("/spec/jobTemplate/spec")
        .unwrap_or(&object["spec"])
}

fn of_containers(object: &Value, field: &str) -> Value {
    let containers = maker(object)["template"]["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten();
    let texts: Vec<&str> = containers
        .map(|container| container[field].as_str().unwrap_or_default())
        .collect();
    texts.join(",").into()
}

/// A selector is of labels and expressions; that of a ReplicationController of labels alone.
fn selected(object: &Value) -> String {
    let given = &maker(object)["selector"];
    let is_plain = given.get("matchLabels").is_none() && given.get("matchExpressions").is_none();
    selector(if is_plain { given } else { &given["matchLabels"] })
}

fn job_status(job: &Value) -> &'static str {
    let has = |name: &str| {
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        conditions
            .filter(|one| one["type"] == name)
            .any(|one| one["status"] == "True")
    };
    let first = |names: &[&'static str]| names.iter().copied().find(|name| has(name));
    if let Some(end) = first(&["Complete", "Failed"]) {
        return end;
    }
    if !job["metadata"]["deletionTimestamp"].is_null() {
        return "Terminating";
    }
    first(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]).unwrap_or("Running")
}

fn completions(job: &Value) -> String {
    let succeeded = number(job, "/status/succeeded");
    let at_once = job["spec"]["parallelism"].as_i64().unwrap_or_default();
    match job["spec"]["completions"].as_i64() {
        Some(wished) => format!("{succeeded}/{wished}"),
        None if at_once > 1 => format!("{succeeded}/1 of {at_once}"),
        None => format!("{succeeded}/1"),
    }
}

fn took(job: &Value, now: Timestamp) -> String {
    let time = |field: &str| {
        let text = job["status"][field].as_str()?;
        text.parse::<Timestamp>().ok()
    };
    let Some(began) = time("startTime") else {
        return String::new();
    };
    let ended = time("completionTime").unwrap_or(now);
    duration(ended.as_second() - began.as_second())
}

fn suspended(object: &Value) -> &'static str {
    match object["spec"]["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
}
