use super::*;
use crate::schema::builtin;
use k8s_openapi::api::core::v1 as core;

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        api_version: "v1",
        subresource: "",
        now: "2026-01-01T00:00:00Z",
    }
}

fn applied(live: &Value, manager: &str, configuration: Value, force: bool) -> Result<Value, Fault> {
    let schema = builtin::schema::<core::Pod>();
    apply(live, &configuration, &schema, &writer(manager), force, true)
}

fn labels(labels: Value) -> Value {
    json!({"metadata": {"name": "p", "labels": labels}})
}

#[test]
fn fields_that_are_left_out_go_if_nobody_else_has_them() {
    let live = applied(&Value::Null, "a", labels(json!({"x": "1", "y": "1"})), false).unwrap();
    let live = applied(&live, "b", labels(json!({"y": "1", "z": "1"})), false).unwrap();
    let live = applied(&live, "a", labels(json!({})), false).unwrap();
    assert_eq!(live["metadata"]["labels"], json!({"y": "1", "z": "1"}));
    let live = applied(&live, "b", json!({"metadata": {"name": "p"}}), false).unwrap();
    assert_eq!(live["metadata"].get("labels"), Some(&json!({})));
}

#[test]
fn what_is_somebody_elses_is_a_conflict_unless_forced() {
    let live = applied(&Value::Null, "a", labels(json!({"x": "1", "y": "1"})), false).unwrap();
    let error = applied(&live, "b", labels(json!({"x": "2"})), false).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"a\": .metadata.labels.x"
    );
    let error = applied(&live, "b", labels(json!({"x": "2", "y": "2"})), false).unwrap_err();
    let expected =
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .metadata.labels.x\n- .metadata.labels.y";
    assert_eq!(error.message, expected);
    let live = applied(&live, "b", labels(json!({"x": "2"})), true).unwrap();
    assert_eq!(live["metadata"]["labels"], json!({"x": "2", "y": "1"}));
    let managers: Vec<_> = read(&live)
        .iter()
        .map(|entry| (entry.manager.clone(), entry.fields.paths()))
        .collect();
    let expected = [("a", ".metadata.labels.y"), ("b", ".metadata.labels.x")];
    assert_eq!(
        managers,
        expected.map(|(manager, path)| (manager.to_owned(), vec![path.to_owned()]))
    );
}

#[test]
fn the_same_value_is_owned_by_both() {
    let live = applied(&Value::Null, "a", labels(json!({"x": "1"})), false).unwrap();
    let live = applied(&live, "b", labels(json!({"x": "1"})), false).unwrap();
    let live = applied(&live, "a", json!({"metadata": {"name": "p"}}), false).unwrap();
    assert_eq!(live["metadata"]["labels"], json!({"x": "1"}));
}

#[test]
fn lists_merge_by_their_keys() {
    let pod = |containers: Value| json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
    let live = applied(
        &Value::Null,
        "a",
        pod(json!([{"name": "x", "image": "1"}])),
        false,
    )
    .unwrap();
    let live = applied(&live, "b", pod(json!([{"name": "y", "image": "2"}])), false).unwrap();
    assert_eq!(live["spec"]["containers"].as_array().unwrap().len(), 2);
    let error = applied(&live, "b", pod(json!([{"name": "x", "image": "2"}])), false).unwrap_err();
    let expected = "Apply failed with 1 conflict: conflict with \"a\": .spec.containers[name=\"x\"].image";
    assert_eq!(error.message, expected);
    let live = applied(&live, "a", pod(json!([])), false).unwrap();
    assert_eq!(live["spec"]["containers"], json!([{"name": "y", "image": "2"}]));
}

#[test]
fn updates_take_what_they_change() {
    let schema = builtin::schema::<core::Pod>();
    let live = applied(&Value::Null, "a", labels(json!({"x": "1", "y": "1"})), false).unwrap();
    let mut changed = live.clone();
    changed["metadata"]["labels"] = json!({"x": "2"});
    track(&live, &mut changed, &schema, &writer("edit"));
    let error = applied(&changed, "a", labels(json!({"x": "1"})), false).unwrap_err();
    let expected = "Apply failed with 1 conflict: conflict with \"edit\" using v1: .metadata.labels.x";
    assert_eq!(error.message, expected);
    assert!(
        read(&changed).iter().all(|entry| entry.manager != "a"),
        "nothing is left to it"
    );
}

#[test]
fn an_object_that_nobody_was_recorded_for_belongs_to_those_before() {
    let live = labels(json!({"x": "1"}));
    let error = applied(&live, "a", labels(json!({"x": "2"})), false).unwrap_err();
    assert!(error.message.contains(BEFORE_FIRST_APPLY), "{}", error.message);
    let same = applied(&live, "a", labels(json!({"x": "1"})), false).unwrap();
    assert_eq!(read(&same).len(), 2);
}

#[test]
fn a_status_is_not_owned_through_the_object() {
    let mut configuration = labels(json!({"x": "1"}));
    configuration["status"] = json!({"phase": "Running"});
    let live = applied(&Value::Null, "a", configuration, false).unwrap();
    assert_eq!(read(&live)[0].fields.paths(), [".metadata.labels.x"]);
}

#[test]
fn sets_are_read_as_they_are_written() {
    let schema = builtin::schema::<core::Pod>();
    let pod = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]}, "spec": {
        "containers": [{"name": "c", "ports": [{"containerPort": 1}]}], "tolerations": [{"key": "k"}],
    }});
    let fields = Fields::of(&pod, Some(&schema));
    let written = fields.write();
    assert_eq!(Fields::read(&written), fields);
    assert_eq!(written["f:metadata"]["f:finalizers"], json!({"v:\"x\"": {}}));
    let port = "k:{\"containerPort\":1,\"protocol\":\"TCP\"}";
    let container = &written["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"];
    assert_eq!(container["."], json!({}));
    assert!(container["f:ports"].get(port).is_some(), "{container}");
    assert_eq!(written["f:spec"]["f:tolerations"], json!({}));
}
