//! Admission webhooks.

use super::endpoint::Endpoint;
use super::{Tally, World};
use serde_json::{Value, json};

fn webhook(name: &str, client: Value, extra: Value) -> Value {
    let mut webhook = json!({
        "name": format!("{name}.conf.example.com"),
        "clientConfig": client,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE", "DELETE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "conf-hooks"}},
    });
    for (key, value) in extra.as_object().unwrap() {
        webhook[key] = value.clone();
    }
    webhook
}

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("hooks").await;
    let elsewhere = w.namespace("hooks-elsewhere").await;
    let endpoint = Endpoint::start().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let hooks = "/apis/admissionregistration.k8s.io/v1";
    let map = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    let create_only = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]);
    let mutating = json!({"metadata": {"name": "conf-hooks"}, "webhooks": [
        webhook("mutate", endpoint.client("/mutate"), json!({"rules": create_only, "objectSelector": {"matchLabels": {"mutate": "yes"}}})),
        webhook("ignored", endpoint.client("/fail"), json!({"failurePolicy": "Ignore", "objectSelector": {"matchLabels": {"mutate": "yes"}}})),
    ]});
    let made = w
        .post(&format!("{hooks}/mutatingwebhookconfigurations"), &mutating)
        .await;
    t.check("a configuration is taken", made.code == 201, &made.body);
    t.check(
        "its defaults are filled in",
        made.body["webhooks"][0]["failurePolicy"] == "Fail"
            && made.body["webhooks"][0]["timeoutSeconds"] == 10
            && made.body["webhooks"][0]["matchPolicy"] == "Equivalent",
        &made.body["webhooks"][0],
    );
    let validating = json!({"metadata": {"name": "conf-hooks"}, "webhooks": [
        webhook("judge", endpoint.client("/judge"), json!({"matchConditions": [{"name": "on", "expression": "!has(request.name) || !request.name.startsWith('free')"}]})),
        webhook("broken", endpoint.client("/fail"), json!({"objectSelector": {"matchLabels": {"broken": "yes"}}})),
    ]});
    let made = w
        .post(&format!("{hooks}/validatingwebhookconfigurations"), &validating)
        .await;
    t.check("one that validates too", made.code == 201, &made.body);
    // Kubernetes takes a moment to call new webhooks.
    let called = w.eventually(|| async {
        let tried = w
            .post(
                &format!("{maps}?dryRun=All"),
                &map("try", json!({"mutate": "yes", "bad": "yes"})),
            )
            .await;
        tried.code == 422
    });
    t.check("it is called", called.await, ());

    let mutated = w.post(&maps, &map("m", json!({"mutate": "yes"}))).await;
    t.check(
        "a webhook changes an object",
        mutated.code == 201 && mutated.body["data"]["operation"] == "CREATE",
        &mutated.body,
    );
    t.check(
        "it knows who asks",
        mutated.body["data"]["user"] == "yes",
        &mutated.body,
    );
    t.check(
        "what it adds is pruned",
        mutated.body.get("nonsense").is_none(),
        &mutated.body,
    );
    let warning = mutated
        .headers
        .get("warning")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    t.check(
        "its warnings reach the client",
        warning.contains("mind this"),
        &warning,
    );
    let plain = w.post(&maps, &map("plain", json!({}))).await;
    t.check(
        "what it does not select stays",
        plain.body.get("data").is_none(),
        &plain.body,
    );
    let other = w
        .post(
            &format!("/api/v1/namespaces/{elsewhere}/configmaps"),
            &map("m", json!({"mutate": "yes", "bad": "yes"})),
        )
        .await;
    t.check(
        "other namespaces are not asked about",
        other.code == 201 && other.body.get("data").is_none(),
        &other.body,
    );

    let bad = w.post(&maps, &map("bad", json!({"bad": "yes"}))).await;
    t.refused(
        "a webhook refuses",
        &bad,
        422,
        "admission webhook \"judge.conf.example.com\" denied the request: it is bad",
    );
    let mute = w.post(&maps, &map("mute", json!({"bad": "mute"}))).await;
    t.refused(
        "without a word too",
        &mute,
        400,
        "admission webhook \"judge.conf.example.com\" denied the request without explanation",
    );
    let free = w.post(&maps, &map("free", json!({"bad": "yes"}))).await;
    t.check("conditions let pass", free.code == 201, &free.body);
    w.post(&maps, &map("fixed", json!({"fixed": "1", "keep": "yes"})))
        .await;
    let changed = w
        .merge(
            &format!("{maps}/fixed"),
            &json!({"metadata": {"labels": {"fixed": "2"}}}),
        )
        .await;
    t.refused(
        "it sees what was",
        &changed,
        400,
        "denied the request: fixed is fixed",
    );
    let kept = w.delete(&format!("{maps}/fixed"), &Value::Null).await;
    t.refused(
        "it is asked about deletions",
        &kept,
        400,
        "denied the request: fixed stays",
    );
    let broken = w.post(&maps, &map("broken", json!({"broken": "yes"}))).await;
    t.refused(
        "one that fails refuses",
        &broken,
        500,
        "Internal error occurred: failed calling webhook \"broken.conf.example.com\"",
    );
    let dry = w
        .post(
            &format!("{maps}?dryRun=All"),
            &map("dry", json!({"mutate": "yes"})),
        )
        .await;
    t.check(
        "a dry run asks as well",
        dry.code == 201 && dry.body["data"]["operation"] == "CREATE",
        &dry.body,
    );

    w.delete(
        &format!("{hooks}/mutatingwebhookconfigurations/conf-hooks"),
        &Value::Null,
    )
    .await;
    w.delete(
        &format!("{hooks}/validatingwebhookconfigurations/conf-hooks"),
        &Value::Null,
    )
    .await;
    let over = w
        .eventually(|| async {
            w.post(&format!("{maps}?dryRun=All"), &map("over", json!({"bad": "yes"})))
                .await
                .code
                == 201
        })
        .await;
    t.check("without a configuration nobody is asked", over, ());
}
