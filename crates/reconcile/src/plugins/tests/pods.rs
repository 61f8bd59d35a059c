//! Rules about pods, one by one.

use super::*;

#[test]
fn plugins_that_are_not_known_are_an_error() {
    let job = job(json!({"env": [], "gpu": []}), json!([task_of("a", 1)]));
    let error = pod(&job, "a", 0).expect_err("gpu is no plugin");
    assert_eq!(error.to_string(), "failed to get plugin gpu");
}

#[test]
fn arguments_that_cannot_be_read_are_told_and_the_rest_holds() {
    let plugins = json!({"pytorch": ["--port=5", "--prot=6"], "tensorflow": ["--port=0"]});
    let job = job(plugins, json!([task_of("master", 1), task_of("worker", 1)]));
    let plugins = Plugins::of(&job).expect("known plugins");
    assert_eq!(
        plugins.problems(),
        [
            "job plugin tensorflow: value \"0\" of --port is not a port, 1 to 65535; the default is used",
            "job plugin pytorch: argument \"--prot=6\" is not known; known are --master, --worker, --port, \
             --wait-master-enabled, --wait-master-timeout, --wait-master-image",
        ]
    );
    let pod = pod(&job, "master", 0).expect("a pod");
    assert_eq!(variable(&pod, "MASTER_PORT").as_deref(), Some("5"));
}

#[test]
fn controlled_resources_name_all_plugins_but_hcclrank() {
    let job = job(json!({"hcclrank": [], "svc": [], "env": []}), json!([]));
    let controlled = Plugins::of(&job).expect("known plugins").controlled();
    let expected = [("plugin-env", "env"), ("plugin-svc", "svc")];
    assert_eq!(
        controlled,
        expected
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    );
}

