//! What policies and Commands do to real containers: each action, exit codes, timeouts, scaling, order of tasks, and the end.

use serde_json::{Value, json};
use volcano_cluster_tests::field::Field;
use volcano_testcluster::objects;

/// Runs until it is told to end, and then ends at once.
const SLEEP: &str = "trap 'exit 0' TERM; sleep 600 & wait";

/// A task whose pods run a script of the shell.
fn task(name: &str, replicas: usize, script: &str) -> Value {
    json!({
        "name": name, "replicas": replicas,
        "template": {"spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "main", "image": "busybox:1", "command": ["sh", "-c", script]}],
        }},
    })
}

fn with(mut value: Value, field: &str, more: Value) -> Value {
    value[field] = more;
    value
}

/// A Job with further fields of its specification.
fn job(name: &str, tasks: Vec<Value>, more: &Value) -> String {
    let mut spec = more.clone();
    spec["tasks"] = Value::Array(tasks);
    let job = json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec,
    });
    job.to_string()
}

fn policy(event: &str, action: &str) -> Value {
    json!([{"event": event, "action": action}])
}

/// UID of a pod.
async fn uid(field: &Field, pod: &str) -> String {
    let pod = objects::get(&field.client, &field.pod_path(pod)).await.unwrap();
    pod["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Waits until another pod of the same name runs.
async fn wait_replaced(field: &Field, pod: &str, before: &str) -> Value {
    field
        .wait(&field.pod_path(pod), "another one runs", |pod| {
            pod["metadata"]["uid"] != before && pod["status"]["phase"] == "Running"
        })
        .await
}

#[tokio::test]
async fn a_job_whose_containers_end_well_is_completed() {
    let field = Field::with_volcano().await;
    field
        .apply(&job("plain", vec![task("main", 2, "echo done")], &json!({})))
        .await;
    let job = field.wait_end("plain", "Completed").await;
    assert_eq!(job["status"]["succeeded"], 2);
    assert_eq!(field.log("plain-main-1").await, "done\n");
}

#[tokio::test]
async fn an_exit_code_decides_what_is_done() {
    let field = Field::with_volcano().await;
    let coded = |name: &str, code: i32| {
        let policies =
            json!([{"exitCode": 3, "action": "TerminateJob"}, {"exitCode": 4, "action": "CompleteJob"}]);
        let tasks = vec![
            task("fails", 1, &format!("exit {code}")),
            task("sleeps", 1, SLEEP),
        ];
        job(name, tasks, &json!({"policies": policies}))
    };
    field.apply(&coded("three", 3)).await;
    field.apply(&coded("four", 4)).await;
    field.wait_end("three", "Terminated").await;
    field.wait_end("four", "Completed").await;
    field.wait_pods("three", &["three-fails-0 Failed"]).await;
    field.wait_pods("four", &["four-fails-0 Failed"]).await;
}

#[tokio::test]
async fn a_job_is_restarted_until_its_retries_are_used_up() {
    let field = Field::with_volcano().await;
    let tasks = vec![task("fails", 1, "exit 1"), task("sleeps", 1, SLEEP)];
    let more = json!({"maxRetry": 2, "policies": policy("PodFailed", "RestartJob")});
    field.apply(&job("retried", tasks, &more)).await;
    let ended = field.wait_end("retried", "Failed").await;
    assert_eq!(ended["status"]["retryCount"], 2, "{}", ended["status"]);
    field.wait_gone(&field.pod_path("retried-sleeps-0")).await;
}

#[tokio::test]
async fn a_job_is_suspended_and_resumed_by_commands() {
    let field = Field::with_volcano().await;
    field
        .apply(&job("paused", vec![task("main", 2, SLEEP)], &json!({})))
        .await;
    field.wait_job("paused", "Running").await;
    let before = uid(&field, "paused-main-0").await;
    field.order("paused", "AbortJob").await;
    field.wait_job("paused", "Aborted").await;
    field.wait_gone(&field.pod_path("paused-main-1")).await;
    field.order("paused", "ResumeJob").await;
    field.wait_job("paused", "Running").await;
    wait_replaced(&field, "paused-main-0", &before).await;
}

#[tokio::test]
async fn commands_terminate_and_complete() {
    let field = Field::with_volcano().await;
    for (name, action, phase) in [
        ("stopped", "TerminateJob", "Terminated"),
        ("finished", "CompleteJob", "Completed"),
    ] {
        field
            .apply(&job(name, vec![task("main", 1, SLEEP)], &json!({})))
            .await;
        field.wait_job(name, "Running").await;
        field.order(name, action).await;
        field.wait_end(name, phase).await;
        field.wait_gone(&field.pod_path(&format!("{name}-main-0"))).await;
    }
}

/// Fails the first time that it runs in a place that outlives the pod, and sleeps from then on.
fn fails_once(place: &str) -> String {
    format!("if [ ! -e /memory/{place} ]; then touch /memory/{place}; exit 7; fi; {SLEEP}")
}

/// The task with a folder of its node that outlives pods. All pods are on one node.
fn remembers(task: Value, field: &Field) -> Value {
    let mut task = task;
    let spec = &mut task["template"]["spec"];
    let path = format!("/tmp/{}", field.namespace);
    spec["nodeSelector"] = json!({"kubernetes.io/hostname": "node-1"});
    spec["volumes"] = json!([{"name": "memory", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "memory", "mountPath": "/memory"}]);
    task
}

#[tokio::test]
async fn a_pod_a_task_and_a_partition_are_restarted_alone() {
    let field = Field::with_volcano().await;
    // Of each Job the pod with index 1 fails once.
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("RestartPod", &["1"], &["0", "2", "3"]),
        ("RestartPartition", &["0", "1"], &["2", "3"]),
        ("RestartTask", &["0", "1", "2", "3"], &[]),
    ];
    for (action, _, _) in cases {
        let script = format!(
            "if [ $VC_TASK_INDEX = 1 ]; then {}; else {SLEEP}; fi",
            fails_once(action)
        );
        let parts = json!({"totalPartitions": 2, "partitionSize": 2});
        let task = with(
            remembers(task("main", 4, &script), &field),
            "partitionPolicy",
            parts,
        );
        let task = with(task, "policies", policy("PodFailed", action));
        let name = action.to_lowercase();
        field
            .apply(&job(&name, vec![task], &json!({"plugins": {"env": []}})))
            .await;
    }
    for (action, restarted, left_alone) in cases {
        let name = action.to_lowercase();
        let attempts = [(restarted, "1"), (left_alone, "0")];
        for (index, attempt) in attempts
            .iter()
            .flat_map(|(pods, attempt)| pods.iter().map(move |index| (index, attempt)))
        {
            let path = field.pod_path(&format!("{name}-main-{index}"));
            let what = format!("it runs in attempt {attempt}");
            field
                .wait(&path, &what, |pod| {
                    let made_in = &pod["metadata"]["annotations"]["volcano.sh/job-retry-count"];
                    pod["status"]["phase"] == "Running" && made_in == attempt
                })
                .await;
        }
        let job = field.wait_job(&name, "Running").await;
        assert_eq!(job["status"]["retryCount"], 1, "{}", job["status"]);
    }
}

#[tokio::test]
async fn pods_that_wait_too_long_end_the_job() {
    let field = Field::with_volcano().await;
    let nowhere = {
        let mut task = task("nowhere", 1, SLEEP);
        task["template"]["spec"]["nodeSelector"] = json!({"no-such": "node"});
        task
    };
    let policies = json!([{"event": "PodPending", "action": "TerminateJob", "timeout": "3s"}]);
    let more = json!({"policies": policies, "minAvailable": 1});
    field
        .apply(&job("impatient", vec![nowhere, task("here", 1, SLEEP)], &more))
        .await;
    field.wait_end("impatient", "Terminated").await;
    field.wait_gone(&field.pod_path("impatient-here-0")).await;
}

#[tokio::test]
async fn a_running_job_grows_and_shrinks() {
    let field = Field::with_volcano().await;
    field
        .apply(&job(
            "elastic",
            vec![task("main", 2, SLEEP)],
            &json!({"minAvailable": 1}),
        ))
        .await;
    field
        .wait_pods("elastic", &["elastic-main-0 Running", "elastic-main-1 Running"])
        .await;
    let kept = uid(&field, "elastic-main-0").await;
    field
        .kubectl(&[
            "patch",
            "vcjob",
            "elastic",
            "--type=json",
            "--patch",
            r#"[{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]"#,
        ])
        .await;
    let three = [
        "elastic-main-0 Running",
        "elastic-main-1 Running",
        "elastic-main-2 Running",
    ];
    field.wait_pods("elastic", &three).await;
    field
        .kubectl(&[
            "patch",
            "vcjob",
            "elastic",
            "--type=json",
            "--patch",
            r#"[{"op": "replace", "path": "/spec/tasks/0/minAvailable", "value": 1},
                {"op": "replace", "path": "/spec/tasks/0/replicas", "value": 1}]"#,
        ])
        .await;
    field.wait_pods("elastic", &["elastic-main-0 Running"]).await;
    assert_eq!(uid(&field, "elastic-main-0").await, kept);
}

