use super::*;
use crate::model::status::Status;
use crate::plugins::fixture::{Fixture, conf};
use serde_json::{Value, json};

/// Reason and message of an invalid job.
type Refusal<'a> = Option<(&'a str, &'a str)>;

/// Role and phase of each pod.
type Pods<'a> = &'a [(&'a str, &'a str)];

fn plugin() -> Box<dyn Plugin> {
    build(&conf("gang", json!({})))
}

/// A job `j` with this PodGroup spec and pods `(role, phase)`.
fn job(spec: Value, pods: Pods<'_>) -> (Fixture, JobId, Vec<TaskId>) {
    let mut f = Fixture::new();
    f.node("n", json!({"cpu": "64", "memory": "64Gi", "pods": "110"}));
    f.group("j", json!({"spec": spec}));
    let tasks = pods
        .iter()
        .enumerate()
        .map(|(i, (role, phase))| f.role(&format!("j-{role}-{i}"), "j", role, phase))
        .collect();
    let id = f.job_id("j");
    (f, id, tasks)
}

#[test]
fn a_job_is_valid_when_its_pods_could_make_a_gang() {
    let (r, s, p) = (("a", "Running"), ("a", "Succeeded"), ("a", "Pending"));
    let b = ("b", "Pending");
    let roles = Some((
        reasons::NOT_ENOUGH_PODS_OF_TASK,
        "Not enough valid pods of each task for gang-scheduling",
    ));
    let too_few = |text| Some((reasons::NOT_ENOUGH_TASKS, text));
    let cases: [(&str, Value, Pods<'_>, Refusal<'_>); 7] = [
        ("enough tasks", json!({"minMember": 3}), &[r, s, p], None),
        (
            "failed tasks never count",
            json!({"minMember": 3}),
            &[r, p, ("a", "Failed")],
            too_few("Not enough valid tasks for gang-scheduling, valid: 2, min: 3"),
        ),
        (
            "no tasks at all",
            json!({"minMember": 1}),
            &[],
            too_few("Not enough valid tasks for gang-scheduling, valid: 0, min: 1"),
        ),
        (
            "role short",
            json!({"minMember": 3, "minTaskMember": {"a": 1, "b": 2}}),
            &[p, p, b],
            roles,
        ),
        (
            "role absent",
            json!({"minMember": 2, "minTaskMember": {"c": 1}}),
            &[p, p, b],
            roles,
        ),
        (
            "roles met",
            json!({"minMember": 3, "minTaskMember": {"a": 1, "b": 1}}),
            &[p, p, b],
            None,
        ),
        (
            "roles beyond the gang size are skipped",
            json!({"minMember": 3, "minTaskMember": {"a": 2, "b": 2}}),
            &[p, p, b],
            None,
        ),
    ];
    for (case, spec, pods, expected) in cases {
        let (f, job, _) = job(spec, pods);
        let answer = plugin().job_valid(&f.m, job);
        let answer = answer.as_ref().map_err(|e| (e.reason, e.message.as_str())).err();
        assert_eq!(answer, expected, "{case}");
    }
}

