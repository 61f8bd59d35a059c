//! The situations, one test each.

use super::*;

/// Checks which reason comes first and which change, and returns the text.
#[track_caller]
fn first(explanation: &Explanation, reason: fn(&Reason) -> bool, what: fn(&What) -> bool) -> String {
    assert_eq!(explanation.state, State::Waiting, "{explanation}");
    assert!(reason(&explanation.reasons[0]), "{explanation}");
    let suggestion = explanation.suggestions.first();
    assert!(
        suggestion.is_some_and(|suggestion| what(&suggestion.what)),
        "{explanation}"
    );
    explanation.to_string()
}

#[test]
fn a_closed_queue() {
    let objects = [
        node("n1", 8, ""),
        queue("q", "weight: 1", "Closed"),
        job("train", 2, "queue: q,", &[task("w", 2, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    insta::assert_snapshot!(first(
        &explanation,
        |reason| matches!(reason, Reason::QueueNotOpen { .. }),
        |what| matches!(what, What::OpenQueue { .. }),
    ));
}

#[test]
fn a_queue_that_is_closed_with_its_parent_opens_with_it() {
    let child = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q, \
                 annotations: {volcano.sh/closed-by-parent: 'true'}}, spec: {parent: team}, status: {state: Closing}}";
    let objects = [
        node("n1", 8, ""),
        queue("team", "weight: 1", "Closed"),
        child.to_owned(),
        job("train", 2, "queue: q,", &[task("w", 2, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    let opened = &explanation.suggestions[0].what;
    assert_eq!(
        *opened,
        What::OpenQueue {
            queue: "team".to_owned()
        },
        "{explanation}"
    );
}

#[test]
fn a_queue_over_its_capability() {
    let objects = [
        node("n1", 8, ""),
        queue("q", "weight: 1, capability: {cpu: 3}", "Open"),
        group("busy", "q", 1, "Running", ""),
        pod("busy", 0, "2", "n1", ""),
        job("train", 4, "queue: q,", &[task("w", 4, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    let capability = |reason: &Reason| {
        matches!(
            reason,
            Reason::QueueFull {
                limit: QueueLimit::Capability,
                ..
            }
        )
    };
    insta::assert_snapshot!(first(&explanation, capability, |what| matches!(
        what,
        What::RaiseCapability { .. }
    )));
}

#[test]
fn a_queue_over_what_it_deserves() {
    let objects = [
        node("n1", 8, ""),
        queue("mine", "weight: 1", "Open"),
        queue("theirs", "weight: 1", "Open"),
        group("busy", "mine", 1, "Running", ""),
        pod("busy", 0, "4", "n1", ""),
        group("other", "theirs", 1, "Running", ""),
        pod("other", 0, "3", "n1", ""),
        group("large", "theirs", 2, "Inqueue", ""),
        pod("large", 0, "2", "", ""),
        pod("large", 1, "2", "", ""),
        job("train", 1, "queue: mine,", &[task("w", 1, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    let deserved = |reason: &Reason| {
        matches!(
            reason,
            Reason::QueueFull {
                limit: QueueLimit::Deserved,
                ..
            }
        )
    };
    insta::assert_snapshot!(first(&explanation, deserved, |what| matches!(
        what,
        What::RaiseWeight { .. }
    )));
}

#[test]
fn a_queue_that_may_take_nothing_back() {
    let conf = conf_of(
        "actions: enqueue, allocate, reclaim\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n\
         - plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]",
    );
    let objects = [
        node("n1", 8, ""),
        queue("mine", "weight: 1, deserved: {cpu: 2}", "Open"),
        queue(
            "theirs",
            "weight: 1, deserved: {cpu: 4}, reclaimable: true",
            "Open",
        ),
        group("busy", "mine", 1, "Running", ""),
        pod("busy", 0, "2", "n1", ""),
        group("other", "theirs", 1, "Running", ""),
        pod("other", 0, "2", "n1", ""),
        pod("other", 1, "2", "n1", ""),
        pod("other", 2, "2", "n1", ""),
        job("train", 1, "queue: mine,", &[task("w", 1, "2", "", "")]),
    ];
    let explanation = checked(&objects, &conf, "train");
    let deserved = |reason: &Reason| {
        matches!(
            reason,
            Reason::QueueFull {
                limit: QueueLimit::Deserved,
                ..
            }
        )
    };
    insta::assert_snapshot!(first(&explanation, deserved, |what| matches!(
        what,
        What::RaiseDeserved { .. }
    )));
    assert_eq!(explanation.suggestions[0].evicts.len(), 1, "{explanation}");
}

#[test]
fn a_gang_that_is_too_large() {
    let objects = [
        node("n1", 4, ""),
        node("n2", 4, ""),
        job("train", 10, "queue: default,", &[task("w", 10, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    let text = first(
        &explanation,
        |reason| {
            matches!(
                reason,
                Reason::GangTooLarge {
                    minimum: 10,
                    fits: 8,
                    ..
                }
            )
        },
        |what| matches!(what, What::LowerMinimum { from: 10, to: 8 }),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn no_node_with_the_selector() {
    let spec = "nodeSelector: {disk: ssd, kubernetes.io/hostname: n1},";
    let objects = [
        node("n1", 4, ""),
        node("n2", 4, ""),
        job("train", 1, "queue: default,", &[task("w", 1, "1", "", spec)]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    let text = first(
        &explanation,
        |reason| matches!(reason, Reason::NoNode { .. }),
        |what| matches!(what, What::DropConstraint { constraint, .. } if constraint == "disk=ssd"),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn taints() {
    let taint = "taints: [{key: gpu, value: 'yes', effect: NoSchedule}]";
    let objects = [
        node("n1", 4, taint),
        node("n2", 4, taint),
        node(
            "n3",
            4,
            "taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]",
        ),
        job("train", 2, "queue: default,", &[task("w", 2, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    insta::assert_snapshot!(first(
        &explanation,
        |reason| matches!(reason, Reason::NoNode { .. }),
        |what| matches!(what, What::Tolerate { .. }),
    ));
}

#[test]
fn a_cordoned_node() {
    let cordoned =
        "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]";
    let objects = [
        node("n1", 4, cordoned),
        job("train", 2, "queue: default,", &[task("w", 2, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    first(
        &explanation,
        |reason| matches!(reason, Reason::NoNode { .. }),
        |what| matches!(what, What::Uncordon { .. }),
    );
}

#[test]
fn fragmentation() {
    let objects = [
        node("n1", 4, ""),
        node("n2", 4, ""),
        group("busy", "default", 1, "Running", ""),
        pod("busy", 0, "2", "n1", ""),
        pod("busy", 1, "2", "n2", ""),
        job("train", 1, "queue: default,", &[task("w", 1, "3", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    insta::assert_snapshot!(first(
        &explanation,
        |reason| matches!(reason, Reason::Fragmented { .. }),
        |what| matches!(what, What::SmallerRequest { to, .. } if to.to_string() == "2"),
    ));
}

#[test]
fn waiting_for_another_role() {
    let objects = [
        node("n1", 4, ""),
        job(
            "train",
            3,
            "queue: default,",
            &[
                task("master", 1, "1", "minAvailable: 1,", ""),
                task("worker", 2, "1", "dependsOn: {name: [master]},", ""),
            ],
        ),
    ];
    let explanation = checked(&objects, &conf(), "train");
    insta::assert_snapshot!(first(
        &explanation,
        |reason| matches!(reason, Reason::DependsOn { .. }),
        |what| matches!(what, What::LowerMinimum { from: 3, to: 1 }),
    ));
}

#[test]
fn a_quota_of_the_namespace() {
    let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: ns}, \
                 spec: {hard: {pods: 3, requests.cpu: 10}}, \
                 status: {hard: {pods: 3, requests.cpu: 10}, used: {pods: 1, requests.cpu: 1}}}";
    let objects = [
        node("n1", 8, ""),
        quota.to_owned(),
        job("train", 4, "queue: default,", &[task("w", 4, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    insta::assert_snapshot!(first(
        &explanation,
        |reason| matches!(reason, Reason::Quota { .. }),
        |what| matches!(what, What::RaiseQuota { .. }),
    ));
}

#[test]
fn a_job_of_higher_priority() {
    let objects = [
        node("n1", 4, ""),
        class("high", 100),
        class("urgent", 1000),
        group("first", "default", 1, "Inqueue", "priorityClassName: high"),
        pod("first", 0, "3", "", "priorityClassName: high,"),
        group("train-u-train", "default", 2, "Inqueue", ""),
        own_pod("train", "w", 0, "1"),
        own_pod("train", "w", 1, "1"),
        job("train", 2, "queue: default,", &[task("w", 2, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    insta::assert_snapshot!(first(
        &explanation,
        |reason| matches!(reason, Reason::Behind { .. }),
        |what| matches!(what, What::RaisePriority { to: 1000, .. }),
    ));
}

#[test]
fn a_full_cluster_names_who_holds_it_and_priority_makes_room() {
    let conf = conf_of(
        "actions: enqueue, allocate, preempt\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n\
         - plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]",
    );
    let objects = [
        node("n1", 4, ""),
        class("high", 100),
        group("busy", "default", 1, "Running", ""),
        pod("busy", 0, "2", "n1", ""),
        pod("busy", 1, "2", "n1", ""),
        job("train", 1, "queue: default,", &[task("w", 1, "2", "", "")]),
    ];
    let explanation = checked(&objects, &conf, "train");
    first(
        &explanation,
        |reason| matches!(reason, Reason::Short { .. }),
        |what| matches!(what, What::RaisePriority { .. }),
    );
    assert_eq!(explanation.holders[0].job, "ns/busy", "{explanation}");
    assert_eq!(explanation.suggestions[0].evicts.len(), 1, "{explanation}");
}

#[test]
fn scheduling_gates_of_a_bare_pod_group() {
    let gates = "schedulingGates: [{name: wait}],";
    let objects = [
        node("n1", 4, ""),
        group("g", "default", 2, "Inqueue", ""),
        pod("g", 0, "1", "", gates),
        pod("g", 1, "1", "", ""),
    ];
    let explanation = checked(&objects, &conf(), "g");
    assert_eq!(explanation.kind, "PodGroup");
    first(
        &explanation,
        |reason| matches!(reason, Reason::Gated { pods: 1, .. }),
        |what| matches!(what, What::RemoveGates { pods: 1 }),
    );
}

#[test]
fn a_bare_pod_group_that_is_too_large() {
    let objects = [
        node("n1", 2, ""),
        group("g", "default", 3, "Pending", "minResources: {cpu: 3}"),
        pod("g", 0, "1", "", ""),
        pod("g", 1, "1", "", ""),
        pod("g", 2, "1", "", ""),
    ];
    let explanation = checked(&objects, &conf(), "g");
    first(
        &explanation,
        |reason| matches!(reason, Reason::GangTooLarge { .. }),
        |what| matches!(what, What::LowerMinimum { from: 3, to: 2 }),
    );
}

#[test]
fn a_missing_queue_and_a_missing_claim_are_named() {
    let volumes = "volumes: [{mountPath: /d, volumeClaimName: data}],";
    let objects = [
        node("n1", 4, ""),
        job("a", 1, "queue: nope,", &[task("w", 1, "1", "", "")]),
        job(
            "b",
            1,
            &format!("queue: default, {volumes}"),
            &[task("w", 1, "1", "", "")],
        ),
    ];
    let explanation = checked(&objects, &conf(), "a");
    assert!(
        matches!(&explanation.reasons[0], Reason::QueueMissing { queue } if queue == "nope"),
        "{explanation}"
    );
    let explanation = checked(&objects, &conf(), "b");
    assert!(
        matches!(&explanation.reasons[0], Reason::PodsNotMade { why, .. } if why.starts_with("pvc data is not found")),
        "{explanation}"
    );
}

#[test]
fn a_job_that_starts_runs_or_has_ended_says_so() {
    let running = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: done, namespace: ns}, \
                   status: {state: {phase: Completed}}}";
    let objects = [
        node("n1", 4, ""),
        job("new", 2, "queue: default,", &[task("w", 2, "1", "", "")]),
        group("busy", "default", 1, "Running", ""),
        pod("busy", 0, "2", "n1", ""),
        running.to_owned(),
    ];
    let explanation = checked(&objects, &conf(), "new");
    insta::assert_snapshot!(explanation);
    assert_eq!(checked(&objects, &conf(), "busy").state, State::Running);
    let ended = checked(&objects, &conf(), "done");
    assert_eq!(ended.state, State::Finished);
    assert!(
        ended.to_string().starts_with("Job ns/done has ended: Completed"),
        "{ended}"
    );
    let unknown = explain(&cluster(&objects), &conf(), &JobKey::new("ns", "nope")).unwrap_err();
    assert_eq!(unknown.message, "no Job and no PodGroup ns/nope in the cluster");
}

#[test]
fn the_rest_of_a_running_gang_is_explained() {
    let objects = [
        node("n1", 4, ""),
        group("busy", "default", 1, "Running", ""),
        pod("busy", 0, "3", "n1", ""),
        pod("busy", 1, "3", "", ""),
    ];
    let explanation = checked(&objects, &conf(), "busy");
    assert_eq!(explanation.state, State::Running);
    assert!(
        matches!(explanation.reasons[0], Reason::Short { .. }),
        "{explanation}"
    );
    assert_eq!(explanation.suggestions, []);
}

#[test]
fn a_new_job_is_planned_on_the_cluster_as_it_is() {
    let objects = [
        node("n1", 4, ""),
        group("busy", "default", 1, "Running", ""),
        pod("busy", 0, "2", "n1", ""),
    ];
    let new = |cpu: &str| -> Job {
        let text = job("new", 1, "", &[task("w", 1, cpu, "", "")]);
        let source = Source::from_text("job", text);
        serde_json::from_str(&source.documents().unwrap()[0].json).unwrap()
    };
    let cluster = cluster(&objects);
    let explanation = plan_job(&cluster, &conf(), &new("2")).unwrap();
    let State::Starting { binds, evicts } = &explanation.state else {
        panic!("{explanation}");
    };
    assert_eq!((binds["new-w-0"].as_str(), evicts.len()), ("n1", 0));
    let explanation = plan_job(&cluster, &conf(), &new("3")).unwrap();
    let is_full = matches!(
        explanation.reasons[0],
        Reason::Short { .. } | Reason::Overcommitted { .. }
    );
    assert!(is_full, "{explanation}");
    // There is no Job to patch yet, and none that its fields would be bound to.
    assert!(!explanation.suggestions.is_empty(), "{explanation}");
    for suggestion in &explanation.suggestions {
        assert_eq!(suggestion.command, None, "{explanation}");
        assert_eq!(suggestion.changes[0].how, How::Manifest, "{explanation}");
    }
    let text = explanation.to_string();
    assert!(text.contains("     (in the manifest)\n"), "{text}");
    assert!(
        !text.contains("kubectl") && !text.contains("while the Job exists"),
        "{text}"
    );
    let mut refused = new("1");
    refused.spec.tasks.clear();
    let fault = plan_job(&cluster, &conf(), &refused).unwrap_err();
    assert_eq!(
        fault.message,
        "Job ns/new would be refused: No task specified in job spec"
    );
}

#[test]
fn an_explanation_is_data_for_programs() {
    let objects = [
        node("n1", 8, ""),
        queue("q", "weight: 1", "Closed"),
        job("train", 2, "queue: q,", &[task("w", 2, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    insta::assert_snapshot!(serde_json::to_string_pretty(&explanation).unwrap());
}

/// A PodGroup as a Job's controller makes it.
fn owned(group: &str, job: &str) -> String {
    group.replace(
        "metadata: {",
        &format!(
            "metadata: {{ownerReferences: [{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: {job}, \
             uid: u-{job}, controller: true}}], "
        ),
    )
}

#[test]
fn a_plan_names_the_jobs_whose_pods_would_have_to_go() {
    let conf = conf_of(
        "actions: enqueue, allocate, preempt\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n\
         - plugins: [{name: predicates}, {name: nodeorder}]",
    );
    let objects = [
        node("n1", 4, ""),
        node("n2", 4, ""),
        class("high", 100),
        owned(&group("busy-u-busy", "default", 1, "Running", ""), "busy"),
        pod("busy-u-busy", 0, "4", "n1", ""),
        pod("busy-u-busy", 1, "4", "n2", ""),
    ];
    let spec = "nodeSelector: {kubernetes.io/hostname: n1},";
    let text = job(
        "urgent",
        1,
        "priorityClassName: high,",
        &[task("w", 1, "2", "", spec)],
    );
    let source = Source::from_text("job", text);
    let urgent: Job = serde_json::from_str(&source.documents().unwrap()[0].json).unwrap();
    let explanation = plan_job(&cluster(&objects), &conf, &urgent).unwrap();
    insta::assert_snapshot!(explanation, @r"
    Job ns/urgent starts by itself in the next cycles: 1 pod on n1
      evicts ns/busy-u-busy-0 of ns/busy (preempt)
      queue default, priority 100; gang 0/1 ready, 0 of 1 pod made
    ");
    let State::Starting { evicts, .. } = &explanation.state else {
        panic!("{explanation}");
    };
    assert_eq!(evicts[0].pod_group.as_deref(), Some("ns/busy-u-busy"));
}

#[test]
fn jobs_are_named_as_their_users_named_them() {
    let objects = [
        node("n1", 4, ""),
        owned(&group("busy-u-busy", "default", 1, "Running", ""), "busy"),
        pod("busy-u-busy", 0, "3", "n1", ""),
        job("train", 1, "queue: default,", &[task("w", 1, "2", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    let holder = &explanation.holders[0];
    assert_eq!(holder.job, "ns/busy", "{explanation}");
    assert_eq!(holder.pod_group.as_deref(), Some("ns/busy-u-busy"));
    assert!(
        explanation.to_string().contains("  3 cpu ns/busy (1 pod"),
        "{explanation}"
    );
}

/// As a live scheduler leaves them: the first one is admitted, and finds no node for what it has been promised.
#[test]
fn a_job_that_was_admitted_first_keeps_the_room() {
    let conf = conf_of(
        "actions: enqueue, allocate\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n\
         - plugins: [{name: overcommit}, {name: predicates}, {name: proportion}, {name: nodeorder}]",
    );
    let objects = [
        node("n1", 4, ""),
        node("n2", 4, ""),
        class("high", 100),
        group("busy", "default", 2, "Running", ""),
        pod("busy", 0, "2", "n1", ""),
        pod("busy", 1, "2", "n2", ""),
        owned(
            &group(
                "first-u-first",
                "default",
                1,
                "Inqueue",
                "priorityClassName: high, minResources: {cpu: 3}",
            ),
            "first",
        ),
        pod("first-u-first", 0, "3", "", "priorityClassName: high,"),
        group("train-u-train", "default", 3, "Pending", "minResources: {cpu: 3}"),
        job("train", 3, "queue: default,", &[task("w", 3, "1", "", "")]),
    ];
    let explanation = checked(&objects, &conf, "train");
    first(
        &explanation,
        |reason| matches!(reason, Reason::Behind { ahead, .. } if ahead[0].job == "ns/first"),
        |what| matches!(what, What::LowerMinimum { from: 3, to: 2 }),
    );
}

#[test]
fn an_aborted_job_starts_when_it_is_resumed() {
    let aborted = job("train", 2, "queue: default,", &[task("w", 2, "1", "", "")]);
    let aborted = aborted.replace("phase: Pending", "phase: Aborted");
    let explanation = checked(&[node("n1", 4, ""), aborted.clone()], &conf(), "train");
    let text = first(
        &explanation,
        |reason| matches!(reason, Reason::Suspended { phase } if phase == "Aborted"),
        |what| *what == What::Resume,
    );
    insta::assert_snapshot!(text, @r"
    Job ns/train waits
      queue default, priority 0; gang 0/2 ready, 0 of 2 pods made

    Why:
      1. the job is aborted

    What would start it (each was tried on this state of the cluster):
      1. resume it
         vcctl job resume -n ns -N train
    ");
    // Where there is no room, that alone does not help.
    let explanation = checked(&[node("n1", 1, ""), aborted], &conf(), "train");
    assert_eq!(explanation.suggestions, [], "{explanation}");
}

#[test]
fn nodes_are_named_by_what_rules_them_out() {
    let cordoned =
        "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]";
    let mut objects: Vec<String> = (1..=5).map(|at| node(&format!("small-{at}"), 1, "")).collect();
    objects.push(node("away", 8, "taints: [{key: a, effect: NoSchedule}]"));
    objects.push(node("closed", 8, cordoned));
    objects.push(job("train", 1, "queue: default,", &[task("w", 1, "2", "", "")]));
    let explanation = checked(&objects, &conf(), "train");
    let Reason::NoNode { ruled_out, .. } = &explanation.reasons[0] else {
        panic!("{explanation}");
    };
    let found: Vec<(u32, Vec<&str>)> = ruled_out
        .iter()
        .map(|out| (out.nodes, out.names.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        found,
        [
            (5, vec!["small-1", "small-2", "small-3", "small-4", "small-5"]),
            (1, vec!["away"]),
            (1, vec!["closed"]),
        ],
        "{explanation}"
    );
    let text = explanation.to_string();
    assert!(
        text.contains("5 Insufficient cpu (small-1, small-2, small-3 and 2 more), 1 "),
        "{text}"
    );
}

#[test]
fn nodes_that_the_gang_itself_has_filled_are_named_too() {
    let objects = [
        node("n1", 3, ""),
        node("n2", 3, ""),
        node("n3", 8, "taints: [{key: a, effect: NoSchedule}]"),
        job("train", 3, "queue: default,", &[task("w", 3, "2", "", "")]),
    ];
    let explanation = checked(&objects, &conf(), "train");
    let text = explanation.to_string();
    assert!(
        text.contains("2 Insufficient cpu (n1, n2), 1 node(s) had untolerated taint(s) (n3)"),
        "{text}"
    );
}
