//! Prepares a claim for a pod's node, and takes that back.
//!
//! A volume that is there is set aside for the claim (`spec.claimRef`); otherwise the claim names the node
//! (`volume.kubernetes.io/selected-node`) that its class's driver is to make one for. Both are read, changed and
//! replaced with the version that was read: what somebody else does in between is never overwritten.

use super::Sender;
use super::change::{CLAIMS, Edit, Target, VOLUMES};
use crate::writes::order::{ClaimRef, VolumeStep};
use crate::writes::work::Answer;
use serde_json::{Value, json};
use volcano_api::names::annotations::{BOUND_BY_CONTROLLER, SELECTED_NODE};

const YES: &str = "yes";
/// Phase of a volume that has its claim.
const BOUND: &str = "Bound";

impl Sender {
    pub(super) async fn prepare(&self, step: &VolumeStep, node: &str) -> Answer {
        let claim = &step.claim;
        match &step.volume {
            Some(volume) => self.edited(&volume_target(volume), |v| set_aside(v, claim)).await,
            None => self.edited(&claim_target(claim), |c| select(c, node)).await,
        }
    }

    pub(super) async fn take_back(&self, step: &VolumeStep, node: &str) -> Answer {
        let claim = &step.claim;
        match &step.volume {
            Some(volume) => self.edited(&volume_target(volume), |v| put_back(v, claim)).await,
            None => self.edited(&claim_target(claim), |c| unselect(c, node)).await,
        }
    }

    async fn edited(&self, target: &Target<'_>, edit: impl Fn(&mut Value) -> Edit) -> Answer {
        match self.edit(target, edit).await {
            Ok(_) => Answer::DONE,
            Err(answer) => answer,
        }
    }
}

fn volume_target(name: &str) -> Target<'_> {
    Target {
        what: &VOLUMES,
        namespace: "",
        name,
        uid: None,
    }
}

fn claim_target(claim: &ClaimRef) -> Target<'_> {
    Target {
        what: &CLAIMS,
        namespace: &claim.namespace,
        name: &claim.name,
        uid: Some(&claim.uid),
    }
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn is_leaving(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

fn annotate(object: &mut Value, key: &str, value: &str) {
    let annotations = &mut object["metadata"]["annotations"];
    if annotations.is_object() {
        annotations[key] = value.into();
    } else {
        *annotations = json!({ key: value });
    }
}

fn remove(object: &mut Value, path: &str, key: &str) {
    if let Some(Value::Object(fields)) = object.pointer_mut(path) {
        fields.remove(key);
    }
}

/// Sets a volume aside for a claim.
fn set_aside(volume: &mut Value, claim: &ClaimRef) -> Edit {
    let name = text(volume, "/metadata/name");
    if is_leaving(volume) {
        return Edit::Refuse(format!("volume {name} is being deleted"));
    }
    if !volume["spec"].is_object() {
        return Edit::Refuse(format!("volume {name} has no spec"));
    }
    let owner = &volume["spec"]["claimRef"];
    if owner.is_null() {
        volume["spec"]["claimRef"] = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": &*claim.namespace,
            "name": &*claim.name,
            "uid": &*claim.uid,
        });
        annotate(volume, BOUND_BY_CONTROLLER, YES);
        return Edit::Write;
    }
    let (namespace, owner_name, uid) = (
        text(owner, "/namespace"),
        text(owner, "/name"),
        text(owner, "/uid"),
    );
    let same_name = namespace == &*claim.namespace && owner_name == &*claim.name;
    if same_name && uid == &*claim.uid {
        return Edit::Nothing;
    }
    if same_name && uid.is_empty() {
        // Set aside by its owner, by name.
        volume["spec"]["claimRef"]["uid"] = (&*claim.uid).into();
        return Edit::Write;
    }
    Edit::Refuse(format!("volume {name} belongs to claim {namespace}/{owner_name}"))
}

/// Gives a volume back that was set aside for a claim and is not bound to it yet.
fn put_back(volume: &mut Value, claim: &ClaimRef) -> Edit {
    if text(volume, "/status/phase") == BOUND || text(volume, "/spec/claimRef/uid") != &*claim.uid {
        return Edit::Nothing;
    }
    if annotation(volume, BOUND_BY_CONTROLLER).is_some() {
        remove(volume, "/spec", "claimRef");
        remove(volume, "/metadata/annotations", BOUND_BY_CONTROLLER);
    } else {
        remove(volume, "/spec/claimRef", "uid");
        remove(volume, "/spec/claimRef", "resourceVersion");
    }
    Edit::Write
}

