//! Server-side apply: many managers, each with an opinion on some fields of one object.
//!
//! ```text
//! live + configuration ──merge──> object;  fields that only this manager had, and has no longer, go
//!        │                          │
//!        └── what would change, and is somebody else's: a conflict
//! ```

mod fields;
#[cfg(test)]
mod tests;

pub use fields::Fields;

use crate::fault::Fault;
use crate::schema::Schema;
use fields::{Shape, step_of};
use serde_json::{Map, Value, json};

/// Managers of one object, at most; the oldest of those that update are put together beyond.
const MOST_UPDATERS: usize = 10;
/// The manager of what nobody was recorded for.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager that several old ones become.
const ANCIENT: &str = "ancient-changes";

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer<'a> {
    /// Name of the manager.
    pub manager: &'a str,
    /// Version of the API that is written in.
    pub api_version: &'a str,
    /// Subresource that is written through; empty for the object itself.
    pub subresource: &'a str,
    /// The time, as the object gets it.
    pub now: &'a str,
}

#[derive(Clone, Debug)]
struct Entry {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    time: String,
    fields: Fields,
}

impl Entry {
    fn new(writer: &Writer<'_>, operation: &str) -> Entry {
        Entry {
            manager: writer.manager.to_owned(),
            operation: operation.to_owned(),
            api_version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
            time: writer.now.to_owned(),
            fields: Fields::default(),
        }
    }

    fn is(&self, writer: &Writer<'_>, operation: &str) -> bool {
        self.manager == writer.manager
            && self.operation == operation
            && self.subresource == writer.subresource
    }

    fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            shown = format!("{shown} with subresource {:?}", self.subresource);
        }
        if self.operation == "Update" {
            shown = format!("{shown} using {}", self.api_version);
        }
        shown
    }
}

fn read(object: &Value) -> Vec<Entry> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    entries
        .map(|entry| Entry {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: text(entry, "time"),
            fields: Fields::read(&entry["fieldsV1"]),
        })
        .collect()
}

fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    put_old_ones_together(&mut entries);
    // Those that apply come first, then the others by age.
    entries.sort_by(|a, b| {
        let rank = |entry: &Entry| {
            (
                entry.operation != "Apply",
                entry.time.clone(),
                entry.manager.clone(),
            )
        };
        rank(a).cmp(&rank(b))
    });
    let written: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let mut value = json!({
                "manager": entry.manager,
                "operation": entry.operation,
                "apiVersion": entry.api_version,
                "time": entry.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": entry.fields.write(),
            });
            if !entry.subresource.is_empty() {
                value["subresource"] = entry.subresource.as_str().into();
            }
            value
        })
        .collect();
    let metadata = &mut object["metadata"];
    if written.is_empty() {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("managedFields");
        }
    } else {
        metadata["managedFields"] = written.into();
    }
}

fn put_old_ones_together(entries: &mut Vec<Entry>) {
    loop {
        let mut updaters: Vec<usize> = (0..entries.len())
            .filter(|at| entries[*at].operation == "Update")
            .collect();
        if updaters.len() <= MOST_UPDATERS {
            return;
        }
        updaters.sort_by(|a, b| entries[*a].time.cmp(&entries[*b].time));
        let (keep, gone) = (updaters[0], updaters[1]);
        let fields = entries[gone].fields.clone();
        entries[keep].fields.add(&fields);
        entries[keep].manager = ANCIENT.to_owned();
        entries.remove(gone);
    }
}

/// Fields that no manager owns: they say which object it is, or are the server's.
const NOBODYS: [&[&str]; 12] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "deletionGracePeriodSeconds"],
    &["metadata", "generateName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
    &["metadata", "uid"],
];

fn owned(object: &Value, schema: &Schema) -> Fields {
    let mut fields = Fields::of(object, Some(schema));
    strip(&mut fields);
    fields
}

fn strip(fields: &mut Fields) {
    for path in NOBODYS {
        fields.drop_path(path);
    }
    let empty = fields
        .below
        .get("f:metadata")
        .is_some_and(|metadata| metadata.below.is_empty());
    if empty {
        fields.below.remove("f:metadata");
    }
}

