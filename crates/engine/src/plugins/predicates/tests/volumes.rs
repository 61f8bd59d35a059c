//! Claims and volumes.

use super::{predicates, without};
use crate::explain::FitReason;
use crate::ids::TaskId;
use crate::model::Model;
use crate::relations::testing::{
    NS, add, chosen, cluster, merged, open_nodes, place, plugins, pod, unplace, verdicts,
};
use serde_json::{Value, json};

fn zones() -> Model {
    cluster(&[
        ("a", json!({"topology.kubernetes.io/zone": "a", "host": "a"})),
        ("b", json!({"topology.kubernetes.io/zone": "b", "host": "b"})),
    ])
}

fn uses(claims: &[&str]) -> Value {
    let volumes: Vec<_> = claims
        .iter()
        .map(|c| json!({"name": c, "persistentVolumeClaim": {"claimName": c}}))
        .collect();
    json!({"spec": {"volumes": volumes}})
}

fn claim(m: &mut Model, name: &str, patch: Value) {
    let base = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": NS, "uid": name},
        "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}}});
    add(m, merged(base, &patch));
}

fn bound_to(volume: &str) -> Value {
    json!({"spec": {"volumeName": volume}, "status": {"phase": "Bound"}})
}

fn volume(m: &mut Model, name: &str, patch: Value) {
    let base = json!({"kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"storageClassName": "late", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"}});
    add(m, merged(base, &patch));
}

fn on_host(host: &str) -> Value {
    json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "host", "operator": "In", "values": [host]}]}]}}}})
}

fn class(m: &mut Model, name: &str, patch: Value) {
    let base = json!({"kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"});
    add(m, merged(base, &patch));
}

#[test]
fn claims_that_nobody_can_serve_yet_stop_a_task_before_nodes_are_judged() {
    let mut m = zones();
    class(&mut m, "late", json!({}));
    class(&mut m, "now", json!({"volumeBindingMode": "Immediate"}));
    claim(&mut m, "late", json!({}));
    claim(&mut m, "now", json!({"spec": {"storageClassName": "now"}}));
    claim(
        &mut m,
        "classless",
        json!({"spec": {"storageClassName": "unknown"}}),
    );
    claim(
        &mut m,
        "lost",
        json!({"spec": {"volumeName": "gone"}, "status": {"phase": "Lost"}}),
    );
    claim(
        &mut m,
        "dying",
        json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}),
    );
    claim(&mut m, "half", json!({"spec": {"volumeName": "v"}}));
    claim(&mut m, "bound", bound_to("v"));
    let unbound = "pod has unbound immediate PersistentVolumeClaims";
    let ephemeral =
        json!({"spec": {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]}});
    let cases = [
        ("bound", uses(&["bound"]), ""),
        ("waits for a node", uses(&["late"]), ""),
        ("waits for a binder", uses(&["late", "now"]), unbound),
        ("of an unknown class", uses(&["classless"]), unbound),
        ("bound on one side only", uses(&["half"]), unbound),
        (
            "missing",
            uses(&["missing"]),
            "persistentvolumeclaim \"missing\" not found",
        ),
        (
            "lost",
            uses(&["lost"]),
            "persistentvolumeclaim \"lost\" bound to non-existent persistentvolume \"gone\"",
        ),
        (
            "being deleted",
            uses(&["dying"]),
            "persistentvolumeclaim \"dying\" is being deleted",
        ),
        (
            "ephemeral and not made yet",
            ephemeral,
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-scratch\"",
        ),
    ];
    for (name, patch, expected) in cases {
        let task = pod(&mut m, "p", None, patch);
        let message = match predicates(&m).pre_predicate(&m, task) {
            Ok(()) => String::new(),
            Err(FitReason::PrePredicate {
                plugin: "VolumeBinding",
                message,
            }) => message.to_string(),
            Err(other) => panic!("{name}: {other:?}"),
        };
        assert_eq!(message, expected, "{name}");
        assert!(
            without(&m, "VolumeBinding").pre_predicate(&m, task).is_ok(),
            "{name}, switched off"
        );
    }
}

