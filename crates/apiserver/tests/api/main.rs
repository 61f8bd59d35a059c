//! The conformance suite on the embedded plane. `crates/cluster-tests/tests/api.rs` runs the same checks on Kubernetes.

#![recursion_limit = "256"]

mod checks;

use checks::{Side, World};
use volcano_apiserver::{Options, Plane};

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_plane_passes_the_suite() {
    let options = Options {
        crds: volcano_api::crd::all(),
        ..Options::default()
    };
    let plane = Plane::start(options).await.unwrap();
    let tally = checks::run(&World::new(plane.client(), Side::Embedded)).await;
    tally.conclude();
}
