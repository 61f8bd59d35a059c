//! The configuration file: read again when it changes, and never worse than the last good one.

use crate::{stage, with_actions};
use serde_json::Value;
use std::path::Path;
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects::{self, check};

/// An action that nobody has: what is wrong has to be named.
const WRONG: &str = "actions: \"enqueue, alocate\"\n";
const RELOADS: &str = "volcano_config_reload_total";
const LAST: &str = "volcano_config_last_reload_successful";

fn conf_flag(path: &Path) -> String {
    format!("--scheduler-conf={}", path.display())
}

async fn wait_metric(scheduler: &Scheduler, series: &str, value: f64) {
    until(&format!("{series} is {value}"), || async {
        let seen = scheduler.metric(series)?;
        Ok(check(seen == value, || seen))
    })
    .await;
}

/// The lines of a log that are errors about the configuration.
fn errors(scheduler: &Scheduler) -> Vec<String> {
    let log = scheduler.log();
    let lines = log.lines().filter(|line| line.contains("ERROR"));
    let lines = lines.filter(|line| line.contains("configuration"));
    lines.map(str::to_owned).collect()
}

/// A pod that asks for nothing, which only backfill places.
async fn best_effort(stage: &Stage) {
    let group = objects::pod_group(&stage.namespace, "little", 1, "");
    stage.group(&group).await;
    stage.members("little", 1, |pod| pod).await;
}

#[tokio::test]
async fn a_new_configuration_changes_what_is_decided() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let conf = stage
        .file("reload.conf", &with_actions("enqueue, allocate"))
        .unwrap();
    let scheduler = stage.scheduler(&[&conf_flag(&conf)]).unwrap();
    best_effort(&stage).await;
    stage.gang("later", 1, 1, "1").await;
    stage.wait_bound("later", 1).await;
    assert!(stage.bound("little").await.is_empty(), "nobody backfills");
    std::fs::write(&conf, with_actions("enqueue, allocate, backfill")).unwrap();
    stage.wait_bound("little", 1).await;
    wait_metric(&scheduler, &format!("{RELOADS}{{result=\"success\""), 1.0).await;
    wait_metric(&scheduler, LAST, 1.0).await;
}

#[tokio::test]
async fn a_wrong_configuration_leaves_the_last_good_one_in_force_and_is_told() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let conf = stage
        .file("reload.conf", &with_actions("enqueue, allocate, backfill"))
        .unwrap();
    let scheduler = stage.scheduler(&[&conf_flag(&conf)]).unwrap();
    std::fs::write(&conf, WRONG).unwrap();
    wait_metric(&scheduler, &format!("{RELOADS}{{result=\"failure\""), 1.0).await;
    wait_metric(&scheduler, LAST, 0.0).await;
    best_effort(&stage).await;
    stage.wait_bound("little", 1).await;
    // Schedulers of other tests tell about their files at the same place.
    let file = conf.to_string_lossy();
    let (kind, message) = stage
        .wait_event_saying("default", "InvalidConfiguration", &file)
        .await;
    assert_eq!(kind, "Warning");
    assert!(
        message.contains("alocate") && message.contains("the last good one stays"),
        "{message}"
    );
    let errors = errors(&scheduler);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].contains("alocate"), "{}", errors[0]);
    std::fs::write(&conf, with_actions("enqueue, allocate")).unwrap();
    wait_metric(&scheduler, LAST, 1.0).await;
}

#[tokio::test]
async fn a_configuration_may_come_later() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let conf = stage.file("late.conf", "").unwrap();
    std::fs::remove_file(&conf).unwrap();
    let scheduler = stage.scheduler(&[&conf_flag(&conf)]).unwrap();
    best_effort(&stage).await;
    stage.wait_bound("little", 1).await; // As the built-in default does.
    let actions = "enqueue, allocate, preempt";
    std::fs::write(&conf, with_actions(actions)).unwrap();
    wait_metric(&scheduler, LAST, 1.0).await;
    until("the file is in use", || async {
        let (_, snapshot) = scheduler.get("/debug/snapshot")?;
        let snapshot: Value = serde_json::from_str(&snapshot)?;
        let conf = snapshot["conf"].as_str().unwrap_or_default();
        Ok(check(conf.contains(actions), || conf))
    })
    .await;
}

#[tokio::test]
async fn a_start_with_a_wrong_configuration_uses_the_default_and_says_so() {
    let stage = stage().await;
    stage.node("n1", "4").await;
    let conf = stage.file("wrong.conf", WRONG).unwrap();
    let scheduler = stage.scheduler(&[&conf_flag(&conf)]).unwrap();
    let errors = errors(&scheduler);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    for part in ["the built-in default is used", "alocate", "wrong.conf"] {
        assert!(errors[0].contains(part), "{part}: {}", errors[0]);
    }
    best_effort(&stage).await;
    stage.wait_bound("little", 1).await;
    wait_metric(&scheduler, LAST, 0.0).await;
}

#[tokio::test]
async fn without_the_default_a_wrong_configuration_ends_the_start_with_one_line() {
    let stage = stage().await;
    let missing = stage.file("missing.conf", "").unwrap();
    std::fs::remove_file(&missing).unwrap();
    let wrong = stage.file("wrong.conf", WRONG).unwrap();
    let cases = [
        (Some(missing), "missing.conf"),
        (Some(wrong), "alocate"),
        (None, "--scheduler-conf is not given"),
    ];
    for (conf, expected) in cases {
        let conf = conf.as_deref().map(conf_flag);
        let mut flags = vec!["--disable-default-scheduler-config"];
        flags.extend(conf.as_deref());
        let folder = cluster().data_directory();
        let mut scheduler = Scheduler::launch(&cluster().kubeconfig_path(), folder, &flags).unwrap();
        let status = scheduler.wait(volcano_cluster_tests::acts::PATIENCE).unwrap();
        let log = scheduler.log();
        assert!(!status.success(), "{expected}: {status}");
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(expected), "{expected}: {log}");
        assert!(log.contains("nothing to fall back to"), "{log}");
    }
}
