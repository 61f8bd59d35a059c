//! An object as it is kept: its bytes as they go out, and the little of it that is looked at without reading them.

use bytes::Bytes;
use serde_json::Value;
use tracing::error;

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

/// An object that is to be stored and lacks only its revision. Making it is most of the work of a write, and needs no lock.
#[derive(Debug)]
pub struct Draft {
    object: Object,
    bytes: Vec<u8>,
    /// Where in the bytes the revision goes.
    place: usize,
}

impl Draft {
    /// Makes the stored form.
    pub fn new(key: &str, mut value: Value, selectable: &[Selectable]) -> Draft {
        value["metadata"]["resourceVersion"] = "".into();
        let (bytes, place) = written(&value);
        let object = Object::read(key, &value, selectable);
        Draft { object, bytes, place }
    }

    /// The object at its revision, which is written into the metadata. What is kept has no room to spare.
    pub fn at(mut self, revision: u64) -> Object {
        let text = revision.to_string();
        let (before, after) = self.bytes.split_at(self.place);
        self.object.revision = revision;
        self.object.bytes = [before, text.as_bytes(), after].concat().into();
        self.object
    }
}

/// JSON, and the place in it where the text of `metadata.resourceVersion` begins.
fn written(value: &Value) -> (Vec<u8>, usize) {
    let (mut bytes, mut place) = (Vec::with_capacity(4096), 0);
    let put = |bytes: &mut Vec<u8>, value: &Value| {
        serde_json::to_writer(bytes, value).expect("JSON is written to memory");
    };
    bytes.push(b'{');
    for (at, (name, below)) in value.as_object().into_iter().flatten().enumerate() {
        begin(&mut bytes, at, name);
        match below.as_object().filter(|_| name == "metadata") {
            None => put(&mut bytes, below),
            Some(metadata) => {
                bytes.push(b'{');
                for (at, (name, below)) in metadata.iter().enumerate() {
                    begin(&mut bytes, at, name);
                    if name == "resourceVersion" {
                        place = bytes.len() + 1;
                    }
                    put(&mut bytes, below);
                }
                bytes.push(b'}');
            }
        }
    }
    bytes.push(b'}');
    (bytes, place)
}

/// The name of a field, and what is before and behind it.
fn begin(bytes: &mut Vec<u8>, at: usize, name: &str) {
    if at > 0 {
        bytes.push(b',');
    }
    serde_json::to_writer(&mut *bytes, name).expect("JSON is written to memory");
    bytes.push(b':');
}

impl Object {
    /// Makes the stored form. The revision is written into the metadata.
    pub fn new(key: &str, value: Value, revision: u64, selectable: &[Selectable]) -> Object {
        Draft::new(key, value, selectable).at(revision)
    }

    /// What is looked at without reading the bytes.
    fn read(key: &str, value: &Value, selectable: &[Selectable]) -> Object {
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
            revision: 0,
            uid: text(&metadata["uid"]),
            labels: labels.map(Iterator::collect).unwrap_or_default(),
            fields: selectable.iter().map(|field| field.of(value)).collect(),
            owners: owners.map(Iterator::collect).unwrap_or_default(),
            deleting: !metadata["deletionTimestamp"].is_null(),
            bytes: Bytes::new(),
        }
    }

    /// Reads it. What is stored was written by us and is not too deep; should it be unreadable nevertheless, it is nothing.
    pub fn value(&self) -> Value {
        // Checking all of the text at once is faster than piece by piece.
        let text = str::from_utf8(&self.bytes).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_else(|error| {
            error!(key = &*self.key, %error, "a stored object cannot be read");
            Value::Null
        })
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
    /// What it is without being set: a flag is false to those who select by it.
    unset: &'static str,
}

impl Selectable {
    /// By its name, with dots between its parts.
    pub fn new(name: &str) -> Selectable {
        let is_flag = matches!(name, "spec.unschedulable" | "spec.hostNetwork");
        Selectable {
            name: name.into(),
            unset: if is_flag { "false" } else { "" },
        }
    }

    fn of(&self, object: &Value) -> Box<str> {
        let mut parts = self.name.split('.');
        match parts.try_fold(object, |value, part| value.get(part)) {
            Some(Value::String(text)) => text.as_str().into(),
            Some(Value::Bool(flag)) => flag.to_string().into(),
            Some(Value::Number(number)) => number.to_string().into(),
            Some(_) => "".into(),
            None => self.unset.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_revision_is_where_readers_look_for_it_and_nowhere_else() {
        let tricky = json!({
            "kind": "Event",
            "involvedObject": {"resourceVersion": "", "metadata": {"resourceVersion": ""}},
            "metadata": {"name": "a", "resourceVersion": "5", "annotations": {"resourceVersion": "\"resourceVersion\":\"\""}},
            "spec": {"é\"": [1, null]},
        });
        let object = Object::new("ns/a", tricky.clone(), 1234, &[]);
        let mut expected = tricky;
        expected["metadata"]["resourceVersion"] = "1234".into();
        assert_eq!(object.value(), expected);
        assert_eq!(object.revision, 1234);
        assert_eq!(&object.bytes[..], serde_json::to_vec(&expected).unwrap());
    }

    #[test]
    fn what_cannot_be_read_is_nothing_rather_than_the_end() {
        let deep = (0..200).fold(json!({}), |value, _| json!({"a": value}));
        assert_eq!(Object::new("a", deep, 7, &[]).value(), Value::Null);
    }

    #[test]
    fn an_object_without_metadata_gets_some() {
        let object = Object::new("a", json!({"kind": "X"}), 7, &[]);
        assert_eq!(
            object.value(),
            json!({"kind": "X", "metadata": {"resourceVersion": "7"}})
        );
    }
}
