//! From a schema as JSON to the compiled tree.

use super::{Limits, List, Rule, Schema, Type};
use crate::cel::Program;
use regex::Regex;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};
use std::sync::Arc;
use thiserror::Error;

/// Levels of a schema, at most.
const DEEPEST: usize = 100;

/// Why a schema cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{path}: {problem}")]
pub struct SchemaError {
    /// Where in the schema.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

/// Compiles a schema; references are to `definitions`.
pub fn compile(schema: &Value, definitions: &Map<String, Value>) -> Result<Arc<Schema>, SchemaError> {
    let mut compiler = Compiler {
        definitions,
        known: FxHashMap::default(),
        open: Vec::new(),
    };
    compiler.node(schema, "openAPIV3Schema", 0)
}

struct Compiler<'a> {
    definitions: &'a Map<String, Value>,
    known: FxHashMap<String, Arc<Schema>>,
    open: Vec<String>,
}

impl Compiler<'_> {
    fn node(&mut self, schema: &Value, path: &str, depth: usize) -> Result<Arc<Schema>, SchemaError> {
        let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) else {
            return self.plain(schema, path, depth).map(Arc::new);
        };
        if let Some(known) = self.known.get(name) {
            return Ok(known.clone());
        }
        if self.open.iter().any(|open| open == name) {
            // A type that holds itself: what is below is taken as it comes.
            return Ok(Arc::new(Schema {
                preserve: true,
                ..Schema::default()
            }));
        }
        let definition = self.definitions.get(name).unwrap_or(&Value::Null);
        self.open.push(name.to_owned());
        let mut compiled = self.plain(definition, path, depth)?;
        self.open.pop();
        super::builtin::mark(name, &mut compiled);
        let compiled = Arc::new(compiled);
        self.known.insert(name.to_owned(), compiled.clone());
        Ok(compiled)
    }

    fn plain(&mut self, schema: &Value, path: &str, depth: usize) -> Result<Schema, SchemaError> {
        let wrong = |problem: String| SchemaError {
            path: path.to_owned(),
            problem,
        };
        if depth > DEEPEST {
            return Err(wrong(format!("the schema is more than {DEEPEST} levels deep")));
        }
        let mut compiled = Schema {
            r#type: r#type(schema).map_err(wrong)?,
            nullable: flag(schema, "nullable"),
            preserve: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
            atomic_map: schema["x-kubernetes-map-type"] == "atomic",
            default: schema.get("default").cloned(),
            list: list(schema),
            limits: self.limits(schema, path, depth)?.map(Box::new),
            rules: rules(schema).map_err(wrong)?,
            ..Schema::default()
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let below = self.node(property, &format!("{path}.properties[{name}]"), depth + 1)?;
            compiled.properties.insert(name.as_str().into(), below);
        }
        if schema["additionalProperties"].is_object() {
            let path = format!("{path}.additionalProperties");
            compiled.additional = Some(self.node(&schema["additionalProperties"], &path, depth + 1)?);
        } else if schema["additionalProperties"] == true {
            compiled.preserve = true;
        }
        if schema["items"].is_object() {
            compiled.items = Some(self.node(&schema["items"], &format!("{path}.items"), depth + 1)?);
        }
        let required = schema["required"].as_array().into_iter().flatten();
        compiled.required = required.filter_map(Value::as_str).map(Into::into).collect();
        let below = || {
            let values = compiled.properties.values();
            values.chain(&compiled.additional).chain(&compiled.items)
        };
        let has_defaults = compiled.default.is_some() || below().any(|schema| schema.has_defaults);
        let has_rules = !compiled.rules.is_empty() || below().any(|schema| schema.has_rules);
        compiled.has_amounts = below().any(|schema| schema.has_amounts);
        compiled.has_defaults = has_defaults;
        compiled.has_rules = has_rules;
        Ok(compiled)
    }

    fn limits(&mut self, schema: &Value, path: &str, depth: usize) -> Result<Option<Limits>, SchemaError> {
        let number = |key: &str| schema[key].as_f64();
        let count = |key: &str| schema[key].as_u64().and_then(|count| usize::try_from(count).ok());
        let mut many = |key: &str| -> Result<Vec<Schema>, SchemaError> {
            let schemas = schema[key].as_array().into_iter().flatten().enumerate();
            schemas
                .map(|(at, schema)| self.plain(schema, &format!("{path}.{key}[{at}]"), depth + 1))
                .collect()
        };
        let is_int_or_string = flag(schema, "x-kubernetes-int-or-string");
        let (all_of, one_of) = (many("allOf")?, many("oneOf")?);
        let any_of = if is_int_or_string {
            Vec::new()
        } else {
            many("anyOf")?
        };
        let not = match schema.get("not") {
            Some(not) => Some(Box::new(self.plain(not, &format!("{path}.not"), depth + 1)?)),
            None => None,
        };
        let pattern = match schema["pattern"].as_str() {
            Some(text) => {
                let regex = Regex::new(text).map_err(|error| SchemaError {
                    path: format!("{path}.pattern"),
                    problem: error.to_string(),
                })?;
                Some((regex, text.to_owned()))
            }
            None => None,
        };
        let limits = Limits {
            values: schema["enum"].as_array().cloned(),
            minimum: number("minimum").map(|least| (least, flag(schema, "exclusiveMinimum"))),
            maximum: number("maximum").map(|most| (most, flag(schema, "exclusiveMaximum"))),
            multiple_of: number("multipleOf"),
            length: (count("minLength"), count("maxLength")),
            items: (count("minItems"), count("maxItems")),
            properties: (count("minProperties"), count("maxProperties")),
            pattern,
            format: schema["format"].as_str().unwrap_or_default().to_owned(),
            all_of,
            any_of,
            one_of,
            not,
        };
        let keys = [
            "enum",
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "pattern",
            "format",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ];
        Ok(keys.iter().any(|key| schema.get(key).is_some()).then_some(limits))
    }
}

fn flag(schema: &Value, key: &str) -> bool {
    schema[key] == true
}

fn r#type(schema: &Value) -> Result<Type, String> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Ok(Type::IntOrString);
    }
    let name = match &schema["type"] {
        Value::Array(types) => types.iter().find(|one| *one != "null").unwrap_or(&Value::Null),
        one => one,
    };
    Ok(match name.as_str().unwrap_or_default() {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        "" => Type::Any,
        other => return Err(format!("unknown type {other:?}")),
    })
}

fn list(schema: &Value) -> List {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => List::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten();
            List::Map(keys.filter_map(Value::as_str).map(Into::into).collect())
        }
        _ => List::Atomic,
    }
}

fn rules(schema: &Value) -> Result<Vec<Rule>, String> {
    let rules = schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten();
    rules
        .map(|rule| {
            let text = |key: &str| rule[key].as_str().map(str::to_owned);
            let source = text("rule").unwrap_or_default();
            let program =
                |source: &str| Program::parse(source).map_err(|error| format!("rule {source:?}: {error}"));
            Ok(Rule {
                program: program(&source)?,
                message: text("message"),
                message_expression: text("messageExpression")
                    .map(|source| program(&source))
                    .transpose()?,
                field_path: text("fieldPath").unwrap_or_default(),
                reason: text("reason").unwrap_or_default(),
                is_transition: source.contains("oldSelf"),
                text: source,
            })
        })
        .collect()
}
