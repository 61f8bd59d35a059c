//! Patches: the three forms that change a part of an object. Server-side apply is in [`crate::apply`].

mod json;
mod strategic;
#[cfg(test)]
mod tests;

pub use json::{apply as json_patch, parse as parse_json_patch};
pub use strategic::merge as strategic_merge;

use serde_json::{Map, Value};

/// RFC 7386: objects merge, null removes, everything else is replaced.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
