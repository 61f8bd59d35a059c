//! What tests of several controllers need.

use serde_json::{Value, json};

/// Applies a JSON merge patch.
pub fn merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, change) in patch {
        if change.is_null() {
            into.as_object_mut().expect("it was made an object").remove(key);
        } else {
            merge(&mut into[key], change);
        }
    }
}
