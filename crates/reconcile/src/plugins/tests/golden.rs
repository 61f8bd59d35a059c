//! Whole pods and objects, as text.

use super::*;

/// Pods and objects of a job: `(task, index)` names the pods to show.
fn shown(job: &Job, pods: &[(&str, i32)]) -> String {
    let mut text = String::new();
    for (task, index) in pods {
        let pod = pod(job, task, *index).expect("the plugins take the pod");
        text.push_str(&format!("pod {task} {index}\n{pod:#}\n"));
    }
    text + &show(&writes(job, &[]).expect("the plugins make their objects"))
}

/// A task with an init container and names of its own.
fn rich_task() -> Value {
    json!({
        "name": "data-load", "replicas": 2,
        "template": {"spec": {
            "hostname": "loader", "subdomain": "net",
            "containers": [
                {"name": "main", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 22, "name": "ssh"}]},
                {"name": "side", "volumeMounts": [{"name": "own", "mountPath": "/etc/volcano"}]},
            ],
            "initContainers": [{"name": "init"}],
            "volumes": [{"name": "own", "emptyDir": {}}],
        }},
    })
}

#[test]
fn env() {
    let job = job(json!({"env": []}), json!([rich_task()]));
    insta::assert_snapshot!(shown(&job, &[("data-load", 1)]));
}

#[test]
fn svc() {
    let job = job(
        json!({"svc": []}),
        json!([task_of("ps", 1), rich_task(), task_of("none", 0)]),
    );
    insta::assert_snapshot!(shown(&job, &[("ps", 0), ("data-load", 1)]));
}

#[test]
fn svc_with_all_arguments() {
    let arguments = [
        "--publish-not-ready-addresses=true",
        "--disable-network-policy",
        "--inject-hosts-env=false",
    ];
    let job = job(json!({"svc": arguments}), json!([task_of("ps", 1)]));
    insta::assert_snapshot!(shown(&job, &[("ps", 0)]));
}

#[test]
fn ssh() {
    let job = job(json!({"ssh": []}), json!([task_of("ps", 2), rich_task()]));
    insta::assert_snapshot!(shown(&job, &[("ps", 0), ("data-load", 0)]));
}

#[test]
fn ssh_with_all_arguments() {
    let arguments = [
        "--ssh-key-file-path=/home/me/.ssh",
        "--ssh-private-key=PRIVATE",
        "--ssh-public-key=PUBLIC",
        "--ssh-port=2022",
    ];
    let job = job(json!({"ssh": arguments}), json!([task_of("ps", 1)]));
    insta::assert_snapshot!(shown(&job, &[("ps", 0)]));
}

#[test]
fn tensorflow() {
    let tasks = json!([task_of("ps", 1), task_of("worker", 2), task_of("other", 1)]);
    let job = job(json!({"tensorflow": []}), tasks);
    insta::assert_snapshot!(shown(&job, &[("ps", 0), ("worker", 1), ("other", 0)]));
}

#[test]
fn pytorch() {
    let job = job(
        json!({"pytorch": []}),
        json!([task_of("master", 1), task_of("worker", 2)]),
    );
    insta::assert_snapshot!(shown(&job, &[("master", 0), ("worker", 1)]));
}

#[test]
fn pytorch_whose_workers_wait() {
    let plugins = json!({"pytorch": ["--wait-master-enabled", "--wait-master-timeout=10", "--wait-master-image=b"], "env": []});
    let job = job(plugins, json!([task_of("master", 1), task_of("worker", 1)]));
    insta::assert_snapshot!(shown(&job, &[("worker", 0)]));
}

#[test]
fn mpi() {
    let job = job(
        json!({"mpi": ["--worker=data-load"]}),
        json!([task_of("master", 1), rich_task()]),
    );
    insta::assert_snapshot!(shown(&job, &[("master", 0), ("data-load", 1)]));
}

#[test]
fn ray() {
    let job = job(
        json!({"ray": []}),
        json!([task_of("head", 1), task_of("worker", 2)]),
    );
    insta::assert_snapshot!(shown(&job, &[("head", 0), ("worker", 1)]));
}

#[test]
fn hcclrank() {
    let job = job(
        json!({"hcclrank": []}),
        json!([task_of("master", 2), task_of("worker", 2)]),
    );
    insta::assert_snapshot!(shown(&job, &[("master", 1), ("worker", 1)]));
}
