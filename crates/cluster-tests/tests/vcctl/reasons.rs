//! `vcctl job explain` and `vcctl plan`, as people and programs read them. The objects are fixed and nobody is at work on
//! them; `explain.rs` has the situations in a cluster that lives.

use crate::transcript::Transcript;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::path::PathBuf;
use volcano_cluster_tests::acts::done;
use volcano_cluster_tests::jobs::{job, with};
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, Node};

/// A task of pods with so many CPUs each.
fn task(replicas: usize, cpu: &str) -> Value {
    json!({"name": "w", "replicas": replicas, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}]}}})
}

/// Two nodes for everybody and a larger one for some; a queue that is small and one that is closed; a Job that runs on
/// two CPUs of the small queue, one that is over, one that is aborted, Jobs that wait for various reasons, and a PodGroup without a Job.
async fn set() -> Stage {
    let stage = done(Stage::set().await);
    stage.add_node(&Node::new("n1").cpu("4").memory("64Gi")).await;
    stage.add_node(&Node::new("n2").cpu("4").memory("64Gi")).await;
    let large = Node::new("n3").cpu("8").memory("64Gi");
    stage
        .add_node(&large.taint("dedicated", "infra", "NoSchedule"))
        .await;
    for (name, spec, state) in [
        ("default", json!({}), "Open"),
        ("retired", json!({}), "Closed"),
        ("small", json!({"capability": {"cpu": "3"}}), "Open"),
    ] {
        stage.queue(name, 1, &spec).await;
        let status = json!({"state": state});
        done(objects::merge_patch_status(&stage.client, &stage.queue_path(name), &status).await);
    }
    for (name, phase, spec) in [
        (
            "busy",
            "Running",
            json!({"queue": "small", "tasks": [task(2, "1")]}),
        ),
        (
            "closed-queue",
            "Pending",
            json!({"queue": "retired", "tasks": [task(1, "1")]}),
        ),
        (
            "full-queue",
            "Pending",
            json!({"queue": "small", "tasks": [task(4, "1")]}),
        ),
        ("over", "Completed", json!({"tasks": [task(1, "1")]})),
        ("paused", "Aborted", json!({"tasks": [task(1, "1")]})),
        ("picky", "Pending", json!({"tasks": [selecting(task(1, "1"))]})),
        ("soon", "Pending", json!({"tasks": [task(2, "1")]})),
        ("tainted", "Pending", json!({"tasks": [task(1, "6")]})),
        ("too-large", "Pending", json!({"tasks": [task(20, "1")]})),
    ] {
        let submitted = stage.submit(name, &spec).await;
        let status = json!({"state": {"phase": phase}});
        done(objects::merge_patch_status(&stage.client, &stage.job_path(name), &status).await);
        if name == "busy" {
            runs(&stage, &submitted, "small", 2, "1").await;
        }
    }
    let mut lone = objects::pod_group(&stage.namespace, "lone", 3, "default");
    lone["status"] = json!({"phase": "Inqueue"});
    stage.group(&lone).await;
    stage.members("lone", 3, |pod| pod.cpu("3")).await;
    stage
}

fn selecting(task: Value) -> Value {
    on(task, &json!({"disk": "ssd"}))
}

fn on(mut task: Value, selector: &Value) -> Value {
    task["template"]["spec"]["nodeSelector"] = selector.clone();
    task
}

