//! Patches.

use super::{Tally, World};
use serde_json::json;

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("patches").await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let a = format!("{maps}/a");
    w.post(
        &maps,
        &json!({"metadata": {"name": "a", "labels": {"x": "1", "y": "1"}}, "data": {"k": "1", "l": "1"}}),
    )
    .await;

    let merged = w
        .merge(&a, &json!({"data": {"k": "2", "l": null, "m": "1"}}))
        .await;
    t.check(
        "a merge patch sets and removes",
        merged.code == 200 && merged.body["data"] == json!({"k": "2", "m": "1"}),
        &merged.body,
    );
    let same = w.merge(&a, &json!({"data": {"k": "2"}})).await;
    t.check(
        "a patch that changes nothing keeps the version",
        same.version() == merged.version(),
        (same.version(), merged.version()),
    );
    let stale = w
        .merge(
            &a,
            &json!({"metadata": {"resourceVersion": "1"}, "data": {"k": "3"}}),
        )
        .await;
    t.check("a patch can name a version", stale.code == 409, &stale.body);
    let dry = w
        .merge(&format!("{a}?dryRun=All"), &json!({"data": {"k": "9"}}))
        .await;
    t.check(
        "a patch can be tried",
        dry.body["data"]["k"] == "9" && w.get(&a).await.body["data"]["k"] == "2",
        &dry.body,
    );
    let renamed = w.merge(&a, &json!({"metadata": {"name": "b"}})).await;
    t.refused(
        "a patch does not rename",
        &renamed,
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    );
    let moved = w.merge(&a, &json!({"metadata": {"namespace": "b"}})).await;
    t.check("nor move", moved.code == 400, &moved.body);
    let kept = w
        .merge(
            &a,
            &json!({"metadata": {"uid": null, "creationTimestamp": null, "generation": 7}}),
        )
        .await;
    t.check(
        "what is the server's stays",
        kept.code == 200 && kept.uid() == merged.uid(),
        &kept.body,
    );
    let missing = w.merge(&format!("{maps}/none"), &json!({})).await;
    t.check("a patch creates nothing", missing.code == 404, missing.code);

    let patched = w
        .json_patch(
            &a,
            &json!([
                {"op": "test", "path": "/data/k", "value": "2"},
                {"op": "add", "path": "/data/n", "value": "1"},
                {"op": "replace", "path": "/data/k", "value": "4"},
                {"op": "remove", "path": "/data/m"},
                {"op": "copy", "from": "/data/n", "path": "/data/o"},
                {"op": "add", "path": "/metadata/labels/example.com~1z", "value": "1"},
            ]),
        )
        .await;
    t.check(
        "a JSON patch does what it says",
        patched.body["data"] == json!({"k": "4", "n": "1", "o": "1"}),
        &patched.body,
    );
    t.check(
        "its paths are escaped",
        patched.body["metadata"]["labels"]["example.com/z"] == "1",
        &patched.body,
    );
    let tested = w
        .json_patch(&a, &json!([{"op": "test", "path": "/data/k", "value": "x"}]))
        .await;
    t.check(
        "a test that fails refuses",
        tested.code == 422 && tested.reason() == "Invalid",
        &tested.body,
    );
    let nothing = w
        .json_patch(&a, &json!([{"op": "remove", "path": "/data/none"}]))
        .await;
    t.check(
        "what is not there cannot be removed",
        nothing.code == 422,
        &nothing.body,
    );
    let copies: Vec<_> = (0..16)
        .map(|number| json!({"op": "copy", "from": "/data", "path": format!("/data/copy{number}")}))
        .collect();
    w.merge(&a, &json!({"data": {"k": "x".repeat(1000)}})).await;
    let doubled = w.json_patch(&a, &json!(copies)).await;
    t.check(
        "copies that double an object again and again are refused",
        doubled.code == 422,
        &doubled.body,
    );
    let form = w.json_patch(&a, &json!({"op": "remove"})).await;
    t.check("a JSON patch is a list", form.code == 400, &form.body);

    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let p = format!("{pods}/p");
    let made = w.post(&pods, &json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "nobody", "containers": [
        {"name": "a", "image": "x:1"}, {"name": "b", "image": "x:1"}], "tolerations": [{"key": "a", "operator": "Exists"}]}})).await;
    t.check("a pod is there", made.code == 201, &made.body);
    let image = w
        .strategic(
            &p,
            &json!({"spec": {"containers": [{"name": "b", "image": "x:2"}]}}),
        )
        .await;
    let images = [
        &image.body["spec"]["containers"][0]["image"],
        &image.body["spec"]["containers"][1]["image"],
    ];
    t.check(
        "a strategic patch merges lists by key",
        images == ["x:1", "x:2"],
        images,
    );
    let condition =
        |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    w.strategic(&format!("{p}/status"), &condition("A", "False"))
        .await;
    w.strategic(&format!("{p}/status"), &condition("B", "True")).await;
    let conditions = w.strategic(&format!("{p}/status"), &condition("A", "True")).await;
    let of = |kind: &str| {
        conditions.body["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["type"] == kind)
            .map(|one| one["status"].clone())
    };
    t.check(
        "conditions merge by type",
        of("A") == Some(json!("True")) && of("B") == Some(json!("True")),
        &conditions.body["status"],
    );
    let labels = w
        .strategic(
            &p,
            &json!({"metadata": {"labels": {"x": "1"}, "finalizers": ["example.com/a"]}}),
        )
        .await;
    t.check(
        "labels merge",
        labels.body["metadata"]["labels"] == json!({"x": "1"}),
        &labels.body["metadata"],
    );
    let more = w
        .strategic(
            &p,
            &json!({"metadata": {"labels": {"y": "2"}, "finalizers": ["example.com/b"]}}),
        )
        .await;
    t.check(
        "finalizers add up",
        more.body["metadata"]["finalizers"] == json!(["example.com/b", "example.com/a"]),
        &more.body["metadata"],
    );
    let fewer = w
        .strategic(
            &p,
            &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}),
        )
        .await;
    t.differs(
        "and are taken away by name",
        fewer.body["metadata"].get("finalizers"),
        None,
        Some(&json!([])),
    );
    let replaced = w
        .strategic(
            &p,
            &json!({"metadata": {"labels": {"$patch": "replace", "z": "1"}}}),
        )
        .await;
    t.check(
        "a directive replaces",
        replaced.body["metadata"]["labels"] == json!({"z": "1"}),
        &replaced.body["metadata"],
    );

    let jobs = format!("/apis/bus.volcano.sh/v1alpha1/namespaces/{ns}/commands");
    w.post(&jobs, &json!({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": "c"}, "action": "AbortJob"})).await;
    let strategic = w.strategic(&format!("{jobs}/c"), &json!({"action": "x"})).await;
    t.check(
        "custom resources take no strategic patch",
        strategic.code == 415,
        &strategic.body,
    );
    let merged = w
        .merge(&format!("{jobs}/c"), &json!({"action": "ResumeJob"}))
        .await;
    t.check(
        "but a merge patch",
        merged.code == 200 && merged.body["action"] == "ResumeJob",
        &merged.body,
    );
    let unknown = w
        .ask(http::Method::PATCH, &a, "application/json", &json!({}))
        .await;
    t.check(
        "an unknown form of patch is refused",
        unknown.code == 415,
        &unknown.body,
    );
}
