//! What the two do differently on purpose: a function for each row of the table in docs/apiserver.md.
//!
//! Each says what both do, so that it fails when either changes, and the table with it.

use super::{Answer, Side, Tally, World};
use http::Method;
use serde_json::{Value, json};

const DOCS: &str = include_str!("../../../../../docs/apiserver.md");
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "differences.example.com";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The subjects that the docs list.
fn documented() -> Vec<&'static str> {
    let (_, section) = DOCS.split_once("## How it differs from Kubernetes").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    rows.skip(1).map(|row| row.split(" |").next().unwrap()).collect()
}

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("differences").await;
    macro_rules! rows {
        ($($subject:literal => $check:ident),* $(,)?) => {
            let checked = [$($subject),*];
            t.check("the docs list what is checked here", documented() == checked, documented());
            $( $check(w, t, &ns).await; )*
        };
    }
    rows! {
        "protobuf" => protobuf,
        "managed fields" => managed_fields,
        "`.` entries of `fieldsV1`" => dots,
        "items of lists" => items_of_lists,
        "fields that are there twice in a body" => twice,
        "validation of built-in kinds" => validation,
        "other defaults of built-in kinds" => defaults,
        "empty lists and maps of built-in kinds" => empty,
        "wrong types in built-in kinds" => wrong_types,
        "an item without its key in a strategic patch" => keyless,
        "descriptions of the columns of tables" => descriptions,
        "columns of ingresses, bindings of roles, EndpointSlices and others" => few_columns,
        "CEL" => cel,
        "deletion of a CRD" => deletion_of_a_crd,
        "a CRD with the group and plural of a built-in resource" => built_in_again,
        "levels of an object" => levels,
        "conversion between versions of a CRD" => conversion,
        "EndpointSlices, quotas, limit ranges, tokens of service accounts, workload controllers" => nothing_follows,
        "authorization" => authorization,
        "OpenAPI" => openapi,
    }
}

/// Code and message, which is empty when all went well.
fn outcome(answer: &Answer) -> (u16, &str) {
    (answer.code, answer.message())
}

/// A body as it is, in JSON.
async fn post_text(w: &World, path: &str, body: String) -> Answer {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    let (code, headers, bytes) = w.raw(Method::POST, path, &headers, body.into_bytes()).await;
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    Answer { code, headers, body }
}