#[test]
fn a_bound_volume_limits_the_nodes() {
    let mut m = zones();
    volume(&mut m, "everywhere", json!({}));
    volume(&mut m, "local", on_host("a"));
    for name in ["everywhere", "local", "gone"] {
        claim(&mut m, name, bound_to(name));
    }
    let task = pod(&mut m, "p", None, uses(&["everywhere"]));
    assert_eq!(open_nodes(&m, &predicates(&m), task), ["a", "b"]);
    let task = pod(&mut m, "p", None, uses(&["everywhere", "local"]));
    assert_eq!(verdicts(&m, &predicates(&m), task)[0], "");
    assert!(verdicts(&m, &predicates(&m), task)[1].contains("affinity"));
    assert_eq!(open_nodes(&m, &without(&m, "VolumeBinding"), task), ["a", "b"]);
    let task = pod(&mut m, "p", None, uses(&["gone"]));
    let missing = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
    assert_eq!(verdicts(&m, &predicates(&m), task), [missing; 2]);
}

#[test]
fn a_zonal_volume_is_used_in_its_zone() {
    let cases: [(&str, Value, &[&str]); 5] = [
        ("one zone", json!({"topology.kubernetes.io/zone": "a"}), &["a"]),
        (
            "two zones",
            json!({"topology.kubernetes.io/zone": "a__b"}),
            &["a", "b"],
        ),
        (
            "the older label",
            json!({"failure-domain.beta.kubernetes.io/zone": "b"}),
            &["b"],
        ),
        (
            "a region that nodes lack",
            json!({"topology.kubernetes.io/region": "r"}),
            &[],
        ),
        ("no label", json!({}), &["a", "b"]),
    ];
    for (name, labels, expected) in cases {
        let mut m = zones();
        volume(&mut m, "v", json!({"metadata": {"labels": labels}}));
        claim(&mut m, "c", bound_to("v"));
        let task = pod(&mut m, "p", None, uses(&["c"]));
        assert_eq!(open_nodes(&m, &predicates(&m), task), expected, "{name}");
        assert_eq!(
            open_nodes(&m, &without(&m, "VolumeZone"), task),
            ["a", "b"],
            "{name}, switched off"
        );
    }
}

#[test]
fn a_waiting_claim_needs_an_available_volume_that_fits() {
    let block = json!({"spec": {"volumeMode": "Block"}});
    let cases: [(&str, Value, Value, bool); 11] = [
        ("as it should be", json!({}), json!({}), true),
        (
            "another class",
            json!({"spec": {"storageClassName": "other"}}),
            json!({}),
            false,
        ),
        (
            "too small",
            json!({"spec": {"capacity": {"storage": "512Mi"}}}),
            json!({}),
            false,
        ),
        (
            "in use",
            json!({"status": {"phase": "Bound"}, "spec": {"claimRef": {"name": "x"}}}),
            json!({}),
            false,
        ),
        (
            "released",
            json!({"status": {"phase": "Released"}}),
            json!({}),
            false,
        ),
        (
            "access modes",
            json!({}),
            json!({"spec": {"accessModes": ["ReadWriteMany"]}}),
            false,
        ),
        ("volume mode", block.clone(), json!({}), false),
        ("both block", block.clone(), block, true),
        (
            "selector",
            json!({}),
            json!({"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
            false,
        ),
        (
            "selector that holds",
            json!({"metadata": {"labels": {"x": "y"}}}),
            json!({"spec": {"selector": {"matchLabels": {"x": "y"}}}}),
            true,
        ),
        (
            "set aside for the claim",
            json!({"spec": {"claimRef": {"name": "c", "namespace": NS}}, "status": {"phase": "Bound"}}),
            json!({}),
            true,
        ),
    ];
    for (name, volume_patch, claim_patch, fits) in cases {
        let mut m = zones();
        class(&mut m, "late", json!({}));
        volume(&mut m, "v", merged(on_host("a"), &volume_patch));
        claim(&mut m, "c", claim_patch);
        let task = pod(&mut m, "p", None, uses(&["c"]));
        let expected: &[&str] = if fits { &["a"] } else { &[] };
        assert_eq!(open_nodes(&m, &predicates(&m), task), expected, "{name}");
    }
}

#[test]
fn a_volume_is_made_where_the_class_allows_it() {
    let mut m = zones();
    class(
        &mut m,
        "late",
        json!({"provisioner": "csi.example.com", "allowedTopologies": [
        {"matchLabelExpressions": [{"key": "host", "values": ["b"]}]}]}),
    );
    claim(&mut m, "c", json!({}));
    let task = pod(&mut m, "p", None, uses(&["c"]));
    let no = "node(s) didn't find available persistent volumes to bind";
    assert_eq!(verdicts(&m, &predicates(&m), task), [no, ""]);
    class(&mut m, "late", json!({"provisioner": "csi.example.com"}));
    assert_eq!(verdicts(&m, &predicates(&m), task), ["", ""]);
    claim(
        &mut m,
        "c",
        json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}}}),
    );
    assert_eq!(
        verdicts(&m, &predicates(&m), task),
        ["", no],
        "it is being made for that node"
    );
}

