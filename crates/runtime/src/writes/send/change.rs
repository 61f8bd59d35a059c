//! Changes a part of an object, by whichever way the role allows.
//!
//! A patch is one request and cannot run into anybody else's write. Existing installations, though, allow the scheduler
//! to replace objects and not to patch them. So the first patch of a kind that is forbidden is the last one:
//!
//! ```text
//! PATCH ──403──> GET ──403──> LIST that one name
//!                 └──────┬──────┘
//!                     change it ──> PUT ──409──> read again
//! ```

use super::Sender;
use crate::client::{CallError, Patch, Resource};
use crate::writes::order::PodRef;
use crate::writes::work::Answer;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use volcano_api::names::kinds;

/// How often an object is read and replaced while others keep writing it.
const CONFLICTS: usize = 5;

/// A part of a kind of objects that is written.
pub struct What {
    /// In metrics.
    label: &'static str,
    resource: Resource,
    kind: &'static str,
    subresource: &'static str,
    index: usize,
}

impl What {
    const fn new(
        index: usize,
        label: &'static str,
        resource: Resource,
        kind: &'static str,
        subresource: &'static str,
    ) -> Self {
        What {
            label,
            resource,
            kind,
            subresource,
            index,
        }
    }

    /// As roles name it, such as `pods/status`.
    fn granted_as(&self) -> String {
        format!("{}{}", self.resource.plural, self.subresource)
    }
}

const PODS: Resource = Resource::new("", "v1", "pods");
const PODGROUPS: Resource = Resource::new(kinds::SCHEDULING, kinds::V1BETA1, "podgroups");
const QUEUES: Resource = Resource::new(kinds::SCHEDULING, kinds::V1BETA1, "queues");
const NODE_SHARDS: Resource = Resource::new(kinds::NODE_SHARD.group, kinds::V1ALPHA1, "nodeshards");
const PERSISTENT_VOLUMES: Resource = Resource::new("", "v1", "persistentvolumes");
const PERSISTENT_VOLUME_CLAIMS: Resource = Resource::new("", "v1", "persistentvolumeclaims");

pub static PODS_STATUS: What = What::new(0, "pod-status", PODS, "Pod", "/status");
/// PodGroups have no status subresource.
pub static GROUPS: What = What::new(1, "podgroup", PODGROUPS, "PodGroup", "");
pub static QUEUES_STATUS: What = What::new(2, "queue-status", QUEUES, "Queue", "/status");
pub static VOLUMES: What = What::new(3, "volume", PERSISTENT_VOLUMES, "PersistentVolume", "");
pub static CLAIMS: What = What::new(4, "claim", PERSISTENT_VOLUME_CLAIMS, "PersistentVolumeClaim", "");
pub static SHARDS_STATUS: What = What::new(5, "shard-status", NODE_SHARDS, "NodeShard", "/status");
pub static PODS_SPEC: What = What::new(6, "pod", PODS, "Pod", "");
const KINDS: usize = 7;

/// What was found out about the role.
#[derive(Default)]
pub struct Detours {
    /// Patching is forbidden.
    replace: [AtomicBool; KINDS],
    /// Getting is forbidden.
    list: [AtomicBool; KINDS],
    /// It was said that nothing works.
    told: [AtomicBool; KINDS],
}

/// One object.
pub struct Target<'a> {
    pub what: &'static What,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The incarnation that is meant.
    pub uid: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub fn pod(what: &'static What, pod: &'a PodRef) -> Self {
        Target {
            what,
            namespace: &pod.namespace,
            name: &pod.name,
            uid: Some(&pod.uid),
        }
    }

    fn path(&self) -> String {
        self.what.resource.object(self.namespace, self.name)
    }

    fn write_path(&self) -> String {
        self.path() + self.what.subresource
    }

    fn list_path(&self) -> String {
        let all = self.what.resource.within(self.namespace);
        format!("{all}?fieldSelector=metadata.name%3D{}&limit=1", self.name)
    }
}

/// How an object looks after it was written.
pub enum Written {
    /// As the API server answered.
    Now(Bytes),
    /// It had the value already; its version.
    Already(Option<String>),
}

