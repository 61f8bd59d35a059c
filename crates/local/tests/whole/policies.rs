//! Every event with every action, as a policy of the Job and of the task.

use crate::count;
use crate::field::{Case, Field, Outcome, all, case, holds, job, pool, same, task, template_in, with};
use serde_json::{Value, json};

/// Retries of a Job, if it does not say.
const MAX_RETRY: i64 = 3;
/// Names of the pods of a Job, in order: one task `a` of four pods in two partitions, one task `b` of one.
const PODS: [&str; 5] = ["a-0", "a-1", "a-2", "a-3", "b-0"];

/// What makes something happen to pod `a-0`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trigger {
    /// It fails every time, some seconds after it started.
    Fails,
    /// It fails every time with exit code 3.
    FailsWith3,
    /// Somebody deletes it, once.
    Deleted,
    /// It cannot be placed, for half a minute.
    Waits,
    /// All pods of task `a` succeed.
    TaskDone,
    /// Its containers fail and are restarted.
    Restarts,
}

const EVENTS: [(&str, &str, Trigger); count::EVENTS] = [
    ("event", "PodFailed", Trigger::Fails),
    ("event", "*", Trigger::Fails),
    ("exitCode", "3", Trigger::FailsWith3),
    ("event", "PodEvicted", Trigger::Deleted),
    ("event", "*", Trigger::Deleted),
    ("event", "PodPending", Trigger::Waits),
    ("event", "TaskCompleted", Trigger::TaskDone),
    ("event", "TaskFailed", Trigger::Restarts),
];

const ACTIONS: [&str; 7] = [
    "AbortJob",
    "TerminateJob",
    "CompleteJob",
    "RestartJob",
    "RestartTask",
    "RestartPartition",
    "RestartPod",
];

fn policy(key: &str, value: &str, action: &str) -> Value {
    let mut policy = json!({"action": action});
    match key {
        "exitCode" => policy["exitCode"] = value.parse::<i32>().unwrap().into(),
        _ => policy["event"] = value.into(),
    }
    if value == "PodPending" {
        policy["timeout"] = "30s".into();
    }
    policy
}

fn object(name: &str, trigger: Trigger, policy: &Value, of_task: bool) -> Value {
    let script = match trigger {
        Trigger::Fails => "sleep 5; exit 1",
        Trigger::FailsWith3 => "sleep 5; exit 3",
        Trigger::TaskDone => "sleep 5",
        Trigger::Restarts => "sleep 5; exit 1",
        Trigger::Deleted | Trigger::Waits => "sleep 100000",
    };
    let pool = match trigger {
        Trigger::Waits => "nowhere",
        _ => "all",
    };
    let mut a = json!({
        "name": "a",
        "replicas": 4,
        "minAvailable": 4,
        "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2},
        "template": template_in(pool, script),
    });
    if trigger == Trigger::Restarts {
        a["maxRetry"] = 2.into();
        a["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    }
    let mut b = task("b", 1, "sleep 100000");
    b["template"]["spec"]["nodeSelector"] = json!({"pool": "all"});
    if of_task {
        a["policies"] = json!([policy]);
    }
    let min_available = if trigger == Trigger::Waits { 1 } else { 5 };
    if trigger == Trigger::Waits {
        a["minAvailable"] = 0.into();
    }
    let mut object = job(name, min_available, &[a, b]);
    if !of_task {
        object["spec"]["policies"] = json!([policy]);
    }
    object
}

/// Which pods an action replaces, of those that `a-0` stands for.
fn replaced(action: &str) -> &'static [&'static str] {
    match action {
        "RestartJob" => &PODS,
        "RestartTask" => &["a-0", "a-1", "a-2", "a-3"],
        "RestartPartition" => &["a-0", "a-1"],
        "RestartPod" => &["a-0"],
        _ => &[],
    }
}

async fn play(field: &Field, name: String, object: Value, trigger: Trigger, action: &str) -> Outcome {
    field.submit(&object).await?;
    let end = match action {
        "AbortJob" => Some("Aborted"),
        "TerminateJob" => Some("Terminated"),
        "CompleteJob" => Some("Completed"),
        _ => None,
    };
    if trigger != Trigger::Waits {
        field.runs(&name, 5).await?;
    }
    let before = field.uids(&name).await;
    if trigger == Trigger::Deleted {
        field.delete_pod(&format!("{name}-a-0")).await?;
    }
    if let Some(end) = end {
        field.reaches(&name, end).await?;
        return ended(field, &name).await;
    }
    if trigger != Trigger::Deleted {
        // It happens again after each restart, until the retries are spent.
        field.reaches(&name, "Failed").await?;
        let retries = field.job(&name).await["status"]["retryCount"].as_i64();
        same("retryCount", retries, Some(MAX_RETRY))?;
        return ended(field, &name).await;
    }
    // Once only: the Job runs again.
    field
        .until("restarted", async || {
            let status = field.job(&name).await["status"].take();
            (
                status["retryCount"] == 1 && status["state"]["phase"] == "Running",
                status,
            )
        })
        .await?;
    field.runs(&name, 5).await?;
    let after = field.uids(&name).await;
    for (pod, uid) in &before {
        let short = pod.strip_prefix(&format!("{name}-")).unwrap_or_default();
        let now = after.iter().find(|(other, _)| other == pod).map(|(_, uid)| uid);
        let is_new = now != Some(uid);
        // The pod that was deleted is a new one in any case.
        let expected = replaced(action).contains(&short) || short == "a-0";
        same(&format!("{short} is another pod"), is_new, expected)?;
    }
    field.command(&name, "TerminateJob").await?;
    field.reaches(&name, "Terminated").await
}

/// Nothing of a Job that has ended runs.
async fn ended(field: &Field, name: &str) -> Outcome {
    field
        .until("without pods that live", async || {
            let phases = field.phases(name).await;
            let dead = phases
                .iter()
                .all(|(_, phase)| phase == "Succeeded" || phase == "Failed");
            (dead, phases)
        })
        .await
}

/// Every action for one event, by its place in the list.
async fn every_action(place: usize) {
    let field = Field::new(vec![pool("all", 30, 16)]).await;
    let (key, value, trigger) = EVENTS[place];
    let mut cases: Vec<Case<'_>> = Vec::new();
    for (number, action) in ACTIONS.into_iter().enumerate() {
        for of_task in [false, true] {
            let level = if of_task { "task" } else { "job" };
            let name = format!("p-{place}-{number}-{level}");
            let object = object(&name, trigger, &policy(key, value, action), of_task);
            let told = format!("{name} ({key} {value} by {trigger:?}, {action} of the {level})");
            cases.push(case(told, play(&field, name, object, trigger, action)));
        }
    }
    all(cases).await;
    field.stop(count::ACTIONS).await;
}

macro_rules! every_action {
    ($($name:ident = $place:literal;)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            every_action($place).await;
        }
    )*};
}