#[test]
fn no_two_claims_get_the_same_volume() {
    let mut m = zones();
    class(&mut m, "late", json!({}));
    volume(&mut m, "v", json!({}));
    claim(&mut m, "c1", json!({}));
    claim(&mut m, "c2", json!({}));
    let both = pod(&mut m, "both", None, uses(&["c1", "c2"]));
    assert!(
        open_nodes(&m, &predicates(&m), both).is_empty(),
        "one pod, two claims"
    );
    let first = pod(&mut m, "first", None, uses(&["c1"]));
    let second = pod(&mut m, "second", None, uses(&["c2"]));
    let mut plugins = predicates(&m);
    place(&mut m, &mut plugins, first, "a");
    assert!(open_nodes(&m, &plugins, second).is_empty());
    plugins.open(&m, 1, &mut |_| {});
    assert!(
        open_nodes(&m, &plugins, second).is_empty(),
        "the next cycle remembers"
    );
    unplace(&mut m, &mut plugins, first);
    assert_eq!(open_nodes(&m, &plugins, second), ["a", "b"]);
}

#[test]
fn small_claims_leave_large_volumes_to_large_claims() {
    let mut m = zones();
    class(&mut m, "late", json!({}));
    volume(
        &mut m,
        "a-large",
        json!({"spec": {"capacity": {"storage": "9Gi"}}}),
    );
    volume(&mut m, "b-small", json!({}));
    claim(
        &mut m,
        "large",
        json!({"spec": {"resources": {"requests": {"storage": "8Gi"}}}}),
    );
    claim(&mut m, "small", json!({}));
    let task = pod(&mut m, "p", None, uses(&["large", "small"]));
    let mut plugins = predicates(&m);
    place(&mut m, &mut plugins, task, "a");
    let sources = plugins.claim_sources(&m, task);
    let names: Vec<_> = sources
        .iter()
        .map(|((_, claim), source)| format!("{claim}: {source:?}"))
        .collect();
    assert_eq!(
        names,
        ["large: Volume(\"a-large\")", "small: Volume(\"b-small\")"]
    );
}

#[test]
fn pods_that_share_a_claim_go_where_its_volume_will_be() {
    let mut m = zones();
    class(&mut m, "late", json!({"provisioner": "csi.example.com"}));
    claim(&mut m, "shared", json!({}));
    let first = pod(&mut m, "first", None, uses(&["shared"]));
    let second = pod(&mut m, "second", None, uses(&["shared"]));
    let mut plugins = predicates(&m);
    assert_eq!(open_nodes(&m, &plugins, second), ["a", "b"]);
    place(&mut m, &mut plugins, first, "b");
    assert_eq!(open_nodes(&m, &plugins, second), ["b"]);
    place(&mut m, &mut plugins, second, "b");
    unplace(&mut m, &mut plugins, first);
    assert_eq!(
        open_nodes(&m, &plugins, first),
        ["b"],
        "the second pod still relies on it"
    );
}

