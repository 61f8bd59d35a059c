//! Rules for changes to Jobs.

use serde_json::{Value, json};

use super::world::{World, job, refusal, task, with};

const PATH: &str = "/jobs/validate";
const FIELDS: &str = "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`";
const BOTH_TIERS: &str =
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously";

fn check(old: &Value, cases: &[(&str, Value, &str)]) {
    let world = World::new();
    for (name, new, expected) in cases {
        assert_eq!(refusal(&world.update(PATH, old, new)), *expected, "{name}");
    }
}

fn changed(pointer: &str, value: Value) -> Value {
    with(job(), pointer, value)
}

#[test]
fn what_may_change() {
    let scaled = with(
        changed("/spec/tasks/0/replicas", json!(5)),
        "/spec/tasks/0/minAvailable",
        json!(2),
    );
    check(
        &job(),
        &[
            ("nothing", job(), ""),
            ("a scaled task", with(scaled, "/spec/minAvailable", json!(4)), ""),
            ("a gang of nobody", changed("/spec/minAvailable", json!(0)), ""),
            (
                "no minimum of the task",
                changed("/spec/tasks/0/minAvailable", Value::Null),
                "",
            ),
            (
                "another priority",
                changed("/spec/priorityClassName", json!("high")),
                "",
            ),
            ("labels", changed("/metadata/labels", json!({"a": "b"})), ""),
            ("the status", changed("/status", json!({"running": 1})), ""),
            ("a queue that is not looked up", job(), ""),
        ],
    );
}

#[test]
fn what_may_not_change() {
    check(
        &job(),
        &[
            ("the queue", changed("/spec/queue", json!("other")), FIELDS),
            (
                "an image",
                changed("/spec/tasks/0/template/spec/containers/0/image", json!("x")),
                FIELDS,
            ),
            ("a name", changed("/spec/tasks/0/name", json!("x")), FIELDS),
            (
                "a policy",
                changed("/spec/policies", json!([{"event": "*", "action": "AbortJob"}])),
                FIELDS,
            ),
            (
                "a field that is not known",
                changed("/spec/newer", json!(1)),
                FIELDS,
            ),
            (
                "the number of tasks",
                changed("/spec/tasks", json!([task("t"), task("u")])),
                "job updates may not add or remove tasks",
            ),
        ],
    );
}

#[test]
fn numbers_that_cannot_be() {
    let partitioned = |replicas: i32| {
        let job = changed(
            "/spec/tasks/0/partitionPolicy",
            json!({"totalPartitions": 2, "partitionSize": 2}),
        );
        with(job, "/spec/tasks/0/replicas", json!(replicas))
    };
    check(
        &job(),
        &[
            (
                "less than no pods",
                changed("/spec/tasks/0/replicas", json!(-1)),
                "'replicas' must be >= 0 in task: t",
            ),
            (
                "a negative minimum",
                changed("/spec/tasks/0/minAvailable", json!(-1)),
                "'minAvailable' must be >= 0 in task: t",
            ),
            (
                "a minimum that cannot be met",
                changed("/spec/tasks/0/minAvailable", json!(2)),
                "'minAvailable' must be <= 'replicas' in task: t",
            ),
            (
                "partitions that do not add up",
                partitioned(6),
                "'Replicas' are not equal to TotalPartitions*PartitionSize in task: t, job: j",
            ),
            (
                "a gang larger than the job",
                changed("/spec/minAvailable", json!(2)),
                "job 'minAvailable' must not be greater than total replicas",
            ),
            (
                "a negative gang",
                changed("/spec/minAvailable", json!(-1)),
                "job 'minAvailable' must be >= 0",
            ),
            (
                "two tiers",
                changed(
                    "/spec/networkTopology",
                    json!({"highestTierAllowed": 1, "highestTierName": "a"}),
                ),
                BOTH_TIERS,
            ),
        ],
    );
}

#[test]
fn partitioned_tasks_are_not_scaled() {
    let old = with(
        with(
            job(),
            "/spec/tasks/0/partitionPolicy",
            json!({"totalPartitions": 2, "partitionSize": 2}),
        ),
        "/spec/tasks/0/replicas",
        json!(4),
    );
    let both = with(
        with(old.clone(), "/spec/tasks/0/replicas", json!(6)),
        "/spec/tasks/0/partitionPolicy/totalPartitions",
        json!(3),
    );
    check(&old, &[("with all its partitions", both, FIELDS)]);
}

#[test]
fn the_name_of_a_claim_that_was_made_may_be_written_down() {
    let old = changed(
        "/spec/volumes",
        json!([{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]),
    );
    let named = with(old.clone(), "/spec/volumes/0/volumeClaimName", json!("j-pvc-1"));
    let other = with(
        old.clone(),
        "/spec/volumes/0/volumeClaim/accessModes/0",
        json!("ReadWriteMany"),
    );
    let both = with(named.clone(), "/spec/volumes/0/mountPath", json!("/b"));
    check(
        &old,
        &[
            ("the name", named, ""),
            ("the claim", other, FIELDS),
            ("the path", both, FIELDS),
        ],
    );
}

#[test]
fn another_form_of_the_same_is_no_change() {
    let mut old = job();
    old["spec"]["policies"] = json!([{"event": "*", "action": "AbortJob", "timeout": "1h"}]);
    old["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "1000m"}});
    let mut new = old.clone();
    new["spec"]["policies"][0]["timeout"] = "1h0m0s".into();
    let template = &mut new["spec"]["tasks"][0]["template"];
    template["metadata"] = json!({"creationTimestamp": null});
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 1.into();
    template["spec"]["hostNetwork"] = false.into();
    let root = with(
        old.clone(),
        "/spec/tasks/0/template/spec/securityContext",
        json!({"runAsUser": 0}),
    );
    check(
        &old,
        &[
            ("written by another client", new, ""),
            ("root is somebody", root, FIELDS),
        ],
    );
}

#[test]
fn a_duration_that_was_stored_keeps_nobody_from_other_changes() {
    let old = changed("/spec/runningEstimate", json!("10 minutes"));
    let finalized = with(old.clone(), "/metadata/finalizers", json!([]));
    let other = with(old.clone(), "/spec/runningEstimate", json!("10"));
    let mended = with(old.clone(), "/spec/runningEstimate", json!("10m"));
    check(
        &old,
        &[
            ("a finalizer goes", finalized, ""),
            (
                "another bad one",
                other,
                "object.spec.runningEstimate: time: missing unit in duration \"10\"",
            ),
            ("a good one is a change all the same", mended, FIELDS),
        ],
    );
}
