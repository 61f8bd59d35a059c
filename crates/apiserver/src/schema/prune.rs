//! Pruning and defaulting: what an object is made into before it is judged.

use super::trail::Trail;
use super::{Schema, Type};
use serde_json::Value;

/// Removes what the schema does not know; the paths of it.
pub fn prune(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut gone = Vec::new();
    walk(value, schema, &Trail::ROOT, &mut gone);
    gone
}

/// Unknown fields that are told, at most: a client gets them in headers.
const MOST_TOLD: usize = 100;

fn walk(value: &mut Value, schema: &Schema, path: &Trail<'_>, gone: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if schema.embedded
                || schema.r#type == Type::Any && schema.properties.is_empty() && schema.additional.is_none()
            {
                return;
            }
            let keeps = schema.preserve;
            fields.retain(|name, below| {
                if let Some(known) = schema.field(name) {
                    if below.is_object() || below.is_array() {
                        walk(below, known, &path.field(name), gone);
                    }
                    return true;
                }
                if !keeps && gone.len() < MOST_TOLD {
                    gone.push(path.field(name).to_string());
                }
                keeps
            });
        }
        Value::Array(items) => {
            let Some(known) = &schema.items else { return };
            for (at, item) in items.iter_mut().enumerate() {
                if item.is_object() || item.is_array() {
                    walk(item, known, &path.item(at), gone);
                }
            }
        }
        _ => {}
    }
}

/// Puts defaults where there is nothing. Null counts as nothing where it is no value and there is a default.
pub fn fill_defaults(value: &mut Value, schema: &Schema) {
    if !schema.has_defaults {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, known) in &schema.properties {
                if !known.has_defaults {
                    continue;
                }
                let missing = match fields.get(&**name) {
                    None => true,
                    Some(found) => found.is_null() && !known.nullable && known.default.is_some(),
                };
                if missing && let Some(default) = &known.default {
                    fields.insert(name.to_string(), default.clone());
                }
                if let Some(below) = fields.get_mut(&**name) {
                    fill_defaults(below, known);
                }
            }
            if let Some(known) = &schema.additional {
                let others = fields
                    .iter_mut()
                    .filter(|(name, _)| !schema.properties.contains_key(name.as_str()));
                others.for_each(|(_, below)| fill_defaults(below, known));
            }
        }
        Value::Array(items) => {
            if let Some(known) = &schema.items {
                items.iter_mut().for_each(|item| fill_defaults(item, known));
            }
        }
        _ => {}
    }
}

/// Removes nulls: they are fields that are not set. What is of any type keeps them, and what may be null.
pub fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, below| match schema.field(name) {
                Some(known) if known.r#type != Type::Any => {
                    drop_nulls(below, known);
                    !below.is_null() || known.nullable
                }
                _ => true,
            });
        }
        Value::Array(items) => {
            if let Some(known) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(item, known));
            }
        }
        _ => {}
    }
}