/// Whether the managers of an object are recorded.
pub fn is_tracked(object: &Value) -> bool {
    object["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|entries| !entries.is_empty())
}

/// Applies a configuration to an object; `Null` when there is none yet.
pub fn apply(
    live: &Value,
    configuration: &Value,
    schema: &Schema,
    writer: &Writer<'_>,
    force: bool,
    has_status: bool,
) -> Result<Value, Fault> {
    let mut entries = read(live);
    if entries.is_empty() && !live.is_null() {
        let before = Writer {
            manager: BEFORE_FIRST_APPLY,
            subresource: "",
            ..writer.clone()
        };
        let mut entry = Entry::new(&before, "Update");
        entry.fields = owned(live, schema);
        entries.push(entry);
    }
    let mut configuration = configuration.clone();
    if let Some(metadata) = configuration["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        metadata.remove("uid");
        metadata.remove("creationTimestamp");
    }
    let mut wanted = owned(&configuration, schema);
    match writer.subresource {
        "status" => wanted = wanted.only("status"),
        _ if has_status => wanted.drop_path(&["status"]),
        _ => {}
    }
    let mut object = if live.is_null() {
        Value::Object(Map::new())
    } else {
        live.clone()
    };
    merge(&mut object, &configuration, Some(schema));
    let changed = changed(live, &object, Some(schema)).intersection(&wanted);
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !entry.is(writer, "Apply")) {
        let theirs = changed.intersection(&entry.fields);
        if theirs.is_empty() {
            continue;
        }
        if force {
            entry.fields = entry.fields.minus(&theirs);
        } else {
            conflicts.push((entry.shown(), theirs.paths()));
        }
    }
    if !conflicts.is_empty() {
        return Err(conflict(&conflicts));
    }
    let mine = entries.iter().position(|entry| entry.is(writer, "Apply"));
    let before = mine.map(|at| entries[at].fields.clone()).unwrap_or_default();
    let mut kept = wanted.clone();
    for (at, entry) in entries.iter().enumerate() {
        if Some(at) != mine {
            kept.add(&entry.fields);
        }
    }
    remove(&mut object, &before.minus(&wanted), &kept, Some(schema));
    match mine {
        Some(at) if entries[at].fields == wanted && object == *live => {}
        Some(at) => {
            entries[at].fields = wanted;
            entries[at].api_version = writer.api_version.to_owned();
            if object != *live {
                entries[at].time = writer.now.to_owned();
            }
        }
        None => {
            let mut entry = Entry::new(writer, "Apply");
            entry.fields = wanted;
            entries.push(entry);
        }
    }
    write(&mut object, entries);
    Ok(object)
}

fn conflict(conflicts: &[(String, Vec<String>)]) -> Fault {
    let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    let said: Vec<String> = conflicts
        .iter()
        .map(|(manager, paths)| match paths.as_slice() {
            [path] => format!("conflict with {manager}: {path}"),
            paths => format!("conflicts with {manager}:\n- {}", paths.join("\n- ")),
        })
        .collect();
    let plural = if count == 1 { "" } else { "s" };
    let message = format!("Apply failed with {count} conflict{plural}: {}", said.join("\n"));
    let causes: Vec<Value> = conflicts
        .iter()
        .flat_map(|(manager, paths)| {
            let cause = move |path: &String| {
                json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path})
            };
            paths.iter().map(cause)
        })
        .collect();
    let mut fault = Fault::new(409, "Conflict", message);
    fault.details = Some(json!({"causes": causes}));
    fault
}

/// Records who changed what in a write that was no apply.
pub fn track(old: &Value, object: &mut Value, schema: &Schema, writer: &Writer<'_>) {
    // A client that empties the list asks for it to be forgotten.
    let forgets = object["metadata"]["managedFields"]
        .as_array()
        .is_some_and(Vec::is_empty);
    if forgets {
        write(object, Vec::new());
        return;
    }
    let sent = read(object);
    let mut entries = if sent.is_empty() { read(old) } else { sent };
    let mut changed = changed(old, object, Some(schema));
    strip(&mut changed);
    let there = owned(object, schema);
    let mut gone = Fields::default();
    for entry in &entries {
        gone.add(&entry.fields.minus(&there));
    }
    for entry in &mut entries {
        entry.fields = entry.fields.minus(&gone);
        if !entry.is(writer, "Update") {
            entry.fields = entry.fields.minus(&changed);
        }
    }
    if !changed.is_empty() {
        let at = entries.iter().position(|entry| entry.is(writer, "Update"));
        let at = at.unwrap_or_else(|| {
            entries.push(Entry::new(writer, "Update"));
            entries.len() - 1
        });
        entries[at].fields.add(&changed);
        entries[at].time = writer.now.to_owned();
        entries[at].api_version = writer.api_version.to_owned();
    }
    write(object, entries);
}

