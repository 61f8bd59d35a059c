//! Create, get, update, delete.

use super::{Tally, World};
use http::Method;
use serde_json::{Value, json};

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("verbs").await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let map = |name: &str, data: Value| json!({"metadata": {"name": name}, "data": data});

    let a = w.post(&maps, &map("a", json!({"k": "1"}))).await;
    t.check("a create answers 201", a.code == 201, a.code);
    t.check(
        "kind and version are filled in",
        a.body["kind"] == "ConfigMap" && a.body["apiVersion"] == "v1",
        &a.body,
    );
    t.check(
        "it has a UID, a version and a time",
        !a.uid().is_empty() && !a.version().is_empty() && a.body["metadata"]["creationTimestamp"].is_string(),
        &a.body,
    );
    t.check(
        "it has its namespace",
        a.body["metadata"]["namespace"] == ns.as_str(),
        &a.body,
    );
    let again = w.post(&maps, &map("a", json!({}))).await;
    t.refused(
        "a name is taken once",
        &again,
        409,
        "configmaps \"a\" already exists",
    );
    t.check(
        "the reason is AlreadyExists",
        again.reason() == "AlreadyExists",
        again.reason(),
    );
    t.check(
        "details name the object",
        again.body["details"]["name"] == "a" && again.body["details"]["kind"] == "configmaps",
        &again.body,
    );

    let generated = w
        .post(&maps, &json!({"metadata": {"generateName": "gen-"}}))
        .await;
    let name = generated.body["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    t.check(
        "names are generated",
        name.starts_with("gen-") && name.len() == 9,
        &name,
    );
    let nameless = w.post(&maps, &json!({"metadata": {}})).await;
    t.refused(
        "an object without a name is refused",
        &nameless,
        422,
        "name or generateName is required",
    );
    let wrong = w.post(&maps, &map("A_b", json!({}))).await;
    t.refused(
        "a wrong name is refused",
        &wrong,
        422,
        "ConfigMap \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain",
    );
    t.check(
        "the cause names the field",
        wrong.body["details"]["causes"][0]["field"] == "metadata.name",
        &wrong.body,
    );
    let label = w
        .post(&maps, &json!({"metadata": {"name": "l", "labels": {"a": "b c"}}}))
        .await;
    t.refused(
        "a wrong label is refused",
        &label,
        422,
        "metadata.labels: Invalid value: \"b c\": a valid label must be",
    );
    let elsewhere = w
        .post(&maps, &json!({"metadata": {"name": "x", "namespace": "other"}}))
        .await;
    t.refused(
        "the namespace of body and path agree",
        &elsewhere,
        400,
        "does not match the namespace sent on the request",
    );
    let versioned = w
        .post(&maps, &json!({"metadata": {"name": "x", "resourceVersion": "1"}}))
        .await;
    t.check(
        "a new object has no version",
        versioned.code == 500 && versioned.message().contains("resourceVersion should not be set"),
        &versioned.body,
    );
    let kind = w
        .post(
            &maps,
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
        )
        .await;
    t.check("another kind is refused", kind.code == 400, &kind.body);
    let nowhere = w
        .post("/api/v1/namespaces/conf-nowhere/configmaps", &map("a", json!({})))
        .await;
    t.refused(
        "a namespace has to be there",
        &nowhere,
        404,
        "namespaces \"conf-nowhere\" not found",
    );
    let broken = w
        .raw(
            Method::POST,
            &maps,
            &[("content-type", "application/json")],
            b"{nonsense".to_vec(),
        )
        .await;
    t.check("a body that is no JSON is refused", broken.0 == 400, broken.0);
    let format = w
        .raw(
            Method::POST,
            &maps,
            &[("content-type", "text/plain")],
            b"{}".to_vec(),
        )
        .await;
    t.check("an unknown format is refused", format.0 == 415, format.0);
    let yaml = w
        .raw(
            Method::POST,
            &maps,
            &[("content-type", "application/yaml")],
            b"metadata: {name: yaml}\ndata: {a: b}\n".to_vec(),
        )
        .await;
    t.check("YAML is taken", yaml.0 == 201, yaml.0);

    let got = w.get(&format!("{maps}/a")).await;
    t.check(
        "a get answers what was created",
        got.code == 200 && got.body == a.body,
        &got.body,
    );
    let missing = w.get(&format!("{maps}/none")).await;
    t.refused(
        "what is not there is not found",
        &missing,
        404,
        "configmaps \"none\" not found",
    );
    let unknown = w.get(&format!("/api/v1/namespaces/{ns}/nonsenses")).await;
    t.check(
        "an unknown resource is not found",
        unknown.code == 404,
        unknown.code,
    );
    let method = w.post(&format!("{maps}/a"), &json!({})).await;
    t.check(
        "a verb that is not for the path is refused",
        method.code == 405,
        method.code,
    );

    let mut changed = a.body.clone();
    changed["data"]["k"] = json!("2");
    let updated = w.put(&format!("{maps}/a"), &changed).await;
    t.check(
        "an update answers 200 with a new version",
        updated.code == 200 && updated.version() != a.version(),
        &updated.body,
    );
    t.check(
        "UID and time stay",
        updated.uid() == a.uid()
            && updated.body["metadata"]["creationTimestamp"] == a.body["metadata"]["creationTimestamp"],
        &updated.body,
    );
    let stale = w.put(&format!("{maps}/a"), &changed).await;
    t.refused("an old version conflicts", &stale, 409, "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again");
    let same = w.put(&format!("{maps}/a"), &updated.body).await;
    t.check(
        "an update that changes nothing keeps the version",
        same.version() == updated.version(),
        same.version(),
    );
    let blind = w.put(&format!("{maps}/a"), &map("a", json!({"k": "3"}))).await;
    t.check(
        "built-in kinds can be replaced whatever their version",
        blind.code == 200 && blind.body["data"]["k"] == "3",
        &blind.body,
    );
    let renamed = w.put(&format!("{maps}/a"), &map("b", json!({}))).await;
    t.refused(
        "names of body and path agree",
        &renamed,
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    );
    let absent = w.put(&format!("{maps}/none"), &map("none", json!({}))).await;
    t.check("an update creates nothing", absent.code == 404, absent.code);
    let mut other = blind.body.clone();
    other["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    let uid = w.put(&format!("{maps}/a"), &other).await;
    t.refused(
        "another UID conflicts",
        &uid,
        409,
        "Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000, UID in object meta:",
    );

    let dry = w
        .post(&format!("{maps}?dryRun=All"), &map("dry", json!({})))
        .await;
    t.check(
        "a dry run answers as if",
        dry.code == 201 && !dry.uid().is_empty(),
        &dry.body,
    );
    t.check(
        "a dry run writes nothing",
        w.get(&format!("{maps}/dry")).await.code == 404,
        (),
    );
    let dry = w.delete(&format!("{maps}/a?dryRun=All"), &Value::Null).await;
    t.check(
        "a dry run deletes nothing",
        dry.code == 200 && w.get(&format!("{maps}/a")).await.code == 200,
        dry.code,
    );

    let strict = w
        .post(
            &format!("{maps}?fieldValidation=Strict"),
            &json!({"metadata": {"name": "s"}, "nonsense": 1}),
        )
        .await;
    t.refused(
        "strict validation refuses unknown fields",
        &strict,
        400,
        "strict decoding error: unknown field \"nonsense\"",
    );
    let warned = w
        .post(
            &format!("{maps}?fieldValidation=Warn"),
            &json!({"metadata": {"name": "warned"}, "nonsense": 1}),
        )
        .await;
    let warning = warned
        .headers
        .get("warning")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    t.check(
        "else the client is warned",
        warning.contains("299 - \"unknown field \\\"nonsense\\\"\""),
        &warning,
    );
    t.check(
        "and the field dropped",
        warned.code == 201 && warned.body.get("nonsense").is_none(),
        &warned.body,
    );
    let typed = w
        .post(&maps, &json!({"metadata": {"name": "typed"}, "data": {"a": 1}}))
        .await;
    t.check(
        "a wrong type is refused",
        typed.code == 400 && typed.message().contains("cannot unmarshal number"),
        &typed.body,
    );

    let precondition = w
        .delete(
            &format!("{maps}/a"),
            &json!({"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}),
        )
        .await;
    t.check(
        "a deletion can name the UID",
        precondition.code == 409,
        &precondition.body,
    );
    let version = w
        .delete(
            &format!("{maps}/a"),
            &json!({"preconditions": {"resourceVersion": "1"}}),
        )
        .await;
    t.check(
        "a deletion can name the version",
        version.code == 409,
        &version.body,
    );
    let deleted = w.delete(&format!("{maps}/a"), &Value::Null).await;
    t.check(
        "a deletion answers a status",
        deleted.code == 200
            && deleted.body["status"] == "Success"
            && deleted.body["details"]["uid"] == a.uid().as_str(),
        &deleted.body,
    );
    t.check(
        "what is deleted is gone",
        w.get(&format!("{maps}/a")).await.code == 404,
        (),
    );
    t.check(
        "it can be deleted once",
        w.delete(&format!("{maps}/a"), &Value::Null).await.code == 404,
        (),
    );
    let policy = w
        .delete(&format!("{maps}/yaml"), &json!({"propagationPolicy": "Nonsense"}))
        .await;
    t.refused(
        "an unknown policy is refused",
        &policy,
        422,
        "propagationPolicy: Unsupported value: \"Nonsense\": supported values: \"Foreground\", \"Background\", \"Orphan\"",
    );

    for name in ["c1", "c2", "c3"] {
        w.post(
            &maps,
            &json!({"metadata": {"name": name, "labels": {"set": if name == "c3" { "b" } else { "a" }}}}),
        )
        .await;
    }
    let collection = w
        .delete(&format!("{maps}?labelSelector=set%3Da"), &Value::Null)
        .await;
    t.check(
        "a collection is deleted by a selector",
        collection.code == 200,
        &collection.body,
    );
    let left = (
        w.get(&format!("{maps}/c1")).await.code,
        w.get(&format!("{maps}/c3")).await.code,
    );
    t.check("and only what it selects", left == (404, 200), left);

    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    let secret = w
        .post(
            &secrets,
            &json!({"metadata": {"name": "s"}, "stringData": {"a": "hello"}}),
        )
        .await;
    t.check(
        "texts of a secret are encoded",
        secret.body["data"]["a"] == "aGVsbG8="
            && secret.body.get("stringData").is_none()
            && secret.body["type"] == "Opaque",
        &secret.body,
    );
    w.post(
        &maps,
        &json!({"metadata": {"name": "fixed"}, "data": {"a": "1"}, "immutable": true}),
    )
    .await;
    let fixed = w
        .merge(&format!("{maps}/fixed"), &json!({"data": {"a": "2"}}))
        .await;
    t.refused(
        "what is immutable stays",
        &fixed,
        422,
        "data: Forbidden: field is immutable when `immutable` is set",
    );
    let key = w.post(&maps, &map("keys", json!({"a b": "1"}))).await;
    t.refused(
        "keys have a form",
        &key,
        422,
        "data[a b]: Invalid value: \"a b\": a valid config key must consist of",
    );
}
