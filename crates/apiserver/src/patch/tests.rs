use super::*;
use crate::schema::builtin;
use serde_json::json;

#[test]
fn merge_patches_are_those_of_the_rfc() {
    for (mut target, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b", "c": 1}), json!({"a": null}), json!({"c": 1})),
        (json!({"a": [1]}), json!({"a": [2]}), json!({"a": [2]})),
        (
            json!({"a": {"b": 1}}),
            json!({"a": {"c": null, "d": {"e": null}}}),
            json!({"a": {"b": 1, "d": {}}}),
        ),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
    ] {
        merge(&mut target, &patch);
        assert_eq!(target, expected, "{patch}");
    }
}

fn json_patched(target: Value, patch: Value) -> Result<Value, String> {
    let mut target = target;
    json_patch(&mut target, &parse_json_patch(&patch)?)?;
    Ok(target)
}

#[test]
fn json_patches_change_what_they_name_or_say_why_not() {
    let target = json!({"a": {"b/c": 1}, "list": [1, 2]});
    let done = json_patched(
        target.clone(),
        json!([
            {"op": "test", "path": "/a/b~1c", "value": 1},
            {"op": "add", "path": "/list/1", "value": 5},
            {"op": "add", "path": "/list/-", "value": 6},
            {"op": "remove", "path": "/list/0"},
            {"op": "replace", "path": "/a/b~1c", "value": null},
            {"op": "copy", "from": "/list", "path": "/copy"},
            {"op": "move", "from": "/a", "path": "/moved"},
        ]),
    );
    assert_eq!(
        done.unwrap(),
        json!({"list": [5, 2, 6], "copy": [5, 2, 6], "moved": {"b/c": null}})
    );
    for (patch, part) in [
        (
            json!([{"op": "test", "path": "/a", "value": 2}]),
            "not the tested one",
        ),
        (json!([{"op": "remove", "path": "/x"}]), "nothing to remove"),
        (
            json!([{"op": "add", "path": "/x/y", "value": 1}]),
            "parent is missing",
        ),
        (
            json!([{"op": "add", "path": "/list/9", "value": 1}]),
            "outside of the list",
        ),
        (json!([{"op": "jump", "path": "/list"}]), "unknown operation"),
        (json!([{"op": "add", "path": "list", "value": 1}]), "slash"),
        (json!([{"op": "replace", "path": "/list"}]), "has no \"value\""),
        (json!({}), "list of operations"),
    ] {
        let error = json_patched(target.clone(), patch.clone()).unwrap_err();
        assert!(error.contains(part), "{patch}: {error}");
    }
}

#[test]
fn strategic_patches_merge_lists_by_their_keys() {
    let schema = builtin::schema::<k8s_openapi::api::core::v1::Pod>();
    let pod = json!({
        "metadata": {"finalizers": ["a"], "labels": {"x": "1"}},
        "spec": {
            "containers": [{"name": "a", "image": "1", "ports": [{"containerPort": 1}]}, {"name": "b", "image": "1"}],
            "tolerations": [{"key": "a"}],
            "nodeSelector": {"a": "1"},
        },
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    });
    for (patch, pointer, expected) in [
        (
            json!({"spec": {"containers": [{"name": "b", "image": "2"}]}}),
            "/spec/containers/1/image",
            json!("2"),
        ),
        (
            json!({"spec": {"containers": [{"name": "b", "image": "2"}]}}),
            "/spec/containers/0/image",
            json!("1"),
        ),
        (
            json!({"spec": {"containers": [{"name": "c"}]}}),
            "/spec/containers/0",
            json!({"name": "c"}),
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
            "/spec/containers",
            json!([{"name": "b", "image": "1"}]),
        ),
        (
            json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}),
            "/spec/containers",
            json!([{"name": "z"}]),
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 2}]}]}}),
            "/spec/containers/0/ports",
            json!([{"containerPort": 2}, {"containerPort": 1}]),
        ),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
            "/spec/containers/0/name",
            json!("b"),
        ),
        (
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
            "/spec/tolerations",
            json!([{"key": "b"}]),
        ),
        (
            json!({"metadata": {"finalizers": ["b"]}}),
            "/metadata/finalizers",
            json!(["b", "a"]),
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            "/metadata/finalizers",
            json!([]),
        ),
        (
            json!({"metadata": {"labels": {"x": null, "y": "2"}}}),
            "/metadata/labels",
            json!({"y": "2"}),
        ),
        (
            json!({"metadata": {"labels": {"$patch": "replace", "y": "2"}}}),
            "/metadata/labels",
            json!({"y": "2"}),
        ),
        (
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "X"}]}}),
            "/status/conditions",
            json!([{"type": "Ready", "status": "True"}, {"type": "X"}]),
        ),
    ] {
        let mut target = pod.clone();
        strategic_merge(&mut target, &patch, Some(&schema)).unwrap();
        assert_eq!(target.pointer(pointer), Some(&expected), "{patch}");
    }
    let mut target = pod.clone();
    let error = strategic_merge(
        &mut target,
        &json!({"spec": {"containers": [{"image": "x"}]}}),
        Some(&schema),
    );
    assert!(
        error
            .unwrap_err()
            .contains("does not contain declared merge key: name")
    );
    let mut target = pod;
    let error = strategic_merge(&mut target, &json!({"spec": {"$patch": "wish"}}), Some(&schema));
    assert_eq!(error.unwrap_err(), "Wrong patch type: wish");
}

#[test]
fn a_json_patch_makes_nothing_too_large_or_too_deep() {
    let patched = |target: &Value, operations: Vec<Value>| {
        let operations = parse_json_patch(&operations.into()).unwrap();
        let mut target = target.clone();
        json_patch(&mut target, &operations)
    };
    let copies = |count: usize, from: &str| {
        let copy = |number| json!({"op": "copy", "from": from, "path": format!("/a{number}")});
        (0..count).map(copy).collect::<Vec<_>>()
    };
    let target = json!({"text": "x".repeat(1 << 20), "small": {}});
    assert_eq!(patched(&target, copies(2, "/text")), Ok(()));
    assert_eq!(patched(&target, copies(90, "/small")), Ok(()));
    let said = patched(&target, copies(30, "")).unwrap_err();
    assert!(
        said.contains("the accumulated size increase of copy is"),
        "{said}"
    );

    let path = |levels: usize| "/a".repeat(levels);
    let add = |levels: usize| json!({"op": "add", "path": path(levels), "value": {}});
    assert_eq!(patched(&json!({}), (1..100).map(add).collect()), Ok(()));
    let said = patched(&json!({}), (1..100_000).map(add).take(5000).collect()).unwrap_err();
    assert!(said.contains("more than 100 levels"), "{said}");
    let chain: Vec<Value> = (0..200)
        .flat_map(|_| {
            let aside = json!({"op": "move", "from": "/a", "path": "/b"});
            let around = json!({"op": "add", "path": "/a", "value": {}});
            [aside, around, json!({"op": "move", "from": "/b", "path": "/a/a"})]
        })
        .collect();
    let said = patched(&json!({"a": {}}), chain).unwrap_err();
    assert!(said.contains("more than 100 levels"), "{said}");
}
