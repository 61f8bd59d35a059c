//! Pods of others, and the PodGroups that they get.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::merge;

fn options() -> Options {
    Options {
        schedulers: vec!["volcano".to_owned()],
        inherit_owner_annotations: true,
    }
}

/// A pod of `volcano` in `ns`, as the API server has it; `more` is laid over it.
fn pod(name: &str, more: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
        },
    });
    merge(&mut pod, &more);
    serde_json::from_value(pod).expect("a readable pod")
}

/// The reference of a pod to the workload that made it.
fn owned_by(kind: &str, name: &str) -> Value {
    let api_version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    let reference = json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true,
    });
    json!({"metadata": {"ownerReferences": [reference]}})
}

/// A workload that was read.
fn owner(kind: Kind, name: &str, replicas: Option<i32>, annotations: Value) -> Owner {
    let metadata =
        json!({"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "annotations": annotations});
    Owner {
        kind,
        metadata: serde_json::from_value(metadata).expect("readable"),
        replicas,
    }
}

fn with(mut value: Value, more: Value) -> Value {
    merge(&mut value, &more);
    value
}

fn plan_of(pods: &[Pod], owners: &[Owner], group: Option<&PodGroup>) -> Plan {
    let observed = Observed { pods, owners, group };
    plan(&options(), &observed)
}

/// The PodGroup that a plan makes, as the API server stores it.
fn created(plan: &Plan) -> PodGroup {
    let [
        Write::Create {
            target,
            body,
            fill: None,
        },
    ] = &plan.steps[0][..]
    else {
        panic!("a PodGroup is made first: {plan:?}");
    };
    assert_eq!((target.kind, target.namespace.as_str()), (kinds::POD_GROUP, "ns"));
    let mut stored: PodGroup = serde_json::from_value(body.clone()).expect("readable");
    assert_eq!(stored.metadata.name, target.name);
    stored.metadata.uid = "uid-group".to_owned();
    if stored.spec.queue.is_empty() {
        stored.spec.queue = "default".to_owned();
    }
    stored
}

fn shown(group: &PodGroup) -> String {
    let value = serde_json::to_value(group).expect("writable");
    format!("{value:#}")
}

/// Names of the pods that a plan puts into a PodGroup, and of the PodGroup.
fn named(plan: &Plan) -> Vec<(String, String)> {
    let patches = plan.steps.iter().flatten().filter_map(|write| match write {
        Write::Patch { target, patch, .. } if target.kind == kinds::POD => {
            assert_eq!(target.uid, format!("uid-{}", target.name));
            let group = patch["metadata"]["annotations"]["scheduling.k8s.io/group-name"].as_str();
            Some((target.name.clone(), group.expect("a name").to_owned()))
        }
        _ => None,
    });
    patches.collect()
}

fn annotated(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    let name = group_name(&pod.metadata);
    let annotations = &mut pod.metadata.annotations;
    annotations.insert(annotations::KUBE_GROUP_NAME.to_owned(), name);
    pod
}

#[test]
fn a_bare_pod_gets_a_pod_group_of_its_own() {
    let plan = plan_of(&[pod("p", json!({}))], &[], None);
    insta::assert_snapshot!(shown(&created(&plan)));
    assert_eq!(named(&plan), [("p".to_owned(), "podgroup-uid-p".to_owned())]);
    assert_eq!(plan.steps.len(), 2, "the PodGroup is there before a pod names it");
}

#[test]
fn everything_that_a_pod_and_its_owners_say_is_taken_over() {
    let more = with(
        owned_by("ReplicaSet", "rs"),
        json!({
            "metadata": {
                "annotations": {
                    "scheduling.volcano.sh/queue-name": "q",
                    "volcano.sh/preemptable": "true",
                    "volcano.sh/cooldown-time": "10m",
                    "volcano.sh/revocable-zone": "*",
                    "volcano.sh/jdb-min-available": "1",
                    "volcano.sh/jdb-max-unavailable": "2",
                    "volcano.sh/network-topology-mode": "Soft",
                    "volcano.sh/network-topology-highest-tier": "2",
                    "volcano.sh/other": "not taken over",
                },
                "labels": {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "5m", "app": "x"},
            },
            "spec": {"priorityClassName": "high"},
        }),
    );
    let said = json!({
        "scheduling.volcano.sh/group-min-member": "3",
        "volcano.sh/sla-waiting-time": "1h",
        "volcano.sh/preemptable": "false",
        "kubernetes.io/other": "not taken over",
    });
    let rs = owner(kinds::REPLICA_SET, "rs", Some(5), said);
    insta::assert_snapshot!(shown(&created(&plan_of(&[pod("p", more)], &[rs], None))));
}

#[test]
fn fields_of_the_pod_group_one_by_one() {
    let min_member = "scheduling.volcano.sh/group-min-member";
    let of_rs = |more: Value| vec![pod("p", with(owned_by("ReplicaSet", "rs"), more))];
    let rs = |annotations: Value| owner(kinds::REPLICA_SET, "rs", Some(1), annotations);
    let annotation = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    let topology = |mode: Option<&str>, tier: Option<&str>| {
        let mut annotations = json!({});
        for (key, value) in [("mode", mode), ("highest-tier", tier)] {
            if let Some(value) = value {
                annotations[format!("volcano.sh/network-topology-{key}")] = value.into();
            }
        }
        of_rs(json!({"metadata": {"annotations": annotations}}))
    };
    // Pods, owners, the field, and what it is.
    let cases = [
        (
            "one pod",
            of_rs(json!({})),
            vec![rs(json!({}))],
            "/spec/minMember",
            json!(1),
        ),
        (
            "as the owner says",
            of_rs(json!({})),
            vec![rs(json!({min_member: "4"}))],
            "/spec/minMember",
            json!(4),
        ),
        (
            "for all of them",
            of_rs(json!({})),
            vec![rs(json!({min_member: "4"}))],
            "/spec/minResources/requests.cpu",
            json!("4"),
        ),
        (
            "none is possible",
            of_rs(json!({})),
            vec![rs(json!({min_member: "0"}))],
            "/spec/minMember",
            Value::Null,
        ),
        (
            "no number",
            of_rs(json!({})),
            vec![rs(json!({min_member: "many"}))],
            "/spec/minMember",
            json!(1),
        ),
        (
            "below none",
            of_rs(json!({})),
            vec![rs(json!({min_member: "-1"}))],
            "/spec/minMember",
            json!(1),
        ),
        (
            "the first owner that says it",
            of_rs(json!({})),
            vec![
                rs(json!({})),
                rs(json!({min_member: "2"})),
                rs(json!({min_member: "3"})),
            ],
            "/spec/minMember",
            json!(2),
        ),
        (
            "the first owner that has the annotation",
            of_rs(json!({})),
            vec![rs(json!({"volcano.sh/x": "1"})), rs(json!({"volcano.sh/x": "2"}))],
            "/metadata/annotations/volcano.sh~1x",
            json!("1"),
        ),
        (
            "a budget of pods that may go",
            of_rs(annotation("volcano.sh/jdb-max-unavailable", "2")),
            vec![],
            "/metadata/annotations/volcano.sh~1jdb-max-unavailable",
            json!("2"),
        ),
        (
            "no topology",
            topology(None, None),
            vec![],
            "/spec/networkTopology",
            Value::Null,
        ),
        (
            "a tier alone is a limit",
            topology(None, Some("1")),
            vec![],
            "/spec/networkTopology",
            json!({"mode": "hard", "highestTierAllowed": 1}),
        ),
        (
            "a mode alone",
            topology(Some("soft"), None),
            vec![],
            "/spec/networkTopology",
            json!({"mode": "soft"}),
        ),
        (
            "a mode that is not known",
            topology(Some("odd"), None),
            vec![],
            "/spec/networkTopology",
            json!({"mode": "hard"}),
        ),
        (
            "a tier that is no number",
            topology(None, Some("top")),
            vec![],
            "/spec/networkTopology",
            json!({"mode": "hard"}),
        ),
        (
            "a tier below none",
            topology(None, Some("-1")),
            vec![],
            "/spec/networkTopology",
            json!({"mode": "hard"}),
        ),
    ];
    for (name, pods, owners, field, expected) in cases {
        let group = serde_json::to_value(created(&plan_of(&pods, &owners, None))).expect("writable");
        assert_eq!(group.pointer(field).unwrap_or(&Value::Null), &expected, "{name}");
    }
}

#[test]
fn without_inheritance_owners_say_nothing() {
    let rs = owner(
        kinds::REPLICA_SET,
        "rs",
        Some(1),
        json!({"scheduling.volcano.sh/group-min-member": "3", "volcano.sh/x": "1"}),
    );
    let options = Options {
        inherit_owner_annotations: false,
        ..options()
    };
    let pods = [pod("p", owned_by("ReplicaSet", "rs"))];
    let observed = Observed {
        pods: &pods,
        owners: &[rs],
        group: None,
    };
    let group = created(&plan(&options, &observed));
    assert_eq!((group.spec.min_member, group.metadata.annotations.len()), (1, 0));
}

#[test]
fn pods_that_need_no_pod_group_are_left_alone() {
    let cases = [
        (
            "another scheduler places it",
            json!({"spec": {"schedulerName": "default-scheduler"}}),
        ),
        (
            "it has one",
            json!({"metadata": {"annotations": {"scheduling.k8s.io/group-name": "mine"}}}),
        ),
        ("it is finished", json!({"status": {"phase": "Succeeded"}})),
        (
            "it is being deleted",
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ),
    ];
    for (name, more) in cases {
        assert_eq!(plan_of(&[pod("p", more)], &[], None), Plan::default(), "{name}");
    }
}

#[test]
fn many_pods_of_one_owner_share_one_create() {
    let pods: Vec<_> = (0..100)
        .map(|n| pod(&format!("p{n}"), owned_by("ReplicaSet", "rs")))
        .collect();
    let plan = plan_of(&pods, &[], None);
    created(&plan);
    let named = named(&plan);
    assert_eq!(named.len(), 100);
    assert!(named.iter().all(|(_, group)| group == "podgroup-uid-rs"));
    assert_eq!(plan.steps.iter().flatten().count(), 101);
}

#[test]
fn what_was_left_half_done_is_finished() {
    let pods = [
        annotated(&pod("a", owned_by("ReplicaSet", "rs"))),
        pod("b", owned_by("ReplicaSet", "rs")),
    ];
    let group = created(&plan_of(&pods, &[], None));
    let plan = plan_of(&pods, &[], Some(&group));
    assert_eq!(named(&plan), [("b".to_owned(), "podgroup-uid-rs".to_owned())]);
    assert_eq!(plan.steps.len(), 1, "the PodGroup is as it should be");
    let done = [pods[0].clone(), annotated(&pods[1])];
    assert_eq!(plan_of(&done, &[], Some(&group)), Plan::default());
}

#[test]
fn a_pod_group_that_has_gone_is_made_again_for_pods_that_name_it() {
    let waiting = annotated(&pod("a", owned_by("StatefulSet", "s")));
    let plan = plan_of(std::slice::from_ref(&waiting), &[], None);
    assert_eq!(created(&plan).metadata.name, "podgroup-uid-s");
    assert_eq!(plan.steps.len(), 1, "the pod names it already");
    let mut done = waiting;
    done.status.phase = volcano_api::core::PodPhase::Succeeded;
    assert_eq!(plan_of(&[done], &[], None), Plan::default());
}

#[test]
fn pods_wait_while_a_pod_group_is_on_its_way_out() {
    let waiting = [pod("a", owned_by("StatefulSet", "s"))];
    let mut group = created(&plan_of(&waiting, &[], None));
    assert_eq!(named(&plan_of(&waiting, &[], Some(&group))).len(), 1);
    group.metadata.deletion_timestamp = Some(Time::EPOCH);
    assert_eq!(plan_of(&waiting, &[], Some(&group)), Plan::default());
}

#[test]
fn a_new_template_adapts_the_pod_group_once() {
    let at = |name: &str, time: &str, more: Value| {
        let created = json!({"metadata": {"creationTimestamp": time}});
        pod(name, with(with(owned_by("StatefulSet", "s"), created), more))
    };
    let old = annotated(&at("s-0", "2026-01-01T00:00:00Z", json!({})));
    let mut group = created(&plan_of(std::slice::from_ref(&old), &[], None));
    // Others have written to it since.
    group
        .metadata
        .annotations
        .insert("volcano.sh/job-allocated-hypernode".into(), "h".into());
    group.spec.queue = "chosen-by-a-webhook".to_owned();
    group.spec.priority_class_name = "low".to_owned();
    group.spec.network_topology =
        serde_json::from_value(json!({"mode": "hard", "highestTierAllowed": 3})).ok();
    let new = at(
        "s-1",
        "2026-01-02T00:00:00Z",
        json!({
            "metadata": {"annotations": {"volcano.sh/preemptable": "true", "volcano.sh/network-topology-mode": "soft"}},
            "spec": {"containers": [{"resources": {"requests": {"memory": "1Gi"}}}]},
        }),
    );
    let set = owner(
        kinds::STATEFUL_SET,
        "s",
        Some(2),
        json!({"scheduling.volcano.sh/group-min-member": "2"}),
    );
    let pods = [new, old];
    let plan = plan_of(&pods, std::slice::from_ref(&set), Some(&group));
    let Write::Patch { target, patch, .. } = &plan.steps[0][0] else {
        panic!("the PodGroup is adapted first: {plan:?}");
    };
    assert_eq!(target, &Target::of(&group));
    assert_eq!(
        *patch,
        json!({
            "metadata": {"annotations": {"volcano.sh/preemptable": "true"}},
            "spec": {
                "minMember": 2,
                "priorityClassName": "",
                "networkTopology": {"mode": "soft", "highestTierAllowed": null},
                "minResources": {
                    "pods": "2", "count/pods": "2", "memory": "2Gi", "requests.memory": "2Gi",
                    "cpu": null, "requests.cpu": null,
                },
            },
        })
    );
    assert_eq!(named(&plan), [("s-1".to_owned(), "podgroup-uid-s".to_owned())]);

    let mut stored = serde_json::to_value(&group).expect("writable");
    merge(&mut stored, patch);
    let adapted: PodGroup = serde_json::from_value(stored).expect("readable");
    let again = plan_of(&pods, &[set], Some(&adapted));
    assert_eq!(
        again.steps.len(),
        1,
        "only the pod is left to be written: {again:?}"
    );
}

#[test]
fn pod_groups_of_bare_pods_and_other_owners_are_not_adapted() {
    for more in [json!({}), owned_by("DaemonSet", "d"), owned_by("Job", "j")] {
        let first = pod("a", more.clone());
        let group = created(&plan_of(&[first], &[], None));
        let second = pod("a", with(more, json!({"spec": {"priorityClassName": "high"}})));
        let plan = plan_of(&[second], &[], Some(&group));
        assert_eq!(plan.steps.len(), 1, "{plan:?}");
        assert_eq!(named(&plan).len(), 1);
    }
}

#[test]
fn the_pod_group_of_a_workload_without_pods_goes() {
    let member = annotated(&pod("p", owned_by("ReplicaSet", "rs")));
    let group = created(&plan_of(std::slice::from_ref(&member), &[], None));
    let mut leaving = member.clone();
    leaving.metadata.deletion_timestamp = Some(Time::EPOCH);
    let scaled = |kind: Kind, replicas| vec![owner(kind, "rs", replicas, json!({}))];
    // Pods, owners, and whether it goes.
    let cases = [
        (
            "it is to have none",
            vec![],
            scaled(kinds::REPLICA_SET, Some(0)),
            true,
        ),
        (
            "so is a StatefulSet",
            vec![],
            scaled(kinds::STATEFUL_SET, Some(0)),
            true,
        ),
        (
            "its last pods are leaving",
            vec![leaving],
            scaled(kinds::REPLICA_SET, Some(0)),
            true,
        ),
        (
            "a pod is left",
            vec![member],
            scaled(kinds::REPLICA_SET, Some(0)),
            false,
        ),
        (
            "its pods are yet to come",
            vec![],
            scaled(kinds::REPLICA_SET, Some(1)),
            false,
        ),
        ("it does not say", vec![], scaled(kinds::REPLICA_SET, None), false),
        (
            "a DaemonSet has no such number",
            vec![],
            scaled(kinds::DAEMON_SET, Some(0)),
            false,
        ),
        (
            "it belongs to another",
            vec![],
            vec![owner(kinds::REPLICA_SET, "other", Some(0), json!({}))],
            false,
        ),
        ("nobody owns it", vec![], vec![], false),
    ];
    for (name, pods, owners, goes) in cases {
        let delete = Write::Delete {
            target: Target::of(&group),
            foreground: false,
        };
        let expected = if goes {
            Plan::of(vec![vec![delete]])
        } else {
            Plan::default()
        };
        assert_eq!(plan_of(&pods, &owners, Some(&group)), expected, "{name}");
    }
    let none = scaled(kinds::REPLICA_SET, Some(0));
    assert_eq!(plan_of(&[], &none, None), Plan::default(), "none is there");
    let mut going = group;
    going.metadata.deletion_timestamp = Some(Time::EPOCH);
    assert_eq!(plan_of(&[], &none, Some(&going)), Plan::default(), "it is going");
}

#[test]
fn only_owners_whose_annotations_count_are_read() {
    let references = [
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("apps/v1beta1", "ReplicaSet"),
        ("ray.io/v1", "RayCluster"),
    ];
    let references = references
        .map(|(version, kind)| json!({"apiVersion": version, "kind": kind, "name": kind, "uid": "u"}));
    let pod = pod("p", json!({"metadata": {"ownerReferences": references}}));
    let read: Vec<_> = owners(&pod.metadata)
        .iter()
        .map(|target| {
            format!(
                "{}/{} in {}",
                target.kind.api_version(),
                target.kind.kind,
                target.namespace
            )
        })
        .collect();
    assert_eq!(
        read,
        [
            "apps/v1/ReplicaSet in ns",
            "apps/v1/DaemonSet in ns",
            "apps/v1/StatefulSet in ns",
            "batch/v1/Job in ns"
        ]
    );
    assert_eq!(
        group_name(&pod.metadata),
        "podgroup-uid-p",
        "none of them controls the pod"
    );
    assert!(options().is_waiting(&pod));
}

proptest! {
    /// Pods appear, crashes fall between any two writes, and in the end every pod is in a PodGroup that exists.
    #[test]
    fn every_pod_ends_in_a_pod_group(steps in proptest::collection::vec((0..6usize, 0..4usize), 1..30)) {
        let mut pods: Vec<Pod> = Vec::new();
        let mut group: Option<PodGroup> = None;
        let mut creates = 0;
        let mut carry_out = |pods: &mut Vec<Pod>, group: &mut Option<PodGroup>, limit: usize| {
            let plan = plan_of(pods, &[], group.as_ref());
            for write in plan.steps.iter().flatten().take(limit) {
                match write {
                    Write::Create { .. } => {
                        creates += 1;
                        *group = Some(created(&plan));
                    }
                    Write::Patch { target, .. } => {
                        let pod = pods.iter_mut().find(|pod| pod.metadata.name == target.name);
                        let pod = pod.expect("a pod that exists");
                        *pod = annotated(pod);
                    }
                    other => panic!("unexpected {other:?}"),
                }
            }
        };
        for (n, (new, limit)) in steps.iter().enumerate() {
            for m in 0..*new {
                pods.push(pod(&format!("p{n}-{m}"), owned_by("ReplicaSet", "rs")));
            }
            carry_out(&mut pods, &mut group, *limit);
        }
        carry_out(&mut pods, &mut group, usize::MAX);
        prop_assert_eq!(plan_of(&pods, &[], group.as_ref()), Plan::default());
        prop_assert!(pods.iter().all(|pod| !group_of(pod).is_empty()));
        prop_assert_eq!(creates, usize::from(!pods.is_empty()));
    }
}
