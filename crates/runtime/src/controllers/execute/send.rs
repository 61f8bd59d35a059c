//! One write as a request, and what its answer means.
//!
//! Roles of existing installations allow the controllers to patch some kinds and only to replace others: see
//! [`is_replaced`].

use super::lanes::{Lanes, Urgency};
use super::{Effect, Outcome, Problem, Sort, keys};
use crate::client::{CallError, Client, Page, Patch, Resource};
use crate::controllers::kinds::{self, Change, Spot, number};
use crate::controllers::recorder::Recorder;
use crate::controllers::store::Answer;
use crate::metrics::Process;
use crate::writes::send::{change::apply, result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use volcano_api::core::PodState;
use volcano_api::names::kinds::{
    COMMAND, CONFIG_MAP, JOB, PERSISTENT_VOLUME_CLAIM, POD, POD_GROUP, QUEUE, SECRET,
};
use volcano_api::names::{Kind, field_managers, labels};
use volcano_api::protobuf;
use volcano_reconcile::job::{Ask, Reading};
use volcano_reconcile::write::{Fill, Target, Write};

/// Reason of a refusal: there is an object of that name.
const ALREADY_EXISTS: &str = "AlreadyExists";
/// Objects of a list that are read in one go.
const PAGE: usize = 500;

/// Sends requests, a bounded number at a time.
pub struct Sender {
    client: Client,
    metrics: Process,
    recorder: Recorder,
    lanes: Lanes,
    is_stopped: AtomicBool,
}

impl Sender {
    pub fn new(client: Client, metrics: Process, recorder: Recorder, lanes: usize) -> Self {
        Sender {
            client,
            metrics,
            recorder,
            lanes: Lanes::new(lanes),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Nothing more is sent.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Whether nothing more is sent.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Lanes to spare for what can be told later.
    pub fn spare(&self) -> usize {
        self.lanes.spare()
    }

    /// Carries a write out, once, or not now.
    pub async fn write(&self, write: &Write, urgency: Urgency) -> Result<Outcome, Problem> {
        if let Write::Event(event) = write {
            self.recorder.tell(event);
            return Ok(Outcome::Written(None));
        }
        // The keys are made before there is a lane to send them: others can use it meanwhile.
        let filled = match write {
            Write::Create {
                body,
                fill: Some(Fill::SshKeyPair),
                ..
            } => Some(with_keys(body.clone()).await?),
            _ => None,
        };
        let Some(_lane) = self.lanes.take(urgency).await else {
            return Ok(Outcome::PutOff);
        };
        if self.is_stopped() {
            return Err(CallError::Fenced.into());
        }
        let effect = match write {
            Write::Create { target, body, .. } => self
                .create(target, filled.as_ref().unwrap_or(body))
                .await
                .map(Some),
            Write::Patch {
                target,
                patch,
                status,
                resource_version,
            } => {
                self.change(target, patch, *status, resource_version.as_deref())
                    .await
            }
            Write::Delete { target, foreground } => self.delete(target, *foreground).await,
            Write::Event(_) => Ok(None),
        };
        effect.map(Outcome::Written)
    }

    async fn create(&self, target: &Target, body: &Value) -> Result<Effect, Problem> {
        let kind = target.kind;
        // To look for fields that it does not know, the API server would read the body a second time, for a warning to nobody.
        let path = Resource::from(kind).within(&target.namespace) + "?fieldValidation=Ignore";
        let bytes = serde_json::to_vec(body).unwrap_or_default();
        let created = match kind {
            POD => {
                let tables = Some(protobuf::POD);
                let made = self.client.create::<PodState>(&path, bytes, tables).await;
                self.count(kind.plural, made).map(|made| {
                    let change = Change::Pod(Box::new(kinds::without_spec(made)));
                    Effect::PodMade(Answer::Object(Box::new(change)))
                })
            }
            _ => {
                let object = self.client.create::<Value>(&path, bytes, None).await;
                self.count(kind.plural, object)
                    .and_then(|object| effect(kind, object))
            }
        };
        match created {
            Err(CallError::Refused { reason, .. }) if reason == ALREADY_EXISTS => {
                self.take_for_it(target, body).await
            }
            created => Ok(created?),
        }
    }

    /// There is an object of that name. One with the same controller is the one that was to be made: an earlier attempt
    /// got through.
    async fn take_for_it(&self, target: &Target, body: &Value) -> Result<Effect, Problem> {
        let Some(object) = self.get(target).await? else {
            return Err(Problem::passing(format!(
                "{} {} was there and is gone",
                target.kind.kind, target.name
            )));
        };
        let (wanted, found) = (controller(body), controller(&object));
        if wanted.is_some() && wanted.map(|owner| &owner["uid"]) != found.map(|owner| &owner["uid"]) {
            let owner = found.map_or_else(
                || "nobody".to_owned(),
                |owner| format!("the {} {}", text(&owner["kind"]), text(&owner["name"])),
            );
            return Err(Problem {
                sort: if target.kind == POD {
                    Sort::Taken
                } else {
                    Sort::Refused
                },
                text: format!(
                    "{} \"{}\" already exists and belongs to {owner}",
                    target.kind.plural, target.name
                ),
                retry_after: Duration::ZERO,
            });
        }
        Ok(effect(target.kind, object)?)
    }

    async fn change(
        &self,
        target: &Target,
        patch: &Value,
        status: bool,
        version: Option<&str>,
    ) -> Result<Option<Effect>, Problem> {
        let kind = target.kind;
        let part = if status { "/status" } else { "" };
        let mut path = Resource::from(kind).object(&target.namespace, &target.name) + part;
        if status && kind == QUEUE {
            // Tools look for the owner of the state under the name that it has always had.
            path += "?fieldManager=";
            path += field_managers::QUEUE_CONTROLLER;
        }
        let label = format!("{}{part}", kind.plural);
        let answer = if !status && is_replaced(kind) {
            let Some(object) = self.edited(target, patch, version).await? else {
                return Ok(None);
            };
            let body = serde_json::to_vec(&object).unwrap_or_default();
            self.count(&label, self.client.put(&path, body).await)
        } else {
            let mut patch = patch.clone();
            let metadata = &mut patch["metadata"];
            if !target.uid.is_empty() {
                metadata["uid"] = json!(target.uid);
            }
            if let Some(version) = version {
                metadata["resourceVersion"] = json!(version);
            }
            if metadata.is_null()
                && let Some(fields) = patch.as_object_mut()
            {
                fields.remove("metadata");
            }
            let body = serde_json::to_vec(&patch).unwrap_or_default();
            self.count(&label, self.client.patch(&path, Patch::Merge, body).await)
        };
        match answer {
            Ok(bytes) => {
                let object = serde_json::from_slice(&bytes)
                    .map_err(|error| CallError::Unreadable(error.to_string()))?;
                Ok(Some(effect(kind, object)?))
            }
            // What is gone needs no change; the watch tells. Until it does, nothing is to be made of the pod's end: it would be
            // taken for an eviction, again and again.
            Err(error) if error.is_not_found() => Ok((kind == POD).then(|| {
                Effect::Watched(Answer::PodGone {
                    namespace: target.namespace.clone(),
                    name: target.name.clone(),
                    uid: target.uid.clone(),
                })
            })),
            Err(error) => Err(error.into()),
        }
    }

    /// The object as it is to be; nothing when it is gone.
    async fn edited(
        &self,
        target: &Target,
        patch: &Value,
        version: Option<&str>,
    ) -> Result<Option<Value>, Problem> {
        let Some(mut object) = self.get(target).await? else {
            return Ok(None);
        };
        let metadata = &object["metadata"];
        let is_another = !target.uid.is_empty() && metadata["uid"] != target.uid.as_str();
        if is_another || version.is_some_and(|version| metadata["resourceVersion"] != version) {
            return Err(Problem::passing(format!(
                "{} {} has changed meanwhile",
                target.kind.kind, target.name
            )));
        }
        apply(&mut object, patch, Patch::Merge);
        Ok(Some(object))
    }

    async fn delete(&self, target: &Target, foreground: bool) -> Result<Option<Effect>, Problem> {
        let kind = target.kind;
        let mut options = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": if foreground { "Foreground" } else { "Background" },
        });
        if !target.uid.is_empty() {
            options["preconditions"] = json!({"uid": target.uid});
        }
        let path = Resource::from(kind).object(&target.namespace, &target.name);
        let body = serde_json::to_vec(&options).unwrap_or_default();
        let left = match self.count(kind.plural, self.client.delete(&path, body).await) {
            Ok(bytes) => serde_json::from_slice::<Value>(&bytes).ok(),
            // Gone, or another one has its name.
            Err(error) if error.is_not_found() || error.is_conflict() => None,
            Err(error) => return Err(error.into()),
        };
        Ok(leaving(target, left))
    }

    /// Reads objects, as far as they are there.
    pub async fn read_all(&self, targets: Vec<Target>) -> Result<Vec<(Target, Option<Value>)>, Problem> {
        let mut read = Vec::new();
        for target in targets {
            let _lane = self.lanes.take(Urgency::First).await;
            let object = self.get(&target).await?;
            read.push((target, object));
        }
        Ok(read)
    }

    /// The newest versions of a Job and its pods; nothing when it is gone. The pods are read after the Job, so that what
    /// the Job says of them is not newer than they are.
    pub async fn newest(&self, job: &Target, ask: Ask) -> Result<Option<Reading>, Problem> {
        let _lane = self.lanes.take(Urgency::First).await;
        let Some(found) = self.get(job).await? else {
            return Ok(None);
        };
        let pods = match ask.pods {
            true => Some(self.newest_pod(job).await?),
            false => None,
        };
        Ok(Some(Reading {
            job: number(text(&found["metadata"]["resourceVersion"])),
            pods,
        }))
    }

    /// The newest version among the pods of a Job, 0 without any.
    async fn newest_pod(&self, job: &Target) -> Result<u64, CallError> {
        let (pods, label) = (Resource::from(POD).within(&job.namespace), labels::JOB_NAME);
        let first = format!("{pods}?labelSelector={label}%3D{}&limit={PAGE}", job.name);
        let (mut newest, mut next) = (0, String::new());
        loop {
            let path = match next.as_str() {
                "" => first.clone(),
                next => format!("{first}&continue={next}"),
            };
            let page: Page<PodState> = self.client.list(&path, Some(protobuf::POD)).await?;
            let versions = page
                .items
                .iter()
                .map(|pod| number(&pod.metadata.resource_version));
            newest = versions.fold(newest, u64::max);
            next = page.metadata.r#continue;
            if next.is_empty() {
                return Ok(newest);
            }
        }
    }

    async fn get(&self, target: &Target) -> Result<Option<Value>, CallError> {
        let path = Resource::from(target.kind).object(&target.namespace, &target.name);
        match self.client.get::<Value>(&path).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn count<T>(&self, kind: &str, answer: Result<T, CallError>) -> Result<T, CallError> {
        if let Some(result) = result(&answer) {
            self.metrics.api_write(kind, result);
        }
        answer
    }
}

/// Whether the role allows to replace objects of a kind, and not to patch them.
fn is_replaced(kind: Kind) -> bool {
    matches!(kind, JOB | CONFIG_MAP | SECRET)
}

fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners?.iter().find(|owner| owner["controller"] == true)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What an object in an answer changes.
fn effect(kind: Kind, object: Value) -> Result<Effect, CallError> {
    Ok(match watched(kind, &object)? {
        Some(change) => Effect::Watched(Answer::Object(Box::new(change))),
        None => Effect::Made(kind, object),
    })
}

/// The change, if the kind is one that is watched.
fn watched(kind: Kind, object: &Value) -> Result<Option<Change>, CallError> {
    Ok(Some(match kind {
        JOB => Change::Job(read(object)?),
        POD_GROUP => Change::PodGroup(read(object)?),
        QUEUE => Change::Queue(read(object)?),
        POD => Change::Pod(read(object)?),
        PERSISTENT_VOLUME_CLAIM => {
            let metadata = &object["metadata"];
            Change::Claim(Spot {
                namespace: text(&metadata["namespace"]).to_owned(),
                name: text(&metadata["name"]).to_owned(),
                version: number(text(&metadata["resourceVersion"])),
            })
        }
        _ => return Ok(None),
    }))
}

fn read<T: DeserializeOwned>(object: &Value) -> Result<Box<T>, CallError> {
    T::deserialize(object)
        .map(Box::new)
        .map_err(|error| CallError::Unreadable(error.to_string()))
}

/// What a deletion changes. `left` is what the API server answered: the object if it is still there, or how it went.
fn leaving(target: &Target, left: Option<Value>) -> Option<Effect> {
    let kind = match target.kind {
        POD => kinds::Kind::Pod,
        POD_GROUP => kinds::Kind::PodGroup,
        COMMAND => kinds::Kind::Command,
        JOB | QUEUE | PERSISTENT_VOLUME_CLAIM => return None,
        other => return Some(Effect::Removed(other, target.name.clone())),
    };
    let is_left = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    let left = left.filter(is_left);
    let left = left.and_then(|object| watched(target.kind, &object).ok().flatten());
    Some(Effect::Watched(Answer::Leaving {
        kind,
        namespace: target.namespace.clone(),
        name: target.name.clone(),
        uid: target.uid.clone(),
        left: left.map(Box::new),
    }))
}

/// A Secret with a fresh key pair. It is made on a thread for work that takes long.
async fn with_keys(mut body: Value) -> Result<Value, Problem> {
    let broken = |text: String| Problem {
        sort: Sort::Refused,
        text: format!("cannot make a key pair: {text}"),
        retry_after: Duration::ZERO,
    };
    let make = move || {
        if !body["data"].is_object() {
            body["data"] = json!({});
        }
        let data = body["data"].as_object_mut();
        data.map_or(Ok(()), keys::fill).map(|()| body)
    };
    let made = tokio::task::spawn_blocking(make).await;
    made.map_err(|error| broken(error.to_string()))?
        .map_err(|error| broken(error.to_string()))
}

impl Problem {
    /// The next time may be better.
    pub fn passing(text: String) -> Self {
        Problem {
            sort: Sort::Passing,
            text,
            retry_after: Duration::ZERO,
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let sort = match &error {
            CallError::Fenced => Sort::Fenced,
            error if error.is_transient() || error.is_conflict() => Sort::Passing,
            _ => Sort::Refused,
        };
        Problem {
            sort,
            retry_after: error.retry_after().unwrap_or_default(),
            text: match error {
                CallError::Refused { message, .. } => message,
                error => error.to_string(),
            },
        }
    }
}
