//! An object as it is kept: its bytes as they go out, and the little of it that is looked at without reading them.

use bytes::Bytes;
use serde_json::Value;

/// Texts of labels, in the order of their keys.
pub type Labels = Vec<(Box<str>, Box<str>)>;

/// A version of an object.
#[derive(Debug, PartialEq, Eq)]
pub struct Object {
    /// `namespace/name`, or the name alone; lists are in this order, as etcd's are.
    pub key: Box<str>,
    /// Its version.
    pub revision: u64,
    /// The version that it was created at.
    pub uid: Box<str>,
    /// JSON, as it is sent.
    pub bytes: Bytes,
    /// Labels.
    pub labels: Labels,
    /// Values of the fields that can be selected by, in the order of the resource's list.
    pub fields: Vec<Box<str>>,
    /// UIDs of its owners.
    pub owners: Vec<Box<str>>,
    /// It is being deleted.
    pub deleting: bool,
}

impl Object {
    /// Makes the stored form. The revision is written into the metadata.
    pub fn new(key: &str, mut value: Value, revision: u64, selectable: &[Selectable]) -> Object {
        value["metadata"]["resourceVersion"] = revision.to_string().into();
        let metadata = &value["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().into();
        let labels = metadata["labels"].as_object();
        let labels = labels.map(|labels| {
            labels
                .iter()
                .map(|(key, value)| (key.as_str().into(), text(value)))
        });
        let owners = metadata["ownerReferences"].as_array();
        let owners = owners.map(|owners| owners.iter().map(|owner| text(&owner["uid"])));
        Object {
            key: key.into(),
            revision,
            uid: text(&metadata["uid"]),
            labels: labels.map(Iterator::collect).unwrap_or_default(),
            fields: selectable.iter().map(|field| field.of(&value)).collect(),
            owners: owners.map(Iterator::collect).unwrap_or_default(),
            deleting: !metadata["deletionTimestamp"].is_null(),
            bytes: serde_json::to_vec(&value).unwrap_or_default().into(),
        }
    }

    /// Reads it.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("what is stored was written by us")
    }

    /// Name, without the namespace.
    pub fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    /// Namespace; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }
}

/// A field that lists can be selected by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    /// As clients write it: `spec.nodeName`.
    pub name: Box<str>,
    /// Where it is: `/spec/nodeName`.
    pub pointer: Box<str>,
}

impl Selectable {
    /// By its name, with dots between its parts.
    pub fn new(name: &str) -> Selectable {
        let pointer = format!("/{}", name.replace('.', "/"));
        Selectable {
            name: name.into(),
            pointer: pointer.into(),
        }
    }

    fn of(&self, object: &Value) -> Box<str> {
        match object.pointer(&self.pointer) {
            Some(Value::String(text)) => text.as_str().into(),
            Some(Value::Bool(flag)) => flag.to_string().into(),
            Some(Value::Number(number)) => number.to_string().into(),
            // A flag that is not set is false to those who select by it.
            None if &*self.name == "spec.unschedulable" || &*self.name == "spec.hostNetwork" => {
                "false".into()
            }
            _ => "".into(),
        }
    }
}
