use super::*;

fn claim(name: &str, more: Value) -> PersistentVolumeClaim {
    let mut object = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn volume(name: &str, more: Value) -> PersistentVolume {
    let mut object = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": {"storage": "1Gi"}},
        "status": {"phase": "Available"},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn class(name: &str, provisioner: &str, mode: &str) -> StorageClass {
    let object = json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode});
    serde_json::from_value(object).unwrap()
}

fn merge(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (key, value) in more {
                merge(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}

fn binder(claims: Vec<PersistentVolumeClaim>, volumes: Vec<PersistentVolume>) -> Binder {
    let key = |claim: &PersistentVolumeClaim| (claim.metadata.namespace.clone(), claim.metadata.name.clone());
    let classes = [
        class("slow", "driver", "Immediate"),
        class("late", "driver", "WaitForFirstConsumer"),
        class("manual", NO_PROVISIONER, "WaitForFirstConsumer"),
    ];
    Binder {
        claims: claims.into_iter().map(|claim| (key(&claim), claim)).collect(),
        volumes: volumes
            .into_iter()
            .map(|volume| (volume.metadata.name.clone(), volume))
            .collect(),
        classes: classes
            .into_iter()
            .map(|class| (class.metadata.name.clone(), class))
            .collect(),
    }
}

/// What is decided, in words.
fn told(binder: &Binder) -> Vec<String> {
    let words = |write: &Write| match write {
        Write::Volume {
            name,
            status: true,
            patch,
        } => format!("{name} {}", patch["status"]["phase"]),
        Write::Volume { name, patch, .. } => format!("{name} for {}", patch["spec"]["claimRef"]["name"]),
        Write::Claim {
            key,
            status: true,
            patch,
        } => format!("{} {}", key.1, patch["status"]["phase"]),
        Write::Claim { key, patch, .. } => format!("{} has {}", key.1, patch["spec"]["volumeName"]),
        Write::Make { name, class, .. } => format!("make {name} of {class:?}"),
        Write::Release(name) => format!("release {name}"),
    };
    let lists = binder.decide();
    let lists = lists
        .iter()
        .map(|list| list.iter().map(words).collect::<Vec<_>>().join(", "));
    lists.map(|list| list.replace('"', "")).collect()
}

/// What one claim gets where there are these volumes.
fn served(more: Value, volumes: Vec<PersistentVolume>) -> Vec<String> {
    told(&binder(vec![claim("c", more)], volumes))
}

#[test]
fn a_claim_gets_the_smallest_volume_that_fits() {
    let sized = |name: &str, size: &str| volume(name, json!({"spec": {"capacity": {"storage": size}}}));
    let volumes = vec![
        sized("large", "9Gi"),
        sized("small", "1Mi"),
        sized("right", "2Gi"),
    ];
    assert_eq!(served(json!({}), volumes), ["right for c"]);
}

#[test]
fn a_volume_that_does_not_fit_is_not_given() {
    let made = ["make pvc-uid-c of "];
    for (more, other) in [
        (json!({}), json!({"spec": {"storageClassName": "slow"}})),
        (json!({}), json!({"spec": {"accessModes": ["ReadOnlyMany"]}})),
        (json!({}), json!({"spec": {"volumeMode": "Block"}})),
        (
            json!({}),
            json!({"spec": {"claimRef": {"namespace": "ns", "name": "other"}}}),
        ),
        (
            json!({}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ),
        (
            json!({"spec": {"selector": {"matchLabels": {"disk": "fast"}}}}),
            json!({"metadata": {"labels": {"disk": "slow"}}}),
        ),
    ] {
        assert_eq!(served(more, vec![volume("v", other.clone())]), made, "{other}");
    }
}

#[test]
fn two_claims_never_get_one_volume() {
    let claims = vec![claim("a", json!({})), claim("b", json!({}))];
    let binder = binder(claims, vec![volume("v", json!({}))]);
    assert_eq!(told(&binder), ["v for a", "make pvc-uid-b of "]);
}

#[test]
fn both_sides_are_bound_once_the_volume_names_its_claim() {
    let set = json!({"spec": {"claimRef": {"namespace": "ns", "name": "c", "uid": "uid-c"}}});
    let v = || volume("v", set.clone());
    assert_eq!(served(json!({}), vec![v()]), ["c has v, v Bound, c Bound"]);
    // What its owner set aside by name gets the identity first.
    let by_name = json!({"spec": {"claimRef": {"namespace": "ns", "name": "c"}}});
    assert_eq!(served(json!({}), vec![volume("v", by_name)]), ["v for c"]);
    // A claim may name its volume itself.
    let named = json!({"spec": {"volumeName": "v"}});
    assert_eq!(served(named.clone(), vec![v()]), ["v Bound, c Bound"]);
    assert_eq!(served(named.clone(), vec![volume("v", json!({}))]), ["v for c"]);
    assert_eq!(served(named, vec![]), [""; 0]);
    let bound = json!({"spec": {"volumeName": "v"}, "status": {"phase": "Bound"}});
    assert_eq!(served(bound, vec![v()]), [""; 0]);
}

#[test]
fn volumes_are_made_unless_the_class_says_otherwise() {
    let of = |name: Value| json!({"spec": {"storageClassName": name}});
    assert_eq!(served(of(json!("slow")), vec![]), ["make pvc-uid-c of slow"]);
    assert_eq!(
        served(of(json!("of another cluster")), vec![]),
        ["make pvc-uid-c of of another cluster"]
    );
    assert_eq!(served(of(json!("")), vec![]), [""; 0]);
    assert_eq!(served(of(json!("manual")), vec![]), [""; 0]);
}

#[test]
fn a_class_that_waits_for_a_node_waits() {
    let late = json!({"spec": {"storageClassName": "late"}});
    let fits = || volume("v", json!({"spec": {"storageClassName": "late"}}));
    assert_eq!(served(late.clone(), vec![fits()]), [""; 0]);
    let mut selected = late;
    merge(
        &mut selected,
        json!({"metadata": {"annotations": {SELECTED_NODE: "n"}}}),
    );
    assert_eq!(served(selected, vec![]), ["make pvc-uid-c of late"]);
}

#[test]
fn a_volume_without_a_claim_is_available_and_one_whose_claim_is_gone_is_released() {
    let look = |more: Value| {
        told(&binder(
            vec![claim(
                "c",
                json!({"status": {"phase": "Bound"}, "spec": {"volumeName": "v"}}),
            )],
            vec![volume("v", more)],
        ))
    };
    let of = |uid: &str, phase: &str| json!({"spec": {"claimRef": {"namespace": "ns", "name": "c", "uid": uid}}, "status": {"phase": phase}});
    assert_eq!(look(json!({"status": {"phase": "Pending"}})), ["v Available"]);
    assert_eq!(look(json!({})), [""; 0]);
    assert_eq!(look(of("uid-c", "Bound")), [""; 0]);
    assert_eq!(look(of("older", "Bound")), ["release v"]);
    assert_eq!(look(of("older", "Released")), [""; 0]);
}
