//! Holds a cluster with one real node and a running pod until its standard input ends: what tests kill, or ask to end,
//! to see what is left. Prints the directory of its data, then the name of its network link.

use std::io::Read as _;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use volcano_testcluster::images::Image;
use volcano_testcluster::objects::{self, Pod, check};
use volcano_testcluster::{Cluster, Options};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cluster = Cluster::start(Options {
        nodes: 1,
        images: vec![Image::Busybox],
        ..Options::default()
    })?;
    run_a_pod(&cluster.client()?).await?;
    println!("{}", cluster.data_directory().display());
    let nodes = cluster.nodes().context("it was started with a node")?;
    println!("{}", nodes.network().cable());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    drop(cluster);
    Ok(())
}

async fn run_a_pod(client: &kube::Client) -> anyhow::Result<()> {
    let within = Duration::from_secs(120);
    let container = json!({"name": "c", "image": Image::Busybox.reference(), "command": ["sleep", "3600"]});
    let pod = Pod::new("default", "sleeper")
        .spec("containers", json!([container]))
        .spec("schedulerName", json!("default-scheduler"))
        .spec(
            "volumes",
            json!([{"name": "memory", "emptyDir": {"medium": "Memory"}}]),
        );
    objects::wait_until("the pod is accepted", within, || async {
        objects::create_pod(client, &pod).await?;
        Ok(objects::Progress::Done(()))
    })
    .await?;
    objects::wait_until("the pod runs", within, || async {
        let pod = objects::get(client, "/api/v1/namespaces/default/pods/sleeper").await?;
        Ok(check(pod["status"]["phase"] == "Running", || {
            pod["status"].to_string()
        }))
    })
    .await
}
