//! What users are told when a write for a Job fails.

use volcano_api::batch::Job;
use volcano_api::names::{Kind, events, kinds};

use crate::write::{Event, Target, Write};

/// A write that failed, and why.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// What was to be written.
    pub write: &'a Write,
    /// What the API server said.
    pub error: &'a str,
}

/// The warnings for what failed of one step of a plan. Pods are told of together.
pub fn warnings(job: &Job, failed: &[Failed<'_>]) -> Vec<Event> {
    let about = Target::of(job);
    let warn = |reason: &str, message: String| Event::warning(about.clone(), reason, message);
    let of_pods = |is_it: fn(&Write) -> bool| -> Vec<&str> {
        let failed = failed
            .iter()
            .filter(|failed| kind(failed.write) == Some(kinds::POD));
        failed
            .filter(|failed| is_it(failed.write))
            .map(|failed| failed.error)
            .collect()
    };
    let mut warnings = Vec::new();
    let created = of_pods(|write| matches!(write, Write::Create { .. }));
    if !created.is_empty() {
        warnings.push(warn(
            events::FAILED_CREATE,
            format!("Error creating pods: [{}]", created.join(" ")),
        ));
    }
    let deleted = of_pods(|write| !matches!(write, Write::Create { .. }));
    if !deleted.is_empty() {
        warnings.push(warn(
            events::FAILED_DELETE,
            format!("Error deleting pods: [{}]", deleted.join(" ")),
        ));
    }
    for Failed { write, error } in failed {
        let Some((reason, what)) = kind(write).and_then(|kind| told(job, kind, write)) else {
            continue;
        };
        warnings.push(warn(reason, format!("{what}, err: {error}")));
    }
    warnings
}

/// What is told of a write that is not about a pod.
fn told(job: &Job, kind: Kind, write: &Write) -> Option<(&'static str, &'static str)> {
    let is_first = job.status.state.phase.is_unset();
    match kind {
        kinds::POD | kinds::COMMAND => None,
        kinds::JOB if is_first => Some((events::JOB_STATUS_ERROR, "Failed to initialize job status")),
        kinds::JOB => None,
        kinds::POD_GROUP if matches!(write, Write::Delete { .. }) => None,
        kinds::POD_GROUP => Some((events::POD_GROUP_ERROR, "Failed to create PodGroup")),
        kinds::PERSISTENT_VOLUME_CLAIM => Some((events::PVC_ERROR, "Failed to create PVC")),
        _ => Some((events::PLUGIN_ERROR, "Execute plugin when job add failed")),
    }
}

fn kind(write: &Write) -> Option<Kind> {
    match write {
        Write::Create { target, .. } | Write::Patch { target, .. } | Write::Delete { target, .. } => {
            Some(target.kind)
        }
        Write::Event(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_words() {
        let target = |kind| Target::named(kind, "ns", "x");
        let create = |kind| Write::Create {
            target: target(kind),
            body: json!({}),
            fill: None,
        };
        let delete = |kind| Write::Delete {
            target: target(kind),
            foreground: false,
        };
        let patch = |kind| Write::Patch {
            target: target(kind),
            patch: json!({}),
            status: true,
            resource_version: None,
        };
        let told = |phase: &str, writes: &[Write]| -> Vec<String> {
            let job: Job = serde_json::from_value(
                json!({"metadata": {"name": "j"}, "status": {"state": {"phase": phase}}}),
            )
            .expect("readable");
            let failed: Vec<_> = writes.iter().map(|write| Failed { write, error: "no" }).collect();
            let told = warnings(&job, &failed);
            assert!(told.iter().all(|event| event.warning && event.about.name == "j"));
            told.iter()
                .map(|event| format!("{}: {}", event.reason, event.message))
                .collect()
        };
        let cases = [
            (
                "Pending",
                vec![create(kinds::POD), create(kinds::POD)],
                "FailedCreate: Error creating pods: [no no]",
            ),
            (
                "Aborting",
                vec![delete(kinds::POD)],
                "FailedDelete: Error deleting pods: [no]",
            ),
            (
                "Running",
                vec![patch(kinds::POD)],
                "FailedDelete: Error deleting pods: [no]",
            ),
            (
                "",
                vec![patch(kinds::JOB)],
                "JobStatusError: Failed to initialize job status, err: no",
            ),
            (
                "",
                vec![create(kinds::POD_GROUP)],
                "PodGroupError: Failed to create PodGroup, err: no",
            ),
            (
                "Pending",
                vec![create(kinds::PERSISTENT_VOLUME_CLAIM)],
                "PVCError: Failed to create PVC, err: no",
            ),
            (
                "Pending",
                vec![create(kinds::SERVICE)],
                "PluginError: Execute plugin when job add failed, err: no",
            ),
        ];
        for (phase, writes, expected) in cases {
            assert_eq!(told(phase, &writes), [expected]);
        }
        let untold = [
            patch(kinds::JOB),
            delete(kinds::COMMAND),
            delete(kinds::POD_GROUP),
        ];
        assert_eq!(
            told("Running", &untold),
            [""; 0],
            "a conflict on the status is nothing to tell"
        );
    }
}
