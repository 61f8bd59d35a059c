//! The conformance suite on a real kube-apiserver: what the embedded plane is measured by.

#![recursion_limit = "256"]

#[path = "../../apiserver/tests/api/checks/mod.rs"]
mod checks;

use checks::{Side, World};
use volcano_cluster_tests::cluster;

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_passes_the_suite() {
    let client = tokio::task::block_in_place(cluster).client().unwrap();
    checks::run(&World::new(client, Side::Kubernetes))
        .await
        .conclude();
}
