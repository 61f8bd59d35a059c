//! Pods: defaults, binding, status, eviction, deletion, priority.

use super::{Tally, World};
use serde_json::{Value, json};

#[allow(clippy::too_many_lines, reason = "one list of checks")]
pub async fn check(w: &World, t: &mut Tally) {
    let ns = w.namespace("pods").await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let pod = |name: &str| json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "busybox", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}], "volumes": [{"name": "v"}, {"name": "m", "configMap": {"name": "x"}}]}});
    let a = w.post(&pods, &pod("a")).await;
    let spec = &a.body["spec"];
    t.check("a pod is created", a.code == 201, &a.body);
    t.check(
        "policies are filled in",
        spec["restartPolicy"] == "Always"
            && spec["dnsPolicy"] == "ClusterFirst"
            && spec["terminationGracePeriodSeconds"] == 30,
        spec,
    );
    t.check(
        "containers are filled in",
        spec["containers"][0]["imagePullPolicy"] == "Always"
            && spec["containers"][0]["terminationMessagePath"] == "/dev/termination-log",
        spec,
    );
    t.check(
        "ports are filled in",
        spec["containers"][0]["ports"][0]["protocol"] == "TCP",
        spec,
    );
    t.check(
        "requests follow limits",
        spec["containers"][0]["resources"]["requests"]["cpu"] == "1",
        spec,
    );
    t.check(
        "a volume without a source is empty",
        spec["volumes"][0]["emptyDir"] == json!({}),
        spec,
    );
    t.check(
        "files have a mode",
        spec["volumes"][1]["configMap"]["defaultMode"] == 420,
        spec,
    );
    t.check(
        "other things are filled in",
        spec["enableServiceLinks"] == true && spec["securityContext"] == json!({}),
        spec,
    );
    t.check(
        "taints of nodes that are away are tolerated for a while",
        spec["tolerations"].as_array().is_some_and(|list| {
            list.iter()
                .any(|one| one["key"] == "node.kubernetes.io/not-ready" && one["tolerationSeconds"] == 300)
        }),
        spec,
    );
    t.check(
        "a pod without a class has priority 0",
        spec["priority"] == 0 && spec["preemptionPolicy"] == "PreemptLowerPriority",
        spec,
    );
    t.check(
        "a new pod is Pending",
        a.body["status"]["phase"] == "Pending" && a.body["status"]["qosClass"] == "Burstable",
        &a.body["status"],
    );
    t.check(
        "its generation is 1",
        a.body["metadata"]["generation"] == 1,
        &a.body["metadata"],
    );

    for (change, words) in [
        (json!({"containers": []}), "spec.containers: Required value"),
        (
            json!({"containers": [{"name": "A", "image": "x"}]}),
            "spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of",
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            "spec.containers[0].image: Required value",
        ),
        (
            json!({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}),
            "spec.containers[1].name: Duplicate value: \"a\"",
        ),
        (
            json!({"containers": [{"name": "a", "image": "x", "volumeMounts": [{"name": "none", "mountPath": "/x"}]}]}),
            "spec.containers[0].volumeMounts[0].name: Not found: \"none\"",
        ),
        (
            json!({"containers": [{"name": "a", "image": "x", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}]}),
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
        ),
        (
            json!({"restartPolicy": "Sometimes"}),
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ),
    ] {
        let mut wrong = pod("x");
        for (key, value) in change.as_object().unwrap() {
            wrong["spec"][key] = value.clone();
        }
        wrong["spec"].as_object_mut().unwrap().remove("volumes");
        let refused = w.post(&pods, &wrong).await;
        t.refused(&format!("a pod is refused: {words}"), &refused, 422, words);
    }

    let class = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value});
    w.post(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        &class("conf-high", 1000),
    )
    .await;
    let mut high = pod("high");
    high["spec"]["priorityClassName"] = json!("conf-high");
    let made = w
        .eventually(|| async { w.post(&pods, &high).await.code != 403 })
        .await;
    let high = w.get(&format!("{pods}/high")).await;
    t.check(
        "a priority class gives its value",
        made && high.body["spec"]["priority"] == 1000,
        &high.body["spec"],
    );
    let mut none = pod("none");
    none["spec"]["priorityClassName"] = json!("conf-none");
    let refused = w.post(&pods, &none).await;
    t.refused(
        "a class has to be there",
        &refused,
        403,
        "pods \"none\" is forbidden: no PriorityClass with name conf-none was found",
    );

    let bind = |node: &str| json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a", "annotations": {"bound": "yes"}}, "target": {"kind": "Node", "name": node}});
    let bound = w.post(&format!("{pods}/a/binding"), &bind("n1")).await;
    t.check(
        "a binding answers 201",
        bound.code == 201 && bound.body["status"] == "Success",
        &bound.body,
    );
    let on_node = w.get(&format!("{pods}/a")).await;
    t.check(
        "the pod is on its node",
        on_node.body["spec"]["nodeName"] == "n1",
        &on_node.body["spec"],
    );
    t.check(
        "with a condition",
        on_node.body["status"]["conditions"]
            .as_array()
            .is_some_and(|list| {
                list.iter()
                    .any(|one| one["type"] == "PodScheduled" && one["status"] == "True")
            }),
        &on_node.body["status"],
    );
    t.check(
        "and the annotations of the binding",
        on_node.body["metadata"]["annotations"]["bound"] == "yes",
        &on_node.body["metadata"],
    );
    let twice = w.post(&format!("{pods}/a/binding"), &bind("n2")).await;
    t.refused(
        "a pod is bound once",
        &twice,
        409,
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\"",
    );
    let missing = w.post(&format!("{pods}/none/binding"), &json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "none"}, "target": {"name": "n"}})).await;
    t.check(
        "a pod that is not there is not bound",
        missing.code == 404,
        &missing.body,
    );
    let selected = w.get(&format!("{pods}?fieldSelector=spec.nodeName%3Dn1")).await;
    t.check(
        "pods are selected by node",
        selected.body["items"]
            .as_array()
            .is_some_and(|items| items.len() == 1),
        selected.code,
    );
    let unbound = w
        .get(&format!(
            "{pods}?fieldSelector=spec.nodeName%3D,spec.schedulerName%3Dnobody"
        ))
        .await;
    t.check(
        "and those without",
        unbound.body["items"]
            .as_array()
            .is_some_and(|items| items.len() == 1),
        &unbound.body["items"],
    );
    let moved = w
        .merge(&format!("{pods}/a"), &json!({"spec": {"nodeName": "n2"}}))
        .await;
    t.refused(
        "a pod stays as it is",
        &moved,
        422,
        "spec: Forbidden: pod updates may not change fields other than",
    );

    let running = w.merge(&format!("{pods}/a/status"), &json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, "spec": {"nodeName": "n3"}})).await;
    t.check(
        "a status is written through its path",
        running.code == 200
            && running.body["status"]["phase"] == "Running"
            && running.body["spec"]["nodeName"] == "n1",
        &running.body,
    );
    let ignored = w
        .merge(
            &format!("{pods}/a"),
            &json!({"status": {"phase": "Failed"}, "metadata": {"labels": {"y": "1"}}}),
        )
        .await;
    t.check(
        "and not with the object",
        ignored.body["status"]["phase"] == "Running" && ignored.body["metadata"]["labels"]["y"] == "1",
        &ignored.body,
    );
    let phase = w
        .get(&format!("{pods}?fieldSelector=status.phase%3DRunning"))
        .await;
    t.check(
        "pods are selected by phase",
        phase.body["items"]
            .as_array()
            .is_some_and(|items| items.len() == 1),
        phase.code,
    );

    let budgets = format!("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets");
    w.post(&budgets, &json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}})).await;
    let counted = w.eventually(|| async {
        let budget = w.get(&format!("{budgets}/b")).await.body;
        budget["status"]["currentHealthy"] == 1 && budget["status"]["disruptionsAllowed"] == 0
    });
    t.check("a budget is counted", counted.await, ());
    let eviction =
        |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let kept = w.post(&format!("{pods}/a/eviction"), &eviction("a")).await;
    t.refused(
        "a budget keeps a pod",
        &kept,
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    t.check(
        "the cause says why",
        kept.body["details"]["causes"][0]["reason"] == "DisruptionBudget",
        &kept.body["details"],
    );
    w.delete(&format!("{budgets}/b"), &Value::Null).await;
    let evicted = w
        .eventually(|| async { w.post(&format!("{pods}/a/eviction"), &eviction("a")).await.code == 201 })
        .await;
    t.check("without one it is evicted", evicted, ());
    let going = w.get(&format!("{pods}/a")).await;
    t.check(
        "a pod on a node gets its time",
        going.code == 200
            && going.body["metadata"]["deletionGracePeriodSeconds"] == 30
            && going.body["metadata"]["deletionTimestamp"].is_string(),
        &going.body["metadata"],
    );
    let bind_going = w.post(&format!("{pods}/a/binding"), &bind("n1")).await;
    t.check(
        "one that goes is not bound",
        bind_going.code == 409,
        &bind_going.body,
    );
    let gone = w
        .delete(&format!("{pods}/a"), &json!({"gracePeriodSeconds": 0}))
        .await;
    t.check(
        "the node ends it",
        gone.code == 200 && w.get(&format!("{pods}/a")).await.code == 404,
        &gone.body,
    );
    let waiting = w.delete(&format!("{pods}/high"), &Value::Null).await;
    t.check(
        "a pod without a node goes at once",
        waiting.code == 200 && w.get(&format!("{pods}/high")).await.code == 404,
        &waiting.body,
    );
    t.check(
        "its last state is answered",
        waiting.body["kind"] == "Pod",
        &waiting.body["kind"],
    );

    w.post(&pods, &pod("tried")).await;
    let mut trial = eviction("tried");
    trial["deleteOptions"] = json!({"dryRun": ["All"]});
    let tried = w.post(&format!("{pods}/tried/eviction"), &trial).await;
    t.check(
        "an eviction can be tried in its options",
        tried.code == 201 && w.get(&format!("{pods}/tried")).await.code == 200,
        &tried.body,
    );
    unready_pods_are_evicted(w, t, &ns).await;
    amounts(w, t, &pods).await;

    let mut gated = pod("gated");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/g"}]);
    w.post(&pods, &gated).await;
    let held = w.post(&format!("{pods}/gated/binding"), &json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "gated"}, "target": {"name": "n"}})).await;
    t.check("a pod with a gate is not bound", held.code == 409, &held.body);
    let freed = w
        .merge(
            &format!("{pods}/gated"),
            &json!({"spec": {"schedulingGates": null}}),
        )
        .await;
    t.check("gates can be taken away", freed.code == 200, &freed.body);
    for name in ["none", "..%2F..%2Fc"] {
        let logs = w.get(&format!("{pods}/gated/log?container={name}")).await;
        t.refused(
            "only containers of the pod have a log",
            &logs,
            400,
            "is not valid for pod gated",
        );
    }
    let logs = w.get(&format!("{pods}/gated/log?container=c")).await;
    t.check("by its name", logs.code == 204, &logs.body);
    let logs = w.get(&format!("{pods}/gated/log")).await;
    t.check("a pod without a node has no log", logs.code == 204, &logs.body);
}

