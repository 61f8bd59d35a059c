//! A change of one object: what a suggestion consists of, and what a trial applies. Both use the same patch, so that what
//! is printed is what was tried.

use crate::cluster::Cluster;
use crate::fault::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use volcano_api::batch::Job;
use volcano_api::core::{Node, Pod, ResourceQuota};
use volcano_api::meta::Resource as _;
use volcano_api::names::{Kind as ApiKind, annotations, kinds};
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;
use volcano_reconcile::job::group_name;

/// The taint that a cordoned node has, and loses with its cordon.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// How a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// As a merge patch of the object (`kubectl patch --type merge`).
    Patch,
    /// As a merge patch of its status (`kubectl patch --type merge --subresource status`).
    PatchStatus,
    /// In what the user wrote: the object is deleted and made anew with the patch, since the field cannot change.
    Recreate,
    /// In what the user wrote, before it is submitted: the object is not there yet.
    Manifest,
    /// By an order to the controller (`vcctl job resume`); the patch is what that makes of the status.
    Resume,
}

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// API group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for a kind without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// How it is made.
    pub how: How,
    /// A JSON merge patch (RFC 7386).
    pub patch: Value,
}

impl Change {
    /// A change of a Job.
    pub(super) fn of_job(job: &Job, how: How, patch: Value) -> Self {
        Change::new(
            kinds::JOB,
            &job.metadata.namespace,
            &job.metadata.name,
            how,
            patch,
        )
    }

    /// A change of a PodGroup.
    pub(super) fn of_group(group: &PodGroup, patch: Value) -> Self {
        let meta = &group.metadata;
        Change::new(PodGroup::KIND, &meta.namespace, &meta.name, How::Patch, patch)
    }

    /// A change of a queue.
    pub(super) fn of_queue(name: &str, how: How, patch: Value) -> Self {
        Change::new(Queue::KIND, "", name, how, patch)
    }

    /// A change of an object of Kubernetes' own core group.
    pub(super) fn of_core(kind: Kind, namespace: &str, name: &str, patch: Value) -> Self {
        Change {
            api_version: kind.api_version(),
            kind: kind.name().to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            how: How::Patch,
            patch,
        }
    }

    fn new(kind: ApiKind, namespace: &str, name: &str, how: How, patch: Value) -> Self {
        Change {
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            how,
            patch,
        }
    }

    fn title(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{} {}", self.kind, self.name),
            namespace => format!("{} {namespace}/{}", self.kind, self.name),
        }
    }

    /// Whether it is of a Job.
    pub(super) fn is_of_job(&self) -> bool {
        self.kind == kinds::JOB.kind && self.api_version == kinds::JOB.api_version()
    }

    fn patched<T: Serialize + DeserializeOwned>(&self, object: &T) -> Result<T, Fault> {
        let fault = |error: serde_json::Error| Fault::new(format!("{}: {error}", self.title()));
        let mut value = serde_json::to_value(object).map_err(fault)?;
        merge(&mut value, &self.patch);
        serde_json::from_value(value).map_err(fault)
    }
}

/// What changes made of the objects that they are about.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed {
    /// Objects of the scheduler's kinds.
    pub objects: Vec<Delta>,
    /// Jobs, and whether each is made anew.
    pub jobs: Vec<(Job, bool)>,
}

/// Applies changes; several of one object add up. What controllers make of them at once is done as well: the limits
/// of a quota that is in force, the queues that open with their parent.
///
/// # Errors
/// When an object is not there, or a patch does not fit it.
pub(super) fn apply(cluster: &Cluster, changes: &[Change]) -> Result<Changed, Fault> {
    let mut changed = Changed::default();
    for change in changes {
        if change.is_of_job() {
            let known = changed.jobs.iter_mut().find(|(job, _)| is_named(job, change));
            if let Some((job, anew)) = known {
                *job = change.patched(job)?;
                *anew |= change.how == How::Recreate;
                continue;
            }
            let job = cluster.jobs.iter().find(|job| is_named(job, change));
            let job = job.ok_or_else(|| Fault::new(format!("{} is not there", change.title())))?;
            changed
                .jobs
                .push((change.patched(job)?, change.how == How::Recreate));
            continue;
        }
        let is_it = |object: &&Delta| {
            object.key().is_some_and(|(kind, namespace, name)| {
                kind.name() == change.kind && namespace == change.namespace && name == change.name
            })
        };
        let at = changed.objects.iter().position(|object| is_it(&object));
        let before = at.map(|at| changed.objects.remove(at));
        let before = before.as_ref().or_else(|| cluster.objects.iter().find(is_it));
        let before = before.ok_or_else(|| Fault::new(format!("{} is not there", change.title())))?;
        let after = patched(change, before)?;
        if let Delta::Queue(queue) = &after {
            changed.objects.extend(opened_with(cluster, queue));
        }
        changed.objects.push(after);
    }
    Ok(changed)
}