/// Names the node that a volume is to be made for.
fn select(claim: &mut Value, node: &str) -> Edit {
    if is_leaving(claim) {
        return Edit::Refuse("is being deleted".to_owned());
    }
    let has_volume = !text(claim, "/spec/volumeName").is_empty();
    if has_volume || annotation(claim, SELECTED_NODE) == Some(node) {
        return Edit::Nothing;
    }
    annotate(claim, SELECTED_NODE, node);
    Edit::Write
}

/// Takes the node back while no volume was made for it.
fn unselect(claim: &mut Value, node: &str) -> Edit {
    let has_volume = !text(claim, "/spec/volumeName").is_empty();
    if has_volume || annotation(claim, SELECTED_NODE) != Some(node) {
        return Edit::Nothing;
    }
    remove(claim, "/metadata/annotations", SELECTED_NODE);
    Edit::Write
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> ClaimRef {
        ClaimRef {
            namespace: "ns".into(),
            name: "c".into(),
            uid: "u".into(),
        }
    }

    /// What comes of an edit: the object, or why not.
    fn edited(mut object: Value, edit: impl Fn(&mut Value) -> Edit) -> Result<Option<Value>, String> {
        match edit(&mut object) {
            Edit::Write => Ok(Some(object)),
            Edit::Nothing => Ok(None),
            Edit::Refuse(why) => Err(why),
        }
    }

    fn volume(claim_ref: Value, annotations: Value, phase: &str) -> Value {
        json!({
            "metadata": {"name": "v", "annotations": annotations},
            "spec": {"claimRef": claim_ref},
            "status": {"phase": phase},
        })
    }

    #[test]
    fn a_volume_is_set_aside_unless_it_belongs_to_another_claim() {
        let ours = json!({"namespace": "ns", "name": "c", "uid": "u"});
        let by_name = json!({"namespace": "ns", "name": "c"});
        let older = json!({"namespace": "ns", "name": "c", "uid": "older"});
        let set = |volume: Value| edited(volume, |v| set_aside(v, &claim()));
        let available = |claim_ref: Value| volume(claim_ref, json!({}), "Available");
        assert_eq!(set(available(ours.clone())), Ok(None));
        assert_eq!(set(available(by_name)), Ok(Some(available(ours))));
        assert_eq!(
            set(available(older)),
            Err("volume v belongs to claim ns/c".to_owned())
        );
        let going =
            json!({"metadata": {"name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}});
        assert_eq!(set(going), Err("volume v is being deleted".to_owned()));
        assert!(set(json!({})).is_err());
    }

    #[test]
    fn a_volume_is_put_back_only_while_it_is_ours_and_not_bound() {
        let ours = json!({"namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "1"});
        let by_us = json!({BOUND_BY_CONTROLLER: "yes", "keep": "me"});
        let back = |volume: Value| edited(volume, |v| put_back(v, &claim()));
        let mut free = volume(Value::Null, json!({"keep": "me"}), "Available");
        free["spec"] = json!({});
        assert_eq!(
            back(volume(ours.clone(), by_us.clone(), "Available")),
            Ok(Some(free))
        );
        assert_eq!(back(volume(ours.clone(), by_us.clone(), "Bound")), Ok(None));
        let other = json!({"namespace": "ns", "name": "c", "uid": "other"});
        assert_eq!(back(volume(other, by_us, "Available")), Ok(None));
        let by_name = json!({"namespace": "ns", "name": "c"});
        assert_eq!(
            back(volume(ours, json!({}), "Available")),
            Ok(Some(volume(by_name, json!({}), "Available"))),
            "its owner set it aside"
        );
    }

    #[test]
    fn a_claim_names_the_node_only_while_it_has_no_volume() {
        let with = |annotations: Value, volume: &str| json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}});
        let on = |node: &str| json!({SELECTED_NODE: node});
        let set = |claim: Value| edited(claim, |c| select(c, "n"));
        assert_eq!(set(with(Value::Null, "")), Ok(Some(with(on("n"), ""))));
        assert_eq!(set(with(on("other"), "")), Ok(Some(with(on("n"), ""))));
        assert_eq!(set(with(on("n"), "")), Ok(None));
        assert_eq!(set(with(Value::Null, "v")), Ok(None));
        let back = |claim: Value| edited(claim, |c| unselect(c, "n"));
        assert_eq!(back(with(on("n"), "")), Ok(Some(with(json!({}), ""))));
        assert_eq!(back(with(on("other"), "")), Ok(None));
        assert_eq!(back(with(on("n"), "v")), Ok(None));
    }
}
