//! Server-side apply.

use super::{Tally, World};
use serde_json::{Value, json};

fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            format!(
                "{}/{}",
                entry["manager"].as_str().unwrap_or_default(),
                entry["operation"].as_str().unwrap_or_default()
            )
        })
        .collect()
}

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("applied").await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let by = |manager: &str| format!("{maps}/a?fieldManager={manager}");

    let created = w.apply(&by("one"), &map(json!({"k": "1", "l": "1"}))).await;
    t.check(
        "apply creates what is not there",
        created.code == 201,
        &created.body,
    );
    t.check(
        "its manager is recorded",
        managers(&created.body) == ["one/Apply"],
        managers(&created.body),
    );
    let fields = &created.body["metadata"]["managedFields"][0]["fieldsV1"];
    t.check(
        "with its fields",
        fields["f:data"]["f:k"] == json!({}) && fields["f:data"]["f:l"] == json!({}),
        fields,
    );
    let same = w.apply(&by("one"), &map(json!({"k": "1", "l": "1"}))).await;
    t.check(
        "the same again changes nothing",
        same.code == 200 && same.version() == created.version(),
        (same.code, same.version(), created.version()),
    );
    let fewer = w.apply(&by("one"), &map(json!({"k": "1"}))).await;
    t.check(
        "what is left out goes",
        fewer.body["data"] == json!({"k": "1"}),
        &fewer.body["data"],
    );
    let second = w.apply(&by("two"), &map(json!({"m": "1"}))).await;
    t.check(
        "managers add up",
        second.body["data"] == json!({"k": "1", "m": "1"}) && managers(&second.body).len() == 2,
        &second.body,
    );
    let conflict = w.apply(&by("two"), &map(json!({"k": "2", "m": "1"}))).await;
    t.refused(
        "what is another's conflicts",
        &conflict,
        409,
        "Apply failed with 1 conflict: conflict with \"one\": .data.k",
    );
    t.check(
        "the cause names the field",
        conflict.body["details"]["causes"][0]["field"] == ".data.k"
            && conflict.body["details"]["causes"][0]["reason"] == "FieldManagerConflict",
        &conflict.body["details"],
    );
    let shared = w.apply(&by("two"), &map(json!({"k": "1", "m": "1"}))).await;
    t.check("the same value is shared", shared.code == 200, &shared.body);
    let forced = w
        .apply(
            &format!("{}&force=true", by("two")),
            &map(json!({"k": "3", "m": "1"})),
        )
        .await;
    t.check(
        "force takes it",
        forced.code == 200 && forced.body["data"]["k"] == "3",
        &forced.body,
    );
    let lost = w.apply(&by("one"), &map(json!({"k": "1"}))).await;
    t.check(
        "from whoever had it",
        lost.code == 409 && lost.message().contains("conflict with \"two\""),
        &lost.body,
    );
    let unmanaged = w.apply(&format!("{maps}/a"), &map(json!({}))).await;
    t.refused(
        "apply wants a manager",
        &unmanaged,
        422,
        "fieldManager: Required value: is required for apply patch",
    );
    let managed = w.apply(&by("one"), &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}})).await;
    t.refused(
        "nobody applies managed fields",
        &managed,
        400,
        "metadata.managedFields must be nil",
    );

    let updated = w
        .ask(
            http::Method::PATCH,
            &format!("{maps}/a?fieldManager=editor"),
            "application/merge-patch+json",
            &json!({"data": {"m": "2"}}),
        )
        .await;
    t.check(
        "an update is recorded too",
        managers(&updated.body).contains(&"editor/Update".to_owned()),
        managers(&updated.body),
    );
    let taken = w.apply(&by("two"), &map(json!({"k": "3", "m": "1"}))).await;
    t.refused(
        "and takes what it changes",
        &taken,
        409,
        "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.m",
    );

    let versioned = |version: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": version}, "data": {"n": version}});
    let by_version = by("by-version");
    let stale = w.apply(&by_version, &versioned(&created.version())).await;
    t.refused(
        "whoever names a version wants no other",
        &stale,
        409,
        "the object has been modified; please apply your changes to the latest version and try again",
    );
    let version = w.get(&format!("{maps}/a")).await.version();
    let fresh = w.apply(&by_version, &versioned(&version)).await;
    t.check(
        "and gets what it names",
        fresh.code == 200 && fresh.body["data"]["n"] == version.as_str(),
        &fresh.body,
    );

    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let pod = |containers: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"schedulerName": "nobody", "containers": containers}});
    let made = w
        .apply(
            &format!("{pods}/p?fieldManager=one"),
            &pod(json!([{"name": "a", "image": "x:1"}, {"name": "b", "image": "x:1"}])),
        )
        .await;
    t.check(
        "a pod can be applied",
        made.code == 201 && made.body["spec"]["restartPolicy"] == "Always",
        &made.body,
    );
    let conflict = w.apply(&format!("{pods}/p?fieldManager=two"), &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "x:2"}]}})).await;
    t.check(
        "lists are owned by their keys",
        conflict.code == 409 && conflict.message().contains(".spec.containers[name=\"a\"].image"),
        conflict.message(),
    );

    let queue = |spec: Value| json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "conf-applied"}, "spec": spec});
    let queues = "/apis/scheduling.volcano.sh/v1beta1/queues";
    let created = w
        .apply(
            &format!("{queues}/conf-applied?fieldManager=one"),
            &queue(json!({"weight": 2})),
        )
        .await;
    t.check(
        "custom resources are applied too",
        created.code == 201 && created.body["spec"]["weight"] == 2,
        &created.body,
    );
    let conflict = w
        .apply(
            &format!("{queues}/conf-applied?fieldManager=two"),
            &queue(json!({"weight": 3})),
        )
        .await;
    t.check(
        "with conflicts",
        conflict.code == 409 && conflict.message().contains(".spec.weight"),
        conflict.message(),
    );

    let named = w
        .post(
            &format!("{maps}?fieldManager=maker"),
            &json!({"metadata": {"name": "named"}, "data": {"k": "1"}}),
        )
        .await;
    t.check(
        "a write that names its manager is recorded",
        managers(&named.body) == ["maker/Update"],
        managers(&named.body),
    );
    let conflict = w.apply(&format!("{maps}/named?fieldManager=one"), &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "named"}, "data": {"k": "2"}})).await;
    t.check(
        "and their fields are theirs",
        conflict.code == 409 && conflict.message().contains("conflict with \"maker\" using v1"),
        conflict.message(),
    );
}
