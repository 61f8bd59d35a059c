//! Every path, with good and bad manifests.

use crate::{Scene, job, open, pod};
use serde_json::{Value, json};
use volcano_cluster_tests::acts::until;
use volcano_testcluster::objects::{self, Progress};

const SCHEDULING: &str = "scheduling.volcano.sh/v1beta1";

fn queue(name: &str, spec: Value) -> Value {
    json!({"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": name}, "spec": spec})
}

fn group(name: &str, queue: &str) -> Value {
    json!({"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 1, "queue": queue}})
}

#[tokio::test]
async fn jobs_are_filled_in_and_judged() {
    let scene = Scene::set().await;
    let (_manager, _) = scene.manager(&[]).await;
    scene.apply(&job("good")).unwrap();
    let stored = scene.get("batch.volcano.sh/v1alpha1", "jobs", "good").await;
    let spec = &stored["spec"];
    assert_eq!(
        (&spec["queue"], &spec["schedulerName"]),
        (&json!("default"), &json!("volcano"))
    );
    assert_eq!((&spec["minAvailable"], &spec["maxRetry"]), (&json!(2), &json!(3)));
    assert_eq!(spec["tasks"][0]["name"], "default0");

    let validate = "validatejob.volcano.sh";
    let mut bad = job("bad");
    bad["spec"]["queue"] = json!("nowhere");
    bad["spec"]["minAvailable"] = json!(5);
    scene.refused(
        &bad,
        validate,
        "job 'minAvailable' should not be greater than total replicas in tasks; \
         unable to find job queue: queue.scheduling.volcano.sh \"nowhere\" not found;",
    );
    bad = job("bad");
    bad["spec"]["plugins"] = json!({"mpi": []});
    scene.refused(&bad, validate, "The specified mpi master task was not found");
    bad = job("good");
    bad["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = json!("other");
    scene.refused(
        &bad,
        validate,
        "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`",
    );
}

#[tokio::test]
async fn queues_are_filled_in_and_judged() {
    let scene = Scene::set().await;
    let (_manager, _) = scene.manager(&[]).await;
    let name = format!("{}-a", scene.namespace);
    scene
        .apply(&queue(&name, json!({"capability": {"cpu": 4}})))
        .unwrap();
    let stored = scene.get(SCHEDULING, "queues", &name).await;
    assert_eq!(
        (&stored["spec"]["weight"], &stored["spec"]["reclaimable"]),
        (&json!(1), &json!(true))
    );
    let validate = "validatequeue.volcano.sh";
    scene.refused(
        &queue(&name, json!({"capability": {"cpu": 4}, "deserved": {"cpu": 5}})),
        validate,
        "requestBody.spec.deserved.cpu: Invalid value: \"5\": deserved[cpu]=5 must be <= capability[cpu]=4",
    );
    // The queue has to be in the cache before it can be a parent.
    let child = queue(
        &format!("{name}-child"),
        json!({"parent": name, "capability": {"cpu": 8}}),
    );
    let message = format!("queue {name}-child capability[cpu]=8 exceeds its ancestor's capability=4");
    until("the parent is known", || async {
        let said = scene.apply(&child).unwrap_err();
        Ok(match said.contains(&message) {
            true => Progress::Done(()),
            false => Progress::Waiting(said),
        })
    })
    .await;
    let deleted = volcano_cluster_tests::cluster().kubectl(&["delete", "queue", "default"]);
    let said = format!("{:#}", deleted.unwrap_err());
    assert!(said.contains("`default` queue can not be deleted"), "{said}");
}

#[tokio::test]
async fn pod_groups_follow_their_namespace_and_are_judged() {
    let scene = Scene::set().await;
    let team = format!("{}-team", scene.namespace);
    objects::create_queue(&scene.client, &team, 1, &json!({}))
        .await
        .unwrap();
    open(&scene.client, &team).await;
    let namespace = objects::path("v1", "", "namespaces", &scene.namespace);
    let annotations = json!({"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": team}}});
    objects::merge_patch(&scene.client, &namespace, &annotations)
        .await
        .unwrap();
    let (_manager, _) = scene.manager(&[]).await;
    scene.apply(&group("good", "default")).unwrap();
    assert_eq!(
        scene.get(SCHEDULING, "podgroups", "good").await["spec"]["queue"],
        team.as_str()
    );
    scene.refused(
        &group("bad", "nowhere"),
        "validatepodgroup.volcano.sh",
        "unable to find queue: queue.scheduling.volcano.sh \"nowhere\" not found",
    );
}

#[tokio::test]
async fn pods_of_ours_are_judged_and_refusals_recorded() {
    let scene = Scene::set().await;
    let (_manager, _) = scene.manager(&[]).await;
    let key = "volcano.sh/jdb-min-available";
    scene
        .apply(&pod("good", "volcano", &json!({key: "50%"})))
        .unwrap();
    scene
        .apply(&pod("foreign", "default-scheduler", &json!({key: "none"})))
        .unwrap();
    let message =
        format!("invalid value <\"100%\"> for {key}, it must be a valid percentage which between 1% ~ 99%");
    scene.refused(
        &pod("bad", "volcano", &json!({key: "100%"})),
        "validatepod.volcano.sh",
        &message,
    );
    let events = objects::path("v1", &scene.namespace, "events", "");
    until("the refusal is recorded", || async {
        let all = objects::list(&scene.client, &events).await?;
        let found = all.iter().find(|event| event["reason"] == "Admit");
        Ok(match found {
            Some(event) => {
                assert_eq!(
                    (&event["type"], &event["message"]),
                    (&json!("Warning"), &json!(message))
                );
                assert_eq!(event["involvedObject"]["name"], "bad");
                Progress::Done(())
            }
            None => Progress::Waiting(format!("{} events", all.len())),
        })
    })
    .await;
}

#[tokio::test]
async fn job_flows_cron_jobs_and_hyper_nodes_are_judged() {
    let scene = Scene::set().await;
    let (_manager, _) = scene.manager(&[]).await;
    let flow = |name: &str, target: &str| {
        json!({
            "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": name},
            "spec": {"jobRetainPolicy": "retain", "flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": [target]}}]},
        })
    };
    scene.apply(&flow("good", "a")).unwrap();
    let undefined = "jobflow Flow is not DAG: vertex is not defined: c";
    scene.refused(&flow("bad", "c"), "validatejob.volcano.sh", undefined);
    scene.refused(
        &flow("bad", "b"),
        "validatejob.volcano.sh",
        "jobflow Flow is not DAG",
    );

    let cron = |name: &str, schedule: &str, zone: &str| {
        json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": schedule, "timeZone": zone, "jobTemplate": {"spec": job("x")["spec"]}},
        })
    };
    scene
        .apply(&cron("good", "*/5 * * * *", "Europe/Berlin"))
        .unwrap();
    let validate = "validatecronjob.volcano.sh";
    scene.refused(
        &cron("bad", "often", "UTC"),
        validate,
        "schedule is not a valid cron expression",
    );
    scene.refused(
        &cron("bad", "* * * * *", "Mars/Base"),
        validate,
        "invalid timeZone",
    );

    let hyper = |pattern: &str| {
        let selector = json!({"regexMatch": {"pattern": pattern}});
        json!({
            "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
            "metadata": {"name": format!("{}-h", scene.namespace)},
            "spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]},
        })
    };
    let said = scene.apply(&hyper("node-[")).unwrap_err();
    let message = "[].spec.members.selector.regexMatch.pattern: Invalid value: \"node-[\": member regexMatch pattern is invalid: ";
    assert!(said.contains(message), "{said}");
    scene.apply(&hyper("node-[0-9]+")).unwrap();
}

