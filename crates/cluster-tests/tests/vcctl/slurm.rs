//! The Slurm-like tools.

use crate::transcript::{Transcript, tool};
use crate::world;
use insta::assert_snapshot;
use volcano_cluster_tests::cluster;
use volcano_testcluster::objects;

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_do_as_the_commands_do() {
    let stage = world::set().await;
    let mut script = Transcript::of(&stage);
    script.run("vsub -N NS -n quick -r 2 -c 'sh -c \"echo a b\"'");
    script.run("vsub -N NS");
    script.run("vsub -N NS -n x -c 'echo \"'");
    script.run("vjobs -N NS");
    script.run("vjobs --all-namespaces -S other");
    script.run("vjobs -N NS --selector nothing");
    script.run("vjobs -N nowhere");
    script.run("vjobs -N NS -n train");
    script.run("vjobs -N NS -n nobody");
    script.run("vqueues");
    script.run("vqueues -n research");
    script.run("vqueues -n nowhere");
    script.run("vsuspend -N NS -n train");
    script.run("vsuspend -N NS");
    script.run("vresume -N NS -n train");
    script.run("vresume");
    script.run("vcancel -N NS -n quick");
    script.run("vcancel -N NS -n quick");
    script.run("vcancel");
    script.run("vcancel --what");
    assert_snapshot!(script.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn vsub_takes_its_defaults_from_the_environment() {
    let stage = world::set().await;
    let run = |line: &str| {
        let output = tool(line, &stage.namespace, &cluster().kubeconfig_path())
            .env("VOLCANO_DEFAULT_IMAGE", "mine:1")
            .env("VOLCANO_SCHEDULER_NAME", "")
            .env("VOLCANO_DEFAULT_JOB_NAMESPACE", &stage.namespace)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run("vsub -n by-variable -c 'sleep 5'");
    run("vsub -n by-flag -i other:2");
    let container =
        |job: serde_json::Value| job["spec"]["tasks"][0]["template"]["spec"]["containers"][0].clone();
    let job = objects::get(&stage.client, &stage.job_path("by-variable"))
        .await
        .unwrap();
    assert_eq!(
        job["spec"]["schedulerName"], "volcano",
        "an empty variable is none"
    );
    let main = container(job);
    assert_eq!(main["image"], "mine:1");
    assert_eq!(main["command"], serde_json::json!(["sleep", "5"]));
    let job = objects::get(&stage.client, &stage.job_path("by-flag"))
        .await
        .unwrap();
    assert_eq!(container(job)["image"], "other:2");
}
