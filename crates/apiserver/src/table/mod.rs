//! Tables, as `kubectl get` prints them: columns of built-in kinds, and those that CRDs define.

mod columns;
mod path;
mod pod;
#[cfg(test)]
mod tests;
mod workload;

use crate::fault::{Fault, FieldError};
use crate::resources::Resource;
use crate::store::Object;
use serde_json::{Value, json};

/// How much of an object is in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// All of it: whoever sorts or selects by its fields needs them.
    Object,
    /// What it is called.
    Metadata,
    /// Nothing.
    None,
}

impl Include {
    /// Reads what a client asks for.
    pub fn read(text: Option<&str>) -> Result<Include, Fault> {
        match text.unwrap_or_default() {
            "" | "Metadata" => Ok(Include::Metadata),
            "Object" => Ok(Include::Object),
            "None" => Ok(Include::None),
            other => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid("includeObject", other, detail);
                let message = format!("Unable to convert to Table as requested: {error}");
                Err(Fault::bad_request(message))
            }
        }
    }

    fn of(self, resource: &Resource, object: &Object, value: &Value) -> Value {
        // The end of the state is told in metadata, which nobody can do without.
        let ends_state = !value["metadata"]["annotations"]["k8s.io/initial-events-end"].is_null();
        match self {
            Include::Object => crate::verbs::in_version(resource, object),
            Include::None if !ends_state => Value::Null,
            Include::Metadata | Include::None => crate::http::partial(value),
        }
    }
}

/// The cells of an object.
type Cells = Box<dyn Fn(&Value) -> Vec<Value>>;

/// A table of objects.
pub fn table(
    resource: &Resource,
    objects: &[&Object],
    include: Include,
    metadata: Value,
    now: jiff::Timestamp,
) -> Value {
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
            let mut row = vec![columns::name(resource, &value)];
            row.extend(cells(&value));
            json!({"cells": row, "object": include.of(resource, object, &value)})
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