every_action! {
    a_failed_pod_has_every_action = 0;
    any_event_has_every_action_when_a_pod_fails = 1;
    an_exit_code_has_every_action = 2;
    an_evicted_pod_has_every_action = 3;
    any_event_has_every_action_when_a_pod_is_evicted = 4;
    a_pod_that_waits_has_every_action = 5;
    a_completed_task_has_every_action = 6;
    a_failed_task_has_every_action = 7;
}

#[tokio::test(start_paused = true)]
async fn timeouts_and_levels() {
    let field = Field::new(vec![pool("all", 20, 16), pool("other", 1, 1)]).await;
    let abort_after = json!({"event": "PodFailed", "action": "AbortJob", "timeout": "60s"});
    let task_first = async {
        let mut a = task("a", 1, "sleep 5; exit 1");
        a["policies"] = json!([{"event": "PodFailed", "action": "CompleteJob"}]);
        let mut object = job("task-first", 1, &[a]);
        object["spec"]["policies"] = json!([{"event": "PodFailed", "action": "AbortJob"}]);
        field.submit(&object).await?;
        field.reaches("task-first", "Completed").await
    };
    let job_next = async {
        let mut a = task("a", 1, "sleep 5; exit 1");
        a["policies"] = json!([{"event": "PodEvicted", "action": "CompleteJob"}]);
        let mut object = job("job-next", 1, &[a]);
        object["spec"]["policies"] = json!([{"event": "PodFailed", "action": "AbortJob"}]);
        field.submit(&object).await?;
        field.reaches("job-next", "Aborted").await
    };
    let first_counts = async {
        let mut object = job("first-counts", 1, &[task("a", 1, "sleep 5; exit 3")]);
        object["spec"]["policies"] = json!([
            {"exitCode": 4, "action": "CompleteJob"},
            {"exitCode": 3, "action": "TerminateJob"},
            {"event": "PodFailed", "action": "AbortJob"},
        ]);
        field.submit(&object).await?;
        field.reaches("first-counts", "Terminated").await
    };
    let waits = async {
        let object = job(
            "after-a-while",
            1,
            &[task("a", 1, "sleep 5; exit 1"), task("b", 1, "sleep 100000")],
        );
        field
            .submit(&with(object, "/spec/policies", json!([abort_after])))
            .await?;
        field.runs("after-a-while", 2).await?;
        field.pass(50.0).await;
        let phase = field.job("after-a-while").await["status"]["state"]["phase"].take();
        same("phase before the timeout", phase, json!("Running"))?;
        field.pass(30.0).await;
        field.reaches("after-a-while", "Aborted").await
    };
    let pending_over = async {
        // The pod finds its place before the time is over.
        let mut a = json!({"name": "a", "replicas": 1, "template": template_in("late", "sleep 200")});
        a["policies"] = json!([{"event": "PodPending", "action": "AbortJob", "timeout": "100s"}]);
        field.submit(&job("pending-over", 1, &[a])).await?;
        field.pass(50.0).await;
        let labels = json!({"metadata": {"labels": {"pool": "late"}}});
        field.send("PATCH", "/api/v1/nodes/other-0", &labels).await?;
        field.reaches("pending-over", "Completed").await?;
        let history = field.history("pending-over").await;
        holds(
            "it was never aborted",
            !history.iter().any(|phase| phase.starts_with("Abort")),
        )
    };
    let without = async {
        let object = job(
            "without-a-policy",
            1,
            &[task("a", 2, "sleep 5; exit 1"), task("b", 1, "sleep 60")],
        );
        field.submit(&object).await?;
        field.pass(30.0).await;
        let phase = field.job("without-a-policy").await["status"]["state"]["phase"].take();
        same("phase while one pod runs", phase, json!("Running"))?;
        field.reaches("without-a-policy", "Completed").await
    };
    let cases = vec![
        case("task-first", task_first),
        case("job-next", job_next),
        case("first-counts", first_counts),
        case("after-a-while", waits),
        case("pending-over", pending_over),
        case("without-a-policy", without),
    ];
    all(cases).await;
    field.stop(count::LEVELS).await;
}
