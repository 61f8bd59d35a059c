//! What clients find out about the API, and the forms of answers.

use super::{Tally, World};
use http::Method;
use serde_json::{Value, json};

pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("discovery").await;
    let version = w.get("/version").await;
    t.check(
        "there is a version",
        version.body["major"] == "1"
            && version.body["gitVersion"]
                .as_str()
                .is_some_and(|text| text.starts_with("v1.")),
        &version.body,
    );
    t.check(
        "it is well",
        w.get("/readyz").await.body == "ok" && w.get("/healthz").await.body == "ok",
        (),
    );
    let api = w.get("/api").await;
    t.check(
        "the core group has a version",
        api.body["versions"] == json!(["v1"]),
        &api.body,
    );
    let groups = w.get("/apis").await;
    let group = |name: &str| {
        groups.body["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|group| group["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    t.check(
        "groups are listed",
        group("apps")["preferredVersion"]["groupVersion"] == "apps/v1",
        group("apps"),
    );
    t.check(
        "those of CRDs too",
        group("batch.volcano.sh")["versions"][0]["version"] == "v1alpha1",
        group("batch.volcano.sh"),
    );
    let one = w.get("/apis/apps").await;
    t.check(
        "a group tells of itself",
        one.body["kind"] == "APIGroup" && one.body["name"] == "apps",
        &one.body,
    );
    let core = w.get("/api/v1").await;
    let resource = |list: &Value, name: &str| {
        list["resources"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["name"] == name)
            .cloned()
            .unwrap_or_default()
    };
    let pods = resource(&core.body, "pods");
    t.check(
        "resources are listed",
        pods["kind"] == "Pod"
            && pods["namespaced"] == true
            && pods["singularName"] == "pod"
            && pods["shortNames"] == json!(["po"]),
        &pods,
    );
    t.check(
        "with their subresources",
        resource(&core.body, "pods/binding")["kind"] == "Binding"
            && resource(&core.body, "pods/eviction")["group"] == "policy",
        resource(&core.body, "pods/eviction"),
    );
    let queues = w.get("/apis/scheduling.volcano.sh/v1beta1").await;
    let queue = resource(&queues.body, "queues");
    t.check(
        "custom resources are listed",
        queue["kind"] == "Queue"
            && queue["namespaced"] == false
            && queue["verbs"]
                .as_array()
                .is_some_and(|verbs| verbs.iter().any(|verb| verb == "watch")),
        &queue,
    );
    t.check(
        "a group that is not there is not found",
        w.get("/apis/none.example.com").await.code == 404,
        (),
    );

    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (code, headers, body) = w
        .raw(Method::GET, "/apis", &[("accept", accept)], Vec::new())
        .await;
    let all: Value = serde_json::from_slice(&body).unwrap_or_default();
    let kind = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    t.check(
        "everything is told at once",
        code == 200 && all["kind"] == "APIGroupDiscoveryList" && kind.contains("as=APIGroupDiscoveryList"),
        &kind,
    );
    let apps = all["items"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["metadata"]["name"] == "apps")
        .cloned()
        .unwrap_or_default();
    let deployments = apps["versions"][0]["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["resource"] == "deployments")
        .cloned()
        .unwrap_or_default();
    t.check(
        "with resources",
        deployments["responseKind"]["kind"] == "Deployment" && deployments["scope"] == "Namespaced",
        &deployments,
    );

    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    w.post(
        &maps,
        &json!({"metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}}),
    )
    .await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let in_form = async |path: &str, accept: &str| {
        let (code, _, body) = w.raw(Method::GET, path, &[("accept", accept)], Vec::new()).await;
        (code, serde_json::from_slice::<Value>(&body).unwrap_or_default())
    };
    let (_, printed) = in_form(&format!("{maps}?fieldSelector=metadata.name%3Dm"), table).await;
    let columns: Vec<&str> = printed["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|column| column["name"].as_str())
        .collect();
    t.check(
        "a list can be a table",
        printed["kind"] == "Table" && columns == ["Name", "Data", "Age"],
        &columns,
    );
    included(w, t, &maps).await;
    often_seen(w, t, &ns).await;
    let row = &printed["rows"][0];
    t.check(
        "with cells and metadata",
        row["cells"][0] == "m" && row["cells"][1] == 2 && row["object"]["kind"] == "PartialObjectMetadata",
        row,
    );
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    w.post(&pods, &json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x"}]}})).await;
    let (_, printed) = in_form(&format!("{pods}/p"), table).await;
    let columns: Vec<&str> = printed["columnDefinitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|column| column["name"].as_str())
        .collect();
    t.check(
        "a pod has its columns",
        columns
            == [
                "Name",
                "Ready",
                "Status",
                "Restarts",
                "Age",
                "IP",
                "Node",
                "Nominated Node",
                "Readiness Gates",
            ],
        &columns,
    );
    let cells = &printed["rows"][0]["cells"];
    t.check(
        "and its cells",
        cells[1] == "0/1" && cells[2] == "Pending" && cells[6] == "<none>",
        cells,
    );
    w.post("/apis/scheduling.volcano.sh/v1beta1/queues", &json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "conf-q"}, "spec": {"weight": 1, "parent": "root"}})).await;
    let (_, printed) = in_form("/apis/scheduling.volcano.sh/v1beta1/queues/conf-q", table).await;
    t.check(
        "columns of CRDs are theirs",
        printed["columnDefinitions"][1]["name"] == "PARENT" && printed["rows"][0]["cells"][1] == "root",
        &printed["rows"],
    );
    let (_, partial) = in_form(
        &format!("{maps}/m"),
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    )
    .await;
    t.check(
        "metadata alone can be asked for",
        partial["kind"] == "PartialObjectMetadata"
            && partial.get("data").is_none()
            && partial["metadata"]["name"] == "m",
        &partial,
    );
    let (code, ..) = w
        .raw(
            Method::GET,
            "/apis/scheduling.volcano.sh/v1beta1/queues",
            &[("accept", "application/vnd.kubernetes.protobuf")],
            Vec::new(),
        )
        .await;
    t.check("a form that there is not is not acceptable", code == 406, code);
    let (code, ..) = w
        .raw(Method::GET, &maps, &[("accept", "text/html")], Vec::new())
        .await;
    t.check("nor is one that there never is", code == 406, code);

    let index = w.get("/openapi/v3").await;
    let url = index.body["paths"]["api/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    t.check(
        "schemas are found by group",
        !url.is_empty()
            && index.body["paths"]
                .get("apis/scheduling.volcano.sh/v1beta1")
                .is_some(),
        (),
    );
    let core = w.get(&url).await;
    let patch = &core.body["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    t.check(
        "and which parameters a patch takes",
        patch["parameters"].to_string().contains("fieldValidation")
            && patch["x-kubernetes-group-version-kind"]["kind"] == "Pod",
        patch,
    );
    let review = w.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}})).await;
    t.check(
        "an administrator may do everything",
        review.code == 201 && review.body["status"]["allowed"] == true,
        &review.body,
    );
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async fn table(w: &World, path: &str) -> (u16, Value) {
    let (code, _, body) = w.raw(Method::GET, path, &[("accept", TABLE)], Vec::new()).await;
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// How much of an object is in a table.
async fn included(w: &World, t: &mut Tally, maps: &str) {
    let row = async |include: &str| {
        let (_, table) = table(w, &format!("{maps}/m?includeObject={include}")).await;
        table["rows"][0]["object"].clone()
    };
    let whole = row("Object").await;
    t.check(
        "a table can have whole objects",
        whole["kind"] == "ConfigMap" && whole["apiVersion"] == "v1" && whole["data"]["a"] == "1",
        &whole,
    );
    let (_, list) = table(
        w,
        &format!("{maps}?includeObject=Object&fieldSelector=metadata.name%3Dm"),
    )
    .await;
    let whole = &list["rows"][0]["object"];
    t.check("so can that of a list", whole["data"]["a"] == "1", whole);
    let metadata = row("Metadata").await;
    t.check(
        "or their metadata",
        metadata["kind"] == "PartialObjectMetadata" && metadata.get("data").is_none(),
        &metadata,
    );
    let none = row("None").await;
    t.check("or nothing of them", none.is_null(), &none);
    let (code, refused) = table(w, &format!("{maps}/m?includeObject=Some")).await;
    let words = "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": must be 'Metadata', 'Object', \
                 'None', or empty";
    t.check(
        "nothing else",
        code == 400 && refused["message"] == words,
        &refused,
    );
}

/// The columns of kinds that users see often, and what is in them.
async fn often_seen(w: &World, t: &mut Tally, ns: &str) {
    let replicas: &[&str] = &[
        "Desired",
        "Current",
        "Ready",
        "Age",
        "Containers",
        "Images",
        "Selector",
    ];
    let kinds: [(&str, &[&str]); 11] = [
        (
            "apps/v1/deployments",
            &[
                "Ready",
                "Up-to-date",
                "Available",
                "Age",
                "Containers",
                "Images",
                "Selector",
            ],
        ),
        ("apps/v1/replicasets", replicas),
        ("core/v1/replicationcontrollers", replicas),
        ("apps/v1/statefulsets", &["Ready", "Age", "Containers", "Images"]),
        (
            "apps/v1/daemonsets",
            &[
                "Desired",
                "Current",
                "Ready",
                "Up-to-date",
                "Available",
                "Node Selector",
                "Age",
                "Containers",
                "Images",
                "Selector",
            ],
        ),
        (
            "batch/v1/jobs",
            &[
                "Status",
                "Completions",
                "Duration",
                "Age",
                "Containers",
                "Images",
                "Selector",
            ],
        ),
        (
            "batch/v1/cronjobs",
            &[
                "Schedule",
                "Timezone",
                "Suspend",
                "Active",
                "Last Schedule",
                "Age",
                "Containers",
                "Images",
                "Selector",
            ],
        ),
        ("core/v1/resourcequotas", &["Request", "Limit", "Age"]),
        (
            "core/v1/persistentvolumeclaims",
            &[
                "Status",
                "Volume",
                "Capacity",
                "Access Modes",
                "StorageClass",
                "VolumeAttributesClass",
                "Age",
                "VolumeMode",
            ],
        ),
        (
            "core/v1/persistentvolumes",
            &[
                "Capacity",
                "Access Modes",
                "Reclaim Policy",
                "Status",
                "Claim",
                "StorageClass",
                "VolumeAttributesClass",
                "Reason",
                "Age",
                "VolumeMode",
            ],
        ),
        (
            "storage.k8s.io/v1/storageclasses",
            &[
                "Provisioner",
                "ReclaimPolicy",
                "VolumeBindingMode",
                "AllowVolumeExpansion",
                "Age",
            ],
        ),
    ];
    for (path, expected) in kinds {
        let path = match path.strip_prefix("core/") {
            Some(path) => format!("/api/{path}"),
            None => format!("/apis/{path}"),
        };
        let (_, table) = table(w, &path).await;
        let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = columns
            .iter()
            .skip(1)
            .filter_map(|column| column["name"].as_str())
            .collect();
        t.check(&format!("the columns of {path}"), names == expected, &names);
    }

    let volumes = "/api/v1/persistentvolumes";
    let spec = json!({"capacity": {"storage": "1024Mi"}, "hostPath": {"path": "/x"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "storageClassName": "conf-none"});
    w.post(
        volumes,
        &json!({"metadata": {"name": "conf-shown"}, "spec": spec}),
    )
    .await;
    let (_, volume) = table(w, &format!("{volumes}/conf-shown")).await;
    let cells = &volume["rows"][0]["cells"];
    t.check(
        "access modes are short",
        cells[1] == "1Gi" && cells[2] == "RWO,RWX" && cells[3] == "Retain",
        cells,
    );
    w.delete(&format!("{volumes}/conf-shown"), &Value::Null).await;

    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let pod = json!({"metadata": {"name": "shown"}, "spec": {"schedulerName": "nobody", "nodeName": "n1",
        "initContainers": [{"name": "i", "image": "x"}, {"name": "side", "image": "x", "restartPolicy": "Always"}],
        "containers": [{"name": "c", "image": "x"}]}});
    w.post(&pods, &pod).await;
    let cells = async || {
        let (_, table) = table(w, &format!("{pods}/shown")).await;
        table["rows"][0]["cells"].clone()
    };
    let status = json!({"status": {"initContainerStatuses": [{"name": "i", "image": "x", "imageID": "", "ready": false,
        "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2020-01-01T00:00:00Z"}}}]}});
    w.merge(&format!("{pods}/shown/status"), &status).await;
    let seen = cells().await;
    t.check(
        "a pod tells how it begins",
        seen[1] == "0/2"
            && seen[2] == "Init:CrashLoopBackOff"
            && seen[3]
                .as_str()
                .is_some_and(|text| text.starts_with("3 (") && text.ends_with(" ago)")),
        &seen,
    );
}
