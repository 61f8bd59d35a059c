//! What an API server checks of a CRD, and what clients rely on.

use serde_json::{Value, json};

use super::{all, overlay, structural};
use crate::names::kinds;

/// Calls for every schema in a tree with its path.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (field, below) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{field}"), below, visit);
    }
    if schema["items"].is_object() {
        walk(&format!("{path}[]"), &schema["items"], visit);
    }
    if schema["additionalProperties"].is_object() {
        walk(&format!("{path}{{}}"), &schema["additionalProperties"], visit);
    }
}

fn each_schema(mut visit: impl FnMut(&str, &Value)) {
    for crd in all() {
        let name = crd["metadata"]["name"].as_str().expect("a CRD has a name");
        walk(
            name,
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            &mut visit,
        );
    }
}

#[test]
fn there_is_a_crd_for_each_kind_in_order() {
    let names: Vec<_> = all().iter().map(|crd| crd["metadata"]["name"].clone()).collect();
    let expected: Vec<_> = kinds::ALL
        .iter()
        .map(|kind| Value::from(kind.crd_name()))
        .collect();
    assert_eq!(names, expected);
}

#[test]
fn schemas_are_structural() {
    const KNOWN: [&str; 19] = [
        "type",
        "format",
        "description",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "default",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "pattern",
        "anyOf",
        "x-kubernetes-int-or-string",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    ];
    const LISTS: [&str; 2] = ["x-kubernetes-list-type", "x-kubernetes-list-map-keys"];
    each_schema(|path, schema| {
        let any = schema["x-kubernetes-int-or-string"] == true;
        assert!(
            schema["type"].is_string() != any,
            "{path}: one type, or int-or-string"
        );
        assert!(
            schema.get("anyOf").is_some() == any,
            "{path}: anyOf is for int-or-string"
        );
        for key in schema.as_object().expect("a schema is an object").keys() {
            let known =
                KNOWN.contains(&key.as_str()) || (LISTS.contains(&key.as_str()) && schema["type"] == "array");
            assert!(known, "{path}: {key}");
        }
        assert_eq!(
            schema["type"] == "array",
            schema.get("items").is_some(),
            "{path}: items"
        );
    });
}

#[test]
fn required_fields_exist_and_have_no_default() {
    each_schema(|path, schema| {
        for field in schema["required"].as_array().into_iter().flatten() {
            let property = &schema["properties"][field.as_str().expect("a name")];
            assert!(property.is_object(), "{path}: required {field}");
            assert!(
                property.get("default").is_none(),
                "{path}: default of required {field}"
            );
        }
    });
}

#[test]
fn keys_of_keyed_lists_are_always_there() {
    // Else the API server refuses the CRD.
    each_schema(|path, schema| {
        for key in schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let item = &schema["items"];
            let required = item["required"]
                .as_array()
                .is_some_and(|required| required.contains(key));
            let field = &item["properties"][key.as_str().expect("a name")];
            assert!(required || field.get("default").is_some(), "{path}: {key}");
        }
    });
}

#[test]
fn a_client_that_keeps_a_copy_in_an_annotation_can_apply_every_crd() {
    for crd in all() {
        let size = crd.to_string().len();
        assert!(size < 256 * 1024, "{}: {size} bytes", crd["metadata"]["name"]);
    }
}

#[test]
fn our_fields_are_described() {
    each_schema(|path, schema| {
        let (_, field) = path.rsplit_once('.').expect("a path has a dot");
        let ours =
            !path.contains(".template.") && !path.contains(".volumeClaim.") && path.contains("volcano.sh.");
        let item = field.ends_with("[]") || field.ends_with("{}") || field == "metadata";
        if ours && !item {
            assert!(schema.get("description").is_some(), "{path}");
        }
    });
}

#[test]
fn only_pod_groups_declare_no_subresource() {
    for crd in all() {
        let subresources = crd["spec"]["versions"][0].get("subresources").cloned();
        let expected = match crd["spec"]["names"]["kind"].as_str() {
            Some("PodGroup") => Some(json!({})),
            Some("Command" | "Numatopology") => None,
            _ => Some(json!({"status": {}})),
        };
        assert_eq!(subresources, expected, "{}", crd["metadata"]["name"]);
    }
}

#[test]
fn defaults_and_bounds_come_from_the_types() {
    let queue = structural::schema_of::<crate::scheduling::Queue>();
    let weight = &queue["properties"]["spec"]["properties"]["weight"];
    assert_eq!(
        (
            &weight["default"],
            &weight["minimum"],
            &weight["maximum"],
            &weight["format"]
        ),
        (&json!(1), &json!(1), &json!(65535), &json!("int32"))
    );
    assert!(
        queue["properties"]["status"].get("required").is_none(),
        "allocated may be null"
    );
    let node = structural::schema_of::<crate::topology::HyperNode>();
    let spec = &node["properties"]["spec"];
    assert_eq!(spec["required"], json!(["tier"]));
    assert!(
        spec["properties"]["tier"].get("format").is_none(),
        "an int has no width"
    );
    assert_eq!(spec["properties"]["members"]["minItems"], 1);
    let flow = structural::schema_of::<crate::flow::JobFlow>();
    let job = &flow["properties"]["status"]["properties"]["jobStatusList"]["items"];
    assert!(job.get("required").is_none(), "times may be null");
}

#[test]
fn the_overlay_has_no_rule_for_what_is_not_there() {
    let definitions = structural::definitions_of::<crate::batch::Job>();
    for (type_name, field) in overlay::fields_with_rules() {
        let found = definitions.iter().any(|(name, definition)| {
            name.rsplit('.').next() == Some(type_name)
                && (field.is_empty() || definition["properties"].get(field).is_some())
        });
        assert!(found, "{type_name}.{field}");
    }
}
