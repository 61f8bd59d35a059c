//! Rules for new Jobs.

use serde_json::{Value, json};

use super::world::{World, job, task, with};

const PATH: &str = "/jobs/validate";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const BOTH_TIERS: &str =
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously";
const VALID: &str = " valid events are [* PodFailed PodEvicted PodPending Unknown TaskCompleted TaskFailed JobUpdated], valid actions are [AbortJob RestartJob RestartTask RestartPod RestartPartition TerminateJob CompleteJob ResumeJob];";

fn check(cases: &[(&str, Value, String)]) {
    let world = World::new();
    for (name, job, expected) in cases {
        assert_eq!(world.refusal(PATH, job), *expected, "{name}");
    }
}

fn changed(pointer: &str, value: Value) -> Value {
    with(job(), pointer, value)
}

#[test]
fn a_good_job_is_admitted() {
    let mut full = job();
    full["spec"]["minAvailable"] = 3.into();
    full["spec"]["tasks"] = json!([task("a"), task("b"), task("c")]);
    full["spec"]["tasks"][2]["dependsOn"] = json!({"name": ["a", "b"]});
    full["spec"]["policies"] =
        json!([{"event": "PodEvicted", "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}]);
    full["spec"]["plugins"] = json!({"svc": [], "ssh": [], "env": []});
    full["spec"]["volumes"] =
        json!([{"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/b", "volumeClaim": {}}]);
    full["spec"]["networkTopology"] = json!({"mode": "hard", "highestTierAllowed": 0});
    check(&[("small", job(), String::new()), ("full", full, String::new())]);
}

#[test]
fn two_faults_end_the_check_at_once() {
    check(&[
        (
            "no task",
            changed("/spec/tasks", json!([])),
            "No task specified in job spec".into(),
        ),
        (
            "no master, and nothing is said of the unknown queue",
            with(
                changed("/spec/plugins", json!({"mpi": []})),
                "/spec/queue",
                json!("nope"),
            ),
            "The specified mpi master task was not found".into(),
        ),
    ]);
}

#[test]
fn the_master_of_mpi_is_named_by_an_argument() {
    let cases: &[(&[&str], bool)] = &[
        (&["--master=t"], true),
        (&["-master=t"], true),
        (&["--master", "t"], true),
        (&["--worker=w", "--port=22", "--master=t"], true),
        (&["--master=t", "--master=u"], false),
        (&["--master=t", "rest"], true),
        (&["rest", "--master=t"], false),
        (&["--port=many", "--master=t"], false),
        (&["--unknown=1", "--master=t"], false),
        (&["--", "--master=t"], false),
        (&["--master"], false),
        (&[], false),
    ];
    for (arguments, found) in cases {
        let job = changed("/spec/plugins", json!({"mpi": arguments}));
        let refusal = World::new().refusal(PATH, &job);
        assert_eq!(refusal.is_empty(), *found, "{arguments:?}: {refusal}");
    }
}

#[test]
fn tasks() {
    let partitions = |policy: Value| {
        let job = changed("/spec/tasks/0/partitionPolicy", policy);
        with(
            with(job, "/spec/tasks/0/replicas", json!(4)),
            "/spec/tasks/0/minAvailable",
            json!(4),
        )
    };
    let at = "in task: t, job: j";
    check(&[
        (
            "a gang larger than the task",
            changed("/spec/tasks/0/minAvailable", json!(2)),
            format!("'minAvailable' is greater than 'replicas' {at};"),
        ),
        (
            "a name twice",
            changed("/spec/tasks", json!([task("t"), task("t")])),
            "duplicated task name t;".into(),
        ),
        (
            "after a name twice nothing more is said of tasks",
            changed("/spec/tasks", json!([task("t"), task("t"), {"name": "u"}])),
            "duplicated task name t;".into(),
        ),
        (
            "a name that pods cannot have",
            changed("/spec/tasks/0/name", json!("a".repeat(60))),
            format!(
                "create pod with name j-{}-0 validate failed [name part must be no more than 63 bytes];",
                "a".repeat(60)
            ),
        ),
        (
            "the job and its topology",
            changed(
                "/spec/networkTopology",
                json!({"highestTierAllowed": 1, "highestTierName": "a"}),
            ),
            BOTH_TIERS.into(),
        ),
        (
            "no partitions",
            partitions(json!({"totalPartitions": 0, "partitionSize": 2})),
            format!("'TotalPartitions' must be greater than 0 {at}"),
        ),
        (
            "empty partitions",
            partitions(json!({"totalPartitions": 2, "partitionSize": 0})),
            format!("'PartitionSize' must be greater than 0 {at}"),
        ),
        (
            "partitions of other pods",
            partitions(json!({"totalPartitions": 2, "partitionSize": 3})),
            format!("'Replicas' are not equal to TotalPartitions*PartitionSize {at}"),
        ),
        (
            "a gang of other partitions",
            partitions(json!({"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1})),
            format!("'MinAvailable' is not equal to MinPartitions*PartitionSize {at}"),
        ),
        (
            "partitions without end",
            partitions(json!({"totalPartitions": 65536, "partitionSize": 65536})),
            format!("'Replicas' are not equal to TotalPartitions*PartitionSize {at}"),
        ),
        (
            "partitions and their topology",
            partitions(json!({"totalPartitions": 2, "partitionSize": 2,
                "networkTopology": {"highestTierAllowed": 1, "highestTierName": "a"}})),
            BOTH_TIERS.into(),
        ),
        (
            "good partitions",
            partitions(json!({"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2})),
            String::new(),
        ),
    ]);
}

#[test]
fn policies() {
    let one = |fault: &str| format!("1 error occurred:\n\t* {fault}\n\n{VALID}");
    let of_job = |policies: Value| changed("/spec/policies", policies);
    let restart = |event: &str| json!({"event": event, "action": "RestartJob"});
    check(&[
        (
            "an event and an exit code",
            of_job(json!([{"event": "PodFailed", "exitCode": 1, "action": "AbortJob"}])),
            one("must not specify event and exitCode simultaneously"),
        ),
        (
            "events and an exit code",
            of_job(json!([{"events": ["PodFailed"], "exitCode": 1, "action": "AbortJob"}])),
            one("must not specify event and exitCode simultaneously"),
        ),
        (
            "neither",
            of_job(json!([{"action": "AbortJob"}])),
            one("either event and exitCode should be specified"),
        ),
        (
            "an event that users may not name",
            of_job(json!([restart("OutOfSync")])),
            one("spec.policies: Invalid value: \"OutOfSync\": invalid policy event"),
        ),
        (
            "an event of nobody, of a task",
            changed("/spec/tasks/0/policies", json!([restart("Nope")])),
            one("spec.tasks.policies: Invalid value: \"Nope\": invalid policy event"),
        ),
        (
            "an action that users may not name",
            of_job(json!([{"event": "PodFailed", "action": "SyncJob"}])),
            one("spec.policies: Invalid value: \"SyncJob\": invalid policy action"),
        ),
        (
            "an event in two policies",
            of_job(
                json!([restart("PodFailed"), {"events": ["PodEvicted", "PodFailed"], "action": "AbortJob"}]),
            ),
            one("duplicate event PodFailed  across different policy"),
        ),
        (
            "an event twice in one policy",
            of_job(
                json!([{"event": "PodFailed", "events": ["PodFailed", "PodFailed"], "action": "AbortJob"}]),
            ),
            String::new(),
        ),
        (
            "success",
            of_job(json!([{"exitCode": 0, "action": "AbortJob"}])),
            one("0 is not a valid error code"),
        ),
        (
            "an exit code twice",
            of_job(json!([{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 3, "action": "RestartJob"}])),
            one("duplicate exitCode 3"),
        ),
        (
            "any action on an exit code",
            of_job(json!([{"exitCode": 3, "action": "Nope"}])),
            String::new(),
        ),
        (
            "the wildcard and others",
            of_job(json!([restart("*"), restart("PodFailed")])),
            one("if there's * here, no other policy should be here"),
        ),
        (
            "the first fault, and the wildcard",
            of_job(json!([restart("*"), restart("PodFailed"), restart("PodFailed"), {"exitCode": 0}])),
            format!(
                "2 errors occurred:\n\t* duplicate event PodFailed  across different policy\n\t* if there's * here, no other policy should be here\n\n{VALID}"
            ),
        ),
        (
            "the wildcard alone",
            of_job(json!([restart("*"), {"exitCode": 1, "action": "AbortJob"}])),
            String::new(),
        ),
    ]);
}

#[test]
fn durations_that_go_cannot_read_are_told_with_their_place() {
    let cases = [
        ("10m", None),
        ("1h0m0s", None),
        ("-1.5h", None),
        ("0", None),
        ("", Some("invalid duration \"\"")),
        ("soon", Some("invalid duration \"soon\"")),
        ("10", Some("missing unit in duration \"10\"")),
        ("10x", Some("unknown unit \"x\" in duration \"10x\"")),
        (
            "10 minutes",
            Some("unknown unit \" minutes\" in duration \"10 minutes\""),
        ),
        ("9999999h", Some("invalid duration \"9999999h\"")),
    ];
    let policies = |text: &str| json!([{"event": "PodFailed", "action": "RestartJob", "timeout": text}]);
    for (text, fault) in cases {
        let message = |place: &str| fault.map_or_else(String::new, |fault| format!("{place}: time: {fault}"));
        check(&[
            (
                text,
                changed("/spec/runningEstimate", json!(text)),
                message("object.spec.runningEstimate"),
            ),
            (
                text,
                changed("/spec/policies", policies(text)),
                message("object.spec.policies[0].timeout"),
            ),
            (
                text,
                changed("/spec/tasks/0/policies", policies(text)),
                message("object.spec.tasks[0].policies[0].timeout"),
            ),
        ]);
    }
}

#[test]
fn the_job_as_a_whole() {
    check(&[
        (
            "a name of the wrong form",
            changed("/metadata/name", json!("J!")),
            format!(
                "create pod with name J!-t-0 validate failed [{QUALIFIED}];create job with name J! validate failed [{QUALIFIED}]"
            ),
        ),
        (
            "a gang larger than the job",
            changed("/spec/minAvailable", json!(2)),
            "job 'minAvailable' should not be greater than total replicas in tasks;".into(),
        ),
        (
            "plugins of nobody",
            changed("/spec/plugins", json!({"nope": [], "svc": [], "more": []})),
            "unable to find job plugin: more; unable to find job plugin: nope;".into(),
        ),
        (
            "a cycle",
            changed("/spec/tasks/0/dependsOn", json!({"name": ["t"]})),
            "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);".into(),
        ),
        (
            "a task of nobody",
            changed("/spec/tasks/0/dependsOn", json!({"name": ["u"]})),
            "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);".into(),
        ),
        (
            "one dependency, said twice",
            {
                let mut job = changed("/spec/tasks/0/dependsOn", json!({"name": ["u", "u"]}));
                job["spec"]["tasks"] = json!([job["spec"]["tasks"][0], task("u")]);
                job
            },
            String::new(),
        ),
        (
            "no dependencies after all",
            changed("/spec/tasks/0/dependsOn", json!({})),
            String::new(),
        ),
    ]);
}

#[test]
fn volumes() {
    let of_job = |volumes: Value| changed("/spec/volumes", volumes);
    check(&[
        ("no path", of_job(json!([{"volumeClaimName": "a"}])), "mountPath is required;".into()),
        (
            "a path twice",
            of_job(json!([{"mountPath": "/a", "volumeClaimName": "a"}, {"mountPath": "/a", "volumeClaimName": "b"}])),
            "duplicated mountPath: /a;".into(),
        ),
        (
            "no claim",
            of_job(json!([{"mountPath": "/a"}])),
            "either VolumeClaim or VolumeClaimName must be specified;".into(),
        ),
        (
            "two claims",
            of_job(json!([{"mountPath": "/a", "volumeClaimName": "a", "volumeClaim": {}}])),
            "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName".into(),
        ),
        (
            "a claim of no name",
            of_job(json!([{"mountPath": "/a", "volumeClaimName": "A"}])),
            format!("invalid VolumeClaimName A : [{SUBDOMAIN}]"),
        ),
    ]);
}

#[test]
fn queues() {
    let mut world = World::new();
    world
        .stored(json!({"metadata": {"name": "closed"}, "status": {"state": "Closed"}}))
        .stored(json!({"metadata": {"name": "new"}}))
        .add("team", json!({}))
        .add("a", json!({"parent": "team"}))
        .add("b", json!({"parent": "team"}));
    let cases = [
        ("default", ""),
        ("a", ""),
        (
            "nope",
            "unable to find job queue: queue.scheduling.volcano.sh \"nope\" not found;",
        ),
        (
            "closed",
            "can only submit job to queue with state `Open`, queue `closed` status is `Closed`;",
        ),
        (
            "new",
            "can only submit job to queue with state `Open`, queue `new` status is ``;",
        ),
        ("root", "can not submit job to root queue;"),
        (
            "team",
            "can only submit job to leaf queue, queue `team` has 2 child queues;",
        ),
    ];
    for (queue, expected) in cases {
        assert_eq!(
            world.refusal(PATH, &changed("/spec/queue", json!(queue))),
            expected,
            "{queue}"
        );
    }
}

#[test]
fn faults_are_strung_together_in_order() {
    let mut job = changed(
        "/spec/networkTopology",
        json!({"highestTierAllowed": 1, "highestTierName": "a"}),
    );
    job["spec"]["minAvailable"] = 9.into();
    job["spec"]["queue"] = "nope".into();
    job["spec"]["tasks"][0]["minAvailable"] = 5.into();
    job["spec"]["volumes"] = json!([{}]);
    let expected = format!(
        "{BOTH_TIERS} 'minAvailable' is greater than 'replicas' in task: t, job: j; job 'minAvailable' should not be greater than total replicas in tasks; mountPath is required; unable to find job queue: queue.scheduling.volcano.sh \"nope\" not found;"
    );
    check(&[("five faults", job, expected)]);
}