fn warnings(answer: &Answer) -> Vec<String> {
    let values = answer.headers.get_all("warning").iter();
    values.map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// A definition of gadgets, whose spec has this schema.
fn definition(plural: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.to_uppercase()},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

/// Has a definition served; the path of its objects.
async fn served(w: &World, ns: &str, plural: &str, spec: &Value) -> String {
    let made = w.post(CRDS, &definition(plural, spec)).await;
    assert_eq!(made.code, 201, "{made:?}");
    let path = format!("/apis/{GROUP}/v1/namespaces/{ns}/{plural}");
    assert!(
        w.eventually(|| async { w.get(&path).await.code == 200 }).await,
        "{path}"
    );
    path
}

fn object(plural: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": plural.to_uppercase(), "metadata": {"name": name}, "spec": spec})
}

async fn protobuf(w: &World, t: &mut Tally, ns: &str) {
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let in_form = async |accept: &str| {
        let (code, headers, _) = w.raw(Method::GET, &maps, &[("accept", accept)], Vec::new()).await;
        let form = headers
            .get("content-type")
            .map(|value| value.to_str().unwrap().to_owned());
        (code, form.unwrap_or_default())
    };
    t.differs(
        "protobuf is answered to whoever wants it alone",
        in_form(PROTOBUF).await,
        (200, PROTOBUF.to_owned()),
        (406, "application/json".to_owned()),
    );
    t.differs(
        "protobuf is preferred where it is there",
        in_form(&format!("{PROTOBUF},application/json")).await,
        (200, PROTOBUF.to_owned()),
        (200, "application/json".to_owned()),
    );

    let field = |number: u8, bytes: &[u8]| {
        let mut all = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        all.extend(bytes);
        all
    };
    let send = async |plural: &str, kind: &str| {
        let about = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        let named = field(1, &field(1, b"sent"));
        let body = [b"k8s\0".to_vec(), field(1, &about), field(2, &named)].concat();
        let path = format!("/api/v1/namespaces/{ns}/{plural}?dryRun=All");
        let headers = [("content-type", PROTOBUF), ("accept", "application/json")];
        let (code, headers, bytes) = w.raw(Method::POST, &path, &headers, body).await;
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { code, headers, body }
    };
    let map = send("configmaps", "ConfigMap").await;
    t.check(
        "what kubectl sends in protobuf is read",
        map.code == 201,
        &map.body,
    );
    let range = send("limitranges", "LimitRange").await;
    t.differs(
        "other kinds are",
        outcome(&range),
        (201, ""),
        (
            415,
            "the body of the request cannot be read as protobuf: objects of kind \"LimitRange\" are read in JSON only; \
             send application/json",
        ),
    );
}

async fn managed_fields(w: &World, t: &mut Tally, ns: &str) {
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let plain = json!({"metadata": {"name": "plain"}, "data": {"k": "1"}});
    let plain = w.post(&maps, &plain).await;
    t.differs(
        "writes without a manager are recorded",
        plain.body["metadata"].get("managedFields").is_some(),
        true,
        false,
    );
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}, "data": {"k": "2"}});
    let conflict = w.apply(&format!("{maps}/plain?fieldManager=one"), &applied).await;
    t.differs(
        "an apply conflicts with whoever wrote",
        outcome(&conflict),
        (
            409,
            "Apply failed with 1 conflict: conflict with \"unknown\" using v1: .data.k",
        ),
        (
            409,
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.k",
        ),
    );
}

async fn dots(w: &World, t: &mut Tally, ns: &str) {
    let pods = format!("/api/v1/namespaces/{ns}/pods?fieldManager=maker&dryRun=All");
    let pod = json!({
        "metadata": {"name": "p", "labels": {"x": "1"}, "finalizers": ["example.com/f"]},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x", "env": [{"name": "e", "value": "1"}]}]},
    });
    let made = w.post(&pods, &pod).await;
    let fields = &made.body["metadata"]["managedFields"][0]["fieldsV1"];
    let container = &fields["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"];
    t.check("items of lists have a dot", container["."] == json!({}), fields);
    t.differs(
        "maps and lists have one",
        json!([fields["f:metadata"], container["f:env"]]),
        json!([
            {"f:labels": {".": {}, "f:x": {}}, "f:finalizers": {".": {}, "v:\"example.com/f\"": {}}},
            {".": {}, "k:{\"name\":\"e\"}": {".": {}, "f:name": {}, "f:value": {}}},
        ]),
        json!([
            {"f:labels": {"f:x": {}}, "f:finalizers": {"v:\"example.com/f\"": {}}},
            {"k:{\"name\":\"e\"}": {".": {}, "f:name": {}, "f:value": {}}},
        ]),
    );
}

