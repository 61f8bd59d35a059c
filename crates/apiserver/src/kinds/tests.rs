use super::pod::qos_class;
use super::*;
use crate::resources::built_in;

fn resource(nature: Nature) -> std::sync::Arc<Resource> {
    let mut table = 0;
    let registry = built_in(|| {
        table += 1;
        table - 1
    });
    registry.of_nature(nature).clone()
}

#[test]
fn a_pod_gets_its_defaults() {
    let mut pod = json!({"spec": {"containers": [
        {"name": "a", "image": "busybox", "resources": {"limits": {"cpu": "1"}}},
        {"name": "b", "image": "registry:5000/x:1", "ports": [{"containerPort": 1}]},
    ], "volumes": [{"name": "v"}, {"name": "c", "configMap": {"name": "x"}}]}});
    fill(&resource(Nature::Pod), &mut pod);
    let spec = &pod["spec"];
    assert_eq!(spec["restartPolicy"], "Always");
    assert_eq!(spec["terminationGracePeriodSeconds"], 30);
    assert_eq!(spec["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(
        spec["containers"][0]["resources"]["requests"],
        json!({"cpu": "1"})
    );
    assert_eq!(spec["containers"][1]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(spec["containers"][1]["ports"][0]["protocol"], "TCP");
    assert_eq!(spec["volumes"][0], json!({"name": "v", "emptyDir": {}}));
    assert_eq!(spec["volumes"][1]["configMap"]["defaultMode"], 420);
}

#[test]
fn pods_are_classed_by_what_they_ask_for() {
    for (resources, expected) in [
        (json!({}), "BestEffort"),
        (json!({"requests": {"cpu": "1"}}), "Burstable"),
        (json!({"limits": {"cpu": "1"}}), "Burstable"),
        (
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
            "Guaranteed",
        ),
        (json!({"requests": {"nvidia.com/gpu": "1"}}), "BestEffort"),
    ] {
        let pod = json!({"spec": {"containers": [{"resources": resources}]}});
        assert_eq!(qos_class(&pod), expected, "{pod}");
    }
}

#[test]
fn wrong_pods_are_refused_with_the_field() {
    let good = json!({"spec": {"containers": [{"name": "a", "image": "x"}]}});
    let pods = resource(Nature::Pod);
    assert!(check(&pods, &good).is_empty());
    for (pointer, value, expected) in [
        ("/spec/containers", json!([]), "spec.containers: Required value"),
        (
            "/spec/containers/0/name",
            json!("A_b"),
            "spec.containers[0].name: Invalid value: \"A_b\"",
        ),
        (
            "/spec/containers/0/image",
            json!(""),
            "spec.containers[0].image: Required value",
        ),
        (
            "/spec/containers/0",
            json!({"name": "a", "image": "x", "volumeMounts": [{"name": "v"}]}),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
        (
            "/spec/containers/0",
            json!({"name": "a", "image": "x", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}),
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
        ),
        (
            "/spec/containers/0",
            json!({"name": "a", "image": "x", "resources": {"requests": {"cpu": "-1"}}}),
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
    ] {
        let mut pod = good.clone();
        *pod.pointer_mut(pointer).unwrap() = value;
        let errors = check(&pods, &pod);
        assert!(
            errors.len() == 1 && errors[0].to_string().starts_with(expected),
            "{errors:?}"
        );
    }
}

#[test]
fn a_pod_keeps_its_spec() {
    let pods = resource(Nature::Pod);
    let old = json!({"spec": {"containers": [{"name": "a", "image": "x"}], "nodeName": "n"}});
    let mut image = old.clone();
    image["spec"]["containers"][0]["image"] = json!("y");
    image["spec"]["tolerations"] = json!([{"key": "k"}]);
    assert!(check_change(&pods, &image, &old).is_empty());
    let mut moved = old.clone();
    moved["spec"]["nodeName"] = json!("m");
    assert!(
        check_change(&pods, &moved, &old)[0]
            .to_string()
            .starts_with("spec: Forbidden: pod updates may not change")
    );
}

#[test]
fn secrets_take_texts_and_keep_what_is_immutable() {
    let secrets = resource(Nature::Secret);
    let mut secret = json!({"stringData": {"a": "hello"}, "data": {"b": "eA=="}});
    fill(&secrets, &mut secret);
    assert_eq!(
        secret,
        json!({"type": "Opaque", "data": {"a": "aGVsbG8=", "b": "eA=="}})
    );
    let old = json!({"immutable": true, "data": {"a": "eA=="}});
    let errors = check_change(&secrets, &json!({"immutable": true, "data": {}}), &old);
    assert_eq!(
        errors[0].to_string(),
        "data: Forbidden: field is immutable when `immutable` is set"
    );
}

#[test]
fn names_and_labels_follow_the_rules_of_their_kind() {
    let named = |name: &str| json!({"metadata": {"name": name}});
    let is_fine = |nature, name: &str| meta::check(&resource(nature), &named(name)).is_empty();
    assert!(is_fine(Nature::ConfigMap, "a.b-c") && !is_fine(Nature::Namespace, "a.b"));
    assert!(
        !is_fine(Nature::ConfigMap, "A")
            && !is_fine(Nature::ConfigMap, "-a")
            && !is_fine(Nature::ConfigMap, "")
    );
    assert!(!is_fine(Nature::Service, "1a") && is_fine(Nature::Service, "a1"));
    let wrong = json!({"metadata": {"name": "a", "labels": {"k": "a b"}}});
    let errors = meta::check(&resource(Nature::ConfigMap), &wrong);
    assert!(
        errors[0]
            .to_string()
            .starts_with("metadata.labels: Invalid value: \"a b\": a valid label must be")
    );
}

#[test]
fn services_get_addresses_that_nobody_has() {
    let mut addresses = ClusterAddresses::default();
    let mut service = json!({"spec": {"type": "ClusterIP"}});
    addresses.give(&mut service, |address| address == "10.96.0.10");
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.11");
    let mut headless = json!({"spec": {"clusterIP": "None"}});
    addresses.give(&mut headless, |_| false);
    assert_eq!(headless["spec"]["clusterIP"], "None");
}
