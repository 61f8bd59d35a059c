//! Arguments of a plugin or an action: a map of checked values with typed look-ups.
//!
//! The reader has rejected every wrong type already, so a look-up only falls back to the default when the key is
//! absent. It stays total all the same: arguments can also be built in code.

use std::collections::BTreeMap;

/// The value of an argument.
pub use serde_json::Value;

/// The arguments of one plugin or action, ordered by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(BTreeMap<String, Value>);

impl Arguments {
    /// No arguments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The integer under `key`, or `default` if there is none.
    #[must_use]
    pub fn int(&self, key: &str, default: i64) -> i64 {
        self.get(key).and_then(Value::as_i64).unwrap_or(default)
    }

    /// The number under `key`, whole or not, or `default` if there is none.
    #[must_use]
    pub fn float(&self, key: &str, default: f64) -> f64 {
        self.get(key).and_then(Value::as_f64).unwrap_or(default)
    }

    /// The boolean under `key`, or `default` if there is none.
    #[must_use]
    pub fn bool(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(default)
    }

    /// The text under `key`.
    #[must_use]
    pub fn str(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }

    /// The duration under `key` in nanoseconds, written as in `1h30m`.
    #[must_use]
    pub fn duration_nanos(&self, key: &str) -> Option<i64> {
        self.str(key).and_then(super::parse_duration)
    }

    /// The value under `key`, of whatever kind.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// All arguments, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// What follows `prefix` in each key that starts with it, with the value: the resources of
    /// `binpack.resources.`, say.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.iter()
            .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value)))
    }

    /// Sets an argument, and returns what was there.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(key.into(), value.into())
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Value)> for Arguments {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}