#[tokio::test]
async fn resource_groups_apply_as_their_file_changes() {
    let scene = Scene::set().await;
    let conf = scene.folder.join("admission.conf");
    let groups = |namespace: &str, pool: &str| {
        format!(
            "resourceGroups:\n- resourceGroup: g\n  object: {{key: namespace, value: [{namespace}]}}\n  \
             schedulerName: volcano\n  labels: {{pool: {pool}}}\n"
        )
    };
    std::fs::write(&conf, "# nothing yet\n").unwrap();
    let (manager, _) = scene
        .manager(&[format!("--admission-conf={}", conf.display())])
        .await;
    let path = |name: &str| objects::path("v1", &scene.namespace, "pods", name);
    scene
        .apply(&pod("before", "default-scheduler", &json!({})))
        .unwrap();
    let before = objects::get(&scene.client, &path("before")).await.unwrap();
    assert_eq!(before["spec"]["schedulerName"], "default-scheduler");

    let mut number = 0;
    for (text, pool) in [
        (groups(&scene.namespace, "one"), "one"),
        ("resourceGroups: [{resorceGroup: x}]".to_owned(), "one"), // The last good one stays.
        (groups(&scene.namespace, "two"), "two"),
    ] {
        std::fs::write(&conf, &text).unwrap();
        if pool == "one" && text.contains("resorce") {
            until("the mistake is told", || async {
                let told = manager.log().contains("the last good ones stay");
                Ok(objects::check(told, || "not told"))
            })
            .await;
        }
        number += 1;
        let name = format!("pod-{number}");
        until(&format!("pods go to {pool}"), || async {
            objects::delete_now(&scene.client, &path(&name)).await?;
            scene.apply(&pod(&name, "default-scheduler", &json!({}))).unwrap();
            let pod = objects::get(&scene.client, &path(&name)).await?;
            let got = pod["spec"]["nodeSelector"]["pool"].clone();
            Ok(objects::check(
                got == pool && pod["spec"]["schedulerName"] == "volcano",
                || got,
            ))
        })
        .await;
    }
}