/// A budget counts those that are well; the others may go as long as these are enough.
async fn unready_pods_are_evicted(w: &World, t: &mut Tally, ns: &str) {
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    for (name, ready) in [("well", "True"), ("unwell", "False")] {
        let spec =
            json!({"schedulerName": "nobody", "nodeName": "n1", "containers": [{"name": "c", "image": "x"}]});
        let pod = json!({"metadata": {"name": name, "labels": {"app": "y"}}, "spec": spec});
        w.post(&pods, &pod).await;
        let status =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
        w.merge(&format!("{pods}/{name}/status"), &status).await;
    }
    let budgets = format!("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets");
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "y"}}});
    w.post(&budgets, &json!({"metadata": {"name": "y"}, "spec": spec}))
        .await;
    let counted = w.eventually(|| async {
        let status = w.get(&format!("{budgets}/y")).await.body["status"].take();
        status["currentHealthy"] == 1 && status["desiredHealthy"] == 1
    });
    t.check("a budget counts those that are ready", counted.await, ());
    let evict = async |name: &str| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        w.post(&format!("{pods}/{name}/eviction"), &eviction).await
    };
    let well = evict("well").await;
    t.check("one that is ready is kept", well.code == 429, &well.body);
    let unwell = evict("unwell").await;
    t.check("one that is not is evicted", unwell.code == 201, &unwell.body);
}

/// Amounts are read, and written in one form.
async fn amounts(w: &World, t: &mut Tally, pods: &str) {
    let trial = format!("{pods}?dryRun=All");
    let with = |requests: Value| {
        let container = json!({"name": "c", "image": "x", "resources": {"requests": requests}});
        json!({"metadata": {"name": "amounts"}, "spec": {"schedulerName": "nobody", "containers": [container]}})
    };
    let pod = w
        .post(
            &trial,
            &with(json!({"cpu": "0.5", "memory": "1024Mi", "ephemeral-storage": 1000})),
        )
        .await;
    let requests = &pod.body["spec"]["containers"][0]["resources"]["requests"];
    t.check(
        "amounts are written in one form",
        *requests == json!({"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1k"}),
        &pod.body,
    );
    let wrong = w.post(&trial, &with(json!({"cpu": "much"}))).await;
    t.refused(
        "what is no amount is refused",
        &wrong,
        400,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
}
