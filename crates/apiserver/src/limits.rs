//! How large and how deep an object may be, however it came about: patches and webhooks make more of one than was sent.

use crate::fault::Fault;
use serde_json::Value;

/// Bytes of a body, and of an object, at most; as with Kubernetes.
pub const LARGEST: usize = 3 << 20;
/// Levels of an object, at most. Readers of JSON, ours too, stop at 128, and lists and reviews wrap it in a few more.
pub const DEEPEST: usize = 100;

/// Refuses an object that could be stored but not be read again.
pub fn check(object: &Value) -> Result<(), Fault> {
    if depth(object) > DEEPEST {
        let message = format!("the object has more than {DEEPEST} levels");
        return Err(Fault::bad_request(message));
    }
    if size(object) > LARGEST {
        return Err(Fault::too_large(LARGEST));
    }
    Ok(())
}

/// Levels of objects and lists.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Bytes as JSON, roughly: escapes are not counted, and numbers are as long as most are. Every write is measured, so it
/// must not cost as much as writing.
pub fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let below = |(name, value): (&String, &Value)| name.len() + 4 + size(value);
            2 + fields.iter().map(below).sum::<usize>()
        }
        Value::Array(items) => 2 + items.iter().map(|item| 1 + size(item)).sum::<usize>(),
        Value::String(text) => text.len() + 2,
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn depth_and_size_are_those_of_the_json() {
        assert_eq!(depth(&json!(1)), 0);
        assert_eq!(depth(&json!({"a": [1, {"b": {}}], "c": {}})), 4);
        let value = json!({"a": ["some text", 1234, {"b": null}], "c": true});
        let written = value.to_string().len();
        assert!(size(&value).abs_diff(written) < 5, "{} {written}", size(&value));
    }

    #[test]
    fn what_is_too_large_or_too_deep_is_refused() {
        let deep = (0..DEEPEST).fold(json!({}), |value, _| json!({"a": value}));
        assert_eq!(check(&deep).unwrap_err().code, 400);
        assert_eq!(check(&deep["a"]), Ok(()));
        let large = json!({"a": "x".repeat(LARGEST)});
        assert_eq!(check(&large).unwrap_err().code, 413);
    }
}
