//! What holds for any job.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Names that mean something to some plugin, and some that do not.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("master".to_owned()),
        Just("worker".to_owned()),
        Just("head".to_owned()),
        Just("ps".to_owned()),
        Just(String::new()),
        "[a-z]([a-z0-9-]{0,8}[a-z0-9])?",
    ]
}

fn argument() -> impl Strategy<Value = String> {
    let flags = AVAILABLE.iter().flat_map(|(_, flags, _)| *flags);
    let names: Vec<_> = flags.map(|flag| flag.name().to_owned()).collect();
    let value = prop_oneof![
        name(),
        (-1..70_000i32).prop_map(|n| n.to_string()),
        Just("true".to_owned())
    ];
    (proptest::sample::select(names), value).prop_map(|(name, value)| format!("--{name}={value}"))
}

/// The arguments of a plugin that it knows.
fn plugins() -> impl Strategy<Value = Value> {
    let names: Vec<_> = AVAILABLE.iter().map(|(name, ..)| *name).collect();
    let arguments = proptest::collection::vec(argument(), 0..3);
    proptest::collection::btree_map(proptest::sample::select(names), arguments, 0..8)
        .prop_map(|map| json!(map))
}

fn container() -> impl Strategy<Value = Value> {
    let env = proptest::collection::vec(
        proptest::sample::select(vec!["RANK", "TF_CONFIG", "VC_TASK_INDEX", "X"]),
        0..3,
    );
    let ports = proptest::collection::vec(proptest::sample::select(vec![22, 6379, 23456, 80]), 0..3);
    (name(), env, ports).prop_map(|(name, env, ports)| {
        let env: Vec<_> = env
            .iter()
            .map(|name| json!({"name": name, "value": "1"}))
            .collect();
        let ports: Vec<_> = ports.iter().map(|port| json!({"containerPort": port})).collect();
        json!({"name": name, "env": env, "ports": ports})
    })
}

fn task() -> impl Strategy<Value = Value> {
    let containers = || proptest::collection::vec(container(), 0..3);
    let text = || prop_oneof![Just(Value::Null), Just(json!("")), name().prop_map(Value::from)];
    let template = (containers(), containers(), text(), text());
    (name(), -1..4i32, template).prop_map(|(name, replicas, (containers, init, hostname, subdomain))| {
        json!({"name": name, "replicas": replicas, "template": {"spec": {
            "containers": containers, "initContainers": init, "hostname": hostname, "subdomain": subdomain,
        }}})
    })
}

prop_compose! {
    fn any_job()(plugins in plugins(), tasks in proptest::collection::vec(task(), 1..4)) -> Job {
        job(plugins, json!(tasks))
    }
}

/// No entry of a list has the same value under a key as another.
fn assert_unique(container: &Value, list: &str, key: &str) {
    let entries = container[list].as_array().into_iter().flatten();
    let mut seen = BTreeSet::new();
    for value in entries.map(|entry| entry[key].to_string()) {
        assert!(
            seen.insert(value.clone()),
            "{list} has {value} twice: {container}"
        );
    }
}

proptest! {
    #[test]
    fn a_second_round_changes_nothing(job in any_job(), index in 0..3i32) {
        let plugins = Plugins::of(&job).expect("known plugins");
        for task in &job.spec.tasks {
            let mut pod = bare_pod(&job, task, index);
            if plugins.on_pod_create(&job, task, index, &mut pod).is_err() {
                continue;
            }
            let once = pod.clone();
            plugins.on_pod_create(&job, task, index, &mut pod).expect("as the first time");
            prop_assert_eq!(&pod, &once);
        }
    }

    #[test]
    fn nothing_that_a_plugin_adds_is_there_twice(job in any_job()) {
        let plugins = Plugins::of(&job).expect("known plugins");
        for task in &job.spec.tasks {
            let mut pod = bare_pod(&job, task, 0);
            if plugins.on_pod_create(&job, task, 0, &mut pod).is_err() {
                continue;
            }
            let spec = &pod["spec"];
            assert_unique(spec, "volumes", "name");
            for list in ["containers", "initContainers"] {
                for container in spec[list].as_array().into_iter().flatten() {
                    assert_unique(container, "volumeMounts", "mountPath");
                    let added = container["env"].as_array().into_iter().flatten();
                    let added = added.filter(|variable| variable["name"] == "VC_TASK_INDEX");
                    if job.spec.plugins.contains_key("env") {
                        prop_assert_eq!(added.count(), 1);
                    }
                }
            }
        }
    }

    #[test]
    fn objects_settle_after_one_round(job in any_job()) {
        let plugins = Plugins::of(&job).expect("known plugins");
        if let Ok(first) = plugins.objects(&job, &Observed::default()) {
            let there = observed(&stored(&first));
            prop_assert_eq!(plugins.objects(&job, &there), Ok(Vec::new()));
            // All but the keys can be taken away again.
            let keys = usize::from(job.spec.plugins.contains_key("ssh"));
            prop_assert_eq!(plugins.removals(&job, &there).len(), first.len() - keys);
        }
    }

    #[test]
    fn pods_of_any_shape_are_taken(job in any_job(), spec in any_json()) {
        let plugins = Plugins::of(&job).expect("known plugins");
        let mut pod = Map::from_iter([("spec".to_owned(), spec)]);
        // Whether it is an error does not matter; the pod comes from a template that the API server has checked.
        let _ = plugins.on_pod_create(&job, &job.spec.tasks[0], 0, &mut pod);
        prop_assert!(pod.contains_key("spec"));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let keys = proptest::sample::select(vec![
            "containers",
            "initContainers",
            "env",
            "name",
            "ports",
            "volumes",
        ]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(keys, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}