async fn items_of_lists(w: &World, t: &mut Tally, ns: &str) {
    let types = |list: &Answer| {
        let item = &list.body["items"][0];
        json!([item["metadata"]["name"], item["apiVersion"], item["kind"]])
    };
    let maps = w
        .get(&format!(
            "/api/v1/namespaces/{ns}/configmaps?fieldSelector=metadata.name%3Dplain"
        ))
        .await;
    t.differs(
        "items of built-in kinds say what they are",
        types(&maps),
        json!(["plain", null, null]),
        json!(["plain", "v1", "ConfigMap"]),
    );
    let path = format!("/apis/bus.volcano.sh/v1alpha1/namespaces/{ns}/commands");
    let command = json!({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": "c"}, "action": "AbortJob"});
    w.post(&path, &command).await;
    let commands = types(&w.get(&path).await);
    t.check(
        "items of custom resources do",
        commands == json!(["c", "bus.volcano.sh/v1alpha1", "Command"]),
        commands,
    );
}

async fn twice(w: &World, t: &mut Tally, ns: &str) {
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let body =
        |name: &str| format!(r#"{{"metadata": {{"name": "{name}"}}, "data": {{"k": "1", "k": "2"}}}}"#);
    let strict = post_text(
        w,
        &format!("{maps}?fieldValidation=Strict&dryRun=All"),
        body("strict"),
    )
    .await;
    t.differs(
        "strict validation takes a field twice",
        outcome(&strict),
        (400, "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \"data.k\""),
        (201, ""),
    );
    let warned = post_text(w, &maps, body("warned")).await;
    t.check(
        "else the last one counts",
        warned.code == 201 && warned.body["data"] == json!({"k": "2"}),
        &warned.body,
    );
    t.differs(
        "and the client is warned",
        warnings(&warned),
        vec![r#"299 - "duplicate field \"data.k\"""#.to_owned()],
        Vec::new(),
    );
}

async fn validation(w: &World, t: &mut Tally, ns: &str) {
    let deployments = format!("/apis/apps/v1/namespaces/{ns}/deployments?dryRun=All");
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
    }});
    let wrong = w.post(&deployments, &deployment).await;
    t.differs(
        "a Deployment has to select its pods",
        outcome(&wrong),
        (
            422,
            "Deployment.apps \"d\" is invalid: spec.template.metadata.labels: Invalid value: {\"app\":\"b\"}: `selector` \
             does not match template `labels`",
        ),
        (201, ""),
    );
}

async fn defaults(w: &World, t: &mut Tally, ns: &str) {
    let core = format!("/api/v1/namespaces/{ns}");
    let account = json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x"}]}});
    let account = w.post(&format!("{core}/pods?dryRun=All"), &account).await;
    // Kubernetes has a plugin for it, which the control plane of the tests runs without.
    t.differs(
        "a pod has the account of its namespace",
        json!([
            account.body["spec"]["serviceAccountName"],
            account.body["spec"]["serviceAccount"]
        ]),
        json!([null, null]),
        json!(["default", "default"]),
    );
    let service =
        json!({"metadata": {"name": "outside"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let service = w.post(&format!("{core}/services"), &service).await;
    t.differs(
        "a Service has ports of nodes",
        service.body["spec"]["ports"][0]["nodePort"].is_number(),
        true,
        false,
    );
    w.delete(&format!("{core}/services/outside"), &Value::Null).await;
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}});
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments?dryRun=All");
    let deployment = w.post(&path, &deployment).await;
    t.differs(
        "a Deployment has a strategy",
        deployment.body["spec"]["strategy"]["type"].clone(),
        json!("RollingUpdate"),
        Value::Null,
    );
    for path in [
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
    ] {
        t.differs(
            &format!("{path} is there from the start"),
            w.get(path).await.code,
            200,
            404,
        );
    }
}

async fn few_columns(w: &World, t: &mut Tally, _: &str) {
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let path = "/apis/networking.k8s.io/v1/ingresses";
    let (_, _, body) = w.raw(Method::GET, path, &accept, Vec::new()).await;
    let table: Value = serde_json::from_slice(&body).unwrap_or_default();
    let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = columns
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    t.differs(
        "ingresses have columns of their own",
        names,
        vec!["Name", "Class", "Hosts", "Address", "Ports", "Age"],
        vec!["Name", "Age"],
    );
}

async fn empty(w: &World, t: &mut Tally, ns: &str) {
    let pods = format!("/api/v1/namespaces/{ns}/pods?dryRun=All");
    let pod = json!({"metadata": {"name": "p", "labels": {}}, "spec": {"schedulerName": "nobody", "volumes": [],
        "nodeSelector": {}, "containers": [{"name": "c", "image": "x", "args": []}]}});
    let made = w.post(&pods, &pod).await;
    let (metadata, spec) = (&made.body["metadata"], &made.body["spec"]);
    t.differs(
        "empty lists and maps are kept",
        json!([
            metadata.get("labels"),
            spec.get("volumes"),
            spec.get("nodeSelector"),
            spec["containers"][0].get("args")
        ]),
        json!([null, null, null, null]),
        json!([{}, [], {}, []]),
    );
}

async fn wrong_types(w: &World, t: &mut Tally, ns: &str) {
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let wrong = w
        .post(&maps, &json!({"metadata": {"name": "wrong"}, "data": {"a": 1}}))
        .await;
    t.differs(
        "a wrong type is told in terms of Go",
        outcome(&wrong),
        (
            400,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct \
             field ConfigMap.data of type string",
        ),
        (
            400,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct \
             field data.a of type string",
        ),
    );
}

async fn keyless(w: &World, t: &mut Tally, ns: &str) {
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let pod = json!({"metadata": {"name": "keyless"}, "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x"}]}});
    w.post(&pods, &pod).await;
    let patch = json!({"spec": {"containers": [{"image": "y"}]}});
    let refused = w.strategic(&format!("{pods}/keyless"), &patch).await;
    t.differs(
        "it is an error of the server",
        outcome(&refused),
        (500, "map: map[image:y] does not contain declared merge key: name"),
        (
            400,
            "containers: map: {\"image\":\"y\"} does not contain declared merge key: name",
        ),
    );
}

