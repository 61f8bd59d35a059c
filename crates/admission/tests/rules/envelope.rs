//! What is around the rules: bad requests, wrong resources and operations, the form of an answer.

use serde_json::{Value, json};
use volcano_admission::{MAX_BODY_BYTES, review, webhooks};

use super::world::{World, envelope, job, refusal, with};

fn answer(path: &str, body: &[u8]) -> Value {
    let world = World::new();
    let bytes = review(path, body, &world, &world.options).to_bytes();
    serde_json::from_slice(&bytes).expect("the answer is JSON")
}

#[test]
fn an_allowed_request_is_answered_with_its_uid_and_nothing_else() {
    let review = envelope("/jobs/validate", json!({"operation": "CREATE", "object": job()}));
    assert_eq!(
        answer("/jobs/validate", review.to_string().as_bytes()),
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "u-1", "allowed": true}})
    );
}

#[test]
fn a_refusal_has_a_message_and_no_code() {
    let review = envelope(
        "/jobs/validate",
        json!({"operation": "CREATE", "object": {"spec": {}}}),
    );
    assert_eq!(
        answer("/jobs/validate", review.to_string().as_bytes())["response"],
        json!({"uid": "u-1", "allowed": false, "status": {"message": "No task specified in job spec"}})
    );
}

#[test]
fn a_patch_is_a_json_patch_in_base64() {
    let object = json!({"metadata": {"name": "q"}, "spec": {"weight": 2}});
    let review = envelope("/queues/mutate", json!({"operation": "CREATE", "object": object}));
    assert_eq!(
        answer("/queues/mutate", review.to_string().as_bytes())["response"],
        json!({"uid": "u-1", "allowed": true, "patchType": "JSONPatch",
            // [{"op":"add","path":"/spec/reclaimable","value":true}]
            "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvcmVjbGFpbWFibGUiLCJ2YWx1ZSI6dHJ1ZX1d"})
    );
}

#[test]
fn what_cannot_be_read_is_refused_with_the_place_of_the_fault() {
    let good = envelope("/jobs/validate", json!({"operation": "CREATE", "object": job()}));
    let changed = |pointer: &str, value: Value| {
        let mut review = good.clone();
        *review.pointer_mut(pointer).expect("it is there") = value;
        review.to_string()
    };
    let cases = [
        (
            "no JSON",
            "{".to_owned(),
            "",
            400,
            "cannot read the review: EOF while parsing an object at line 1 column 1",
        ),
        (
            "no review",
            "[]".to_owned(),
            "",
            400,
            "expected apiVersion \"admission.k8s.io/v1\" and kind \"AdmissionReview\", got null and null",
        ),
        (
            "an older version",
            changed("/apiVersion", json!("admission.k8s.io/v1beta1")),
            "u-1",
            400,
            "expected apiVersion \"admission.k8s.io/v1\" and kind \"AdmissionReview\", got \"admission.k8s.io/v1beta1\" and \"AdmissionReview\"",
        ),
        (
            "no request",
            changed("/request", Value::Null),
            "",
            400,
            "the review has no request",
        ),
        (
            "a request of the wrong form",
            changed("/request/operation", json!(7)),
            "u-1",
            400,
            "request.operation: invalid type: integer `7`, expected a string",
        ),
    ];
    for (name, body, uid, code, message) in cases {
        let response = json!({"uid": uid, "allowed": false, "status": {"message": message, "code": code}});
        assert_eq!(
            answer("/jobs/validate", body.as_bytes())["response"],
            response,
            "{name}"
        );
    }
}

#[test]
fn a_body_over_the_limit_and_a_path_of_nobody_are_refused() {
    let large = vec![b' '; MAX_BODY_BYTES + 1];
    let status = &answer("/jobs/validate", &large)["response"]["status"];
    assert_eq!(*status, json!({"message": "request body too large", "code": 413}));
    let status = &answer("/nope", b"{}")["response"]["status"];
    assert_eq!(
        *status,
        json!({"message": "there is no admission service at /nope", "code": 404})
    );
}