#[test]
fn distinct_volumes_count_against_a_driver_limit() {
    let mut m = zones();
    for name in ["v1", "v2", "v3"] {
        volume(
            &mut m,
            name,
            json!({"spec": {"csi": {"driver": "d", "volumeHandle": name}}}),
        );
        claim(&mut m, name, bound_to(name));
    }
    add(
        &mut m,
        json!({"kind": "CSINode", "metadata": {"name": "a"}, "spec": {"drivers": [
        {"name": "d", "allocatable": {"count": 2}}, {"name": "unlimited"}]}}),
    );
    pod(&mut m, "one", Some("a"), uses(&["v1"]));
    pod(&mut m, "same", Some("a"), uses(&["v1"]));
    let task = pod(&mut m, "p", None, uses(&["v2"]));
    assert_eq!(
        verdicts(&m, &predicates(&m), task),
        ["", ""],
        "a shared volume counts once"
    );
    pod(&mut m, "two", Some("a"), uses(&["v2"]));
    assert_eq!(
        verdicts(&m, &predicates(&m), task),
        ["", ""],
        "it is attached already"
    );
    let task = pod(&mut m, "p", None, uses(&["v3"]));
    assert_eq!(
        verdicts(&m, &predicates(&m), task),
        ["node(s) exceed max volume count", ""]
    );
    assert_eq!(verdicts(&m, &without(&m, "NodeVolumeLimits"), task), ["", ""]);
    m.features.ignored_provisioners = vec!["d".to_owned()];
    assert_eq!(
        verdicts(&m, &predicates(&m), task),
        ["", ""],
        "the driver is ignored"
    );
}

#[test]
fn volumes_still_to_be_made_count_too() {
    let named = json!({"csi.storage.k8s.io/csi-driver-name": "d"});
    for makes in [
        json!({"provisioner": "d"}),
        json!({"provisioner": "other", "parameters": named}),
    ] {
        let mut m = zones();
        class(&mut m, "late", makes);
        claim(&mut m, "c1", json!({}));
        claim(&mut m, "c2", json!({}));
        add(
            &mut m,
            json!({"kind": "CSINode", "metadata": {"name": "a"}, "spec": {"drivers": [
            {"name": "d", "allocatable": {"count": 1}}]}}),
        );
        let first = pod(&mut m, "first", None, uses(&["c1"]));
        let second = pod(&mut m, "second", None, uses(&["c2"]));
        let mut plugins = predicates(&m);
        place(&mut m, &mut plugins, first, "a");
        assert_eq!(
            verdicts(&m, &plugins, second),
            ["node(s) exceed max volume count", ""]
        );
    }
}

fn driver(m: &mut Model, tells: bool) {
    add(
        m,
        json!({"kind": "CSIDriver", "metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": tells}}),
    );
}

fn capacity(m: &mut Model, name: &str, patch: Value) {
    let base = json!({"kind": "CSIStorageCapacity", "metadata": {"name": name, "namespace": "csi"},
        "storageClassName": "made", "capacity": "10Gi", "nodeTopology": {"matchLabels": {"host": name}}});
    add(m, merged(base, &patch));
}

