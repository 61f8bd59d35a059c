//! The part of JSONPath that columns are written in: fields, indices, `[*]`, and filters by equality.

use serde_json::Value;

/// The values that a path leads to; the first of them, or all of them when there are several.
pub fn find(object: &Value, path: &str) -> Option<Value> {
    let mut found = vec![object];
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        let (step, after) = step(rest)?;
        found = found.into_iter().flat_map(|value| take(value, &step)).collect();
        rest = after;
    }
    match found.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        [first, ..] => Some((*first).clone()),
    }
}

enum Step<'a> {
    Field(String),
    Index(usize),
    All,
    Where(&'a str, &'a str),
}

fn step(text: &str) -> Option<(Step<'_>, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let mut name = String::new();
        let mut letters = rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
                '.' | '[' => return Some((Step::Field(name), &rest[at..])),
                letter => name.push(letter),
            }
        }
        return Some((Step::Field(name), ""));
    }
    let (inner, rest) = text.strip_prefix('[')?.split_once(']')?;
    let step = if inner == "*" {
        Step::All
    } else if let Some(filter) = inner
        .strip_prefix("?(@.")
        .and_then(|filter| filter.strip_suffix(')'))
    {
        let (field, value) = filter.split_once("==")?;
        Step::Where(field.trim(), value.trim().trim_matches(['"', '\'']))
    } else if let Ok(index) = inner.parse() {
        Step::Index(index)
    } else {
        Step::Field(inner.trim_matches(['"', '\'']).to_owned())
    };
    Some((step, rest))
}

fn take<'v>(value: &'v Value, step: &Step<'_>) -> Vec<&'v Value> {
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
        (Step::Index(at), Value::Array(items)) => items.get(*at).into_iter().collect(),
        (Step::All, Value::Array(items)) => items.iter().collect(),
        (Step::All, Value::Object(fields)) => fields.values().collect(),
        (Step::Where(field, wanted), Value::Array(items)) => items
            .iter()
            .filter(|item| item[*field].as_str() == Some(wanted))
            .collect(),
        _ => Vec::new(),
    }
}
