//! Delete: at once, when finalizers are done, or when the node has stopped the pod.

use super::{Call, Written};
use crate::admission::Operation;
use crate::fault::{Fault, FieldError};
use crate::resources::{Nature, Resource};
use crate::selector::Selector;
use crate::server::{Server, locked};
use crate::store::{Clash, Expect, Object, Range};
use serde_json::{Value, json};
use std::sync::Arc;

/// Times that a deletion is tried again when somebody was faster.
const TRIES: usize = 16;
/// Finalizer of what waits for what it owns.
pub const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of what lets go of what it owns.
pub const ORPHAN: &str = "orphan";

/// What happens to what an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// It is let go.
    Orphan,
    /// It goes afterwards.
    Background,
    /// It goes first.
    Foreground,
}

/// How to delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Seconds that a pod gets.
    pub grace: Option<i64>,
    /// What happens to what it owns.
    pub propagation: Option<Propagation>,
    /// Only this very object.
    pub uid: Option<String>,
    /// Only this version of it.
    pub version: Option<String>,
}

impl DeleteOptions {
    /// Reads the body of a request, and its query.
    pub fn read(body: &Value, query: impl Fn(&str) -> Option<String>) -> Result<DeleteOptions, Fault> {
        let given = |name: &str| body[name].as_str().map(str::to_owned).or_else(|| query(name));
        let propagation = match given("propagationPolicy").as_deref() {
            None | Some("") => match body["orphanDependents"].as_bool() {
                Some(true) => Some(Propagation::Orphan),
                Some(false) => Some(Propagation::Background),
                None => None,
            },
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let allowed = ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned);
                let error = FieldError::not_supported("propagationPolicy", other.into(), &allowed);
                let about = crate::fault::About {
                    group: "meta.k8s.io",
                    what: "DeleteOptions",
                    name: "",
                };
                return Err(Fault::invalid(&about, &[error]));
            }
        };
        let grace = body["gracePeriodSeconds"].as_i64();
        let grace = grace.or_else(|| query("gracePeriodSeconds").and_then(|text| text.parse().ok()));
        if grace.is_some_and(|grace| grace < 0) {
            return Err(Fault::bad_request("gracePeriodSeconds must not be negative"));
        }
        let precondition = |name: &str| body["preconditions"][name].as_str().map(str::to_owned);
        Ok(DeleteOptions {
            grace,
            propagation,
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
        })
    }
}

/// Whether the options of a deletion ask for nothing to be written.
pub fn asks_dry_run(options: &Value) -> bool {
    options["dryRun"].as_array().is_some_and(|list| !list.is_empty())
}

/// What came of a deletion.
#[derive(Debug)]
pub enum Deleted {
    /// It is gone.
    Gone(Arc<Object>),
    /// It goes when nothing holds it any more.
    Going(Arc<Object>),
}

impl Deleted {
    /// The object, in its last state.
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Deleted::Gone(object) | Deleted::Going(object) => object,
        }
    }
}

/// Refuses to have a pod taken away.
pub(super) type MayEvict<'a> = dyn Fn(&Value) -> Result<(), Fault> + Sync + 'a;

impl Server {
    /// Deletes an object.
    pub async fn delete(&self, call: &Call<'_>, options: &DeleteOptions) -> Result<Deleted, Fault> {
        self.delete_if(call, options, None).await
    }

    /// Deletes an object that may be evicted, if that is asked.
    pub(super) async fn delete_if(
        &self,
        call: &Call<'_>,
        options: &DeleteOptions,
        may_evict: Option<&MayEvict<'_>>,
    ) -> Result<Deleted, Fault> {
        let key = call.key();
        let mut asked = false;
        for _ in 0..TRIES {
            let current = self
                .get(call.resource.table, &key)
                .ok_or_else(|| call.not_found())?;
            preconditions(call, options, &current)?;
            let mut object = current.value();
            if let Some(may_evict) = may_evict {
                may_evict(&object)?;
            }
            if !asked {
                self.hooks
                    .mutate(self, call, Operation::Delete, &mut Value::Null, Some(&object))
                    .await?;
                self.hooks
                    .validate(self, call, Operation::Delete, None, Some(&object))
                    .await?;
                protect(call)?;
                asked = true;
            }
            let Some(goes) = self.mark(call.resource, &mut object, options) else {
                self.settled(current.revision).await?;
                return Ok(Deleted::Going(current));
            };
            if call.dry_run {
                self.settled(current.revision).await?;
                return Ok(if goes {
                    Deleted::Gone(current)
                } else {
                    Deleted::Going(current)
                });
            }
            let expect = Expect::At(current.revision);
            let write = || match goes {
                true => self.remove(call.resource, &key, expect, object),
                false => self.put(call.resource, &key, expect, object),
            };
            let event = match may_evict {
                None => write(),
                Some(may_evict) => {
                    // While webhooks were asked, another eviction may have used up the budget: one at a time is counted
                    // and written.
                    let _turn = locked(&self.evictions);
                    may_evict(&current.value())?;
                    write()
                }
            };
            match event {
                Ok(event) => {
                    self.settled(event.revision()).await?;
                    let object = event.object.clone();
                    return Ok(if goes {
                        Deleted::Gone(object)
                    } else {
                        Deleted::Going(object)
                    });
                }
                Err(Clash::Missing) => return Err(call.not_found()),
                Err(_) => {}
            }
        }
        Err(Fault::modified(&call.resource.about(call.name)))
    }

