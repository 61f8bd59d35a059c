//! Custom resources: schemas, defaults, pruning, messages, rules, subresources.

use super::{Tally, World};
use serde_json::{Value, json};

const GROUP: &str = "conf.example.com";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {
                        "type": "object",
                        "required": ["size"],
                        "properties": {
                            "size": {"type": "integer", "minimum": 1, "maximum": 9},
                            "color": {"type": "string", "default": "red", "enum": ["red", "green"]},
                            "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
                            "list": {"type": "array", "maxItems": 2, "minItems": 1, "items": {"type": "string"}},
                            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                                "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "port": {"type": "integer", "default": 80}}}},
                            "map": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
                            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                            "port": {"x-kubernetes-int-or-string": true},
                            "when": {"type": "string", "format": "date-time"},
                            "maybe": {"type": "string", "nullable": true},
                            "replicas": {"type": "integer"},
                            "ratio": {"type": "number", "multipleOf": 0.5},
                            "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}]},
                        },
                        "x-kubernetes-validations": [
                            {"rule": "self.size != 7", "message": "seven is taken"},
                            {"rule": "!has(self.list) || self.list.all(x, x.size() < 5)"},
                            {"rule": "!has(self.replicas) || self.replicas <= self.size", "messageExpression": "'too many replicas'"},
                        ],
                    },
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}},
                }}},
            }],
        },
    })
}

