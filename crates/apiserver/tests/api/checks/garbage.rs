//! Finalizers, garbage collection, namespaces, endpoints.

use super::{Tally, World};
use serde_json::{Value, json};

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("garbage").await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let make = async |name: &str, owners: Value, finalizers: Value| {
        let made = w
            .post(
                &maps,
                &json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}}),
            )
            .await;
        assert_eq!(made.code, 201, "{made:?}");
        made.uid()
    };
    let owner = |name: &str, uid: &str, blocks: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": blocks});
    let at = |name: &str| format!("{maps}/{name}");

    make("held", json!([]), json!(["example.com/f"])).await;
    let deleted = w.delete(&at("held"), &Value::Null).await;
    t.check(
        "a finalizer holds an object",
        deleted.code == 200 && deleted.body["metadata"]["deletionTimestamp"].is_string(),
        &deleted.body,
    );
    let more = w
        .json_patch(
            &at("held"),
            &json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/g"}]),
        )
        .await;
    t.refused(
        "none is added to what goes",
        &more,
        422,
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted",
    );
    let still = w.merge(&at("held"), &json!({"data": {"a": "b"}})).await;
    t.check("it can be changed still", still.code == 200, &still.body);
    w.merge(&at("held"), &json!({"metadata": {"finalizers": null}}))
        .await;
    t.check(
        "without finalizers it is gone",
        w.get(&at("held")).await.code == 404,
        (),
    );

    let uid = make("o1", json!([]), json!([])).await;
    make("d1", json!([owner("o1", &uid, false)]), json!([])).await;
    w.delete(&at("o1"), &json!({"propagationPolicy": "Background"}))
        .await;
    t.check(
        "in the background the owner goes first",
        w.get(&at("o1")).await.code == 404,
        (),
    );
    t.check("and what it owns follows", w.gone(&at("d1")).await, ());

    let uid = make("o2", json!([]), json!([])).await;
    make("d2", json!([owner("o2", &uid, true)]), json!(["example.com/f"])).await;
    let foreground = w
        .delete(&at("o2"), &json!({"propagationPolicy": "Foreground"}))
        .await;
    t.check(
        "in the foreground the owner waits",
        foreground.body["metadata"]["finalizers"] == json!(["foregroundDeletion"]),
        &foreground.body,
    );
    let going = w
        .eventually(|| async { w.get(&at("d2")).await.body["metadata"]["deletionTimestamp"].is_string() })
        .await;
    t.check(
        "what it owns goes first",
        going && w.get(&at("o2")).await.code == 200,
        (),
    );
    w.merge(&at("d2"), &json!({"metadata": {"finalizers": null}}))
        .await;
    t.check(
        "then the owner",
        w.gone(&at("d2")).await && w.gone(&at("o2")).await,
        (),
    );

    let uid = make("o3", json!([]), json!([])).await;
    make("d3", json!([owner("o3", &uid, false)]), json!([])).await;
    w.delete(&at("o3"), &json!({"propagationPolicy": "Orphan"})).await;
    t.check("an owner that lets go is gone", w.gone(&at("o3")).await, ());
    let orphan = w.get(&at("d3")).await;
    t.check(
        "what it owned stays, without it",
        orphan.code == 200
            && orphan.body["metadata"]
                .get("ownerReferences")
                .is_none_or(|list| *list == json!([])),
        &orphan.body,
    );

    let (one, two) = (
        make("o4", json!([]), json!([])).await,
        make("o5", json!([]), json!([])).await,
    );
    make(
        "d4",
        json!([owner("o4", &one, false), owner("o5", &two, false)]),
        json!([]),
    )
    .await;
    w.delete(&at("o4"), &json!({"propagationPolicy": "Background"}))
        .await;
    let forgotten = w
        .eventually(|| async {
            w.get(&at("d4")).await.body["metadata"]["ownerReferences"]
                .as_array()
                .is_some_and(|list| list.len() == 1)
        })
        .await;
    t.check("an object with another owner stays", forgotten, ());
    make(
        "d5",
        json!([owner("never", "00000000-0000-0000-0000-000000000000", false)]),
        json!([]),
    )
    .await;
    t.check(
        "what names an owner that never was goes",
        w.gone(&at("d5")).await,
        (),
    );

    let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts/default");
    t.check(
        "a namespace has an account",
        w.eventually(|| async { w.get(&accounts).await.code == 200 })
            .await,
        (),
    );
    let ending = w.namespace("ending").await;
    let space = format!("/api/v1/namespaces/{ending}");
    let made = w.get(&space).await;
    t.check(
        "a namespace is Active, with its name as a label",
        made.body["status"]["phase"] == "Active"
            && made.body["metadata"]["labels"]["kubernetes.io/metadata.name"] == ending.as_str(),
        &made.body,
    );
    t.check(
        "and held by its contents",
        made.body["spec"]["finalizers"] == json!(["kubernetes"]),
        &made.body["spec"],
    );
    w.post(
        &format!("{space}/configmaps"),
        &json!({"metadata": {"name": "x", "finalizers": ["example.com/f"]}}),
    )
    .await;
    w.post(&format!("{space}/secrets"), &json!({"metadata": {"name": "y"}}))
        .await;
    let terminating = w.delete(&space, &Value::Null).await;
    t.check(
        "a namespace that goes is Terminating",
        terminating.body["status"]["phase"] == "Terminating",
        &terminating.body,
    );
    let late = w
        .post(
            &format!("{space}/configmaps"),
            &json!({"metadata": {"name": "late"}}),
        )
        .await;
    t.refused(
        "nothing new comes into it",
        &late,
        403,
        "because it is being terminated",
    );
    t.check(
        "what is in it goes",
        w.gone(&format!("{space}/secrets/y")).await,
        (),
    );
    t.check("what is held holds it", w.get(&space).await.code == 200, ());
    let held = w
        .eventually(|| async {
            w.get(&format!("{space}/configmaps/x")).await.body["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
    w.merge(
        &format!("{space}/configmaps/x"),
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    t.check("then it is gone", held && w.gone(&space).await, ());
    let kept = w.delete("/api/v1/namespaces/default", &Value::Null).await;
    t.refused(
        "the default namespace stays",
        &kept,
        403,
        "this namespace may not be deleted",
    );

    let services = format!("/api/v1/namespaces/{ns}/services");
    let service = w.post(&services, &json!({"metadata": {"name": "head"}, "spec": {"clusterIP": "None", "selector": {"app": "h"}, "ports": [{"port": 80}]}})).await;
    t.check(
        "a headless service is filled in",
        service.code == 201
            && service.body["spec"]["clusterIPs"] == json!(["None"])
            && service.body["spec"]["ports"][0]["targetPort"] == 80
            && service.body["spec"]["type"] == "ClusterIP",
        &service.body,
    );
    let addressed = w
        .post(
            &services,
            &json!({"metadata": {"name": "addr"}, "spec": {"ports": [{"port": 80}]}}),
        )
        .await;
    t.check(
        "another gets an address",
        addressed.body["spec"]["clusterIP"]
            .as_str()
            .is_some_and(|address| address.starts_with("10.96.")),
        &addressed.body["spec"],
    );
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let made = w.post(&pods, &json!({"metadata": {"name": "h", "labels": {"app": "h"}}, "spec": {"nodeName": "n", "hostname": "h", "subdomain": "head", "containers": [{"name": "c", "image": "x"}]}})).await;
    t.check("a pod behind it", made.code == 201, &made.body);
    w.merge(&format!("{pods}/h/status"), &json!({"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "conditions": [{"type": "Ready", "status": "True"}]}})).await;
    let endpoints = format!("/api/v1/namespaces/{ns}/endpoints/head");
    let found = w.eventually(|| async {
        let address = &w.get(&endpoints).await.body["subsets"][0]["addresses"][0];
        address["ip"] == "10.1.2.3" && address["hostname"] == "h" && address["targetRef"]["name"] == "h"
    });
    t.check(
        "is in its endpoints, with its name",
        found.await,
        w.get(&endpoints).await.body,
    );
    w.delete(&format!("{pods}/h"), &json!({"gracePeriodSeconds": 0}))
        .await;
    let left = w
        .eventually(|| async {
            w.get(&endpoints)
                .await
                .body
                .get("subsets")
                .is_none_or(|list| *list == json!([]))
        })
        .await;
    t.check("until it goes", left, ());
}