/// The PodGroup of a Job of two pods, and these on two nodes.
async fn runs(stage: &Stage, job: &Value, queue: &str, minimum: u32, cpu: &str) {
    let name = objects::name_of(job);
    let group = format!("{name}-{}", job["metadata"]["uid"].as_str().unwrap());
    let owner = json!({"apiVersion": job["apiVersion"], "kind": "Job", "name": name,
        "uid": job["metadata"]["uid"], "controller": true});
    let mut object = objects::pod_group(&stage.namespace, &group, minimum, queue);
    object["metadata"]["ownerReferences"] = json!([owner]);
    object["status"] = json!({"phase": "Running", "running": 2});
    stage.group(&object).await;
    for (at, node) in ["n1", "n2"].into_iter().enumerate() {
        let pod = format!("{name}-w-{at}");
        let made = stage
            .pod(&pod)
            .group(&group)
            .cpu(cpu)
            .annotation("volcano.sh/job-name", name)
            .annotation("volcano.sh/task-spec", "w")
            .label("volcano.sh/job-name", name)
            .spec("nodeName", json!(node));
        stage.add_pod(made).await;
        stage.phase(&pod, "Running").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reasons_are_told_to_people_and_programs() {
    let stage = set().await;
    let conf = "actions: enqueue, allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n";
    let without_queues = done(stage.file("scheduler.yaml", conf));
    let wrong = done(stage.file("wrong.yaml", &conf.replace("name: gang", "name: gangs")));
    let mut script = Transcript::of(&stage);
    for job in [
        "busy",
        "closed-queue",
        "full-queue",
        "lone",
        "over",
        "paused",
        "picky",
        "soon",
        "tainted",
        "too-large",
    ] {
        script.run(&format!("vcctl job explain {job} -n NS"));
    }
    script.run("vcctl job explain full-queue -n NS -o json");
    script.run("vcctl job explain soon -n NS -o yaml");
    // The capability of a queue is the business of a plugin that is not configured here.
    script.run_file(
        "vcctl job explain full-queue -n NS --scheduler-conf FILE",
        &without_queues,
    );
    script.run_file("vcctl job explain full-queue -n NS --scheduler-conf FILE", &wrong);
    script.run("vcctl job explain full-queue -n NS --scheduler-conf nowhere.yaml");
    script.run("vcctl job explain nobody -n NS");
    script.run("vcctl job explain -n NS");
    assert_snapshot!(script.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_made_of_files() {
    let stage = set().await;
    let file = |name: &str, spec: &Value| -> PathBuf {
        let manifest = job(name, spec).to_string();
        done(stage.file(&format!("{name}.yaml"), &manifest))
    };
    let fits = file("fits", &json!({"tasks": [task(4, "1")]}));
    let mut script = Transcript::of(&stage);
    script.run_file("vcctl plan -f FILE -n NS", &fits);
    script.run_file("vcctl plan -f FILE -n NS -o json", &fits);
    for (name, spec) in [
        ("large", json!({"tasks": [task(9, "2")]})),
        ("scattered", json!({"tasks": [task(3, "2")]})),
        ("late", json!({"queue": "retired", "tasks": [task(1, "1")]})),
        ("lost", json!({"queue": "nowhere", "tasks": [task(1, "1")]})),
        (
            "refused",
            with(json!({"tasks": [task(1, "1")]}), &json!({"minAvailable": 2})),
        ),
        ("busy", json!({"queue": "small", "tasks": [task(2, "1")]})),
    ] {
        script.run_file("vcctl plan -f FILE -n NS", &file(name, &spec));
    }
    let pod = done(stage.file("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"));
    script.run_file("vcctl plan -f FILE -n NS", &pod);
    script.run("vcctl plan -f job.json -n NS");
    script.run("vcctl plan -f nowhere.yaml -n NS");
    script.run("vcctl plan -n NS");
    // Nothing was written.
    script.run("vcctl job list -n NS -o name");
    assert_snapshot!(script.text());
}

/// Two nodes that a Job has filled, of which it needs one.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_who_would_have_to_go() {
    let stage = done(Stage::set().await);
    for name in ["n1", "n2"] {
        stage.add_node(&Node::new(name).cpu("4").memory("64Gi")).await;
    }
    stage.queue("default", 1, &json!({})).await;
    let status = json!({"state": "Open"});
    done(objects::merge_patch_status(&stage.client, &stage.queue_path("default"), &status).await);
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "plan-urgent"}, "value": 1000});
    let classes = |name: &str| objects::path("scheduling.k8s.io/v1", "", "priorityclasses", name);
    stage.create(&classes(""), &class).await;
    let busy = json!({"queue": "default", "minAvailable": 1, "tasks": [task(2, "4")]});
    let busy = stage.submit("busy", &busy).await;
    let status = json!({"state": {"phase": "Running"}});
    done(objects::merge_patch_status(&stage.client, &stage.job_path("busy"), &status).await);
    runs(&stage, &busy, "default", 1, "4").await;
    let conf = "actions: enqueue, allocate, preempt\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n\
                - plugins: [{name: predicates}, {name: nodeorder}]\n";
    let conf = done(stage.file("preempt.conf", conf));
    let selector = json!({"kubernetes.io/hostname": "n1"});
    let urgent = json!({"priorityClassName": "plan-urgent", "tasks": [on(task(1, "2"), &selector)]});
    let urgent = done(stage.file("urgent.yaml", &job("urgent", &urgent).to_string()));
    let mut script = Transcript::of(&stage);
    let files = [("CONF", conf.as_path()), ("FILE", urgent.as_path())];
    script.run_files("vcctl plan -f FILE -n NS --scheduler-conf CONF", &files);
    script.run_files("vcctl plan -f FILE -n NS --scheduler-conf CONF -o json", &files);
    done(objects::delete(&stage.client, &classes("plan-urgent")).await);
    assert_snapshot!(script.text());
}