fn is_named(job: &Job, change: &Change) -> bool {
    job.metadata.name == change.name && job.metadata.namespace == change.namespace
}

fn patched(change: &Change, object: &Delta) -> Result<Delta, Fault> {
    Ok(match object {
        Delta::Queue(queue) => Delta::Queue(Box::new(change.patched::<Queue>(queue)?)),
        Delta::PodGroup(group) => Delta::PodGroup(Box::new(change.patched::<PodGroup>(group)?)),
        Delta::Pod(pod) => Delta::Pod(Box::new(change.patched::<Pod>(pod)?)),
        Delta::Node(node) => {
            let mut node = change.patched::<Node>(node)?;
            if !node.spec.unschedulable {
                node.spec.taints.retain(|taint| taint.key != CORDONED);
            }
            Delta::Node(Box::new(node))
        }
        Delta::ResourceQuota(quota) => {
            let mut quota = change.patched::<ResourceQuota>(quota)?;
            quota.status.hard.clone_from(&quota.spec.hard);
            Delta::ResourceQuota(Box::new(quota))
        }
        _ => return Err(Fault::new(format!("{} is not changed by plans", change.title()))),
    })
}

/// The queues below one that was opened, which its controller had closed with it.
fn opened_with(cluster: &Cluster, parent: &Queue) -> Vec<Delta> {
    let state = &parent.status.state;
    let mut names = vec![parent.metadata.name.clone()];
    let mut opened = Vec::new();
    let mut at = 0;
    while let Some(name) = names.get(at).cloned() {
        at += 1;
        for queue in cluster.queues().filter(|queue| queue.spec.parent == name) {
            let is_marked = queue.metadata.annotation(annotations::CLOSED_BY_PARENT) == Some("true");
            if !is_marked || queue.status.state == *state || names.contains(&queue.metadata.name) {
                continue;
            }
            let mut queue = queue.clone();
            queue.status.state = state.clone();
            queue.metadata.annotations.remove(annotations::CLOSED_BY_PARENT);
            names.push(queue.metadata.name.clone());
            opened.push(Delta::Queue(Box::new(queue)));
        }
    }
    opened
}

/// Applies a JSON merge patch.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
    }
}

impl Cluster {
    /// The cluster after changes, as the API server would hold its objects. A Job that is made anew loses its PodGroup,
    /// its pods and its status.
    ///
    /// # Errors
    /// When an object is not there, or a patch does not fit it.
    pub fn changed(&self, changes: &[Change]) -> Result<Cluster, Fault> {
        let changed = apply(self, changes)?;
        let mut cluster = Cluster {
            objects: self.objects.clone(),
            jobs: self.jobs.clone(),
            settings: self.settings.clone(),
            notes: Vec::new(),
        };
        for (mut job, anew) in changed.jobs {
            if anew {
                let group = group_name(&job);
                let namespace = job.metadata.namespace.clone();
                cluster
                    .objects
                    .retain(|object| !is_part(object, &namespace, &group));
                job.status = Default::default();
            }
            let same = |known: &Job| known.metadata.key() == job.metadata.key();
            cluster.jobs.retain(|known| !same(known));
            cluster.jobs.push(job);
        }
        for object in changed.objects {
            cluster.objects.retain(|known| known.key() != object.key());
            cluster.objects.push(object);
        }
        cluster.sort();
        Ok(cluster)
    }
}

/// Whether it is a PodGroup, or one of its pods.
fn is_part(object: &Delta, namespace: &str, group: &str) -> bool {
    match object {
        Delta::Pod(pod) => {
            let named = pod.metadata.annotations.get(annotations::KUBE_GROUP_NAME);
            pod.metadata.namespace == namespace && named.is_some_and(|name| name == group)
        }
        Delta::PodGroup(known) => known.metadata.namespace == namespace && known.metadata.name == group,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_patch_sets_removes_and_replaces() {
        let cases = [
            (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"b": null}}),
                json!({"a": {"c": 2}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (
                json!({"a": 1}),
                json!({"a": {"b": {"c": null, "d": 1}}}),
                json!({"a": {"b": {"d": 1}}}),
            ),
        ];
        for (mut target, patch, expected) in cases {
            merge(&mut target, &patch);
            assert_eq!(target, expected, "{patch}");
        }
    }
}
