//! Whether two specs mean the same although they are written differently.
//!
//! A client that reads a Job and writes it back leaves out what is empty, writes `null` for unset times, and amounts and
//! durations in another form (`1000m` for `1`, `1h0m0s` for `1h`). None of that is a change.

use serde_json::{Map, Value};
use volcano_api::quantity::Quantity;
use volcano_api::time::GoDuration;

/// Fields of which an empty value is not the same as none: user 0 is root, and an empty selector selects everything.
const TELLING_WHEN_EMPTY: &[&str] = &[
    "activeDeadlineSeconds",
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "claimSelector",
    "defaultMode",
    "emptyDir",
    "enableServiceLinks",
    "exitCode",
    "expirationSeconds",
    "fsGroup",
    "highestTierAllowed",
    "hostUsers",
    "labelSelector",
    "minSuccess",
    "mode",
    "namespaceSelector",
    "optional",
    "priority",
    "privileged",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seconds",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "storageClassName",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
    "ttlSecondsAfterFinished",
    "volumeClaim",
];
/// Objects whose members are amounts, and fields that are one.
const AMOUNTS: &[&str] = &["requests", "limits", "overhead", "sizeLimit", "divisor"];
/// Fields that are durations.
const DURATIONS: &[&str] = &["timeout", "runningEstimate"];

/// Whether two specs mean the same.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    same("", a, b)
}

fn same(key: &str, a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_members(key, a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(key, a, b))
        }
        _ if a == b => true,
        _ if AMOUNTS.contains(&key) => same_read(amount, a, b),
        _ if DURATIONS.contains(&key) => same_read(duration, a, b),
        _ => false,
    }
}

fn same_members(key: &str, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    // Members of a list of amounts are amounts, whatever their names.
    let known_as = |name: &'_ str| {
        if AMOUNTS.contains(&key) {
            key.to_owned()
        } else {
            name.to_owned()
        }
    };
    let in_both = |(name, value): (&String, &Value)| match b.get(name) {
        Some(other) => {
            same(&known_as(name), value, other) || (says_nothing(name, value) && says_nothing(name, other))
        }
        None => says_nothing(name, value),
    };
    a.iter().all(in_both)
        && b.iter()
            .all(|(name, value)| a.contains_key(name) || says_nothing(name, value))
}

fn says_nothing(name: &str, value: &Value) -> bool {
    if TELLING_WHEN_EMPTY.contains(&name) {
        return value.is_null();
    }
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.iter().all(|(name, value)| says_nothing(name, value)),
    }
}

fn same_read<T: PartialEq>(read: fn(&Value) -> Option<T>, a: &Value, b: &Value) -> bool {
    matches!((read(a), read(b)), (Some(a), Some(b)) if a == b)
}

fn amount(value: &Value) -> Option<Quantity> {
    serde_json::from_value(value.clone()).ok()
}

fn duration(value: &Value) -> Option<GoDuration> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn another_form_is_no_change_and_another_meaning_is() {
        let cases = [
            ("nothing", json!({}), json!({}), true),
            ("null is nothing", json!({"a": null}), json!({}), true),
            (
                "empty is nothing",
                json!({}),
                json!({"a": "", "b": [], "c": {}, "d": false, "e": 0}),
                true,
            ),
            ("empty in another way", json!({"a": []}), json!({"a": null}), true),
            (
                "an object of nothing is nothing",
                json!({"resources": {"limits": {}}}),
                json!({}),
                true,
            ),
            ("a value is something", json!({"a": "x"}), json!({}), false),
            (
                "another value",
                json!({"a": {"b": [1, 2]}}),
                json!({"a": {"b": [1, 3]}}),
                false,
            ),
            (
                "another order of a list",
                json!({"a": [1, 2]}),
                json!({"a": [2, 1]}),
                false,
            ),
            ("a longer list", json!({"a": [1]}), json!({"a": [1, 0]}), false),
            ("root is somebody", json!({"runAsUser": 0}), json!({}), false),
            ("nobody is nobody", json!({"runAsUser": null}), json!({}), true),
            (
                "no privilege, said so",
                json!({"allowPrivilegeEscalation": false}),
                json!({}),
                false,
            ),
            (
                "everything is not nothing",
                json!({"namespaceSelector": {}}),
                json!({}),
                false,
            ),
            (
                "a volume without content is a volume",
                json!({"v": [{"emptyDir": {}}]}),
                json!({"v": [{}]}),
                false,
            ),
            (
                "amounts",
                json!({"requests": {"cpu": "1000m"}}),
                json!({"requests": {"cpu": 1}}),
                true,
            ),
            (
                "other amounts",
                json!({"limits": {"cpu": "1"}}),
                json!({"limits": {"cpu": "2"}}),
                false,
            ),
            (
                "an amount alone",
                json!({"sizeLimit": "1Gi"}),
                json!({"sizeLimit": "1024Mi"}),
                true,
            ),
            ("no amounts", json!({"a": "1000m"}), json!({"a": "1"}), false),
            (
                "durations",
                json!({"timeout": "1h"}),
                json!({"timeout": "1h0m0s"}),
                true,
            ),
            (
                "other durations",
                json!({"timeout": "1h"}),
                json!({"timeout": "2h"}),
                false,
            ),
        ];
        for (name, a, b, expected) in cases {
            assert_eq!(equal(&a, &b), expected, "{name}");
            assert_eq!(equal(&b, &a), expected, "{name}, the other way round");
        }
    }
}
