//! Validation, with the messages of Kubernetes: tools and people know them.

use super::trail::Trail;
use super::{Limits, List, Rule, Schema, Type};
use crate::cel::Scope;
use crate::fault::{FieldError, Wrong};
use serde_json::Value;

/// Errors that are told, at most.
const MOST_TOLD: usize = 100;

/// Said when rules were not asked.
const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing \
     errors to complete validation";

fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.wrong,
        Wrong::NotSupported | Wrong::Required | Wrong::TooLong | Wrong::TooMany | Wrong::Type
    )
}

/// What is wrong with a value; `old` is what it was before, for rules about changes.
pub fn validate(value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(value, schema, &Trail::ROOT, &mut errors);
    if !schema.has_rules {
        errors.truncate(MOST_TOLD);
        return errors;
    }
    // Rules rely on types: they are not asked of values that break them.
    if errors.iter().any(blocks_rules) {
        errors.push(FieldError::invalid("<nil>", Value::Null, UNCHECKED));
    } else {
        rules(value, old, schema, &Trail::ROOT, &mut errors);
    }
    errors.truncate(MOST_TOLD);
    errors
}

/// The path as the words after it begin: the root has none.
fn body(path: &Trail<'_>) -> String {
    match path.is_root() {
        true => "<root> in body".to_owned(),
        false => format!("{path} in body"),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn fits(value: &Value, r#type: Type) -> bool {
    match r#type {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => is_whole(value),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntOrString => value.is_string() || is_whole(value),
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn wanted(r#type: Type) -> &'static str {
    match r#type {
        Type::Any => "",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::IntOrString => "integer,string",
    }
}

fn node(value: &Value, schema: &Schema, path: &Trail<'_>, errors: &mut Vec<FieldError>) {
    if errors.len() >= MOST_TOLD || value.is_null() && schema.nullable {
        return;
    }
    if !fits(value, schema.r#type) {
        let found = type_name(value);
        let detail = format!(
            "{} must be of type {}: {found:?}",
            body(path),
            wanted(schema.r#type)
        );
        errors.push(FieldError::new(
            Wrong::Type,
            path.to_string(),
            found.into(),
            detail,
        ));
        return;
    }
    if let Some(limits) = &schema.limits {
        limited(value, limits, path, errors);
    }
    match value {
        Value::Object(fields) => {
            for name in &schema.required {
                if !fields.contains_key(&**name) {
                    errors.push(FieldError::required(path.field(name).to_string(), ""));
                }
            }
            for (name, value) in fields {
                if let Some(known) = schema.field(name) {
                    node(value, known, &path.field(name), errors);
                }
            }
        }
        Value::Array(items) => {
            duplicates(items, &schema.list, path, errors);
            if let Some(known) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    node(item, known, &path.item(at), errors);
                }
            }
        }
        _ => {}
    }
}

fn duplicates(items: &[Value], list: &List, path: &Trail<'_>, errors: &mut Vec<FieldError>) {
    let identity = |item: &Value| match list {
        List::Atomic => None,
        List::Set => Some(item.to_string()),
        List::Map(keys) => {
            let parts: Vec<String> = keys.iter().map(|key| item[&**key].to_string()).collect();
            Some(parts.join("\n"))
        }
    };
    let mut seen = std::collections::BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(identity) = identity(item)
            && !seen.insert(identity)
        {
            let shown = match list {
                List::Map(keys) => keys
                    .iter()
                    .map(|key| (key.to_string(), item[&**key].clone()))
                    .collect(),
                _ => item.clone(),
            };
            errors.push(FieldError::new(
                Wrong::Duplicate,
                path.item(at).to_string(),
                shown,
                "",
            ));
        }
    }
}

fn limited(value: &Value, limits: &Limits, path: &Trail<'_>, errors: &mut Vec<FieldError>) {
    let mut wrong = |detail: String| {
        errors.push(FieldError::invalid(
            path.to_string(),
            value.clone(),
            format!("{} {detail}", body(path)),
        ));
    };
    if let Some(number) = value.as_f64() {
        match limits.minimum {
            Some((least, false)) if number < least => {
                wrong(format!("should be greater than or equal to {least}"))
            }
            Some((least, true)) if number <= least => wrong(format!("should be greater than {least}")),
            _ => {}
        }
        match limits.maximum {
            Some((most, false)) if number > most => wrong(format!("should be less than or equal to {most}")),
            Some((most, true)) if number >= most => wrong(format!("should be less than {most}")),
            _ => {}
        }
        if limits
            .multiple_of
            .is_some_and(|factor| factor != 0.0 && number % factor != 0.0)
        {
            wrong(format!(
                "should be a multiple of {}",
                limits.multiple_of.unwrap_or_default()
            ));
        }
    }
    if let Value::String(text) = value {
        let letters = text.chars().count();
        if let Some(least) = limits.length.0.filter(|least| letters < *least) {
            wrong(format!("should be at least {least} chars long"));
        }
        if let Some((regex, pattern)) = &limits.pattern
            && !regex.is_match(text)
        {
            wrong(format!("should match '{pattern}'"));
        }
        if !well_formed(text, &limits.format) {
            wrong(format!("must be of type {}: {text:?}", limits.format));
        }
        if let Some(most) = limits.length.1.filter(|most| letters > *most) {
            let detail = format!("may not be more than {most} bytes");
            errors.push(FieldError::new(
                Wrong::TooLong,
                path.to_string(),
                Value::Null,
                detail,
            ));
        }
    }
    counted(value, limits, path, errors);
    if let Some(values) = &limits.values
        && !values.contains(value)
    {
        let texts: Vec<String> = values.iter().map(plain).collect();
        errors.push(FieldError::not_supported(path.to_string(), value.clone(), &texts));
    }
    combined(value, limits, path, errors);
}