#[tokio::test]
async fn tasks_start_after_those_that_they_depend_on() {
    let field = Field::with_volcano().await;
    let first = task("first", 1, "sleep 2; echo first");
    let second = with(
        task("second", 1, "echo second"),
        "dependsOn",
        json!({"name": ["first"]}),
    );
    let third = with(
        task("third", 1, "echo third"),
        "dependsOn",
        json!({"name": ["second"]}),
    );
    field
        .apply(&job(
            "chain",
            vec![third, second, first],
            &json!({"minAvailable": 1}),
        ))
        .await;
    field.wait_end("chain", "Completed").await;
    let mut starts = Vec::new();
    for name in ["first", "second", "third"] {
        let path = field.pod_path(&format!("chain-{name}-0"));
        let pod = objects::get(&field.client, &path).await.unwrap();
        starts.push(pod["metadata"]["creationTimestamp"].as_str().unwrap().to_owned());
    }
    assert!(starts.is_sorted(), "{starts:?}");
}

#[tokio::test]
async fn enough_successes_complete_a_job_and_it_is_gone_after_its_time() {
    let field = Field::with_volcano().await;
    let tasks = vec![task("quick", 1, "exit 0"), task("slow", 1, SLEEP)];
    let more = json!({"minSuccess": 1, "minAvailable": 2, "ttlSecondsAfterFinished": 2});
    field.apply(&job("enough", tasks, &more)).await;
    field.wait_gone(&field.job_path("enough")).await;
    field.wait_gone(&field.pod_path("enough-slow-0")).await;
}

#[tokio::test]
async fn what_admission_refuses_is_not_there() {
    let field = Field::with_volcano().await;
    let wrong = job(
        "wrong",
        vec![task("main", 1, "exit 0")],
        &json!({"minAvailable": 2, "queue": "default"}),
    );
    let path = objects::path("batch.volcano.sh/v1alpha1", &field.namespace, "jobs", "");
    let wrong: Value = serde_json::from_str(&wrong).unwrap();
    let error = objects::create(&field.client, &path, &wrong).await.unwrap_err();
    let said = format!("{error:#}");
    let message = "job 'minAvailable' should not be greater than total replicas in tasks;";
    assert!(said.contains(message), "{said}");
}