#[test]
fn readiness_counts_members_and_roles() {
    let (r, p, best_effort) = ("Running", "Pending", true);
    let gang3 = json!({"minMember": 3});
    let roles = json!({"minMember": 3, "minTaskMember": {"a": 1, "b": 2}});
    let unbound = json!({"minMember": 3, "minTaskMember": {"a": 2, "b": 2}});
    let cases: [(&str, &Value, Pods<'_>, bool, bool); 7] = [
        (
            "all placed",
            &gang3,
            &[("a", r), ("a", r), ("a", r)],
            !best_effort,
            true,
        ),
        (
            "one missing",
            &gang3,
            &[("a", r), ("a", r), ("a", p)],
            !best_effort,
            false,
        ),
        (
            "succeeded counts",
            &gang3,
            &[("a", r), ("a", "Succeeded"), ("a", r)],
            !best_effort,
            true,
        ),
        (
            "pending best-effort counts",
            &gang3,
            &[("a", r), ("a", r)],
            best_effort,
            true,
        ),
        (
            "a role is short though the gang is not",
            &roles,
            &[("a", r), ("a", r), ("b", r)],
            !best_effort,
            false,
        ),
        (
            "every role is met",
            &roles,
            &[("a", r), ("b", r), ("b", r)],
            !best_effort,
            true,
        ),
        (
            "role minimums above the gang size are ignored",
            &unbound,
            &[("a", r), ("a", r), ("a", r)],
            !best_effort,
            true,
        ),
    ];
    for (case, spec, pods, add_best_effort, ready) in cases {
        let (mut f, job, _) = job(spec.clone(), pods);
        if add_best_effort {
            f.pod("j-be-9", "j", json!({}), json!({}));
        }
        assert_eq!(plugin().job_ready(&f.m, job), ready, "{case}");
        assert_eq!(
            plugin().job_pipelined(&f.m, job),
            vote(ready),
            "{case}: nothing waits, so the same"
        );
    }
}

#[test]
fn pipelined_members_count_for_waiting_only() {
    let (mut f, job, tasks) = job(json!({"minMember": 2}), &[("a", "Running"), ("a", "Pending")]);
    let p = plugin();
    assert!(p.job_starving(&f.m, job));
    assert_eq!(p.job_pipelined(&f.m, job), Vote::Reject);
    f.set_status(tasks[1], Status::Pipelined, Some("n"));
    assert!(!p.job_starving(&f.m, job));
    assert_eq!(p.job_pipelined(&f.m, job), Vote::Permit);
    assert!(!p.job_ready(&f.m, job));
}

#[test]
fn those_that_are_not_ready_come_first() {
    let mut f = Fixture::new();
    f.node("n", json!({"cpu": "64", "memory": "64Gi", "pods": "110"}));
    for (name, phase) in [("whole", "Running"), ("short", "Pending")] {
        f.group(name, json!({"spec": {"minMember": 1}}));
        f.role(&format!("{name}-a-0"), name, "a", phase);
    }
    let (p, whole, short) = (plugin(), f.job_id("whole"), f.job_id("short"));
    assert_eq!(p.job_order(&f.m, short, whole), Ordering::Less);
    assert_eq!(p.job_order(&f.m, whole, short), Ordering::Greater);
    assert_eq!(p.job_order(&f.m, whole, whole), Ordering::Equal);
}

#[test]
fn victims_leave_every_gang_its_minimum() {
    let (r, ps) = (
        "Running",
        [
            ("a", "Running"),
            ("a", "Running"),
            ("b", "Running"),
            ("b", "Running"),
        ],
    );
    let cases: [(&str, Value, Pods<'_>, &[usize]); 6] = [
        (
            "those above the minimum may go, first candidates first",
            json!({"minMember": 2}),
            &ps,
            &[0, 1],
        ),
        ("a full gang keeps all", json!({"minMember": 4}), &ps, &[]),
        (
            "succeeded members count",
            json!({"minMember": 2}),
            &[("a", r), ("a", "Succeeded"), ("a", r)],
            &[0],
        ),
        (
            "a role keeps its minimum",
            json!({"minMember": 2, "minTaskMember": {"a": 2}}),
            &ps,
            &[2, 3],
        ),
        (
            "role minimums that do not bind protect nothing",
            json!({"minMember": 2, "minTaskMember": {"a": 2, "b": 1}}),
            &ps,
            &[0, 1],
        ),
        (
            "a role above its minimum gives what it can",
            json!({"minMember": 2, "minTaskMember": {"a": 1, "b": 1}}),
            &ps,
            &[0, 2],
        ),
    ];
    for (case, spec, pods, expected) in cases {
        let (f, _, tasks) = job(spec, pods);
        let running: Vec<_> = tasks
            .iter()
            .copied()
            .filter(|&t| f.m.task(t).status == Status::Running)
            .collect();
        let expected: Vec<_> = expected.iter().map(|&at| tasks[at]).collect();
        let p = plugin();
        assert_eq!(
            p.preemptable(&f.m, tasks[0], &running),
            Some(expected.clone()),
            "{case}"
        );
        assert_eq!(p.reclaimable(&f.m, tasks[0], &running), Some(expected), "{case}");
        let all = p.unified_evictable(&f.m, EvictionKind::Preempt, JobId(0), &running);
        assert_eq!(all, Some(running), "{case}: whole gangs are split elsewhere");
    }
}

#[test]
fn victims_without_a_pod_group_are_not_eligible() {
    let (mut f, _, tasks) = job(json!({"minMember": 1}), &[("a", "Running"), ("a", "Running")]);
    let orphan = f.running("orphan", "nobody", "n", json!({"cpu": "1"}));
    assert_eq!(
        plugin().preemptable(&f.m, tasks[0], &[orphan, tasks[1]]),
        Some(vec![tasks[1]])
    );
}

/// Job `j` with sub-groups of two by label `part`; `parts` says which part each pod is in and its phase.
fn grouped(min_sub_groups: i32, parts: Pods<'_>) -> (Fixture, JobId, Vec<TaskId>) {
    let mut f = Fixture::new();
    f.node("n", json!({"cpu": "64", "memory": "64Gi", "pods": "110"}));
    let policy =
        json!({"name": "g", "subGroupSize": 2, "minSubGroups": min_sub_groups, "matchLabelKeys": ["part"]});
    f.group("j", json!({"spec": {"minMember": 2, "subGroupPolicy": [policy]}}));
    let mut tasks = Vec::new();
    for (at, (part, phase)) in parts.iter().enumerate() {
        let node = if *phase == "Pending" { "" } else { "n" };
        let overlay = json!({"metadata": {"labels": {"part": part}}, "spec": {"nodeName": node},
            "status": {"phase": phase}});
        tasks.push(f.pod(&format!("j-g-{at}"), "j", json!({"cpu": "1"}), overlay));
    }
    let id = f.job_id("j");
    (f, id, tasks)
}

#[test]
fn sub_groups_are_whole_or_not() {
    let (r, w) = ("Running", "Pending");
    let (mut f, job, tasks) = grouped(2, &[("0", r), ("0", r), ("1", r), ("1", w)]);
    let p = plugin();
    assert_eq!(p.job_valid(&f.m, job), Ok(()));
    assert!(!p.job_ready(&f.m, job), "one of two sub-groups is whole");
    assert!(p.sub_job_ready(&f.m, job, 0));
    assert!(!p.sub_job_ready(&f.m, job, 1));
    assert!(!p.sub_job_ready(&f.m, job, 7), "no such sub-job");
    assert_eq!(p.sub_job_order(&f.m, job, 1, 0), Ordering::Less);
    assert_eq!(p.sub_job_pipelined(&f.m, job, 1), Vote::Reject);
    f.set_status(tasks[3], Status::Pipelined, Some("n"));
    assert_eq!(p.sub_job_pipelined(&f.m, job, 1), Vote::Permit);
    assert_eq!(p.job_pipelined(&f.m, job), Vote::Permit);

    let (f, job, _) = grouped(3, &[("0", r), ("0", r), ("1", r), ("1", w)]);
    let too_few = plugin().job_valid(&f.m, job).expect_err("three are wanted");
    assert_eq!(too_few.reason, "NotEnoughPodsOfTask");
    assert_eq!(
        too_few.message,
        "Not enough valid subGroups of each task for gang-scheduling"
    );
}

#[test]
fn victims_leave_enough_whole_sub_groups() {
    let r = "Running";
    let (f, _, tasks) = grouped(1, &[("0", r), ("0", r), ("1", r), ("1", r)]);
    let answer = plugin().preemptable(&f.m, tasks[0], &tasks);
    assert_eq!(
        answer,
        Some(vec![tasks[0], tasks[1]]),
        "the first sub-group goes, the last whole one stays"
    );
    let (f, _, tasks) = grouped(2, &[("0", r), ("0", r), ("1", r), ("1", r)]);
    assert_eq!(plugin().preemptable(&f.m, tasks[0], &tasks), Some(vec![]));
}
