//! A fixed set of objects: Jobs in several phases, their PodGroups and pods, queues, flows and templates. No controllers
//! are at work, so that all stays as it is.

use serde_json::{Value, json};
use volcano_cluster_tests::acts::done;
use volcano_cluster_tests::jobs::{BATCH, job, task, text, with};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects;

const FLOW: &str = "flow.volcano.sh/v1alpha1";
const SCHEDULING: &str = "scheduling.volcano.sh/v1beta1";

/// Sets the stage.
pub async fn set() -> Stage {
    let stage = done(Stage::set().await);
    queues(&stage).await;
    jobs(&stage).await;
    pods(&stage).await;
    flows(&stage).await;
    stage
}

async fn queues(stage: &Stage) {
    for (name, spec, status) in [
        (
            "default",
            json!({"weight": 1, "parent": "root"}),
            json!({"state": "Open"}),
        ),
        (
            "research",
            json!({"weight": 3, "parent": "root", "deserved": {"cpu": "8", "memory": "32Gi"},
                "capability": {"cpu": "16"}}),
            json!({"state": "Open", "allocated": {"cpu": "2", "memory": "1Gi"}, "running": 1, "pending": 2}),
        ),
        ("retired", json!({"weight": 2}), json!({"state": "Closed"})),
    ] {
        let path = objects::path(SCHEDULING, "", "queues", "");
        let queue =
            json!({"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": name}, "spec": spec});
        stage.create(&path, &queue).await;
        done(objects::merge_patch_status(&stage.client, &format!("{path}/{name}"), &status).await);
    }
}