fn counted(value: &Value, limits: &Limits, path: &Trail<'_>, errors: &mut Vec<FieldError>) {
    let (count, bounds, what) = match value {
        Value::Array(items) => (items.len(), limits.items, "items"),
        Value::Object(fields) => (fields.len(), limits.properties, "properties"),
        _ => return,
    };
    if let Some(least) = bounds.0.filter(|least| count < *least) {
        let detail = format!("{} should have at least {least} {what}", body(path));
        errors.push(FieldError::invalid(path.to_string(), count, detail));
    }
    if let Some(most) = bounds.1.filter(|most| count > *most) {
        let detail = format!("must have at most {most} items");
        errors.push(FieldError::new(
            Wrong::TooMany,
            path.to_string(),
            count.into(),
            detail,
        ));
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn combined(value: &Value, limits: &Limits, path: &Trail<'_>, errors: &mut Vec<FieldError>) {
    let holds = |schema: &Schema| {
        let mut found = Vec::new();
        node(value, schema, path, &mut found);
        found.is_empty()
    };
    for schema in &limits.all_of {
        node(value, schema, path, errors);
    }
    let shown = || Value::from("");
    let mut wrong = |what: &str| {
        errors.push(FieldError::invalid(
            path.to_string(),
            shown(),
            format!("{} {what}", quoted(path)),
        ));
    };
    if !limits.any_of.is_empty() && !limits.any_of.iter().any(holds) {
        wrong("must validate at least one schema (anyOf)");
    }
    if !limits.one_of.is_empty() && limits.one_of.iter().filter(|schema| holds(schema)).count() != 1 {
        wrong("must validate one and only one schema (oneOf)");
    }
    if limits.not.as_ref().is_some_and(|schema| holds(schema)) {
        wrong("must not validate the schema (not)");
    }
}

fn quoted(path: &Trail<'_>) -> String {
    match path.is_root() {
        true => "\"<root>\"".to_owned(),
        false => format!("{:?}", path.to_string()),
    }
}

fn well_formed(text: &str, format: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "uuid" => uuid::Uuid::parse_str(text).is_ok(),
        _ => true,
    }
}

fn rules(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    path: &Trail<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !schema.has_rules || errors.len() >= MOST_TOLD {
        return;
    }
    for rule in &schema.rules {
        if !rule.is_transition || old.is_some() {
            ask(value, old, schema, rule, path, errors);
        }
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(known) = schema.field(name) {
                    let old = old.and_then(|old| old.get(name));
                    rules(value, old, known, &path.field(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(known) = &schema.items else { return };
            for (at, item) in items.iter().enumerate() {
                // Items that are known by keys can be compared with what they were; others cannot.
                let before = match &schema.list {
                    List::Map(keys) => old.and_then(Value::as_array).and_then(|old| {
                        old.iter()
                            .find(|one| keys.iter().all(|key| one[&**key] == item[&**key]))
                    }),
                    _ => None,
                };
                rules(item, before, known, &path.item(at), errors);
            }
        }
        _ => {}
    }
}

fn ask(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    rule: &Rule,
    path: &Trail<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut scope = Scope::new();
    scope.set("self", value);
    if let Some(old) = old {
        scope.set("oldSelf", old);
    }
    let detail = match rule.program.holds(&scope) {
        Ok(true) => return,
        Ok(false) => {
            let expression = rule.message_expression.as_ref();
            let said = expression.and_then(|expression| expression.text(&scope).ok());
            said.or_else(|| rule.message.clone())
                .unwrap_or_else(|| format!("failed rule: {}", rule.text))
        }
        Err(error) => format!("rule evaluation error: {error}: evaluating rule: {}", rule.text),
    };
    let field = format!("{path}{}", rule.field_path);
    let wrong = match rule.reason.as_str() {
        "FieldValueForbidden" => Wrong::Forbidden,
        "FieldValueRequired" => Wrong::Required,
        "FieldValueDuplicate" => Wrong::Duplicate,
        _ => Wrong::Invalid,
    };
    let shown = if matches!(schema.r#type, Type::Object | Type::Array) {
        Value::from(wanted(schema.r#type))
    } else {
        value.clone()
    };
    errors.push(FieldError::new(wrong, field, shown, detail));
}

/// The first value of a wrong type, in words: built-in kinds are refused while they are decoded.
pub fn mistyped(value: &Value, schema: &Schema) -> Option<String> {
    find_mistyped(value, schema, &Trail::ROOT)
}

fn find_mistyped(value: &Value, schema: &Schema, path: &Trail<'_>) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let is_number = schema.r#type == Type::IntOrString && value.is_number();
    if !fits(value, schema.r#type) && !is_number {
        let found = match value {
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            other => type_name(other),
        };
        return Some(format!(
            "cannot unmarshal {found} into Go struct field {path} of type {}",
            wanted(schema.r#type)
        ));
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let known = schema.field(name)?;
            find_mistyped(value, known, &path.field(name))
        }),
        Value::Array(items) => {
            let known = schema.items.as_ref()?;
            items.iter().find_map(|item| find_mistyped(item, known, path))
        }
        _ => None,
    }
}