async fn descriptions(w: &World, t: &mut Tally, ns: &str) {
    let columns = async |path: &str| {
        let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
        let (_, _, body) = w.raw(Method::GET, path, &accept, Vec::new()).await;
        let table: Value = serde_json::from_slice(&body).unwrap_or_default();
        let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
        let texts = columns
            .into_iter()
            .map(|column| column["description"].as_str().unwrap_or_default().to_owned());
        texts.collect::<Vec<_>>()
    };
    let pods = columns(&format!("/api/v1/namespaces/{ns}/pods")).await;
    t.differs(
        "columns of built-in kinds are described",
        pods.iter().skip(1).map(String::is_empty).collect::<Vec<_>>(),
        vec![false; 8],
        vec![true; 8],
    );
    let queues = columns("/apis/scheduling.volcano.sh/v1beta1/queues").await;
    t.check(
        "those of CRDs are",
        queues.get(1).map(String::as_str)
            == Some("Custom resource definition column (in JSONPath format): .spec.parent"),
        &queues,
    );
    t.differs(
        "names are described at length",
        [pods, queues].map(|columns| columns.first().map(String::len) > Some(100)),
        [true; 2],
        [false; 2],
    );
}

async fn cel(w: &World, t: &mut Tally, ns: &str) {
    let amount = json!({"type": "object", "properties": {"amount": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "isQuantity(self.amount)", "message": "no amount"}]});
    let path = served(w, ns, "amounts", &amount).await;
    let made = w
        .post(&path, &object("amounts", "a", &json!({"amount": "1Gi"})))
        .await;
    t.differs(
        "Kubernetes' libraries are known",
        outcome(&made),
        (201, ""),
        (
            422,
            "AMOUNTS.differences.example.com \"a\" is invalid: spec: Invalid value: \"object\": rule evaluation error: no \
             such function: isQuantity(string): evaluating rule: isQuantity(self.amount)",
        ),
    );

    let dear = json!({"type": "object", "properties": {"list": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.list.all(x, self.list.all(y, x == y))"}]});
    let made = w
        .post(&format!("{CRDS}?dryRun=All"), &definition("dears", &dear))
        .await;
    let costs = "estimated rule cost exceeds budget by factor of more than 100x";
    t.differs(
        "the cost of a rule is estimated",
        (made.code, made.message().contains(costs)),
        (422, true),
        (201, false),
    );
}

async fn deletion_of_a_crd(w: &World, t: &mut Tally, ns: &str) {
    let path = served(w, ns, "helds", &json!({"type": "object"})).await;
    let mut held = object("helds", "a", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/f"]);
    let made = w.post(&path, &held).await;
    assert_eq!(made.code, 201, "{made:?}");
    let (crd, held) = (format!("{CRDS}/helds.{GROUP}"), format!("{path}/a"));
    w.delete(&crd, &Value::Null).await;
    // It goes, or its object is told to.
    w.eventually(|| async {
        let held = w.get(&held).await;
        held.code == 404 || held.body["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    t.differs(
        "a CRD waits for the finalizers of its objects",
        (w.get(&crd).await.code, w.get(&held).await.code),
        (200, 200),
        (404, 404),
    );
    w.merge(&held, &json!({"metadata": {"finalizers": null}})).await;
    t.check("without finalizers it is gone", w.gone(&crd).await, ());
}

async fn built_in_again(w: &World, t: &mut Tally, _: &str) {
    let mut classes = definition("runtimeclasses", &json!({"type": "object"}));
    classes["metadata"] = json!({"name": "runtimeclasses.node.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}});
    classes["spec"]["group"] = json!("node.k8s.io");
    classes["spec"]["names"] = json!({"plural": "runtimeclasses", "kind": "Custom"});
    let made = w.post(CRDS, &classes).await;
    t.differs(
        "a definition of a built-in resource is taken",
        outcome(&made),
        (201, ""),
        (
            422,
            "CustomResourceDefinition.apiextensions.k8s.io \"runtimeclasses.node.k8s.io\" is invalid: spec.names.plural: \
             Forbidden: runtimeclasses.node.k8s.io is built into this server and cannot be defined anew",
        ),
    );
    let established = |crd: Answer| {
        let conditions = crd.body["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions
            .iter()
            .any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    let path = format!("{CRDS}/runtimeclasses.node.k8s.io");
    if made.code == 201 {
        w.eventually(|| async { established(w.get(&path).await) }).await;
    }
    let list = w.get("/apis/node.k8s.io/v1/runtimeclasses").await;
    t.check(
        "the built-in one is served all the same",
        list.body["kind"] == "RuntimeClassList",
        &list.body,
    );
    w.delete(&path, &Value::Null).await;
    w.gone(&path).await;
}

async fn levels(w: &World, t: &mut Tally, ns: &str) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let path = served(w, ns, "deeps", &any).await;
    // The object and its spec are two levels.
    let deep = async |levels: usize| {
        let (open, close) = (r#"{"a":"#.repeat(levels - 2), "}".repeat(levels - 2));
        let body = format!(
            r#"{{"apiVersion":"{GROUP}/v1","kind":"DEEPS","metadata":{{"name":"d"}},"spec":{open}{{}}{close}}}"#
        );
        post_text(w, &format!("{path}?dryRun=All"), body).await
    };
    let hundred = deep(100).await;
    t.check(
        "an object may have 100 levels",
        hundred.code == 201,
        outcome(&hundred),
    );
    t.differs(
        "it may have more",
        outcome(&deep(101).await),
        (201, ""),
        (400, "the object has more than 100 levels"),
    );
    // Who owns its fields is written with it, in levels of its own.
    t.differs("nearly 10,000", deep(9_990).await.code, 201, 400);
    let beyond = deep(10_001).await;
    t.differs(
        "but not any number",
        (
            beyond.code,
            beyond.message().contains("exceeded max depth"),
            beyond.message().contains("recursion limit exceeded"),
        ),
        (400, true, false),
        (400, false, true),
    );
}

async fn conversion(w: &World, t: &mut Tally, _: &str) {
    let mut converted = definition("converteds", &json!({"type": "object"}));
    converted["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}});
    let made = w.post(&format!("{CRDS}?dryRun=All"), &converted).await;
    t.differs(
        "versions are converted by webhooks",
        outcome(&made),
        (201, ""),
        (
            422,
            "CustomResourceDefinition.apiextensions.k8s.io \"converteds.differences.example.com\" is invalid: \
             spec.conversion.strategy: Forbidden: this server converts between versions by their name only; use None",
        ),
    );
}

async fn nothing_follows(w: &World, t: &mut Tally, ns: &str) {
    let core = format!("/api/v1/namespaces/{ns}");
    let accounts = format!("{core}/serviceaccounts");
    w.post(&accounts, &json!({"metadata": {"name": "account"}})).await;
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = w.post(&format!("{accounts}/account/token"), &token).await;
    t.differs("service accounts have tokens", token.code, 201, 404);

    let replicas = format!("/apis/apps/v1/namespaces/{ns}/replicasets");
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices");
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}});
    w.post(&format!("/apis/apps/v1/namespaces/{ns}/deployments"), &deployment)
        .await;
    w.post(&format!("{core}/limitranges"), &json!({"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]}})).await;
    let quotas = format!("{core}/resourcequotas");
    w.post(
        &quotas,
        &json!({"metadata": {"name": "q"}, "spec": {"hard": {"services": "1"}}}),
    )
    .await;
    if w.side == Side::Kubernetes {
        // A Service that comes before the quota is in force may not be counted for minutes.
        let quota = format!("{quotas}/q");
        w.eventually(|| async { w.get(&quota).await.body["status"]["used"]["services"] == "0" })
            .await;
    }
    w.post(
        &format!("{core}/services"),
        &json!({"metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}),
    )
    .await;

    let limited = async || {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x"}]}});
        let pod = w.post(&format!("{core}/pods?dryRun=All"), &pod).await;
        pod.body["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "2"
    };
    let second = async || {
        let service = json!({"metadata": {"name": "s2"}, "spec": {"ports": [{"port": 80}]}});
        w.post(&format!("{core}/services?dryRun=All"), &service)
            .await
            .code
    };
    let count = async |path: &str| w.get(path).await.body["items"].as_array().map_or(0, Vec::len);
    let seen = async || {
        json!({
            "replica sets": count(&replicas).await,
            "slices": count(&slices).await,
            "limits": limited().await,
            "beyond the quota": second().await,
        })
    };
    // Endpoints follow on both sides: then whoever follows has seen what came before.
    let endpoints = format!("{core}/endpoints/s");
    let followed = w
        .eventually(|| async { w.get(&endpoints).await.code == 200 })
        .await;
    t.check("Endpoints follow Services", followed, ());
    let kubernetes = json!({"replica sets": 1, "slices": 1, "limits": true, "beyond the quota": 403});
    let embedded = json!({"replica sets": 0, "slices": 0, "limits": false, "beyond the quota": 201});
    if w.side == Side::Kubernetes {
        w.eventually(|| async { seen().await == kubernetes }).await;
    }
    t.differs(
        "other things follow from objects",
        seen().await,
        kubernetes,
        embedded,
    );
}

async fn authorization(w: &World, t: &mut Tally, _: &str) {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "nobody", "resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
    let review = w
        .post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review)
        .await;
    t.differs(
        "who has no role may do everything",
        (review.code, &review.body["status"]["allowed"]),
        (201, &json!(false)),
        (201, &json!(true)),
    );
    let as_nobody = [("accept", "application/json"), ("impersonate-user", "nobody")];
    let (code, ..) = w.raw(Method::GET, "/api/v1/nodes", &as_nobody, Vec::new()).await;
    t.differs("whoever a request is made for, too", code, 403, 200);
}

async fn openapi(w: &World, t: &mut Tally, _: &str) {
    let core = w.get("/openapi/v3/api/v1").await.body;
    let map = &core["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"];
    t.check("a built-in kind has a schema", map["type"] == "object", map);
    t.differs(
        "with its fields",
        map["properties"]["data"].is_object(),
        true,
        false,
    );
    let path = |path: &str| core["paths"].get(path).is_some();
    let one = path("/api/v1/namespaces/{namespace}/configmaps/{name}");
    t.check("one object has a path", one, ());
    t.differs(
        "and all of them",
        path("/api/v1/namespaces/{namespace}/configmaps"),
        true,
        false,
    );
    let queues = w.get("/openapi/v3/apis/scheduling.volcano.sh/v1beta1").await.body;
    let queue = &queues["components"]["schemas"]["sh.volcano.scheduling.v1beta1.Queue"];
    t.check(
        "a CRD has its schema",
        queue["properties"]["spec"].is_object(),
        queue,
    );
    t.differs("there is version 2", w.get("/openapi/v2").await.code, 200, 404);
}