#[test]
fn objects_that_are_missing_or_of_the_wrong_form_are_refused() {
    let world = World::new();
    let ask = |request: Value| refusal(&world.ask("/jobs/validate", request));
    assert_eq!(ask(json!({"operation": "CREATE"})), "the request has no object");
    assert_eq!(
        ask(json!({"operation": "CREATE", "object": []})),
        "the request has no object"
    );
    assert_eq!(
        ask(json!({"operation": "UPDATE", "object": job()})),
        "the request has no oldObject"
    );
    assert_eq!(
        ask(json!({"operation": "CREATE", "object": {"spec": {"tasks": [{"replicas": "1"}]}}})),
        "object.spec.tasks[0].replicas: invalid type: string \"1\", expected i32"
    );
}

#[test]
fn each_path_takes_its_own_resource_only() {
    let world = World::new();
    for webhook in webhooks::ALL {
        let mut review = envelope(webhook.path, json!({"operation": "CREATE", "object": {}}));
        review["request"]["resource"] = json!({"group": "apps", "version": "v1", "resource": "deployments"});
        let response = review_with(&world, webhook.path, &review);
        let own = format!("{{{} {} {}}}", webhook.group, webhook.version, webhook.resource);
        assert_eq!(response, format!("expect resource to be {own}"));
    }
    let wrong = |path: &str| {
        let review = with(
            envelope(path, json!({})),
            "/request/resource/resource",
            json!("x"),
        );
        review_with(&world, path, &review)
    };
    let jobs = "expect resource to be {batch.volcano.sh v1alpha1 jobs}";
    assert_eq!(wrong("/jobs/validate"), jobs);
    assert_eq!(wrong("/pods/validate"), "expect resource to be { v1 pods}");
}

fn review_with(world: &World, path: &str, body: &Value) -> String {
    refusal(&review(path, body.to_string().as_bytes(), world, &world.options))
}

#[test]
fn each_path_takes_its_own_operations_only() {
    let world = World::new();
    let cases = [
        ("/jobs/mutate", "UPDATE", "expect operation to be 'CREATE' "),
        (
            "/jobs/validate",
            "DELETE",
            "expect operation to be 'CREATE' or 'UPDATE'",
        ),
        (
            "/queues/mutate",
            "UPDATE",
            "invalid operation `UPDATE`, expect operation to be `CREATE`",
        ),
        (
            "/queues/validate",
            "CONNECT",
            "invalid operation `CONNECT`, expect operation to be `CREATE`, `UPDATE` or `DELETE`",
        ),
        (
            "/podgroups/mutate",
            "DELETE",
            "invalid operation `DELETE`, expect operation to be `CREATE`",
        ),
        ("/podgroups/validate", "UPDATE", "unsupported operation UPDATE"),
        ("/pods/mutate", "UPDATE", "expect operation to be 'CREATE' "),
        ("/pods/validate", "UPDATE", "expect operation to be 'CREATE'"),
        (
            "/jobflows/validate",
            "DELETE",
            "expect operation to be 'CREATE' or 'UPDATE'",
        ),
        (
            "/cronjobs/validate",
            "DELETE",
            "expect operation to be 'CREATE' or 'UPDATE'",
        ),
        ("/hypernodes/validate", "DELETE", ""),
    ];
    for (path, operation, message) in cases {
        let request = json!({"operation": operation, "object": {}, "oldObject": {}});
        assert_eq!(refusal(&world.ask(path, request)), message, "{path}");
    }
}

#[test]
fn a_message_has_an_end() {
    let tasks: Vec<Value> = (0..5000).map(|i| json!({"name": format!("t{i}")})).collect();
    let job = json!({"metadata": {"name": "j"}, "spec": {"queue": "default", "tasks": tasks}});
    let message = World::new().refusal("/jobs/validate", &job);
    assert!(
        message.ends_with('…') && message.len() < 33_000,
        "{} bytes",
        message.len()
    );
}
