//! Tables, as `kubectl get` prints them: columns of built-in kinds, and those that CRDs define.

mod columns;
mod path;
#[cfg(test)]
mod tests;

use crate::resources::Resource;
use crate::store::Object;
use serde_json::{Value, json};

/// The cells of an object.
type Cells = Box<dyn Fn(&Value) -> Vec<Value>>;

/// A table of objects.
pub fn table(resource: &Resource, objects: &[&Object], metadata: Value, now: jiff::Timestamp) -> Value {
    let (definitions, cells): (Vec<Value>, Cells) = if resource.is_custom {
        let custom = resource.columns.clone();
        let definitions = custom.iter().map(|column| column.definition.clone()).collect();
        let cells = move |object: &Value| {
            let cell = |column: &crate::resources::Column| {
                let found = path::find(object, &column.path);
                let is_date = column.definition["type"] == "date";
                shown(found, is_date, now)
            };
            custom.iter().map(cell).collect()
        };
        (definitions, Box::new(cells))
    } else {
        let columns = columns::of(resource);
        let definitions = columns.iter().map(columns::Column::definition).collect();
        let cells = move |object: &Value| columns.iter().map(|column| (column.value)(object, now)).collect();
        (definitions, Box::new(cells))
    };
    let mut all = vec![json!({
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "Name must be unique within a namespace.",
        "priority": 0,
    })];
    all.extend(definitions);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let value = object.value();
            let mut row = vec![Value::from(object.name())];
            row.extend(cells(&value));
            json!({"cells": row, "object": crate::http::partial(&value)})
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": all,
        "rows": rows,
    })
}

fn shown(found: Option<Value>, is_date: bool, now: jiff::Timestamp) -> Value {
    match found {
        Some(Value::String(text)) if is_date => age(&text, now).into(),
        Some(Value::String(text)) => text.into(),
        Some(Value::Null) | None if is_date => "<unknown>".into(),
        Some(Value::Null) | None => Value::Null,
        Some(other @ (Value::Bool(_) | Value::Number(_))) => other,
        Some(other) => other.to_string().into(),
    }
}

/// How long ago a time is, as kubectl says it.
pub fn age(time: &str, now: jiff::Timestamp) -> String {
    let Ok(then) = time.parse::<jiff::Timestamp>() else {
        return "<unknown>".to_owned();
    };
    duration(now.as_second() - then.as_second())
}

/// Two units at the most, the smaller one only while it says something.
fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |large: i64, name: &str, unit: i64, small: &str| match (seconds % large) / unit {
        0 => format!("{}{name}", seconds / large),
        rest => format!("{}{name}{rest}{small}", seconds / large),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}