/// Merges a configuration into an object, lists by their keys.
fn merge(target: &mut Value, patch: &Value, schema: Option<&Schema>) {
    match Shape::of(patch, schema) {
        Shape::Fields(fields) if target.is_object() || !fields.is_empty() => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let Value::Object(into) = target else { return };
            for (name, value) in fields {
                let known = schema.and_then(|schema| schema.field(name)).map(|known| &**known);
                merge(into.entry(name.clone()).or_insert(Value::Null), value, known);
            }
        }
        Shape::Items(items) if target.is_array() => {
            let Value::Array(into) = target else { return };
            let known = schema.and_then(|schema| schema.items.as_deref());
            for (step, value) in items {
                let at = into.iter().position(|item| step_of(item, schema) == step);
                match at {
                    Some(at) => merge(&mut into[at], value, known),
                    None => into.push(value.clone()),
                }
            }
        }
        _ => *target = patch.clone(),
    }
}

/// The fields of `new` that `old` does not have, or has with another value.
fn changed(old: &Value, new: &Value, schema: Option<&Schema>) -> Fields {
    if old == new {
        return Fields::default();
    }
    let everything = || Fields::of(new, schema);
    let below_all = |pairs: Vec<(String, Option<&Value>, &Value, Option<&Schema>)>| {
        let mut fields = Fields::default();
        for (step, old, new, known) in pairs {
            let below = match old {
                Some(old) => changed(old, new, known),
                None => {
                    let mut all = Fields::of(new, known);
                    all.member |= !step.starts_with("f:");
                    all
                }
            };
            if !below.is_empty() {
                fields.below.insert(step, below);
            }
        }
        fields
    };
    match (Shape::of(old, schema), Shape::of(new, schema)) {
        (Shape::Fields(old), Shape::Fields(new)) if !new.is_empty() => {
            let pairs = new.iter().map(|(name, value)| {
                let known = schema.and_then(|schema| schema.field(name)).map(|known| &**known);
                (format!("f:{name}"), old.get(name), value, known)
            });
            below_all(pairs.collect())
        }
        (Shape::Items(old), Shape::Items(new)) if !new.is_empty() => {
            let known = schema.and_then(|schema| schema.items.as_deref());
            let pairs = new.into_iter().map(|(step, value)| {
                let before = old
                    .iter()
                    .find(|(other, _)| *other == step)
                    .map(|(_, value)| *value);
                (step, before, value, known)
            });
            below_all(pairs.collect())
        }
        _ => everything(),
    }
}

/// Removes fields, unless somebody keeps them or something in them.
fn remove(target: &mut Value, gone: &Fields, kept: &Fields, schema: Option<&Schema>) {
    let stays = |step: &str| kept.below.get(step).is_some_and(|kept| !kept.is_empty());
    match target {
        Value::Object(fields) => {
            for (step, below) in &gone.below {
                let Some(name) = step.strip_prefix("f:") else {
                    continue;
                };
                let known = schema.and_then(|schema| schema.field(name)).map(|known| &**known);
                if !stays(step) && (below.member || only_ours(fields.get(name), below, known)) {
                    fields.remove(name);
                    continue;
                }
                let nothing = Fields::default();
                if let Some(value) = fields.get_mut(name) {
                    remove(value, below, kept.below.get(step).unwrap_or(&nothing), known);
                }
            }
        }
        Value::Array(items) => {
            let known = schema.and_then(|schema| schema.items.as_deref());
            items.retain_mut(|item| {
                let step = step_of(item, schema);
                let Some(below) = gone.below.get(&step) else {
                    return true;
                };
                if below.member && !stays(&step) {
                    return false;
                }
                let nothing = Fields::default();
                remove(item, below, kept.below.get(&step).unwrap_or(&nothing), known);
                true
            });
        }
        _ => {}
    }
}

/// Everything that is there is to go.
fn only_ours(value: Option<&Value>, gone: &Fields, schema: Option<&Schema>) -> bool {
    value.is_some_and(|value| Fields::of(value, schema).minus(gone).is_empty())
}