#[test]
fn a_volume_is_made_where_its_driver_has_free_storage() {
    let cases = [
        ("nothing is told of b", json!({}), ["", "b"]),
        ("too little is free", json!({"capacity": "1Gi"}), ["a", "b"]),
        ("just enough is free", json!({"capacity": "5Gi"}), ["", "b"]),
        (
            "no volume is as large",
            json!({"maximumVolumeSize": "4Gi"}),
            ["a", "b"],
        ),
        (
            "the largest volume counts, not what is free",
            json!({"capacity": "1Gi", "maximumVolumeSize": "5Gi"}),
            ["", "b"],
        ),
        (
            "it is not known how much is free",
            json!({"capacity": null}),
            ["a", "b"],
        ),
        (
            "of another class",
            json!({"storageClassName": "other"}),
            ["a", "b"],
        ),
        ("no node reaches it", json!({"nodeTopology": null}), ["a", "b"]),
        (
            "every node reaches it",
            json!({"nodeTopology": {"matchLabels": null}}),
            ["", ""],
        ),
        (
            "other nodes reach it",
            json!({"nodeTopology": {"matchLabels": null, "matchExpressions": [
                {"key": "host", "operator": "NotIn", "values": ["a"]}]}}),
            ["a", ""],
        ),
    ];
    for (name, patch, refused) in cases {
        let mut m = zones();
        class(&mut m, "made", json!({"provisioner": "csi.example.com"}));
        driver(&mut m, true);
        capacity(&mut m, "a", patch);
        let patch =
            json!({"spec": {"storageClassName": "made", "resources": {"requests": {"storage": "5Gi"}}}});
        claim(&mut m, "data", patch);
        let task = pod(&mut m, "p", None, uses(&["data"]));
        let expected = refused.map(|node| match node {
            "" => "",
            _ => "node(s) did not have enough free storage",
        });
        assert_eq!(verdicts(&m, &predicates(&m), task), expected, "{name}");
        let off = without(&m, "VolumeBinding");
        assert_eq!(open_nodes(&m, &off, task), ["a", "b"], "{name}, switched off");
    }
}

#[test]
fn storage_counts_only_for_volumes_that_a_driver_makes_and_tells_of() {
    let mut m = zones();
    class(&mut m, "made", json!({"provisioner": "csi.example.com"}));
    let sized = json!({"spec": {"storageClassName": "made", "resources": {"requests": {"storage": "5Gi"}}}});
    claim(&mut m, "data", sized);
    let task = pod(&mut m, "p", None, uses(&["data"]));
    let open = |m: &Model| open_nodes(m, &predicates(m), task).len();
    assert_eq!(
        open(&m),
        2,
        "no driver is known: none is watched, or it is no CSI driver"
    );
    driver(&mut m, false);
    assert_eq!(open(&m), 2, "the driver does not tell");
    driver(&mut m, true);
    assert_eq!(open(&m), 0, "it tells, and has nothing");
    let selected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}},
        "spec": {"storageClassName": "made", "resources": {"requests": {"storage": "5Gi"}}}});
    claim(&mut m, "begun", selected);
    let other = pod(&mut m, "q", None, uses(&["begun"]));
    assert_eq!(
        open_nodes(&m, &predicates(&m), other),
        ["a"],
        "it is being made there"
    );
    capacity(&mut m, "b", json!({}));
    assert_eq!(open_nodes(&m, &predicates(&m), task), ["b"]);
    let free = json!({"spec": {"storageClassName": "made", "capacity": {"storage": "5Gi"}}});
    volume(&mut m, "there", merged(free, &on_host("a")));
    assert_eq!(open(&m), 2, "a volume that is there needs no free storage");
}

/// The scores of volume binding on each node, by the plugin with these arguments.
fn scores(m: &Model, arguments: &[(&str, Value)], task: TaskId) -> Vec<f64> {
    let plugins = plugins(m, &[("predicates", arguments)]);
    let nodes: Vec<_> = m.nodes.ids().collect();
    let mut scores = vec![0.0; nodes.len()];
    let related = plugins.relate(m, task);
    related.iter().for_each(|r| r.score(m, &nodes, &mut scores));
    scores
}

fn scoring() -> Model {
    let mut m = zones();
    m.features.storage_scoring = true;
    class(&mut m, "late", json!({}));
    class(&mut m, "made", json!({"provisioner": "csi.example.com"}));
    driver(&mut m, true);
    m
}

