//! A ledger of the pods of Jobs: which were ever made, for which version and attempt of their Job, and which are there.
//!
//! For each index of a task, version and attempt there is one pod and no second one.

use crate::witness::Notes;
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;
use volcano_api::names::annotations;

/// A pod that is there.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The version of it that was seen.
    pub version: String,
    /// Its Job.
    pub job: String,
    /// Its task.
    pub task: String,
    /// Restarts of its Job when it was made.
    pub attempt: i32,
    /// Its phase.
    pub phase: String,
    /// Whether it is on a node.
    pub is_placed: bool,
    /// Whether its deletion was asked for.
    pub is_leaving: bool,
}

/// The pods of Jobs.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Those that are there, by UID.
    pods: BTreeMap<String, Entry>,
    /// The UID of the pod with this name, version and attempt.
    made: BTreeMap<(String, String, String), String>,
    wrong: Vec<String>,
}

impl Ledger {
    /// Pods that were ever made.
    pub fn made(&self) -> usize {
        self.made.len()
    }

    /// Pods that are there.
    pub fn pods(&self) -> impl Iterator<Item = &Entry> {
        self.pods.values()
    }
}

impl Notes for Ledger {
    fn see(&mut self, pod: &Pod) -> bool {
        let metadata = &pod.metadata;
        let annotation = |key: &str| {
            let all = metadata.annotations.as_ref();
            all.and_then(|all| all.get(key)).cloned().unwrap_or_default()
        };
        let (name, uid) = (
            metadata.name.clone().unwrap_or_default(),
            metadata.uid.clone().unwrap_or_default(),
        );
        let job_version = annotation(annotations::JOB_VERSION);
        let attempt = annotation(annotations::JOB_RETRY_COUNT);
        let status = pod.status.as_ref();
        let entry = Entry {
            name: name.clone(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            job: annotation(annotations::JOB_NAME),
            task: annotation(annotations::TASK_SPEC),
            attempt: attempt.parse().unwrap_or(0),
            phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
            is_placed: pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()),
            is_leaving: metadata.deletion_timestamp.is_some(),
        };
        self.pods.insert(uid.clone(), entry);
        let place = (name, job_version, attempt);
        match self.made.insert(place.clone(), uid.clone()) {
            Some(other) if other != uid => {
                self.wrong
                    .push(format!("{place:?} was made twice: {other} and {uid}"));
            }
            _ => {}
        }
        true
    }

    fn lose(&mut self, uid: &str) -> bool {
        self.pods.remove(uid).is_some()
    }

    fn there(&self) -> Vec<String> {
        self.pods.keys().cloned().collect()
    }

    fn wrong(&self) -> &[String] {
        &self.wrong
    }

    fn summary(&self) -> String {
        format!(
            "{} pods are there, {} were made",
            self.pods.len(),
            self.made.len()
        )
    }
}
