//! JSON patches (RFC 6902), as far as defaults need them: members are added and replaced.

use serde::Serialize;
use serde_json::{Map, Value};

/// Changes to an object, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Patch(Vec<Operation>);

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// What is done.
    pub op: Op,
    /// Where, as a JSON pointer.
    pub path: String,
    /// The new value.
    pub value: Value,
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Sets a member, whether or not it is there; `-` at the end of the path appends to a list.
    Add,
    /// Sets a member that is there.
    Replace,
}

impl Patch {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The changes in order.
    pub fn operations(&self) -> &[Operation] {
        &self.0
    }

    pub(crate) fn add(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.push(Op::Add, path.into(), value.into());
    }

    pub(crate) fn replace(&mut self, path: impl Into<String>, value: impl Into<Value>) {
        self.push(Op::Replace, path.into(), value.into());
    }

    fn push(&mut self, op: Op, path: String, value: Value) {
        self.0.push(Operation { op, path, value });
    }

    /// Puts an empty object under a top-level key before everything else if the changes need one that is not there:
    /// a patch does not make parents.
    pub(crate) fn with_parent(mut self, key: &str, object: &Value) -> Self {
        let below = format!("/{key}/");
        let needed = self.0.iter().any(|operation| operation.path.starts_with(&below));
        if needed && !object.get(key).is_some_and(Value::is_object) {
            let path = format!("/{key}");
            let value = Value::Object(Map::new());
            self.0.insert(
                0,
                Operation {
                    op: Op::Add,
                    path,
                    value,
                },
            );
        }
        self
    }

    /// Carries the changes out on an object.
    ///
    /// # Errors
    /// The path of the first change whose parent, or whose member to be replaced, is not there. The object is then
    /// changed in part.
    pub fn apply(&self, object: &mut Value) -> Result<(), String> {
        for operation in &self.0 {
            operation
                .apply(object)
                .ok_or_else(|| format!("nothing is at {}", operation.path))?;
        }
        Ok(())
    }
}

impl Operation {
    fn apply(&self, object: &mut Value) -> Option<()> {
        let (parent, last) = self.path.rsplit_once('/')?;
        let key = last.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(parent)? {
            Value::Object(members) => {
                if self.op == Op::Replace && !members.contains_key(&key) {
                    return None;
                }
                members.insert(key, self.value.clone());
            }
            Value::Array(items) if self.op == Op::Add && key == "-" => items.push(self.value.clone()),
            _ => return None,
        }
        Some(())
    }
}

/// A key as a part of a path.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_are_carried_out_in_order() {
        let mut patch = Patch::default();
        patch.add("/spec/queue", "q");
        patch.replace("/spec/queue", "r");
        patch.add("/spec/list/-", 2);
        patch.add(format!("/metadata/{}", escape("a/b~c")), true);
        let mut object = json!({"metadata": {}, "spec": {"list": [1]}});
        patch.apply(&mut object).unwrap();
        assert_eq!(
            object,
            json!({"metadata": {"a/b~c": true}, "spec": {"queue": "r", "list": [1, 2]}})
        );
    }

    #[test]
    fn what_has_no_place_is_an_error() {
        let mut absent = Patch::default();
        absent.replace("/spec/queue", "q");
        let mut orphan = Patch::default();
        orphan.add("/spec/a/b", 1);
        for (patch, path) in [(absent, "/spec/queue"), (orphan, "/spec/a/b")] {
            let error = patch.apply(&mut json!({"spec": {}})).unwrap_err();
            assert_eq!(error, format!("nothing is at {path}"));
        }
    }

    #[test]
    fn a_parent_is_made_only_where_it_is_missing() {
        let mut patch = Patch::default();
        patch.add("/spec/queue", "q");
        let made = patch.clone().with_parent("spec", &json!({"spec": null}));
        let mut object = json!({});
        made.apply(&mut object).unwrap();
        assert_eq!(object, json!({"spec": {"queue": "q"}}));
        assert_eq!(patch.clone().with_parent("spec", &json!({"spec": {}})), patch);
        assert!(Patch::default().with_parent("spec", &json!({})).is_empty());
    }

    #[test]
    fn the_wire_form_is_a_list_of_operations() {
        let mut patch = Patch::default();
        patch.add("/a", 1);
        patch.replace("/b", "x");
        assert_eq!(
            serde_json::to_string(&patch).unwrap(),
            r#"[{"op":"add","path":"/a","value":1},{"op":"replace","path":"/b","value":"x"}]"#
        );
    }
}
