//! Sets of fields: who owns what. The form is that of `fieldsV1`, so that it is read and written as it is.

use crate::schema::{List, Schema};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A set of fields as a tree. Steps are `f:name`, `k:{"key":"value"}`, `v:"value"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The place itself is in the set.
    pub member: bool,
    /// What is below.
    pub below: BTreeMap<String, Fields>,
}

impl Fields {
    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    /// From `fieldsV1`.
    pub fn read(value: &Value) -> Fields {
        let Some(entries) = value.as_object() else {
            return Fields::default();
        };
        let mut fields = Fields {
            member: entries.is_empty() || entries.contains_key("."),
            below: BTreeMap::new(),
        };
        for (step, below) in entries.iter().filter(|(step, _)| *step != ".") {
            fields.below.insert(step.clone(), Fields::read(below));
        }
        fields
    }

    /// As `fieldsV1`.
    pub fn write(&self) -> Value {
        let mut entries = Map::new();
        if self.member && !self.below.is_empty() {
            entries.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (step, below) in &self.below {
            entries.insert(step.clone(), below.write());
        }
        Value::Object(entries)
    }

    /// The fields that a value has.
    pub fn of(value: &Value, schema: Option<&Schema>) -> Fields {
        let leaf = || Fields {
            member: true,
            below: BTreeMap::new(),
        };
        match Shape::of(value, schema) {
            Shape::Leaf => leaf(),
            Shape::Fields(fields) if fields.is_empty() => leaf(),
            Shape::Fields(fields) => {
                let below = fields.iter().map(|(name, value)| {
                    let known = schema.and_then(|schema| schema.field(name)).map(|known| &**known);
                    (format!("f:{name}"), Fields::of(value, known))
                });
                Fields {
                    member: false,
                    below: below.collect(),
                }
            }
            Shape::Items(items) if items.is_empty() => leaf(),
            Shape::Items(items) => {
                let known = schema.and_then(|schema| schema.items.as_deref());
                let below = items.into_iter().map(|(step, value)| {
                    let mut fields = match step.starts_with("k:") {
                        true => Fields::of(value, known),
                        false => leaf(),
                    };
                    fields.member = true;
                    (step, fields)
                });
                Fields {
                    member: false,
                    below: below.collect(),
                }
            }
        }
    }

    /// What is in both; a member of this covers what the other has below it.
    pub fn intersection(&self, other: &Fields) -> Fields {
        let mut both = Fields {
            member: self.member && other.member,
            below: BTreeMap::new(),
        };
        for (step, mine) in &self.below {
            if let Some(theirs) = other.below.get(step) {
                let common = mine.intersection(theirs);
                if !common.is_empty() {
                    both.below.insert(step.clone(), common);
                }
            }
        }
        both
    }

    /// What is in this and not in the other.
    pub fn minus(&self, other: &Fields) -> Fields {
        let mut rest = Fields {
            member: self.member && !other.member,
            below: BTreeMap::new(),
        };
        for (step, mine) in &self.below {
            let left = match other.below.get(step) {
                Some(theirs) => mine.minus(theirs),
                None => mine.clone(),
            };
            if !left.is_empty() {
                rest.below.insert(step.clone(), left);
            }
        }
        rest
    }

    /// Adds another set.
    pub fn add(&mut self, other: &Fields) {
        self.member |= other.member;
        for (step, theirs) in &other.below {
            self.below.entry(step.clone()).or_default().add(theirs);
        }
    }

    /// The paths in it, as messages have them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, path: &str, paths: &mut Vec<String>) {
        if self.member {
            paths.push(path.to_owned());
        }
        for (step, below) in &self.below {
            below.collect(&format!("{path}{}", shown(step)), paths);
        }
    }

    /// Removes a path of field names.
    pub fn drop_path(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => {
                self.below.remove(&format!("f:{last}"));
            }
            [first, rest @ ..] => {
                let step = format!("f:{first}");
                if let Some(below) = self.below.get_mut(&step) {
                    below.drop_path(rest);
                    if below.is_empty() {
                        self.below.remove(&step);
                    }
                }
            }
        }
    }

    /// Keeps only what is below a field.
    pub fn only(&self, field: &str) -> Fields {
        let step = format!("f:{field}");
        let below = self.below.get(&step).cloned();
        Fields {
            member: false,
            below: below.map(|below| (step, below)).into_iter().collect(),
        }
    }
}

fn shown(step: &str) -> String {
    match step.split_at(2) {
        ("f:", name) => format!(".{name}"),
        ("k:", keys) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        (_, value) => format!("[={value}]"),
    }
}

/// How a value is owned.
pub(super) enum Shape<'a> {
    /// As a whole.
    Leaf,
    /// By its fields.
    Fields(&'a Map<String, Value>),
    /// By its items.
    Items(Vec<(String, &'a Value)>),
}

impl Shape<'_> {
    pub(super) fn of<'a>(value: &'a Value, schema: Option<&Schema>) -> Shape<'a> {
        match value {
            Value::Object(fields) if !schema.is_some_and(|schema| schema.atomic_map) => Shape::Fields(fields),
            Value::Array(items) => match schema.map(|schema| &schema.list) {
                Some(List::Map(_) | List::Set) => {
                    let named = |item| (step_of(item, schema), item);
                    Shape::Items(items.iter().map(named).collect())
                }
                _ => Shape::Leaf,
            },
            _ => Shape::Leaf,
        }
    }
}

/// The step to an item of a list.
pub(super) fn step_of(item: &Value, schema: Option<&Schema>) -> String {
    let Some(List::Map(keys)) = schema.map(|schema| &schema.list) else {
        return format!("v:{item}");
    };
    let known = schema.and_then(|schema| schema.items.as_deref());
    let mut identity = Map::new();
    for key in keys {
        let default = || {
            let known = known.and_then(|known| known.properties.get(&**key));
            let default = known.and_then(|known| known.default.clone());
            // The one key of Kubernetes' own kinds that has a default.
            default.or_else(|| (&**key == "protocol").then(|| "TCP".into()))
        };
        let value = item.get(&**key).cloned().or_else(default);
        if let Some(value) = value {
            identity.insert(key.to_string(), value);
        }
    }
    format!("k:{}", Value::Object(identity))
}