impl Written {
    /// `metadata.resourceVersion`; nothing else is decoded.
    pub fn version(self) -> Option<String> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Meta,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta {
            resource_version: String,
        }
        match self {
            Written::Now(answer) => {
                let object: Object = serde_json::from_slice(&answer).ok()?;
                Some(object.metadata.resource_version)
            }
            Written::Already(version) => version,
        }
    }
}

/// What to do with an object that was read.
pub enum Edit {
    /// Write it as it is now.
    Write,
    /// It needs no change.
    Nothing,
    /// It must not be changed.
    Refuse(String),
}

impl Sender {
    /// Changes an object as a patch says.
    pub(super) async fn change(
        &self,
        target: &Target<'_>,
        patch: Patch,
        body: Vec<u8>,
    ) -> Result<Written, Answer> {
        let what = target.what;
        let replace = &self.detours.replace[what.index];
        if !replace.load(Ordering::Relaxed) {
            let answer = self.client.patch(&target.write_path(), patch, body.clone()).await;
            match self.count(what.label, answer) {
                Ok(answer) => return Ok(Written::Now(answer)),
                Err(error) if error.is_forbidden() => {
                    if !replace.swap(true, Ordering::Relaxed) {
                        let resource = what.granted_as();
                        tracing::info!(resource, "patch is not allowed; reading and replacing instead");
                    }
                }
                Err(error) => return Err(self.patch_failed(target, error).await),
            }
        }
        let change: Value = serde_json::from_slice(&body).unwrap_or_default();
        let edited = |object: &mut Value| {
            let before = object.clone();
            apply(object, &change, patch);
            if *object == before {
                Edit::Nothing
            } else {
                Edit::Write
            }
        };
        self.edit(target, edited).await
    }

    /// A patch that names a UID fails when the object has another one. The API server says so as a conflict or as an
    /// invalid value, which both have other causes too.
    async fn patch_failed(&self, target: &Target<'_>, error: CallError) -> Answer {
        let Some(uid) = target.uid.filter(|_| matches!(error.code(), 409 | 422)) else {
            // Without a UID it means that others wrote the object again and again while the API server patched it.
            if error.is_conflict() {
                return Answer::Later {
                    why: error.to_string(),
                    retry_after: None,
                };
            }
            return self.refused(target, "patch", error);
        };
        match self.read(target).await {
            Ok(Some(object)) if has_uid(&object, uid) && error.is_conflict() => Answer::Later {
                why: error.to_string(),
                retry_after: None,
            },
            Ok(Some(object)) if has_uid(&object, uid) => self.refused(target, "patch", error),
            Ok(_) => Answer::Gone,
            Err(answer) => answer,
        }
    }

    /// Reads an object, changes it and replaces it, again and again while somebody else does the same.
    pub(super) async fn edit(
        &self,
        target: &Target<'_>,
        edit: impl Fn(&mut Value) -> Edit,
    ) -> Result<Written, Answer> {
        let what = target.what;
        let mut why = String::new();
        for _ in 0..CONFLICTS {
            let Some(mut object) = self.read(target).await? else {
                return Err(Answer::Gone);
            };
            if target.uid.is_some_and(|uid| !has_uid(&object, uid)) {
                return Err(Answer::Gone);
            }
            match edit(&mut object) {
                Edit::Write => {}
                Edit::Nothing => return Ok(Written::Already(version(&object))),
                Edit::Refuse(why) => return Err(Answer::Taken { why }),
            }
            name_kind(&mut object, what);
            let body = super::json(&object);
            let answer = self.client.put(&target.write_path(), body).await;
            match self.count(what.label, answer) {
                Ok(answer) => return Ok(Written::Now(answer)),
                Err(error) if error.is_conflict() => why = error.to_string(),
                Err(error) => return Err(self.refused(target, "update", error)),
            }
        }
        Err(Answer::Later {
            why,
            retry_after: None,
        })
    }

    /// Says once per kind what is wrong, and what to do about it.
    fn refused(&self, target: &Target<'_>, verb: &str, error: CallError) -> Answer {
        let what = target.what;
        if error.is_forbidden() {
            // The role may have been changed the other way round.
            self.detours.replace[what.index].store(false, Ordering::Relaxed);
        }
        let for_good = !error.is_transient() && !error.is_not_found() && !matches!(error, CallError::Fenced);
        if for_good && !self.detours.told[what.index].swap(true, Ordering::Relaxed) {
            let resource = what.granted_as();
            let hint = if error.is_forbidden() {
                format!("grant the verb patch, or get and update, on {resource} to the scheduler's role")
            } else {
                "see what the API server or an admission webhook says of the object; tried again later"
                    .to_owned()
            };
            let (namespace, name) = (target.namespace, target.name);
            tracing::error!(verb, resource, namespace, name, %error, hint, "cannot write");
        }
        error.into()
    }