fn local(m: &mut Model, host: &str, size: &str) {
    let sized = json!({"spec": {"capacity": {"storage": size}}});
    volume(m, host, merged(on_host(host), &sized));
}

fn asking(class: &str, size: &str) -> Value {
    json!({"spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}}})
}

#[test]
fn volumes_and_storage_that_stay_the_emptiest_score_highest() {
    let mut m = scoring();
    local(&mut m, "a", "4Gi");
    local(&mut m, "b", "10Gi");
    capacity(&mut m, "a", json!({"capacity": "100Gi"}));
    capacity(
        &mut m,
        "b",
        json!({"capacity": null, "maximumVolumeSize": "20Gi"}),
    );
    claim(&mut m, "one", asking("late", "1Gi"));
    claim(&mut m, "made", asking("made", "5Gi"));
    claim(&mut m, "more", asking("made", "10Gi"));
    claim(&mut m, "large", asking("late", "8Gi"));
    let cases = [
        (&["one"][..], [75.0, 90.0], "1 of 4 and of 10 GiB"),
        (&["made"], [95.0, 75.0], "5 of 100 and of 20 GiB that are free"),
        (&["made", "more"], [85.0, 25.0], "both of what is free"),
        (
            &["one", "made"],
            [75.0, 90.0],
            "volumes that are there count alone",
        ),
        (&["large"], [0.0, 20.0], "nothing serves it on a"),
    ];
    for (claims, expected, name) in cases {
        let task = pod(&mut m, "p", None, uses(claims));
        assert_eq!(scores(&m, &[], task), expected, "{name}");
    }
    let task = pod(&mut m, "p", None, uses(&["one"]));
    assert_eq!(chosen(&m, &predicates(&m), task), "b");
}

#[test]
fn the_score_of_volumes_has_a_weight_and_a_shape_and_is_off_without_its_gate() {
    let mut m = scoring();
    local(&mut m, "a", "4Gi");
    local(&mut m, "b", "10Gi");
    claim(&mut m, "one", asking("late", "1Gi"));
    let task = pod(&mut m, "p", None, uses(&["one"]));
    let fullest = json!([{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]);
    let step = json!([{"utilization": 15, "score": 2}, {"utilization": 20, "score": 7}]);
    let off = "predicate.VolumeBindingEnable";
    let cases = [
        (vec![("volumebinding.weight", json!(3))], [225.0, 270.0]),
        (vec![("volumebinding.weight", json!(0))], [0.0, 0.0]),
        (vec![("volumebinding.shape", fullest)], [25.0, 10.0]),
        (vec![("volumebinding.shape", step)], [70.0, 20.0]),
        (vec![(off, json!(false))], [0.0, 0.0]),
    ];
    for (arguments, expected) in cases {
        assert_eq!(scores(&m, &arguments, task), expected, "{arguments:?}");
    }
    m.features.storage_scoring = false;
    assert_eq!(scores(&m, &[], task), [0.0, 0.0], "without the gate");
}

#[test]
fn classes_count_alike_and_a_driver_that_does_not_tell_counts_not_at_all() {
    let mut m = scoring();
    class(&mut m, "other", json!({}));
    class(&mut m, "untold", json!({"provisioner": "quiet.example.com"}));
    volume(&mut m, "late", json!({"spec": {"capacity": {"storage": "3Gi"}}}));
    let other = json!({"spec": {"storageClassName": "other", "capacity": {"storage": "8Gi"}}});
    volume(&mut m, "other", other);
    claim(&mut m, "late", asking("late", "1Gi"));
    claim(&mut m, "other", asking("other", "4Gi"));
    claim(&mut m, "untold", asking("untold", "1Gi"));
    let task = pod(&mut m, "p", None, uses(&["late", "other", "untold"]));
    assert_eq!(scores(&m, &[], task), [59.0, 59.0], "67 and 50, rounded");
    let task = pod(&mut m, "q", None, uses(&["untold"]));
    assert_eq!(scores(&m, &[], task), [0.0, 0.0]);
}