    /// Writes down that an object is to go. Whether it goes now; `None` when nothing is new.
    fn mark(&self, resource: &Resource, object: &mut Value, options: &DeleteOptions) -> Option<bool> {
        let deleting = !object["metadata"]["deletionTimestamp"].is_null();
        let before = object["metadata"]["finalizers"].clone();
        let finalizers = finalizers(&before, options.propagation);
        let grace = if resource.nature == Nature::Pod {
            grace(object, options.grace)
        } else {
            0
        };
        let held = resource.nature == Nature::Namespace
            && object["spec"]["finalizers"]
                .as_array()
                .is_some_and(|list| !list.is_empty());
        let goes = finalizers.is_empty() && grace == 0 && !held;
        let known = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if deleting
            && !goes
            && before.as_array().is_none_or(|before| *before == finalizers)
            && known.is_none_or(|known| known <= grace)
        {
            return None;
        }
        if goes && resource.nature != Nature::Pod && !deleting {
            return Some(true);
        }
        let metadata = object["metadata"].as_object_mut()?;
        let at = self.timestamp().as_second() + grace;
        let at = jiff::Timestamp::from_second(at).unwrap_or_default().to_string();
        if !deleting || known.is_some_and(|known| known > grace) {
            metadata.insert("deletionTimestamp".to_owned(), at.into());
            metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
            if let Some(generation) = metadata
                .get("generation")
                .and_then(Value::as_i64)
                .filter(|_| !deleting)
            {
                metadata.insert("generation".to_owned(), (generation + 1).into());
            }
        }
        match finalizers.is_empty() {
            true => metadata.remove("finalizers"),
            false => metadata.insert("finalizers".to_owned(), finalizers.into()),
        };
        if resource.nature == Nature::Namespace {
            object["status"]["phase"] = json!("Terminating");
        }
        Some(goes)
    }

    /// Deletes all objects of a resource that are wanted; their last states.
    pub async fn delete_collection(
        &self,
        call: &Call<'_>,
        selector: &Selector,
        options: &DeleteOptions,
    ) -> Result<Vec<Arc<Object>>, Fault> {
        let range = Range {
            namespace: call.namespace,
            ..Range::default()
        };
        let page = self.list(call.resource.table, range, |object| selector.matches(object));
        let items = page.map(|page| page.items).unwrap_or_default();
        let mut deleted = Vec::new();
        for item in items {
            let one = Call {
                name: item.name(),
                namespace: item.namespace(),
                warnings: std::sync::Mutex::default(),
                manager: None,
                ..*call
            };
            match self.delete(&one, options).await {
                Ok(gone) => deleted.push(gone.object().clone()),
                Err(fault) if fault.code == 404 => {}
                Err(fault) => return Err(fault),
            }
        }
        // Others may have deleted some of them just now.
        self.settled(self.revision()).await?;
        Ok(deleted)
    }
}

fn preconditions(call: &Call<'_>, options: &DeleteOptions, current: &Object) -> Result<(), Fault> {
    let about = call.resource.about(call.name);
    if let Some(uid) = options.uid.as_ref().filter(|uid| ***uid != *current.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted \
             and then recreated",
            current.uid
        );
        return Err(Fault::conflict(&about, &why));
    }
    let version = current.revision.to_string();
    if let Some(wanted) = options.version.as_ref().filter(|wanted| **wanted != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). \
             The object might have been modified"
        );
        return Err(Fault::conflict(&about, &why));
    }
    Ok(())
}

/// What the system cannot do without.
fn protect(call: &Call<'_>) -> Result<(), Fault> {
    let kept = ["default", "kube-system", "kube-public"];
    if call.resource.nature == Nature::Namespace && kept.contains(&call.name) {
        return Err(Fault::forbidden(
            &call.resource.about(call.name),
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

fn finalizers(before: &Value, propagation: Option<Propagation>) -> Vec<Value> {
    let mut finalizers = before.as_array().cloned().unwrap_or_default();
    let Some(propagation) = propagation else {
        return finalizers;
    };
    finalizers.retain(|one| one != FOREGROUND && one != ORPHAN);
    match propagation {
        Propagation::Foreground => finalizers.push(FOREGROUND.into()),
        Propagation::Orphan => finalizers.push(ORPHAN.into()),
        Propagation::Background => {}
    }
    finalizers
}

/// The seconds that a pod gets: none when nothing of it runs.
fn grace(pod: &Value, asked: Option<i64>) -> i64 {
    let spec = &pod["spec"];
    let on_node = spec["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !on_node || ended {
        return 0;
    }
    let own = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    asked.unwrap_or(own).max(0)
}

impl From<Deleted> for Written {
    fn from(deleted: Deleted) -> Written {
        Written {
            object: deleted.object().clone(),
            created: false,
        }
    }
}
