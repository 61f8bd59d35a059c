//! Kubernetes' own merge patch: lists merge by the key of their items, as the schema says.

use crate::schema::Schema;
use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Merges a patch into an object.
pub fn merge(target: &mut Value, patch: &Value, schema: Option<&Schema>) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("replace") => {
            let mut whole = patch.clone();
            whole.remove(DIRECTIVE);
            *target = Value::Object(whole);
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(format!("Wrong patch type: {other}")),
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return Ok(());
    };
    if let Some(kept) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
        fields.retain(|name, _| kept.iter().any(|key| key == name));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_FROM) {
            let gone = value.as_array().ok_or_else(|| format!("{name} is not a list"))?;
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        let known = schema.and_then(|schema| schema.field(name)).map(|known| &**known);
        let key = known.and_then(|known| known.strategic_key.as_deref());
        match (value, key) {
            (Value::Null, _) => {
                fields.remove(name);
            }
            (Value::Array(items), Some(key)) => {
                let slot = fields
                    .entry(name.clone())
                    .or_insert_with(|| Value::Array(Vec::new()));
                let order = patch.get(&format!("{ORDER}{name}"));
                merge_list(
                    slot,
                    items,
                    key,
                    known.and_then(|known| known.items.as_deref()),
                    order,
                )
                .map_err(|problem| format!("{name}: {problem}"))?;
            }
            (Value::Object(_), _) => {
                let below = fields.entry(name.clone()).or_insert(Value::Null);
                merge(below, value, known)?;
                if value
                    .get(DIRECTIVE)
                    .is_some_and(|directive| directive == "delete")
                {
                    fields.remove(name);
                }
            }
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
    // The order of a list may be given where nothing of it changes.
    for (name, order) in patch {
        let Some(list) = name.strip_prefix(ORDER).filter(|list| !patch.contains_key(*list)) else {
            continue;
        };
        let known = schema.and_then(|schema| schema.field(list));
        let key = known.and_then(|known| known.strategic_key.as_deref());
        if let (Some(Value::Array(items)), Some(key)) = (fields.get_mut(list), key) {
            let before = items.clone();
            arrange(
                items,
                &before,
                order.as_array().map(Vec::as_slice).unwrap_or_default(),
                key,
            );
        }
    }
    Ok(())
}

fn merge_list(
    slot: &mut Value,
    patch: &[Value],
    key: &str,
    schema: Option<&Schema>,
    order: Option<&Value>,
) -> Result<(), String> {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Value::Array(items) = slot else { return Ok(()) };
    let replaces = |item: &Value| {
        item.get(DIRECTIVE)
            .is_some_and(|directive| directive == "replace")
    };
    if patch.iter().any(|item| replaces(item) && item.get(key).is_none()) {
        *items = patch.iter().filter(|item| !replaces(item)).cloned().collect();
        return Ok(());
    }
    let before = items.clone();
    for item in patch {
        if key == "*" {
            if !items.contains(item) {
                items.push(item.clone());
            }
            continue;
        }
        let identity = item
            .get(key)
            .ok_or_else(|| format!("map: {item} does not contain declared merge key: {key}"))?;
        let at = items.iter().position(|known| known.get(key) == Some(identity));
        let directive = item.get(DIRECTIVE).and_then(Value::as_str);
        match (directive, at) {
            (Some("delete"), _) => items.retain(|known| known.get(key) != Some(identity)),
            (_, Some(at)) => merge(&mut items[at], item, schema)?,
            (_, None) => {
                let mut fresh = Value::Object(Map::new());
                merge(&mut fresh, item, schema)?;
                items.push(fresh);
            }
        }
    }
    let wanted = match order {
        Some(order) => order.as_array().map(Vec::as_slice).unwrap_or_default(),
        None => patch,
    };
    arrange(items, &before, wanted, key);
    Ok(())
}

fn position(list: &[Value], item: &Value, key: &str) -> Option<usize> {
    list.iter().position(|other| match key {
        "*" => other == item,
        key => other.get(key).is_some() && other.get(key) == item.get(key),
    })
}

/// Puts the items that a patch is about in its order. Others keep theirs, before those that they were before; what is
/// new comes first, as with Kubernetes.
fn arrange(items: &mut Vec<Value>, before: &[Value], wanted: &[Value], key: &str) {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = items
        .drain(..)
        .partition(|item| position(wanted, item, key).is_some());
    named.sort_by_key(|item| position(wanted, item, key));
    others.sort_by_key(|item| position(before, item, key));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(named)) => {
                match (position(before, other, key), position(before, named, key)) {
                    (Some(other), Some(named)) => other < named,
                    _ => false,
                }
            }
        };
        items.extend(if other_first { others.next() } else { named.next() });
    }
}
