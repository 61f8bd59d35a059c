//! RFC 6902: a list of operations on paths.

use crate::limits::{DEEPEST, LARGEST, depth, size};
use serde_json::Value;

/// Operations of a patch, at most.
const MOST_OPERATIONS: usize = 10_000;

/// One operation.
#[derive(Debug)]
pub struct Operation {
    op: String,
    path: Vec<String>,
    from: Vec<String>,
    value: Option<Value>,
}

/// Reads a patch.
pub fn parse(body: &Value) -> Result<Vec<Operation>, String> {
    let operations = body.as_array().ok_or("a JSON patch is a list of operations")?;
    if operations.len() > MOST_OPERATIONS {
        let count = operations.len();
        return Err(format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {count}"
        ));
    }
    operations.iter().map(operation).collect()
}

fn operation(operation: &Value) -> Result<Operation, String> {
    let text = |key: &str| operation[key].as_str().map(str::to_owned);
    let op = text("op").ok_or("an operation of a JSON patch has no \"op\"")?;
    if !matches!(
        op.as_str(),
        "add" | "remove" | "replace" | "move" | "copy" | "test"
    ) {
        return Err(format!("unknown operation {op:?} in a JSON patch"));
    }
    let path = text("path").ok_or_else(|| format!("operation {op:?} has no \"path\""))?;
    let value = operation.get("value").cloned();
    if value.is_none() && matches!(op.as_str(), "add" | "replace") {
        return Err(format!("operation {op:?} at {path:?} has no \"value\""));
    }
    Ok(Operation {
        path: split(&path)?,
        from: split(&text("from").unwrap_or_default())?,
        op,
        value,
    })
}

fn split(path: &str) -> Result<Vec<String>, String> {
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let path = path
        .strip_prefix('/')
        .ok_or_else(|| format!("path {path:?} does not begin with a slash"))?;
    Ok(path
        .split('/')
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect())
}

/// Applies all operations, or says which one cannot be.
pub fn apply(target: &mut Value, operations: &[Operation]) -> Result<(), String> {
    let mut copied = 0;
    for operation in operations {
        let shown = || format!("{} operation at /{}", operation.op, operation.path.join("/"));
        one(target, operation, &mut copied).map_err(|problem| format!("{}: {problem}", shown()))?;
    }
    Ok(())
}

/// Applies one operation; `copied` counts the bytes of all copies, which double what is there in every operation.
fn one(target: &mut Value, operation: &Operation, copied: &mut usize) -> Result<(), String> {
    let value = || operation.value.clone().unwrap_or_default();
    match operation.op.as_str() {
        "add" => add(target, &operation.path, value()),
        "remove" => remove(target, &operation.path).map(drop),
        "replace" => {
            let value = value();
            fits(&operation.path, &value)?;
            let slot = find(target, &operation.path).ok_or("there is nothing to replace")?;
            *slot = value;
            Ok(())
        }
        "move" => {
            let moved = remove(target, &operation.from)?;
            add(target, &operation.path, moved)
        }
        "copy" => {
            let source = find(target, &operation.from).ok_or("there is nothing to copy")?;
            *copied += size(source);
            if *copied > LARGEST {
                return Err(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit \
                     {LARGEST}"
                ));
            }
            let copy = source.clone();
            add(target, &operation.path, copy)
        }
        _ => match find(target, &operation.path) {
            Some(found) if *found == value() => Ok(()),
            None if operation.value.as_ref().is_none_or(Value::is_null) => Ok(()),
            _ => Err("the value is not the tested one".to_owned()),
        },
    }
}

fn find<'v>(target: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(target, |value, part| match value {
        Value::Object(fields) => fields.get_mut(part),
        Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Nothing gets so deep that it cannot be read, or dropped, on this stack.
fn fits(path: &[String], value: &Value) -> Result<(), String> {
    if path.len() + depth(value) > DEEPEST {
        return Err(format!("the object would have more than {DEEPEST} levels"));
    }
    Ok(())
}

fn add(target: &mut Value, path: &[String], value: Value) -> Result<(), String> {
    fits(path, &value)?;
    let Some((last, before)) = path.split_last() else {
        *target = value;
        return Ok(());
    };
    match find(target, before).ok_or("its parent is missing")? {
        Value::Object(fields) => {
            fields.insert(last.clone(), value);
        }
        Value::Array(items) => {
            let at = if last == "-" {
                Some(items.len())
            } else {
                last.parse().ok()
            };
            let at = at
                .filter(|at| *at <= items.len())
                .ok_or("the index is outside of the list")?;
            items.insert(at, value);
        }
        _ => return Err("its parent is neither an object nor a list".to_owned()),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &[String]) -> Result<Value, String> {
    let (last, before) = path.split_last().ok_or("the whole object cannot be removed")?;
    let missing = "there is nothing to remove";
    match find(target, before).ok_or(missing)? {
        Value::Object(fields) => fields.remove(last).ok_or_else(|| missing.to_owned()),
        Value::Array(items) => {
            let at = last.parse().ok().filter(|at| *at < items.len()).ok_or(missing)?;
            Ok(items.remove(at))
        }
        _ => Err(missing.to_owned()),
    }
}
