//! `vcctl job`.

use crate::transcript::Transcript;
use crate::world;
use insta::assert_snapshot;
use serde_json::Value;
use volcano_cluster_tests::stage::Stage;
use volcano_testcluster::objects;

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vcctl job list --namespace NS");
    script.run("vcctl job list --all_namespaces");
    script.run("vcctl job list -A -o wide");
    script.run("vcctl job list -n NS --queue research");
    script.run("vcctl job list -n NS -S other");
    script.run("vcctl job list -n NS --selector rai");
    script.run("vcctl job list -n NS -l team=vision -o name");
    script.run("vcctl job list -n NS -q nowhere");
    script.run("vcctl job list -n nowhere some words that are ignored");
    script.run("vcctl job list -n nowhere -o json");
    script.run("vcctl job list -n nowhere -o name");
    script.run("vcctl job list -n NS --selector broken -o yaml");
    assert_snapshot!(script.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_viewed() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vcctl job view -n NS -N train");
    script.run("vcctl job view -n NS -N train -o wide");
    script.run("vcctl job view -n NS -N train -o name");
    script.run("vcctl job view -n NS -N broken -o json");
    script.run("vcctl job view -n NS -N nobody");
    script.run("vcctl job view -n NS train");
    assert_snapshot!(script.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_run_suspended_resumed_and_deleted() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vcctl job run -n NS --name quick --replicas 2 --min 2 -R cpu=100m -L cpu=1,memory=1Gi");
    script.run("vcctl job run -n NS --name quick");
    script.run("vcctl job run -n NS");
    script.run("vcctl job run -n NS -N x -R cpu");
    script.run("vcctl job run -n NS -N x --requests cpu=many");
    script.run("vcctl job run -n NS -N x --requests cpu=100K");
    script.run("vcctl job run -n NS -f job.json");
    script.run("vcctl job run -n NS -f nowhere.yaml");
    let job = stage
        .file("job.yaml", "metadata: {name: from-file}\nspec: {minAvailable: 1, tasks: [{replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}\n")
        .unwrap();
    script.run_file("vcctl job run -n NS -f FILE", &job);
    script.run("vcctl job list -n NS --selector i -o name");
    script.run("vcctl job suspend -n NS -N train");
    script.run("vcctl job resume -n NS -N train");
    script.run("vcctl job suspend -n NS");
    script.run("vcctl job resume -n NS");
    script.run("vcctl job suspend -n NS -N nobody");
    script.run("vcctl job delete -n NS -N quick");
    script.run("vcctl job delete -n NS -N quick");
    script.run("vcctl job delete -n NS");
    script.run("vcctl job logs -n NS");
    script.run("vcctl job logs -n NS nobody");
    script.run("vcctl job logs -n NS broken");
    script.run("vcctl job logs -n NS train -c typo");
    assert_snapshot!(script.text());

    let quick = objects::try_get(&stage.client, &stage.job_path("quick"))
        .await
        .unwrap();
    assert!(quick.is_none(), "it was deleted");
    assert_eq!(
        orders(&stage).await,
        ["AbortJob train-abortjob-", "ResumeJob train-resumejob-"]
    );
}

/// The Commands that were given: action, and the name without what the server added. Each has its target as owner.
async fn orders(stage: &Stage) -> Vec<String> {
    let path = stage.path("bus.volcano.sh/v1alpha1", "commands", "");
    let mut orders = Vec::new();
    for command in objects::list(&stage.client, &path).await.unwrap() {
        let owner = &command["metadata"]["ownerReferences"][0];
        assert_eq!(*owner, command["target"]);
        assert_eq!(owner["controller"], true);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        orders.push(format!(
            "{} {}",
            text(&command["action"]),
            text(&command["metadata"]["generateName"])
        ));
    }
    orders.sort();
    orders
}
