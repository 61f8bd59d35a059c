//! Jobs from their submission to their end.

use serde_json::json;
use volcano_cluster_tests::jobs::{Troupe, task, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_to_its_end() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let created = stage
        .submit("train", &json!({"tasks": [task("ps", 1), task("worker", 2)]}))
        .await;
    let pods = stage.wait_running("train", 3).await;
    assert_eq!(
        pods.keys().collect::<Vec<_>>(),
        ["train-ps-0", "train-worker-0", "train-worker-1"]
    );
    let job = stage.wait_job("train", "Running").await;
    assert_eq!(job["status"]["minAvailable"], 3);
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let group = stage.get(&stage.group_path(&format!("train-{uid}"))).await;
    assert_eq!(group["spec"]["minMember"], 3);
    assert_eq!(group["spec"]["minTaskMember"], json!({"ps": 1, "worker": 2}));
    assert_eq!(group["metadata"]["ownerReferences"][0]["uid"], uid);
    for pod in pods.keys() {
        stage.end_pod(pod, 0).await;
    }
    let job = stage.wait_job("train", "Completed").await;
    let status = &job["status"];
    assert_eq!(status["succeeded"], 3, "{status}");
    assert_eq!(status["version"], 1);
    assert!(status["runningDuration"].is_string());
    let phases: Vec<_> = status["conditions"].as_array().unwrap().iter().collect();
    let phases: Vec<_> = phases.iter().map(|phase| phase["status"].clone()).collect();
    assert_eq!(phases, ["Pending", "Running", "Completed"]);
    stage.wait_gone(&stage.group_path(&format!("train-{uid}"))).await;
    assert_eq!(stage.pods_of("train").await.len(), 3, "pods that ended stay");
    let metric = r#"volcano_job_completed_phase_count{job_name="#;
    assert!(troupe.controllers.get("/metrics").unwrap().1.contains(metric));
    let made = "volcano_controller_job_to_pod_creation_latency_milliseconds_count";
    assert_eq!(troupe.controllers.metric(made).unwrap(), 3.0);
    let refused = r#"volcano_api_writes_total{kind="pods",result="conflict""#;
    assert_eq!(
        troupe.controllers.metric(refused).unwrap(),
        0.0,
        "nothing is made twice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_ends_as_its_pods_say() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    // What is said of the Job, which of its four pods succeed, and how it ends.
    let cases = [
        ("enough", json!({"minAvailable": 2}), 2, "Completed"),
        ("too-few", json!({"minAvailable": 3}), 2, "Failed"),
        (
            "min-success",
            json!({"minAvailable": 1, "minSuccess": 2}),
            2,
            "Completed",
        ),
        (
            "no-success",
            json!({"minAvailable": 1, "minSuccess": 3}),
            2,
            "Failed",
        ),
    ];
    for (name, fields, ..) in &cases {
        let spec = with(json!({"tasks": [task("t", 4)]}), fields);
        stage.submit(name, &spec).await;
    }
    for (name, _, succeed, phase) in cases {
        let pods = stage.wait_running(name, 4).await;
        for (at, pod) in pods.keys().enumerate() {
            // Of the one that needs two to succeed, the others still run.
            if name != "min-success" || at < succeed {
                stage.end_pod(pod, i32::from(at >= succeed)).await;
            }
        }
        let job = stage.wait_job(name, phase).await;
        assert_eq!(job["status"]["retryCount"], serde_json::Value::Null, "{name}");
    }
    stage
        .wait_pods(
            "min-success",
            &["min-success-t-0 Succeeded", "min-success-t-1 Succeeded"],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_start_in_the_order_of_their_dependencies() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let after = |name: &str| json!({"dependsOn": {"name": [name]}, "minAvailable": 1});
    let tasks = json!([
        with(task("c", 1), &after("b")),
        with(task("b", 1), &after("a")),
        with(task("a", 2), &json!({"minAvailable": 1})),
    ]);
    stage
        .submit("chain", &json!({"minAvailable": 1, "tasks": tasks}))
        .await;
    stage.wait_running("chain", 4).await;
    let pods = stage.pods_of("chain").await;
    let order = |name: &str| {
        let pod = pods.iter().find(|pod| pod["metadata"]["name"] == name).unwrap();
        // Versions count up: which was made first.
        let managed = pod["metadata"]["creationTimestamp"].as_str().unwrap();
        managed.to_owned()
    };
    assert!(order("chain-a-0") <= order("chain-b-0") && order("chain-b-0") <= order("chain-c-0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_waits_for_what_it_depends_on() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    // The first task cannot be placed, so that the second one has to wait.
    let mut big = with(task("first", 1), &json!({"minAvailable": 1}));
    big["template"]["spec"]["nodeSelector"] = json!({"there-is": "no-such-node"});
    let second = with(task("second", 1), &json!({"dependsOn": {"name": ["first"]}}));
    stage
        .submit("waits", &json!({"minAvailable": 1, "tasks": [big, second]}))
        .await;
    stage.wait_pods("waits", &["waits-first-0 Pending"]).await;
    stage.wait_told("waits-first-0").await;
    stage.wait_pods("waits", &["waits-first-0 Pending"]).await;
    let labels = json!({"metadata": {"labels": {"there-is": "no-such-node"}}});
    stage.patch("/api/v1/nodes/node-0", &labels).await;
    stage.wait_running("waits", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_scaled_up_and_down() {
    let troupe = Troupe::play().await;
    let stage = &troupe.stage;
    let created = stage
        .submit(
            "scales",
            &json!({"minAvailable": 1, "tasks": [task("t", 2)],
            "policies": [{"event": "PodEvicted", "action": "AbortJob"}], "plugins": {"svc": []}}),
        )
        .await;
    let before = stage.wait_running("scales", 2).await;
    let path = stage.job_path("scales");
    let resize = |replicas: usize| json!({"spec": {"minAvailable": 1, "tasks": [task("t", replicas)]}});
    stage.patch(&path, &resize(4)).await;
    let more = stage.wait_running("scales", 4).await;
    assert!(
        before.iter().all(|(name, uid)| more[name] == *uid),
        "those that were there stay"
    );
    let hosts = stage.path("v1", "configmaps", "scales-svc");
    let listed = |config: &serde_json::Value, count: &str| config["data"]["VC_T_NUM"] == count;
    stage
        .wait(&hosts, "it lists four hosts", |config| listed(config, "4"))
        .await;
    let group = format!("scales-{}", created["metadata"]["uid"].as_str().unwrap());
    let group = stage.group_path(&group);
    stage
        .wait(&group, "its members follow", |group| {
            group["spec"]["minTaskMember"]["t"] == 4
        })
        .await;
    stage.patch(&path, &resize(1)).await;
    stage.wait_pods("scales", &["scales-t-0 Running"]).await;
    stage
        .wait(&hosts, "it lists one host", |config| listed(config, "1"))
        .await;
    let job = stage
        .wait(&path, "one runs", |job| {
            job["status"]["running"] == 1 && job["status"]["terminating"].is_null()
        })
        .await;
    assert_eq!(
        job["status"]["state"]["phase"], "Running",
        "scaling down is no eviction"
    );
}