#[allow(clippy::too_many_lines, reason = "one list of checks")]
pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("crds").await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = w.post(crds, &definition()).await;
    t.check("a CRD is taken", made.code == 201, &made.body);
    t.check(
        "names are filled in",
        made.body["spec"]["names"]["singular"] == "widget"
            && made.body["spec"]["names"]["listKind"] == "WidgetList",
        &made.body["spec"]["names"],
    );
    let path = format!("{crds}/widgets.{GROUP}");
    let established = w.eventually(|| async {
        let crd = w.get(&path).await.body;
        crd["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|one| one["type"] == "Established" && one["status"] == "True")
    });
    t.check("it is established", established.await, ());
    let widgets = format!("/apis/{GROUP}/v1/namespaces/{ns}/widgets");
    let served = w.eventually(|| async { w.get(&widgets).await.code == 200 }).await;
    t.check("it is served", served, ());
    let mut misnamed = definition();
    misnamed["metadata"]["name"] = json!("other.conf.example.com");
    t.refused("its name has to fit", &w.post(crds, &misnamed).await, 422, "metadata.name: Invalid value: \"other.conf.example.com\": must be spec.names.plural+\".\"+spec.group");

    let mut leases = definition();
    leases["metadata"]["name"] = json!("leases.coordination.k8s.io");
    leases["spec"]["group"] = json!("coordination.k8s.io");
    leases["spec"]["names"] = json!({"plural": "leases", "kind": "Lease"});
    let refused = w.post(crds, &leases).await;
    t.check(
        "a group of the system is not for everybody",
        refused.code == 422,
        &refused.body,
    );

    let widget = |name: &str, spec: Value| json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": name}, "spec": spec});
    let with = |fields: Value| {
        let mut spec = json!({"size": 1});
        for (key, value) in fields.as_object().unwrap() {
            spec[key] = value.clone();
        }
        spec
    };
    let a = w.post(&widgets, &widget("a", with(json!({"nonsense": 1, "any": {"x": 1}, "ports": [{"id": "a"}], "maybe": null, "port": "http", "map": {"k": "v"}})))).await;
    t.check("an object is created", a.code == 201, &a.body);
    t.check(
        "defaults are filled in",
        a.body["spec"]["color"] == "red" && a.body["spec"]["ports"][0]["port"] == 80,
        &a.body["spec"],
    );
    t.check(
        "unknown fields are pruned",
        a.body["spec"].get("nonsense").is_none(),
        &a.body["spec"],
    );
    t.check(
        "where they are kept they stay",
        a.body["spec"]["any"] == json!({"x": 1}),
        &a.body["spec"],
    );
    t.check(
        "null is a value where it may be",
        a.body["spec"].get("maybe") == Some(&Value::Null),
        &a.body["spec"],
    );
    let unset = json!({"apiVersion": a.body["apiVersion"], "kind": a.body["kind"],
        "metadata": {"name": "unset", "annotations": null}, "spec": with(json!({"map": null}))});
    let unset = w.post(&format!("{widgets}?dryRun=All"), &unset).await;
    t.check(
        "elsewhere it is as if nothing were there",
        unset.code == 201 && unset.body["spec"].get("map").is_none(),
        &unset.body,
    );
    t.check(
        "the generation is 1",
        a.body["metadata"]["generation"] == 1,
        &a.body["metadata"],
    );

    for (fields, words) in [
        (
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({"size": 10}),
            "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9",
        ),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            json!({"color": "blue"}),
            "spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\"",
        ),
        (
            json!({"name": "a"}),
            "spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long",
        ),
        (
            json!({"name": "AB"}),
            "spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'",
        ),
        (
            json!({"name": "abcde"}),
            "spec.name: Too long: may not be more than 4 bytes",
        ),
        (
            json!({"list": ["a", "b", "c"]}),
            "spec.list: Too many: 3: must have at most 2 items",
        ),
        (
            json!({"list": []}),
            "spec.list: Invalid value: 0: spec.list in body should have at least 1 items",
        ),
        (json!({"set": ["a", "a"]}), "spec.set[1]: Duplicate value: \"a\""),
        (
            json!({"ports": [{"id": "a"}, {"id": "a"}]}),
            "spec.ports[1]: Duplicate value: {\"id\":\"a\"}",
        ),
        (
            json!({"ports": [{"port": 1}]}),
            "spec.ports[0].id: Required value",
        ),
        (
            json!({"map": {"a": 1}}),
            "spec.map.a: Invalid value: \"integer\": spec.map.a in body must be of type string: \"integer\"",
        ),
        (
            json!({"map": {"a": "1", "b": "1", "c": "1"}}),
            "spec.map: Too many: 3: must have at most 2 items",
        ),
        (
            json!({"when": "yesterday"}),
            "spec.when: Invalid value: \"yesterday\": spec.when in body must be of type date-time: \"yesterday\"",
        ),
        (
            json!({"ratio": 0.3}),
            "spec.ratio: Invalid value: 0.3: spec.ratio in body should be a multiple of 0.5",
        ),
        (json!({"size": 7}), "spec: Invalid value: seven is taken"),
        (
            json!({"list": ["abcdef"]}),
            "spec: Invalid value: failed rule: !has(self.list) || self.list.all(x, x.size() < 5)",
        ),
        (
            json!({"size": 2, "replicas": 3}),
            "spec: Invalid value: too many replicas",
        ),
    ] {
        let refused = w.post(&widgets, &widget("x", with(fields.clone()))).await;
        // Values of objects are shown in different ways by different versions of Kubernetes; the words after them are not.
        let said = match words.split_once("spec: Invalid value: ") {
            Some(("", rule)) => {
                refused.message().contains("spec: Invalid value: ")
                    && refused.message().ends_with(&format!(": {rule}"))
            }
            _ => refused.message().contains(words),
        };
        t.check(
            &format!("{fields} is refused with Kubernetes' words"),
            refused.code == 422 && said,
            refused.message(),
        );
    }
    let two = w.post(&widgets, &widget("x", json!({"color": "blue"}))).await;
    t.check(
        "all errors are told",
        two.code == 422
            && two.message().contains("spec.size: Required value")
            && two.message().contains("Unsupported value"),
        two.message(),
    );
    t.check(
        "with the qualified kind",
        two.message()
            .starts_with(&format!("Widget.{GROUP} \"x\" is invalid: [")),
        two.message(),
    );
    t.check(
        "and causes",
        two.body["details"]["causes"]
            .as_array()
            .is_some_and(|causes| causes.len() == 3)
            && two.body["details"]["group"] == GROUP,
        &two.body["details"],
    );
    let strict = w
        .post(
            &format!("{widgets}?fieldValidation=Strict"),
            &widget("x", with(json!({"nonsense": 1}))),
        )
        .await;
    t.check(
        "strict validation refuses unknown fields",
        strict.code == 400
            && strict
                .message()
                .contains("strict decoding error: unknown field \"spec.nonsense\""),
        &strict.body,
    );
    let kindless = w
        .post(&widgets, &json!({"metadata": {"name": "x"}, "spec": {"size": 1}}))
        .await;
    t.check(
        "a custom resource says what it is",
        kindless.code == 400 && kindless.message().contains("is missing in"),
        &kindless.body,
    );

    let one = format!("{widgets}/a");
    let mut body = a.body.clone();
    body["spec"]["size"] = json!(2);
    body["status"] = json!({"phase": "On"});
    let updated = w.put(&one, &body).await;
    t.check(
        "a change of the spec is a new generation",
        updated.body["metadata"]["generation"] == 2,
        &updated.body["metadata"],
    );
    t.check(
        "the status is not written with the object",
        updated.body.get("status").is_none(),
        &updated.body,
    );
    body = updated.body.clone();
    body["spec"]["size"] = json!(3);
    body["status"] = json!({"phase": "On", "replicas": 1});
    let status = w.put(&format!("{one}/status"), &body).await;
    t.check(
        "the status is written through its path",
        status.code == 200 && status.body["status"]["phase"] == "On",
        &status.body,
    );
    t.check(
        "and only the status",
        status.body["spec"]["size"] == 2 && status.body["metadata"]["generation"] == 2,
        &status.body,
    );
    let patched = w
        .merge(
            &format!("{one}/status"),
            &json!({"status": {"phase": "Off"}, "spec": {"size": 5}}),
        )
        .await;
    t.check(
        "a patch of the status too",
        patched.body["status"]["phase"] == "Off" && patched.body["spec"]["size"] == 2,
        &patched.body,
    );
    let invalid = w
        .merge(&format!("{one}/status"), &json!({"status": {"phase": 1}}))
        .await;
    t.check(
        "a status is validated",
        invalid.code == 422
            && invalid
                .message()
                .contains("status.phase: Invalid value: \"integer\""),
        invalid.message(),
    );
    let mut blind = updated.body.clone();
    blind["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let unversioned = w.put(&one, &blind).await;
    t.refused(
        "an update of a custom resource names its version",
        &unversioned,
        422,
        "metadata.resourceVersion: Invalid value:",
    );

    let fixed = w.merge(&one, &json!({"spec": {"fixed": "a"}})).await;
    t.check("a field can be set", fixed.code == 200, &fixed.body);
    let changed = w.merge(&one, &json!({"spec": {"fixed": "b"}})).await;
    t.check(
        "rules compare with what was",
        changed.code == 422
            && changed.message().contains("spec.fixed: Invalid value: ")
            && changed.message().contains("fixed is immutable"),
        changed.message(),
    );

    let unscaled = w.get(&format!("{one}/scale")).await;
    t.refused(
        "what has no replicas has no scale",
        &unscaled,
        500,
        "the spec replicas field \".spec.replicas\" does not exist",
    );
    w.merge(&one, &json!({"spec": {"replicas": 1}})).await;
    let scale = w.get(&format!("{one}/scale")).await;
    t.check(
        "it can be scaled",
        scale.body["kind"] == "Scale"
            && scale.body["apiVersion"] == "autoscaling/v1"
            && scale.body["status"]["replicas"] == 1,
        &scale.body,
    );
    let scaled = w
        .merge(&format!("{one}/scale"), &json!({"spec": {"replicas": 2}}))
        .await;
    let now = w.get(&one).await;
    t.check(
        "the scale is that of the object",
        scaled.code == 200 && now.body["spec"]["replicas"] == 2,
        &scaled.body,
    );
    let green = w
        .post(&widgets, &widget("green", with(json!({"color": "green"}))))
        .await;
    t.check("another is created", green.code == 201, &green.body);
    let selected = w
        .get(&format!("{widgets}?fieldSelector=spec.color%3Dgreen"))
        .await;
    t.check(
        "fields that a CRD offers select",
        selected.body["items"]
            .as_array()
            .is_some_and(|items| items.len() == 1),
        &selected.body,
    );

    let node = |members: Value| json!({"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "conf-h"}, "spec": {"tier": 1, "members": members}});
    let hypernodes = "/apis/topology.volcano.sh/v1alpha1/hypernodes";
    let none = w
        .post(hypernodes, &node(json!([{"type": "Node", "selector": {}}])))
        .await;
    t.check(
        "the project's own rules are asked",
        none.code == 422
            && none
                .message()
                .contains("spec.members[0].selector: Invalid value: "),
        none.message(),
    );
    let both = w.post(hypernodes, &node(json!([{"type": "Node", "selector": {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "a"}}}]))).await;
    t.check(
        "both of them",
        both.code == 422
            && both
                .message()
                .contains("spec.members[0].selector: Invalid value: "),
        both.message(),
    );
    let fine = w
        .post(
            &format!("{hypernodes}?dryRun=All"),
            &node(json!([{"type": "Node", "selector": {"exactMatch": {"name": "a"}}}])),
        )
        .await;
    t.check("what fits is taken", fine.code == 201, &fine.body);

    w.delete(&path, &Value::Null).await;
    t.check(
        "a CRD goes with its objects",
        w.gone(&path).await && w.gone(&widgets).await,
        (),
    );
    versions(w, t, &ns).await;
}

/// Which version objects are stored in may change, and may be kept from clients.
async fn versions(w: &World, t: &mut Tally, ns: &str) {
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let group = "versions.example.com";
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage, "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true, true), version("v2", true, false)],
        },
    });
    w.post(crds, &definition).await;
    let things = |version: &str| format!("/apis/{group}/{version}/namespaces/{ns}/things");
    let is_served = async |version: &str| w.get(&things(version)).await.code == 200;
    w.eventually(|| async { is_served("v1").await && is_served("v2").await })
        .await;
    let thing = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "old"}, "spec": {"a": 1}});
    w.post(&things("v1"), &thing).await;

    let path = format!("{crds}/things.{group}");
    let change = json!({"spec": {"versions": [version("v1", true, false), version("v2", true, true)]}});
    let changed = w.merge(&path, &change).await;
    t.check(
        "versions that objects were ever stored in are told",
        changed.body["status"]["storedVersions"] == json!(["v1", "v2"]),
        &changed.body,
    );
    let as_v2 = |object: &Value| object["apiVersion"] == format!("{group}/v2");
    let one = w.get(&format!("{}/old", things("v2"))).await;
    t.check(
        "an object from before is of the version that it is read in",
        as_v2(&one.body) && one.body["spec"]["a"] == 1,
        &one.body,
    );
    // Lists may be put off, and watches break off, while the change of the definition gets around.
    let listed = w.eventually(|| async { as_v2(&w.get(&things("v2")).await.body["items"][0]) });
    t.check("so it is in lists", listed.await, ());
    let told = w.eventually(|| async {
        let mut events = w.watch(&format!("{}?watch=true", things("v2"))).await;
        as_v2(&events.next().await["object"])
    });
    t.check("and in events", told.await, ());
    let merged = w
        .merge(&format!("{}/old", things("v2")), &json!({"spec": {"a": 2}}))
        .await;
    t.check(
        "it can be changed",
        merged.code == 200 && as_v2(&merged.body) && merged.body["spec"]["a"] == 2,
        &merged.body,
    );
    let before = w.get(&format!("{}/old", things("v1"))).await;
    t.check(
        "and read in the version from before",
        before.body["apiVersion"] == format!("{group}/v1") && before.body["spec"]["a"] == 2,
        &before.body,
    );

    let change = json!({"spec": {"versions": [version("v1", true, false), version("v2", false, true)]}});
    w.merge(&path, &change).await;
    let hidden = w
        .eventually(|| async { w.get(&things("v2")).await.code == 404 && is_served("v1").await })
        .await;
    t.check("a version that is only stored is not served", hidden, ());
    let told = w.eventually(|| async {
        let found = w.get(&format!("/apis/{group}")).await.body;
        let versions = found["versions"].as_array().cloned().unwrap_or_default();
        let names: Vec<&Value> = versions.iter().map(|version| &version["version"]).collect();
        names == ["v1"]
    });
    t.check("nor told", told.await, ());
    let kept = w.get(&format!("{}/old", things("v1"))).await;
    t.check(
        "its objects are there in the others",
        kept.code == 200 && kept.body["spec"]["a"] == 2,
        &kept.body,
    );
    w.delete(&path, &Value::Null).await;
}
