//! Tests against a real Kubernetes control plane, one for each file in `tests/`: `cargo xtask test` runs them where Go is
//! found.
//!
//! Each test has its own namespace and its own queues, so that all can share the control plane of their file.

pub mod access;
pub mod acts;
pub mod controllers;
pub mod field;
pub mod install;
pub mod jobs;
pub mod ledger;
pub mod process;
pub mod scheduler;
pub mod seed;
pub mod stage;
pub mod tls;
pub mod webhooks;
pub mod witness;

use std::sync::LazyLock;

use volcano_testcluster::{Cluster, Options};

static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let started = Cluster::start(Options::default()).and_then(|cluster| {
        cluster.install_crds(&volcano_api::crd::all())?;
        Ok(cluster)
    });
    started.expect("without a control plane there is nothing to test")
});

/// The control plane of this test binary, with the CRDs installed; the first who asks starts it.
///
/// # Panics
/// When it does not start.
pub fn cluster() -> &'static Cluster {
    &CLUSTER
}
