//! Every manifest is what the API takes, to the last field, and what admission lets in.

use super::taken::Api;
use super::{entries, examples, folders, name, read};
use serde_json::Value;
use std::path::PathBuf;
use volcano_engine::config::{SchedulerConf, catalog};
use volcano_engine::{actions, plugins};

fn manifests(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut found = entries(folder);
    found.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    // Queues are there before what is submitted to them.
    found.sort_by_key(|path| name(path) != "queues.yaml");
    found
}

#[tokio::test]
async fn the_api_takes_every_manifest() {
    let mut faults = Vec::new();
    let mut objects = 0;
    for folder in [examples()].into_iter().chain(folders()) {
        let mut api = Api::new().await;
        for file in manifests(&folder) {
            match api.take_all(&read(&file)).await {
                Ok(taken) => objects += taken.len(),
                Err(why) => faults.push(format!("{}: {why}", file.display())),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(objects > 60, "only {objects} objects were found");
}

#[tokio::test]
async fn what_the_api_does_not_know_is_refused() {
    let good = read(&examples().join("hello-gang.yaml"));
    for (was, wrong, told) in [
        (
            "minAvailable: 4",
            "minAvailabel: 4",
            "unknown field \"spec.minAvailabel\"",
        ),
        (
            "minAvailable: 4",
            "minAvailable: 5",
            "should not be greater than total replicas",
        ),
        ("image: busybox:1.36", "imagee: busybox:1.36", "unknown field"),
        (
            "    env: []",
            "    environment: []",
            "unable to find job plugin: environment",
        ),
        (
            "restartPolicy: OnFailure",
            "restartPolicy: Sometimes",
            "restartPolicy",
        ),
    ] {
        let bad = good.replacen(was, wrong, 1);
        let refused = Api::new().await.take_all(&bad).await.unwrap_err();
        assert!(refused.contains(told), "{wrong}: {refused}");
    }
}

/// All pod templates and pods of an object.
fn pods(object: &Value) -> Vec<&Value> {
    match object["kind"].as_str().unwrap_or_default() {
        "Pod" => vec![object],
        "Job" => object["spec"]["tasks"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|task| &task["template"])
            .collect(),
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn every_container_has_an_image_and_asks_for_resources() {
    for folder in [examples()].into_iter().chain(folders()) {
        let mut api = Api::new().await;
        for file in manifests(&folder) {
            for object in api.take_all(&read(&file)).await.unwrap() {
                for container in pods(&object)
                    .iter()
                    .flat_map(|pod| pod["spec"]["containers"].as_array().unwrap())
                {
                    let requests = &container["resources"]["requests"];
                    assert!(
                        container["image"].is_string() && requests["cpu"].is_string(),
                        "{}: {container}",
                        file.display()
                    );
                }
            }
        }
    }
}

#[test]
fn every_scheduler_configuration_is_valid_and_all_of_it_is_there() {
    let mut found = 0;
    for file in folders().iter().flat_map(|folder| entries(folder)) {
        if file.extension().is_some_and(|extension| extension == "conf") {
            let conf = SchedulerConf::parse(&read(&file), catalog::PLANNED_PLUGINS, catalog::ACTIONS);
            let conf = conf.unwrap_or_else(|errors| panic!("{}: {errors}", file.display()));
            for action in &conf.actions {
                let is_there = actions::AVAILABLE.contains(&action.as_str());
                assert!(is_there, "{}: {action}", file.display());
            }
            for plugin in conf.tiers.iter().flat_map(|tier| &tier.plugins) {
                let is_there = plugins::AVAILABLE
                    .iter()
                    .any(|(name, _)| *name == plugin.name.as_str());
                assert!(is_there, "{}: {}", file.display(), plugin.name);
            }
            found += 1;
        }
    }
    assert!(found > 2, "only {found} were found");
}