async fn jobs(stage: &Stage) {
    let container = json!({"name": "main", "image": "registry/train:1", "command": ["python", "train.py"],
        "workingDir": "/work", "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "500m", "memory": "1Gi"}}});
    let template = json!({"metadata": {"annotations": {"kubernetes.io/availablezone": "z1"}},
        "spec": {"restartPolicy": "OnFailure", "imagePullSecrets": [{"name": "registry"}],
            "containers": [container]}});
    let master = with(task("master", 1), &json!({"template": template}));
    let mut train = job(
        "train",
        &json!({"tasks": [master, task("worker", 3)], "queue": "research", "minAvailable": 3,
            "plugins": {"env": [], "ssh": ["--no-root"]}}),
    );
    train["metadata"]["labels"] = json!({"volcano.sh/job-type": "MPI", "team": "vision"});
    train["metadata"]["annotations"] = json!({"note": "a<b"});
    let status = json!({
        "state": {"phase": "Running", "lastTransitionTime": "2026-01-01T00:00:10Z"},
        "minAvailable": 3, "running": 3, "pending": 1, "version": 1,
        "controlledResources": {"plugin-env": "env", "plugin-ssh": "ssh"},
        "conditions": [
            {"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"status": "Running", "lastTransitionTime": "2026-01-01T00:00:10Z"}],
    });
    let uid = submit(stage, &train, &status).await;
    let of_train = format!("train-{uid}");
    let waiting = job(
        "a-job-with-a-longer-name",
        &json!({"tasks": [task("t", 2)], "queue": "research"}),
    );
    let status = json!({"state": {"phase": "Pending"}, "minAvailable": 2, "pending": 2});
    submit(stage, &waiting, &status).await;
    let failed = job(
        "broken",
        &json!({"tasks": [task("t", 1)], "schedulerName": "other"}),
    );
    let status = json!({"state": {"phase": "Failed"}, "minAvailable": 1, "failed": 1, "retryCount": 3});
    submit(stage, &failed, &status).await;
    for (name, phase, queue) in [
        (of_train.as_str(), "Running", "research"),
        ("waiting", "Pending", "research"),
        ("admitted", "Inqueue", "research"),
        ("done", "Completed", "default"),
    ] {
        let mut group = objects::pod_group(&stage.namespace, name, 3, queue);
        group["status"] = json!({"phase": phase, "running": i32::from(phase == "Running") * 3});
        if name == "waiting" {
            group["spec"]["minResources"] = json!({"cpu": "100", "memory": "1Gi"});
            group["status"]["conditions"] = json!([{"type": "Unschedulable", "status": "True",
                "transitionID": "1", "reason": "NotEnoughResources", "message": "pod group is not ready",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        }
        stage
            .create(&stage.path(SCHEDULING, "podgroups", ""), &group)
            .await;
    }
    event(stage, "train.1", "Normal", "Started", 1).await;
    event(stage, "train.2", "Warning", "PodFailed", 4).await;
    event(stage, "trainer.1", "Normal", "Elsewhere", 1).await;
}

/// Submits a Job and sets its status. Its UID.
async fn submit(stage: &Stage, job: &Value, status: &Value) -> String {
    let created = stage.create(&stage.path(BATCH, "jobs", ""), job).await;
    let path = stage.path(BATCH, "jobs", objects::name_of(job));
    done(objects::merge_patch_status(&stage.client, &path, status).await);
    text(&created["metadata"]["uid"])
}

async fn event(stage: &Stage, name: &str, kind: &str, reason: &str, count: i32) {
    // Long ago, so that ages are the same in every run: in years.
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
        "involvedObject": {"apiVersion": BATCH, "kind": "Job", "name": "train", "namespace": stage.namespace},
        "type": kind, "reason": reason, "message": "what happened", "count": count,
        "firstTimestamp": "2010-01-01T00:00:00Z", "lastTimestamp": "2012-01-01T00:00:00Z",
        "source": {"component": "vc-controller-manager"}});
    stage.create(&stage.path("v1", "events", ""), &event).await;
}

async fn pods(stage: &Stage) {
    let running = json!({"phase": "Running", "containerStatuses": [{"name": "main", "image": "", "imageID": "",
        "ready": true, "restartCount": 0, "state": {"running": {}}}]});
    let crashing = json!({"phase": "Running", "containerStatuses": [{"name": "main", "image": "", "imageID": "",
        "ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "startedAt": "2010-01-01T00:00:00Z",
            "finishedAt": "2010-01-01T00:00:00Z"}}}]});
    let pending = json!({"phase": "Pending"});
    for (name, job, task, status) in [
        ("train-master-0", "train", "master", &running),
        ("train-worker-0", "train", "worker", &running),
        ("train-worker-1", "train", "worker", &crashing),
        ("waits-t-0", "waits", "t", &pending),
        ("plain", "", "", &running),
    ] {
        let mut pod = objects::Pod::new(&stage.namespace, name);
        if job.is_empty() {
            pod = pod.annotation("scheduling.volcano.sh/queue-name", "research");
        } else {
            pod = pod
                .label("volcano.sh/job-name", job)
                .label("volcano.sh/task-spec", task)
                .label(
                    "volcano.sh/queue-name",
                    if job == "train" { "research" } else { "default" },
                );
        }
        done(objects::create_pod(&stage.client, &pod).await);
        done(objects::merge_patch_status(&stage.client, &stage.pod_path(name), status).await);
    }
}

async fn flows(stage: &Stage) {
    let template = json!({"apiVersion": FLOW, "kind": "JobTemplate", "metadata": {"name": "step"},
        "spec": {"minAvailable": 1, "tasks": [task("t", 1)]}});
    stage
        .create(&stage.path(FLOW, "jobtemplates", ""), &template)
        .await;
    for (name, phase) in [("nightly", "Running"), ("weekly-report", "Succeed")] {
        let flow = json!({"apiVersion": FLOW, "kind": "JobFlow", "metadata": {"name": name},
            "spec": {"flows": [{"name": "step"}], "jobRetainPolicy": "retain"}});
        stage.create(&stage.path(FLOW, "jobflows", ""), &flow).await;
        let path = stage.path(FLOW, "jobflows", name);
        let status = json!({"state": {"phase": phase}});
        done(objects::merge_patch_status(&stage.client, &path, &status).await);
    }
}