#[test]
fn tf_config_describes_the_cluster() {
    let renamed = ["--ps=p", "--worker=w", "--chief=c", "--evaluator=e", "--port=7"];
    let fixed = json!({"name": "p", "replicas": 2, "template": {"spec": {"hostname": "h", "subdomain": "s", "containers": [{}]}}});
    // Plugin arguments, tasks, the pod, and what it is told.
    let cases = [
        (
            "a job of a single pod needs none",
            json!([]),
            json!([task_of("worker", 1)]),
            ("worker", 0),
            None,
        ),
        (
            "a task of two pods needs it",
            json!([]),
            json!([task_of("worker", 2)]),
            ("worker", 1),
            Some(
                r#"{"cluster":{"worker":["train-worker-0.train:2222","train-worker-1.train:2222"]},"task":{"type":"worker","index":1}}"#,
            ),
        ),
        (
            "two tasks of one pod need it; a task without a role has its own name",
            json!([]),
            json!([task_of("chief", 1), task_of("log", 1)]),
            ("log", 0),
            Some(r#"{"cluster":{"chief":["train-chief-0.train:2222"]},"task":{"type":"log","index":0}}"#),
        ),
        (
            "roles can have other names, and are written in a fixed order",
            json!(renamed),
            json!([task_of("e", 1), task_of("c", 1), task_of("w", 1), fixed]),
            ("e", 0),
            Some(
                r#"{"cluster":{"ps":["h.s:7","h.s:7"],"worker":["train-w-0.train:7"],"chief":["train-c-0.train:7"],"evaluator":["train-e-0.train:7"]},"task":{"type":"evaluator","index":0}}"#,
            ),
        ),
        (
            "a role without pods is left out",
            json!([]),
            json!([task_of("ps", 0), task_of("worker", 1)]),
            ("worker", 0),
            Some(
                r#"{"cluster":{"worker":["train-worker-0.train:2222"]},"task":{"type":"worker","index":0}}"#,
            ),
        ),
    ];
    for (name, arguments, tasks, (task, index), expected) in cases {
        let job = job(json!({"tensorflow": arguments}), tasks);
        let pod = pod(&job, task, index).expect("a pod");
        assert_eq!(variable(&pod, "TF_CONFIG").as_deref(), expected, "{name}");
    }
}

#[test]
fn pytorch_counts_ranks_over_masters_then_workers() {
    // Masters, workers, the pod, its rank and the size of the world.
    let cases = [
        ((1, 2), ("master", 0), Some("0"), Some("3")),
        ((1, 2), ("worker", 1), Some("2"), Some("3")),
        ((2, 2), ("master", 1), Some("1"), Some("4")),
        ((2, 2), ("worker", 0), Some("2"), Some("4")),
        ((1, 0), ("other", 0), None, Some("1")),
    ];
    for ((masters, workers), (task, index), rank, world) in cases {
        let tasks = json!([
            task_of("master", masters),
            task_of("worker", workers),
            task_of("other", 1)
        ]);
        let pod = pod(&job(json!({"pytorch": []}), tasks), task, index).expect("a pod");
        let name = format!("{masters} masters, {workers} workers, {task} {index}");
        assert_eq!(variable(&pod, "RANK").as_deref(), rank, "{name}");
        assert_eq!(variable(&pod, "WORLD_SIZE").as_deref(), world, "{name}");
        assert_eq!(
            variable(&pod, "MASTER_ADDR").as_deref(),
            Some("train-master-0.train"),
            "{name}"
        );
    }
}

#[test]
fn pytorch_without_a_master_adds_nothing() {
    let job = job(json!({"pytorch": ["--master=m"]}), json!([task_of("worker", 2)]));
    let bare = Value::Object(bare_pod(&job, &job.spec.tasks[0], 0));
    assert_eq!(pod(&job, "worker", 0), Ok(bare));
}

#[test]
fn mpi_lists_the_workers_for_the_master() {
    let fixed =
        json!({"name": "worker", "replicas": 3, "template": {"spec": {"hostname": "w", "containers": [{}]}}});
    let cases = [
        (
            "the master",
            json!([task_of("master", 1), task_of("worker", 2)]),
            "master",
            Some("train-worker-0.train,train-worker-1.train"),
        ),
        (
            "a worker",
            json!([task_of("master", 1), task_of("worker", 2)]),
            "worker",
            None,
        ),
        (
            "no worker is running",
            json!([task_of("master", 1), task_of("worker", 0)]),
            "master",
            Some(""),
        ),
        (
            "workers with one name",
            json!([task_of("master", 1), fixed]),
            "master",
            Some("w.train"),
        ),
    ];
    for (name, tasks, task, expected) in cases {
        let job = job(json!({"mpi": []}), tasks);
        let pod = pod(&job, task, 0).expect("a pod");
        assert_eq!(variable(&pod, "MPI_HOST").as_deref(), expected, "{name}");
        assert_eq!(
            pod["spec"]["containers"][0]["ports"][0]["containerPort"], 22,
            "{name}"
        );
    }
    let alone = job(json!({"mpi": []}), json!([task_of("master", 1)]));
    let bare = Value::Object(bare_pod(&alone, &alone.spec.tasks[0], 0));
    assert_eq!(
        pod(&alone, "master", 0),
        Ok(bare),
        "without workers nothing is added to the master"
    );
}

#[test]
fn ray_needs_a_head() {
    let job = job(json!({"ray": ["--head=boss"]}), json!([task_of("worker", 1)]));
    let message = "job train doesn't have head task boss";
    assert_eq!(pod(&job, "worker", 0).expect_err("no head").to_string(), message);
    assert_eq!(writes(&job, &[]).expect_err("no head").to_string(), message);
}

#[test]
fn ray_leaves_other_tasks_and_containers_alone() {
    let head = json!({"name": "head", "replicas": 1, "template": {"spec": {"containers": [
        {"name": "log", "command": ["tail"]}, {"name": "head", "command": ["old"]},
    ]}}});
    let job = job(json!({"ray": []}), json!([head, task_of("tool", 1)]));
    let head = pod(&job, "head", 0).expect("a pod");
    assert_eq!(
        head["spec"]["containers"][0],
        json!({"name": "log", "command": ["tail"]})
    );
    assert_eq!(head["spec"]["containers"][1]["command"][0], "sh");
    let bare = Value::Object(bare_pod(&job, &job.spec.tasks[1], 0));
    assert_eq!(pod(&job, "tool", 0), Ok(bare));
}

#[test]
fn the_rank_for_ascend_is_the_first_that_is_known() {
    let with_env = |value: &str| {
        json!({"name": "worker", "replicas": 2, "template": {"spec": {"containers": [
            {"name": "a"}, {"name": "b", "env": [{"name": "RANK", "value": ""}, {"name": "RANK", "value": value}]},
        ]}}})
    };
    let annotated = json!({"name": "worker", "replicas": 1});
    let cases = [
        (
            "the template's variable",
            json!({"hcclrank": []}),
            json!([task_of("master", 1), with_env("9")]),
            ("worker", 1),
            Some("9"),
        ),
        (
            "no value in the variable",
            json!({"hcclrank": []}),
            json!([task_of("master", 1), with_env("")]),
            ("worker", 1),
            Some("2"),
        ),
        (
            "that of pytorch",
            json!({"hcclrank": ["--worker=x"], "pytorch": []}),
            json!([task_of("master", 1), task_of("worker", 2)]),
            ("worker", 1),
            Some("2"),
        ),
        (
            "a master",
            json!({"hcclrank": []}),
            json!([task_of("master", 3)]),
            ("master", 2),
            Some("2"),
        ),
        (
            "a worker behind several masters",
            json!({"hcclrank": []}),
            json!([task_of("master", 3), task_of("worker", 2)]),
            ("worker", 1),
            Some("4"),
        ),
        (
            "a worker without masters",
            json!({"hcclrank": []}),
            json!([annotated]),
            ("worker", 0),
            Some("0"),
        ),
        (
            "another task",
            json!({"hcclrank": []}),
            json!([task_of("log", 1)]),
            ("log", 0),
            None,
        ),
    ];
    for (name, plugins, tasks, (task, index), expected) in cases {
        let pod = pod(&job(plugins, tasks), task, index).expect("a pod");
        assert_eq!(
            pod["metadata"]["annotations"]["hccl/rankIndex"].as_str(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_rank_that_the_user_gave_stays() {
    let job = job(json!({"hcclrank": []}), json!([task_of("master", 1)]));
    let mut pod = bare_pod(&job, &job.spec.tasks[0], 0);
    pod["metadata"]["annotations"] = json!({"hccl/rankIndex": "7"});
    let plugins = Plugins::of(&job).expect("known plugins");
    plugins
        .on_pod_create(&job, &job.spec.tasks[0], 0, &mut pod)
        .expect("a pod");
    assert_eq!(pod["metadata"]["annotations"]["hccl/rankIndex"], "7");
}

#[test]
fn what_the_template_has_is_not_added_again() {
    let task = json!({"name": "master", "replicas": 1, "template": {"spec": {
        "hostname": "h",
        "containers": [{
            "name": "a",
            "env": [
                {"name": "MASTER_PORT", "value": "user"}, {"name": "B", "value": "$(MASTER_PORT)"},
                {"name": "MASTER_PORT", "value": "twice"},
            ],
            "ports": [{"containerPort": 23456, "name": "mine"}, {"containerPort": 1, "name": "mpijob-port"}],
            "volumeMounts": [{"name": "x", "mountPath": "/root/.ssh"}],
        }],
        "initContainers": null,
        "volumes": [{"name": "train-ssh", "emptyDir": {}}],
    }}});
    let job = job(
        json!({"pytorch": [], "ssh": [], "mpi": []}),
        json!([task, task_of("worker", 0)]),
    );
    let pod = pod(&job, "master", 0).expect("a pod");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(
        container["env"].as_array().map(|env| &env[..2]),
        Some(
            &[
                json!({"name": "MASTER_PORT", "value": "23456"}),
                json!({"name": "B", "value": "$(MASTER_PORT)"})
            ][..]
        ),
        "a variable gets its value in its place, once"
    );
    assert_eq!(
        container["ports"],
        json!([
            {"containerPort": 23456, "name": "mine"},
            {"containerPort": 1, "name": "mpijob-port"},
            {"containerPort": 22, "protocol": "TCP"},
        ]),
        "a number or a name is not used twice"
    );
    assert_eq!(
        container["volumeMounts"],
        json!([{"name": "x", "mountPath": "/root/.ssh"}]),
        "a path has one mount"
    );
    assert_eq!(
        pod["spec"]["volumes"],
        json!([{"name": "train-ssh", "emptyDir": {}}])
    );
}

#[test]
fn a_job_without_plugins_changes_nothing() {
    let job = job(json!({}), json!([task_of("a", 1)]));
    let bare = Value::Object(bare_pod(&job, &job.spec.tasks[0], 0));
    assert_eq!(pod(&job, "a", 0), Ok(bare));
    assert_eq!(writes(&job, &[]), Ok(Vec::new()));
}

#[test]
fn more_hosts_than_fit_are_an_error_that_names_the_place() {
    let tasks = json!([task_of("master", 1), task_of("worker", i32::MAX)]);
    let cases = [("tensorflow", "TF_CONFIG"), ("mpi", "MPI_HOST")];
    for (plugin, what) in cases {
        let error = pod(&job(json!({plugin: []}), tasks.clone()), "master", 0).expect_err("too many");
        assert_eq!(
            error.to_string(),
            format!(
                "{what} of job ml/train would list more hosts than fit into 1048576 bytes; use fewer replicas or shorter names"
            )
        );
    }
    for (plugin, what) in [("svc", "ConfigMap train-svc"), ("ssh", "Secret train-ssh")] {
        let error = writes(&job(json!({plugin: []}), tasks.clone()), &[]).expect_err("too many");
        assert_eq!(
            error.to_string(),
            format!(
                "{what} of job ml/train would list more hosts than fit into 1048576 bytes; use fewer replicas or shorter names"
            )
        );
    }
    // Each alone would fit.
    let several: Vec<_> = (0..3).map(|n| task_of(&format!("t{n}"), 10_000)).collect();
    writes(&job(json!({"svc": []}), json!(several)), &[]).expect_err("too many together");
}
