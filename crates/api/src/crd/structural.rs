//! From the schema that `schemars` derives to the structural schema that an API server takes.
//!
//! An API server wants one tree: no references, one type per value, `nullable` only where null is a value. The
//! derived schema has references to definitions, and null as a second type of everything optional.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::overlay;

type Node = Map<String, Value>;

/// Prefix of the definitions that are Kubernetes' own.
const KUBERNETES: &str = "io.k8s.";

/// The structural schema of a kind.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let (root, definitions) = derived::<T>();
    let mut schema = Inliner {
        definitions: &definitions,
    }
    .inline(root);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        // The API server knows what metadata is and refuses a schema that says more than its type.
        properties.insert("metadata".into(), json!({"type": "object"}));
    }
    schema.into()
}

/// The definitions that the schema of a kind refers to.
#[cfg(test)]
pub(super) fn definitions_of<T: JsonSchema>() -> Node {
    derived::<T>().1
}

/// The schema that is derived from a type, and the definitions that it refers to.
fn derived<T: JsonSchema>() -> (Node, Node) {
    // What is written decides what is required: a field that is left out when zero is optional.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let root = settings.into_generator().into_root_schema_for::<T>().to_value();
    let mut root = into_object(root).expect("the schema of a structure is an object");
    let definitions = root.remove("$defs").and_then(into_object).unwrap_or_default();
    (root, definitions)
}

struct Inliner<'a> {
    definitions: &'a Node,
}

impl Inliner<'_> {
    /// The tree below a node, with nothing that is not structural.
    fn inline(&self, mut node: Node) -> Node {
        self.resolve(&mut node);
        drop_null(&mut node);
        settle_required(&mut node);
        for key in ["$schema", "title"] {
            node.remove(key);
        }
        // Go's int has no width, neither here nor in the schema.
        if node.get("format").is_some_and(|format| format == "int") {
            node.remove("format");
        }
        if node.contains_key("x-kubernetes-int-or-string") {
            node.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
        }
        for key in ["items", "additionalProperties"] {
            if let Some(Value::Object(below)) = node.get_mut(key) {
                *below = self.inline(std::mem::take(below));
            }
        }
        if let Some(Value::Object(properties)) = node.get_mut("properties") {
            for property in properties.values_mut().filter_map(Value::as_object_mut) {
                *property = self.inline(std::mem::take(property));
            }
        }
        node
    }

    /// Puts the definition in the place of a reference; what stands beside the reference goes before.
    fn resolve(&self, node: &mut Node) {
        while let Some(name) = reference(node) {
            let Some(Value::Object(definition)) = self.definitions.get(&name) else {
                return;
            };
            let mut definition = definition.clone();
            if name.starts_with(KUBERNETES) {
                drop_descriptions(&mut definition);
                overlay::apply(&name, &mut definition);
            }
            merge(node, definition);
        }
    }
}

/// Takes the reference out of a node, be it there itself or as the one alternative to null.
fn reference(node: &mut Node) -> Option<String> {
    if let Some(Value::Array(alternatives)) = node.get_mut("anyOf") {
        alternatives.retain(|alternative| alternative.get("type").is_none_or(|kind| kind != "null"));
        if let [only] = alternatives.as_mut_slice() {
            let only = into_object(only.take()).unwrap_or_default();
            node.remove("anyOf");
            merge(node, only);
        }
    }
    let reference = node.remove("$ref")?;
    reference.as_str()?.rsplit('/').next().map(str::to_owned)
}

/// Adds what is not there yet.
fn merge(node: &mut Node, other: Node) {
    for (key, value) in other {
        node.entry(key).or_insert(value);
    }
}

/// Null is how a field is left out, not a value of it.
fn drop_null(node: &mut Node) {
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            node.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if node.get("default").is_some_and(Value::is_null) {
        node.remove("default");
    }
}

/// A field that is written as null when it is not set is not required, and a field that is required has no default:
/// the zero value that its type has in the program is none of the API.
fn settle_required(node: &mut Node) {
    let Some(Value::Array(mut required)) = node.remove("required") else {
        return;
    };
    let Some(Value::Object(properties)) = node.get_mut("properties") else {
        return;
    };
    required.retain(|name| {
        let property = name
            .as_str()
            .and_then(|name| properties.get_mut(name))
            .and_then(Value::as_object_mut);
        property.is_some_and(|property| {
            let default = property.remove("default");
            !(default == Some(Value::Null) && takes_null(property))
        })
    });
    if !required.is_empty() {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        node.insert("required".into(), required.into());
    }
}

fn takes_null(node: &Node) -> bool {
    let listed = |key: &str, null: &Value| {
        node.get(key)
            .and_then(Value::as_array)
            .is_some_and(|values| values.contains(null))
    };
    listed("type", &"null".into()) || listed("anyOf", &json!({"type": "null"}))
}

/// Kubernetes' descriptions are dropped: they are most of the bytes, and an object over 256 KiB cannot be applied
/// by a client that keeps a copy of it in an annotation.
fn drop_descriptions(definition: &mut Node) {
    definition.remove("description");
    if let Some(Value::Object(properties)) = definition.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove("description");
        }
    }
}

fn into_object(value: Value) -> Option<Node> {
    match value {
        Value::Object(node) => Some(node),
        _ => None,
    }
}