    /// The object as it is, or nothing.
    pub(super) async fn read(&self, target: &Target<'_>) -> Result<Option<Value>, Answer> {
        let list = &self.detours.list[target.what.index];
        if !list.load(Ordering::Relaxed) {
            match self.client.get(&target.path()).await {
                Ok(object) => return Ok(Some(object)),
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) if error.is_forbidden() => list.store(true, Ordering::Relaxed),
                Err(error) => return Err(error.into()),
            }
        }
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            items: Vec<Value>,
        }
        match self.client.list::<List>(&target.list_path(), None).await {
            Ok(mut list) => Ok(list.items.pop()),
            Err(error) => {
                list.store(false, Ordering::Relaxed);
                Err(self.refused(target, "get", error))
            }
        }
    }
}

pub(super) fn has_uid(object: &Value, uid: &str) -> bool {
    object["metadata"]["uid"] == uid
}

pub(super) fn version(object: &Value) -> Option<String> {
    let version = object["metadata"]["resourceVersion"].as_str()?;
    Some(version.to_owned())
}

/// Items of a list do not say what they are.
fn name_kind(object: &mut Value, what: &What) {
    let Resource { group, version, .. } = what.resource;
    if let Value::Object(fields) = object {
        fields.entry("kind").or_insert_with(|| what.kind.into());
        fields.entry("apiVersion").or_insert_with(|| match group {
            "" => version.into(),
            group => format!("{group}/{version}").into(),
        });
    }
}

/// Applies a patch as the API server would: RFC 7386, with conditions merged by type in a strategic one.
pub(crate) fn apply(object: &mut Value, change: &Value, patch: Patch) {
    let Value::Object(changes) = change else {
        *object = change.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else {
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
            continue;
        }
        let field = fields.entry(name.as_str()).or_insert(Value::Null);
        match (patch, name.as_str(), change) {
            (Patch::Strategic, "conditions", Value::Array(conditions)) => merge_conditions(field, conditions),
            _ => apply(field, change, patch),
        }
    }
}

fn merge_conditions(list: &mut Value, changes: &[Value]) {
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let Value::Array(list) = list else {
        return;
    };
    for change in changes {
        let known = list.iter_mut().find(|known| known["type"] == change["type"]);
        let Some(known) = known else {
            list.push(change.clone());
            continue;
        };
        let since = known.get("lastTransitionTime").cloned();
        let same_status = known["status"] == change["status"];
        apply(known, change, Patch::Strategic);
        if let Some(since) = since.filter(|_| same_status) {
            known["lastTransitionTime"] = since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_replaces_lists_and_removes_what_is_null() {
        let mut object = json!({"a": {"b": 1, "c": 2, "conditions": [1, 2]}, "d": 3});
        let change = json!({"a": {"c": null, "e": {"f": 1, "g": null}, "conditions": [3]}, "d": {"x": 1}});
        apply(&mut object, &change, Patch::Merge);
        assert_eq!(
            object,
            json!({"a": {"b": 1, "conditions": [3], "e": {"f": 1}}, "d": {"x": 1}})
        );
    }

    #[test]
    fn conditions_merge_by_type_and_keep_the_time_of_their_status() {
        let mut pod = json!({"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "A", "lastTransitionTime": "t1"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "t1", "lastProbeTime": null},
        ]}});
        let change = json!({"status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "B", "lastTransitionTime": "t2"},
            {"type": "Ready", "status": "False", "lastTransitionTime": "t2"},
            {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "t2"},
        ]}});
        apply(&mut pod, &change, Patch::Strategic);
        assert_eq!(
            pod,
            json!({"status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "B", "lastTransitionTime": "t1"},
                {"type": "Ready", "status": "False", "lastTransitionTime": "t2", "lastProbeTime": null},
                {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "t2"},
            ]}})
        );
    }
}
