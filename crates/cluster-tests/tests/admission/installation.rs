//! The manifests: accepted by the API server, and roles that are just enough.

use crate::Scene;
use serde_json::json;
use volcano_cluster_tests::acts::until;
use volcano_cluster_tests::cluster;
use volcano_cluster_tests::install::{self, NAMESPACE};
use volcano_cluster_tests::scheduler::Scheduler;
use volcano_testcluster::objects::{self, Node, Pod, Progress};

#[tokio::test]
async fn everything_is_installed_under_the_names_that_others_refer_to() {
    let scene = Scene::set().await;
    for (api_version, namespace, plural, name) in [
        ("apps/v1", NAMESPACE, "deployments", "volcano-scheduler"),
        ("apps/v1", NAMESPACE, "deployments", "volcano-controllers"),
        ("apps/v1", NAMESPACE, "deployments", "volcano-admission"),
        ("v1", NAMESPACE, "services", "volcano-admission-service"),
        ("v1", NAMESPACE, "services", "volcano-scheduler-service"),
        ("v1", NAMESPACE, "services", "volcano-controllers-service"),
        ("v1", NAMESPACE, "configmaps", "volcano-scheduler-configmap"),
        (
            "rbac.authorization.k8s.io/v1",
            "",
            "clusterroles",
            "vcjob-editor-role",
        ),
        (
            "apiextensions.k8s.io/v1",
            "",
            "customresourcedefinitions",
            "jobs.batch.volcano.sh",
        ),
    ] {
        let path = objects::path(api_version, namespace, plural, name);
        assert!(
            objects::try_get(&scene.client, &path).await.unwrap().is_some(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn accounts_may_not_do_more_than_their_programs() {
    let _scene = Scene::set().await;
    for (part, verb, resource, namespace) in [
        ("admission", "list", "secrets", NAMESPACE),
        ("admission", "get", "secrets/other", NAMESPACE),
        ("admission", "get", "secrets/volcano-admission-secret", "default"),
        ("admission", "update", "mutatingwebhookconfigurations/other", ""),
        ("admission", "create", "validatingwebhookconfigurations", ""),
        ("scheduler", "get", "secrets", "default"),
        ("scheduler", "create", "pods", "default"),
        ("scheduler", "delete", "queues", ""),
        ("scheduler", "get", "leases", "default"),
        ("controllers", "list", "secrets", "default"),
        ("controllers", "create", "pods --subresource=binding", "default"),
    ] {
        let who = format!("--as=system:serviceaccount:{NAMESPACE}:volcano-{part}");
        let mut arguments = vec!["auth", "can-i", verb, who.as_str()];
        arguments.extend(resource.split(' '));
        if !namespace.is_empty() {
            arguments.extend(["-n", namespace]);
        }
        // kubectl fails when the answer is no.
        let answer = cluster().kubectl(&arguments);
        assert!(answer.is_err(), "{part} may {verb} {resource}: {answer:?}");
    }
    let who = format!("--as=system:serviceaccount:{NAMESPACE}:volcano-scheduler");
    let answer = cluster().kubectl(&["auth", "can-i", "create", "pods", "--subresource=binding", &who]);
    assert_eq!(answer.unwrap(), "yes\n", "the question is understood");
}

#[tokio::test]
async fn the_scheduler_schedules_a_gang_with_its_own_account() {
    let scene = Scene::set().await;
    let kubeconfig = install::kubeconfig("scheduler").await.unwrap();
    let node = format!("{}-n", scene.namespace);
    objects::create_node(&scene.client, &Node::new(&node).cpu("4").memory("8Gi"))
        .await
        .unwrap();
    let own = format!("--lock-object-namespace={NAMESPACE}");
    let scheduler = Scheduler::start(&kubeconfig, cluster().data_directory(), &[&own]).unwrap();
    objects::create_pod_group(&scene.client, &scene.namespace, "gang", 3, "")
        .await
        .unwrap();
    for at in 0..3 {
        let pod = Pod::new(&scene.namespace, &format!("gang-{at}"))
            .group("gang")
            .cpu("1");
        objects::create_pod(&scene.client, &pod).await.unwrap();
    }
    until("the gang is on the node", || async {
        let nodes = objects::pod_nodes(&scene.client, &scene.namespace).await?;
        let bound = nodes
            .values()
            .filter(|bound| bound.as_deref() == Some(&node))
            .count();
        Ok(objects::check(bound == 3, || format!("{nodes:?}")))
    })
    .await;
    let group = objects::path(
        "scheduling.volcano.sh/v1beta1",
        &scene.namespace,
        "podgroups",
        "gang",
    );
    until("the status of the group is written", || async {
        let group = objects::get(&scene.client, &group).await?;
        Ok(match group["status"]["phase"] == json!("Running") {
            true => Progress::Done(()),
            false => Progress::Waiting(group["status"].to_string()),
        })
    })
    .await;
    assert!(scheduler.leads(), "with the lease that the role names");
    let log = scheduler.log();
    assert!(
        !log.contains("forbidden") && !log.contains("not allowed"),
        "{log}"
    );
    scheduler.stop().unwrap();
    objects::delete_now(&scene.client, &objects::path("v1", "", "nodes", &node))
        .await
        .unwrap();
}
