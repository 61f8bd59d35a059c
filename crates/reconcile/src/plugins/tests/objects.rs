//! Objects beside the pods: made once, kept in line, taken away.

use super::*;

fn all_plugins(workers: i32) -> Job {
    let plugins = json!({"svc": [], "ssh": [], "ray": []});
    job(plugins, json!([task_of("head", 1), task_of("worker", workers)]))
}

#[test]
fn all_objects_of_a_job_can_be_listed() {
    let job = all_plugins(1);
    let made = Plugins::of(&job).expect("known plugins").makes(&job);
    let made: Vec<_> = made.iter().map(object).collect();
    assert_eq!(
        made,
        [
            "Service ml/train-head-svc (any)",
            "ConfigMap ml/train-svc (any)",
            "Service ml/train (any)",
            "NetworkPolicy ml/train (any)",
            "Secret ml/train-ssh (any)",
        ]
    );
}

#[test]
fn objects_that_are_as_they_should_are_not_written() {
    let job = all_plugins(1);
    let first = writes(&job, &[]).expect("writes");
    assert_eq!(first.len(), 5);
    assert_eq!(writes(&job, &stored(&first)), Ok(Vec::new()));
}

#[test]
fn a_scaled_job_has_its_host_lists_rewritten_and_its_keys_kept() {
    let there = stored(&writes(&all_plugins(1), &[]).expect("writes"));
    insta::assert_snapshot!(show(&writes(&all_plugins(2), &there).expect("writes")));
}

#[test]
fn an_entry_that_should_not_be_there_goes() {
    let job = job(
        json!({"svc": ["--disable-network-policy"]}),
        json!([task_of("a", 1)]),
    );
    let mut there = stored(&writes(&job, &[]).expect("writes"));
    there[0]["data"]["old.host"] = "gone".into();
    assert_eq!(
        show(&writes(&job, &there).expect("writes")),
        "patch ConfigMap ml/train-svc (uid-0)\n{\n  \"data\": {\n    \"old.host\": null\n  }\n}\n"
    );
}

#[test]
fn an_object_that_lost_its_data_gets_it_again() {
    let job = job(json!({"ssh": []}), json!([]));
    let mut there = stored(&writes(&job, &[]).expect("writes"));
    there[0]["data"] = Value::Null;
    let [Write::Patch { patch, .. }] = &writes(&job, &there).expect("writes")[..] else {
        panic!("one patch is expected");
    };
    let keys: Vec<_> = patch["data"].as_object().expect("data").keys().collect();
    assert_eq!(keys, ["config"]);
}

#[test]
fn objects_of_users_are_used_and_objects_of_others_are_an_error() {
    let job = all_plugins(1);
    let mut there = stored(&writes(&job, &[]).expect("writes"));
    for object in &mut there {
        object["metadata"]["ownerReferences"] = Value::Null;
    }
    there[1]["data"] = json!({"mine": "1"});
    let patches = writes(&job, &there).expect("writes");
    let [Write::Patch { patch, .. }] = &patches[..] else {
        panic!("one patch is expected: {patches:?}");
    };
    let data = patch["data"].as_object().expect("data");
    assert!(
        data.contains_key("VC_HEAD_HOSTS") && !data.contains_key("mine"),
        "{data:?}"
    );
    assert_eq!(
        Plugins::of(&job).map(|plugins| plugins.removals(&job, &observed(&there))),
        Ok(Vec::new())
    );

    there[0]["metadata"]["ownerReferences"] =
        json!([{"kind": "Job", "name": "train", "uid": "earlier", "controller": true}]);
    assert_eq!(
        writes(&job, &there).expect_err("another owner").to_string(),
        "Service train-head-svc belongs to the Job train, not to the job; it is made once that is gone"
    );
}

#[test]
fn what_a_finished_job_needs_no_longer_is_deleted_and_its_keys_stay() {
    let job = all_plugins(1);
    let there = stored(&writes(&job, &[]).expect("writes"));
    let plugins = Plugins::of(&job).expect("known plugins");
    assert_eq!(
        show(&plugins.removals(&job, &observed(&there))),
        "delete Service ml/train-head-svc (uid-0)\n\
         delete ConfigMap ml/train-svc (uid-1)\n\
         delete Service ml/train (uid-2)\n\
         delete NetworkPolicy ml/train (uid-3)\n"
    );
    assert_eq!(
        plugins.removals(&job, &Observed::default()),
        Vec::new(),
        "nothing is there"
    );
}

#[test]
fn private_keys_are_not_kept_in_memory() {
    let mut secret = Observed::default();
    let data = json!({"id_rsa": "PRIVATE", "config": "c"});
    secret.insert(
        kinds::SECRET,
        &json!({"metadata": {"name": "train-ssh"}, "data": data}),
    );
    assert!(!format!("{secret:?}").contains("PRIVATE"), "{secret:?}");
}

#[test]
fn the_service_of_ray_finds_ports_that_have_other_names() {
    let head = |ports: Value| json!({"name": "head", "replicas": 1, "template": {"spec": {"containers": [{"name": "head", "ports": ports}]}}});
    // Ports of the head's container, and what the Service sends the first port to.
    let cases = [
        ("the name that is added", json!([]), json!("gcs")),
        (
            "the template's name",
            json!([{"containerPort": 6379, "name": "redis"}]),
            json!("redis"),
        ),
        (
            "the number, as there is no name",
            json!([{"containerPort": 6379}]),
            json!(6379),
        ),
        (
            "the number, as the name is taken",
            json!([{"containerPort": 1, "name": "gcs"}]),
            json!(6379),
        ),
    ];
    for (name, ports, expected) in cases {
        let job = job(json!({"ray": []}), json!([head(ports)]));
        let services = stored(&writes(&job, &[]).expect("writes"));
        assert_eq!(services[0]["spec"]["ports"][0]["targetPort"], expected, "{name}");
    }
}
