use super::*;
use serde_json::{Map, json};

fn compiled(schema: Value) -> Arc<Schema> {
    compile(&schema, &Map::new()).unwrap()
}

fn spec() -> Arc<Schema> {
    compiled(json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4, "default": "abc"},
            "kind": {"type": "string", "enum": ["A", "B"]},
            "list": {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {
                "port": {"type": "integer", "default": 80}, "id": {"type": "string"},
            }}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true},
            "deep": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}},
            "maybe": {"type": "string", "nullable": true},
        },
        "x-kubernetes-validations": [
            {"rule": "self.size != 7", "message": "seven is taken"},
            {"rule": "self.size >= oldSelf.size", "message": "it does not shrink"},
        ],
    }}}))
}

fn errors(value: Value) -> Vec<String> {
    let errors = validate(&value, None, &spec());
    let told = errors.iter().filter(|error| error.field != "<nil>");
    told.map(ToString::to_string).collect()
}

#[test]
fn what_is_unknown_is_dropped_and_named() {
    let mut value = json!({"spec": {"size": 1, "x": 1, "list": [{"id": "a", "y": 2}], "map": {"k": "v"}, "any": {"z": 1}}, "w": 1});
    assert_eq!(prune(&mut value, &spec()), ["spec.list[0].y", "spec.x", "w"]);
    assert_eq!(
        value,
        json!({"spec": {"size": 1, "list": [{"id": "a"}], "map": {"k": "v"}, "any": {"z": 1}}})
    );
}

#[test]
fn defaults_go_where_nothing_is_and_into_what_they_make() {
    let mut value = json!({"spec": {"size": 1, "list": [{"id": "a"}], "name": null, "maybe": null}});
    fill_defaults(&mut value, &spec());
    let expected = json!({"spec": {"size": 1, "name": "abc", "list": [{"id": "a", "port": 80}], "deep": {"x": 5}, "maybe": null}});
    assert_eq!(value, expected);
}

#[test]
fn null_is_nothing_except_where_it_may_be() {
    let mut value =
        json!({"spec": {"size": 1, "map": null, "list": [{"id": null}], "maybe": null, "any": {"z": null}}});
    drop_nulls(&mut value, &spec());
    let expected = json!({"spec": {"size": 1, "list": [{}], "maybe": null, "any": {"z": null}}});
    assert_eq!(value, expected);
}

#[test]
fn messages_are_those_of_kubernetes() {
    let spec = |fields: Value| {
        let mut spec = json!({"size": 1});
        crate::patch::merge(&mut spec, &fields);
        json!({"spec": spec})
    };
    for (value, expected) in [
        (json!({"spec": {}}), "spec.size: Required value"),
        (
            spec(json!({"size": 0})),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            spec(json!({"size": 10})),
            "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9",
        ),
        (
            spec(json!({"size": "x"})),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            spec(json!({"name": "a"})),
            "spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long",
        ),
        (
            spec(json!({"name": "A1"})),
            "spec.name: Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'",
        ),
        (
            spec(json!({"name": "abcde"})),
            "spec.name: Too long: may not be more than 4 bytes",
        ),
        (
            spec(json!({"kind": "C"})),
            "spec.kind: Unsupported value: \"C\": supported values: \"A\", \"B\"",
        ),
        (
            spec(json!({"list": [{"id": "a"}, {"id": "b"}, {"id": "c"}]})),
            "spec.list: Too many: 3: must have at most 2 items",
        ),
        (
            spec(json!({"list": [{"id": "a"}, {"id": "a"}]})),
            "spec.list[1]: Duplicate value: {\"id\":\"a\"}",
        ),
        (
            spec(json!({"map": {"k": 1}})),
            "spec.map.k: Invalid value: \"integer\": spec.map.k in body must be of type string: \"integer\"",
        ),
        (
            spec(json!({"port": 1.5})),
            "spec.port: Invalid value: \"number\": spec.port in body must be of type integer,string: \"number\"",
        ),
        (
            spec(json!({"size": 7})),
            "spec: Invalid value: \"object\": seven is taken",
        ),
    ] {
        assert_eq!(errors(value.clone()), [expected], "{value}");
    }
    assert!(errors(json!({"spec": {"size": 1, "port": "http", "maybe": null}})).is_empty());
}

#[test]
fn rules_are_not_asked_of_values_that_break_the_schema() {
    let told = validate(&json!({"spec": {"size": 7, "kind": "C"}}), None, &spec());
    assert!(
        told.len() == 2
            && told[1]
                .to_string()
                .starts_with("<nil>: Invalid value: null: some validation rules"),
        "{told:?}"
    );
    let told = validate(&json!({"spec": {"size": 7, "name": "A1"}}), None, &spec());
    assert!(
        told.len() == 2 && told[1].to_string().ends_with("seven is taken"),
        "{told:?}"
    );
}

#[test]
fn rules_about_changes_are_asked_of_changes_only() {
    let (new, old) = (json!({"spec": {"size": 1}}), json!({"spec": {"size": 2}}));
    assert!(validate(&new, None, &spec()).is_empty());
    let found = validate(&new, Some(&old), &spec());
    assert_eq!(
        found[0].to_string(),
        "spec: Invalid value: \"object\": it does not shrink"
    );
}

#[test]
fn a_schema_that_cannot_be_used_says_where() {
    let error = |schema: Value| compile(&schema, &Map::new()).unwrap_err().to_string();
    let pattern = error(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}));
    assert!(
        pattern.starts_with("openAPIV3Schema.properties[a].pattern: "),
        "{pattern}"
    );
    let rule = error(json!({"type": "object", "x-kubernetes-validations": [{"rule": "1 +"}]}));
    assert!(rule.contains("syntax error"), "{rule}");
    assert!(error(json!({"type": "thing"})).contains("unknown type"));
}

#[test]
fn schemas_of_kubernetes_know_their_fields_and_types() {
    let pods = builtin::schema::<k8s_openapi::api::core::v1::Pod>();
    let mut pod =
        json!({"metadata": {"name": "a", "wrong": 1}, "spec": {"containers": [{"name": "c", "imag": "x"}]}});
    assert_eq!(
        prune(&mut pod, &pods),
        ["metadata.wrong", "spec.containers[0].imag"]
    );
    let wrong = json!({"spec": {"containers": [{"name": 1}]}});
    let problem = mistyped(&wrong, &pods).unwrap();
    assert_eq!(
        problem,
        "cannot unmarshal number into Go struct field spec.containers.name of type string"
    );
    assert!(
        mistyped(
            &json!({"spec": {"containers": [{"resources": {"limits": {"cpu": 1.5}}}]}}),
            &pods
        )
        .is_none()
    );
}
